// SPDX-License-Identifier: Apache-2.0
// When completions may be shown. Objects are made without a server: nothing here sends.
#include "interposer/opencl/landing.h"

#include <gtest/gtest.h>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/svm_pages.h"

namespace hawser::ocl {
namespace {

class LandingTest : public ::testing::Test {
 protected:
  LandingTest() : queue_(Magic::kQueue, nullptr, wire::Id()), other_(Magic::kQueue, nullptr, wire::Id()) {}

  /// Complete once `before` commands of the queue and itself are.
  std::unique_ptr<_cl_event> Event(cl_command_queue queue, uint64_t before) {
    auto event = std::make_unique<_cl_event>(Magic::kEvent, nullptr, wire::Id());
    event->queue = queue;
    event->queue_position = before + 1;
    event->uses.store(100);  // Never destroyed by the book.
    return event;
  }
  std::shared_ptr<Landing> Read(cl_command_queue queue, uint64_t ordinal) {
    auto landing = book_.Open(queue);
    book_.Sent(*landing, ordinal);
    return landing;
  }

  LandingBook book_;
  _cl_command_queue queue_, other_;
};

TEST_F(LandingTest, NothingOnItsWayHoldsNothing) {
  auto event = Event(&queue_, 0);
  EXPECT_FALSE(book_.Hold(event.get()));
  EXPECT_TRUE(book_.Empty());
}

TEST_F(LandingTest, AReadIsHeldUntilItsOwnDataLands) {
  auto event = Event(&queue_, 0);
  event->landing = Read(&queue_, 1);
  EXPECT_TRUE(book_.Hold(event.get()));
  const auto free = book_.Land(event->landing, CL_SUCCESS);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0], event.get());
}

TEST_F(LandingTest, DataThatLandedFirstHoldsNothing) {
  auto event = Event(&queue_, 0);
  event->landing = Read(&queue_, 1);
  EXPECT_TRUE(book_.Land(event->landing, -5).empty());
  EXPECT_FALSE(book_.Hold(event.get()));
  EXPECT_EQ(event->landing->failure, -5);
}

TEST_F(LandingTest, LaterCommandsOfAnInOrderQueueWaitForEarlierReads) {
  auto read = Read(&queue_, 3);
  auto before = Event(&queue_, 2);
  auto after = Event(&queue_, 3);
  EXPECT_FALSE(book_.Hold(before.get()));
  EXPECT_TRUE(book_.Hold(after.get()));
  EXPECT_EQ(book_.Land(read, CL_SUCCESS).size(), 1u);
}

TEST_F(LandingTest, OutOfOrderQueuesAndOtherQueuesDoNotWaitForUnannouncedReads) {
  queue_.properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  auto read = Read(&queue_, 1);
  EXPECT_FALSE(book_.Hold(Event(&queue_, 1).get()));
  EXPECT_FALSE(book_.Hold(Event(&other_, 1).get()));
  book_.Land(read, CL_SUCCESS);
}

TEST_F(LandingTest, WhateverIsAnnouncedAfterAReadWaitsForIt) {
  auto read_event = Event(&queue_, 0);
  read_event->landing = Read(&queue_, 1);
  EXPECT_TRUE(book_.Hold(read_event.get()));
  auto dependent = Event(&other_, 0);  // Perhaps because it waited for the read's event.
  EXPECT_TRUE(book_.Hold(dependent.get()));
  EXPECT_EQ(book_.Land(read_event->landing, CL_SUCCESS).size(), 2u);
}

TEST_F(LandingTest, SeveralReadsHoldUntilTheLast) {
  auto first = Read(&queue_, 1);
  auto second = Read(&queue_, 2);
  auto event = Event(&queue_, 2);
  EXPECT_TRUE(book_.Hold(event.get()));
  EXPECT_TRUE(book_.Land(second, CL_SUCCESS).empty());
  EXPECT_EQ(book_.Land(first, CL_SUCCESS).size(), 1u);
  EXPECT_TRUE(book_.Land(first, CL_SUCCESS).empty());  // Once.
}

TEST_F(LandingTest, ClearAsksForCoveredReadsOnly) {
  auto covered = Read(&queue_, 2);
  auto later = Read(&queue_, 5);
  const uint64_t mark = book_.Mark();
  EXPECT_FALSE(book_.Clear(&queue_, 2, mark));
  EXPECT_TRUE(book_.Clear(&queue_, 1, mark));
  EXPECT_TRUE(book_.Clear(&other_, 9, mark));
  book_.Land(covered, CL_SUCCESS);
  EXPECT_TRUE(book_.Clear(&queue_, 2, mark));
  book_.Land(later, CL_SUCCESS);
  EXPECT_TRUE(book_.Empty());
}

TEST_F(LandingTest, ClearAsksForAnnouncedReadsOfOtherQueues) {
  auto event = Event(&queue_, 0);
  event->landing = Read(&queue_, 1);
  const uint64_t mark = book_.Mark();
  EXPECT_TRUE(book_.Clear(&other_, 9, mark));
  EXPECT_TRUE(book_.Hold(event.get()));
  EXPECT_FALSE(book_.Clear(&other_, 9, mark));
  EXPECT_TRUE(book_.Clear(&other_, 9, event->landing->serial));  // Opened after the mark.
  book_.Land(event->landing, CL_SUCCESS);
}

TEST_F(LandingTest, ACopyThatFollowsItsEventDoesNotHoldIt) {
  auto event = Event(&queue_, 0);
  event->landing = book_.Open(&queue_, /*follows_event=*/true);
  book_.Sent(*event->landing, 1);
  EXPECT_FALSE(book_.Hold(event.get()));
  EXPECT_FALSE(book_.Clear(&queue_, 1, book_.Mark()));
  book_.Land(event->landing, CL_SUCCESS);
  EXPECT_TRUE(book_.Clear(&queue_, 1, book_.Mark()));
}

TEST(SvmPagesTest, MapsExactlyThereAndSharesPages) {
  SvmPages pages;
  constexpr uintptr_t kBase = 0x6f0000000000;
  constexpr size_t kPage = 4096;
  ASSERT_TRUE(pages.Map(kBase + 100, 200));
  ASSERT_TRUE(pages.Map(kBase + 3000, 3 * kPage));  // Shares the first page.
  auto* bytes = reinterpret_cast<std::byte*>(kBase);
  bytes[100] = std::byte{1};
  bytes[3000 + 3 * kPage - 1] = std::byte{2};
  pages.Unmap(kBase + 100, 200);
  EXPECT_EQ(bytes[100], std::byte{1});  // Still the other's.
  SvmPages stranger;
  EXPECT_FALSE(stranger.Map(kBase + kPage, kPage));  // Taken.
  EXPECT_FALSE(stranger.Map(kBase - 4 * kPage, 6 * kPage));
  pages.Unmap(kBase + 3000, 3 * kPage);
  EXPECT_TRUE(stranger.Map(kBase - 4 * kPage, 6 * kPage));
  stranger.Unmap(kBase - 4 * kPage, 6 * kPage);
}

}  // namespace
}  // namespace hawser::ocl
