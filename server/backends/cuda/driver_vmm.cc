// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/driver_vmm.h"

#include <bit>
#include <vector>

namespace hawser::server::cuda_backend {

namespace {

constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// Whether memory that is made with these properties can be given to other processes.
bool CanShare(const DriverTable& driver, CUmemAllocationProp properties) {
  int said = 0;
  size_t least = 0;
  properties.requestedHandleTypes = kFile;
  if (driver.cuMemExportToShareableHandle == nullptr || driver.cuMemImportFromShareableHandle == nullptr ||
      driver.cuDeviceGetAttribute(&said, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                                  properties.location.id) != CUDA_SUCCESS ||
      said == 0 ||
      driver.cuMemGetAllocationGranularity(&least, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) {
    return false;
  }
  // All memory will be made so: it is tried first. A device that is full says nothing against it.
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = driver.cuMemCreate(&handle, least, &properties, 0);
  if (result == CUDA_SUCCESS) (void)driver.cuMemRelease(handle);
  return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

std::unique_ptr<DriverVmm> DriverVmm::Create(const DriverTable* driver, CUdevice device, std::string* why) {
  if (driver->cuMemAddressReserve == nullptr || driver->cuMemAddressFree == nullptr || driver->cuMemCreate == nullptr ||
      driver->cuMemRelease == nullptr || driver->cuMemMap == nullptr || driver->cuMemUnmap == nullptr ||
      driver->cuMemSetAccess == nullptr || driver->cuMemGetAllocationGranularity == nullptr) {
    *why = "the driver has no virtual memory management";
    return nullptr;
  }
  int supported = 0;
  CUresult result =
      driver->cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
  if (result != CUDA_SUCCESS || supported == 0) {
    *why = "the device has no virtual memory management";
    return nullptr;
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  if (CanShare(*driver, properties)) properties.requestedHandleTypes = kFile;
  size_t granularity = 0;
  result = driver->cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (result != CUDA_SUCCESS || !std::has_single_bit(granularity)) {
    *why = "the device tells no size for chunks: " + ErrorText(*driver, result);
    return nullptr;
  }
  return std::unique_ptr<DriverVmm>(new DriverVmm(driver, properties, granularity));
}

int32_t DriverVmm::Reserve(uint64_t size, uint64_t* address) {
  CUdeviceptr reserved = 0;
  const CUresult result = driver_->cuMemAddressReserve(&reserved, size, granularity_, 0, 0);
  *address = reserved;
  return result;
}

int32_t DriverVmm::Create(uint64_t size, Handle* handle) {
  CUmemGenericAllocationHandle native = 0;
  const CUresult result = driver_->cuMemCreate(&native, size, &properties_, 0);
  *handle = native;
  return result;
}

CUresult DriverVmm::Export(Handle handle, wire::Fd* file) {
  int descriptor = -1;
  const CUresult result = driver_->cuMemExportToShareableHandle(&descriptor, handle, kFile, 0);
  if (result == CUDA_SUCCESS) file->Reset(descriptor);
  return result;
}

CUresult DriverVmm::Import(const wire::Fd& file, Handle* handle) {
  CUmemGenericAllocationHandle native = 0;
  void* const descriptor =
      reinterpret_cast<void*>(static_cast<intptr_t>(file.get()));  // NOLINT(performance-no-int-to-ptr): its type.
  const CUresult result = driver_->cuMemImportFromShareableHandle(&native, descriptor, kFile);
  *handle = native;
  return result;
}

int32_t DriverVmm::SetAccess(uint64_t address, uint64_t size, std::span<const int> devices) {
  std::vector<CUmemAccessDesc> list(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    list[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    list[i].location.id = devices[i];
    list[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return driver_->cuMemSetAccess(address, size, list.data(), list.size());
}

}  // namespace hawser::server::cuda_backend
