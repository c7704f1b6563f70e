// SPDX-License-Identifier: Apache-2.0
// hawserd's scheduler: an ArbiterThread over the pages of all workers, with the tenants' weights.
//
// Threads: the event loop calls everything that is public; the arbiter's thread calls OnEvent(), which only puts a
// notice into the queue, keeps the latest ejection, and makes notices_fd() readable. Lock order: the arbiter's lock and
// events_mutex_ are leaves.
//
// All devices of a server are one to the scheduler: who has the grant has it for each of them.
#ifndef HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_
#define HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/grant/arbiter.h"
#include "server/grants/doorbells.h"
#include "server/grants/grant_share.h"
#include "server/scheduler_control.h"
#include "server/scheduler_settings.h"

namespace hawser::server {

class GrantScheduler final : public SchedulerControl {
 public:
  /// kInvalid when there is no such policy, or it cannot be loaded.
  static wire::Result<std::unique_ptr<GrantScheduler>> Start(const SchedulerSettings& settings);
  ~GrantScheduler() override;

  std::string Policy() const override;
  std::vector<std::string> Policies() const override;
  wire::Status SetPolicy(const std::string& name) override;
  Ejections EjectedPolicies() const override;
  std::optional<SystemUse> System() const override;

  void SetShare(const std::string& tenant, const TenantShare& share) override;
  wire::Result<GrantDescriptors> Prepare(uint64_t session) override;
  void SessionStarted(uint64_t session, const std::string& tenant) override;
  void SessionEnded(uint64_t session) override;
  std::optional<Use> SessionUse(uint64_t session) const override;
  void RecordGrants(bool on) override;
  SessionGrants TakeGrants() override;
  int notices_fd() const override { return notices_.get(); }
  std::vector<SchedulerNotice> TakeNotices() override;

 private:
  /// What the operator gives to tenants without sessions is remembered of so many.
  static constexpr size_t kMostTenants = 1024;

  struct Member {
    TenantShare share;
    scheduler::TenantId id = 0;  ///< 0: never known to the arbiter, which forgets who has no sessions for a while.
    uint32_t sessions = 0;
  };
  struct Worker {
    explicit Worker(GrantShare made)
        : share(std::move(made)), submit(share.page()->submit), alarm(share.page()->alarm) {}
    GrantShare share;
    FutexBell submit, alarm;
    scheduler::DoorId door = 0;
    std::string tenant;
  };

  GrantScheduler() = default;
  wire::Status Open(const SchedulerSettings& settings);
  wire::Result<scheduler::PolicyLibrary> FindPolicy(const std::string& name) const;
  void OnEvent(const scheduler::PolicyEvent& event);
  static scheduler::TenantConfig ConfigOf(const std::string& name, const TenantShare& share);
  void ForgetSome();
  void ForgetEnded();

  uint64_t handover_ns_ = 0;
  bool records_ = false;
  bool isolated_ = false;
  std::string policy_host_;
  Doorbells bells_;
  wire::Fd notices_;
  mutable std::mutex events_mutex_;
  std::vector<scheduler::PolicyEvent> events_;
  Ejections ejections_;  ///< With events_mutex_.
  std::map<std::string, Member> tenants_;
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;
  std::map<scheduler::DoorId, uint64_t> sessions_;     ///< Also of those that have ended since the last TakeGrants().
  std::vector<scheduler::DoorId> ended_;               ///< Of sessions_.
  std::unique_ptr<scheduler::ArbiterThread> arbiter_;  ///< Last: its thread uses what is above.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_GRANT_SCHEDULER_H_
