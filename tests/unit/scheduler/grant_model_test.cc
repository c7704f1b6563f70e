// SPDX-License-Identifier: Apache-2.0
// The grant protocol, model-checked: the real Gate, Door, Arbiter and Scheduler, with two workers, in all orders of
// their steps, with one worker killed at every point.
//
// What must hold: never do two workers have something on the device at once, but for a piece that left early, and never
// are there two such beside a third piece; whoever is not killed gets all its work
// done, so nobody waits for a ring that does not come; a killed worker holds nobody up.
#include "tests/unit/scheduler/grant_model.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/gate.h"

namespace hawser::scheduler {
namespace {

using model::current;
using model::ExploreWorld;
using model::kAll;
using model::kPieceNs;
using model::ModelAtomic;
using model::ModelBell;
using model::ModelOptions;
using model::RoundRobin;
using model::RunArbiter;
using model::RunPhantom;
using model::World;

/// The mistake that the order of the two looks is about: first whether it may, then that it does.
class CarelessGate {
 public:
  CarelessGate(BasicGrantPage<ModelAtomic>& page, Bell& scheduler, Bell& own)
      : page_(page), scheduler_(scheduler), own_(own) {}
  bool Enter(uint64_t estimate_ns, const GateDemand&, std::chrono::nanoseconds, std::chrono::nanoseconds) {
    page_.demand.store(1);
    scheduler_.Ring();
    while (true) {
      const uint64_t ticket = own_.Ticket();
      const GateMode mode = ModeOf(page_.word.load());
      if (mode == GateMode::kOpen || mode == GateMode::kSlice) break;
      own_.Wait(ticket, {});
    }
    page_.active.fetch_add(MakePiece(estimate_ns));
    page_.demand.store(0);
    return true;
  }
  uint64_t Digest() const { return 0; }
  void Announce(uint64_t, const GateDemand&) {}
  void Leave(uint64_t estimate_ns, uint64_t) {
    page_.active.fetch_sub(MakePiece(estimate_ns));
    scheduler_.Ring();
  }

 private:
  BasicGrantPage<ModelAtomic>& page_;
  Bell& scheduler_;
  Bell& own_;
};

/// The policy is rr, with one piece for a slice. It remembers whose turn it was, which Digest() says as well.
struct Setting {
  uint64_t alone_after_ns = 0;  ///< 0: whoever is alone now has an open grant.
  std::array<int, 2> launches = {1, 1};
  bool phantom = false;    ///< The second worker is one that does all in one step.
  bool mortal = false;     ///< The first worker may be killed.
  bool early = false;      ///< Pieces leave before they end.
  bool parts = false;      ///< Pieces are sized by the grant that has come.
  bool announced = false;  ///< Another thread of the first worker says what will come.
  bool joined = false;  ///< A second worker of the first one's tenant comes at any time, the first one goes when done.
};

template <typename GateType>
class TwoWorkers : public World {
 public:
  explicit TwoWorkers(const Setting& setting) : setting_(setting), arbiter_(ModelOptions(setting.alone_after_ns), {}) {
    EXPECT_TRUE(arbiter_.scheduler().Use(RoundRobin(), 1).ok());
    for (size_t i = 0; i < 2; ++i) {
      workers_[i] = std::make_unique<Worker>(*this);
      ids_[i] = arbiter_.AddTenant({std::string(i == 0 ? "first" : "second")}, 1);
      doors_[i] = arbiter_.Attach(ids_[i], workers_[i]->page, workers_[i]->bell);
    }
    if (setting_.joined) joining_ = std::make_unique<Worker>(*this);
  }

  std::vector<std::function<void()>> Threads() override {
    if (setting_.joined) {
      return {[this] { Launch(0); },
              [this] {
                Complete(0);
                leaves_.store(1);
                scheduler_bell_.Ring();
              },
              [this] { Phantom(); },
              [this] {
                joins_.store(1);
                scheduler_bell_.Ring();
              },
              [this] { ArbitrateBetweenComersAndGoers(); }};
    }
    if (setting_.announced) {
      return {[this] { Launch(0); }, [this] { Complete(0); }, [this] { Phantom(); }, [this] { Submit(0); },
              [this] { Arbitrate(); }};
    }
    if (setting_.phantom) {
      return {[this] { Launch(0); }, [this] { Complete(0); }, [this] { Phantom(); }, [this] { Arbitrate(); }};
    }
    return {[this] { Launch(0); }, [this] { Complete(0); }, [this] { Launch(1); }, [this] { Complete(1); },
            [this] { Arbitrate(); }};
  }

  std::vector<size_t> Mortal() override { return setting_.mortal ? std::vector<size_t>{0, 1} : std::vector<size_t>{}; }

  std::string Wrong() override {
    const bool first = workers_[0]->on_device.peek() != 0 && !reaped_;
    const bool second = workers_[1]->on_device.peek() != 0;
    if (first && second) return "two workers have the device";
    const bool tails = workers_[0]->ending.peek() != 0 && !reaped_ && workers_[1]->ending.peek() != 0;
    return tails && (first || second) ? "a worker has the device beside two tails" : "";
  }

  std::string WrongAtEnd(const std::vector<bool>& finished) override {
    for (size_t i = 0; i + 1 < finished.size(); ++i) {
      if (!finished[i]) return std::string(i % 2 == 0 ? "launches" : "completions") + " of a worker stand still";
    }
    return "";
  }

 private:
  struct Worker {
    explicit Worker(TwoWorkers& world) : gate(page, world.scheduler_bell_, bell) {}
    BasicGrantPage<ModelAtomic> page;
    ModelBell bell;
    GateType gate;
    ModelAtomic<uint64_t> submitted;  ///< Pieces that were announced, if they are.
    ModelAtomic<uint64_t> on_device;  ///< Pieces.
    ModelAtomic<uint64_t> ending;     ///< Pieces that left early.
  };

  void Submit(size_t i) {
    Worker& worker = *workers_[i];
    for (int n = 0; n < setting_.launches[i]; ++n) {
      current->Forget(static_cast<uint64_t>(n) + 55);
      worker.gate.Announce(kPieceNs, {});
      worker.submitted.fetch_add(1);
    }
  }

  void Launch(size_t i) {
    Worker& worker = *workers_[i];
    for (int n = 0; n < setting_.launches[i]; ++n) {
      if (setting_.announced) {
        current->BlockUntil([&worker, n] { return worker.submitted.peek() > static_cast<uint64_t>(n); });
      }
      worker.bell.ForgetBut([&worker, n] { return worker.gate.Digest() * 16 + static_cast<uint64_t>(n); });
      current->Forget(worker.gate.Digest() * 16 + static_cast<uint64_t>(n) + 8);
      Enter(worker);
      worker.on_device.fetch_add(1);
    }
  }

  void Enter(Worker& worker) {
    if constexpr (std::is_same_v<GateType, BasicGate<ModelAtomic>>) {
      if (setting_.parts) {
        uint64_t estimate = 3 * kPieceNs;
        (void)worker.gate.EnterAs(
            &estimate, [] { return kPieceNs; }, {}, std::chrono::hours(1), std::chrono::nanoseconds(0));
        EXPECT_EQ(estimate, kPieceNs);
        return;
      }
    }
    (void)worker.gate.Enter(kPieceNs, {}, std::chrono::hours(1), std::chrono::nanoseconds(0));
  }

  void Phantom() { RunPhantom(setting_.launches[1], workers_[1]->page, scheduler_bell_, workers_[1]->on_device); }

  void Complete(size_t i) {
    Worker& worker = *workers_[i];
    for (int n = 0; n < setting_.launches[i]; ++n) {
      current->Forget(static_cast<uint64_t>(n) + 77);
      current->BlockUntil([&worker] { return worker.on_device.peek() > 0; });
      if constexpr (std::is_same_v<GateType, BasicGate<ModelAtomic>>) {
        if (setting_.early && worker.gate.Ends()) {
          worker.ending.fetch_add(1);
          worker.on_device.fetch_sub(1, std::memory_order_relaxed);  // In one step: it is one piece.
          worker.gate.LeaveEarly(kPieceNs);
          worker.ending.fetch_sub(1);
          worker.gate.LeaveLate(kPieceNs, kPieceNs);
          continue;
        }
      }
      worker.on_device.fetch_sub(1);
      worker.gate.Leave(kPieceNs, kPieceNs);
    }
  }

  void Arbitrate() { RunArbiter(arbiter_, scheduler_bell_, ids_[0], &reaped_); }

  /// A worker that dies, or has nothing more to do, is detached; its tenant stays.
  void ArbitrateBetweenComersAndGoers() {
    uint64_t now = 1000;
    bool joined = false, left = false;
    while (true) {
      current->Forget(arbiter_.Digest() * 4 + (joined ? 2 : 0) + (left ? 1 : 0));
      (void)scheduler_bell_.Ticket();
      if (!joined && joins_.peek() != 0) {
        joined = true;
        (void)arbiter_.Attach(ids_[0], joining_->page, joining_->bell);
      }
      if (!left && (leaves_.peek() != 0 || current->deaths_now())) {
        left = true;
        reaped_ = current->deaths_now();
        arbiter_.Detach(doors_[0]);
      }
      arbiter_.Poll(now);
      EXPECT_EQ(arbiter_.next_wake_ns(), UINT64_MAX);
      scheduler_bell_.WaitOr([&left] { return current->deaths_now() && !left; });
      now += 1000;
    }
  }

  const Setting setting_;
  ModelBell scheduler_bell_;
  BasicArbiter<ModelAtomic> arbiter_;
  std::array<std::unique_ptr<Worker>, 2> workers_;
  std::array<TenantId, 2> ids_{};
  std::array<DoorId, 2> doors_{};
  std::unique_ptr<Worker> joining_;
  ModelAtomic<uint64_t> joins_, leaves_;
  bool reaped_ = false;
};

template <typename GateType>
std::string Explore(const Setting& setting, size_t* states = nullptr, size_t* deaths = nullptr,
                    size_t preemptions = SIZE_MAX) {
  return ExploreWorld<TwoWorkers<GateType>>(setting, preemptions, states, deaths);
}

using RealGate = BasicGate<ModelAtomic>;

TEST(GrantModel, SlicesInAllOrders) {
  size_t states = 0;
  EXPECT_EQ(Explore<RealGate>({.alone_after_ns = UINT64_MAX, .phantom = true}, &states, nullptr, kAll), "");
  EXPECT_GT(states, 1000u);
}

TEST(GrantModel, OpenGrantsInAllOrders) {
  size_t states = 0;
  EXPECT_EQ(Explore<RealGate>({.alone_after_ns = 0, .phantom = true}, &states, nullptr, kAll), "");
  EXPECT_GT(states, 1000u);
}

TEST(GrantModel, AWorkerMayDieAtAnyPoint) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    size_t deaths = 0;
    EXPECT_EQ(
        Explore<RealGate>({.alone_after_ns = alone_after_ns, .phantom = true, .mortal = true}, nullptr, &deaths, kAll),
        "");
    EXPECT_GT(deaths, 1000u);
  }
}

TEST(GrantModel, PiecesThatLeaveEarlyInAllOrders) {
  size_t deaths = 0;
  EXPECT_EQ(Explore<RealGate>({.alone_after_ns = UINT64_MAX, .phantom = true, .early = true}, nullptr, nullptr, kAll),
            "");
  EXPECT_EQ(Explore<RealGate>({.alone_after_ns = UINT64_MAX, .phantom = true, .mortal = true, .early = true}, nullptr,
                              &deaths, kAll),
            "");
  EXPECT_GT(deaths, 1000u);
  EXPECT_EQ(Explore<RealGate>({.alone_after_ns = UINT64_MAX, .launches = {2, 2}, .early = true}, nullptr, nullptr, 1),
            "");
}

TEST(GrantModel, PartsThatAreSizedByTheirGrantInAllOrders) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    const Setting setting{.alone_after_ns = alone_after_ns, .phantom = true, .early = true, .parts = true};
    EXPECT_EQ(Explore<RealGate>(setting, nullptr, nullptr, kAll), "");
    Setting mortal = setting;
    mortal.mortal = true;
    EXPECT_EQ(Explore<RealGate>(mortal, nullptr, nullptr, 2), "");
    const Setting workers{.alone_after_ns = alone_after_ns, .parts = true};
    EXPECT_EQ(Explore<RealGate>(workers, nullptr, nullptr, 2), "");
  }
}

TEST(GrantModel, WhatAnotherThreadAnnounced) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    EXPECT_EQ(Explore<RealGate>({.alone_after_ns = alone_after_ns, .announced = true}, nullptr, nullptr, kAll), "");
    const Setting several{.alone_after_ns = alone_after_ns, .launches = {2, 2}, .announced = true};
    EXPECT_EQ(Explore<RealGate>(several, nullptr, nullptr, 2), "");
  }
}

// Longer runs have too many orders to look at all; these are those with a few interruptions, at any points.
TEST(GrantModel, SeveralLaunchesWithAFewInterruptions) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    const Setting setting{.alone_after_ns = alone_after_ns, .launches = {2, 2}, .phantom = true};
    EXPECT_EQ(Explore<RealGate>(setting, nullptr, nullptr, 2), "");
  }
}

TEST(GrantModel, TwoRealWorkersWithAFewInterruptions) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    EXPECT_EQ(Explore<RealGate>({.alone_after_ns = alone_after_ns, .launches = {2, 1}}, nullptr, nullptr, 1), "");
    EXPECT_EQ(Explore<RealGate>({.alone_after_ns = alone_after_ns, .mortal = true}, nullptr, nullptr, 1), "");
  }
}

// Of one tenant, with a few interruptions. The one that comes wants nothing, so it says nothing either: also while the
// tenant is drained, and when the first one is gone before the next look.
TEST(GrantModel, AWorkerComesAndAnotherGoes) {
  for (const uint64_t alone_after_ns : {uint64_t{0}, UINT64_MAX}) {
    const Setting setting{.alone_after_ns = alone_after_ns, .phantom = true, .joined = true};
    EXPECT_EQ(Explore<RealGate>(setting, nullptr, nullptr, 2), "");
    const Setting mortal{.alone_after_ns = alone_after_ns, .phantom = true, .mortal = true, .joined = true};
    EXPECT_EQ(Explore<RealGate>(mortal, nullptr, nullptr, 2), "");
  }
}

// The check can fail: looking before saying so lets two workers at the device.
TEST(GrantModel, FindsTheClassicMistake) {
  const std::string wrong = Explore<CarelessGate>({.alone_after_ns = 0, .phantom = true});
  EXPECT_NE(wrong.find("two workers have the device"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace hawser::scheduler
