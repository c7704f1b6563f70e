// SPDX-License-Identifier: Apache-2.0
// Entry points: external memory.
#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

extern "C" {

CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory* to, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || description == nullptr || (description->flags & ~CUDA_EXTERNAL_MEMORY_DEDICATED) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
  HAWSER_TRY(ExternalMemory::Check(description->handle.fd, description->size));
  auto memory = std::make_shared<ExternalMemory>();
  memory->context = context->handle;
  memory->size = description->size;
  memory->file = description->handle.fd;  // The driver's from now on.
  *to = reinterpret_cast<CUexternalMemory>(GetDriver()->external_memory.Add(memory));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory handle,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (address == nullptr || description == nullptr || description->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckUnsafe());
  Driver* const driver = GetDriver();
  const std::shared_ptr<ExternalMemory> memory = driver->external_memory.Find(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FileWindow window;
  HAWSER_TRY(memory->Window(description->offset, description->size, &window));
  AllocationPtr allocation;
  HAWSER_TRY(driver->Allocate(context->device(), description->size, 0, MemoryKind::kDevice, context->handle,
                              &allocation, window));
  *address = allocation->begin;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  // What was mapped keeps its bytes until it is freed.
  return driver->external_memory.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // extern "C"
