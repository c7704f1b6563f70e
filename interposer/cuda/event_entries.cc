// SPDX-License-Identifier: Apache-2.0
// cuEvent*, and the events of whole contexts.
#include <cstring>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/mirror.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult Check(CUevent event) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(event, Kind::kEvent); error != CUDA_SUCCESS) return error;
  if (const int32_t fault = event->context->fault.load(std::memory_order_relaxed); fault != 0) {
    return static_cast<CUresult>(fault);
  }
  return CUDA_SUCCESS;
}

/// Also when the capture has ended: the event stands for nothing that happens.
bool InCapture(CUevent event) {
  std::lock_guard lock(event->mutex);
  return event->capture != nullptr;
}

/// The last record is done. What came before it in its stream is done too.
void Finish(CUevent event, uint64_t record) {
  uint64_t known = event->finished.load(std::memory_order_relaxed);
  while (known < record && !event->finished.compare_exchange_weak(known, record)) {
  }
}

CUresult Concluded(CUevent event) {
  if (const CUresult error = TakePending(event->context); error != CUDA_SUCCESS) return error;
  // Which streams are idle now is not known.
  return Mirrors::Get().AfterWait(/*mark=*/0, event->context, nullptr);
}

/// Of an event that other processes may record: that it is done can only be told by the server, and now.
CUresult QueryShared(CUevent event) {
  guest::Session* session = Client::Get().session();
  const uint64_t watched = event->watched.load(std::memory_order_relaxed);
  if (event->finished.load(std::memory_order_acquire) < watched) {
    // What the server was asked about was not done, and it will say when it is.
    session->Flush();
    session->Poll();
    if (event->finished.load(std::memory_order_acquire) < watched) return CUDA_ERROR_NOT_READY;
  }
  cuda::WatchEvent message;
  message.event = event->id;
  message.ticket = event->recorded.fetch_add(1, std::memory_order_relaxed) + 1;
  event->watched.store(message.ticket, std::memory_order_relaxed);
  if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) return error;
  Finish(event, message.ticket);
  if (!AllLanded(event->landings.Open())) return CUDA_ERROR_NOT_READY;
  return Concluded(event);
}

}  // namespace

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned int flags) {
  if (event == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && !Client::Get().CanShare(context->device)) {
    static std::atomic_flag said;
    return RefuseOnce("CU_EVENT_INTERPROCESS", "the server's device shares no events", &said);
  }
  guest::Session* session = Client::Get().session();
  auto* made = new CUevent_st(Kind::kEvent, session->NewId(static_cast<uint8_t>(cuda::Handle::kEvent)));
  made->context = context;
  made->flags = flags;
  Registry::Get().Add(made);
  cuda::CreateEvent message;
  message.event = made->id;
  message.context = context->id;
  message.flags = flags;
  *event = made;
  return FromWire(session->Send(message));
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (event == nullptr || event->kind != Kind::kEvent) return CUDA_ERROR_INVALID_HANDLE;
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = event->id;
  const int32_t error = session->Send(message);
  const wire::Id id = event->id;
  Registry::Get().Bury(event);
  session->FreeId(id);
  return FromWire(error);
}

CUresult CUDAAPI cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags) {
  if ((flags & ~CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(event, Kind::kEvent); error != CUDA_SUCCESS) return error;
  if (event->context != command.context()) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  {
    std::lock_guard lock(event->mutex);
    event->capture = capture;
  }
  cuda::RecordEvent message;
  message.event = event->id;
  message.flags = flags;
  if (capture == nullptr) {
    event->landings.Assign(LandingsBefore(command.stream()));
    event->recorded.fetch_add(1, std::memory_order_relaxed);
  }
  // Another process may wait for it as soon as it hears of this.
  return event->interprocess() ? command.SendAndWait(message) : command.Send(message);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event) {
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Check(event); error != CUDA_SUCCESS) return error;
  if (event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  if (Captures::Get().BreakIn(context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  {
    std::lock_guard lock(event->mutex);
    event->capture = nullptr;
  }
  cuda::RecordContext message;
  message.context = context->id;
  message.event = event->id;
  event->landings.Assign(LandingsOf(context));
  event->recorded.fetch_add(1, std::memory_order_relaxed);
  guest::Session* const session = Client::Get().session();
  // Another process may wait for it as soon as it hears of this.
  return FromWire(event->interprocess() ? session->SendAndWait(message) : session->Send(message));
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext context, CUevent event) {
  if (const CUresult error = CheckContext(context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Check(event); error != CUDA_SUCCESS) return error;
  std::shared_ptr<Capture> capture;
  {
    std::lock_guard lock(event->mutex);
    capture = event->capture;
  }
  const bool captured = capture != nullptr && !capture->ended.load();
  if (captured) capture->broken.store(true);
  if (Captures::Get().BreakIn(context) || captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (event->recorded.load(std::memory_order_relaxed) == 0 && !event->interprocess()) {
    return CUDA_SUCCESS;  // Never recorded: nothing to wait for.
  }
  HoldStreams(context, event->landings.Open());
  cuda::HoldContext message;
  message.context = context->id;
  message.event = event->id;
  guest::Session* const session = Client::Get().session();
  return FromWire(event->interprocess() ? session->SendAndWait(message) : session->Send(message));
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  if (const CUresult error = Check(event); error != CUDA_SUCCESS) return error;
  if (InCapture(event)) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->interprocess()) return QueryShared(event);
  guest::Session* session = Client::Get().session();
  const uint64_t record = event->recorded.load(std::memory_order_relaxed);
  if (event->finished.load(std::memory_order_acquire) < record) {
    session->Flush();
    session->Poll();
  }
  if (event->finished.load(std::memory_order_acquire) < record) {
    if (event->watched.load(std::memory_order_relaxed) == record) return CUDA_ERROR_NOT_READY;
    cuda::WatchEvent message;
    message.event = event->id;
    message.ticket = record;
    event->watched.store(record, std::memory_order_relaxed);
    if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) return error;
    Finish(event, record);
  }
  if (!AllLanded(event->landings.Open())) return CUDA_ERROR_NOT_READY;
  return Concluded(event);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  if (const CUresult error = Check(event); error != CUDA_SUCCESS) return error;
  if (InCapture(event)) return CUDA_ERROR_CAPTURED_EVENT;
  const uint64_t record = event->recorded.load(std::memory_order_relaxed);
  const Landings landings = event->landings.Open();
  if (event->finished.load(std::memory_order_acquire) < record || event->interprocess()) {
    cuda::SynchronizeEvent message;
    message.event = event->id;
    if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    Finish(event, record);
  }
  if (const CUresult error = AwaitLandings(landings); error != CUDA_SUCCESS) return error;
  return Concluded(event);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = Check(start); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Check(end); error != CUDA_SUCCESS) return error;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (start->recorded.load() == 0 || end->recorded.load() == 0) return CUDA_ERROR_INVALID_HANDLE;
  cuda::GetElapsed message;
  message.start = start->id;
  message.end = end->id;
  Answer<cuda::Elapsed> answer;
  const CUresult error = answer.Ask(Client::Get().session(), message);
  if (error == CUDA_SUCCESS) std::memcpy(milliseconds, &answer->milliseconds, sizeof(*milliseconds));
  return error;
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
