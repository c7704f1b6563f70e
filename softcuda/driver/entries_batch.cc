// SPDX-License-Identifier: Apache-2.0
// Entry points: many copies, prefetches or discards in one call, what is known of a range of managed memory, default
// pools by location.
#include <algorithm>
#include <cstring>

#include "proto/cuda_api/copy_batch.h"
#include "softcuda/driver/copy_builder.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.
using hawser::cuda_api::AreIndices;
using hawser::cuda_api::IsDefaultStream;
using hawser::cuda_api::IsSourceOrder;
using hawser::cuda_api::ToCopy;

namespace {

/// The end of a batch that is in the stream. `at_once`: some source may be gone when the call has returned.
CUresult End(const StreamPtr& stream, CUstream handle, bool at_once) {
  return at_once && !IsCapturing(*stream) ? cuStreamSynchronize(handle) : CUDA_SUCCESS;
}

CUresult Batch(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, const CUmemcpyAttributes* attributes,
               const size_t* attribute_indices, size_t attribute_count, size_t* failed, CUstream handle) {
  if (failed != nullptr) *failed = SIZE_MAX;
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (to == nullptr || from == nullptr || sizes == nullptr || attributes == nullptr || IsDefaultStream(handle) ||
      !AreIndices(attribute_indices, attribute_count, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t k = 0; k < attribute_count; ++k) {
    if (!IsSourceOrder(attributes[k].srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  }
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  std::vector<CopyWork> copies(count);
  bool at_once = false;
  for (size_t i = 0, k = 0; i < count; ++i) {
    if (k + 1 < attribute_count && attribute_indices[k + 1] == i) ++k;
    const CUresult result = sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE
                                          : BuildLinearCopy(to[i], CU_MEMORYTYPE_UNIFIED, from[i],
                                                            CU_MEMORYTYPE_UNIFIED, sizes[i], &copies[i]);
    if (result != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return result;
    }
    // What is pageable is taken at the call in any case. ANY is a hint: in stream order is right for it.
    at_once |= attributes[k].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && !copies[i].pageable_source;
  }
  for (CopyWork& copy : copies) HAWSER_TRY(Enqueue(stream, std::move(copy)));
  return End(stream, handle, at_once);
}

size_t ElementBytes(CUarray handle) {
  const ArrayPtr array = GetDriver()->arrays.Find(handle);
  return array == nullptr ? 0 : array->texel_bytes;
}

CUresult RegionBatch(size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags, size_t* failed,
                     CUstream handle) {
  if (failed != nullptr) *failed = SIZE_MAX;
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (operations == nullptr || count == 0 || flags != 0 || IsDefaultStream(handle)) return CUDA_ERROR_INVALID_VALUE;
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  std::vector<CopyWork> copies(count);
  bool at_once = false;
  for (size_t i = 0; i < count; ++i) {
    CUDA_MEMCPY3D copy{};
    CUresult result = ToCopy(operations[i], &ElementBytes, &copy);
    if (result == CUDA_SUCCESS) result = BuildCopy(copy, &copies[i]);
    if (result != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return result;
    }
    at_once |= operations[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
               copies[i].source == nullptr && !copies[i].pageable_source;
  }
  for (CopyWork& copy : copies) HAWSER_TRY(Enqueue(stream, std::move(copy)));
  return End(stream, handle, at_once);
}

/// `places`: of prefetches; null: discards alone, of which nothing comes: what is read afterwards may be anything, also
/// what was there.
CUresult HintBatch(const CUdeviceptr* addresses, const size_t* sizes, size_t count, const CUmemLocation* places,
                   const size_t* indices, size_t place_count, unsigned long long flags, CUstream handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  if (places != nullptr) {
    if (!AreIndices(indices, place_count, count)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < place_count; ++k) {
      Device* device = nullptr;
      if (places[k].type == CU_MEM_LOCATION_TYPE_DEVICE) HAWSER_TRY(GetDevice(places[k].id, &device));
    }
  }
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  for (size_t i = 0; i < count; ++i) {
    const AllocationPtr allocation = GetDriver()->memory.Find(addresses[i]);
    const bool ours = allocation != nullptr && sizes[i] != 0 && sizes[i] <= allocation->end() - addresses[i] &&
                      (allocation->kind == MemoryKind::kManaged || allocation->kind == MemoryKind::kHost ||
                       allocation->kind == MemoryKind::kRegistered);
    if (!ours) return CUDA_ERROR_INVALID_VALUE;
  }
  if (places == nullptr) return CUDA_SUCCESS;
  for (size_t i = 0, k = 0; i < count; ++i) {
    if (k + 1 < place_count && indices[k + 1] == i) ++k;
    HAWSER_TRY(cuMemPrefetchAsync_v2(addresses[i], sizes[i], places[k], 0, handle));
  }
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

CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags,
                                         CUstream stream) {
  return RegionBatch(count, operations, flags, nullptr, stream);
}

CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t* failed,
                                      unsigned long long flags, CUstream stream) {
  return RegionBatch(count, operations, flags, failed, stream);
}

CUresult CUDAAPI cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count, CUmemLocation* places,
                                         size_t* indices, size_t place_count, unsigned long long flags,
                                         CUstream stream) {
  if (places == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return HintBatch(addresses, sizes, count, places, indices, place_count, flags, stream);
}

CUresult CUDAAPI cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count, unsigned long long flags,
                                        CUstream stream) {
  return HintBatch(addresses, sizes, count, nullptr, nullptr, 0, flags, stream);
}

CUresult CUDAAPI cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                                   CUmemLocation* places, size_t* indices, size_t place_count,
                                                   unsigned long long flags, CUstream stream) {
  return cuMemPrefetchBatchAsync(addresses, sizes, count, places, indices, place_count, flags, stream);
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
