// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: what programs made, and the descriptors that kernels use. An object is taken away from
// kernels only when no launch in flight can name it, so descriptors stay valid without counting.
//
// Threads: any; a reader-writer lock.
#ifndef HAWSER_SOFTCUDA_DRIVER_TEXTURE_OBJECTS_H_
#define HAWSER_SOFTCUDA_DRIVER_TEXTURE_OBJECTS_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "softcuda/driver/array.h"
#include "softcuda/exec/texture.h"

namespace hawser::soft {

struct TextureObject {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool surface = false;
  bool destroyed = false;  ///< No longer there for the program; kernels in flight may still use it.
  ArrayPtr array;          ///< Keeps the texels.
  exec::TextureDescriptor descriptor;
};

class TextureObjects final : public exec::TextureTable {
 public:
  const exec::TextureDescriptor* FindTexture(uint64_t handle) const override { return Descriptor(handle, false); }
  const exec::TextureDescriptor* FindSurface(uint64_t handle) const override { return Descriptor(handle, true); }

  /// Returns its handle.
  uint64_t Add(std::unique_ptr<TextureObject> object);
  /// A copy of what was asked for; none when there is no such object.
  std::optional<CUDA_RESOURCE_DESC> Resource(uint64_t handle, bool surface) const;
  std::optional<CUDA_TEXTURE_DESC> Texture(uint64_t handle) const;
  std::optional<CUDA_RESOURCE_VIEW_DESC> View(uint64_t handle) const;
  /// Hides it from the program; false when there is none.
  bool Hide(uint64_t handle, bool surface);
  /// After Hide(), when no kernel can use it.
  void Remove(uint64_t handle);

 private:
  const exec::TextureDescriptor* Descriptor(uint64_t handle, bool surface) const;
  const TextureObject* Live(uint64_t handle, bool surface) const;

  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<TextureObject>> objects_;
};

/// Fills the descriptor from what the program asked for. CUDA_ERROR_INVALID_VALUE.
CUresult DescribeTexture(TextureObject* object);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_TEXTURE_OBJECTS_H_
