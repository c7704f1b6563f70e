// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks: who says how large they are, and what is asked about them.
#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftCluster : public ContextTest {};

TEST_F(SoftCluster, SizesAreAsTheKernelOrTheLaunchSays) {
  constexpr char kClusters[] = R"(.version 8.4
.target sm_90
.address_size 64
.visible .entry two() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry one() .reqnctapercluster 1, 1, 1 { ret; }
.visible .entry told() .explicitcluster { ret; }
.visible .entry asks(.param .u64 out)
{
  .reg .pred %p;
  .reg .b32 %r, %n;
  .reg .b64 %d;
  ld.param.u64 %d, [out];
  mov.pred %p, %is_explicit_cluster;
  selp.b32 %r, 50, 40, %p;
  mov.u32 %n, %cluster_nctarank;
  add.u32 %r, %r, %n;
  st.global.u32 [%d], %r;
  ret;
}
)";
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, kClusters));
  const auto attribute = [this](const char* name, CUfunction_attribute which) {
    int value = -1;
    EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetAttribute(&value, which, Function(name)));
    return value;
  };
  EXPECT_EQ(attribute("two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 2);
  EXPECT_EQ(attribute("two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH), 1);
  EXPECT_EQ(attribute("two", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET), 1);
  EXPECT_EQ(attribute("asks", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT), 0);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("two", 2, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, Launch("two", 3, 1, nullptr));
  EXPECT_CUDA(CUDA_SUCCESS, Launch("one", 2, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, Launch("told", 2, 1, nullptr));
  CUlaunchConfig config{};
  config.gridDimX = 16;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  CUlaunchAttribute size{};
  size.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  config.attrs = &size;
  config.numAttrs = 1;
  CUdeviceptr out = Alloc(4);
  void* params[] = {&out};
  const auto launch = [&](const char* name, unsigned x, unsigned y = 1) {
    size.value.clusterDim.x = x;
    size.value.clusterDim.y = y;
    size.value.clusterDim.z = 1;
    return cuLaunchKernelEx(&config, Function(name), params, nullptr);
  };
  EXPECT_CUDA(CUDA_SUCCESS, launch("told", 1));
  EXPECT_CUDA(CUDA_SUCCESS, launch("told", 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch("two", 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch("told", 3));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch("told", 1, 2));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("asks", 1, 1, nullptr, out));
  EXPECT_EQ(Read(out), 41U);
  ASSERT_CUDA(CUDA_SUCCESS, launch("asks", 1));
  EXPECT_EQ(Read(out), 51U);
  ASSERT_CUDA(CUDA_SUCCESS, launch("asks", 8));
  EXPECT_EQ(Read(out), 58U);
  const auto set = [&](const char* name, CUfunction_attribute which, int value) {
    return cuFuncSetAttribute(Function(name), which, value);
  };
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch("asks", 16));
  EXPECT_CUDA(CUDA_SUCCESS, set("asks", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  ASSERT_CUDA(CUDA_SUCCESS, launch("asks", 16));
  EXPECT_EQ(Read(out), 66U);
  EXPECT_EQ(attribute("asks", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
  EXPECT_CUDA(CUDA_ERROR_NOT_PERMITTED, set("two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 1));
  EXPECT_CUDA(CUDA_SUCCESS, set("asks", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, Launch("asks", 2, 1, nullptr, out));  // All three or none.
  EXPECT_CUDA(CUDA_SUCCESS, set("asks", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  EXPECT_CUDA(CUDA_SUCCESS, set("asks", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  EXPECT_CUDA(CUDA_SUCCESS, Launch("asks", 2, 1, nullptr, out));
  EXPECT_EQ(Read(out), 52U);
  int clusters = 0;
  int each = 0;
  int processors = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, Function("two"), 1, 0));
  config.numAttrs = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuOccupancyMaxActiveClusters(&clusters, Function("two"), &config));
  EXPECT_EQ(clusters, each * processors / 2);
  EXPECT_CUDA(CUDA_SUCCESS, cuOccupancyMaxPotentialClusterSize(&clusters, Function("two"), &config));
  EXPECT_EQ(clusters, 8);
  // Nodes of graphs have a size too.
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = Function("asks");
  kernel.gridDimX = 4;
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = params;
  for (const CUfunction_attribute which :
       {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH}) {
    EXPECT_CUDA(CUDA_SUCCESS, set("asks", which, 0));
  }
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  CUkernelNodeAttrValue value{};
  value.clusterDim.x = 4;
  value.clusterDim.y = value.clusterDim.z = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
  value.clusterDim.x = 3;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE,
              cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
  kernel.gridDimX = 8;
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphKernelNodeSetParams(node, &kernel));
  kernel.gridDimX = 6;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuGraphKernelNodeSetParams(node, &kernel));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
  EXPECT_EQ(value.clusterDim.x, 4U);
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  EXPECT_EQ(Read(out), 54U);
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
}

}  // namespace
}  // namespace hawser::soft
