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

bool LinearMemory::shareable() const {
  return chunked() &&
         std::all_of(devices_.begin(), devices_.end(), [](const auto& each) { return each.second.vmm->shareable(); });
}

const LinearMemory::Device* LinearMemory::DeviceAt(uint64_t address) const {
  for (const auto& [id, device] : devices_) {
    if (address >= device.memory->begin() && address < device.memory->end()) return &device;
  }
  return nullptr;
}

memmgr::ChunkedMemory* LinearMemory::At(uint64_t address) const {
  const Device* const device = DeviceAt(address);
  return device != nullptr ? device->memory.get() : nullptr;
}

CUresult LinearMemory::Share(uint64_t address, uint64_t size, SharedChunks* chunks, std::vector<wire::Fd>* files) {
  const Device* const device = DeviceAt(address);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<memmgr::ChunkedMemory::Chunk> found = device->memory->Share(address, size);
  if (found.empty()) return CUDA_ERROR_INVALID_VALUE;
  SharedChunks described;
  described.step = found.front().size;
  described.offset = address - found.front().address;
  std::vector<wire::Fd> exported(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    described.total += found[i].size;
    if (const CUresult result = device->vmm->Export(found[i].handle, &exported[i]); result != CUDA_SUCCESS) {
      return result;
    }
  }
  *chunks = described;
  *files = std::move(exported);
  return CUDA_SUCCESS;
}

CUresult LinearMemory::Open(CUdevice device, const SharedChunks& chunks, const std::vector<wire::Fd>& files,
                            uint64_t size, uint64_t* address) {
  const auto found = devices_.find(device);
  if (found == devices_.end() || !chunks.Sensible(size, files.size(), found->second.vmm->granularity())) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  DriverVmm& vmm = *found->second.vmm;
  std::vector<memmgr::ChunkedMemory::Chunk> taken(files.size());
  CUresult result = CUDA_SUCCESS;
  size_t done = 0;
  for (; done < files.size() && result == CUDA_SUCCESS; ++done) {
    taken[done].size = chunks.SizeOf(done);
    result = vmm.Import(files[done], &taken[done].handle);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) {
    result = static_cast<CUresult>(found->second.memory->TakeIn(taken, chunks.offset, address));
  }
  if (result != CUDA_SUCCESS) {
    for (size_t i = 0; i < done; ++i) vmm.Release(taken[i].handle);
  }
  return result;
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
