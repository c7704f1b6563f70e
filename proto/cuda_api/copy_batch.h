// SPDX-License-Identifier: Apache-2.0
// Calls that do many things at once (CUDA driver API, "Memory Management" and "Unified Addressing": cuMemcpyBatchAsync,
// cuMemcpy3DBatchAsync, cuMemPrefetchBatchAsync, cuMemDiscardBatchAsync): what is right about their arguments, and one
// operation of a batch as the copy that it is.
//
// Threading: functions of their arguments.
#ifndef HAWSER_PROTO_CUDA_API_COPY_BATCH_H_
#define HAWSER_PROTO_CUDA_API_COPY_BATCH_H_

#include <cuda.h>

#include <cstddef>
#include <functional>

namespace hawser::cuda_api {

/// One list of attributes (or places) for many operations: the attribute at k is for the operations from indices[k] on,
/// up to that of the next. The first begins at 0, each behind the one before it, and all within the operations.
bool AreIndices(const size_t* indices, size_t index_count, size_t operation_count);

/// The default streams, whichever a program's null stream is: no batch of copies is for them.
constexpr bool IsDefaultStream(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

constexpr bool IsSourceOrder(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/// Bytes of an element of an array; 0: there is no such array.
using ElementBytes = std::function<size_t(CUarray)>;

/// The operation as a copy of bytes, whose pointers are CU_MEMORYTYPE_UNIFIED. CUDA_ERROR_INVALID_VALUE: it is none;
/// whether the memory is there, and as large, the copy finds out.
CUresult ToCopy(const CUDA_MEMCPY3D_BATCH_OP& operation, const ElementBytes& element_bytes, CUDA_MEMCPY3D* copy);

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_COPY_BATCH_H_
