// SPDX-License-Identifier: Apache-2.0
// When completions may be shown. Objects are made without a server: nothing here sends.
#include <gtest/gtest.h>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/landing.h"
#include "interposer/opencl/svm_pages.h"

namespace hawser::ocl {
namespace {

class LandingTest : public ::testing::Test {
 protected:
  LandingTest() : queue_(Magic::kQueue, nullptr, wire::Id()), other_(Magic::kQueue, nullptr, wire::Id()) {}

  using Event = std::unique_ptr<_cl_event>;
  /// A command of the queue, with or without a read's data on its way.
  Event Command(cl_command_queue queue, std::vector<cl_event> waits = {}, std::shared_ptr<Landing> own = nullptr,
                cl_command_type type = CL_COMMAND_NDRANGE_KERNEL) {
    auto event = std::make_unique<_cl_event>(Magic::kEvent, nullptr, wire::Id());
    event->queue = queue;
    event->uses.store(100);  // Never destroyed by the book.
    event->landing = own;
    event->after = book_.Before(queue, type, static_cast<cl_uint>(waits.size()), waits.data());
    book_.Sent(queue, type, event->after, own);
    return event;
  }
  bool Held(const Event& event) { return book_.Hold(event.get()); }
  size_t Land(const std::shared_ptr<Landing>& landing) { return book_.Land(landing, CL_SUCCESS).size(); }

  LandingBook book_;
  _cl_command_queue queue_, other_;
};

TEST_F(LandingTest, NothingOnItsWayHoldsNothing) {
  const Event event = Command(&queue_);
  EXPECT_FALSE(Held(event));
  EXPECT_TRUE(book_.Empty());
}

TEST_F(LandingTest, AReadIsHeldUntilItsOwnDataLands) {
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  EXPECT_TRUE(Held(read));
  const auto free = book_.Land(data, CL_SUCCESS);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0], read.get());
  EXPECT_TRUE(book_.Empty());
  EXPECT_EQ(Land(data), 0u);  // Once.
}

TEST_F(LandingTest, DataThatLandedFirstHoldsNothing) {
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  EXPECT_TRUE(book_.Land(data, -5).empty());
  EXPECT_FALSE(Held(read));
  EXPECT_EQ(data->failure, -5);
}

TEST_F(LandingTest, LaterCommandsOfAnInOrderQueueWaitForEarlierReads) {
  const Event before = Command(&queue_);
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  const Event after = Command(&queue_);
  const Event elsewhere = Command(&other_);
  EXPECT_FALSE(Held(before));
  EXPECT_FALSE(Held(elsewhere));
  EXPECT_TRUE(Held(after));
  EXPECT_EQ(Land(data), 1u);
}

TEST_F(LandingTest, WhoeverWaitsForAReadIsHeldHoweverItIsAnnounced) {
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  const Event waiting = Command(&other_, {read.get()});
  const Event behind = Command(&other_);                 // In order behind one that waits.
  EXPECT_TRUE(Held(waiting));                            // Before the read itself is announced.
  const Event late = Command(&queue_, {waiting.get()});  // Waits for one that is held.
  EXPECT_TRUE(Held(behind));
  EXPECT_TRUE(Held(read));
  EXPECT_TRUE(Held(late));
  EXPECT_EQ(Land(data), 4u);
}

TEST_F(LandingTest, OutOfOrderCommandsPassReadsThatTheyDoNotWaitFor) {
  queue_.properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  const Event passing = Command(&queue_);
  const Event waiting = Command(&queue_, {read.get()});
  EXPECT_FALSE(Held(passing));
  EXPECT_TRUE(Held(waiting));
  EXPECT_EQ(Land(data), 1u);
}

TEST_F(LandingTest, BarriersOrderOutOfOrderQueuesAndMarkersWaitForAll) {
  queue_.properties = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  const Event marker = Command(&queue_, {}, nullptr, CL_COMMAND_MARKER);
  const Event passing = Command(&queue_);
  const Event barrier = Command(&queue_, {}, nullptr, CL_COMMAND_BARRIER);
  const Event behind = Command(&queue_);
  EXPECT_TRUE(Held(marker));
  EXPECT_FALSE(Held(passing));
  EXPECT_TRUE(Held(barrier));
  EXPECT_TRUE(Held(behind));
  EXPECT_EQ(Land(data), 3u);
}

TEST_F(LandingTest, SeveralReadsHoldUntilTheLast) {
  auto first = book_.Open();
  auto second = book_.Open();
  const Event one = Command(&queue_, {}, first);
  const Event two = Command(&queue_, {}, second);
  const Event event = Command(&queue_);
  EXPECT_TRUE(Held(event));
  EXPECT_EQ(Land(second), 0u);
  EXPECT_EQ(Land(first), 1u);
}

TEST_F(LandingTest, AFinishAwaitsWhatItsQueueComesAfter) {
  auto data = book_.Open();
  const Event read = Command(&queue_, {}, data);
  EXPECT_TRUE(book_.Of(&other_).empty());
  const Event waiting = Command(&other_, {read.get()});
  const Landings covered = book_.Of(&other_);
  EXPECT_EQ(covered.size(), 1u);
  EXPECT_FALSE(LandingBook::Landed(covered));
  Land(data);
  EXPECT_TRUE(LandingBook::Landed(covered));
  EXPECT_TRUE(book_.Of(&queue_).empty());
}

TEST_F(LandingTest, ACopyThatIsDoneWhenItsEventCompletesDoesNotHoldIt) {
  auto copy = book_.Open();
  const Event map = Command(&queue_, {}, copy);
  const Event behind = Command(&queue_);
  EXPECT_TRUE(Held(behind));
  EXPECT_EQ(Land(copy), 1u);
  EXPECT_FALSE(Held(map));
  EXPECT_TRUE(book_.Of(&queue_).empty());
}

TEST(SvmPagesTest, MapsExactlyThereAndSharesPages) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a process that maps memory at an address it did not choose itself";
#endif
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

TEST_F(LandingTest, CallsWhenTheLastReadOfSomeMemoryHasLanded) {
  std::vector<std::byte> memory(100);
  auto first = book_.Open(memory.data(), 50);
  auto second = book_.Open(memory.data() + 50, 50);
  auto elsewhere = book_.Open();
  const Landings all = {first, second, elsewhere};
  EXPECT_EQ(LandingBook::Overlapping(all, memory.data(), 50), (Landings{first}));
  EXPECT_EQ(LandingBook::Overlapping(all, memory.data() + 49, 2), (Landings{first, second}));
  EXPECT_TRUE(LandingBook::Overlapping(all, memory.data(), 0).empty());
  int calls = 0;
  book_.Then({first, second}, [&calls] { ++calls; });
  book_.Land(elsewhere, CL_SUCCESS);
  book_.Land(second, CL_SUCCESS);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(LandingBook::Overlapping(all, memory.data() + 49, 2), (Landings{first}));
  book_.Land(first, CL_OUT_OF_RESOURCES);
  EXPECT_EQ(calls, 1);
  book_.Then({first, second}, [&calls] { ++calls; });  // All have.
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace hawser::ocl
