// SPDX-License-Identifier: Apache-2.0
// Operations of cuMemcpy3DBatchAsync, for tests.
#ifndef HAWSER_TESTS_SUPPORT_BATCH_OPERATIONS_H_
#define HAWSER_TESTS_SUPPORT_BATCH_OPERATIONS_H_

#include <cuda.h>

#include <cstddef>

namespace hawser::batches {

inline CUmemcpy3DOperand Pointer(CUdeviceptr address, size_t row = 0, size_t height = 0) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operand.op.ptr.ptr = address;
  operand.op.ptr.rowLength = row;
  operand.op.ptr.layerHeight = height;
  return operand;
}

inline CUmemcpy3DOperand Pointer(const void* host, size_t row = 0, size_t height = 0) {
  return Pointer(reinterpret_cast<CUdeviceptr>(host), row, height);
}

inline CUmemcpy3DOperand Of(CUarray array, CUoffset3D offset) {
  CUmemcpy3DOperand operand{};
  operand.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  operand.op.array.array = array;
  operand.op.array.offset = offset;
  return operand;
}

inline CUDA_MEMCPY3D_BATCH_OP Operation(const CUmemcpy3DOperand& to, const CUmemcpy3DOperand& from, CUextent3D extent) {
  CUDA_MEMCPY3D_BATCH_OP operation{};
  operation.dst = to;
  operation.src = from;
  operation.extent = extent;
  operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return operation;
}

}  // namespace hawser::batches

#endif  // HAWSER_TESTS_SUPPORT_BATCH_OPERATIONS_H_
