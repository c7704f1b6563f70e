// SPDX-License-Identifier: Apache-2.0
#include "bench/targets.h"

#include <gtest/gtest.h>

namespace hawser::bench {
namespace {

using wire::Transport;

constexpr RawTransport kRaw{20, 4.0, 100};

TEST(Targets, LaunchLatencyOverSharedMemoryIsNativePlusFive) {
  EXPECT_TRUE(TargetFor("launch_finish_p50", Transport::kShm, 30, 35, nullptr)->met);
  EXPECT_FALSE(TargetFor("launch_finish_p50", Transport::kShm, 30, 35.1, nullptr)->met);
}

TEST(Targets, LaunchLatencyOverSocketsIsRelativeToTheRawRoundTrip) {
  EXPECT_DOUBLE_EQ(TargetFor("read_small_p50", Transport::kTcp, 30, 50, &kRaw)->limit, 60);
  EXPECT_FALSE(TargetFor("read_small_p50", Transport::kTcp, 30, 50, nullptr).has_value());
}

TEST(Targets, BurstRateIsHigherIsBetter) {
  EXPECT_TRUE(TargetFor("launch_burst_rate", Transport::kShm, 400e3, 300e3, nullptr)->met);
  EXPECT_FALSE(TargetFor("launch_burst_rate", Transport::kShm, 400e3, 299e3, nullptr)->met);
  EXPECT_FALSE(TargetFor("launch_burst_rate", Transport::kTcp, 400e3, 299e3, nullptr)->met);
}

TEST(Targets, BandwidthOverTcpIsRelativeToTheRawSocket) {
  EXPECT_TRUE(TargetFor("h2d_pageable_256MiB", Transport::kTcp, 11, 3.4, &kRaw)->met);
  EXPECT_FALSE(TargetFor("h2d_pageable_256MiB", Transport::kTcp, 11, 3.3, &kRaw)->met);
  EXPECT_FALSE(TargetFor("h2d_pageable_1MiB", Transport::kTcp, 11, 3.3, &kRaw).has_value());
}

TEST(Targets, CachedBuildAllowsTwoRoundTripsOfSleepers) {
  const auto target = TargetFor("build_cached", Transport::kUnix, 30, 30.2, &kRaw);
  EXPECT_DOUBLE_EQ(target->limit, 30.2);
  EXPECT_TRUE(target->met);
}

TEST(Targets, ANeighbourMayStallOthersForAMillisecond) {
  EXPECT_TRUE(TargetFor("stall_killed", Transport::kShm, 300, 1300, nullptr)->met);
  EXPECT_FALSE(TargetFor("stall_wild", Transport::kTcp, 300, 1301, nullptr)->met);
}

TEST(Targets, RelativeOnesNeedANativeSide) {
  EXPECT_FALSE(TargetFor("step_p50", Transport::kShm, std::nullopt, 30, &kRaw).has_value());
  EXPECT_TRUE(TargetFor("step_waits", Transport::kShm, std::nullopt, 1, &kRaw)->met);
}

TEST(Targets, OtherRowsHaveNone) { EXPECT_FALSE(TargetFor("set_arg", Transport::kShm, 1, 1, &kRaw).has_value()); }

}  // namespace
}  // namespace hawser::bench
