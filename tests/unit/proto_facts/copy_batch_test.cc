// SPDX-License-Identifier: Apache-2.0
// What operations of a batch of copies come to.
#include "proto/cuda_api/copy_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/batch_operations.h"

namespace hawser::cuda_api {
namespace {

using batches::Of;
using batches::Operation;
using batches::Pointer;

CUarray Array(uintptr_t number) { return reinterpret_cast<CUarray>(number); }

/// Array 4 has elements of four bytes, 8 of eight; there are no others.
size_t Bytes(CUarray array) { return array == Array(4) ? 4 : array == Array(8) ? 8 : 0; }

CUresult Try(const CUDA_MEMCPY3D_BATCH_OP& operation) {
  CUDA_MEMCPY3D copy{};
  return ToCopy(operation, &Bytes, &copy);
}

TEST(CopyBatch, IndicesRiseWithinTheOperations) {
  const auto are = [](const std::vector<size_t>& indices, size_t operations) {
    return AreIndices(indices.data(), indices.size(), operations);
  };
  EXPECT_TRUE(are({0}, 1));
  EXPECT_TRUE(are({0, 4}, 10));
  EXPECT_TRUE(are({0, 1, 2}, 3));
  EXPECT_FALSE(are({1}, 2)) << "nothing for the first";
  EXPECT_FALSE(are({0, 0}, 2));
  EXPECT_FALSE(are({0, 2, 1}, 3));
  EXPECT_FALSE(are({0, 2}, 2)) << "behind the last";
  EXPECT_FALSE(are({0, 1}, 1)) << "more than there are operations";
  EXPECT_FALSE(are({0}, 0));
  EXPECT_FALSE(AreIndices(nullptr, 1, 1));
  EXPECT_FALSE(are({}, 1));
}

TEST(CopyBatch, BetweenPointersElementsAreBytes) {
  CUDA_MEMCPY3D copy{};
  ASSERT_EQ(ToCopy(Operation(Pointer(0x1000), Pointer(0x2000, 7, 5), {6, 4, 3}), &Bytes, &copy), CUDA_SUCCESS);
  EXPECT_EQ(copy.WidthInBytes, 6u);
  EXPECT_EQ(copy.Height, 4u);
  EXPECT_EQ(copy.Depth, 3u);
  EXPECT_EQ(copy.srcMemoryType, CU_MEMORYTYPE_UNIFIED);
  EXPECT_EQ(copy.srcDevice, 0x2000u);
  EXPECT_EQ(copy.srcPitch, 7u);
  EXPECT_EQ(copy.srcHeight, 5u);
  EXPECT_EQ(copy.dstDevice, 0x1000u);
  EXPECT_EQ(copy.dstPitch, 6u) << "as close as can be";
  EXPECT_EQ(copy.dstHeight, 4u);
}

TEST(CopyBatch, OfArraysTheElementsCount) {
  CUDA_MEMCPY3D copy{};
  ASSERT_EQ(ToCopy(Operation(Of(Array(4), {3, 2, 1}), Pointer(0x2000, 8), {6, 4, 3}), &Bytes, &copy), CUDA_SUCCESS);
  EXPECT_EQ(copy.WidthInBytes, 24u);
  EXPECT_EQ(copy.srcPitch, 32u);
  EXPECT_EQ(copy.srcHeight, 4u);
  EXPECT_EQ(copy.dstMemoryType, CU_MEMORYTYPE_ARRAY);
  EXPECT_EQ(copy.dstArray, Array(4));
  EXPECT_EQ(copy.dstXInBytes, 12u);
  EXPECT_EQ(copy.dstY, 2u);
  EXPECT_EQ(copy.dstZ, 1u);
  EXPECT_EQ(Try(Operation(Of(Array(4), {}), Of(Array(4), {}), {1, 1, 1})), CUDA_SUCCESS);
  EXPECT_EQ(Try(Operation(Of(Array(4), {}), Of(Array(8), {}), {1, 1, 1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Try(Operation(Of(Array(5), {}), Pointer(8), {1, 1, 1})), CUDA_ERROR_INVALID_VALUE) << "no such array";
}

TEST(CopyBatch, WhatIsNoCopyIsRefused) {
  const CUDA_MEMCPY3D_BATCH_OP good = Operation(Pointer(0x1000), Pointer(0x2000), {6, 4, 3});
  ASSERT_EQ(Try(good), CUDA_SUCCESS);
  CUDA_MEMCPY3D_BATCH_OP bad = good;
  bad.extent.depth = 0;
  EXPECT_EQ(Try(bad), CUDA_ERROR_INVALID_VALUE);
  bad = good;
  bad.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  EXPECT_EQ(Try(bad), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Try(Operation(Pointer(CUdeviceptr{0}), Pointer(8), {1, 1, 1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Try(Operation(Pointer(8), Pointer(8, 5), {6, 1, 1})), CUDA_ERROR_INVALID_VALUE) << "rows overlap";
  EXPECT_EQ(Try(Operation(Pointer(8), Pointer(8, 0, 3), {6, 4, 1})), CUDA_ERROR_INVALID_VALUE) << "layers overlap";
  bad = good;
  bad.src.type = static_cast<CUmemcpy3DOperandType>(3);
  EXPECT_EQ(Try(bad), CUDA_ERROR_INVALID_VALUE);
  // Products beyond 64 bits.
  constexpr size_t kHalf = size_t{1} << 63;
  EXPECT_EQ(Try(Operation(Of(Array(4), {}), Pointer(8), {kHalf, 1, 1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Try(Operation(Of(Array(4), {kHalf, 0, 0}), Pointer(8), {1, 1, 1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Try(Operation(Of(Array(4), {}), Pointer(8, kHalf), {1, 1, 1})), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::cuda_api
