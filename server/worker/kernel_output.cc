// SPDX-License-Identifier: Apache-2.0
#include "server/worker/kernel_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hawser::server {
namespace {

using wire::Fd;
using wire::Status;

constexpr size_t kMaxNotice = 64u << 10;
/// Above this the guest does not keep up and kernels have to wait.
constexpr size_t kMaxBacklog = 1u << 20;

}  // namespace

KernelOutput::KernelOutput(Replies* replies, const Dialect* dialect, std::function<size_t()> backlog, int stdout_fd)
    : replies_(replies), dialect_(dialect), backlog_(std::move(backlog)), stdout_fd_(stdout_fd) {}

KernelOutput::~KernelOutput() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof(one));
  thread_.join();
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (null.valid()) ::dup2(null.get(), stdout_fd_);
}

Status KernelOutput::Enable() {
  std::lock_guard lock(mutex_);
  if (enabled_.load(std::memory_order_relaxed)) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno("cannot create a pipe for what kernels print");
  pipe_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  // The two ends have file descriptions of their own: printing blocks, reading does not.
  wakeup_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK) != 0 || !wakeup_.valid() || ::dup2(write_end.get(), stdout_fd_) < 0) {
    return Status::FromErrno("cannot forward what kernels print");
  }
  enabled_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { Run(); });
  return {};
}

void KernelOutput::DrainNow() {
  std::lock_guard lock(mutex_);
  // Only what is there now: a kernel that prints without end must not keep the caller here.
  int waiting = 0;
  if (::ioctl(pipe_.get(), FIONREAD, &waiting) != 0) return;
  std::byte text[kMaxNotice];
  while (waiting > 0) {
    const ssize_t got = ::read(pipe_.get(), text, std::min<size_t>(sizeof(text), static_cast<size_t>(waiting)));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    waiting -= static_cast<int>(got);
    dialect_->SendOutput(replies_, wire::Bytes(text, static_cast<size_t>(got)), waiting <= 0);
  }
}

void KernelOutput::Run() {
  for (;;) {
    const bool may_read = backlog_() < kMaxBacklog;
    pollfd entries[2] = {{wakeup_.get(), POLLIN, 0}, {may_read ? pipe_.get() : -1, POLLIN, 0}};
    const int ready = ::poll(entries, 2, may_read ? -1 : 5);
    if (ready < 0 && errno != EINTR) return;
    if (ready <= 0) continue;
    if (entries[0].revents != 0) return;
    if ((entries[1].revents & POLLIN) != 0) {
      DrainNow();
    } else if (entries[1].revents != 0) {
      return;  // Nobody can print any more.
    }
  }
}

}  // namespace hawser::server
