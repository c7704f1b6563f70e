// SPDX-License-Identifier: Apache-2.0
#include "bench/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

std::vector<std::string> ChangedEnvironment(const Environment& changes) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::string name = variable.substr(0, variable.find('='));
    bool changed = false;
    for (const auto& [key, value] : changes) changed |= key == name;
    if (!changed) variables.push_back(variable);
  }
  for (const auto& [key, value] : changes) {
    if (!value.empty()) variables.push_back(key + "=" + value);
  }
  return variables;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<pid_t> SpawnChild(const std::vector<std::string>& arguments, const Environment& changes, int input, int output,
                         int error) {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return Status::FromErrno("opening /dev/null");
  Fd report_read, report_write;
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) return Status::FromErrno("making a pipe");
  report_read.Reset(pair[0]);
  report_write.Reset(pair[1]);
  // Everything the child needs exists before the fork: between fork and exec it only makes system calls.
  const std::vector<std::string> variables = ChangedEnvironment(changes);
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(variables);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Status::FromErrno("starting " + arguments[0]);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_DFL);
    const bool orphaned = getppid() != parent;
    if (!orphaned && dup2(input < 0 ? null.get() : input, STDIN_FILENO) >= 0 &&
        dup2(output < 0 ? null.get() : output, STDOUT_FILENO) >= 0 && (error < 0 || dup2(error, STDERR_FILENO) >= 0)) {
      execve(argv[0], argv.data(), envp.data());
    }
    const int code = errno;
    if (write(report_write.get(), &code, sizeof(code)) < 0) _exit(126);
    _exit(127);
  }
  report_write.Reset();
  int code = 0;
  if (read(report_read.get(), &code, sizeof(code)) == sizeof(code)) {
    waitpid(child, nullptr, 0);
    return Status::FromErrno("starting " + arguments[0], code);
  }
  return child;
}

void StopChild(pid_t child, std::chrono::milliseconds patience) {
  if (child <= 0) return;
  kill(child, SIGTERM);
  const auto deadline = Clock::now() + patience;
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    if (Clock::now() >= deadline) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const std::string& program, const Environment& changes) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0) return Status::FromErrno("making a pipe");
  Fd to_read(to[0]), to_write(to[1]);
  if (pipe2(from, O_CLOEXEC) != 0) return Status::FromErrno("making a pipe");
  Fd from_read(from[0]), from_write(from[1]);
  auto child = SpawnChild({program}, changes, to_read.get(), from_write.get(), -1);
  if (!child.ok()) return child.status();
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(*child, std::move(to_write), std::move(from_read)));
}

WorkerProcess::~WorkerProcess() {
  if (child_ <= 0) return;
  // The end of its input is the polite request to leave; what hangs is stopped.
  to_.Reset();
  const auto deadline = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < deadline) {
    if (waitpid(child_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  StopChild(child_, std::chrono::milliseconds(500));
}

Result<json> WorkerProcess::Call(const json& request, std::chrono::milliseconds timeout) {
  if (Status s = Send(request); !s.ok()) return s;
  return Receive(timeout);
}

void WorkerProcess::Kill() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = -1;
}

Status WorkerProcess::Send(const json& request) {
  const std::string line = request.dump() + "\n";
  // A dead worker must become a status, not SIGPIPE: the caller's program ignores that signal.
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(to_.get(), line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status(Code::kClosed, "the measuring process ended before " + line);
    sent += static_cast<size_t>(count);
  }
  asked_ = request.dump();
  return Status::Ok();
}

Result<json> WorkerProcess::Receive(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  size_t end = 0;
  while ((end = pending_.find('\n')) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{from_.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Status(Code::kTimeout, "no answer within its time to " + asked_);
    char chunk[4096];
    const ssize_t count = read(from_.get(), chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Status(Code::kClosed, "the measuring process died during " + asked_);
    pending_.append(chunk, static_cast<size_t>(count));
  }
  const json answer = json::parse(pending_.substr(0, end), nullptr, /*allow_exceptions=*/false);
  pending_.erase(0, end + 1);
  if (!answer.is_object()) return Status(Code::kProtocol, "the measuring process answered no JSON object");
  if (answer.contains("error")) {
    return Status(Code::kInvalid, asked_ + ": " + answer.value("error", std::string()));
  }
  return answer.value("values", json::object());
}

}  // namespace hawser::bench
