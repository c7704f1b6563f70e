// SPDX-License-Identifier: Apache-2.0
// Who receives, with a pump that the test feeds.
#include "interposer/core/receiver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hawser::guest {
namespace {

/// Delivers numbers: each moves `delivered` forward.
class CountingPump final : public Pump {
 public:
  void Feed(int count) {
    std::lock_guard lock(mutex_);
    waiting_ += count;
    changed_.notify_all();
  }
  void End() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  Outcome Deliver() override {
    const bool alone = !inside_.exchange(true);
    EXPECT_TRUE(alone) << "two threads receive";
    EXPECT_TRUE(Receiver::DeliveringHere());
    Outcome outcome = Outcome::kIdle;
    {
      std::lock_guard lock(mutex_);
      if (waiting_ != 0) {
        --waiting_;
        delivered.fetch_add(1, std::memory_order_release);
        outcome = Outcome::kProgress;
      } else if (ended_) {
        outcome = Outcome::kEnded;
      }
    }
    inside_ = false;
    return outcome;
  }
  void Park(bool spin) override {
    const bool alone = !inside_.exchange(true);
    EXPECT_TRUE(alone) << "two threads receive";
    {
      std::unique_lock lock(mutex_);
      if (!spin) ++background_parks;
      changed_.wait(lock, [&] { return waiting_ != 0 || ended_ || interrupted_; });
      interrupted_ = false;
    }
    inside_ = false;
  }
  void Interrupt() override {
    std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  std::atomic<int> delivered{0};
  std::atomic<int> background_parks{0};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool ended_ = false, interrupted_ = false;
  std::atomic<bool> inside_{false};
};

/// Receivers are part of a session, which is never destroyed; so are these.
struct Fixture {
  CountingPump pump;
  std::atomic<int> told{0};
  Receiver receiver{&pump, "test-receive", [this] { ++told; }};

  bool WaitFor(int count) {
    struct Context {
      CountingPump* pump;
      int count;
    } context{&pump, count};
    return receiver.WaitUntil(
        [](void* raw) {
          auto* c = static_cast<Context*>(raw);
          return c->pump->delivered.load(std::memory_order_acquire) >= c->count;
        },
        &context);
  }
};

Fixture& Make() {
  static auto* all = new std::vector<Fixture*>();
  all->push_back(new Fixture());
  return *all->back();
}

TEST(Receiver, OneThreadDeliversForItself) {
  Fixture& f = Make();
  f.pump.Feed(3);
  EXPECT_TRUE(f.WaitFor(2));
  EXPECT_EQ(f.pump.delivered, 2) << "not more than needed";
  f.receiver.Poll();
  EXPECT_EQ(f.pump.delivered, 3);
  EXPECT_FALSE(Receiver::DeliveringHere());
}

TEST(Receiver, TheRoleIsHandedOnUntilEverybodyIsDone) {
  for (int round = 0; round < 300; ++round) {
    Fixture& f = Make();
    std::vector<std::thread> threads;
    for (int i = 1; i <= 8; ++i) threads.emplace_back([&f, i] { EXPECT_TRUE(f.WaitFor(i)); });
    for (int i = 0; i < 8; ++i) {
      f.pump.Feed(1);
      if (round % 3 == 0) std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Receiver, TheEndReachesEverybody) {
  Fixture& f = Make();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&f] { EXPECT_FALSE(f.WaitFor(100)); });
  f.pump.Feed(5);
  f.pump.End();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.pump.delivered, 5);
  f.receiver.EndInBackground();
  while (f.told == 0) std::this_thread::yield();
}

TEST(Receiver, InterestReceivesInTheBackground) {
  Fixture& f = Make();
  f.receiver.AddInterest();
  for (int i = 1; i <= 100; ++i) {
    f.pump.Feed(1);
    while (f.pump.delivered < i) std::this_thread::yield();
  }
  f.receiver.RemoveInterest();
  f.receiver.DrainInBackground();
  f.pump.Feed(1);
  EXPECT_TRUE(f.WaitFor(101));
}

TEST(Receiver, TheBackgroundGivesWayToAWaiterAndComesBack) {
  Fixture& f = Make();
  f.receiver.AddInterest();
  for (int i = 1; i <= 50; ++i) {
    const int parks = f.pump.background_parks;
    std::thread waiter([&f, i] { EXPECT_TRUE(f.WaitFor(2 * i - 1)); });
    f.pump.Feed(1);
    waiter.join();
    // Nobody waits any more: it takes over after a while.
    f.pump.Feed(1);
    while (f.pump.delivered < 2 * i || f.pump.background_parks == parks) std::this_thread::yield();
  }
}

TEST(Receiver, DrainOnceDeliversWhatIsThere) {
  Fixture& f = Make();
  for (int i = 1; i <= 20; ++i) {
    f.pump.Feed(10);
    f.receiver.DrainInBackground();
    while (f.pump.delivered < 10 * i) std::this_thread::yield();
  }
  EXPECT_EQ(f.pump.background_parks, 0);
}

TEST(Receiver, ExclusivelyWaitsForTheHolderToLeave) {
  Fixture& f = Make();
  std::thread waiter([&f] { EXPECT_TRUE(f.WaitFor(1)); });
  std::atomic<bool> ran{false};
  std::thread exclusive([&] { f.receiver.Exclusively([&] { ran = true; }); });
  f.pump.Feed(1);
  waiter.join();
  exclusive.join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace hawser::guest
