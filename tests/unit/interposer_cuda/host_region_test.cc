// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/host_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace hawser::cu {
namespace {

/// 3 x 2 x 2 bytes in rows of 5, slices of 4 rows.
struct Volume {
  Volume() : bytes(2 * 4 * 5) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    region = {bytes.data(), 3, 2, 2, 5, 20};
  }
  std::vector<std::byte> bytes;
  HostRegion region;
};

std::vector<std::byte> Expected() {
  std::vector<std::byte> packed;
  for (const int row : {0, 5, 20, 25}) {
    for (int column = 0; column < 3; ++column) packed.push_back(static_cast<std::byte>(row + column));
  }
  return packed;
}

TEST(HostRegionTest, KnowsWhenItIsOnePiece) {
  std::byte byte{};
  EXPECT_TRUE(HostRegion::Linear(&byte, 7).contiguous());
  EXPECT_TRUE((HostRegion{&byte, 4, 3, 2, 4, 12}).contiguous());
  EXPECT_FALSE((HostRegion{&byte, 4, 3, 2, 4, 16}).contiguous());
  EXPECT_FALSE((HostRegion{&byte, 4, 3, 1, 5, 15}).contiguous());
  EXPECT_TRUE((HostRegion{&byte, 4, 1, 1, 5, 5}).contiguous());
}

TEST(HostRegionTest, GathersAnyPartOfIt) {
  Volume volume;
  const std::vector<std::byte> expected = Expected();
  ASSERT_EQ(volume.region.bytes(), expected.size());
  for (size_t begin = 0; begin < expected.size(); ++begin) {
    for (size_t size = 1; begin + size <= expected.size(); ++size) {
      std::vector<std::byte> got(size);
      volume.region.Gather(begin, size, got.data());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + static_cast<ptrdiff_t>(begin)))
          << begin << "+" << size;
    }
  }
}

TEST(HostRegionTest, ScattersWithoutTouchingWhatLiesBetween) {
  Volume volume;
  const std::vector<std::byte> before = volume.bytes;
  const std::vector<std::byte> data(volume.region.bytes(), std::byte{0xff});
  volume.region.Scatter(0, 5, data.data());
  volume.region.Scatter(5, data.size() - 5, data.data() + 5);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool inside = i % 5 < 3 && i / 5 % 4 < 2;
    EXPECT_EQ(volume.bytes[i], inside ? std::byte{0xff} : before[i]) << i;
  }
}

}  // namespace
}  // namespace hawser::cu
