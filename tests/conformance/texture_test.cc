// SPDX-License-Identifier: Apache-2.0
// One-dimensional textures at float coordinates: nearest and linear, normalised and not, every address mode, against
// the formulas of the CUDA programming guide ("Texture Fetching").
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/softcuda_exec/device.h"
#include "tests/unit/softcuda_exec/texture_table.h"

namespace hawser::conformance {
namespace {

using exec::AddressMode;

constexpr int kWidth = 8;
constexpr std::array<float, kWidth> kTexels{3, -1, 4, 0.5f, 9, -2.25f, 6, 100};
constexpr float kBorder = -64;
constexpr std::array<AddressMode, 4> kModes{AddressMode::kWrap, AddressMode::kClamp, AddressMode::kMirror,
                                            AddressMode::kBorder};
constexpr std::array<const char*, 4> kModeNames{"wrap", "clamp", "mirror", "border"};

exec::TextureDescriptor Texture(std::vector<uint8_t>* bytes, AddressMode mode, bool linear, bool normalized) {
  bytes->resize(sizeof(kTexels));
  std::memcpy(bytes->data(), kTexels.data(), sizeof(kTexels));
  exec::TextureDescriptor texture;
  texture.levels.resize(1);
  texture.levels[0].data = bytes->data();
  texture.levels[0].width = kWidth;
  texture.address.fill(mode);
  texture.border = {kBorder, 0, 0, 0};
  texture.linear_filter = linear;
  texture.normalized_coordinates = normalized;
  return texture;
}

/// The first two components at each coordinate; a thread each.
std::vector<std::array<float, 2>> Sample(const exec::TextureDescriptor& texture, const std::vector<float>& at) {
  exec::Device device(0);
  EXPECT_EQ(device.Load({".version 8.4\n.target sm_80\n.address_size 64\n"
                         ".visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out) {\n"
                         ".reg .f32 %x, %f<4>; .reg .b32 %i; .reg .b64 %t, %in, %out;\n"
                         "ld.param.u64 %t, [t]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n"
                         "mov.u32 %i, %ctaid.x; mad.wide.u32 %in, %i, 4, %in; mad.wide.u32 %out, %i, 8, %out;\n"
                         "ld.global.f32 %x, [%in]; tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x}];\n"
                         "st.global.v2.f32 [%out], {%f0, %f3}; ret; }\n"}),
            "");
  EXPECT_TRUE(device.program().unsupported().empty());
  exec::MapTextureTable table;
  constexpr uint64_t kHandle = 9;
  table.textures[kHandle] = texture;
  device.config.textures = &table;
  const uint64_t in = device.Upload(at);
  const uint64_t out = device.Allocate(8 * at.size());
  const exec::Outcome outcome = device.Run("k", {static_cast<uint32_t>(at.size()), 1, 1}, {1, 1, 1},
                                           exec::Arguments().Add(kHandle).Add(in).Add(out));
  EXPECT_TRUE(outcome.ok()) << outcome.fault.Text();
  return device.Download<std::array<float, 2>>(out, at.size());
}

/// T[i] of the guide's formulas; an i beyond the ends is one that filtering has reached.
double Texel(int i, AddressMode mode) {
  if (i >= 0 && i < kWidth) return static_cast<double>(kTexels[static_cast<size_t>(i)]);
  if (mode == AddressMode::kBorder) return static_cast<double>(kBorder);
  const bool front = (i < 0) != (mode == AddressMode::kWrap);
  return static_cast<double>(front ? kTexels.front() : kTexels.back());
}

/// `x` counts texels. Wrap takes the fraction of the normalised coordinate; mirror that, or one minus that where the
/// whole part is odd. Then tex(x) = T[floor(x)], or (1 - a) T[i] + a T[i + 1] with i = floor(x - 0.5), a = frac(x -
/// 0.5) in units of 1 / 256.
double Expected(double x, AddressMode mode, bool linear, bool normalized) {
  if (mode == AddressMode::kWrap || mode == AddressMode::kMirror) {
    if (normalized) {
      const double whole = std::floor(x / kWidth);
      x -= whole * kWidth;
      if (mode == AddressMode::kMirror && static_cast<int>(whole) % 2 != 0) x = kWidth - x;
    } else {
      mode = AddressMode::kClamp;
    }
  }
  if (!linear) return Texel(static_cast<int>(std::floor(x)), mode);
  const double shifted = x - 0.5;
  const auto i = static_cast<int>(std::floor(shifted));
  const double a = std::round((shifted - std::floor(shifted)) * 256) / 256;
  return (1 - a) * Texel(i, mode) + a * Texel(i + 1, mode);
}

/// From two widths below the texture to two above, in steps of 1/16 and a few finer: all exact as floats, so that no
/// rounding decides between two texels.
std::vector<float> Coordinates() {
  std::vector<float> at;
  for (int k = -16 * 2 * kWidth; k <= 16 * 3 * kWidth; ++k) at.push_back(static_cast<float>(k) / 16);
  for (int k = 0; k < 256; ++k) at.push_back(2 + static_cast<float>(k) / 256);
  return at;
}

void CheckAll(bool linear, bool normalized) {
  const std::vector<float> in_texels = Coordinates();
  std::vector<float> at = in_texels;
  if (normalized) {
    for (float& x : at) x /= static_cast<float>(kWidth);
  }
  for (size_t m = 0; m < kModes.size(); ++m) {
    std::vector<uint8_t> bytes;
    const auto got = Sample(Texture(&bytes, kModes[m], linear, normalized), at);
    int shown = 0;
    for (size_t k = 0; k < at.size() && shown < 3; ++k) {
      const auto expected =
          static_cast<float>(Expected(static_cast<double>(in_texels[k]), kModes[m], linear, normalized));
      if (got[k][0] == expected) continue;
      ++shown;
      ADD_FAILURE() << kModeNames[m] << " at " << in_texels[k] << ": got " << got[k][0] << ", expected " << expected;
    }
  }
}

TEST(Texture1d, Nearest) { CheckAll(false, false); }
TEST(Texture1d, Linear) { CheckAll(true, false); }
TEST(Texture1d, NearestNormalized) { CheckAll(false, true); }
TEST(Texture1d, LinearNormalized) { CheckAll(true, true); }

TEST(Texture1d, MissingComponents) {
  std::vector<uint8_t> bytes;
  EXPECT_EQ(Sample(Texture(&bytes, AddressMode::kClamp, false, false), {2.5f})[0][1], 1.0f);
}

// Coordinates that are no place at all are somewhere, and far ones at the ends.
TEST(Texture1d, FarAway) {
  std::vector<uint8_t> bytes;
  for (const bool linear : {false, true}) {
    const auto got = Sample(Texture(&bytes, AddressMode::kClamp, linear, false), {INFINITY, -INFINITY, 3e38f, NAN});
    EXPECT_EQ(got[0][0], kTexels.back());
    EXPECT_EQ(got[1][0], kTexels.front());
    EXPECT_EQ(got[2][0], kTexels.back());
    const auto border = Sample(Texture(&bytes, AddressMode::kBorder, linear, false), {1e9f, -1e30f});
    EXPECT_EQ(border[0][0], kBorder);
    EXPECT_EQ(border[1][0], kBorder);
  }
}

// Bytes read as fractions, between which is filtered.
TEST(Texture1d, BytesAreFiltered) {
  std::vector<uint8_t> bytes;
  exec::TextureDescriptor texture = Texture(&bytes, AddressMode::kClamp, true, false);
  bytes = {0, 255, 51, 102};
  texture.kind = exec::ChannelKind::kUnsigned;
  texture.channel_bits = 8;
  texture.levels[0].data = bytes.data();
  texture.levels[0].width = 4;
  const auto got = Sample(texture, {1.0f, 1.5f, 2.0f, 9.0f});
  EXPECT_EQ(got[0][0], 0.5f);
  EXPECT_EQ(got[1][0], 1.0f);
  EXPECT_FLOAT_EQ(got[2][0], 0.6f);
  EXPECT_FLOAT_EQ(got[3][0], 0.4f);
}

}  // namespace
}  // namespace hawser::conformance
