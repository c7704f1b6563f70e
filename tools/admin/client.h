// SPDX-License-Identifier: Apache-2.0
// A connection to a server's control plane. The only part of the `hawser` command that includes gRPC.
//
// Threads: one calls; any may Cancel().
#ifndef HAWSER_TOOLS_ADMIN_CLIENT_H_
#define HAWSER_TOOLS_ADMIN_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hawser/admin.pb.h"
#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::tools {

namespace pb = ::hawser::admin::v1;

/// Errors carry the server's words, or say that nobody answers and what to do.
class AdminClient {
 public:
  /// Looks first whether somebody listens there and lets this user in.
  static wire::Result<std::unique_ptr<AdminClient>> Connect(const wire::Endpoint& endpoint);
  virtual ~AdminClient() = default;

  virtual wire::Result<pb::ServerStatus> GetStatus() = 0;
  virtual wire::Result<pb::ListTenantsResponse> ListTenants() = 0;
  virtual wire::Result<pb::Tenant> SetTenant(const pb::SetTenantRequest& request) = 0;
  virtual wire::Result<pb::ListSessionsResponse> ListSessions(const std::string& tenant) = 0;
  virtual wire::Status StopSession(uint64_t id, const std::string& reason) = 0;
  virtual wire::Result<pb::Policy> SetPolicy(const std::string& name) = 0;

  /// Calls take(message) for each until it says false or Cancel() is called: both are no errors.
  virtual wire::Status Watch(uint32_t interval_ms, const std::function<bool(const pb::Snapshot&)>& take) = 0;
  /// As Watch(); ends also after `length`.
  virtual wire::Status Trace(const pb::TraceRequest& request, std::optional<std::chrono::milliseconds> length,
                             const std::function<bool(const pb::TraceBatch&)>& take) = 0;

  /// Ends the stream that runs, or the next one.
  virtual void Cancel() = 0;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_CLIENT_H_
