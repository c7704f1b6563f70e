// SPDX-License-Identifier: Apache-2.0
// The small parts of a session, each alone.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "interposer/core/bulk_order.h"
#include "interposer/core/callback_thread.h"
#include "interposer/core/command_trace.h"
#include "interposer/core/id_pools.h"
#include "interposer/core/loss.h"
#include "interposer/core/reply_table.h"
#include "interposer/core/stats_file.h"
#include "interposer/core/transfer_table.h"
#include "proto/opencl/messages.h"

namespace hawser::guest {
namespace {

struct NoReply final : ReplySink {
  void OnReply(wire::Bytes) override {}
  void OnLost() override {}
};

TEST(ReplyTable, KeepsSinksUntilTakenOrClosed) {
  ReplyTable table;
  NoReply a, b;
  EXPECT_TRUE(table.Add(1, &a));
  EXPECT_TRUE(table.Add(2, &b));
  EXPECT_EQ(table.Take(1), &a);
  EXPECT_EQ(table.Take(1), nullptr);
  EXPECT_EQ(table.Close(), std::vector<ReplySink*>{&b});
  EXPECT_FALSE(table.Add(3, &a));
  EXPECT_EQ(table.Take(2), nullptr);
}

TEST(BulkOrder, TurnsComeAsAnnounced) {
  BulkOrder order;
  for (uint64_t transfer = 1; transfer <= 4; ++transfer) order.Announce(transfer);
  std::mutex mutex;
  std::vector<uint64_t> turns;
  std::vector<std::thread> threads;
  for (uint64_t transfer = 4; transfer >= 1; --transfer) {
    threads.emplace_back([&, transfer] {
      EXPECT_TRUE(order.Await(transfer));
      {
        std::lock_guard lock(mutex);
        turns.push_back(transfer);
      }
      order.Done(transfer);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(BulkOrder, WhoWasNotAnnouncedNeedNotWait) {
  BulkOrder order;
  order.Announce(1);
  EXPECT_TRUE(order.Await(9));
  order.Done(9);
  EXPECT_TRUE(order.Await(1));
}

TEST(BulkOrder, LateOnesComeBehindWhatWasBeforeThemAndHoldUpNobody) {
  BulkOrder order;
  order.Expect(2);
  order.Expect(4);
  for (uint64_t transfer = 1; transfer <= 5; ++transfer) order.Announce(transfer);
  std::atomic<bool> first_done{false};
  std::thread late([&] {
    EXPECT_TRUE(order.Await(2));
    EXPECT_TRUE(first_done.load());
  });
  EXPECT_TRUE(order.Await(1));
  first_done = true;
  order.Done(1);
  late.join();  // It has its turn and is not done.
  EXPECT_TRUE(order.Await(3));
  EXPECT_TRUE(order.Await(9));  // Nobody announced it.
  order.Done(3);
  EXPECT_TRUE(order.Await(4));  // Not behind another late one either.
  EXPECT_TRUE(order.Await(5));
  order.Done(4);
  order.Done(5);
  order.Done(2);
  order.Announce(6);
  EXPECT_TRUE(order.Await(6));
}

TEST(BulkOrder, NobodyWaitsOnceItIsOver) {
  BulkOrder order;
  order.Announce(1);
  order.Announce(2);
  std::thread second([&] { EXPECT_FALSE(order.Await(2)); });
  order.Close();
  second.join();
  EXPECT_FALSE(order.Await(1));
}

TEST(Loss, TheFirstReasonCountsAndIsToldOnce) {
  Loss loss;
  std::atomic<int> told{0};
  loss.TellOnce([&](const std::string&) { ++told; });
  EXPECT_EQ(told, 0) << "nothing is lost yet";
  EXPECT_TRUE(loss.Mark("first"));
  EXPECT_FALSE(loss.Mark("second"));
  std::atomic<bool> finished{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      loss.TellOnce([&](const std::string& reason) {
        EXPECT_EQ(reason, "first");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        finished = true;
        ++told;
      });
      EXPECT_TRUE(finished) << "returned before all were told";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 1);
}

TEST(IdPools, TypesAreSeparateAndIdsComeBackNewer) {
  IdPools pools;
  const wire::Id a = pools.New(1), b = pools.New(2), c = pools.New(1);
  EXPECT_EQ(a.type(), 1);
  EXPECT_EQ(b.type(), 2);
  EXPECT_EQ(a.index(), b.index());
  EXPECT_NE(a.index(), c.index());
  pools.Free(a);
  const wire::Id again = pools.New(1);
  EXPECT_EQ(again.index(), a.index());
  EXPECT_GT(again.generation(), a.generation());
  EXPECT_FALSE(pools.New(0));
  EXPECT_FALSE(pools.New(200));
  pools.Free(wire::Id(200, 1, 1));
}

TEST(CallbackThread, RunsInOrder) {
  auto* callbacks = new CallbackThread("test-callback");
  static auto* keep = new std::vector<CallbackThread*>();
  keep->push_back(callbacks);
  std::vector<int> order;
  std::atomic<int> done{0};
  for (int i = 0; i < 1000; ++i) {
    callbacks->Post([&, i] {
      order.push_back(i);
      ++done;
    });
  }
  while (done < 1000) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Stats, AreOneJsonObject) {
  Stats stats;
  stats.commands = 1;
  stats.bytes_up = 2;
  stats.bytes_down = 3;
  stats.waits = 4;
  stats.bulk_up = 5;
  stats.bulk_down = 18446744073709551615u;
  EXPECT_EQ(StatsJson(stats),
            "{\"commands\":1,\"bytes_up\":2,\"bytes_down\":3,\"waits\":4,\"bulk_up\":5,"
            "\"bulk_down\":18446744073709551615}");
}

TEST(CommandTrace, WritesALineForEachCommand) {
  const std::string path = testing::TempDir() + "/hawser-trace-" + std::to_string(::getpid());
  {
    const auto trace = CommandTrace::Open(path, OpenClApi());
    ASSERT_NE(trace, nullptr);
    opencl::Finish message;
    message.queue = wire::Id(2, 1, 3);
    std::byte payload[8];
    wire::Writer writer(payload, sizeof(payload));
    message.Encode(writer);
    trace->Add(17, static_cast<uint16_t>(opencl::Opcode::kFinish), payload);
    trace->Add(18, static_cast<uint16_t>(opencl::Opcode::kFinish), payload);
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ::unlink(path.c_str());
  EXPECT_NE(text.str().find(" #17 clFinish(queue=queue#3.1"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\n", text.str().find(" #18 ")), std::string::npos);
  EXPECT_EQ(CommandTrace::Open("", OpenClApi()), nullptr);
  EXPECT_EQ(CommandTrace::Open("/nowhere/at/all", OpenClApi()), nullptr);
}

}  // namespace
}  // namespace hawser::guest
