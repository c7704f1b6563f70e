// SPDX-License-Identifier: Apache-2.0
// Parking and waking under pressure: two sides that sleep as often as they can, in two threads and
// in two processes. The sleeps here have no 100 ms slices as those of a channel do, so a lost wake-up
// is a sleep that nobody ends and a failed test, not a hiccup.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "wire/futex.h"
#include "wire/ring.h"
#include "wire/shm.h"
#include "wire/spin.h"

namespace hawser::wire {
namespace {

constexpr uint32_t kCapacity = 4096;
constexpr int kRounds = 20'000;
/// Sleeps have no slices here: whoever is not woken sleeps for this long, and the test fails.
constexpr std::chrono::seconds kLost{20};

/// A ring that both processes of a fork share.
struct SharedRing {
  RingControl control;
  std::byte data[kCapacity];
};

template <typename Ready>
bool Park(std::atomic<uint32_t>& parked, Ready ready) {
  const auto start = std::chrono::steady_clock::now();
  while (!ready()) {
    parked.store(1, std::memory_order_seq_cst);
    if (!ready()) FutexWait(parked, 1, kLost);
    parked.store(0, std::memory_order_relaxed);
    if (std::chrono::steady_clock::now() - start >= kLost) return false;
  }
  return true;
}

/// Sends the numbers below kRounds, each alone or several together, parking whenever the ring is full.
bool Produce(RingProducer& out, size_t words) {
  std::vector<uint32_t> block(words);
  for (uint32_t next = 0; next < kRounds;) {
    for (uint32_t& word : block) word = next++;
    Bytes bytes = AsBytes(block.data(), words * sizeof(uint32_t));
    while (!bytes.empty()) {
      bytes = bytes.subspan(out.Write(bytes));
      if (!bytes.empty() && !Park(out.parked(), [&] { return out.HasRoom(); })) return false;
    }
  }
  return true;
}

/// Receives them, parking whenever the ring is empty.
bool Consume(RingConsumer& in, size_t words) {
  const uint32_t total = static_cast<uint32_t>((kRounds + words - 1) / words * words);
  for (uint32_t expected = 0; expected < total;) {
    uint32_t word = 0;
    size_t have = 0;
    while (have < sizeof(word)) {
      have += in.Read(std::as_writable_bytes(std::span(&word, 1)).subspan(have));
      if (have < sizeof(word) && !Park(in.parked(), [&] { return in.HasBytes(); })) return false;
    }
    if (word != expected++) return false;
  }
  return true;
}

class ShmHammer : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    Result<Fd> memory = CreateHeap(1u << 16, "hawser-hammer");
    ASSERT_TRUE(memory.ok());
    mapping_ = ::mmap(nullptr, 1u << 16, PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0);
    ASSERT_NE(mapping_, MAP_FAILED);
    up_ = new (mapping_) SharedRing();
    down_ = new (static_cast<std::byte*>(mapping_) + (1u << 15)) SharedRing();
  }
  void TearDown() override { ::munmap(mapping_, 1u << 16); }

  static RingProducer Producer(SharedRing* ring) { return {&ring->control, ring->data, kCapacity}; }
  static RingConsumer Consumer(SharedRing* ring) { return {&ring->control, ring->data, kCapacity}; }

  void* mapping_ = MAP_FAILED;
  SharedRing* up_ = nullptr;
  SharedRing* down_ = nullptr;
};

/// One number up, the same number down: each side sleeps between any two.
bool PingPong(RingProducer& out, RingConsumer& in, bool first) {
  for (uint32_t i = 0; i < kRounds; ++i) {
    if (first && out.Write(AsBytes(&i, sizeof(i))) != sizeof(i)) return false;
    uint32_t word = 0;
    if (!Park(in.parked(), [&] { return in.HasBytes(); })) return false;
    if (in.Read(std::as_writable_bytes(std::span(&word, 1))) != sizeof(word) || word != i) return false;
    if (!first && out.Write(AsBytes(&i, sizeof(i))) != sizeof(i)) return false;
  }
  return true;
}

TEST_P(ShmHammer, NoWakeUpIsLostBetweenThreads) {
  RingProducer out = Producer(up_);
  RingConsumer in = Consumer(up_);
  bool produced = false;
  std::thread producer([&] { produced = Produce(out, GetParam()); });
  EXPECT_TRUE(Consume(in, GetParam()));
  producer.join();
  EXPECT_TRUE(produced);
}

TEST_P(ShmHammer, NoWakeUpIsLostBetweenProcesses) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RingProducer out = Producer(up_);
    ::_exit(Produce(out, GetParam()) ? 0 : 1);
  }
  RingConsumer in = Consumer(up_);
  EXPECT_TRUE(Consume(in, GetParam()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

INSTANTIATE_TEST_SUITE_P(Words, ShmHammer, ::testing::Values(1u, 7u, 900u, 3000u));

using ShmPingPong = ShmHammer;

void SpinFor(uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) CpuPause();
}

/// Both sides leave a rendezvous together, then one writes and the other falls asleep, each after a
/// short random delay: the two cross within nanoseconds of each other again and again, which is when
/// a store that lingers in a core's buffer would be missed.
TEST_P(ShmPingPong, AWriteThatCrossesAParkIsSeen) {
  constexpr uint32_t kCrossings = 300'000;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> ready{0};
  std::thread consumer([&] {
    RingConsumer in = Consumer(up_);
    uint32_t random = 1;
    for (uint32_t i = 0; i < kCrossings && !lost; ++i) {
      ready = i + 1;
      random = random * 1664525 + 1013904223;
      SpinFor((random >> 16) % 32);
      std::byte byte[1];
      if (!Park(in.parked(), [&] { return in.HasBytes(); }) || in.Read(byte) != 1) lost = true;
    }
  });
  RingProducer out = Producer(up_);
  uint32_t random = 2;
  for (uint32_t i = 0; i < kCrossings && !lost; ++i) {
    for (uint32_t spins = 1; ready != i + 1 && !lost; ++spins) {
      if (spins % 1024 == 0) std::this_thread::yield();
    }
    random = random * 1664525 + 1013904223;
    SpinFor((random >> 16) % 32);
    EXPECT_EQ(out.Write(AsBytes("x")), 1u);
  }
  consumer.join();
  EXPECT_FALSE(lost);
}

/// The same for a full ring and a producer that falls asleep.
TEST_P(ShmPingPong, AReadThatCrossesAParkIsSeen) {
  constexpr uint32_t kCrossings = 300'000;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> ready{0};
  std::thread producer([&] {
    RingProducer out = Producer(up_);
    const std::vector<std::byte> block(kCapacity);
    uint32_t random = 1;
    for (uint32_t i = 0; i < kCrossings && !lost; ++i) {
      if (out.Write(block) != kCapacity) lost = true;
      ready = i + 1;
      random = random * 1664525 + 1013904223;
      SpinFor((random >> 16) % 32);
      if (!Park(out.parked(), [&] { return out.HasRoom(); })) lost = true;
    }
  });
  RingConsumer in = Consumer(up_);
  std::vector<std::byte> block(kCapacity);
  uint32_t random = 2;
  for (uint32_t i = 0; i < kCrossings && !lost; ++i) {
    for (uint32_t spins = 1; ready != i + 1 && !lost; ++spins) {
      if (spins % 1024 == 0) std::this_thread::yield();
    }
    random = random * 1664525 + 1013904223;
    SpinFor((random >> 16) % 32);
    EXPECT_EQ(in.Read(block), kCapacity);
  }
  producer.join();
  EXPECT_FALSE(lost);
}

TEST_P(ShmPingPong, BothSidesSleepBetweenMessagesInTwoProcesses) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RingProducer out = Producer(down_);
    RingConsumer in = Consumer(up_);
    ::_exit(PingPong(out, in, false) ? 0 : 1);
  }
  RingProducer out = Producer(up_);
  RingConsumer in = Consumer(down_);
  EXPECT_TRUE(PingPong(out, in, true));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

INSTANTIATE_TEST_SUITE_P(Once, ShmPingPong, ::testing::Values(1u));

}  // namespace
}  // namespace hawser::wire
