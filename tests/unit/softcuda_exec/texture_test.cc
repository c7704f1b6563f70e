// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces through whole kernels.
#include <gtest/gtest.h>

#include "softcuda/exec/sampler.h"
#include "tests/unit/softcuda_exec/device.h"
#include "tests/unit/softcuda_exec/texture_table.h"

namespace hawser::exec {
namespace {

/// An 8 by 4 texture of one float: texel (x, y) is 10 y + x.
class TextureTest : public testing::Test {
 protected:
  TextureTest() {
    for (size_t i = 0; i < texels_.size(); ++i) texels_[i] = static_cast<float>(i / 8 * 10 + i % 8);
    texture_.levels.resize(1);
    texture_.levels[0].data = reinterpret_cast<uint8_t*>(texels_.data());
    texture_.levels[0].width = 8;
    texture_.levels[0].height = 4;
    texture_.levels[0].row_pitch = 32;
  }

  /// The first component that `instruction` puts into %f0 for coordinates %x, %y.
  float Run(const std::string& instruction, float x, float y) {
    Device device(0);
    const std::string text = std::string(".version 8.4\n.target sm_80\n.address_size 64\n") +
                             ".entry k(.param .u64 t, .param .u64 o, .param .f32 x, .param .f32 y) {\n"
                             ".reg .f32 %f<4>, %x, %y; .reg .b32 %i, %j; .reg .b64 %t, %o;\n"
                             "ld.param.u64 %t, [t]; ld.param.u64 %o, [o]; ld.param.f32 %x, [x]; ld.param.f32 %y, [y];\n"
                             "cvt.rzi.s32.f32 %i, %x; cvt.rzi.s32.f32 %j, %y;\n" +
                             instruction + "\nst.global.f32 [%o], %f0; ret; }\n";
    EXPECT_EQ(device.Load({text}), "");
    EXPECT_TRUE(device.program().unsupported().empty());
    MapTextureTable table;
    table.textures[77] = texture_;
    table.surfaces[77] = texture_;
    device.config.textures = &table;
    if (live_texels_ != 0) {
      const auto begin = reinterpret_cast<uint64_t>(texels_.data());
      EXPECT_TRUE(device.memory().Insert({begin, begin + 4 * live_texels_, false}));
    }
    const uint64_t out = device.Allocate(16);
    outcome_ = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(handle_).Add(out).Add(x).Add(y));
    return device.Download<float>(out, 1)[0];
  }
  float Tex2d(float x, float y) { return Run("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}];", x, y); }

  std::array<float, 32> texels_{};
  TextureDescriptor texture_;
  uint64_t handle_ = 77;
  uint64_t live_texels_ = 0;  ///< So many are allocated, as far as the device knows.
  Outcome outcome_;
};

TEST_F(TextureTest, NearestTakesTheTexelAroundThePoint) {
  EXPECT_EQ(Tex2d(3.0f, 2.0f), 23.0f);
  EXPECT_EQ(Tex2d(3.99f, 2.99f), 23.0f);
  EXPECT_EQ(Tex2d(-5.0f, 9.0f), 30.0f);  // Clamped.
}

TEST_F(TextureTest, LinearMixesFourTexels) {
  texture_.linear_filter = true;
  EXPECT_EQ(Tex2d(3.5f, 2.5f), 23.0f);  // A texel's centre.
  EXPECT_EQ(Tex2d(4.0f, 2.0f), (13.0f + 14.0f + 23.0f + 24.0f) / 4);
  EXPECT_EQ(Tex2d(3.75f, 2.5f), 23.25f);
  EXPECT_EQ(Tex2d(0.0f, 0.0f), 0.0f);
}

TEST_F(TextureTest, AddressModes) {
  texture_.address.fill(AddressMode::kBorder);
  texture_.border = {-1, 0, 0, 0};
  EXPECT_EQ(Tex2d(-1.0f, 1.0f), -1.0f);
  EXPECT_EQ(Tex2d(8.0f, 1.0f), -1.0f);
  // Wrap and mirror are for normalised coordinates; others are clamped.
  texture_.address = {AddressMode::kWrap, AddressMode::kMirror, AddressMode::kClamp};
  EXPECT_EQ(Tex2d(-1.0f, 6.0f), 30.0f);
  EXPECT_EQ(Tex2d(9.0f, -2.0f), 7.0f);
  texture_.normalized_coordinates = true;
  texture_.address.fill(AddressMode::kWrap);
  EXPECT_EQ(Tex2d(1.25f, -0.25f), 32.0f);
  texture_.address.fill(AddressMode::kMirror);
  EXPECT_EQ(Tex2d(1.0f / 16 + 1, 0.0f), 7.0f);
}

TEST_F(TextureTest, FetchTakesIntegers) {
  EXPECT_EQ(Run("tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%i, %j}];", 5, 1), 15.0f);
  texture_.linear_memory = true;
  EXPECT_EQ(Run("tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%i}];", 9, 0), 0.0f);
  EXPECT_EQ(Run("tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%i}];", 7, 0), 7.0f);
}

TEST_F(TextureTest, GatherTakesOneComponentOfFour) {
  EXPECT_EQ(Run("tld4.r.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}];", 4.0f, 2.0f), 23.0f);
  EXPECT_EQ(Run("tld4.r.2d.v4.f32.f32 {%f3,%f2,%f1,%f0}, [%t, {%x, %y}];", 4.0f, 2.0f), 13.0f);
}

TEST_F(TextureTest, IntegersReadAsFractions) {
  std::array<uint8_t, 4> bytes{0, 255, 51, 128};
  texture_.kind = ChannelKind::kUnsigned;
  texture_.channel_bits = 8;
  texture_.levels[0].data = bytes.data();
  texture_.levels[0].width = 4;
  texture_.levels[0].height = 1;
  EXPECT_EQ(Tex2d(1, 0), 1.0f);
  EXPECT_EQ(Tex2d(2, 0), 0.2f);
  texture_.read_as_integer = true;
  EXPECT_EQ(std::bit_cast<uint32_t>(Run("tex.2d.v4.u32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}];", 3, 0)), 128u);
}

TEST_F(TextureTest, Layers) {
  texture_.layers = 2;
  texture_.levels[0].height = 2;
  texture_.levels[0].layer_pitch = 64;
  EXPECT_EQ(Run("mov.b32 %j, 1; tex.a2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%j, %x, %y, %y}];", 3, 1), 33.0f);
}

TEST_F(TextureTest, MipmapLevels) {
  std::array<float, 2> small{100, 200};
  TextureLevel level;
  level.data = reinterpret_cast<uint8_t*>(small.data());
  level.width = 2;
  level.row_pitch = 8;
  texture_.levels.push_back(level);
  texture_.max_level = 1;
  texture_.normalized_coordinates = true;
  EXPECT_EQ(Run("mov.f32 %f3, 1.0; tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}], %f3;", 0.9f, 0), 200.0f);
  EXPECT_EQ(Run("mov.f32 %f3, 0.5; tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}], {%f3, %f3}, {%f3, %f3};",
                0.1f, 0),
            100.0f);
}

TEST_F(TextureTest, SurfacesAreWrittenAndRead) {
  EXPECT_EQ(Run("mov.b32 %i, 20; mov.b32 %j, 2; sust.b.2d.b32.trap [%t, {%i, %j}], {%x}; suld.b.2d.b32.trap {%f0}, "
                "[%t, {%i, %j}];",
                1234, 0),
            1234.0f);
  EXPECT_EQ(texels_[2 * 8 + 5], 1234.0f);
}

TEST_F(TextureTest, OutsideASurface) {
  EXPECT_EQ(Run("suld.b.1d.b32.zero {%f0}, [%t, {%i}];", 100, 0), 0.0f);
  EXPECT_EQ(Run("suld.b.1d.b32.clamp {%f0}, [%t, {%i}];", 100, 0), 7.0f);
  Run("suld.b.1d.b32.trap {%f0}, [%t, {%i}];", 100, 0);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
}

TEST_F(TextureTest, UnknownHandlesFault) {
  handle_ = 78;
  Tex2d(0, 0);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
}

TEST_F(TextureTest, MemoryThatIsNotAllocatedFaults) {
  texture_.extent = sizeof(texels_);
  Tex2d(3, 2);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
  Run("tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {%i, %j}];", 3, 2);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
  Run("tld4.r.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%x, %y}];", 3, 2);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
  live_texels_ = 2 * 8 + 3;  // Half of the texture: what lies in it is read, the rest is not.
  EXPECT_EQ(Tex2d(2, 2), 22.0f);
  EXPECT_TRUE(outcome_.ok());
  Tex2d(3, 2);
  EXPECT_EQ(outcome_.fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(outcome_.fault.address, reinterpret_cast<uint64_t>(&texels_[2 * 8 + 3]));
  EXPECT_EQ(outcome_.fault.size, 4u);
  live_texels_ = texels_.size();
  EXPECT_EQ(Tex2d(7, 3), 37.0f);
  EXPECT_TRUE(outcome_.ok());
}

TEST_F(TextureTest, Queries) {
  EXPECT_EQ(std::bit_cast<uint32_t>(Run("txq.width.b32 %f0, [%t];", 0, 0)), 8u);
  EXPECT_EQ(std::bit_cast<uint32_t>(Run("suq.height.b32 %f0, [%t];", 0, 0)), 4u);
}

}  // namespace
}  // namespace hawser::exec
