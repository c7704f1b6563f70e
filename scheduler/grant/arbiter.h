// SPDX-License-Identifier: Apache-2.0
// Runs a Scheduler over the pages of the workers of one device.
//
// BasicArbiter looks at pages and acts when it is told to; it has no thread and no clock. ArbiterThread gives it both.
#ifndef HAWSER_SCHEDULER_GRANT_ARBITER_H_
#define HAWSER_SCHEDULER_GRANT_ARBITER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/core/scheduler.h"
#include "scheduler/grant/bell.h"
#include "scheduler/grant/door.h"
#include "scheduler/grant/page.h"

namespace hawser::scheduler {

/// One thread.
template <template <typename> class Atomic>
class BasicArbiter : private GrantSink {
 public:
  BasicArbiter(SchedulerOptions options, EventFunction events)
      : scheduler_(std::move(options), *this, std::move(events)) {}

  Scheduler& scheduler() { return scheduler_; }

  /// A worker comes. `page` is fresh, and stays until Detach(), as does `worker`, its bell.
  TenantId Attach(TenantConfig config, BasicGrantPage<Atomic>& page, Bell& worker, uint64_t now_ns) {
    const TenantId id = scheduler_.Add(std::move(config), now_ns);
    doors_.emplace(id, Seen{BasicDoor<Atomic>(page, worker)});
    return id;
  }

  /// A worker is gone, by whatever way, and nothing of it is on the device any more.
  void Detach(TenantId id, uint64_t now_ns) {
    const auto found = doors_.find(id);
    if (found == doors_.end()) return;
    scheduler_.Facts(id, found->second.door.Facts(), now_ns);
    doors_.erase(found);
    scheduler_.Remove(id, now_ns);
  }

  /// Looks at all pages, and does what follows. Call it after a ring of the scheduler's bell, and at next_wake_ns().
  void Poll(uint64_t now_ns) {
    for (auto& [id, seen] : doors_) {
      const bool work = seen.door.HasWork();
      scheduler_.Facts(id, seen.door.Facts(), now_ns);
      if (work != seen.work) {
        seen.work = work;
        if (work) {
          scheduler_.Runnable(id, now_ns);
        } else {
          scheduler_.Idle(id, now_ns);
        }
      }
    }
    scheduler_.Advance(now_ns);
    // Who is drained makes room for another, who may be drained at once when it turns out to want nothing any more.
    for (bool again = true; again;) {
      again = false;
      const Tenant* holder = scheduler_.holder();
      if (holder == nullptr) break;
      const auto found = doors_.find(holder->id);
      if (found == doors_.end() || !found->second.door.Drained()) break;
      scheduler_.Facts(holder->id, found->second.door.Facts(), now_ns);
      again = true;
      const TenantId id = holder->id;
      const bool work = found->second.door.HasWork();
      if (work != found->second.work) {
        found->second.work = work;
        if (work) {
          scheduler_.Runnable(id, now_ns);
        } else {
          scheduler_.Idle(id, now_ns);
        }
      }
      scheduler_.Drained(id, now_ns);
    }
  }

  uint64_t next_wake_ns() const { return scheduler_.next_wake_ns(); }

  /// For the model check: a number for all that the next Poll() depends on, beside the pages, times, and what the
  /// policy knows.
  uint64_t Digest() const {
    const Tenant* holder = scheduler_.holder();
    uint64_t digest = holder != nullptr ? holder->id * 2 + (scheduler_.holder_is_open() ? 1 : 0) : 0;
    for (const auto& tenant : scheduler_.tenants().all()) {
      digest = digest * 8 + tenant->state * 2 + (tenant->has_work ? 1 : 0);
      uint64_t earlier = 0;  // How many were served before it.
      for (const auto& other : scheduler_.tenants().all()) earlier += other->last_served_ns < tenant->last_served_ns;
      digest = digest * 4 + earlier;
    }
    for (const auto& [id, seen] : doors_) digest = (digest * 2 + (seen.work ? 1 : 0)) * 4 + seen.door.Digest();
    return digest;
  }

 private:
  struct Seen {
    BasicDoor<Atomic> door;
    bool work = false;
  };

  void Give(TenantId tenant, const Grant& grant) override { doors_.at(tenant).door.Give(grant); }
  void Revoke(TenantId tenant) override { doors_.at(tenant).door.Revoke(); }
  void Stage(TenantId tenant) override { doors_.at(tenant).door.Stage(); }

  std::map<TenantId, Seen> doors_;
  Scheduler scheduler_;
};

/// What an operator sees of a tenant.
struct TenantStatus {
  TenantId id = 0;
  TenantConfig config;
  uint32_t state = 0;  ///< HAWSER_TENANT_*
  bool open = false;
  uint64_t used_ns = 0, window_used_ns = 0, pending_ns = 0, inflight_ns = 0, grants = 0;
};

/// An arbiter with a thread. The thread makes no call to a device, and none that waits for a worker.
///
/// Threading: all functions from any thread. One lock, held while the arbiter works; events are told without it, on the
/// arbiter's thread.
class ArbiterThread {
 public:
  using Clock = std::function<uint64_t()>;  ///< Nanoseconds; never goes back; not 0.

  ArbiterThread(SchedulerOptions options, EventFunction events, Clock clock = MonotonicNs);
  /// Workers must have been detached, or must no longer use their pages.
  ~ArbiterThread();
  ArbiterThread(const ArbiterThread&) = delete;
  ArbiterThread& operator=(const ArbiterThread&) = delete;

  /// First of all; later: another policy.
  wire::Status Use(const PolicyLibrary& library);
  TenantId Attach(TenantConfig config, GrantPage& page, Bell& worker);
  void Detach(TenantId id);
  void Configure(TenantId id, TenantConfig config);
  std::vector<TenantStatus> Tenants();
  std::string PolicyName();
  std::string Dump();

  /// What workers ring.
  Bell& bell() { return bell_; }

  static uint64_t MonotonicNs();

 private:
  void Run();
  void TellEvents();

  const EventFunction events_;
  const Clock clock_;
  std::mutex mutex_;
  std::vector<PolicyEvent> untold_;
  BasicArbiter<std::atomic> arbiter_;
  bool ending_ = false;
  CondvarBell bell_;
  std::thread thread_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_ARBITER_H_
