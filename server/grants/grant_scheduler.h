// SPDX-License-Identifier: Apache-2.0
// The scheduler of one device: an ArbiterThread over the slots of all workers that use it, with the tenants' weights.
// DeviceSchedulers has one for each device.
//
// Threads: the event loop calls everything that is public; the arbiter's thread calls OnEvent(), which only puts a
// notice into the queue, keeps the latest ejection, and makes notices_fd() readable. Lock order: the arbiter's lock and
// events_mutex_ are leaves.
#ifndef HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_
#define HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler/grant/arbiter.h"
#include "server/grants/doorbells.h"
#include "server/grants/grant_share.h"
#include "server/scheduler_control.h"
#include "server/scheduler_settings.h"

namespace hawser::server {

class GrantScheduler {
 public:
  /// Who comes. `number` is the caller's, never used twice.
  struct Seat {
    uint64_t number = 0;
    uint64_t session = 0;
    std::string tenant;
    std::string device;  ///< As its worker calls it.
  };

  /// kInvalid when there is no such policy, or it cannot be loaded.
  static wire::Result<std::unique_ptr<GrantScheduler>> Start(const SchedulerSettings& settings);
  ~GrantScheduler();
  GrantScheduler(const GrantScheduler&) = delete;
  GrantScheduler& operator=(const GrantScheduler&) = delete;

  // As SchedulerControl's.
  std::string Policy() const;
  wire::Status SetPolicy(const std::string& name);
  Ejections EjectedPolicies() const;
  SystemUse System() const;
  void SetShare(const std::string& tenant, const TenantShare& share);
  void RecordGrants(bool on);
  SessionGrants TakeGrants();
  int notices_fd() const { return notices_.get(); }
  std::vector<SchedulerNotice> TakeNotices();

  /// A worker uses the device from now on. `slot` is borrowed until Leave(); `bell` is what the worker rings.
  wire::Status Join(const Seat& seat, GrantSlot& slot, int bell);
  void Leave(uint64_t number);
  /// What a slot says. But for `device`.
  static SchedulerControl::Use UseOf(const GrantSlot& slot);

 private:
  /// What the operator gives to tenants without sessions is remembered of so many.
  static constexpr size_t kMostTenants = 1024;

  struct Member {
    TenantShare share;
    scheduler::TenantId id = 0;  ///< 0: never known to the arbiter, which forgets who has no sessions for a while.
    uint32_t sessions = 0;
  };
  struct Worker {
    explicit Worker(GrantSlot& slot) : submit(slot.submit), alarm(slot.alarm) {}
    FutexBell submit, alarm;
    scheduler::DoorId door = 0;
    std::string tenant;
  };
  struct Who {
    uint64_t session = 0;
    std::string device;
  };

  GrantScheduler() = default;
  wire::Status Open(const SchedulerSettings& settings);
  wire::Result<scheduler::PolicyLibrary> FindPolicy(const std::string& name) const;
  void OnEvent(const scheduler::PolicyEvent& event);
  static scheduler::TenantConfig ConfigOf(const std::string& name, const TenantShare& share);
  void ForgetSome();
  void ForgetEnded();

  bool records_ = false;
  bool isolated_ = false;
  std::string policy_host_;
  Doorbells bells_;
  wire::Fd notices_;
  mutable std::mutex events_mutex_;
  std::vector<scheduler::PolicyEvent> events_;
  Ejections ejections_;  ///< With events_mutex_.
  std::map<std::string, Member> tenants_;
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;  ///< By the seat's number.
  std::map<scheduler::DoorId, Who> sessions_;            ///< Also of those that have ended since the last TakeGrants().
  std::vector<scheduler::DoorId> ended_;                 ///< Of sessions_.
  std::unique_ptr<scheduler::ArbiterThread> arbiter_;    ///< Last: its thread uses what is above.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_
