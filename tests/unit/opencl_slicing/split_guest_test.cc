// SPDX-License-Identifier: Apache-2.0
// Launches of a lone tenant that wait for something that only the guest can do: none of them runs when nobody counts
// it.
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "tests/unit/opencl_slicing/split_fixture.h"

namespace hawser::server::ocl {
namespace {

class SplitGuest : public SplitLaunch {
 protected:
  void Begin() {
    session_ = NewSession(&gate_, "gate");
    queue_ = session_->Queue();
    sums_ = session_->BufferOf(std::vector<int>(kCount, 0));
    flag_ = session_->BufferOf(std::vector<int>(1, -1));
    spin_ = session_->Kernel(program_, "spin");
    session_->SetBuffer(spin_, 0, flag_);
  }
  /// Ends what spins.
  void EndSpin() { ASSERT_EQ(session_->Write(session_->Queue(), flag_, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS); }
  /// So many ask for the gate, one by one or together, and then have run.
  void LetIn(int count) {
    ASSERT_TRUE(gate_.asked().AwaitWaiting());
    EXPECT_EQ(gate_.asked().entered(), 0);
    gate_.asked().SetOpen(true);
    ASSERT_TRUE(gate_.asked().AwaitLeft(count));
  }

  BoundedGate gate_;
  std::unique_ptr<Session> session_;
  Id queue_, sums_, flag_, spin_;
};

TEST_F(SplitGuest, BehindAnEventOfTheGuestLaunchesAsk) {
  Begin();
  const Id other = session_->Queue(), event = session_->UserEvent(), first = NewEvent(*session_);
  const Id add = Add(*session_, sums_, 1), more = session_->BufferOf(std::vector<int>(kCount, 0));
  const Id add_more = Add(*session_, more, 2);
  ASSERT_EQ(session_->Launch(queue_, add, kCount, {event}, first), CL_SUCCESS);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(session_->Launch(queue_, add, kCount), CL_SUCCESS);
  // Over another queue, by a wait list.
  ASSERT_EQ(session_->Launch(other, add_more, kCount, {first}), CL_SUCCESS);
  // Somebody comes, and need not wait for these.
  gate_.Drain();
  EXPECT_FALSE(session_->HasEvent(first));
  ASSERT_EQ(session_->SetUserEvent(event, CL_COMPLETE), CL_SUCCESS);
  LetIn(6);
  EXPECT_EQ(session_->ReadAs<int>(queue_, sums_, kCount), std::vector<int>(kCount, 5));
  EXPECT_EQ(session_->ReadAs<int>(other, more, kCount), std::vector<int>(kCount, 2));
  EXPECT_EQ(gate_.asked().entered(), 6);
  EXPECT_GT(gate_.asked().measured(), 0u);
}

TEST_F(SplitGuest, AloneTheyPassWhenTheEventIsSet) {
  Begin();
  gate_.asked().SetOpen(true);
  const Id event = session_->UserEvent(), add = Add(*session_, sums_, 1);
  ASSERT_EQ(session_->Launch(queue_, add, kCount, {event}), CL_SUCCESS);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(session_->Launch(queue_, add, kCount), CL_SUCCESS);
  ASSERT_EQ(session_->SetUserEvent(event, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(session_->ReadAs<int>(queue_, sums_, kCount), std::vector<int>(kCount, 5));
  ASSERT_TRUE(gate_.asked().AwaitLeft(5));
  EXPECT_EQ(gate_.begun(), 0);
  // Nothing is unset any more.
  EXPECT_EQ(session_->Finish(queue_), CL_SUCCESS);
  ASSERT_EQ(session_->Launch(queue_, add, kCount), CL_SUCCESS);
  EXPECT_EQ(session_->Finish(queue_), CL_SUCCESS);
  EXPECT_EQ(gate_.begun(), 1);
  EXPECT_EQ(gate_.asked().entered(), 5);
}

TEST_F(SplitGuest, AnEventThatFailsTakesThemAlong) {
  Begin();
  gate_.asked().SetOpen(true);
  const Id event = session_->UserEvent(), add = Add(*session_, sums_, 1), last = NewEvent(*session_);
  ASSERT_EQ(session_->Launch(queue_, add, kCount, {event}), CL_SUCCESS);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(session_->Launch(queue_, add, kCount), CL_SUCCESS);
  ASSERT_EQ(session_->Launch(queue_, add, kCount, {}, last), CL_SUCCESS);
  ASSERT_EQ(session_->SetUserEvent(event, -7), CL_SUCCESS);
  const auto notice = session_->AwaitEvent(last);
  ASSERT_TRUE(notice.has_value());
  EXPECT_LT(notice->message.status, 0);
  EXPECT_EQ(session_->Finish(queue_), CL_SUCCESS);
  EXPECT_EQ(session_->ReadAs<int>(session_->Queue(), sums_, kCount), std::vector<int>(kCount, 0));
  EXPECT_EQ(gate_.asked().entered(), gate_.asked().left());
}

TEST_F(SplitGuest, OutOfOrderTheyAskToo) {
  Begin();
  const Id wild = session_->Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE), event = session_->UserEvent();
  const Id add = Add(*session_, sums_, 1);
  opencl::EnqueueBarrierWithWaitList barrier;
  barrier.queue = wild;
  barrier.wait_list = wire::ArrayView<Id>(&event, 1);
  ASSERT_EQ(session_->Do(barrier), CL_SUCCESS);
  ASSERT_EQ(session_->Launch(wild, add, kCount), CL_SUCCESS);
  gate_.Drain();
  ASSERT_EQ(session_->SetUserEvent(event, CL_COMPLETE), CL_SUCCESS);
  LetIn(1);
  EXPECT_EQ(session_->Finish(wild), CL_SUCCESS);
  EXPECT_EQ(session_->ReadAs<int>(queue_, sums_, kCount), std::vector<int>(kCount, 1));
}

TEST_F(SplitGuest, BehindDataThatTheGuestKeepsLaunchesAsk) {
  Begin();
  constexpr size_t kBig = 1 << 18;  // Values.
  const Id big = session_->Buffer(kBig * sizeof(int));
  opencl::WriteBuffer write;
  write.queue = queue_;
  write.buffer = big;
  write.size = kBig * sizeof(int);
  write.transfer = 1;
  ASSERT_EQ(session_->Do(write), CL_SUCCESS);
  const Id add = Add(*session_, big, 1);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session_->Launch(queue_, add, kBig), CL_SUCCESS);
  gate_.Drain();
  EXPECT_EQ(gate_.asked().entered(), 0);
  session_->bulk_in().Deliver(1, OwnBytes(std::vector<int>(kBig, 40)));
  LetIn(3);
  EXPECT_EQ(session_->ReadAs<int>(queue_, big, kCount), std::vector<int>(kCount, 43));
}

// Whoever comes waits for all that runs by itself, however much of the guest's waiting is about.
TEST_F(SplitGuest, ADrainWaitsForTheDevice) {
  Begin();
  const Id event = session_->UserEvent(), add = Add(*session_, sums_, 1);
  const Id wild = session_->Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_EQ(session_->SetUserEvent(event, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(session_->Launch(wild, spin_, 1), CL_SUCCESS);
  const Id unset = session_->UserEvent();
  ASSERT_EQ(session_->Launch(wild, add, kCount, {unset}), CL_SUCCESS);
  ASSERT_EQ(session_->Launch(queue_, add, kCount, {unset}), CL_SUCCESS);
  EXPECT_EQ(gate_.begun(), 1);
  std::future<void> drained = std::async(std::launch::async, [this] { gate_.Drain(); });
  EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  EndSpin();
  EXPECT_EQ(drained.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(gate_.asked().entered(), 0);
  gate_.asked().SetOpen(true);
  ASSERT_EQ(session_->SetUserEvent(unset, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(session_->Finish(queue_), CL_SUCCESS);
  EXPECT_EQ(session_->Finish(wild), CL_SUCCESS);
}

TEST_F(SplitGuest, ADrainWaitsForQueuesThatTheGuestHasGivenBack) {
  for (const uint64_t properties : {uint64_t{0}, uint64_t{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}}) {
    BoundedGate gate;
    auto session = NewSession(&gate, "gate");
    const Id queue = session->Queue(properties), flag = session->BufferOf(std::vector<int>(1, -1));
    const Id spin = session->Kernel(program_, "spin");
    session->SetBuffer(spin, 0, flag);
    ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
    ASSERT_EQ(session->Release(queue), CL_SUCCESS);
    std::future<void> drained = std::async(std::launch::async, [&gate] { gate.Drain(); });
    EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
    ASSERT_EQ(session->Write(session->Queue(), flag, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);
    EXPECT_EQ(drained.wait_for(kPatience), std::future_status::ready);
  }
}

TEST_F(SplitGuest, WhoseArgumentsHaveNoNameAnyMoreAsksToo) {
  TestGate gate(1'000'000);
  auto session = NewSession(&gate, "items=128");
  const Id queue = session->Queue(), buffer = session->BufferOf(std::vector<int>(1 << 20, 0));
  opencl::CreateSubBuffer part;  // Keeps the buffer alive.
  part.buffer = session->NewId(opencl::Handle::kMem);
  part.parent = buffer;
  part.size = kCount * sizeof(int);
  ASSERT_EQ(session->Do(part), CL_SUCCESS);
  const Id add = Add(*session, buffer, 1);
  ASSERT_EQ(session->Release(buffer), CL_SUCCESS);
  gate.SetOpen(false);
  ASSERT_EQ(session->Launch(queue, add, 1 << 20), CL_SUCCESS);
  EXPECT_TRUE(gate.AwaitWaiting());
  gate.SetOpen(true);
  EXPECT_EQ(session->ReadAs<int>(queue, part.buffer, kCount), std::vector<int>(kCount, 1));
  EXPECT_GT(gate.entered(), 0);
}

TEST_F(SplitGuest, SizesThatOverflowAskToo) {
  TestGate gate(1'000'000);
  auto session = NewSession(&gate, "on");
  const Id queue = session->Queue(), add = Add(*session, session->Buffer(sizeof(int)), 1);
  gate.SetOpen(false);
  opencl::EnqueueNDRangeKernel launch;
  launch.queue = queue;
  launch.kernel = add;
  launch.work_dim = 3;
  const uint64_t global[] = {1u << 30, 1u << 30, 1u << 30};
  launch.global = wire::ArrayView<uint64_t>(global, 3);
  // It never gets in, and fails with the session.
  if (session->Do(launch) == CL_SUCCESS) {
    EXPECT_TRUE(gate.AwaitWaiting());
  }
  session->EndBackend();
  EXPECT_EQ(gate.entered(), 0);
}

}  // namespace
}  // namespace hawser::server::ocl
