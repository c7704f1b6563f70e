// SPDX-License-Identifier: Apache-2.0
// The grant path with real threads and a mock device. No assertion is about time.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/gate.h"

namespace hawser::scheduler {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

/// A page with both its sides, and nobody else.
class GateTest : public ::testing::Test {
 protected:
  void Give(Grant::Kind kind, uint64_t slice_ns, uint64_t cap_ns) {
    door_.Give({kind, ++epoch_, slice_ns, cap_ns, 500});
  }

  GrantPage page_;
  CondvarBell scheduler_bell_, worker_bell_;
  Gate gate_{page_, scheduler_bell_, worker_bell_};
  BasicDoor<std::atomic> door_{page_, worker_bell_};
  uint64_t epoch_ = 0;
};

TEST_F(GateTest, IsClosedAtFirst) {
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_FALSE(door_.HasWork());
  EXPECT_FALSE(door_.Drained());
}

TEST_F(GateTest, OpenLetsThroughUpToTheCap) {
  Give(Grant::Kind::kOpen, 0, 1000);
  EXPECT_TRUE(gate_.TryEnter(600));
  EXPECT_TRUE(gate_.open());
  EXPECT_TRUE(gate_.TryEnter(600));   // 600 were in flight: below the cap.
  EXPECT_FALSE(gate_.TryEnter(600));  // 1200 are not.
  gate_.Leave(600, 650);
  EXPECT_TRUE(gate_.TryEnter(600));
  EXPECT_EQ(door_.Facts().used_ns, 650u);
  EXPECT_EQ(door_.Facts().inflight_ns, 1200u);
}

TEST_F(GateTest, OnePieceIsAlwaysAllowedHoweverLong) {
  Give(Grant::Kind::kOpen, 0, 10);
  EXPECT_TRUE(gate_.TryEnter(1'000'000'000));
  EXPECT_FALSE(gate_.TryEnter(1));
}

TEST_F(GateTest, ASliceEndsWithThePieceThatFillsIt) {
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_TRUE(gate_.TryEnter(400));
  EXPECT_TRUE(gate_.TryEnter(400));  // 1200: the last.
  EXPECT_FALSE(gate_.TryEnter(1));
  EXPECT_EQ(gate_.unit_ns(), 500u);
  EXPECT_FALSE(door_.Drained());  // Three are active.
  for (int i = 0; i < 3; ++i) gate_.Leave(400, 300);
  // Shorter than estimated; the slice stays used all the same.
  EXPECT_FALSE(gate_.TryEnter(1));
  EXPECT_TRUE(door_.Drained());
  EXPECT_FALSE(door_.Drained());
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(400));
}

TEST_F(GateTest, MeasuredTimeCountsWhenItIsKnown) {
  Give(Grant::Kind::kSlice, 1000, 10'000);
  EXPECT_TRUE(gate_.TryEnter(100));
  gate_.Leave(100, 2000);  // Much longer than estimated.
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, RevokedLetsNothingThrough) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  EXPECT_TRUE(gate_.TryEnter(100));
  door_.Revoke();
  EXPECT_FALSE(gate_.TryEnter(100));
  EXPECT_FALSE(door_.Drained());
  const uint64_t ticket = scheduler_bell_.Ticket();
  gate_.Leave(100, 100);
  EXPECT_NE(scheduler_bell_.Ticket(), ticket);  // The last one rings.
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, AnIdleWorkerNeedsNotAnswer) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  door_.Revoke();
  EXPECT_TRUE(door_.Drained());
}

TEST_F(GateTest, AloneNoBellRings) {
  Give(Grant::Kind::kOpen, 0, 10'000);
  const uint64_t ticket = scheduler_bell_.Ticket();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(gate_.TryEnter(100));
    gate_.Leave(100, 100);
  }
  EXPECT_EQ(scheduler_bell_.Ticket(), ticket);
}

TEST_F(GateTest, GivesUpInTimeAndSaysSo) {
  EXPECT_FALSE(gate_.Enter(100, {}, nanoseconds(1)));
  EXPECT_FALSE(door_.HasWork());
}

TEST_F(GateTest, EstimatesAreBounded) {
  Give(Grant::Kind::kOpen, 0, UINT64_MAX);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(gate_.TryEnter(UINT64_MAX));
  EXPECT_EQ(PiecesOf(page_.active.load()), 200u);  // The sum of the estimates did not run over into them.
  for (int i = 0; i < 200; ++i) gate_.Leave(UINT64_MAX, 1);
  EXPECT_EQ(page_.active.load(), 0u);
}

/// A device that runs one piece after the other on its own thread, and notices when pieces of two workers are on it at
/// once.
class MockDevice {
 public:
  MockDevice() : thread_([this] { Run(); }) {}
  ~MockDevice() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Submit(int worker, std::function<void()> done) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Piece& piece : queue_) {
      if (piece.worker != worker) ++overlaps_;
    }
    queue_.push_back({worker, std::move(done)});
    changed_.notify_all();
  }
  /// Everything of this worker goes, as when its process died.
  void Drop(int worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return running_ != worker; });
    std::erase_if(queue_, [worker](const Piece& piece) { return piece.worker == worker; });
  }
  int overlaps() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return overlaps_;
  }

 private:
  struct Piece {
    int worker;
    std::function<void()> done;
  };

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Piece piece = queue_.front();
      running_ = piece.worker;
      lock.unlock();
      std::this_thread::yield();  // The kernel.
      lock.lock();
      // Off the device before its end is told: its end may let another one in.
      queue_.pop_front();
      lock.unlock();
      piece.done();
      lock.lock();
      running_ = -1;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> queue_;
  bool ending_ = false;
  int overlaps_ = 0;
  int running_ = -1;
  std::thread thread_;
};

constexpr uint64_t kPieceNs = 100'000;

struct MockWorker {
  MockWorker(int number, ArbiterThread& arbiter) : index(number), gate(page, arbiter.bell(), bell) {
    TenantConfig config;
    config.name = std::string(1, static_cast<char>('a' + number));
    id = arbiter.Attach(config, page, bell);
  }

  /// Launches `count` pieces, then waits for them.
  void Run(MockDevice& device, int count) {
    for (int i = 0; i < count; ++i) {
      if (!gate.Enter(kPieceNs, {}, hours(1))) return;
      device.Submit(index, [this] {
        gate.Leave(kPieceNs, kPieceNs);
        ++done;
      });
    }
    while (done != count) std::this_thread::yield();
  }

  const int index;
  GrantPage page;
  CondvarBell bell;
  Gate gate;
  TenantId id = 0;
  std::atomic<int> done{0};
};

SchedulerOptions Quick() {
  SchedulerOptions options;
  options.policy.starvation_ns = 0;
  options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
  options.alone_after_ns = 1'000'000;
  return options;
}

class Arbiters : public ::testing::TestWithParam<const char*> {};

TEST_P(Arbiters, ShareADeviceAmongThreads) {
  constexpr int kWorkers = 4, kPieces = 300;
  ArbiterThread arbiter(Quick(), {});
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Find(GetParam()).value()).ok());
  MockDevice device;
  std::vector<std::unique_ptr<MockWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<MockWorker>(i, arbiter));
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&] { worker->Run(device, kPieces); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.overlaps(), 0);
  for (const TenantStatus& tenant : arbiter.Tenants()) EXPECT_LE(tenant.used_ns, kPieces * kPieceNs);
  for (auto& worker : workers) {
    EXPECT_EQ(worker->done, kPieces);
    EXPECT_EQ(worker->page.used_ns.load(), kPieces * kPieceNs);
    arbiter.Detach(worker->id);
  }
  EXPECT_TRUE(arbiter.Tenants().empty());
}

INSTANTIATE_TEST_SUITE_P(Policies, Arbiters,
                         ::testing::Values("fair", "fifo", "rr", "credit", "band", "split", "drr", "prio", "slo"));

TEST(Arbiter, GoesOnWhenAWorkerDiesWithTheDevice) {
  ArbiterThread arbiter(Quick(), {});
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  MockDevice device;
  MockWorker dying(0, arbiter), living(1, arbiter);
  // It has entered and will never leave.
  ASSERT_TRUE(dying.gate.Enter(kPieceNs, {}, hours(1)));
  std::thread thread([&] { living.Run(device, 50); });
  arbiter.Detach(dying.id);
  thread.join();
  EXPECT_EQ(living.done, 50);
  arbiter.Detach(living.id);
}

TEST(Arbiter, PolicyChangesWhileWorkersRun) {
  ArbiterThread arbiter(Quick(), {});
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  MockDevice device;
  MockWorker first(0, arbiter), second(1, arbiter);
  std::atomic<bool> ended{false};
  std::thread a([&] { first.Run(device, 400); });
  std::thread b([&] { second.Run(device, 400); });
  std::thread changes([&] {
    while (!ended) {
      for (const BuiltinPolicy& policy : BuiltinPolicies()) {
        EXPECT_TRUE(arbiter.Use(PolicyLibrary::Find(std::string(policy.name)).value()).ok());
        TenantConfig config;
        config.weight = 300;
        arbiter.Configure(first.id, config);
        std::this_thread::yield();
      }
    }
  });
  a.join();
  b.join();
  ended = true;
  changes.join();
  EXPECT_EQ(device.overlaps(), 0);
  EXPECT_EQ(first.done + second.done, 800);
}

TEST(Arbiter, TellsEventsWithoutItsLock) {
  std::atomic<int> events{0};
  std::atomic<ArbiterThread*> self{nullptr};
  ArbiterThread arbiter(Quick(), [&](const PolicyEvent&) {
    if (self != nullptr) (void)self.load()->Tenants();  // Would block for ever with the lock held.
    ++events;
  });
  self = &arbiter;
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  while (events == 0) std::this_thread::yield();
}

}  // namespace
}  // namespace hawser::scheduler
