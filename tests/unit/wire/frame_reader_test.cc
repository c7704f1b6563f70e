// SPDX-License-Identifier: Apache-2.0
#include "wire/frame_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/wire/channel_pair.h"

namespace hawser::wire {
namespace {

using Next = FrameReader::Next;

/// A channel that hands out prepared bytes in prepared portions.
class ScriptedChannel final : public Channel {
 public:
  std::string bytes;
  std::vector<size_t> portions;  ///< Used in turn; 0 is "nothing now". Empty: as much as asked for.
  bool closed = false;           ///< After the bytes: the end rather than "nothing now".
  size_t reads = 0;

  Result<size_t> TryRead(std::span<std::byte> buffer) override {
    ++reads;
    if (at_ == bytes.size()) {
      if (closed) return Status(Code::kClosed, "the stream has ended");
      return size_t{0};
    }
    size_t size = std::min(buffer.size(), bytes.size() - at_);
    if (!portions.empty()) size = std::min(size, portions[turn_++ % portions.size()]);
    std::memcpy(buffer.data(), bytes.data() + at_, size);
    at_ += size;
    return size;
  }
  Status WaitReadable(SpinPolicy, std::optional<std::chrono::nanoseconds>) override { return {}; }
  Result<size_t> TryWrite(Bytes data) override {
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    return data.size();
  }
  Result<bool> TryFlush() override { return true; }
  Status WaitWritable(std::optional<std::chrono::nanoseconds>) override { return {}; }
  size_t unflushed() const override { return 0; }
  void Shutdown() override {}
  void Abandon() override {}

 private:
  size_t at_ = 0;
  size_t turn_ = 0;
};

std::string Payload(uint64_t seq, size_t size) {
  std::string payload(size, '\0');
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(seq * 7 + i * 13);
  return payload;
}

void AppendFrame(ScriptedChannel* channel, uint64_t seq, size_t size) {
  FrameHeader header;
  header.opcode = static_cast<uint16_t>(seq % 1000);
  header.flags = kWantStatus;
  header.seq = seq;
  ASSERT_TRUE(WriteFrame(*channel, header, AsBytes(Payload(seq, size))).ok());
}

/// Pulls everything and checks that it is frames 1..count with the sizes given.
void ExpectFrames(ScriptedChannel* channel, const std::vector<size_t>& sizes) {
  FrameReader reader(channel);
  FrameHeader header;
  Bytes payload;
  Status status;
  uint64_t seq = 0;
  int idle = 0;
  while (seq < sizes.size() && idle < 1'000'000) {
    const Next next = reader.Pull(&header, &payload, &status);
    if (next == Next::kNeedMore) {
      ++idle;
      continue;
    }
    ASSERT_EQ(next, Next::kFrame) << status.text();
    ++seq;
    ASSERT_EQ(header.seq, seq);
    ASSERT_EQ(header.opcode, seq % 1000);
    ASSERT_EQ(header.flags, kWantStatus);
    ASSERT_EQ(payload.size(), sizes[seq - 1]);
    const std::string expected = Payload(seq, sizes[seq - 1]);
    ASSERT_EQ(std::memcmp(payload.data(), expected.data(), expected.size()), 0) << seq;
  }
  ASSERT_EQ(seq, sizes.size());
  EXPECT_EQ(reader.Pull(&header, &payload, &status), channel->closed ? Next::kClosed : Next::kNeedMore);
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(FrameReader, YieldsManyFramesPerRead) {
  ScriptedChannel channel;
  std::vector<size_t> sizes;
  for (uint64_t seq = 1; seq <= 1000; ++seq) {
    sizes.push_back(seq % 100);
    AppendFrame(&channel, seq, sizes.back());
  }
  const size_t total = channel.bytes.size();
  ExpectFrames(&channel, sizes);
  EXPECT_LE(channel.reads, total / (32u << 10) + 3);
}

TEST(FrameReader, PutsTogetherWhatWasSplitAnywhere) {
  const std::vector<size_t> sizes = {0, 1, 15, 16, 17, 5000, 0, 70'000, 3};
  for (const std::vector<size_t>& portions :
       {std::vector<size_t>{1}, {0, 1, 0, 0, 2}, {15}, {16}, {17}, {1, 63'000}, {7, 0, 4096}}) {
    ScriptedChannel channel;
    for (size_t i = 0; i < sizes.size(); ++i) AppendFrame(&channel, i + 1, sizes[i]);
    channel.portions = portions;
    channel.closed = true;
    ExpectFrames(&channel, sizes);
  }
}

TEST(FrameReader, GrowsWithTheBytesNotWithTheClaim) {
  ScriptedChannel channel;
  FrameHeader header;
  header.size = kMaxFramePayload;
  channel.bytes.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  FrameReader reader(&channel);
  Bytes payload;
  Status status;
  const size_t fresh = reader.capacity();
  EXPECT_EQ(reader.Pull(&header, &payload, &status), Next::kNeedMore);
  EXPECT_EQ(reader.capacity(), fresh) << "16 bytes must not cost 64 MiB";
  size_t arrived = sizeof(header);
  for (int i = 0; i < 100; ++i) {
    channel.bytes.append(50'000, 'x');
    arrived += 50'000;
    EXPECT_EQ(reader.Pull(&header, &payload, &status), Next::kNeedMore);
    EXPECT_LE(reader.capacity(), std::max(fresh, 2 * arrived));
  }
}

TEST(FrameReader, GivesALargeBufferBack) {
  ScriptedChannel channel;
  AppendFrame(&channel, 1, 5u << 20);
  AppendFrame(&channel, 2, 10);
  FrameReader reader(&channel);
  FrameHeader header;
  Bytes payload;
  Status status;
  const size_t fresh = reader.capacity();
  ASSERT_EQ(reader.Pull(&header, &payload, &status), Next::kFrame);
  EXPECT_EQ(payload.size(), 5u << 20);
  ASSERT_EQ(reader.Pull(&header, &payload, &status), Next::kFrame);
  EXPECT_EQ(payload.size(), 10u);
  ASSERT_EQ(reader.Pull(&header, &payload, &status), Next::kNeedMore);
  EXPECT_EQ(reader.capacity(), fresh);
}

TEST(FrameReader, AClaimAboveTheLimitIsAProtocolError) {
  for (const uint32_t size : {kMaxFramePayload + 1, UINT32_MAX}) {
    ScriptedChannel channel;
    FrameHeader header;
    header.size = size;
    channel.bytes.assign(reinterpret_cast<const char*>(&header), sizeof(header));
    FrameReader reader(&channel);
    Bytes payload;
    Status status;
    EXPECT_EQ(reader.Pull(&header, &payload, &status), Next::kError);
    EXPECT_EQ(status.code(), Code::kProtocol);
    EXPECT_EQ(reader.Pull(&header, &payload, &status), Next::kError) << "an error stays";
  }
  ScriptedChannel channel;
  AppendFrame(&channel, 1, 101);
  FrameReader strict(&channel, 100);
  FrameHeader header;
  Bytes payload;
  Status status;
  EXPECT_EQ(strict.Pull(&header, &payload, &status), Next::kError);
}

TEST(FrameReader, TellsAnEndBetweenFramesFromOneWithin) {
  ScriptedChannel whole;
  AppendFrame(&whole, 1, 10);
  whole.closed = true;
  FrameReader reader(&whole);
  FrameHeader header;
  Bytes payload;
  Status status;
  ASSERT_EQ(reader.Pull(&header, &payload, &status), Next::kFrame);
  EXPECT_EQ(reader.Pull(&header, &payload, &status), Next::kClosed);
  EXPECT_EQ(status.code(), Code::kClosed);
  EXPECT_EQ(status.text().find("middle of a frame"), std::string::npos);

  ScriptedChannel cut;
  AppendFrame(&cut, 1, 10);
  cut.bytes.pop_back();
  cut.closed = true;
  FrameReader second(&cut);
  EXPECT_EQ(second.Pull(&header, &payload, &status), Next::kClosed);
  EXPECT_NE(status.text().find("middle of a frame"), std::string::npos);
}

TEST(FrameReader, WriteFrameRefusesWhatNoReaderTakes) {
  ScriptedChannel channel;
  const std::vector<std::byte> large(size_t{kMaxFramePayload} + 1);
  EXPECT_EQ(WriteFrame(channel, {}, large).code(), Code::kInvalid);
  EXPECT_TRUE(channel.bytes.empty());
}

TEST(FrameReader, WorksOverEveryTransport) {
  for (const PairKind kind : {PairKind::kShmCommand, PairKind::kUnix, PairKind::kTcp}) {
    const std::unique_ptr<ChannelPair> pair = MakeChannelPair(kind);
    constexpr uint64_t kFrames = 3000;
    std::thread writer([&] {
      for (uint64_t seq = 1; seq <= kFrames; ++seq) {
        FrameHeader header;
        header.seq = seq;
        const std::string payload = Payload(seq, seq % 500 == 0 ? 300'000 : seq % 200);
        if (!WriteFrame(*pair->guest, header, AsBytes(payload)).ok()) return;
      }
      pair->guest->Shutdown();
    });
    FrameReader reader(pair->server.get());
    FrameHeader header;
    Bytes payload;
    Status status;
    uint64_t seq = 0;
    for (;;) {
      const Next next = reader.Pull(&header, &payload, &status);
      if (next == Next::kNeedMore) {
        ASSERT_TRUE(pair->server->WaitReadable({}, std::chrono::seconds(30)).ok());
        continue;
      }
      if (next != Next::kFrame) break;
      ASSERT_EQ(header.seq, ++seq);
      const std::string expected = Payload(seq, seq % 500 == 0 ? 300'000 : seq % 200);
      ASSERT_EQ(payload.size(), expected.size());
      ASSERT_EQ(std::memcmp(payload.data(), expected.data(), expected.size()), 0);
    }
    writer.join();
    EXPECT_EQ(seq, kFrames) << PairKindName(kind);
    EXPECT_EQ(status.code(), Code::kClosed);
  }
}

}  // namespace
}  // namespace hawser::wire
