// SPDX-License-Identifier: Apache-2.0
// Attributes of launches and streams (CUDA driver API, CUlaunchAttributeID).
#include <cuda.h>

#include <cstdint>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaLaunchAttributes : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    add_ = Function("add");
    HAWSER_CU(cuMemAlloc(&memory_, 4));
    HAWSER_CU(cuMemsetD32(memory_, 0, 1));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_DEFAULT));
  }
  /// Adds 1.
  CUresult LaunchWith(const CUlaunchAttribute& attribute) {
    CUlaunchAttribute own = attribute;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream_;
    config.attrs = &own;
    config.numAttrs = 1;
    uint32_t count = 1, value = 1;
    void* parameters[] = {&memory_, &count, &value};
    return cuLaunchKernelEx(&config, add_, parameters, nullptr);
  }
  static CUlaunchAttribute Nought(int id) {
    CUlaunchAttribute attribute{};
    attribute.id = static_cast<CUlaunchAttributeID>(id);
    return attribute;
  }
  /// How many launches came to the device.
  uint32_t Ran() {
    uint32_t value = 0;
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(&value, memory_, 4), CUDA_SUCCESS);
    return value;
  }

  CUfunction add_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUstream stream_ = nullptr;
};

TEST_F(CudaLaunchAttributes, KnownOnesAreTaken) {
  HAWSER_CU(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_IGNORE)));
  CUlaunchAttribute attribute = Nought(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
  attribute.value.preferredClusterDim.x = 1;
  attribute.value.preferredClusterDim.y = 1;
  attribute.value.preferredClusterDim.z = 1;
  HAWSER_CU(LaunchWith(attribute));
  attribute = Nought(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  HAWSER_CU(LaunchWith(attribute));
  HAWSER_CU(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)));
  HAWSER_CU(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_PRIORITY)));
  HAWSER_CU(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)));
  EXPECT_EQ(Ran(), 6u);
}

TEST_F(CudaLaunchAttributes, OthersAreRefusedByTheVeryCall) {
  for (const int id : {15, 17, 1000}) EXPECT_EQ(LaunchWith(Nought(id)), CUDA_ERROR_INVALID_VALUE) << id;
  EXPECT_EQ(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Ran(), 0u);
  HAWSER_CU(LaunchWith(Nought(CU_LAUNCH_ATTRIBUTE_IGNORE)));
  EXPECT_EQ(Ran(), 1u);
}

TEST_F(CudaLaunchAttributes, ClustersAreCountedAsTheDeviceHasThem) {
  CUdevice device = 0;
  int clusters = 0, processors = 0, each = 0, active = 0, most = 0;
  HAWSER_CU(cuCtxGetDevice(&device));
  HAWSER_CU(cuDeviceGetAttribute(&clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device));
  HAWSER_CU(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  HAWSER_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, add_, 64, 0));
  CUlaunchAttribute size = Nought(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  size.value.clusterDim.x = size.value.clusterDim.y = size.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 64;
  config.hStream = stream_;
  config.attrs = &size;
  config.numAttrs = 1;
  HAWSER_CU(cuOccupancyMaxActiveClusters(&active, add_, &config));
  EXPECT_EQ(active, each * processors);
  HAWSER_CU(cuOccupancyMaxPotentialClusterSize(&most, add_, &config));
  size.value.clusterDim.x = 2;
  const CUresult two = cuOccupancyMaxActiveClusters(&active, add_, &config);
  if (clusters == 0) {
    EXPECT_EQ(most, 1);
    EXPECT_EQ(two, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  } else {
    EXPECT_GE(most, 2);
    EXPECT_EQ(two, CUDA_SUCCESS);
    EXPECT_GT(active, 0);
  }
  config.blockDimX = 0;
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&active, add_, &config), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(nullptr, add_, &config), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuOccupancyMaxPotentialClusterSize(&most, nullptr, &config), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaLaunchAttributes, StreamsHaveTheirs) {
  CUstreamAttrValue value{};
  int least = 0, greatest = 0, priority = 1;
  HAWSER_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  value.priority = greatest - 10;
  HAWSER_CU(cuStreamSetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  HAWSER_CU(cuStreamGetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  EXPECT_EQ(value.priority, greatest);
  HAWSER_CU(cuStreamGetPriority(stream_, &priority));
  EXPECT_EQ(priority, greatest);
  value = {};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  HAWSER_CU(cuStreamSetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  CUstream copy = nullptr;
  HAWSER_CU(cuStreamCreate(&copy, CU_STREAM_DEFAULT));
  HAWSER_CU(cuStreamGetAttribute(copy, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
  HAWSER_CU(cuStreamCopyAttributes(copy, stream_));
  HAWSER_CU(cuStreamGetAttribute(copy, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_YIELD);
  HAWSER_CU(cuStreamGetPriority(copy, &priority));
  EXPECT_EQ(priority, greatest);
  HAWSER_CU(cuStreamSynchronize(copy));
}

TEST_F(CudaLaunchAttributes, StreamsRefuseOthersByTheVeryCall) {
  CUstreamAttrValue value{};
  for (const int id : {0, 2, 4, 5, 6, 7, 11, 12, 13, 14, 15, 17, 1000}) {
    const auto attribute = static_cast<CUstreamAttrID>(id);
    EXPECT_EQ(cuStreamSetAttribute(stream_, attribute, &value), CUDA_ERROR_INVALID_VALUE) << id;
    EXPECT_EQ(cuStreamGetAttribute(stream_, attribute, &value), CUDA_ERROR_INVALID_VALUE) << id;
  }
  HAWSER_CU(cuStreamSynchronize(stream_));
}

}  // namespace
}  // namespace hawser
