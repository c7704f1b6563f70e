// SPDX-License-Identifier: Apache-2.0
// Entry points: virtual memory management.
#include <climits>
#include <cstring>

#include "softcuda/driver/entry.h"
#include "softcuda/driver/virtual_memory.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

CUresult CheckProperties(const CUmemAllocationProp* properties, Device** device) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  constexpr unsigned kKnown = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((static_cast<unsigned>(properties->requestedHandleTypes) & ~kKnown) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return GetDevice(properties->location.id, device);
}

/// What runs may still use what is about to be taken away.
void DrainCurrent() {
  ContextPtr context;
  if (CurrentContext(&context) == CUDA_SUCCESS) context->Drain();
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  Device* device = nullptr;
  HAWSER_TRY(CheckProperties(properties, &device));
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = VirtualMemory::kGranularity;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint,
                                     unsigned long long flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t taken = 0;
  HAWSER_TRY(driver->virtual_memory.Reserve(size, alignment, hint, &taken));
  *address = taken;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return driver->virtual_memory.Free(address, size);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                             unsigned long long flags) {
  Device* device = nullptr;
  HAWSER_TRY(CheckProperties(properties, &device));
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  HAWSER_TRY(GetDriver()->virtual_memory.Create(device, size, *properties, &made));
  *handle = made;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return driver->virtual_memory.Release(handle);
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return driver->virtual_memory.Map(address, size, offset, handle);
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  DrainCurrent();
  return driver->virtual_memory.Unmap(address, size);
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* descriptions, size_t count) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  // All devices see one memory: the widest access counts.
  CUmemAccess_flags widest = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc& wish = descriptions[i];
    const bool known = wish.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || wish.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                       wish.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known || wish.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    HAWSER_TRY(GetDevice(wish.location.id, &device));
    if (wish.flags > widest) widest = wish.flags;
  }
  return driver->virtual_memory.SetAccess(address, size, widest);
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  HAWSER_TRY(driver->virtual_memory.GetAccess(address, &found));
  *flags = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t found = 0;
  HAWSER_TRY(driver->virtual_memory.Retain(reinterpret_cast<uint64_t>(address), &found));
  *handle = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return driver->virtual_memory.Properties(handle, properties);
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* to, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type, unsigned long long flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (to == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  int descriptor = -1;
  HAWSER_TRY(driver->virtual_memory.Export(handle, &descriptor));
  std::memcpy(to, &descriptor, sizeof(descriptor));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* from,
                                                CUmemAllocationHandleType type) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  // The descriptor itself, in place of a pointer.
  const auto value = reinterpret_cast<uintptr_t>(from);
  if (value > INT_MAX) return CUDA_ERROR_INVALID_VALUE;
  uint64_t found = 0;
  HAWSER_TRY(driver->virtual_memory.Import(static_cast<int>(value), &found));
  *handle = found;
  return CUDA_SUCCESS;
}

}  // extern "C"
