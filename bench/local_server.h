// SPDX-License-Identifier: Apache-2.0
// A hawserd of our own for the length of a measurement: unix socket and loopback TCP, its own
// directory for sockets, logs and compiler caches.
#ifndef HAWSER_BENCH_LOCAL_SERVER_H_
#define HAWSER_BENCH_LOCAL_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::bench {

class LocalServer {
 public:
  /// Starts `hawserd` and returns once both listeners are ready. `directory` must exist; the socket,
  /// the log and the server's caches go there. `more_arguments` are hawserd's.
  static wire::Result<std::unique_ptr<LocalServer>> Start(const std::string& hawserd, const std::string& directory,
                                                          std::chrono::milliseconds timeout,
                                                          const std::vector<std::string>& more_arguments = {});
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  /// The URI a guest uses for this transport; empty for vsock.
  std::string Uri(wire::Transport transport) const;

 private:
  LocalServer(pid_t child, std::string socket) : child_(child), socket_(std::move(socket)) {}

  pid_t child_;
  std::string socket_;
  std::string tcp_;
};

/// The URI in a line such as "… listening on tcp:127.0.0.1:40233 …"; empty when there is none.
std::string ListeningUri(const std::string& line);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_LOCAL_SERVER_H_
