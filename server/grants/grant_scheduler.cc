// SPDX-License-Identifier: Apache-2.0
#include "server/grants/grant_scheduler.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "scheduler/isolated/isolation.h"

namespace hawser::server {

using scheduler::PolicyEvent;
using scheduler::PolicyLibrary;
using wire::Fd;
using wire::Result;
using wire::Status;

namespace {

uint64_t UnixNow() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace

Result<std::unique_ptr<GrantScheduler>> GrantScheduler::Start(const SchedulerSettings& settings) {
  std::unique_ptr<GrantScheduler> made(new GrantScheduler);
  if (Status status = made->Open(settings); !status.ok()) return status;
  return made;
}

Status GrantScheduler::Open(const SchedulerSettings& settings) {
  if (Status status = bells_.Open(); !status.ok()) return status;
  notices_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!notices_.valid()) return Status::FromErrno("cannot create the scheduler's eventfd");
  isolated_ = settings.isolated;
  policy_host_ = settings.policy_host;
  Result<PolicyLibrary> library = FindPolicy(settings.policy);
  if (!library.ok()) return library.status();
  scheduler::SchedulerOptions options;
  options.policy.settings = settings.settings;
  options.policy.starvation_ns = settings.starvation_ms * 1'000'000;
  // More pieces than slices would cost hand-overs and win nothing: policies that take slices back say a unit.
  options.policy.default_unit_fills = true;
  options.alone_after_ns = settings.alone_after_ms * 1'000'000;
  options.max_unit_ns = settings.max_unit_ms * 1'000'000;
  arbiter_ = std::make_unique<scheduler::ArbiterThread>(
      std::move(options), [this](const PolicyEvent& event) { OnEvent(event); }, bells_);
  return arbiter_->Use(*library);
}

GrantScheduler::~GrantScheduler() = default;

Result<PolicyLibrary> GrantScheduler::FindPolicy(const std::string& name) const {
  if (!isolated_ || !PolicyLibrary::IsPath(name)) return PolicyLibrary::Find(name);
  scheduler::IsolationOptions options;
  options.program = policy_host_;
  // The event loop waits for it; workers and the scheduler's thread do not.
  options.load_deadline = std::chrono::seconds(2);
  return scheduler::OpenIsolated(name, options);
}

void GrantScheduler::OnEvent(const PolicyEvent& event) {
  const uint64_t one = 1;
  {
    const std::lock_guard<std::mutex> lock(events_mutex_);
    if (event.kind == PolicyEvent::Kind::kEjected) {
      ++ejections_.count;
      ejections_.last = Ejection{event.policy, event.reason, UnixNow(), event.dump};
    }
    // A policy that logs without end fills nothing.
    constexpr size_t kMost = 1024;
    if (events_.size() >= kMost && event.kind == PolicyEvent::Kind::kLog) return;
    events_.push_back(event);
  }
  (void)!::write(notices_.get(), &one, sizeof(one));
}

std::vector<SchedulerNotice> GrantScheduler::TakeNotices() {
  uint64_t count = 0;
  (void)!::read(notices_.get(), &count, sizeof(count));
  std::vector<PolicyEvent> events;
  {
    const std::lock_guard<std::mutex> lock(events_mutex_);
    events.swap(events_);
  }
  std::vector<SchedulerNotice> notices;
  for (PolicyEvent& event : events) {
    SchedulerNotice notice;
    switch (event.kind) {
      case PolicyEvent::Kind::kLoaded:
        notice.text = event.text;
        break;
      case PolicyEvent::Kind::kLog:
        notice.text = "policy " + event.policy + ": " + event.text;
        break;
      case PolicyEvent::Kind::kSlow:
      case PolicyEvent::Kind::kEjected:
        notice.kind = SchedulerNotice::Kind::kWarning;
        notice.text = event.text;
        if (!event.dump.empty()) notice.text += "; as it was: " + event.dump;
        break;
      case PolicyEvent::Kind::kRunaway: {
        notice.kind = SchedulerNotice::Kind::kRunaway;
        notice.text = event.text;
        for (const scheduler::DoorId door : event.doors) {
          const auto session = sessions_.find(door);
          if (session != sessions_.end()) notice.sessions.push_back(session->second.session);
        }
        break;
      }
    }
    notices.push_back(std::move(notice));
  }
  return notices;
}

Ejections GrantScheduler::EjectedPolicies() const {
  const std::lock_guard<std::mutex> lock(events_mutex_);
  return ejections_;
}

SystemUse GrantScheduler::System() const {
  const scheduler::SystemTime time = arbiter_->System();
  return SystemUse{time.gap_ns, time.switches, time.waited_ns + time.lingered_ns};
}

std::string GrantScheduler::Policy() const { return arbiter_->PolicyName(); }

Status GrantScheduler::SetPolicy(const std::string& name) {
  Result<PolicyLibrary> library = FindPolicy(name);
  if (!library.ok()) return library.status();
  return arbiter_->Use(*library);
}

scheduler::TenantConfig GrantScheduler::ConfigOf(const std::string& name, const TenantShare& share) {
  scheduler::TenantConfig config;
  config.name = name;
  config.weight = share.weight;
  config.priority = share.priority;
  config.min_share_ppm = share.min_share_ppm;
  config.max_share_ppm = share.max_share_ppm;
  config.slo_ns = share.slo_ns;
  return config;
}

void GrantScheduler::SetShare(const std::string& tenant, const TenantShare& share) {
  Member& member = tenants_[tenant];
  member.share = share;
  if (member.id != 0) arbiter_->Configure(member.id, ConfigOf(tenant, share));
}

Status GrantScheduler::Join(const Seat& seat, GrantSlot& slot, int bell) {
  if (Status status = bells_.Add(seat.number, bell); !status.ok()) return status;
  Worker& worker = *(workers_[seat.number] = std::make_unique<Worker>(slot));
  worker.tenant = seat.tenant;
  Member& member = tenants_[seat.tenant];
  ++member.sessions;
  const auto attach = [&] {
    return member.id != 0 ? arbiter_->Attach(member.id, slot.page, worker.submit, &worker.alarm, &slot.tenants) : 0;
  };
  worker.door = attach();
  if (worker.door == 0) {
    member.id = arbiter_->AddTenant(ConfigOf(seat.tenant, member.share));
    worker.door = attach();
  }
  sessions_[worker.door] = {seat.session, seat.device};
  ForgetSome();
  return {};
}

void GrantScheduler::Leave(uint64_t number) {
  const auto found = workers_.find(number);
  if (found == workers_.end()) return;
  Worker& worker = *found->second;
  arbiter_->Detach(worker.door);
  if (records_) {
    ended_.push_back(worker.door);
  } else {
    sessions_.erase(worker.door);
  }
  Member& member = tenants_[worker.tenant];
  if (--member.sessions == 0) arbiter_->Retire(member.id);
  bells_.Remove(number);
  workers_.erase(found);
}

void GrantScheduler::ForgetSome() {
  for (auto at = tenants_.begin(); at != tenants_.end() && tenants_.size() > kMostTenants;) {
    if (at->second.sessions != 0) {
      ++at;
      continue;
    }
    if (at->second.id != 0) arbiter_->RemoveTenant(at->second.id);
    at = tenants_.erase(at);
  }
}

SchedulerControl::Use GrantScheduler::UseOf(const GrantSlot& slot) {
  const scheduler::GrantPage& page = slot.page;
  SchedulerControl::Use use;
  use.used_ns = page.used_ns.load(std::memory_order_relaxed);
  use.pending_ns = page.pending_ns.load(std::memory_order_relaxed);
  use.inflight_ns = scheduler::EstimateOf(page.active.load(std::memory_order_relaxed));
  const uint64_t word = page.word.load(std::memory_order_relaxed);
  use.measured = scheduler::EpochOf(word) != 0 && scheduler::ModeOf(word) != scheduler::GateMode::kOpen;
  return use;
}

void GrantScheduler::RecordGrants(bool on) {
  records_ = on;
  arbiter_->RecordGrants(on);
  if (!on) ForgetEnded();
}

SessionGrants GrantScheduler::TakeGrants() {
  SessionGrants taken;
  const scheduler::GrantRecords records = arbiter_->TakeGrants();
  for (const scheduler::GrantRecord& record : records.records) {
    const auto at = sessions_.find(record.door);
    if (at == sessions_.end()) continue;
    taken.grants.push_back({at->second.session, at->second.device, record.begin_ns, record.end_ns, record.open});
  }
  taken.lost = records.lost;
  ForgetEnded();
  return taken;
}

void GrantScheduler::ForgetEnded() {
  for (const scheduler::DoorId door : ended_) sessions_.erase(door);
  ended_.clear();
}

}  // namespace hawser::server
