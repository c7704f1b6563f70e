// SPDX-License-Identifier: Apache-2.0
// Without a server: what needs one is in tests/integration/cuda_heap_memory_test.cc.
#include "interposer/cuda/heap_memory.h"

#include <gtest/gtest.h>

namespace hawser::cu {
namespace {

TEST(HeapMemoryTest, AnAllocationHasWholePages) {
  PointerRange range;
  range.size = 100001;
  EXPECT_EQ(HeapMemory::PagesOf(range).size, 0u);
  range.heap_pages = 8192;
  EXPECT_EQ(HeapMemory::PagesOf(range).offset, 8192u);
  EXPECT_EQ(HeapMemory::PagesOf(range).size, 102400u);
}

TEST(HeapMemoryTest, WithoutAHeapThereAreNoPagesAndNoCopies) {
  EXPECT_EQ(HeapMemory::Get().Take(1u << 20).size, 0u);
  HeapMemory::Get().Give({});
  StreamCommand command;
  std::byte bytes[16] = {};
  EXPECT_FALSE(HeapMemory::Get().Write(command, 0x1000, bytes, sizeof(bytes), HeapMemory::Wait::kYes).has_value());
  EXPECT_FALSE(HeapMemory::Get().Read(command, bytes, 0x1000, sizeof(bytes), HeapMemory::Wait::kYes).has_value());
}

}  // namespace
}  // namespace hawser::cu
