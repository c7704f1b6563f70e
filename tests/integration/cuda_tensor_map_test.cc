// SPDX-License-Identifier: Apache-2.0
// Tensor maps and the bulk copies that go by them (CUDA driver API, "Tensor Map Object Management").
#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

constexpr uint32_t kWidth = 64;
constexpr uint32_t kHeight = 48;
constexpr uint32_t kBoxWidth = 16;
constexpr uint32_t kBoxHeight = 8;

/// One block: boxes (x, y) of two maps; adds 1000 to each element on the way from one to the other.
const char* Text() {
  return R"(
.version 8.4
.target sm_90
.address_size 64
.visible .entry move(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u32 x, .param .u32 y)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %d<4>;
  .shared .align 128 .b8 box[512];
  .shared .align 8 .b64 bar;
  mov.b64 %d0, from;
  cvta.param.u64 %d0, %d0;
  mov.b64 %d1, to;
  cvta.param.u64 %d1, %d1;
  ld.param.u32 %r0, [x];
  ld.param.u32 %r1, [y];
  mov.u32 %r2, box;
  mov.u32 %r3, bar;
  mov.u32 %r4, %tid.x;
  setp.ne.u32 %p0, %r4, 0;
  @%p0 bra READY;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.proxy.async.shared::cta;
READY:
  bar.sync 0;
  @%p0 bra WAIT;
  prefetch.tensormap [%d0];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d0, {%r0, %r1}], [%r3];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
  @!%p1 bra WAIT;
  mad.lo.u32 %r5, %r4, 4, %r2;
  ld.shared.u32 %r6, [%r5];
  add.u32 %r6, %r6, 1000;
  st.shared.u32 [%r5], %r6;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 bra DONE;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {%r0, %r1}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
)";
}

/// What cuTensorMapEncodeTiled is asked, to be changed by a test.
struct Question {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT32;
  cuuint32_t rank = 2;
  CUdeviceptr address = 0;
  std::array<cuuint64_t, 5> size{kWidth, kHeight, 1, 1, 1};
  std::array<cuuint64_t, 4> strides{4 * kWidth, 4 * kWidth* kHeight, 4 * kWidth* kHeight, 4 * kWidth* kHeight};
  std::array<cuuint32_t, 5> box{kBoxWidth, kBoxHeight, 1, 1, 1};
  std::array<cuuint32_t, 5> steps{1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult Ask(CUtensorMap* map) const {
    return cuTensorMapEncodeTiled(map, type, rank, reinterpret_cast<void*>(address), size.data(), strides.data(),
                                  box.data(), steps.data(), interleave, swizzle, promotion, fill);
  }
};

class CudaTensorMap : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    CUdevice device = 0;
    HAWSER_CU(cuCtxGetDevice(&device));
    int supported = 0;
    HAWSER_CU(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, device));
    if (supported == 0) GTEST_SKIP() << "the device has no tensor maps: its capability is below 9.0";
    HAWSER_CU(cuMemAlloc(&from_, kBytes));
    HAWSER_CU(cuMemAlloc(&to_, kBytes));
    std::vector<uint32_t> numbers(kWidth * kHeight);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i);
    HAWSER_CU(cuMemcpyHtoD(from_, numbers.data(), kBytes));
    HAWSER_CU(cuMemsetD8(to_, 0, kBytes));
    question_.address = from_;
  }

  /// Copies the box at (x, y) and gives all of `to_`.
  std::vector<uint32_t> Move(const CUtensorMap& from, const CUtensorMap& to, uint32_t x, uint32_t y) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, Text()), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "move"), CUDA_SUCCESS);
    std::array<void*, 4> arguments = {const_cast<CUtensorMap*>(&from), const_cast<CUtensorMap*>(&to), &x, &y};
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, kBoxWidth * kBoxHeight, 1, 1, 0, nullptr, arguments.data(), nullptr),
              CUDA_SUCCESS);
    std::vector<uint32_t> numbers(kWidth * kHeight);
    EXPECT_EQ(cuMemcpyDtoH(numbers.data(), to_, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    return numbers;
  }

  static constexpr size_t kBytes = size_t{4} * kWidth * kHeight;
  CUdeviceptr from_ = 0;
  CUdeviceptr to_ = 0;
  Question question_;
};

TEST_F(CudaTensorMap, KernelsMoveBoxesByThem) {
  CUtensorMap from{};
  CUtensorMap to{};
  HAWSER_CU(question_.Ask(&from));
  question_.address = to_;
  HAWSER_CU(question_.Ask(&to));
  // Over the tensor's right end: what is outside is read as 0 and written nowhere.
  const uint32_t x = kWidth - 4;
  const uint32_t y = 5;
  std::vector<uint32_t> expected(kWidth * kHeight);
  for (uint32_t row = y; row < y + kBoxHeight; ++row) {
    for (uint32_t column = x; column < kWidth; ++column) {
      expected[row * kWidth + column] = row * kWidth + column + 1000;
    }
  }
  EXPECT_EQ(Move(from, to, x, y), expected);
}

TEST_F(CudaTensorMap, TheAddressCanBeReplaced) {
  CUtensorMap from{};
  HAWSER_CU(question_.Ask(&from));
  CUtensorMap to = from;
  HAWSER_CU(cuTensorMapReplaceAddress(&to, reinterpret_cast<void*>(to_)));
  question_.address = to_;
  CUtensorMap asked{};
  HAWSER_CU(question_.Ask(&asked));
  EXPECT_EQ(std::memcmp(&to, &asked, sizeof(to)), 0);
  const std::vector<uint32_t> moved = Move(from, to, 0, 0);
  EXPECT_EQ(moved[0], 1000U);
  EXPECT_EQ(moved[kWidth + 3], kWidth + 1003);
  EXPECT_EQ(moved[kBoxWidth], 0U);
  EXPECT_EQ(cuTensorMapReplaceAddress(nullptr, reinterpret_cast<void*>(to_)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuTensorMapReplaceAddress(&to, reinterpret_cast<void*>(to_ + 4)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaTensorMap, TheSameQuestionHasTheSameAnswer) {
  CUtensorMap first{};
  CUtensorMap again{};
  HAWSER_CU(question_.Ask(&first));
  HAWSER_CU(question_.Ask(&again));
  EXPECT_EQ(std::memcmp(&first, &again, sizeof(first)), 0);
  question_.steps[1] = 2;
  HAWSER_CU(question_.Ask(&again));
  EXPECT_NE(std::memcmp(&first, &again, sizeof(first)), 0);
}

// The requirements of the manual, each broken alone.
TEST_F(CudaTensorMap, WhatBreaksARequirementIsRefused) {
  const std::array<void (*)(Question*), 16> wrongs = {
      [](Question* q) { q->rank = 0; },
      [](Question* q) { q->rank = 6; },
      [](Question* q) { q->address += 8; },
      [](Question* q) { q->size[1] = 0; },
      [](Question* q) { q->size[0] = (cuuint64_t{1} << 32) + 1; },
      [](Question* q) { q->strides[0] = 4 * kWidth + 8; },
      [](Question* q) { q->strides[0] = cuuint64_t{1} << 40; },
      [](Question* q) { q->box[1] = 0; },
      [](Question* q) { q->box[1] = 257; },
      [](Question* q) { q->box[0] = 3; },
      [](Question* q) { q->steps[1] = 0; },
      [](Question* q) { q->steps[1] = 9; },
      [](Question* q) { q->swizzle = CU_TENSOR_MAP_SWIZZLE_32B; },
      [](Question* q) { q->fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; },
      [](Question* q) { q->interleave = CU_TENSOR_MAP_INTERLEAVE_16B; },
      [](Question* q) { q->type = static_cast<CUtensorMapDataType>(1000); },
  };
  for (size_t i = 0; i < wrongs.size(); ++i) {
    Question question = question_;
    wrongs[i](&question);
    CUtensorMap map{};
    map.opaque[0] = 7;
    EXPECT_EQ(question.Ask(&map), CUDA_ERROR_INVALID_VALUE) << i;
    EXPECT_EQ(map.opaque[0], 7U) << i;
  }
  EXPECT_EQ(question_.Ask(nullptr), CUDA_ERROR_INVALID_VALUE);
  // A map is aligned to 64 bytes.
  std::array<CUtensorMap, 2> maps{};
  EXPECT_EQ(question_.Ask(reinterpret_cast<CUtensorMap*>(reinterpret_cast<uintptr_t>(maps.data()) + 16)),
            CUDA_ERROR_INVALID_VALUE);
  CUtensorMap map{};
  EXPECT_EQ(cuTensorMapEncodeTiled(&map, question_.type, 2, nullptr, nullptr, question_.strides.data(),
                                   question_.box.data(), question_.steps.data(), question_.interleave,
                                   question_.swizzle, question_.promotion, question_.fill),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaTensorMap, TheLargestAreTaken) {
  question_.rank = 5;
  question_.size = {cuuint64_t{1} << 32, cuuint64_t{1} << 32, 1, 1, 1};
  question_.strides.fill((cuuint64_t{1} << 40) - 16);
  question_.box = {256, 256, 256, 256, 256};
  question_.steps.fill(8);
  CUtensorMap map{};
  EXPECT_EQ(question_.Ask(&map), CUDA_SUCCESS);
}

TEST_F(CudaTensorMap, NoContextIsNeeded) {
  CUcontext context = nullptr;
  HAWSER_CU(cuCtxPopCurrent(&context));
  CUtensorMap map{};
  EXPECT_EQ(question_.Ask(&map), CUDA_SUCCESS);
  HAWSER_CU(cuCtxPushCurrent(context));
}

}  // namespace
}  // namespace hawser
