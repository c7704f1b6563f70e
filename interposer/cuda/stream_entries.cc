// SPDX-License-Identifier: Apache-2.0
// cuStream*: what is not about captures.
#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/mirror.h"
#include "interposer/cuda/stream_values.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  if (stream == nullptr || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUctx_st* context = nullptr;
  const CUresult error = CurrentContext(&context);
  return error != CUDA_SUCCESS ? error : MakeStream(context, flags, priority, stream);
}

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (reinterpret_cast<uintptr_t>(stream) <= 2 || stream->kind != Kind::kStream) return CUDA_ERROR_INVALID_HANDLE;
  Captures::Get().Leave(stream);
  DestroyStream(stream);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Captures::CheckWait(command.stream()); error != CUDA_SUCCESS) return error;
  return SynchronizeStream(command.stream());
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  CUstream_st* stream = command.stream();
  if (const CUresult error = Captures::CheckWait(stream); error != CUDA_SUCCESS) return error;
  guest::Session* session = command.session();
  const uint64_t position = stream->submitted.load(std::memory_order_relaxed);
  const uint64_t mark = Mirrors::Get().Mark();
  const Landings landings = LandingsWithin(stream);
  // The legacy stream also waits for others: what is known of it alone says nothing.
  const bool alone = stream != stream->context->legacy;
  if (alone && stream->finished.load(std::memory_order_acquire) < position) {
    session->Flush();
    session->Poll();
  }
  if (!alone || stream->finished.load(std::memory_order_acquire) < position) {
    if (alone && stream->watched.load(std::memory_order_relaxed) == position) return CUDA_ERROR_NOT_READY;
    cuda::WatchStream message;
    message.context = stream->context->id;
    message.stream = stream->id;
    message.ticket = position;
    stream->watched.store(position, std::memory_order_relaxed);
    if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) return error;
    stream->finished.store(position, std::memory_order_release);
  }
  if (!AllLanded(landings)) return CUDA_ERROR_NOT_READY;
  if (const CUresult error = TakePending(stream->context); error != CUDA_SUCCESS) return error;
  return Mirrors::Get().AfterWait(mark, stream->context, stream);
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  *flags = command.stream()->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  *priority = command.stream()->priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  *id = command.stream()->number;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  *context = command.context();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(handle, context);
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  *device = command.context()->device;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  if ((flags & ~CU_EVENT_WAIT_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(event, Kind::kEvent); error != CUDA_SUCCESS) return error;
  std::shared_ptr<Capture> capture;
  {
    std::lock_guard lock(event->mutex);
    capture = event->capture;
  }
  // What is external becomes a node that waits for whatever the event stands for then.
  if ((flags & CU_EVENT_WAIT_EXTERNAL) == 0) {
    const bool never = event->recorded.load(std::memory_order_relaxed) == 0 && !event->interprocess();
    if (capture == nullptr && never) return CUDA_SUCCESS;  // Nothing to wait for.
    if (capture != nullptr || command.capturing()) {
      const CUresult error = Captures::Get().Wait(command.stream(), capture);
      if (error != CUDA_SUCCESS) return error;
    }
  }
  command.stream()->Follow(event->landings.Open());
  cuda::WaitEvent message;
  message.event = event->id;
  message.flags = flags;
  // The record that counts is the last one now, not one that another process makes before the server gets there.
  return event->interprocess() ? command.SendAndWait(message) : command.Send(message);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  const auto calls = command.capturing() ? HostFunctions::Calls::kOften : HostFunctions::Calls::kOnce;
  const CUresult error = HostFunctions::Get().Enqueue(
      command, [function, data](CUresult) { function(data); }, LandingsBefore(command.stream()), calls);
  command.session()->Flush();
  return error;
}

CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (command.capturing()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const CUresult error = HostFunctions::Get().Enqueue(
      command, [handle, callback, data](CUresult status) { callback(handle, status, data); },
      LandingsBefore(command.stream()), HostFunctions::Calls::kAlways);
  command.session()->Flush();
  return error;
}

namespace {

CUresult SendValue(CUstream handle, CUdeviceptr address, uint64_t value, unsigned flags, bool wait, bool wide) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  cuda::StreamValue operation;
  operation.address = address;
  operation.value = value;
  operation.wait = wait ? 1 : 0;
  operation.wide = wide ? 1 : 0;
  operation.flags = flags;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  cuda::EnqueueStreamValues message;
  message.values = wire::ListView<cuda::StreamValue>(std::span<const cuda::StreamValue>(&operation, 1));
  return command.Send(message);
}

}  // namespace

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/true, /*wide=*/false);
}
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/true, /*wide=*/true);
}
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/false, /*wide=*/false);
}
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/false, /*wide=*/true);
}
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/true, /*wide=*/false);
}
CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/true, /*wide=*/true);
}
CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/false, /*wide=*/false);
}
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return SendValue(stream, addr, value, flags, /*wait=*/false, /*wide=*/true);
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream handle, unsigned int count, CUstreamBatchMemOpParams* operations,
                                       unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<cuda::StreamValue> values;
  if (const CUresult error = ToWire(operations, count, &values); error != CUDA_SUCCESS) return error;
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (values.empty()) return CUDA_SUCCESS;
  if (const CUresult error = Mirrors::Get().BeforeCopy(command.stream()); error != CUDA_SUCCESS) return error;
  cuda::EnqueueStreamValues message;
  message.values = wire::ListView<cuda::StreamValue>(std::span<const cuda::StreamValue>(values));
  return command.Send(message);
}

CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                    unsigned int flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}
