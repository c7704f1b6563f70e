// SPDX-License-Identifier: Apache-2.0
// The way in for operators: a listener for them alone, the gRPC server behind it, and the requests' way to the event
// loop.
//
// Threads: everything but the StateSource's functions belongs to hawserd's event loop. Those run on gRPC's threads,
// hand their request to the event loop through the mailbox and wait for the result. gRPC and its threads start with the
// first operator who connects, so that a server that nobody looks at has none of them.
//
// Who may: over a unix socket only the user that hawserd runs as, and root: the file has mode 0600, and whoever
// connects is asked for again by the kernel's credentials. TCP proves nothing about anybody, so it must be allowed in
// words.
#ifndef HAWSER_SERVER_CONTROL_PLANE_H_
#define HAWSER_SERVER_CONTROL_PLANE_H_

#include <memory>
#include <optional>
#include <string>

#include "server/admin/admin_server.h"
#include "server/admin/state_source.h"
#include "server/event_loop.h"
#include "server/listener.h"
#include "server/mailbox.h"
#include "server/rate_limiter.h"
#include "server/trace_collector.h"
#include "wire/status.h"

namespace hawser::server {

/// What operators see and change; the server's. Event loop only.
class Controlled {
 public:
  virtual ~Controlled() = default;
  virtual admin::Snapshot TakeSnapshot() const = 0;
  /// As admin::StateSource.
  virtual wire::Result<std::optional<admin::TenantState>> ChangeTenant(const std::string& name,
                                                                       const admin::TenantChange& change) = 0;
  virtual bool EndSession(uint64_t id, const std::string& reason) = 0;
  virtual wire::Result<admin::PolicyState> ChangePolicy(const std::string& name) = 0;
  /// Puts what belongs into a timeline and is not recorded by sessions. `anew`: also what was told before and goes on.
  /// Called while somebody listens, and once more after.
  virtual void Trace(TraceCollector* traces, bool anew) = 0;
};

class ControlPlane final : public admin::StateSource {
 public:
  /// Listens at `uri`; loop and controlled are borrowed. kInvalid for addresses that are none for operators.
  static wire::Result<std::unique_ptr<ControlPlane>> Open(const std::string& uri, bool allow_tcp, EventLoop* loop,
                                                          Controlled* controlled);
  /// After the event loop has ended or BeginStop() was called; waits for gRPC's threads.
  ~ControlPlane() override;

  std::string address() const { return listener_->endpoint().ToString(); }
  TraceCollector& traces() { return traces_; }
  /// Requests fail and streams end from here on. Does not wait.
  void BeginStop();

  // admin::StateSource
  wire::Result<admin::Snapshot> Read() override;
  wire::Result<std::optional<admin::TenantState>> SetTenant(const std::string& name,
                                                            const admin::TenantChange& change) override;
  wire::Result<bool> StopSession(uint64_t id, const std::string& reason) override;
  wire::Result<admin::PolicyState> SetPolicy(const std::string& name) override;
  wire::Status Trace(std::shared_ptr<admin::TraceFeed> feed) override;

 private:
  ControlPlane(std::unique_ptr<Listener> listener, EventLoop* loop, Controlled* controlled)
      : listener_(std::move(listener)), loop_(loop), controlled_(controlled) {}

  void OnListener();
  void Admit(Listener::Visitor visitor);
  void CollectTraces();

  std::unique_ptr<Listener> listener_;
  EventLoop* const loop_;
  Controlled* const controlled_;
  Mailbox mailbox_;
  TraceCollector traces_;
  RateLimiter limiter_{20, 2};
  EventLoop::WatchId watch_ = 0;
  EventLoop::TimerId trace_timer_ = 0;
  bool stopping_ = false;
  std::unique_ptr<admin::AdminServer> server_;  ///< Last: its threads use what is above.
};

/// Where operators connect when the configuration does not say: beside the first unix socket of guests, else where a
/// server without options listens. nullopt: nowhere.
std::optional<std::string> DefaultAdminAddress(const std::vector<std::string>& listen);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_CONTROL_PLANE_H_
