// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/backend_cuda/fake_vmm.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>

namespace hawser::server::cuda_backend {
namespace {

FakeVmm* g_vmm = nullptr;

void* Pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): device addresses are this process's.
}

}  // namespace

struct FakeVmmCalls {
  static CUresult Attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
      *value = 1;
      return CUDA_SUCCESS;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) {
      *value = g_vmm->promises_ ? 1 : 0;
      return CUDA_SUCCESS;
    }
    return g_vmm->attributes_(value, attribute, device);
  }
  static CUresult Granularity(size_t* granularity, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
    *granularity = FakeVmm::kGranularity;
    return CUDA_SUCCESS;
  }
  static CUresult Reserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr, unsigned long long) {
    const std::lock_guard lock(g_vmm->mutex_);
    void* base = ::mmap(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (reinterpret_cast<uint64_t>(base) + alignment - 1) / alignment * alignment;
    g_vmm->reserved_[*address] = size;
    return CUDA_SUCCESS;
  }
  static CUresult Free(CUdeviceptr address, size_t size) {
    const std::lock_guard lock(g_vmm->mutex_);
    const auto mapped = g_vmm->mapped_.lower_bound(address);
    Require(g_vmm->reserved_[address] == size, "addresses are given back as they were taken");
    Require(mapped == g_vmm->mapped_.end() || mapped->first >= address + size, "and when nothing is mapped there");
    g_vmm->reserved_.erase(address);
    ::munmap(Pointer(address), size);
    return CUDA_SUCCESS;
  }
  static CUresult Create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                         unsigned long long) {
    const std::lock_guard lock(g_vmm->mutex_);
    if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && !g_vmm->keeps_) return CUDA_ERROR_NOT_SUPPORTED;
    if (size > g_vmm->memory_ - g_vmm->used_) return CUDA_ERROR_OUT_OF_MEMORY;
    g_vmm->used_ += size;
    *handle = ++g_vmm->last_;
    g_vmm->handles_[*handle] = size;
    return CUDA_SUCCESS;
  }
  static CUresult Release(CUmemGenericAllocationHandle handle) {
    const std::lock_guard lock(g_vmm->mutex_);
    Require(g_vmm->handles_.count(handle) != 0, "what is released exists");
    g_vmm->used_ -= g_vmm->handles_[handle];
    g_vmm->handles_.erase(handle);
    return CUDA_SUCCESS;
  }
  static CUresult Map(CUdeviceptr address, size_t size, size_t, CUmemGenericAllocationHandle handle,
                      unsigned long long) {
    const std::lock_guard lock(g_vmm->mutex_);
    if (g_vmm->handles_[handle] < size) return CUDA_ERROR_INVALID_VALUE;
    Require(g_vmm->handles_[handle] == size && g_vmm->mapped_.count(address) == 0, "a whole handle, where nothing is");
    g_vmm->mapped_[address] = size;
    return CUDA_SUCCESS;
  }
  static CUresult Unmap(CUdeviceptr address, size_t size) {
    const std::lock_guard lock(g_vmm->mutex_);
    Require(g_vmm->mapped_[address] == size, "unmapped as it was mapped");
    g_vmm->mapped_.erase(address);
    ::mmap(Pointer(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_SUCCESS;
  }
  static CUresult SetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc*, size_t) {
    return ::mprotect(Pointer(address), size, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Export(void* to, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType, unsigned long long) {
    const std::lock_guard lock(g_vmm->mutex_);
    Require(g_vmm->handles_.count(handle) != 0, "what is exported exists");
    const int descriptor = ::memfd_create("chunk", MFD_CLOEXEC);
    g_vmm->exported_[Number(descriptor)] = g_vmm->handles_[handle];
    *static_cast<int*>(to) = descriptor;
    return CUDA_SUCCESS;
  }
  static CUresult Import(CUmemGenericAllocationHandle* handle, void* from, CUmemAllocationHandleType) {
    const std::lock_guard lock(g_vmm->mutex_);
    const auto found = g_vmm->exported_.find(Number(static_cast<int>(reinterpret_cast<intptr_t>(from))));
    if (found == g_vmm->exported_.end()) return CUDA_ERROR_INVALID_VALUE;
    g_vmm->used_ += found->second;  // Counted for each who has it.
    *handle = ++g_vmm->last_;
    g_vmm->handles_[*handle] = found->second;
    return CUDA_SUCCESS;
  }
  static uint64_t Number(int descriptor) {
    struct stat found {};
    return ::fstat(descriptor, &found) == 0 ? found.st_ino : 0;
  }
  static void Require(bool condition, const char* rule) {
    if (condition) return;
    std::fprintf(stderr, "the backend broke a rule of the driver: %s\n", rule);
    std::abort();
  }
};

FakeVmm::FakeVmm(uint64_t memory) : memory_(memory) { g_vmm = this; }

FakeVmm::~FakeVmm() {
  FakeVmmCalls::Require(handles_.empty() && mapped_.empty() && reserved_.empty(), "nothing is left at the end");
  g_vmm = nullptr;
}

void FakeVmm::AddTo(DriverTable* table) {
  attributes_ = table->cuDeviceGetAttribute;
  table->cuDeviceGetAttribute = FakeVmmCalls::Attribute;
  table->cuMemGetAllocationGranularity = FakeVmmCalls::Granularity;
  table->cuMemAddressReserve = FakeVmmCalls::Reserve;
  table->cuMemAddressFree = FakeVmmCalls::Free;
  table->cuMemCreate = FakeVmmCalls::Create;
  table->cuMemRelease = FakeVmmCalls::Release;
  table->cuMemMap = FakeVmmCalls::Map;
  table->cuMemUnmap = FakeVmmCalls::Unmap;
  table->cuMemSetAccess = FakeVmmCalls::SetAccess;
  table->cuMemExportToShareableHandle = FakeVmmCalls::Export;
  table->cuMemImportFromShareableHandle = FakeVmmCalls::Import;
}

uint64_t FakeVmm::created() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

size_t FakeVmm::mappings() const {
  const std::lock_guard lock(mutex_);
  return mapped_.size();
}

}  // namespace hawser::server::cuda_backend
