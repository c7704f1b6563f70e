// SPDX-License-Identifier: Apache-2.0
// The worker's side of a grant, with the page's other side in the test's hands.
#include "scheduler/grant/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "scheduler/grant/arbiter.h"

namespace hawser::scheduler {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

/// A page with both its sides, and nobody else.
class GateTest : public ::testing::Test {
 protected:
  void Give(Grant::Kind kind, uint64_t slice_ns, uint64_t cap_ns) {
    door_.Give({kind, ++epoch_, slice_ns, cap_ns, 500});
  }

  GrantPage page_;
  CondvarBell scheduler_bell_, worker_bell_;
  Gate gate_{page_, scheduler_bell_, worker_bell_};
  BasicDoor<std::atomic> door_{page_, worker_bell_};
  uint64_t epoch_ = 0;
};

TEST_F(GateTest, IsClosedAtFirst) {
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_FALSE(door_.HasWork());
  EXPECT_FALSE(door_.Drained());
}

TEST_F(GateTest, OpenLetsThroughUpToTheCap) {
  Give(Grant::Kind::kOpen, 0, 1000);
  EXPECT_TRUE(gate_.TryEnter(600));
  EXPECT_TRUE(gate_.open());
  EXPECT_TRUE(gate_.TryEnter(600));   // 600 were in flight: below the cap.
  EXPECT_FALSE(gate_.TryEnter(600));  // 1200 are not.
  gate_.Leave(600, 650);
  EXPECT_TRUE(gate_.TryEnter(600));
  EXPECT_EQ(door_.Facts().used_ns, 650u);
  EXPECT_EQ(door_.Facts().inflight_ns, 1200u);
}

TEST_F(GateTest, AnOpenGrantsPieceEntersNoOther) {
  Give(Grant::Kind::kOpen, 0, 1000);
  const uint64_t open = page_.word.load();
  EXPECT_TRUE(gate_.TryEnterOpen(open));
  gate_.Leave(0, 0);
  door_.Revoke();
  EXPECT_FALSE(gate_.TryEnterOpen(open));
  EXPECT_TRUE(door_.Drained());
  // Somebody else's turn has passed meanwhile. Nobody would tell it to leave this one.
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_FALSE(gate_.TryEnterOpen(open));
  EXPECT_FALSE(door_.IsActive());
  EXPECT_TRUE(gate_.TryEnter(100));
  gate_.Leave(100, 100);
  door_.Revoke();
  EXPECT_TRUE(door_.Drained());
  // Nor one that is open too, but which it does not know of.
  Give(Grant::Kind::kOpen, 0, 1000);
  EXPECT_FALSE(gate_.TryEnterOpen(open));
  EXPECT_TRUE(gate_.TryEnterOpen(page_.word.load()));
}

TEST_F(GateTest, WhoHasNoGrantRingsForItOnce) {
  Give(Grant::Kind::kSlice, 1000, 10'000);
  const uint64_t open = MakeWord(epoch_, GateMode::kOpen);
  door_.Revoke();
  ASSERT_TRUE(door_.Drained());
  const uint64_t ticket = scheduler_bell_.Ticket();
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_FALSE(gate_.TryEnterOpen(open));
  EXPECT_FALSE(gate_.EnterNow(100));
  EXPECT_EQ(scheduler_bell_.Ticket(), ticket);  // It has asked for nothing yet.
  gate_.Announce(100, {});
  EXPECT_EQ(scheduler_bell_.Ticket(), ticket + 1);
  gate_.Announce(100, {});
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_EQ(scheduler_bell_.Ticket(), ticket + 1);
}

TEST_F(GateTest, OnePieceIsAlwaysAllowedHoweverLong) {
  Give(Grant::Kind::kOpen, 0, 10);
  EXPECT_TRUE(gate_.TryEnter(1'000'000'000));
  EXPECT_FALSE(gate_.TryEnter(1));
}

TEST_F(GateTest, ASliceEndsWithThePieceThatFillsIt) {
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_TRUE(gate_.TryEnter(400));  // 1200: the last.
  EXPECT_FALSE(gate_.TryEnter(1));
  EXPECT_EQ(gate_.unit_ns(), 500u);
  EXPECT_FALSE(door_.Drained());  // Three are active.
  for (int i = 0; i < 3; ++i) gate_.Leave(400, 300);
  // Shorter than estimated; the slice stays used all the same.
  EXPECT_FALSE(gate_.TryEnter(1));
  EXPECT_TRUE(door_.Drained());
  EXPECT_FALSE(door_.Drained());
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(400));
}

// A unit is 500, and the cap less.
TEST_F(GateTest, SeveralPiecesOfAUnitMayBeInFlightAsOneMay) {
  Give(Grant::Kind::kSlice, 450, 100);
  EXPECT_TRUE(gate_.TryEnter(300));
  EXPECT_FALSE(gate_.TryEnter(300));  // More than a unit.
  EXPECT_TRUE(gate_.TryEnter(200));
  EXPECT_TRUE(gate_.Ends());
  EXPECT_EQ(door_.Facts().inflight_ns, 500u);
}

TEST_F(GateTest, APartIsMadeAsLongAsTheGrantThatHasComeWantsIt) {
  int asked = 0;
  uint64_t estimate = 400, taken = 1;
  const auto resize = [&] {
    ++asked;
    taken = gate_.TakenNs();
    return gate_.unit_ns() + 200;
  };
  EXPECT_FALSE(gate_.EnterNowAs(&estimate, resize));  // There is no grant.
  EXPECT_FALSE(gate_.EnterAs(&estimate, resize, {}, nanoseconds(1)));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(estimate, 400u);
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.EnterNowAs(&estimate, resize));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(estimate, 700u);
  EXPECT_EQ(door_.Facts().inflight_ns, 700u);
  EXPECT_FALSE(gate_.Ends());
  // One of the same grant stays what it is.
  uint64_t second = 400;
  EXPECT_TRUE(gate_.EnterNowAs(&second, resize));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(second, 400u);
  EXPECT_TRUE(gate_.Ends());
  gate_.Leave(700, 650);
  gate_.Leave(400, 400);
  EXPECT_FALSE(gate_.EnterNowAs(&estimate, resize));
  EXPECT_EQ(asked, 1);
  ASSERT_TRUE(door_.Drained());
  // Of what was used of the grant before nothing counts.
  Give(Grant::Kind::kSlice, 1000, 10'000);
  estimate = 5000;
  EXPECT_TRUE(gate_.EnterAs(&estimate, resize, {}, hours(1)));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(taken, 0u);
  EXPECT_EQ(estimate, 700u);
  EXPECT_FALSE(gate_.Ends());
}

TEST_F(GateTest, KnowsWhatItsSliceWasTakenFor) {
  EXPECT_EQ(gate_.TakenNs(), 0u);
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_EQ(gate_.TakenNs(), 0u);
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_EQ(gate_.TakenNs(), 800u);
  gate_.Leave(400, 300);
  EXPECT_EQ(gate_.TakenNs(), 700u);  // It ended before its time.
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_EQ(gate_.TakenNs(), 0u);  // That was the last.
}

TEST_F(GateTest, MeasuredTimeCountsWhenItIsKnown) {
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(100));
  gate_.Leave(100, 2000);  // Much longer than estimated.
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, RevokedLetsNothingThrough) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  EXPECT_TRUE(gate_.TryEnter(100));
  door_.Revoke();
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_FALSE(door_.Drained());
  const uint64_t ticket = scheduler_bell_.Ticket();
  gate_.Leave(100, 100);
  EXPECT_NE(scheduler_bell_.Ticket(), ticket);  // The last one rings.
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, AnIdleWorkerNeedsNotAnswer) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  door_.Revoke();
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, WhoIsStagedSeesItAndIsNotWoken) {
  const uint64_t ticket = worker_bell_.Ticket();
  door_.SetStaged(true);
  EXPECT_EQ(page_.word, kStagedFlag | static_cast<uint64_t>(GateMode::kClosed));
  EXPECT_FALSE(gate_.TryEnter(100));
  door_.SetStaged(false);
  EXPECT_EQ(page_.word, static_cast<uint64_t>(GateMode::kClosed));
  door_.SetStaged(true);
  EXPECT_EQ(worker_bell_.Ticket(), ticket);
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_EQ(page_.word, MakeWord(epoch_, GateMode::kSlice));
  door_.SetStaged(true);  // It has the device.
  EXPECT_EQ(page_.word, MakeWord(epoch_, GateMode::kSlice));
  EXPECT_TRUE(gate_.TryEnter(100));
  gate_.Leave(100, 100);
  door_.Revoke();
  ASSERT_TRUE(door_.Drained());
  door_.SetStaged(true);
  EXPECT_EQ(page_.word, MakeWord(epoch_, GateMode::kRevoked) | kStagedFlag);
}

TEST_F(GateTest, AloneNoBellRings) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  const uint64_t ticket = scheduler_bell_.Ticket();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(gate_.TryEnter(100));
    gate_.Leave(100, 100);
  }
  EXPECT_EQ(scheduler_bell_.Ticket(), ticket);
}

TEST_F(GateTest, GivesUpInTimeAndSaysSo) {
  EXPECT_FALSE(gate_.Enter(100, {}, nanoseconds(1)));
  EXPECT_FALSE(door_.HasWork());
}

TEST_F(GateTest, EstimatesAreBounded) {
  Give(Grant::Kind::kOpen, 0, UINT64_MAX);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(gate_.TryEnter(UINT64_MAX));
  EXPECT_EQ(PiecesOf(page_.active.load()), 200u);  // The sum of the estimates did not run over into them.
  for (int i = 0; i < 200; ++i) gate_.Leave(UINT64_MAX, 1);
  EXPECT_EQ(page_.active.load(), 0u);
}

}  // namespace
}  // namespace hawser::scheduler
