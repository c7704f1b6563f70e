// SPDX-License-Identifier: Apache-2.0
// The grant path with real threads and a mock device. No assertion is about time.
#include <gtest/gtest.h>
#include <sys/prctl.h>

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
  MockWorker(int number, Bell& scheduler, ArbiterThread& arbiter) : index(number), gate(page, scheduler, bell) {
    TenantConfig config;
    config.name = std::string(1, static_cast<char>('a' + number));
    id = arbiter.AddTenant(config);
    door = arbiter.Attach(id, page, bell);
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
  DoorId door = 0;
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
  CondvarBell bell;
  ArbiterThread arbiter(Quick(), {}, bell);
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Find(GetParam()).value()).ok());
  MockDevice device;
  std::vector<std::unique_ptr<MockWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<MockWorker>(i, bell, arbiter));
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&] { worker->Run(device, kPieces); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.overlaps(), 0);
  for (const TenantStatus& tenant : arbiter.Tenants()) EXPECT_GT(tenant.used_ns, 0u);
  for (auto& worker : workers) {
    EXPECT_EQ(worker->done, kPieces);
    EXPECT_EQ(worker->page.used_ns.load(), kPieces * kPieceNs);
    arbiter.RemoveTenant(worker->id);
  }
  EXPECT_TRUE(arbiter.Tenants().empty());
}

INSTANTIATE_TEST_SUITE_P(Policies, Arbiters,
                         ::testing::Values("fair", "fifo", "rr", "credit", "band", "split", "drr", "prio", "slo"));

TEST(Arbiter, GoesOnWhenAWorkerDiesWithTheDevice) {
  CondvarBell bell;
  ArbiterThread arbiter(Quick(), {}, bell);
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  MockDevice device;
  MockWorker dying(0, bell, arbiter), living(1, bell, arbiter);
  // It has entered and will never leave.
  ASSERT_TRUE(dying.gate.Enter(kPieceNs, {}, hours(1)));
  std::thread thread([&] { living.Run(device, 50); });
  arbiter.RemoveTenant(dying.id);
  thread.join();
  EXPECT_EQ(living.done, 50);
  arbiter.RemoveTenant(living.id);
}

TEST(Arbiter, PolicyChangesWhileWorkersRun) {
  CondvarBell bell;
  ArbiterThread arbiter(Quick(), {}, bell);
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  MockDevice device;
  MockWorker first(0, bell, arbiter), second(1, bell, arbiter);
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

/// A tenant with two workers beside one with one, without threads: the pages are moved by hand.
class TwoDoors : public ::testing::Test {
 protected:
  struct Worker {
    explicit Worker(Bell& scheduler) : gate(page, scheduler, bell) {}
    GrantPage page;
    CondvarBell bell;
    Gate gate;
    /// Asks, and goes on asking.
    void Want() { page.demand = 1; }
    void WantNoMore() { page.demand = 0; }
    GateMode mode() const { return ModeOf(page.word); }
  };
  explicit TwoDoors(uint64_t alone_after_ns = UINT64_MAX) : arbiter_(Options(alone_after_ns), {}) {
    EXPECT_TRUE(arbiter_.scheduler().Use(PolicyLibrary::Find("rr").value(), 1).ok());
    pair_ = arbiter_.AddTenant({"pair"}, 1);
    other_ = arbiter_.AddTenant({"other"}, 1);
    left_door_ = arbiter_.Attach(pair_, left_.page, left_.bell);
    right_door_ = arbiter_.Attach(pair_, right_.page, right_.bell);
    (void)arbiter_.Attach(other_, single_.page, single_.bell);
  }
  static SchedulerOptions Options(uint64_t alone_after_ns) {
    SchedulerOptions options = Quick();
    options.alone_after_ns = alone_after_ns;
    return options;
  }
  void Poll() { PollAfter(1000); }
  void PollAfter(uint64_t ns) { arbiter_.Poll(now_ += ns); }
  const SystemTime& system() { return arbiter_.scheduler().system(); }
  uint64_t Charged(size_t tenant) { return arbiter_.scheduler().tenants().all()[tenant]->charged_ns; }

  CondvarBell bell_;
  Worker left_{bell_}, right_{bell_}, single_{bell_};
  BasicArbiter<std::atomic> arbiter_;
  TenantId pair_ = 0, other_ = 0;
  DoorId left_door_ = 0, right_door_ = 0;
  uint64_t now_ = 1'000'000'000;
};

class TwoDoorsAlone : public TwoDoors {
 protected:
  TwoDoorsAlone() : TwoDoors(1'000'000) {}
};

TEST_F(TwoDoorsAlone, BothAreOpen) {
  left_.Want();
  Poll();
  EXPECT_EQ(left_.mode(), GateMode::kOpen);
  EXPECT_EQ(right_.mode(), GateMode::kOpen);
  // Also who comes later.
  Worker third(bell_);
  (void)arbiter_.Attach(pair_, third.page, third.bell);
  EXPECT_EQ(third.mode(), GateMode::kOpen);
  ASSERT_TRUE(right_.gate.TryEnter(100));
  single_.Want();
  Poll();
  EXPECT_EQ(left_.mode(), GateMode::kRevoked);
  EXPECT_EQ(single_.mode(), GateMode::kClosed);  // Something of the right one still runs.
  right_.gate.Leave(100, 100);
  Poll();
  EXPECT_EQ(single_.mode(), GateMode::kSlice);
  arbiter_.RemoveTenant(pair_, now_);
}

/// An alarm that has the open grant's piece given back before whoever rings goes on: the thread that does it may be
/// preferred by the processor that both are on.
class AtOnce final : public Bell {
 public:
  explicit AtOnce(Gate& gate) : gate_(gate) {}
  void Ring() override { gate_.Leave(0, 0); }
  uint64_t Ticket() override { return 0; }
  void Wait(uint64_t, nanoseconds) override {}

 private:
  Gate& gate_;
};

TEST_F(TwoDoorsAlone, WhoeverHeldTheDeviceOpenIsCompanyHoweverSoonItGivesThatBack) {
  Worker held(bell_);
  AtOnce alarm(held.gate);
  (void)arbiter_.Attach(other_, held.page, held.bell, &alarm);
  held.Want();
  Poll();
  ASSERT_EQ(held.mode(), GateMode::kOpen);
  held.WantNoMore();
  Poll();  // Between two of its launches. Of the next one nobody is told.
  ASSERT_TRUE(held.gate.TryEnterOpen(held.page.word));
  left_.Want();
  PollAfter(10'000'000);
  EXPECT_EQ(held.mode(), GateMode::kRevoked);
  EXPECT_EQ(left_.mode(), GateMode::kSlice);  // Not open: it would run a long kernel whole.
}

TEST_F(TwoDoorsAlone, WhoeverIsAlwaysSeenBetweenTwoLaunchesIsCompany) {
  left_.Want();
  Poll();
  left_.WantNoMore();
  single_.Want();
  Poll();
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  single_.WantNoMore();
  Poll();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(single_.gate.TryEnter(100));
    single_.gate.Leave(100, 100);
    PollAfter(500'000);
  }
  left_.Want();
  Poll();
  EXPECT_EQ(left_.mode(), GateMode::kSlice);
  // Who does nothing is none.
  left_.WantNoMore();
  Poll();
  single_.Want();
  PollAfter(2'000'000);
  EXPECT_EQ(single_.mode(), GateMode::kOpen);
}

TEST_F(TwoDoors, ASliceIsDividedAndLastsWhileOneHasSome) {
  left_.Want();
  right_.Want();
  single_.Want();
  Poll();
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  ASSERT_EQ(right_.mode(), GateMode::kSlice);
  EXPECT_EQ(left_.page.slice_ns, right_.page.slice_ns);
  const uint64_t part = left_.page.slice_ns;
  EXPECT_EQ(part * 2, 16'000'000u);        // rr gives 16 ms.
  ASSERT_TRUE(left_.gate.TryEnter(part));  // All of its part.
  left_.gate.Leave(part, part);
  Poll();
  EXPECT_FALSE(left_.gate.TryEnter(1));
  EXPECT_EQ(right_.mode(), GateMode::kSlice);
  EXPECT_EQ(single_.mode(), GateMode::kClosed);
  right_.WantNoMore();  // It has some left and no use for it.
  Poll();
  EXPECT_EQ(right_.mode(), GateMode::kRevoked);
  EXPECT_EQ(single_.mode(), GateMode::kSlice);
}

TEST_F(TwoDoors, OneMayDieWithTheDevice) {
  left_.Want();
  right_.Want();
  single_.Want();
  Poll();
  ASSERT_TRUE(left_.gate.TryEnter(100));
  right_.gate.Leave(0, 7);  // As if it had used a little.
  right_.page.active = 0;
  arbiter_.Detach(left_door_);
  arbiter_.Detach(right_door_);
  Poll();
  EXPECT_EQ(single_.mode(), GateMode::kSlice);
  // What is gone was used all the same.
  EXPECT_EQ(arbiter_.scheduler().tenants().all().front()->facts.used_ns, 7u);
}

TEST_F(TwoDoors, WhatLeftEarlyMakesWayForOne) {
  left_.Want();
  single_.Want();
  Poll();
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  const uint64_t slice = left_.page.slice_ns;
  EXPECT_FALSE(left_.gate.Ends());
  ASSERT_TRUE(left_.gate.TryEnter(slice));  // Its last.
  EXPECT_TRUE(left_.gate.Ends());
  left_.gate.LeaveEarly(slice);
  PollAfter(slice);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  EXPECT_EQ(arbiter_.scheduler().tenants().all().front()->charged_ns, slice);
  // A second one waits until the first has ended.
  ASSERT_TRUE(single_.gate.TryEnter(slice));
  single_.gate.LeaveEarly(slice);
  Poll();
  EXPECT_EQ(left_.mode(), GateMode::kRevoked);
  left_.gate.LeaveLate(slice, slice + 1000);
  Poll();
  EXPECT_EQ(left_.mode(), GateMode::kSlice);
  // What took longer is charged with what comes next; what took less is taken off it.
  ASSERT_TRUE(left_.gate.TryEnter(slice));
  left_.gate.Leave(slice, 500);
  Poll();
  EXPECT_EQ(arbiter_.scheduler().tenants().all().front()->charged_ns, slice + 1500);
  single_.gate.LeaveLate(slice, slice - 300);
  EXPECT_EQ(single_.page.used_ns, slice);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  ASSERT_TRUE(single_.gate.TryEnter(slice));
  single_.gate.Leave(slice, 1000);
  EXPECT_EQ(single_.page.used_ns, slice + 700);
}

TEST_F(TwoDoors, WhatIsLostWhenTheDeviceChangesHandsIsTheSystems) {
  left_.Want();
  single_.Want();
  Poll();
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  EXPECT_EQ(system().switches, 0u);
  const uint64_t slice = left_.page.slice_ns;
  // Given, then some time until its piece runs for 7000, and until that is seen.
  ASSERT_TRUE(left_.gate.TryEnter(slice));
  PollAfter(2000);
  left_.gate.Leave(slice, 7000);
  PollAfter(8000);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  EXPECT_EQ(system().gap_ns, 3000u);
  EXPECT_EQ(system().switches, 1u);
  ASSERT_TRUE(single_.gate.TryEnter(slice));
  single_.gate.Leave(slice, 4000);
  PollAfter(4500);
  EXPECT_EQ(system().gap_ns, 3500u);
  EXPECT_EQ(system().switches, 2u);
  EXPECT_EQ(system().waited_ns + system().lingered_ns, 0u);
  EXPECT_EQ(Charged(0), 7000u);
  EXPECT_EQ(Charged(1), 4000u);
  // Nobody wants it any more: that costs nobody anything.
  left_.WantNoMore();
  single_.WantNoMore();
  Poll();
  EXPECT_EQ(system().gap_ns, 4500u);  // It was given in vain.
  PollAfter(1'000'000);
  EXPECT_EQ(system().gap_ns, 4500u);
}

TEST_F(TwoDoors, WhatLeftEarlyIsNoGap) {
  left_.Want();
  single_.Want();
  Poll();
  const uint64_t slice = left_.page.slice_ns;
  ASSERT_EQ(slice, 16'000'000u);
  ASSERT_TRUE(left_.gate.TryEnter(slice));
  left_.gate.LeaveEarly(slice);
  PollAfter(slice - 250'000);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  EXPECT_EQ(system().gap_ns, 0u);
  left_.gate.LeaveLate(slice, slice + 100'000);  // It took longer than estimated.
  ASSERT_TRUE(single_.gate.TryEnter(slice));
  single_.gate.Leave(slice, 2'000'000);
  PollAfter(2'400'000);  // 350,000 of it for the tail.
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  EXPECT_EQ(system().gap_ns, 50'000u);
}

TEST_F(TwoDoorsAlone, WhoeverIsAloneLosesNothing) {
  left_.Want();
  PollAfter(5'000'000);
  ASSERT_EQ(left_.mode(), GateMode::kOpen);
  PollAfter(5'000'000);
  single_.Want();
  PollAfter(5'000'000);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  EXPECT_EQ(system().gap_ns, 0u);
  EXPECT_EQ(system().switches, 1u);
}

/// A policy that does what it is told.
struct Script {
  static inline const hawser_host* host = nullptr;
  static inline uint64_t chosen = 0, staged = 0;  ///< Tenants.
  static inline uint64_t deadline_ns = 0;         ///< That select() saw of the chosen one.
  static inline hawser_policy offered;

  static hawser_tenant_view View(const hawser_tenant* tenant) {
    hawser_tenant_view view;
    view.size = sizeof(view);
    host->view(host->ctx, tenant, &view);
    return view;
  }
  static hawser_tenant* Named(uint64_t id) {
    hawser_tenant* tenant = host->next_tenant(host->ctx, nullptr);
    while (tenant != nullptr && View(tenant).id != id) tenant = host->next_tenant(host->ctx, tenant);
    return tenant;
  }
  static int Select(void*, hawser_decision* out) {
    out->who = Named(chosen);
    out->slice_ns = 1;
    deadline_ns = View(out->who).deadline_ns;
    return HAWSER_SELECT_DECIDED;
  }
  static const hawser_policy* Entry(const hawser_host* the_host) {
    host = the_host;
    offered = {};
    offered.size = sizeof(offered);
    offered.abi_major = HAWSER_POLICY_ABI_MAJOR;
    offered.name = "script";
    offered.select = Select;
    offered.stage = [](void*, hawser_tenant*) { return Named(staged); };
    return &offered;
  }
};

TEST_F(TwoDoors, WhoIsStagedIsToldUntilItIsServedOrAnotherIs) {
  Worker last(bell_);
  TenantConfig config;
  config.name = "last";
  config.slo_ns = 5'000'000;
  const TenantId third = arbiter_.AddTenant(config, 1);
  (void)arbiter_.Attach(third, last.page, last.bell);
  ASSERT_TRUE(arbiter_.scheduler().Use(PolicyLibrary::Of("script", Script::Entry), 1).ok());
  const auto staged = [](const Worker& worker) { return (worker.page.word & kStagedFlag) != 0; };
  const auto serve = [&](Worker& worker, TenantId next, TenantId then) {
    if (worker.mode() == GateMode::kSlice && worker.gate.TryEnter(100)) worker.gate.Leave(100, 100);
    Script::chosen = next;
    Script::staged = then;
    Poll();
  };
  left_.Want();
  single_.Want();
  last.gate.Announce(100, {.oldest_arrival_ns = 77});
  serve(left_, pair_, third);  // Nobody else was known to want it then.
  serve(left_, pair_, third);
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  EXPECT_TRUE(staged(last));
  EXPECT_FALSE(staged(left_) || staged(right_) || staged(single_));
  serve(left_, other_, pair_);
  ASSERT_EQ(single_.mode(), GateMode::kSlice);
  EXPECT_TRUE(staged(left_) && staged(right_));  // A tenant is, with all its workers.
  EXPECT_FALSE(staged(last) || staged(single_));
  EXPECT_EQ(last.mode(), GateMode::kClosed);
  serve(single_, pair_, other_);
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  EXPECT_FALSE(staged(left_) || staged(right_) || staged(last));
  EXPECT_TRUE(staged(single_));
  // And the policy sees when the one with a wanted latency should be done.
  serve(left_, third, 0);
  ASSERT_EQ(last.mode(), GateMode::kSlice);
  EXPECT_EQ(Script::deadline_ns, 5'000'077u);
  Script::chosen = pair_;
  arbiter_.RemoveTenant(third, now_);
}

TEST_F(TwoDoors, WhatIsAnnouncedCountsAsWork) {
  single_.Want();
  Poll();
  ASSERT_TRUE(single_.gate.TryEnter(single_.page.slice_ns));
  single_.WantNoMore();
  left_.gate.Announce(100, {});
  single_.gate.Leave(100, 100);
  Poll();
  ASSERT_EQ(left_.mode(), GateMode::kSlice);
  EXPECT_EQ(left_.page.demand, 1u);
  EXPECT_TRUE(left_.gate.Enter(100, {}, std::chrono::hours(1)));
  EXPECT_EQ(left_.page.demand, 0u);
  left_.gate.Leave(100, 100);
}

TEST(Arbiter, TellsEventsWithoutItsLock) {
  std::atomic<int> events{0};
  std::atomic<ArbiterThread*> self{nullptr};
  CondvarBell bell;
  const auto on_event = [&](const PolicyEvent&) {
    if (self != nullptr) (void)self.load()->Tenants();  // Would block for ever with the lock held.
    ++events;
  };
  ArbiterThread arbiter(Quick(), on_event, bell);
  self = &arbiter;
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  while (events == 0) std::this_thread::yield();
}

/// Knows how late the timers of whoever waits for it may be.
class TimingBell : public CondvarBell {
 public:
  void Wait(uint64_t ticket, nanoseconds at_most) override {
    slack_ns = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    CondvarBell::Wait(ticket, at_most);
  }
  std::atomic<int> slack_ns{-1};  ///< Nobody waited yet.
};

TEST(Arbiter, WhatItWaitsForIsNotLate) {
  TimingBell bell;
  ArbiterThread arbiter(Quick(), {}, bell);
  while (bell.slack_ns < 0) std::this_thread::yield();
  EXPECT_LE(bell.slack_ns, 1);
}

}  // namespace
}  // namespace hawser::scheduler
