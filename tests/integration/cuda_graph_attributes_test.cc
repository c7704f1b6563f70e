// SPDX-License-Identifier: Apache-2.0
// Attributes of kernel nodes (CUDA driver API, "Graph Management", cuGraphKernelNodeSetAttribute).
#include <cuda.h>

#include <cstdint>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

/// Stores 1 when its grid may synchronise as a whole: then there is memory for that, which these registers name.
constexpr const char* kGridKernel = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry whole_grid(.param .u64 pout)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [pout];
  mov.b32 %r1, %envreg1;
  mov.b32 %r2, %envreg2;
  or.b32 %r3, %r1, %r2;
  setp.ne.u32 %p1, %r3, 0;
  selp.u32 %r4, 1, 0, %p1;
  st.global.u32 [%d1], %r4;
  ret;
}
)";

class CudaGraphAttributes : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuModuleLoadData(&own_module_, kGridKernel));
    HAWSER_CU(cuModuleGetFunction(&kernel_, own_module_, "whole_grid"));
    HAWSER_CU(cuMemAlloc(&out_, 4));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
  }
  CUgraphNode NewNode(unsigned blocks = 1) {
    void* parameters[] = {&out_};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = kernel_;
    params.gridDimX = blocks;
    params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params), CUDA_SUCCESS);
    return node;
  }
  static CUresult SetCooperative(CUgraphNode node, int on) {
    CUkernelNodeAttrValue value{};
    value.cooperative = on;
    return cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
  }
  /// What the node says; -1: nothing.
  static int Cooperative(CUgraphNode node) {
    CUkernelNodeAttrValue value{};
    const CUresult result = cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return result == CUDA_SUCCESS ? value.cooperative : -1;
  }
  /// What the kernel finds when the graph, whose node it is, runs.
  uint32_t Runs(CUgraph graph) {
    CUgraphExec exec = nullptr;
    uint32_t value = 7;
    EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&value, out_, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    return value;
  }

  CUstream stream_ = nullptr;
  CUmodule own_module_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUdeviceptr out_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(CudaGraphAttributes, ANodeBecomesCooperative) {
  const CUgraphNode node = NewNode();
  EXPECT_EQ(Cooperative(node), 0);
  EXPECT_EQ(Runs(graph_), 0u);
  HAWSER_CU(SetCooperative(node, 1));
  EXPECT_EQ(Cooperative(node), 1);
  EXPECT_EQ(Runs(graph_), 1u) << "executable graphs that are made afterwards have it";
  // New parameters change nothing about it.
  CUDA_KERNEL_NODE_PARAMS params{};
  HAWSER_CU(cuGraphKernelNodeGetParams(node, &params));
  params.gridDimX = 2;
  HAWSER_CU(cuGraphKernelNodeSetParams(node, &params));
  EXPECT_EQ(Runs(graph_), 1u);
  HAWSER_CU(SetCooperative(node, 0));
  EXPECT_EQ(Cooperative(node), 0);
  EXPECT_EQ(Runs(graph_), 0u);
}

TEST_F(CudaGraphAttributes, ClonesHaveThemToo) {
  const CUgraphNode node = NewNode();
  HAWSER_CU(SetCooperative(node, 1));
  CUgraph clone = nullptr;
  CUgraphNode copy = nullptr;
  HAWSER_CU(cuGraphClone(&clone, graph_));
  HAWSER_CU(cuGraphNodeFindInClone(&copy, node, clone));
  EXPECT_EQ(Cooperative(copy), 1);
  EXPECT_EQ(Runs(clone), 1u);
  HAWSER_CU(SetCooperative(copy, 0));
  EXPECT_EQ(Cooperative(node), 1) << "each has its own";
  EXPECT_EQ(Runs(clone), 0u);
}

TEST_F(CudaGraphAttributes, TheyAreCopied) {
  const CUgraphNode from = NewNode();
  HAWSER_CU(SetCooperative(from, 1));
  HAWSER_CU(cuGraphCreate(&graph_, 0));
  const CUgraphNode to = NewNode();
  HAWSER_CU(cuGraphKernelNodeCopyAttributes(to, from));
  EXPECT_EQ(Cooperative(to), 1);
  EXPECT_EQ(Runs(graph_), 1u);
}

TEST_F(CudaGraphAttributes, CapturedNodesHaveTheLaunchs) {
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  void* parameters[] = {&out_};
  HAWSER_CU(cuLaunchCooperativeKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters));
  CUgraph captured = nullptr;
  HAWSER_CU(cuStreamEndCapture(stream_, &captured));
  CUgraphNode node = nullptr;
  size_t count = 1;
  HAWSER_CU(cuGraphGetNodes(captured, &node, &count));
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(Cooperative(node), 1);
  HAWSER_CU(SetCooperative(node, 0));
  EXPECT_EQ(Runs(captured), 0u);
}

TEST_F(CudaGraphAttributes, OthersAreTaken) {
  const CUgraphNode node = NewNode();
  CUkernelNodeAttrValue value{};
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(out_);
  value.accessPolicyWindow.num_bytes = 4;
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value), CUDA_SUCCESS);
  EXPECT_EQ(Runs(graph_), 0u);
}

TEST_F(CudaGraphAttributes, WhatNodesDoNotHaveIsRefused) {
  const CUgraphNode node = NewNode();
  CUkernelNodeAttrValue value{};
  for (const int id : {0, 3, 7, 12, 15, 1000}) {  // Nothing, streams', launches', and none.
    const auto attribute = static_cast<CUkernelNodeAttrID>(id);
    EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, attribute, &value), CUDA_ERROR_INVALID_VALUE) << id;
    EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, attribute, &value), CUDA_ERROR_INVALID_VALUE) << id;
  }
  const auto updatable = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, updatable, &value), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, updatable, &value), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode empty = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&empty, graph_, nullptr, 0));
  EXPECT_EQ(SetCooperative(empty, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(empty, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphKernelNodeCopyAttributes(node, empty), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cooperative(node), 0);
}

}  // namespace
}  // namespace hawser
