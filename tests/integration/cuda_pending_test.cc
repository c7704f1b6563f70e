// SPDX-License-Identifier: Apache-2.0
// Work that piles up behind what only the program can end: a function of its own, a value in memory. Whoever has to do
// with the stream waits for it, and nobody and nothing else does; however much it is.
#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/held_stream.h"

namespace hawser {
namespace {

class CudaPending : public CudaTest, protected HeldStream {
 protected:
  static constexpr size_t kLarge = size_t{2} << 20;

  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&one_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuStreamCreate(&two_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&a_, sizeof(uint32_t)));
    HAWSER_CU(cuMemAlloc(&b_, sizeof(uint32_t)));
    HAWSER_CU(cuMemsetD32(a_, 0, 1));
    HAWSER_CU(cuMemsetD32(b_, 0, 1));
    HAWSER_CU(cuCtxSynchronize());
    add_ = Function("add");
  }
  void TearDown() override {
    Go();
    CudaTest::TearDown();
  }

  void Add(CUdeviceptr memory, unsigned times, CUstream stream) {
    for (unsigned i = 0; i < times; ++i) HAWSER_CU(LaunchAdd(add_, memory, 1, 1, stream));
  }
  void AddOnThread(CUdeviceptr memory, unsigned times, CUstream stream) {
    HAWSER_CU(cuCtxSetCurrent(context_));
    Add(memory, times, stream);
  }
  /// In the order of the stream.
  void Expect(CUdeviceptr memory, uint32_t value, CUstream stream) {
    uint32_t found = ~value;
    HAWSER_CU(cuMemcpyDtoHAsync(&found, memory, sizeof(found), stream));
    HAWSER_CU(cuStreamSynchronize(stream));
    EXPECT_EQ(found, value);
  }

  /// An event behind a function that waits for Go().
  CUevent Held(CUstream stream) {
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    Hold(stream);
    EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    return event;
  }
  /// The stream does, before long; however one asks.
  bool Ends(CUstream stream) {
    auto ends = std::async(std::launch::async, [this, stream] {
      return cuCtxSetCurrent(context_) == CUDA_SUCCESS && cuStreamSynchronize(stream) == CUDA_SUCCESS;
    });
    if (ends.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      ADD_FAILURE() << "the stream is waited for and does not end";
      std::abort();  // Who waits cannot be helped.
    }
    return ends.get() && cuStreamQuery(stream) == CUDA_SUCCESS;
  }

  CUstream one_ = nullptr, two_ = nullptr;
  CUdeviceptr a_ = 0, b_ = 0;
  CUfunction add_ = nullptr;
};

TEST_F(CudaPending, ThousandsOfLaunchesBehindAFunction) {
  constexpr unsigned kMany = 4000;
  Hold(one_);
  // A thread that may have to wait, as it would with a device of its own; the others do not.
  std::thread launches([&] { AddOnThread(a_, kMany, one_); });
  EXPECT_EQ(cuStreamQuery(one_), CUDA_ERROR_NOT_READY);
  Add(b_, 10, two_);
  Expect(b_, 10, two_);
  Go();
  launches.join();
  Expect(a_, kMany, one_);
}

TEST_F(CudaPending, MoreThanAnyQueueHolds) {
  // Fewer where each waits for a gate: there it is not the queues that are looked at.
  const char* wanted = std::getenv("HAWSER_TEST_LAUNCHES");
  const unsigned many = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 60000;
  Hold(one_);
  std::thread launches([&] { AddOnThread(a_, many, one_); });
  Add(b_, 2000, two_);
  Expect(b_, 2000, two_);
  Go();
  launches.join();
  Expect(a_, many, one_);
}

TEST_F(CudaPending, OtherCommandsBehindAFunction) {
  constexpr unsigned kMany = 300;
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Hold(one_);
  for (unsigned i = 0; i < kMany; ++i) {
    HAWSER_CU(cuMemsetD32Async(a_, i, 1, one_));
    HAWSER_CU(cuMemcpyDtoDAsync(b_, a_, sizeof(uint32_t), one_));
    HAWSER_CU(cuEventRecord(event, one_));
  }
  HAWSER_CU(cuStreamWaitEvent(two_, event, 0));
  Add(b_, 1, two_);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(two_), CUDA_ERROR_NOT_READY);
  Go();
  Expect(b_, kMany, two_);
}

TEST_F(CudaPending, LaunchesBehindAFunctionInTheDefaultStream) {
  CUstream blocking = nullptr;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Hold(nullptr);
  std::thread launches([&] {
    AddOnThread(a_, 2000, blocking);
    AddOnThread(a_, 2000, nullptr);
  });
  Add(b_, 10, two_);
  Expect(b_, 10, two_);
  Go();
  launches.join();
  Expect(a_, 4000, blocking);
}

TEST_F(CudaPending, WhoAsksForAStreamDoesNotWaitForWhatTheDefaultStreamWasGivenLater) {
  int can = 0;
  HAWSER_CU(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device_));
  if (can == 0) GTEST_SKIP() << "the device does not wait for values";
  CUstream blocking = nullptr;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Add(a_, 1, blocking);
  CUdeviceptr flag = 0;
  HAWSER_CU(cuMemAlloc(&flag, 8));
  HAWSER_CU(cuMemsetD32Async(flag, 0, 2, two_));
  HAWSER_CU(cuStreamSynchronize(two_));
  HAWSER_CU(cuStreamWaitValue32(nullptr, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_TRUE(Ends(blocking));
  Add(b_, 1, nullptr);
  EXPECT_TRUE(Ends(blocking));
  // What the stream is given behind that is behind that.
  Add(a_, 1, blocking);
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  HAWSER_CU(cuStreamWriteValue32(two_, flag, 1, 0));
  Expect(b_, 1, blocking);
  Expect(a_, 2, nullptr);
}

TEST_F(CudaPending, WhoAsksForAStreamDoesNotWaitForAFunctionInTheDefaultStream) {
  CUstream blocking = nullptr;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Add(a_, 1, blocking);
  Hold(nullptr);
  EXPECT_TRUE(Ends(blocking));
  Add(a_, 1, blocking);
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  Go();
  Expect(a_, 2, blocking);
}

TEST_F(CudaPending, DestroyedStreamsAreWaitedForAndDelayNobody) {
  HAWSER_CU(cuStreamWaitEvent(one_, Held(two_), 0));
  Add(a_, 1, one_);
  HAWSER_CU(cuStreamDestroy(one_));
  auto all = std::async(std::launch::async, [this] {
    const CUresult current = cuCtxSetCurrent(context_);
    return current != CUDA_SUCCESS ? current : cuCtxSynchronize();
  });
  CUstream third = nullptr;
  HAWSER_CU(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  Add(b_, 10, third);
  Expect(b_, 10, third);
  EXPECT_EQ(all.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  Go();
  HAWSER_CU(all.get());
  Expect(a_, 1, third);
}

TEST_F(CudaPending, CopiesWithinTheHostAreBehindTheDefaultStream) {
  CUstream blocking = nullptr;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  for (const bool used : {false, true}) {
    if (used) Add(a_, 1, blocking);
    std::pair<uint32_t, uint32_t> words{1, 0};
    const auto fill = [](void* data) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      static_cast<std::pair<uint32_t, uint32_t>*>(data)->first = 7;
    };
    HAWSER_CU(cuLaunchHostFunc(nullptr, fill, &words));
    HAWSER_CU(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(&words.second), reinterpret_cast<CUdeviceptr>(&words.first),
                            sizeof(uint32_t), blocking));
    HAWSER_CU(cuStreamSynchronize(blocking));
    EXPECT_EQ(words.second, 7u);
  }
}

TEST_F(CudaPending, WhoAsksForAStreamDoesNotWaitForDataThatTheDefaultStreamBrings) {
  CUstream blocking = nullptr;
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), sizeof(uint32_t)));
  *host = 0;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  HAWSER_CU(cuMemsetD32Async(a_, 7, 1, blocking));
  Hold(nullptr);
  HAWSER_CU(cuMemcpyDtoHAsync(host, a_, sizeof(uint32_t), nullptr));
  EXPECT_TRUE(Ends(blocking));
  Add(b_, 1, blocking);
  Go();
  // But now it is behind that.
  HAWSER_CU(cuStreamSynchronize(blocking));
  EXPECT_EQ(*host, 7u);
  HAWSER_CU(cuMemFreeHost(host));
}

TEST_F(CudaPending, AnEventIsRecordedAgainWhileAWaitForItWaits) {
  // As often as one likes: each wait is for the record before it, and a new record waits for none of them.
  CUstream third = nullptr, fourth = nullptr;
  HAWSER_CU(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamCreate(&fourth, CU_STREAM_NON_BLOCKING));
  const CUevent event = Held(one_);
  HAWSER_CU(cuStreamWaitEvent(two_, event, 0));
  Add(a_, 1, two_);
  Add(b_, 1, third);
  HAWSER_CU(cuEventRecord(event, third));
  HAWSER_CU(cuStreamWaitEvent(fourth, event, 0));
  Add(b_, 1, fourth);
  EXPECT_TRUE(Ends(fourth));
  HAWSER_CU(cuEventSynchronize(event));
  EXPECT_EQ(cuStreamQuery(two_), CUDA_ERROR_NOT_READY);
  // And in a capture, which is nothing that happens.
  CUgraph graph = nullptr;
  HAWSER_CU(cuStreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuEventRecord(event, third));
  HAWSER_CU(cuStreamWaitEvent(fourth, event, 0));
  Add(b_, 1, fourth);
  HAWSER_CU(cuEventRecord(event, fourth));
  HAWSER_CU(cuStreamWaitEvent(third, event, 0));
  HAWSER_CU(cuStreamEndCapture(third, &graph));
  HAWSER_CU(cuGraphDestroy(graph));
  HAWSER_CU(cuEventDestroy(event));
  Expect(b_, 2, third);
  Go();
  Expect(a_, 1, two_);
  Expect(b_, 2, third);
}

TEST_F(CudaPending, TheDefaultStreamDoesNotWaitForWhatAnotherLeaves) {
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), sizeof(uint32_t)));
  *host = 0;
  HAWSER_CU(cuMemsetD32Async(a_, 7, 1, one_));
  HAWSER_CU(cuStreamWaitEvent(one_, Held(two_), 0));
  HAWSER_CU(cuMemcpyDtoHAsync(host, a_, sizeof(uint32_t), one_));
  HAWSER_CU(cuMemcpyHtoDAsync(b_, host, sizeof(uint32_t), one_));
  HAWSER_CU(cuStreamDestroy(one_));
  EXPECT_TRUE(Ends(nullptr));
  Go();
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(*host, 7u);
  Expect(b_, 7, two_);
  HAWSER_CU(cuMemFreeHost(host));
}

TEST_F(CudaPending, MemoryIsUnmappedWhileAStreamWaits) {
  int can = 0;
  HAWSER_CU(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device_));
  if (can == 0) GTEST_SKIP() << "the device does not wait for values";
  HAWSER_CU(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device_));
  if (can == 0) GTEST_SKIP() << "the device maps no memory";
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  size_t size = 0;
  HAWSER_CU(cuMemGetAllocationGranularity(&size, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr address = 0, flag = 0;
  CUmemGenericAllocationHandle memory = 0;
  HAWSER_CU(cuMemAddressReserve(&address, 2 * size, 0, 0, 0));
  HAWSER_CU(cuMemCreate(&memory, size, &what, 0));
  HAWSER_CU(cuMemMap(address, size, 0, memory, 0));
  HAWSER_CU(cuMemMap(address + size, size, 0, memory, 0));
  HAWSER_CU(cuMemAlloc(&flag, 8));
  HAWSER_CU(cuMemsetD32Async(flag, 0, 2, one_));
  HAWSER_CU(cuStreamWaitValue32(one_, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  // The driver may wait for all streams; who frees them is another thread.
  auto unmapped = std::async(std::launch::async, [&] {
    const CUresult current = cuCtxSetCurrent(context_);
    return current != CUDA_SUCCESS ? current : cuMemUnmap(address, 2 * size);
  });
  (void)unmapped.wait_for(std::chrono::milliseconds(100));
  HAWSER_CU(cuStreamWriteValue32(two_, flag, 1, 0));
  HAWSER_CU(unmapped.get());
  EXPECT_EQ(cuMemUnmap(address, size), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemMap(address, size, 0, memory, 0));
  HAWSER_CU(cuMemUnmap(address, size));
  HAWSER_CU(cuMemRelease(memory));
  HAWSER_CU(cuMemAddressFree(address, 2 * size));
}

TEST_F(CudaPending, ThousandsOfLaunchesBehindAValue) {
  int can = 0;
  HAWSER_CU(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device_));
  if (can == 0) GTEST_SKIP() << "the device does not wait for values";
  constexpr unsigned kMany = 4000;
  CUdeviceptr flag = 0;
  HAWSER_CU(cuMemAlloc(&flag, 8));
  HAWSER_CU(cuMemsetD32(flag, 0, 2));
  HAWSER_CU(cuCtxSynchronize());
  HAWSER_CU(cuStreamWaitValue32(one_, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  std::thread launches([&] { AddOnThread(a_, kMany, one_); });
  Add(b_, 2000, two_);
  Expect(b_, 2000, two_);
  HAWSER_CU(cuStreamWriteValue32(two_, flag, 1, 0));
  HAWSER_CU(cuStreamSynchronize(two_));
  launches.join();
  Expect(a_, kMany, one_);
}

TEST_F(CudaPending, WhatEndsBehindAKernelDelaysNobody) {
  // Runs until there is a 1.
  constexpr char kUntil[] = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry until(.param .u64 p)
{
  .reg .pred %q;
  .reg .u32 %r;
  .reg .u64 %d<3>;
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d2, %d1;
AGAIN:
  ld.volatile.global.u32 %r, [%d2];
  setp.ne.u32 %q, %r, 1;
  @%q bra AGAIN;
  ret;
}
)";
  CUdeviceptr flag = 0, large = 0, small = 0;
  CUmodule module = nullptr, another = nullptr;
  CUfunction until = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape{};
  shape.Width = 16;
  shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  HAWSER_CU(cuMemAlloc(&flag, sizeof(uint32_t)));
  HAWSER_CU(cuMemAlloc(&large, kLarge));
  HAWSER_CU(cuMemAlloc(&small, 256));
  HAWSER_CU(cuModuleLoadData(&module, kUntil));
  HAWSER_CU(cuModuleGetFunction(&until, module, "until"));
  HAWSER_CU(cuModuleLoadData(&another, Kernels()));
  HAWSER_CU(cuArrayCreate(&array, &shape));
  HAWSER_CU(cuMemsetD32(flag, 0, 1));
  HAWSER_CU(cuCtxSynchronize());
  void* arguments[] = {&flag};
  HAWSER_CU(cuLaunchKernel(until, 1, 1, 1, 1, 1, 1, 0, one_, arguments, nullptr));
  // These may wait for the device.
  std::thread frees([&] {
    HAWSER_CU(cuCtxSetCurrent(context_));
    HAWSER_CU(cuMemFree(large));
    HAWSER_CU(cuMemFree(small));
    HAWSER_CU(cuArrayDestroy(array));
    HAWSER_CU(cuModuleUnload(another));
  });
  // Nobody else does: some rounds, as the other thread may come late.
  for (uint32_t round = 1; round <= 50; ++round) {
    HAWSER_CU(cuMemsetD32Async(b_, round, 1, two_));
    Expect(b_, round, two_);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cuStreamQuery(one_), CUDA_ERROR_NOT_READY);
  HAWSER_CU(cuMemsetD32Async(flag, 1, 1, two_));
  frees.join();
  HAWSER_CU(cuCtxSynchronize());
}

TEST_F(CudaPending, FunctionsOfStreamsThatWaitForEachOther) {
  struct Word {
    uint32_t order = 0;
    std::vector<uint32_t> seen;
  } word;
  const auto next = [](void* data) {
    auto* const all = static_cast<Word*>(data);
    all->seen.push_back(all->order++);
  };
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Hold(one_);
  constexpr unsigned kRounds = 100;
  for (unsigned i = 0; i < kRounds; ++i) {
    CUstream const from = i % 2 == 0 ? one_ : two_, to = i % 2 == 0 ? two_ : one_;
    Add(a_, 5, from);
    HAWSER_CU(cuLaunchHostFunc(from, next, &word));
    HAWSER_CU(cuEventRecord(event, from));
    HAWSER_CU(cuStreamWaitEvent(to, event, 0));
  }
  Go();
  Expect(a_, 5 * kRounds, kRounds % 2 == 0 ? one_ : two_);
  ASSERT_EQ(word.seen.size(), kRounds);
  for (unsigned i = 0; i < kRounds; ++i) EXPECT_EQ(word.seen[i], i);
}

// The function ends when the copies are done, and they are in another stream.
TEST_F(CudaPending, LargeCopiesBesideAFunction) {
  const std::vector<uint8_t> sent(kLarge, 7);
  std::vector<uint8_t> received(kLarge);
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  Hold(one_);
  Add(a_, 1, one_);
  HAWSER_CU(cuMemcpyHtoDAsync(memory, sent.data(), kLarge, two_));
  HAWSER_CU(cuMemcpyDtoHAsync(received.data(), memory, kLarge, two_));
  HAWSER_CU(cuStreamSynchronize(two_));
  EXPECT_EQ(received, sent);
  Go();
  Expect(a_, 1, one_);
}

TEST_F(CudaPending, LargeCopiesOnManyStreamsAndLaunchesBehindThem) {
  constexpr unsigned kStreams = 12, kRounds = 3, kCount = kLarge / sizeof(uint32_t);
  Hold(one_);
  std::vector<CUstream> streams(kStreams);
  std::vector<CUdeviceptr> memory(kStreams);
  std::vector<std::vector<uint32_t>> data(kStreams);
  for (unsigned i = 0; i < kStreams; ++i) {
    HAWSER_CU(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&memory[i], kLarge));
    data[i].assign(kCount, i);
  }
  for (unsigned round = 0; round < kRounds; ++round) {
    for (unsigned i = 0; i < kStreams; ++i) {
      HAWSER_CU(cuMemcpyHtoDAsync(memory[i], data[i].data(), kLarge, streams[i]));
      HAWSER_CU(LaunchAdd(add_, memory[i], kCount, 100, streams[i]));
      HAWSER_CU(cuMemcpyDtoHAsync(data[i].data(), memory[i], kLarge, streams[i]));
      HAWSER_CU(cuStreamSynchronize(streams[i]));
    }
  }
  for (unsigned i = 0; i < kStreams; ++i) {
    EXPECT_EQ(data[i], std::vector<uint32_t>(kCount, i + 100 * kRounds));
  }
  // Behind the function, all at once. Who copies ordinary memory may have to wait for its stream on a device of its
  // own.
  std::thread copies([&] {
    HAWSER_CU(cuCtxSetCurrent(context_));
    for (unsigned i = 0; i < kStreams; ++i) {
      data[i].assign(kCount, i);
      HAWSER_CU(cuMemcpyHtoDAsync(memory[i], data[i].data(), kLarge, i % 2 == 0 ? one_ : streams[i]));
      HAWSER_CU(LaunchAdd(add_, memory[i], kCount, 1, i % 2 == 0 ? one_ : streams[i]));
    }
  });
  if (std::getenv("HAWSER_SERVER") != nullptr) copies.join();
  std::vector<uint32_t> other(kCount, 1);
  CUdeviceptr beside = 0;
  HAWSER_CU(cuMemAlloc(&beside, kLarge));
  HAWSER_CU(cuMemcpyHtoDAsync(beside, other.data(), kLarge, two_));
  HAWSER_CU(LaunchAdd(add_, beside, kCount, 10, two_));
  HAWSER_CU(cuMemcpyDtoHAsync(other.data(), beside, kLarge, two_));
  HAWSER_CU(cuStreamSynchronize(two_));
  EXPECT_EQ(other, std::vector<uint32_t>(kCount, 11));
  Go();
  if (copies.joinable()) copies.join();
  for (unsigned i = 0; i < kStreams; ++i) {
    HAWSER_CU(cuMemcpyDtoHAsync(data[i].data(), memory[i], kLarge, i % 2 == 0 ? one_ : streams[i]));
    HAWSER_CU(cuStreamSynchronize(i % 2 == 0 ? one_ : streams[i]));
    EXPECT_EQ(data[i], std::vector<uint32_t>(kCount, i + 1));
  }
}

TEST_F(CudaPending, WhatEndsBehindAFunctionDelaysNobody) {
  CUdeviceptr memory = 0, pooled = 0;
  CUmodule module = nullptr, another = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape{};
  shape.Width = 16;
  shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  HAWSER_CU(cuMemAllocAsync(&pooled, kLarge, one_));
  HAWSER_CU(cuModuleLoadData(&module, Kernels()));
  HAWSER_CU(cuArrayCreate(&array, &shape));
  Hold(one_);
  Add(a_, 1, one_);
  HAWSER_CU(cuMemFreeAsync(pooled, one_));
  // These may wait for the device.
  std::thread frees([&] {
    HAWSER_CU(cuCtxSetCurrent(context_));
    HAWSER_CU(cuMemFree(memory));
    HAWSER_CU(cuArrayDestroy(array));
    HAWSER_CU(cuModuleUnload(module));
  });
  // These do not.
  CUdeviceptr other = 0;
  size_t free = 0, total = 0;
  CUevent event = nullptr, later = nullptr;
  CUstream stream = nullptr;
  HAWSER_CU(cuMemAlloc(&other, kLarge));
  HAWSER_CU(cuMemGetInfo(&free, &total));
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuEventCreate(&event, 0));
  HAWSER_CU(cuEventCreate(&later, 0));
  HAWSER_CU(cuEventRecord(event, stream));
  HAWSER_CU(cuEventRecord(later, one_));
  HAWSER_CU(cuEventSynchronize(event));
  float time = 0;
  EXPECT_EQ(cuEventElapsedTime(&time, event, later), CUDA_ERROR_NOT_READY);
  HAWSER_CU(cuMemAllocAsync(&pooled, kLarge, stream));
  HAWSER_CU(cuMemFreeAsync(pooled, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  HAWSER_CU(cuFuncSetAttribute(add_, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
  HAWSER_CU(cuModuleLoadData(&another, Kernels()));
  HAWSER_CU(cuEventDestroy(event));
  HAWSER_CU(cuStreamDestroy(stream));
  Add(b_, 10, two_);
  Expect(b_, 10, two_);
  // Streams and events that end behind the function, and others that take their places.
  CUstream held = nullptr;
  HAWSER_CU(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamWaitEvent(held, later, 0));
  Add(a_, 1, held);
  HAWSER_CU(cuEventCreate(&event, 0));
  HAWSER_CU(cuEventRecord(event, held));
  HAWSER_CU(cuStreamDestroy(held));
  HAWSER_CU(cuEventDestroy(event));
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuEventCreate(&event, 0));
  Add(b_, 10, stream);
  HAWSER_CU(cuEventRecord(event, stream));
  HAWSER_CU(cuEventSynchronize(event));
  Expect(b_, 20, stream);
  Go();
  frees.join();
  HAWSER_CU(cuEventSynchronize(later));
  HAWSER_CU(cuCtxSynchronize());
  Expect(a_, 2, one_);
}

TEST_F(CudaPending, ModulesThatEndBehindAFunctionMakeRoomForOthers) {
  CUmodule module = nullptr, another = nullptr;
  CUfunction function = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, Kernels()));
  HAWSER_CU(cuModuleGetFunction(&function, module, "add"));
  Add(a_, 1, one_);
  Hold(one_);
  Add(a_, 1, one_);
  HAWSER_CU(LaunchAdd(function, a_, 1, 1, one_));
  // A driver may wait for the device here.
  const std::future<void> ended = std::async(std::launch::async, [&] {
    HAWSER_CU(cuCtxSetCurrent(context_));
    HAWSER_CU(cuModuleUnload(module));
  });
  (void)ended.wait_for(std::chrono::seconds(2));
  HAWSER_CU(cuModuleLoadData(&another, Kernels()));
  HAWSER_CU(cuModuleGetFunction(&function, another, "add"));
  HAWSER_CU(LaunchAdd(function, b_, 1, 5, two_));
  Expect(b_, 5, two_);
  Go();
  ended.wait();
  Expect(a_, 3, one_);
  HAWSER_CU(LaunchAdd(function, b_, 1, 5, two_));
  Expect(b_, 10, two_);
  HAWSER_CU(cuModuleUnload(another));
}

TEST_F(CudaPending, GraphsAreMadeBehindAFunction) {
  Hold(one_);
  Add(a_, 1, one_);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  HAWSER_CU(cuStreamBeginCapture(one_, CU_STREAM_CAPTURE_MODE_RELAXED));
  Add(a_, 10, one_);
  HAWSER_CU(cuStreamEndCapture(one_, &graph));
  size_t nodes = 0;
  HAWSER_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 10u);
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 200; ++i) HAWSER_CU(cuGraphLaunch(exec, one_));
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph));
  Go();
  Expect(a_, 2001, one_);
}

// A function in a graph: the driver itself calls it.
TEST_F(CudaPending, LaunchesBehindAGraphWithAFunction) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS function = HoldingFunction();
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddHostNode(&node, graph, nullptr, 0, &function));
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  const std::vector<uint8_t> sent(kLarge, 9);
  std::vector<uint8_t> received(kLarge);
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  HAWSER_CU(cuGraphLaunch(exec, one_));
  std::thread launches([&] { AddOnThread(a_, 4000, one_); });
  HAWSER_CU(cuMemcpyHtoDAsync(memory, sent.data(), kLarge, two_));
  HAWSER_CU(cuMemcpyDtoHAsync(received.data(), memory, kLarge, two_));
  HAWSER_CU(cuStreamSynchronize(two_));
  EXPECT_EQ(received, sent);
  Go();
  launches.join();
  Expect(a_, 4000, one_);
}

}  // namespace
}  // namespace hawser
