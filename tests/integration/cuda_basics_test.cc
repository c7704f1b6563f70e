// SPDX-License-Identifier: Apache-2.0
// Memory, code, launches, streams and events: the same program locally and remotely.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

TEST_F(CudaTest, SeesADevice) {
  int count = 0;
  HAWSER_CU(cuDeviceGetCount(&count));
  EXPECT_GE(count, 1);
  char name[256] = {};
  HAWSER_CU(cuDeviceGetName(name, sizeof(name), device_));
  EXPECT_NE(name[0], 0);
  int major = 0, threads = 0;
  HAWSER_CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_));
  EXPECT_GE(major, 7);
  HAWSER_CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device_));
  EXPECT_GE(threads, 256);
  size_t memory = 0, free = 0, total = 0;
  HAWSER_CU(cuDeviceTotalMem(&memory, device_));
  HAWSER_CU(cuMemGetInfo(&free, &total));
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, total);
  EXPECT_LE(total, memory);
}

TEST_F(CudaTest, AddsVectors) {
  constexpr uint32_t kCount = 100003;
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i) * 0.5f;
    b[i] = static_cast<float>(kCount - i);
  }
  const size_t bytes = kCount * sizeof(float);
  CUdeviceptr da = 0, db = 0, dc = 0;
  HAWSER_CU(cuMemAlloc(&da, bytes));
  HAWSER_CU(cuMemAlloc(&db, bytes));
  HAWSER_CU(cuMemAlloc(&dc, bytes));
  HAWSER_CU(cuMemcpyHtoD(da, a.data(), bytes));
  HAWSER_CU(cuMemcpyHtoD(db, b.data(), bytes));
  CUfunction function = Function("vector_add");
  uint32_t count = kCount;
  void* parameters[] = {&dc, &da, &db, &count};
  HAWSER_CU(cuLaunchKernel(function, (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  HAWSER_CU(cuMemcpyDtoH(c.data(), dc, bytes));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  HAWSER_CU(cuMemFree(da));
  HAWSER_CU(cuMemFree(db));
  HAWSER_CU(cuMemFree(dc));
}

TEST_F(CudaTest, CopiesOfEverySizeArriveWhole) {
  constexpr size_t kMost = 21u << 20;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kMost));
  std::vector<unsigned char> out(kMost), back(kMost);
  uint32_t state = 1;
  for (const size_t size : {size_t{1}, size_t{4}, size_t{4095}, size_t{32768}, size_t{32769}, size_t{1} << 20,
                            (size_t{1} << 22) + 1, kMost}) {
    for (size_t i = 0; i < size; ++i)
      out[i] = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
    HAWSER_CU(cuMemcpyHtoD(memory, out.data(), size));
    std::fill(back.begin(), back.end(), 0);
    HAWSER_CU(cuMemcpyDtoH(back.data(), memory, size));
    ASSERT_EQ(std::memcmp(out.data(), back.data(), size), 0) << size;
    if (size < kMost) {
      ASSERT_EQ(back[size], 0) << size;
    }
  }
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaTest, SourceMayBeReusedOnceACopyHasReturned) {
  CUdeviceptr memory = 0;
  constexpr size_t kSize = 1u << 20;
  HAWSER_CU(cuMemAlloc(&memory, kSize));
  std::vector<uint32_t> numbers(kSize / 4), back(kSize / 4);
  for (uint32_t round = 0; round < 20; ++round) {
    std::fill(numbers.begin(), numbers.end(), round);
    HAWSER_CU(cuMemcpyHtoD(memory, numbers.data(), kSize));
    std::fill(numbers.begin(), numbers.end(), 0xdeadu);
    HAWSER_CU(cuMemcpyDtoH(back.data(), memory, kSize));
    for (const uint32_t value : back) ASSERT_EQ(value, round);
  }
}

TEST_F(CudaTest, ThreadsCopyLargeMemoryAtOnce) {
  constexpr size_t kSize = (5u << 20) + 12;
  constexpr uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, -1);
  for (uint32_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      CUdeviceptr memory = 0;
      CUstream stream = nullptr;
      if (cuCtxSetCurrent(context_) != CUDA_SUCCESS || cuMemAlloc(&memory, kSize) != CUDA_SUCCESS) return;
      if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return;
      std::vector<uint32_t> data(kSize / 4), back(kSize / 4);
      int bad = 0;
      for (uint32_t round = 0; round < 4; ++round) {
        std::iota(data.begin(), data.end(), number * 1000000 + round);
        bad += cuMemcpyHtoDAsync(memory, data.data(), kSize, stream) != CUDA_SUCCESS;
        std::fill(data.begin(), data.end(), 0);
        bad += cuMemcpyDtoHAsync(back.data(), memory, kSize, stream) != CUDA_SUCCESS;
        bad += cuStreamSynchronize(stream) != CUDA_SUCCESS;
        std::iota(data.begin(), data.end(), number * 1000000 + round);
        bad += data != back;
      }
      bad += cuStreamDestroy(stream) != CUDA_SUCCESS || cuMemFree(memory) != CUDA_SUCCESS;
      wrong[number] = bad;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

// The server stays in the release until the copies under way are done: their data may not lie behind data of commands
// that it has not met.
TEST_F(CudaTest, ThreadsReleaseMemoryWhileOthersCopy) {
  constexpr size_t kSize = 1u << 20;
  constexpr uint32_t kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, -1);
  for (uint32_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      CUstream stream = nullptr;
      if (cuCtxSetCurrent(context_) != CUDA_SUCCESS) return;
      if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return;
      std::vector<uint32_t> data(kSize / 4), back(kSize / 4);
      int bad = 0;
      for (uint32_t round = 0; round < 60; ++round) {
        CUdeviceptr memory = 0;
        bad += cuMemAlloc(&memory, kSize) != CUDA_SUCCESS;
        std::fill(data.begin(), data.end(), number * 1000000 + round);
        bad += cuMemcpyHtoDAsync(memory, data.data(), kSize, stream) != CUDA_SUCCESS;
        if (round % 8 == 7) {
          bad += cuMemcpyDtoHAsync(back.data(), memory, kSize, stream) != CUDA_SUCCESS;
          bad += cuStreamSynchronize(stream) != CUDA_SUCCESS;
          bad += data != back;
        }
        bad += cuMemFree(memory) != CUDA_SUCCESS;
      }
      bad += cuStreamDestroy(stream) != CUDA_SUCCESS;
      wrong[number] = bad;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST_F(CudaTest, SetsMemory) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  HAWSER_CU(cuMemsetD8(memory, 0x11, 4096));
  HAWSER_CU(cuMemsetD16(memory + 16, 0x2233, 8));
  HAWSER_CU(cuMemsetD32(memory + 64, 0x44556677, 4));
  std::vector<unsigned char> back(4096);
  HAWSER_CU(cuMemcpyDtoH(back.data(), memory, 4096));
  EXPECT_EQ(back[0], 0x11);
  EXPECT_EQ(back[16], 0x33);
  EXPECT_EQ(back[17], 0x22);
  EXPECT_EQ(back[32], 0x11);
  EXPECT_EQ(back[64], 0x77);
  EXPECT_EQ(back[79], 0x44);
  EXPECT_EQ(back[80], 0x11);
}

TEST_F(CudaTest, PinnedMemoryWorksBothWaysAndAsynchronously) {
  constexpr size_t kCount = 1u << 18;
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemHostAlloc(reinterpret_cast<void**>(&host), 2 * kCount * 4, 0));
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction add = Function("add");
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i;
  HAWSER_CU(cuMemcpyHtoDAsync(memory, host, kCount * 4, stream));
  HAWSER_CU(LaunchAdd(add, memory, kCount, 3, stream));
  HAWSER_CU(cuMemcpyDtoHAsync(host + kCount, memory, kCount * 4, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(host[kCount + i], i + 3);
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFreeHost(host));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaTest, EventsOrderStreamsAndTellTime) {
  constexpr uint32_t kCount = 1u << 16;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuMemsetD32(memory, 0, kCount));
  CUstream one = nullptr, two = nullptr;
  HAWSER_CU(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  CUevent start = nullptr, done = nullptr;
  HAWSER_CU(cuEventCreate(&start, CU_EVENT_DEFAULT));
  HAWSER_CU(cuEventCreate(&done, CU_EVENT_DEFAULT));
  CUfunction add = Function("add");
  HAWSER_CU(cuCtxSynchronize());
  for (int round = 0; round < 20; ++round) {
    HAWSER_CU(cuEventRecord(start, one));
    HAWSER_CU(LaunchAdd(add, memory, kCount, 1, one));
    HAWSER_CU(cuEventRecord(done, one));
    HAWSER_CU(cuStreamWaitEvent(two, done, 0));
    HAWSER_CU(LaunchAdd(add, memory, kCount, 1, two));
    HAWSER_CU(cuEventRecord(done, two));
    HAWSER_CU(cuStreamWaitEvent(one, done, 0));
  }
  std::vector<uint32_t> back(kCount);
  HAWSER_CU(cuEventSynchronize(done));
  EXPECT_EQ(cuEventQuery(done), CUDA_SUCCESS);
  HAWSER_CU(cuMemcpyDtoHAsync(back.data(), memory, kCount * 4, two));
  HAWSER_CU(cuStreamSynchronize(two));
  for (const uint32_t value : back) ASSERT_EQ(value, 40u);
  float milliseconds = -1;
  HAWSER_CU(cuEventElapsedTime(&milliseconds, start, done));
  EXPECT_GE(milliseconds, 0.f);
  HAWSER_CU(cuEventDestroy(start));
  HAWSER_CU(cuEventDestroy(done));
  HAWSER_CU(cuStreamDestroy(one));
  HAWSER_CU(cuStreamDestroy(two));
}

TEST_F(CudaTest, QueriesBecomeTrueWithoutAnyoneWaiting) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUfunction add = Function("add");
  HAWSER_CU(LaunchAdd(add, memory, 1024, 1, stream));
  HAWSER_CU(cuEventRecord(event, stream));
  CUresult result = CUDA_ERROR_NOT_READY;
  while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  EXPECT_EQ(result, CUDA_SUCCESS);
  while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  EXPECT_EQ(result, CUDA_SUCCESS);
}

struct HostCalls {
  std::atomic<int> count{0};
  std::vector<uint32_t>* landed = nullptr;
  uint32_t seen = 0;
};

TEST_F(CudaTest, HostFunctionsRunInOrderAndSeeWhatWasReadBefore) {
  constexpr uint32_t kCount = 1u << 16;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuMemsetD32(memory, 0, kCount));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuCtxSynchronize());
  CUfunction add = Function("add");
  std::vector<uint32_t> back(kCount);
  HostCalls calls;
  calls.landed = &back;
  for (uint32_t round = 1; round <= 10; ++round) {
    HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
    HAWSER_CU(cuMemcpyDtoHAsync(back.data(), memory, kCount * 4, stream));
    HAWSER_CU(cuLaunchHostFunc(
        stream,
        [](void* data) {
          auto* state = static_cast<HostCalls*>(data);
          state->seen = state->landed->back();
          ++state->count;
        },
        &calls));
    HAWSER_CU(cuStreamSynchronize(stream));
    ASSERT_EQ(calls.count, static_cast<int>(round));
    ASSERT_EQ(calls.seen, round);
  }
}

TEST_F(CudaTest, GlobalsCanBeReadAndWritten) {
  (void)Function("add");
  CUdeviceptr address = 0;
  size_t size = 0;
  HAWSER_CU(cuModuleGetGlobal(&address, &size, module_, "counter"));
  EXPECT_EQ(size, 8u);
  uint64_t value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, address, 8));
  EXPECT_EQ(value, 7u);
  value = 0x1122334455667788u;
  HAWSER_CU(cuMemcpyHtoD(address, &value, 8));
  value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, address, 8));
  EXPECT_EQ(value, 0x1122334455667788u);
}

TEST_F(CudaTest, DynamicSharedMemoryAndExtraParameters) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  std::vector<uint32_t> numbers(256);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 256; ++i) expected += numbers[i] = i * i;
  HAWSER_CU(cuMemcpyHtoD(memory, numbers.data(), 1024));
  struct {
    CUdeviceptr in, out;
  } parameters{memory, memory + 2048};
  size_t size = sizeof(parameters);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  HAWSER_CU(cuLaunchKernel(Function("shared_sum"), 1, 1, 1, 256, 1, 1, 1024, nullptr, nullptr, extra));
  uint32_t sum = 0;
  HAWSER_CU(cuMemcpyDtoH(&sum, memory + 2048, 4));
  EXPECT_EQ(sum, expected);
}

TEST_F(CudaTest, RowsAreCopiedWithTheirPitch) {
  constexpr size_t kWidth = 100, kHeight = 50;
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  HAWSER_CU(cuMemAllocPitch(&memory, &pitch, kWidth, kHeight, 4));
  EXPECT_GE(pitch, kWidth);
  std::vector<unsigned char> rows(kWidth * kHeight), back(kWidth * kHeight);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<unsigned char>(i * 31);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = kWidth;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = pitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  HAWSER_CU(cuMemcpy2D(&copy));
  CUDA_MEMCPY2D other{};
  other.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  other.srcDevice = memory;
  other.srcPitch = pitch;
  other.dstMemoryType = CU_MEMORYTYPE_HOST;
  other.dstHost = back.data();
  other.dstPitch = kWidth;
  other.WidthInBytes = kWidth;
  other.Height = kHeight;
  HAWSER_CU(cuMemcpy2D(&other));
  EXPECT_EQ(rows, back);
}

}  // namespace
}  // namespace hawser
