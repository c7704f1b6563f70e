// SPDX-License-Identifier: Apache-2.0
#include "wire/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
// Needs sockaddr, and does not declare it on every distribution.
#include <linux/vm_sockets.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "wire/deadline.h"

namespace hawser::wire {
namespace {

using std::chrono::milliseconds;

/// An address of any family.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

template <typename T>
Address MakeAddress(const T& value, size_t size = sizeof(T)) {
  Address address;
  std::memcpy(&address.storage, &value, size);
  address.size = static_cast<socklen_t>(size);
  return address;
}

/// The file that a listener of this endpoint creates; empty for tcp and AF_VSOCK.
std::string SocketFile(const Endpoint& endpoint) {
  if (endpoint.IsHybridVsock()) return endpoint.path + "_" + std::to_string(endpoint.port);
  return endpoint.path;
}

Result<Address> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Status(Code::kInvalid, "the socket path '" + path + "' is empty or longer than the system allows");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return MakeAddress(address, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

Address VsockAddress(uint32_t cid, uint32_t port) {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = cid;
  address.svm_port = port;
  return MakeAddress(address);
}

Result<std::vector<Address>> TcpAddresses(const Endpoint& endpoint, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) {
    const std::string words = error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error);
    return Status(Code::kSystem, "cannot resolve host '" + endpoint.host + "': " + words);
  }
  std::vector<Address> addresses;
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    if (i->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address address;
    std::memcpy(&address.storage, i->ai_addr, i->ai_addrlen);
    address.size = i->ai_addrlen;
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) return Status(Code::kSystem, "host '" + endpoint.host + "' has no address");
  return addresses;
}

Result<std::vector<Address>> Addresses(const Endpoint& endpoint, bool passive) {
  if (endpoint.transport == Transport::kTcp) return TcpAddresses(endpoint, passive);
  if (endpoint.transport == Transport::kVsock && !endpoint.IsHybridVsock()) {
    // Port 0 is a port like any other here; as for TCP it shall mean a free one.
    const uint32_t port = passive && endpoint.port == 0 ? VMADDR_PORT_ANY : endpoint.port;
    return std::vector<Address>{VsockAddress(endpoint.cid, port)};
  }
  Result<Address> address = UnixAddress(SocketFile(endpoint));
  if (!address.ok()) return address.status();
  return std::vector<Address>{*address};
}

Result<Fd> OpenSocket(const Address& address, bool blocking, const std::string& who) {
  const int type = SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK);
  Fd fd(::socket(address.family(), type, 0));
  if (!fd.valid()) return Status::FromErrno("cannot open a socket for " + who);
  return fd;
}

Status SetBlocking(int fd, bool blocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return Status::FromErrno("cannot read the flags of a socket");
  const int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
  if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) < 0) {
    return Status::FromErrno("cannot change the flags of a socket");
  }
  return {};
}

/// Waits for `events`; 0 when the deadline passed first, otherwise poll's events or -errno.
int PollFor(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    int wait_ms = -1;
    if (!deadline.never()) {
      const auto left = deadline.Left(std::chrono::hours(24));
      wait_ms = static_cast<int>(std::chrono::ceil<milliseconds>(left).count());
    }
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return entry.revents;
    if (ready == 0 && deadline.Passed()) return 0;
    if (ready < 0 && errno != EINTR) return -errno;
  }
}

Status TimedOut(const std::string& who) {
  return Status(Code::kTimeout, "no answer from " + who + " in time; is the server running and reachable?");
}

/// Connects a non-blocking socket to one address.
Status ConnectTo(int fd, const Address& address, const Deadline& deadline, const std::string& who) {
  for (;;) {
    if (::connect(fd, address.get(), address.size) == 0) return {};
    if (errno == EINPROGRESS || errno == EINTR || errno == EALREADY) break;
    if (errno != EAGAIN) return Status::FromErrno("cannot connect to " + who);
    // A unix listener whose backlog is full: there is nothing to poll for, so ask again soon.
    if (deadline.Passed()) return TimedOut(who);
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
  const int events = PollFor(fd, POLLOUT, deadline);
  if (events == 0) return TimedOut(who);
  if (events < 0) return Status::FromErrno("cannot connect to " + who, -events);
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  if (error != 0) return Status::FromErrno("cannot connect to " + who, error);
  return {};
}

/// Removes a socket file that nobody listens on; refuses to touch anything else.
Status RemoveStale(const std::string& path, const Address& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status() : Status::FromErrno("cannot look at '" + path + "'");
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Status(Code::kInvalid, "'" + path + "' exists and is not a socket; remove it or choose another path");
  }
  Result<Fd> probe = OpenSocket(address, /*blocking=*/false, path);
  if (!probe.ok()) return probe.status();
  if (::connect(probe->get(), address.get(), address.size) == 0 || errno == EAGAIN) {
    return Status(Code::kInvalid, "another server already listens on '" + path + "'; stop it or choose another path");
  }
  if (errno != ECONNREFUSED) return Status::FromErrno("cannot tell whether '" + path + "' is in use");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Status::FromErrno("cannot remove the stale socket '" + path + "'");
  }
  return {};
}

Result<Fd> ListenOn(const Endpoint& endpoint, const Address& address, int backlog) {
  const std::string who = endpoint.ToString();
  Result<Fd> fd = OpenSocket(address, /*blocking=*/false, who);
  if (!fd.ok()) return fd.status();
  const bool is_unix = address.family() == AF_UNIX;
  if (is_unix) {
    if (Status status = RemoveStale(SocketFile(endpoint), address); !status.ok()) return status;
    // On Linux the file inherits the socket's mode, so it is private from its first moment.
    if (::fchmod(fd->get(), 0600) != 0) return Status::FromErrno("cannot restrict the mode of " + who);
  }
  if (address.family() == AF_INET || address.family() == AF_INET6) {
    const int on = 1;
    ::setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (::bind(fd->get(), address.get(), address.size) != 0) return Status::FromErrno("cannot bind " + who);
  if (::listen(fd->get(), backlog) != 0) {
    const Status status = Status::FromErrno("cannot listen on " + who);
    if (is_unix) ::unlink(SocketFile(endpoint).c_str());
    return status;
  }
  return fd;
}

void SetOption(int fd, int level, int name, int value) {
  // Best effort: a stream without this option is slower, not wrong.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

int SocketDomain(int fd) {
  int domain = -1;
  socklen_t size = sizeof(domain);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 ? domain : -1;
}

}  // namespace

void Fd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Fd> Connect(const Endpoint& endpoint, SocketUse use, milliseconds timeout) {
  const std::string who = endpoint.ToString();
  if (endpoint.IsHybridVsock()) {
    return Status(Code::kInvalid, who + " is a form for listening; inside the guest connect to vsock:2:" +
                                      std::to_string(endpoint.port));
  }
  const Deadline deadline(timeout);
  Result<std::vector<Address>> addresses = Addresses(endpoint, /*passive=*/false);
  if (!addresses.ok()) return addresses.status();
  Status last;
  for (const Address& address : *addresses) {
    Result<Fd> fd = OpenSocket(address, /*blocking=*/false, who);
    if (!fd.ok()) {
      last = fd.status();
      continue;
    }
    last = ConnectTo(fd->get(), address, deadline, who);
    if (last.ok()) last = SetBlocking(fd->get(), true);
    if (last.ok()) last = TuneStream(fd->get(), endpoint.transport, use);
    if (last.ok()) return fd;
  }
  return last;
}

Result<Fd> Listen(const Endpoint& endpoint, int backlog) {
  Result<std::vector<Address>> addresses = Addresses(endpoint, /*passive=*/true);
  if (!addresses.ok()) return addresses.status();
  Status last;
  for (const Address& address : *addresses) {
    Result<Fd> fd = ListenOn(endpoint, address, backlog);
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return last;
}

Result<Fd> Accept(int listener) {
  for (;;) {
    Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) return fd;
    switch (errno) {
      case EINTR:
      case ECONNABORTED:  // The peer left before we got to it.
        continue;
      case EAGAIN:
        return Status(Code::kTimeout, "no connection is waiting");
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return Status(Code::kExhausted, std::string("cannot accept a connection: ") + std::strerror(errno) +
                                            "; raise the limit on open files or close connections");
      default:
        return Status::FromErrno("cannot accept a connection");
    }
  }
}

Result<Endpoint> BoundEndpoint(const Endpoint& endpoint, int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return Status::FromErrno("cannot read the address of the listener for " + endpoint.ToString());
  }
  Endpoint bound = endpoint;
  switch (storage.ss_family) {
    case AF_INET:
      bound.port = ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
      break;
    case AF_INET6:
      bound.port = ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
      break;
    case AF_VSOCK:
      bound.port = reinterpret_cast<const sockaddr_vm*>(&storage)->svm_port;
      break;
    default:
      break;
  }
  return bound;
}

Status TuneStream(int fd, Transport transport, SocketUse use) {
  // The hybrid vsock form is a unix socket, so the socket itself is asked rather than the URI.
  const int domain = SocketDomain(fd);
  if (domain < 0) return Status::FromErrno("cannot tune a " + std::string(TransportName(transport)) + " stream");
  if (domain == AF_INET || domain == AF_INET6) {
    const int on = 1;
    if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
      return Status::FromErrno("cannot turn off Nagle's algorithm, without which calls stall");
    }
    SetOption(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
    // A peer that vanished (power, network) is noticed after 30 + 3 * 10 s without traffic, and
    // after 60 s with unacknowledged data.
    SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
    SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
    // No buffer sizes: fixed ones turn off the kernel's own tuning, which was never slower on loopback
    // (1 MiB messages: 2.1 to 5.8 GiB/s tuned, 1.7 to 2.3 fixed at 4 MiB).
    return {};
  }
  constexpr int kBulkBuffer = 4 << 20;
  if (use != SocketUse::kBulk) {
    // A burst of commands waits here for the server, and not the application for both: with the default of
    // 208 KiB 10,000 launches cost the guest as much as the server (1.05 us each), TCP's own tuning 0.29 us.
    if (domain == AF_UNIX) SetOption(fd, SOL_SOCKET, SO_SNDBUF, kBulkBuffer);
    return {};
  }
  // Unix streams do not tune themselves; with room for a whole bulk chunk, 1 MiB messages went from
  // 4.3-5.6 to 4.6-7.3 GiB/s. The system's limit (net.core.wmem_max) caps it silently.
  if (domain == AF_UNIX) {
    SetOption(fd, SOL_SOCKET, SO_SNDBUF, kBulkBuffer);
    SetOption(fd, SOL_SOCKET, SO_RCVBUF, kBulkBuffer);
  } else if (domain == AF_VSOCK) {
    const uint64_t size = kBulkBuffer;
    (void)::setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &size, sizeof(size));
    (void)::setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &size, sizeof(size));
  }
  return {};
}

}  // namespace hawser::wire
