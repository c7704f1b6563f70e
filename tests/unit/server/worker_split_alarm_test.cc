// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/worker/split_alarm.h"

namespace hawser::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr uint64_t kShould = 1'000'000;

class SplitAlarmsTest : public testing::Test {
 protected:
  static scheduler::KernelKey Key(const std::string& name) { return scheduler::KernelKey::Of("device", "text", name); }
  void End(uint64_t took, uint64_t should = kShould, const std::string& name = "k") {
    alarms_.OnEnd(Key(name), name, should, took);
  }
  bool IsRaised(const std::string& name = "k") const { return alarms_.IsRaised(Key(name)); }
  bool IsTrusted(const std::string& name = "k") const { return alarms_.IsTrusted(Key(name)); }

  std::vector<std::string> log_;
  std::atomic<uint64_t> raised_{0};
  SplitAlarms alarms_{
      "HAWSER_X_SPLIT",
      [this](std::string_view level, const std::string& text) { log_.push_back(std::string(level) + " " + text); },
      &raised_};
};

TEST_F(SplitAlarmsTest, PartsThatTakeFarTooLongSeveralTimesInARow) {
  for (int i = 0; i < 2; ++i) {
    End(21 * kShould);
    EXPECT_FALSE(IsRaised());
  }
  End(21 * kShould);
  EXPECT_TRUE(IsRaised());
  EXPECT_FALSE(IsRaised("another"));
  EXPECT_EQ(raised_, 1u);
  ASSERT_THAT(log_, SizeIs(1));
  EXPECT_THAT(log_[0], AllOf(HasSubstr("warning kernel 'k' is split no more: its parts took more than twenty times"),
                             HasSubstr("runs whole from here on"), HasSubstr("HAWSER_X_SPLIT=off")));
}

TEST_F(SplitAlarmsTest, IsToldOnceAndStays) {
  for (int i = 0; i < 10; ++i) End(100 * kShould);
  alarms_.OnStuck(Key("k"), "k");
  End(kShould);
  EXPECT_TRUE(IsRaised());
  EXPECT_THAT(log_, SizeIs(1));
  EXPECT_EQ(raised_, 1u);
}

TEST_F(SplitAlarmsTest, APartInTimeBeginsTheCountAnew) {
  for (int i = 0; i < 10; ++i) {
    End(100 * kShould);
    End(100 * kShould);
    End(20 * kShould);  // Just in time.
  }
  EXPECT_FALSE(IsRaised());
  EXPECT_THAT(log_, SizeIs(0));
}

TEST_F(SplitAlarmsTest, WhatNobodyKnowsRaisesNothing) {
  for (int i = 0; i < 10; ++i) {
    End(1000 * kShould, 0, "never measured");
    End(0, kShould, "failed");
    End(20 * SplitAlarms::kRoughNs, 1, "too short to be estimated");
  }
  EXPECT_EQ(raised_, 0u);
  for (int i = 0; i < 3; ++i) End(21 * SplitAlarms::kRoughNs, 1);
  EXPECT_TRUE(IsRaised());
}

TEST_F(SplitAlarmsTest, ItIsTrustedWhenAPartHasEndedInTime) {
  EXPECT_FALSE(IsTrusted());
  End(0);
  EXPECT_FALSE(IsTrusted()) << "it failed";
  End(21 * kShould);
  EXPECT_FALSE(IsTrusted());
  End(kShould);
  EXPECT_TRUE(IsTrusted());
  End(kShould, 0, "first of an unknown kernel");
  EXPECT_TRUE(IsTrusted("first of an unknown kernel"));
  EXPECT_FALSE(IsTrusted("another"));
}

TEST_F(SplitAlarmsTest, AStuckPartIsEnough) {
  alarms_.OnStuck(Key("k"), "k\nsecond line");
  EXPECT_TRUE(IsRaised());
  EXPECT_EQ(raised_, 1u);
  ASSERT_THAT(log_, SizeIs(1));
  EXPECT_THAT(log_[0], HasSubstr("a part of it did not end"));
  EXPECT_EQ(log_[0].find('\n'), std::string::npos);
}

TEST_F(SplitAlarmsTest, AGuestFillsNeitherMemoryNorLog) {
  alarms_.OnStuck(Key("k"), "k");
  for (size_t i = 0; i < SplitAlarms::kMostKernels + 10; ++i) End(kShould, kShould, std::to_string(i));
  EXPECT_TRUE(IsRaised()) << "kernels that behave make room first";
  for (size_t i = 0; i < SplitAlarms::kMostKernels + 10; ++i) {
    const std::string name = std::to_string(i);
    alarms_.OnStuck(Key(name), name);
  }
  EXPECT_EQ(log_.size(), SplitAlarms::kMostTold);
  EXPECT_EQ(raised_, SplitAlarms::kMostKernels + 11);
}

class PartWatchTest : public testing::Test {
 protected:
  PartWatch::Clock::time_point now_{};
};

TEST_F(PartWatchTest, PatienceIsManyTimesTheEstimateAndNeverShort) {
  EXPECT_EQ(PartWatch(1).patience(), seconds(1));
  EXPECT_EQ(PartWatch(200'000'000).patience(), seconds(4));
  EXPECT_EQ(PartWatch(0).patience(), seconds(2)) << "nothing is known";
  EXPECT_EQ(PartWatch(UINT64_MAX).patience(), std::chrono::hours(1));
}

TEST_F(PartWatchTest, ItCountsFromWhenTheDeviceIsSeenAtIt) {
  PartWatch watch(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(watch.Look(/*runs=*/false, now_)) << "behind others it may wait for ever";
    EXPECT_EQ(watch.NextLook(now_), now_ + PartWatch::kLook);
    now_ += seconds(1);
  }
  EXPECT_FALSE(watch.Look(/*runs=*/true, now_));
  EXPECT_EQ(watch.NextLook(now_), now_ + seconds(1));
  EXPECT_FALSE(watch.Look(true, now_ + milliseconds(999)));
  EXPECT_EQ(watch.NextLook(now_ + milliseconds(999)), now_ + seconds(1));
  EXPECT_TRUE(watch.Look(true, now_ + seconds(1)));
}

TEST_F(PartWatchTest, WhatHasEndedIsNotStuck) {
  PartWatch watch(1);
  EXPECT_FALSE(watch.Look(true, now_));
  EXPECT_FALSE(watch.Look(false, now_ + seconds(10)));
}

}  // namespace
}  // namespace hawser::server
