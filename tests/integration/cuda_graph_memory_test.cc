// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate and somebody else frees (CUDA driver API, "Graph Management", cuGraphAddMemAllocNode).
#include <cuda.h>

#include <cstdint>
#include <string>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

constexpr uint32_t kCount = 1000;

class CudaGraphMemory : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }

  /// A graph that allocates, fills its memory with `value` and leaves it.
  void MakeAllocating(uint32_t value, unsigned long long flags, CUgraphExec* exec, CUdeviceptr* memory) const {
    CUgraph graph = nullptr;
    HAWSER_CU(cuGraphCreate(&graph, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    parameters.bytesize = kCount * 4;
    CUgraphNode allocation = nullptr, fill = nullptr;
    HAWSER_CU(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &parameters));
    CUDA_MEMSET_NODE_PARAMS set{parameters.dptr, 0, value, 4, kCount, 1};
    HAWSER_CU(cuGraphAddMemsetNode(&fill, graph, &allocation, 1, &set, context_));
    HAWSER_CU(cuGraphInstantiate(exec, graph, flags));
    *memory = parameters.dptr;
  }
  uint32_t Last(CUdeviceptr memory) const {
    uint32_t value = 0;
    EXPECT_EQ(cuMemcpyDtoHAsync(&value, memory + (kCount - 1) * 4, 4, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    return value;
  }
  /// What a launch that cannot be comes to, told by the call or by the next one that waits.
  CUresult Launched(CUgraphExec exec) const {
    const CUresult launched = cuGraphLaunch(exec, stream_);
    return launched != CUDA_SUCCESS ? launched : cuStreamSynchronize(stream_);
  }

  CUstream stream_ = nullptr;
};

TEST_F(CudaGraphMemory, IsFreedByWhoeverHasIt) {
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0;
  MakeAllocating(7, 0, &exec, &memory);
  for (int round = 0; round < 3; ++round) {
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    EXPECT_EQ(Last(memory), 7u);
    HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 5, stream_));
    EXPECT_EQ(Last(memory), 12u) << "work that is ordered behind the graph uses it";
    HAWSER_CU(cuMemFree(memory));
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    EXPECT_EQ(Last(memory), 7u);
    HAWSER_CU(cuMemFreeAsync(memory, stream_));
  }
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE) << "twice";
  HAWSER_CU(cuGraphExecDestroy(exec));
}

TEST_F(CudaGraphMemory, AnotherGraphMayFreeIt) {
  CUgraphExec exec = nullptr, freeing_exec = nullptr;
  CUdeviceptr memory = 0;
  MakeAllocating(3, 0, &exec, &memory);
  CUgraph freeing = nullptr;
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphCreate(&freeing, 0));
  HAWSER_CU(cuGraphAddMemFreeNode(&node, freeing, nullptr, 0, memory));
  HAWSER_CU(cuGraphInstantiate(&freeing_exec, freeing, 0));
  for (int round = 0; round < 3; ++round) {
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    EXPECT_EQ(Last(memory), 3u);
    HAWSER_CU(cuGraphLaunch(freeing_exec, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
  }
}

TEST_F(CudaGraphMemory, AGraphWhoseMemoryNobodyFreedIsNotLaunchedAgain) {
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0;
  MakeAllocating(9, 0, &exec, &memory);
  HAWSER_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(Last(memory), 9u);
  EXPECT_EQ(Launched(exec), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuMemFree(memory));
  EXPECT_EQ(Launched(exec), CUDA_SUCCESS);
}

TEST_F(CudaGraphMemory, AGraphMayFreeWhatItLeftBeforeItRunsAgain) {
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0;
  MakeAllocating(9, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, &exec, &memory);
  for (int round = 0; round < 3; ++round) {
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    EXPECT_EQ(Last(memory), 9u);
    HAWSER_CU(cuMemsetD32Async(memory, 1, kCount, stream_));
  }
  HAWSER_CU(cuMemFreeAsync(memory, stream_));
  HAWSER_CU(cuStreamSynchronize(stream_));
}

TEST_F(CudaGraphMemory, WhatACaptureAllocatesIsTheGraphs) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0, passing = 0;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  HAWSER_CU(cuMemAllocAsync(&memory, kCount * 4, stream_));
  HAWSER_CU(cuMemAllocAsync(&passing, kCount * 4, stream_));
  HAWSER_CU(cuMemsetD32Async(passing, 21, kCount, stream_));
  HAWSER_CU(cuMemcpyDtoDAsync(memory, passing, kCount * 4, stream_));
  HAWSER_CU(cuMemFreeAsync(passing, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  HAWSER_CU(cuGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    EXPECT_EQ(Last(memory), 21u);
    HAWSER_CU(cuMemFree(memory));
  }
}

TEST_F(CudaGraphMemory, NodesSayWhatTheyAllocate) {
  CUgraph graph = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUDA_MEM_ALLOC_NODE_PARAMS given{};
  given.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  given.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  given.accessDescs = &access;
  given.accessDescCount = 1;
  given.bytesize = 12345;
  CUgraphNode allocation = nullptr, empty = nullptr;
  HAWSER_CU(cuGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &given));
  CUDA_MEM_ALLOC_NODE_PARAMS said{};
  HAWSER_CU(cuGraphMemAllocNodeGetParams(allocation, &said));
  EXPECT_EQ(said.bytesize, 12345u);
  EXPECT_EQ(said.dptr, given.dptr);
  EXPECT_EQ(said.poolProps.allocType, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(said.poolProps.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(said.poolProps.location.id, 0);
  EXPECT_EQ(cuGraphMemAllocNodeGetParams(allocation, nullptr), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  EXPECT_EQ(cuGraphMemAllocNodeGetParams(empty, &said), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaGraphMemory, CapturedNodesSayWhatTheyAllocate) {
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  HAWSER_CU(cuMemAllocAsync(&memory, kCount * 4, stream_));
  HAWSER_CU(cuMemFreeAsync(memory, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  CUgraphNode root = nullptr, end = nullptr;
  size_t count = 1;
  HAWSER_CU(cuGraphGetRootNodes(graph, &root, &count));
  ASSERT_EQ(count, 1u);
  CUDA_MEM_ALLOC_NODE_PARAMS said{};
  HAWSER_CU(cuGraphMemAllocNodeGetParams(root, &said));
  EXPECT_EQ(said.dptr, memory);
  EXPECT_GE(said.bytesize, kCount * 4);
  EXPECT_EQ(said.poolProps.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(said.poolProps.location.id, 0);
  HAWSER_CU(cuGraphNodeGetDependentNodes(root, &end, nullptr, &count));
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(cuGraphMemAllocNodeGetParams(end, &said), CUDA_ERROR_INVALID_VALUE) << "it frees";
  HAWSER_CU(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace hawser
