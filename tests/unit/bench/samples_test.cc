// SPDX-License-Identifier: Apache-2.0
#include "bench/samples.h"

#include <gtest/gtest.h>

namespace hawser::bench {
namespace {

TEST(Percentile, OfNothingIsZero) { EXPECT_EQ(Percentile({}, 0.5), 0); }

TEST(Percentile, OfOneIsThatOne) {
  EXPECT_EQ(Percentile({7}, 0), 7);
  EXPECT_EQ(Percentile({7}, 0.99), 7);
}

TEST(Percentile, DoesNotNeedSortedSamples) { EXPECT_EQ(Median({9, 1, 5}), 5); }

TEST(Percentile, InterpolatesBetweenNeighbours) {
  EXPECT_EQ(Median({1, 2, 3, 10}), 2.5);
  EXPECT_DOUBLE_EQ(Percentile({0, 10}, 0.99), 9.9);
}

TEST(Percentile, KeepsToItsRange) {
  EXPECT_EQ(Percentile({1, 2, 3}, -1), 1);
  EXPECT_EQ(Percentile({1, 2, 3}, 2), 3);
}

}  // namespace
}  // namespace hawser::bench
