// SPDX-License-Identifier: Apache-2.0
// Entry points: tensor maps (CUDA driver API, "Tensor Map Object Management"). This device has the tiled form without
// interleaving, of elements of whole bytes, with the swizzles of capability 9.0.
#include <algorithm>
#include <array>
#include <cstdint>

#include "softcuda/driver/entry.h"
#include "softcuda/exec/tensor_map.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

using hawser::exec::TensorMap;

static_assert(TensorMap::kBytes == sizeof(CUtensorMap));

constexpr uintptr_t kMapAlignment = 64;
constexpr uintptr_t kAddressAlignment = 16;
constexpr uintptr_t kWideAlignment = 32;  // Of interleaved and of packed tensors.
constexpr uint64_t kStrideEnd = uint64_t{1} << 40;
constexpr unsigned kLeastCapability = 90;

struct Element {
  uint8_t bytes = 0;  // 0: this device has no such elements.
  bool is_float = false;
  uint64_t nan = 0;
};

/// Of a legal type.
Element ElementOf(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return {1};
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
      return {2};
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return {4};
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      return {8};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return {2, true, 0x7fff};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
      return {4, true, 0x7fffffff};
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return {8, true, 0x7fffffffffffffff};
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return {0, true};
    default:
      return {};
  }
}

bool IsPacked(CUtensorMapDataType type) { return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; }

/// Tensor maps are of devices of capability 9.0 and above: of the first, when the thread has no context.
CUresult CheckDevice() {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  ContextPtr context;
  Device* device = nullptr;
  if (CurrentContext(&context) == CUDA_SUCCESS) {
    device = context->device();
  } else {
    HAWSER_TRY(GetDevice(0, &device));
  }
  return device->capability() < kLeastCapability ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

bool Between(uint64_t value, uint64_t least, uint64_t most) { return value >= least && value <= most; }

}  // namespace

extern "C" {

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                        const cuuint64_t* size, const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill) {
  HAWSER_TRY(CheckDevice());
  if (to == nullptr || reinterpret_cast<uintptr_t>(to) % kMapAlignment != 0 || size == nullptr || box == nullptr ||
      steps == nullptr || !Between(rank, 1, TensorMap::kMostDimensions) || (rank > 1 && strides == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool interleaved = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  if (type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
      swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B || promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
      fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA || (interleaved && rank < 3)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Element element = ElementOf(type);
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !element.is_float) return CUDA_ERROR_INVALID_VALUE;
  const uintptr_t alignment =
      interleave == CU_TENSOR_MAP_INTERLEAVE_32B || (IsPacked(type) && type != CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B)
          ? kWideAlignment
          : kAddressAlignment;
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < rank; ++i) {
    if (!Between(size[i], 1, TensorMap::kMostElements) || !Between(box[i], 1, TensorMap::kLongestBox)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if ((i > 0 || interleaved) && !Between(steps[i], 1, TensorMap::kLongestStep)) return CUDA_ERROR_INVALID_VALUE;
    if (i + 1 < rank && (strides[i] % alignment != 0 || strides[i] >= kStrideEnd)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (interleave == CU_TENSOR_MAP_INTERLEAVE_32B && swizzle != CU_TENSOR_MAP_SWIZZLE_32B) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (element.bytes == 0 || interleaved || swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return CUDA_ERROR_NOT_SUPPORTED;
  const uint32_t row = box[0] * element.bytes;
  if (row % 16 != 0 || (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row > 16U << swizzle)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  TensorMap map;
  map.mark = TensorMap::kMark;
  map.dimensions = static_cast<uint8_t>(rank);
  map.element_bytes = element.bytes;
  map.swizzle_bits = static_cast<uint8_t>(swizzle);
  map.flush_denormals = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ ? 1 : 0;
  map.address = reinterpret_cast<uintptr_t>(address);
  if (fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) map.fill = element.nan;
  std::copy_n(size, rank, map.size.begin());
  if (rank > 1) std::copy_n(strides, rank - 1, map.stride.begin());
  for (size_t i = 0; i < rank; ++i) {
    map.box[i] = static_cast<uint16_t>(box[i]);
    map.step[i] = i == 0 ? 1 : static_cast<uint8_t>(steps[i]);
  }
  map.Store(to);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap* to, void* address) {
  HAWSER_TRY(CheckDevice());
  if (to == nullptr || reinterpret_cast<uintptr_t>(to) % kMapAlignment != 0 ||
      reinterpret_cast<uintptr_t>(address) % kAddressAlignment != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  TensorMap map = TensorMap::From(to);
  if (!map.Valid()) return CUDA_ERROR_INVALID_VALUE;
  map.address = reinterpret_cast<uintptr_t>(address);
  map.Store(to);
  return CUDA_SUCCESS;
}

}  // extern "C"
