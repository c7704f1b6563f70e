// SPDX-License-Identifier: Apache-2.0
// What is believed of what workers say that they used, and for how long they may keep the device.
#include "scheduler/core/used_time.h"

#include <gtest/gtest.h>

#include "scheduler/core/kept_time.h"

namespace hawser::scheduler {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(UsedTime, WhatPassedIsBelieved) {
  UsedTime time;
  time.Begin(false);
  time.Pass(5 * kMs);
  EXPECT_EQ(time.Believe(5 * kMs, 0), 5 * kMs);
  EXPECT_EQ(time.Believe(5 * kMs, 0), 0u);  // Said already.
  EXPECT_EQ(time.Believe(4 * kMs, 0), 0u);  // Nor does it fall.
}

TEST(UsedTime, NotMuchMoreThanPassed) {
  UsedTime time;
  time.Begin(false);
  time.Pass(5 * kMs);
  EXPECT_EQ(time.Believe(UINT64_MAX, 0), 5 * kMs + UsedTime::kAheadNs);
  EXPECT_EQ(time.Believe(UINT64_MAX, 0), 0u);
  // What did not pass in this grant does not pass in the next.
  UsedTime other;
  other.Pass(1000 * kMs);
  other.Begin(false);
  EXPECT_EQ(other.Believe(500 * kMs, 0), UsedTime::kAheadNs);
}

TEST(UsedTime, WhatLeavesEarlyIsSaidBeforeItHasPassed) {
  UsedTime time;
  time.Begin(false);
  time.Pass(kMs);
  EXPECT_EQ(time.Believe(50 * kMs, 50 * kMs), 50 * kMs);
  // And what it took longer is said later, also if the next grant has begun.
  time.Pass(70 * kMs);
  time.Begin(true);
  EXPECT_EQ(time.Believe(70 * kMs, 0), 20 * kMs);
}

TEST(UsedTime, HalfOfWhatWasKeptIsChargedInTheLongRun) {
  UsedTime silent;
  uint64_t charged = 0;
  for (int i = 0; i < 1000; ++i) {
    silent.Begin(false);
    silent.Pass(2 * kMs);
    silent.Keep(2 * kMs);
    charged += silent.Believe(0, 0) + silent.Assess();
  }
  EXPECT_EQ(charged, (2000 * kMs - UsedTime::kMostLossNs) / 2);
}

TEST(UsedTime, WhatHandingOverTakesIsNotCharged) {
  UsedTime busy;
  uint64_t said = 0;
  for (int i = 0; i < 1000; ++i) {
    // On a machine with much to do as much is lost as is used, and now and then ten times that.
    const uint64_t passed = i % 100 == 0 ? 12 * kMs : 2 * kMs;
    busy.Begin(false);
    busy.Pass(passed);
    busy.Keep(passed);
    said += kMs + kMs / 5;
    EXPECT_EQ(busy.Believe(said, 0), kMs + kMs / 5);
    EXPECT_EQ(busy.Assess(), 0u) << i;
  }
}

TEST(UsedTime, WhatIsSaidLateIsNotChargedTwice) {
  UsedTime time;
  time.Begin(false);
  time.Pass(120 * kMs);
  time.Keep(120 * kMs);
  EXPECT_EQ(time.Assess(), 50 * kMs);
  EXPECT_EQ(time.Believe(110 * kMs, 0), 60 * kMs);
  // But only of that grant.
  time.Begin(false);
  time.Pass(50 * kMs);
  EXPECT_EQ(time.Believe(160 * kMs, 0), 50 * kMs);
}

TEST(KeptTime, WhoSaysNothingHasOnePiece) {
  KeptTime kept;
  kept.Begin(0);
  kept.Pass(60);
  EXPECT_EQ(kept.LeftNs(100), 40u);
  kept.Used(1);
  EXPECT_EQ(kept.LeftNs(100), 44u);
  kept.Pass(44);
  EXPECT_EQ(kept.LeftNs(100), 0u);
}

TEST(KeptTime, UseAnswersForWhatHasPassedAndNotForMore) {
  KeptTime kept;
  kept.Pass(90);
  kept.Used(UINT64_MAX);
  EXPECT_EQ(kept.LeftNs(100), 100u);
  kept.Pass(100);
  EXPECT_EQ(kept.LeftNs(100), 0u);
}

TEST(KeptTime, InTheEndNothingAnswers) {
  KeptTime kept;
  uint64_t passed = 0;
  while (kept.LeftNs(100) != 0) {
    kept.Pass(10);
    kept.Used(10);
    passed += 10;
  }
  EXPECT_EQ(passed, 100 * KeptTime::kMostPieces);
  kept.Again();
  EXPECT_EQ(kept.LeftNs(100), 100u);
  // A slice that is longer than all of that may be used, with its gaps.
  kept.Begin(1000);
  for (int i = 0; i < 400; ++i) {
    kept.Pass(10);
    kept.Used(10 / KeptTime::kWorth + 1);
  }
  EXPECT_EQ(kept.LeftNs(100), 100u);
}

}  // namespace
}  // namespace hawser::scheduler
