// SPDX-License-Identifier: Apache-2.0
// Where in a page things begin that warps touch on every instruction.
#include "softcuda/exec/placement.h"

#include <algorithm>
#include <cstdint>
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
