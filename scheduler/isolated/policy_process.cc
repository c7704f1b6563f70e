// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/policy_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/futex.h"
#include "wire/spin.h"

extern char** environ;

using hawser::wire::Code;
using hawser::wire::Deadline;
using hawser::wire::Fd;
using hawser::wire::Result;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// Descriptors that the child's are made from must not be among the numbers that it gets.
constexpr int kFirstSafe = 16;
/// How long a waiter sleeps before it looks whether the process still lives. Its end also wakes it; this is for when
/// that comes in the moment before it sleeps.
constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(5);

/// What a loader and sanitizers need; nothing that a server keeps secret in its environment.
std::vector<std::string> Environment() {
  std::vector<std::string> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view key = text.substr(0, text.find('='));
    if (key == "LD_LIBRARY_PATH" || key.ends_with("SAN_OPTIONS")) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace

struct PolicyProcess::Plan {
  std::string program;
  std::vector<std::string> arguments;
  int request_fd, reply_fd;
  bool keep_stderr;
};

PolicyProcess::PolicyProcess(std::unique_ptr<SharedPages> pages, std::chrono::nanoseconds spin)
    : pages_(std::move(pages)), spin_(spin) {}

Result<std::unique_ptr<PolicyProcess>> PolicyProcess::Start(const std::string& policy,
                                                            const IsolationOptions& options) {
  auto pages = SharedPages::Create();
  if (!pages.ok()) return pages.status();
  Plan plan{options.program,
            {options.program, policy, std::to_string(::getpid()), std::to_string(options.address_space),
             options.syscall_filter ? "filter" : "no-filter"},
            pages.value()->request_fd(),
            pages.value()->reply_fd(),
            options.keep_stderr};
  std::unique_ptr<PolicyProcess> process(new PolicyProcess(std::move(*pages), options.spin));
  std::promise<Status> started;
  std::future<Status> outcome = started.get_future();
  // The thread takes no signals: they are for the threads that know what to do with them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  PolicyProcess* self = process.get();
  process->minder_ =
      std::thread([self, plan, promise = std::move(started)]() mutable { self->Mind(plan, std::move(promise)); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (Status status = outcome.get(); !status.ok()) return status;
  return process;
}

PolicyProcess::~PolicyProcess() {
  Kill();
  if (minder_.joinable()) minder_.join();
}

void PolicyProcess::Mind(const Plan& plan, std::promise<Status> started) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  int error = 0;
  const auto note = [&error](int result) { error = error != 0 ? error : result; };
  const Fd request(::fcntl(plan.request_fd, F_DUPFD_CLOEXEC, kFirstSafe));
  const Fd reply(::fcntl(plan.reply_fd, F_DUPFD_CLOEXEC, kFirstSafe));
  if (!request.valid() || !reply.valid()) note(errno);
  for (const int fd : {0, 1}) note(::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0));
  if (!plan.keep_stderr) note(::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_RDWR, 0));
  note(::posix_spawn_file_actions_adddup2(&actions, request.get(), kRequestFd));
  note(::posix_spawn_file_actions_adddup2(&actions, reply.get(), kReplyFd));
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  note(::posix_spawnattr_setpgroup(&attributes, 0));
  note(::posix_spawnattr_setsigmask(&attributes, &none));
  note(::posix_spawnattr_setsigdefault(&attributes, &all));
  note(::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  std::vector<std::string> arguments = plan.arguments, environment = Environment();
  std::vector<char*> argv, envp;
  for (std::string& text : arguments) argv.push_back(text.data());
  for (std::string& text : environment) envp.push_back(text.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t pid = -1;
  if (error == 0) note(::posix_spawn(&pid, plan.program.c_str(), &actions, &attributes, argv.data(), envp.data()));
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ended_.store(true);
    started.set_value(Status::FromErrno("cannot start '" + plan.program + "', in which a policy would run", error));
    return;
  }
  pid_ = pid;
  pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd_.valid() || ::clock_getcpuclockid(pid, &clock_) != 0) {
    const Status status = Status::FromErrno("cannot watch a policy's process");
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ended_.store(true);
    started.set_value(status);
    return;
  }
  started.set_value({});
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
  } while (result != 0 && errno == EINTR);
  known_ = result == 0;
  killed_ = known_ && info.si_code != CLD_EXITED;
  code_ = info.si_status;
  ended_.store(true, std::memory_order_seq_cst);
  wire::FutexWake(pages_->reply().turn);
}

std::string PolicyProcess::HowItEnded() const {
  if (!known_) return "its process ended";
  if (!killed_) return "its process ended with status " + std::to_string(code_);
  const char* name = ::sigabbrev_np(code_);
  return "its process was killed by signal " + std::to_string(code_) +
         (name != nullptr ? " (SIG" + std::string(name) + ")" : "");
}

Status PolicyProcess::Exchange(const Deadline& deadline, Reply* reply) {
  if (ended_.load(std::memory_order_acquire)) return Status(Code::kClosed, HowItEnded());
  RequestPage& ours = pages_->request();
  ReplyPage& theirs = pages_->reply();
  const uint32_t before = turn_++;
  ours.turn.store(turn_, std::memory_order_seq_cst);
  if (theirs.asleep.load(std::memory_order_seq_cst) != 0) wire::FutexWake(ours.turn);
  uint32_t seen = before;
  const auto answered = [&] { return (seen = theirs.turn.load(std::memory_order_acquire)) != before; };
  if (!wire::SpinUntil(spin_, answered)) {
    ours.asleep.store(1, std::memory_order_seq_cst);
    while (!answered()) {
      // An answer that came before the end counts.
      if (ended_.load(std::memory_order_acquire) && !answered()) {
        ours.asleep.store(0, std::memory_order_relaxed);
        return Status(Code::kClosed, HowItEnded());
      }
      if (deadline.Passed()) {
        ours.asleep.store(0, std::memory_order_relaxed);
        return Status(Code::kTimeout, "it did not answer in time");
      }
      wire::FutexWait(theirs.turn, before, deadline.Left(kLook));
    }
    ours.asleep.store(0, std::memory_order_relaxed);
  }
  if (seen != turn_) return Status(Code::kProtocol, "its process wrote nonsense where it answers");
  CopyOut(&theirs.reply, reply, sizeof(*reply));
  return {};
}

std::string PolicyProcess::Text(uint32_t size) {
  std::string text(std::min<size_t>(size, kMostReplyText), '\0');
  CopyOut(pages_->reply().text, text.data(), text.size());
  return text;
}

uint64_t PolicyProcess::CpuNs() {
  timespec time{};
  if (::clock_gettime(clock_, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void PolicyProcess::Kill() {
  // By the descriptor: the number may already be somebody else's.
  if (pidfd_.valid()) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

}  // namespace hawser::scheduler
