// SPDX-License-Identifier: Apache-2.0
#include "memmgr/extent_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hawser::memmgr {
namespace {

TEST(ExtentAllocator, TakesTheSmallestHoleThatIsLargeEnough) {
  ExtentAllocator extents(1000, 1);
  ASSERT_EQ(extents.Allocate(100), 0u);
  ASSERT_EQ(extents.Allocate(50), 100u);
  ASSERT_EQ(extents.Allocate(10), 150u);
  ASSERT_EQ(extents.Allocate(20), 160u);
  ASSERT_EQ(extents.Allocate(5), 180u);
  ASSERT_TRUE(extents.Free(0));
  ASSERT_TRUE(extents.Free(160));
  EXPECT_EQ(extents.Allocate(15), 160u) << "of the holes of 100, 20 and 815";
  EXPECT_EQ(extents.largest_free(), 815u);
}

TEST(ExtentAllocator, RoundsToItsUnit) {
  ExtentAllocator extents(4096, 512);
  EXPECT_EQ(extents.Allocate(1), 0u);
  EXPECT_EQ(extents.Allocate(513), 512u);
  EXPECT_EQ(extents.Allocate(0), 1536u);
  EXPECT_EQ(extents.SizeAt(512), 1024u);
  EXPECT_EQ(extents.SizeAt(513), 0u);
  EXPECT_EQ(extents.Rounded(UINT64_MAX), 0u);
  EXPECT_EQ(extents.Allocate(UINT64_MAX), std::nullopt);
}

TEST(ExtentAllocator, GivesBackOnlyWhatIsTaken) {
  ExtentAllocator extents(100, 1);
  ASSERT_EQ(extents.Allocate(10), 0u);
  EXPECT_FALSE(extents.Free(1));
  EXPECT_TRUE(extents.Free(0));
  EXPECT_FALSE(extents.Free(0));
  EXPECT_EQ(extents.Allocate(100), 0u) << "the hole is whole again";
  EXPECT_EQ(extents.Allocate(1), std::nullopt);
}

TEST(ExtentAllocator, NeverGivesAByteTwiceAndLosesNone) {
  constexpr uint64_t kSize = 1 << 16;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    ExtentAllocator extents(kSize, 16);
    std::map<uint64_t, uint64_t> taken;
    uint64_t used = 0;
    for (int step = 0; step < 4000; ++step) {
      if (random() % 3 != 0) {
        const uint64_t size = 1 + random() % 3000;
        const auto begin = extents.Allocate(size);
        if (!begin) {
          EXPECT_LT(extents.largest_free(), extents.Rounded(size));
          continue;
        }
        const uint64_t end = *begin + extents.Rounded(size);
        ASSERT_LE(end, kSize);
        const auto next = taken.lower_bound(*begin);
        ASSERT_TRUE(next == taken.end() || next->first >= end);
        ASSERT_TRUE(next == taken.begin() || std::prev(next)->second <= *begin);
        taken[*begin] = end;
        used += end - *begin;
      } else if (!taken.empty()) {
        const auto victim = std::next(taken.begin(), static_cast<int64_t>(random() % taken.size()));
        ASSERT_TRUE(extents.Free(victim->first));
        used -= victim->second - victim->first;
        taken.erase(victim);
      }
    }
    EXPECT_LE(used, kSize);
    for (const auto& each : taken) ASSERT_TRUE(extents.Free(each.first));
    EXPECT_TRUE(extents.empty());
    EXPECT_EQ(extents.largest_free(), kSize);
  }
}

}  // namespace
}  // namespace hawser::memmgr
