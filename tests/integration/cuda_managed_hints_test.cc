// SPDX-License-Identifier: Apache-2.0
// What managed memory was advised and prefetched (CUDA driver API, "Unified Addressing", cuMemRangeGetAttribute).
#include <cuda.h>

#include <array>
#include <cstdint>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

constexpr size_t kPage = 65536;  // At least that of every system.

class CudaManagedHints : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuMemAllocManaged(&memory_, 4 * kPage, CU_MEM_ATTACH_GLOBAL));
    here_ = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
    host_ = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  }
  static int Get(CUmem_range_attribute attribute, CUdeviceptr address, size_t size) {
    int value = -77;
    const CUresult result = cuMemRangeGetAttribute(&value, sizeof(value), attribute, address, size);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return value;
  }

  CUdeviceptr memory_ = 0;
  CUmemLocation here_{};
  CUmemLocation host_{};
};

TEST_F(CudaManagedHints, AreRemembered) {
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 4 * kPage), 0);
  HAWSER_CU(cuMemAdvise(memory_, 2 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, here_));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 2 * kPage), 1);
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 4 * kPage), 0);
  HAWSER_CU(cuMemAdvise(memory_, 2 * kPage, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here_));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 2 * kPage), 0);

  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory_, 4 * kPage), CU_DEVICE_INVALID);
  HAWSER_CU(cuMemAdvise(memory_, 4 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here_));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory_, 4 * kPage), device_);
  HAWSER_CU(cuMemAdvise(memory_, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host_));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory_, kPage), CU_DEVICE_CPU);
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory_, 4 * kPage), CU_DEVICE_INVALID);

  HAWSER_CU(cuMemAdvise(memory_, 4 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, here_));
  std::array<int, 3> list{};
  HAWSER_CU(cuMemRangeGetAttribute(list.data(), sizeof(list), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory_, 4 * kPage));
  EXPECT_EQ(list, (std::array<int, 3>{device_, CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
}

TEST_F(CudaManagedHints, SayWhereMemoryWasPrefetchedLast) {
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory_, 4 * kPage), CU_DEVICE_INVALID);
  HAWSER_CU(cuMemPrefetchAsync(memory_, 4 * kPage, here_, 0, nullptr));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory_, 4 * kPage), device_);
  HAWSER_CU(cuMemPrefetchAsync(memory_, 2 * kPage, host_, 0, nullptr));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory_, 2 * kPage), CU_DEVICE_CPU);
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory_, 4 * kPage), CU_DEVICE_INVALID);
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaManagedHints, SeveralAreAskedForAtOnce) {
  HAWSER_CU(cuMemAdvise(memory_, 4 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, here_));
  HAWSER_CU(cuMemPrefetchAsync(memory_, 4 * kPage, here_, 0, nullptr));
  int mostly = -1;
  int prefetched = -1;
  std::array<int, 2> list{};
  std::array<void*, 3> to{&mostly, &prefetched, list.data()};
  std::array<size_t, 3> sizes{sizeof(mostly), sizeof(prefetched), sizeof(list)};
  std::array<CUmem_range_attribute, 3> attributes{CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                                  CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                                                  CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
  HAWSER_CU(cuMemRangeGetAttributes(to.data(), sizes.data(), attributes.data(), 3, memory_, 4 * kPage));
  EXPECT_EQ(mostly, 1);
  EXPECT_EQ(prefetched, device_);
  EXPECT_EQ(list, (std::array<int, 2>{CU_DEVICE_INVALID, CU_DEVICE_INVALID}));
  EXPECT_EQ(cuMemRangeGetAttributes(to.data(), sizes.data(), attributes.data(), 0, memory_, 4 * kPage),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaManagedHints, EndWithTheMemory) {
  HAWSER_CU(cuMemAdvise(memory_, 4 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, here_));
  HAWSER_CU(cuMemFree(memory_));
  int value = 0;
  EXPECT_EQ(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, kPage),
            CUDA_ERROR_INVALID_VALUE);
  // Perhaps at the same address.
  HAWSER_CU(cuMemAllocManaged(&memory_, 4 * kPage, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(Get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 4 * kPage), 0);
}

TEST_F(CudaManagedHints, AreAboutManagedMemoryAlone) {
  int value = 0;
  CUdeviceptr device_memory = 0;
  HAWSER_CU(cuMemAlloc(&device_memory, kPage));
  const auto ask = [&](size_t bytes, int attribute, CUdeviceptr address, size_t size) {
    return cuMemRangeGetAttribute(&value, bytes, static_cast<CUmem_range_attribute>(attribute), address, size);
  };
  EXPECT_EQ(ask(4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device_memory, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 5 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory_, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(4, 99, memory_, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAdvise(memory_, kPage, static_cast<CUmem_advise>(99), here_), CUDA_ERROR_INVALID_VALUE);
  const CUmemLocation nowhere{CU_MEM_LOCATION_TYPE_DEVICE, {4711}};
  EXPECT_EQ(cuMemAdvise(memory_, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemPrefetchAsync(memory_, kPage, nowhere, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace
}  // namespace hawser
