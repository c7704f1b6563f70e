// SPDX-License-Identifier: Apache-2.0
// The entry points by name and by table, and those that need no server.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "interposer/opencl/entry.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

TEST(Icd, TheLoaderFindsWhatItAsksFor) {
  for (const char* name :
       {"clIcdGetPlatformIDsKHR", "clGetPlatformInfo", "clCreateBuffer", "clEnqueueNDRangeKernel",
        "clGetKernelSubGroupInfoKHR", "clCreateCommandQueueWithPropertiesKHR", "hawserGetStatsHWS"}) {
    EXPECT_NE(ocl::clGetExtensionFunctionAddress(name), nullptr) << name;
  }
  EXPECT_EQ(ocl::clGetExtensionFunctionAddress("clCreateCommandBufferKHR"), nullptr);
  EXPECT_EQ(ocl::clGetExtensionFunctionAddress(""), nullptr);
  EXPECT_EQ(ocl::clGetExtensionFunctionAddress(nullptr), nullptr);
  EXPECT_EQ(ocl::clGetExtensionFunctionAddressForPlatform(nullptr, "clCreateBuffer"), nullptr);
}

TEST(Icd, NoSlotThatALinuxLoaderCallsIsEmpty) {
  const auto* table = Dispatch();
  std::vector<void*> slots(sizeof(*table) / sizeof(void*));
  std::memcpy(slots.data(), table, sizeof(*table));
  size_t empty = 0;
  for (const void* slot : slots) empty += slot == nullptr ? 1 : 0;
  // Sharing with Direct3D 10 (6 slots), 11 (6) and DX9 media surfaces (4) exists on Windows only.
  EXPECT_EQ(empty, 16u);
}

TEST(Icd, GraphicsSharingIsRefusedWithTheExtensionsCode) {
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(Dispatch()->clCreateFromGLTexture(nullptr, 0, 0, 0, 0, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_CONTEXT);
  EXPECT_EQ(Dispatch()->clCreateFromGLTexture(nullptr, 0, 0, 0, 0, nullptr), nullptr);
  EXPECT_EQ(Dispatch()->clEnqueueAcquireGLObjects(nullptr, 0, nullptr, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
}

TEST(Icd, NullHandlesGetTheirCodes) {
  EXPECT_EQ(ocl::clGetPlatformInfo(nullptr, CL_PLATFORM_NAME, 0, nullptr, nullptr), CL_INVALID_PLATFORM);
  EXPECT_EQ(ocl::clGetDeviceInfo(nullptr, CL_DEVICE_NAME, 0, nullptr, nullptr), CL_INVALID_DEVICE);
  EXPECT_EQ(ocl::clGetContextInfo(nullptr, CL_CONTEXT_DEVICES, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
  EXPECT_EQ(ocl::clFinish(nullptr), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(ocl::clFlush(nullptr), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(ocl::clReleaseCommandQueue(nullptr), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(ocl::clRetainDevice(nullptr), CL_INVALID_DEVICE);
  EXPECT_EQ(ocl::clSetKernelArg(nullptr, 0, 0, nullptr), CL_INVALID_KERNEL);
  EXPECT_EQ(ocl::clBuildProgram(nullptr, 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_PROGRAM);
  EXPECT_EQ(ocl::clGetSamplerInfo(nullptr, CL_SAMPLER_CONTEXT, 0, nullptr, nullptr), CL_INVALID_SAMPLER);
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(ocl::clCreateProgramWithSource(nullptr, 0, nullptr, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_CONTEXT);
  EXPECT_EQ(ocl::clCreateKernel(nullptr, "f", &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_PROGRAM);
}

}  // namespace
}  // namespace hawser::ocl
