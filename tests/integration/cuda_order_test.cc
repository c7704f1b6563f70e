// SPDX-License-Identifier: Apache-2.0
// What thread A enqueued before it woke thread B is ahead of what B does.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

/// Two threads take turns.
class Turns {
 public:
  void Give(int to) {
    const std::lock_guard<std::mutex> lock(mutex_);
    turn_ = to;
    changed_.notify_all();
  }
  void Await(int mine) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == mine; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
};

TEST_F(CudaTest, OneThreadLaunchesAnotherReadsTenThousandTimes) {
  constexpr uint32_t kRounds = 10000;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4));
  HAWSER_CU(cuMemsetD32(memory, 0, 1));
  CUfunction store = Function("store");
  Turns turns;
  uint32_t wrong = 0;
  CUresult failed = CUDA_SUCCESS;
  std::thread reader([&] {
    if (cuCtxSetCurrent(context_) != CUDA_SUCCESS) ++wrong;
    for (uint32_t round = 1; round <= kRounds; ++round) {
      turns.Await(1);
      uint32_t value = 0;
      const CUresult result = cuMemcpyDtoH(&value, memory, sizeof(value));
      if (result != CUDA_SUCCESS) failed = result;
      if (value != round) ++wrong;
      turns.Give(0);
    }
  });
  CUresult launched = CUDA_SUCCESS;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    turns.Await(0);
    void* parameters[] = {&memory, &round};
    const CUresult result = cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    if (result != CUDA_SUCCESS) launched = result;
    turns.Give(1);
  }
  reader.join();
  EXPECT_EQ(launched, CUDA_SUCCESS) << ErrorName(launched);
  EXPECT_EQ(failed, CUDA_SUCCESS) << ErrorName(failed);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(CudaTest, ManyThreadsEachKeepTheirOwnOrder) {
  constexpr uint32_t kThreads = 4, kRounds = 300;
  CUfunction add = Function("add");
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads);
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      CUdeviceptr memory = 0;
      CUstream stream = nullptr;
      if (cuCtxSetCurrent(context_) != CUDA_SUCCESS || cuMemAlloc(&memory, 256) != CUDA_SUCCESS ||
          cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
          cuMemsetD32Async(memory, 0, 64, stream) != CUDA_SUCCESS) {
        wrong[t] = 1000000;
        return;
      }
      std::vector<uint32_t> back(64);
      for (uint32_t round = 1; round <= kRounds; ++round) {
        if (LaunchAdd(add, memory, 64, t + 1, stream) != CUDA_SUCCESS) ++wrong[t];
        if (cuMemcpyDtoHAsync(back.data(), memory, 256, stream) != CUDA_SUCCESS) ++wrong[t];
        if (cuStreamSynchronize(stream) != CUDA_SUCCESS) ++wrong[t];
        if (back[63] != round * (t + 1)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(wrong[t], 0) << "thread " << t;
}

}  // namespace
}  // namespace hawser
