// SPDX-License-Identifier: Apache-2.0
#include "server/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

extern char** environ;

namespace hawser::server {
namespace {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

/// Descriptors that the child's are made from must not be among the numbers that it gets.
constexpr int kFirstSafe = 16;

Result<Fd> Lift(int fd, const char* what) {
  Fd lifted(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstSafe));
  if (!lifted.valid()) return Status::FromErrno(std::string("cannot hand a worker its ") + what);
  return lifted;
}

Result<Fd> WriteSettings(const WorkerSettings& settings) {
  const Fd fd(::memfd_create("hawser-settings", MFD_CLOEXEC));
  if (!fd.valid()) return Status::FromErrno("cannot create memory for a worker's settings");
  const std::string text = settings.Serialize();
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status::FromErrno("cannot write a worker's settings");
  }
  return Lift(fd.get(), "settings");
}

void FillIn(std::string* variable, const std::string& tenant) {
  constexpr std::string_view kMark = "{tenant}";
  for (size_t at = 0; (at = variable->find(kMark, at)) != std::string::npos; at += tenant.size()) {
    variable->replace(at, kMark.size(), tenant);
  }
}

/// posix_spawn's two opaque objects, released in any case.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Give(int fd, int as) { Note(::posix_spawn_file_actions_adddup2(&actions_, fd, as)); }
  void GiveNull(int as) { Note(::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0)); }
  void OwnGroupAndSignals() {
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    Note(::posix_spawnattr_setpgroup(&attributes_, 0));
    Note(::posix_spawnattr_setsigmask(&attributes_, &none));
    Note(::posix_spawnattr_setsigdefault(&attributes_, &all));
    Note(::posix_spawnattr_setflags(&attributes_,
                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  Result<pid_t> Run(const std::string& path, std::vector<std::string> environment) {
    std::string name = path;
    char* arguments[] = {name.data(), nullptr};
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    pid_t pid = -1;
    if (error_ == 0) Note(::posix_spawn(&pid, path.c_str(), &actions_, &attributes_, arguments, variables.data()));
    if (error_ != 0) return Status::FromErrno("cannot start the worker '" + path + "'", error_);
    return pid;
  }

 private:
  void Note(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;
};

}  // namespace

Result<WorkerProcess> SpawnWorker(const WorkerCommand& command, const WorkerSettings& settings,
                                  const WorkerDescriptors& descriptors) {
  Result<Fd> settings_fd = WriteSettings(settings);
  if (!settings_fd.ok()) return settings_fd.status();
  Result<Fd> commands = Lift(descriptors.command, "command connection");
  if (!commands.ok()) return commands.status();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno("cannot create a pipe for a worker's log");
  Fd log(ends[0]), log_write(ends[1]);
  ::fcntl(log.get(), F_SETFL, O_NONBLOCK);
  Result<Fd> stderr_fd = Lift(log_write.get(), "log");
  if (!stderr_fd.ok()) return stderr_fd.status();

  SpawnPlan plan;
  plan.GiveNull(0);
  plan.GiveNull(1);
  plan.Give(stderr_fd->get(), 2);
  plan.Give(settings_fd->get(), kSettingsFd);
  plan.Give(commands->get(), kCommandFd);
  Fd bulk, stats, grants, bell, ask, exports;
  const auto give = [&](int fd, const char* what, Fd* lifted, int as) {
    if (fd < 0) return Status();
    Result<Fd> copy = Lift(fd, what);
    if (!copy.ok()) return copy.status();
    *lifted = std::move(*copy);
    plan.Give(lifted->get(), as);
    return Status();
  };
  if (Status status = give(descriptors.bulk, "bulk connection", &bulk, kBulkFd); !status.ok()) return status;
  if (Status status = give(descriptors.stats, "statistics", &stats, kStatsFd); !status.ok()) return status;
  if (Status status = give(descriptors.grants, "grants", &grants, kGrantFd); !status.ok()) return status;
  if (Status status = give(descriptors.bell, "bell", &bell, kBellFd); !status.ok()) return status;
  if (Status status = give(descriptors.ask, "bell for devices", &ask, kAskFd); !status.ok()) return status;
  if (Status status = give(descriptors.exports, "exports", &exports, kExportFd); !status.ok()) return status;
  plan.OwnGroupAndSignals();
  std::vector<std::string> environment = command.environment;
  for (std::string& variable : environment) FillIn(&variable, TenantFileName(settings.tenant));
  Result<pid_t> pid = plan.Run(command.path, std::move(environment));
  if (!pid.ok()) return pid.status();
  WorkerProcess worker;
  worker.pid = *pid;
  worker.log = std::move(log);
  worker.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!worker.pidfd.valid()) {
    const Status status = Status::FromErrno("cannot watch a worker");
    ::kill(-worker.pid, SIGKILL);
    ::waitpid(worker.pid, nullptr, 0);
    return status;
  }
  return worker;
}

std::string TenantFileName(const std::string& tenant) {
  std::string name = tenant;
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name.empty() ? "_" : name;
}

bool WorkerEnd::expected() const { return !killed && (code == kGuestLeft || code == kStopped); }

std::string WorkerEnd::ToString() const {
  if (killed) {
    const char* name = ::sigabbrev_np(code);
    return "its worker was killed by signal " + std::to_string(code) + (name ? " (SIG" + std::string(name) + ")" : "");
  }
  switch (code) {
    case kGuestLeft:
      return "the guest left";
    case kStopped:
      return "the server was stopped";
    case kProtocolError:
      return "the guest broke the protocol";
    case kStartFailed:
      return "its worker could not start";
    case kOrphaned:
      return "its worker did not find hawserd";
    case 127:
      return "its worker could not be executed";
    default:
      return "its worker exited with status " + std::to_string(code);
  }
}

Result<WorkerEnd> ReapWorker(const WorkerProcess& worker) {
  // Before the worker is reaped its number cannot be given to anybody else.
  ::kill(-worker.pid, SIGKILL);
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(worker.pid), &info, WEXITED | WNOHANG);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return Status::FromErrno("cannot learn how a worker ended");
  if (info.si_pid == 0) return Status(Code::kTimeout, "the worker still runs");
  return WorkerEnd{info.si_code != CLD_EXITED, info.si_status};
}

std::vector<std::string> WorkerEnvironment(const std::vector<std::pair<std::string, std::string>>& added) {
  // HAWSER_SERVER and HAWSER_TOKEN belong to guests. HAWSER_WORKER keeps our own ICD out.
  std::vector<std::string> dropped{"HAWSER_SERVER", "HAWSER_TOKEN", "HAWSER_WORKER"};
  for (const auto& [key, value] : added) dropped.push_back(key);
  std::vector<std::string> variables{"HAWSER_WORKER=1"};
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view key = text.substr(0, text.find('='));
    if (std::find(dropped.begin(), dropped.end(), key) == dropped.end()) variables.emplace_back(text);
  }
  for (const auto& [key, value] : added) variables.push_back(key + "=" + value);
  return variables;
}

}  // namespace hawser::server
