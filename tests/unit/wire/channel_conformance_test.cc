// SPDX-License-Identifier: Apache-2.0
// What every transport must do, asked of each in the same words.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/wire/channel_pair.h"

namespace hawser::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// A sequence that repeats at no convenient distance.
class Pattern {
 public:
  explicit Pattern(uint64_t seed) : state_(seed * 2 + 1) {}
  void Fill(std::span<std::byte> bytes) {
    for (std::byte& b : bytes) b = Next();
  }
  std::byte Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::byte>(state_ >> 56);
  }

 private:
  uint64_t state_;
};

class ChannelConformance : public ::testing::TestWithParam<PairKind> {
 protected:
  void SetUp() override { pair_ = MakeChannelPair(GetParam()); }
  Channel& guest() { return *pair_->guest; }
  Channel& server() { return *pair_->server; }
  bool is_shm() const { return GetParam() == PairKind::kShmCommand || GetParam() == PairKind::kShmBulk; }

  /// Ends the guest's side as a dying process would: no farewell in shared memory.
  void GuestDies() {
    pair_->guest->Abandon();
    pair_->guest.reset();
    pair_->guest_socket.Reset();
  }

  std::unique_ptr<ChannelPair> pair_;
};

TEST_P(ChannelConformance, NothingThereIsZeroNotAnError) {
  std::byte buffer[8];
  Result<size_t> got = server().TryRead(buffer);
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(*got, 0u);
}

TEST_P(ChannelConformance, SmallMessagesArriveInOrderBothWays) {
  for (uint32_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(guest().WriteAll(AsBytes(&i, sizeof(i))).ok());
    uint32_t seen = 0;
    ASSERT_TRUE(server().ReadAll(std::as_writable_bytes(std::span(&seen, 1))).ok());
    ASSERT_EQ(seen, i);
    const uint64_t answer = uint64_t{i} << 20;
    ASSERT_TRUE(server().WriteAll(AsBytes(&answer, sizeof(answer))).ok());
    uint64_t back = 0;
    ASSERT_TRUE(guest().ReadAll(std::as_writable_bytes(std::span(&back, 1))).ok());
    ASSERT_EQ(back, answer);
  }
}

TEST_P(ChannelConformance, WrittenBytesAreReadableOnceFlushed) {
  const std::string text = "one record";
  Result<size_t> taken = guest().TryWrite(AsBytes(text));
  ASSERT_TRUE(taken.ok());
  ASSERT_EQ(*taken, text.size());
  Result<bool> flushed = guest().TryFlush();
  ASSERT_TRUE(flushed.ok());
  EXPECT_TRUE(*flushed);
  EXPECT_EQ(guest().unflushed(), 0u);
  ASSERT_TRUE(server().WaitReadable({}, milliseconds(10'000)).ok());
  char buffer[64] = {};
  Result<size_t> got = server().TryRead(std::as_writable_bytes(std::span(buffer)));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(std::string(buffer, *got), text);
}

TEST_P(ChannelConformance, StreamsBothWaysAtOnceByteForByte) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr size_t kTotal = 8u << 20;  // Each byte costs ten times as much.
#else
  constexpr size_t kTotal = 64u << 20;
#endif
  std::atomic<int> failures{0};
  auto write = [&](Channel& channel, uint64_t seed) {
    Pattern pattern(seed);
    // Sizes around the interesting limits: records, the gather buffer, more than any ring.
    const size_t sizes[] = {1, 100, 4096, 16383, 16384, 32768, 40000, 1u << 20, 3u << 20};
    std::vector<std::byte> block(3u << 20);
    size_t sent = 0;
    for (size_t i = 0; sent < kTotal; ++i) {
      const size_t size = std::min(sizes[i % std::size(sizes)], kTotal - sent);
      pattern.Fill({block.data(), size});
      if (!channel.WriteAll({block.data(), size}, /*flush=*/i % 3 == 0).ok()) return void(++failures);
      sent += size;
    }
    if (!channel.WriteAll({}).ok()) ++failures;
  };
  auto read = [&](Channel& channel, uint64_t seed) {
    Pattern pattern(seed);
    std::vector<std::byte> block(200'000);
    size_t seen = 0;
    while (seen < kTotal) {
      Result<size_t> got = channel.TryRead({block.data(), std::min(block.size(), kTotal - seen)});
      if (!got.ok()) return void(++failures);
      for (size_t i = 0; i < *got; ++i) {
        if (block[i] != pattern.Next()) return void(++failures);
      }
      seen += *got;
      if (*got == 0 && !channel.WaitReadable({std::chrono::microseconds(5)}, milliseconds(60'000)).ok()) {
        return void(++failures);
      }
    }
  };
  std::thread guest_writer(write, std::ref(guest()), 1);
  std::thread server_writer(write, std::ref(server()), 2);
  std::thread guest_reader(read, std::ref(guest()), 2);
  read(server(), 1);
  // A reader that gave up would leave its writer waiting for room for ever.
  if (failures != 0) guest().Shutdown();
  guest_reader.join();
  if (failures != 0) server().Shutdown();
  guest_writer.join();
  server_writer.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(ChannelConformance, TakesNoMoreThanFitsAndGoesOnWhenThereIsRoom) {
  std::vector<std::byte> block(1u << 20);
  Pattern(7).Fill(block);
  std::vector<std::byte> expected;
  size_t taken_total = 0;
  for (;;) {
    Result<size_t> taken = guest().TryWrite(block);
    ASSERT_TRUE(taken.ok());
    expected.insert(expected.end(), block.begin(), block.begin() + static_cast<ptrdiff_t>(*taken));
    taken_total += *taken;
    ASSERT_LT(taken_total, size_t{256} << 20) << "a channel must push back at some time";
    if (*taken < block.size() && !guest().WaitWritable(milliseconds(20)).ok()) break;
  }
  std::vector<std::byte> seen;
  std::vector<std::byte> buffer(100'000);
  while (seen.size() < expected.size()) {
    Result<size_t> got = server().TryRead(buffer);
    ASSERT_TRUE(got.ok());
    seen.insert(seen.end(), buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(*got));
    if (*got == 0) {
      ASSERT_TRUE(guest().TryFlush().ok());
      ASSERT_TRUE(server().WaitReadable({}, milliseconds(10'000)).ok());
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(guest().WaitWritable(milliseconds(10'000)).ok());
  Result<size_t> again = guest().TryWrite(block);
  ASSERT_TRUE(again.ok());
  EXPECT_GT(*again, 0u);
}

TEST_P(ChannelConformance, ReaderDrainsWhatAPeerSentBeforeItClosed) {
  const std::string last = "the last words";
  ASSERT_TRUE(guest().WriteAll(AsBytes(last)).ok());
  pair_->guest.reset();
  pair_->guest_socket.Reset();
  std::string seen(last.size(), '\0');
  ASSERT_TRUE(server().ReadAll(std::as_writable_bytes(std::span(seen))).ok());
  EXPECT_EQ(seen, last);
  std::byte more[1];
  EXPECT_EQ(server().ReadAll(more).code(), Code::kClosed);
  EXPECT_EQ(server().ReadAll(more).code(), Code::kClosed) << "the end stays the end";
}

TEST_P(ChannelConformance, WritingToAPeerThatIsGoneIsClosed) {
  pair_->guest.reset();
  pair_->guest_socket.Reset();
  std::vector<std::byte> block(1u << 20);
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = server().WriteAll(block);
  EXPECT_EQ(status.code(), Code::kClosed) << status.text();
}

TEST_P(ChannelConformance, APeerThatDiesSilentlyIsNoticedByAParkedReader) {
  std::atomic<Code> seen{Code::kOk};
  std::thread reader([&] {
    std::byte buffer[1];
    seen = server().ReadAll(buffer).code();
  });
  GuestDies();
  reader.join();
  EXPECT_EQ(seen, Code::kClosed);
}

TEST_P(ChannelConformance, APeerThatDiesSilentlyIsNoticedByAParkedWriter) {
  std::atomic<Code> seen{Code::kOk};
  std::atomic<bool> full{false};
  std::thread writer([&] {
    std::vector<std::byte> block(1u << 20);
    for (;;) {
      Result<size_t> taken = server().TryWrite(block);
      if (!taken.ok()) return void(seen = taken.status().code());
      if (*taken < block.size()) full = true;
      if (*taken < block.size()) (void)server().WaitWritable(std::nullopt);
    }
  });
  while (!full) std::this_thread::yield();
  GuestDies();
  writer.join();
  EXPECT_EQ(seen, Code::kClosed);
}

TEST_P(ChannelConformance, ShutdownFromAnotherThreadWakesTheOwnReaderAndWriter) {
  std::atomic<int> closed{0};
  std::atomic<int> started{0};
  std::thread reader([&] {
    std::byte buffer[1];
    ++started;
    if (server().ReadAll(buffer).code() == Code::kClosed) ++closed;
  });
  std::thread writer([&] {
    std::vector<std::byte> block(1u << 20);
    ++started;
    Status status;
    while (status.ok()) status = server().WriteAll(block);
    if (status.code() == Code::kClosed) ++closed;
  });
  while (started != 2) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));  // Let them park; the test holds either way.
  server().Shutdown();
  server().Shutdown();
  reader.join();
  writer.join();
  EXPECT_EQ(closed, 2);
}

TEST_P(ChannelConformance, ShutdownWakesThePeer) {
  std::atomic<Code> seen{Code::kOk};
  std::thread reader([&] {
    std::byte buffer[1];
    seen = guest().ReadAll(buffer).code();
  });
  server().Shutdown();
  reader.join();
  EXPECT_EQ(seen, Code::kClosed);
  std::byte one[1] = {};
  EXPECT_FALSE(server().WriteAll(one).ok());
}

TEST_P(ChannelConformance, WaitReadableTimesOutNotBefore) {
  const auto start = std::chrono::steady_clock::now();
  const Status status = server().WaitReadable({}, milliseconds(30));
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(30));
  EXPECT_EQ(server().WaitReadable({}, nanoseconds(0)).code(), Code::kTimeout);
  EXPECT_EQ(server().WaitReadable({std::chrono::microseconds(200)}, milliseconds(1)).code(), Code::kTimeout);
  ASSERT_TRUE(guest().WriteAll(AsBytes("x")).ok());
  EXPECT_TRUE(server().WaitReadable({}, milliseconds(10'000)).ok());
  EXPECT_TRUE(server().WaitReadable({std::chrono::microseconds(50)}, nanoseconds(0)).ok());
}

TEST_P(ChannelConformance, WaitWritableTimesOutWhenThePeerDoesNotRead) {
  std::vector<std::byte> block(1u << 20);
  for (;;) {
    Result<size_t> taken = guest().TryWrite(block);
    ASSERT_TRUE(taken.ok());
    if (*taken == 0) {
      const Status status = guest().WaitWritable(milliseconds(20));
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kTimeout);
        return;
      }
    }
  }
}

TEST_P(ChannelConformance, AForkedChildThatAbandonsLeavesTheStreamWhole) {
  ASSERT_TRUE(guest().WriteAll(AsBytes("before")).ok());
  ASSERT_TRUE(guest().TryWrite(AsBytes("kept")).ok());  // Sockets still hold this in their buffer.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // What an interposer's fork handler does; then the destructors of a clean exit.
    pair_->guest->Abandon();
    std::byte buffer[1];
    const bool read_is_closed = pair_->guest->TryRead(buffer).status().code() == Code::kClosed;
    const bool write_is_closed = pair_->guest->TryWrite(buffer).status().code() == Code::kClosed;
    const bool wait_returns = pair_->guest->WaitReadable({}, std::nullopt).ok();
    pair_->guest->Shutdown();
    pair_->guest.reset();
    pair_->guest_session.reset();
    pair_->guest_socket.Reset();
    ::_exit(read_is_closed && write_is_closed && wait_returns ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(guest().WriteAll(AsBytes("after")).ok());
  std::string seen(std::strlen("beforekeptafter"), '\0');
  ASSERT_TRUE(server().ReadAll(std::as_writable_bytes(std::span(seen))).ok());
  EXPECT_EQ(seen, "beforekeptafter");
  ASSERT_TRUE(server().WriteAll(AsBytes("ok")).ok());
  std::string answer(2, '\0');
  ASSERT_TRUE(guest().ReadAll(std::as_writable_bytes(std::span(answer))).ok());
  EXPECT_EQ(answer, "ok");
}

TEST_P(ChannelConformance, SmallWritesGatherOnSocketsAndNotInSharedMemory) {
  ASSERT_TRUE(guest().TryWrite(AsBytes("record")).ok());
  EXPECT_EQ(guest().unflushed(), is_shm() ? 0u : 6u);
  ASSERT_TRUE(guest().WriteAll({}).ok());
  EXPECT_EQ(guest().unflushed(), 0u);
}

TEST_P(ChannelConformance, AnInterruptEndsTheWaitUnderWayOrTheNext) {
  ASSERT_TRUE(server().EnableInterrupts().ok());
  server().InterruptRead();
  server().InterruptRead();
  ASSERT_TRUE(server().WaitReadable({}, std::nullopt).ok()) << "the next wait";
  EXPECT_EQ(server().WaitReadable({}, milliseconds(10)).code(), Code::kTimeout) << "and no other";

  // Each interrupt may meet the reader spinning, parking, asleep or between two waits; none is lost.
  constexpr int kInterrupts = 2000;
  std::atomic<int> sent{0};
  std::atomic<int> answered{0};
  std::thread reader([&] {
    while (answered < kInterrupts) {
      if (!server().WaitReadable({std::chrono::microseconds(5)}, std::chrono::seconds(30)).ok()) return;
      answered = sent.load();
    }
  });
  for (int i = 1; i <= kInterrupts; ++i) {
    sent = i;
    server().InterruptRead();
    const auto start = std::chrono::steady_clock::now();
    while (answered < i && std::chrono::steady_clock::now() - start < std::chrono::seconds(30)) {
      std::this_thread::yield();
    }
    if (answered < i) break;
  }
  reader.join();
  EXPECT_EQ(answered, kInterrupts);
  std::byte buffer[8];
  Result<size_t> got = server().TryRead(buffer);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, 0u);
}

INSTANTIATE_TEST_SUITE_P(AllTransports, ChannelConformance,
                         ::testing::Values(PairKind::kShmCommand, PairKind::kShmBulk, PairKind::kUnix, PairKind::kTcp,
                                           PairKind::kHybridVsock),
                         [](const auto& param) { return PairKindName(param.param); });

TEST(TcpChannel, NoStreamWaitsForDelayedAcknowledgements) {
  const std::unique_ptr<ChannelPair> pair = MakeChannelPair(PairKind::kTcp);
  for (const int fd : {pair->guest_fd, pair->server_fd}) {
    for (const auto& [level, name] :
         {std::pair<int, int>(IPPROTO_TCP, TCP_NODELAY), std::pair<int, int>(SOL_SOCKET, SO_KEEPALIVE)}) {
      int value = 0;
      socklen_t size = sizeof(value);
      ASSERT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
      EXPECT_NE(value, 0) << "option " << name << " of level " << level;
    }
  }
  // write-write-read, the pattern that stalls under Nagle.
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(pair->guest->WriteAll(AsBytes("head")).ok());
    ASSERT_TRUE(pair->guest->WriteAll(AsBytes("body")).ok());
    std::byte buffer[8];
    ASSERT_TRUE(pair->server->ReadAll(buffer).ok());
    int quick = 0;
    socklen_t size = sizeof(quick);
    ASSERT_EQ(::getsockopt(pair->server_fd, IPPROTO_TCP, TCP_QUICKACK, &quick, &size), 0);
    ASSERT_NE(quick, 0) << "quick acknowledgements must be armed again after each read";
    ASSERT_TRUE(pair->server->WriteAll(buffer).ok());
    ASSERT_TRUE(pair->guest->ReadAll(buffer).ok());
  }
}

}  // namespace
}  // namespace hawser::wire
