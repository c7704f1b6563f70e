// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: row-major texels in memory of their own, counted against the device's capacity, reachable through
// textures, surfaces and copies only.
#ifndef HAWSER_SOFTCUDA_DRIVER_ARRAY_H_
#define HAWSER_SOFTCUDA_DRIVER_ARRAY_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "softcuda/driver/device.h"

namespace hawser::soft {

/// Bytes of one channel; 0 for a format that is not supported.
uint32_t ChannelBytes(CUarray_format format);

struct Array {
  uint64_t handle = 0;
  uint64_t context = 0;
  Device* device = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  bool version3d = false;  ///< Made by cuArray3DCreate.
  uint32_t texel_bytes = 0;
  uint64_t row_pitch = 0;    ///< Bytes.
  uint64_t slice_pitch = 0;  ///< Bytes; of a depth slice or a layer.
  uint64_t bytes = 0;
  uint8_t* data = nullptr;
  std::shared_ptr<Array> parent;               ///< A mipmap level keeps the whole alive.
  std::vector<std::shared_ptr<Array>> levels;  ///< Mipmapped arrays only.

  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();

  uint32_t height() const { return descriptor.Height == 0 ? 1 : static_cast<uint32_t>(descriptor.Height); }
  uint32_t depth() const { return descriptor.Depth == 0 ? 1 : static_cast<uint32_t>(descriptor.Depth); }
  bool layered() const { return (descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0; }
};

using ArrayPtr = std::shared_ptr<Array>;

/// Zeroed. CUDA_ERROR_INVALID_VALUE for a shape that no array has, CUDA_ERROR_OUT_OF_MEMORY.
CUresult MakeArray(Device* device, uint64_t context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, ArrayPtr* array);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_ARRAY_H_
