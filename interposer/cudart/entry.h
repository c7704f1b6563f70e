// SPDX-License-Identifier: Apache-2.0
// How every entry point begins and ends: the driver is there, the thread has a context, and what goes wrong becomes the
// thread's last error.
#ifndef HAWSER_INTERPOSER_CUDART_ENTRY_H_
#define HAWSER_INTERPOSER_CUDART_ENTRY_H_

#include <utility>

#include "interposer/cudart/api.h"
#include "interposer/cudart/runtime.h"

namespace hawser::cudart {

inline cudaError_t Record(cudaError_t error) {
  if (error == cudaSuccess) [[likely]] {
    return error;
  }
  ThreadState& thread = CurrentThread();
  return thread.last_error.Record(error, thread.bound_epoch);
}

/// Runs `body(driver)` with a context current; it returns a CUresult or a cudaError_t.
template <typename Body>
cudaError_t InContext(Body&& body) {
  Runtime& runtime = Runtime::Get();
  cudaError_t error = runtime.Bind(CurrentThread());
  if (error == cudaSuccess) [[likely]] {
    error = FromDriver(std::forward<Body>(body)(runtime.driver()));
  }
  return Record(error);
}

/// Runs `body(driver)` with the driver open, whatever context is current: for calls that no context takes part in.
template <typename Body>
cudaError_t WithDriver(Body&& body) {
  Runtime& runtime = Runtime::Get();
  cudaError_t error = runtime.Start();
  if (error == cudaSuccess) [[likely]] {
    error = FromDriver(std::forward<Body>(body)(runtime.driver()));
  }
  return Record(error);
}

/// Runs `body(device)` for a device by number.
template <typename Body>
cudaError_t WithDevice(int ordinal, Body&& body) {
  Runtime& runtime = Runtime::Get();
  cudaError_t error = runtime.Start();
  if (error == cudaSuccess) {
    Device* device = runtime.device(ordinal);
    error = device == nullptr ? cudaErrorInvalidDevice : FromDriver(std::forward<Body>(body)(*device));
  }
  return Record(error);
}

/// The stream that an argument means: 0 is the legacy stream, or the thread's own in the _ptsz and _ptds flavours.
inline CUstream Resolve(cudaStream_t stream) {
  return stream == nullptr && CurrentThread().per_thread_default ? CU_STREAM_PER_THREAD : stream;
}
inline bool PerThreadDefault() { return CurrentThread().per_thread_default; }

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

/// Driver and runtime have the same opaque arrays under different names.
inline CUarray Array(cudaArray_const_t array) { return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)); }
inline CUmipmappedArray Mipmap(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array));
}

/// The CUfunction that the driver takes for a kernel of the program: a kernel handle, which it accepts everywhere.
/// `host` is a registered host stub, or a cudaKernel_t.
cudaError_t ResolveFunction(const void* host, CUfunction* function);
cudaError_t ResolveKernel(const void* host, CUkernel* kernel);
/// Where a registered variable is in the current context.
cudaError_t ResolveSymbol(const void* symbol, CUdeviceptr* address, size_t* size);

/// Logs once for each name that a call is not supported.
cudaError_t NotSupported(const char* name);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_ENTRY_H_
