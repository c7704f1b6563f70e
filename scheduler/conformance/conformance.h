// SPDX-License-Identifier: Apache-2.0
// Whether a policy keeps to the rules of hawser/policy.h: it is played through all built-in scenarios, through random
// ones, and through tenants that come and go, in a process of its own, so that one that crashes or does not return is
// found as well.
#ifndef HAWSER_SCHEDULER_CONFORMANCE_CONFORMANCE_H_
#define HAWSER_SCHEDULER_CONFORMANCE_CONFORMANCE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scheduler/core/policy_library.h"
#include "scheduler/sim/scenario.h"
#include "wire/status.h"

namespace hawser::scheduler {

struct ConformanceOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 50;                         ///< Random scenarios, and as many with tenants that come and go.
  std::chrono::milliseconds patience{20'000};  ///< For one scenario, in real time: a callback that does not return.
  /// Where the policy comes from; called in the child process.
  std::function<wire::Result<PolicyLibrary>(const std::string&)> open = PolicyLibrary::Find;
};

struct ConformanceCase {
  std::string name;                   ///< Of the scenario.
  std::vector<std::string> problems;  ///< None: passed.
};

/// Plays one scenario and says what was wrong. In this process.
std::vector<std::string> CheckScenario(const Scenario& scenario, const PolicyLibrary& policy);

/// Lets tenants come, go, be configured anew, and work at random times. In this process.
std::vector<std::string> CheckChurn(uint64_t seed, const PolicyLibrary& policy);

/// All of it, each policy in a child process. `told` hears of each case when it is over. kInvalid, kRefused: the policy
/// cannot be loaded, with the reason. Call it while this process has one thread.
wire::Result<std::vector<ConformanceCase>> TestConformance(
    const std::string& name_or_path, const ConformanceOptions& options,
    const std::function<void(const ConformanceCase&)>& told = {});

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CONFORMANCE_CONFORMANCE_H_
