// SPDX-License-Identifier: Apache-2.0
// Code that is too large for one command, and what other threads do while it is on its way.
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

/// More than little_staging.toml allows of staging memory.
constexpr size_t kLarge = 20u << 20;

/// The kernels of all tests in a text of that size; another one for each `salt`.
std::string LargeText(char salt) {
  std::string text = Kernels();
  const std::string line = "// " + std::string(120, salt) + "\n";
  while (text.size() < kLarge) text += line;
  return text;
}

class CudaLargeImage : public CudaTest {
 protected:
  /// The module's `add` computes.
  static void ExpectWorks(CUmodule module) {
    CUfunction add = nullptr;
    HAWSER_CU(cuModuleGetFunction(&add, module, "add"));
    CUdeviceptr memory = 0;
    HAWSER_CU(cuMemAlloc(&memory, 4));
    HAWSER_CU(cuMemsetD32(memory, 40, 1));
    HAWSER_CU(LaunchAdd(add, memory, 1, 2, nullptr));
    uint32_t sum = 0;
    HAWSER_CU(cuMemcpyDtoH(&sum, memory, 4));
    EXPECT_EQ(sum, 42u);
    HAWSER_CU(cuMemFree(memory));
  }
};

TEST_F(CudaLargeImage, OthersWorkWhileItIsLoaded) {
  CUfunction add = Function("add");
  constexpr uint32_t kCount = 100'000;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const std::string text = LargeText('w');
  std::atomic<bool> over{false};
  CUresult loaded = CUDA_ERROR_UNKNOWN;
  CUmodule large = nullptr;
  std::thread loader([&] {
    loaded = cuCtxSetCurrent(context_);
    if (loaded == CUDA_SUCCESS) loaded = cuModuleLoadData(&large, text.c_str());
    over = true;
  });
  std::vector<uint32_t> data(kCount), back(kCount);
  uint32_t wrong = 0, round = 0;
  do {
    std::iota(data.begin(), data.end(), round);
    wrong += cuMemcpyHtoDAsync(memory, data.data(), kCount * 4, stream) != CUDA_SUCCESS;
    wrong += LaunchAdd(add, memory, kCount, 3, stream) != CUDA_SUCCESS;
    wrong += cuMemcpyDtoHAsync(back.data(), memory, kCount * 4, stream) != CUDA_SUCCESS;
    wrong += cuStreamSynchronize(stream) != CUDA_SUCCESS;
    std::iota(data.begin(), data.end(), round + 3);
    wrong += data != back;
    ++round;
  } while (!over);
  loader.join();
  EXPECT_EQ(wrong, 0u) << "of " << round;
  ASSERT_EQ(loaded, CUDA_SUCCESS) << ErrorName(loaded);
  ExpectWorks(large);
  HAWSER_CU(cuModuleUnload(large));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaLargeImage, ThreadsLoadTheSameOneAndOthersAtOnce) {
  const std::string texts[] = {LargeText('x'), LargeText('y')};
  constexpr size_t kThreads = 4;
  std::vector<CUmodule> modules(kThreads);
  std::vector<CUresult> results(kThreads, CUDA_ERROR_UNKNOWN);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      results[i] = cuCtxSetCurrent(context_);
      if (results[i] == CUDA_SUCCESS) results[i] = cuModuleLoadData(&modules[i], texts[i % 2].c_str());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, std::vector<CUresult>(kThreads, CUDA_SUCCESS));
  for (const CUmodule module : modules) {
    if (module != nullptr) ExpectWorks(module);
  }
}

}  // namespace
}  // namespace hawser
