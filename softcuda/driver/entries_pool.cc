// SPDX-License-Identifier: Apache-2.0
// Entry points: stream-ordered memory and its pools.
#include <algorithm>
#include <cstring>

#include "softcuda/driver/entry.h"
#include "softcuda/driver/pool.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

CUresult FindPool(CUmemoryPool handle, PoolPtr* pool) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *pool = driver->pools.Find(handle);
  return *pool == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUmemoryPool Handle(const PoolPtr& pool) { return reinterpret_cast<CUmemoryPool>(pool->handle); }

void Raise(std::atomic<uint64_t>* high, uint64_t value) {
  uint64_t seen = high->load();
  while (seen < value && !high->compare_exchange_weak(seen, value)) {
  }
}

/// Memory from the pool at once; when there is none, after the frees that are still under way.
CUresult AllocateFrom(const PoolPtr& pool, size_t bytes, const ContextPtr& context, AllocationPtr* allocation) {
  if (pool->max_size != 0 && pool->used + bytes > pool->max_size) return CUDA_ERROR_OUT_OF_MEMORY;
  Driver* const driver = GetDriver();
  CUresult result = driver->Allocate(pool->device, bytes, 0, MemoryKind::kPool, 0, allocation);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    context->Drain();
    result = driver->Allocate(pool->device, bytes, 0, MemoryKind::kPool, 0, allocation);
  }
  if (result != CUDA_SUCCESS) return result;
  (*allocation)->owner = pool->handle;
  const uint64_t used = pool->used += bytes;
  Raise(&pool->used_high, used);
  Raise(&pool->reserved_high, used);
  return CUDA_SUCCESS;
}

CUresult AllocateAsync(CUdeviceptr* address, size_t bytes, const PoolPtr& pool, CUstream handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  AllocWork work;
  HAWSER_TRY(AllocateFrom(pool, bytes, context, &work.allocation));
  work.params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  work.params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool->device->ordinal()};
  work.params.bytesize = bytes;
  work.params.dptr = work.allocation->begin;
  const AllocationPtr allocation = work.allocation;
  // In a capture this records a node. Otherwise the memory is there already: nothing has to happen in order.
  if (IsCapturing(*stream)) {
    allocation->graph = true;
    allocation->context = context->handle;
    if (const CUresult result = Enqueue(stream, std::move(work)); result != CUDA_SUCCESS) {
      GetDriver()->Release(allocation);
      return result;
    }
  }
  *address = allocation->begin;
  return CUDA_SUCCESS;
}

PoolPtr CurrentPool(Device* device) {
  const std::lock_guard lock(device->primary_mutex);
  return device->current_pool;
}

CUresult DeviceOfLocation(const CUmemLocation* location, Device** device) {
  if (location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  return GetDevice(location->id, device);
}

/// Sets of attributes are int or cuuint64_t.
template <typename T>
T Read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
CUresult Give(void* to, T value) {
  std::memcpy(to, &value, sizeof(value));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  return AllocateAsync(address, bytes, CurrentPool(context->device()), stream);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool handle, CUstream stream) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  return AllocateAsync(address, bytes, pool, stream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  const bool ours = allocation != nullptr && allocation->begin == address &&
                    (allocation->kind == MemoryKind::kPool || allocation->kind == MemoryKind::kDevice);
  if (!ours) return CUDA_ERROR_INVALID_VALUE;
  // A graph frees it when it is launched.
  const bool now = allocation->graph && !IsCapturing(*stream);
  if (now && !allocation->unfreed.exchange(false)) return CUDA_ERROR_INVALID_VALUE;
  return Enqueue(stream, FreeWork{address});
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = Handle(device->default_pool);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = Handle(CurrentPool(device));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice number, CUmemoryPool handle) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  if (pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(device->primary_mutex);
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* to, const CUmemPoolProps* properties) {
  if (to == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = nullptr;
  HAWSER_TRY(DeviceOfLocation(&properties->location, &device));
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  auto pool = std::make_shared<Pool>();
  pool->device = device;
  pool->max_size = properties->maxSize;
  GetDriver()->pools.Add(pool);
  *to = Handle(pool);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(pool->device->primary_mutex);
    if (pool->device->current_pool == pool) pool->device->current_pool = pool->device->default_pool;
  }
  GetDriver()->pools.Remove(handle);  // What it gave out lives until it is freed.
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  PoolPtr pool;
  return FindPool(handle, &pool);  // Nothing is held back.
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_follow_event = Read<int>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic = Read<int>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_internal = Read<int>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = Read<cuuint64_t>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (Read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->used.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (Read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used.load();
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return Give<int>(value, pool->reuse_follow_event);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return Give<int>(value, pool->reuse_opportunistic);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return Give<int>(value, pool->reuse_internal);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return Give<cuuint64_t>(value, pool->release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return Give<cuuint64_t>(value, pool->used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return Give<cuuint64_t>(value, pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return Give<cuuint64_t>(value, pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions, size_t count) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  if (descriptions == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Device* device = nullptr;
    HAWSER_TRY(DeviceOfLocation(&descriptions[i].location, &device));
    if (device == pool->device && descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(pool->mutex);
    pool->access[device->ordinal()] = descriptions[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  PoolPtr pool;
  HAWSER_TRY(FindPool(handle, &pool));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOfLocation(location, &device));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(pool->mutex);
  const auto found = pool->access.find(device->ordinal());
  if (found != pool->access.end()) {
    *flags = found->second;
  } else {
    *flags = device == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
