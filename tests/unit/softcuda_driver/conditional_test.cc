// SPDX-License-Identifier: Apache-2.0
// Conditional nodes: what the software device does beyond what programs see on any device
// (tests/integration/cuda_conditional_test.cc).
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/condition_kernels.h"
#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

using Handle = CUgraphConditionalHandle;

class SoftConditional : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, kConditionKernels));
  }

  CUgraph MakeGraph() {
    CUgraph graph = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
    return graph;
  }
  Handle MakeHandle(CUgraph graph, unsigned value) {
    Handle handle = 0;
    EXPECT_CUDA(CUDA_SUCCESS,
                cuGraphConditionalHandleCreate(&handle, graph, nullptr, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return handle;
  }
  static CUresult TryConditional(CUgraph graph, Handle handle, CUgraphConditionalNodeType type, CUgraph* body,
                                 CUgraphNode* node = nullptr, CUcontext context = nullptr) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = type;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = context;
    CUgraphNode made = nullptr;
    const CUresult result = cuGraphAddNode(&made, graph, nullptr, nullptr, 0, &parameters);
    if (result == CUDA_SUCCESS) *body = parameters.conditional.phGraph_out[0];
    if (node != nullptr) *node = made;
    return result;
  }
  CUgraph AddConditional(CUgraph graph, Handle handle, CUgraphConditionalNodeType type, CUgraphNode* node = nullptr) {
    CUgraph body = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, TryConditional(graph, handle, type, &body, node));
    return body;
  }
  template <typename... A>
  CUgraphNode AddKernel(CUgraph graph, const char* name, A... arguments) {
    void* pointers[] = {&arguments..., nullptr};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.func = Function(name);
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = pointers;
    CUgraphNode node = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    return node;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
    return executable;
  }
};

TEST_F(SoftConditional, WhoEndsAContextWaitsForItsLoops) {
  CUcontext own = nullptr;
  CUctxCreateParams none{};
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&own, &none, 0, 0));
  module_ = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, kConditionKernels));
  volatile uint32_t* const flag = Flag();
  *flag = 1;
  const CUgraph graph = MakeGraph();
  const Handle handle = MakeHandle(graph, 1);
  const CUgraph busy = AddConditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE);
  AddKernel(busy, "choose", handle, Address(flag));
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(Instantiate(graph), stream));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  std::atomic<bool> ended = false;
  std::thread ends([flag, &ended] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ended = true;
    *flag = 0;
  });
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(own));
  EXPECT_TRUE(ended);
  ends.join();
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(context_));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(SoftConditional, LoopsEndWithTheFirstError) {
  const CUgraph graph = MakeGraph();
  const CUgraph body = AddConditional(graph, MakeHandle(graph, 1), CU_GRAPH_COND_TYPE_WHILE);
  AddKernel(body, "bump", CUdeviceptr{16}, 1u);
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(Instantiate(graph), stream));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

TEST_F(SoftConditional, AHandleOfAnotherGraphIsAFault) {
  const CUgraph graph = MakeGraph();
  const CUgraph other = MakeGraph();
  AddConditional(graph, MakeHandle(graph, 0), CU_GRAPH_COND_TYPE_IF);
  AddKernel(graph, "choose", MakeHandle(other, 0), Alloc(4));
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(Instantiate(graph), stream));
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
}

TEST_F(SoftConditional, OutsideOfGraphsTheyAreNotSet) {
  const CUgraph graph = MakeGraph();
  const CUdeviceptr word = Alloc(8);
  const Handle handle = MakeHandle(graph, 0);
  const CUgraph body = AddConditional(graph, handle, CU_GRAPH_COND_TYPE_IF);
  AddKernel(body, "bump", word + 4, 1u);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(word, 1, 1));
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("choose", 1, 1, stream, handle, word));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(Instantiate(graph), stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(word + 4), 0U);
}

TEST_F(SoftConditional, KernelsThatSetThemRunFirstAlsoWithoutAnEdge) {
  const CUgraph graph = MakeGraph();
  const CUdeviceptr words = Alloc(8);
  const Handle handle = MakeHandle(graph, 0);
  AddKernel(graph, "choose", handle, words);
  const CUgraph body = AddConditional(graph, handle, CU_GRAPH_COND_TYPE_IF);
  AddKernel(body, "bump", words + 4, 1u);
  const CUgraphExec executable = Instantiate(graph);
  const CUstream stream = Stream();
  for (uint32_t round = 0; round < 100; ++round) {
    ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32Async(words, round % 2, 1, stream));
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  }
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(words + 4), 50U);
}

TEST_F(SoftConditional, MoreLoopsThanThreadsRunAtOnce) {
  constexpr uint32_t kLoops = 300;
  constexpr uint32_t kRounds = 5;
  const CUdeviceptr words = Alloc(kLoops * 4);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(words, kRounds, kLoops));
  for (uint32_t i = 0; i < kLoops; ++i) {
    const CUgraph graph = MakeGraph();
    const Handle handle = MakeHandle(graph, 1);
    const CUgraph body = AddConditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE);
    AddKernel(body, "count_down", words + i * 4, handle);
    const CUgraphExec executable = Instantiate(graph);
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, Stream()));
    // A launch goes on without what it was made of.
    EXPECT_CUDA(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  }
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  for (uint32_t i = 0; i < kLoops; ++i) EXPECT_EQ(Read(words + i * 4), 0U);
}

TEST_F(SoftConditional, ALaunchUnderWayIsNotChanged) {
  const CUgraph graph = MakeGraph();
  const CUdeviceptr words = Alloc(8);
  volatile uint32_t* const flag = Flag();
  CUmodule spinning = nullptr;
  CUfunction spin = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&spinning, kKernels));
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleGetFunction(&spin, spinning, "spin"));
  const CUgraph body = AddConditional(graph, MakeHandle(graph, 1), CU_GRAPH_COND_TYPE_IF);
  const CUgraphNode bump = AddKernel(body, "bump", words, 1u);
  const CUgraphExec executable = Instantiate(graph);
  const CUstream stream = Stream();
  CUdeviceptr wait = Address(flag);
  CUdeviceptr out = words + 4;
  void* spins[] = {&wait, &out};
  ASSERT_CUDA(CUDA_SUCCESS, cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, spins, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));  // Waits for the kernel.
  CUdeviceptr to = words;
  uint32_t value = 50;
  void* pointers[] = {&to, &value};
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = Function("bump");
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = pointers;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams(executable, bump, &parameters));
  *flag = 1;
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(words), 1U);
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, stream));
  ASSERT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(words), 51U);
}

TEST_F(SoftConditional, NamesEndWithTheirNodes) {
  const CUgraph graph = MakeGraph();
  const Handle handle = MakeHandle(graph, 1);
  CUgraphNode node = nullptr;
  const CUgraph body = AddConditional(graph, handle, CU_GRAPH_COND_TYPE_IF, &node);
  const Handle nested = MakeHandle(body, 1);
  const CUgraph inner = AddConditional(body, nested, CU_GRAPH_COND_TYPE_IF);
  const CUgraphNode bump = AddKernel(inner, "bump", Alloc(4), 1u);
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphDestroyNode(node));
  size_t count = 0;
  CUgraphNodeType type{};
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(body, nullptr, &count));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(inner, nullptr, &count));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(bump, &type));
  CUgraph again = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, TryConditional(graph, nested, CU_GRAPH_COND_TYPE_IF, &again));
  EXPECT_CUDA(CUDA_SUCCESS, TryConditional(graph, handle, CU_GRAPH_COND_TYPE_IF, &again));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(again, nullptr, &count));
  const CUgraph other = MakeGraph();
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, TryConditional(other, handle, CU_GRAPH_COND_TYPE_IF, &again));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(other));
}

TEST_F(SoftConditional, ContextsMustAgree) {
  CUcontext other = nullptr;
  CUctxCreateParams none{};
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&other, &none, 0, 0));
  CUmodule elsewhere = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&elsewhere, kConditionKernels));
  CUfunction foreign = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleGetFunction(&foreign, elsewhere, "bump"));
  const CUgraph graph = MakeGraph();
  Handle handle = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphConditionalHandleCreate(&handle, graph, context_, 0, 0));
  CUgraph body = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, TryConditional(graph, handle, CU_GRAPH_COND_TYPE_IF, &body)) << "the current";
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, TryConditional(graph, handle, CU_GRAPH_COND_TYPE_IF, &body, nullptr, other));
  ASSERT_CUDA(CUDA_SUCCESS, TryConditional(graph, handle, CU_GRAPH_COND_TYPE_IF, &body, nullptr, context_));
  CUdeviceptr to = Alloc(4);
  uint32_t value = 1;
  void* pointers[] = {&to, &value};
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = foreign;
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = pointers;
  CUgraphNode node = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, body, nullptr, 0, &parameters));
  parameters.func = Function("bump");
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphAddKernelNode(&node, body, nullptr, 0, &parameters));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(other));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSetCurrent(context_));
}

TEST_F(SoftConditional, MemoryOfANodeThatCannotBeIsGivenBack) {
  const CUgraph graph = MakeGraph();
  const CUgraph body = AddConditional(graph, MakeHandle(graph, 1), CU_GRAPH_COND_TYPE_IF);
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  parameters.bytesize = kDeviceBytes / 2;
  for (int round = 0; round < 5; ++round) {
    CUgraphNode node = nullptr;
    EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, body, nullptr, 0, &parameters));
  }
}

TEST_F(SoftConditional, DepthIsBounded) {
  const CUgraph graph = MakeGraph();
  CUgraph body = graph;
  CUresult result = CUDA_SUCCESS;
  int depth = 0;
  for (; depth < 1000 && result == CUDA_SUCCESS; ++depth) {
    result = TryConditional(body, MakeHandle(graph, 1), CU_GRAPH_COND_TYPE_IF, &body);
  }
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED, result);
  EXPECT_GT(depth, 100);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
}

/// What cuGraphDebugDotPrint writes.
std::string DotOf(CUgraph graph, unsigned flags) {
  std::string path = testing::TempDir() + "conditional_XXXXXX";
  const int file = ::mkstemp(path.data());
  EXPECT_GE(file, 0);
  ::close(file);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDebugDotPrint(graph, path.c_str(), flags));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  ::unlink(path.c_str());
  return text.str();
}

TEST_F(SoftConditional, DotFilesShowBodies) {
  const CUgraph graph = MakeGraph();
  const CUgraph body = AddConditional(graph, MakeHandle(graph, 1), CU_GRAPH_COND_TYPE_IF);
  AddKernel(body, "bump", Alloc(4), 1u);
  const std::string text = DotOf(graph, 0);
  EXPECT_NE(text.find("CONDITIONAL\\nIF\""), std::string::npos) << text;
  EXPECT_NE(text.find("body 0"), std::string::npos) << text;
  EXPECT_NE(text.find("KERNEL\\nbump\""), std::string::npos) << text;
  const std::string with_parameters = DotOf(graph, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS);
  EXPECT_NE(with_parameters.find("bump\\ngrid 1 x 1 x 1\\nblock 1 x 1 x 1\\n"), std::string::npos) << with_parameters;
  EXPECT_NE(with_parameters.find("CONDITIONAL\\nIF\""), std::string::npos) << with_parameters;
  const std::string all = DotOf(graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
  EXPECT_NE(all.find("CONDITIONAL\\nIF\\ncondition 0x"), std::string::npos) << all;
  EXPECT_NE(all.find("handle 0x"), std::string::npos) << all;
}

}  // namespace
}  // namespace hawser::soft
