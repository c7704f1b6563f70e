// SPDX-License-Identifier: Apache-2.0
// The thread-split paper's pause rule: whoever has used more than twice what the least has used sits out one round. And
// what a turn lacked of its slice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/core/scheduler.h"

namespace hawser::scheduler {
namespace {

constexpr uint64_t kMs = 1'000'000;

/// Two tenants that always have work; it is said how much each grant used.
class Rounds : public GrantSink {
 public:
  Rounds() : scheduler_({}, *this, {}) {
    EXPECT_TRUE(scheduler_.Use(PolicyLibrary::Find("split").value(), now_).ok());
    a_ = scheduler_.Add({.name = "a"}, now_);
    b_ = scheduler_.Add({.name = "b"}, now_);
    scheduler_.Runnable(a_, now_);
    scheduler_.Runnable(b_, now_);
  }

  /// Whoever has the device used this much.
  void Used(uint64_t ns) {
    const TenantId id = holder_;
    now_ += ns;
    WorkerFacts facts;
    facts.used_ns = used_[id == a_ ? 0 : 1] += ns;
    scheduler_.Facts(id, facts, now_);
    scheduler_.Drained(id, now_);
  }

  /// Nobody wants anything for so long; then both do.
  void Rest(uint64_t ns) {
    const TenantId first = holder_, second = holder_ == a_ ? b_ : a_;
    scheduler_.Idle(second, now_);
    scheduler_.Idle(first, now_);
    if (holder_ != 0) scheduler_.Drained(first, now_);
    now_ += ns;
    order += ' ';
    scheduler_.Runnable(a_, now_);
    scheduler_.Runnable(b_, now_);
  }

  void Give(TenantId tenant, const Grant& grant) override {
    holder_ = tenant;
    unit_ns = grant.unit_ns;
    slice_ns = grant.slice_ns;
    order += tenant == a_ || a_ == 0 ? 'a' : 'b';
  }
  void Revoke(TenantId) override {}
  void Stage(TenantId) override {}

  std::string order;
  uint64_t unit_ns = 0, slice_ns = 0;  ///< Of the last grant.

 private:
  uint64_t now_ = 1'000'000'000;
  TenantId holder_ = 0, a_ = 0, b_ = 0;
  uint64_t used_[2] = {0, 0};
  Scheduler scheduler_;
};

TEST(PauseRule, TwiceTheLeastRuns) {
  Rounds rounds;
  for (const uint64_t used : {100 * kMs, 200 * kMs, uint64_t{1}, uint64_t{1}}) rounds.Used(used);
  EXPECT_EQ(rounds.order, "ababa");
}

TEST(PauseRule, MoreThanTwiceTheLeastSitsOutOneRound) {
  Rounds rounds;
  for (const uint64_t used : {100 * kMs, 210 * kMs, uint64_t{1}, 10 * kMs}) rounds.Used(used);
  EXPECT_EQ(rounds.order, "abaab");  // In the round after it is 210 to 110, and it runs.
}

TEST(PauseRule, WhatWasUsedLongAgoIsForgiven) {
  for (const bool long_ago : {false, true}) {
    Rounds rounds;
    for (const uint64_t used : {100 * kMs, 250 * kMs, uint64_t{1}}) rounds.Used(used);
    rounds.Rest((long_ago ? 8'000 : 1) * kMs);
    for (int i = 0; i < 4; ++i) rounds.Used(1);
    // A moment later it still sits out until the other has used half as much; after a while both begin anew.
    EXPECT_EQ(rounds.order.substr(rounds.order.find(' ') + 1), long_ago ? "ababa" : "aaaaa");
  }
}

TEST(PauseRule, ANewcomerPausesNobody) {
  Rounds rounds;
  // Nobody has used anything: the least is not taken below one slice.
  for (const uint64_t used : {uint64_t{1}, 3 * kMs, uint64_t{1}, uint64_t{1}}) rounds.Used(used);
  EXPECT_EQ(rounds.order, "ababa");
}

constexpr uint64_t kSlice = 2 * kMs;  // The policy's, for weight 100.

TEST(Lack, WhatATurnLackedIsAddedToTheNext) {
  Rounds rounds;
  EXPECT_EQ(rounds.unit_ns, kSlice);
  rounds.Used(kSlice - kMs / 8);  // a
  EXPECT_EQ(rounds.unit_ns, kSlice);
  rounds.Used(kSlice + kMs / 10);  // b
  EXPECT_EQ(rounds.order, "aba");
  EXPECT_EQ(rounds.unit_ns, kSlice + kMs / 8);
  EXPECT_EQ(rounds.slice_ns, rounds.unit_ns - rounds.unit_ns / 8);
  rounds.Used(kSlice + kMs / 8);  // a: even again
  EXPECT_EQ(rounds.unit_ns, kSlice - kMs / 10);
  rounds.Used(kSlice - kMs / 10);
  EXPECT_EQ(rounds.unit_ns, kSlice);
}

TEST(Lack, GroupsOfOddLengthsGiveEqualTimes) {
  // As on a device: groups of whole work-groups, of 0.17 and of 0.43 ms.
  Rounds rounds;
  uint64_t used[2] = {0, 0};
  for (int turn = 0; turn < 400; ++turn) {
    const uint64_t work_group = rounds.order.back() == 'a' ? kMs * 17 / 100 : kMs * 43 / 100;
    const uint64_t group = rounds.unit_ns / work_group * work_group;
    used[rounds.order.back() - 'a'] += group;
    rounds.Used(group);
  }
  EXPECT_NEAR(static_cast<double>(used[0]) / static_cast<double>(used[1]), 1, 0.01);
}

TEST(Lack, AtMostASlice) {
  Rounds rounds;
  rounds.Used(1);
  rounds.Used(kSlice * 4);
  EXPECT_EQ(rounds.order, "aba");
  EXPECT_EQ(rounds.unit_ns, 2 * kSlice - 1);
  rounds.Used(kSlice);  // So that b does not sit out.
  EXPECT_EQ(rounds.order, "abaa");
  EXPECT_EQ(rounds.unit_ns, 2 * kSlice - 1);
  rounds.Used(4 * kSlice);
  EXPECT_EQ(rounds.order, "abaab");
  EXPECT_EQ(rounds.unit_ns, kSlice / 8);  // A group has at least one work-group, whatever is left.
}

TEST(Lack, WhoHadNoWorkLacksNothing) {
  Rounds rounds;
  rounds.Used(kSlice / 2);
  rounds.Used(kSlice);
  rounds.Rest(kMs);
  EXPECT_EQ(rounds.order, "aba a");
  EXPECT_EQ(rounds.unit_ns, kSlice);
}

}  // namespace
}  // namespace hawser::scheduler
