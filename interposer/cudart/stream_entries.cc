// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Stream Management" and "Event Management".
#include <memory>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/versioned.h"

namespace hawser::cudart {
namespace {

// What CUDA 12.3 calls a graph's edges is the same in both interfaces.
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(int{cudaStreamCaptureModeRelaxed} == int{CU_STREAM_CAPTURE_MODE_RELAXED});
static_assert(int{cudaStreamCaptureStatusInvalidated} == int{CU_STREAM_CAPTURE_STATUS_INVALIDATED});

// A callback with the runtime's idea of an error. Deletes itself: the driver calls it exactly once.
struct Callback {
  cudaStreamCallback_t function;
  void* user_data;

  static void Call(CUstream stream, CUresult result, void* data) {
    const std::unique_ptr<Callback> self(static_cast<Callback*>(data));
    self->function(stream, FromDriver(result), self->user_data);
  }
};

}  // namespace

cudaError_t StreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                 cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                 const cudaGraphEdgeData** edges, size_t* count) {
  return InContext([&](const Driver& driver) {
    if (status == nullptr) return cudaErrorInvalidValue;
    auto answer = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    const CUresult result =
        driver.cuStreamGetCaptureInfo(Resolve(stream), &answer, id == nullptr ? nullptr : &number, graph, dependencies,
                                      reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    if (result != CUDA_SUCCESS) return FromDriver(result);
    *status = static_cast<cudaStreamCaptureStatus>(answer);
    if (id != nullptr) *id = number;
    return cudaSuccess;
  });
}

cudaError_t StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                            const cudaGraphEdgeData* edges, size_t count, unsigned flags) {
  return InContext([&](const Driver& driver) {
    return driver.cuStreamUpdateCaptureDependencies(Resolve(stream), dependencies,
                                                    reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
  });
}

}  // namespace hawser::cudart

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (stream == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuStreamCreate(stream, flags);
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return InContext([&](const Driver& driver) {
    if (stream == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuStreamCreateWithPriority(stream, flags, priority);
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    // The three default streams are nobody's to destroy.
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    return driver.cuStreamDestroy(stream);
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return InContext([&](const Driver& driver) {
    return priority == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuStreamGetPriority(Resolve(stream), priority);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return InContext([&](const Driver& driver) {
    return flags == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuStreamGetFlags(Resolve(stream), flags);
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return InContext([&](const Driver& driver) {
    return id == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuStreamGetId(Resolve(stream), id);
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* ordinal) {
  return InContext([&](const Driver& driver) {
    if (ordinal == nullptr) return cudaErrorInvalidValue;
    CUdevice handle = 0;
    if (const CUresult result = driver.cuStreamGetDevice(Resolve(stream), &handle); result != CUDA_SUCCESS) {
      return FromDriver(result);
    }
    Runtime& runtime = Runtime::Get();
    for (int candidate = 0; candidate < runtime.device_count(); ++candidate) {
      if (runtime.device(candidate)->handle() != handle) continue;
      *ordinal = candidate;
      return cudaSuccess;
    }
    return cudaErrorInvalidDevice;
  });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t destination, cudaStream_t source) {
  return InContext(
      [&](const Driver& driver) { return driver.cuStreamCopyAttributes(Resolve(destination), Resolve(source)); });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return InContext([&](const Driver& driver) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuStreamGetAttribute(Resolve(stream), static_cast<CUstreamAttrID>(attribute),
                                       reinterpret_cast<CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return InContext([&](const Driver& driver) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuStreamSetAttribute(Resolve(stream), static_cast<CUstreamAttrID>(attribute),
                                       reinterpret_cast<const CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return InContext([&](const Driver& driver) { return driver.cuStreamWaitEvent(Resolve(stream), event, flags); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* user_data, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    auto callback = std::make_unique<Callback>(Callback{function, user_data});
    const CUresult result = driver.cuStreamAddCallback(Resolve(stream), &Callback::Call, callback.get(), 0);
    if (result == CUDA_SUCCESS) (void)callback.release();  // Callback::Call() owns it.
    return result;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return InContext([&](const Driver& driver) { return driver.cuStreamSynchronize(Resolve(stream)); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return InContext([&](const Driver& driver) { return driver.cuStreamQuery(Resolve(stream)); });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned flags) {
  return InContext([&](const Driver& driver) {
    return driver.cuStreamAttachMemAsync(Resolve(stream), Address(pointer), length, flags);
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return InContext([&](const Driver& driver) {
    return driver.cuStreamBeginCapture(Resolve(stream), static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
  return InContext([&](const Driver& driver) {
    return driver.cuStreamBeginCaptureToGraph(Resolve(stream), graph, dependencies,
                                              reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                              static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return InContext([&](const Driver& driver) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = driver.cuThreadExchangeStreamCaptureMode(&exchanged);
    if (result == CUDA_SUCCESS) *mode = static_cast<cudaStreamCaptureMode>(exchanged);
    return result;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  // No graph: of a capture into one that the program has already. The driver knows which.
  return InContext([&](const Driver& driver) { return driver.cuStreamEndCapture(Resolve(stream), graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return InContext([&](const Driver& driver) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto answer = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver.cuStreamIsCapturing(Resolve(stream), &answer);
    if (result == CUDA_SUCCESS) *status = static_cast<cudaStreamCaptureStatus>(answer);
    return result;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return InContext([&](const Driver& driver) {
    constexpr unsigned kFlags = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (event == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    // Events that other processes see cannot carry times.
    const bool shared_with_timing = (flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0;
    return shared_with_timing ? CUDA_ERROR_INVALID_VALUE : driver.cuEventCreate(event, flags);
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return InContext([&](const Driver& driver) { return driver.cuEventRecord(event, Resolve(stream)); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return InContext([&](const Driver& driver) { return driver.cuEventRecordWithFlags(event, Resolve(stream), flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuEventQuery(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuEventSynchronize(event); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return InContext([&](const Driver& driver) {
    return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : driver.cuEventDestroy(event);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return InContext([&](const Driver& driver) {
    return milliseconds == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuEventElapsedTime(milliseconds, start, end);
  });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
  return InContext([&](const Driver& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event);
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return InContext([&](const Driver& driver) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuIpcOpenEventHandle(event, reinterpret_cast<const CUipcEventHandle&>(handle));
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
  return InContext([&](const Driver& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Address(pointer));
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuIpcOpenMemHandle(&address, reinterpret_cast<const CUipcMemHandle&>(handle), flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return InContext([&](const Driver& driver) { return driver.cuIpcCloseMemHandle(Address(pointer)); });
}

}  // extern "C"
