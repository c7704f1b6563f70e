// SPDX-License-Identifier: Apache-2.0
// The part of Server that operators see and change. Event loop only, like all of it.
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "server/grants/device_schedulers.h"
#include "server/server.h"
#include "wire/api.h"

namespace hawser::server {

using std::chrono::milliseconds;
using wire::Result;
using wire::Status;

namespace {

/// How long a session that is to end has to tell its guest.
constexpr milliseconds kGrace{2000};

uint64_t UnixNow() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(since).count());
}

/// "uid-1000", as TenantTable names users whom no tenant lists.
bool IsUserName(const std::string& name) {
  constexpr std::string_view kPrefix = "uid-";
  if (name.rfind(kPrefix, 0) != 0 || name.size() == kPrefix.size() || name.size() > kPrefix.size() + 10) return false;
  return name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

/// To the sum and to the device's; of a tenant or a session.
template <typename State>
void Count(const std::string& device, const admin::DeviceTime& time, State* state) {
  if (!state->device_time) state->device_time.emplace();
  for (admin::DeviceTime* sum : {&*state->device_time, &state->device_times[device]}) {
    sum->used_ns += time.used_ns;
    sum->pending_ns += time.pending_ns;
    sum->inflight_ns += time.inflight_ns;
  }
}

}  // namespace

Status Server::OpenControlPlane() {
  began_ns_ = TraceRing::Now();
  began_unix_ns_ = UnixNow();
  if (config_.admin_listen == Config::kAdminNone) return {};
  const bool chosen = !config_.admin_listen.empty();
  const std::optional<std::string> uri = chosen ? config_.admin_listen : DefaultAdminAddress(config_.listen);
  if (!uri) return {};
  Result<std::unique_ptr<ControlPlane>> control = ControlPlane::Open(*uri, config_.admin_allow_tcp, &loop_, this);
  if (control.ok()) {
    control_ = std::move(*control);
    return {};
  }
  if (chosen) return control.status();
  // Nobody asked for it: guests are served all the same.
  Log(LogLevel::kWarning, "operators cannot connect to " + *uri + ": " + control.status().text() +
                              "; set --admin or [admin] listen, or \"none\"");
  return {};
}

Status Server::StartScheduler() {
  if (config_.scheduler.policy == SchedulerSettings::kNone) return {};
  Result<std::unique_ptr<DeviceSchedulers>> started = DeviceSchedulers::Start(config_.scheduler);
  if (!started.ok()) {
    return Status(started.status().code(), "scheduler.policy: " + started.status().text());
  }
  scheduler_ = std::move(*started);
  auto watch = loop_.Watch(scheduler_->notices_fd(), EPOLLIN, [this](uint32_t) { OnSchedulerNotices(); });
  return watch.ok() ? Status() : watch.status();
}

void Server::OnSchedulerNotices() {
  for (const SchedulerNotice& notice : scheduler_->TakeNotices()) {
    Log(notice.kind == SchedulerNotice::Kind::kLog ? LogLevel::kInfo : LogLevel::kWarning, OneLine(notice.text));
    for (const uint64_t id : notice.sessions) {
      if (notice.kind == SchedulerNotice::Kind::kLost) {
        (void)StopSession(id, SessionStatsPage::kEnded, "the server could not share out a device: " + notice.text);
        continue;
      }
      (void)StopSession(id, SessionStatsPage::kLaunchTimeout,
                        "a kernel has kept the device for longer than the limit while others waited "
                        "(scheduler.max_unit_ms)");
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Sessions come and go

void Server::NoteBegin(Session& session, const WorkerSettings& settings, const Connection& command) {
  admin::SessionState& facts = session.facts;
  facts.id = session.id;
  facts.tenant = session.tenant;
  facts.program = settings.program;
  facts.guest_pid = settings.guest_pid;
  facts.worker_pid = static_cast<uint32_t>(session.worker.pid);
  facts.api = settings.api == wire::Api::kCuda ? "cuda" : "opencl";
  facts.transport = wire::TransportName(settings.transport);
  facts.peer = command.peer.ToString();
  facts.started_unix_ns = UnixNow();
  session.began_ns = TraceRing::Now();
  ledger_.Meet(session.tenant);
  scheduler_->SetShare(session.tenant, command.tenant.share);
  scheduler_->SessionStarted(session.id, session.tenant);
}

void Server::NoteEnd(const Session& session) {
  const admin::SessionState last = Describe(session);
  TenantLedger::Totals used{last.commands, last.bytes_up, last.bytes_down, {}, last.copied_in, last.copied_out};
  for (const SchedulerControl::Use& use : scheduler_->SessionUse(session.id)) {
    if (use.used_ns != 0) used.device_ns[use.device] += use.used_ns;
  }
  ledger_.Add(session.tenant, used);
  ledger_.Findings(session.tenant).Take(session.stats.page()->findings);
  scheduler_->SessionEnded(session.id);
  if (control_ == nullptr) return;
  if (control_->traces().listening()) Trace(&control_->traces(), false);  // Its last grant.
  control_->traces().SessionEnded(session.id);
}

void Server::Trace(TraceCollector* traces, bool anew) {
  if (!traces->listening()) return scheduler_->RecordGrants(false);
  if (anew) scheduler_->RecordGrants(true);
  const SessionGrants taken = scheduler_->TakeGrants();
  for (const SessionGrant& grant : taken.grants) traces->PutGrant(grant);
  if (taken.lost != 0) traces->AddLost(taken.lost);
}

// ---------------------------------------------------------------------------------------------
// What there is

admin::SessionState Server::Describe(const Session& session) const {
  admin::SessionState state = session.facts;
  const SessionStatsPage& page = *session.stats.page();
  state.age_ns = TraceRing::Now() - session.began_ns;
  state.phase = session.guest_gone || session.stopped || stopping_ ? admin::SessionPhase::kEnding
                : page.phase.load(std::memory_order_relaxed) == SessionStatsPage::kRunning
                    ? admin::SessionPhase::kRunning
                    : admin::SessionPhase::kStarting;
  state.commands = page.commands.Read();
  state.bytes_up = page.bytes_up();
  state.bytes_down = page.bytes_down();
  state.kernels = page.kernels.Read();
  state.copied_in = page.copied_in.Read();
  state.copied_out = page.copied_out.Read();
  state.split_alarms = page.split_alarms.load(std::memory_order_relaxed);
  state.device_memory = page.device_memory.load(std::memory_order_relaxed);
  for (const SchedulerControl::Use& use : scheduler_->SessionUse(session.id)) {
    if (use.measured) Count(use.device, {use.used_ns, use.pending_ns, use.inflight_ns}, &state);
  }
  return state;
}

admin::PolicyState Server::DescribePolicy() const {
  admin::PolicyState state;
  state.name = scheduler_->Policy();
  state.available = scheduler_->Policies();
  const Ejections ejections = scheduler_->EjectedPolicies();
  state.ejections = ejections.count;
  if (const auto& last = ejections.last) {
    state.last_ejection = admin::EjectionState{last->policy, last->reason, last->unix_ns, last->dump};
  }
  return state;
}

admin::ServerState Server::DescribeServer() const {
  admin::ServerState state;
  state.version = HAWSER_VERSION;
  state.pid = static_cast<uint32_t>(::getpid());
  state.uptime_ns = TraceRing::Now() - began_ns_;
  state.started_unix_ns = began_unix_ns_;
  for (const auto& listener : listeners_) {
    const wire::Endpoint& endpoint = listener->endpoint();
    state.listeners.push_back({endpoint.ToString(), std::string(wire::TransportName(endpoint.transport))});
  }
  for (const auto& [id, session] : sessions_) {
    for (SessionStatsPage::DeviceInfo& device : session.stats.page()->Devices()) {
      const auto api = session.facts.api;
      const auto same = std::find_if(state.devices.begin(), state.devices.end(), [&](const admin::DeviceState& known) {
        return known.name == device.name && known.api == api && known.memory_bytes == device.memory;
      });
      if (same != state.devices.end()) {
        ++same->sessions;
      } else {
        state.devices.push_back({std::move(device.name), session.facts.api, device.memory, 1});
      }
    }
  }
  state.policy = DescribePolicy();
  state.sessions = static_cast<uint32_t>(sessions_.size());
  state.max_sessions = config_.max_sessions;
  state.sessions_started = next_session_ - 1;
  state.connections_pending = static_cast<uint32_t>(connections_.size());
  return state;
}

admin::TenantState Server::DescribeTenant(const std::string& name) const {
  admin::TenantState state;
  state.name = name;
  state.configured = tenants_.Lists(name);
  state.changed = ledger_.Changed(name);
  state.settings = SettingsOf(ledger_.Effective(tenants_.Named(name)));
  const TenantLedger::Totals used = ledger_.Used(name);
  state.commands = used.commands;
  state.bytes_up = used.bytes_up;
  state.bytes_down = used.bytes_down;
  state.copied_in = used.copied_in;
  state.copied_out = used.copied_out;
  for (const auto& [device, ns] : used.device_ns) Count(device, {ns, 0, 0}, &state);
  for (const auto& [id, session] : sessions_) {
    if (session.tenant != name) continue;
    const admin::SessionState one = Describe(session);
    ++state.sessions;
    state.device_memory += one.device_memory;
    state.commands += one.commands;
    state.bytes_up += one.bytes_up;
    state.bytes_down += one.bytes_down;
    state.copied_in += one.copied_in;
    state.copied_out += one.copied_out;
    for (const auto& [device, time] : one.device_times) Count(device, time, &state);
  }
  return state;
}

admin::Snapshot Server::TakeSnapshot() const {
  admin::Snapshot snapshot;
  snapshot.unix_ns = UnixNow();
  snapshot.monotonic_ns = TraceRing::Now();
  snapshot.server = DescribeServer();
  std::set<std::string> names;
  for (std::string& name : tenants_.Names()) names.insert(std::move(name));
  for (std::string& name : ledger_.Names()) names.insert(std::move(name));
  for (const std::string& name : names) snapshot.tenants.push_back(DescribeTenant(name));
  for (const auto& [id, session] : sessions_) snapshot.sessions.push_back(Describe(session));
  if (const auto use = scheduler_->System()) {
    snapshot.system = admin::SystemState{use->gap_ns, use->switches, use->waited_ns};
  }
  return snapshot;
}

// ---------------------------------------------------------------------------------------------
// What operators change

bool Server::KnowsTenant(const std::string& name) const {
  // Besides those that there are: names that guests can get from TenantTable before they have come.
  return tenants_.Lists(name) || ledger_.Knows(name) || IsUserName(name) || name == "loopback" ||
         name == "unauthenticated";
}

Result<std::optional<admin::TenantState>> Server::ChangeTenant(const std::string& name,
                                                               const admin::TenantChange& change) {
  if (!KnowsTenant(name)) return std::optional<admin::TenantState>();
  if (Status status = ledger_.Change(tenants_.Named(name), change); !status.ok()) return status;
  Enforce(name);
  const admin::TenantState state = DescribeTenant(name);
  Log(LogLevel::kInfo, "an operator set tenant " + OneLine(name) + ": weight " +
                           std::to_string(state.settings.share.weight) + ", priority " +
                           std::to_string(state.settings.share.priority) + ", sessions " +
                           std::to_string(state.settings.max_sessions) + ", device memory of a session " +
                           std::to_string(state.settings.session_device_memory));
  return std::optional<admin::TenantState>(state);
}

void Server::Enforce(const std::string& name) {
  const Tenant tenant = ledger_.Effective(tenants_.Named(name));
  scheduler_->SetShare(name, tenant.share);
  // Connections whose greeting is over: they become sessions later.
  for (auto& [id, connection] : connections_) {
    if (connection.hello.complete() && connection.tenant.name == name) connection.tenant = tenant;
  }
  for (auto& [id, session] : sessions_) {
    if (session.tenant != name) continue;
    session.stats.page()->device_memory_limit.store(tenant.limits.device_memory, std::memory_order_relaxed);
  }
}

bool Server::EndSession(uint64_t id, const std::string& reason) {
  return StopSession(
      id, SessionStatsPage::kEnded,
      "the server's operator ended the session" + (reason.empty() ? std::string() : ": " + OneLine(reason)));
}

bool Server::StopSession(uint64_t id, SessionStatsPage::Cause cause, const std::string& text) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return false;
  Session& session = at->second;
  if (session.stopped) return true;
  session.stopped = true;
  session.stop_text = text;
  Log(LogLevel::kInfo, session.label + ": " + text);
  session.stats.page()->stop_cause.store(cause, std::memory_order_relaxed);
  char* const told = session.stats.page()->stop_reason;
  std::copy_n(text.data(), std::min(text.size(), SessionStatsPage::kReason - 1), told);  // The page is zeroed: it ends.
  ::kill(session.worker.pid, SIGTERM);
  if (session.kill_timer == 0) {
    session.kill_timer = loop_.After(kGrace, [this, id] {
      const auto late = sessions_.find(id);
      if (late != sessions_.end()) ::kill(-late->second.worker.pid, SIGKILL);
    });
  }
  return true;
}

Result<admin::PolicyState> Server::ChangePolicy(const std::string& name) {
  const std::string before = scheduler_->Policy();
  if (Status status = scheduler_->SetPolicy(name); !status.ok()) return status;
  if (scheduler_->Policy() != before) {
    Log(LogLevel::kInfo, "an operator set the policy " + OneLine(scheduler_->Policy()) + " in place of " + before);
  }
  return DescribePolicy();
}

}  // namespace hawser::server
