// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/completions.h"

#include <new>
#include <utility>

namespace hawser::server::ocl {
namespace {

uintptr_t Word(cl_event event) { return reinterpret_cast<uintptr_t>(event); }

// Negative: the command ended with this error.
cl_int ExecutionStatus(cl_event event) {
  cl_int status = CL_QUEUED;
  clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  return status;
}

}  // namespace

Completions::~Completions() {
  for (cl_event event : buried_) clReleaseEvent(event);
  for (cl_event event : long_buried_) clReleaseEvent(event);
}

bool Completions::Grow() {
  const uint32_t count = chunk_count_.load(std::memory_order_relaxed);
  if (count == kMaxChunks) return false;
  chunks_[count].reset(new (std::nothrow) Chunk);
  if (chunks_[count] == nullptr) return false;
  for (Completion& completion : *chunks_[count]) {
    completion.owner_ = this;
    completion.next_ = std::exchange(free_, &completion);
  }
  chunk_count_.store(count + 1, std::memory_order_release);
  return true;
}

bool Completions::Reserve(uint32_t count) {
  uint32_t found = 0;
  for (const Completion* at = free_; at != nullptr && found < count; at = at->next_) ++found;
  if (found >= count) return true;
  if (free_ == nullptr) {
    // This thread alone takes from the list, and takes all of it: no record can come back in between.
    free_ = returned_.exchange(nullptr, std::memory_order_acquire);
    if (free_ != nullptr) return Reserve(count);
  }
  return Grow();  // More than anybody asks for.
}

Completion* Completions::New(cl_event event, std::shared_ptr<Queue> queue, uint64_t position) {
  if (!Reserve(1)) return nullptr;
  Completion* completion = std::exchange(free_, free_->next_);
  clRetainEvent(event);
  completion->event_.Reset(event);
  completion->queue_ = std::move(queue);
  completion->position_ = position;
  completion->watched_ = CL_COMPLETE;
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  return completion;
}

void Completions::Arm(Completion* completion) {
  const bool announced = completion->announce && completion->queue_ != nullptr;
  if (announced) completion->queue_->announcing.fetch_add(1, std::memory_order_relaxed);
  // The record keeps the event, but the record may be gone once the callback is set.
  cl_event event = completion->event_.get();
  const int32_t watched = completion->watched_;
  completion->armed.store(Word(event), std::memory_order_release);
  const cl_int status = clSetEventCallback(event, watched, &OnEvent, completion);
  if (status == CL_SUCCESS) return;
  uintptr_t expected = Word(event);
  if (completion->armed.compare_exchange_strong(expected, 0, std::memory_order_acquire)) Fire(*completion, status);
}

void Completions::Watch(cl_event event, wire::Id id, int32_t status) {
  Completion* completion = New(event, nullptr, 0);
  if (completion == nullptr) return;
  completion->watched_ = status;
  completion->announce = id;
  Arm(completion);
}

void CL_CALLBACK Completions::OnEvent(cl_event event, cl_int status, void* user_data) {
  Completion& completion = *static_cast<Completion*>(user_data);
  uintptr_t armed = completion.armed.load(std::memory_order_acquire);
  for (;;) {
    if (armed == Word(event)) {
      if (!completion.armed.compare_exchange_weak(armed, 0, std::memory_order_acq_rel)) continue;
      break;
    }
    if (armed == (Word(event) | 1)) {
      // A sweep is asking the driver about this event: it finds kFired and goes on from here.
      completion.fired_status_ = status;
      if (!completion.armed.compare_exchange_weak(armed, Completion::kFired, std::memory_order_acq_rel)) continue;
      return;
    }
    // A sweep was faster. The record may serve another event by now, but never one with the same handle: the driver
    // keeps an event while it has callbacks to call.
    return;
  }
  Completions& owner = completion.owner();
  // PoCL calls back with CL_COMPLETE when an event had failed before the callback was set.
  if (status == CL_COMPLETE && owner.failed_.load(std::memory_order_relaxed)) {
    if (const cl_int really = ExecutionStatus(event); really < 0) status = really;
  }
  owner.Fire(completion, status);
}

void Completions::Fire(Completion& completion, int32_t status) {
  if (status < 0) failed_.store(true, std::memory_order_relaxed);
  if (services_->drain_kernel_output) services_->drain_kernel_output();
  if (completion.action != nullptr && completion.action(completion, status)) return;
  Conclude(&completion, status);
}

void Completions::AddTimes(const Completion& completion, opencl::EventStatus* status) {
  static constexpr cl_profiling_info kParams[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                                  CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END,
                                                  CL_PROFILING_COMMAND_COMPLETE};
  constexpr size_t kStart = 2, kEnd = 3, kComplete = 4;
  for (size_t i = 0; i < std::size(kParams); ++i) {
    const Handle<cl_event>& other = i <= kStart ? completion.started : completion.ended;
    cl_event event = other ? other.get() : completion.event_.get();
    cl_ulong time = 0;
    if (clGetEventProfilingInfo(event, kParams[i], sizeof(time), &time, nullptr) != CL_SUCCESS) {
      if (i != kComplete) return;
      time = status->times[kEnd];  // Before OpenCL 2.0.
    }
    status->times[i] = time;
  }
  status->has_times = 1;
}

void Completions::Conclude(Completion* completion, int32_t status) {
  const std::shared_ptr<Queue> queue = std::move(completion->queue_);
  // What failed may have been told before what is ahead of it has ended. Two threads of the driver that come in the
  // wrong order here say less than is known, for a moment.
  if (completion->ends && status >= 0) queue->done.store(completion->position_, std::memory_order_relaxed);
  if (completion->announce) {
    opencl::EventStatus notice;
    notice.event = completion->announce;
    notice.status = status;
    if (queue == nullptr) {
      // Somebody watches it. A failure is announced with the completion.
      if (status >= 0) replies().Notify(notice, true);
    } else {
      if (queue->profiling && status == CL_COMPLETE) AddTimes(*completion, &notice);
      // Sent before it is counted: whoever makes the count zero flushes everybody's notices.
      const bool urgent =
          completion->answered || completion->position_ <= queue->urgent.load(std::memory_order_relaxed);
      replies().Notify(notice, urgent);
      if (queue->announcing.fetch_sub(1, std::memory_order_acq_rel) == 1 && !urgent) replies().Flush();
    }
  }
  Free(completion, status);
}

void Completions::Bury(cl_event event) {
  const std::lock_guard<std::mutex> lock(buried_mutex_);
  buried_.push_back(event);
  buried_count_.fetch_add(1, std::memory_order_relaxed);
}

void Completions::Exhume() {
  std::vector<cl_event> done;
  {
    const std::lock_guard<std::mutex> lock(buried_mutex_);
    done = std::exchange(long_buried_, std::exchange(buried_, {}));
    buried_count_.fetch_sub(static_cast<uint32_t>(done.size()), std::memory_order_relaxed);
  }
  for (cl_event event : done) clReleaseEvent(event);
}

void Completions::Free(Completion* completion, int32_t status) {
  if (status < 0) Bury(completion->event_.Release());
  completion->event_.Reset();
  completion->started.Reset();
  completion->ended.Reset();
  completion->action = nullptr;
  completion->context = nullptr;
  completion->seq = 0;
  completion->opcode = 0;
  completion->size = 0;
  completion->announce = wire::Id();
  completion->answered = false;
  completion->ends = false;
  completion->next_ = returned_.load(std::memory_order_relaxed);
  while (!returned_.compare_exchange_weak(completion->next_, completion, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  outstanding_.fetch_sub(1, std::memory_order_release);
}

bool Completions::HasFailed(cl_event event) { return ExecutionStatus(event) < 0; }

int32_t Completions::SetUserEvent(cl_event event, int32_t status) {
  if (status >= 0) return clSetUserEventStatus(event, status);
  {
    const std::lock_guard<std::mutex> lock(gate_);
    failed_.store(true, std::memory_order_relaxed);
    if (const cl_int result = clSetUserEventStatus(event, status); result != CL_SUCCESS) return result;
  }
  Sweep();
  return CL_SUCCESS;
}

void Completions::Sweep() {
  // One at a time: who comes in between, also from within Fire(), has the running sweep go round once more.
  uint32_t asked = sweeps_.fetch_add(1, std::memory_order_acq_rel);
  if (asked != 0) return;
  do {
    asked = sweeps_.load(std::memory_order_acquire);
    SweepOnce();
  } while (sweeps_.fetch_sub(asked, std::memory_order_acq_rel) != asked);
}

void Completions::SweepOnce() {
  const uint32_t chunks = chunk_count_.load(std::memory_order_acquire);
  for (uint32_t c = 0; c < chunks; ++c) {
    for (Completion& completion : *chunks_[c]) {
      uintptr_t armed = completion.armed.load(std::memory_order_acquire);
      if (armed == 0) continue;
      // From here until the last exchange the record and its event cannot go away.
      const uintptr_t event = armed;
      if (!completion.armed.compare_exchange_strong(armed, event | 1, std::memory_order_acq_rel)) continue;
      const cl_int status = ExecutionStatus(reinterpret_cast<cl_event>(event));
      if (status < 0) {
        // Also when the callback came meanwhile: it left the rest to us.
        completion.armed.store(0, std::memory_order_release);
        Fire(completion, status);
        continue;
      }
      uintptr_t looking = event | 1;
      if (!completion.armed.compare_exchange_strong(looking, event, std::memory_order_acq_rel)) {
        const int32_t fired = completion.fired_status_;
        completion.armed.store(0, std::memory_order_release);
        Fire(completion, fired);
      }
    }
  }
}

}  // namespace hawser::server::ocl
