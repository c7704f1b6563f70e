// SPDX-License-Identifier: Apache-2.0
// Launches as CUDA 1 and 2 had them (CUDA driver API, "Execution Control [DEPRECATED]").
#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using CudaOlderLaunch = CudaTest;

/// Says the arguments of "add".
void SayAdd(CUfunction add, CUdeviceptr memory, uint32_t count, uint32_t value) {
  HAWSER_CU(cuParamSetSize(add, 16));
  HAWSER_CU(cuParamSetv(add, 0, &memory, sizeof(memory)));
  HAWSER_CU(cuParamSeti(add, 8, count));
  HAWSER_CU(cuParamSeti(add, 12, value));
}

TEST_F(CudaOlderLaunch, ArgumentsAreSaidOneByOne) {
  constexpr uint32_t kCount = 1000;
  const CUfunction add = Function("add");
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuMemsetD32(memory, 1, kCount));
  HAWSER_CU(cuFuncSetBlockShape(add, 128, 1, 1));
  SayAdd(add, memory, kCount, 5);
  HAWSER_CU(cuLaunchGrid(add, 4, 2));
  std::vector<uint32_t> numbers(kCount);
  HAWSER_CU(cuMemcpyDtoH(numbers.data(), memory, kCount * 4));
  // The kernel does not look at rows: two blocks add to each number, perhaps at once.
  EXPECT_NE(numbers[0], 1u);
  EXPECT_NE(numbers[511], 1u);
  EXPECT_EQ(numbers[512], 1u);

  HAWSER_CU(cuMemsetD32(memory, 1, kCount));
  HAWSER_CU(cuLaunchGrid(add, 8, 1));
  HAWSER_CU(cuMemcpyDtoH(numbers.data(), memory, kCount * 4));
  EXPECT_EQ(numbers, std::vector<uint32_t>(kCount, 6)) << "what was said stays";

  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuParamSeti(add, 12, 10));
  HAWSER_CU(cuLaunchGridAsync(add, 8, 1, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  HAWSER_CU(cuMemcpyDtoH(numbers.data(), memory, kCount * 4));
  EXPECT_EQ(numbers, std::vector<uint32_t>(kCount, 16));

  HAWSER_CU(cuFuncSetBlockShape(add, 3, 1, 1));
  HAWSER_CU(cuLaunch(add));
  HAWSER_CU(cuMemcpyDtoH(numbers.data(), memory, kCount * 4));
  EXPECT_EQ(numbers[2], 26u);
  EXPECT_EQ(numbers[3], 16u);
}

TEST_F(CudaOlderLaunch, FunctionsDoNotShareWhatIsSaid) {
  const CUfunction add = Function("add");
  const CUfunction store = Function("store");
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 8));
  HAWSER_CU(cuMemsetD32(memory, 0, 2));
  SayAdd(add, memory, 2, 1);
  HAWSER_CU(cuFuncSetBlockShape(add, 2, 1, 1));
  HAWSER_CU(cuParamSetSize(store, 12));
  HAWSER_CU(cuParamSetv(store, 0, &memory, sizeof(memory)));
  HAWSER_CU(cuParamSetf(store, 8, 1.5f));
  HAWSER_CU(cuLaunch(store));
  float number = 0;
  HAWSER_CU(cuMemcpyDtoH(&number, memory, 4));
  EXPECT_EQ(number, 1.5f);
  HAWSER_CU(cuMemsetD32(memory, 0, 2));
  HAWSER_CU(cuLaunch(add));
  std::array<uint32_t, 2> numbers{};
  HAWSER_CU(cuMemcpyDtoH(numbers.data(), memory, 8));
  EXPECT_EQ(numbers, (std::array<uint32_t, 2>{1, 1}));
}

TEST_F(CudaOlderLaunch, SharedMemoryIsSaidToo) {
  constexpr uint32_t kCount = 64;
  const CUfunction sum = Function("shared_sum");
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4 + 4));
  HAWSER_CU(cuMemsetD32(memory, 3, kCount));
  CUdeviceptr out = memory + kCount * 4;
  HAWSER_CU(cuFuncSetBlockShape(sum, kCount, 1, 1));
  HAWSER_CU(cuFuncSetSharedSize(sum, kCount * 4));
  HAWSER_CU(cuParamSetSize(sum, 16));
  HAWSER_CU(cuParamSetv(sum, 0, &memory, sizeof(memory)));
  HAWSER_CU(cuParamSetv(sum, 8, &out, sizeof(out)));
  HAWSER_CU(cuLaunch(sum));
  uint32_t value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, out, 4));
  EXPECT_EQ(value, 3 * kCount);
  HAWSER_CU(cuFuncSetSharedSize(sum, 1u << 30));
  EXPECT_EQ(cuLaunch(sum), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaOlderLaunch, ChecksWhatIsSaid) {
  const CUfunction add = Function("add");
  uint32_t value = 0;
  EXPECT_EQ(cuFuncSetBlockShape(add, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncSetBlockShape(add, 1, -1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchGrid(add, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchGrid(add, 1, -1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSetSize(add, 1u << 30), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSeti(add, -4, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSeti(add, 1 << 30, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSetv(add, 0, nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuParamSetv(add, 0, &value, 1u << 30), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuParamSetSize(add, 8));
  EXPECT_EQ(cuLaunch(add), CUDA_ERROR_INVALID_VALUE) << "it has more parameters";
  EXPECT_EQ(cuFuncSetBlockShape(nullptr, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunch(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

#pragma GCC diagnostic pop

}  // namespace
}  // namespace hawser
