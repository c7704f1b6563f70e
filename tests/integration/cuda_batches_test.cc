// SPDX-License-Identifier: Apache-2.0
// Many copies, prefetches or discards in one call (CUDA driver API, "Memory Management": cuMemcpyBatchAsync,
// cuMemcpy3DBatchAsync; "Unified Addressing": cuMemPrefetchBatchAsync, cuMemDiscardBatchAsync).
#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/support/batch_operations.h"

namespace hawser {
namespace {

using batches::Of;
using batches::Operation;
using batches::Pointer;

class CudaBatches : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&memory_, kBytes));
    HAWSER_CU(cuMemsetD8(memory_, 0, kBytes));
  }

  std::vector<uint8_t> Device(CUdeviceptr from, size_t size) {
    std::vector<uint8_t> bytes(size, 0xee);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(bytes.data(), from, size), CUDA_SUCCESS);
    return bytes;
  }
  static std::vector<uint8_t> Numbers(size_t count) {
    std::vector<uint8_t> bytes(count);
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
    return bytes;
  }

  static constexpr size_t kBytes = 4096;
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(CudaBatches, LinearCopiesGoBothWays) {
  const std::vector<uint8_t> numbers = Numbers(64);
  std::vector<uint8_t> back(64);
  std::array<CUdeviceptr, 2> to = {memory_, memory_ + 100};
  std::array<CUdeviceptr, 2> from = {reinterpret_cast<CUdeviceptr>(numbers.data()),
                                     reinterpret_cast<CUdeviceptr>(numbers.data() + 32)};
  std::array<size_t, 2> sizes = {32, 32};
  std::array<CUmemcpyAttributes, 2> attributes{};
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
  std::array<size_t, 2> indices = {0, 1};
  HAWSER_CU(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 2, attributes.data(), indices.data(), 2, stream_));
  EXPECT_EQ(Device(memory_, 32), std::vector<uint8_t>(numbers.begin(), numbers.begin() + 32));
  EXPECT_EQ(Device(memory_ + 100, 32), std::vector<uint8_t>(numbers.begin() + 32, numbers.end()));
  to = {reinterpret_cast<CUdeviceptr>(back.data()), memory_ + 200};
  from = {memory_, memory_ + 100};
  HAWSER_CU(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 2, attributes.data(), indices.data(), 1, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::vector<uint8_t>(back.begin(), back.begin() + 32),
            std::vector<uint8_t>(numbers.begin(), numbers.begin() + 32));
  EXPECT_EQ(Device(memory_ + 200, 32), Device(memory_ + 100, 32));
}

TEST_F(CudaBatches, WhatIsNoBatchIsRefused) {
  CUdeviceptr to = memory_;
  CUdeviceptr from = memory_ + 100;
  size_t size = 4;
  size_t index = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  const auto copy = [&](size_t count, size_t attribute_count, CUstream stream) {
    return cuMemcpyBatchAsync(&to, &from, &size, count, &attributes, &index, attribute_count, stream);
  };
  EXPECT_EQ(copy(1, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(copy(0, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(1, 0, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(1, 2, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(1, 1, nullptr), CUDA_ERROR_INVALID_VALUE) << "not for default streams";
  EXPECT_EQ(copy(1, 1, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(1, 1, CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_VALUE);
  index = 1;
  EXPECT_EQ(copy(1, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  index = 0;
  size = 0;
  EXPECT_EQ(copy(1, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  size = 4;
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  EXPECT_EQ(copy(1, 1, stream_), CUDA_ERROR_INVALID_VALUE);

  CUDA_MEMCPY3D_BATCH_OP operation = Operation(Pointer(memory_), Pointer(memory_ + 100), {4, 1, 1});
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, &operation, 0, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpy3DBatchAsync(0, &operation, 0, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, nullptr, 0, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, &operation, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, &operation, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  operation.extent.height = 0;
  EXPECT_EQ(cuMemcpy3DBatchAsync(1, &operation, 0, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaBatches, VolumesBetweenMemoriesAndArrays) {
  // A box of 3 x 2 x 2 bytes out of one of 4 x 3 x 2 in host memory.
  const std::vector<uint8_t> box = Numbers(24);
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  descriptor.Width = 8;
  descriptor.Height = 4;
  descriptor.Depth = 2;
  descriptor.Format = CU_AD_FORMAT_UNSIGNED_INT32;
  descriptor.NumChannels = 2;
  CUarray array = nullptr;
  HAWSER_CU(cuArray3DCreate(&array, &descriptor));
  const std::vector<uint8_t> texels = Numbers(size_t{2} * 2 * 8);  // 2 x 2 elements of eight bytes.
  std::array<CUDA_MEMCPY3D_BATCH_OP, 2> operations = {
      Operation(Pointer(memory_), Pointer(box.data(), 4, 3), {3, 2, 2}),
      Operation(Of(array, {3, 1, 1}), Pointer(texels.data()), {2, 2, 1}),
  };
  HAWSER_CU(cuMemcpy3DBatchAsync(operations.size(), operations.data(), 0, stream_));
  EXPECT_EQ(Device(memory_, 12), (std::vector<uint8_t>{1, 2, 3, 5, 6, 7, 13, 14, 15, 17, 18, 19}));

  // Out of the array again: to the device, with rows further apart, and to the host.
  std::vector<uint8_t> back(texels.size());
  operations = {Operation(Pointer(memory_ + 1000, 3), Of(array, {3, 1, 1}), {2, 2, 1}),
                Operation(Pointer(back.data()), Of(array, {3, 1, 1}), {2, 2, 1})};
  HAWSER_CU(cuMemcpy3DBatchAsync(operations.size(), operations.data(), 0, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(back, texels);
  const std::vector<uint8_t> apart = Device(memory_ + 1000, 40);
  EXPECT_EQ(std::vector<uint8_t>(apart.begin(), apart.begin() + 16),
            std::vector<uint8_t>(texels.begin(), texels.begin() + 16));
  EXPECT_EQ(std::vector<uint8_t>(apart.begin() + 24, apart.end()),
            std::vector<uint8_t>(texels.begin() + 16, texels.end()));
  EXPECT_EQ(std::vector<uint8_t>(apart.begin() + 16, apart.begin() + 24), std::vector<uint8_t>(8))
      << "between the rows";
  HAWSER_CU(cuArrayDestroy(array));
}

TEST_F(CudaBatches, NothingIsDoneOfABatchWithAnOperationThatIsNone) {
  const std::vector<uint8_t> numbers = Numbers(8);
  std::array<CUDA_MEMCPY3D_BATCH_OP, 2> operations = {
      Operation(Pointer(memory_), Pointer(numbers.data()), {8, 1, 1}),
      Operation(Pointer(memory_ + 8), Pointer(numbers.data(), 4),
                {8, 1, 1}),  // Rows shorter than what is copied of them.
  };
  EXPECT_EQ(cuMemcpy3DBatchAsync(operations.size(), operations.data(), 0, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Device(memory_, 8), std::vector<uint8_t>(8));

  std::array<CUdeviceptr, 2> to = {memory_, memory_ + 8};
  std::array<CUdeviceptr, 2> from = {reinterpret_cast<CUdeviceptr>(numbers.data()), memory_ + 100};
  std::array<size_t, 2> sizes = {8, 0};
  size_t index = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  EXPECT_EQ(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 2, &attributes, &index, 1, stream_),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Device(memory_, 8), std::vector<uint8_t>(8));
}

TEST_F(CudaBatches, SourcesOfTheCallMayEndWithIt) {
  // Memory that a stream reads later, unless the program says that it is gone by then. Enough that it takes a while.
  constexpr size_t kMany = 8u << 20;
  void* pinned = nullptr;
  CUdeviceptr large = 0;
  HAWSER_CU(cuMemHostAlloc(&pinned, kMany, 0));
  HAWSER_CU(cuMemAlloc(&large, 2 * kMany));
  for (uint8_t round = 1; round <= 8; ++round) {
    std::memset(pinned, round, kMany);
    CUdeviceptr to = large;
    CUdeviceptr from = reinterpret_cast<CUdeviceptr>(pinned);
    size_t size = kMany;
    size_t index = 0;
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    HAWSER_CU(cuMemcpyBatchAsync(&to, &from, &size, 1, &attributes, &index, 1, stream_));
    std::memset(pinned, 0xff, kMany);
    EXPECT_EQ(Device(large, kMany), std::vector<uint8_t>(kMany, round));

    std::memset(pinned, round + 100, kMany);
    CUDA_MEMCPY3D_BATCH_OP operation = Operation(Pointer(large + kMany), Pointer(pinned), {kMany / 4, 2, 2});
    operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    HAWSER_CU(cuMemcpy3DBatchAsync(1, &operation, 0, stream_));
    std::memset(pinned, 0xff, kMany);
    EXPECT_EQ(Device(large + kMany, kMany), std::vector<uint8_t>(kMany, static_cast<uint8_t>(round + 100)));
  }
  HAWSER_CU(cuMemFree(large));
  HAWSER_CU(cuMemFreeHost(pinned));
}

TEST_F(CudaBatches, PrefetchesHaveAPlaceEach) {
  constexpr size_t kPage = 65536;  // At least that of every system.
  int managed = 0;
  HAWSER_CU(cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device_));
  if (managed == 0) GTEST_SKIP() << "this device moves managed memory by itself";
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAllocManaged(&memory, 3 * kPage, CU_MEM_ATTACH_GLOBAL));
  const auto last = [&](size_t page) {
    int value = -77;
    EXPECT_EQ(cuMemRangeGetAttribute(&value, sizeof(value), CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                                     memory + page * kPage, kPage),
              CUDA_SUCCESS);
    return value;
  };
  std::array<CUdeviceptr, 3> ranges = {memory, memory + kPage, memory + 2 * kPage};
  std::array<size_t, 3> sizes = {kPage, kPage, kPage};
  std::array<CUmemLocation, 2> places{};
  places[0] = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  places[1] = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  std::array<size_t, 2> indices = {0, 2};
  HAWSER_CU(cuMemPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), indices.data(), 2, 0, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(last(0), device_);
  EXPECT_EQ(last(1), device_);
  EXPECT_EQ(last(2), CU_DEVICE_CPU);

  indices = {0, 1};
  HAWSER_CU(
      cuMemDiscardAndPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), indices.data(), 2, 0, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(last(0), device_);
  EXPECT_EQ(last(1), CU_DEVICE_CPU);
  HAWSER_CU(cuMemDiscardBatchAsync(ranges.data(), sizes.data(), 2, 0, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
  // What was discarded can be written again, and what was not is what it was.
  std::memset(reinterpret_cast<void*>(memory), 5, kPage);
  EXPECT_EQ(*reinterpret_cast<uint8_t*>(memory + kPage - 1), 5);

  EXPECT_EQ(cuMemDiscardBatchAsync(ranges.data(), sizes.data(), 0, 0, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemDiscardBatchAsync(ranges.data(), sizes.data(), 3, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemDiscardBatchAsync(ranges.data(), sizes.data(), 3, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  indices = {0, 3};
  EXPECT_EQ(cuMemPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), indices.data(), 2, 0, stream_),
            CUDA_ERROR_INVALID_VALUE);
  indices = {0, 1};
  places[1] = {CU_MEM_LOCATION_TYPE_DEVICE, {99}};
  EXPECT_EQ(cuMemPrefetchBatchAsync(ranges.data(), sizes.data(), 3, places.data(), indices.data(), 2, 0, stream_),
            CUDA_ERROR_INVALID_DEVICE);
  ranges[1] = memory_;  // Not managed.
  EXPECT_EQ(cuMemDiscardBatchAsync(ranges.data(), sizes.data(), 3, 0, stream_), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemFree(memory));
}

}  // namespace
}  // namespace hawser
