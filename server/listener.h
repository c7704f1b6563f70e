// SPDX-License-Identifier: Apache-2.0
// A place where guests knock.
#ifndef HAWSER_SERVER_LISTENER_H_
#define HAWSER_SERVER_LISTENER_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "server/tenants.h"
#include "wire/endpoint.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

class Listener {
 public:
  /// `socket_mode` is the mode of a unix socket's file.
  static wire::Result<std::unique_ptr<Listener>> Open(const std::string& uri, mode_t socket_mode);
  /// Closes it and removes its socket file, if that is still ours.
  ~Listener();

  int fd() const { return fd_.get(); }
  /// The address that guests use; the port is the real one.
  const wire::Endpoint& endpoint() const { return endpoint_; }
  /// TCP that other machines can reach.
  bool reachable_from_elsewhere() const { return reachable_from_elsewhere_; }
  /// Over such a socket descriptors can be passed, so that memory can be shared.
  bool passes_descriptors() const;

  struct Visitor {
    wire::Fd fd;
    PeerIdentity peer;
  };
  /// The next one who waits; its socket is non-blocking. kTimeout: nobody. kExhausted: no descriptor left.
  wire::Result<Visitor> Accept();

 private:
  Listener(wire::Fd fd, wire::Endpoint endpoint) : fd_(std::move(fd)), endpoint_(std::move(endpoint)) {}

  wire::Result<PeerIdentity> Identify(int fd) const;

  wire::Fd fd_;
  wire::Endpoint endpoint_;
  bool reachable_from_elsewhere_ = false;
  std::string file_;  ///< The socket's, if it has one.
  struct stat file_info_ {};
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_LISTENER_H_
