// SPDX-License-Identifier: Apache-2.0
// hawserd's scheduler with workers that are threads of the test.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/server/scheduled_worker.h"

namespace hawser::server {
namespace {

using wire::Fd;

template <typename Value>
Value Take(wire::Result<Value> result) {
  if (!result.ok()) ADD_FAILURE() << result.status().text();
  return std::move(*result);
}

TEST(GrantShareTest, BothSidesSeeOnePage) {
  GrantShare ours = Take(GrantShare::Create());
  GrantShare theirs = Take(GrantShare::Attach(ours.fd()));
  ours.slot(0).page.word = 77;
  EXPECT_EQ(theirs.slot(0).page.word, 77u);
  EXPECT_EQ(::ftruncate(ours.fd(), 1), -1);  // A worker cannot cut it off under hawserd.
}

TEST(GrantShareTest, RefusesWhatIsNoPage) {
  EXPECT_FALSE(GrantShare::Attach(-1).ok());
  const Fd other(::memfd_create("other", MFD_CLOEXEC));
  EXPECT_NE(GrantShare::Attach(other.get()).status().text().find("of one build"), std::string::npos);
  ASSERT_EQ(::ftruncate(other.get(), sizeof(GrantSharePage)), 0);
  EXPECT_NE(GrantShare::Attach(other.get()).status().text().find("another version"), std::string::npos);
}

TEST(FutexBellTest, ARingAfterTheTicketEndsTheWait) {
  FutexWords words{};
  FutexBell bell(words);
  const uint64_t ticket = bell.Ticket();
  std::thread ringer([&] { bell.Ring(); });
  while (bell.Ticket() == ticket) bell.Wait(ticket, std::chrono::hours(1));
  ringer.join();
  bell.Wait(ticket, std::chrono::hours(1));  // Does not wait: the ticket is old.
  EXPECT_EQ(words.waiters, 0u);
}

Fd Added(Doorbells& bells, uint64_t worker) {
  Fd bell = Take(Doorbells::Make());
  EXPECT_TRUE(bells.Add(worker, bell.get()).ok());
  return bell;
}

TEST(DoorbellsTest, HearsEveryWorkerAndItself) {
  Doorbells bells;
  ASSERT_TRUE(bells.Open().ok());
  EventBell first(Added(bells, 1)), second(Added(bells, 2));
  for (int i = 0; i < 3; ++i) {
    for (scheduler::Bell* bell : {static_cast<scheduler::Bell*>(&first), static_cast<scheduler::Bell*>(&second),
                                  static_cast<scheduler::Bell*>(&bells)}) {
      bell->Ring();
      bells.Wait(0, std::chrono::hours(1));
    }
  }
  bells.Remove(1);
  first.Ring();  // Nobody hears it, and nobody minds.
  second.Ring();
  bells.Wait(0, std::chrono::hours(1));
}

// A worker that rings without end is heard, but not at each ring; and the others as ever.
TEST(DoorbellsTest, WhoRingsWithoutEndIsListenedToNowAndThen) {
  Doorbells bells;
  ASSERT_TRUE(bells.Open().ok());
  EventBell loud(Added(bells, 1)), quiet(Added(bells, 2));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100'000; ++i) {
    loud.Ring();
    bells.Wait(0, std::chrono::nanoseconds(0));
  }
  const auto windows = (std::chrono::steady_clock::now() - begin) / Doorbells::kWindow + 2;
  constexpr auto kHeard = Doorbells::kMost + Doorbells::kWindow / Doorbells::kPause + 1;
  EXPECT_LE(bells.heard(), static_cast<uint64_t>(windows * kHeard));
  const uint64_t before = bells.heard();
  quiet.Ring();
  while (bells.heard() == before) bells.Wait(0, std::chrono::hours(1));
  // What it rang for last is not lost.
  loud.Ring();
  for (const uint64_t now = bells.heard(); bells.heard() == now;) bells.Wait(0, std::chrono::hours(1));
  bells.Remove(1);
  bells.Remove(2);
}

/// A worker that uses one device, as its gate to that.
struct Worked {
  std::unique_ptr<ScheduledWorker> worker;
  LaunchGate* gate;
  LaunchGate* operator->() const { return gate; }
  LaunchGate& operator*() const { return *gate; }
};
Worked Work(DeviceSchedulers& scheduler, uint64_t session, const std::string& tenant) {
  auto worker = std::make_unique<ScheduledWorker>(scheduler, session, tenant);
  LaunchGate* const gate = &worker->Of("cpu");
  return {std::move(worker), gate};
}

std::vector<SchedulerNotice> AwaitNotices(DeviceSchedulers& scheduler, SchedulerNotice::Kind kind) {
  for (;;) {
    pollfd poll{scheduler.notices_fd(), POLLIN, 0};
    ::poll(&poll, 1, -1);
    std::vector<SchedulerNotice> notices = scheduler.TakeNotices();
    std::erase_if(notices, [kind](const SchedulerNotice& notice) { return notice.kind != kind; });
    if (!notices.empty()) return notices;
  }
}

TEST(GrantSchedulerTest, TenantsTakeTurns) {
  auto scheduler = Take(DeviceSchedulers::Start({}));
  scheduler->SetShare("a", {.weight = 100});
  scheduler->SetShare("b", {.weight = 300});
  auto a = Work(*scheduler, 1, "a"), b = Work(*scheduler, 2, "b");
  EXPECT_EQ(a->Tenants(), 1u);  // Nobody has had work.
  std::atomic<int> on_device{0}, overlaps{0};
  const auto run = [&](LaunchGate& gate, int index) {
    constexpr uint64_t kUnit = 400'000;
    for (int i = 0; i < 200; ++i) {
      // Alone in between, also as a unit.
      if (!gate.Enter(kUnit)) return;
      const int bit = 1 << index;
      if ((on_device.fetch_or(bit) & ~bit) != 0) ++overlaps;
      std::this_thread::yield();
      on_device.fetch_and(~bit);
      gate.Leave(kUnit, kUnit);
    }
  };
  std::thread first([&] { run(*a, 0); }), second([&] { run(*b, 1); });
  first.join();
  second.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_TRUE(scheduler->System());
  EXPECT_FALSE(NoScheduler().System());
  EXPECT_EQ(scheduler->SessionUse(1).at(0).used_ns, 200u * 400'000);
  EXPECT_EQ(scheduler->SessionUse(2).at(0).used_ns, 200u * 400'000);
  EXPECT_TRUE(scheduler->SessionUse(3).empty());
  scheduler->SessionEnded(1);
  scheduler->SessionEnded(2);
}

TEST(GrantSchedulerTest, WhoeverIsAloneIsDrainedForTheNext) {
  auto scheduler = Take(DeviceSchedulers::Start({.alone_after_ms = 0}));
  auto a = Work(*scheduler, 1, "a"), b = Work(*scheduler, 2, "b");
  std::atomic<bool> drained{false};
  a->SetDrain([&] { drained = true; });
  ASSERT_TRUE(a->Enter(100));  // Asks for the first grant, as a first launch does.
  a->Leave(100, 100);
  ASSERT_TRUE(a->BeginOpen());
  a->EndOpen();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(b->Enter(100));
  EXPECT_TRUE(drained);
  EXPECT_FALSE(a->BeginOpen());
  b->Leave(100, 100);
  a->SetDrain(nullptr);
  scheduler->SessionEnded(1);
  scheduler->SessionEnded(2);
}

TEST(GrantSchedulerTest, ARunawayIsNamed) {
  auto scheduler = Take(DeviceSchedulers::Start({.max_unit_ms = 20}));
  auto runaway = Work(*scheduler, 1, "a"), harmless = Work(*scheduler, 2, "a"), waiting = Work(*scheduler, 3, "b");
  ASSERT_TRUE(runaway->Enter(100));  // And never leaves.
  std::thread waits([&] {
    EXPECT_TRUE(waiting->Enter(100));
    waiting->Leave(100, 100);
  });
  const std::vector<SchedulerNotice> notices = AwaitNotices(*scheduler, SchedulerNotice::Kind::kRunaway);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].sessions, std::vector<uint64_t>{1});
  EXPECT_NE(notices[0].text.find("tenant a"), std::string::npos) << notices[0].text;
  scheduler->SessionEnded(1);  // As when its worker was killed.
  waits.join();
  scheduler->SessionEnded(2);
  scheduler->SessionEnded(3);
}

// Whoever was to end at once, and not whoever got the device after it.
TEST(GrantSchedulerTest, ARunawayThatLeftEarlyIsNamed) {
  auto scheduler = Take(DeviceSchedulers::Start({.max_unit_ms = 20}));
  auto runaway = Work(*scheduler, 1, "a"), victim = Work(*scheduler, 2, "b"), waiting = Work(*scheduler, 3, "c");
  constexpr uint64_t kSlice = 1'000'000'000;
  EXPECT_EQ(runaway->EarlyNs(), 250'000u);
  ASSERT_TRUE(runaway->Enter(kSlice));
  runaway->LeaveEarly(kSlice);         // And never late.
  ASSERT_TRUE(victim->Enter(kSlice));  // And it does not come to its turn.
  std::thread waits([&] {
    EXPECT_TRUE(waiting->Enter(kSlice));
    waiting->Leave(kSlice, 100);
  });
  std::vector<SchedulerNotice> notices = AwaitNotices(*scheduler, SchedulerNotice::Kind::kRunaway);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].sessions, std::vector<uint64_t>{1});
  EXPECT_NE(notices[0].text.find("tenant a"), std::string::npos) << notices[0].text;
  scheduler->SessionEnded(1);
  // The victim's own time counts from there.
  notices = AwaitNotices(*scheduler, SchedulerNotice::Kind::kRunaway);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].sessions, std::vector<uint64_t>{2});
  scheduler->SessionEnded(2);
  waits.join();
  scheduler->SessionEnded(3);
}

TEST(GrantSchedulerTest, GrantsAreToldWhileTheyAreRecorded) {
  auto scheduler = Take(DeviceSchedulers::Start({}));
  auto a = Work(*scheduler, 7, "a");
  EXPECT_TRUE(scheduler->TakeGrants().grants.empty());
  ASSERT_TRUE(a->Enter(100));  // Alone: that goes on.
  a->Leave(100, 100);
  EXPECT_TRUE(scheduler->TakeGrants().grants.empty());  // Nobody asked.
  scheduler->RecordGrants(true);
  const SessionGrants first = scheduler->TakeGrants();
  ASSERT_EQ(first.grants.size(), 1u);
  EXPECT_EQ(first.grants[0].session, 7u);
  EXPECT_TRUE(first.grants[0].open);
  EXPECT_EQ(first.grants[0].end_ns, 0u);
  EXPECT_TRUE(scheduler->TakeGrants().grants.empty());  // Told already.
  scheduler->RecordGrants(true);                        // Somebody else wants to know too.
  EXPECT_EQ(scheduler->TakeGrants().grants.size(), 1u);
  auto b = Work(*scheduler, 8, "b");
  ASSERT_TRUE(b->Enter(100));
  scheduler->SessionEnded(7);
  scheduler->SessionEnded(8);  // With the device.
  const SessionGrants last = scheduler->TakeGrants();
  ASSERT_EQ(last.grants.size(), 2u);
  EXPECT_EQ(last.grants[0].session, 7u);
  EXPECT_EQ(last.grants[0].begin_ns, first.grants[0].begin_ns);
  EXPECT_EQ(last.grants[1].session, 8u);
  EXPECT_FALSE(last.grants[1].open);
  EXPECT_LE(last.grants[0].end_ns, last.grants[1].begin_ns);
  EXPECT_LE(last.grants[1].begin_ns, last.grants[1].end_ns);
  EXPECT_EQ(last.lost, 0u);
}

TEST(GrantSchedulerTest, PoliciesChangeWhileItRuns) {
  auto scheduler = Take(DeviceSchedulers::Start({}));
  EXPECT_EQ(scheduler->Policy(), "fair");
  const std::vector<std::string> policies = scheduler->Policies();
  EXPECT_EQ(policies.size(), 9u);
  EXPECT_EQ(policies.front(), "fair");
  for (const std::string& name : policies) {
    EXPECT_TRUE(scheduler->SetPolicy(name).ok());
    EXPECT_EQ(scheduler->Policy(), name);
  }
  EXPECT_EQ(scheduler->SetPolicy("nonsense").code(), wire::Code::kInvalid);
  EXPECT_EQ(scheduler->SetPolicy("none").code(), wire::Code::kRefused);
  EXPECT_EQ(scheduler->Policy(), policies.back());
  EXPECT_FALSE(DeviceSchedulers::Start({.policy = "nonsense"}).ok());
}

TEST(GrantSchedulerTest, ASessionThatNeverStartedLeavesNothing) {
  auto scheduler = Take(DeviceSchedulers::Start({}));
  ASSERT_TRUE(scheduler->Prepare(1).ok());
  EXPECT_TRUE(scheduler->SessionUse(1).empty());
  scheduler->SessionEnded(1);
  EXPECT_TRUE(scheduler->SessionUse(1).empty());
}

}  // namespace
}  // namespace hawser::server
