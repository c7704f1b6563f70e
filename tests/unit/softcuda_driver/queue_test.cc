// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace hawser::soft {
namespace {

/// Queues live as long as the process: their threads are never joined.
Queue& TheQueue() {
  static auto* const queue = new Queue;
  return *queue;
}

TEST(SoftQueue, NothingIsDone) {
  EXPECT_TRUE(TheQueue().Done(nullptr));
  TheQueue().Wait(nullptr);
  const OperationPtr marker = TheQueue().Submit(nullptr, {});
  EXPECT_TRUE(TheQueue().Done(marker));
}

TEST(SoftQueue, RunsInTheOrderOfDependencies) {
  Queue& queue = TheQueue();
  std::vector<int> order;  // Each writes after the one before: no lock is needed.
  OperationPtr last;
  for (int i = 0; i < 500; ++i) {
    const OperationPtr after[] = {last, nullptr};
    last = queue.Submit([&order, i] { order.push_back(i); }, after);
  }
  queue.Wait(last);
  ASSERT_EQ(order.size(), 500U);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(SoftQueue, OperationsThatWaitForEachOtherDoNotBlockTheRest) {
  Queue& queue = TheQueue();
  constexpr int kCount = 20;
  std::latch all(kCount);  // Each needs all others to be running.
  std::vector<OperationPtr> operations;
  for (int i = 0; i < kCount; ++i) operations.push_back(queue.Submit([&all] { all.arrive_and_wait(); }, {}));
  for (const OperationPtr& operation : operations) queue.Wait(operation);
}

TEST(SoftQueue, MarkersJoin) {
  Queue& queue = TheQueue();
  std::latch go(1);
  const OperationPtr first = queue.Submit([&go] { go.wait(); }, {});
  const OperationPtr second = queue.Submit([] {}, {});
  const OperationPtr both[] = {first, second};
  const OperationPtr marker = queue.Submit(nullptr, both);
  queue.Wait(second);
  EXPECT_FALSE(queue.Done(marker));
  go.count_down();
  queue.Wait(marker);
  EXPECT_TRUE(queue.Done(first));
  EXPECT_GE(queue.Finished(marker), queue.Finished(first));
}

TEST(SoftQueue, HeldWorkBlocksWhatComesAfter) {
  Queue& queue = TheQueue();
  std::latch go(1);
  const OperationPtr before[] = {queue.Submit([&go] { go.wait(); }, {})};
  const OperationPtr held[] = {queue.Hold(before)};
  EXPECT_FALSE(queue.Ready(held[0]));
  std::atomic<bool> ran{false};
  const OperationPtr after = queue.Submit([&ran] { ran = true; }, held);
  go.count_down();
  queue.Await(held[0]);
  EXPECT_TRUE(queue.Done(before[0]));
  EXPECT_FALSE(ran);
  EXPECT_FALSE(queue.Done(held[0]));
  queue.Finish(held[0]);
  queue.Wait(after);
  EXPECT_TRUE(ran);
}

TEST(SoftQueue, ManyThreadsSubmit) {
  Queue& queue = TheQueue();
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      OperationPtr last;
      for (int i = 0; i < 500; ++i) {
        const OperationPtr after[] = {last};
        last = queue.Submit([&count] { ++count; }, after);
      }
      queue.Wait(last);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 2000);
}

}  // namespace
}  // namespace hawser::soft
