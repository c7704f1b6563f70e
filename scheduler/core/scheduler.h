// SPDX-License-Identifier: Apache-2.0
// Who has the device: the state machine between the policy and the workers. It is told what workers do and what time it
// is, and answers with grants; it owns no thread, no clock and no memory that is shared, so the simulator and the
// server run the very same one.
//
//   IDLE ──work──► RUNNABLE ──Give──► GRANTED ──Revoke, or slice used──► DRAINING ──Drained──► RUNNABLE or IDLE
//
// * One tenant at a time has a grant. The next is chosen when the last has drained, so what it used is known by then.
// * Who is alone (nobody else has had work for `alone_after_ns`) gets an open grant: no end, no timers, kernels whole,
// and still
//   a bound on what is in flight, so that a newcomer's first wait is bounded.
// * A grant may stand idle for `linger` while others wait; without others, for as long as it likes.
// * Who is above its maximum share is idle for the policy until it is below; it never gets an open grant.
// * Who keeps the device from others for `max_unit_ns` and has not much to show for it (kept_time.h) is reported; the
// server ends its workers. It is not the holder while something that another one let leave early has not ended.
// * What a worker says that it used is believed within bounds (used_time.h).
//
// Threading: one thread. GrantSink's functions are called from within; they must not call back.
#ifndef HAWSER_SCHEDULER_CORE_SCHEDULER_H_
#define HAWSER_SCHEDULER_CORE_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <string>

#include "scheduler/core/policy_host.h"
#include "scheduler/core/system_account.h"
#include "scheduler/core/tenant.h"
#include "wire/status.h"

namespace hawser::scheduler {

struct Grant {
  enum class Kind { kOpen, kSlice };
  Kind kind = Kind::kSlice;
  uint64_t epoch = 0;     ///< Never used twice.
  uint64_t slice_ns = 0;  ///< kSlice: device time after which the worker stops by itself.
  uint64_t cap_ns = 0;    ///< A worker submits while what it has in flight is estimated below this.
  uint64_t unit_ns = 0;   ///< Length of the pieces of a kernel; HAWSER_UNIT_WHOLE: do not split.
};

/// Tells workers. Called by the scheduler's thread.
class GrantSink {
 public:
  virtual ~GrantSink() = default;
  virtual void Give(TenantId tenant, const Grant& grant) = 0;
  /// Stop submitting. Drained() must follow, also if nothing is in flight.
  virtual void Revoke(TenantId tenant) = 0;
  /// Is likely to be next: after a Give() to another one. Holds until it is given the device, or another one is staged.
  virtual void Stage(TenantId tenant) = 0;
};

struct SchedulerOptions {
  PolicyHostOptions policy;
  uint64_t alone_after_ns = 100'000'000;
  uint64_t open_cap_ns = 10'000'000;
  uint64_t max_unit_ns = 10'000'000'000;  ///< 0: no limit.
};

class Scheduler {
 public:
  Scheduler(SchedulerOptions options, GrantSink& sink, EventFunction events);

  /// First of all: the policy. Later: another one.
  wire::Status Use(const PolicyLibrary& library, uint64_t now_ns);

  TenantId Add(TenantConfig config, uint64_t now_ns);
  /// Its worker is gone, and nothing of it is on the device.
  void Remove(TenantId id, uint64_t now_ns);
  void Configure(TenantId id, TenantConfig config, uint64_t now_ns);

  /// What a worker says. Comes before Runnable(), Idle() and Drained() of the same moment.
  void Facts(TenantId id, const WorkerFacts& facts, uint64_t now_ns);
  void Runnable(TenantId id, uint64_t now_ns);  ///< Had no work, has some.
  void Idle(TenantId id, uint64_t now_ns);      ///< Nothing waits, nothing is in flight.
  /// Whoever has the grant has stopped, because its slice is used or it was asked, and nothing is in flight.
  void Drained(TenantId id, uint64_t now_ns);
  /// Time has passed. Call it at next_wake_ns() at the latest.
  void Advance(uint64_t now_ns);
  uint64_t next_wake_ns() const;  ///< UINT64_MAX: only if something happens.

  /// For how long what the tenant had may count against it.
  uint64_t DebtNs(TenantId id);

  const TenantTable& tenants() const { return tenants_; }
  const Tenant* holder() const { return holder_; }
  bool holder_is_open() const { return holder_ != nullptr && grant_.kind == Grant::Kind::kOpen; }
  /// What nobody is charged with, although somebody had work.
  const SystemTime& system() const { return system_.time(); }
  uint64_t departed_used_ns() const { return departed_used_ns_; }  ///< By tenants that are gone.
  PolicyHost& policy() { return host_; }
  const PolicyHost& policy() const { return host_; }

 private:
  /// `tenant` wants the device since now; the policy is told.
  void Woken(Tenant& tenant, uint64_t now_ns);
  /// Sees who is above its maximum share, and who is no longer.
  void Hold(Tenant& tenant, uint64_t now_ns);
  void ReleaseHeld(uint64_t now_ns);
  bool IsAbove(const Tenant& tenant, uint64_t now_ns) const {
    return tenant.limit.ReadyAt(host_.quantum_ns()) > now_ns;
  }
  void Dispatch(uint64_t now_ns);
  void Give(const Choice& choice, uint64_t now_ns);
  void Revoke();
  /// At the end of whatever changes who has the device or work: what the time from now on is for.
  void Reckon(uint64_t now_ns);
  /// At the beginning of whatever happens: what the time that has passed was for, as everything was until now.
  void PassTime(uint64_t now_ns);
  /// Whether it is this tenant that keeps the device from others.
  bool Keeps(const Tenant& tenant) const;
  void FindRunaways(uint64_t now_ns);
  void Used(Tenant& tenant, uint64_t used_ns, uint64_t now_ns);
  uint64_t TailNs() const;
  void EndGrant(uint64_t now_ns);
  /// Charges what the holder of an open grant used while it was alone.
  void ChargeAlone(uint64_t now_ns);
  void CheckLinger(uint64_t now_ns);
  void ObeyPolicy();
  bool OthersHaveWork(const Tenant& tenant) const;
  bool IsAlone(const Tenant& tenant, uint64_t now_ns) const;

  const SchedulerOptions options_;
  GrantSink& sink_;
  const EventFunction events_;
  TenantTable tenants_;
  PolicyHost host_;
  TenantId last_id_ = 0;
  uint64_t last_epoch_ = 0;

  Tenant* holder_ = nullptr;
  Grant grant_;
  bool draining_ = false;
  uint64_t used_before_ns_ = 0;  ///< The holder's used_ns when it got its grant.
  uint64_t linger_left_ns_ = 0;
  uint64_t lingers_since_ns_ = UINT64_MAX;  ///< Since when the holder has had no work.
  uint64_t passed_at_ns_ = 0;               ///< Until when PassTime() has looked.

  uint64_t wait_until_ns_ = UINT64_MAX;  ///< The policy keeps the device idle until then.
  uint64_t departed_used_ns_ = 0;
  uint64_t all_used_ns_ = 0;  ///< By all tenants, also those that are gone.
  SystemAccount system_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_SCHEDULER_H_
