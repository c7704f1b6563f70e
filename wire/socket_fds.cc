// SPDX-License-Identifier: Apache-2.0
// Descriptors over unix sockets.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "wire/deadline.h"
#include "wire/socket.h"

namespace hawser::wire {
namespace {

constexpr size_t kMaxSentFds = 8;
// More than any honest peer sends, so that a dishonest one's descriptors are seen and closed here.
constexpr size_t kMaxSeenFds = 64;
constexpr std::chrono::seconds kSendTimeout{10};

/// Waits until `socket` takes more bytes.
Status WaitForRoom(int socket, const Deadline& deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Left(kSendTimeout));
  pollfd entry{socket, POLLOUT, 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  if (ready < 0) return Status::FromErrno("cannot wait for a unix socket");
  return Status(Code::kTimeout, "the peer of a unix socket does not read what it is sent");
}

}  // namespace

Status SendWithFds(int socket, Bytes bytes, std::span<const int> fds) {
  if (fds.size() > kMaxSentFds) {
    return Status(Code::kInvalid, "one message carries at most 8 descriptors, not " + std::to_string(fds.size()));
  }
  if (bytes.empty()) return Status(Code::kInvalid, "a message with descriptors needs at least one byte");
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSentFds)] = {};
  const Deadline deadline(kSendTimeout);
  bool fds_sent = fds.empty();
  while (!bytes.empty()) {
    iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    if (!fds_sent) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(head), fds.data(), sizeof(int) * fds.size());
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent >= 0) {
      fds_sent = true;
      bytes = bytes.subspan(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
      return Status(Code::kClosed, "the peer of a unix socket is gone");
    }
    if (errno != EAGAIN) return Status::FromErrno("cannot send descriptors over a unix socket");
    if (Status status = WaitForRoom(socket, deadline); !status.ok()) return status;
  }
  return {};
}

void TakeFds(const msghdr& message, std::vector<Fd>* fds) {
  // CMSG_NXTHDR() takes it unconst, and does not change it.
  auto* const from = const_cast<msghdr*>(&message);
  for (cmsghdr* head = CMSG_FIRSTHDR(from); head != nullptr; head = CMSG_NXTHDR(from, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
}

Result<size_t> ReceiveWithFds(int socket, std::span<std::byte> buffer, std::vector<Fd>* fds, size_t max_fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSeenFds)];
  iovec vector{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN) return Status(Code::kTimeout, "the peer of a unix socket sent nothing in time");
    if (errno == ECONNRESET) return Status(Code::kClosed, "the peer of a unix socket is gone");
    return Status::FromErrno("cannot receive from a unix socket");
  }
  std::vector<Fd> received;
  TakeFds(message, &received);
  if (received.size() > max_fds || (message.msg_flags & MSG_CTRUNC) != 0) {
    return Status(Code::kProtocol, "the peer sent " + std::to_string(received.size()) +
                                       " descriptors or more where at most " + std::to_string(max_fds) +
                                       " are expected");
  }
  if (got == 0 && !buffer.empty()) return Status(Code::kClosed, "the peer of a unix socket closed the stream");
  if (fds != nullptr) {
    for (Fd& fd : received) fds->push_back(std::move(fd));
  }
  return static_cast<size_t>(got);
}

}  // namespace hawser::wire
