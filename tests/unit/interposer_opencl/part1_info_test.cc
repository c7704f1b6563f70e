// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "interposer/opencl/info_filter.h"
#include "interposer/opencl/partition.h"

namespace hawser::ocl {
namespace {

template <typename T>
void Put(InfoMap& info, cl_uint param, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  info[param] = {CL_SUCCESS, std::vector<std::byte>(bytes, bytes + sizeof(T))};
}

void PutText(InfoMap& info, cl_uint param, const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.c_str());
  info[param] = {CL_SUCCESS, std::vector<std::byte>(bytes, bytes + text.size() + 1)};
}

TEST(ReturnInfo, SizeRules) {
  const cl_uint value = 7;
  cl_uint out = 0;
  size_t size = 0;
  EXPECT_EQ(ReturnInfo(value, sizeof(out), &out, &size), CL_SUCCESS);
  EXPECT_EQ(out, 7u);
  EXPECT_EQ(size, sizeof(out));
  out = 0;
  EXPECT_EQ(ReturnInfo(value, sizeof(out) - 1, &out, &size), CL_INVALID_VALUE);
  EXPECT_EQ(out, 0u);
  EXPECT_EQ(ReturnInfo(value, 0, nullptr, &size), CL_SUCCESS);
  EXPECT_EQ(ReturnInfo(value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(ReturnInfo(nullptr, 0, 0, &out, &size), CL_SUCCESS);
  EXPECT_EQ(size, 0u);
}

TEST(ReturnInfo, StringsHaveTheirFinalZero) {
  char out[4] = {};
  size_t size = 0;
  EXPECT_EQ(ReturnString("abc", sizeof(out), out, &size), CL_SUCCESS);
  EXPECT_STREQ(out, "abc");
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(ReturnString("abc", 3, out, &size), CL_INVALID_VALUE);
  EXPECT_EQ(ReturnString("", 0, nullptr, &size), CL_SUCCESS);
  EXPECT_EQ(size, 1u);
}

TEST(InfoFilter, MasksWhatCannotWork) {
  InfoMap info;
  Put<cl_device_exec_capabilities>(info, CL_DEVICE_EXECUTION_CAPABILITIES, CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL);
  Put<cl_device_svm_capabilities>(info, CL_DEVICE_SVM_CAPABILITIES, 0xf);
  PutText(info, CL_DEVICE_EXTENSIONS, "cl_khr_fp64 cl_khr_command_buffer");
  FilterDeviceInfo(info);
  EXPECT_EQ(ValueOf<cl_device_exec_capabilities>(info, CL_DEVICE_EXECUTION_CAPABILITIES), cl_bitfield{CL_EXEC_KERNEL});
  EXPECT_EQ(ValueOf<cl_device_svm_capabilities>(info, CL_DEVICE_SVM_CAPABILITIES),
            cl_bitfield{CL_DEVICE_SVM_COARSE_GRAIN_BUFFER});
  EXPECT_EQ(TextOf(info, CL_DEVICE_EXTENSIONS), "cl_khr_fp64");
}

TEST(InfoFilter, ParametersGoWithTheirExtension) {
  InfoMap info;
  PutText(info, CL_DEVICE_EXTENSIONS, "cl_khr_command_buffer cl_khr_pci_bus_info");
  Put<cl_bitfield>(info, 0x12A9, 1);  // Command buffers: dropped.
  Put<cl_bitfield>(info, 0x410F, 1);  // PCI bus: kept with its extension.
  Put<cl_bitfield>(info, 0x4108, 1);  // Sub-group sizes: their extension is not there.
  Put<cl_bitfield>(info, 0x106A, 1);  // UUID lies between core parameters.
  Put<cl_uint>(info, CL_DEVICE_MAX_COMPUTE_UNITS, 2);
  FilterDeviceInfo(info);
  EXPECT_EQ(info.count(0x12A9), 0u);
  EXPECT_EQ(info.count(0x410F), 1u);
  EXPECT_EQ(info.count(0x4108), 0u);
  EXPECT_EQ(info.count(0x106A), 0u);
  EXPECT_EQ(info.count(CL_DEVICE_MAX_COMPUTE_UNITS), 1u);
}

TEST(InfoFilter, PlatformsKeepCoreParametersOnly) {
  InfoMap info;
  PutText(info, CL_PLATFORM_NAME, "A platform");
  PutText(info, CL_PLATFORM_EXTENSIONS, "cl_khr_icd cl_khr_semaphore");
  Put<cl_uint>(info, 0x2036, 1);
  FilterPlatformInfo(info);
  EXPECT_EQ(TextOf(info, CL_PLATFORM_NAME), "A platform");
  EXPECT_EQ(TextOf(info, CL_PLATFORM_EXTENSIONS), "cl_khr_icd");
  EXPECT_EQ(info.count(0x2036), 0u);
}

TEST(InfoFilter, AnswersFromTheMap) {
  InfoMap info;
  Put<cl_uint>(info, 1, 5);
  info[2] = {CL_INVALID_OPERATION, {}};
  cl_uint out = 0;
  size_t size = 0;
  EXPECT_EQ(ReturnFrom(info, 1, sizeof(out), &out, &size), CL_SUCCESS);
  EXPECT_EQ(out, 5u);
  EXPECT_EQ(ReturnFrom(info, 2, sizeof(out), &out, &size), CL_INVALID_OPERATION);
  EXPECT_EQ(ReturnFrom(info, 3, sizeof(out), &out, &size), CL_INVALID_VALUE);
  EXPECT_EQ(ValueOf<cl_ulong>(info, 1), std::nullopt);  // Another size.
  EXPECT_EQ(ValueOr<cl_uint>(info, 2, 9), 9u);
}

TEST(InfoFilter, ParsesVersions) {
  EXPECT_EQ(ParseVersion("OpenCL 3.0 PoCL"), 300u);
  EXPECT_EQ(ParseVersion("OpenCL 1.2"), 120u);
  EXPECT_EQ(ParseVersion("OpenCL 2.1 "), 210u);
  EXPECT_EQ(ParseVersion("OpenCL x.y"), 0u);
  EXPECT_EQ(ParseVersion("OpenCL 3"), 0u);
  EXPECT_EQ(ParseVersion("opencl 3.0"), 0u);
  EXPECT_EQ(ParseVersion(""), 0u);
}

class PartitionTest : public testing::Test {
 protected:
  PartitionTest() {
    Put<cl_uint>(info_, CL_DEVICE_MAX_COMPUTE_UNITS, 8);
    Put<cl_uint>(info_, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 8);
    const cl_device_partition_property kinds[] = {CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS};
    Put(info_, CL_DEVICE_PARTITION_PROPERTIES, kinds);
  }
  InfoMap info_;
  Partition partition_;
};

TEST_F(PartitionTest, Equally) {
  const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_EQUALLY, 3, 0};
  ASSERT_EQ(ParsePartition(info_, list, &partition_), CL_SUCCESS);
  EXPECT_EQ(partition_.max_devices, 2u);
  EXPECT_EQ(partition_.properties, (std::vector<int64_t>{CL_DEVICE_PARTITION_EQUALLY, 3, 0}));
}

TEST_F(PartitionTest, ByCounts) {
  const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_BY_COUNTS, 3, 1, 0, 0};
  ASSERT_EQ(ParsePartition(info_, list, &partition_), CL_SUCCESS);
  EXPECT_EQ(partition_.max_devices, 2u);
  EXPECT_EQ(partition_.properties, (std::vector<int64_t>{CL_DEVICE_PARTITION_BY_COUNTS, 3, 1, 0, 0}));
}

TEST_F(PartitionTest, RefusesWhatTheDeviceCannot) {
  const cl_device_partition_property affinity[] = {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                   CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0};
  EXPECT_EQ(ParsePartition(info_, affinity, &partition_), CL_INVALID_VALUE);
  const cl_device_partition_property none[] = {CL_DEVICE_PARTITION_EQUALLY, 0, 0};
  EXPECT_EQ(ParsePartition(info_, none, &partition_), CL_INVALID_VALUE);
  const cl_device_partition_property more[] = {CL_DEVICE_PARTITION_EQUALLY, 9, 0};
  EXPECT_EQ(ParsePartition(info_, more, &partition_), CL_INVALID_VALUE);
  const cl_device_partition_property unknown[] = {0x1234, 1, 0};
  EXPECT_EQ(ParsePartition(info_, unknown, &partition_), CL_INVALID_VALUE);
  EXPECT_EQ(ParsePartition(info_, nullptr, &partition_), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::ocl
