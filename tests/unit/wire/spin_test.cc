// SPDX-License-Identifier: Apache-2.0
#include "wire/spin.h"

#include <gtest/gtest.h>

namespace hawser::wire {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

TEST(SpinTest, EndsWithTheAnswer) {
  Crowd crowd;
  int questions = 0;
  EXPECT_TRUE(SpinUntil(
      hours(1), [&] { return ++questions == 3; }, crowd));
  EXPECT_EQ(questions, 3);
}

TEST(SpinTest, EndsInTime) {
  Crowd crowd;
  EXPECT_FALSE(SpinUntil(
      nanoseconds(0), [] { return false; }, crowd));
}

TEST(SpinTest, AShortYieldIsNoCrowd) {
  Crowd crowd;
  const auto now = Crowd::Clock::now();
  EXPECT_FALSE(crowd.Yielded(now, now + Crowd::kLongYield - nanoseconds(1)));
  EXPECT_FALSE(crowd.IsHere());
}

TEST(SpinTest, NobodySpinsWhereTheCoresAreWanted) {
  Crowd crowd;
  // As if it lasted for an hour from now, so that the test does not depend on how fast it runs.
  const auto later = Crowd::Clock::now() + hours(1);
  EXPECT_TRUE(crowd.Yielded(later - Crowd::kLongYield, later));
  EXPECT_TRUE(crowd.IsHere());
  int questions = 0;
  EXPECT_FALSE(SpinUntil(
      hours(1), [&] { return ++questions == 2; }, crowd));
  EXPECT_EQ(questions, 0);
}

TEST(SpinTest, TheRespiteIsOverInTime) {
  Crowd crowd;
  const auto before = Crowd::Clock::now() - Crowd::kRespite;
  EXPECT_TRUE(crowd.Yielded(before - Crowd::kLongYield, before));
  EXPECT_FALSE(crowd.IsHere());
}

TEST(SpinTest, TheRespiteGrowsWhileItHappensAgainAndAMomentIsForgotten) {
  Crowd crowd;
  // As if now were an hour ago by so much that only a respite of more than `age` still lasts.
  const auto respite_exceeds = [&](std::chrono::milliseconds age) {
    const auto ended = Crowd::Clock::now() - age;
    EXPECT_TRUE(crowd.Yielded(ended - Crowd::kLongYield, ended));
    return crowd.IsHere();
  };
  constexpr auto kLongest = Crowd::kRespite * (1 << Crowd::kMostDoublings);
  for (int i = 0; i < Crowd::kMostDoublings; ++i) {
    EXPECT_FALSE(respite_exceeds(Crowd::kRespite * (1 << i))) << i << ": not yet longer";
  }
  const auto later = Crowd::Clock::now() + hours(1) - kLongest + Crowd::kRespite;
  EXPECT_TRUE(crowd.Yielded(later - Crowd::kLongYield, later));
  EXPECT_TRUE(crowd.IsHere());
  EXPECT_FALSE(respite_exceeds(kLongest)) << "and no longer";
  const auto now = Crowd::Clock::now();
  for (int i = 0; i < Crowd::kCalm; ++i) EXPECT_FALSE(crowd.Yielded(now, now));
  EXPECT_FALSE(respite_exceeds(Crowd::kRespite)) << "the first one again";
}

}  // namespace
}  // namespace hawser::wire
