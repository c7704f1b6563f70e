// SPDX-License-Identifier: Apache-2.0
// Split launches among other commands: order, wait lists, events, errors, the gate, and the end of a session.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <thread>

#include "scheduler/core/kernel_history.h"
#include "server/worker/split_settings.h"
#include "tests/unit/opencl_slicing/split_fixture.h"

namespace hawser::server::ocl {
namespace {

TEST_F(SplitLaunch, ManyInOrderWithOtherCommandsBetween) {
  TestGate gate;
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0)),
           b = session->BufferOf(std::vector<int>(kCount, 0));
  const Id add = Add(*session, a, 1), sum = session->Kernel(program_, "sum");
  session->SetBuffer(sum, 0, a);
  session->SetBuffer(sum, 1, b);
  int expected = 0, total = 0;
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(session->SetValue(add, 1, round), CL_SUCCESS);
    ASSERT_EQ(session->Launch(queue, add, kCount), CL_SUCCESS);
    // The launch has the argument that it was launched with.
    ASSERT_EQ(session->SetValue(add, 1, 1000000), CL_SUCCESS);
    expected += round;
    if (round % 5 == 4) {
      ASSERT_EQ(session->Write(queue, a, BytesOf(std::vector<int>(kCount, 7))), CL_SUCCESS);
      expected = 7;
    }
    ASSERT_EQ(session->Launch(queue, sum, kCount), CL_SUCCESS);
    total += 2 * expected;
  }
  EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), std::vector<int>(kCount, total));
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, expected));
  EXPECT_EQ(gate.entered(), 2 * 20 * 8);
  EXPECT_EQ(gate.left(), gate.entered());
  EXPECT_GT(gate.measured(), 0u);
}

TEST_F(SplitLaunch, ArgumentsMayBeReleasedAtOnce) {
  TestGate gate;
  gate.SetOpen(false);
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 5)),
           b = session->BufferOf(std::vector<int>(kCount, 1));
  const Id kernel = session->Kernel(program_, "sum"), event = NewEvent(*session);
  session->SetBuffer(kernel, 0, a);
  session->SetBuffer(kernel, 1, b);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, event), CL_SUCCESS);
  EXPECT_EQ(session->Release(a, true), CL_SUCCESS);
  EXPECT_EQ(session->Release(kernel), CL_SUCCESS);
  EXPECT_EQ(session->Release(program_), CL_SUCCESS);
  ASSERT_TRUE(gate.AwaitWaiting());
  EXPECT_FALSE(session->HasReleased(a));  // A part still needs it.
  gate.SetOpen(true);
  EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
  EXPECT_TRUE(session->AwaitReleased(a));
  EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), std::vector<int>(kCount, 11));
}

TEST_F(SplitLaunch, TheExecutorGoesOnWhileALaunchWaitsForItsGrant) {
  TestGate gate;
  gate.SetOpen(false);
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), other = session->Queue();
  const Id a = session->BufferOf(std::vector<int>(kCount, 0)), b = session->BufferOf(std::vector<int>(kCount, 3));
  const Id kernel = Add(*session, a, 4), event = NewEvent(*session), later = NewEvent(*session);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, event), CL_SUCCESS);
  ASSERT_TRUE(gate.AwaitWaiting());
  // Another queue is not held up; this one's order is kept.
  EXPECT_EQ(session->ReadAs<int>(other, b, kCount), std::vector<int>(kCount, 3));
  ASSERT_EQ(session->Write(queue, a, BytesOf(std::vector<int>(1, 100)), 0, {}, later), CL_SUCCESS);
  for (int part = 1; part <= 8; ++part) {
    EXPECT_FALSE(session->HasEvent(event));
    EXPECT_FALSE(session->HasEvent(later));
    gate.Permit(1);
    if (part == 8) break;
    ASSERT_TRUE(gate.AwaitWaiting());
    EXPECT_EQ(gate.entered(), part);
  }
  EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
  EXPECT_EQ(session->AwaitEvent(later)->message.status, CL_COMPLETE);
  std::vector<int> expected(kCount, 4);
  expected[0] = 100;
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), expected);
  EXPECT_EQ(gate.left(), 8);
}

TEST_F(SplitLaunch, GrantsAreAskedForWhenTheWaitListIsComplete) {
  TestGate gate;
  gate.SetOpen(false);
  auto session = NewSession(&gate);
  for (const uint64_t properties : {uint64_t{0}, uint64_t{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    const int before = gate.entered();
    const Id queue = session->Queue(properties), a = session->BufferOf(std::vector<int>(kCount, 0));
    const Id blocker = session->UserEvent(), event = NewEvent(*session);
    ASSERT_EQ(session->Launch(queue, Add(*session, a, 4), kCount, {blocker}, event), CL_SUCCESS);
    gate.Permit(1);
    EXPECT_EQ(gate.entered(), before);  // Nobody has asked: the permit is still there below.
    ASSERT_EQ(session->SetUserEvent(blocker, CL_COMPLETE), CL_SUCCESS);
    ASSERT_TRUE(gate.AwaitLeft(before + 1));
    gate.Permit(7);
    EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
    EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 4));
  }
}

TEST_F(SplitLaunch, WhoHasPassedTheGateCanRun) {
  TestGate gate;
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), other = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0)),
           b = session->BufferOf(std::vector<int>(kCount, 3));
  const Id blocker = session->UserEvent();
  // A gate that lets only so much in at a time would stay shut behind any of these, and perhaps for what they wait for.
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 4), kCount, {blocker}), CL_SUCCESS);  // Waits for an event,
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 5), kCount), CL_SUCCESS);             // for the one before it,
  EXPECT_EQ(gate.entered(), 0);
  const Id out = session->Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  opencl::EnqueueBarrierWithWaitList barrier;
  barrier.queue = out;
  barrier.wait_list = wire::ArrayView<Id>(&blocker, 1);
  ASSERT_EQ(session->Do(barrier), CL_SUCCESS);
  ASSERT_EQ(session->Launch(out, Add(*session, b, 1), kCount), CL_SUCCESS);  // and for a barrier.
  EXPECT_EQ(gate.entered(), 0);
  // Who waits for nothing passes.
  const Id c = session->BufferOf(std::vector<int>(kCount, 3)), event = NewEvent(*session);
  ASSERT_EQ(session->Launch(other, Add(*session, c, 1), kCount, {}, event), CL_SUCCESS);
  EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
  EXPECT_EQ(gate.left(), gate.entered());
  ASSERT_EQ(session->SetUserEvent(blocker, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 9));
  EXPECT_EQ(session->Finish(out), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<int>(out, b, kCount), std::vector<int>(kCount, 4));
}

TEST_F(SplitLaunch, OutOfOrderQueues) {
  for (const bool open : {true, false}) {
    TestGate gate;  // A session's end closes it for ever.
    auto session = NewSession(&gate);
    const Id queue = session->Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const Id a = session->BufferOf(std::vector<int>(kCount, 0)), b = session->BufferOf(std::vector<int>(kCount, 0));
    const Id add = Add(*session, a, 4), sum = session->Kernel(program_, "sum");
    session->SetBuffer(sum, 0, a);
    session->SetBuffer(sum, 1, b);
    gate.SetOpen(open);
    // A command that never ends before the launch must not hold it up.
    const Id blocker = session->UserEvent(), blocked = NewEvent(*session);
    const Id c = session->BufferOf(std::vector<int>(1, 0));
    ASSERT_EQ(session->Write(queue, c, BytesOf(std::vector<int>(1, 0)), 0, {blocker}, blocked), CL_SUCCESS);
    std::vector<Id> events;
    for (int i = 0; i < 6; ++i) {
      events.push_back(NewEvent(*session));
      const std::vector<Id> waits = i == 0 ? std::vector<Id>() : std::vector<Id>{events[events.size() - 2]};
      ASSERT_EQ(session->Launch(queue, i % 2 == 0 ? add : sum, kCount, waits, events.back()), CL_SUCCESS);
    }
    gate.SetOpen(true);
    EXPECT_EQ(session->AwaitEvent(events.back())->message.status, CL_COMPLETE);
    EXPECT_FALSE(session->HasEvent(blocked));
    ASSERT_EQ(session->SetUserEvent(blocker, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
    EXPECT_EQ(session->ReadAs<int>(queue, b, kCount)[5], 2 * 4 + 2 * 8 + 2 * 12);
  }
}

TEST_F(SplitLaunch, TimesReachFromTheFirstPartToTheLast) {
  TestGate gate;
  auto session = NewSession(&gate);
  const Id queue = session->Queue(CL_QUEUE_PROFILING_ENABLE), quiet = session->Queue();
  const Id a = session->BufferOf(std::vector<int>(kCount, 0)), kernel = Add(*session, a, 4);
  const Id event = NewEvent(*session), untimed = NewEvent(*session);
  gate.SetOpen(false);
  gate.Permit(1);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, event), CL_SUCCESS);
  ASSERT_TRUE(gate.AwaitLeft(1));
  const auto pause = std::chrono::milliseconds(20);
  std::this_thread::sleep_for(pause);
  gate.SetOpen(true);
  const auto notice = session->AwaitEvent(event);
  ASSERT_TRUE(notice && notice->message.has_times);
  const auto& times = notice->message.times;
  EXPECT_TRUE(times[0] <= times[1] && times[1] <= times[2] && times[2] < times[3] && times[3] <= times[4]);
  EXPECT_GE(times[3] - times[2], static_cast<uint64_t>(std::chrono::nanoseconds(pause).count()));
  // Queues are measured for the gate; a guest that did not ask does not see it.
  ASSERT_EQ(session->Launch(quiet, kernel, kCount, {}, untimed), CL_SUCCESS);
  EXPECT_EQ(session->AwaitEvent(untimed)->message.has_times, 0);
}

TEST_F(SplitLaunch, ErrorsAreToldAsForWholeLaunches) {
  for (const bool open : {true, false}) {
    TestGate gate;  // A session's end closes it for ever.
    auto session = NewSession(&gate);
    gate.SetOpen(open);
    const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
    const Id unset = session->Kernel(program_, "add"), event = NewEvent(*session);
    EXPECT_EQ(session->Launch(queue, unset, kCount, {}, event), CL_INVALID_KERNEL_ARGS);
    const Id kernel = Add(*session, a, 1);
    opencl::EnqueueNDRangeKernel launch;
    launch.queue = queue;
    launch.kernel = kernel;
    launch.work_dim = 1;
    const uint64_t global = 1 << 20, local = 1 << 18, odd = 100;
    launch.global = wire::ArrayView<uint64_t>(&global, 1);
    launch.local = wire::ArrayView<uint64_t>(&local, 1);
    EXPECT_EQ(session->Do(launch), CL_INVALID_WORK_GROUP_SIZE);
    launch.local = wire::ArrayView<uint64_t>(&odd, 1);
    EXPECT_EQ(session->Do(launch), CL_INVALID_WORK_GROUP_SIZE);  // Not in its last part only.
    // And all is well afterwards.
    gate.SetOpen(true);
    ASSERT_EQ(session->Launch(queue, kernel, kCount), CL_SUCCESS);
    EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 1));
    EXPECT_EQ(gate.left(), gate.entered());
  }
}

TEST_F(SplitLaunch, AFailedWaitListFailsTheLaunch) {
  for (const bool open : {true, false}) {
    TestGate gate;  // A session's end closes it for ever.
    auto session = NewSession(&gate);
    gate.SetOpen(open);
    const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
    const Id blocker = session->UserEvent(), event = NewEvent(*session), behind = NewEvent(*session);
    ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount, {blocker}, event), CL_SUCCESS);
    const Id other = session->Queue();
    ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 9)), 0, {event}, behind), CL_SUCCESS);
    ASSERT_EQ(session->SetUserEvent(blocker, -77), CL_SUCCESS);
    const auto failed = session->AwaitEvent(event);
    ASSERT_TRUE(failed);
    EXPECT_LT(failed->message.status, 0);
    EXPECT_LT(session->AwaitEvent(behind)->message.status, 0);
    gate.SetOpen(true);
    const Id fresh = session->Queue();
    EXPECT_EQ(session->ReadAs<int>(fresh, a, kCount), std::vector<int>(kCount, 0));
  }
}

TEST_F(SplitLaunch, KernelsThatMustNotBeSplitRunWhole) {
  TestGate gate;
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  const Id kernel = session->Kernel(program_, "spin");
  session->SetBuffer(kernel, 0, a);
  ASSERT_EQ(session->Launch(queue, kernel, kCount), CL_SUCCESS);
  EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
  EXPECT_EQ(gate.entered(), 0);
  const std::vector<std::string> log = session->Log();
  EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const std::string& line) {
    return line == "info kernel 'spin' runs whole: it may wait for another work-group";
  }));
}

// By a part that does not end, although nothing in its text said so.
TEST_F(SplitLaunch, WhenTheFirstPartDoesNotEndTheRestRunsBesideIt) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "no room for two work-groups at once";
  constexpr size_t kBoth = 128;
  TestGate gate;
  auto session = NewSession(&gate, "items=64");
  const Id queue = session->Queue(), flag = session->BufferOf(std::vector<int>(1, 0)),
           out = session->BufferOf(std::vector<int>(kBoth, 0));
  const Id kernel = session->Kernel(program_, "later"), event = NewEvent(*session);
  session->SetBuffer(kernel, 0, flag);
  session->SetBuffer(kernel, 1, out);
  ASSERT_EQ(LaunchGroups(*session, queue, kernel, kBoth, event), CL_SUCCESS);
  EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
  EXPECT_EQ(session->ReadAs<int>(queue, out, kBoth), std::vector<int>(kBoth, 7));
  EXPECT_TRUE(HasLog(*session, "warning kernel 'later' is split no more: a part of it did not end"));
  EXPECT_EQ(session->stats().split_alarms, 1u);
  ASSERT_TRUE(gate.AwaitLeft(2));
  EXPECT_EQ(gate.entered(), 2) << "for the first part, and then to pay for the rest";
  // From here on it runs whole; and where the settings say how large parts are that needs no asking.
  ASSERT_EQ(LaunchGroups(*session, queue, kernel, kBoth), CL_SUCCESS);
  EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
  EXPECT_EQ(gate.entered(), 2);
}

TEST_F(SplitLaunch, PartsThatTakeFarTooLongEndTheSplitting) {
  char folder[] = "/tmp/hawser-split-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/history";
  ::setenv("HAWSER_OPENCL_SPLIT_HISTORY", file.c_str(), 1);
  // Who was there before says that it runs 64 work-items in a nanosecond.
  scheduler::KernelHistory told;
  for (int run = 0; run < 2; ++run) {
    TestGate gate(run == 0 ? LaunchGate::kWhole : 1);
    auto session = NewSession(&gate, "gate");
    const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
    const Id kernel = session->Kernel(program_, "slow"), event = NewEvent(*session);
    session->SetBuffer(kernel, 0, a);
    ASSERT_EQ(LaunchGroups(*session, queue, kernel, kCount, event), CL_SUCCESS);
    ASSERT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
    const bool raised =
        HasLog(*session, "warning kernel 'slow' is split no more: its parts took more than twenty times");
    EXPECT_EQ(raised, run == 1);
    EXPECT_LT(gate.entered(), 16);  // Of 64 work-items each.
    session->EndBackend();
    if (run == 1) break;
    EXPECT_EQ(gate.entered(), 1);
    scheduler::KernelHistory learnt;
    ASSERT_TRUE(learnt.Load(file).ok());
    scheduler::KernelKey key;
    const std::string encoded = learnt.Encode();
    const size_t head = encoded.find('\n') + 1 + sizeof(uint32_t);
    ASSERT_GE(encoded.size(), head + sizeof(key));
    std::memcpy(key.bytes.data(), encoded.data() + head, sizeof(key));
    told.Learn(key, 64, 1);
    ASSERT_TRUE(told.Save(file).ok());
  }
  std::filesystem::remove_all(folder);
}

TEST_F(SplitLaunch, ASessionMayEndInTheMiddle) {
  TestGate gate;
  gate.SetOpen(false);
  auto session = NewSession(&gate);
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  const Id event = NewEvent(*session), next = NewEvent(*session);
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount, {}, event), CL_SUCCESS);
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount, {}, next), CL_SUCCESS);
  gate.Permit(3);
  ASSERT_TRUE(gate.AwaitWaiting());
  session->EndBackend();
  EXPECT_TRUE(session->HasEvent(event));
  EXPECT_LT(session->AwaitEvent(event)->message.status, 0);
  EXPECT_EQ(gate.left(), gate.entered());
}

// ---------------------------------------------------------------------- as the gate says

TEST_F(SplitLaunch, AloneNothingIsSplitOrAsked) {
  TestGate gate(0);
  auto session = NewSession(&gate, "gate");
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 1));
  EXPECT_EQ(gate.entered(), 0);
}

TEST_F(SplitLaunch, FirstByThePapersFormulaThenByTheMeasuredRate) {
  // A unit so long that, once the rate is known, all of the launch fits.
  TestGate gate(uint64_t{1} << 50);
  auto session = NewSession(&gate, "gate,cores=256,beta=2");  // 256 * 2 / 2 tenants = 256 work-items
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  const Id kernel = Add(*session, a, 1), first = NewEvent(*session), second = NewEvent(*session);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, first), CL_SUCCESS);
  ASSERT_EQ(session->AwaitEvent(first)->message.status, CL_COMPLETE);
  // The rate is known when the first part is complete: the rest is one part.
  EXPECT_EQ(gate.entered(), 2);
  EXPECT_EQ(gate.estimates()[0], 250'000u);  // Nothing is known of it.
  EXPECT_NE(gate.estimates()[1], 250'000u);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, second), CL_SUCCESS);
  ASSERT_EQ(session->AwaitEvent(second)->message.status, CL_COMPLETE);
  ASSERT_TRUE(gate.AwaitLeft(3));
  EXPECT_EQ(gate.entered(), 3);  // Whole, but asked and measured.
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 2));
}

/// A kernel of which one launch ran whole and was measured, before there is a second.
class MeasuredLaunch : public SplitLaunch {
 protected:
  /// `rounds`: its second argument; nothing: it has one.
  void Measure(const char* kernel, std::optional<int> rounds = {}) {
    session_ = NewSession(&gate_, "gate,cores=65536,beta=2");
    queue_ = session_->Queue();
    kernel_ = session_->Kernel(program_, kernel);
    ASSERT_EQ(session_->SetBuffer(kernel_, 0, session_->BufferOf(std::vector<int>(kCount, 0))), CL_SUCCESS);
    if (rounds) {
      ASSERT_EQ(session_->SetValue(kernel_, 1, *rounds), CL_SUCCESS);
    }
    Launch();
    ASSERT_TRUE(gate_.AwaitLeft(1));
    ASSERT_EQ(gate_.entered(), 1);
    group_ns_ = gate_.measured() / (kCount / 64);
  }

  void Launch() {
    const Id event = NewEvent(*session_);
    ASSERT_EQ(LaunchGroups(*session_, queue_, kernel_, kCount, event), CL_SUCCESS);
    ASSERT_EQ(session_->AwaitEvent(event)->message.status, CL_COMPLETE);
  }

  TestGate gate_{uint64_t{1} << 50};
  std::unique_ptr<Session> session_;
  Id queue_, kernel_;
  uint64_t group_ns_ = 0;  ///< What a work-group takes.
};

TEST_F(MeasuredLaunch, PartsAreAsLongAsTheGateSays) {
  ASSERT_NO_FATAL_FAILURE(Measure("slow"));
  // In turn half of it and an eighth, and a bit, so that it is no group less when the device was a little slower.
  gate_.SetPieces({group_ns_ * 5 / 2, group_ns_ * 17 / 2});
  ASSERT_NO_FATAL_FAILURE(Launch());
  const std::vector<uint64_t> estimates = gate_.estimates();
  ASSERT_GE(estimates.size(), 3u);
  // What is asked for is the part that runs. By the speed that was measured; the next ones' may differ.
  EXPECT_GT(estimates[1], group_ns_ * 6);
  EXPECT_LT(estimates[2], estimates[1] / 2);
  EXPECT_GT(gate_.first_grain_ns(), group_ns_ / 2) << "the gate was told what the smallest part takes";
  EXPECT_LT(gate_.first_grain_ns(), group_ns_ * 2);
}

// A policy may give one tenant a long turn and then a short one.
TEST_F(MeasuredLaunch, APartThatWaitedIsAsLongAsItsGrantWantsIt) {
  ASSERT_NO_FATAL_FAILURE(Measure("slow"));
  // Half of it; but grants have room for an eighth. And a bit.
  gate_.SetPieces({group_ns_ * 17 / 2});
  gate_.SetPieceOfGrant(group_ns_ * 5 / 2);
  gate_.SetOpen(false);
  gate_.Permit(1000);
  ASSERT_NO_FATAL_FAILURE(Launch());
  const std::vector<uint64_t> estimates = gate_.estimates();
  ASSERT_GE(estimates.size(), 3u);
  // The first part was enqueued before there was a grant.
  EXPECT_GT(estimates[1], group_ns_ * 6);
  EXPECT_LT(estimates[2], estimates[1] / 2);
  ASSERT_TRUE(gate_.AwaitLeft(static_cast<int>(estimates.size())));
  EXPECT_EQ(gate_.left_for(), std::accumulate(estimates.begin(), estimates.end(), uint64_t{0}));
}

// A slice of one piece has no other that says how fast the kernel is.
TEST_F(MeasuredLaunch, WhatLeavesEarlyTeachesWhereItsGrantHadNothingElse) {
  constexpr int kFew = 20'000, kTimes = 10;  // Twenty times would be an alarm.
  ASSERT_NO_FATAL_FAILURE(Measure("rounds", kFew));
  // The same takes much longer now, in parts that all leave early. By and by that is known.
  ASSERT_EQ(session_->SetValue(kernel_, 1, kFew * kTimes), CL_SUCCESS);
  gate_.SetEnds(true);
  gate_.SetOpen(false);
  gate_.SetPieces({group_ns_ * 3 / 2});
  gate_.Permit(1000);
  ASSERT_NO_FATAL_FAILURE(Launch());
  const std::vector<uint64_t> estimates = gate_.estimates();
  ASSERT_GE(estimates.size(), 10u);
  EXPECT_GT(estimates.back(), estimates[1] * 3);
}

TEST_F(SplitLaunch, WholeLaunchesWaitForTheirGrantToo) {
  TestGate gate(uint64_t{1} << 50);
  auto session = NewSession(&gate, "gate");
  gate.SetOpen(false);
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  const Id kernel = session->Kernel(program_, "spin"), event = NewEvent(*session);
  session->SetBuffer(kernel, 0, a);
  ASSERT_EQ(session->Launch(queue, kernel, kCount, {}, event), CL_SUCCESS);
  ASSERT_TRUE(gate.AwaitWaiting());
  EXPECT_FALSE(session->HasEvent(event));
  gate.Permit(1);
  EXPECT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
  ASSERT_TRUE(gate.AwaitLeft(1));
  EXPECT_GT(gate.measured(), 0u);  // Its true length.
}

// One after the other would cost tiny kernels a hundred times what they take.
TEST_F(SplitLaunch, WholeLaunchesPassTheGateWhileEarlierOnesRun) {
  for (const bool open : {true, false}) {
    TestGate gate(LaunchGate::kWhole);
    auto session = NewSession(&gate, "off");
    const Id queue = session->Queue(), other = session->Queue();
    const Id a = session->BufferOf(std::vector<int>(1, -1)), b = session->BufferOf(std::vector<int>(1, 0));
    const Id spin = session->Kernel(program_, "spin"), add = Add(*session, b, 1);
    session->SetBuffer(spin, 0, a);
    gate.SetOpen(open);
    ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(session->Launch(queue, add, 1), CL_SUCCESS);
    if (!open) {
      ASSERT_TRUE(gate.AwaitWaiting());
    }
    gate.SetOpen(true);
    EXPECT_TRUE(gate.AwaitEntered(11));
    EXPECT_EQ(gate.left(), 0);
    ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);  // Now it ends.
    EXPECT_EQ(session->ReadAs<int>(queue, b, 1)[0], 10);
    EXPECT_TRUE(gate.AwaitLeft(11));
  }
}

// Parts run on a queue of their own.
TEST_F(SplitLaunch, PartsWaitForWhatIsBeforeThem) {
  for (const bool open : {true, false}) {
    TestGate gate;
    auto session = NewSession(&gate);
    const Id queue = session->Queue(), other = session->Queue();
    const Id a = session->BufferOf(std::vector<int>(kCount, -1)), b = session->BufferOf(std::vector<int>(kCount, 0));
    const Id spin = session->Kernel(program_, "spin"), sum = session->Kernel(program_, "sum");
    session->SetBuffer(spin, 0, a);
    session->SetBuffer(sum, 0, a);
    session->SetBuffer(sum, 1, b);
    gate.SetOpen(open);
    ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
    ASSERT_EQ(session->Launch(queue, sum, kCount), CL_SUCCESS);
    gate.SetOpen(true);
    // Time for a mistake to show.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(kCount, 1))), CL_SUCCESS);
    EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), std::vector<int>(kCount, 2));
  }
}

TEST_F(SplitLaunch, PartsAreInTheTimeline) {
  TestGate gate;
  auto session = NewSession(&gate);
  SessionStatsPage& stats = session->stats();
  stats.trace.store(TraceRing::Bit(TraceRingKind::kKernel));
  const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0));
  ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<int>(queue, a, kCount), std::vector<int>(kCount, 1));
  TraceReader reader;
  std::vector<TraceRingEvent> events;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (events.size() < 8 && std::chrono::steady_clock::now() < deadline) {
    (void)reader.Drain(stats.ring, [&](TraceRingEvent&& event) { events.push_back(std::move(event)); });
    std::this_thread::yield();
  }
  ASSERT_EQ(events.size(), 8u);  // Of 128 work-items each.
  for (const TraceRingEvent& event : events) {
    EXPECT_EQ(event.name, "add");
    EXPECT_EQ(event.track, queue.index());
  }
}

TEST_F(SplitLaunch, RatesAreKeptFromRunToRun) {
  char folder[] = "/tmp/hawser-split-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/history";
  ::setenv("HAWSER_OPENCL_SPLIT_HISTORY", file.c_str(), 1);
  std::vector<int> entered;
  for (int run = 0; run < 2; ++run) {
    TestGate gate(uint64_t{1} << 50);
    auto session = NewSession(&gate, "gate,cores=64,beta=1");
    const Id queue = session->Queue(), a = session->BufferOf(std::vector<int>(kCount, 0)), event = NewEvent(*session);
    ASSERT_EQ(session->Launch(queue, Add(*session, a, 1), kCount, {}, event), CL_SUCCESS);
    ASSERT_EQ(session->AwaitEvent(event)->message.status, CL_COMPLETE);
    session->EndBackend();
    entered.push_back(gate.entered());
  }
  EXPECT_EQ(entered, (std::vector<int>{2, 1}));
  scheduler::KernelHistory history;
  EXPECT_TRUE(history.Load(file).ok());
  EXPECT_EQ(history.size(), 1u);
  std::filesystem::remove_all(folder);
}

TEST(SplitSettings, Words) {
  EXPECT_FALSE(SplitSettings::Parse(kOpenClSplit, "").value().splits);
  EXPECT_FALSE(SplitSettings::Parse(kOpenClSplit, "off").value().splits);
  EXPECT_TRUE(SplitSettings::Parse(kOpenClSplit, "gate").value().splits);
  EXPECT_EQ(SplitSettings::Parse(kOpenClSplit, "gate").value().size, 0u);
  auto settings = SplitSettings::Parse(kOpenClSplit, "items=128,cores=2048,beta=1.5");
  EXPECT_EQ(settings->size, 128u);
  EXPECT_EQ(settings->cores, 2048u);
  EXPECT_EQ(settings->beta, 1.5);
  EXPECT_EQ(settings->hold_ms, 100u);
  EXPECT_EQ(SplitSettings::Parse(kOpenClSplit, "gate,hold=7")->hold_ms, 7u);
  EXPECT_FALSE(SplitSettings::Parse(kCudaSplit, "gate,hold=7").ok());
  for (const char* text : {"on", "items=0", "items=x", "gate,beta=-1", "gate,beta=inf", "gate,", "gate,what=1",
                           "gate,refuse=1", "blocks=1"}) {
    EXPECT_FALSE(SplitSettings::Parse(kOpenClSplit, text).ok()) << text;
  }
}

}  // namespace
}  // namespace hawser::server::ocl
