// SPDX-License-Identifier: Apache-2.0
// Where in a page things begin that warps touch on every instruction, and how far the pages are apart.
#include "softcuda/exec/placement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "softcuda/exec/warp.h"
#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

uint64_t InPage(const void* place) { return reinterpret_cast<uint64_t>(place) % kPage; }

TEST(Placement, BuffersBeginWhereTheyShall) {
  for (const size_t bytes : {size_t{1}, size_t{4032}, size_t{4096}, size_t{100'000}, size_t{3} << 20}) {
    for (const size_t offset : {size_t{0}, size_t{64}, size_t{4032}}) {
      Buffer buffer;
      ASSERT_TRUE(buffer.Reserve(bytes, offset));
      EXPECT_EQ(InPage(buffer.data()), offset);
      ASSERT_GE(buffer.size(), bytes);
      EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + buffer.size(), [](char c) { return c == 0; }));
      std::fill_n(buffer.data(), buffer.size(), 'x');  // AddressSanitizer says whether it is there.
      const char* before = buffer.data();
      ASSERT_TRUE(buffer.Reserve(bytes, offset));
      EXPECT_EQ(buffer.data(), before);  // Large enough: it stays.
      ASSERT_TRUE(buffer.Reserve(2 * buffer.size(), offset));
      EXPECT_EQ(InPage(buffer.data()), offset);
      EXPECT_EQ(buffer.data()[0], 0);
    }
  }
}

TEST(Placement, PagesOfContainers) {
  std::vector<uint64_t, PageAllocator<uint64_t>> numbers;
  for (uint64_t i = 0; i < 5000; ++i) {
    numbers.push_back(i);
    ASSERT_EQ(InPage(numbers.data()), 0u);
  }
  const auto copy = numbers;
  EXPECT_EQ(InPage(copy.data()), 0u);
  EXPECT_EQ(copy, numbers);
}

/// AddressSanitizer is to see what the heap gives.
constexpr bool kHasRegion =
#if defined(__SANITIZE_ADDRESS__)
    false;
#else
    true;
#endif

uint64_t InRegion(const char* place) { return reinterpret_cast<uint64_t>(place) % PageRegion::kSize; }

// Of two regions, which lie wherever the system put them.
TEST(PageRegion, EqualOrdersGiveEqualPlaces) {
  if (!kHasRegion) GTEST_SKIP() << "under AddressSanitizer all comes from the heap";
  PageRegion one, other;
  EXPECT_NE(one.Take(1), other.Take(1));
  for (const size_t bytes : {size_t{16'320}, size_t{1}, kPage, kPage + 1, PageRegion::kLargest}) {
    const char* const here = one.Take(bytes);
    const char* const there = other.Take(bytes);
    EXPECT_EQ(InRegion(here), InRegion(there));
    EXPECT_EQ(InRegion(here) % kPage, 0u);
    EXPECT_LT(InRegion(here), size_t{1} << 20);  // Close together.
  }
}

TEST(PageRegion, WhatIsGivenBackIsTakenAgain) {
  if (!kHasRegion) GTEST_SKIP() << "under AddressSanitizer all comes from the heap";
  PageRegion region;
  char* const first = region.Take(3 * kPage);
  char* const second = region.Take(kPage);
  EXPECT_EQ(second, first + 3 * kPage);
  region.Give(first, 3 * kPage);
  char* const two = region.Take(kPage + 1);
  EXPECT_EQ(two, first);
  EXPECT_EQ(region.Take(2 * kPage), second + kPage);  // Not where one page is left.
  EXPECT_EQ(region.Take(kPage), first + 2 * kPage);
  region.Give(nullptr, kPage);
}

// What is large, and what comes when all is taken.
TEST(PageRegion, TheRestIsTheHeaps) {
  PageRegion region;
  const auto use = [&](size_t bytes) {
    char* const memory = region.Take(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(InPage(memory), 0u);
    std::memset(memory, 'x', bytes);
    region.Give(memory, bytes);
  };
  use(PageRegion::kLargest + 1);
  std::vector<char*> all;
  for (size_t taken = 0; taken < PageRegion::kSize; taken += PageRegion::kLargest) {
    all.push_back(region.Take(PageRegion::kLargest));
    ASSERT_NE(all.back(), nullptr);
  }
  use(PageRegion::kLargest);
  use(1);
  for (char* memory : all) region.Give(memory, PageRegion::kLargest);
  EXPECT_EQ(region.Take(SIZE_MAX), nullptr);
}

TEST(PageRegion, ThreadsGetPagesOfTheirOwn) {
  PageRegion region;
  std::vector<std::thread> threads;
  for (char name = 'a'; name < 'e'; ++name) {
    threads.emplace_back([&region, name] {
      for (size_t round = 0; round < 500; ++round) {
        const size_t bytes = 1 + round * 37 % (3 * kPage);
        char* const memory = region.Take(bytes);
        std::memset(memory, name, bytes);
        std::this_thread::yield();
        EXPECT_TRUE(std::all_of(memory, memory + bytes, [name](char c) { return c == name; }));
        region.Give(memory, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A constant's lanes do not move when others come, and a page is full before the next is begun.
TEST(Placement, ConstantsFillPages) {
  Image image;
  std::vector<const void*> places;
  for (uint64_t i = 0; i < 50; ++i) places.push_back(image.Constant(i, 8));
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(image.Constant(i, 8), places[i]);
    EXPECT_EQ(InPage(places[i]), i % 16 * 256);
    for (uint32_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(static_cast<const uint64_t*>(places[i])[lane], i);
  }
}

}  // namespace
}  // namespace hawser::exec
