// SPDX-License-Identifier: Apache-2.0
// How often a program waits for the server. Each disabled test is a program of its own, whose guest library counts.
#include <cuda.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/guest_waits.h"

namespace hawser {
namespace {

constexpr int kSteps = 20;
constexpr int kLaunches = 50;
constexpr uint32_t kWords = 1024;
constexpr size_t kBytes = kWords * sizeof(uint32_t);

/// What a training-like step works on: made once, so that the steps allocate nothing.
class CudaWaits : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuEventCreate(&begin_, CU_EVENT_DEFAULT));
    HAWSER_CU(cuEventCreate(&end_, CU_EVENT_DEFAULT));
    HAWSER_CU(cuMemAlloc(&memory_, 2 * kBytes));
    add_ = Function("add");
  }

  /// Two copies to the device, 50 launches, two copies back, two events, and one wait at the end; `each`: one after
  /// each copy.
  void Steps(uint32_t* host, bool each) {
    for (int step = 0; step < WantedRounds(); ++step) {
      for (uint32_t i = 0; i < 2 * kWords; ++i) host[i] = static_cast<uint32_t>(step) + i;
      HAWSER_CU(cuEventRecord(begin_, stream_));
      for (uint32_t half = 0; half < 2; ++half) {
        HAWSER_CU(cuMemcpyHtoDAsync(memory_ + half * kBytes, host + half * kWords, kBytes, stream_));
        if (each) HAWSER_CU(cuStreamSynchronize(stream_));
      }
      for (int launch = 0; launch < kLaunches; ++launch) {
        HAWSER_CU(LaunchAdd(add_, memory_, 2 * kWords, 1, stream_));
      }
      for (uint32_t half = 0; half < 2; ++half) {
        HAWSER_CU(cuMemcpyDtoHAsync(host + half * kWords, memory_ + half * kBytes, kBytes, stream_));
        if (each && half == 0) HAWSER_CU(cuStreamSynchronize(stream_));
      }
      HAWSER_CU(cuEventRecord(end_, stream_));
      HAWSER_CU(cuStreamSynchronize(stream_));
      for (uint32_t i = 0; i < 2 * kWords; ++i) {
        ASSERT_EQ(host[i], static_cast<uint32_t>(step) + i + kLaunches) << "word " << i << " of step " << step;
      }
    }
  }
  void PinnedSteps(bool each) {
    void* host = nullptr;
    HAWSER_CU(cuMemAllocHost(&host, 2 * kBytes));
    Steps(static_cast<uint32_t*>(host), each);
    HAWSER_CU(cuMemFreeHost(host));
  }

  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUfunction add_ = nullptr;
};

TEST_F(CudaWaits, DISABLED_PinnedSteps) { PinnedSteps(/*each=*/false); }
TEST_F(CudaWaits, DISABLED_PinnedStepsWithFourWaits) { PinnedSteps(/*each=*/true); }
TEST_F(CudaWaits, DISABLED_PageableSteps) {
  std::vector<uint32_t> host(2 * kWords);
  Steps(host.data(), /*each=*/false);
}

TEST(CudaWaitsTest, ATrainingLikeStepNeedsOneWaitingRoundTrip) {
  const long waits = WaitsOfRounds("CudaWaits.DISABLED_PinnedSteps", kSteps);
  EXPECT_GT(waits, 0) << "the program failed, or nothing counts";
  EXPECT_LE(waits, 1 * kSteps);
}

TEST(CudaWaitsTest, AStepWithOrdinaryMemoryNeedsAtMostFour) {
  const long waits = WaitsOfRounds("CudaWaits.DISABLED_PageableSteps", kSteps);
  EXPECT_GT(waits, 0) << "the program failed, or nothing counts";
  EXPECT_LE(waits, 4 * kSteps);
}

// That the count would show more.
TEST(CudaWaitsTest, AStepThatWaitsFourTimesCostsMoreThanOneThatWaitsOnce) {
  const long waits = WaitsOfRounds("CudaWaits.DISABLED_PinnedStepsWithFourWaits", kSteps);
  EXPECT_GT(waits, 1 * kSteps);
  EXPECT_LE(waits, 4 * kSteps);
}

/// Settings that only the program changes: told once, and again after each change.
TEST_F(CudaWaits, DISABLED_Settings) {
  CUmemoryPool pool = nullptr;
  HAWSER_CU(cuDeviceGetDefaultMemPool(&pool, device_));
  for (int round = 0; round < WantedRounds(); ++round) {
    size_t heap = 0;
    HAWSER_CU(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT_GT(heap, 0u);
    cuuint64_t threshold = 1;
    HAWSER_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    int opportunistic = -1;
    HAWSER_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic));
    EXPECT_GE(opportunistic, 0);
  }
}

TEST(CudaWaitsTest, SettingsAreAskedForOnce) { EXPECT_EQ(WaitsOfRounds("CudaWaits.DISABLED_Settings", kSteps), 0); }

/// Tensor maps, of which programs make the same ones before launch after launch.
TEST_F(CudaWaits, DISABLED_TensorMaps) {
  for (int round = 0; round < WantedRounds(); ++round) {
    for (cuuint64_t width = 32; width <= 128; width += 32) {
      const std::array<cuuint64_t, 2> size{width, 2};
      const cuuint64_t stride = 4 * width;
      const std::array<cuuint32_t, 2> box{32, 2};
      const std::array<cuuint32_t, 2> steps{1, 1};
      CUtensorMap map{};
      HAWSER_CU(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, reinterpret_cast<void*>(memory_),
                                       size.data(), &stride, box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                       CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    }
  }
}

TEST(CudaWaitsTest, TensorMapsAreAskedForOnce) { EXPECT_EQ(WaitsOfRounds("CudaWaits.DISABLED_TensorMaps", kSteps), 0); }

/// A graph with a node of each type of which the guest knows whether the driver takes it.
TEST_F(CudaWaits, DISABLED_Graphs) {
  uint32_t count = kWords, value = 1;
  void* parameters[] = {&memory_, &count, &value};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = add_;
  kernel.gridDimX = kWords / 128;
  kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 128;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = memory_;
  fill.elementSize = 4;
  fill.width = kWords;
  fill.height = 1;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory_;
  copy.dstDevice = memory_ + kBytes;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  CUDA_HOST_NODE_PARAMS host{};
  host.fn = [](void*) {};
  for (int round = 0; round < WantedRounds(); ++round) {
    CUgraph graph = nullptr;
    CUgraphNode nodes[7] = {};
    HAWSER_CU(cuGraphCreate(&graph, 0));
    HAWSER_CU(cuGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill, context_));
    HAWSER_CU(cuGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
    HAWSER_CU(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &copy, context_));
    HAWSER_CU(cuGraphAddEventRecordNode(&nodes[3], graph, &nodes[2], 1, begin_));
    HAWSER_CU(cuGraphAddEventWaitNode(&nodes[4], graph, &nodes[3], 1, begin_));
    HAWSER_CU(cuGraphAddHostNode(&nodes[5], graph, &nodes[4], 1, &host));
    HAWSER_CU(cuGraphAddEmptyNode(&nodes[6], graph, nodes, 6));
    HAWSER_CU(cuGraphDestroy(graph));
  }
}

TEST(CudaWaitsTest, GraphsAreMadeWithoutWaiting) { EXPECT_EQ(WaitsOfRounds("CudaWaits.DISABLED_Graphs", kSteps), 0); }

TEST_F(CudaWaits, ASettingIsWhatItWasSetToLast) {
  CUmemoryPool pool = nullptr;
  HAWSER_CU(cuDeviceGetDefaultMemPool(&pool, device_));
  for (const size_t wanted : {size_t{32} << 20, size_t{64} << 20}) {
    size_t heap = 0;
    HAWSER_CU(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, wanted));
    for (int i = 0; i < 2; ++i) {
      HAWSER_CU(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
      EXPECT_GE(heap, wanted);
    }
    cuuint64_t threshold = wanted;
    HAWSER_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    for (int i = 0; i < 2; ++i) {
      threshold = 0;
      HAWSER_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
      EXPECT_EQ(threshold, wanted);
    }
  }
}

}  // namespace
}  // namespace hawser
