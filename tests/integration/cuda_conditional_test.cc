// SPDX-License-Identifier: Apache-2.0
// Conditional nodes of graphs: IF, WHILE and SWITCH (CUDA driver API, "Graph Management",
// cuGraphConditionalHandleCreate).
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/support/condition_kernels.h"

namespace hawser {
namespace {

using Handle = CUgraphConditionalHandle;

class CudaConditional : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuModuleLoadData(&kernels_, kConditionKernels));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
    HAWSER_CU(cuMemAlloc(&memory_, 64 * sizeof(uint32_t)));
    HAWSER_CU(cuMemsetD32(memory_, 0, 64));
  }

  CUfunction Kernel(const char* name) const {
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, kernels_, name), CUDA_SUCCESS) << name;
    return function;
  }
  /// Where word `index` of the tests' memory lies.
  CUdeviceptr At(uint32_t index) const { return memory_ + index * sizeof(uint32_t); }
  void Put(uint32_t index, uint32_t value) const { HAWSER_CU(cuMemsetD32(At(index), value, 1)); }
  uint32_t Get(uint32_t index) const {
    uint32_t value = 0xdeadbeef;
    EXPECT_EQ(cuMemcpyDtoH(&value, At(index), sizeof(value)), CUDA_SUCCESS);
    return value;
  }

  Handle MakeHandle(CUgraph graph, unsigned value = 0, unsigned flags = 0) const {
    Handle handle = 0;
    EXPECT_EQ(cuGraphConditionalHandleCreate(&handle, graph, context_, value, flags), CUDA_SUCCESS);
    return handle;
  }
  template <typename... A>
  CUgraphNode AddKernel(CUgraph graph, std::vector<CUgraphNode> before, const char* name, A... arguments) const {
    void* pointers[] = {&arguments..., nullptr};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.func = Kernel(name);
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = pointers;
    CUgraphNode node = nullptr;
    const CUresult result = cuGraphAddKernelNode(&node, graph, before.data(), before.size(), &parameters);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return node;
  }
  CUresult TryConditional(CUgraph graph, std::vector<CUgraphNode> before, Handle handle,
                          CUgraphConditionalNodeType type, unsigned size, CUgraphNode* node,
                          std::vector<CUgraph>* bodies) const {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = type;
    parameters.conditional.size = size;
    parameters.conditional.ctx = context_;
    const CUresult result = cuGraphAddNode(node, graph, before.data(), nullptr, before.size(), &parameters);
    if (result == CUDA_SUCCESS) {
      bodies->assign(parameters.conditional.phGraph_out, parameters.conditional.phGraph_out + size);
    }
    return result;
  }
  std::vector<CUgraph> AddConditional(CUgraph graph, std::vector<CUgraphNode> before, Handle handle,
                                      CUgraphConditionalNodeType type, unsigned size = 1,
                                      CUgraphNode* result_node = nullptr) const {
    CUgraphNode node = nullptr;
    std::vector<CUgraph> bodies;
    const CUresult result = TryConditional(graph, std::move(before), handle, type, size, &node, &bodies);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    EXPECT_EQ(std::count(bodies.begin(), bodies.end(), nullptr), 0);
    if (result_node != nullptr) *result_node = node;
    return bodies;
  }
  CUDA_MEMCPY3D Copy(CUdeviceptr from, uint32_t* to) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    copy.WidthInBytes = sizeof(uint32_t);
    copy.Height = copy.Depth = 1;
    return copy;
  }
  CUDA_MEMCPY3D Copy(uint32_t* from, CUdeviceptr to) const {
    CUDA_MEMCPY3D copy = Copy(to, from);
    std::swap(copy.srcMemoryType, copy.dstMemoryType);
    copy.srcHost = std::exchange(copy.dstHost, nullptr);
    copy.dstDevice = std::exchange(copy.srcDevice, 0);
    return copy;
  }
  CUgraphExec Instantiate() const {
    CUgraphExec exec = nullptr;
    const CUresult result = cuGraphInstantiate(&exec, graph_, 0);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return exec;
  }
  void Run(CUgraphExec exec) const {
    HAWSER_CU(cuGraphLaunch(exec, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
  }

  CUmodule kernels_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(CudaConditional, IfRunsItsBodyWhenAKernelSaysSo) {
  const Handle handle = MakeHandle(graph_);
  const CUgraphNode choose = AddKernel(graph_, {}, "choose", handle, At(0));
  CUgraphNode node = nullptr;
  const std::vector<CUgraph> body = AddConditional(graph_, {choose}, handle, CU_GRAPH_COND_TYPE_IF, 1, &node);
  ASSERT_EQ(body.size(), 1u);
  AddKernel(body[0], {}, "bump", At(1), 1u);
  AddKernel(graph_, {node}, "bump", At(2), 1u);
  CUgraphNodeType type{};
  HAWSER_CU(cuGraphNodeGetType(node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  const CUgraphExec exec = Instantiate();
  Run(exec);
  EXPECT_EQ(Get(1), 0u);
  EXPECT_EQ(Get(2), 1u);
  Put(0, 7);
  Run(exec);
  EXPECT_EQ(Get(1), 1u);
  EXPECT_EQ(Get(2), 2u);
  Put(0, 0);
  Run(exec);
  EXPECT_EQ(Get(1), 1u) << "the value does not outlive its launch";
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph_));
}

TEST_F(CudaConditional, ElseRunsWhenNothingElseDoes) {
  const Handle handle = MakeHandle(graph_);
  const CUgraphNode choose = AddKernel(graph_, {}, "choose", handle, At(0));
  const std::vector<CUgraph> bodies = AddConditional(graph_, {choose}, handle, CU_GRAPH_COND_TYPE_IF, 2);
  ASSERT_EQ(bodies.size(), 2u);
  AddKernel(bodies[0], {}, "bump", At(1), 1u);
  AddKernel(bodies[1], {}, "bump", At(2), 1u);
  const CUgraphExec exec = Instantiate();
  Run(exec);
  Run(exec);
  Put(0, 1);
  Run(exec);
  EXPECT_EQ(Get(1), 1u);
  EXPECT_EQ(Get(2), 2u);
}

TEST_F(CudaConditional, SwitchRunsTheBodyOfThatNumber) {
  constexpr uint32_t kBodies = 5;
  const Handle handle = MakeHandle(graph_);
  const CUgraphNode choose = AddKernel(graph_, {}, "choose", handle, At(0));
  const std::vector<CUgraph> bodies = AddConditional(graph_, {choose}, handle, CU_GRAPH_COND_TYPE_SWITCH, kBodies);
  ASSERT_EQ(bodies.size(), kBodies);
  for (uint32_t i = 0; i < kBodies; ++i) AddKernel(bodies[i], {}, "put", At(1), 100 + i);
  const CUgraphExec exec = Instantiate();
  for (uint32_t value = 0; value < kBodies + 2; ++value) {
    Put(0, value);
    Put(1, 1);
    Run(exec);
    EXPECT_EQ(Get(1), value < kBodies ? 100 + value : 1) << value;
  }
}

TEST_F(CudaConditional, WhileCountsOnTheDevice) {
  const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  CUgraphNode loop = nullptr;
  const std::vector<CUgraph> body = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &loop);
  ASSERT_EQ(body.size(), 1u);
  const CUgraphNode bump = AddKernel(body[0], {}, "bump", At(1), 3u);
  AddKernel(body[0], {bump}, "count_down", At(0), handle);
  AddKernel(graph_, {loop}, "bump", At(1), 1000u);
  const CUgraphExec exec = Instantiate();
  // The default makes it begin in each launch.
  for (const uint32_t rounds : {100u, 1u, 7u}) {
    Put(0, rounds);
    Put(1, 0);
    Run(exec);
    EXPECT_EQ(Get(0), 0u);
    EXPECT_EQ(Get(1), 3 * rounds + 1000);
  }
  // Launches wait for each other, and for their loops.
  Put(1, 0);
  for (int launch = 0; launch < 5; ++launch) {
    HAWSER_CU(cuMemsetD32Async(At(0), 4, 1, stream_));
    HAWSER_CU(cuGraphLaunch(exec, stream_));
  }
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Get(1), 5u * (4 * 3 + 1000));
}

TEST_F(CudaConditional, DefaultsAreGivenAtEachLaunchOnly) {
  // outer: twice. The inner IF's condition begins with its default, and keeps what its body says from then on.
  const Handle outer = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const Handle inner = MakeHandle(graph_, 5, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> loop = AddConditional(graph_, {}, outer, CU_GRAPH_COND_TYPE_WHILE);
  ASSERT_EQ(loop.size(), 1u);
  CUgraphNode choice = nullptr;
  const std::vector<CUgraph> body = AddConditional(loop[0], {}, inner, CU_GRAPH_COND_TYPE_IF, 1, &choice);
  ASSERT_EQ(body.size(), 1u);
  const CUgraphNode bump = AddKernel(body[0], {}, "bump", At(1), 1u);
  AddKernel(body[0], {bump}, "choose", inner, At(2));  // 0: not again.
  AddKernel(loop[0], {choice}, "count_down", At(0), outer);
  const CUgraphExec exec = Instantiate();
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    Put(0, 4);
    Run(exec);
    EXPECT_EQ(Get(1), launch) << "once in each launch";
  }
}

TEST_F(CudaConditional, NestedLoopsCount) {
  // for i in 3..1: j = 4; while j--: bump
  const Handle outer = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> first = AddConditional(graph_, {}, outer, CU_GRAPH_COND_TYPE_WHILE);
  ASSERT_EQ(first.size(), 1u);
  const Handle inner = MakeHandle(first[0], 0);  // Made for the body itself.
  const CUgraphNode begin = AddKernel(first[0], {}, "put", At(2), 4u);
  const CUgraphNode say = AddKernel(first[0], {begin}, "choose", inner, At(2));
  CUgraphNode again = nullptr;
  const std::vector<CUgraph> second = AddConditional(first[0], {say}, inner, CU_GRAPH_COND_TYPE_WHILE, 1, &again);
  ASSERT_EQ(second.size(), 1u);
  const CUgraphNode bump = AddKernel(second[0], {}, "bump", At(1), 1u);
  AddKernel(second[0], {bump}, "count_down", At(2), inner);
  AddKernel(first[0], {again}, "count_down", At(0), outer);
  const CUgraphExec exec = Instantiate();
  for (int launch = 1; launch <= 2; ++launch) {
    Put(0, 3);
    Run(exec);
    EXPECT_EQ(Get(1), 12u * launch);
  }
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph_));
}

TEST_F(CudaConditional, BodiesMayHoldEveryKindOfWorkThatTheyMay) {
  const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> body = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(body.size(), 1u);
  CUgraph child = nullptr;
  HAWSER_CU(cuGraphCreate(&child, 0));
  AddKernel(child, {}, "bump", At(3), 5u);
  CUgraphNode set = nullptr, copy = nullptr, empty = nullptr, nested = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill{At(1), 0, 77, 4, 1, 1};
  HAWSER_CU(cuGraphAddMemsetNode(&set, body[0], nullptr, 0, &fill, context_));
  CUDA_MEMCPY3D move{};
  move.srcMemoryType = move.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  move.srcDevice = At(1);
  move.dstDevice = At(2);
  move.WidthInBytes = 4;
  move.Height = move.Depth = 1;
  HAWSER_CU(cuGraphAddMemcpyNode(&copy, body[0], &set, 1, &move, context_));
  HAWSER_CU(cuGraphAddEmptyNode(&empty, body[0], &copy, 1));
  HAWSER_CU(cuGraphAddChildGraphNode(&nested, body[0], &empty, 1, child));
  // Memory of the program itself, too.
  uint32_t source = 31;
  uint32_t target = 0;
  CUgraphNode take = nullptr, give = nullptr;
  CUDA_MEMCPY3D in = move;
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = &source;
  in.dstDevice = At(4);
  HAWSER_CU(cuGraphAddMemcpyNode(&take, body[0], nullptr, 0, &in, context_));
  CUDA_MEMCPY3D out = move;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = &target;
  out.srcDevice = At(4);
  HAWSER_CU(cuGraphAddMemcpyNode(&give, body[0], &take, 1, &out, context_));

  size_t count = 0;
  HAWSER_CU(cuGraphGetNodes(body[0], nullptr, &count));
  EXPECT_EQ(count, 6u);
  HAWSER_CU(cuGraphGetEdges(body[0], nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 4u);
  HAWSER_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 1u);
  std::vector<CUgraphNode> nodes(6);
  count = nodes.size();
  HAWSER_CU(cuGraphGetNodes(body[0], nodes.data(), &count));
  EXPECT_EQ(nodes[0], set);
  EXPECT_EQ(nodes[3], nested);

  const CUgraphExec exec = Instantiate();
  source = 32;  // Read when the graph runs.
  Run(exec);
  EXPECT_EQ(Get(2), 77u);
  EXPECT_EQ(Get(3), 5u);
  EXPECT_EQ(target, 32u);
}

TEST_F(CudaConditional, BodiesThatDoNotRunLeaveTheProgramsMemoryAlone) {
  uint32_t target = 0;
  const std::vector<CUgraph> body =
      AddConditional(graph_, {}, MakeHandle(graph_, 0, CU_GRAPH_COND_ASSIGN_DEFAULT), CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(body.size(), 1u);
  const CUDA_MEMCPY3D copy = Copy(At(4), &target);
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphAddMemcpyNode(&node, body[0], nullptr, 0, &copy, context_));
  const CUgraphExec exec = Instantiate();
  for (uint32_t value : {55u, 66u}) {
    target = value;
    Run(exec);
    EXPECT_EQ(target, value);
  }
  // Nor where the copy is another one since.
  uint32_t other = 77;
  const CUDA_MEMCPY3D changed = Copy(At(4), &other);
  HAWSER_CU(cuGraphExecMemcpyNodeSetParams(exec, node, &changed, context_));
  Run(exec);
  EXPECT_EQ(other, 77u);
  EXPECT_EQ(target, 66u);
}

TEST_F(CudaConditional, BodiesTakeWhatFunctionsBeforeThemLeave) {
  uint32_t source = 1;
  CUgraphNode function = nullptr, node = nullptr;
  const CUDA_HOST_NODE_PARAMS call{[](void* word) { *static_cast<uint32_t*>(word) += 41; }, &source};
  HAWSER_CU(cuGraphAddHostNode(&function, graph_, nullptr, 0, &call));
  const std::vector<CUgraph> body =
      AddConditional(graph_, {function}, MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(body.size(), 1u);
  const CUDA_MEMCPY3D copy = Copy(&source, At(4));
  HAWSER_CU(cuGraphAddMemcpyNode(&node, body[0], nullptr, 0, &copy, context_));
  const CUgraphExec exec = Instantiate();
  Run(exec);
  EXPECT_EQ(Get(4), 42u);
  Run(exec);
  EXPECT_EQ(Get(4), 83u);
}

TEST_F(CudaConditional, FunctionsBehindBodiesFindWhatTheyLeftOrWhatWasThere) {
  struct Words {
    uint32_t target, seen;
  } words{};
  Put(4, 7);
  CUgraphNode first = nullptr, last = nullptr, node = nullptr;
  const CUDA_HOST_NODE_PARAMS before{[](void* at) { static_cast<Words*>(at)->target += 1; }, &words};
  const CUDA_HOST_NODE_PARAMS behind{[](void* at) { static_cast<Words*>(at)->seen = static_cast<Words*>(at)->target; },
                                     &words};
  HAWSER_CU(cuGraphAddHostNode(&first, graph_, nullptr, 0, &before));
  const Handle handle = MakeHandle(graph_);
  const CUgraphNode choose = AddKernel(graph_, {first}, "choose", handle, At(6));
  CUgraphNode conditional = nullptr;
  const std::vector<CUgraph> body = AddConditional(graph_, {choose}, handle, CU_GRAPH_COND_TYPE_IF, 1, &conditional);
  ASSERT_EQ(body.size(), 1u);
  const CUDA_MEMCPY3D copy = Copy(At(4), &words.target);
  HAWSER_CU(cuGraphAddMemcpyNode(&node, body[0], nullptr, 0, &copy, context_));
  HAWSER_CU(cuGraphAddHostNode(&last, graph_, &conditional, 1, &behind));
  const CUgraphExec exec = Instantiate();
  for (const uint32_t runs : {0u, 1u, 0u, 1u}) {
    Put(6, runs);
    words = {30, 0};
    Run(exec);
    EXPECT_EQ(words.seen, runs != 0 ? 7u : 31u);
    EXPECT_EQ(words.target, words.seen);
  }
}

TEST_F(CudaConditional, BodiesTakeWhatCopiesBringOrAreRefused) {
  // Natively each of them works; docs/differences.md: through a server never with older data, in silence.
  const auto attempt = [&](bool brings_inside, bool takes_inside, CUgraphConditionalNodeType type, CUresult expected) {
    HAWSER_CU(cuGraphDestroy(graph_));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
    uint32_t word = 1;
    const CUDA_MEMCPY3D out = Copy(At(4), &word), in = Copy(&word, At(5));
    Put(4, 7), Put(5, 0);
    CUgraphNode first = nullptr, second = nullptr, conditional = nullptr;
    if (!brings_inside) HAWSER_CU(cuGraphAddMemcpyNode(&first, graph_, nullptr, 0, &out, context_));
    const bool loop = type == CU_GRAPH_COND_TYPE_WHILE;
    const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    std::vector<CUgraphNode> before;
    if (first != nullptr) before.push_back(first);
    const std::vector<CUgraph> body = AddConditional(graph_, before, handle, type, 1, &conditional);
    ASSERT_EQ(body.size(), 1u);
    // In a loop: taken, then brought for the next time round.
    if (takes_inside) HAWSER_CU(cuGraphAddMemcpyNode(&second, body[0], nullptr, 0, &in, context_));
    if (brings_inside) {
      HAWSER_CU(cuGraphAddMemcpyNode(&first, body[0], &second, second != nullptr ? 1 : 0, &out, context_));
    }
    if (!takes_inside) HAWSER_CU(cuGraphAddMemcpyNode(&second, graph_, &conditional, 1, &in, context_));
    if (loop) AddKernel(body[0], {first}, "count_down", At(6), handle);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph_, 0), expected);
    if (exec == nullptr) return;
    Put(6, 2);
    Run(exec);
    EXPECT_EQ(Get(5), 7u);
    HAWSER_CU(cuGraphExecDestroy(exec));
  };
  const CUresult as_told = std::getenv("HAWSER_TEST_SERVER_PID") != nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
  attempt(false, true, CU_GRAPH_COND_TYPE_IF, as_told);
  attempt(true, true, CU_GRAPH_COND_TYPE_WHILE, as_told);
  attempt(true, false, CU_GRAPH_COND_TYPE_IF, CUDA_SUCCESS);  // A function can stand between the two.
}

TEST_F(CudaConditional, StreamsAreCapturedIntoBodies) {
  // A loop in a captured graph: kernel, WHILE, kernel; its body is captured as well.
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  const CUgraphNode* before = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  CUgraph captured = nullptr;
  uint32_t one = 1, thousand = 1000;
  CUdeviceptr counter = At(0), sum = At(1);
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  HAWSER_CU(cuStreamGetCaptureInfo(stream_, &status, &id, &captured, &before, &edges, &count));
  Handle handle = 0;
  HAWSER_CU(cuGraphConditionalHandleCreate(&handle, captured, context_, 0, 0));
  void* choose[] = {&handle, &counter};
  HAWSER_CU(cuLaunchKernel(Kernel("choose"), 1, 1, 1, 1, 1, 1, 0, stream_, choose, nullptr));
  HAWSER_CU(cuStreamGetCaptureInfo(stream_, &status, &id, &captured, &before, &edges, &count));
  ASSERT_EQ(count, 1u);
  ASSERT_NE(edges, nullptr) << "as many as there are nodes";
  EXPECT_EQ(edges[0].type, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
  EXPECT_EQ(edges[0].from_port, 0);
  EXPECT_EQ(cuStreamGetCaptureInfo(stream_, &status, &id, &captured, nullptr, &edges, &count), CUDA_ERROR_INVALID_VALUE)
      << "edges without the nodes that they belong to";
  CUgraphNode loop = nullptr;
  const std::vector<CUgraph> body =
      AddConditional(captured, {before, before + count}, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &loop);
  ASSERT_EQ(body.size(), 1u);
  HAWSER_CU(cuStreamUpdateCaptureDependencies(stream_, &loop, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  void* bump_thousand[] = {&sum, &thousand};
  HAWSER_CU(cuLaunchKernel(Kernel("bump"), 1, 1, 1, 1, 1, 1, 0, stream_, bump_thousand, nullptr));
  CUgraph ended = nullptr;
  HAWSER_CU(cuStreamEndCapture(stream_, &ended));
  EXPECT_EQ(ended, captured);

  CUstream second = nullptr;
  HAWSER_CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamBeginCaptureToGraph(second, body[0], nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  void* bump[] = {&sum, &one};
  HAWSER_CU(cuLaunchKernel(Kernel("bump"), 1, 1, 1, 1, 1, 1, 0, second, bump, nullptr));
  void* count_down[] = {&counter, &handle};
  HAWSER_CU(cuLaunchKernel(Kernel("count_down"), 1, 1, 1, 1, 1, 1, 0, second, count_down, nullptr));
  HAWSER_CU(cuStreamEndCapture(second, nullptr));  // The graph is known.
  HAWSER_CU(cuGraphGetNodes(body[0], nullptr, &count));
  EXPECT_EQ(count, 2u);

  CUgraphExec exec = nullptr;
  HAWSER_CU(cuGraphInstantiate(&exec, captured, 0));
  Run(exec);
  EXPECT_EQ(Get(1), 1000u);
  Put(0, 6);
  Run(exec);
  EXPECT_EQ(Get(0), 0u);
  EXPECT_EQ(Get(1), 2006u);
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(captured));
}

TEST_F(CudaConditional, ACaptureThatFailsLeavesTheBodyAlone) {
  const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> body = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(body.size(), 1u);
  HAWSER_CU(cuStreamBeginCaptureToGraph(stream_, body[0], nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << "not while it is captured";
  EXPECT_EQ(cuStreamEndCapture(stream_, nullptr), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  AddKernel(body[0], {}, "bump", At(1), 1u);
  const CUgraphExec exec = Instantiate();
  Run(exec);
  EXPECT_EQ(Get(1), 1u);
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphDestroy(graph_));
}

TEST_F(CudaConditional, ExecutablesAreChangedInside) {
  const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> body = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(body.size(), 1u);
  const CUgraphNode bump = AddKernel(body[0], {}, "bump", At(1), 1u);
  const CUgraphExec exec = Instantiate();
  Run(exec);
  EXPECT_EQ(Get(1), 1u);

  CUdeviceptr to = At(1);
  uint32_t value = 10;
  void* pointers[] = {&to, &value};
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = Kernel("bump");
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = pointers;
  HAWSER_CU(cuGraphExecKernelNodeSetParams(exec, bump, &parameters));
  Run(exec);
  EXPECT_EQ(Get(1), 11u);
  HAWSER_CU(cuGraphNodeSetEnabled(exec, bump, 0));
  Run(exec);
  EXPECT_EQ(Get(1), 11u);
  HAWSER_CU(cuGraphNodeSetEnabled(exec, bump, 1));

  value = 100;
  HAWSER_CU(cuGraphKernelNodeSetParams(bump, &parameters));
  CUgraphExecUpdateResultInfo info{};
  HAWSER_CU(cuGraphExecUpdate(exec, graph_, &info));
  Run(exec);
  EXPECT_EQ(Get(1), 111u);

  // Another graph of the same shape, whose handle has another default.
  CUgraph other = nullptr;
  HAWSER_CU(cuGraphCreate(&other, 0));
  const Handle off = MakeHandle(other, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const std::vector<CUgraph> other_body = AddConditional(other, {}, off, CU_GRAPH_COND_TYPE_IF);
  ASSERT_EQ(other_body.size(), 1u);
  AddKernel(other_body[0], {}, "bump", At(1), 5u);
  HAWSER_CU(cuGraphExecUpdate(exec, other, &info));
  Run(exec);
  EXPECT_EQ(Get(1), 111u);

  AddKernel(other_body[0], {}, "bump", At(1), 5u);
  EXPECT_EQ(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(CudaConditional, HandlesAreChecked) {
  Handle handle = 0;
  EXPECT_EQ(cuGraphConditionalHandleCreate(nullptr, graph_, context_, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphConditionalHandleCreate(&handle, nullptr, context_, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphConditionalHandleCreate(&handle, graph_, context_, 0, 2), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphConditionalHandleCreate(&handle, graph_, context_, 0, 0));

  // No node has it.
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph_, &parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);

  CUgraphNode node = nullptr;
  std::vector<CUgraph> bodies;
  const auto attempt = [&](CUgraph graph, Handle which, CUgraphConditionalNodeType type, unsigned size) {
    return TryConditional(graph, {}, which, type, size, &node, &bodies);
  };
  EXPECT_EQ(attempt(graph_, 0, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle + 1, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle, CU_GRAPH_COND_TYPE_IF, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle, CU_GRAPH_COND_TYPE_IF, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle, CU_GRAPH_COND_TYPE_WHILE, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle, CU_GRAPH_COND_TYPE_SWITCH, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(attempt(graph_, handle, static_cast<CUgraphConditionalNodeType>(3), 1), CUDA_ERROR_INVALID_VALUE);
  CUgraph other = nullptr;
  HAWSER_CU(cuGraphCreate(&other, 0));
  EXPECT_EQ(attempt(other, handle, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE) << "another graph's";
  HAWSER_CU(attempt(graph_, handle, CU_GRAPH_COND_TYPE_SWITCH, 3));
  CUgraphNode first = node;
  EXPECT_EQ(attempt(graph_, handle, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE) << "it has a node";
  HAWSER_CU(cuGraphDestroyNode(first));
  HAWSER_CU(attempt(graph_, handle, CU_GRAPH_COND_TYPE_WHILE, 1));
  HAWSER_CU(cuGraphInstantiateWithParams(&exec, graph_, &parameters));
}

TEST_F(CudaConditional, GraphsWithThemAreRestricted) {
  const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  CUgraphNode node = nullptr, unused = nullptr;
  const std::vector<CUgraph> body = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_IF, 1, &node);
  ASSERT_EQ(body.size(), 1u);
  CUgraph other = nullptr;
  EXPECT_EQ(cuGraphClone(&other, graph_), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphCreate(&other, 0));
  EXPECT_EQ(cuGraphAddChildGraphNode(&unused, other, nullptr, 0, graph_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(body[0]), CUDA_ERROR_INVALID_VALUE) << "it is the node's";
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = handle;
  parameters.conditional.size = 1;
  EXPECT_EQ(cuGraphNodeSetParams(node, &parameters), CUDA_ERROR_NOT_SUPPORTED);
  // What bodies must not hold.
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  EXPECT_EQ(cuGraphAddEventRecordNode(&unused, body[0], nullptr, 0, event), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphAddEventWaitNode(&unused, body[0], nullptr, 0, event), CUDA_ERROR_NOT_SUPPORTED);
  const CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
  EXPECT_EQ(cuGraphAddHostNode(&unused, body[0], nullptr, 0, &host), CUDA_ERROR_NOT_SUPPORTED);
  HAWSER_CU(cuGraphAddHostNode(&unused, other, nullptr, 0, &host));
  EXPECT_EQ(cuGraphAddChildGraphNode(&unused, body[0], nullptr, 0, other), CUDA_ERROR_NOT_SUPPORTED);
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  allocation.bytesize = 64;
  EXPECT_EQ(cuGraphAddMemAllocNode(&unused, body[0], nullptr, 0, &allocation), CUDA_ERROR_NOT_SUPPORTED);
  size_t count = 1;
  HAWSER_CU(cuGraphGetNodes(body[0], nullptr, &count));
  EXPECT_EQ(count, 0u);
  // One executable at a time.
  const CUgraphExec exec = Instantiate();
  CUgraphExec second = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&second, graph_, 0), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuGraphExecDestroy(exec));
  HAWSER_CU(cuGraphInstantiate(&second, graph_, 0));
  // Not into a capture.
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const CUresult launched = cuGraphLaunch(second, stream_);
  const CUresult ended = cuStreamEndCapture(stream_, &other);
  EXPECT_TRUE(launched != CUDA_SUCCESS || ended != CUDA_SUCCESS);
  HAWSER_CU(cuCtxSynchronize());
  // The same where the failure has been heard of before: what ends something ends it all the same.
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUresult again = cuGraphLaunch(second, stream_);
  CUstreamCaptureStatus status{};
  (void)cuStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, nullptr, nullptr, nullptr);
  HAWSER_CU(cuMemFree(memory_));
  EXPECT_EQ(cuMemFree(memory_), CUDA_ERROR_INVALID_VALUE);
  const CUresult second_end = cuStreamEndCapture(stream_, &other);
  EXPECT_TRUE(again != CUDA_SUCCESS || second_end != CUDA_SUCCESS);
  HAWSER_CU(cuStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  HAWSER_CU(cuMemAlloc(&memory_, 64 * sizeof(uint32_t)));
}

TEST_F(CudaConditional, NodesTakeTheirBodiesWithThem) {
  for (int round = 0; round < 50; ++round) {
    const Handle handle = MakeHandle(graph_, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNode node = nullptr;
    const std::vector<CUgraph> outer = AddConditional(graph_, {}, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, &node);
    ASSERT_EQ(outer.size(), 3u);
    const Handle nested = MakeHandle(outer[1]);
    const std::vector<CUgraph> inner = AddConditional(outer[1], {}, nested, CU_GRAPH_COND_TYPE_IF);
    ASSERT_EQ(inner.size(), 1u);
    AddKernel(inner[0], {}, "bump", At(1), 1u);
    AddKernel(outer[2], {}, "bump", At(1), 1u);
    if (round % 2 == 0) {
      HAWSER_CU(cuGraphDestroyNode(node));
      continue;
    }
    HAWSER_CU(cuGraphDestroy(graph_));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
  }
  size_t count = 1;
  HAWSER_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 0u);
  HAWSER_CU(cuCtxSynchronize());
}

}  // namespace
}  // namespace hawser
