// SPDX-License-Identifier: Apache-2.0
// Entry points: many copies in one call, what is known of a range of managed memory, default pools by location.
#include <algorithm>
#include <cstring>

#include "softcuda/driver/copy_builder.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

CUresult Batch(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, const CUmemcpyAttributes* attributes,
               const size_t* attribute_indices, size_t attribute_count, size_t* failed, CUstream handle) {
  if (failed != nullptr) *failed = SIZE_MAX;
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const bool missing = to == nullptr || from == nullptr || sizes == nullptr || count == 0 || attributes == nullptr ||
                       attribute_indices == nullptr;
  if (missing || attribute_count == 0 || attribute_count > count || attribute_indices[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Not for the default streams: which of them is meant would depend on how the program was built.
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
    return CUDA_ERROR_INVALID_VALUE;
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  std::vector<CopyWork> copies(count);
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE
                                          : BuildLinearCopy(to[i], CU_MEMORYTYPE_UNIFIED, from[i],
                                                            CU_MEMORYTYPE_UNIFIED, sizes[i], &copies[i]);
    if (result != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return result;
    }
  }
  for (CopyWork& copy : copies) HAWSER_TRY(Enqueue(stream, std::move(copy)));
  return CUDA_SUCCESS;
}

CUresult PoolOf(CUmemoryPool* pool, const CUmemLocation* location, bool current) {
  if (pool == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return current ? cuDeviceGetMemPool(pool, location->id) : cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult RangeAttribute(void* to, size_t bytes, CUmem_range_attribute attribute, CUdeviceptr address, size_t size) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  const AllocationPtr allocation = GetDriver()->memory.Find(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::kManaged || size == 0 ||
      size > allocation->end() - address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return allocation->hints.Get(to, bytes, attribute, {address, size, allocation->begin, allocation->end()});
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                       CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                       CUstream stream) {
  return Batch(to, from, sizes, count, attributes, indices, attribute_count, nullptr, stream);
}

CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                    size_t* failed, CUstream stream) {
  return Batch(to, from, sizes, count, attributes, indices, attribute_count, failed, stream);
}

CUresult CUDAAPI cuMemRangeGetAttribute(void* to, size_t bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                        size_t size) {
  return RangeAttribute(to, bytes, attribute, address, size);
}

CUresult CUDAAPI cuMemRangeGetAttributes(void** to, size_t* bytes, CUmem_range_attribute* attributes, size_t count,
                                         CUdeviceptr address, size_t size) {
  if (to == nullptr || bytes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) HAWSER_TRY(RangeAttribute(to[i], bytes[i], attributes[i], address, size));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return type != CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_ERROR_NOT_SUPPORTED : PoolOf(pool, location, false);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return type != CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_ERROR_NOT_SUPPORTED : PoolOf(pool, location, true);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return cuDeviceSetMemPool(location->id, pool);
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice number, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (value == nullptr || attribute < CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ||
      attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int ordinal = device->ordinal();
  cuuint64_t used = 0;
  for (const AllocationPtr& allocation :
       GetDriver()->memory.Select([ordinal](const Allocation& a) { return a.graph && a.device == ordinal; })) {
    used += allocation->size;
  }
  std::memcpy(value, &used, sizeof(used));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice number, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  cuuint64_t wish = 0;
  if (value == nullptr || !high) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&wish, value, sizeof(wish));
  // The mark begins anew at what is used now, which is where it always is: memory of graphs is not given back.
  return wish == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
