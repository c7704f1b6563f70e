// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/copy_batch.h"

namespace hawser::cuda_api {
namespace {

/// One side of a copy, in bytes.
struct Side {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  CUdeviceptr address = 0;
  CUarray array = nullptr;
  size_t x = 0, y = 0, z = 0;
  size_t pitch = 0, height = 0;
};

bool Take(const CUmemcpy3DOperand& operand, const CUextent3D& extent, size_t bytes, Side* side) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    side->type = CU_MEMORYTYPE_ARRAY;
    side->array = operand.op.array.array;
    side->y = operand.op.array.offset.y;
    side->z = operand.op.array.offset.z;
    return !__builtin_mul_overflow(operand.op.array.offset.x, bytes, &side->x);
  }
  const auto& pointer = operand.op.ptr;
  // 0: as close as can be.
  const size_t row = pointer.rowLength != 0 ? pointer.rowLength : extent.width;
  side->address = pointer.ptr;
  side->height = pointer.layerHeight != 0 ? pointer.layerHeight : extent.height;
  return pointer.ptr != 0 && row >= extent.width && side->height >= extent.height &&
         !__builtin_mul_overflow(row, bytes, &side->pitch);
}

}  // namespace

bool AreIndices(const size_t* indices, size_t index_count, size_t operation_count) {
  if (indices == nullptr || index_count == 0 || index_count > operation_count || indices[0] != 0) return false;
  for (size_t k = 1; k < index_count; ++k) {
    if (indices[k] <= indices[k - 1] || indices[k] >= operation_count) return false;
  }
  return true;
}

CUresult ToCopy(const CUDA_MEMCPY3D_BATCH_OP& operation, const ElementBytes& element_bytes, CUDA_MEMCPY3D* copy) {
  const CUextent3D& extent = operation.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsSourceOrder(operation.srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  // Between pointers elements are bytes; else they are those of the arrays, which must agree.
  size_t bytes = 0;
  for (const CUmemcpy3DOperand* operand : {&operation.src, &operation.dst}) {
    if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    const size_t own = element_bytes(operand->op.array.array);
    if (own == 0 || (bytes != 0 && own != bytes)) return CUDA_ERROR_INVALID_VALUE;
    bytes = own;
  }
  if (bytes == 0) bytes = 1;
  Side from;
  Side to;
  if (!Take(operation.src, extent, bytes, &from) || !Take(operation.dst, extent, bytes, &to)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *copy = {};
  if (__builtin_mul_overflow(extent.width, bytes, &copy->WidthInBytes)) return CUDA_ERROR_INVALID_VALUE;
  copy->Height = extent.height;
  copy->Depth = extent.depth;
  copy->srcMemoryType = from.type;
  copy->srcDevice = from.address;
  copy->srcArray = from.array;
  copy->srcXInBytes = from.x;
  copy->srcY = from.y;
  copy->srcZ = from.z;
  copy->srcPitch = from.pitch;
  copy->srcHeight = from.height;
  copy->dstMemoryType = to.type;
  copy->dstDevice = to.address;
  copy->dstArray = to.array;
  copy->dstXInBytes = to.x;
  copy->dstY = to.y;
  copy->dstZ = to.z;
  copy->dstPitch = to.pitch;
  copy->dstHeight = to.height;
  return CUDA_SUCCESS;
}

}  // namespace hawser::cuda_api
