// SPDX-License-Identifier: Apache-2.0
// What a tenant launched while it was alone, when somebody else has come. The rest is in splitter.h.
#include <algorithm>
#include <chrono>
#include <utility>

#include "server/backends/opencl/splitter.h"

namespace hawser::server::ocl {

LaunchGate& Splitter::GateOf(const std::string& device) {
  LaunchGate& gate = all_gates_ != nullptr ? all_gates_->Of(device) : open_gate_;
  if (std::find(gates_.begin(), gates_.end(), &gate) != gates_.end()) return gate;
  gates_.push_back(&gate);
  gate.SetDrain([this, &gate] { Drain(gate); });
  gate.SetClosed([this] { OnClosed(); });
  return gate;
}

void Splitter::AddQueue(const std::shared_ptr<Queue>& queue, const std::string& device) {
  queue->gate = &GateOf(device);
  queue->bounded = queue->gate->OpenCapNs() != 0;
  const std::lock_guard<std::mutex> lock(queues_mutex_);
  std::erase_if(queues_, [](const std::weak_ptr<Queue>& one) { return one.expired(); });
  queues_.push_back(queue);
}

void Splitter::Drain(LaunchGate& gate) {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    const std::lock_guard<std::mutex> lock(queues_mutex_);
    for (const auto& one : queues_) {
      if (auto queue = one.lock(); queue != nullptr && queue->gate == &gate) queues.push_back(std::move(queue));
    }
  }
  // A marker on each queue first, so that all run while one is waited for.
  std::vector<std::deque<Handle<cl_event>>> launches;
  for (const auto& queue : queues) {
    std::deque<Handle<cl_event>>& these = launches.emplace_back();
    {
      // What waits for more than the device begins after this drain: the marker goes before it, or is not needed.
      const std::lock_guard<std::mutex> lock(queue->open_mutex);
      these.swap(queue->open_launches);
      cl_event marker = nullptr;
      if (queue->open_closed) {
        if (queue->open_end) these.push_back(Handle<cl_event>::Share(queue->open_end.get()));
      } else if (clEnqueueMarkerWithWaitList(queue->native.get(), 0, nullptr, &marker) == CL_SUCCESS) {
        these.emplace_back(marker);
      }
    }
    clFlush(queue->native.get());
  }
  auto before = std::chrono::steady_clock::now();
  for (const std::deque<Handle<cl_event>>& these : launches) {
    for (const Handle<cl_event>& event : these) {
      if (stopping_) return;
      (void)WaitFor(event.get());
      const auto now = std::chrono::steady_clock::now();
      gate.Charge(static_cast<uint64_t>(std::chrono::nanoseconds(now - before).count()));
      before = now;
    }
  }
}

void Splitter::CloseOpen(Queue& queue) {
  if (queue.open_closed) return;
  const std::lock_guard<std::mutex> lock(queue.open_mutex);
  if (queue.in_order) {
    queue.open_end = Handle<cl_event>::Share(queue.last.get());
  } else {
    cl_event marker = nullptr;
    if (clEnqueueMarkerWithWaitList(queue.native.get(), 0, nullptr, &marker) != CL_SUCCESS) return;
    queue.open_end = Handle<cl_event>(marker);
  }
  queue.open_closed = true;
}

void Splitter::ReopenOpen(Queue& queue) {
  const std::lock_guard<std::mutex> lock(queue.open_mutex);
  queue.open_closed = false;
  queue.open_end.Reset();
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
