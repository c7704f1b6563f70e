// SPDX-License-Identifier: Apache-2.0
// Runs a Scheduler over the pages of the workers of one device.
//
// A tenant has a door for each of its workers. A grant goes to all of them at once: how they share it is the device's
// affair, as it is for programs of one user on a machine of their own. A slice is divided among the workers that have
// work when it begins; it ends when one has used its part and no other with work has some left.
//
// BasicArbiter looks at pages and acts when it is told to; it has no thread and no clock. ArbiterThread gives it both.
#ifndef HAWSER_SCHEDULER_GRANT_ARBITER_H_
#define HAWSER_SCHEDULER_GRANT_ARBITER_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
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
#include "scheduler/grant/grant_recorder.h"
#include "scheduler/grant/page.h"

namespace hawser::scheduler {

/// A worker's place at the arbiter. Never used twice; 0 is none.
using DoorId = uint64_t;

/// Hears of the grants of doors. Called from within; must not call back.
class GrantObserver {
 public:
  virtual ~GrantObserver() = default;
  virtual void OnGiven(DoorId door, bool open) = 0;
  /// Its grant, if it has one, is over; `gone`: and the door with it.
  virtual void OnEnded(DoorId door, bool gone) = 0;
};

/// One thread.
template <template <typename> class Atomic>
class BasicArbiter : private GrantSink {
 public:
  /// `observer` may be null; it is borrowed.
  BasicArbiter(SchedulerOptions options, EventFunction events, GrantObserver* observer = nullptr)
      : observer_(observer), scheduler_(std::move(options), *this, WithDoors(std::move(events))) {}

  Scheduler& scheduler() { return scheduler_; }

  TenantId AddTenant(TenantConfig config, uint64_t now_ns) {
    const TenantId id = scheduler_.Add(std::move(config), now_ns);
    members_[id];
    return id;
  }

  /// Its doors go with it.
  void RemoveTenant(TenantId id, uint64_t now_ns) {
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    scheduler_.Facts(id, FactsOf(found->second), now_ns);
    for (const Seat& seat : found->second.doors) TellEnded(seat, true);
    members_.erase(found);
    scheduler_.Remove(id, now_ns);
  }

  /// It has no workers now. If none comes, it is removed in a Poll() some seconds later: until then its account stays,
  /// so that leaving and coming back at once gains nothing.
  void Retire(TenantId id, uint64_t now_ns) {
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    found->second.leaves_at_ns = now_ns + std::max(kStayNs, scheduler_.DebtNs(id));
  }

  /// A worker of this tenant comes. `page` is fresh, and stays until Detach(), as do its bells and `company`, which may
  /// be null: how many tenants have had work lately, this one among them. 0: no such tenant.
  DoorId Attach(TenantId tenant, BasicGrantPage<Atomic>& page, Bell& worker, Bell* alarm = nullptr,
                std::atomic<uint32_t>* company = nullptr) {
    const auto found = members_.find(tenant);
    if (found == members_.end()) return 0;
    Member& member = found->second;
    member.leaves_at_ns = 0;
    member.doors.push_back({++last_door_, BasicDoor<Atomic>(page, worker, alarm), company});
    const Tenant* holder = scheduler_.holder();
    // Whoever is alone is so with all its workers, until it was asked for the device: that is not asked again.
    if (holder != nullptr && holder->id == tenant && holder->state == HAWSER_TENANT_GRANTED && member.open) {
      GiveTo(member.doors.back(), member.grant);
    }
    return last_door_;
  }

  /// A worker is gone, by whatever way, and nothing of it is on the device any more.
  void Detach(DoorId id) {
    for (auto& [tenant, member] : members_) {
      for (auto at = member.doors.begin(); at != member.doors.end(); ++at) {
        if (at->id != id) continue;
        member.departed_used_ns += UsedBy(*at);
        TellEnded(*at, true);
        member.doors.erase(at);
        return;
      }
    }
  }

  /// Looks at all pages, and does what follows. Call it after a ring of the scheduler's bell, and at next_wake_ns().
  void Poll(uint64_t now_ns) {
    polled_at_ns_ = now_ns;
    // All before anything follows from it. Whoever is asked for an open grant may give it back at once; and because
    // nobody is told of launches under that, it would seem to have had no work for as long.
    for (auto& [id, member] : members_) Look(member, now_ns);
    for (auto& [id, member] : members_) Tell(id, member, now_ns);
    scheduler_.Advance(now_ns);
    // Who is drained makes room for another, who may be drained at once when it turns out to want nothing any more.
    // Each once or twice; a worker that goes on saying that its slice is used, and that it wants another, waits.
    size_t most = 2 * members_.size() + 2;
    hurries_ = false;
    while (const Tenant* holder = scheduler_.holder()) {
      const TenantId id = holder->id;
      const auto found = members_.find(id);
      if (found == members_.end() || !Drained(id, found->second)) break;
      Look(found->second, now_ns);
      Tell(id, found->second, now_ns);
      scheduler_.Drained(id, now_ns);
      if (--most == 0) {
        hurries_ = true;
        break;
      }
    }
    Leave(now_ns);
    TellCompany(now_ns);
  }

  uint64_t next_wake_ns() const { return hurries_ ? polled_at_ns_ : scheduler_.next_wake_ns(); }

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
    for (const auto& [id, member] : members_) {
      digest = digest * 2 + (member.work ? 1 : 0);
      for (const Seat& seat : member.doors) digest = digest * 4 + seat.door.Digest();
    }
    return digest;
  }

 private:
  static constexpr uint64_t kStayNs = 5'000'000'000;
  /// Of what a worker says that it used, more than what passed since it came.
  static constexpr uint64_t kAheadNs = 1'000'000'000;
  /// For so long whoever had work is company.
  static constexpr uint64_t kLatelyNs = 1'000'000'000;

  struct Seat {
    DoorId id = 0;
    BasicDoor<Atomic> door;
    std::atomic<uint32_t>* company = nullptr;
    uint64_t since_ns = 0;  ///< When it was first looked at; 0: it was not.
    uint64_t used_ns = 0;   ///< As far as possible; never falls.
    bool work = false;      ///< As it was looked at last.
    bool busy = false;      ///< Likewise: something of it was on the device, or may have been.
  };
  struct Member {
    std::list<Seat> doors;
    bool work = false;
    bool open = false;  ///< Its latest grant is.
    Grant grant;
    uint64_t departed_used_ns = 0;  ///< Of workers that are gone.
    uint64_t worked_at_ns = 0;      ///< When it was last seen to have work; 0: never.
    uint64_t leaves_at_ns = 0;      ///< 0: it stays.
  };

  void Look(Member& member, uint64_t now_ns) {
    for (Seat& seat : member.doors) {
      if (seat.since_ns == 0) seat.since_ns = now_ns;
      seat.work = seat.door.HasWork();
      seat.busy = seat.door.IsActive() || seat.door.HasTail();
      if (seat.work) member.worked_at_ns = now_ns;
    }
  }

  /// Tells the scheduler of what was seen.
  void Tell(TenantId id, Member& member, uint64_t now_ns) {
    const bool work = std::any_of(member.doors.begin(), member.doors.end(), [](const Seat& seat) { return seat.work; });
    scheduler_.Facts(id, FactsOf(member), now_ns);
    if (work == member.work) return;
    member.work = work;
    if (work) {
      scheduler_.Runnable(id, now_ns);
    } else {
      scheduler_.Idle(id, now_ns);
    }
  }

  /// What a worker used in all: what it says, but not more than has passed since it came.
  uint64_t UsedBy(Seat& seat) const {
    const uint64_t possible = polled_at_ns_ - std::min(polled_at_ns_, seat.since_ns) + kAheadNs;
    return seat.used_ns = std::max(seat.used_ns, std::min(seat.door.Facts().used_ns, possible));
  }

  WorkerFacts FactsOf(Member& member) const {
    WorkerFacts sum;
    sum.used_ns = member.departed_used_ns;
    const auto earlier = [](uint64_t one, uint64_t other) {
      return one == 0 ? other : other == 0 ? one : std::min(one, other);
    };
    for (Seat& seat : member.doors) {
      const WorkerFacts one = seat.door.Facts();
      sum.used_ns += UsedBy(seat);
      sum.pending_ns += one.pending_ns;
      sum.pending_count += one.pending_count;
      sum.inflight_ns += one.inflight_ns;
      sum.tail_ns += one.tail_ns;
      sum.tail = sum.tail || one.tail;
      sum.oldest_arrival_ns = earlier(sum.oldest_arrival_ns, one.oldest_arrival_ns);
      sum.unit_ns = std::max(sum.unit_ns, one.unit_ns);
      sum.last_unit_ns = std::max(sum.last_unit_ns, one.last_unit_ns);
      sum.mem_resident += one.mem_resident;
      sum.mem_total += one.mem_total;
    }
    return sum;
  }

  /// Whether its grant is over at all doors; then they are closed.
  bool Drained(TenantId id, Member& member) const {
    bool given = false, ended = false, goes_on = false;
    for (Seat& seat : member.doors) {
      if (!seat.door.given()) continue;
      given = true;
      if (seat.door.Ended()) {
        ended = true;
      } else if (seat.door.HasWork()) {
        goes_on = true;
      }
    }
    if (!given) return true;  // Whoever had it is gone.
    if (!ended || goes_on) return false;
    bool active = false;
    for (Seat& seat : member.doors) seat.door.Revoke();
    for (const Seat& seat : member.doors) active = active || (seat.door.given() && seat.door.IsActive());
    // One tail beside the next holder, not two.
    if (active || (HasTail(member) && AnotherHasTail(id))) return false;
    for (Seat& seat : member.doors) {
      if (seat.door.given()) TellEnded(seat, false);
      seat.door.Close();
    }
    return true;
  }

  static bool HasTail(const Member& member) {
    return std::any_of(member.doors.begin(), member.doors.end(), [](const Seat& seat) { return seat.door.HasTail(); });
  }
  bool AnotherHasTail(TenantId id) const {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const auto& entry) { return entry.first != id && HasTail(entry.second); });
  }

  void Give(TenantId tenant, const Grant& grant) override {
    Member& member = members_.at(tenant);
    member.open = grant.kind == Grant::Kind::kOpen;
    member.grant = grant;
    const auto working = static_cast<uint64_t>(
        std::count_if(member.doors.begin(), member.doors.end(), [](const Seat& seat) { return seat.door.HasWork(); }));
    Grant part = grant;
    part.slice_ns = grant.slice_ns / std::max<uint64_t>(1, working);
    for (Seat& seat : member.doors) GiveTo(seat, part);
    if (staged_ == tenant) staged_ = 0;
  }
  void GiveTo(Seat& seat, const Grant& grant) {
    seat.door.Give(grant);
    if (observer_ != nullptr) observer_->OnGiven(seat.id, grant.kind == Grant::Kind::kOpen);
  }
  void TellEnded(const Seat& seat, bool gone) const {
    if (observer_ != nullptr) observer_->OnEnded(seat.id, gone);
  }
  void Revoke(TenantId tenant) override {
    for (Seat& seat : members_.at(tenant).doors) seat.door.Revoke();
  }
  void Stage(TenantId tenant) override {
    if (const auto before = members_.find(staged_); before != members_.end() && staged_ != tenant) {
      for (Seat& seat : before->second.doors) seat.door.SetStaged(false);
    }
    staged_ = tenant;
    for (Seat& seat : members_.at(tenant).doors) seat.door.SetStaged(true);
  }

  /// What a runaway's event lacks: of which workers it is. As they were when it was found out; later a worker could
  /// say anything.
  EventFunction WithDoors(EventFunction events) {
    if (!events) return events;
    return [this, events = std::move(events)](const PolicyEvent& event) {
      if (event.kind != PolicyEvent::Kind::kRunaway) return events(event);
      PolicyEvent with = event;
      with.doors = Keepers(event.tenant);
      events(with);
    };
  }
  std::vector<DoorId> Keepers(TenantId tenant) const {
    std::vector<DoorId> busy, working, all;
    const auto found = members_.find(tenant);
    if (found == members_.end()) return all;
    for (const Seat& seat : found->second.doors) {
      if (seat.busy) busy.push_back(seat.id);
      if (seat.work) working.push_back(seat.id);
      all.push_back(seat.id);
    }
    return !busy.empty() ? busy : !working.empty() ? working : all;
  }

  void Leave(uint64_t now_ns) {
    std::vector<TenantId> leaving;
    for (const auto& [id, member] : members_) {
      if (member.leaves_at_ns != 0 && now_ns >= member.leaves_at_ns && member.doors.empty()) leaving.push_back(id);
    }
    for (const TenantId id : leaving) RemoveTenant(id, now_ns);
  }

  void TellCompany(uint64_t now_ns) {
    const auto lately = [now_ns](const Member& member) {
      return member.worked_at_ns != 0 && now_ns - member.worked_at_ns < kLatelyNs;
    };
    uint32_t busy = 0;
    for (const auto& [id, member] : members_) busy += lately(member) ? 1 : 0;
    for (const auto& [id, member] : members_) {
      const uint32_t company = busy + (lately(member) ? 0 : 1);
      for (const Seat& seat : member.doors) {
        // A line that the worker reads is not written for nothing.
        if (seat.company != nullptr && seat.company->load(std::memory_order_relaxed) != company) {
          seat.company->store(company, std::memory_order_relaxed);
        }
      }
    }
  }

  std::map<TenantId, Member> members_;
  uint64_t polled_at_ns_ = 0;
  bool hurries_ = false;  ///< The last Poll() did not come to its end.
  TenantId staged_ = 0;   ///< Who is likely to be next; 0: nobody.
  DoorId last_door_ = 0;
  GrantObserver* const observer_;
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
class ArbiterThread : private GrantObserver {
 public:
  using Clock = std::function<uint64_t()>;  ///< Nanoseconds; never goes back; not 0.

  /// `bell`: what workers ring, and what the thread waits for; it outlives the arbiter.
  ArbiterThread(SchedulerOptions options, EventFunction events, Bell& bell, Clock clock = MonotonicNs);
  /// Workers must have been detached, or must no longer use their pages.
  ~ArbiterThread() override;
  ArbiterThread(const ArbiterThread&) = delete;
  ArbiterThread& operator=(const ArbiterThread&) = delete;

  /// First of all; later: another policy.
  wire::Status Use(const PolicyLibrary& library);
  TenantId AddTenant(TenantConfig config);
  void RemoveTenant(TenantId id);
  /// As BasicArbiter's.
  void Retire(TenantId id);
  DoorId Attach(TenantId tenant, GrantPage& page, Bell& worker, Bell* alarm = nullptr,
                std::atomic<uint32_t>* company = nullptr);
  void Detach(DoorId id);
  void Configure(TenantId id, TenantConfig config);
  std::vector<TenantStatus> Tenants();
  /// As GrantRecorder's.
  void RecordGrants(bool on);
  GrantRecords TakeGrants();
  std::string PolicyName();
  std::string Dump();
  SystemTime System();

  static uint64_t MonotonicNs();

 private:
  void Run();
  void TellEvents();
  // With mutex_ held.
  void OnGiven(DoorId door, bool open) override { recorder_.Given(door, open, clock_()); }
  void OnEnded(DoorId door, bool gone) override {
    gone ? recorder_.Gone(door, clock_()) : recorder_.Ended(door, clock_());
  }

  const EventFunction events_;
  const Clock clock_;
  std::mutex mutex_;
  std::vector<PolicyEvent> untold_;
  GrantRecorder recorder_;
  BasicArbiter<std::atomic> arbiter_;
  bool ending_ = false;
  Bell& bell_;
  std::thread thread_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_ARBITER_H_
