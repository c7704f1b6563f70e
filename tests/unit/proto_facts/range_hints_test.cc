// SPDX-License-Identifier: Apache-2.0
// What hints about managed memory come to.
#include "proto/cuda_api/range_hints.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hawser::cuda_api {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kBegin = 16 * kPage;
constexpr uint64_t kEnd = 32 * kPage + 100;

RangeHints::Range Part(uint64_t address, uint64_t size) { return {address, size, kBegin, kEnd}; }
RangeHints::Range All() { return Part(kBegin, kEnd - kBegin); }

int Get(const RangeHints& hints, CUmem_range_attribute attribute, const RangeHints::Range& range) {
  int value = -77;
  EXPECT_EQ(hints.Get(&value, sizeof(value), attribute, range), CUDA_SUCCESS);
  return value;
}
int ReadMostly(const RangeHints& hints, const RangeHints::Range& range) {
  return Get(hints, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, range);
}
int Preferred(const RangeHints& hints, const RangeHints::Range& range) {
  return Get(hints, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, range);
}
std::array<int, 3> AccessedBy(const RangeHints& hints, const RangeHints::Range& range) {
  std::array<int, 3> list{};
  EXPECT_EQ(hints.Get(list.data(), sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, range), CUDA_SUCCESS);
  return list;
}

TEST(RangeHints, NothingIsKnownAtFirst) {
  const RangeHints hints;
  EXPECT_EQ(ReadMostly(hints, All()), 0);
  EXPECT_EQ(Preferred(hints, All()), CU_DEVICE_INVALID);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, All()), CU_DEVICE_INVALID);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, All()), CU_MEM_LOCATION_TYPE_INVALID);
  EXPECT_EQ(AccessedBy(hints, All()), (std::array<int, 3>{CU_DEVICE_INVALID, CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
}

TEST(RangeHints, IsTrueOfARangeWhenItIsOfEveryPageOfIt) {
  RangeHints hints;
  const CUmemLocation nowhere{};
  ASSERT_EQ(hints.Advise(Part(kBegin + 2 * kPage, 2 * kPage), CU_MEM_ADVISE_SET_READ_MOSTLY, nowhere), CUDA_SUCCESS);
  EXPECT_EQ(ReadMostly(hints, Part(kBegin + 2 * kPage, 2 * kPage)), 1);
  EXPECT_EQ(ReadMostly(hints, Part(kBegin + 3 * kPage, 1)), 1);
  EXPECT_EQ(ReadMostly(hints, Part(kBegin + 2 * kPage - 1, 2)), 0);
  EXPECT_EQ(ReadMostly(hints, Part(kBegin + 3 * kPage, kPage + 1)), 0);
  EXPECT_EQ(ReadMostly(hints, All()), 0);
  ASSERT_EQ(hints.Advise(All(), CU_MEM_ADVISE_SET_READ_MOSTLY, nowhere), CUDA_SUCCESS);
  EXPECT_EQ(ReadMostly(hints, All()), 1) << "in pieces";
  ASSERT_EQ(hints.Advise(Part(kEnd - 1, 1), CU_MEM_ADVISE_UNSET_READ_MOSTLY, nowhere), CUDA_SUCCESS);
  EXPECT_EQ(ReadMostly(hints, All()), 0);
  EXPECT_EQ(ReadMostly(hints, Part(kBegin, 16 * kPage)), 1);
}

TEST(RangeHints, PagesAreWholeButNotTheNeighbours) {
  RangeHints hints;
  const RangeHints::Range mine{kBegin + 100, 50, kBegin + 50, kBegin + 300};
  const RangeHints::Range below{kBegin, 50, kBegin, kBegin + 50};
  const RangeHints::Range above{kBegin + 300, 50, kBegin + 300, kBegin + 350};
  ASSERT_EQ(hints.Advise(mine, CU_MEM_ADVISE_SET_READ_MOSTLY, {}), CUDA_SUCCESS);
  EXPECT_EQ(ReadMostly(hints, {kBegin + 50, 250, kBegin + 50, kBegin + 300}), 1);
  EXPECT_EQ(ReadMostly(hints, below), 0);
  EXPECT_EQ(ReadMostly(hints, above), 0);
}

TEST(RangeHints, PlacesAreThoseOfAll) {
  RangeHints hints;
  ASSERT_EQ(hints.Advise(Part(kBegin, kPage), CU_MEM_ADVISE_SET_PREFERRED_LOCATION, LocationOf(1)), CUDA_SUCCESS);
  ASSERT_EQ(hints.Advise(Part(kBegin + kPage, kPage), CU_MEM_ADVISE_SET_PREFERRED_LOCATION, LocationOf(CU_DEVICE_CPU)),
            CUDA_SUCCESS);
  EXPECT_EQ(Preferred(hints, Part(kBegin, 1)), 1);
  EXPECT_EQ(Preferred(hints, Part(kBegin + kPage, 1)), CU_DEVICE_CPU);
  EXPECT_EQ(Preferred(hints, Part(kBegin, 2 * kPage)), CU_DEVICE_INVALID);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, Part(kBegin + kPage, 1)),
            CU_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, Part(kBegin, 1)), 1);
  ASSERT_EQ(hints.Advise(All(), CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, {}), CUDA_SUCCESS);
  EXPECT_EQ(Preferred(hints, Part(kBegin, 1)), CU_DEVICE_INVALID);
  hints.Prefetch(All(), LocationOf(2));
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, All()), 2);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, All()), CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, All()), 2);
  EXPECT_EQ(Preferred(hints, All()), CU_DEVICE_INVALID);
}

TEST(RangeHints, DevicesAreListedThatAccessAllOfIt) {
  RangeHints hints;
  for (const int device : {0, 1, int{CU_DEVICE_CPU}}) {
    ASSERT_EQ(hints.Advise(All(), CU_MEM_ADVISE_SET_ACCESSED_BY, LocationOf(device)), CUDA_SUCCESS);
  }
  EXPECT_EQ(AccessedBy(hints, All()), (std::array<int, 3>{CU_DEVICE_CPU, 0, 1}));
  ASSERT_EQ(hints.Advise(Part(kBegin, 1), CU_MEM_ADVISE_UNSET_ACCESSED_BY, LocationOf(0)), CUDA_SUCCESS);
  EXPECT_EQ(AccessedBy(hints, All()), (std::array<int, 3>{CU_DEVICE_CPU, 1, CU_DEVICE_INVALID}));
  int first = 0;
  EXPECT_EQ(hints.Get(&first, sizeof(first), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, All()), CUDA_SUCCESS);
  EXPECT_EQ(first, CU_DEVICE_CPU) << "as many as there is room for";
}

TEST(RangeHints, MemoryThatEndsIsForgotten) {
  RangeHints hints;
  hints.Forget(kBegin, kEnd - kBegin);
  hints.Prefetch(All(), LocationOf(0));
  hints.Forget(kBegin + kPage, kPage);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, All()), CU_DEVICE_INVALID);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, Part(kBegin, kPage)), 0);
  EXPECT_EQ(Get(hints, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, Part(kBegin + 2 * kPage, kPage)), 0);
}

TEST(RangeHints, RefusesWhatItDoesNotKnow) {
  RangeHints hints;
  int value = 0;
  std::array<int, 2> two{};
  EXPECT_EQ(hints.Advise(All(), static_cast<CUmem_advise>(0), LocationOf(0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Advise(All(), static_cast<CUmem_advise>(7), LocationOf(0)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Advise(All(), CU_MEM_ADVISE_SET_ACCESSED_BY, {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Get(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, All()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Get(&value, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, All()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Get(two.data(), 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, All()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hints.Get(&value, 4, static_cast<CUmem_range_attribute>(99), All()), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::cuda_api
