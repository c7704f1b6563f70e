// SPDX-License-Identifier: Apache-2.0
// Launches while nobody else is there, bounded by how far ahead of the device they may be.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/unit/opencl_slicing/split_fixture.h"

namespace hawser::server::ocl {
namespace {

TEST_F(SplitLaunch, AloneAQueueThatIsFarAheadAsks) {
  BoundedGate gate;
  auto session = NewSession(&gate, "gate");
  const Id queue = session->Queue(), other = session->Queue();
  const Id a = session->BufferOf(std::vector<int>(1, -1)), b = session->BufferOf(std::vector<int>(kCount, 0));
  const Id spin = session->Kernel(program_, "spin"), add = Add(*session, b, 1);
  session->SetBuffer(spin, 0, a);
  // Two may be under way, however long; the rest waits, in order with what is not asked for.
  ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
  ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(session->Launch(queue, add, kCount), CL_SUCCESS);
  ASSERT_EQ(session->Write(queue, b, BytesOf(std::vector<int>(1, 100))), CL_SUCCESS);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(session->Launch(queue, add, kCount), CL_SUCCESS);
  // A queue that is not ahead goes on, and what is held keeps the executor from nothing.
  ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);  // Now the first two end.
  ASSERT_TRUE(gate.asked().AwaitWaiting());
  EXPECT_EQ(gate.asked().entered(), 0);
  // Whoever comes waits for what was not asked for only: none of what is held is let in meanwhile.
  gate.Drain();
  EXPECT_EQ(gate.asked().entered(), 0);
  for (int i = 1; i <= 10; ++i) {
    gate.asked().Permit(1);
    ASSERT_TRUE(gate.asked().AwaitLeft(i));
  }
  std::vector<int> expected(kCount, 10);
  expected[0] = 105;
  EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), expected);
  // All is over, so the next one does not ask.
  ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
  EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
  EXPECT_EQ(gate.asked().entered(), 10);
}

TEST_F(SplitLaunch, AloneAQueueThatIsNeverEmptyDoesNotAskForEver) {
  BoundedGate gate;
  gate.asked().SetOpen(true);
  auto session = NewSession(&gate, "gate,hold=1");
  const Id queue = session->Queue(), other = session->Queue();
  const Id a = session->BufferOf(std::vector<int>(1, -1)), b = session->BufferOf(std::vector<int>(kCount, 0));
  const Id spin = session->Kernel(program_, "spin"), add = Add(*session, b, 1);
  session->SetBuffer(spin, 0, a);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
  // The first of these is held, and goes on behind the two that run. Then the lane has nothing more to let go.
  int launched = 0;
  for (const auto end = std::chrono::steady_clock::now() + kPatience;
       gate.begun() == 2 && std::chrono::steady_clock::now() < end; ++launched) {
    ASSERT_EQ(session->Launch(queue, add, kCount), CL_SUCCESS);
    ASSERT_TRUE(gate.begun() > 2 || gate.asked().AwaitEntered(launched + 1));
  }
  EXPECT_EQ(gate.begun(), 3);
  EXPECT_EQ(gate.asked().entered(), launched - 1);
  ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);  // Now all of it ends.
  EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), std::vector<int>(kCount, launched));
}

// Launches that took long by accident: what the lane sees of the others is believed. And it is waited for, because
// otherwise it would have some for ever: each time it lets one go, here, there is another one.
TEST_F(SplitLaunch, AloneShortLaunchesAreNotHeldForEverBecauseTheFirstWereLong) {
  BoundedGate gate;
  auto session = NewSession(&gate, "gate");
  const Id queue = session->Queue(), other = session->Queue();
  const Id a = session->BufferOf(std::vector<int>(1, -1));
  const Id spin = session->Kernel(program_, "spin");
  session->SetBuffer(spin, 0, a);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
  EXPECT_EQ(gate.begun(), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);
  std::atomic<bool> done{false};
  std::thread lane([&] {
    for (; !done; std::this_thread::sleep_for(std::chrono::microseconds(20))) gate.asked().Permit(1);
  });
  bool all_launched = true;
  for (int left = 1; left <= 5000 && gate.begun() == 2; ++left) {
    all_launched = all_launched && gate.asked().AwaitLeft(left) && session->Launch(queue, spin, 1) == CL_SUCCESS;
  }
  done = true;
  lane.join();
  EXPECT_TRUE(all_launched);
  EXPECT_GT(gate.begun(), 2);
  gate.asked().SetOpen(true);
  EXPECT_EQ(session->Finish(queue), CL_SUCCESS);
}

TEST_F(SplitLaunch, WhatIsHeldIsWokenByTheDeviceAndByWhoeverComes) {
  for (const bool somebody_comes : {false, true}) {
    BoundedGate gate;
    auto session = NewSession(&gate, "gate,hold=3600000");
    const Id queue = session->Queue(), other = session->Queue();
    const Id a = session->BufferOf(std::vector<int>(1, -1)), b = session->BufferOf(std::vector<int>(kCount, 0));
    const Id spin = session->Kernel(program_, "spin"), add = Add(*session, b, 1);
    session->SetBuffer(spin, 0, a);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(session->Launch(queue, spin, 1), CL_SUCCESS);
    ASSERT_EQ(session->Launch(queue, add, kCount), CL_SUCCESS);
    if (somebody_comes) {
      gate.Close();
      ASSERT_TRUE(gate.asked().AwaitWaiting());
    }
    ASSERT_EQ(session->Write(other, a, BytesOf(std::vector<int>(1, 1))), CL_SUCCESS);
    ASSERT_TRUE(gate.asked().AwaitWaiting());
    gate.asked().Permit(1);
    EXPECT_EQ(session->ReadAs<int>(queue, b, kCount), std::vector<int>(kCount, 1));
  }
}

}  // namespace
}  // namespace hawser::server::ocl
