// SPDX-License-Identifier: Apache-2.0
#include "server/worker/driver_messages.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

// Where a sanitizer's runtime writes its reports: not into a pipe that this process itself empties.
extern "C" void __sanitizer_set_report_fd(void* fd) __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)

namespace hawser::server {
namespace {

using wire::Fd;
using wire::Status;

constexpr size_t kLongestLine = 4096;

/// For Rescue(), which may not take locks: -1 or descriptors that stay open while they are here.
std::atomic<int> rescue_pipe{-1};
std::atomic<int> rescue_log{-1};
std::atomic<int> rescue_stderr{-1};

/// Raw: also called in signal handlers.
void WriteAll(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

void SetReports(int fd) {
  if (__sanitizer_set_report_fd != nullptr) {
    __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(fd)));  // NOLINT(performance-no-int-to-ptr)
  }
}

}  // namespace

DriverMessages::~DriverMessages() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof(one));
  thread_.join();
  rescue_pipe = rescue_log = rescue_stderr = -1;
  ::dup2(log_.get(), stderr_fd_);
  SetReports(stderr_fd_);
  const std::lock_guard lock(mutex_);
  Read();
}

Status DriverMessages::Enable() {
  const std::lock_guard lock(mutex_);
  if (enabled_.load(std::memory_order_relaxed)) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno("cannot create a pipe for what the driver writes");
  pipe_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  log_ = Fd(::fcntl(stderr_fd_, F_DUPFD_CLOEXEC, 3));
  wakeup_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!log_.valid() || !wakeup_.valid() || ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK) != 0 ||
      ::dup2(write_end.get(), stderr_fd_) < 0) {
    return Status::FromErrno("cannot look at what the driver writes");
  }
  SetReports(log_.get());
  rescue_log = log_.get();
  rescue_stderr = stderr_fd_;
  rescue_pipe = pipe_.get();
  enabled_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { Run(); });
  return {};
}

std::string DriverMessages::Take() {
  if (!enabled_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  Read();
  return std::exchange(kept_, {});
}

void DriverMessages::Rescue() {
  const int pipe = rescue_pipe.exchange(-1);
  const int log = rescue_log.load();
  if (pipe < 0 || log < 0) return;
  ::dup2(log, rescue_stderr.load());
  char text[1024];
  for (ssize_t got = 0; (got = ::read(pipe, text, sizeof(text))) > 0;) WriteAll(log, text, static_cast<size_t>(got));
}

bool DriverMessages::IsAssertion(std::string_view line) {
  constexpr std::string_view kBlock = ": block: [", kThread = "], thread: [", kAssertion = "] Assertion `",
                             kEnd = "` failed.";
  size_t at = 0;
  for (const std::string_view part : {kBlock, kThread, kAssertion}) {
    at = line.find(part, at);
    if (at == std::string_view::npos) return false;
    at += part.size();
  }
  return line.size() >= at + kEnd.size() && line.substr(line.size() - kEnd.size()) == kEnd;
}

void DriverMessages::Read() {
  char text[4096];
  for (;;) {
    const ssize_t got = ::read(pipe_.get(), text, sizeof(text));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    WriteAll(log_.get(), text, static_cast<size_t>(got));
    Keep(std::string_view(text, static_cast<size_t>(got)));
  }
}

void DriverMessages::Keep(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (line_.size() <= kLongestLine) line_.append(piece.substr(0, kLongestLine + 1 - line_.size()));
    if (end == std::string_view::npos) return;
    if (line_.size() <= kLongestLine && IsAssertion(line_) && line_.size() < room_) {
      room_ -= line_.size() + 1;
      kept_ += line_ + "\n";
    }
    line_.clear();
    text.remove_prefix(end + 1);
  }
}

void DriverMessages::Run() {
  for (;;) {
    pollfd entries[2] = {{wakeup_.get(), POLLIN, 0}, {pipe_.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (entries[0].revents != 0) return;
    if ((entries[1].revents & POLLIN) != 0) {
      const std::lock_guard lock(mutex_);
      Read();
    } else if (entries[1].revents != 0) {
      return;  // Nobody writes any more.
    }
  }
}

}  // namespace hawser::server
