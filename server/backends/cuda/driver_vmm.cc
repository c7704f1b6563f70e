// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/driver_vmm.h"

#include <bit>
#include <vector>

namespace hawser::server::cuda_backend {

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
