// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "server/worker/early_leave.h"

namespace hawser::server {
namespace {

TEST(EarlyLeave, TakesWhatHandingOverTakesOfALongPiece) {
  EXPECT_EQ(EarlyRestNs(250'000, 1'000'000), 250'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 1'000'000'000), 250'000u);
}

TEST(EarlyLeave, TakesAQuarterOfAShorterOne) {
  EXPECT_EQ(EarlyRestNs(250'000, 800'000), 200'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 500'000), 125'000u);
}

TEST(EarlyLeave, TakesHalfOfAHandoverOfAShortOne) {
  EXPECT_EQ(EarlyRestNs(250'000, 400'000), 125'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 0), 125'000u);
}

TEST(EarlyLeave, NeverWhereHandingOverTakesNothing) {
  EXPECT_EQ(EarlyRestNs(0, 1'000'000), 0u);
  EXPECT_EQ(EarlyRestNs(0, 0), 0u);
}

TEST(EarlyLeave, APieceIsAsSlowAsTheOneAheadOfIt) {
  EXPECT_EQ(RevisedNs(2'000'000, 10'000'000, 11'000'000), 2'200'000u);
  EXPECT_EQ(RevisedNs(2'000'000, 10'000'000, 9'000'000), 1'800'000u);
}

TEST(EarlyLeave, OnePieceDoesNotSayEverything) {
  EXPECT_EQ(RevisedNs(2'000'000, 10'000'000, 90'000'000), 4'000'000u);
  EXPECT_EQ(RevisedNs(2'000'000, 10'000'000, 1), 1'000'000u);
}

TEST(EarlyLeave, NothingIsRevisedByWhatIsNotKnown) {
  EXPECT_EQ(RevisedNs(2'000'000, 0, 9'000'000), 2'000'000u);
  EXPECT_EQ(RevisedNs(2'000'000, 9'000'000, 0), 2'000'000u) << "it failed";
  EXPECT_EQ(RevisedNs(0, 9'000'000, 10'000'000), 0u);
}

// A slice of 16 ms, whose unit is an eighth longer.
constexpr uint64_t kHandover = 250'000, kUnit = 18'000'000, kSlice = 16'000'000;

TEST(NextPiece, TheLastOneOfALongSliceIsShort) {
  const uint64_t first = NextPieceNs(kHandover, kUnit, kSlice, 0, 0);
  EXPECT_EQ(first, 15'500'000u) << "it does not use up the slice";
  EXPECT_EQ(NextPieceNs(kHandover, kUnit, kSlice, first, 0), 2'000'000u) << "eight hand-overs";
  EXPECT_LT(NextPieceNs(kHandover, 10'000'000, 10'000'000, 0, 0), 10'000'000u) << "where the unit is no longer";
}

TEST(NextPiece, WhatEndedBeforeItsTimeLeavesMoreToTheLast) {
  EXPECT_EQ(NextPieceNs(kHandover, kUnit, kSlice, 14'000'000, 0), 2'500'000u) << "what is left, and a thirty-second";
  EXPECT_EQ(NextPieceNs(kHandover, kUnit, kSlice, 8'000'000, 0), 7'500'000u) << "so much that there is another one";
  EXPECT_EQ(NextPieceNs(kHandover, kUnit, kSlice, 19'000'000, 0), 2'000'000u) << "never less than eight hand-overs";
}

TEST(NextPiece, TheLastOneUsesUpTheSliceThoughItIsMadeOfGrains) {
  for (const uint64_t grain : {uint64_t{700'000}, uint64_t{1'300'000}, uint64_t{2'100'000}}) {
    for (uint64_t taken = 12'000'000; taken < kSlice; taken += 100'000) {
      const uint64_t piece = NextPieceNs(kHandover, kUnit, kSlice, taken, grain);
      if (NextPieceNs(kHandover, kUnit, kSlice, taken + piece, grain) != 2'000'000) continue;  // Not the last one.
      EXPECT_GE(taken + piece / grain * grain, kSlice) << grain << " " << taken;
      EXPECT_LE(piece, std::max<uint64_t>(2'000'000, kSlice - taken + grain)) << "no longer than it must be";
    }
  }
}

TEST(NextPiece, TheLastOneIsNeverMoreThanTheRestOfTheUnit) {
  EXPECT_EQ(NextPieceNs(kHandover, kUnit, kSlice, 15'000'000, 9'000'000), 3'000'000u);
}

TEST(NextPiece, AShortSliceHasOne) {
  EXPECT_EQ(NextPieceNs(kHandover, 2'250'000, 2'000'000, 0, 0), 2'250'000u);
  EXPECT_EQ(NextPieceNs(kHandover, 2'250'000, 2'000'000, 1'000'000, 0), 2'250'000u);
  EXPECT_EQ(NextPieceNs(0, kUnit, kSlice, 0, 0), kUnit) << "where handing over takes nothing, too";
}

TEST(NextPiece, UnitsThatAreShorterThanTheSliceStaySo) {
  constexpr uint64_t kUnits = 10'000'000, kHundred = 100'000'000;
  EXPECT_EQ(NextPieceNs(kHandover, kUnits, kHundred, 0, 0), kUnits);
  EXPECT_EQ(NextPieceNs(kHandover, kUnits, kHundred, 80'000'000, 0), kUnits);
  const uint64_t before = NextPieceNs(kHandover, kUnits, kHundred, 90'000'000, 0);
  EXPECT_LT(before, 8'000'000u);
  EXPECT_EQ(NextPieceNs(kHandover, kUnits, kHundred, 90'000'000 + before, 0), 10'000'000 - before);
}

TEST(NextPiece, IsNeverNothing) {
  for (const uint64_t unit : {uint64_t{1}, kUnit, UINT64_MAX}) {
    for (const uint64_t slice : {uint64_t{0}, uint64_t{1}, kSlice, UINT64_MAX}) {
      for (const uint64_t taken : {uint64_t{0}, uint64_t{1}, kSlice, UINT64_MAX}) {
        const uint64_t piece = NextPieceNs(kHandover, unit, slice, taken, 0);
        EXPECT_GT(piece, 0u);
        EXPECT_LE(piece, unit);
      }
    }
  }
}

}  // namespace
}  // namespace hawser::server
