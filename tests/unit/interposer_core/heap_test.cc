// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "interposer/core/heap_allocator.h"
#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::guest {
namespace {

constexpr uint64_t kMiB = 1u << 20;

uint64_t PagesOf(int memfd) {
  struct stat info {};
  EXPECT_EQ(::fstat(memfd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(HeapExtents, BestFitAndMerging) {
  HeapExtents extents(64 * kMiB);
  const uint64_t a = extents.Allocate(kMiB), b = extents.Allocate(4096), c = extents.Allocate(2 * kMiB),
                 d = extents.Allocate(4096);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, kMiB);
  EXPECT_TRUE(extents.Free(a, kMiB));
  EXPECT_TRUE(extents.Free(c, 2 * kMiB));
  EXPECT_EQ(extents.ranges(), 3u);
  EXPECT_EQ(extents.Allocate(kMiB), a) << "the smallest range that is large enough";
  EXPECT_TRUE(extents.Free(a, kMiB));
  EXPECT_TRUE(extents.Free(b, 4096));
  EXPECT_TRUE(extents.Free(d, 4096));
  EXPECT_EQ(extents.ranges(), 1u);
  EXPECT_EQ(extents.free_bytes(), 64 * kMiB);
}

TEST(HeapExtents, RefusesWhatIsNotInUse) {
  HeapExtents extents(kMiB);
  const uint64_t a = extents.Allocate(8192);
  EXPECT_FALSE(extents.Free(a, 12288)) << "more than was taken";
  EXPECT_FALSE(extents.Free(a + 8192, 4096)) << "free already";
  EXPECT_FALSE(extents.Free(kMiB, 4096)) << "beyond the end";
  EXPECT_FALSE(extents.Free(~uint64_t{0} - 4095, 8192)) << "wraps around";
  EXPECT_TRUE(extents.Free(a, 8192));
  EXPECT_FALSE(extents.Free(a, 8192)) << "twice";
  EXPECT_EQ(extents.free_bytes(), kMiB);
}

TEST(HeapExtents, Alignment) {
  HeapExtents extents(8 * kMiB);
  EXPECT_EQ(extents.Allocate(4096), 0u);
  EXPECT_EQ(extents.Allocate(kMiB, kMiB), kMiB);
  EXPECT_EQ(extents.Allocate(kMiB - 4096), 4096u) << "the gap in front stays usable";
  EXPECT_EQ(extents.Allocate(7 * kMiB), HeapExtents::kNone);
  EXPECT_EQ(extents.Allocate(6 * kMiB), 2 * kMiB);
}

TEST(HeapAllocator, SmallOnesAreSlots) {
  HeapAllocator heap(nullptr, 16 * kMiB);
  for (const uint64_t size : {1u, 128u, 129u, 4000u, 4096u, 65536u}) {
    const uint64_t a = heap.Allocate(size), b = heap.Allocate(size);
    EXPECT_NE(a, b);
    EXPECT_EQ(a % 128, 0u);
    EXPECT_EQ(size >= 4000 ? a % 4096 : 0, 0u);
    heap.Free(a, size);
    EXPECT_EQ(heap.Allocate(size), a) << "the lowest free slot first";
    heap.Free(a, size);
    heap.Free(b, size);
  }
  EXPECT_EQ(heap.Allocate(0), HeapExtents::kNone);
  EXPECT_EQ(heap.Allocate(~uint64_t{0}), HeapExtents::kNone);
}

TEST(HeapAllocator, EmptyRunsGoBack) {
  HeapAllocator heap(nullptr, 16 * kMiB);
  std::vector<uint64_t> slots;
  for (int i = 0; i < 3 * 16; ++i) slots.push_back(heap.Allocate(65536));
  EXPECT_EQ(heap.free_bytes(), 13 * kMiB);
  for (const uint64_t slot : slots) heap.Free(slot, 65536);
  EXPECT_EQ(heap.free_bytes(), 15 * kMiB) << "one run of the class is kept";
}

TEST(HeapAllocator, SmallOnesUseTheLastPagesToo) {
  HeapAllocator heap(nullptr, kMiB - 4096);  // No room for a run.
  const uint64_t a = heap.Allocate(100), b = heap.Allocate(100);
  EXPECT_NE(a, HeapExtents::kNone);
  EXPECT_EQ(b, a + 4096);
  heap.Free(a, 100);
  heap.Free(b, 100);
  EXPECT_EQ(heap.free_bytes(), kMiB - 4096);
}

/// Live ranges never overlap, and everything comes back.
void Exercise(HeapAllocator& heap, uint64_t heap_size, unsigned seed, int steps) {
  std::mt19937_64 random(seed);
  std::map<uint64_t, uint64_t> live;
  for (int i = 0; i < steps; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const uint64_t size = 1 + random() % (uint64_t{1} << (random() % 22));
      const uint64_t offset = heap.Allocate(size);
      if (offset == HeapExtents::kNone) continue;
      ASSERT_EQ(offset % 128, 0u);
      ASSERT_LE(offset + size, heap_size);
      const auto next = live.lower_bound(offset);
      if (next != live.end()) {
        ASSERT_LE(offset + size, next->first);
      }
      if (next != live.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, offset);
      }
      live[offset] = size;
    } else {
      auto victim = live.lower_bound(random() % heap_size);
      if (victim == live.end()) victim = live.begin();
      heap.Free(victim->first, victim->second);
      live.erase(victim);
    }
  }
  for (const auto& [offset, size] : live) heap.Free(offset, size);
}

TEST(HeapAllocator, RandomUse) {
  HeapAllocator heap(nullptr, 64 * kMiB);
  Exercise(heap, 64 * kMiB, 1, 50'000);
  EXPECT_GE(heap.free_bytes(), 54 * kMiB) << "at most one run for each of the ten classes is kept";
}

TEST(HeapAllocator, FromManyThreads) {
  HeapAllocator heap(nullptr, 256 * kMiB);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&, t] { Exercise(heap, 256 * kMiB, t, 5000); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(heap.free_bytes(), 246 * kMiB);
}

/// A heap of pages that can be counted.
class StaleRanges : public ::testing::Test {
 protected:
  static constexpr uint64_t kSize = 32 * kMiB;
  void SetUp() override {
    memfd_ = ::memfd_create("heap", MFD_CLOEXEC);
    ASSERT_GE(memfd_, 0);
    ASSERT_EQ(::ftruncate(memfd_, kSize), 0);
    void* base = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0);
    ASSERT_NE(base, MAP_FAILED);
    base_ = static_cast<std::byte*>(base);
    heap_ = std::make_unique<HeapAllocator>(base_, kSize);
  }
  void TearDown() override {
    ::munmap(base_, kSize);
    ::close(memfd_);
  }
  uint64_t AllocateAndFill(uint64_t size) {
    const uint64_t offset = heap_->Allocate(size);
    EXPECT_NE(offset, HeapExtents::kNone);
    std::fill_n(base_ + offset, size, std::byte{7});
    return offset;
  }

  int memfd_ = -1;
  std::byte* base_ = nullptr;
  std::unique_ptr<HeapAllocator> heap_;
};

TEST_F(StaleRanges, GoBackInSteps) {
  const uint64_t offset = AllocateAndFill(10 * kMiB);
  EXPECT_TRUE(heap_->Free(offset, 10 * kMiB));
  EXPECT_EQ(PagesOf(memfd_), 10 * kMiB) << "to free is not to give back";
  EXPECT_EQ(heap_->free_bytes(), kSize);
  for (const uint64_t left : {6u, 2u, 0u}) {
    EXPECT_TRUE(heap_->GiveBack());
    EXPECT_EQ(PagesOf(memfd_), left * kMiB);
    EXPECT_EQ(heap_->free_bytes(), kSize);
  }
  EXPECT_FALSE(heap_->GiveBack());
  EXPECT_EQ(heap_->Allocate(kSize), 0u) << "all of it is in one piece again";
}

TEST_F(StaleRanges, AreTakenAgainWithTheirPages) {
  (void)AllocateAndFill(5 * kMiB);
  const uint64_t offset = AllocateAndFill(8 * kMiB);
  EXPECT_TRUE(heap_->Free(offset, 8 * kMiB));
  EXPECT_NE(heap_->Allocate(5 * kMiB), offset) << "there is other room";
  EXPECT_EQ(heap_->Allocate(8 * kMiB), offset);
  EXPECT_EQ(PagesOf(memfd_), 13 * kMiB);
  EXPECT_FALSE(heap_->GiveBack()) << "it is in use";
}

TEST_F(StaleRanges, AreRoomForOthersWhenThereIsNoOther) {
  const uint64_t offset = AllocateAndFill(kSize);
  EXPECT_TRUE(heap_->Free(offset, kSize));
  EXPECT_TRUE(heap_->GiveBack());
  EXPECT_NE(heap_->Allocate(100), HeapExtents::kNone) << "what was given back";
  EXPECT_NE(heap_->Allocate(20 * kMiB), HeapExtents::kNone) << "what was not";
  EXPECT_FALSE(heap_->GiveBack());
}

TEST_F(StaleRanges, AreNotGivenUpForWhatHasNoRoomAnyway) {
  const uint64_t offset = AllocateAndFill(8 * kMiB);
  EXPECT_TRUE(heap_->Free(offset, 8 * kMiB));
  EXPECT_EQ(heap_->Allocate(kSize + 1), HeapExtents::kNone);
  while (heap_->GiveBack()) {
  }
  EXPECT_EQ(PagesOf(memfd_), 0u);
}

TEST_F(StaleRanges, CannotBeFreedTwice) {
  const uint64_t offset = AllocateAndFill(8 * kMiB);
  EXPECT_TRUE(heap_->Free(offset, 8 * kMiB));
  EXPECT_FALSE(heap_->Free(offset, 8 * kMiB));
  EXPECT_FALSE(heap_->Free(offset + 4096, 4096));
  EXPECT_EQ(heap_->free_bytes(), kSize);
}

TEST_F(StaleRanges, AreGivenBackBesideOtherThreads) {
  std::atomic<bool> over{false};
  std::thread returner([&] {
    while (!over) {
      if (!heap_->GiveBack()) std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const uint64_t size = (4 + (i + t) % 6) * kMiB;
        const uint64_t offset = heap_->Allocate(size);
        if (offset == HeapExtents::kNone) continue;
        base_[offset] = base_[offset + size - 1] = std::byte(t);
        std::this_thread::yield();
        // Pages in use are never taken away.
        EXPECT_EQ(base_[offset], std::byte(t));
        EXPECT_EQ(base_[offset + size - 1], std::byte(t));
        EXPECT_TRUE(heap_->Free(offset, size));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  returner.join();
  // Ranges that had to make room for others may have kept their pages; the room is there.
  EXPECT_EQ(heap_->Allocate(kSize), 0u);
}

TEST(SessionHeap, IsSharedWithTheServerAndGivesPagesBack) {
  FakeServerOptions options;
  options.heap_size = 64 * kMiB;
  FakeServer server(wire::Transport::kShm, options);
  auto [session, peer] = server.Connect();
  ASSERT_NE(session->heap_base(), nullptr);
  EXPECT_EQ(session->heap_size(), 64 * kMiB);
  const uint64_t offset = session->HeapAllocate(8 * kMiB);
  ASSERT_NE(offset, Session::kNoHeap);
  EXPECT_EQ(offset % 4096, 0u);
  std::fill_n(session->heap_base() + offset, 8 * kMiB, std::byte{5});
  std::byte seen{};
  ASSERT_EQ(::pread(peer->heap.get(), &seen, 1, static_cast<off_t>(offset + kMiB)), 1);
  EXPECT_EQ(seen, std::byte{5});
  EXPECT_GE(PagesOf(peer->heap.get()), 8 * kMiB);
  session->HeapFree(offset, 8 * kMiB);
  // Soon, by a thread of the session.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (PagesOf(peer->heap.get()) >= kMiB && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(PagesOf(peer->heap.get()), kMiB);
  EXPECT_EQ(session->HeapAllocate(65 * kMiB), Session::kNoHeap);
}

TEST(SessionHeap, IsAbsentOverSockets) {
  FakeServer server(wire::Transport::kUnix);
  auto [session, peer] = server.Connect();
  EXPECT_EQ(session->heap_base(), nullptr);
  EXPECT_EQ(session->HeapAllocate(100), Session::kNoHeap);
}

}  // namespace
}  // namespace hawser::guest
