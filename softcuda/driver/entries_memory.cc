// SPDX-License-Identifier: Apache-2.0
// Entry points: allocation of device, host and managed memory; what is known of an address.
#include <algorithm>
#include <cstring>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/pool.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

constexpr size_t kPitchAlignment = 512;

CUresult CheckDevice(const CUmemLocation& location) {
  Device* device = nullptr;
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? GetDevice(location.id, &device) : CUDA_SUCCESS;
}

/// Whether hints about the range are remembered: it is managed memory, and of one allocation.
bool TakesHints(const Allocation& allocation, CUdeviceptr address, size_t bytes) {
  return allocation.kind == MemoryKind::kManaged && bytes != 0 && bytes <= allocation.end() - address;
}

CUresult Allocate(CUdeviceptr* to, size_t bytes, MemoryKind kind, unsigned flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckUnsafe());
  AllocationPtr allocation;
  HAWSER_TRY(GetDriver()->Allocate(context->device(), bytes, 0, kind, context->handle, &allocation));
  allocation->flags = flags;
  *to = allocation->begin;
  return CUDA_SUCCESS;
}

CUresult AllocateHostMemory(void** to, size_t bytes, unsigned flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (to == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckUnsafe());
  AllocationPtr allocation;
  HAWSER_TRY(AllocateHost(bytes, flags, context->handle, &allocation));
  *to = reinterpret_cast<void*>(allocation->begin);
  return CUDA_SUCCESS;
}

AllocationPtr FindMemory(const void* address) { return GetDriver()->memory.Find(reinterpret_cast<uint64_t>(address)); }

/// Bytes of an attribute's value, and the value; CUDA_ERROR_INVALID_VALUE for what this memory has not.
CUresult PointerAttribute(const Allocation& a, CUdeviceptr address, CUpointer_attribute attribute, void* to) {
  const auto give = [to](auto value) {
    std::memcpy(to, &value, sizeof(value));
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give(a.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(static_cast<unsigned>(a.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!a.on_host() && a.kind != MemoryKind::kManaged) return CUDA_ERROR_INVALID_VALUE;
      return give(address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give(static_cast<unsigned>(a.sync_memops.load() ? 1 : 0));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give(static_cast<unsigned long long>(a.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(static_cast<unsigned>(a.kind == MemoryKind::kManaged ? 1 : 0));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(a.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give(static_cast<CUdeviceptr>(a.kind == MemoryKind::kMapped ? a.reservation : a.begin));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give(static_cast<size_t>(a.kind == MemoryKind::kMapped ? a.reserved : a.size));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give(static_cast<CUdeviceptr>(a.begin));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give(static_cast<size_t>(a.size));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give(static_cast<unsigned>(1));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give(static_cast<unsigned>(a.writable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                   : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give(a.kind == MemoryKind::kPool ? a.owner : uint64_t{0});
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give(static_cast<unsigned long long>(a.owner != 0 ? a.owner : a.id));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: {
      CUmemAllocationProp properties{};
      if (a.kind == MemoryKind::kMapped) (void)GetDriver()->virtual_memory.Properties(a.owner, &properties);
      return give(static_cast<unsigned long long>(properties.requestedHandleTypes));
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give(static_cast<unsigned>(a.kind == MemoryKind::kDevice && SharedFile::Possible() ? 1 : 0));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return give(static_cast<unsigned>(0));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// What cuPointerGetAttributes gives for an address that is not CUDA's.
void NoAttribute(CUpointer_attribute attribute, void* to) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      const int none = -2;
      std::memcpy(to, &none, sizeof(none));
      break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      std::memset(to, 0, sizeof(unsigned));
      break;
    default:
      std::memset(to, 0, sizeof(uint64_t));
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const Device& device = *context->device();
  if (free != nullptr) *free = device.capacity() - std::min(device.used(), device.capacity());
  if (total != nullptr) *total = device.capacity();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return Allocate(address, bytes, MemoryKind::kDevice, 0);
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                    unsigned int element) {
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  const size_t rounded = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  size_t bytes = 0;
  if (rounded < width || __builtin_mul_overflow(rounded, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(Allocate(address, bytes, MemoryKind::kDevice, 0));
  *pitch = rounded;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return Allocate(address, bytes, MemoryKind::kManaged, flags);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  HAWSER_TRY(CheckUnsafe());
  Driver* const driver = GetDriver();
  const AllocationPtr allocation = driver->memory.Find(address);
  const bool ours = allocation != nullptr && allocation->begin == address &&
                    (allocation->kind == MemoryKind::kDevice || allocation->kind == MemoryKind::kManaged ||
                     allocation->kind == MemoryKind::kPool);
  if (!ours || (allocation->graph && !allocation->unfreed.exchange(false))) return CUDA_ERROR_INVALID_VALUE;
  DrainAll();
  if (!allocation->graph) driver->Release(allocation);
  context->print.Flush();
  return context->error();
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (allocation == nullptr || allocation->kind == MemoryKind::kRegistered) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation->begin;
  if (size != nullptr) *size = allocation->size;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocHost_v2(void** address, size_t bytes) {
  return AllocateHostMemory(address, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult CUDAAPI cuMemAllocHost(void** address, unsigned int bytes) { return cuMemAllocHost_v2(address, bytes); }

CUresult CUDAAPI cuMemHostAlloc(void** address, size_t bytes, unsigned int flags) {
  return AllocateHostMemory(address, bytes, flags);
}

CUresult CUDAAPI cuMemFreeHost(void* address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  HAWSER_TRY(CheckUnsafe());
  const AllocationPtr allocation = FindMemory(address);
  const bool ours = allocation != nullptr && allocation->kind == MemoryKind::kHost &&
                    allocation->begin == reinterpret_cast<uint64_t>(address);
  if (!ours) return CUDA_ERROR_INVALID_VALUE;
  DrainAll();
  GetDriver()->Release(allocation);
  return context->error();
}

CUresult CUDAAPI cuMemHostRegister_v2(void* address, size_t bytes, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                              CU_MEMHOSTREGISTER_READ_ONLY;
  if (address == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  auto allocation = std::make_shared<Allocation>();
  allocation->begin = reinterpret_cast<uint64_t>(address);
  allocation->size = bytes;
  if (allocation->end() < allocation->begin) return CUDA_ERROR_INVALID_VALUE;
  allocation->kind = MemoryKind::kRegistered;
  allocation->context = context->handle;
  allocation->device = context->device()->ordinal();
  allocation->flags = flags;
  allocation->writable = (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0;
  return GetDriver()->memory.Add(allocation) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult CUDAAPI cuMemHostRegister(void* address, size_t bytes, unsigned int flags) {
  return cuMemHostRegister_v2(address, bytes, flags);
}

CUresult CUDAAPI cuMemHostUnregister(void* address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const AllocationPtr allocation = FindMemory(address);
  const bool ours = allocation != nullptr && allocation->kind == MemoryKind::kRegistered &&
                    allocation->begin == reinterpret_cast<uint64_t>(address);
  if (!ours) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  DrainAll();
  GetDriver()->Release(allocation);
  return context->error();
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* to, void* address, unsigned int flags) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const AllocationPtr allocation = FindMemory(address);
  const bool usable = allocation != nullptr && (allocation->on_host() || allocation->kind == MemoryKind::kManaged);
  if (!usable) return CUDA_ERROR_INVALID_VALUE;
  *to = reinterpret_cast<CUdeviceptr>(address);  // One address space.
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* address) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const AllocationPtr allocation = FindMemory(address);
  const bool usable = allocation != nullptr && allocation->on_host();
  if (flags == nullptr || !usable) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* to, CUpointer_attribute attribute, CUdeviceptr address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const AllocationPtr allocation = driver->memory.Find(address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return PointerAttribute(*allocation, address, attribute, to);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** to,
                                        CUdeviceptr address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (count == 0 || attributes == nullptr || to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const AllocationPtr allocation = driver->memory.Find(address);
  for (unsigned i = 0; i < count; ++i) {
    if (to[i] == nullptr || attributes[i] <= 0 || attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ||
        attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const bool given =
        allocation != nullptr && PointerAttribute(*allocation, address, attributes[i], to[i]) == CUDA_SUCCESS;
    if (!given) NoAttribute(attributes[i], to[i]);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const AllocationPtr allocation = driver->memory.Find(address);
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || allocation == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  unsigned on = 0;
  std::memcpy(&on, value, sizeof(on));
  allocation->sync_memops = on != 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (allocation == nullptr || !GetDriver()->memory.Covers(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (hawser::cuda_api::RangeHints::NeedsLocation(advice)) HAWSER_TRY(CheckDevice(location));
  if (!TakesHints(*allocation, address, bytes)) return CUDA_SUCCESS;
  return allocation->hints.Advise({address, bytes, allocation->begin, allocation->end()}, advice, location);
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(address, bytes, advice, hawser::cuda_api::LocationOf(device));
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags,
                                       CUstream handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (flags != 0 || bytes == 0 || !GetDriver()->memory.Covers(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckDevice(location));
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (allocation != nullptr && TakesHints(*allocation, address, bytes)) {
    allocation->hints.Prefetch({address, bytes, allocation->begin, allocation->end()}, location);
  }
  return CUDA_SUCCESS;  // It is there already.
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, hawser::cuda_api::LocationOf(device), 0, stream);
}

CUresult CUDAAPI cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) {
  ContextPtr context;
  HAWSER_TRY(CurrentContext(&context));
  return CUDA_ERROR_NOT_SUPPORTED;  // As GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS says.
}

}  // extern "C"
