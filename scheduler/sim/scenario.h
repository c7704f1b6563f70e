// SPDX-License-Identifier: Apache-2.0
// What a simulation plays: tenants, what they run, when they ask. Read from JSON; the built-in ones are the files in
// scheduler/scenarios/, compiled in.
#ifndef HAWSER_SCHEDULER_SIM_SCENARIO_H_
#define HAWSER_SCHEDULER_SIM_SCENARIO_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/core/tenant.h"
#include "wire/status.h"

namespace hawser::scheduler {

/// What a request executes.
struct SimKernel {
  uint64_t length_ns = 1'000'000;
  uint64_t unit_ns = 0;      ///< Shortest piece into which it can be split; 0: only whole.
  uint64_t threads = 0;      ///< If not 0, it is split by threads, with the rate that was measured, like a real kernel.
  uint64_t work_group = 64;  ///< Threads of a work-group.
};

struct SimClient {
  enum class Arrival {
    kClosed,    ///< Sends the next request `think_ns` after one is done; `depth` requests at once.
    kPeriodic,  ///< Every `think_ns`, whether or not the last is done.
    kPoisson,   ///< At random, `think_ns` apart on average.
  };
  TenantConfig tenant;
  Arrival arrival = Arrival::kClosed;
  uint64_t think_ns = 0;
  double think_jitter = 0;   ///< Think times vary by up to this part of them, evenly.
  double length_jitter = 0;  ///< And lengths.
  uint32_t depth = 1;
  uint64_t start_ns = 0;
  uint64_t stop_ns = UINT64_MAX;                      ///< Sends nothing from then on.
  uint64_t requests = 0;                              ///< Sends so many; 0: no limit.
  std::vector<std::pair<uint64_t, uint64_t>> sleeps;  ///< Sends nothing between; in order.
  std::vector<SimKernel> kernels;                     ///< In turn.
};

struct Scenario {
  std::string name;
  std::string summary;
  uint64_t duration_ns = 10'000'000'000;
  uint64_t seed = 1;
  uint64_t handoff_ns = 0;   ///< From one tenant's end to the next one's beginning.
  uint64_t decision_ns = 0;  ///< Each decision takes so long, with the device idle.
  uint64_t starvation_ns = 1'000'000'000;
  uint64_t max_unit_ns = 10'000'000'000;
  uint64_t alone_after_ns = 100'000'000;
  uint64_t cores = 2048;  ///< For the size of a first thread group.
  double beta = 10;
  std::map<std::string, std::string> settings;  ///< For the policy.
  std::vector<SimClient> clients;
};

/// Reads a scenario. Text of any origin: bounded (1 MiB, 256 tenants, an hour of virtual time), unknown keys are
/// errors. The status names the key.
wire::Result<Scenario> ParseScenario(std::string_view json, const std::string& from);

struct BuiltinScenario {
  std::string_view name;
  std::string_view json;
};
const std::vector<BuiltinScenario>& BuiltinScenarios();

/// A built-in scenario's name, random-<seed>, or a file's path (with a slash, or ending with .json).
wire::Result<Scenario> FindScenario(const std::string& name_or_path);

/// A scenario from a seed: 1 to 8 tenants of all kinds, several seconds.
Scenario RandomScenario(uint64_t seed);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_SIM_SCENARIO_H_
