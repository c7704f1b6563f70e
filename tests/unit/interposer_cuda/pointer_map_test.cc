// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/pointer_map.h"

#include <gtest/gtest.h>

namespace hawser::cu {
namespace {

PointerRange Range(uint64_t begin, uint64_t size, PointerKind kind = PointerKind::kDevice, uint64_t context = 1) {
  PointerRange range;
  range.begin = begin;
  range.size = size;
  range.kind = kind;
  range.context = context;
  return range;
}

TEST(PointerMapTest, FindsTheRangeThatHoldsAnAddress) {
  PointerMap map;
  map.Add(Range(0x1000, 0x100));
  map.Add(Range(0x2000, 0x100));
  EXPECT_FALSE(map.Find(0xfff));
  EXPECT_EQ(map.Find(0x1000)->begin, 0x1000u);
  EXPECT_EQ(map.Find(0x10ff)->begin, 0x1000u);
  EXPECT_FALSE(map.Find(0x1100));
  EXPECT_EQ(map.Find(0x2050)->begin, 0x2000u);
}

TEST(PointerMapTest, KnowsWherePinnedMemoryMayBeThatKernelsCallOtherwise) {
  PointerMap map;
  PointerRange same = Range(0x9000, 0x100, PointerKind::kHost);
  same.device_alias = same.begin;
  map.Add(same);
  map.Add(Range(0xa000, 0x100, PointerKind::kRegistered));
  map.Add(Range(0xb000, 0x100));
  EXPECT_FALSE(map.HasPinnedElsewhere());
  EXPECT_FALSE(map.MayBePinnedElsewhere(0));
  EXPECT_FALSE(map.MayBePinnedElsewhere(0x9000));
  map.Add(Range(0x2000, 0x100, PointerKind::kHost));
  EXPECT_TRUE(map.HasPinnedElsewhere());
  EXPECT_FALSE(map.MayBePinnedElsewhere(0x1fff));
  EXPECT_TRUE(map.MayBePinnedElsewhere(0x2000));
  EXPECT_TRUE(map.MayBePinnedElsewhere(0x2100));  // Its end.
  EXPECT_FALSE(map.MayBePinnedElsewhere(0x2101));
  same.begin = 0x4000;
  map.Add(same);  // Called 0x9000 by kernels.
  EXPECT_TRUE(map.MayBePinnedElsewhere(0x4100));
  EXPECT_FALSE(map.MayBePinnedElsewhere(0x4101));
}

TEST(PointerMapTest, EachRangeHasAnIdOfItsOwn) {
  PointerMap map;
  map.Add(Range(0x1000, 0x100));
  const uint64_t first = map.Find(0x1000)->id;
  ASSERT_TRUE(map.Remove(0x1000, {PointerKind::kDevice}));
  map.Add(Range(0x1000, 0x100));
  EXPECT_NE(map.Find(0x1000)->id, first);
}

TEST(PointerMapTest, RemovesOnlyTheBeginningOfTheRightKind) {
  PointerMap map;
  map.Add(Range(0x1000, 0x100));
  EXPECT_FALSE(map.Remove(0x1010, {PointerKind::kDevice}));
  EXPECT_FALSE(map.Remove(0x1000, {PointerKind::kHost, PointerKind::kPool}));
  EXPECT_TRUE(map.Remove(0x1000, {PointerKind::kPool, PointerKind::kDevice}));
  EXPECT_FALSE(map.Find(0x1000));
}

TEST(PointerMapTest, AMappingInsideAReservedRangeIsFoundFirst) {
  PointerMap map;
  map.Add(Range(0x10000, 0x10000, PointerKind::kReserved));
  map.Add(Range(0x10000, 0x1000, PointerKind::kMapped));
  map.Add(Range(0x14000, 0x1000, PointerKind::kMapped));
  EXPECT_EQ(map.Find(0x10800)->kind, PointerKind::kMapped);
  EXPECT_EQ(map.Find(0x14800)->begin, 0x14000u);
  // Behind both mappings, still within the reserved range.
  EXPECT_EQ(map.Find(0x18000)->kind, PointerKind::kReserved);
  EXPECT_FALSE(map.Find(0x20000));
  EXPECT_EQ(map.Remove(0x10000, {PointerKind::kMapped})->size, 0x1000u);
  EXPECT_EQ(map.Find(0x10800)->kind, PointerKind::kReserved);
}

TEST(PointerMapTest, AContextTakesItsRangesAlong) {
  PointerMap map;
  map.Add(Range(0x1000, 0x100, PointerKind::kDevice, 1));
  map.Add(Range(0x2000, 0x100, PointerKind::kHost, 2));
  map.Add(Range(0x3000, 0x100, PointerKind::kReserved, 0));
  EXPECT_EQ(map.RemoveContext(1).size(), 1u);
  EXPECT_FALSE(map.Find(0x1000));
  EXPECT_TRUE(map.Find(0x2000));
  EXPECT_TRUE(map.RemoveContext(0).empty());
  EXPECT_TRUE(map.Find(0x3000));
}

TEST(PointerMapTest, SeesOverlaps) {
  PointerMap map;
  map.Add(Range(0x1000, 0x100));
  EXPECT_TRUE(map.Overlaps(0x1080, 1));
  EXPECT_TRUE(map.Overlaps(0xf00, 0x101));
  EXPECT_FALSE(map.Overlaps(0xf00, 0x100));
  EXPECT_FALSE(map.Overlaps(0x1100, 0x100));
}

TEST(PointerMapTest, MemoryOfAnotherProcessStaysUntilItIsClosedAsOftenAsItWasOpened) {
  PointerMap map;
  PointerRange range;
  range.begin = 0x1000;
  range.size = 0x100;
  EXPECT_FALSE(map.Close(0x1000));
  map.Open(range);
  map.Open(range);
  ASSERT_TRUE(map.Find(0x1010).has_value());
  EXPECT_EQ(map.Find(0x1010)->kind, PointerKind::kImported);
  EXPECT_TRUE(map.Close(0x1000));
  EXPECT_TRUE(map.Find(0x1010).has_value());
  EXPECT_TRUE(map.Close(0x1000));
  EXPECT_FALSE(map.Find(0x1010).has_value());
  EXPECT_FALSE(map.Close(0x1000));
}

TEST(PointerMapTest, MemoryLeavesTheHeapAndKeepsItsPages) {
  PointerMap map;
  PointerRange range = Range(0x1000, 0x100);
  EXPECT_FALSE(range.has_heap_pages());
  range.in_heap = true;
  range.heap_pages = 0;
  map.Add(range);
  map.Add(Range(0x2000, 0x100, PointerKind::kDevice, 2));
  EXPECT_TRUE(map.UsesHeap(1));
  EXPECT_FALSE(map.UsesHeap(2));
  map.LeaveHeap(0x2000);
  EXPECT_TRUE(map.Find(0x1000)->in_heap);
  map.LeaveHeap(0x1000);
  EXPECT_FALSE(map.Find(0x1000)->in_heap);
  EXPECT_TRUE(map.Find(0x1000)->has_heap_pages());
  EXPECT_TRUE(map.UsesHeap(1));
}

}  // namespace
}  // namespace hawser::cu
