// SPDX-License-Identifier: Apache-2.0
// The thread-split paper's formulae, with the readings under which they work, and its experiments in virtual time.
#include "scheduler/core/thread_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {
namespace {

constexpr uint64_t kCores = 2048;  // Radeon RX 570

TEST(FirstGroup, IsThePapersFormula) {
  const std::vector<std::pair<double, std::vector<uint64_t>>> table = {
      {1, {2048, 1024, 640, 512, 384, 320, 256, 256}},
      {4, {8192, 4096, 2688, 2048, 1600, 1344, 1152, 1024}},
      {10, {20480, 10240, 6784, 5120, 4096, 3392, 2880, 2560}},
  };
  for (const auto& [beta, sizes] : table) {
    for (uint64_t n = 1; n <= sizes.size(); ++n)
      EXPECT_EQ(FirstGroup(kCores, beta, n), sizes[n - 1]) << beta << " " << n;
  }
  EXPECT_EQ(FirstGroup(kCores, 1, 33), 0u);
}

TEST(WholeGroups, IsNeverNothingAndNeverMoreThanRemains) {
  EXPECT_EQ(WholeGroups(0, 256, 10000), 256u);  // What the formula makes of 33 tenants.
  EXPECT_EQ(WholeGroups(1000, 256, 10000), 768u);
  EXPECT_EQ(WholeGroups(1000, 256, 600), 600u);
  EXPECT_EQ(WholeGroups(1000, 96, 10000), 960u);  // lcm(64, 96) = 192
  EXPECT_EQ(WholeGroups(100, 96, 10000), 96u);    // Less than 192, but a whole work-group.
  EXPECT_EQ(WholeGroups(64, 1024, 10000), 1024u);
  EXPECT_EQ(WholeGroups(64, 1024, 500), 500u);
}

TEST(Usage, OfThePaper) {
  EXPECT_NEAR(PaperUsage(2, 100, 300), 2.667, 0.0005);
  EXPECT_NEAR(PaperUsage(2, 200, 300), 3.333, 0.0005);
  EXPECT_DOUBLE_EQ(PaperUsage(2, 100, 100), 4);  // Alone it counts double: not a charge.
}

TEST(Usage, OursAddsUpToTheTimeThatPassed) {
  EXPECT_DOUBLE_EQ(ConcurrentCharge(2, 100, 300) + ConcurrentCharge(2, 200, 300), 2);
  EXPECT_DOUBLE_EQ(ConcurrentCharge(2, 100, 100), 2);
}

/// Algorithm 2 to the letter, for two tenants whose threads cost 1 and 2 us: the size is added to itself in each round.
TEST(NextGroup, TheLettersOfThePaperDouble) {
  double size_a = 10240, size_b = 10240, usage_a = 0, usage_b = 0;
  const std::vector<std::pair<double, double>> expected = {{20480, 20416}, {40960, 40768}, {81920, 81472}};
  for (const auto& [a, b] : expected) {
    usage_a += size_a * 1e-6;
    usage_b += size_b * 2e-6;
    const double all = usage_a + usage_b;
    const auto literal = [all](double size, double usage) {
      const double reconfigured = size + (0.5 - usage / all) * all;
      return size + static_cast<double>(static_cast<int64_t>(reconfigured / 64) * 64);
    };
    size_a = literal(size_a, usage_a);
    size_b = literal(size_b, usage_b);
    EXPECT_NEAR(size_a, a, 64.5);
    EXPECT_NEAR(size_b, b, 128.5);
  }
}

TEST(NextGroup, OursDoesNotDouble) {
  // 10 ms each: 9984 threads of 1 us, 4992 of 2 us, in every round.
  for (int round = 1; round <= 10; ++round) {
    EXPECT_EQ(NextGroup(10'000'000, 1e6), 9984u);
    EXPECT_EQ(NextGroup(10'000'000, 5e5), 4992u);
  }
}

TEST(NextGroup, BearsAnyRate) {
  EXPECT_EQ(NextGroup(10'000'000, 0), 0u);
  EXPECT_EQ(NextGroup(10'000'000, -1), 0u);
  EXPECT_EQ(NextGroup(UINT64_MAX, 1e300) % 64, 0u);
}

Scenario TwoKernels() {
  Scenario scenario;
  scenario.name = "two";
  scenario.duration_ns = 2'000'000'000;
  scenario.beta = 5;
  scenario.settings = {{"slice_us", "10000"}};
  for (const uint64_t ns_per_thread : {1000, 2000}) {
    SimClient client;
    client.tenant.name = std::to_string(ns_per_thread);
    client.kernels.push_back({ns_per_thread * 1'000'000, 0, 1'000'000, 64});
    scenario.clients.push_back(client);
  }
  return scenario;
}

// The same in the simulator, where the rate is measured: from the second group on, equal time, not equal numbers.
TEST(NextGroup, IsMeasuredInTheFirstRoundAndRightInTheSecond) {
  const Played played = Play(TwoKernels(), "split");
  std::vector<size_t> seen(2);
  for (const SimSizing& sizing : played.result.sizings) {
    const size_t round = ++seen[sizing.tenant];
    if (sizing.end_ns == 0) continue;
    if (round == 1) {
      EXPECT_EQ(sizing.threads, FirstGroup(2048, 5, 2));
    } else if (round > 3 && round < 20) {
      // 10 ms, and what the turn before lacked of them: less than what one step is.
      EXPECT_NEAR(static_cast<double>(sizing.threads), sizing.tenant == 0 ? 9984 : 4992, 64) << "round " << round;
    }
  }
  EXPECT_GT(seen[0], 50u);
  EXPECT_NEAR(played.metrics.tenants[0].share, 0.5, 0.01);
}

// No stall between rounds: the device goes from one group to the next without a gap, because a group's size is decided
// before the device is free for it.
TEST(Rounds, FollowEachOtherWithoutAGap) {
  Scenario scenario = TwoKernels();
  const Played played = Play(scenario, "split");
  EXPECT_DOUBLE_EQ(played.metrics.busy, 1.0);
  EXPECT_EQ(played.metrics.idle_with_work, 0.0);
}

// With two groups in flight, a size is decided while the group before it runs, from what is known then: the measurement
// of group t counts from group t + 2 on.
TEST(Rounds, ASizeIsUsedTwoGroupsLater) {
  Scenario scenario = TwoKernels();
  scenario.settings = {{"slice_us", "10000"}, {"unit_us", "600"}};
  const Played played = Play(scenario, "fair");  // Pieces of 0.6 ms, two of them in flight.
  std::vector<SimSizing> of_first;
  for (const SimSizing& sizing : played.result.sizings) {
    if (sizing.tenant == 0 && sizing.end_ns != 0) of_first.push_back(sizing);
  }
  size_t seen = 0;
  for (size_t i = 0; i + 2 < of_first.size(); ++i) {
    // Three that belong to one grant and follow each other.
    if (of_first[i + 1].begin_ns != of_first[i].end_ns || of_first[i + 2].begin_ns != of_first[i + 1].end_ns) continue;
    EXPECT_GE(of_first[i + 2].at_ns, of_first[i].end_ns) << i;        // Knows group i.
    EXPECT_LE(of_first[i + 2].at_ns, of_first[i + 1].begin_ns) << i;  // As soon as i + 1 runs.
    ++seen;
  }
  EXPECT_GT(seen, 500u);
}

/// Runtimes of the first ten repeats of each tenant, by the mean of its class (equal kernels).
std::vector<double> Repeats(const SimResult& result) {
  std::vector<double> normalised;
  for (size_t i = 0; i < result.tenants.size(); ++i) {
    std::vector<double> of_class;
    for (size_t j = 0; j < result.tenants.size(); ++j) {
      if (result.scenario.clients[j].kernels[0].length_ns != result.scenario.clients[i].kernels[0].length_ns) continue;
      for (size_t r = 0; r < 10 && r < result.tenants[j].requests.size(); ++r) {
        const SimRequest& request = result.tenants[j].requests[r];
        of_class.push_back(static_cast<double>(request.end_ns - request.arrival_ns));
      }
    }
    const double mean = Describe(of_class).mean_ns;
    EXPECT_GE(result.tenants[i].requests.size(), 10u) << result.scenario.name;
    for (size_t r = 0; r < 10 && r < result.tenants[i].requests.size(); ++r) {
      const SimRequest& request = result.tenants[i].requests[r];
      normalised.push_back(static_cast<double>(request.end_ns - request.arrival_ns) / mean);
    }
  }
  return normalised;
}

// Figures 7, 8 and 10: six tenants, ten repeats each.
TEST(Experiments, DeviationShrinks) {
  for (const char* scenario : {"split-7-12k", "split-7-13k", "split-7-14k", "split-8-9k-14k", "split-8-10k-14k",
                               "split-8-11k-13k", "split-10-options-5m", "split-10-options-10m", "split-10-options-20m",
                               "split-10-options-mixed", "split-9-sobel-8192"}) {
    const Distribution fifo = Describe(Repeats(Play(scenario, "fifo").result));
    for (const char* policy : {"split", "fair"}) {
      const Played played = Play(scenario, policy);
      const Distribution shared = Describe(Repeats(played.result));
      EXPECT_LE(shared.cv, 0.5 * fifo.cv)
          << scenario << " under " << policy << ": " << shared.cv << ", fifo " << fifo.cv;
      EXPECT_LE(shared.max_ns / shared.min_ns, 1.2) << scenario << " under " << policy;
      RecordProperty(std::string(scenario) + "-" + policy, std::to_string(shared.cv / fifo.cv));
    }
  }
}

// Figure 9 with tasks of a millisecond. A slice as long as the task splits nothing, and an order other than that of
// arrival makes waits vary more. With a slice of a tenth of it the deviation is half of FIFO's beside longer tasks;
// among equals the rest is chance: how many are there when one comes.
TEST(Experiments, TasksShorterThanASliceAreNotHelped) {
  const auto deviation = [](Scenario scenario, const char* policy, const char* slice_us) {
    if (slice_us != nullptr) scenario.settings["slice_us"] = slice_us;
    return Describe(Repeats(Play(scenario, policy).result)).cv;
  };
  for (const char* name : {"split-9-sobel-2560", "split-9-sobel-mixed"}) {
    const Scenario scenario = Load(name);
    const double fifo = deviation(scenario, "fifo", nullptr);
    EXPECT_GT(deviation(scenario, "split", nullptr), fifo) << name;
    const bool equals = scenario.clients.front().kernels[0].length_ns == scenario.clients.back().kernels[0].length_ns;
    EXPECT_LE(deviation(scenario, "split", "100"), (equals ? 1.1 : 0.5) * fifo) << name;
  }
}

}  // namespace
}  // namespace hawser::scheduler
