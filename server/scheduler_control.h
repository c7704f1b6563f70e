// SPDX-License-Identifier: Apache-2.0
// What hawserd tells its scheduler and asks it. A server without a scheduler has NoScheduler.
#ifndef HAWSER_SERVER_SCHEDULER_CONTROL_H_
#define HAWSER_SERVER_SCHEDULER_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/tenant_share.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: all from hawserd's event loop; nothing here may wait.
class SchedulerControl {
 public:
  /// Device time of one session, nanoseconds.
  struct Use {
    uint64_t used_ns = 0;      ///< Since the session began.
    uint64_t pending_ns = 0;   ///< Estimated length of what waits to be submitted.
    uint64_t inflight_ns = 0;  ///< Estimated length of what the device has.
  };
  virtual ~SchedulerControl() = default;

  virtual std::string Policy() const = 0;
  virtual std::vector<std::string> Policies() const = 0;
  /// kInvalid when there is no such policy; kRefused when this server has no scheduler.
  virtual wire::Status SetPolicy(const std::string& name) = 0;

  /// What the operator gives a tenant: when it appears, and when it changes.
  virtual void SetShare(const std::string& tenant, const TenantShare& share) = 0;
  virtual void SessionStarted(uint64_t session, const std::string& tenant) = 0;
  virtual void SessionEnded(uint64_t session) = 0;
  /// nullopt: not measured.
  virtual std::optional<Use> SessionUse(uint64_t session) const = 0;
};

/// Devices run what comes in the order in which it comes.
class NoScheduler final : public SchedulerControl {
 public:
  std::string Policy() const override { return "none"; }
  std::vector<std::string> Policies() const override { return {"none"}; }
  wire::Status SetPolicy(const std::string& name) override {
    if (name == "none") return {};
    return wire::Status(wire::Code::kRefused,
                        "this server has no scheduler, so there is no policy '" + name + "' to set");
  }
  void SetShare(const std::string&, const TenantShare&) override {}
  void SessionStarted(uint64_t, const std::string&) override {}
  void SessionEnded(uint64_t) override {}
  std::optional<Use> SessionUse(uint64_t) const override { return std::nullopt; }
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SCHEDULER_CONTROL_H_
