// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "server/worker/channel_replies.h"
#include "tests/unit/server/fake_channel.h"
#include "wire/frame.h"

namespace hawser::server {
namespace {

using opencl::Opcode;

struct Seen {
  wire::FrameHeader header;
  std::vector<std::byte> payload;
};

std::vector<Seen> Cut(const std::vector<std::byte>& bytes) {
  std::vector<Seen> frames;
  size_t at = 0;
  while (at + sizeof(wire::FrameHeader) <= bytes.size()) {
    Seen seen;
    std::memcpy(&seen.header, bytes.data() + at, sizeof(seen.header));
    at += sizeof(seen.header);
    if (at + seen.header.size > bytes.size()) break;
    seen.payload.assign(bytes.begin() + static_cast<ptrdiff_t>(at),
                        bytes.begin() + static_cast<ptrdiff_t>(at + seen.header.size));
    at += seen.header.size;
    frames.push_back(std::move(seen));
  }
  EXPECT_EQ(at, bytes.size());
  return frames;
}

opencl::ReadReply Reply(const std::vector<std::byte>& data) {
  opencl::ReadReply reply;
  reply.data = data;
  return reply;
}

TEST(ChannelReplies, SendsAFrameWithItsNumber) {
  FakeChannel channel;
  ChannelReplies replies(&channel, 1000, nullptr);
  opencl::Status status;
  status.status = -5;
  replies.Send(Opcode::kFinish, 7, status, true);
  const std::vector<Seen> frames = Cut(channel.Take());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].header.opcode, static_cast<uint16_t>(Opcode::kFinish));
  EXPECT_EQ(frames[0].header.seq, 7u);
  opencl::Status decoded;
  wire::Reader reader(frames[0].payload);
  EXPECT_TRUE(decoded.Decode(reader));
  EXPECT_EQ(decoded.status, -5);
}

TEST(ChannelReplies, FlushesOnlyWhenAsked) {
  FakeChannel channel;
  ChannelReplies replies(&channel, 1000, nullptr);
  replies.Send(Opcode::kFinish, 1, opencl::Status{}, false);
  EXPECT_EQ(channel.flushes(), 0);
  replies.Flush();
  EXPECT_EQ(channel.flushes(), 1);
  replies.Flush();
  EXPECT_EQ(channel.flushes(), 1) << "nothing was kept";
}

TEST(ChannelReplies, KeepsWhatTheGuestDoesNotTakeAndSendsItInOrder) {
  FakeChannel channel;
  channel.SetCapacity(10);
  ChannelReplies replies(&channel, 1u << 20, [](const wire::Status&) { ADD_FAILURE(); });
  const std::vector<std::byte> data(5000, std::byte{3});
  for (uint64_t seq = 1; seq <= 100; ++seq) replies.Send(Opcode::kEnqueueReadBuffer, seq, Reply(data), true);
  EXPECT_GT(replies.backlog(), 100u * 4000);
  channel.SetCapacity(SIZE_MAX);
  const size_t total = 100 * (16 + 8 + data.size());
  const std::vector<Seen> frames = Cut(channel.TakeAtLeast(total));
  ASSERT_EQ(frames.size(), 100u);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(frames[i].header.seq, i + 1);
  EXPECT_EQ(replies.backlog(), 0u);
}

TEST(ChannelReplies, EndsTheSessionOfAGuestThatReadsNothing) {
  FakeChannel channel;
  channel.SetCapacity(0);
  std::atomic<int> ends{0};
  wire::Code code = wire::Code::kOk;
  ChannelReplies replies(&channel, 10000, [&](const wire::Status& status) {
    ++ends;
    code = status.code();
  });
  const std::vector<std::byte> data(3000, std::byte{3});
  for (int i = 0; i < 10; ++i) replies.Send(Opcode::kEnqueueReadBuffer, 1, Reply(data), true);
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(code, wire::Code::kExhausted);
  EXPECT_EQ(replies.backlog(), 0u) << "memory is given back at once";
  channel.Shutdown();
}

TEST(ChannelReplies, SaysOnceThatTheGuestIsGone) {
  FakeChannel channel;
  channel.Shutdown();
  int ends = 0;
  ChannelReplies replies(&channel, 1000, [&](const wire::Status& status) {
    ++ends;
    EXPECT_EQ(status.code(), wire::Code::kClosed);
  });
  replies.Send(Opcode::kFinish, 1, opencl::Status{}, true);
  replies.Send(Opcode::kFinish, 2, opencl::Status{}, true);
  replies.Flush();
  EXPECT_EQ(ends, 1);
}

TEST(ChannelReplies, KeepsFramesOfManyThreadsWhole) {
  FakeChannel channel;
  channel.SetCapacity(5000);
  ChannelReplies replies(&channel, size_t{64} << 20, nullptr);
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<std::byte> data(static_cast<size_t>(t * 700), static_cast<std::byte>(t));
      for (int i = 0; i < kEach; ++i) {
        replies.Send(Opcode::kEnqueueReadBuffer, static_cast<uint64_t>(t) << 32 | static_cast<unsigned>(i), Reply(data),
                     i % 3 == 0);
      }
    });
  }
  size_t total = 0;
  for (int t = 0; t < kThreads; ++t) total += kEach * (16 + 8 + static_cast<size_t>(t * 700));
  const std::vector<Seen> frames = Cut(channel.TakeAtLeast(total));
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(frames.size(), size_t{kThreads * kEach});
  std::vector<uint64_t> next(kThreads, 0);
  for (const Seen& frame : frames) {
    const uint64_t t = frame.header.seq >> 32;
    EXPECT_EQ(frame.header.seq & 0xffffffff, next[t]++) << "each thread's frames stay in order";
    EXPECT_EQ(frame.payload.size(), 8 + t * 700);
  }
}

TEST(ChannelReplies, ACrashHandlerSendsOnlyWhenNothingIsInTheWay) {
  FakeChannel channel;
  ChannelReplies replies(&channel, 1u << 20, nullptr);
  const std::vector<std::byte> frame(20, std::byte{1});
  EXPECT_TRUE(replies.TrySendRaw(frame));
  EXPECT_EQ(channel.Take().size(), 20u);
  channel.SetCapacity(0);
  replies.Send(Opcode::kFinish, 1, opencl::Status{}, true);
  EXPECT_FALSE(replies.TrySendRaw(frame)) << "it would tear a frame that is half written";
  channel.Shutdown();
}

}  // namespace
}  // namespace hawser::server
