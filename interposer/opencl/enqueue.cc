// SPDX-License-Identifier: Apache-2.0
// One command on its way to a queue, and what waits for a queue.
//
// The launch path (no event, no wait list) passes through Begin, Submit and Conclude: it reads the queue, counts two
// atomics and encodes one message. It allocates nothing and takes no lock but the stream's.
#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/event_state.h"
#include "interposer/opencl/landing.h"

namespace hawser::ocl {
namespace {

bool Idle(cl_command_queue queue) {
  return queue->finished.load(std::memory_order_acquire) == queue->enqueued.load(std::memory_order_relaxed);
}

}  // namespace

cl_int Enqueue::Begin() {
  cl_int error = CheckHandle(queue_);
  if (error != CL_SUCCESS) return error;
  if ((num_events_ == 0) != (list_ == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  for (cl_uint i = 0; i < num_events_; ++i) {
    cl_event waited = list_[i];
    if (waited == nullptr || waited->magic != Magic::kEvent) return CL_INVALID_EVENT_WAIT_LIST;
    if (waited->context != queue_->context) return CL_INVALID_CONTEXT;
  }
  if (queue_->pending_error.load(std::memory_order_relaxed) != CL_SUCCESS) {
    error = queue_->pending_error.exchange(CL_SUCCESS);
    if (error != CL_SUCCESS) return error;
  }
  for (cl_uint i = 0; i < num_events_; ++i) {
    cl_event waited = list_[i];
    const cl_int status = StatusOf(waited);
    if (status == CL_COMPLETE) continue;
    if (status < 0) failed_wait_ = true;
    // A failed one is sent too: the server makes this command fail as the specification says.
    AddOpen(waited->id);
  }
  if (queue_->context->writes.Any()) [[unlikely]]
    FollowWrites();
  return CL_SUCCESS;
}

void Enqueue::AddOpen(wire::Id event) {
  if (open_events_ < kInlineEvents) {
    inline_ids_[open_events_] = event;
  } else {
    if (more_ids_.empty()) more_ids_.assign(inline_ids_, inline_ids_ + kInlineEvents);
    more_ids_.push_back(event);
  }
  ++open_events_;
}

void Enqueue::FollowWrites() {
  // With a list a marker would wait for nothing else, and it touches no data.
  if (type_ == CL_COMMAND_MARKER || type_ == CL_COMMAND_BARRIER) return;
  queue_->context->writes.OfOthers(queue_, &writes_);
  for (cl_event write : writes_) {
    if (IsFinal(write)) continue;
    FlushQueue(write->queue);
    AddOpen(write->id);
  }
}

cl_int Enqueue::UseMem(cl_mem mem, wire::Id* id) {
  const cl_int error = CheckHandle(mem);
  if (error != CL_SUCCESS) return error;
  if (mem->context != queue_->context) return CL_INVALID_CONTEXT;
  mems_.push_back(mem);
  *id = mem->id;
  return CL_SUCCESS;
}

cl_int Enqueue::UseMems(cl_uint count, const cl_mem* mems, wire::ArrayView<wire::Id>* ids) {
  if (count == 0 || mems == nullptr) return CL_INVALID_VALUE;
  mem_ids_.resize(count);
  for (cl_uint i = 0; i < count; ++i) {
    const cl_int error = UseMem(mems[i], &mem_ids_[i]);
    if (error != CL_SUCCESS) return error;
  }
  *ids = wire::ArrayView<wire::Id>(mem_ids_.data(), mem_ids_.size());
  return CL_SUCCESS;
}

cl_int Enqueue::UseArray(const size_t* values, std::array<uint64_t, 3>* out) {
  if (values == nullptr) return CL_INVALID_VALUE;
  std::copy(values, values + 3, out->begin());
  return CL_SUCCESS;
}

cl_int Enqueue::UseBytes(const void* data, size_t size, wire::Bytes* out) {
  if (data == nullptr || size == 0) return CL_INVALID_VALUE;
  *out = wire::AsBytes(data, size);
  return CL_SUCCESS;
}

void Enqueue::Prepare(wire::Id* queue, wire::ArrayView<wire::Id>* wait_list, wire::Id* event) {
  *queue = queue_->id;
  if (open_events_ != 0) {
    *wait_list = wire::ArrayView<wire::Id>(more_ids_.empty() ? inline_ids_ : more_ids_.data(), open_events_);
  }
  queue_->enqueued.fetch_add(1, std::memory_order_relaxed);
  // What was sent before is ahead of this command in the stream, so its completion tells of all of them.
  position_ = queue_->sent.load(std::memory_order_relaxed) + 1;
  LandingBook& book = LandingBook::Get();
  if (!book.Empty()) before_ = book.Before(queue_, type_, num_events_, list_);
  if (event_ != nullptr || force_event_) {
    made_ = NewEvent(queue_, type_);
    made_->queue_position = position_;
    made_->landing = landing_;
    made_->after = before_;
    made_->on_complete = std::move(on_complete_);
    for (cl_uint i = 0; open_events_ != 0 && i < num_events_; ++i) {
      cl_event waited = list_[i];
      if (waited->queue == nullptr || (waited->queue == queue_ && !queue_->out_of_order())) continue;
      if (!IsFinal(waited)) made_->waits.push_back(waited->id);
    }
    Use(made_);  // A completion may come before Send returns: this keeps the event until the end of the call.
    if (made_->landing != nullptr || made_->on_complete) {
      Use(made_);
      made_->kept.store(true, std::memory_order_relaxed);
    }
    Registry::Get().Add(made_);  // Complete now: its status may be announced as soon as it is sent.
    *event = made_->id;
  }
}

cl_int Enqueue::Conclude(cl_int sent) {
  queue_->sent.fetch_add(1, std::memory_order_release);
  if (sent != CL_SUCCESS) {
    if (landing_ != nullptr) ShowLanded(LandingBook::Get().Land(landing_, sent));
    if (made_ != nullptr) Discard(made_);
    return sent;
  }
  if (landing_ != nullptr || !before_.empty()) LandingBook::Get().Sent(queue_, type_, before_, landing_);
  if (!queue_->unflushed.load(std::memory_order_relaxed)) queue_->unflushed.store(true, std::memory_order_relaxed);
  if (event_ != nullptr && made_ != nullptr) {
    // Whatever another thread sent before this command was counted before.
    made_->queue_bound = queue_->enqueued.load(std::memory_order_acquire);
    *event_ = made_;
    handed_over_ = true;
  }
  return CL_SUCCESS;
}

Enqueue::~Enqueue() {
  for (cl_event write : writes_) DropUse(write);
  if (made_ == nullptr) return;
  if (!handed_over_) {
    made_->refs.store(0, std::memory_order_relaxed);
    DropUse(made_);  // The application's share: it never saw the event.
  }
  DropUse(made_);
}

cl_int Enqueue::CompleteLocally() {
  if (event_ != nullptr) *event_ = NewLocalEvent(queue_, type_);
  return CL_SUCCESS;
}

bool Enqueue::QueueIdle() const { return open_events_ == 0 && Idle(queue_); }

cl_int Enqueue::WaitIdle() {
  if (failed_wait_) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (open_events_ != 0) {
    const cl_int error = WaitForAll(num_events_, list_);
    if (error != CL_SUCCESS) return error;
    // How they ended is their own callers' affair.
    (void)WaitForAll(static_cast<cl_uint>(writes_.size()), writes_.data());
  }
  return FinishQueue(queue_);
}

cl_int FinishQueue(cl_command_queue queue) {
  if (Idle(queue)) return CL_SUCCESS;
  const uint64_t sent = queue->sent.load(std::memory_order_acquire);
  opencl::Finish finish;
  finish.queue = queue->id;
  opencl::Status status;
  queue->unflushed.store(false, std::memory_order_relaxed);
  cl_int error = queue->session->CallInto(opencl::OpcodeOf<opencl::Finish>::value, finish, &status);
  if (error != CL_SUCCESS) return error;
  error = AwaitData(queue);
  if (error != CL_SUCCESS) return error;
  AdvanceFinished(queue, sent);
  return status.status;
}

void FlushQueue(cl_command_queue queue) {
  if (!queue->unflushed.exchange(false, std::memory_order_relaxed)) return;
  opencl::Flush flush;
  flush.queue = queue->id;
  queue->session->Send(flush);
}

Landings Enqueue::EarlierReads(const void* memory, size_t size) const {
  LandingBook& book = LandingBook::Get();
  if (book.Empty()) [[likely]]
    return {};
  return LandingBook::Overlapping(book.Before(queue_, type_, num_events_, list_), memory, size);
}

cl_int Enqueue::AwaitReads(const Landings& reads) const {
  FlushQueue(queue_);
  for (cl_uint i = 0; i < num_events_; ++i) {
    if (list_[i]->queue != nullptr) FlushQueue(list_[i]->queue);
  }
  return queue_->session->WaitUntil([&reads] { return LandingBook::Landed(reads); });
}

cl_int Enqueue::AwaitEarlierData() {
  if (before_.empty()) return CL_SUCCESS;
  return queue_->session->WaitUntil([this] { return LandingBook::Landed(before_); });
}

cl_int AwaitData(cl_command_queue queue) {
  const Landings landings = LandingBook::Get().Of(queue);
  if (landings.empty()) return CL_SUCCESS;
  return queue->session->WaitUntil([&] { return LandingBook::Landed(landings); });
}

}  // namespace hawser::ocl
