// SPDX-License-Identifier: Apache-2.0
// Tensor maps. The driver computes them from numbers alone; what they point to is checked when a kernel uses them, by
// the device and within the worker's own memory.
#include <algorithm>
#include <array>
#include <cstring>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

enum class Form : uint32_t { kTiled, kIm2col, kIm2colWide };
constexpr uint32_t kMostDimensions = 5;

/// Three corners' coordinates as the driver takes them.
std::array<int, 3> Corner(const std::array<uint32_t, 3>& bits) {
  std::array<int, 3> corner{};
  std::memcpy(corner.data(), bits.data(), sizeof(corner));
  return corner;
}

cuda::TensorMap Answer(int32_t status, const CUtensorMap& map = {}) {
  cuda::TensorMap reply;
  static_assert(sizeof(reply.map) == sizeof(map));
  reply.status = status;
  if (status == CUDA_SUCCESS) std::memcpy(reply.map.data(), &map, sizeof(map));
  return reply;
}

CUresult Encode(const DriverTable& driver, const cuda::EncodeTensorMap& message, CUtensorMap* map) {
  // The arrays are as long as the largest rank; the driver reads as much of them as the rank says.
  if (message.rank == 0 || message.rank > kMostDimensions) return CUDA_ERROR_INVALID_VALUE;
  const auto type = static_cast<CUtensorMapDataType>(message.type);
  auto* const address = reinterpret_cast<void*>(message.address);
  const auto interleave = static_cast<CUtensorMapInterleave>(message.interleave);
  const auto swizzle = static_cast<CUtensorMapSwizzle>(message.swizzle);
  const auto promotion = static_cast<CUtensorMapL2promotion>(message.promotion);
  const auto fill = static_cast<CUtensorMapFloatOOBfill>(message.fill);
  std::array<cuuint64_t, kMostDimensions> size{};
  std::array<cuuint64_t, kMostDimensions - 1> strides{};
  std::copy(message.size.begin(), message.size.end(), size.begin());
  std::copy(message.strides.begin(), message.strides.end(), strides.begin());
  const std::array<int, 3> lower = Corner(message.lower_corner);
  const std::array<int, 3> upper = Corner(message.upper_corner);
  switch (static_cast<Form>(message.form)) {
    case Form::kTiled:
      if (driver.cuTensorMapEncodeTiled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      return driver.cuTensorMapEncodeTiled(map, type, message.rank, address, size.data(), strides.data(),
                                           message.box.data(), message.steps.data(), interleave, swizzle, promotion,
                                           fill);
    case Form::kIm2col:
      if (driver.cuTensorMapEncodeIm2col == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      return driver.cuTensorMapEncodeIm2col(map, type, message.rank, address, size.data(), strides.data(), lower.data(),
                                            upper.data(), message.channels, message.pixels, message.steps.data(),
                                            interleave, swizzle, promotion, fill);
    case Form::kIm2colWide:
      if (driver.cuTensorMapEncodeIm2colWide == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      return driver.cuTensorMapEncodeIm2colWide(map, type, message.rank, address, size.data(), strides.data(), lower[0],
                                                upper[0], message.channels, message.pixels, message.steps.data(),
                                                interleave, static_cast<CUtensorMapIm2ColWideMode>(message.mode),
                                                swizzle, promotion, fill);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

int32_t CudaBackend::EncodeTensorMap(const cuda::Call& call, const cuda::EncodeTensorMap& message) {
  int32_t status = 0;
  CUtensorMap map{};
  if (!message.context || Enter(message.context, &status) != nullptr) status = Encode(driver_, message, &map);
  Reply(call, Answer(status, map));
  return 0;
}

int32_t CudaBackend::ReplaceTensorMapAddress(const cuda::Call& call, const cuda::ReplaceTensorMapAddress& message) {
  int32_t status = 0;
  CUtensorMap map{};
  if (!message.context || Enter(message.context, &status) != nullptr) {
    std::memcpy(&map, message.map.data(), sizeof(map));
    status = driver_.cuTensorMapReplaceAddress == nullptr
                 ? kNotSupported
                 : driver_.cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(message.address));
  }
  Reply(call, Answer(status, map));
  return 0;
}

}  // namespace hawser::server::cuda_backend
