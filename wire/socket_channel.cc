// SPDX-License-Identifier: Apache-2.0
// A channel over a connected stream socket.
//
// Threads: one reader uses TryRead and WaitReadable, one writer uses the gather buffer (TryWrite,
// TryFlush, WaitWritable). Shutdown() may come from any thread; it touches only `ended_` and the
// descriptor, which stays open until the channel is destroyed or abandoned. No locks.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "wire/deadline.h"
#include "wire/socket.h"

namespace hawser::wire {
namespace {

constexpr size_t kGatherSize = 32u << 10;
/// From this size on, copying costs more than handing the kernel a second vector.
constexpr size_t kDirectSize = 16u << 10;

class SocketChannel final : public Channel {
 public:
  SocketChannel(Fd fd, Transport transport)
      : fd_(std::move(fd)), transport_(transport), gather_(std::make_unique<std::byte[]>(kGatherSize)) {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags >= 0) (void)::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK);
    int domain = 0;
    socklen_t size = sizeof(domain);
    is_tcp_ = ::getsockopt(fd_.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
              (domain == AF_INET || domain == AF_INET6);
  }

  Result<size_t> TryRead(std::span<std::byte> buffer) override;
  Status WaitReadable(SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout) override;
  Status EnableInterrupts() override;
  void InterruptRead() override;
  Result<size_t> TryWrite(Bytes bytes) override;
  Result<bool> TryFlush() override;
  Status WaitWritable(std::optional<std::chrono::nanoseconds> timeout) override {
    return Wait(POLLOUT, Deadline(timeout));
  }
  size_t unflushed() const override { return end_ - begin_; }
  void Shutdown() override {
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    if (fd_.valid()) ::shutdown(fd_.get(), SHUT_RDWR);
  }
  void Abandon() override {
    ended_.store(true, std::memory_order_release);
    begin_ = end_ = 0;
    fd_.Reset();
    interrupt_fd_.Reset();
  }

 private:
  Status Closed() const {
    return Status(Code::kClosed, "the " + std::string(TransportName(transport_)) + " stream has ended");
  }
  /// The error of a read or write that moved nothing; ok when it should simply be tried later.
  Status Failure(const char* what) const;
  Status Wait(short events, const Deadline& deadline);
  void TakeInterrupt();
  /// Sends what is kept and then `extra` with one call. Returns how many bytes of `extra` went.
  Result<size_t> Send(Bytes extra);
  void Keep(Bytes bytes) {
    std::memcpy(gather_.get() + end_, bytes.data(), bytes.size());
    end_ += bytes.size();
  }

  Fd fd_;
  const Transport transport_;
  bool is_tcp_ = false;
  std::atomic<bool> ended_{false};
  Fd interrupt_fd_;  ///< An eventfd once EnableInterrupts() was called.
  std::atomic<bool> interrupted_{false};

  // The writer's: bytes [begin_, end_) of gather_ were taken and not yet sent.
  const std::unique_ptr<std::byte[]> gather_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

Status SocketChannel::Failure(const char* what) const {
  switch (errno) {
    case EAGAIN:
      return {};
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
    case EBADF:  // Abandoned.
      return Closed();
    case ETIMEDOUT:
      return Status(Code::kClosed, "the peer stopped answering and the connection timed out");
    default:
      return Status::FromErrno(std::string("cannot ") + what + " a " + std::string(TransportName(transport_)) +
                               " stream");
  }
}

Result<size_t> SocketChannel::TryRead(std::span<std::byte> buffer) {
  if (buffer.empty()) return size_t{0};
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) [[likely]] {
      if (is_tcp_) {
        // Not sticky: the kernel falls back to delayed acknowledgements by itself, and a peer whose
        // window is small would then wait 40 ms.
        const int on = 1;
        (void)::setsockopt(fd_.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
      }
      return static_cast<size_t>(got);
    }
    if (got == 0) return Closed();
    if (errno == EINTR) continue;
    if (Status status = Failure("read from"); !status.ok()) return status;
    return size_t{0};
  }
}

Status SocketChannel::Wait(short events, const Deadline& deadline) {
  for (;;) {
    if (!fd_.valid()) return {};  // Abandoned: the next operation says so.
    // Only a reader can be interrupted. poll() ignores an entry whose descriptor is -1.
    pollfd entries[2] = {{fd_.get(), events, 0}, {events == POLLIN ? interrupt_fd_.get() : -1, POLLIN, 0}};
    timespec limit{};
    if (!deadline.never()) {
      const auto left = deadline.Left(std::chrono::hours(24));
      limit.tv_sec = left.count() / 1'000'000'000;
      limit.tv_nsec = left.count() % 1'000'000'000;
    }
    const int ready = ::ppoll(entries, 2, deadline.never() ? nullptr : &limit, nullptr);
    if (ready > 0 && entries[1].revents != 0) TakeInterrupt();
    if (ready > 0) return {};  // Also for POLLHUP and POLLERR: the next operation has the reason.
    if (ready < 0 && errno != EINTR) return Status::FromErrno("cannot wait for a socket");
    if (deadline.Passed()) return Status(Code::kTimeout, "nothing happened on the stream in time");
  }
}

Status SocketChannel::EnableInterrupts() {
  if (interrupt_fd_.valid()) return {};
  interrupt_fd_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return interrupt_fd_.valid() ? Status() : Status::FromErrno("cannot create an eventfd");
}

void SocketChannel::InterruptRead() {
  if (!interrupt_fd_.valid() || interrupted_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  (void)!::write(interrupt_fd_.get(), &one, sizeof(one));
}

void SocketChannel::TakeInterrupt() {
  interrupted_.exchange(false, std::memory_order_acq_rel);  // Sees what the interrupter did before.
  uint64_t count = 0;
  (void)!::read(interrupt_fd_.get(), &count, sizeof(count));
}

Status SocketChannel::WaitReadable(SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout) {
  const Deadline deadline(timeout);
  if (interrupted_.load(std::memory_order_acquire)) {
    TakeInterrupt();
    return {};
  }
  if (spin.spin.count() > 0) {
    // Asking the kernel is itself a few hundred cycles, so there is no pause between questions; the
    // core is offered to others after each.
    const Deadline spin_end(deadline.Left(spin.spin));
    do {
      pollfd entry{fd_.get(), POLLIN, 0};
      if (::poll(&entry, 1, 0) != 0) break;                     // Ready, or an error that the wait below reports.
      if (interrupted_.load(std::memory_order_relaxed)) break;  // The wait below takes it.
      ::sched_yield();
    } while (!spin_end.Passed());
  }
  return Wait(POLLIN, deadline);
}

Result<size_t> SocketChannel::Send(Bytes extra) {
  for (;;) {
    const size_t kept = end_ - begin_;
    iovec vectors[2] = {{gather_.get() + begin_, kept}, {const_cast<std::byte*>(extra.data()), extra.size()}};
    msghdr message{};
    message.msg_iov = kept != 0 ? vectors : vectors + 1;
    message.msg_iovlen = (kept != 0 ? 1u : 0u) + (extra.empty() ? 0u : 1u);
    const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (Status status = Failure("write to"); !status.ok()) return status;
      return size_t{0};
    }
    const size_t gone = static_cast<size_t>(sent);
    if (gone < kept) {
      begin_ += gone;
      return size_t{0};
    }
    begin_ = end_ = 0;
    return gone - kept;
  }
}

Result<size_t> SocketChannel::TryWrite(Bytes bytes) {
  if (ended_.load(std::memory_order_relaxed)) [[unlikely]]
    return Closed();
  if (bytes.size() < kDirectSize && bytes.size() <= kGatherSize - end_) [[likely]] {
    if (!bytes.empty()) Keep(bytes);
    return bytes.size();
  }
  Result<size_t> sent = Send(bytes);
  if (!sent.ok()) return sent;
  size_t taken = *sent;
  if (begin_ != 0) {  // The kernel took some of what was kept: make room at the end again.
    std::memmove(gather_.get(), gather_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // A short rest is kept, so that a small record is either taken whole or waits for room. The rest of
  // a large one stays with the caller, who can hand it over again without a copy.
  const Bytes rest = bytes.subspan(taken);
  if (rest.size() < kDirectSize && rest.size() <= kGatherSize - end_) {
    if (!rest.empty()) Keep(rest);
    taken += rest.size();
  }
  return taken;
}

Result<bool> SocketChannel::TryFlush() {
  if (begin_ == end_) return true;
  if (ended_.load(std::memory_order_relaxed)) [[unlikely]]
    return Closed();
  Result<size_t> sent = Send({});
  if (!sent.ok()) return sent.status();
  return begin_ == end_;
}

}  // namespace

std::unique_ptr<Channel> MakeSocketChannel(Fd fd, Transport transport) {
  return std::make_unique<SocketChannel>(std::move(fd), transport);
}

}  // namespace hawser::wire
