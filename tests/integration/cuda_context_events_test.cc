// SPDX-License-Identifier: Apache-2.0
// Events of whole contexts (CUDA driver API, cuCtxRecordEvent and cuCtxWaitEvent).
#include <cuda.h>

#include <condition_variable>
#include <mutex>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

/// A stream is kept busy until it is opened.
class Latch {
 public:
  ~Latch() { Open(); }
  static void CUDA_CB Await(void* self) {
    auto* const latch = static_cast<Latch*>(self);
    std::unique_lock<std::mutex> lock(latch->mutex_);
    latch->changed_.wait(lock, [latch] { return latch->open_; });
  }
  /// Notes whether it was open when a stream came here.
  static void CUDA_CB Look(void* self) {
    auto* const latch = static_cast<Latch*>(self);
    const std::lock_guard<std::mutex> lock(latch->mutex_);
    ++(latch->open_ ? latch->behind_ : latch->ahead_);
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int ahead() { return Read(&ahead_); }
  int behind() { return Read(&behind_); }

 private:
  int Read(const int* value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return *value;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int ahead_ = 0;
  int behind_ = 0;
};

class CudaContextEvents : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&busy_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }
  /// Whatever a test left: the streams can go on.
  void TearDown() override {
    latch_.Open();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CudaTest::TearDown();
  }

  Latch latch_;
  CUstream busy_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
};

TEST_F(CudaContextEvents, ARecordStandsForTheWorkOfAllStreams) {
  HAWSER_CU(cuLaunchHostFunc(busy_, &Latch::Await, &latch_));
  HAWSER_CU(cuCtxRecordEvent(context_, event_));
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_NOT_READY);
  // What comes after it does not belong to it.
  latch_.Open();
  HAWSER_CU(cuEventSynchronize(event_));
  Latch later;
  HAWSER_CU(cuLaunchHostFunc(other_, &Latch::Await, &later));
  HAWSER_CU(cuEventQuery(event_));
  later.Open();
  HAWSER_CU(cuStreamSynchronize(other_));
}

TEST_F(CudaContextEvents, DataThatWasReadIsThereWhenTheRecordIsOver) {
  constexpr size_t kCount = size_t{4} << 20;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;  // Reads of other memory wait by themselves.
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuMemHostAlloc(&pinned, kCount * 4, 0));
  const auto* const back = static_cast<volatile uint32_t*>(pinned);
  for (uint32_t round = 1; round <= 10; ++round) {
    HAWSER_CU(cuMemsetD32Async(memory, round, kCount, busy_));
    HAWSER_CU(cuMemcpyDtoHAsync(pinned, memory, kCount * 4, busy_));
    HAWSER_CU(cuCtxRecordEvent(context_, event_));
    HAWSER_CU(cuEventSynchronize(event_));
    ASSERT_EQ(back[0], round);
    ASSERT_EQ(back[kCount - 1], round);
  }
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaContextEvents, AllStreamsOfAContextWait) {
  HAWSER_CU(cuLaunchHostFunc(busy_, &Latch::Await, &latch_));
  HAWSER_CU(cuEventRecord(event_, busy_));
  HAWSER_CU(cuCtxWaitEvent(context_, event_));
  CUstream later = nullptr;
  HAWSER_CU(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
  CUstream const streams[] = {other_, later, nullptr, CU_STREAM_PER_THREAD};
  for (CUstream stream : streams) HAWSER_CU(cuLaunchHostFunc(stream, &Latch::Look, &latch_));
  for (CUstream stream : streams) EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  latch_.Open();
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(latch_.ahead(), 0);
  EXPECT_EQ(latch_.behind(), 4);
}

// Pinned memory over shared memory may be copied by the caller itself, if nothing is under way.
TEST_F(CudaContextEvents, CopiesOfIdleStreamsWaitToo) {
  constexpr size_t kBytes = size_t{1} << 20;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  HAWSER_CU(cuMemAlloc(&memory, kBytes));
  HAWSER_CU(cuMemHostAlloc(&pinned, kBytes, 0));
  auto* const words = static_cast<volatile uint32_t*>(pinned);
  words[0] = 1;
  HAWSER_CU(cuMemsetD32(memory, 5, kBytes / 4));
  HAWSER_CU(cuCtxSynchronize());
  HAWSER_CU(cuMemcpyHtoDAsync(memory, pinned, 4, other_));
  HAWSER_CU(cuMemsetD32Async(memory, 5, 1, other_));
  HAWSER_CU(cuStreamSynchronize(other_));
  HAWSER_CU(cuLaunchHostFunc(busy_, &Latch::Await, &latch_));
  HAWSER_CU(cuEventRecord(event_, busy_));
  HAWSER_CU(cuCtxWaitEvent(context_, event_));
  HAWSER_CU(cuMemcpyDtoHAsync(pinned, memory, kBytes, other_));
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(words[0], 1u);
  latch_.Open();
  HAWSER_CU(cuStreamSynchronize(other_));
  EXPECT_EQ(words[0], 5u);
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaContextEvents, CapturesAreBroken) {
  CUgraph graph = nullptr;
  HAWSER_CU(cuStreamBeginCapture(other_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuCtxRecordEvent(context_, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  HAWSER_CU(cuEventRecord(event_, busy_));
  HAWSER_CU(cuStreamBeginCapture(other_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuCtxWaitEvent(context_, event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaContextEvents, WhatIsWrongIsSaid) {
  HAWSER_CU(cuCtxWaitEvent(context_, event_));  // Never recorded: nothing to wait for.
  EXPECT_EQ(cuCtxRecordEvent(nullptr, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxWaitEvent(nullptr, event_), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxRecordEvent(context_, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxWaitEvent(context_, nullptr), CUDA_ERROR_INVALID_HANDLE);
  CUdevice device = 0;
  CUcontext own = nullptr;
  HAWSER_CU(cuCtxGetDevice(&device));
  HAWSER_CU(cuCtxCreate(&own, nullptr, 0, device));
  EXPECT_EQ(cuCtxRecordEvent(own, event_), CUDA_ERROR_INVALID_HANDLE);
  // A context may wait for an event of another one.
  HAWSER_CU(cuEventRecord(event_, busy_));
  HAWSER_CU(cuCtxWaitEvent(own, event_));
  HAWSER_CU(cuCtxSynchronize());
  HAWSER_CU(cuCtxDestroy(own));
  HAWSER_CU(cuCtxSetCurrent(context_));
}

}  // namespace
}  // namespace hawser
