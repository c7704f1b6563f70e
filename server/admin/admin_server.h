// SPDX-License-Identifier: Apache-2.0
// The control plane's gRPC server: proto/hawser/admin.proto, health and reflection, on connections that somebody else
// accepted and found worthy.
//
// Threads: gRPC's own, started by Start(): 1 or 2 that wait, one more for each call that is being served, at most
// kMaxStreams + 8 in all. They call the StateSource, which must answer or fail. Serve() and BeginStop() do not wait.
#ifndef HAWSER_SERVER_ADMIN_ADMIN_SERVER_H_
#define HAWSER_SERVER_ADMIN_ADMIN_SERVER_H_

#include <memory>

#include "server/admin/state_source.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server::admin {

class AdminServer {
 public:
  static constexpr int kMaxStreams = 32;

  /// `source` is borrowed, and must fail its calls quickly once BeginStop() was called.
  static wire::Result<std::unique_ptr<AdminServer>> Start(StateSource* source);
  /// Ends streams and calls, then gRPC's threads; takes at most about a second.
  virtual ~AdminServer() = default;

  /// Serves whoever is at the other end of this connected, non-blocking stream socket.
  virtual void Serve(wire::Fd connection) = 0;
  /// Health says NOT_SERVING, streams end with UNAVAILABLE.
  virtual void BeginStop() = 0;
};

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_ADMIN_SERVER_H_
