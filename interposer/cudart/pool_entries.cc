// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Stream Ordered Memory Allocator", and managed memory's advice and prefetching.
#include <algorithm>
#include <vector>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/versioned.h"

namespace hawser::cudart {
namespace {

// Both interfaces lay these out alike, so they are passed on as they are.
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(int{cudaMemLocationTypeDevice} == int{CU_MEM_LOCATION_TYPE_DEVICE});
static_assert(int{cudaMemLocationTypeHostNumaCurrent} == int{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT});
static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(offsetof(cudaMemPoolProps, maxSize) == offsetof(CUmemPoolProps, maxSize));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));
static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
static_assert(int{cudaMemPoolAttrUsedMemHigh} == int{CU_MEMPOOL_ATTR_USED_MEM_HIGH});
static_assert(int{cudaMemAdviseUnsetAccessedBy} == int{CU_MEM_ADVISE_UNSET_ACCESSED_BY});
static_assert(int{cudaMemRangeAttributeLastPrefetchLocationId} ==
              int{CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID});

CUmemLocation Location(cudaMemLocation location) {
  CUmemLocation same{};
  same.type = static_cast<CUmemLocationType>(location.type);
  same.id = location.id;
  return same;
}

cudaError_t Allocated(CUresult result, CUdeviceptr address, void** pointer) {
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return FromDriver(result);
}

}  // namespace

cudaError_t MemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice, cudaMemLocation location) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemAdvise(Address(pointer), size, static_cast<CUmem_advise>(advice), Location(location));
  });
}

cudaError_t MemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation location, unsigned flags,
                             cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPrefetchAsync(Address(pointer), size, Location(location), flags, Resolve(stream));
  });
}

cudaError_t MemcpyBatchAsync(void* const* destinations, const void* const* sources, const size_t* sizes, size_t count,
                             cudaMemcpyAttributes* attributes, size_t* attribute_indices, size_t attribute_count,
                             cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    if (count == 0 || destinations == nullptr || sources == nullptr || sizes == nullptr) return cudaErrorInvalidValue;
    std::vector<CUdeviceptr> to(count);
    std::vector<CUdeviceptr> from(count);
    std::vector<size_t> bytes(sizes, sizes + count);
    std::transform(destinations, destinations + count, to.begin(), [](void* p) { return Address(p); });
    std::transform(sources, sources + count, from.begin(), [](const void* p) { return Address(p); });
    return FromDriver(driver.cuMemcpyBatchAsync(to.data(), from.data(), bytes.data(), count,
                                                reinterpret_cast<CUmemcpyAttributes*>(attributes), attribute_indices,
                                                attribute_count, Resolve(stream)));
  });
}

cudaError_t Memcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations, unsigned long long flags,
                               cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    if (count == 0 || operations == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemcpy3DBatchAsync(count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(operations), flags,
                                       Resolve(stream));
  });
}

}  // namespace hawser::cudart

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuMemAllocAsync(&address, size, Resolve(stream));
    return Allocated(result, address, pointer);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuMemAllocFromPoolAsync(&address, size, pool, Resolve(stream));
    return Allocated(result, address, pointer);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFreeAsync(Address(pointer), Resolve(stream));
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return InContext([&](const Driver& driver) {
    if (pool == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties));
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return InContext([&](const Driver& driver) { return driver.cuMemPoolDestroy(pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return InContext([&](const Driver& driver) { return driver.cuMemPoolTrimTo(pool, keep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return InContext([&](const Driver& driver) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return InContext([&](const Driver& driver) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(list), count);
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return InContext([&](const Driver& driver) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto answer = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const CUresult result = driver.cuMemPoolGetAccess(&answer, pool, reinterpret_cast<CUmemLocation*>(location));
    if (result == CUDA_SUCCESS) *flags = static_cast<cudaMemAccessFlags>(answer);
    return result;
  });
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool, cudaMemAllocationHandleType type,
                                               unsigned flags) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPoolExportToShareableHandle(handle, pool, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle, cudaMemAllocationHandleType type,
                                                 unsigned flags) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPoolImportFromShareableHandle(pool, handle, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPoolExportPointer(reinterpret_cast<CUmemPoolPtrExportData*>(data), Address(pointer));
  });
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr address = 0;
    const CUresult result =
        driver.cuMemPoolImportPointer(&address, pool, reinterpret_cast<CUmemPoolPtrExportData*>(data));
    return Allocated(result, address, pointer);
  });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return InContext([&](const Driver& driver) {
    if (pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemGetDefaultMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                         static_cast<CUmemAllocationType>(type));
  });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return InContext([&](const Driver& driver) {
    if (pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemGetMemPool(pool, reinterpret_cast<CUmemLocation*>(location),
                                  static_cast<CUmemAllocationType>(type));
  });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return InContext([&](const Driver& driver) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemSetMemPool(reinterpret_cast<CUmemLocation*>(location), static_cast<CUmemAllocationType>(type),
                                  pool);
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return Runtime::Get().driver().cuDeviceGetDefaultMemPool(pool, device.handle());
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : Runtime::Get().driver().cuDeviceGetMemPool(pool, device.handle());
  });
}

cudaError_t cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool) {
  return WithDevice(ordinal,
                    [&](Device& device) { return Runtime::Get().driver().cuDeviceSetMemPool(device.handle(), pool); });
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_size, cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t size) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemRangeGetAttribute(data, data_size, static_cast<CUmem_range_attribute>(attribute),
                                         Address(pointer), size);
  });
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t size) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemRangeGetAttributes(data, sizes, reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                                          Address(pointer), size);
  });
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                                      size_t* indices, size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemPrefetchBatchAsync(reinterpret_cast<CUdeviceptr*>(pointers), sizes, count,
                                          reinterpret_cast<CUmemLocation*>(locations), indices, location_count, flags,
                                          Resolve(stream));
  });
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count, unsigned long long flags,
                                     cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemDiscardBatchAsync(reinterpret_cast<CUdeviceptr*>(pointers), sizes, count, flags,
                                         Resolve(stream));
  });
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* indices, size_t location_count,
                                                unsigned long long flags, cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    return driver.cuMemDiscardAndPrefetchBatchAsync(reinterpret_cast<CUdeviceptr*>(pointers), sizes, count,
                                                    reinterpret_cast<CUmemLocation*>(locations), indices,
                                                    location_count, flags, Resolve(stream));
  });
}

}  // extern "C"
