// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces as the executor sees them: the driver turns a 64-bit handle into a descriptor.
#ifndef HAWSER_SOFTCUDA_EXEC_TEXTURE_H_
#define HAWSER_SOFTCUDA_EXEC_TEXTURE_H_

#include <array>
#include <cstdint>
#include <vector>

namespace hawser::exec {

enum class ChannelKind : uint8_t { kUnsigned, kSigned, kFloat };
enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };

/// One mipmap level. Texel (x, y, z) of layer l lies at
/// data + l * layer_pitch + z * slice_pitch + y * row_pitch + x * texel bytes. Row-major, no tiling.
struct TextureLevel {
  uint8_t* data = nullptr;                                   ///< Host memory, alive while a launch may use it.
  uint32_t width = 1, height = 1, depth = 1;                 ///< Texels; for layered and cube maps depth is 1.
  uint64_t row_pitch = 0, slice_pitch = 0, layer_pitch = 0;  ///< Bytes.
};

/// A texture object or a surface object (which uses levels[0], channels and layers only).
struct TextureDescriptor {
  ChannelKind kind = ChannelKind::kFloat;
  uint8_t channel_bits = 32;         ///< 8, 16 or 32; 16 with kFloat is a half.
  uint8_t channels = 1;              ///< 1, 2 or 4.
  uint32_t layers = 1;               ///< Layered textures; 6 per cube map.
  std::vector<TextureLevel> levels;  ///< At least one.
  std::array<AddressMode, 3> address{AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  bool linear_filter = false;         ///< Else nearest.
  bool linear_mipmap_filter = false;  ///< Between levels.
  bool normalized_coordinates = false;
  bool read_as_integer = false;  ///< CU_TRSF_READ_AS_INTEGER; else 8- and 16-bit integers read as [0,1] or [-1,1].
  bool srgb = false;
  float mipmap_bias = 0, min_level = 0, max_level = 0;
  std::array<float, 4> border{};
  bool linear_memory = false;  ///< tex1Dfetch over linear memory: outside reads give 0.
  /// Not 0: the texels are the program's own memory, so many bytes from levels[0].data, which it may have freed since.
  uint64_t extent = 0;
};

class TextureTable {
 public:
  virtual ~TextureTable() = default;
  /// Null when no such object is alive. What it points to stays valid and unchanged until the launch ends. Thread-safe.
  virtual const TextureDescriptor* FindTexture(uint64_t handle) const = 0;
  virtual const TextureDescriptor* FindSurface(uint64_t handle) const = 0;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_TEXTURE_H_
