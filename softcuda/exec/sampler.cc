// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "softcuda/exec/numeric.h"

namespace hawser::exec {
namespace {

float Linear(float s) { return s <= 0.04045f ? s / 12.92f : std::pow((s + 0.055f) / 1.055f, 2.4f); }

/// An index brought into [0, size) by the address mode; -1: the border.
int64_t Wrap(int64_t index, int64_t size, AddressMode mode) {
  if (index >= 0 && index < size) return index;
  switch (mode) {
    case AddressMode::kWrap:
      return (index % size + size) % size;
    case AddressMode::kMirror: {
      const int64_t period = 2 * size;
      const int64_t in = (index % period + period) % period;
      return in < size ? in : period - 1 - in;
    }
    case AddressMode::kClamp:
      return std::clamp<int64_t>(index, 0, size - 1);
    case AddressMode::kBorder:
      return -1;
  }
  return -1;
}

int64_t Floor(float x) {
  // Far outside every texture the result only has to stay outside, and NaN has to be something.
  if (!(x > -1e9f)) return -1'000'000'000;
  if (x > 1e9f) return 1'000'000'000;
  return static_cast<int64_t>(std::floor(x));
}

/// The face of a cube map and the point on it, both in [0, 1].
uint32_t CubeFace(const std::array<float, 3>& at, std::array<float, 3>* on) {
  const float x = at[0];
  const float y = at[1];
  const float z = at[2];
  const float ax = std::fabs(x);
  const float ay = std::fabs(y);
  const float az = std::fabs(z);
  uint32_t face = 0;
  float s = 0;
  float t = 0;
  float m = 1;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    m = ax;
    s = x >= 0 ? -z : z;
    t = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    m = ay;
    s = x;
    t = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    m = az;
    s = z >= 0 ? x : -x;
    t = -y;
  }
  if (!(m > 0)) m = 1;
  *on = {(s / m + 1) / 2, (t / m + 1) / 2, 0};
  return face;
}

}  // namespace

uint32_t Dimensions(TextureShape shape) {
  switch (shape) {
    case TextureShape::k1d:
    case TextureShape::kA1d:
      return 1;
    case TextureShape::k2d:
    case TextureShape::kA2d:
      return 2;
    default:
      return 3;
  }
}

bool IsLayered(TextureShape shape) {
  return shape == TextureShape::kA1d || shape == TextureShape::kA2d || shape == TextureShape::kACube;
}

AddressMode Sampler::ModeOf(size_t dimension) const {
  const AddressMode mode = texture_.address[dimension];
  const bool of_normalized = mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  return of_normalized && !texture_.normalized_coordinates ? AddressMode::kClamp : mode;
}

bool Sampler::ReadsIntegers() const {
  return texture_.kind != ChannelKind::kFloat && (texture_.read_as_integer || texture_.channel_bits == 32);
}

Texel Sampler::Border() const {
  Texel texel{};
  for (size_t k = 0; k < 4; ++k) {
    texel[k] = ReadsIntegers() ? static_cast<uint32_t>(static_cast<int64_t>(texture_.border[k]))
                               : std::bit_cast<uint32_t>(texture_.border[k]);
  }
  return texel;
}

Texel Sampler::At(const TextureLevel& level, const std::array<int64_t, 3>& at, uint32_t layer,
                  uint32_t dimensions) const {
  const std::array<int64_t, 3> size{level.width, level.height, level.depth};
  std::array<int64_t, 3> in{0, 0, 0};
  for (size_t k = 0; k < dimensions && k < 3; ++k) {
    in[k] = Wrap(at[k], std::max<int64_t>(size[k], 1), ModeOf(k));
    if (in[k] < 0) return Border();
  }
  layer = std::min(layer, std::max(texture_.layers, 1u) - 1);
  const uint32_t bytes = texture_.channel_bits / 8u;
  const uint8_t* place = level.data + layer * level.layer_pitch + static_cast<uint64_t>(in[2]) * level.slice_pitch +
                         static_cast<uint64_t>(in[1]) * level.row_pitch +
                         static_cast<uint64_t>(in[0]) * bytes * texture_.channels;
  Texel texel{0, 0, 0, 0};
  const uint64_t needed = uint64_t{bytes} * texture_.channels;
  if (live_ != ~uint64_t{0}) {
    const auto offset = static_cast<uint64_t>(place - texture_.levels[0].data);
    if (offset > live_ || needed > live_ - offset) {
      if (beyond_ == nullptr) beyond_ = place;
      return texel;
    }
  }
  // Missing components read as 0, the fourth as 1.
  texel[3] = ReadsIntegers() ? 1 : std::bit_cast<uint32_t>(1.0f);
  for (uint32_t k = 0; k < texture_.channels && k < 4; ++k) {
    uint32_t raw = 0;
    std::memcpy(&raw, place + k * bytes, bytes);
    if (texture_.kind == ChannelKind::kFloat) {
      texel[k] = bytes == 2 ? std::bit_cast<uint32_t>(static_cast<float>(HalfToDouble(raw))) : raw;
      continue;
    }
    const uint32_t shift = 32 - 8 * bytes;
    const auto as_signed = static_cast<int32_t>(raw << shift) >> shift;
    if (ReadsIntegers()) {
      texel[k] = texture_.kind == ChannelKind::kSigned ? static_cast<uint32_t>(as_signed) : raw;
      continue;
    }
    float value = 0;
    if (texture_.kind == ChannelKind::kSigned) {
      value = std::max(-1.0f, static_cast<float>(as_signed) / static_cast<float>((1u << (8 * bytes - 1)) - 1));
    } else {
      value = static_cast<float>(raw) / static_cast<float>((1u << (8 * bytes)) - 1);
      if (texture_.srgb && k < 3) value = Linear(value);
    }
    texel[k] = std::bit_cast<uint32_t>(value);
  }
  return texel;
}

Texel Sampler::SampleLevel(uint32_t dimensions, const std::array<float, 3>& at, uint32_t layer, uint32_t number) const {
  const TextureLevel& level = texture_.levels[std::min<size_t>(number, texture_.levels.size() - 1)];
  const std::array<uint32_t, 3> size{level.width, level.height, level.depth};
  std::array<float, 3> x = at;
  for (size_t k = 0; k < dimensions; ++k) {
    if (!texture_.normalized_coordinates) continue;
    // Wrap and mirror are rules of the normalised coordinate.
    if (texture_.address[k] == AddressMode::kWrap) x[k] -= std::floor(x[k]);
    if (texture_.address[k] == AddressMode::kMirror) {
      const float whole = std::floor(x[k]);
      const float part = x[k] - whole;
      x[k] = std::fmod(std::fabs(whole), 2.0f) == 1.0f ? 1 - part : part;
    }
    x[k] *= static_cast<float>(size[k]);
  }
  std::array<int64_t, 3> base{0, 0, 0};
  if (!texture_.linear_filter || ReadsIntegers()) {
    for (size_t k = 0; k < dimensions; ++k) base[k] = Floor(x[k]);
    return At(level, base, layer, dimensions);
  }
  std::array<float, 3> fraction{0, 0, 0};
  for (size_t k = 0; k < dimensions; ++k) {
    const float shifted = x[k] - 0.5f;
    base[k] = Floor(shifted);
    // 8 bits of fraction, rounded.
    fraction[k] = std::floor((shifted - static_cast<float>(base[k])) * 256.0f + 0.5f) / 256.0f;
    if (!(fraction[k] >= 0 && fraction[k] <= 1)) fraction[k] = 0;
  }
  std::array<float, 4> sum{0, 0, 0, 0};
  for (uint32_t corner = 0; corner < 1u << dimensions; ++corner) {
    float weight = 1;
    std::array<int64_t, 3> place = base;
    for (size_t k = 0; k < dimensions; ++k) {
      const bool far = (corner >> k & 1) != 0;
      weight *= far ? fraction[k] : 1 - fraction[k];
      place[k] += far ? 1 : 0;
    }
    if (weight == 0) continue;
    const Texel texel = At(level, place, layer, dimensions);
    for (size_t k = 0; k < 4; ++k) sum[k] += weight * std::bit_cast<float>(texel[k]);
  }
  Texel texel{};
  for (size_t k = 0; k < 4; ++k) texel[k] = std::bit_cast<uint32_t>(sum[k]);
  return texel;
}

Texel Sampler::Sample(TextureShape shape, const std::array<float, 3>& at, uint32_t layer, float lod) const {
  std::array<float, 3> place = at;
  uint32_t dimensions = Dimensions(shape);
  if (shape == TextureShape::kCube || shape == TextureShape::kACube) {
    layer = layer * 6 + CubeFace(at, &place);
    dimensions = 2;
    if (!texture_.normalized_coordinates) {
      place[0] *= static_cast<float>(texture_.levels[0].width);
      place[1] *= static_cast<float>(texture_.levels[0].height);
    }
  }
  const auto last = static_cast<float>(texture_.levels.size() - 1);
  if (last == 0) return SampleLevel(dimensions, place, layer, 0);
  const float high = texture_.max_level > 0 ? std::min(texture_.max_level, last) : last;
  lod = lod + texture_.mipmap_bias;
  lod = lod > texture_.min_level ? std::min(lod, high) : std::min(texture_.min_level, high);
  if (!texture_.linear_mipmap_filter) {
    return SampleLevel(dimensions, place, layer, static_cast<uint32_t>(std::lround(lod)));
  }
  const float floor = std::floor(lod);
  const float part = lod - floor;
  const Texel low = SampleLevel(dimensions, place, layer, static_cast<uint32_t>(floor));
  if (part == 0 || ReadsIntegers()) return low;
  const Texel next = SampleLevel(dimensions, place, layer, static_cast<uint32_t>(floor) + 1);
  Texel texel{};
  for (size_t k = 0; k < 4; ++k) {
    texel[k] =
        std::bit_cast<uint32_t>(std::bit_cast<float>(low[k]) * (1 - part) + std::bit_cast<float>(next[k]) * part);
  }
  return texel;
}

Texel Sampler::Fetch(TextureShape shape, const std::array<int32_t, 3>& at, uint32_t layer, uint32_t number) const {
  const TextureLevel& level = texture_.levels[std::min<size_t>(number, texture_.levels.size() - 1)];
  const std::array<uint32_t, 3> size{level.width, level.height, level.depth};
  std::array<int64_t, 3> place{0, 0, 0};
  for (size_t k = 0; k < Dimensions(shape) && k < 3; ++k) {
    place[k] = at[k];
    if (texture_.linear_memory && (at[k] < 0 || static_cast<uint32_t>(at[k]) >= size[k])) return {0, 0, 0, 0};
  }
  return At(level, place, layer, Dimensions(shape));
}

Texel Sampler::Gather(TextureShape shape, const std::array<float, 3>& at, uint32_t layer, uint32_t component) const {
  const TextureLevel& level = texture_.levels[0];
  std::array<float, 3> x = at;
  if (texture_.normalized_coordinates) {
    x[0] *= static_cast<float>(level.width);
    x[1] *= static_cast<float>(level.height);
  }
  const int64_t left = Floor(x[0] - 0.5f);
  const int64_t top = Floor(x[1] - 0.5f);
  (void)shape;
  // The four texels against the clock from the lower left.
  const std::array<std::array<int64_t, 3>, 4> around = {
      {{left, top + 1, 0}, {left + 1, top + 1, 0}, {left + 1, top, 0}, {left, top, 0}}};
  Texel texel{};
  for (size_t k = 0; k < 4; ++k) texel[k] = At(level, around[k], layer, 2)[component & 3];
  return texel;
}

float Sampler::LevelFor(const std::array<float, 3>& dx, const std::array<float, 3>& dy) const {
  const TextureLevel& level = texture_.levels[0];
  const std::array<float, 3> size{static_cast<float>(level.width), static_cast<float>(level.height),
                                  static_cast<float>(level.depth)};
  float along = 0;
  float across = 0;
  for (size_t k = 0; k < 3; ++k) {
    const float scale = texture_.normalized_coordinates ? size[k] : 1;
    along += dx[k] * scale * dx[k] * scale;
    across += dy[k] * scale * dy[k] * scale;
  }
  const float longest = std::max(along, across);
  return longest > 0 ? 0.5f * std::log2(longest) : 0;
}

}  // namespace hawser::exec
