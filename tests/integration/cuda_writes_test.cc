// SPDX-License-Identifier: Apache-2.0
// Copies without a stream have been done when the call returns, for streams that nothing else orders behind them.
#include <cstring>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

// The names of --default-stream per-thread, which cuda.h declares only instead of the others.
extern "C" {
CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t size);
CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t size);
}

namespace hawser {
namespace {

constexpr uint32_t kNew = 0x600dda7a;

enum class From { kPageable, kPinned };
enum class Other { kMadeBefore, kMadeLater };
struct Case {
  const char* name;
  size_t size;
  From from;
  Other other;
  bool rows;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class CopiesTest : public CudaTest, public ::testing::WithParamInterface<Case> {
 protected:
  void Copy(CUdeviceptr to, const void* from) const {
    if (!GetParam().rows) {
      HAWSER_CU(cuMemcpyHtoD(to, from, GetParam().size));
      return;
    }
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.Height = 16;
    copy.WidthInBytes = copy.srcPitch = copy.dstPitch = GetParam().size / copy.Height;
    HAWSER_CU(cuMemcpy2D(&copy));
  }
};

TEST_P(CopiesTest, OtherStreamsSeeThem) {
  const size_t size = GetParam().size;
  CUdeviceptr memory = 0, busy = 0;
  HAWSER_CU(cuMemAlloc(&memory, size));
  HAWSER_CU(cuMemAlloc(&busy, 4));
  HAWSER_CU(cuMemsetD32(memory, 0, size / 4));
  CUstream other = nullptr;
  if (GetParam().other == Other::kMadeBefore) HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuCtxSynchronize());
  std::vector<uint32_t> plain(size / 4, kNew);
  void* source = plain.data();
  if (GetParam().from == From::kPinned) {
    HAWSER_CU(cuMemAllocHost(&source, size));
    std::memcpy(source, plain.data(), size);
  }
  uint32_t rounds = 500000;
  void* parameters[] = {&busy, &rounds};
  HAWSER_CU(cuLaunchKernel(Function("spin"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  Copy(memory, source);
  if (GetParam().other == Other::kMadeLater) HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  std::vector<uint32_t> back(size / 4);
  HAWSER_CU(cuMemcpyDtoHAsync(back.data(), memory, size, other));
  HAWSER_CU(cuStreamSynchronize(other));
  EXPECT_EQ(back.front(), kNew);
  EXPECT_EQ(back.back(), kNew);
  HAWSER_CU(cuCtxSynchronize());
  if (source != plain.data()) HAWSER_CU(cuMemFreeHost(source));
  HAWSER_CU(cuStreamDestroy(other));
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuMemFree(busy));
}

INSTANTIATE_TEST_SUITE_P(Ways, CopiesTest,
                         ::testing::Values(Case{"PageableSmall", 4096, From::kPageable, Other::kMadeBefore, false},
                                           Case{"PageableLarge", 1 << 20, From::kPageable, Other::kMadeBefore, false},
                                           Case{"PinnedSmall", 4096, From::kPinned, Other::kMadeBefore, false},
                                           Case{"PinnedLarge", 1 << 20, From::kPinned, Other::kMadeBefore, false},
                                           Case{"PageableSmallLater", 4096, From::kPageable, Other::kMadeLater, false},
                                           Case{"PageableLargeLater", 1 << 20, From::kPageable, Other::kMadeLater,
                                                false},
                                           Case{"PinnedLargeLater", 1 << 20, From::kPinned, Other::kMadeLater, false},
                                           Case{"Rows", 1 << 20, From::kPageable, Other::kMadeBefore, true},
                                           Case{"RowsLater", 4096, From::kPageable, Other::kMadeLater, true}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_F(CudaTest, CopiesInAThreadsOwnStreamAreSeenInOthers) {
  CUdeviceptr memory = 0, busy = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  HAWSER_CU(cuMemAlloc(&busy, 4));
  HAWSER_CU(cuMemsetD32(memory, 0, 1024));
  HAWSER_CU(cuCtxSynchronize());
  uint32_t rounds = 500000;
  void* parameters[] = {&busy, &rounds};
  CUfunction spin = Function("spin");
  HAWSER_CU(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, parameters, nullptr));
  const std::vector<uint32_t> values(1024, kNew);
  HAWSER_CU(cuMemcpyHtoD_v2_ptds(memory, values.data(), 4096));
  // The stream of another thread, made when that first needs it.
  uint32_t seen = 0;
  CUresult read = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    read = cuCtxSetCurrent(context_);
    if (read == CUDA_SUCCESS) read = cuMemcpyDtoH_v2_ptds(&seen, memory + 4092, 4);
  }).join();
  EXPECT_EQ(read, CUDA_SUCCESS) << ErrorName(read);
  EXPECT_EQ(seen, kNew);
  HAWSER_CU(cuCtxSynchronize());
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuMemFree(busy));
}

// What waits in a stream that blocks may wait for the very stream that is made: for that the copy must not be taken for
// all that its stream is behind.
TEST_F(CudaTest, StreamsAreMadeWhileOthersWait) {
  CUdeviceptr memory = 0, flag = 0;
  HAWSER_CU(cuMemAlloc(&memory, 4096));
  HAWSER_CU(cuMemAlloc(&flag, 4));
  HAWSER_CU(cuMemsetD32(flag, 0, 1));
  HAWSER_CU(cuCtxSynchronize());
  CUstream waits = nullptr;
  HAWSER_CU(cuStreamCreate(&waits, CU_STREAM_DEFAULT));
  const std::vector<uint32_t> values(1024, kNew);
  HAWSER_CU(cuMemcpyHtoD(memory, values.data(), 4096));
  HAWSER_CU(cuStreamWaitValue32(waits, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  CUstream other = nullptr;
  HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  uint32_t seen = 0;
  HAWSER_CU(cuMemcpyDtoHAsync(&seen, memory, 4, other));
  HAWSER_CU(cuStreamSynchronize(other));
  EXPECT_EQ(seen, kNew);
  HAWSER_CU(cuStreamWriteValue32(other, flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  HAWSER_CU(cuStreamSynchronize(waits));
  HAWSER_CU(cuStreamDestroy(other));
  HAWSER_CU(cuStreamDestroy(waits));
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuMemFree(flag));
}

// The mark of a context that has ended is not used in the next one under the same handle.
TEST_F(CudaTest, StreamsAreMadeAfterAReset) {
  for (uint32_t round = 1; round <= 3; ++round) {
    CUdeviceptr memory = 0;
    HAWSER_CU(cuMemAlloc(&memory, 4096));
    const std::vector<uint32_t> values(1024, round);
    HAWSER_CU(cuMemcpyHtoD(memory, values.data(), 4096));
    CUstream other = nullptr;
    HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    uint32_t seen = 0;
    HAWSER_CU(cuMemcpyDtoHAsync(&seen, memory, 4, other));
    HAWSER_CU(cuStreamSynchronize(other));
    EXPECT_EQ(seen, round);
    HAWSER_CU(cuDevicePrimaryCtxReset(device_));
    HAWSER_CU(cuDevicePrimaryCtxRelease(device_));
    HAWSER_CU(cuDevicePrimaryCtxRetain(&context_, device_));
    HAWSER_CU(cuCtxSetCurrent(context_));
  }
}

}  // namespace
}  // namespace hawser
