// SPDX-License-Identifier: Apache-2.0
// What sharing costs and nobody is charged with: exactly, in virtual time.
#include "scheduler/core/system_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {
namespace {

using Phase = SystemAccount::Phase;

TEST(SystemAccount, WhatIsNotUsedIsLostToItsPhase) {
  SystemAccount account;
  account.Enter(Phase::kServing, 1000, 0, 0);
  account.Enter(Phase::kServing, 1500, 300, 0);  // It goes on.
  account.Enter(Phase::kLingering, 2000, 700, 0);
  EXPECT_EQ(account.time().gap_ns, 300u);
  account.Enter(Phase::kWaiting, 2400, 700, 0);
  EXPECT_EQ(account.time().lingered_ns, 400u);
  account.Enter(Phase::kNone, 3000, 700, 0);
  EXPECT_EQ(account.time().waited_ns, 600u);
  account.Enter(Phase::kServing, 9000, 700, 0);  // Nobody had work.
  EXPECT_EQ(account.time().gap_ns, 300u);
  account.End(9100, 720, 0);  // One grant ends, another begins.
  account.Enter(Phase::kServing, 9100, 720, 0);
  EXPECT_EQ(account.time().gap_ns, 380u);
}

TEST(SystemAccount, MoreUsedThanTimePassedIsNoGapAndHidesNone) {
  SystemAccount account;
  account.Enter(Phase::kServing, 1000, 0, 0);
  account.End(2000, 5000, 0);  // Several pieces at once.
  account.Enter(Phase::kServing, 2000, 5000, 0);
  account.End(3000, 5600, 0);
  EXPECT_EQ(account.time().gap_ns, 400u);
}

TEST(SystemAccount, ATailCountsWhereItRuns) {
  SystemAccount account;
  account.Enter(Phase::kServing, 1000, 0, 0);
  account.End(2750, 2000, 2000);  // 250 of these 2000 are still to come.
  EXPECT_EQ(account.time().gap_ns, 0u);
  account.Enter(Phase::kServing, 2750, 2000, 2000);
  account.End(3750, 2700, 0);
  EXPECT_EQ(account.time().gap_ns, 50u);
  account.Enter(Phase::kServing, 3750, 2700, 0);
  account.End(3850, 2700, 0);  // Only once.
  EXPECT_EQ(account.time().gap_ns, 150u);
}

TEST(SystemAccount, ATailThatHasEndedIsNotAhead) {
  SystemAccount account;
  account.Enter(Phase::kServing, 1000, 0, 0);
  account.End(1500, 2000, 100);
  account.Enter(Phase::kServing, 1500, 2000, 100);
  account.End(2500, 2000, 0);
  EXPECT_EQ(account.time().gap_ns, 900u);
}

TEST(SystemAccount, CountsSlicesThatGoToAnotherTenant) {
  SystemAccount account;
  account.Given(7, true);  // The first one: from nobody.
  account.Given(7, true);
  EXPECT_EQ(account.time().switches, 0u);
  account.Given(8, true);
  account.Given(7, true);
  EXPECT_EQ(account.time().switches, 2u);
  account.Given(8, false);  // Alone.
  EXPECT_EQ(account.time().switches, 2u);
  account.Given(7, true);
  EXPECT_EQ(account.time().switches, 3u);
}

// ---------------------------------------------------------------------------------------------
// The whole scheduler

/// Two tenants with 20 requests of 1 ms each, four at a time.
Scenario TwentyEach() {
  Scenario scenario;
  scenario.duration_ns = 80'000'000;
  scenario.handoff_ns = 10'000;
  scenario.decision_ns = 3'000;
  for (const char* name : {"one", "other"}) {
    SimClient client;
    client.tenant.name = name;
    client.depth = 4;
    client.requests = 20;
    client.kernels = {{.length_ns = 1'000'000}};
    scenario.clients.push_back(client);
  }
  return scenario;
}

uint64_t Charged(const SimResult& result) {
  uint64_t sum = 0;
  for (const SimTenant& tenant : result.tenants) sum += tenant.charged_ns;
  return sum;
}

TEST(SystemTime, IsWhatHandOffsAndDecisionsTake) {
  Scenario scenario = TwentyEach();
  scenario.settings["slice_us"] = "2000";
  const SimResult result = Play(scenario, "rr").result;
  // 20 grants of two requests each, and all but the first go to the other one.
  EXPECT_EQ(result.switches, 19u);
  EXPECT_EQ(result.handoff_ns, 20u * 3'000 + 19u * 10'000);
  EXPECT_EQ(result.waited_ns + result.lingered_ns, 0u);
  ASSERT_FALSE(result.busy.empty());
  EXPECT_EQ(result.busy.back().end_ns, 40'000'000u + result.handoff_ns);
  EXPECT_EQ(Charged(result), 40'000'000u);
}

TEST(SystemTime, LongerSlicesLoseLess) {
  Scenario scenario = TwentyEach();
  scenario.settings["slice_us"] = "10000";
  const SimResult result = Play(scenario, "rr").result;
  EXPECT_EQ(result.switches, 3u);
  EXPECT_EQ(result.handoff_ns, 4u * 3'000 + 3u * 10'000);
}

// BAND keeps the device idle on purpose; hands change at once there.
TEST(SystemTime, WaitsOnPurposeAreNoGaps) {
  const Played played = Play("gpuvm-2", "band");
  EXPECT_EQ(played.result.handoff_ns, 0u);
  EXPECT_GT(played.result.switches, 0u);
  EXPECT_GT(played.result.waited_ns, 0u);
}

TEST(SystemTime, WhoeverIsAloneLosesNothing) {
  Scenario scenario = TwentyEach();
  scenario.clients.resize(1);
  scenario.clients[0].think_ns = 500'000;
  const SimResult result = Play(scenario, "fair").result;
  EXPECT_EQ(result.switches, 0u);
  EXPECT_EQ(result.handoff_ns, 0u);  // An open grant from the first moment.
  EXPECT_EQ(result.waited_ns + result.lingered_ns, 0u);
}

// What is idle although somebody has work, seen from the device, is what the account says; but for the turn that goes
// on when time is over, and what happens around open grants.
TEST(SystemTime, IsAllThatTheDeviceLoses) {
  for (const char* name : {"gpuvm-2", "gpuvm-8", "weights-30-70", "latency-batch", "many"}) {
    for (const char* policy : {"fair", "band", "drr", "prio", "rr"}) {
      Scenario scenario = Load(name);
      scenario.handoff_ns = 10'000;
      scenario.decision_ns = 1'000;
      scenario.duration_ns = std::min<uint64_t>(scenario.duration_ns, 5'000'000'000);
      const Played played = Play(scenario, policy);
      const SimResult& result = played.result;
      const double idle = played.metrics.idle_with_work * static_cast<double>(result.duration_ns);
      const auto told = static_cast<double>(result.handoff_ns + result.waited_ns + result.lingered_ns);
      EXPECT_GT(result.handoff_ns, 0u) << name << " under " << policy;
      EXPECT_LE(std::abs(idle - told), 2e6 + 0.01 * idle)
          << name << " under " << policy << ": " << idle << ", " << told;
    }
  }
}

}  // namespace
}  // namespace hawser::scheduler
