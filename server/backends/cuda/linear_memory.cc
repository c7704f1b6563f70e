// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/linear_memory.h"

#include <algorithm>
#include <utility>

namespace hawser::server::cuda_backend {
namespace {

/// Addresses for so many times what the device has: then there is room between what was freed.
constexpr uint64_t kAddresses = 4;
/// Rows begin at multiples of this, as those of NVIDIA's driver do.
constexpr uint64_t kPitch = 512;

}  // namespace

bool LinearMemory::Prepare(const std::vector<CUdevice>& devices, std::string* why) {
  std::map<CUdevice, Device> prepared;
  for (const CUdevice id : devices) {
    Device device;
    device.vmm = DriverVmm::Create(driver_, id, why);
    if (device.vmm == nullptr) return false;
    size_t memory = 0;
    (void)driver_->cuDeviceTotalMem(&memory, id);
    device.memory = std::make_unique<memmgr::ChunkedMemory>(device.vmm.get(), id);
    if (const int32_t status = device.memory->Reserve(kAddresses * memory); status != 0) {
      *why = "no addresses could be reserved: " + ErrorText(*driver_, static_cast<CUresult>(status));
      return false;
    }
    prepared.emplace(id, std::move(device));
  }
  devices_ = std::move(prepared);
  return true;
}

uint64_t LinearMemory::Footprint(CUdevice device, uint64_t size) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? size : found->second.memory->Footprint(size);
}

CUresult LinearMemory::Allocate(CUdevice device, uint64_t size, CUdeviceptr* address) {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return driver_->cuMemAlloc(address, size);
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t begin = 0;
  const int32_t status = found->second.memory->Allocate(size, &begin);
  *address = begin;
  return static_cast<CUresult>(status);
}

CUresult LinearMemory::RowPitch(size_t width, size_t height, unsigned element, size_t* pitch) {
  if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  if (width > UINT64_MAX - kPitch) return CUDA_ERROR_OUT_OF_MEMORY;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return CUDA_SUCCESS;
}

CUresult LinearMemory::AllocatePitch(CUdevice device, size_t width, size_t height, unsigned element,
                                     CUdeviceptr* address, size_t* pitch, uint64_t* size) {
  const bool driver = devices_.find(device) == devices_.end();
  if (driver) {
    if (driver_->cuMemAllocPitch == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const CUresult result = driver_->cuMemAllocPitch(address, pitch, width, height, element);
    if (result != CUDA_SUCCESS) return result;
  } else if (const CUresult result = RowPitch(width, height, element, pitch); result != CUDA_SUCCESS) {
    return result;
  }
  if (__builtin_mul_overflow(*pitch, height, size)) *size = UINT64_MAX;
  return driver ? CUDA_SUCCESS : Allocate(device, *size, address);
}

memmgr::ChunkedMemory* LinearMemory::At(uint64_t address) const {
  for (const auto& [id, device] : devices_) {
    if (address >= device.memory->begin() && address < device.memory->end()) return device.memory.get();
  }
  return nullptr;
}

bool LinearMemory::InChunks(uint64_t address) const { return At(address) != nullptr; }

CUresult LinearMemory::Free(uint64_t address) {
  memmgr::ChunkedMemory* const memory = At(address);
  if (memory == nullptr) return driver_->cuMemFree(address);
  return memory->Free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult LinearMemory::GiveAccess(CUdevice owner, CUdevice user) {
  const auto found = devices_.find(owner);
  return found == devices_.end() ? CUDA_SUCCESS : static_cast<CUresult>(found->second.memory->GiveAccess(user));
}

std::vector<LinearMemory::Range> LinearMemory::Ranges() const {
  std::vector<Range> ranges;
  for (const auto& [id, device] : devices_) ranges.push_back({device.memory->begin(), device.memory->end()});
  return ranges;
}

}  // namespace hawser::server::cuda_backend
