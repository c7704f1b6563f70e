// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/entry.h"

#include <string>

#include "proto/cuda_api/unsupported.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {

CUresult GetReady(Driver** driver) {
  *driver = GetDriver();
  return *driver == nullptr ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult CurrentContext(ContextPtr* context) {
  if (GetDriver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const ThreadState& thread = ThisThread();
  if (thread.contexts.empty() || thread.contexts.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = thread.contexts.back();
  return (*context)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult WorkingContext(ContextPtr* context) {
  HAWSER_TRY(CurrentContext(context));
  return (*context)->error();
}

CUresult GetDevice(CUdevice number, Device** device) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *device = driver->FindDevice(number);
  return *device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult GetStream(CUstream handle, StreamPtr* stream) {
  const bool own = handle == CU_STREAM_PER_THREAD || (handle == nullptr && ThisThread().per_thread_depth > 0);
  if (own || handle == nullptr || handle == CU_STREAM_LEGACY) {
    ContextPtr context;
    HAWSER_TRY(CurrentContext(&context));
    *stream = own ? context->thread_stream() : context->legacy_stream();
    return CUDA_SUCCESS;
  }
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *stream = driver->streams.Find(handle);
  return *stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

void DrainAll() {
  for (const auto& device : GetDriver()->devices) {
    ContextPtr primary;
    {
      const std::lock_guard lock(device->primary_mutex);
      primary = device->primary;
    }
    if (primary != nullptr) primary->Drain();
  }
  for (const ContextPtr& context : ThisThread().contexts) context->Drain();
}

}  // namespace hawser::soft

namespace hawser::cuda_api {

CUresult Unsupported(const char* symbol, std::atomic_flag* said) {
  if (!said->test_and_set())
    soft::Log(std::string(symbol) + " is not implemented; it returns CUDA_ERROR_NOT_SUPPORTED");
  return CUDA_ERROR_NOT_SUPPORTED;
}

PerThreadDefaultStream::PerThreadDefaultStream() { ++soft::ThisThread().per_thread_depth; }
PerThreadDefaultStream::~PerThreadDefaultStream() { --soft::ThisThread().per_thread_depth; }

}  // namespace hawser::cuda_api
