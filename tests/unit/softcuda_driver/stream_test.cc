// SPDX-License-Identifier: Apache-2.0
// Streams are asynchronous: kernels that wait for the host prove it without looking at a clock.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftStream : public ContextTest {};

TEST_F(SoftStream, LaunchesDoNotWait) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(4);
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, stream, Address(flag), out));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamQuery(stream));
  EXPECT_EQ(Read(out), 1U);
}

TEST_F(SoftStream, StreamsRunBesideEachOther) {
  const CUdeviceptr flag = Alloc(4);
  const CUdeviceptr out = Alloc(4);
  const CUstream first = Stream();
  const CUstream second = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, first, flag, out));  // Waits for what the second stream does.
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, second, flag, 1));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(first));
  EXPECT_EQ(Read(out), 1U);
}

TEST_F(SoftStream, TheDefaultStreamWaitsForBlockingStreams) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(8);
  const CUstream blocking = Stream(CU_STREAM_DEFAULT);
  const CUstream free = Stream(CU_STREAM_NON_BLOCKING);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, blocking, Address(flag), out));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, out + 4, 5));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, free, out + 4, 6));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(free));  // Does not care.
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(Read(out + 4), 5U);
}

TEST_F(SoftStream, BlockingStreamsWaitForTheDefaultStream) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(4);
  const CUstream blocking = Stream(CU_STREAM_DEFAULT);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, nullptr, Address(flag), out));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, blocking, out, 9));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(blocking));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(blocking));
  EXPECT_EQ(Read(out), 9U);
}

TEST_F(SoftStream, EventsOrderStreams) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(4);
  const CUstream first = Stream();
  const CUstream second = Stream();
  const CUevent event = Event();
  EXPECT_CUDA(CUDA_SUCCESS, cuEventQuery(event));  // Never recorded: nothing to wait for.
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, first, Address(flag), out));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(event, first));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(second, event, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, second, out));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuEventSynchronize(event));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(second));
  EXPECT_EQ(Read(out), 2U);
  EXPECT_CUDA(CUDA_SUCCESS, cuEventDestroy(event));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, first));
}

TEST_F(SoftStream, EventsMeasure) {
  const CUevent start = Event();
  const CUevent end = Event();
  float elapsed = -1;
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&elapsed, start, end));  // Not recorded.
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(start, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(end, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventSynchronize(end));
  EXPECT_CUDA(CUDA_SUCCESS, cuEventElapsedTime(&elapsed, start, end));
  EXPECT_GE(elapsed, 0);
  const CUevent untimed = Event(CU_EVENT_DISABLE_TIMING);
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(untimed, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&elapsed, start, untimed));
}

TEST_F(SoftStream, HostFunctionsRunInOrder) {
  const CUdeviceptr out = Alloc(4);
  const CUstream stream = Stream();
  struct State {
    std::atomic<int> calls{0};
    int at_call = -1;
  } state;
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 32, stream, out));
  ASSERT_CUDA(CUDA_SUCCESS, cuLaunchHostFunc(
                                stream, [](void* data) { ++static_cast<State*>(data)->calls; }, &state));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamAddCallback(
                                stream,
                                [](CUstream, CUresult result, void* data) {
                                  auto* const s = static_cast<State*>(data);
                                  s->at_call = result == CUDA_SUCCESS ? s->calls.load() : -2;
                                },
                                &state, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(state.calls, 1);
  EXPECT_EQ(state.at_call, 1);
  EXPECT_EQ(Read(out), 32U);
}

TEST_F(SoftStream, WaitsForAndWritesWords) {
  const CUdeviceptr words = Alloc(16);
  const CUstream first = Stream();
  const CUstream second = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitValue32(first, words, 3, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWriteValue32(first, words + 4, 8, 0));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(first));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWriteValue32(second, words, 4, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(first));
  EXPECT_EQ(Read(words + 4), 8U);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(first, words + 16, 4, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(first, words + 1, 4, 0));
}

TEST_F(SoftStream, PageableMemoryMayBeReusedAtOnce) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(8);
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, stream, Address(flag), out));
  uint32_t value = 41;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoDAsync(out + 4, &value, 4, stream));
  value = 99;
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(out + 4), 41U);
}

TEST_F(SoftStream, MemoryFreedUnderAKernelEndsTheContextNotTheProcess) {
  volatile uint32_t* const go = Flag();
  const CUstream stream = Stream();
  const CUstream freeing = Stream();
  CUdeviceptr out = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAllocAsync(&out, 4, stream));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, stream, Address(go), out));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemFreeAsync(out, freeing));  // A wrong program: nothing orders this behind the kernel.
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(freeing));
  testing::internal::CaptureStderr();
  *go = 1;
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
  testing::internal::GetCapturedStderr();
}

TEST_F(SoftStream, DestroyedStreamsAreUnknownAndTheirWorkIsDone) {
  const CUdeviceptr out = Alloc(4);
  const CUstream stream = Stream();
  for (int i = 0; i < 20; ++i) ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, stream, out));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamDestroy(stream));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, Launch("bump", 1, 1, stream, out));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(Read(out), 20U);
}

TEST_F(SoftStream, ThreadsShareAContext) {
  const CUdeviceptr out = Alloc(4);
  Function("bump");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, out] {
      EXPECT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(context_));
      for (int i = 0; i < 100; ++i) EXPECT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, CU_STREAM_PER_THREAD, out));
      EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(CU_STREAM_PER_THREAD));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read(out), 400U);
}

class SoftGraph : public ContextTest {
 protected:
  void RunGraph(CUgraph graph, CUstream stream) {
    CUgraphExec executable = nullptr;
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
    ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  }
};

TEST_F(SoftGraph, CapturesForkAndJoin) {
  const CUdeviceptr out = Alloc(4);
  const CUstream origin = Stream();
  const CUstream side = Stream();
  const CUevent fork = Event();
  const CUevent join = Event();
  Function("bump");
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32Async(out, 0, 1, origin));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(fork, origin));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(side, fork, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, side, out));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, origin, out));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(join, side));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(origin, join, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, origin, out));
  CUgraph graph = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamEndCapture(origin, &graph));
  EXPECT_EQ(Read(out), 0U);  // Nothing has run.
  size_t nodes = 0;
  size_t edges = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(nodes, 4U);
  EXPECT_EQ(edges, 4U);
  RunGraph(graph, origin);
  EXPECT_EQ(Read(out), 3U);
  RunGraph(graph, origin);
  EXPECT_EQ(Read(out), 3U);  // Starts with the fill.
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(SoftGraph, CapturesFailAsTheManualSays) {
  const CUstream origin = Stream(CU_STREAM_DEFAULT);
  const CUstream side = Stream();
  const CUevent fork = Event();
  const CUdeviceptr out = Alloc(4);
  CUgraph graph = nullptr;
  CUstreamCaptureStatus status{};
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(origin, &graph));
  // Not joined.
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(fork, origin));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(side, fork, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32Async(out, 0, 1, side));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(origin, &graph));
  EXPECT_EQ(graph, nullptr);
  // Ended where it did not begin: that makes it invalid (CuPy's tests have it so of NVIDIA's driver).
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CUDA(CUDA_SUCCESS, cuEventRecord(fork, origin));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamWaitEvent(side, fork, 0));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(side, &graph));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(origin, &graph));
  EXPECT_EQ(graph, nullptr);
  // Synchronised while captured.
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(origin));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamIsCapturing(origin, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(origin, &graph));
  // The default stream meanwhile: asking about it does no harm, using it does.
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(nullptr, &status));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamEndCapture(origin, &graph));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(out, 0, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(origin, &graph));
  // An allocation meanwhile.
  CUdeviceptr more = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&more, 4));
  EXPECT_CUDA(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(origin, &graph));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAlloc(&more, 4));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamEndCapture(origin, &graph));
  EXPECT_NE(graph, nullptr);
}

TEST_F(SoftGraph, IsMadeByHandAndUpdated) {
  const CUdeviceptr out = Alloc(8);
  CUgraph graph = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUdeviceptr p = out;
  uint32_t v = 5;
  void* arguments[] = {&p, &v};
  CUDA_KERNEL_NODE_PARAMS poke{};
  poke.func = Function("poke");
  poke.gridDimX = poke.gridDimY = poke.gridDimZ = poke.blockDimX = poke.blockDimY = poke.blockDimZ = 1;
  poke.kernelParams = arguments;
  CUgraphNode first = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddKernelNode(&first, graph, nullptr, 0, &poke));
  int calls = 0;
  CUDA_HOST_NODE_PARAMS host{[](void* data) { ++*static_cast<int*>(data); }, &calls};
  CUgraphNode second = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddHostNode(&second, graph, &first, 1, &host));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = out;
  copy.dstDevice = out + 4;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  CUgraphNode third = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddMemcpyNode(&third, graph, &second, 1, &copy, context_));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&third, graph, nullptr, 1, &copy, context_));
  CUgraphNodeType type{};
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphNodeGetType(third, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  size_t count = 4;
  CUgraphNode before[4];
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphNodeGetDependencies(third, before, nullptr, &count));
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(before[0], second);

  CUgraphExec executable = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(out + 4), 5U);
  EXPECT_EQ(calls, 1);

  v = 6;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams(executable, first, &poke));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(out + 4), 6U);

  v = 7;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphKernelNodeSetParams(first, &poke));
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphExecUpdate(executable, graph, &info));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(out + 4), 7U);

  CUgraphNode empty = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddEmptyNode(&empty, graph, &third, 1));
  EXPECT_CUDA(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(executable, graph, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphAddDependencies(graph, &empty, &first, nullptr, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&executable, graph, 0));  // A circle.
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
}

TEST_F(SoftGraph, UploadsAreInTheStreamsOrder) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(4);
  const CUstream first = Stream(CU_STREAM_DEFAULT), second = Stream(CU_STREAM_DEFAULT);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, first, Address(flag), out));
  // In the default stream: behind the first one, and what is in the second one then is behind it.
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphUpload(executable, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, second, out, 9));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(second));
  EXPECT_EQ(Read(out), 9U);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(SoftGraph, ChildrenRunInside) {
  const CUdeviceptr out = Alloc(4);
  CUgraph child = nullptr;
  CUgraph parent = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&child, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&parent, 0));
  CUDA_MEMSET_NODE_PARAMS set{out, 0, 33, 4, 1, 1};
  CUgraphNode node = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, child, nullptr, 0, &set, context_));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
  RunGraph(parent, Stream());
  EXPECT_EQ(Read(out), 33U);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(child));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(parent));
}

// Each in a context of its own, which is of no use any more after that.
class SoftGraphOfFreedMemory : public SoftGraph, public testing::WithParamInterface<int> {};

TEST_P(SoftGraphOfFreedMemory, IsAnIllegalAddress) {
  const CUdeviceptr gone = Alloc(1 << 20), there = Alloc(4096);
  const CUstream stream = Stream();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.WidthInBytes = 16;
  copy.Height = copy.Depth = 1;
  CUstreamBatchMemOpParams write{};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = gone;
  switch (GetParam()) {
    case 0: {
      CUDA_MEMSET_NODE_PARAMS set{gone, 0, 33, 4, 100, 1};
      ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, context_));
      break;
    }
    case 1:
    case 2:
      copy.srcDevice = GetParam() == 1 ? gone : there;
      copy.dstDevice = GetParam() == 1 ? there : gone;
      ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context_));
      break;
    default: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS operations{};
      operations.ctx = context_;
      operations.count = 1;
      operations.paramArray = &write;
      ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &operations));
    }
  }
  CUgraphExec executable = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream)) << "while it is there";
  ASSERT_CUDA(CUDA_SUCCESS, cuMemFree(gone));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}
INSTANTIATE_TEST_SUITE_P(All, SoftGraphOfFreedMemory, testing::Range(0, 4));

}  // namespace
}  // namespace hawser::soft
