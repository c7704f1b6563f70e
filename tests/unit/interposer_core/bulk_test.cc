// SPDX-License-Identifier: Apache-2.0
// Bulk data in both directions, over each transport.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::guest {
namespace {

using opencl::Opcode;
using wire::FrameHeader;

std::vector<std::byte> Pattern(size_t size, uint64_t seed) {
  std::vector<std::byte> data(size);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>((i * 31 + seed * 7 + (i >> 8)) & 0xff);
  return data;
}

/// Receives straight into a vector.
class VectorSink final : public BulkSink {
 public:
  explicit VectorSink(size_t size) : data(size) {}
  std::byte* Place(uint64_t offset, uint32_t size) override {
    return offset <= data.size() && size <= data.size() - offset ? data.data() + offset : nullptr;
  }
  void OnChunk(uint64_t, uint32_t size) override { bytes += size; }
  void OnEnd(int32_t code) override {
    status = code;
    ended.store(true, std::memory_order_release);
  }
  std::vector<std::byte> data;
  uint64_t bytes = 0;
  int32_t status = 1;
  std::atomic<bool> ended{false};
};

class BulkTest : public testing::TestWithParam<wire::Transport> {};

TEST_P(BulkTest, SentInChunks) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{9'000'000}}) {
    const std::vector<std::byte> data = Pattern(size, size);
    const uint64_t transfer = session->NewTransfer();
    std::thread sender([&, s = session] {
      if (size % 2 == 0) {
        EXPECT_EQ(s->SendBulk(transfer, data), 0);
      } else {
        EXPECT_EQ(s->SendBulkFrom(transfer, size, [&](uint64_t offset, uint32_t) { return data.data() + offset; }), 0);
      }
    });
    uint64_t got_transfer = 0;
    EXPECT_EQ(peer->ReceiveBulk(&got_transfer), data);
    EXPECT_EQ(got_transfer, transfer);
    sender.join();
  }
  EXPECT_EQ(session->stats().bulk_up, 0u + 1 + 65536 + 65537 + 9'000'000);
}

TEST_P(BulkTest, CommandsGoAheadOfTheirData) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  opencl::WriteBuffer message;
  message.transfer = session->NewTransfer();
  const std::vector<std::byte> data = Pattern(1000, 1);
  ASSERT_EQ(session->Send(message), 0);
  ASSERT_EQ(session->SendBulk(message.transfer, data), 0);
  uint64_t transfer = 0;
  ASSERT_EQ(peer->ReceiveBulk(&transfer), data);
  // The data is here, so the command must be too.
  std::byte header[sizeof(FrameHeader)];
  EXPECT_TRUE(peer->command->WaitReadable({}, std::chrono::seconds(0)).ok());
  EXPECT_EQ(*peer->command->TryRead(header), sizeof(header));
}

// What the server has met the commands of must not lie behind data that it cannot take yet.
TEST_P(BulkTest, DataComesInTheOrderOfTheCommands) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  opencl::WriteBuffer first, second;
  first.transfer = session->NewTransfer();
  second.transfer = session->NewTransfer();
  ASSERT_EQ(session->Send(second), 0);  // The commands' order counts, not that of the names.
  ASSERT_EQ(session->Send(first), 0);
  const std::vector<std::byte> data = Pattern(1000, 1), other = Pattern(1000, 2);
  std::thread sender([&, s = session] { EXPECT_EQ(s->SendBulk(first.transfer, data), 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // So that it would be first.
  EXPECT_EQ(session->SendBulk(second.transfer, other), 0);
  sender.join();
  uint64_t transfer = 0;
  EXPECT_EQ(peer->ReceiveBulk(&transfer), other);
  EXPECT_EQ(peer->ReceiveBulk(&transfer), data);
}

// The server may wait for the data before it reads another command.
TEST_P(BulkTest, DataNeedsNoRoomForCommands) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  opencl::WriteBuffer message;
  message.transfer = session->NewTransfer();
  ASSERT_EQ(session->Send(message), 0);
  std::atomic<bool> enough{false};
  std::thread flood([&, s = session] {
    const std::vector<std::byte> bytes(300);  // Gathered, so that there is something to flush.
    opencl::WriteBuffer small;
    small.data = bytes;
    while (!enough.load() && s->Send(small) == 0) {
    }
  });
  uint64_t sent = 0;
  do {
    sent = session->stats().commands;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (sent != session->stats().commands);
  const std::vector<std::byte> data = Pattern(300'000, 1);
  std::thread sender([&, s = session] { EXPECT_EQ(s->SendBulk(message.transfer, data), 0); });
  uint64_t transfer = 0;
  EXPECT_EQ(peer->ReceiveBulk(&transfer), data);
  sender.join();
  enough = true;
  peer->Serve([](const FrameHeader&, wire::Bytes) {});
  flood.join();
}

TEST_P(BulkTest, ReceivedWhereTheSinkSays) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70'000}, size_t{5'000'000}}) {
    const std::vector<std::byte> data = Pattern(size, size + 1);
    VectorSink sink(size);
    const uint64_t transfer = session->NewTransfer();
    session->ExpectBulk(transfer, &sink);
    std::thread sender([&, p = peer.get()] { p->SendBulk(transfer, data, 65'536); });
    EXPECT_EQ(session->WaitBulkUntil([&] { return sink.ended.load(); }), 0);
    sender.join();
    EXPECT_EQ(sink.status, 0);
    EXPECT_EQ(sink.bytes, size);
    EXPECT_EQ(sink.data, data);
  }
}

TEST_P(BulkTest, AbortedWithACode) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  VectorSink sink(100);
  session->ExpectBulk(5, &sink);
  peer->AbortBulk(4, -1);  // Nobody expects that one: ignored.
  peer->AbortBulk(5, -14);
  EXPECT_EQ(session->WaitBulkUntil([&] { return sink.ended.load(); }), 0);
  EXPECT_EQ(sink.status, -14);
  EXPECT_FALSE(session->lost());
}

TEST_P(BulkTest, InTheBackground) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::byte> data = Pattern(100'000, static_cast<uint64_t>(round));
    VectorSink one(data.size()), two(data.size());
    const uint64_t first = session->NewTransfer(), second = session->NewTransfer();
    session->ExpectBulk(first, &one);
    session->ExpectBulk(second, &two);
    session->ReceiveBulkInBackground();
    session->ReceiveBulkInBackground();
    std::thread sender([&, p = peer.get()] {
      p->SendBulk(first, data, 30'000);
      p->SendBulk(second, data, 30'000);
    });
    // The second one is waited for while the background thread receives.
    EXPECT_EQ(session->WaitBulkUntil([&] { return two.ended.load(); }), 0);
    sender.join();
    while (!one.ended) std::this_thread::yield();
    ASSERT_EQ(one.data, data);
    ASSERT_EQ(two.data, data);
  }
}

TEST_P(BulkTest, DataThatNobodyExpectsEndsTheSession) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  peer->SendBulk(99, Pattern(10, 1), 10);
  EXPECT_EQ(session->WaitBulkUntil([] { return false; }), Session::lost_code());
}

TEST_P(BulkTest, MoreDataThanFitsEndsTheSession) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  VectorSink sink(10);
  session->ExpectBulk(1, &sink);
  peer->SendBulk(1, Pattern(11, 1), 11);
  EXPECT_EQ(session->WaitBulkUntil([] { return false; }), Session::lost_code());
  EXPECT_TRUE(sink.ended);
  EXPECT_EQ(sink.status, Session::lost_code());
}

TEST_P(BulkTest, LossInTheMiddleReachesTheSink) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  VectorSink sink(1000);
  session->ExpectBulk(1, &sink);
  wire::BulkHeader header;
  header.transfer = 1;
  header.size = 1000;
  ASSERT_TRUE(peer->bulk->WriteAll(wire::AsBytes(&header, sizeof(header)), false).ok());
  ASSERT_TRUE(peer->bulk->WriteAll(Pattern(500, 1)).ok());
  std::thread breaker([p = peer.get()] { p->Stop(); });
  EXPECT_EQ(session->WaitBulkUntil([&] { return false; }), Session::lost_code());
  breaker.join();
  EXPECT_TRUE(sink.ended);
  EXPECT_EQ(sink.status, Session::lost_code());
}

TEST_P(BulkTest, CancelledTransfersAreForgotten) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  VectorSink cancelled(10), late(10), told(10);
  session->ExpectBulk(1, &cancelled);
  EXPECT_TRUE(session->CancelBulk(1));
  session->ExpectBulk(2, &told);
  peer->Stop();
  EXPECT_EQ(session->WaitUntil([] { return false; }), Session::lost_code());
  EXPECT_FALSE(cancelled.ended);
  EXPECT_TRUE(told.ended);
  EXPECT_FALSE(session->CancelBulk(2)) << "it has heard of the end already";
  session->ExpectBulk(3, &late);
  EXPECT_TRUE(session->CancelBulk(3));
  EXPECT_FALSE(late.ended);
}

// Both directions and the command channel at once, from several threads.
TEST_P(BulkTest, BothWaysBesideCommands) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  Peer* const p = peer.get();
  std::mutex sending;
  std::atomic<int> received{0};
  constexpr int kUp = 30, kDown = 30;
  std::thread receiver([&] {
    for (int i = 0; i < 2 * kUp; ++i) {
      uint64_t transfer = 0;
      const std::vector<std::byte> data = p->ReceiveBulk(&transfer);
      if (data == Pattern(200'000 + transfer, transfer)) ++received;
    }
  });
  p->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    if (header.opcode == static_cast<uint16_t>(Opcode::kEnqueueReadBuffer)) {
      opencl::ReadBuffer read;
      wire::Reader reader(payload);
      read.Decode(reader);
      std::lock_guard lock(sending);
      p->SendBulk(read.transfer, Pattern(read.size, read.transfer), 50'000);
    } else if (header.opcode == static_cast<uint16_t>(Opcode::kFinish)) {
      p->Reply(header, opencl::Status());
    }
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, s = session] {
      for (int i = 0; i < kUp; ++i) {
        const uint64_t transfer = s->NewTransfer();
        if (s->SendBulk(transfer, Pattern(200'000 + transfer, transfer)) != 0) ++wrong;
      }
    });
    threads.emplace_back([&, s = session] {
      for (int i = 0; i < kDown; ++i) {
        opencl::ReadBuffer read;
        read.transfer = s->NewTransfer();
        read.size = 300'000;
        VectorSink sink(read.size);
        s->ExpectBulk(read.transfer, &sink);
        if (s->Send(read) != 0) ++wrong;
        s->Flush();
        if (s->WaitBulkUntil([&] { return sink.ended.load(); }) != 0) ++wrong;
        if (sink.data != Pattern(read.size, read.transfer)) ++wrong;
      }
    });
    threads.emplace_back([&, s = session] {
      for (int i = 0; i < 300; ++i) {
        opencl::Status status;
        if (s->CallInto(Opcode::kFinish, opencl::Finish(), &status) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  receiver.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(received, 2 * kUp);
  p->Stop();
}

std::string Name(const testing::TestParamInfo<wire::Transport>& info) {
  return std::string(wire::TransportName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Transports, BulkTest,
                         testing::Values(wire::Transport::kShm, wire::Transport::kUnix, wire::Transport::kTcp), Name);

}  // namespace
}  // namespace hawser::guest
