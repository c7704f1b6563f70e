// SPDX-License-Identifier: Apache-2.0
// What a tenant launched while it was alone, when somebody else has come. The rest is in splitter.h.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "server/backends/opencl/splitter.h"

namespace hawser::server::ocl {
namespace {

// How long a drain waits for queues that may be held up by the guest itself, and how often it looks.
constexpr std::chrono::milliseconds kLongestDrain{100};
constexpr std::chrono::microseconds kBetweenLooks{200};

}  // namespace

void Splitter::AddQueue(const std::shared_ptr<Queue>& queue) {
  const std::lock_guard<std::mutex> lock(queues_mutex_);
  std::erase_if(queues_, [](const std::weak_ptr<Queue>& one) { return one.expired(); });
  queues_.push_back(queue);
}

void Splitter::Drain() {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    const std::lock_guard<std::mutex> lock(queues_mutex_);
    for (const auto& one : queues_) {
      if (auto queue = one.lock()) queues.push_back(std::move(queue));
    }
  }
  // A marker on each queue first, so that all run while one is waited for.
  std::vector<std::deque<Handle<cl_event>>> launches;
  for (const auto& queue : queues) {
    std::deque<Handle<cl_event>>& these = launches.emplace_back();
    {
      // What is held begins after this drain only: the marker goes before it, or is not needed.
      const std::lock_guard<std::mutex> lock(queue->open_mutex);
      these.swap(queue->open_launches);
      cl_event marker = nullptr;
      if (queue->open_end) {
        these.push_back(Handle<cl_event>::Share(queue->open_end.get()));
      } else if (clEnqueueMarkerWithWaitList(queue->native.get(), 0, nullptr, &marker) == CL_SUCCESS) {
        these.emplace_back(marker);
      }
    }
    clFlush(queue->native.get());
  }
  auto before = std::chrono::steady_clock::now();
  auto deadline = before + kLongestDrain;
  for (const std::deque<Handle<cl_event>>& these : launches) {
    for (const Handle<cl_event>& event : these) {
      if (!AwaitOpen(event.get(), &deadline)) break;
      const auto now = std::chrono::steady_clock::now();
      gate_->Charge(static_cast<uint64_t>(std::chrono::nanoseconds(now - before).count()));
      before = now;
    }
  }
}

bool Splitter::AwaitOpen(cl_event event, Clock::time_point* deadline) {
  // Commands behind an event that the guest has not set are not on the device, and may never be.
  while (user_events_.AnyUnset() && !stopping_) {
    cl_int execution = CL_QUEUED;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr);
    const auto now = Clock::now();
    // While something goes on this goes on: the events may be of launches that are held.
    if (execution <= CL_RUNNING) *deadline = now + kLongestDrain;
    if (execution <= CL_COMPLETE) return true;
    if (now >= *deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (stopping_) return false;
  (void)WaitFor(event);
  return true;
}

void Splitter::KeepOpen(Queue& queue, cl_event event) {
  // Beyond as many only the last counts.
  constexpr size_t kMost = 4096;
  const std::lock_guard<std::mutex> lock(queue.open_mutex);
  for (int i = 0; i < 2 && !queue.open_launches.empty(); ++i) {
    cl_int execution = CL_QUEUED;
    clGetEventInfo(queue.open_launches.front().get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution,
                   nullptr);
    if (execution > CL_COMPLETE) break;
    queue.open_launches.pop_front();
  }
  if (queue.open_launches.size() < kMost) queue.open_launches.push_back(Handle<cl_event>::Share(event));
}

}  // namespace hawser::server::ocl
