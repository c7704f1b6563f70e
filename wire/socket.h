// SPDX-License-Identifier: Apache-2.0
// Sockets: owning descriptors, connecting, listening, and the options every stream gets.
#ifndef HAWSER_WIRE_SOCKET_H_
#define HAWSER_WIRE_SOCKET_H_

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wire/channel.h"
#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::wire {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// What a stream socket is used for; decides buffer sizes.
enum class SocketUse : uint8_t { kCommand, kBulk };

/// Connects (blocking, at most `timeout`) and tunes. kShm and kUnix give a unix stream.
Result<Fd> Connect(const Endpoint& endpoint, SocketUse use, std::chrono::milliseconds timeout);

/// A listening, non-blocking, close-on-exec socket. unix: removes a stale socket file nobody
/// listens on, creates it with mode 0600. tcp port 0 picks a free port (see BoundEndpoint).
Result<Fd> Listen(const Endpoint& endpoint, int backlog);
/// Takes one waiting connection (close-on-exec, blocking). kTimeout when the listener is non-blocking
/// and nobody waits; kExhausted when this process or the system has no descriptor left.
Result<Fd> Accept(int listener);
/// The endpoint really bound (port filled in).
Result<Endpoint> BoundEndpoint(const Endpoint& endpoint, int fd);

/// TCP_NODELAY, quick acknowledgements, keep-alive, buffer sizes as measured in docs/performance.md.
/// No stream may ever wait 40 ms for a delayed acknowledgement.
Status TuneStream(int fd, Transport transport, SocketUse use);

/// A channel over a connected stream socket. Takes ownership. Sets it non-blocking.
/// Bytes gather in a buffer of up to 32 KiB until a flush. Large writes go to the kernel directly.
std::unique_ptr<Channel> MakeSocketChannel(Fd fd, Transport transport);

/// One message with descriptors over a unix socket (SCM_RIGHTS). At most 8 descriptors, at least one
/// byte. Waits while the socket is full, at most 10 s in all (kTimeout).
Status SendWithFds(int socket, Bytes bytes, std::span<const int> fds);
/// Receives up to buffer.size() bytes and the descriptors that came with them. Received descriptors
/// are close-on-exec; more than `max_fds` are closed and reported as kProtocol. kClosed at the end of
/// the stream. kTimeout when the socket is non-blocking and empty, or its SO_RCVTIMEO ran out.
Result<size_t> ReceiveWithFds(int socket, std::span<std::byte> buffer, std::vector<Fd>* fds, size_t max_fds);
/// Appends the descriptors that recvmsg() has put into the message: they are the caller's, wanted or not.
void TakeFds(const msghdr& message, std::vector<Fd>* fds);

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SOCKET_H_
