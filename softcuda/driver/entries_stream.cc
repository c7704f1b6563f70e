// SPDX-License-Identifier: Apache-2.0
// Entry points: streams, events of streams and of whole contexts, host functions, operations on memory words.
#include <algorithm>
#include <chrono>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/node_params.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

constexpr int kGreatestPriority = -5;

int Clamped(int priority) { return priority > 0 ? 0 : std::max(priority, kGreatestPriority); }

CUresult MakeStream(CUstream* to, unsigned flags, int priority) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<Stream>(context, flags, Clamped(priority));
  context->AddStream(stream);
  *to = reinterpret_cast<CUstream>(GetDriver()->streams.Add(stream));
  return CUDA_SUCCESS;
}

/// Whether streams have it: others are launches' and nodes'.
bool HasAttribute(CUstreamAttrID attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return true;
    default:
      return false;
  }
}

CUresult FindEvent(CUevent handle, EventPtr* event) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *event = driver->events.Find(handle);
  return *event == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult FindContext(CUcontext handle, ContextPtr* context) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *context = driver->contexts.Find(handle);
  return *context == nullptr || (*context)->destroyed() ? CUDA_ERROR_INVALID_CONTEXT : (*context)->error();
}

/// What an event stands for now; a captured event stands for nothing that could be waited for.
CUresult Recorded(Event* event, OperationPtr* operation) {
  const std::lock_guard lock(event->mutex);
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  *operation = event->recorded;
  return CUDA_SUCCESS;
}

CUresult ErrorOf(const std::weak_ptr<Context>& owner) {
  const ContextPtr context = owner.lock();
  return context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : context->error();
}

CUresult Elapsed(float* milliseconds, CUevent start, CUevent end) {
  EventPtr from;
  EventPtr to;
  HAWSER_TRY(FindEvent(start, &from));
  HAWSER_TRY(FindEvent(end, &to));
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  OperationPtr first;
  OperationPtr second;
  HAWSER_TRY(Recorded(from.get(), &first));
  HAWSER_TRY(Recorded(to.get(), &second));
  if (first == nullptr || second == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Queue& queue = GetDriver()->queue;
  if (!queue.Done(first) || !queue.Done(second)) return CUDA_ERROR_NOT_READY;
  HAWSER_TRY(ErrorOf(from->context));
  *milliseconds = std::chrono::duration<float, std::milli>(queue.Finished(second) - queue.Finished(first)).count();
  return CUDA_SUCCESS;
}

CUresult MemoryOperations(CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  Work work;
  HAWSER_TRY(ToWork(CUDA_BATCH_MEM_OP_NODE_PARAMS{.ctx = nullptr, .count = count, .paramArray = operations, .flags = 0},
                    &work));
  return Enqueue(stream, std::move(work));
}

CUresult WaitValue(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                   unsigned flags) {
  if ((flags & ~static_cast<unsigned>(3 | CU_STREAM_WAIT_VALUE_FLUSH)) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = type;
  op.waitValue.address = address;
  op.waitValue.value64 = value;
  op.waitValue.flags = flags;
  return MemoryOperations(stream, 1, &op);
}

CUresult WriteValue(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                    unsigned flags) {
  if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = type;
  op.writeValue.address = address;
  op.writeValue.value64 = value;
  op.writeValue.flags = flags;
  return MemoryOperations(stream, 1, &op);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) { return MakeStream(stream, flags, 0); }

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return MakeStream(stream, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  // What it still has to do goes on, and whoever waits for the context waits for it.
  return driver->streams.Remove(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  return SynchronizeStream(stream);
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  return QueryStream(stream);
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* to) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  const ContextPtr context = stream->context.lock();
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *to = reinterpret_cast<CUcontext>(context->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  const ContextPtr context = stream->context.lock();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *device = context->device()->ordinal();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (value == nullptr || !HasAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const ContextPtr context = stream->context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(context->mutex);
  *value = stream->attributes[attribute];
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
  if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY && value->syncPolicy == 0) {
    value->syncPolicy = CU_SYNC_POLICY_AUTO;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (value == nullptr || !HasAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) stream->priority = Clamped(value->priority);
  const ContextPtr context = stream->context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(context->mutex);
  stream->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from) {
  StreamPtr target;
  StreamPtr source;
  HAWSER_TRY(GetStream(to, &target));
  HAWSER_TRY(GetStream(from, &source));
  const ContextPtr context = target->context.lock();
  if (context == nullptr || source->context.lock() != context) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  target->attributes = source->attributes;
  target->priority = source->priority.load();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Enqueue(stream, HostWork{function, data});
}

CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data, unsigned int flags) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Enqueue(stream, CallbackWork{function, handle, data});
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int flags) {
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (!known || allocation == nullptr || allocation->kind != MemoryKind::kManaged) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;  // Host and device see the same bytes at all times.
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return WaitValue(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return WaitValue(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return WriteValue(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return WriteValue(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                                       unsigned int flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : MemoryOperations(stream, count, operations);
}

CUresult CUDAAPI cuEventCreate(CUevent* to, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  if (to == nullptr || (flags & ~kKnown) != 0 || (shared && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto event = std::make_shared<Event>();
  event->context = context;
  event->flags = flags;
  if (shared && !SharedFile::Possible()) return CUDA_ERROR_NOT_SUPPORTED;
  if (shared && (event->shared = SharedEvent::Create()) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *to = reinterpret_cast<CUevent>(GetDriver()->events.Add(event));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return driver->events.Remove(event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

CUresult CUDAAPI cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
  EventPtr event;
  HAWSER_TRY(FindEvent(handle, &event));
  StreamPtr stream;
  HAWSER_TRY(GetStream(stream_handle, &stream));
  if (flags != CU_EVENT_RECORD_DEFAULT && flags != CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (event->context.lock() != stream->context.lock()) return CUDA_ERROR_INVALID_HANDLE;
  return RecordEvent(stream, event, flags);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
  EventPtr event;
  StreamPtr stream;
  HAWSER_TRY(GetStream(stream_handle, &stream));
  HAWSER_TRY(FindEvent(handle, &event));
  if (flags != CU_EVENT_WAIT_DEFAULT && flags != CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  return WaitEvent(stream, event, flags);
}

CUresult CUDAAPI cuCtxRecordEvent(CUcontext handle, CUevent event_handle) {
  ContextPtr context;
  EventPtr event;
  HAWSER_TRY(FindContext(handle, &context));
  HAWSER_TRY(FindEvent(event_handle, &event));
  if (event->context.lock() != context) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(context->mutex);
  if (InvalidateIn(context)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  SubmitRecord(event.get(), context->AllTails());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext handle, CUevent event_handle) {
  ContextPtr context;
  EventPtr event;
  HAWSER_TRY(FindContext(handle, &context));
  HAWSER_TRY(FindEvent(event_handle, &event));
  const std::lock_guard lock(context->mutex);
  bool recorded = false;
  bool captured = false;
  {
    const std::lock_guard event_lock(event->mutex);
    recorded = event->recorded != nullptr || (event->shared != nullptr && event->shared->last() != 0);
    captured = event->capture != nullptr;
    if (captured) event->capture->invalidated = true;
  }
  if (InvalidateIn(context) || captured) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (recorded) context->held = SubmitWait(event, context, {context->held});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  EventPtr event;
  HAWSER_TRY(FindEvent(handle, &event));
  const CUresult done = QueryEvent(event.get());
  if (done != CUDA_SUCCESS && done != CUDA_ERROR_NOT_READY) return done;
  HAWSER_TRY(ErrorOf(event->context));
  return done;
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  EventPtr event;
  HAWSER_TRY(FindEvent(handle, &event));
  HAWSER_TRY(SynchronizeEvent(event.get()));
  const ContextPtr context = event->context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  context->print.Flush();
  return context->error();
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return Elapsed(milliseconds, start, end);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return Elapsed(milliseconds, start, end);
}

}  // extern "C"
