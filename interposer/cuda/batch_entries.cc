// SPDX-License-Identifier: Apache-2.0
// Many copies, prefetches or discards in one call.
#include <vector>

#include "interposer/cuda/array.h"
#include "interposer/cuda/copy_region.h"
#include "interposer/cuda/managed.h"
#include "proto/cuda_api/copy_batch.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Whether the stream reads the source after the call, unless that waits: the program's own memory is taken at once.
bool IsReadLater(CUdeviceptr source) { return Client::Get().pointers().Find(source).has_value(); }

/// The end of a batch. `at_once`: some source may be gone when the call has returned.
CUresult End(const StreamCommand& command, bool at_once) {
  return at_once && !command.capturing() ? SynchronizeStream(command.stream()) : CUDA_SUCCESS;
}

size_t ElementBytes(CUarray array) {
  if (CheckObject(array, Kind::kArray) != CUDA_SUCCESS) return 0;
  return BytesOf(array->descriptor.Format) * array->descriptor.NumChannels;
}

CUresult CopyBatch(CUdeviceptr* to, CUdeviceptr* from, const size_t* sizes, size_t count,
                   const CUmemcpyAttributes* attributes, const size_t* indices, size_t attribute_count, size_t* failed,
                   CUstream stream) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) return error;
  if (to == nullptr || from == nullptr || sizes == nullptr || attributes == nullptr ||
      cuda_api::IsDefaultStream(stream) || !cuda_api::AreIndices(indices, attribute_count, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t k = 0; k < attribute_count; ++k) {
    if (!cuda_api::IsSourceOrder(attributes[k].srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  }
  // All are looked at before the first is done.
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] != 0 && to[i] != 0 && from[i] != 0) continue;
    if (failed != nullptr) *failed = i;
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool at_once = false;
  for (size_t i = 0, k = 0; i < count; ++i) {
    if (k + 1 < attribute_count && indices[k + 1] == i) ++k;
    const CUresult error = CopyUnified(command, to[i], from[i], sizes[i], CopyMode::kAsynchronous);
    if (error != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return error;
    }
    // ANY is a hint: in stream order is right for it.
    at_once |= attributes[k].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && IsReadLater(from[i]);
  }
  return End(command, at_once);
}

CUresult RegionBatch(size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags, size_t* failed,
                     CUstream stream) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) return error;
  if (operations == nullptr || count == 0 || flags != 0 || cuda_api::IsDefaultStream(stream)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // All are looked at before the first is done.
  std::vector<CUDA_MEMCPY3D> copies(count);
  bool at_once = false;
  for (size_t i = 0; i < count; ++i) {
    const CUDA_MEMCPY3D_BATCH_OP& operation = operations[i];
    if (const CUresult error = cuda_api::ToCopy(operation, &ElementBytes, &copies[i]); error != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return error;
    }
    at_once |= operation.srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
               operation.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER && IsReadLater(operation.src.op.ptr.ptr);
  }
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = CopyRegion(command, copies[i], CopyMode::kAsynchronous); error != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return error;
    }
  }
  return End(command, at_once);
}

/// `places`: of prefetches; null: discards alone, of which nothing comes: what is read afterwards may be anything, also
/// what was there.
CUresult HintBatch(const CUdeviceptr* addresses, const size_t* sizes, size_t count, const CUmemLocation* places,
                   const size_t* indices, size_t place_count, unsigned long long flags, CUstream stream) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) return error;
  if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;
  if (places != nullptr) {
    if (!cuda_api::AreIndices(indices, place_count, count)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < place_count; ++k) {
      if (const CUresult error = CheckPlace(places[k]); error != CUDA_SUCCESS) return error;
    }
  }
  std::vector<HintedRange> ranges(count);
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = FindManaged(addresses[i], sizes[i], &ranges[i]); error != CUDA_SUCCESS) return error;
  }
  if (places == nullptr) return CUDA_SUCCESS;
  for (size_t i = 0, k = 0; i < count; ++i) {
    if (k + 1 < place_count && indices[k + 1] == i) ++k;
    if (ranges[i].hints) Client::Get().hints().Prefetch(ranges[i].range, places[k]);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                       CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                       CUstream stream) {
  return CopyBatch(to, from, sizes, count, attributes, indices, attribute_count, nullptr, stream);
}

CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                                    size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return CopyBatch(to, from, sizes, count, attributes, indices, attribute_count, failed, stream);
}

CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, unsigned long long flags,
                                         CUstream stream) {
  return RegionBatch(count, operations, flags, nullptr, stream);
}

CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, size_t* failed,
                                      unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
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
