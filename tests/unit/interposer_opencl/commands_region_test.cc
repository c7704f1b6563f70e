// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "interposer/opencl/region.h"

namespace hawser::ocl {
namespace {

std::vector<std::byte> Numbers(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(RegionTest, FlatIsContiguous) {
  EXPECT_TRUE(Region::Flat(10).contiguous());
  EXPECT_EQ(Region::Flat(10).bytes(), 10u);
  EXPECT_FALSE((Region{4, 2, 1, 5, 10}).contiguous());
  EXPECT_TRUE((Region{4, 1, 1, 99, 99}).contiguous());
  EXPECT_TRUE((Region{4, 3, 2, 4, 12}).contiguous());
  EXPECT_FALSE((Region{4, 3, 2, 4, 16}).contiguous());
}

TEST(RegionTest, GathersRowsAndSlices) {
  const Region region{3, 2, 2, 5, 15};
  const auto memory = Numbers(64);
  std::vector<std::byte> packed(region.bytes());
  Gather(memory.data(), region, 0, packed.size(), packed.data());
  size_t at = 0;
  for (size_t slice = 0; slice < 2; ++slice) {
    for (size_t row = 0; row < 2; ++row) {
      for (size_t column = 0; column < 3; ++column) {
        EXPECT_EQ(packed[at++], memory[slice * 15 + row * 5 + column]);
      }
    }
  }
}

TEST(RegionTest, EveryChunkingGathersAndScattersTheSame) {
  const Region region{7, 3, 4, 11, 44};
  const auto memory = Numbers(44 * 4);
  std::vector<std::byte> whole(region.bytes());
  Gather(memory.data(), region, 0, whole.size(), whole.data());
  for (size_t chunk = 1; chunk <= region.bytes(); ++chunk) {
    std::vector<std::byte> pieces(region.bytes());
    std::vector<std::byte> back(memory.size(), std::byte{0xee});
    for (size_t at = 0; at < region.bytes(); at += chunk) {
      const size_t size = std::min(chunk, region.bytes() - at);
      Gather(memory.data(), region, at, size, pieces.data() + at);
      Scatter(back.data(), region, at, size, whole.data() + at);
    }
    ASSERT_EQ(pieces, whole) << chunk;
    for (size_t i = 0; i < memory.size(); ++i) {
      const bool inside = i % 44 / 11 < 3 && i % 11 < 7;
      ASSERT_EQ(back[i], inside ? memory[i] : std::byte{0xee}) << i << " in chunks of " << chunk;
    }
  }
}

TEST(RegionTest, CopiesBetweenPitches) {
  const Region from{4, 3, 2, 6, 20};
  const Region to{4, 3, 2, 5, 17};
  const auto memory = Numbers(64);
  std::vector<std::byte> target(64, std::byte{0});
  CopyRegion(target.data(), to, memory.data(), from);
  EXPECT_EQ(target[17 + 2 * 5 + 3], memory[20 + 2 * 6 + 3]);
  EXPECT_EQ(target[4], std::byte{0});
}

TEST(RegionTest, ResolvesPitches) {
  const size_t region[3] = {8, 4, 2};
  size_t row = 0;
  size_t slice = 0;
  EXPECT_TRUE(ResolvePitches(region, &row, &slice));
  EXPECT_EQ(row, 8u);
  EXPECT_EQ(slice, 32u);
  row = 7;
  EXPECT_FALSE(ResolvePitches(region, &row, &slice));
  row = 10;
  slice = 39;
  EXPECT_FALSE(ResolvePitches(region, &row, &slice));  // Less than the rows.
  slice = 45;
  EXPECT_FALSE(ResolvePitches(region, &row, &slice));  // No multiple of the row pitch.
  slice = 50;
  EXPECT_TRUE(ResolvePitches(region, &row, &slice));
  const size_t empty[3] = {8, 0, 1};
  EXPECT_FALSE(ResolvePitches(empty, &row, &slice));
}

TEST(RegionTest, FitsToTheLastByte) {
  const size_t origin[3] = {2, 1, 1};
  const size_t region[3] = {4, 2, 1};
  // Last byte: 5 + 2 * 8 + 1 * 40 = 61.
  EXPECT_TRUE(RectFits(62, origin, region, 8, 40));
  EXPECT_FALSE(RectFits(61, origin, region, 8, 40));
  const size_t far[3] = {0, 0, SIZE_MAX - 1};
  EXPECT_FALSE(RectFits(1 << 20, far, region, 8, 40));
}

TEST(RegionTest, OverlapAgreesWithCounting) {
  const size_t region[3] = {3, 2, 2};
  const size_t row = 5;
  const size_t slice = 15;
  const auto bytes = [&](const size_t* origin) {
    std::set<size_t> set;
    for (size_t z = 0; z < region[2]; ++z) {
      for (size_t y = 0; y < region[1]; ++y) {
        for (size_t x = 0; x < region[0]; ++x) {
          set.insert((origin[2] + z) * slice + (origin[1] + y) * row + origin[0] + x);
        }
      }
    }
    return set;
  };
  const size_t a[3] = {4, 1, 1};
  for (size_t z = 0; z < 4; ++z) {
    for (size_t y = 0; y < 4; ++y) {
      for (size_t x = 0; x < 9; ++x) {
        const size_t b[3] = {x, y, z};
        const auto first = bytes(a);
        bool shared = false;
        for (const size_t byte : bytes(b)) shared = shared || first.count(byte) != 0;
        EXPECT_EQ(RectsOverlap(a, b, region, row, slice), shared) << x << ' ' << y << ' ' << z;
      }
    }
  }
}

}  // namespace
}  // namespace hawser::ocl
