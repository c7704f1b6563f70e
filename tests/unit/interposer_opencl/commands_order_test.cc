// SPDX-License-Identifier: Apache-2.0
// What a completion says of other commands.
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/event_state.h"
#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::ocl {
namespace {

class OrderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [session, peer] = server_.Connect();
    session_ = session;
    peer_ = std::move(peer);
  }
  void TearDown() override {
    for (const auto& event : events_) Registry::Get().Remove(event.get());
  }

  /// The next command of the queue.
  cl_event Command(cl_command_queue queue, std::initializer_list<cl_event> waits = {}) {
    const auto index = static_cast<uint32_t>(1000 + events_.size());
    events_.push_back(
        std::make_unique<_cl_event>(Magic::kEvent, session_, wire::Id(HandleTraits<cl_event>::kType, 1, index)));
    cl_event event = events_.back().get();
    event->queue = queue;
    event->queue_position = queue->sent.fetch_add(1) + 1;
    event->queue_bound = event->queue_position;
    event->uses.store(100);  // Never destroyed.
    for (cl_event waited : waits) event->waits.push_back(waited->id);
    Registry::Get().Add(event);
    return event;
  }

  guest::FakeServer server_{wire::Transport::kUnix};
  guest::Session* session_ = nullptr;  // Never destroyed.
  std::unique_ptr<guest::Peer> peer_;
  std::vector<std::unique_ptr<_cl_event>> events_;
  _cl_command_queue queue_{Magic::kQueue, nullptr, wire::Id()}, other_{Magic::kQueue, nullptr, wire::Id()};
};

TEST_F(OrderTest, ACompletionSaysThatAllBeforeItInItsQueueAre) {
  cl_event first = Command(&queue_), second = Command(&queue_), third = Command(&queue_);
  cl_event elsewhere = Command(&other_);
  EXPECT_FALSE(IsDue(first));
  ShowFinal(second, CL_COMPLETE);
  EXPECT_TRUE(IsDue(first));
  EXPECT_FALSE(IsDue(third));
  EXPECT_FALSE(IsDue(elsewhere));
  EXPECT_GT(StatusOf(first), CL_COMPLETE) << "how it ended is for the server to say";
}

TEST_F(OrderTest, WhichOfTwoThreadsWasFirstIsNotKnown) {
  cl_event one = Command(&queue_), other = Command(&queue_), later = Command(&queue_);
  // Both were sent at the same time: each may be the second.
  other->queue_position = one->queue_position;
  one->queue_bound = other->queue_bound;
  ShowFinal(one, CL_COMPLETE);
  EXPECT_FALSE(IsDue(other)) << "whoever polls it would wait for it";
  ShowFinal(later, CL_COMPLETE);
  EXPECT_TRUE(IsDue(other));
}

TEST_F(OrderTest, AFailureSaysNothingOfOthers) {
  cl_event first = Command(&queue_), second = Command(&queue_, {}), waited = Command(&other_);
  second->waits.push_back(waited->id);
  ShowFinal(second, CL_OUT_OF_RESOURCES);
  EXPECT_FALSE(IsDue(first));
  EXPECT_FALSE(IsDue(waited));
  EXPECT_EQ(queue_.finished.load(), 0u) << "the queue is not idle";
}

TEST_F(OrderTest, OutOfOrderOnlyWhatWasWaitedFor) {
  queue_.properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  cl_event waited = Command(&queue_), passed = Command(&queue_), elsewhere = Command(&other_);
  cl_event waiting = Command(&queue_, {waited, elsewhere});
  ShowFinal(waiting, CL_COMPLETE);
  EXPECT_TRUE(IsDue(waited));
  EXPECT_TRUE(IsDue(elsewhere));
  EXPECT_FALSE(IsDue(passed));
  AdvanceFinished(&queue_, 3);  // clFinish
  EXPECT_TRUE(IsDue(passed));
}

TEST_F(OrderTest, WhatWasWaitedForMayBeGone) {
  cl_event waited = Command(&other_), waiting = Command(&queue_, {waited});
  Registry::Get().Remove(waited);
  ShowFinal(waiting, CL_COMPLETE);
  EXPECT_FALSE(IsDue(waited));
  EXPECT_EQ(StatusOf(waiting), CL_COMPLETE);
}

}  // namespace
}  // namespace hawser::ocl
