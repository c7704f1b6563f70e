// SPDX-License-Identifier: Apache-2.0
// Where the control plane gets hawserd's state from, and through which it changes it.
//
// Threads: called from any thread of the gRPC server, never from hawserd's event loop: an implementation hands each
// request to the event loop and waits for it. After hawserd began to stop, and while it does not answer, everything
// fails with kClosed or kTimeout; nothing waits for ever.
#ifndef HAWSER_SERVER_ADMIN_STATE_SOURCE_H_
#define HAWSER_SERVER_ADMIN_STATE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/admin/state.h"
#include "server/admin/trace_feed.h"
#include "wire/status.h"

namespace hawser::server::admin {

class StateSource {
 public:
  virtual ~StateSource() = default;

  virtual wire::Result<Snapshot> Read() = 0;
  /// nullopt: no such tenant. kInvalid: a value is wrong; nothing was changed.
  virtual wire::Result<std::optional<TenantState>> SetTenant(const std::string& name, const TenantChange& change) = 0;
  /// False: no such session. The reason is shown to the guest and in the log.
  virtual wire::Result<bool> StopSession(uint64_t id, const std::string& reason) = 0;
  /// kInvalid: no such policy. kRefused: nothing here has policies.
  virtual wire::Result<PolicyState> SetPolicy(const std::string& name) = 0;
  /// Fills the feed until it is closed or nobody else holds it.
  virtual wire::Status Trace(std::shared_ptr<TraceFeed> feed) = 0;
};

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_STATE_SOURCE_H_
