// SPDX-License-Identifier: Apache-2.0
// Large allocations, which lie in the memory that guest and worker share where there is one: whatever way copies take,
// a program sees what a driver of its own shows it. That they take the short way is cuda_copies_test.py's to say.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

constexpr uint32_t kCount = 4u << 20;  // 16 MiB.

class CudaHeapMemory : public CudaTest {
 protected:
  static std::vector<uint32_t> Numbers(uint32_t count, uint32_t first) {
    std::vector<uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }
  static uint32_t Differences(CUdeviceptr memory, const std::vector<uint32_t>& wanted) {
    std::vector<uint32_t> got(wanted.size());
    const CUresult result = cuMemcpyDtoH(got.data(), memory, got.size() * 4);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    uint32_t differ = 0;
    for (size_t i = 0; i < got.size(); ++i) differ += got[i] != wanted[i] ? 1 : 0;
    return differ;
  }
  static CUresult Spin(CUfunction spin, CUdeviceptr memory, uint32_t rounds, CUstream stream) {
    void* parameters[] = {&memory, &rounds};
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  static size_t FreeBytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }
};

// cuda_copies_test.py looks at the commands of this one.
TEST_F(CudaHeapMemory, PageableCopiesOf16Megabytes) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  std::vector<uint32_t> numbers = Numbers(kCount, 1);
  for (uint32_t round = 0; round < 3; ++round) {
    HAWSER_CU(cuMemcpyHtoD(memory, numbers.data(), kCount * 4));
    HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 5, nullptr));
    for (uint32_t& number : numbers) number += 5;
    EXPECT_EQ(Differences(memory, numbers), 0u) << round;
  }
  HAWSER_CU(cuMemFree(memory));
}

// And of this one: per round the copy to the device has nothing to wait for, the copy back has a kernel; most of a
// large one that need not wait is the device's all the same.
TEST_F(CudaHeapMemory, PinnedCopiesInAStream) {
  constexpr uint32_t kSmall = 1u << 18;  // 1 MiB.
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  void* pinned = nullptr;
  HAWSER_CU(cuMemHostAlloc(&pinned, kCount * 4, 0));
  auto* numbers = static_cast<uint32_t*>(pinned);
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUfunction add = Function("add");
  for (uint32_t round = 0; round < 3; ++round) {
    std::iota(numbers, numbers + kSmall, round);
    HAWSER_CU(cuMemcpyHtoDAsync(memory, numbers, kSmall * 4, stream));
    HAWSER_CU(LaunchAdd(add, memory, kSmall, 5, stream));
    HAWSER_CU(cuMemcpyDtoHAsync(numbers, memory, kSmall * 4, stream));
    HAWSER_CU(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < kSmall; ++i) ASSERT_EQ(numbers[i], round + i + 5) << "round " << round;
  }
  std::iota(numbers, numbers + kCount, 7);
  HAWSER_CU(cuMemcpyHtoDAsync(memory, numbers, kCount * 4, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Differences(memory, Numbers(kCount, 7)), 0u);
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuMemFree(memory));
}

// Of a long copy that waits for nothing the caller does the beginning, while the server wakes for the rest.
TEST_F(CudaHeapMemory, LongPinnedCopiesAreWhole) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  void* pinned = nullptr;
  void* other = nullptr;
  HAWSER_CU(cuMemHostAlloc(&pinned, kCount * 4, 0));
  HAWSER_CU(cuMemHostAlloc(&other, kCount * 4, 0));
  auto* numbers = static_cast<uint32_t*>(pinned);
  auto* back = static_cast<uint32_t*>(other);
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUfunction add = Function("add");
  uint32_t first = 100;
  for (const uint32_t count : {kCount, kCount / 2, kCount / 2 - 1, kCount - 1027}) {
    const uint32_t skipped = kCount - count;
    const CUdeviceptr part = memory + size_t{skipped} * 4;
    std::iota(numbers, numbers + kCount, first);
    std::fill(back, back + kCount, 0u);
    HAWSER_CU(cuMemcpyHtoDAsync(part, numbers + skipped, size_t{count} * 4, stream));  // Nothing comes before.
    HAWSER_CU(LaunchAdd(add, part, count, 5, stream));
    HAWSER_CU(cuMemcpyDtoHAsync(back + skipped, part, size_t{count} * 4, stream));  // Behind a kernel.
    HAWSER_CU(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(back[i], i < skipped ? 0 : first + i + 5) << i << " of " << count;
    std::fill(back, back + kCount, 1u);
    HAWSER_CU(cuMemcpyDtoHAsync(back + skipped, part, size_t{count} * 4, stream));  // Nothing comes before.
    HAWSER_CU(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(back[i], i < skipped ? 1 : first + i + 5) << i << " of " << count;
    first += 1000;
  }
  // One that is refused leaves all as it was.
  CUdeviceptr half = 0;
  HAWSER_CU(cuMemAlloc(&half, kCount * 2));
  HAWSER_CU(cuMemsetD32(half, 77, kCount / 2));
  std::iota(numbers, numbers + kCount, first);
  CUresult refused = cuMemcpyHtoDAsync(half, numbers, kCount * 4, stream);
  if (refused == CUDA_SUCCESS) refused = cuStreamSynchronize(stream);
  EXPECT_EQ(refused, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Differences(half, std::vector<uint32_t>(kCount / 2, 77)), 0u);
  HAWSER_CU(cuMemFree(half));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFreeHost(other));
  HAWSER_CU(cuMemFreeHost(pinned));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaHeapMemory, PartsOfAnyPlaceAndSize) {
  constexpr size_t kBytes = (1u << 20) + 12345;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kBytes));
  HAWSER_CU(cuMemsetD8(memory, 0, kBytes));
  std::vector<uint8_t> shadow(kBytes, 0);
  uint32_t seed = 1;
  const auto random = [&seed](size_t below) {
    seed = seed * 1664525u + 1013904223u;
    return static_cast<size_t>(seed >> 4) % below;
  };
  for (int round = 0; round < 60; ++round) {
    const size_t offset = random(kBytes);
    const size_t size = 1 + random(round % 3 == 0 ? std::min<size_t>(4096, kBytes - offset) : kBytes - offset);
    std::vector<uint8_t> data(size);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random(256));
    HAWSER_CU(round % 2 == 0 ? cuMemcpyHtoD(memory + offset, data.data(), size)
                             : cuMemcpyHtoDAsync(memory + offset, data.data(), size, nullptr));
    std::copy(data.begin(), data.end(), shadow.begin() + static_cast<ptrdiff_t>(offset));
    const size_t from = random(kBytes);
    std::vector<uint8_t> back(kBytes - from);
    HAWSER_CU(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), memory + from, back.size()));
    ASSERT_TRUE(std::equal(back.begin(), back.end(), shadow.begin() + static_cast<ptrdiff_t>(from))) << round;
  }
  std::vector<uint8_t> more(100000);
  EXPECT_EQ(cuMemcpyDtoH(more.data(), memory + kBytes - 99999, more.size()), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaHeapMemory, ACopyComesAfterWhatTheStreamDoes) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  const CUfunction spin = Function("spin");
  const CUfunction add = Function("add");
  std::vector<uint32_t> wanted(kCount, 0);
  HAWSER_CU(cuMemcpyHtoD(memory, wanted.data(), kCount * 4));
  uint32_t total = 0;
  for (uint32_t round = 0; round < 10; ++round) {
    // The default stream waits for a stream that is not non-blocking, and it for the default stream.
    HAWSER_CU(Spin(spin, memory, 20000, stream));
    HAWSER_CU(LaunchAdd(add, memory, kCount / 16, 1, stream));
    total += 20000;
    std::fill(wanted.begin(), wanted.begin() + kCount / 16, round + 1);
    wanted[0] += total;
    ASSERT_EQ(Differences(memory, wanted), 0u) << "read behind a kernel, round " << round;
    HAWSER_CU(Spin(spin, memory + 4, 20000, stream));
    HAWSER_CU(cuMemcpyHtoD(memory, wanted.data(), kCount * 4));  // Takes away what spin has counted.
    ASSERT_EQ(Differences(memory, wanted), 0u) << "written behind a kernel, round " << round;
  }
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaHeapMemory, ACopyInAStreamComesAfterTheDefaultStreamAndNoOther) {
  constexpr uint32_t kSize = 65536, kRounds = 200000;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kSize * 4));
  CUstream stream = nullptr, other = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  HAWSER_CU(cuStreamCreate(&other, CU_STREAM_DEFAULT));
  std::vector<uint32_t> got(kSize);
  const CUfunction spin = Function("spin");
  for (uint32_t round = 0; round < 5; ++round) {
    HAWSER_CU(cuMemsetD32(memory, 0, kSize));
    HAWSER_CU(Spin(spin, memory, kRounds, nullptr));
    HAWSER_CU(cuMemcpyDtoHAsync(got.data(), memory, kSize * 4, stream));  // Pageable: done when it returns.
    ASSERT_EQ(got[0], kRounds) << round;
  }
  std::atomic<bool> copied{false};
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  HAWSER_CU(cuLaunchHostFunc(other, wait, &copied));
  HAWSER_CU(cuMemcpyDtoHAsync(got.data(), memory, kSize * 4, stream));
  copied = true;
  HAWSER_CU(cuStreamSynchronize(other));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuStreamDestroy(other));
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaHeapMemory, OneThreadLaunchesAnotherReads) {
  constexpr uint32_t kRounds = 300, kSize = 32768;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kSize * 4));
  HAWSER_CU(cuMemsetD32(memory, 0, kSize));
  const CUfunction add = Function("add");
  std::atomic<uint32_t> launched{0}, read{0};
  std::atomic<uint32_t> wrong{0};
  std::thread reader([&] {
    if (cuCtxSetCurrent(context_) != CUDA_SUCCESS) ++wrong;
    std::vector<uint32_t> got(kSize);
    for (uint32_t round = 1; round <= kRounds; ++round) {
      while (launched.load() < round) std::this_thread::yield();
      if (cuMemcpyDtoH(got.data(), memory, kSize * 4) != CUDA_SUCCESS) ++wrong;
      if (got.front() != round || got.back() != round) ++wrong;
      read = round;
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    if (LaunchAdd(add, memory, kSize, 1, nullptr) != CUDA_SUCCESS) ++wrong;
    launched = round;
    while (read.load() < round) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(wrong.load(), 0u);
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaHeapMemory, FreedMemoryIsNobodysWhileAKernelUsesIt) {
  constexpr uint32_t kSize = 1u << 20;
  const CUfunction spin = Function("spin");
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int round = 0; round < 10; ++round) {
    CUdeviceptr old = 0;
    HAWSER_CU(cuMemAlloc(&old, kSize));
    HAWSER_CU(cuMemsetD8(old, 0, kSize));
    HAWSER_CU(cuCtxSynchronize());
    HAWSER_CU(Spin(spin, old, 30000, stream));
    if (round % 2 == 0) {
      HAWSER_CU(cuMemFree(old));
    } else {
      HAWSER_CU(cuMemFreeAsync(old, stream));
    }
    // Both come from where the old one lay.
    void* pinned = nullptr;
    HAWSER_CU(cuMemAllocHost(&pinned, kSize));
    std::memset(pinned, 1, kSize);
    CUdeviceptr fresh = 0;
    HAWSER_CU(cuMemAlloc(&fresh, kSize));
    const std::vector<uint32_t> wanted(kSize / 4, 0x02020202);
    HAWSER_CU(cuMemcpyHtoD(fresh, wanted.data(), kSize));
    HAWSER_CU(cuStreamSynchronize(stream));
    EXPECT_EQ(Differences(fresh, wanted), 0u) << round;
    const auto* bytes = static_cast<const uint8_t*>(pinned);
    EXPECT_EQ(std::count(bytes, bytes + kSize, 1), static_cast<ptrdiff_t>(kSize)) << round;
    HAWSER_CU(cuMemFreeHost(pinned));
    HAWSER_CU(cuMemFree(fresh));
  }
  HAWSER_CU(cuStreamDestroy(stream));
}

TEST_F(CudaHeapMemory, IsDeviceMemoryLikeAnyOther) {
  const size_t before = FreeBytes();
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  EXPECT_GE(before - FreeBytes(), size_t{kCount} * 4);
  unsigned type = 0, managed = 1;
  HAWSER_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  HAWSER_CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
  EXPECT_EQ(managed, 0u);
  void* host = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr base = 0;
  size_t size = 0;
  HAWSER_CU(cuMemGetAddressRange(&base, &size, memory + 100));
  EXPECT_EQ(base, memory);
  EXPECT_EQ(size, size_t{kCount} * 4);
  HAWSER_CU(cuMemFree(memory));
  EXPECT_GE(FreeBytes() + (4u << 20), before);  // A chunk may be kept.
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(&memory, before + (1u << 20)), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(CudaHeapMemory, RowsAreCopiedOneByOneAndAltogether) {
  constexpr size_t kWidth = 1000, kHeight = 300;
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  HAWSER_CU(cuMemAllocPitch(&memory, &pitch, kWidth, kHeight, 4));
  ASSERT_GE(pitch, kWidth);
  HAWSER_CU(cuMemsetD8(memory, 9, pitch * kHeight));
  const std::vector<uint32_t> rows = Numbers(kWidth / 4 * kHeight, 77);
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
  std::vector<uint8_t> all(pitch * kHeight);
  HAWSER_CU(cuMemcpyDtoH(all.data(), memory, all.size()));
  for (size_t row = 0; row < kHeight; ++row) {
    ASSERT_EQ(std::memcmp(all.data() + row * pitch, rows.data() + row * (kWidth / 4), kWidth), 0) << row;
  }
  HAWSER_CU(cuMemFree(memory));
}

// On the software device, where memory does not come in chunks: cuda_copies_test.py runs it.
TEST_F(CudaHeapMemory, DISABLED_AnAccessBehindTheLastByteIsFound) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 100000));  // No whole number of pages.
  CUdeviceptr behind = memory + 100000;
  uint32_t value = 1;
  void* parameters[] = {&behind, &value};
  HAWSER_CU(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<uint8_t> back(100000);
  EXPECT_EQ(cuMemcpyDtoH(back.data(), memory, back.size()), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemcpyHtoD(memory, back.data(), back.size()), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CudaHeapMemory, ContextsThatEndLeaveRoomForOthers) {
  // Together far more than the shared memory has; never touched.
  const size_t most = FreeBytes() / 2;
  for (int round = 0; round < 12; ++round) {
    CUcontext context = nullptr;
    CUctxCreateParams parameters{};
    HAWSER_CU(cuCtxCreate(&context, &parameters, 0, device_));
    CUdeviceptr memory = 0;
    HAWSER_CU(cuMemAlloc(&memory, most));
    const std::vector<uint32_t> wanted = Numbers(100000, static_cast<uint32_t>(round));
    HAWSER_CU(cuMemcpyHtoD(memory, wanted.data(), wanted.size() * 4));
    EXPECT_EQ(Differences(memory, wanted), 0u);
    HAWSER_CU(cuCtxDestroy(context));
    HAWSER_CU(cuCtxSetCurrent(context_));
  }
}

TEST_F(CudaHeapMemory, CapturedCopiesStayInTheirGraph) {
  constexpr uint32_t kSize = 65536;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kSize * 4));
  HAWSER_CU(cuMemsetD32(memory, 0, kSize));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const std::vector<uint32_t> numbers = Numbers(kSize, 3);
  std::vector<uint32_t> back(kSize);
  HAWSER_CU(cuStreamSynchronize(stream));
  HAWSER_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  HAWSER_CU(cuMemcpyHtoDAsync(memory, numbers.data(), kSize * 4, stream));
  HAWSER_CU(cuMemcpyDtoHAsync(back.data(), memory, kSize * 4, stream));
  CUgraph graph = nullptr;
  HAWSER_CU(cuStreamEndCapture(stream, &graph));
  EXPECT_EQ(Differences(memory, std::vector<uint32_t>(kSize, 0)), 0u);
  CUgraphExec executable = nullptr;
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  HAWSER_CU(cuGraphLaunch(executable, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(Differences(memory, numbers), 0u);
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
  HAWSER_CU(cuStreamDestroy(stream));
}

}  // namespace
}  // namespace hawser
