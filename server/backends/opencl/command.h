// SPDX-License-Identifier: Apache-2.0
// One enqueue: looks up what the message names, calls the driver, and sees to what follows.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_COMMAND_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_COMMAND_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {

/// On the executor's stack; nothing is allocated for wait lists of up to 16 events. The first problem that is found
/// stays: later lookups and checks then do nothing.
class Command {
 public:
  Command(OpenClBackend& backend, const opencl::Call& call, wire::Id queue, const wire::ArrayView<wire::Id>& wait_list,
          wire::Id event)
      : backend_(backend), call_(call), queue_id_(queue), event_id_(event) {
    if (QueueObject* object = backend_.Use<QueueObject>(queue, "queue", &status_); object != nullptr) {
      queue_ = &object->queue;
      if (!wait_list.empty()) ResolveWaitList(wait_list);
    }
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  bool ok() const { return status_ == CL_SUCCESS; }
  int32_t status() const { return status_; }
  /// The driver's handle; null after a problem.
  cl_mem Buffer(wire::Id id, std::string_view what, uint64_t* size);
  const Memory* Buffer(wire::Id id, std::string_view what);
  cl_mem Image(wire::Id id, std::string_view what, const ImageShape** shape);
  cl_mem AnyMemory(wire::Id id, std::string_view what);
  template <typename T>
  T* Use(wire::Id id, std::string_view what) {
    return ok() ? backend_.Use<T>(id, what, &status_) : nullptr;
  }
  void Require(bool condition, int32_t status, std::string_view reason) {
    if (ok() && !condition) [[unlikely]]
      status_ = backend_.Explain(status, reason);
  }
  /// The device knows this version of OpenCL (10 * major + minor).
  void RequireVersion(uint32_t version) {
    Require(ok() && queue()->version >= version, CL_INVALID_OPERATION, "the device's OpenCL is too old for this");
  }

  const std::shared_ptr<Queue>& queue() const { return *queue_; }
  cl_command_queue native() const { return (*queue_)->native.get(); }
  wire::Id event_id() const { return event_id_; }

  /// Calls enqueue(queue, count, wait_list, event*) and nothing else. `completions` are how many records the caller
  /// will need. One more event to wait for may be given. `gated`: under the gate even without a wait list.
  template <typename Enqueue>
  int32_t Call(Enqueue&& enqueue, Handle<cl_event>* event, uint32_t completions, cl_event also = nullptr,
               bool gated = false) {
    if (!ok()) return status_;
    // With a user event that is not set commands may fail: see completions.h.
    may_fail_ = backend_.user_events_->AnyUnset();
    if ((completions != 0 || event_id_ || may_fail_) && !backend_.completions_->Reserve(completions + 1)) [[unlikely]] {
      return status_ = CL_OUT_OF_HOST_MEMORY;
    }
    if (also != nullptr) AddWait(also);
    cl_event made = nullptr;
    if (count_ == 0 && !gated && !may_fail_) [[likely]] {
      status_ = enqueue(native(), cl_uint{0}, static_cast<const cl_event*>(nullptr), &made);
    } else {
      // In order and with nothing to wait for of its own, a command runs by itself after what is ahead of it.
      if (!gated && count_ != 0) NoteUnknown();
      if (may_fail_ && backend_.splitter_ != nullptr) Splitter::CloseOpen(**queue_);
      const std::lock_guard<std::mutex> lock(backend_.completions_->gate());
      if (AnyFailed()) {
        status_ = backend_.Explain(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
                                   "an event of the wait list ended with an error");
      } else {
        status_ = enqueue(native(), count_, count_ == 0 ? nullptr : waits(), &made);
      }
    }
    event->Reset(made);
    return status_;
  }

  /// The command, or what is enqueued with it, waits for more than what is before it in its queue.
  void NoteUnknown() {
    (*queue_)->ahead = Queue::Ahead::kUnknown;
    (*queue_)->group.reset();
  }

  /// The command that gave this event is the queue's newest, and the one whose event the guest asked for. Returns a
  /// record to fill in and arm, or null when none is needed.
  Completion* Accept(Handle<cl_event> event, bool needs_completion) {
    Queue& queue = **queue_;
    ++queue.number;
    Completion* completion = nullptr;
    if (needs_completion || event_id_ || may_fail_) {
      completion = backend_.completions_->New(event.get(), *queue_, queue.number);
      completion->announce = event_id_;
      completion->ends = queue.in_order;
      if (event_id_) KeepEvent(event.get());
    }
    if (queue.in_order) queue.last = std::move(event);
    return completion;
  }

  /// Call and Accept, for commands that need nothing else.
  template <typename Enqueue>
  int32_t Run(Enqueue&& enqueue) {
    Handle<cl_event> event;
    if (Call(enqueue, &event, 0) != CL_SUCCESS) [[unlikely]]
      return Fail();
    if (Completion* completion = Accept(std::move(event), false); completion != nullptr) {
      backend_.completions_->Arm(completion);
    }
    return CL_SUCCESS;
  }

  int32_t Fail() { return backend_.Fail(call_, status_, event_id_, queue_id_); }
  int32_t Fail(int32_t status) {
    status_ = status;
    return Fail();
  }

 private:
  static constexpr uint32_t kFew = 16;

  void ResolveWaitList(const wire::ArrayView<wire::Id>& ids);
  void AddWait(cl_event event);
  bool AnyFailed() const;
  void KeepEvent(cl_event event);
  const cl_event* waits() const { return many_.empty() ? few_ : many_.data(); }

  OpenClBackend& backend_;
  const opencl::Call& call_;
  const wire::Id queue_id_;
  const wire::Id event_id_;
  int32_t status_ = CL_SUCCESS;
  std::shared_ptr<Queue>* queue_ = nullptr;
  bool may_fail_ = false;
  uint32_t count_ = 0;
  cl_event few_[kFew];
  std::vector<cl_event> many_;  ///< All of them, when they are more than a few.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_COMMAND_H_
