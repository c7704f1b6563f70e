// SPDX-License-Identifier: Apache-2.0
#include "server/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
// Needs sockaddr, and does not declare it on every distribution.
#include <linux/vm_sockets.h>

#include <cstring>
#include <utility>

namespace hawser::server {
namespace {

using wire::Endpoint;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

constexpr int kBacklog = 1024;

std::string SocketFile(const Endpoint& endpoint) {
  if (endpoint.IsHybridVsock()) return endpoint.path + "_" + std::to_string(endpoint.port);
  return endpoint.path;
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return std::string("[").append(text).append("]:").append(std::to_string(ntohs(v6.sin6_port)));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Open(const std::string& uri, mode_t socket_mode) {
  Result<Endpoint> endpoint = Endpoint::Parse(uri);
  if (!endpoint.ok()) return endpoint.status();
  // Whoever listens on a unix socket serves shared memory too; both names mean the same listener.
  if (endpoint->transport == Transport::kShm) endpoint->transport = Transport::kUnix;
  Result<Fd> fd = wire::Listen(*endpoint, kBacklog);
  if (!fd.ok()) return fd.status();
  Result<Endpoint> bound = wire::BoundEndpoint(*endpoint, fd->get());
  if (!bound.ok()) return bound.status();
  std::unique_ptr<Listener> listener(new Listener(std::move(*fd), std::move(*bound)));
  listener->file_ = SocketFile(listener->endpoint_);
  if (!listener->file_.empty()) {
    if (::lstat(listener->file_.c_str(), &listener->file_info_) != 0 ||
        ::chmod(listener->file_.c_str(), socket_mode) != 0) {
      return Status::FromErrno("cannot set the mode of '" + listener->file_ + "'");
    }
  }
  if (listener->endpoint_.transport == Transport::kTcp) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getsockname(listener->fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return Status::FromErrno("cannot read the address of " + uri);
    }
    listener->reachable_from_elsewhere_ = !IsLoopback(address);
  }
  return listener;
}

Listener::~Listener() {
  if (file_.empty()) return;
  struct stat now {};
  const bool ours =
      ::lstat(file_.c_str(), &now) == 0 && now.st_ino == file_info_.st_ino && now.st_dev == file_info_.st_dev;
  if (ours) ::unlink(file_.c_str());
}

bool Listener::passes_descriptors() const { return endpoint_.transport == Transport::kUnix; }

Result<Listener::Visitor> Listener::Accept() {
  Result<Fd> fd = wire::Accept(fd_.get());
  if (!fd.ok()) return fd.status();
  if (::fcntl(fd->get(), F_SETFL, O_NONBLOCK) != 0) return Status::FromErrno("cannot prepare a connection");
  Result<PeerIdentity> peer = Identify(fd->get());
  if (!peer.ok()) return peer.status();
  return Visitor{std::move(*fd), std::move(*peer)};
}

Result<PeerIdentity> Listener::Identify(int fd) const {
  PeerIdentity peer;
  if (endpoint_.IsHybridVsock()) {
    peer.kind = PeerIdentity::Kind::kHybridVsock;
    peer.socket = file_;
    return peer;
  }
  if (endpoint_.transport == Transport::kUnix) {
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      return Status::FromErrno("cannot ask who is at the other end of a unix socket");
    }
    peer.kind = PeerIdentity::Kind::kUnix;
    peer.uid = credentials.uid;
    peer.pid = credentials.pid;
    return peer;
  }
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status::FromErrno("a connection was gone before it was looked at");
  }
  if (address.ss_family == AF_VSOCK) {
    peer.kind = PeerIdentity::Kind::kVsock;
    peer.cid = reinterpret_cast<const sockaddr_vm&>(address).svm_cid;
    return peer;
  }
  peer.kind = IsLoopback(address) ? PeerIdentity::Kind::kLoopback : PeerIdentity::Kind::kRemote;
  peer.address = AddressText(address);
  return peer;
}

}  // namespace hawser::server
