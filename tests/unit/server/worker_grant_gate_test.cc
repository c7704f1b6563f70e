// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "scheduler/grant/door.h"
#include "server/worker/grant_gate.h"

namespace hawser::server {
namespace {

using scheduler::Grant;

template <typename Value>
Value Take(wire::Result<Value> result) {
  if (!result.ok()) ADD_FAILURE() << result.status().text();
  return std::move(*result);
}

/// The gate of a worker, and the scheduler's side of its page in the test's hands.
class GrantGateTest : public ::testing::Test {
 protected:
  GrantGateTest() : ours_(Take(GrantShare::Create())) {
    theirs_ = Take(GrantShare::Attach(ours_.fd()));
    submit_ = std::make_unique<FutexBell>(ours_.slot(0).submit);
    alarm_ = std::make_unique<FutexBell>(ours_.slot(0).alarm);
    door_ = std::make_unique<scheduler::BasicDoor<std::atomic>>(ours_.slot(0).page, *submit_, alarm_.get());
    bell_ = wire::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rings_ = std::make_unique<EventBell>(wire::Fd(::dup(bell_.get())));
    gate_ = std::make_unique<GrantGate>(theirs_.slot(0), *rings_);
    gate_->SetDrain([this] { Drain(); });
  }
  ~GrantGateTest() override {
    LetDrain();
    gate_->SetDrain(nullptr);
  }

  void Open() { door_->Give({Grant::Kind::kOpen, ++epoch_, 0, UINT64_MAX, LaunchGate::kWhole}); }
  void Slice(uint64_t slice_ns) { door_->Give({Grant::Kind::kSlice, ++epoch_, slice_ns, slice_ns, 250'000}); }
  bool Launch() {
    if (!gate_->BeginOpen()) return false;
    gate_->EndOpen();
    return true;
  }
  uint64_t pieces() const { return scheduler::PiecesOf(ours_.slot(0).page.active.load()); }
  void AwaitDrained() {
    while (!door_->Drained()) std::this_thread::yield();
  }

  void Drain() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++drains_;
    launching_at_drain_ = launching_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_drain_; });
  }
  void AwaitDrain() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return drains_ > 0; });
  }
  void LetDrain() {
    const std::lock_guard<std::mutex> lock(mutex_);
    may_drain_ = true;
    changed_.notify_all();
  }

  GrantShare ours_, theirs_;
  std::unique_ptr<FutexBell> submit_, alarm_;
  std::unique_ptr<scheduler::BasicDoor<std::atomic>> door_;
  wire::Fd bell_;
  std::unique_ptr<EventBell> rings_;
  uint64_t epoch_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> drains_{0};
  bool may_drain_ = false;
  bool launching_ = false;
  std::atomic<bool> launching_at_drain_{false};
  std::unique_ptr<GrantGate> gate_;
};

TEST_F(GrantGateTest, IsClosedBeforeTheFirstGrant) {
  EXPECT_FALSE(Launch());
  EXPECT_FALSE(gate_->TryEnter(100));
  EXPECT_EQ(gate_->UnitNs(), LaunchGate::kWhole);  // Nobody else is there.
  ours_.slot(0).tenants = 2;
  EXPECT_EQ(gate_->UnitNs(), GrantGate::kDefaultUnitNs);
  EXPECT_EQ(gate_->Tenants(), 2u);
}

TEST_F(GrantGateTest, AloneAllLaunchesAreOnePiece) {
  Open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Launch());
  EXPECT_EQ(pieces(), 1u);
  EXPECT_EQ(gate_->UnitNs(), 0u);
  EXPECT_TRUE(door_->HasWork());
}

TEST_F(GrantGateTest, TheBoundOfWhoIsAloneIsThatOfItsGrant) {
  LetDrain();
  EXPECT_EQ(gate_->OpenCapNs(), GrantGate::kDefaultOpenCapNs);
  door_->Give({Grant::Kind::kOpen, ++epoch_, 0, 7'000'000, LaunchGate::kWhole});
  ASSERT_TRUE(Launch());
  EXPECT_EQ(gate_->OpenCapNs(), 7'000'000u);
  door_->Revoke();
  AwaitDrained();
  Slice(5000);  // Not that of a slice.
  EXPECT_EQ(gate_->OpenCapNs(), GrantGate::kDefaultOpenCapNs);
}

TEST_F(GrantGateTest, SaysWhenSomebodyComesAlsoWhenThereIsNothingToDrain) {
  std::mutex mutex;
  std::condition_variable changed;
  int closed = 0;
  gate_->SetClosed([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    if (gate_->UnitNs() == 0) return;
    ++closed;
    changed.notify_all();
  });
  for (int i = 0; i < 3; ++i) {
    Open();
    std::unique_lock<std::mutex> lock(mutex);
    closed = 0;
    lock.unlock();
    door_->Revoke();
    lock.lock();
    changed.wait(lock, [&] { return closed != 0; });
  }
  EXPECT_EQ(drains_, 0);
  gate_->SetClosed(nullptr);
}

TEST_F(GrantGateTest, ADrainFreesTheDevice) {
  Open();
  ASSERT_TRUE(Launch());
  door_->Revoke();
  AwaitDrain();
  EXPECT_FALSE(Launch());
  EXPECT_FALSE(door_->Drained());
  LetDrain();
  AwaitDrained();
  EXPECT_EQ(pieces(), 0u);
  // And all anew.
  Open();
  EXPECT_TRUE(Launch());
  EXPECT_EQ(pieces(), 1u);
}

TEST_F(GrantGateTest, NothingIsDrainedWhereNothingWasLaunched) {
  Open();
  door_->Revoke();
  EXPECT_TRUE(door_->Drained());
  Open();
  ASSERT_TRUE(Launch());
  EXPECT_EQ(drains_, 0);
}

TEST_F(GrantGateTest, ADrainWaitsForTheLaunchThatIsUnderWay) {
  int expected = 0;
  LetDrain();
  for (int i = 0; i < 200; ++i) {
    Open();
    // The executor launches until the grant is gone.
    bool passed = false;
    std::thread executor([this, &passed] {
      while (gate_->BeginOpen()) {
        passed = true;
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          launching_ = true;
        }
        std::this_thread::yield();
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          launching_ = false;
        }
        gate_->EndOpen();
      }
    });
    while (pieces() == 0) std::this_thread::yield();
    door_->Revoke();
    AwaitDrained();
    executor.join();
    // Taken back while the piece was just entering: then it was refused, and nothing is drained.
    if (passed) ++expected;
    EXPECT_FALSE(launching_at_drain_);
  }
  EXPECT_EQ(drains_, expected);
  EXPECT_GT(expected, 0);
}

TEST_F(GrantGateTest, AfterAnOpenGrantUnitsAreThoseOfSlices) {
  LetDrain();
  Open();
  ASSERT_TRUE(Launch());
  door_->Revoke();  // Somebody else came. What was open said that nothing is to be split.
  EXPECT_EQ(gate_->UnitNs(), GrantGate::kDefaultUnitNs);
  AwaitDrained();
  Slice(5000);
  ASSERT_TRUE(gate_->TryEnter(100));
  gate_->Leave(100, 100);
  door_->Revoke();
  AwaitDrained();
  Open();
  ASSERT_TRUE(Launch());
  door_->Revoke();
  EXPECT_EQ(gate_->UnitNs(), 250'000u);  // As the policy had it last.
  AwaitDrained();
}

TEST_F(GrantGateTest, ALongSliceHasALongPieceAndAShortOne) {
  ours_.slot(0).handover_ns = 250'000;
  EXPECT_EQ(gate_->PieceNs(0), LaunchGate::kWhole);
  door_->Give({Grant::Kind::kSlice, ++epoch_, 16'000'000, 1'000'000, 18'000'000});
  ASSERT_EQ(gate_->PieceNs(0), 15'500'000u);
  ASSERT_TRUE(gate_->TryEnter(15'500'000));
  EXPECT_FALSE(gate_->Ends());
  ASSERT_EQ(gate_->PieceNs(0), 2'000'000u);
  ASSERT_TRUE(gate_->TryEnter(2'000'000));  // Both are under way.
  EXPECT_TRUE(gate_->Ends());
  EXPECT_EQ(gate_->PieceNs(0), 15'500'000u);  // The next slice's first.
  gate_->Leave(15'500'000, 15'000'000);
  gate_->Leave(2'000'000, 2'000'000);
  EXPECT_TRUE(door_->Drained());
  Open();
  EXPECT_EQ(gate_->PieceNs(0), 0u);
}

// A policy may give one tenant a long turn and then a short one.
TEST_F(GrantGateTest, APartThatWaitedIsAsLongAsTheGrantThatCameWantsIt) {
  ours_.slot(0).handover_ns = 250'000;
  door_->Give({Grant::Kind::kSlice, ++epoch_, 16'000'000, 1'000'000, 18'000'000});
  ASSERT_TRUE(gate_->TryEnter(15'500'000));
  ASSERT_TRUE(gate_->TryEnter(2'500'000));
  ASSERT_TRUE(gate_->Ends());
  uint64_t part = gate_->PieceNs(0);
  const LaunchGate::Resize resize = [this] { return gate_->PieceNs(0); };
  EXPECT_FALSE(gate_->TryEnterPart(&part, resize));
  EXPECT_EQ(part, 15'500'000u);
  std::thread lane([&] { EXPECT_TRUE(gate_->EnterPart(&part, resize)); });
  while (!door_->HasWork()) std::this_thread::yield();
  gate_->Leave(15'500'000, 15'000'000);
  gate_->Leave(2'500'000, 2'500'000);
  ASSERT_TRUE(door_->Drained());
  door_->Give({Grant::Kind::kSlice, ++epoch_, 8'000'000, 1'000'000, 9'000'000});
  lane.join();
  EXPECT_EQ(part, 7'000'000u);  // Not 15.5 ms; and not what would be left when those were taken: 2 ms.
  EXPECT_EQ(gate_->PieceNs(0), 2'000'000u);
  EXPECT_FALSE(gate_->Ends());
  gate_->Leave(part, part);
}

// Otherwise whoever wanted the device once would be given it for ever.
TEST_F(GrantGateTest, WhatWasAnnouncedAndCameInAtOnceIsNoDemand) {
  gate_->Announce(100);
  EXPECT_TRUE(door_->HasWork());
  Slice(5000);
  ASSERT_TRUE(gate_->TryEnter(100));
  gate_->Leave(100, 100);
  EXPECT_FALSE(door_->HasWork());
}

TEST_F(GrantGateTest, AUnitWaitsForItsSlice) {
  std::thread lane([this] {
    EXPECT_TRUE(gate_->Enter(1000));
    gate_->Leave(1000, 900);
  });
  while (!door_->HasWork()) std::this_thread::yield();
  // It rang before it slept, or is about to.
  uint64_t rings = 0;
  while (::read(bell_.get(), &rings, sizeof(rings)) != sizeof(rings)) std::this_thread::yield();
  EXPECT_FALSE(Launch());  // Does not wait for the lane.
  Slice(5000);
  lane.join();
  EXPECT_EQ(ours_.slot(0).page.used_ns, 900u);
  EXPECT_EQ(gate_->UnitNs(), 250'000u);
  EXPECT_FALSE(Launch());  // A slice is no open grant.
  EXPECT_TRUE(gate_->TryEnter(100));
  gate_->Leave(100, 100);
}

TEST_F(GrantGateTest, CancelEndsAllWaits) {
  std::thread lane([this] { EXPECT_FALSE(gate_->Enter(1000)); });
  while (!door_->HasWork()) std::this_thread::yield();
  gate_->Cancel();
  lane.join();
  EXPECT_FALSE(gate_->Enter(1000));
  EXPECT_FALSE(door_->HasWork());
}

}  // namespace
}  // namespace hawser::server
