// SPDX-License-Identifier: Apache-2.0
// Playing a scenario in a test.
#ifndef HAWSER_TESTS_UNIT_SCHEDULER_SIMULATE_H_
#define HAWSER_TESTS_UNIT_SCHEDULER_SIMULATE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/scenario.h"
#include "scheduler/sim/simulator.h"

namespace hawser::scheduler {

struct Played {
  SimResult result;
  Metrics metrics;
};

inline Scenario Load(const std::string& name) {
  auto scenario = FindScenario(name);
  EXPECT_TRUE(scenario.ok()) << scenario.status().text();
  return scenario.ok() ? *scenario : Scenario{};
}

inline Played Play(const Scenario& scenario, const std::string& policy, SimOptions options = {}) {
  // What a callback costs on this machine at this moment is not what these tests are about.
  options.host.callback_cpu_ns = 0;
  options.host.callback_wall_ns = 0;
  const auto library = PolicyLibrary::Find(policy);
  EXPECT_TRUE(library.ok()) << library.status().text();
  auto result = Simulate(scenario, library.value(), std::move(options));
  EXPECT_TRUE(result.ok()) << result.status().text();
  Played played;
  if (!result.ok()) return played;
  played.result = std::move(*result);
  played.metrics = Measure(played.result);
  EXPECT_FALSE(played.result.ejected) << scenario.name << " under " << policy;
  return played;
}

inline Played Play(const std::string& scenario, const std::string& policy) { return Play(Load(scenario), policy); }

}  // namespace hawser::scheduler

#endif  // HAWSER_TESTS_UNIT_SCHEDULER_SIMULATE_H_
