// SPDX-License-Identifier: Apache-2.0
// What thread A enqueued before it woke thread B is ahead of what B does; and what A waits for is nothing to B.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

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

/// meet(p): says in p[1] that it runs, and runs until p[0] is not zero.
constexpr char kMeet[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry meet(.param .u64 pp)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [pp];
  mov.u32 %r1, 1;
  st.volatile.global.u32 [%d1+4], %r1;
LOOP:
  ld.volatile.global.u32 %r2, [%d1];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra LOOP;
  ret;
}
)";

// The kernel that one thread waits for ends when the other one, after a thousand things, says so. If waiting held up
// the other thread, the two would wait for each other for ever.
TEST_F(CudaTest, WhoWaitsForAStreamHoldsUpNobodyElse) {
  constexpr uint32_t kRounds = 250;
  CUfunction meet = nullptr;
  HAWSER_CU(cuModuleLoadData(&module_, kMeet));
  HAWSER_CU(cuModuleGetFunction(&meet, module_, "meet"));
  CUdeviceptr flags = 0, memory = 0;
  CUstream waited_for = nullptr, busy = nullptr;
  CUevent event = nullptr;
  HAWSER_CU(cuMemAlloc(&flags, 8));
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  HAWSER_CU(cuMemsetD32(flags, 0, 2));
  HAWSER_CU(cuStreamCreate(&waited_for, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  HAWSER_CU(cuCtxSynchronize());
  void* parameters[] = {&flags};
  HAWSER_CU(cuLaunchKernel(meet, 1, 1, 1, 1, 1, 1, 0, waited_for, parameters, nullptr));
  CUresult waited = CUDA_ERROR_UNKNOWN;
  bool over = false;
  std::mutex mutex;
  std::thread waiter([&] {
    CUresult result = cuCtxSetCurrent(context_);
    if (result == CUDA_SUCCESS) result = cuStreamSynchronize(waited_for);
    const std::lock_guard<std::mutex> lock(mutex);
    waited = result;
    over = true;
  });
  CUresult failed = CUDA_SUCCESS;
  uint32_t wrong = 0;
  const auto check = [&](CUresult result) {
    if (result != CUDA_SUCCESS && failed == CUDA_SUCCESS) failed = result;
  };
  for (uint32_t begun = 0; begun == 0 && failed == CUDA_SUCCESS;) {
    check(cuMemcpyDtoHAsync(&begun, flags + 4, sizeof(begun), busy));
    check(cuStreamSynchronize(busy));
  }
  for (uint32_t round = 1; round <= kRounds && failed == CUDA_SUCCESS; ++round) {
    uint32_t value = 0;
    check(cuMemsetD32Async(memory, round, 1024, busy));
    check(cuEventRecord(event, busy));
    check(cuEventSynchronize(event));
    check(cuMemcpyDtoH(&value, memory + 4092, sizeof(value)));
    if (value != round) ++wrong;
  }
  check(cuStreamQuery(waited_for) == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    EXPECT_FALSE(over) << "the kernel cannot have ended";
  }
  EXPECT_EQ(cuMemsetD32Async(flags, 1, 1, busy), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(busy), CUDA_SUCCESS);
  waiter.join();
  EXPECT_EQ(failed, CUDA_SUCCESS) << ErrorName(failed);
  EXPECT_EQ(waited, CUDA_SUCCESS) << ErrorName(waited);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(CudaTest, ALargeReadComesBackBehindASmallOneThatNobodyWaitsFor) {
  // Over sockets one of them travels in a reply, the other does not.
  constexpr size_t kSmall = 1000, kLarge = 1 << 20;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  HAWSER_CU(cuMemsetD8(memory, 3, kLarge));
  CUstream stream = nullptr;  // The legacy stream waits for it.
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  unsigned char* pinned = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&pinned), kSmall));
  std::vector<unsigned char> large(kLarge);
  for (int round = 0; round < 20; ++round) {
    std::fill_n(pinned, kSmall, 0);
    HAWSER_CU(cuMemcpyDtoHAsync(pinned, memory, kSmall, stream));
    HAWSER_CU(cuMemcpyDtoH(large.data(), memory, kLarge));
    ASSERT_EQ(std::vector<unsigned char>(pinned, pinned + kSmall), std::vector<unsigned char>(kSmall, 3));
    ASSERT_EQ(large, std::vector<unsigned char>(kLarge, 3));
  }
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaTest, AReadBehindALargeOneThatIsBehindASmallOneComesBack) {
  // Over sockets the small one travels in a reply, the large one does not, and all go into the same memory.
  constexpr size_t kSmall = 100, kLarge = 1 << 20, kMiddle = kLarge / 2;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  CUstream stream = nullptr;  // The legacy stream waits for it.
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  unsigned char* pinned = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&pinned), kLarge));
  for (unsigned char round = 1; round <= 20; ++round) {
    HAWSER_CU(cuMemsetD8Async(memory, round, kLarge, stream));
    HAWSER_CU(cuMemcpyDtoHAsync(pinned, memory, kSmall, stream));
    HAWSER_CU(cuMemcpyDtoHAsync(pinned, memory, kLarge, stream));
    HAWSER_CU(cuMemcpyDtoH(pinned + kMiddle, memory, kSmall));
    ASSERT_EQ(std::count(pinned, pinned + kLarge, round), static_cast<ptrdiff_t>(kLarge));
  }
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFree(memory));
}

}  // namespace
}  // namespace hawser
