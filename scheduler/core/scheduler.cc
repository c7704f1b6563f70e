// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/scheduler.h"

#include <algorithm>
#include <utility>

using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

constexpr uint64_t kMostDebtNs = 600'000'000'000;

/// A slice that its worker ended at once, without having used anything, costs so much: else it could have one after the
/// other.
constexpr uint64_t kInVainNs = 50'000;

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, GrantSink& sink, EventFunction events)
    : options_(std::move(options)), sink_(sink), events_(events), host_(tenants_, options_.policy, std::move(events)) {}

Status Scheduler::Use(const PolicyLibrary& library, uint64_t now_ns) { return host_.Use(library, now_ns); }

TenantId Scheduler::Add(TenantConfig config, uint64_t now_ns) {
  Tenant& tenant = tenants_.Add(++last_id_, std::move(config));
  tenant.since_ns = now_ns;
  tenant.limit.Set(tenant.config.max_share_ppm, now_ns);
  host_.Added(tenant, now_ns);
  return tenant.id;
}

void Scheduler::Remove(TenantId id, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr) return;
  if (tenant == holder_) EndGrant(now_ns);
  if (tenant->has_work) {
    const bool wanted = tenant->wants();
    tenant->has_work = false;
    tenant->state = HAWSER_TENANT_IDLE;
    if (wanted) host_.Idle(*tenant, now_ns);
  }
  host_.Removed(*tenant, now_ns);
  departed_used_ns_ += tenant->facts.used_ns;
  tenants_.Remove(id);
  ObeyPolicy();
  Dispatch(now_ns);
  Reckon(now_ns);
}

void Scheduler::Configure(TenantId id, TenantConfig config, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr) return;
  config.weight = std::max(1u, config.weight);
  tenant->config = std::move(config);
  tenant->limit.Set(tenant->config.max_share_ppm, now_ns);
  host_.Configured(*tenant, now_ns);
  if (tenant == holder_) {
    if (tenant->limit.limited() && grant_.kind == Grant::Kind::kOpen) Revoke();
  } else {
    Hold(*tenant, now_ns);
    ReleaseHeld(now_ns);
  }
  ObeyPolicy();
  Reckon(now_ns);
}

void Scheduler::Facts(TenantId id, const WorkerFacts& facts, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr) return;
  const uint64_t before = tenant->facts.used_ns;
  const uint64_t used = tenant->used.Believe(facts.used_ns, std::max(tenant->facts.tail_ns, facts.tail_ns));
  tenant->facts = facts;
  tenant->facts.used_ns = before;
  if (used == 0) return;
  // Short work in a grant that it has begins and ends unseen, or is seen at its end each time.
  if (!tenant->has_work) tenant->since_ns = now_ns;
  tenant->kept.Used(used);
  Used(*tenant, used, now_ns);
}

void Scheduler::Used(Tenant& tenant, uint64_t used_ns, uint64_t now_ns) {
  tenant.facts.used_ns += used_ns;
  tenant.window.Add(used_ns, now_ns);
  all_used_ns_ += used_ns;
}

void Scheduler::Runnable(TenantId id, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr || tenant->has_work) return;
  if (holder_ != nullptr && holder_ != tenant && !OthersHaveWork(*holder_)) ChargeAlone(now_ns);
  tenant->has_work = true;
  tenant->since_ns = now_ns;
  if (tenant == holder_) {
    const uint64_t idle = now_ns - std::min(now_ns, lingers_since_ns_);
    linger_left_ns_ -= std::min(linger_left_ns_, OthersHaveWork(*tenant) ? idle : 0);
    lingers_since_ns_ = UINT64_MAX;
    host_.Runnable(*tenant, now_ns);
    ObeyPolicy();
    Reckon(now_ns);
    return;
  }
  tenant->state = HAWSER_TENANT_RUNNABLE;
  tenant->held = IsAbove(*tenant, now_ns);
  if (!tenant->held) Woken(*tenant, now_ns);
  Reckon(now_ns);
}

void Scheduler::Woken(Tenant& tenant, uint64_t now_ns) {
  tenant.waits_since_ns = now_ns;
  tenant.served_others = 0;
  host_.Runnable(tenant, now_ns);
  if (holder_ == nullptr) {
    Dispatch(now_ns);
  } else if (!draining_) {
    if (grant_.kind == Grant::Kind::kOpen || host_.Preempt(*holder_, tenant, now_ns)) {
      Revoke();
    } else {
      CheckLinger(now_ns);
    }
  }
  ObeyPolicy();
}

void Scheduler::Hold(Tenant& tenant, uint64_t now_ns) {
  if (!tenant.wants() || !IsAbove(tenant, now_ns)) return;
  tenant.held = true;
  tenant.since_ns = now_ns;
  host_.Idle(tenant, now_ns);
}

void Scheduler::ReleaseHeld(uint64_t now_ns) {
  for (const auto& tenant : tenants_.all()) {
    if (!tenant->held || IsAbove(*tenant, now_ns)) continue;
    tenant->held = false;
    if (!tenant->has_work) continue;
    if (holder_ != nullptr && !OthersHaveWork(*holder_)) ChargeAlone(now_ns);
    tenant->since_ns = now_ns;
    Woken(*tenant, now_ns);
  }
}

void Scheduler::Idle(TenantId id, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr || !tenant->has_work) return;
  const bool wanted = tenant->wants();
  tenant->has_work = false;
  if (tenant != holder_) tenant->state = HAWSER_TENANT_IDLE;
  if (wanted) {
    tenant->since_ns = now_ns;
    host_.Idle(*tenant, now_ns);
  }
  if (tenant == holder_) {
    lingers_since_ns_ = now_ns;
    CheckLinger(now_ns);
  }
  ObeyPolicy();
  Reckon(now_ns);
}

void Scheduler::Drained(TenantId id, uint64_t now_ns) {
  PassTime(now_ns);
  Tenant* tenant = tenants_.Find(id);
  if (tenant == nullptr || tenant != holder_) return;
  EndGrant(now_ns);
  ObeyPolicy();
  Dispatch(now_ns);
  Reckon(now_ns);
}

void Scheduler::EndGrant(uint64_t now_ns) {
  Tenant& tenant = *holder_;
  const bool in_vain = !draining_ && tenant.has_work && tenant.facts.used_ns == used_before_ns_;
  const uint64_t more = tenant.used.Assess(in_vain ? kInVainNs : 0);
  if (more != 0) Used(tenant, more, now_ns);
  system_.End(now_ns, all_used_ns_, TailNs());
  holder_ = nullptr;
  draining_ = false;
  lingers_since_ns_ = UINT64_MAX;
  tenant.state = tenant.has_work ? HAWSER_TENANT_RUNNABLE : HAWSER_TENANT_IDLE;
  tenant.last_served_ns = now_ns;
  tenant.waits_since_ns = now_ns;
  ++tenant.grants;
  // With what was known too late of its last grant: see page.h about tails.
  const uint64_t used = tenant.facts.used_ns - tenant.charged_ns;
  if (used == 0) return;
  tenant.longest_charge_ns = std::max(tenant.longest_charge_ns, used);
  const bool overrun = grant_.kind == Grant::Kind::kSlice && tenant.facts.used_ns - used_before_ns_ > grant_.slice_ns;
  host_.Charged(tenant, used, overrun ? uint32_t{HAWSER_CHARGE_OVERRUN} : 0u, now_ns);
  tenant.limit.Charge(used, now_ns);
  Hold(tenant, now_ns);
}

void Scheduler::ChargeAlone(uint64_t now_ns) {
  if (grant_.kind != Grant::Kind::kOpen || draining_) return;
  const uint64_t used = holder_->facts.used_ns - holder_->charged_ns;
  if (used == 0) return;
  host_.Charged(*holder_, used, HAWSER_CHARGE_ALONE, now_ns);
}

void Scheduler::PassTime(uint64_t now_ns) {
  const uint64_t passed = now_ns - std::min(now_ns, passed_at_ns_);
  if (passed == 0) return;
  passed_at_ns_ = now_ns;
  for (const auto& tenant : tenants_.all()) {
    if (tenant.get() != holder_ && !tenant->facts.tail) continue;
    tenant->used.Pass(passed);
    if (!Keeps(*tenant)) continue;
    tenant->used.Keep(passed);
    tenant->kept.Pass(passed);
  }
}

bool Scheduler::Keeps(const Tenant& tenant) const {
  if (&tenant != holder_) return tenant.facts.tail && OthersHaveWork(tenant);
  if (!(tenant.has_work || draining_) || !OthersHaveWork(tenant)) return false;
  // Something that was to end at once when the holder got its grant, and has not.
  return std::none_of(tenants_.all().begin(), tenants_.all().end(),
                      [&](const auto& other) { return other.get() != &tenant && other->facts.tail; });
}

void Scheduler::FindRunaways(uint64_t now_ns) {
  if (options_.max_unit_ns == 0) return;
  for (const auto& tenant : tenants_.all()) {
    if (!Keeps(*tenant) || tenant->kept.LeftNs(options_.max_unit_ns) != 0) continue;
    tenant->kept.Again();
    if (!events_) continue;
    events_({.kind = PolicyEvent::Kind::kRunaway,
             .at_ns = now_ns,
             .policy = tenant->config.name,
             .text = "tenant " + tenant->config.name + " has kept the device busy for longer than the limit of a piece",
             .tenant = tenant->id});
  }
}

void Scheduler::Advance(uint64_t now_ns) {
  PassTime(now_ns);
  host_.Advance(now_ns);
  ObeyPolicy();
  ReleaseHeld(now_ns);
  if (holder_ != nullptr) {
    CheckLinger(now_ns);
    FindRunaways(now_ns);
  } else if (now_ns >= wait_until_ns_) {
    Dispatch(now_ns);
  }
  Reckon(now_ns);
}

uint64_t Scheduler::DebtNs(TenantId id) {
  const Tenant* tenant = tenants_.Find(id);
  return tenant != nullptr ? std::min(host_.DebtNs(*tenant), kMostDebtNs) : 0;
}

uint64_t Scheduler::next_wake_ns() const {
  uint64_t wake = host_.timer_ns();
  for (const auto& tenant : tenants_.all()) {
    if (tenant->held && tenant->has_work) wake = std::min(wake, tenant->limit.ReadyAt(host_.quantum_ns()));
  }
  if (holder_ == nullptr) return std::min(wake, wait_until_ns_);
  if (!draining_ && lingers_since_ns_ != UINT64_MAX && OthersHaveWork(*holder_)) {
    wake = std::min(wake, lingers_since_ns_ + linger_left_ns_);
  }
  if (options_.max_unit_ns == 0) return wake;
  for (const auto& tenant : tenants_.all()) {
    if (Keeps(*tenant)) wake = std::min(wake, passed_at_ns_ + tenant->kept.LeftNs(options_.max_unit_ns));
  }
  return wake;
}

void Scheduler::Dispatch(uint64_t now_ns) {
  if (holder_ != nullptr) return;
  wait_until_ns_ = UINT64_MAX;
  const Choice choice = host_.Select(now_ns);
  if (choice.kind == Choice::Kind::kGrant) {
    Give(choice, now_ns);
  } else if (choice.kind == Choice::Kind::kWait) {
    wait_until_ns_ = now_ns + choice.wait_ns;
  }
  host_.TakeRevoked();  // Nobody had the device when it was said.
}

void Scheduler::Give(const Choice& choice, uint64_t now_ns) {
  holder_ = choice.who;
  holder_->state = HAWSER_TENANT_GRANTED;
  grant_ = {};
  grant_.epoch = ++last_epoch_;
  if (!choice.never_open && IsAlone(*holder_, now_ns)) {
    grant_.kind = Grant::Kind::kOpen;
    grant_.cap_ns = options_.open_cap_ns;
    grant_.unit_ns = HAWSER_UNIT_WHOLE;
  } else {
    grant_.slice_ns = choice.slice_ns;
    grant_.cap_ns = choice.cap_ns;
    grant_.unit_ns = choice.unit_ns;
  }
  draining_ = false;
  used_before_ns_ = holder_->facts.used_ns;
  linger_left_ns_ = choice.linger_ns;
  lingers_since_ns_ = UINT64_MAX;
  holder_->used.Begin(holder_->facts.tail);
  holder_->kept.Begin(grant_.slice_ns);
  system_.Given(holder_->id, grant_.kind == Grant::Kind::kSlice);
  sink_.Give(holder_->id, grant_);
  if (OthersHaveWork(*holder_)) {
    const Tenant* next = host_.Stage(*holder_, now_ns);
    if (next != nullptr && next != holder_ && next->wants()) sink_.Stage(next->id);
  }
}

void Scheduler::Revoke() {
  if (holder_ == nullptr || draining_) return;
  draining_ = true;
  holder_->state = HAWSER_TENANT_DRAINING;
  sink_.Revoke(holder_->id);
}

void Scheduler::CheckLinger(uint64_t now_ns) {
  if (holder_ == nullptr || draining_ || lingers_since_ns_ == UINT64_MAX || !OthersHaveWork(*holder_)) return;
  if (now_ns >= lingers_since_ns_ + linger_left_ns_) Revoke();
}

void Scheduler::ObeyPolicy() {
  const Tenant* tenant = host_.TakeRevoked();
  if (tenant != nullptr && tenant == holder_ && grant_.kind == Grant::Kind::kSlice) Revoke();
}

void Scheduler::Reckon(uint64_t now_ns) {
  using Phase = SystemAccount::Phase;
  Phase phase = Phase::kNone;
  if (holder_ != nullptr) {
    if (grant_.kind == Grant::Kind::kSlice) {
      phase = holder_->has_work ? Phase::kServing : OthersHaveWork(*holder_) ? Phase::kLingering : Phase::kNone;
    }
  } else if (wait_until_ns_ != UINT64_MAX && tenants_.Next(nullptr, true) != nullptr) {
    phase = Phase::kWaiting;
  }
  system_.Enter(phase, now_ns, all_used_ns_, TailNs());
}

uint64_t Scheduler::TailNs() const {
  uint64_t tail = 0;
  for (const auto& tenant : tenants_.all()) tail += tenant->facts.tail_ns;
  return tail;
}

bool Scheduler::OthersHaveWork(const Tenant& tenant) const {
  return std::any_of(tenants_.all().begin(), tenants_.all().end(),
                     [&](const auto& other) { return other.get() != &tenant && other->wants(); });
}

bool Scheduler::IsAlone(const Tenant& tenant, uint64_t now_ns) const {
  return std::none_of(tenants_.all().begin(), tenants_.all().end(), [&](const auto& other) {
    return other.get() != &tenant && (other->has_work || now_ns - other->since_ns < options_.alone_after_ns);
  });
}

}  // namespace hawser::scheduler
