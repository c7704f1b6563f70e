// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs that wait for values in memory and write them (CUDA driver API, "Graph Management":
// cuGraphAddBatchMemOpNode and its relatives).
#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

CUstreamBatchMemOpParams Write32(CUdeviceptr address, uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  operation.writeValue.value = value;
  return operation;
}

CUstreamBatchMemOpParams Write64(CUdeviceptr address, uint64_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  return operation;
}

CUstreamBatchMemOpParams Wait32(CUdeviceptr address, uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = address;
  operation.waitValue.value = value;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return operation;
}

class CudaBatchNodes : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&memory_, 64));
    HAWSER_CU(cuMemsetD8(memory_, 0, 64));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
  }

  CUDA_BATCH_MEM_OP_NODE_PARAMS Of(std::vector<CUstreamBatchMemOpParams>& operations) const {
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
    params.ctx = context_;
    params.count = static_cast<unsigned>(operations.size());
    params.paramArray = operations.data();
    return params;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }
  /// Words of the memory after a launch.
  std::array<uint32_t, 4> Run(CUgraphExec exec) {
    std::array<uint32_t, 4> words{};
    EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(words.data(), memory_, sizeof(words)), CUDA_SUCCESS);
    return words;
  }

  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(CudaBatchNodes, OperationsRunInOrder) {
  std::vector<CUstreamBatchMemOpParams> operations = {Write32(memory_, 7), Wait32(memory_, 7),
                                                      Write64(memory_ + 8, 0x100000002)};
  const CUDA_BATCH_MEM_OP_NODE_PARAMS params = Of(operations);
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params));
  CUgraphNodeType type{};
  HAWSER_CU(cuGraphNodeGetType(node, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  EXPECT_EQ(Run(Instantiate(graph_)), (std::array<uint32_t, 4>{7, 0, 2, 1}));
}

TEST_F(CudaBatchNodes, ParametersCanBeAskedForAndChanged) {
  std::vector<CUstreamBatchMemOpParams> operations = {Write32(memory_, 1), Write32(memory_ + 4, 2)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = Of(operations);
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params));
  CUDA_BATCH_MEM_OP_NODE_PARAMS asked{};
  HAWSER_CU(cuGraphBatchMemOpNodeGetParams(node, &asked));
  ASSERT_EQ(asked.count, 2U);
  EXPECT_EQ(asked.paramArray[1].writeValue.address, memory_ + 4);
  EXPECT_EQ(asked.paramArray[1].writeValue.value, 2U);

  CUgraphExec first = Instantiate(graph_);
  operations = {Write32(memory_, 3), Write32(memory_ + 4, 4)};
  params = Of(operations);
  HAWSER_CU(cuGraphExecBatchMemOpNodeSetParams(first, node, &params));
  EXPECT_EQ(Run(first), (std::array<uint32_t, 4>{3, 4, 0, 0}));
  operations = {Write32(memory_, 5), Write32(memory_ + 4, 6)};
  params = Of(operations);
  HAWSER_CU(cuGraphBatchMemOpNodeSetParams(node, &params));
  HAWSER_CU(cuGraphBatchMemOpNodeGetParams(node, &asked));
  EXPECT_EQ(asked.paramArray[0].writeValue.value, 5U);
  EXPECT_EQ(Run(first), (std::array<uint32_t, 4>{3, 4, 0, 0})) << "what was instantiated keeps its own";
  EXPECT_EQ(Run(Instantiate(graph_)), (std::array<uint32_t, 4>{5, 6, 0, 0}));
}

TEST_F(CudaBatchNodes, TheGeneralCallsKnowThem) {
  std::vector<CUstreamBatchMemOpParams> operations = {Write32(memory_, 8)};
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  params.memOp.ctx = context_;
  params.memOp.count = 1;
  params.memOp.paramArray = operations.data();
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  CUgraphExec exec = Instantiate(graph_);
  EXPECT_EQ(Run(exec)[0], 8U);
  operations[0] = Write32(memory_, 9);
  HAWSER_CU(cuGraphExecNodeSetParams(exec, node, &params));
  EXPECT_EQ(Run(exec)[0], 9U);
  operations[0] = Write32(memory_, 10);
  HAWSER_CU(cuGraphNodeSetParams(node, &params));
  EXPECT_EQ(Run(Instantiate(graph_))[0], 10U);
}

TEST_F(CudaBatchNodes, AWaitEndsWhenTheValueIsThere) {
  std::vector<CUstreamBatchMemOpParams> waits = {Wait32(memory_, 2)};
  std::vector<CUstreamBatchMemOpParams> writes = {Write32(memory_ + 4, 1)};
  const CUDA_BATCH_MEM_OP_NODE_PARAMS wait = Of(waits);
  const CUDA_BATCH_MEM_OP_NODE_PARAMS write = Of(writes);
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  HAWSER_CU(cuGraphAddBatchMemOpNode(&first, graph_, nullptr, 0, &wait));
  HAWSER_CU(cuGraphAddBatchMemOpNode(&second, graph_, &first, 1, &write));
  CUgraphExec exec = Instantiate(graph_);
  CUstream other = nullptr;
  HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  HAWSER_CU(cuStreamWriteValue32(other, memory_, 2, 0));
  HAWSER_CU(cuStreamSynchronize(stream_));
  std::array<uint32_t, 2> words{};
  HAWSER_CU(cuMemcpyDtoH(words.data(), memory_, sizeof(words)));
  EXPECT_EQ(words, (std::array<uint32_t, 2>{2, 1}));
  HAWSER_CU(cuStreamDestroy(other));
}

TEST_F(CudaBatchNodes, WhatAStreamRecordsIsSuchANode) {
  CUgraph captured = nullptr;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuStreamWriteValue32(stream_, memory_ + 8, 12, 0));
  HAWSER_CU(cuStreamEndCapture(stream_, &captured));
  CUgraphNode node = nullptr;
  size_t count = 1;
  HAWSER_CU(cuGraphGetNodes(captured, &node, &count));
  ASSERT_EQ(count, 1U);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
  HAWSER_CU(cuGraphBatchMemOpNodeGetParams(node, &params));
  ASSERT_EQ(params.count, 1U);
  EXPECT_EQ(params.paramArray[0].operation, CU_STREAM_MEM_OP_WRITE_VALUE_32);
  EXPECT_EQ(params.paramArray[0].writeValue.address, memory_ + 8);
  EXPECT_EQ(params.paramArray[0].writeValue.value, 12U);
  EXPECT_EQ(Run(Instantiate(captured))[2], 12U);
}

TEST_F(CudaBatchNodes, WhatIsWrongIsRefusedByTheCall) {
  CUgraphNode node = nullptr;
  std::vector<CUstreamBatchMemOpParams> operations = {Write32(memory_, 1)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = Of(operations);
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  params.count = 0;
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  params = Of(operations);
  params.paramArray = nullptr;
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  params = Of(operations);
  operations[0].operation = static_cast<CUstreamBatchMemOpType>(99);
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  uint32_t mine = 0;  // Nobody's device memory.
  operations[0] = Write32(reinterpret_cast<CUdeviceptr>(&mine), 1);
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  size_t count = 0;
  HAWSER_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 0U);

  CUgraphNode empty = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&empty, graph_, nullptr, 0));
  CUDA_BATCH_MEM_OP_NODE_PARAMS asked{};
  EXPECT_EQ(cuGraphBatchMemOpNodeGetParams(empty, &asked), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser
