// SPDX-License-Identifier: Apache-2.0
// Streams, events, and everybody who waits.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

/// Calls when the last of those that share it is gone, with the last error that one of them left.
struct Countdown {
  explicit Countdown(std::function<void(CUresult)> call) : done(std::move(call)) {}
  ~Countdown() { done(status.load()); }
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;

  const std::function<void(CUresult)> done;
  std::atomic<CUresult> status{CUDA_SUCCESS};
};

}  // namespace

int32_t CudaBackend::CreateStream(const cuda::Call& call, const cuda::CreateStream& message) {
  int32_t status = 0;
  Context* const context = Enter(message.context, &status);
  if (context == nullptr) return Fail(call, status, message.stream, message.context);
  CUstream native = nullptr;
  const CUresult result = driver_.cuStreamCreateWithPriority(&native, message.flags, message.priority);
  if (result != CUDA_SUCCESS) return Finish(call, result, message.context, message.stream);
  Stream stream;
  stream.state = std::make_shared<StreamState>();
  stream.state->owned = OwnedStream(&driver_, native);
  stream.state->id = message.stream;
  stream.state->context = message.context;
  stream.state->nonblocking = (message.flags & CU_STREAM_NON_BLOCKING) != 0;
  context->has_blocking = context->has_blocking || !stream.state->nonblocking;
  status = Keep(message.stream, std::move(stream));
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::SetStreamAttribute(const cuda::Call& call, const cuda::SetStreamAttribute& message) {
  int32_t status = 0;
  const Stream* stream = Use<Stream>(message.stream, &status);
  if (stream == nullptr) return Fail(call, status);
  CUlaunchAttribute attribute{};
  if (status = FillAttribute(message.attribute, &attribute); status != 0) return Fail(call, status);
  if (driver_.cuStreamSetAttribute == nullptr) return Fail(call, kNotSupported);
  if (Enter(stream->state->context, &status) == nullptr) return Fail(call, status);
  return Finish(call, driver_.cuStreamSetAttribute(stream->state->native(), attribute.id, &attribute.value),
                stream->state->context);
}

CUresult CudaBackend::QueryEnd(const StreamState& stream) {
  const bool known = !stream.given && stream.end != nullptr;
  return known ? driver_.cuEventQuery(stream.end->native()) : driver_.cuStreamQuery(stream.native());
}

CUstream CudaBackend::WatcherOf(Context& context) {
  if (!context.has_blocking) return context.legacy->native();
  if (context.watcher == nullptr) {
    CUstream native = nullptr;
    if (driver_.cuStreamCreateWithPriority(&native, CU_STREAM_DEFAULT, 0) != CUDA_SUCCESS) return nullptr;
    context.watcher = std::make_shared<StreamState>();
    context.watcher->owned = OwnedStream(&driver_, native);
  }
  return context.watcher->native();
}

CUresult CudaBackend::TellEnd(Context& context, StreamState& stream, std::function<void(CUresult)> done) {
  if (stream.given || stream.end == nullptr) {
    const CUstream where = &stream == context.legacy.get() ? WatcherOf(context) : stream.native();
    return waits_->Tell(&stream.lane, where, context.events, std::move(done));
  }
  const auto tell = [done = std::move(done), behind = stream.lane.Newest()](CUresult end) {
    if (end == CUDA_SUCCESS) behind.NoteOver();
    done(end);
  };
  waits_->OnEvent(context.native, stream.end->native(), stream.end, tell, &stream.lane);
  return CUDA_SUCCESS;
}

CUresult CudaBackend::TellAll(const Place& at, std::function<void(CUresult)> done) {
  if (at.stream != at.context->legacy.get() || !at.context->has_blocking) {
    return TellEnd(*at.context, *at.stream, std::move(done));
  }
  const auto countdown = std::make_shared<Countdown>(std::move(done));
  const auto told = [countdown](CUresult end) {
    if (end != CUDA_SUCCESS) countdown->status.store(end);
  };
  const auto tell = [&](StreamState& stream) {
    // To ask a stream that captures would end that.
    if (stream.nonblocking || Captures(stream)) return;
    CUresult result = QueryEnd(stream);
    if (result == CUDA_SUCCESS && waits_->AllHandedOver(current_)) return;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) result = TellEnd(*at.context, stream, told);
    Note(at.stream->context, result);
    told(result);
  };
  tell(*at.stream);
  ForEachStream(at.stream->context, tell);
  return CUDA_SUCCESS;
}

CUresult CudaBackend::SynchronizeBehind(const Place& at, std::function<void(CUresult)> done) {
  CUresult result = QueryEnd(*at.stream);
  if (result == CUDA_SUCCESS && waits_->AllHandedOver(current_)) {
    // Everything is over, so this does not wait; some drivers hand out what kernels printed only here.
    const auto& end = at.stream->given ? nullptr : at.stream->end;
    result = end ? driver_.cuEventSynchronize(end->native()) : driver_.cuStreamSynchronize(at.native());
    if (services_.drain_kernel_output) services_.drain_kernel_output();
    if (result == CUDA_SUCCESS) {
      at.stream->lane.Newest().NoteOver();
      done(result);
      return result;
    }
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
  return TellAll(at, std::move(done));
}

int32_t CudaBackend::SynchronizeStream(const cuda::Call& call, const cuda::SynchronizeStream& message) {
  const Place at = At(message.context, message.stream, message.turn != 0 ? Gives::kPlain : Gives::kNothing);
  if (!at.ok()) return ReplyStatus(call, at.status);
  const auto done = [this, call](CUresult end) { (void)ReplyStatus(call, end); };
  // What can be asked of a stream is not what else its next command is behind.
  const bool behind_legacy = message.turn != 0 && message.stream && !at.stream->nonblocking &&
                             (captures() || driver_.cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  const CUresult result = behind_legacy ? waits_->Tell(&at.stream->lane, at.native(), at.context->events, done)
                                        : SynchronizeBehind(at, done);
  if (result == CUDA_SUCCESS) return 0;
  Note(message.context, result);
  return ReplyStatus(call, result);
}

void CudaBackend::EndStream(const std::shared_ptr<StreamState>& stream) {
  const auto is_over = [&](const std::shared_ptr<StreamState>& each) {
    return each->context == stream->context && driver_.cuStreamQuery(each->native()) != CUDA_ERROR_NOT_READY;
  };
  std::erase_if(ending_streams_, is_over);
  if (Context* context = objects_->Table<Context>().Find(stream->context); context != nullptr) {
    std::erase(context->given, stream);
  }
  // To ask a stream that captures would end that; and there is nothing in it that runs.
  if (!Captures(*stream) && !is_over(stream)) ending_streams_.push_back(stream);
}

int32_t CudaBackend::SynchronizeContext(const cuda::Call& call, const cuda::SynchronizeContext& message) {
  const Place at = At(message.context, {}, Gives::kNothing);
  if (!at.ok()) return ReplyStatus(call, at.status);
  const auto countdown =
      std::make_shared<Countdown>([this, call](CUresult end) { (void)ReplyStatus(call, static_cast<int32_t>(end)); });
  const auto wait_for = [&](StreamState& stream) {
    // To ask a stream that captures would end that, and so may asking the legacy stream beside it.
    if (Captures(stream) || (&stream == at.stream && captures())) return;
    CUresult result = driver_.cuStreamQuery(stream.native());
    if (result == CUDA_ERROR_NOT_READY || (result == CUDA_SUCCESS && !waits_->AllHandedOver(current_))) {
      result = TellEnd(*at.context, stream, [countdown](CUresult end) {
        if (end != CUDA_SUCCESS) countdown->status.store(end);
      });
    }
    if (result != CUDA_SUCCESS) {
      countdown->status.store(result);
      Note(message.context, result);
    }
  };
  wait_for(*at.stream);
  ForEachStream(message.context, wait_for);
  if (countdown.use_count() == 1 && countdown->status.load() == CUDA_SUCCESS) {
    // Nothing is under way: this does not wait, and hands out what kernels printed.
    if (!captures()) countdown->status.store(driver_.cuCtxSynchronize());
    if (services_.drain_kernel_output) services_.drain_kernel_output();
  }
  return 0;
}

int32_t CudaBackend::AnswerWatch(const cuda::Call& call, bool answered, wire::Id object, uint64_t ticket,
                                 int32_t status) {
  if (!answered) return ReplyStatus(call, status);
  cuda::Completed notice;
  notice.object = object;
  notice.ticket = ticket;
  notice.status = status;
  Notify(notice);
  return 0;
}

int32_t CudaBackend::WatchStream(const cuda::Call& call, const cuda::WatchStream& message) {
  const bool answered = std::exchange(watch_answered_, false);
  const wire::Id object = message.stream ? message.stream : message.context;
  const auto answer = [&](int32_t status) { return AnswerWatch(call, answered, object, message.ticket, status); };
  const Place at = At(message.context, message.stream, Gives::kNothing);
  if (!at.ok()) return answer(at.status);
  const CUresult result = QueryEnd(*at.stream);
  if (result == CUDA_SUCCESS && waits_->AllHandedOver(current_)) {
    at.stream->lane.Newest().NoteOver();
    if (services_.drain_kernel_output) services_.drain_kernel_output();
    return answer(0);
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    Note(message.context, result);
    return answer(result);
  }
  if (!answered) (void)ReplyStatus(call, CUDA_ERROR_NOT_READY);
  cuda::Completed notice;
  notice.object = object;
  notice.ticket = message.ticket;
  const CUresult behind = TellAll(at, [this, notice](CUresult end) mutable {
    notice.status = end;
    Notify(notice);
  });
  if (behind != CUDA_SUCCESS) {
    Note(message.context, behind);
    notice.status = behind;
    Notify(notice);
  }
  return 0;
}

int32_t CudaBackend::WaitEvent(const cuda::Call& call, const cuda::WaitEvent& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  Event* event = Use<Event>(message.event, &status);
  if (event == nullptr) return Fail(call, status, {}, message.context);
  if ((message.flags & CU_EVENT_WAIT_EXTERNAL) != 0) event->fixed = true;
  return Finish(call, driver_.cuStreamWaitEvent(at.native(), event->native(), message.flags), message.context);
}

// --- events

int32_t CudaBackend::CreateEvent(const cuda::Call& call, const cuda::CreateEvent& message) {
  int32_t status = 0;
  const Context* context = Enter(message.context, &status);
  if (context == nullptr) return Fail(call, status, message.event, message.context);
  CUevent native = nullptr;
  const CUresult result = driver_.cuEventCreate(&native, message.flags);
  if (result != CUDA_SUCCESS) return Finish(call, result, message.context, message.event);
  status = Keep(message.event, Event::Of(&driver_, message.context, *context, native, message.flags));
  return status == 0 ? 0 : Fail(call, status);
}

int32_t CudaBackend::RecordEvent(const cuda::Call& call, const cuda::RecordEvent& message) {
  const Place at = At(message.context, message.stream, Gives::kPlain);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  int32_t status = 0;
  Event* event = Use<Event>(message.event, &status);
  if (event == nullptr) return Fail(call, status, {}, message.context);
  event->state->behind = at.stream->lane.Newest();
  if (message.flags != 0) {
    event->fixed = true;  // A graph may have it from now on.
    if (driver_.cuEventRecordWithFlags == nullptr) return Fail(call, kNotSupported, {}, message.context);
    return Finish(call, driver_.cuEventRecordWithFlags(event->native(), at.native(), message.flags), message.context);
  }
  return Finish(call, driver_.cuEventRecord(event->native(), at.native()), message.context);
}

Event* CudaBackend::OldEvent(wire::Id id, Event* now) const {
  const auto old =
      std::find_if(old_events_->begin(), old_events_->end(), [id](const auto& e) { return e.first == id; });
  return old != old_events_->end() ? &old->second : now;
}

void CudaBackend::RenewEvent(wire::Bytes payload) {
  cuda::RecordEvent message;
  wire::Reader reader(payload);
  if (!message.Decode(reader)) return;
  Event* const event = objects_->Table<Event>().Find(message.event);
  if (event == nullptr || event->error != 0 || event->fixed || !deferral_.CanDetach(message.event)) return;
  const Context* const context = objects_->Table<Context>().Find(event->context);
  if (context == nullptr || context->error != 0 || EnterNative(context->native) != 0) return;
  CUevent native = nullptr;
  if (driver_.cuEventCreate(&native, event->flags) != CUDA_SUCCESS) return;  // The record waits.
  deferral_.Detach(message.event, [&](DeferredFrame& frame) {
    if (frame.events == nullptr) frame.events = std::make_shared<OldEvents>();
    static_cast<OldEvents*>(frame.events.get())->emplace_back(message.event, *event);
  });
  *event = Event::Of(&driver_, event->context, *context, native, event->flags);
}

int32_t CudaBackend::RecordContext(const cuda::Call& call, const cuda::RecordContext& message) {
  int32_t status = 0;
  const Context* context = Enter(message.context, &status);
  const Event* event = context != nullptr ? Use<Event>(message.event, &status) : nullptr;
  if (event == nullptr) return Fail(call, status, {}, message.context);
  event->state->behind = {};
  if (driver_.cuCtxRecordEvent == nullptr) return Fail(call, kNotSupported, {}, message.context);
  return Finish(call, driver_.cuCtxRecordEvent(context->native, event->native()), message.context);
}

int32_t CudaBackend::HoldContext(const cuda::Call& call, const cuda::HoldContext& message) {
  int32_t status = 0;
  Context* context = Enter(message.context, &status);
  const Event* event = context != nullptr ? Use<Event>(message.event, &status) : nullptr;
  if (event == nullptr) return Fail(call, status, {}, message.context);
  if (driver_.cuCtxWaitEvent == nullptr) return Fail(call, kNotSupported, {}, message.context);
  // What the event stands for may be anything.
  context->legacy->plain = false;
  NoteGiven(*context, *context->legacy);
  ForEachStream(message.context, [&](StreamState& stream) {
    stream.plain = false;
    NoteGiven(*context, stream);
  });
  return Finish(call, driver_.cuCtxWaitEvent(context->native, event->native()), message.context);
}

int32_t CudaBackend::SynchronizeEvent(const cuda::Call& call, const cuda::SynchronizeEvent& message) {
  int32_t status = 0;
  const Event* event = Use<Event>(message.event, &status);
  if (event == nullptr || Enter(event->context, &status) == nullptr) return ReplyStatus(call, status);
  CUresult result = driver_.cuEventQuery(event->native());
  if (result == CUDA_SUCCESS && waits_->AllHandedOver(current_)) {
    result = driver_.cuEventSynchronize(event->native());
    event->state->behind.NoteOver();
    if (services_.drain_kernel_output) services_.drain_kernel_output();
    return ReplyStatus(call, result);
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    Note(event->context, result);
    return ReplyStatus(call, result);
  }
  waits_->OnEvent(event->state->native_context, event->native(), event->state,
                  [this, call, behind = event->state->behind](CUresult end) {
                    if (end == CUDA_SUCCESS) behind.NoteOver();
                    (void)ReplyStatus(call, end);
                  });
  return 0;
}

int32_t CudaBackend::WatchEvent(const cuda::Call& call, const cuda::WatchEvent& message) {
  const bool answered = std::exchange(watch_answered_, false);
  const auto answer = [&](int32_t what) { return AnswerWatch(call, answered, message.event, message.ticket, what); };
  int32_t status = 0;
  const Event* event = Use<Event>(message.event, &status);
  if (event == nullptr || Enter(event->context, &status) == nullptr) return answer(status);
  const CUresult result = driver_.cuEventQuery(event->native());
  if (result == CUDA_SUCCESS && waits_->AllHandedOver(current_)) {
    event->state->behind.NoteOver();
    if (services_.drain_kernel_output) services_.drain_kernel_output();
    return answer(0);
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    Note(event->context, result);
    return answer(result);
  }
  if (!answered) (void)ReplyStatus(call, CUDA_ERROR_NOT_READY);
  waits_->OnEvent(event->state->native_context, event->native(), event->state,
                  [this, object = message.event, ticket = message.ticket, behind = event->state->behind](CUresult end) {
                    if (end == CUDA_SUCCESS) behind.NoteOver();
                    cuda::Completed notice;
                    notice.object = object;
                    notice.ticket = ticket;
                    notice.status = end;
                    Notify(notice);
                  });
  return 0;
}

int32_t CudaBackend::GetElapsed(const cuda::Call& call, const cuda::GetElapsed& message) {
  cuda::Elapsed reply;
  const Event* start = Use<Event>(message.start, &reply.status);
  const Event* end = start != nullptr ? Use<Event>(message.end, &reply.status) : nullptr;
  float milliseconds = 0;
  if (end != nullptr && Enter(end->context, &reply.status) != nullptr) {
    if (driver_.cuEventElapsedTime != nullptr) {
      reply.status = driver_.cuEventElapsedTime(&milliseconds, start->native(), end->native());
    } else if (driver_.ElapsedTimeV1 != nullptr) {
      reply.status = driver_.ElapsedTimeV1(&milliseconds, start->native(), end->native());
    } else {
      reply.status = kNotSupported;
    }
  }
  std::memcpy(&reply.milliseconds, &milliseconds, sizeof(milliseconds));
  Reply(call, reply);
  return 0;
}

}  // namespace hawser::server::cuda_backend
