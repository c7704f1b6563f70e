// SPDX-License-Identifier: Apache-2.0
// Reading textures: address modes, nearest and linear filtering, mipmap levels, layers, cube maps. Linear filtering
// uses the 8-bit fractions that devices use (CUDA programming guide, "Texture Fetching").
#ifndef HAWSER_SOFTCUDA_EXEC_SAMPLER_H_
#define HAWSER_SOFTCUDA_EXEC_SAMPLER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "softcuda/exec/texture.h"

namespace hawser::exec {

/// Four components, as bits: floats, or 32-bit integers for textures that are read as integers.
using Texel = std::array<uint32_t, 4>;

enum class TextureShape : uint8_t { k1d, k2d, k3d, kA1d, kA2d, kCube, kACube };
/// Coordinates of a shape without the layer: 1, 2 or 3.
uint32_t Dimensions(TextureShape shape);
bool IsLayered(TextureShape shape);

class Sampler {
 public:
  /// `live`: so many bytes from the first level's texels may be read; of an array all may.
  explicit Sampler(const TextureDescriptor& texture, uint64_t live = ~uint64_t{0}) : texture_(texture), live_(live) {}

  /// The first texel that was asked for and lies beyond them; null when all were read.
  const uint8_t* beyond() const { return beyond_; }

  /// Float coordinates; `layer` is the array index, or the cube map's. `lod` chooses among mipmap levels.
  Texel Sample(TextureShape shape, const std::array<float, 3>& at, uint32_t layer, float lod) const;
  /// Integer coordinates: texels themselves, no filter; outside, the border rule of the address mode.
  Texel Fetch(TextureShape shape, const std::array<int32_t, 3>& at, uint32_t layer, uint32_t level) const;
  /// tld4: component `component` of the four texels around a point, in the order of the manual.
  Texel Gather(TextureShape shape, const std::array<float, 3>& at, uint32_t layer, uint32_t component) const;
  /// The level of detail for given derivatives.
  float LevelFor(const std::array<float, 3>& dx, const std::array<float, 3>& dy) const;

 private:
  Texel SampleLevel(uint32_t dimensions, const std::array<float, 3>& at, uint32_t layer, uint32_t level) const;
  Texel At(const TextureLevel& level, const std::array<int64_t, 3>& at, uint32_t layer, uint32_t dimensions) const;
  Texel Border() const;
  /// Wrap and mirror are rules of normalised coordinates; others are clamped instead.
  AddressMode ModeOf(size_t dimension) const;
  bool ReadsIntegers() const;

  const TextureDescriptor& texture_;
  const uint64_t live_;
  mutable const uint8_t* beyond_ = nullptr;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_SAMPLER_H_
