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
