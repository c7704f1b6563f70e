// SPDX-License-Identifier: Apache-2.0
// What hawserd tells its scheduler, of all devices, and asks it. A server without a scheduler has NoScheduler.
#ifndef HAWSER_SERVER_SCHEDULER_CONTROL_H_
#define HAWSER_SERVER_SCHEDULER_CONTROL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/tenant_share.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// What a worker gets to share with the schedulers; invalid where there are none.
struct GrantDescriptors {
  wire::Fd page;  ///< Of a GrantShare.
  wire::Fd bell;  ///< An eventfd: look at the pages.
  wire::Fd ask;   ///< An eventfd: a device is used for the first time.
};

/// Something that the scheduler's thread found out.
struct SchedulerNotice {
  enum class Kind : uint8_t { kLog, kWarning, kRunaway, kLost };
  Kind kind = Kind::kLog;
  std::string text;
  std::vector<uint64_t> sessions;  ///< kRunaway: who keeps the device. kLost: who cannot be given one.
};

/// That a session might use a device.
struct SessionGrant {
  uint64_t session = 0;
  std::string device;     ///< server/device_key.h.
  uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC.
  uint64_t end_ns = 0;    ///< 0: it goes on; it is told once more when it has ended.
  bool open = false;      ///< Its tenant was alone.
};
struct SessionGrants {
  std::vector<SessionGrant> grants;
  uint64_t lost = 0;
};

/// Device time that no tenant is charged with, although somebody had work, nanoseconds. See
/// scheduler/core/system_account.h.
struct SystemUse {
  uint64_t gap_ns = 0;     ///< The device changed hands.
  uint64_t switches = 0;   ///< So often.
  uint64_t waited_ns = 0;  ///< It was kept idle on purpose: whom the policy prefers was about to come, or to go on.
};

/// A policy that broke a rule, and that `fair` took the place of.
struct Ejection {
  std::string policy;
  std::string reason;
  uint64_t unix_ns = 0;  ///< Since 1970 (UTC).
  std::string dump;      ///< JSON: the policy's state and the tenants' as they were.
};
struct Ejections {
  uint64_t count = 0;  ///< Since the server began.
  std::optional<Ejection> last;
};

/// Threading: all from hawserd's event loop; nothing here may wait.
class SchedulerControl {
 public:
  /// Device time of one session on one device, nanoseconds.
  struct Use {
    std::string device;        ///< server/device_key.h.
    uint64_t used_ns = 0;      ///< Since the session began, as far as it was measured.
    uint64_t pending_ns = 0;   ///< Estimated length of what waits to be submitted.
    uint64_t inflight_ns = 0;  ///< Estimated length of what the device has.
    bool measured = true;      ///< Now; false while its tenant is alone there.
  };
  virtual ~SchedulerControl() = default;

  virtual std::string Policy() const = 0;
  virtual std::vector<std::string> Policies() const = 0;
  /// kInvalid when there is no such policy; kRefused when this server has no scheduler.
  virtual wire::Status SetPolicy(const std::string& name) = 0;
  virtual Ejections EjectedPolicies() const { return {}; }
  /// nullopt: nothing is shared out.
  virtual std::optional<SystemUse> System() const { return std::nullopt; }

  /// What the operator gives a tenant: when it appears, and when it changes.
  virtual void SetShare(const std::string& tenant, const TenantShare& share) = 0;
  /// What the worker of a session that is about to start gets. SessionEnded() must follow.
  virtual wire::Result<GrantDescriptors> Prepare(uint64_t session) = 0;
  virtual void SessionStarted(uint64_t session, const std::string& tenant) = 0;
  /// Its worker is gone, and nothing of it is on a device any more; or it was never started.
  virtual void SessionEnded(uint64_t session) = 0;
  /// One for each device that the session has used; empty: nothing is known.
  virtual std::vector<Use> SessionUse(uint64_t session) const = 0;

  /// From now on, or no more, TakeGrants() has what ended since its last call, and what goes on and was not told since
  /// this call.
  virtual void RecordGrants(bool on) { (void)on; }
  virtual SessionGrants TakeGrants() { return {}; }

  /// Readable when there are notices; -1: there never are.
  virtual int notices_fd() const = 0;
  virtual std::vector<SchedulerNotice> TakeNotices() = 0;
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
  wire::Result<GrantDescriptors> Prepare(uint64_t) override { return GrantDescriptors{}; }
  void SessionStarted(uint64_t, const std::string&) override {}
  void SessionEnded(uint64_t) override {}
  std::vector<Use> SessionUse(uint64_t) const override { return {}; }
  int notices_fd() const override { return -1; }
  std::vector<SchedulerNotice> TakeNotices() override { return {}; }
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SCHEDULER_CONTROL_H_
