// SPDX-License-Identifier: Apache-2.0
// GPUvm ("GPUvm: Why Not Virtualizing GPUs at the Hypervisor?", section 5.4, figures 7 and 8) in virtual time: madd of
// 10 ms and long-madd of 50 ms on 2, 4 and 8 tenants, kernels whole, half a millisecond between one's end and the next
// one's arrival.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {
namespace {

constexpr size_t k100ms = 0, k500ms = 1;

struct Row {
  const char* scenario;
  const char* policy;
  double madd, long_madd;         // Share of each such tenant, to three digits.
  double jain_500ms, jain_100ms;  // Least over the windows.
};

class GpuvmTable : public ::testing::TestWithParam<Row> {};

TEST_P(GpuvmTable, HasThePapersShares) {
  const Row& row = GetParam();
  const Played played = Play(row.scenario, row.policy);
  const size_t n = played.result.tenants.size();
  for (size_t i = 0; i < n; ++i) {
    const double expected = i < n / 2 ? row.madd : row.long_madd;
    EXPECT_NEAR(played.metrics.tenants[i].share, expected, 0.001) << played.result.tenants[i].name;
  }
  EXPECT_NEAR(played.metrics.windows[k500ms].jain_min, row.jain_500ms, 0.001);
  EXPECT_NEAR(played.metrics.windows[k100ms].jain_min, row.jain_100ms, 0.001);
}

// With two tenants CREDIT is as unfair as FIFO, because it always finds only the other one waiting; BAND is not. With 4
// and 8 CREDIT is fair as well. All fluctuate over 100 ms, because a kernel cannot be interrupted.
INSTANTIATE_TEST_SUITE_P(Figures7And8, GpuvmTable,
                         ::testing::Values(Row{"gpuvm-2", "fifo", 0.167, 0.833, 0.684, 0.610},
                                           Row{"gpuvm-2", "credit", 0.167, 0.833, 0.684, 0.610},
                                           Row{"gpuvm-2", "band", 0.499, 0.501, 1.000, 1.000},
                                           Row{"gpuvm-2", "fair", 0.499, 0.501, 1.000, 1.000},
                                           Row{"gpuvm-4", "fifo", 0.083, 0.417, 0.682, 0.500},
                                           Row{"gpuvm-4", "credit", 0.250, 0.250, 0.962, 0.500},
                                           Row{"gpuvm-4", "band", 0.250, 0.250, 0.962, 0.500},
                                           Row{"gpuvm-8", "fifo", 0.042, 0.208, 0.679, 0.250},
                                           Row{"gpuvm-8", "credit", 0.125, 0.125, 0.893, 0.250},
                                           Row{"gpuvm-8", "band", 0.125, 0.125, 0.893, 0.250}));

TEST(Gpuvm, FairIsFairOnFourAndEight) {
  for (const char* scenario : {"gpuvm-4", "gpuvm-8"}) {
    const Played played = Play(scenario, "fair");
    for (const TenantMetrics& tenant : played.metrics.tenants) {
      EXPECT_NEAR(tenant.share, 1.0 / static_cast<double>(played.metrics.tenants.size()), 0.001) << scenario;
    }
  }
}

TEST(Gpuvm, FairWithPiecesIsFairOverShortTimesToo) {
  const Played played = Play("gpuvm-8-sliced", "fair");
  EXPECT_GE(played.metrics.windows[k500ms].jain_min, 0.999);
  EXPECT_LE(played.metrics.windows[k500ms].share_error_max, 0.01);
  EXPECT_GE(played.metrics.windows[k100ms].jain_min, 0.98);
  EXPECT_LE(played.metrics.windows[k100ms].share_error_max, 0.04);
}

// What waiting for the next request costs: with 2 ms of patience and clients that take half of one, four waits of half
// a millisecond in 102 ms.
TEST(Gpuvm, AnticipationCostsLittle) {
  const Played played = Play("gpuvm-2", "band");
  EXPECT_GE(played.metrics.busy, 0.98);
  EXPECT_NEAR(played.metrics.busy, 0.9804, 0.0005);
  EXPECT_GT(played.result.waited_ns, 0u);
}

// Somebody with work of a microsecond who comes back within the patience each time would else have the device wait most
// of the time, charged to nobody.
TEST(Gpuvm, NobodyIsWaitedForLongerThanHeUsesTheDevice) {
  const std::pair<const char*, uint64_t> policies[] = {{"fair", 250'000}, {"drr", 80'000}, {"band", 1'500'000}};
  for (const auto& [policy, think_ns] : policies) {
    Scenario scenario;
    scenario.duration_ns = 2'000'000'000;
    SimClient busy, tiny;
    busy.tenant.name = "busy";
    busy.depth = 2;
    busy.kernels = {{.length_ns = 2'000'000, .unit_ns = 500'000}};
    tiny.tenant.name = "tiny";
    tiny.think_ns = think_ns;
    tiny.kernels = {{.length_ns = 1'000}};
    scenario.clients = {busy, tiny};
    const Played played = Play(scenario, policy);
    EXPECT_GE(played.metrics.busy, 0.97) << policy;
    // Who uses the device for as long as he lets it wait is still waited for.
    scenario.clients[1].kernels = {{.length_ns = 4 * think_ns}};
    const Played even = Play(scenario, policy);
    EXPECT_NEAR(even.metrics.tenants[1].share, 0.5, 0.02) << policy;
  }
}

// A worker in a guest's hands need not even use the device for that: it says that it wants it, and that it does not.
TEST(Gpuvm, NobodyIsWaitedForWhoOnlySaysThatHeWantsTheDevice) {
  struct Sink final : GrantSink {
    void Give(TenantId tenant, const Grant&) override { given = tenant; }
    void Revoke(TenantId) override { revoked = true; }
    void Stage(TenantId) override {}
    TenantId given = 0;
    bool revoked = false;
  };
  for (const char* policy : {"fair", "drr", "band"}) {
    Sink sink;
    SchedulerOptions options;
    options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
    Scheduler scheduler(options, sink, [](auto&&...) {});
    const auto library = PolicyLibrary::Find(policy);
    ASSERT_TRUE(library.ok());
    uint64_t now = 1'000'000'000, used[2] = {};
    ASSERT_TRUE(scheduler.Use(library.value(), now).ok());
    TenantConfig busy_config, tease_config;
    busy_config.name = "busy";
    tease_config.name = "tease";
    const TenantId busy = scheduler.Add(busy_config, now), tease = scheduler.Add(tease_config, now);
    scheduler.Runnable(busy, now);
    scheduler.Runnable(tease, now);
    const auto run = [&](TenantId who, uint64_t length) {
      now += length;
      uint64_t& sum = used[who == busy ? 0 : 1];
      sum += length;
      WorkerFacts facts;
      facts.used_ns = sum;
      scheduler.Facts(who, facts, now);
    };
    // One long kernel of the other, so that he would be worth a wait; then he only comes and goes.
    const uint64_t begin = now;
    bool has_teased = false;
    while (now < begin + 3'000'000'000) {
      sink.revoked = false;
      if (scheduler.holder() == nullptr) {
        ASSERT_NE(scheduler.next_wake_ns(), UINT64_MAX) << policy;
        now = std::max(now, scheduler.next_wake_ns());
        scheduler.Advance(now);
      } else if (sink.given == tease) {
        if (!has_teased) run(tease, 20'000'000);
        has_teased = true;
        scheduler.Idle(tease, now);
        scheduler.Drained(tease, now);
      } else {
        run(busy, 200'000);
        if (has_teased) {
          scheduler.Runnable(tease, now);
          scheduler.Idle(tease, now);
        }
        scheduler.Drained(busy, now);
      }
    }
    EXPECT_TRUE(has_teased) << policy;
    EXPECT_GE(static_cast<double>(used[0]), 0.95 * static_cast<double>(now - begin - used[1])) << policy;
  }
}

TEST(Gpuvm, BandWithoutAnticipationIsCredit) {
  Scenario scenario = Load("gpuvm-2");
  scenario.settings["anticipation_us"] = "0";
  EXPECT_NEAR(Play(scenario, "band").metrics.tenants[0].share, 0.167, 0.001);
  scenario.settings["anticipation_us"] = "400";  // Less than clients take.
  EXPECT_NEAR(Play(scenario, "band").metrics.tenants[0].share, 0.167, 0.01);
}

TEST(Gpuvm, AloneNobodyWaits) {
  for (const char* policy : {"band", "fair", "credit", "prio", "slo", "split"}) {
    const Played played = Play("alone", policy);
    EXPECT_DOUBLE_EQ(played.metrics.busy, 1.0) << policy;
    EXPECT_EQ(played.result.waited_ns, 0u) << policy;
    EXPECT_EQ(played.result.lingered_ns, 0u) << policy;
    EXPECT_EQ(played.result.timers, 0u) << policy;
  }
}

TEST(Gpuvm, BandKeepsReservations) {
  Scenario scenario = Load("gpuvm-4");
  scenario.clients[0].tenant.min_share_ppm = 400'000;
  const Played played = Play(scenario, "band");
  EXPECT_NEAR(played.metrics.tenants[0].share, 0.4, 0.02);
}

int64_t SumOfCredits(Scheduler& scheduler) {
  const auto dump = nlohmann::json::parse(scheduler.policy().Dump());
  int64_t sum = 0;
  for (const auto& [id, credit] : dump["state"]["credits_ns"].items()) sum += credit.get<int64_t>();
  return sum;
}

// The paper's flaw: the scheduler's own time leaves part of a fixed replenishment unused, and credits grow until they
// say nothing. Here they never add up to more than a period.
TEST(Gpuvm, CreditsDoNotPileUp) {
  constexpr int64_t kPeriodNs = 30'000'000;
  for (const char* policy : {"credit", "band"}) {
    Scenario scenario = Load("gpuvm-4");
    scenario.decision_ns = 1'000'000;  // A slow scheduler: a tenth of a madd.
    SimOptions options;
    int64_t worst = 0;
    size_t looks = 0;
    options.on_grant_end = [&](Scheduler& scheduler, uint64_t) {
      worst = std::max(worst, std::abs(SumOfCredits(scheduler)));
      ++looks;
    };
    const Played played = Play(scenario, policy, options);
    EXPECT_LE(worst, kPeriodNs) << policy;
    EXPECT_GT(worst, 0) << policy;
    EXPECT_GT(looks, 500u);
    for (const TenantMetrics& tenant : played.metrics.tenants) EXPECT_NEAR(tenant.share, 0.25, 0.002) << policy;
  }
}

TEST(Gpuvm, AnEndlessKernelEndsItsTenantOnly) {
  const Played played = Play("runaway", "fair");
  EXPECT_TRUE(played.result.tenants[0].killed);
  // From second 1 to 3 the device was lost; the rest belongs to the two others.
  EXPECT_EQ(played.result.tenants[0].used_ns, 2'000'000'000u);
  EXPECT_NEAR(static_cast<double>(played.result.tenants[1].used_ns), 4e9, 4e6);
  EXPECT_NEAR(static_cast<double>(played.result.tenants[2].used_ns), 4e9, 4e6);
}

}  // namespace
}  // namespace hawser::scheduler
