// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "server/worker/confinement.h"

namespace hawser::server {
namespace {

using std::chrono::milliseconds;
using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

/// How long a worker has after its guest is gone, or after it was asked to stop.
constexpr milliseconds kGrace{2000};
/// How long a refused guest has to read why.
constexpr milliseconds kRefusalGrace{1000};
constexpr size_t kMaxDiscarded = 64u << 10;
constexpr int kAcceptsPerRound = 64;

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Server::Server(Config config, Reload reload)
    : config_(std::move(config)),
      reload_(std::move(reload)),
      tenants_(config_),
      admission_(config_.max_sessions),
      scheduler_(std::make_unique<NoScheduler>()) {}

Server::~Server() {
  // Only after Run(); without it nothing was started.
  for (auto& [id, session] : sessions_) ::kill(-session.worker.pid, SIGKILL);
}

Status Server::Open() {
  RaiseDescriptorLimit();
  ::signal(SIGPIPE, SIG_IGN);
  if (!config_.worker_user.empty()) {
    const passwd* user = ::getpwnam(config_.worker_user.c_str());
    if (user == nullptr) {
      return Status(Code::kInvalid, "server.worker_user: there is no user '" + config_.worker_user + "'");
    }
    worker_uid_ = user->pw_uid;
    worker_gid_ = user->pw_gid;
  }
  if (::access(config_.worker.c_str(), X_OK) != 0) {
    return Status::FromErrno("cannot execute the worker '" + config_.worker + "'; set --worker or server.worker");
  }
  if (config_.confine && LandlockVersion() == 0) {
    Log(LogLevel::kWarning,
        "this system's kernel cannot confine workers (no Landlock): one that its guest has taken over could change " +
            std::string(worker_uid_ != UINT32_MAX ? "what others of server.worker_user keep"
                                                  : "whatever hawserd's user may; see server.worker_user"));
  }
  BuildWorkerCommand();
  if (Status status = loop_.Open(); !status.ok()) return status;
  if (Status status = WatchSignals(); !status.ok()) return status;
  // Its thread must not take the signals.
  temporary_.DiscardStale(worker_uid_ != UINT32_MAX ? worker_uid_ : ::geteuid());
  if (Status status = StartScheduler(); !status.ok()) return status;
  for (const std::string& uri : config_.listen) {
    auto listener = Listener::Open(uri, config_.socket_mode);
    if (!listener.ok()) return listener.status();
    listeners_.push_back(std::move(*listener));
  }
  if (Status status = CheckListeners(); !status.ok()) return status;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    auto watch = loop_.Watch(listeners_[i]->fd(), EPOLLIN, [this, i](uint32_t) { OnListener(i); });
    if (!watch.ok()) return watch.status();
    listener_watches_.push_back(*watch);
  }
  return OpenControlPlane();
}

Status Server::CheckListeners() const {
  if (config_.allow_unauthenticated_remote) return {};
  const bool tokens = std::any_of(config_.tenants.begin(), config_.tenants.end(),
                                  [](const TenantConfig& tenant) { return !tenant.token.empty(); });
  for (const auto& listener : listeners_) {
    if (!listener->reachable_from_elsewhere() || tokens) continue;
    return Status(Code::kInvalid,
                  listener->endpoint().ToString() +
                      " can be reached by other machines, and nothing would ask them who they are. Give tenants a "
                      "token ([tenants.NAME] token = \"...\"), or listen on 127.0.0.1, or write under [tcp] "
                      "allow_unauthenticated_remote = \"" +
                      std::string(Config::kTrustWords) + "\"");
  }
  return {};
}

std::vector<std::string> Server::Addresses() const {
  std::vector<std::string> addresses;
  for (const auto& listener : listeners_) addresses.push_back(listener->endpoint().ToString());
  return addresses;
}

void Server::BuildWorkerCommand() {
  std::vector<std::pair<std::string, std::string>> added(config_.env.begin(), config_.env.end());
  if (!config_.icd_vendors.empty()) added.emplace_back("OCL_ICD_VENDORS", config_.icd_vendors);
  worker_command_ = {config_.worker, WorkerEnvironment(added)};
}

Status Server::WatchSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return Status::FromErrno("cannot block signals");
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return Status::FromErrno("cannot create a signalfd");
  auto watch = loop_.Watch(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignal(); });
  return watch.ok() ? Status() : watch.status();
}

void Server::OnSignal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo == SIGHUP) {
      ReloadConfig();
    } else if (!stopping_) {
      Log(LogLevel::kInfo, "stopping; " + std::to_string(sessions_.size()) + " sessions end");
      BeginStop();
    }
  }
}

void Server::ReloadConfig() {
  Result<Config> config = reload_();
  if (!config.ok()) {
    return Log(LogLevel::kError, "the configuration stays as it is: " + config.status().text());
  }
  // What listeners and running sessions were made from stays.
  config->listen = config_.listen;
  config->admin_listen = config_.admin_listen;
  config->worker = config_.worker;
  config->scheduler = config_.scheduler;
  config_ = std::move(*config);
  tenants_ = TenantTable(config_);
  admission_.SetMaxSessions(config_.max_sessions);
  for (const std::string& name : ledger_.Names()) Enforce(name);
  // Also for whoever moved the log file away.
  if (Status status = OpenLog(config_.log_level, config_.log_file); !status.ok()) {
    Log(LogLevel::kError, status.text());
  }
  BuildWorkerCommand();
  Log(LogLevel::kInfo, "read the configuration again: tenants, limits and log level are as it says now");
}

void Server::LogStranger(LogLevel level, const std::string& text) {
  const RateLimiter::Verdict verdict = stranger_limiter_.Ask(RateLimiter::Clock::now());
  if (!verdict.allowed) return;
  if (verdict.suppressed > 0) {
    Log(LogLevel::kWarning, std::to_string(verdict.suppressed) + " lines like the next were left out");
  }
  Log(level, OneLine(text));
}

// ---------------------------------------------------------------------------------------------
// Connections

void Server::OnListener(size_t index) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    Result<Listener::Visitor> visitor = listeners_[index]->Accept();
    if (visitor.ok()) {
      Admit(std::move(*visitor), listeners_[index].get());
      continue;
    }
    if (visitor.status().code() == Code::kTimeout) return;
    LogStranger(LogLevel::kWarning, visitor.status().text());
    if (visitor.status().code() != Code::kExhausted) continue;
    // The connection stays in the queue, so the listener would be ready again at once, and again.
    const EventLoop::WatchId watch = listener_watches_[index];
    loop_.Change(watch, 0);
    loop_.After(milliseconds(100), [this, watch] { loop_.Change(watch, EPOLLIN); });
    DropOldest();
    return;
  }
}

void Server::Admit(Listener::Visitor visitor, const Listener* listener) {
  if (connections_.size() >= config_.max_pending) DropOldest();
  const uint64_t id = next_id_++;
  auto watch =
      loop_.Watch(visitor.fd.get(), EPOLLIN | EPOLLRDHUP, [this, id](uint32_t events) { OnConnection(id, events); });
  if (!watch.ok()) return LogStranger(LogLevel::kWarning, watch.status().text());
  Connection& connection = connections_[id];
  connection.id = id;
  connection.fd = std::move(visitor.fd);
  connection.peer = std::move(visitor.peer);
  connection.listener = listener;
  connection.watch = *watch;
  connection.timer = loop_.After(milliseconds(config_.handshake_timeout_ms), [this, id] {
    const auto at = connections_.find(id);
    if (at == connections_.end()) return;
    const Connection& late = at->second;
    LogStranger(LogLevel::kWarning,
                late.peer.ToString() +
                    (late.hello.complete()
                         ? ": the second connection of its session never came; dropped"
                         : ": said only " + std::to_string(late.hello.received()) + " bytes in time; dropped"));
    Drop(id);
  });
}

void Server::OnConnection(uint64_t id, uint32_t events) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  Connection& connection = at->second;
  if (connection.refused) {
    std::byte waste[4096];
    const ssize_t got = ::recv(connection.fd.get(), waste, sizeof(waste), MSG_DONTWAIT);
    if (got > 0) connection.discarded += static_cast<size_t>(got);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || connection.discarded > kMaxDiscarded) Drop(id);
    return;
  }
  if (connection.hello.complete()) {
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) Drop(id);
    return;
  }
  ReadGreeting(connection);
}

void Server::ReadGreeting(Connection& connection) {
  std::byte buffer[kMaxHello];
  while (!connection.hello.complete()) {
    const ssize_t got =
        ::recv(connection.fd.get(), buffer, std::min(sizeof(buffer), connection.hello.wanted()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      if (connection.hello.received() != 0) {
        LogStranger(LogLevel::kInfo, connection.peer.ToString() + ": left in the middle of its greeting");
      }
      return Drop(connection.id);
    }
    const Status status = connection.hello.Add({buffer, static_cast<size_t>(got)});
    if (status.code() == Code::kRefused) return Refuse(connection, status.text());
    if (!status.ok()) {
      LogStranger(LogLevel::kWarning, connection.peer.ToString() + ": " + status.text() + "; dropped");
      return Drop(connection.id);
    }
  }
  OnGreeting(connection);
}

void Server::OnGreeting(Connection& connection) {
  const Greeting& greeting = connection.hello.greeting();
  if (greeting.shm && !connection.listener->passes_descriptors()) {
    return Refuse(connection,
                  "shared memory needs a unix socket; " + connection.listener->endpoint().ToString() + " is none");
  }
  Result<Tenant> tenant = tenants_.Identify(connection.peer, greeting.token);
  if (!tenant.ok()) return Refuse(connection, tenant.status().text());
  connection.tenant = ledger_.Effective(std::move(*tenant));
  auto pair = pairing_.Add(connection.id, connection.tenant.name, greeting);
  if (!pair.ok()) return Refuse(connection, pair.status().text());
  // What else has arrived is the worker's; until there is one only the end matters.
  loop_.Change(connection.watch, EPOLLRDHUP);
  if (*pair) StartSession(**pair);
}

void Server::Refuse(Connection& connection, const std::string& why) {
  LogStranger(LogLevel::kWarning, "refused " + connection.peer.ToString() + ": " + why);
  const std::vector<std::byte> frame = RefusalFrame(why);
  // It fits the socket's empty buffer; a guest that makes it not fit gets no answer.
  (void)::send(connection.fd.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(connection.fd.get(), SHUT_WR);
  // Closing now, with bytes of the guest unread, could destroy the answer on its way.
  connection.refused = true;
  pairing_.Remove(connection.id);
  loop_.Cancel(connection.timer);
  connection.timer = loop_.After(kRefusalGrace, [this, id = connection.id] { Drop(id); });
  loop_.Change(connection.watch, EPOLLIN | EPOLLRDHUP);
}

void Server::Drop(uint64_t id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  pairing_.Remove(id);
  loop_.Cancel(at->second.timer);
  loop_.Unwatch(at->second.watch);
  connections_.erase(at);
}

void Server::DropOldest() {
  if (connections_.empty()) return;
  const Connection& oldest = connections_.begin()->second;
  LogStranger(LogLevel::kWarning,
              "too many connections wait to be greeted; dropped the oldest, " + oldest.peer.ToString());
  Drop(oldest.id);
}

// ---------------------------------------------------------------------------------------------
// Sessions

WorkerSettings Server::SettingsFor(const Session& session, const Connection& command) {
  const Greeting& greeting = command.hello.greeting();
  const SessionLimits& limits = command.tenant.limits;
  WorkerSettings settings;
  settings.session = session.id;
  settings.tenant = command.tenant.name;
  settings.program = greeting.program;
  settings.guest_pid = greeting.pid;
  settings.transport = greeting.shm ? Transport::kShm : command.listener->endpoint().transport;
  settings.api = greeting.api;
  settings.server_pid = ::getpid();
  settings.device_memory = limits.device_memory;
  settings.staging_memory = limits.staging_memory;
  settings.max_objects = limits.max_objects;
  settings.inline_limit = limits.inline_limit;
  settings.address_space = limits.address_space;
  settings.open_files = limits.open_files;
  settings.share_memory = config_.share_memory;
  settings.syscall_filter = config_.syscall_filter;
  settings.spin_us = config_.spin_us;
  settings.run_as_uid = worker_uid_;
  settings.run_as_gid = worker_gid_;
  settings.cuda_device = config_.cuda_device;
  settings.cuda_memory = config_.cuda_memory;
  settings.cuda_driver = config_.cuda_driver;
  settings.confine = config_.confine;
  for (const std::string& place : config_.writable) settings.writable += place + ":";
  const bool other = worker_uid_ != UINT32_MAX;
  const uid_t user = other ? worker_uid_ : ::geteuid();
  const gid_t group = other ? worker_gid_ : ::getegid();
  if (settings.api == wire::Api::kCuda && config_.cuda_cache) {
    settings.cuda_cache = module_cache_.Use(*config_.cuda_cache, user, group);
  }
  // Who says where drivers keep things is obeyed.
  if (config_.driver_cache && config_.env.count("XDG_CACHE_HOME") == 0) {
    if (const std::string folder = driver_cache_.Use(*config_.driver_cache, user, group); !folder.empty()) {
      settings.driver_cache = folder + "/" + TenantFolderName(settings.tenant);
    }
  }
  settings.cuda_cache_size = config_.cuda_cache_size;
  return settings;
}

void Server::StartSession(const PairingTable::Pair& pair) {
  Connection& command = connections_.at(pair.command);
  Connection* bulk = pair.bulk != 0 ? &connections_.at(pair.bulk) : nullptr;
  Status status = stopping_ ? Status(Code::kRefused, "the server is stopping") : admission_.Enter(command.tenant);
  if (status.ok()) {
    const uint64_t id = next_session_++;
    Session& session = sessions_[id];
    session.id = id;
    session.tenant = command.tenant.name;
    status = Launch(&session, command, bulk);
    if (!status.ok()) {
      scheduler_->SessionEnded(id);
      if (control_ != nullptr) control_->traces().SessionEnded(id);
      exports_.End(id);
      admission_.Leave(session.tenant);
      temporary_.Discard(std::move(session.temporary));
      sessions_.erase(id);
      status = Status(status.code(), "the server could not start a worker: " + status.text());
    }
  }
  if (!status.ok()) {
    if (bulk != nullptr) Refuse(*bulk, status.text());
    return Refuse(command, status.text());
  }
  Drop(pair.command);
  if (pair.bulk != 0) Drop(pair.bulk);
}

Status Server::Launch(Session* session, const Connection& command, const Connection* bulk) {
  WorkerSettings settings = SettingsFor(*session, command);
  // Who says where temporary files are is obeyed.
  if (config_.env.count("TMPDIR") == 0) {
    const bool other = worker_uid_ != UINT32_MAX;
    session->temporary = temporary_.Make(other ? worker_uid_ : ::geteuid(), other ? worker_gid_ : ::getegid());
    settings.temporary = session->temporary.path;
  }
  session->command = Fd(::fcntl(command.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!session->command.valid()) return Status::FromErrno("cannot keep an eye on the guest");
  Result<SessionStats> stats = SessionStats::Create();
  if (!stats.ok()) return stats.status();
  session->stats = std::move(*stats);
  session->stats.page()->device_memory_limit.store(settings.device_memory, std::memory_order_relaxed);
  DeviceFindings& findings = ledger_.Findings(session->tenant);
  for (const auto& [id, other] : sessions_) {
    if (id != session->id && other.tenant == session->tenant) findings.Take(other.stats.page()->findings);
  }
  session->stats.page()->findings.Take(findings);
  Result<GrantDescriptors> grants = scheduler_->Prepare(session->id);
  if (!grants.ok()) return grants.status();
  settings.grants = grants->page.valid();
  Fd exports;
  if (settings.api == wire::Api::kCuda) {
    Result<Fd> theirs = exports_.Begin(session->id, session->tenant);
    if (!theirs.ok()) return theirs.status();
    exports = std::move(*theirs);
    settings.exports = true;
  }
  // Before there is a worker, which may have done what its guest asked before this thread comes to the rest.
  if (control_ != nullptr) {
    control_->traces().SessionStarted(session->id, session->tenant, settings.program, session->stats.page());
  }
  Result<WorkerProcess> worker =
      SpawnWorker(worker_command_, settings,
                  {command.fd.get(), bulk != nullptr ? bulk->fd.get() : -1, session->stats.fd(), grants->page.get(),
                   grants->bell.get(), grants->ask.get(), exports.get()});
  if (!worker.ok()) return worker.status();
  session->stats.CloseDescriptor();
  session->worker = std::move(*worker);
  session->label = "session " + std::to_string(session->id) + " (tenant " + session->tenant + ", '" + settings.program +
                   "' pid " + std::to_string(settings.guest_pid) + ")";
  const uint64_t id = session->id;
  const auto watch = [&](int fd, uint32_t events, EventLoop::WatchId* at, std::function<void(uint32_t)> ready) {
    auto watched = loop_.Watch(fd, events, std::move(ready));
    if (watched.ok()) *at = *watched;
    return watched.ok();
  };
  const bool watched =
      watch(session->worker.pidfd.get(), EPOLLIN, &session->end_watch, [this, id](uint32_t) { OnWorkerEnd(id); }) &&
      watch(session->worker.log.get(), EPOLLIN, &session->log_watch, [this, id](uint32_t) { OnWorkerLog(id); }) &&
      watch(session->command.get(), EPOLLRDHUP, &session->command_watch, [this, id](uint32_t) { OnGuestHangUp(id); });
  if (!watched) {
    for (const EventLoop::WatchId one : {session->end_watch, session->log_watch}) loop_.Unwatch(one);
    ::kill(-session->worker.pid, SIGKILL);
    (void)!::waitpid(session->worker.pid, nullptr, 0);
    return Status(Code::kSystem, "cannot watch it");
  }
  NoteBegin(*session, settings, command);
  Log(LogLevel::kInfo, session->label + " starts " + std::string(wire::ApiName(settings.api)) + " over " +
                           std::string(wire::TransportName(settings.transport)) + " from " + command.peer.ToString() +
                           "; worker pid " + std::to_string(session->worker.pid));
  return {};
}

void Server::OnGuestHangUp(uint64_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end() || at->second.guest_gone) return;
  Session& session = at->second;
  session.guest_gone = true;
  // A hang-up stays, so it is looked at once; the descriptor too is of no use any more.
  loop_.Unwatch(std::exchange(session.command_watch, 0));
  session.command.Reset();
  if (session.kill_timer != 0) return;
  session.kill_timer = loop_.After(kGrace, [this, id] {
    const auto late = sessions_.find(id);
    if (late == sessions_.end()) return;
    Log(LogLevel::kWarning, late->second.label + ": its guest is gone and its worker has not ended; killing it");
    ::kill(-late->second.worker.pid, SIGKILL);
  });
}

void Server::OnWorkerLog(uint64_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  Session& session = at->second;
  char text[16384];
  const ssize_t got = ::read(session.worker.log.get(), text, sizeof(text));
  if (got > 0) {
    session.lines.Add({text, static_cast<size_t>(got)}, [&](const std::string& line) { LogWorkerLine(session, line); });
  } else if (got == 0) {
    loop_.Unwatch(std::exchange(session.log_watch, 0));
  }
}

void Server::LogWorkerLine(Session& session, const std::string& line) {
  const RateLimiter::Verdict verdict = session.line_limiter.Ask(RateLimiter::Clock::now());
  if (!verdict.allowed) return;
  if (verdict.suppressed > 0) {
    Log(LogLevel::kWarning, session.label + ": " + std::to_string(verdict.suppressed) + " lines were left out");
  }
  const size_t mark = line.find(": ");
  if (mark != std::string::npos) {
    if (const auto level = ParseLogLevel(std::string_view(line).substr(0, mark)); level.ok()) {
      return Log(level.value(), session.label + ": " + OneLine(line.substr(mark + 2)));
    }
  }
  Log(LogLevel::kInfo, session.label + " says: " + OneLine(line));
}

void Server::OnWorkerEnd(uint64_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  Session& session = at->second;
  Result<WorkerEnd> end = ReapWorker(session.worker);
  if (!end.ok() && end.status().code() == Code::kTimeout) return;
  // Its last words first.
  for (int i = 0; i < 4 && session.log_watch != 0; ++i) OnWorkerLog(id);
  session.lines.Finish([&](const std::string& line) { LogWorkerLine(session, line); });
  if (!end.ok()) {
    Log(LogLevel::kError, session.label + " ended: " + end.status().text());
  } else {
    const bool expected = end->expected() || (end->killed && (session.guest_gone || session.stopped || stopping_));
    const std::string how = session.stopped && !stopping_ ? session.stop_text : end->ToString();
    Log(expected ? LogLevel::kInfo : LogLevel::kError, session.label + " ended: " + how);
  }
  for (const EventLoop::WatchId watch : {session.command_watch, session.end_watch, session.log_watch}) {
    loop_.Unwatch(watch);
  }
  loop_.Cancel(session.kill_timer);
  NoteEnd(session);
  temporary_.Discard(std::move(session.temporary));
  exports_.End(id);
  admission_.Leave(session.tenant);
  sessions_.erase(at);  // Closes the last descriptor of the guest's connection, so the guest sees its end.
  if (stopping_ && sessions_.empty()) loop_.Stop();
}

// ---------------------------------------------------------------------------------------------
// The whole

void Server::Run() {
  loop_.Run();
  control_.reset();
}

void Server::BeginStop() {
  stopping_ = true;
  if (control_ != nullptr) control_->BeginStop();
  for (const EventLoop::WatchId watch : listener_watches_) loop_.Unwatch(watch);
  listener_watches_.clear();
  while (!connections_.empty()) Drop(connections_.begin()->first);
  listeners_.clear();
  if (sessions_.empty()) return loop_.Stop();
  for (auto& [id, session] : sessions_) ::kill(session.worker.pid, SIGTERM);
  loop_.After(kGrace, [this] {
    for (auto& [id, session] : sessions_) ::kill(-session.worker.pid, SIGKILL);
  });
}

}  // namespace hawser::server
