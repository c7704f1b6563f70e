// SPDX-License-Identifier: Apache-2.0
// Plays a scenario in virtual time with the scheduler and the policy that a server would run. Deterministic: the same
// scenario, the same policy, the same result.
//
// The device runs one piece after the other and cannot interrupt one. Workers keep to the rules of scheduler/grant/:
// they submit while they have a grant, in-flight work is below the cap, and the slice is not used up.
#ifndef HAWSER_SCHEDULER_SIM_SIMULATOR_H_
#define HAWSER_SCHEDULER_SIM_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/core/policy_library.h"
#include "scheduler/core/scheduler.h"
#include "scheduler/sim/scenario.h"
#include "wire/status.h"

namespace hawser::scheduler {

/// The device worked for a tenant, or a tenant had work. Times since the beginning.
struct SimInterval {
  size_t tenant = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

struct SimRequest {
  uint64_t arrival_ns = 0;
  uint64_t end_ns = 0;
};

/// Device time of a tenant so far: at the end of a grant; when it began or ceased to have work; and, of whoever has the
/// grant, when another did so.
struct SimSample {
  enum class Kind { kGrantEnd, kSnapshot, kBeginsWork, kEndsWork };
  uint64_t at_ns = 0;
  size_t tenant = 0;
  Kind kind = Kind::kGrantEnd;
  uint64_t used_ns = 0;
};

/// The size of a piece was decided. For kernels that are split by threads.
struct SimSizing {
  uint64_t at_ns = 0;
  size_t tenant = 0;
  uint64_t threads = 0;
  uint64_t begin_ns = 0;  ///< When the device began with it.
  uint64_t end_ns = 0;
};

struct SimTenant {
  std::string name;
  uint32_t weight = 100;
  uint64_t used_ns = 0;
  uint64_t charged_ns = 0;
  uint64_t grants = 0;
  uint64_t longest_charge_ns = 0;
  uint64_t longest_wait_ns = 0;      ///< From work, or the last grant, to the next grant's first piece.
  bool killed = false;               ///< Its kernel did not end.
  std::vector<SimRequest> requests;  ///< Done, in the order in which they ended.
};

struct SimResult {
  Scenario scenario;
  std::string policy;  ///< As asked for; `ejected` says whether it stayed.
  uint64_t duration_ns = 0;
  std::vector<SimTenant> tenants;
  std::vector<SimInterval> busy;  ///< In order; neighbours of one tenant are joined.
  std::vector<SimInterval> work;  ///< A tenant had work. In order of the end.
  std::vector<SimInterval> open;  ///< A tenant had an open grant.
  std::vector<SimSample> samples;
  std::vector<SimSizing> sizings;
  // The scheduler's own account (system_account.h), as a server shows it: until the last grant that has ended.
  uint64_t handoff_ns = 0;      ///< Idle because the device changed hands, or because a decision took time.
  uint64_t switches = 0;        ///< Grants to another tenant than the last, when it was not alone.
  uint64_t waited_ns = 0;       ///< Idle because the policy wanted to wait, although there was work.
  uint64_t lingered_ns = 0;     ///< Idle because whoever had the grant had no work, although others had.
  uint64_t timers = 0;          ///< Times that the scheduler had to be woken by a clock.
  uint64_t hurried_timers = 0;  ///< Timers that the policy wanted sooner after on_timer() than it gets them.
  uint64_t short_units = 0;     ///< Decisions whose pieces were lengthened.
  bool ejected = false;
  std::vector<PolicyEvent> events;
  std::set<std::string> asked_settings;  ///< That the policy looked for.
  std::string final_dump;
};

struct SimOptions {
  PolicyHostOptions host;  ///< `settings` and `starvation_ns` come from the scenario, and from here where set.
  uint64_t max_events = 20'000'000;
  /// Sees every end of a grant; for tests that look at the policy while it runs.
  std::function<void(Scheduler&, uint64_t now_ns)> on_grant_end;
};

/// kExhausted: more events than allowed.
wire::Result<SimResult> Simulate(const Scenario& scenario, const PolicyLibrary& policy, SimOptions options = {});

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_SIM_SIMULATOR_H_
