// SPDX-License-Identifier: Apache-2.0
#include "server/tenants.h"

#include <algorithm>

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

template <typename T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool Matches(const TenantConfig& tenant, const PeerIdentity& peer) {
  switch (peer.kind) {
    case PeerIdentity::Kind::kUnix:
      return Contains(tenant.uids, peer.uid);
    case PeerIdentity::Kind::kVsock:
      return Contains(tenant.cids, peer.cid);
    case PeerIdentity::Kind::kHybridVsock:
      return Contains(tenant.sockets, peer.socket);
    case PeerIdentity::Kind::kLoopback:
    case PeerIdentity::Kind::kRemote:
      return false;
  }
  return false;
}

}  // namespace

bool EqualInConstantTime(std::string_view given, std::string_view secret) {
  // Every byte of `given` is looked at, against some byte of the secret, whatever their lengths.
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

std::string PeerIdentity::ToString() const {
  switch (kind) {
    case Kind::kUnix:
      return "uid " + std::to_string(uid) + " pid " + std::to_string(pid);
    case Kind::kVsock:
      return "vsock cid " + std::to_string(cid);
    case Kind::kHybridVsock:
      return "vsock socket " + socket;
    case Kind::kLoopback:
    case Kind::kRemote:
      return "tcp " + address;
  }
  return "";
}

TenantTable::TenantTable(const Config& config)
    : tenants_(config.tenants),
      max_sessions_per_tenant_(config.max_sessions_per_tenant),
      limits_(config.limits),
      require_token_(config.require_token),
      require_tenant_(config.require_tenant),
      allow_unauthenticated_remote_(config.allow_unauthenticated_remote) {}

Tenant TenantTable::Make(const TenantConfig& tenant) const {
  return {tenant.name, tenant.max_sessions != 0 ? tenant.max_sessions : max_sessions_per_tenant_, tenant.limits,
          tenant.share};
}

Tenant TenantTable::Unlisted(std::string name) const {
  return {std::move(name), max_sessions_per_tenant_, limits_, TenantShare()};
}

const TenantConfig* TenantTable::Find(const std::string& name) const {
  for (const TenantConfig& tenant : tenants_) {
    if (tenant.name == name) return &tenant;
  }
  return nullptr;
}

Tenant TenantTable::Named(const std::string& name) const {
  const TenantConfig* tenant = Find(name);
  return tenant != nullptr ? Make(*tenant) : Unlisted(name);
}

std::vector<std::string> TenantTable::Names() const {
  std::vector<std::string> names;
  for (const TenantConfig& tenant : tenants_) names.push_back(tenant.name);
  return names;
}

Result<Tenant> TenantTable::Identify(const PeerIdentity& peer, std::string_view token) const {
  if (!token.empty()) {
    const TenantConfig* found = nullptr;
    for (const TenantConfig& tenant : tenants_) {
      if (!tenant.token.empty() && EqualInConstantTime(token, tenant.token)) found = &tenant;
    }
    if (found == nullptr) {
      return Status(Code::kRefused, "the token is not one that the server knows; check HAWSER_TOKEN");
    }
    return Make(*found);
  }
  for (const TenantConfig& tenant : tenants_) {
    if (Matches(tenant, peer)) return Make(tenant);
  }
  switch (peer.kind) {
    case PeerIdentity::Kind::kUnix:
      // Who may open the socket file was decided by its mode.
      if (!require_tenant_) return Unlisted("uid-" + std::to_string(peer.uid));
      return Status(Code::kRefused, "no tenant of the server has user id " + std::to_string(peer.uid) +
                                        "; its operator adds it as uid of a [tenants.NAME]");
    case PeerIdentity::Kind::kHybridVsock:
      // The path belongs to one virtual machine, and the operator chose to listen on it.
      return Unlisted("vm-" + peer.socket);
    case PeerIdentity::Kind::kVsock:
      return Status(Code::kRefused, "no tenant of the server has vsock cid " + std::to_string(peer.cid) +
                                        "; its operator adds it as cid of a [tenants.NAME]");
    case PeerIdentity::Kind::kLoopback:
      if (!require_token_) return Unlisted("loopback");
      break;
    case PeerIdentity::Kind::kRemote:
      if (allow_unauthenticated_remote_ && !require_token_) return Unlisted("unauthenticated");
      break;
  }
  return Status(Code::kRefused, "the server wants a token; set HAWSER_TOKEN to the one its operator gave you");
}

}  // namespace hawser::server
