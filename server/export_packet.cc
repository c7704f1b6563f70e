// SPDX-License-Identifier: Apache-2.0
#include "server/export_packet.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace hawser::server {
namespace {

/// More than the system lets anybody send at once, so that nothing comes unseen.
constexpr size_t kMostSeen = 256;

}  // namespace

bool SendExportPacket(int socket, std::span<const std::byte> packet, std::span<const wire::Fd> files, int flags) {
  if (files.size() > kMaxExportedDescriptors) return false;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxExportedDescriptors)] = {};
  iovec vector{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      const int number = files[i].get();
      std::memcpy(CMSG_DATA(head) + i * sizeof(int), &number, sizeof(int));
    }
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(packet.size());
}

PacketGot ReceiveExportPacket(int socket, std::span<std::byte> packet, std::vector<wire::Fd>* files, int flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostSeen)];
  iovec vector{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? PacketGot::kNone : PacketGot::kBroken;
  wire::TakeFds(message, files);
  return got == static_cast<ssize_t>(packet.size()) ? PacketGot::kPacket : PacketGot::kBroken;
}

bool MayBeChunk(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return false;
  if (S_ISREG(found.st_mode)) {
    const int seals = ::fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  }
  if (S_ISCHR(found.st_mode)) return ::isatty(descriptor) == 0;
  return (found.st_mode & S_IFMT) == 0;
}

void CloseStrange(std::vector<wire::Fd> files) {
  if (files.empty()) return;
  constexpr linger kAtOnce{1, 0};
  for (const wire::Fd& file : files) {
    (void)::setsockopt(file.get(), SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof(kAtOnce));
  }
  try {
    std::thread([kept = std::move(files)]() mutable { kept.clear(); }).detach();
  } catch (const std::system_error&) {
    // No thread is to be had: then here.
  }
}

}  // namespace hawser::server
