// SPDX-License-Identifier: Apache-2.0
// Runs one policy: calls it, checks what it answers, measures what it takes, and puts the built-in `fair` in its place
// when it fails. It knows no grants: Scheduler asks it, and does what it says.
//
// Threading: one thread, the scheduler's. Time is the caller's.
#ifndef HAWSER_SCHEDULER_CORE_POLICY_HOST_H_
#define HAWSER_SCHEDULER_CORE_POLICY_HOST_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/core/policy_library.h"
#include "scheduler/core/tenant.h"

namespace hawser::scheduler {

/// Something an operator should see.
struct PolicyEvent {
  enum class Kind { kLoaded, kSlow, kEjected, kLog, kRunaway };
  Kind kind;
  uint64_t at_ns = 0;
  std::string policy = {};  ///< Whom it is about; for kRunaway the tenant.
  std::string text = {};    ///< What happened, for people.
  std::string dump = {};    ///< kEjected: JSON, the policy's state and the tenants' as they were.
  TenantId tenant = 0;      ///< kRunaway.
  /// kRunaway: the workers that keep the device, as it was found out (BasicArbiter's doors).
  std::vector<uint64_t> doors = {};
  std::string reason = {};  ///< kEjected: what rule it broke.
};
using EventFunction = std::function<void(const PolicyEvent&)>;

struct PolicyHostOptions {
  std::map<std::string, std::string> settings;  ///< What hawser_host.cfg() answers.
  uint64_t default_slice_ns = 2'000'000;
  uint64_t min_slice_ns = 0;            ///< Shorter slices are lengthened to this.
  uint64_t max_slice_ns = 100'000'000;  ///< Longer ones are cut.
  uint64_t default_unit_ns = 500'000;
  uint64_t min_unit_ns = 10'000;  ///< Shorter pieces are lengthened to this: to launch one takes about as long.
  /// At least a little more than the slice, so that a piece fills it also when it was rounded down to whole
  /// work-groups.
  bool default_unit_fills = false;
  uint64_t default_cap_ns = 1'000'000;  ///< Or the slice, if that is shorter.
  uint64_t max_cap_ns = 20'000'000;
  uint64_t max_wait_ns = 10'000'000;       ///< Of one answer HAWSER_SELECT_WAIT, and of linger.
  uint64_t min_timer_ns = 250'000;         ///< From one on_timer() to the next.
  uint64_t max_idle_ns = 100'000'000;      ///< Of waits in a row, while somebody has work: more is a stall.
  uint64_t starvation_ns = 1'000'000'000;  ///< 0: no guard. Longer for who has little weight, or had a long grant.
  uint64_t callback_cpu_ns = 200'000;      ///< Processor time of a callback; 0: not measured.
  uint64_t callback_wall_ns = 50'000'000;  ///< Passed time of a callback, which counts sleeping; 0: not measured.
  uint64_t slow_callbacks = 3;             ///< So many of one kind in a row end a policy.
};

/// What to do now.
struct Choice {
  enum class Kind { kNobody, kWait, kGrant };
  Kind kind = Kind::kNobody;
  Tenant* who = nullptr;
  uint64_t slice_ns = 0;
  uint64_t cap_ns = 0;
  uint64_t unit_ns = 0;  ///< HAWSER_UNIT_WHOLE: do not split.
  uint64_t linger_ns = 0;
  uint64_t wait_ns = 0;
  bool never_open = false;
};

class PolicyHost {
 public:
  PolicyHost(TenantTable& tenants, PolicyHostOptions options, EventFunction events);
  ~PolicyHost();
  PolicyHost(const PolicyHost&) = delete;
  PolicyHost& operator=(const PolicyHost&) = delete;

  /// Begins to run this policy, in place of the one that runs now; tells it who is there. If it cannot be run, the
  /// old one stays. Until the first success nothing else may be called.
  wire::Status Use(const PolicyLibrary& library, uint64_t now_ns);

  void Added(Tenant& tenant, uint64_t now_ns);
  void Removed(Tenant& tenant, uint64_t now_ns);  ///< While the tenant is still in the table.
  void Configured(Tenant& tenant, uint64_t now_ns);
  void Runnable(Tenant& tenant, uint64_t now_ns);
  void Idle(Tenant& tenant, uint64_t now_ns);
  void Charged(Tenant& tenant, uint64_t gpu_ns, uint32_t why, uint64_t now_ns);
  bool Preempt(Tenant& running, Tenant& woken, uint64_t now_ns);
  Tenant* Stage(Tenant& running, uint64_t now_ns);
  Tenant* MemoryVictim(Tenant& asker, uint64_t bytes, uint64_t now_ns);
  Tenant* MemoryWinner(uint64_t bytes, uint64_t now_ns);
  /// The device is free. kNobody: nobody has work, or all who have are above their maximum.
  Choice Select(uint64_t now_ns);
  /// Calls on_timer() if it is due.
  void Advance(uint64_t now_ns);

  uint64_t timer_ns() const { return timer_ns_; }  ///< UINT64_MAX: none.
  /// Timers that policies wanted sooner after on_timer() than they get them.
  uint64_t hurried_timers() const { return hurried_timers_; }
  /// Decisions whose units were shorter than a piece may be.
  uint64_t short_units() const { return short_units_; }
  /// Whom the policy wanted to lose the device during the last calls; null: nobody. Forgets it.
  Tenant* TakeRevoked();

  /// For so long it is fair to let wait who has work: longer for who has little weight, or has had a long grant.
  uint64_t DebtNs(const Tenant& tenant) const { return DebtNs(tenant, Weights()); }

  /// How much at least a tenant must be allowed before it is worth a grant.
  uint64_t quantum_ns() const { return options_.default_slice_ns; }
  /// The settings that policies have asked for so far.
  const std::set<std::string>& asked_settings() const { return asked_settings_; }
  const std::string& policy_name() const { return name_; }
  bool ejected() const { return ejections_ > 0; }
  uint64_t ejections() const { return ejections_; }
  std::string Dump();

 private:
  uint64_t DefaultUnit(uint64_t slice_ns) const {
    return std::max(options_.default_unit_ns, options_.default_unit_fills ? slice_ns + slice_ns / 8 : 0);
  }

  uint64_t Weights() const;
  uint64_t DebtNs(const Tenant& tenant, uint64_t weights) const;

  /// Nobody may ask to be asked again sooner: time must pass between.
  static constexpr uint64_t kShortestWaitNs = 1000;

  class Call;

  static uint64_t HostNow(void* ctx);
  static void HostView(void* ctx, const hawser_tenant* tenant, hawser_tenant_view* view);
  static void* HostPrivate(void* ctx, hawser_tenant* tenant);
  static hawser_tenant* HostNextTenant(void* ctx, hawser_tenant* previous);
  static hawser_tenant* HostNextRunnable(void* ctx, hawser_tenant* previous);
  static void HostRevoke(void* ctx, hawser_tenant* tenant);
  static void HostTimer(void* ctx, uint64_t at_ns);
  static const char* HostSetting(void* ctx, const char* key);
  static void HostLog(void* ctx, int level, const char* text);

  void Stop();
  bool Tell(Tenant& tenant, uint64_t now_ns);
  /// As InTime(), for what is called once and may take its time: an operator hears of it.
  void Mention(const std::string& policy, const char* callback);
  /// What there is to say of the last callback's time; empty: nothing.
  std::string Slowness(const char* callback) const;
  /// The policy has failed. Puts `fair` in its place.
  void Eject(const std::string& reason);
  /// Whether where it runs it can go on no longer.
  bool RunFailed() const { return run_ != nullptr && !run_->failure().empty(); }
  /// Looks at how the last callback went, and at its time; false: the policy was ejected for it.
  bool InTime(const char* callback);
  std::optional<std::string> Wrong(int result, const hawser_decision& decision) const;
  Choice Bounded(const hawser_decision& decision);
  void GuardStarvation(const Tenant& chosen);
  Choice Fallback();
  void Emit(PolicyEvent::Kind kind, std::string text);

  TenantTable& tenants_;
  const PolicyHostOptions options_;
  const EventFunction events_;
  hawser_host host_{};
  std::optional<PolicyLibrary> library_;  ///< Of the policy that runs; keeps it in memory.
  std::shared_ptr<PolicyRun> run_;        ///< If it runs elsewhere.
  hawser_policy policy_{};
  void* state_ = nullptr;
  std::string name_;
  bool is_fallback_ = false;
  uint64_t now_ns_ = 0;
  uint64_t timer_ns_ = UINT64_MAX;
  uint64_t next_timer_ns_ = 0;  ///< Not before; each on_timer() wakes the scheduler's thread.
  uint64_t hurried_timers_ = 0;
  uint64_t short_units_ = 0;
  const hawser_tenant* revoked_ = nullptr;
  uint64_t idle_since_ns_ = UINT64_MAX;  ///< Since when the policy has kept the device idle.
  uint64_t last_cpu_ns_ = 0, last_wall_ns_ = 0;
  bool last_elsewhere_ = false;                    ///< The last callback was in another process.
  std::map<std::string, uint64_t> slow_in_a_row_;  ///< By callback.
  uint64_t ejections_ = 0;
  uint64_t fallback_failed_at_ns_ = 0;  ///< When that was told last; 0: never.
  uint64_t fallback_failures_ = 0;
  std::set<std::string> asked_settings_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_POLICY_HOST_H_
