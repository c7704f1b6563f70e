// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/slice_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "scheduler/core/thread_group.h"
#include "server/backends/opencl/slicing/carry.h"

namespace hawser::server::slicing {
namespace {

// Paper 004's table; RX 570.
TEST(FirstRound, PaperTable) {
  const auto row = [](double beta) {
    std::vector<uint64_t> sizes;
    for (uint32_t n = 1; n <= 8; ++n) sizes.push_back(scheduler::FirstGroup(2048, beta, n));
    return sizes;
  };
  EXPECT_EQ(row(1), (std::vector<uint64_t>{2048, 1024, 640, 512, 384, 320, 256, 256}));
  EXPECT_EQ(row(4), (std::vector<uint64_t>{8192, 4096, 2688, 2048, 1600, 1344, 1152, 1024}));
  EXPECT_EQ(row(10), (std::vector<uint64_t>{20480, 10240, 6784, 5120, 4096, 3392, 2880, 2560}));
  EXPECT_EQ(scheduler::FirstGroup(2048, 1, 33), 0u);
  EXPECT_EQ(scheduler::FirstGroup(2048, -1, 1), 0u);
  EXPECT_EQ(scheduler::FirstGroup(2048, 1, 0), 2048u);
}

// 0 is taken for one work-group, never for nothing.
TEST(SlicePlan, AtLeastOneGroup) {
  LaunchShape shape;
  shape.global[0] = 1024;
  shape.local[0] = 256;
  auto plan = SlicePlan::Plain(shape);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->Next(0).items, 256u);
  EXPECT_EQ(plan->Next(UINT64_MAX).items, 768u);
  EXPECT_TRUE(plan->done());
}

TEST(SlicePlan, WholeWaves) {
  LaunchShape shape;
  shape.global[0] = 48 * 100;
  shape.local[0] = 48;  // Four of them are a multiple of 64.
  auto plan = SlicePlan::Plain(shape);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->Next(1).items, 192u);
  EXPECT_EQ(plan->NextItems(500), 576u);
  EXPECT_EQ(plan->Next(500).items, 576u);
  shape.local[0] = 0;
  shape.global[0] = 1000;
  plan = SlicePlan::Plain(shape);
  EXPECT_EQ(plan->Next(200).items, 192u);
}

// Tenants in turns get as much of the device as their parts are long: only the last one may be another size.
TEST(SlicePlan, PartsAreAsLongAsAskedFor) {
  LaunchShape shape;
  shape.dimensions = 2;
  shape.global[0] = 320;
  shape.local[0] = 64;
  shape.global[1] = 280;
  shape.local[1] = 1;
  auto plan = SlicePlan::Plain(shape);
  ASSERT_TRUE(plan);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(plan->Next(320 * 17 - 100).items, 320u * 17) << i;
  EXPECT_EQ(plan->Next(320 * 17 - 100).items, 320u * 8);
  EXPECT_TRUE(plan->done());

  // Rows of a quarter of a part: not one more, though that would be only a quarter too long.
  shape.global[1] = 70;
  shape.global[0] = 1280;
  plan = SlicePlan::Plain(shape);
  EXPECT_EQ(plan->Next(1280 * 17 / 4).items, 1280u * 4);
  EXPECT_EQ(plan->Next(1280 * 15 / 4).items, 1280u * 4);
  // Unless it is the rest, or a row.
  EXPECT_EQ(plan->Next(1280 * 50).items, 1280u * 62);
  plan = SlicePlan::Plain(shape);
  EXPECT_EQ(plan->Next(1024).items, 1280u);
}

TEST(SlicePlan, RowsThenPlanes) {
  LaunchShape shape;
  shape.dimensions = 3;
  for (uint32_t d = 0; d < 3; ++d) {
    shape.global[d] = 64;
    shape.local[d] = 4;
    shape.offset[d] = 10 * (d + 1);
  }
  auto plan = SlicePlan::Plain(shape);
  SlicePart part = plan->Next(64 * 64 * 8);
  EXPECT_EQ(part.items, 64u * 64 * 8);
  EXPECT_EQ(part.global[2], 8u);
  part = plan->Next(64);  // One group of the third plane of groups.
  EXPECT_EQ(part.items, 64u);
  EXPECT_EQ(part.offset[2], 38u);
  part = plan->Next(64 * 64 * 64);  // The rest of that row first.
  EXPECT_EQ(part.items, 60u * 4 * 4);
  part = plan->Next(64 * 64 * 64);  // Then the rest of the plane.
  EXPECT_EQ(part.items, 64u * 60 * 4);
}

TEST(SlicePlan, WhatCannotBeDivided) {
  LaunchShape shape;
  shape.global[0] = 0;
  EXPECT_FALSE(SlicePlan::Plain(shape));
  shape.dimensions = 4;
  EXPECT_FALSE(SlicePlan::Plain(shape));
  shape.dimensions = 3;
  shape.global[0] = shape.global[1] = uint64_t{1} << 33;
  EXPECT_FALSE(SlicePlan::Plain(shape));
  shape.dimensions = 1;
  shape.offset[0] = UINT64_MAX;
  EXPECT_FALSE(SlicePlan::Plain(shape));
}

TEST(CarriedPlan, ChoosesAnAxis) {
  LaunchShape shape;
  shape.dimensions = 2;
  shape.global[0] = 1024;
  shape.global[1] = 64;
  shape.local[0] = shape.local[1] = 8;
  EXPECT_EQ(SlicePlan::Carried(shape, 8192)->axis(), 1u);
  EXPECT_EQ(SlicePlan::Carried(shape, 100)->axis(), 0u);  // Rows are too large; columns are smaller.
  shape.global[1] = 8;
  EXPECT_EQ(SlicePlan::Carried(shape, 100000)->axis(), 0u);
  shape.global[0] = 8;
  EXPECT_FALSE(SlicePlan::Carried(shape, 64));  // One group.
  shape.global[0] = 1020;
  EXPECT_FALSE(SlicePlan::Carried(shape, 64));  // Ragged.
  shape.global[0] = 1024;
  shape.dimensions = 1;
  shape.local[0] = 0;
  EXPECT_FALSE(SlicePlan::Carried(shape, 64));
  shape.local[0] = 1;
  shape.global[0] = MostCarriedGroups(1) + 1;
  EXPECT_FALSE(SlicePlan::Carried(shape, 64));
}

TEST(CarriedPlan, ThreeDimensionsAreAsDeepAsTheWordHas) {
  LaunchShape shape;
  shape.dimensions = 3;
  shape.global[0] = shape.global[1] = 16;
  shape.global[2] = 8;
  shape.local[0] = shape.local[1] = shape.local[2] = 4;
  EXPECT_EQ(SlicePlan::Carried(shape, 1024)->axis(), 2u);
  EXPECT_EQ(SlicePlan::Carried(shape, 512)->axis(), 1u) << "half of it is too much; a quarter is not";
  shape.offset[2] = kMostCarriedDepth - 8;
  EXPECT_TRUE(SlicePlan::Carried(shape, 1024));
  shape.offset[2] += 1;
  EXPECT_FALSE(SlicePlan::Carried(shape, 1024));
  shape.offset[2] = 0;
  shape.local[0] = shape.global[1] = shape.local[1] = shape.global[2] = shape.local[2] = 1;
  shape.global[0] = MostCarriedGroups(3) + 1;
  EXPECT_FALSE(SlicePlan::Carried(shape, 1024));
}

TEST(CarryWord, BitsDoNotMeet) {
  // on, dimensions - 1, axis, groups, first group
  EXPECT_EQ(CarryWord(1, 2, MostCarriedGroups(2), MostCarriedGroups(2)),
            uint64_t{1} << 58 | uint64_t{1} << 56 | uint64_t{1} << 54 | ((uint64_t{1} << 54) - 1));
  EXPECT_EQ(CarryWord(2, 3, MostCarriedGroups(3), MostCarriedGroups(3)),
            uint64_t{1} << 58 | uint64_t{2} << 56 | uint64_t{2} << 54 | ((uint64_t{1} << 54) - kMostCarriedDepth))
      << "the low bits are the launch's own ids";
  EXPECT_EQ(CarryWord(0, 1, 0, 0), kFirstCarryWord);
}

// Random launches: every work-group once, whole, in ascending order; sizes as promised.
TEST(SlicePlan, CoversExactly) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 3000; ++round) {
    LaunchShape shape;
    shape.dimensions = static_cast<uint32_t>(1 + below(3));
    const bool carried = below(2) == 0;
    const bool no_local = !carried && below(4) == 0;
    for (uint32_t d = 0; d < shape.dimensions; ++d) {
      shape.local[d] = 1 + below(9);
      shape.global[d] = shape.local[d] * (1 + below(12));
      if (!carried) shape.global[d] = std::max<uint64_t>(1, shape.global[d] - below(shape.local[d]));
      if (no_local) shape.local[d] = 0;
      shape.offset[d] = below(2) * below(1000);
    }
    auto plan = carried ? SlicePlan::Carried(shape, below(500)) : SlicePlan::Plain(shape);
    if (!plan) continue;
    std::vector<int> seen(plan->total(), 0);
    uint64_t previous = 0;
    bool first = true;
    const auto in_place = [&](uint64_t x, uint64_t y, uint64_t z) {
      return (z * shape.global[1] + y) * shape.global[0] + x;
    };
    while (!plan->done()) {
      const uint64_t wanted = below(3) == 0 ? below(2000) : below(300);
      const SlicePart part = plan->Next(wanted);
      ASSERT_NE(part.items, 0u);
      ASSERT_EQ(part.items, part.global[0] * part.global[1] * part.global[2]);
      for (uint32_t d = 0; d < shape.dimensions; ++d) {
        ASSERT_GE(part.offset[d], shape.offset[d]);
        const uint64_t begin = part.offset[d] - shape.offset[d], end = begin + part.global[d];
        ASSERT_LE(end, shape.global[d]);
        if (no_local) continue;
        ASSERT_EQ(begin % shape.local[d], 0u);
        ASSERT_TRUE(end % shape.local[d] == 0 || end == shape.global[d]);
      }
      const uint64_t start =
          in_place(part.offset[0] - shape.offset[0], shape.dimensions > 1 ? part.offset[1] - shape.offset[1] : 0,
                   shape.dimensions > 2 ? part.offset[2] - shape.offset[2] : 0);
      ASSERT_TRUE(first || start > previous);
      previous = start;
      first = false;
      for (uint64_t z = 0; z < part.global[2]; ++z) {
        for (uint64_t y = 0; y < part.global[1]; ++y) {
          for (uint64_t x = 0; x < part.global[0]; ++x) ++seen[start + in_place(x, y, z)];
        }
      }
      if (carried) {
        ASSERT_EQ(part.first_group * shape.local[plan->axis()], part.offset[plan->axis()] - shape.offset[plan->axis()]);
      }
    }
    ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; })) << "round " << round;
  }
}

}  // namespace
}  // namespace hawser::server::slicing
