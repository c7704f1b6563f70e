// SPDX-License-Identifier: Apache-2.0
// A lone worker's launches under an open grant, model-checked as grant_model_test.cc does: the real OpenHold, Gate,
// Door, Arbiter and Scheduler, in all orders of the steps of the thread that launches, the one that gives the grant
// back, the device, another worker and the scheduler; and with the worker killed at every point.
//
// What must hold: while the other worker has the device, nothing of the first one's is there; both get all done.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "scheduler/grant/open_hold.h"
#include "tests/unit/scheduler/grant_model.h"

namespace hawser::scheduler {
namespace {

using model::current;
using model::ExploreWorld;
using model::kPieceNs;
using model::ModelAtomic;
using model::ModelBell;
using model::ModelOptions;
using model::RoundRobin;
using model::RunArbiter;
using model::RunPhantom;
using model::World;

using Page = BasicGrantPage<ModelAtomic>;
using ModelGate = BasicGate<ModelAtomic>;

/// An OpenHold with a mistake. 'w': looks at the word before it says that it launches. 'h': says that it holds the
/// piece when it has it. 'l': gives back without looking whether somebody launches. 's': asks for and enters whatever
/// grant there is next.
template <char kMistake>
class CarelessHold {
 public:
  CarelessHold(Page& page, ModelGate& gate) : page_(page), gate_(gate) {}
  template <typename Enter>
  bool Begin(const Enter& enter) {
    if (kMistake != 'w') launching_.store(1);
    const uint64_t word = page_.word.load();
    if (kMistake == 'w') launching_.store(1);
    if (word == open_word_) return true;
    open_word_ = UINT64_MAX;
    if (ModeOf(word) == GateMode::kOpen) {
      if (kMistake != 'h') held_.store(1);
      if (kMistake == 's' ? gate_.Enter(0, {}, std::chrono::hours(1), {}) : enter(word)) {
        if (kMistake == 'h') held_.store(1);
        open_word_ = word;
        return true;
      }
      held_.store(0);
    }
    launching_.store(0);
    return false;
  }
  void End() { launching_.store(0); }
  template <typename WhileLaunching, typename Drain>
  bool Yield(uint64_t word, const WhileLaunching& while_launching, const Drain& drain) {
    if (held_.load() == 0 || ModeOf(word) == GateMode::kOpen) return false;
    if (kMistake != 'l') while_launching([this] { return launching_.load() != 0; });
    if (held_.load() == 0) return true;
    drain();
    held_.store(0);
    gate_.Leave(0, 0);
    return true;
  }
  uint64_t Digest() const { return open_word_ + 1; }

 private:
  Page& page_;
  ModelGate& gate_;
  ModelAtomic<uint64_t> launching_;
  ModelAtomic<uint64_t> held_;
  uint64_t open_word_ = UINT64_MAX;
};

struct Setting {
  int launches = 2;     ///< Of the worker that is alone at first.
  int phantom = 1;      ///< Of the other one.
  bool mortal = false;  ///< The first worker may be killed.
  bool begun = true;    ///< It has an open grant already.
};

template <typename Hold>
class LoneWorker : public World {
 public:
  explicit LoneWorker(const Setting& setting)
      : setting_(setting),
        arbiter_(ModelOptions(/*alone_after_ns=*/0), {}),
        gate_(pages_[0], scheduler_bell_, submit_),
        hold_(pages_[0], gate_) {
    EXPECT_TRUE(arbiter_.scheduler().Use(RoundRobin(), 1).ok());
    ids_[0] = arbiter_.AddTenant({"lone"}, 1);
    ids_[1] = arbiter_.AddTenant({"other"}, 1);
    (void)arbiter_.Attach(ids_[0], pages_[0], submit_, &alarm_);
    (void)arbiter_.Attach(ids_[1], pages_[1], other_);
    // Whoever takes a ticket of the alarm begins anew.
    alarm_.ForgetBut([] { return uint64_t{4242}; });
    if (!setting.begun) return;
    pages_[0].demand.store(1);
    arbiter_.Poll(1);
    pages_[0].demand.store(0);
    EXPECT_EQ(ModeOf(pages_[0].word.peek()), GateMode::kOpen);
  }

  std::vector<std::function<void()>> Threads() override {
    return {[this] { Launch(); }, [this] { Complete(); }, [this] { WatchAlarm(); },
            [this] { RunPhantom(setting_.phantom, pages_[1], scheduler_bell_, other_on_device_); },
            [this] { Arbitrate(); }};
  }
  std::vector<size_t> Mortal() override {
    return setting_.mortal ? std::vector<size_t>{0, 1, 2} : std::vector<size_t>{};
  }
  std::string Wrong() override {
    const bool mine = !reaped_ && (open_.peek() != 0 || pieces_.peek() != 0);
    return mine && other_on_device_.peek() != 0 ? "two workers have the device" : "";
  }
  std::string WrongAtEnd(const std::vector<bool>& finished) override {
    if (!finished[0]) return "launches stand still";
    if (!finished[1]) return "completions stand still";
    return finished[3] ? "" : "the other worker stands still";
  }

 private:
  void Launch() {
    for (int n = 0; n < setting_.launches; ++n) {
      const auto digest = [this, n] { return (gate_.Digest() * 31 + hold_.Digest()) * 16 + static_cast<uint64_t>(n); };
      submit_.ForgetBut(digest);
      current->Forget(digest() + 8);
      if (hold_.Begin([this](uint64_t word) { return gate_.TryEnterOpen(word); })) {
        open_.fetch_add(1);
        hold_.End();
      } else {
        (void)gate_.Enter(kPieceNs, {}, std::chrono::hours(1), std::chrono::nanoseconds(0));
        pieces_.fetch_add(1);
      }
    }
  }

  /// The device.
  void Complete() {
    for (int n = 0; n < setting_.launches; ++n) {
      current->Forget(static_cast<uint64_t>(n) + 77);
      current->BlockUntil([this] { return open_.peek() != 0 || pieces_.peek() != 0; });
      if (open_.peek() != 0) {
        open_.fetch_sub(1);
      } else {
        pieces_.fetch_sub(1);
        gate_.Leave(kPieceNs, kPieceNs);
      }
    }
  }

  void WatchAlarm() {
    for (;;) {
      const uint64_t ticket = alarm_.Ticket();
      const uint64_t word = pages_[0].word.load();
      const bool yielded = hold_.Yield(
          word,
          [](const auto& launching) {
            // Whoever looks again has learnt nothing.
            do {
              current->Forget(4343);
            } while (launching());
          },
          [this] { current->BlockUntil([this] { return open_.peek() == 0; }); });
      if (!yielded) alarm_.Wait(ticket, {});
    }
  }

  void Arbitrate() { RunArbiter(arbiter_, scheduler_bell_, ids_[0], &reaped_); }

  const Setting setting_;
  ModelBell scheduler_bell_, submit_, alarm_, other_;
  std::array<Page, 2> pages_;
  BasicArbiter<ModelAtomic> arbiter_;
  ModelGate gate_;
  Hold hold_;
  ModelAtomic<uint64_t> open_;    ///< On the device under the open grant.
  ModelAtomic<uint64_t> pieces_;  ///< On the device in a slice.
  ModelAtomic<uint64_t> other_on_device_;
  std::array<TenantId, 2> ids_{};
  bool reaped_ = false;
};

template <typename Hold>
std::string Explore(const Setting& setting, size_t preemptions, size_t* states = nullptr, size_t* deaths = nullptr) {
  return ExploreWorld<LoneWorker<Hold>>(setting, preemptions, states, deaths);
}

using RealHold = BasicOpenHold<ModelAtomic>;

// All orders are too many; these are those in which threads are interrupted so many times at most, at any points.

TEST(OpenModel, TheGrantIsTakenBackAtAnyPoint) {
  size_t states = 0;
  EXPECT_EQ(Explore<RealHold>({.launches = 1}, 3, &states), "");
  EXPECT_GT(states, 1000u);
}

TEST(OpenModel, AWorkerMayDieAtAnyPoint) {
  size_t deaths = 0;
  EXPECT_EQ(Explore<RealHold>({.launches = 1, .mortal = true}, 2, nullptr, &deaths), "");
  EXPECT_GT(deaths, 1000u);
}

// The second launch finds the grant open, taken back, or given anew; the first one may have to ask for it.
TEST(OpenModel, SeveralLaunches) {
  EXPECT_EQ(Explore<RealHold>({.launches = 2}, 2), "");
  EXPECT_EQ(Explore<RealHold>({.launches = 2, .begun = false}, 3), "");
  EXPECT_EQ(Explore<RealHold>({.launches = 3, .phantom = 2}, 1), "");
}

// The check can fail.
TEST(OpenModel, FindsMistakes) {
  const std::string word = Explore<CarelessHold<'w'>>({.launches = 2}, 3);
  EXPECT_NE(word.find("two workers have the device"), std::string::npos) << word;
  const std::string launch = Explore<CarelessHold<'l'>>({.launches = 2}, 3);
  EXPECT_NE(launch.find("two workers have the device"), std::string::npos) << launch;
  const std::string slice = Explore<CarelessHold<'s'>>({.launches = 2, .begun = false}, 3);
  EXPECT_NE(slice.find("the other worker stands still"), std::string::npos) << slice;
  const std::string held = Explore<CarelessHold<'h'>>({.launches = 1}, 3);
  EXPECT_NE(held.find("the other worker stands still"), std::string::npos) << held;
}

}  // namespace
}  // namespace hawser::scheduler
