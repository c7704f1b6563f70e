// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "server/worker/channel_bulk_receiver.h"
#include "tests/unit/server/fake_channel.h"

namespace hawser::server {
namespace {

using std::chrono::milliseconds;
using wire::BulkHeader;

class ChannelBulkReceiverTest : public ::testing::Test {
 protected:
  void Start(uint64_t staging = 1u << 20, milliseconds patience = milliseconds(0)) {
    ChannelBulkReceiver::Options options;
    options.staging_memory = staging;
    options.staging_patience = patience;
    receiver_ = std::make_unique<ChannelBulkReceiver>(&channel_, options,
                                                      [this](const std::string& text) { violation_.set_value(text); });
  }
  void Chunk(uint64_t transfer, uint64_t offset, const std::vector<std::byte>& data, uint16_t flags) {
    const BulkHeader header{transfer, offset, static_cast<uint32_t>(data.size()), flags, 0};
    channel_.Feed(wire::AsBytes(&header, sizeof(header)));
    channel_.Feed(data);
  }
  void Header(BulkHeader header) { channel_.Feed(wire::AsBytes(&header, sizeof(header))); }
  static std::vector<std::byte> Data(size_t size, int seed = 1) {
    std::vector<std::byte> data(size);
    for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
    return data;
  }
  std::function<void(int32_t)> Into(std::promise<int32_t>* promise) {
    return [promise](int32_t status) { promise->set_value(status); };
  }
  std::string Violation() { return violation_.get_future().get(); }

  FakeChannel channel_;
  std::promise<std::string> violation_;
  std::unique_ptr<ChannelBulkReceiver> receiver_;
};

TEST_F(ChannelBulkReceiverTest, PutsBytesStraightIntoTheTarget) {
  Start();
  const auto data = Data(1000);
  std::vector<std::byte> target(1000);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(1, 1000, target.data(), Into(&done)));
  Chunk(1, 0, {data.begin(), data.begin() + 600}, 0);
  Chunk(1, 600, {data.begin() + 600, data.end()}, wire::kBulkLast);
  EXPECT_EQ(done.get_future().get(), 0);
  EXPECT_EQ(target, data);
  EXPECT_EQ(receiver_->staged(), 0u);
  EXPECT_EQ(receiver_->pending(), 0u);
}

TEST_F(ChannelBulkReceiverTest, StagesUntilTheTargetIsKnown) {
  Start();
  const auto data = Data(1000);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(1, 1000, nullptr, Into(&done)));
  Chunk(1, 0, data, wire::kBulkLast);
  channel_.WaitConsumed();
  std::vector<std::byte> target(1000);
  receiver_->SetTarget(1, target.data());
  EXPECT_EQ(done.get_future().get(), 0);
  EXPECT_EQ(target, data);
  EXPECT_EQ(receiver_->staged(), 0u);
}

TEST_F(ChannelBulkReceiverTest, TakesATargetBetweenTwoChunks) {
  Start();
  const auto data = Data(3000);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(5, 3000, nullptr, Into(&done)));
  Chunk(5, 0, {data.begin(), data.begin() + 1000}, 0);
  channel_.WaitConsumed();
  std::vector<std::byte> target(3000);
  receiver_->SetTarget(5, target.data());
  Chunk(5, 1000, {data.begin() + 1000, data.end()}, wire::kBulkLast);
  EXPECT_EQ(done.get_future().get(), 0);
  EXPECT_EQ(target, data);
}

TEST_F(ChannelBulkReceiverTest, RacingTargetsLoseNoByte) {
  Start();
  for (uint64_t transfer = 1; transfer <= 300; ++transfer) {
    const auto data = Data(2000, static_cast<int>(transfer));
    std::vector<std::byte> target(2000);
    std::promise<int32_t> done;
    ASSERT_TRUE(receiver_->Expect(transfer, 2000, nullptr, Into(&done)));
    std::thread feeder([&] {
      Chunk(transfer, 0, {data.begin(), data.begin() + 1500}, 0);
      Chunk(transfer, 1500, {data.begin() + 1500, data.end()}, wire::kBulkLast);
    });
    receiver_->SetTarget(transfer, target.data());
    EXPECT_EQ(done.get_future().get(), 0);
    EXPECT_EQ(target, data);
    feeder.join();
  }
  EXPECT_EQ(receiver_->staged(), 0u);
}

TEST_F(ChannelBulkReceiverTest, ReceiveWaitsForTheData) {
  Start();
  const auto data = Data(500);
  std::thread feeder([&] { Chunk(9, 0, data, wire::kBulkLast); });
  std::vector<std::byte> target(500);
  EXPECT_EQ(receiver_->Receive(9, 500, target.data()), 0);
  EXPECT_EQ(target, data);
  feeder.join();
}

TEST_F(ChannelBulkReceiverTest, ReceiveIsNotStuckBehindDataOfALaterCommand) {
  // The guest's commands are: create buffer (transfer 2), write (transfer 1); the data of the write
  // is first on the bulk channel, and its command is behind the one that waits.
  Start();
  const auto early = Data(700, 3), needed = Data(500, 4);
  Chunk(1, 0, {early.begin(), early.begin() + 300}, 0);
  Chunk(1, 300, {early.begin() + 300, early.end()}, wire::kBulkLast);
  Chunk(2, 0, needed, wire::kBulkLast);
  std::vector<std::byte> target(500);
  EXPECT_EQ(receiver_->Receive(2, 500, target.data()), 0);
  EXPECT_EQ(target, needed);
  std::vector<std::byte> late(700);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(1, 700, late.data(), Into(&done)));
  EXPECT_EQ(done.get_future().get(), 0);
  EXPECT_EQ(late, early);
  EXPECT_EQ(receiver_->staged(), 0u);
}

TEST_F(ChannelBulkReceiverTest, UnknownDataWaitsForItsAnnouncement) {
  Start();
  std::vector<std::byte> target(100);
  std::promise<int32_t> first, second;
  ASSERT_TRUE(receiver_->Expect(1, 100, target.data(), Into(&first)));
  Chunk(1, 0, Data(100), wire::kBulkLast);
  EXPECT_EQ(first.get_future().get(), 0);
  const auto data = Data(100, 8);
  Chunk(2, 0, data, wire::kBulkLast);
  // Only the header is taken; the bytes stay where they are until somebody wants them.
  ASSERT_TRUE(receiver_->Expect(2, 100, target.data(), Into(&second)));
  EXPECT_EQ(second.get_future().get(), 0);
  EXPECT_EQ(target, data);
}

TEST_F(ChannelBulkReceiverTest, AFullStagingFailsOneTransferAndDelaysNobody) {
  Start(/*staging=*/8192);
  std::promise<int32_t> big, next;
  ASSERT_TRUE(receiver_->Expect(1, 100'000, nullptr, Into(&big)));
  std::vector<std::byte> target(100);
  ASSERT_TRUE(receiver_->Expect(2, 100, target.data(), Into(&next)));
  const auto data = Data(100'000);
  for (size_t at = 0; at < data.size(); at += 10'000) {
    Chunk(1, at, {data.begin() + static_cast<ptrdiff_t>(at), data.begin() + static_cast<ptrdiff_t>(at + 10'000)},
          at + 10'000 == data.size() ? uint16_t{wire::kBulkLast} : uint16_t{0});
  }
  Chunk(2, 0, Data(100, 5), wire::kBulkLast);
  EXPECT_EQ(big.get_future().get(), -6);
  EXPECT_EQ(next.get_future().get(), 0);
  EXPECT_EQ(target, Data(100, 5));
  EXPECT_EQ(receiver_->staged(), 0u);
  EXPECT_EQ(receiver_->pending(), 0u);
}

TEST_F(ChannelBulkReceiverTest, DropsWithoutMemoryWhatNobodyWants) {
  Start(/*staging=*/4096);
  ASSERT_TRUE(receiver_->Drop(1, 40000));
  for (uint64_t offset = 0; offset < 40000; offset += 10000) {
    Chunk(1, offset, Data(10000), offset == 30000 ? wire::kBulkLast : 0);
  }
  const auto data = Data(1000, 3);
  std::vector<std::byte> target(1000);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(2, 1000, target.data(), Into(&done)));
  Chunk(2, 0, data, wire::kBulkLast);
  EXPECT_EQ(done.get_future().get(), 0);
  EXPECT_EQ(target, data);
  EXPECT_EQ(receiver_->staged(), 0u);
  EXPECT_EQ(receiver_->pending(), 0u);
  EXPECT_FALSE(receiver_->Drop(1, 40000)) << "a name is used once";
}

TEST_F(ChannelBulkReceiverTest, APatientReceiverWaitsForRoom) {
  Start(/*staging=*/8192, std::chrono::seconds(60));
  std::promise<int32_t> first, second;
  std::vector<std::byte> target(8000), other(8000);
  ASSERT_TRUE(receiver_->Expect(1, 8000, nullptr, Into(&first)));
  ASSERT_TRUE(receiver_->Expect(2, 8000, nullptr, Into(&second)));
  Chunk(1, 0, Data(8000, 1), wire::kBulkLast);
  Chunk(2, 0, Data(8000, 2), wire::kBulkLast);
  receiver_->SetTarget(1, target.data());
  receiver_->SetTarget(2, other.data());
  EXPECT_EQ(first.get_future().get(), 0);
  EXPECT_EQ(second.get_future().get(), 0);
  EXPECT_EQ(other, Data(8000, 2));
}

TEST_F(ChannelBulkReceiverTest, HandsTheGuestsAbortOn) {
  Start();
  std::promise<int32_t> done;
  std::vector<std::byte> target(1000);
  ASSERT_TRUE(receiver_->Expect(1, 1000, target.data(), Into(&done)));
  Chunk(1, 0, Data(10), 0);
  Header({1, static_cast<uint64_t>(int64_t{-38}), 0, wire::kBulkAbort, 0});
  EXPECT_EQ(done.get_future().get(), -38);
}

TEST_F(ChannelBulkReceiverTest, RefusesNamesThatWereUsedAndSizesThatCannotBe) {
  Start();
  std::vector<std::byte> target(10);
  ASSERT_TRUE(receiver_->Expect(4, 10, target.data(), [](int32_t) {}));
  EXPECT_FALSE(receiver_->Expect(4, 10, target.data(), [](int32_t) {}));
  EXPECT_FALSE(receiver_->Expect(0, 10, target.data(), [](int32_t) {}));
  EXPECT_FALSE(receiver_->Expect(5, 0, target.data(), [](int32_t) {}));
  EXPECT_FALSE(receiver_->Expect(6, uint64_t{1} << 60, target.data(), [](int32_t) {}));
}

TEST_F(ChannelBulkReceiverTest, AnEndedStreamFailsWhatIsNotComplete) {
  Start();
  std::promise<int32_t> done;
  std::vector<std::byte> target(1000);
  ASSERT_TRUE(receiver_->Expect(1, 1000, target.data(), Into(&done)));
  Chunk(1, 0, Data(10), 0);
  channel_.FeedEnd();
  EXPECT_EQ(done.get_future().get(), -5);
  EXPECT_EQ(receiver_->Receive(2, 10, target.data()), -5) << "and nobody waits for what cannot come";
}

TEST_F(ChannelBulkReceiverTest, WaitersDoNotOutliveTheGuest) {
  Start();
  std::vector<std::byte> target(10);
  std::thread leaver([&] { channel_.FeedEnd(); });
  EXPECT_EQ(receiver_->Receive(1, 10, target.data()), -5);
  leaver.join();
}

struct Hostile {
  const char* name;
  BulkHeader header;
  size_t payload;
};
class ChannelBulkReceiverHostileTest : public ChannelBulkReceiverTest, public ::testing::WithParamInterface<Hostile> {};

TEST_P(ChannelBulkReceiverHostileTest, EndsTheSession) {
  Start();
  std::vector<std::byte> target(1000, std::byte{0x5a});
  std::atomic<int> done{0};
  ASSERT_TRUE(receiver_->Expect(1, 1000, target.data(), [&](int32_t status) { done += status == -5 ? 1 : 100; }));
  Header(GetParam().header);
  channel_.Feed(std::vector<std::byte>(GetParam().payload));
  EXPECT_FALSE(Violation().empty());
  EXPECT_EQ(done, 1);
  EXPECT_EQ(target, std::vector<std::byte>(1000, std::byte{0x5a})) << "not one byte was written";
}

INSTANTIATE_TEST_SUITE_P(Headers, ChannelBulkReceiverHostileTest,
                         ::testing::Values(Hostile{"BeyondTheEnd", {1, 0, 1001, wire::kBulkLast, 0}, 1001},
                                           Hostile{"WrongOffset", {1, 500, 100, 0, 0}, 100},
                                           Hostile{"HugeOffset", {1, ~uint64_t{0} - 10, 100, 0, 0}, 100},
                                           Hostile{"HugeChunk", {1, 0, wire::kMaxBulkChunk + 1, 0, 0}, 0},
                                           Hostile{"LargestSize", {1, 0, UINT32_MAX, 0, 0}, 0},
                                           Hostile{"EmptyChunk", {1, 0, 0, 0, 0}, 0},
                                           Hostile{"EmptyLastChunk", {1, 0, 0, wire::kBulkLast, 0}, 0},
                                           Hostile{"LastTooEarly", {1, 0, 999, wire::kBulkLast, 0}, 999},
                                           Hostile{"NotLastAtTheEnd", {1, 0, 1000, 0, 0}, 1000},
                                           Hostile{"UnknownFlags", {1, 0, 100, 0x80, 0}, 100},
                                           Hostile{"Reserved", {1, 0, 100, 0, 1}, 100},
                                           Hostile{"AbortWithData", {1, 0, 100, wire::kBulkAbort, 0}, 100},
                                           Hostile{"AbortAndLast", {1, 0, 0, wire::kBulkAbort | wire::kBulkLast, 0}, 0},
                                           Hostile{"NameZero", {0, 0, 100, 0, 0}, 100}),
                         [](const auto& test) { return test.param.name; });

TEST_F(ChannelBulkReceiverTest, DataForAUsedNameEndsTheSession) {
  Start();
  std::vector<std::byte> target(10);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(1, 10, target.data(), Into(&done)));
  Chunk(1, 0, Data(10), wire::kBulkLast);
  EXPECT_EQ(done.get_future().get(), 0);
  Chunk(1, 0, Data(10), wire::kBulkLast);
  EXPECT_NE(Violation().find("used up"), std::string::npos);
}

TEST_F(ChannelBulkReceiverTest, DataBehindTheLastChunkEndsTheSession) {
  Start();
  ASSERT_TRUE(receiver_->Expect(1, 10, nullptr, [](int32_t) {}));
  Chunk(1, 0, Data(10), wire::kBulkLast);
  Chunk(1, 10, Data(10), wire::kBulkLast);
  EXPECT_NE(Violation().find("behind the last"), std::string::npos);
}

TEST_F(ChannelBulkReceiverTest, EarlyDataThatDoesNotFitItsAnnouncementFailsIt) {
  Start();
  Chunk(1, 0, Data(700), wire::kBulkLast);
  Chunk(2, 0, Data(10), wire::kBulkLast);
  std::vector<std::byte> target(10), small(100, std::byte{7});
  ASSERT_EQ(receiver_->Receive(2, 10, target.data()), 0);
  std::promise<int32_t> done;
  ASSERT_TRUE(receiver_->Expect(1, 100, small.data(), Into(&done)));
  EXPECT_EQ(done.get_future().get(), -30);
  EXPECT_EQ(small, std::vector<std::byte>(100, std::byte{7}));
}

TEST_F(ChannelBulkReceiverTest, EarlyDataIsBounded) {
  Start(/*staging=*/20'000);
  for (uint64_t transfer = 10; transfer < 40; ++transfer) Chunk(transfer, 0, Data(4000), wire::kBulkLast);
  Chunk(1, 0, Data(10), wire::kBulkLast);
  std::vector<std::byte> target(10);
  EXPECT_EQ(receiver_->Receive(1, 10, target.data()), 0);
  EXPECT_LE(receiver_->staged(), 20'000u);
}

}  // namespace
}  // namespace hawser::server
