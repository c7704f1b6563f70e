// SPDX-License-Identifier: Apache-2.0
// How many sessions there are, in all and of each tenant.
#ifndef HAWSER_SERVER_ADMISSION_H_
#define HAWSER_SERVER_ADMISSION_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/tenants.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: none; belongs to hawserd's one thread.
class Admission {
 public:
  explicit Admission(uint32_t max_sessions) : max_sessions_(max_sessions) {}

  void SetMaxSessions(uint32_t max_sessions) { max_sessions_ = max_sessions; }

  /// Counts one more session of this tenant, or kRefused with words for the guest.
  wire::Status Enter(const Tenant& tenant) {
    if (sessions_ >= max_sessions_) {
      return wire::Status(wire::Code::kRefused,
                          "the server has its " + std::to_string(max_sessions_) + " sessions already; try again later");
    }
    const auto at = by_tenant_.find(tenant.name);
    if (tenant.max_sessions == 0) {
      return wire::Status(wire::Code::kRefused,
                          "tenant '" + tenant.name + "' may have no sessions at present; ask the server's operator");
    }
    if (at != by_tenant_.end() && at->second >= tenant.max_sessions) {
      return wire::Status(wire::Code::kRefused, "tenant '" + tenant.name + "' has its " +
                                                    std::to_string(tenant.max_sessions) +
                                                    " sessions already; end one or try again later");
    }
    ++sessions_;
    ++by_tenant_[tenant.name];
    return {};
  }
  void Leave(const std::string& tenant) {
    const auto at = by_tenant_.find(tenant);
    if (at == by_tenant_.end()) return;
    --sessions_;
    if (--at->second == 0) by_tenant_.erase(at);
  }
  uint32_t sessions() const { return sessions_; }

 private:
  uint32_t max_sessions_;
  uint32_t sessions_ = 0;
  std::map<std::string, uint32_t> by_tenant_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_ADMISSION_H_
