// SPDX-License-Identifier: Apache-2.0
// hawserd's schedulers: one GrantScheduler for each device, so that who uses one waits for nobody on another. Each has
// a thread and an instance of the policy of its own; weights, shares and the policy itself are the same everywhere.
//
// Who uses which device is said by workers (GrantSlot::key), because hawserd calls no device's driver: whoever says the
// same key shares. A session is known to a device's scheduler from when its worker first uses that device, so on others
// it is nobody's company.
//
// Trust: a worker that its guest took over may say any key. With one that nobody else says it waits for nobody; but it
// need not ask at all to have that. What it costs hawserd is bounded: kMostDevices slots for each worker, as many rings
// of its asking bell, and as many schedulers in all. When each of these has somebody, further devices share one; those
// were as well off when all did. A scheduler that nobody uses any more is there for the next key.
//
// Threading: hawserd's event loop.
#ifndef HAWSER_SERVER_GRANTS_DEVICE_SCHEDULERS_H_
#define HAWSER_SERVER_GRANTS_DEVICE_SCHEDULERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/device_key.h"
#include "server/grants/grant_scheduler.h"
#include "server/grants/grant_share.h"
#include "server/scheduler_control.h"
#include "server/scheduler_settings.h"
#include "wire/socket.h"

namespace hawser::server {

class DeviceSchedulers final : public SchedulerControl {
 public:
  /// kInvalid when there is no such policy, or it cannot be loaded. Begins with one scheduler, for the first device.
  static wire::Result<std::unique_ptr<DeviceSchedulers>> Start(const SchedulerSettings& settings);
  ~DeviceSchedulers() override;

  std::string Policy() const override { return devices_.front().scheduler->Policy(); }
  std::vector<std::string> Policies() const override;
  /// For all devices, or for none.
  wire::Status SetPolicy(const std::string& name) override;
  /// Of all devices together. A policy that was ejected on one is on none any more.
  Ejections EjectedPolicies() const override;
  std::optional<SystemUse> System() const override;

  void SetShare(const std::string& tenant, const TenantShare& share) override;
  wire::Result<GrantDescriptors> Prepare(uint64_t session) override;
  void SessionStarted(uint64_t session, const std::string& tenant) override;
  void SessionEnded(uint64_t session) override;
  std::vector<Use> SessionUse(uint64_t session) const override;
  void RecordGrants(bool on) override;
  SessionGrants TakeGrants() override;
  /// Also readable when a worker uses a device for the first time; TakeNotices() sees to that.
  int notices_fd() const override { return news_.get(); }
  std::vector<SchedulerNotice> TakeNotices() override;

  /// For tests: schedulers that there are.
  size_t devices() const { return devices_.size(); }

 private:
  /// What the operator gives to tenants without sessions is remembered of so many.
  static constexpr size_t kMostTenants = 1024;

  struct Device {
    std::unique_ptr<GrantScheduler> scheduler;
    std::string key;         ///< That it was last for; empty: none yet.
    uint32_t keys = 0;       ///< In use: places_ that lead here.
    uint64_t ejections = 0;  ///< That are known.
  };
  /// Where those who say this key go, as long as there are some.
  struct Place {
    size_t device = 0;
    uint32_t seats = 0;
  };
  struct Session {
    GrantShare share;
    wire::Fd bell, ask;
    uint32_t asks = 0;                    ///< Rings heard.
    std::optional<std::string> tenant;    ///< Once it has started.
    std::map<size_t, std::string> seats;  ///< Key by slot.
  };
  struct Tenant {
    TenantShare share;
    uint32_t sessions = 0;
  };

  DeviceSchedulers() = default;
  static uint64_t NumberOf(uint64_t session, size_t slot) { return session * kMostDevices + slot; }
  wire::Status Open(const SchedulerSettings& settings);
  wire::Status AddDevice();
  /// Listens to an asking bell once more; an honest worker rings once for each slot.
  void OnAsk(uint64_t id);
  /// Takes the slots for which the worker has asked to their devices.
  void SeatAll(uint64_t id, Session& session);
  wire::Status SeatOne(uint64_t id, Session& session, size_t slot, const std::string& key);
  Place& PlaceOf(const std::string& key);
  size_t ChooseDevice(const std::string& key);
  void LeavePlace(const std::string& key);
  /// A policy that was ejected anywhere is a bad one everywhere.
  void FollowEjections();
  void Say(SchedulerNotice::Kind kind, std::string text, std::vector<uint64_t> sessions = {});

  SchedulerSettings settings_;  ///< With the policy that a further device begins with.
  bool records_ = false;
  wire::Fd news_;  ///< An epoll: all devices' notices, and all workers' asking bells.
  std::vector<SchedulerNotice> said_;
  std::map<std::string, Tenant> tenants_;
  std::map<uint64_t, Session> sessions_;
  std::map<std::string, Place> places_;
  std::vector<Device> devices_;  ///< Last: they use the sessions' slots.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_DEVICE_SCHEDULERS_H_
