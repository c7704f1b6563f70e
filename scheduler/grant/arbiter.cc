// SPDX-License-Identifier: Apache-2.0
#include "scheduler/grant/arbiter.h"

#include <algorithm>
#include <chrono>

#include "wire/short_slice.h"

namespace hawser::scheduler {

namespace {
/// Without a ring the pages are looked at as often as this: a worker that died between its step and its ring is found
/// by then at the latest, if nobody says that it died.
constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::milliseconds(100);
}  // namespace

uint64_t ArbiterThread::MonotonicNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

ArbiterThread::ArbiterThread(SchedulerOptions options, EventFunction events, Bell& bell, Clock clock)
    : events_(std::move(events)),
      clock_(std::move(clock)),
      arbiter_(
          std::move(options), [this](const PolicyEvent& event) { untold_.push_back(event); }, this),
      bell_(bell),
      thread_([this] { Run(); }) {}

ArbiterThread::~ArbiterThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  bell_.Ring();
  thread_.join();
}

void ArbiterThread::Run() {
  (void)wire::TakeShortSlices();
  // A device that a policy keeps for somebody is without work until then, and not 50 us longer.
  (void)wire::TakeExactTimers();
  while (true) {
    const uint64_t ticket = bell_.Ticket();
    uint64_t wake = 0, now = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) return;
      now = clock_();
      if (!arbiter_.scheduler().policy().policy_name().empty()) arbiter_.Poll(now);
      wake = arbiter_.next_wake_ns();
    }
    TellEvents();
    const auto sleep =
        std::chrono::nanoseconds(wake > now ? std::min<uint64_t>(wake - now, kLongestSleep.count()) : 1000);
    bell_.Wait(ticket, sleep);
  }
}

void ArbiterThread::TellEvents() {
  std::vector<PolicyEvent> events;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    events.swap(untold_);
  }
  if (!events_) return;
  for (const PolicyEvent& event : events) events_(event);
}

wire::Status ArbiterThread::Use(const PolicyLibrary& library) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wire::Status status = arbiter_.scheduler().Use(library, clock_());
  bell_.Ring();
  return status;
}

TenantId ArbiterThread::AddTenant(TenantConfig config) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arbiter_.AddTenant(std::move(config), clock_());
}

void ArbiterThread::RemoveTenant(TenantId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  arbiter_.RemoveTenant(id, clock_());
  bell_.Ring();
}

void ArbiterThread::Retire(TenantId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  arbiter_.Retire(id, clock_());
}

DoorId ArbiterThread::Attach(TenantId tenant, GrantPage& page, Bell& worker, Bell* alarm,
                             std::atomic<uint32_t>* company) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const DoorId id = arbiter_.Attach(tenant, page, worker, alarm, company);
  bell_.Ring();
  return id;
}

void ArbiterThread::Detach(DoorId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  arbiter_.Detach(id);
  bell_.Ring();
}

void ArbiterThread::Configure(TenantId id, TenantConfig config) {
  const std::lock_guard<std::mutex> lock(mutex_);
  arbiter_.scheduler().Configure(id, std::move(config), clock_());
  bell_.Ring();  // It may be held now, or released.
}

std::vector<TenantStatus> ArbiterThread::Tenants() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t now = clock_();
  std::vector<TenantStatus> all;
  for (const auto& tenant : arbiter_.scheduler().tenants().all()) {
    TenantStatus status;
    status.id = tenant->id;
    status.config = tenant->config;
    status.state = tenant->state;
    status.open = arbiter_.scheduler().holder() == tenant.get() && arbiter_.scheduler().holder_is_open();
    status.used_ns = tenant->facts.used_ns;
    status.window_used_ns = tenant->window.Sum(now);
    status.pending_ns = tenant->facts.pending_ns;
    status.inflight_ns = tenant->facts.inflight_ns;
    status.grants = tenant->grants;
    all.push_back(std::move(status));
  }
  return all;
}

void ArbiterThread::RecordGrants(bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  recorder_.Record(on);
}

GrantRecords ArbiterThread::TakeGrants() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorder_.Take();
}

std::string ArbiterThread::PolicyName() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arbiter_.scheduler().policy().policy_name();
}

SystemTime ArbiterThread::System() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arbiter_.scheduler().system();
}

std::string ArbiterThread::Dump() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arbiter_.scheduler().policy().Dump();
}

}  // namespace hawser::scheduler
