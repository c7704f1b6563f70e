// SPDX-License-Identifier: Apache-2.0
// Formats and copies, from the runtime's descriptions to the driver's and back.
#include <gtest/gtest.h>

#include "interposer/cudart/abi12.h"
#include "interposer/cudart/copy.h"
#include "interposer/cudart/formats.h"
#include "interposer/cudart/runtime.h"
#include "tests/unit/interposer_cudart/fake_driver.h"

namespace hawser::cudart::testing {
namespace {

cudaChannelFormatDesc Format(int x, int y, int z, int w, cudaChannelFormatKind kind) { return {x, y, z, w, kind}; }

TEST(Formats, GoThereAndBack) {
  const cudaChannelFormatDesc formats[] = {
      Format(32, 32, 32, 32, cudaChannelFormatKindFloat),
      Format(16, 0, 0, 0, cudaChannelFormatKindFloat),
      Format(8, 8, 0, 0, cudaChannelFormatKindUnsigned),
      Format(16, 16, 16, 16, cudaChannelFormatKindSigned),
      Format(8, 8, 8, 8, cudaChannelFormatKindUnsignedBlockCompressed7),
      Format(16, 16, 0, 0, cudaChannelFormatKindSignedNormalized16X2),
  };
  for (const cudaChannelFormatDesc& format : formats) {
    CUarray_format driver_format{};
    unsigned channels = 0;
    ASSERT_EQ(ToDriverFormat(format, &driver_format, &channels), cudaSuccess);
    cudaChannelFormatDesc back{};
    ASSERT_EQ(FromDriverFormat(driver_format, channels, &back), cudaSuccess);
    EXPECT_EQ(back.f, format.f);
    EXPECT_EQ(back.x, format.x);
    EXPECT_EQ(back.y, format.y);
    EXPECT_EQ(back.w, format.w);
  }
}

TEST(Formats, RefuseWhatNoArrayHolds) {
  CUarray_format format{};
  unsigned channels = 0;
  for (const cudaChannelFormatDesc& wrong :
       {Format(8, 8, 8, 0, cudaChannelFormatKindUnsigned), Format(8, 16, 0, 0, cudaChannelFormatKindUnsigned),
        Format(0, 0, 0, 0, cudaChannelFormatKindFloat), Format(8, 0, 0, 0, cudaChannelFormatKindFloat),
        Format(8, 0, 8, 0, cudaChannelFormatKindSigned), Format(64, 0, 0, 0, cudaChannelFormatKindSigned)}) {
    EXPECT_EQ(ToDriverFormat(wrong, &format, &channels), cudaErrorInvalidChannelDescriptor);
  }
}

TEST(Formats, ElementSizes) {
  EXPECT_EQ(BytesPerElement(CU_AD_FORMAT_FLOAT, 4), 16U);
  EXPECT_EQ(BytesPerElement(CU_AD_FORMAT_HALF, 2), 4U);
  EXPECT_EQ(BytesPerElement(CU_AD_FORMAT_UNORM_INT8X4, 4), 4U);
  EXPECT_EQ(BytesPerElement(CU_AD_FORMAT_BC1_UNORM, 4), 0U);
}

class CopyTest : public ::testing::Test {
 protected:
  CopyTest() {
    InstallFakeDriver();
    EXPECT_EQ(Runtime::Get().Start(), cudaSuccess);
  }
  const Driver& driver() { return Runtime::Get().driver(); }
  // The fake driver's arrays hold 16 bytes an element.
  const cudaArray_t array_ = reinterpret_cast<cudaArray_t>(uintptr_t{0x6000});
  char memory_[4096];
};

TEST_F(CopyTest, ExtentsCountElementsOfAnArrayAndElseBytes) {
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {memory_, 256, 256, 8};
  parameters.dstArray = array_;
  parameters.dstPos = {2, 3, 0};
  parameters.srcPos = {4, 1, 0};
  parameters.extent = {8, 2, 1};
  parameters.kind = cudaMemcpyHostToDevice;
  CUDA_MEMCPY3D copy;
  ASSERT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaSuccess);
  EXPECT_EQ(copy.WidthInBytes, 128U);
  EXPECT_EQ(copy.Height, 2U);
  EXPECT_EQ(copy.dstXInBytes, 32U);
  EXPECT_EQ(copy.srcXInBytes, 4U);
  EXPECT_EQ(copy.srcMemoryType, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(copy.dstMemoryType, CU_MEMORYTYPE_ARRAY);
  EXPECT_EQ(copy.srcPitch, 256U);
  EXPECT_EQ(copy.srcHeight, 8U);
  cudaMemcpy3DParms back;
  ASSERT_EQ(FromDriverCopy(driver(), copy, &back), cudaSuccess);
  EXPECT_EQ(back.extent.width, 8U);
  EXPECT_EQ(back.dstPos.x, 2U);
  EXPECT_EQ(back.srcPos.x, 4U);
  EXPECT_EQ(back.kind, cudaMemcpyHostToDevice);
  EXPECT_EQ(back.dstArray, array_);
}

TEST_F(CopyTest, RefusesWhatIsNoCopy) {
  cudaMemcpy3DParms parameters{};
  CUDA_MEMCPY3D copy;
  parameters.kind = cudaMemcpyHostToDevice;
  parameters.extent = {8, 2, 1};
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaErrorInvalidValue) << "no ends";
  parameters.srcPtr = {memory_, 4, 4, 4};
  parameters.dstPtr = {memory_, 64, 64, 4};
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaErrorInvalidPitchValue);
  parameters.srcPtr.pitch = 64;
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaSuccess);
  parameters.srcArray = array_;
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaErrorInvalidValue) << "two sources";
  parameters.srcPtr.ptr = nullptr;
  parameters.extent.width = SIZE_MAX / 2;
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaErrorInvalidValue) << "overflow";
  parameters.kind = static_cast<cudaMemcpyKind>(-1);
  EXPECT_EQ(ToDriverCopy(driver(), parameters, &copy), cudaErrorInvalidMemcpyDirection);
}

TEST_F(CopyTest, PropertiesOfCuda12HaveTheirOldPlaces) {
  static_assert(offsetof(DeviceProperties12, clockRate) == 348);
  static_assert(offsetof(DeviceProperties12, major) == 360);
  static_assert(offsetof(DeviceProperties12, multiProcessorCount) == 388);
  cudaDeviceProp properties;
  Device& device = *Runtime::Get().device(0);
  ASSERT_EQ(device.Properties(&properties), cudaSuccess);
  DeviceProperties12 old;
  ASSERT_EQ(ToProperties12(device, properties, &old), cudaSuccess);
  EXPECT_STREQ(old.name, "Fake 0");
  EXPECT_EQ(old.clockRate, 1234567);
  EXPECT_EQ(old.major, 9);
  EXPECT_EQ(old.maxThreadsDim[2], 64);
}

}  // namespace
}  // namespace hawser::cudart::testing
