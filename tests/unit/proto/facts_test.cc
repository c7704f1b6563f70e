// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <gtest/gtest.h>

#include "proto/facts/error_names.h"
#include "proto/facts/image_formats.h"

namespace hawser::opencl {
namespace {

TEST(ImageFormatsTest, ElementSizes) {
  const struct {
    cl_channel_order order;
    cl_channel_type type;
    size_t size;
  } cases[] = {
      {CL_R, CL_UNSIGNED_INT8, 1},
      {CL_RG, CL_FLOAT, 8},
      {CL_RGBA, CL_FLOAT, 16},
      {CL_BGRA, CL_UNORM_INT8, 4},
      {CL_BGRA, CL_FLOAT, 0},
      {CL_RGB, CL_UNORM_SHORT_565, 2},
      {CL_RGB, CL_UNORM_INT8, 0},
      {CL_RGBA, CL_UNORM_INT_101010_2, 4},
      {CL_RGBA, CL_UNORM_SHORT_565, 0},
      {CL_DEPTH, CL_FLOAT, 4},
      {CL_DEPTH, CL_SIGNED_INT8, 0},
      {CL_LUMINANCE, CL_HALF_FLOAT, 2},
      {CL_sRGBA, CL_UNORM_INT8, 4},
      {0x1234, CL_FLOAT, 0},
      {CL_RGBA, 0x1234, 0},
  };
  for (const auto& each : cases) EXPECT_EQ(ElementSize(each.order, each.type), each.size) << each.order << each.type;
}

TEST(ErrorNames, KnowsTheHeaders) {
  EXPECT_STREQ(ErrorName(CL_SUCCESS), "CL_SUCCESS");
  EXPECT_STREQ(ErrorName(CL_KERNEL_ARG_INFO_NOT_AVAILABLE), "CL_KERNEL_ARG_INFO_NOT_AVAILABLE");
  EXPECT_STREQ(ErrorName(CL_INVALID_VALUE), "CL_INVALID_VALUE");
  EXPECT_STREQ(ErrorName(CL_INVALID_EVENT_WAIT_LIST), "CL_INVALID_EVENT_WAIT_LIST");
  EXPECT_STREQ(ErrorName(CL_INVALID_DEVICE_PARTITION_COUNT), "CL_INVALID_DEVICE_PARTITION_COUNT");
  EXPECT_STREQ(ErrorName(CL_MAX_SIZE_RESTRICTION_EXCEEDED), "CL_MAX_SIZE_RESTRICTION_EXCEEDED");
  EXPECT_STREQ(ErrorName(CL_PLATFORM_NOT_FOUND_KHR), "CL_PLATFORM_NOT_FOUND_KHR");
  for (const int32_t unknown : {1, -20, -29, -73, INT32_MIN}) {
    EXPECT_STREQ(ErrorName(unknown), "an unknown OpenCL error") << unknown;
  }
}

}  // namespace
}  // namespace hawser::opencl
