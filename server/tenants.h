// SPDX-License-Identifier: Apache-2.0
// Who a guest is: from what the transport proves about it, or from a token that it knows.
#ifndef HAWSER_SERVER_TENANTS_H_
#define HAWSER_SERVER_TENANTS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/config.h"
#include "server/tenant_share.h"
#include "wire/status.h"

namespace hawser::server {

/// What the transport proves about the other end of a connection.
struct PeerIdentity {
  enum class Kind : uint8_t {
    kUnix,         ///< `uid` and `pid`, from the kernel.
    kVsock,        ///< `cid`.
    kHybridVsock,  ///< `socket`: the listener's path, which belongs to one virtual machine.
    kLoopback,     ///< TCP from this machine.
    kRemote,       ///< TCP from elsewhere.
  };
  Kind kind = Kind::kUnix;
  uid_t uid = 0;
  pid_t pid = 0;
  uint32_t cid = 0;
  std::string socket;
  std::string address;  ///< For the log.

  std::string ToString() const;
};

/// A tenant that a guest turned out to be.
struct Tenant {
  std::string name;
  uint32_t max_sessions = 0;
  SessionLimits limits;
  TenantShare share;
};

/// Threading: none; belongs to hawserd's one thread.
class TenantTable {
 public:
  explicit TenantTable(const Config& config);

  /// kRefused with words for the guest when it may not come in. A token that is given must be right,
  /// whatever else is known. Comparing takes the same time for every token of the same length.
  wire::Result<Tenant> Identify(const PeerIdentity& peer, std::string_view token) const;

  /// What the configuration gives somebody of this name, listed or not.
  Tenant Named(const std::string& name) const;
  bool Lists(const std::string& name) const { return Find(name) != nullptr; }
  /// In the order of the configuration.
  std::vector<std::string> Names() const;

 private:
  const TenantConfig* Find(const std::string& name) const;
  Tenant Make(const TenantConfig& tenant) const;
  Tenant Unlisted(std::string name) const;

  std::vector<TenantConfig> tenants_;
  uint32_t max_sessions_per_tenant_;
  SessionLimits limits_;
  bool require_token_;
  bool require_tenant_;
  bool allow_unauthenticated_remote_;
};

/// True when equal; time depends on the length of `given` only.
bool EqualInConstantTime(std::string_view given, std::string_view secret);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TENANTS_H_
