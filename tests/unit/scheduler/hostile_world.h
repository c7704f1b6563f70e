// SPDX-License-Identifier: Apache-2.0
// A device, an arbiter, workers that keep to the protocol, and one whose page says whatever somebody wants. In virtual
// time, without threads.
#ifndef HAWSER_TESTS_UNIT_SCHEDULER_HOSTILE_WORLD_H_
#define HAWSER_TESTS_UNIT_SCHEDULER_HOSTILE_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/gate.h"

namespace hawser::scheduler::hostile {

inline constexpr uint64_t kMs = 1'000'000;
inline constexpr uint64_t kStepNs = 100'000;
inline constexpr uint64_t kPieceNs = 500'000;
inline constexpr uint64_t kMaxUnitNs = 20 * kMs;

class SilentBell : public Bell {
 public:
  void Ring() override {
    if (on_ring) on_ring();
  }
  uint64_t Ticket() override { return 0; }
  void Wait(uint64_t, std::chrono::nanoseconds) override {}
  std::function<void()> on_ring;
};

/// Always has a piece to run.
class Honest {
 public:
  explicit Honest(Bell& scheduler) : gate_(page, scheduler, bell) {}

  /// `device_is_free`: what it has on the device goes on.
  void Step(uint64_t now_ns, bool device_is_free) {
    if (left_ns_ != 0) {
      if (!device_is_free) return;
      left_ns_ -= std::min(left_ns_, kStepNs);
      if (left_ns_ != 0) return;
      gate_.Announce(kPieceNs, {});
      gate_.Leave(kPieceNs, kPieceNs);
      served_ns += kPieceNs;
      served_at_ns = now_ns;
    }
    if (gate_.EnterNow(kPieceNs)) {
      left_ns_ = kPieceNs;
    } else {
      gate_.Announce(kPieceNs, {});
    }
  }

  GrantPage page;
  SilentBell bell;
  uint64_t served_ns = 0, served_at_ns = 0;

 private:
  Gate gate_;
  uint64_t left_ns_ = 0;  ///< Of what it has on the device.
};

/// One liar, whose page `lie` writes before each look of the scheduler, and honest ones. A worker that is told to be a
/// runaway is ended, as hawserd does it; another one of the same tenant comes in its place.
class World {
 public:
  explicit World(const std::string& policy, size_t honest = 1, uint64_t max_unit_ns = kMaxUnitNs)
      : arbiter_(Options(max_unit_ns), [this](const PolicyEvent& event) { OnEvent(event); }) {
    ok = arbiter_.scheduler().Use(PolicyLibrary::Find(policy).value(), now_ns).ok();
    liars_ = arbiter_.AddTenant({"liar"}, now_ns);
    NewLiar();
    for (size_t i = 0; i < honest; ++i) {
      workers.push_back(std::make_unique<Honest>(scheduler_));
      ids_.push_back(arbiter_.AddTenant({std::string("honest").append(std::to_string(i))}, now_ns));
      doors_.push_back(arbiter_.Attach(ids_.back(), workers.back()->page, workers.back()->bell));
      workers.back()->served_at_ns = now_ns;
    }
  }

  static SchedulerOptions Options(uint64_t max_unit_ns) {
    SchedulerOptions options;
    options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
    options.max_unit_ns = max_unit_ns;
    // A policy that waits for who may come back at once waits also for who does so on purpose. That is the policy's.
    options.policy.settings["anticipation_us"] = std::string("0");  // Not "0": g++ bug 105651.
    return options;
  }

  void Step() {
    now_ns += kStepNs;
    if (lie) lie();
    for (auto& worker : workers) {
      worker->Step(now_ns, !device_is_kept);
      longest_wait_ns = std::max(longest_wait_ns, now_ns - worker->served_at_ns);
    }
    arbiter_.Poll(now_ns);
    if (ended_) {
      ended_ = false;
      arbiter_.Detach(liar_door);
      NewLiar();
    }
  }
  void RunFor(uint64_t ns) {
    for (const uint64_t end = now_ns + ns; now_ns < end;) Step();
  }

  GateMode mode() const { return ModeOf(page->word); }
  bool MaySubmit() const { return mode() == GateMode::kOpen || mode() == GateMode::kSlice; }

  /// Something of the books that cannot be; empty: nothing.
  std::string Wrong() {
    const uint64_t passed = now_ns - begin_ns;
    uint64_t all = 0;
    for (const auto& tenant : arbiter_.scheduler().tenants().all()) {
      const std::string& name = tenant->config.name;
      // A piece that leaves early is charged before it ends.
      const uint64_t most = 2 * passed + UsedTime::kAheadNs + UsedTime::kMostTailNs;
      if (tenant->facts.used_ns > most) return name + " used more time than passed";
      if (tenant->charged_ns > tenant->facts.used_ns) return name + " was charged more than it used";
      if (tenant->longest_charge_ns > most) return name + " had a grant longer than the time that passed";
      if (tenant->facts.pending_ns > uint64_t{1} << 60) return name + " has sums that wrap";
      all += tenant->facts.used_ns;
    }
    if (all > 4 * passed + 3 * (UsedTime::kAheadNs + UsedTime::kMostTailNs)) return "all used more time than passed";
    const SystemTime& system = arbiter_.scheduler().system();
    if (system.gap_ns + system.lingered_ns + system.waited_ns > passed) return "more time was lost than passed";
    return "";
  }

  bool ok = false;
  uint64_t now_ns = 1'000'000'000;
  const uint64_t begin_ns = now_ns;
  GrantPage* page = nullptr;  ///< The liar's.
  SilentBell* bell = nullptr;
  DoorId liar_door = 0;
  std::function<void()> lie;
  bool device_is_kept = false;  ///< By the liar: nothing of the others goes on.
  std::vector<std::unique_ptr<Honest>> workers;
  uint64_t longest_wait_ns = 0;
  int runaways = 0;        ///< The liar, and rightly so.
  int wrongly_blamed = 0;  ///< Others.
  std::vector<std::string> ejected;

  /// Another worker of the liar's tenant takes the place of the one that is gone.
  void Rejoin() { NewLiar(); }

  BasicArbiter<std::atomic>& arbiter() { return arbiter_; }
  TenantId liars() const { return liars_; }

 private:
  void NewLiar() {
    pages_.push_back(std::make_unique<GrantPage>());
    bells_.push_back(std::make_unique<SilentBell>());
    page = pages_.back().get();
    bell = bells_.back().get();
    liar_door = arbiter_.Attach(liars_, *page, *bell, bell);
  }
  void OnEvent(const PolicyEvent& event) {
    if (event.kind == PolicyEvent::Kind::kEjected) ejected.push_back(event.text);
    if (event.kind != PolicyEvent::Kind::kRunaway) return;
    for (const DoorId door : event.doors) {
      if (door == liar_door) {
        ++runaways;
        ended_ = true;
      } else {
        ++wrongly_blamed;
      }
    }
  }

  SilentBell scheduler_;
  BasicArbiter<std::atomic> arbiter_;
  TenantId liars_ = 0;
  std::vector<TenantId> ids_;
  std::vector<DoorId> doors_;
  std::vector<std::unique_ptr<GrantPage>> pages_;
  std::vector<std::unique_ptr<SilentBell>> bells_;
  bool ended_ = false;
};

}  // namespace hawser::scheduler::hostile

#endif  // HAWSER_TESTS_UNIT_SCHEDULER_HOSTILE_WORLD_H_
