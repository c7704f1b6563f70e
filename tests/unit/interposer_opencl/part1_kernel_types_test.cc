// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "interposer/opencl/kernel_types.h"

namespace hawser::ocl {
namespace {

TEST(KernelTypes, SizesByName) {
  EXPECT_EQ(SizeOfType("char"), 1u);
  EXPECT_EQ(SizeOfType("uchar16"), 16u);
  EXPECT_EQ(SizeOfType("short4"), 8u);
  EXPECT_EQ(SizeOfType("int"), 4u);
  EXPECT_EQ(SizeOfType("unsigned int"), 4u);
  EXPECT_EQ(SizeOfType("ulong2"), 16u);
  EXPECT_EQ(SizeOfType("half8"), 16u);
  EXPECT_EQ(SizeOfType("float16"), 64u);
  EXPECT_EQ(SizeOfType("double"), 8u);
}

TEST(KernelTypes, SaysNothingAboutOthers) {
  EXPECT_EQ(SizeOfType("float3"), 0u);
  EXPECT_EQ(SizeOfType("float32"), 0u);
  EXPECT_EQ(SizeOfType("myint"), 0u);
  EXPECT_EQ(SizeOfType("int*"), 0u);
  EXPECT_EQ(SizeOfType("16"), 0u);
  EXPECT_EQ(SizeOfType(""), 0u);
}

KernelMetadata::Arg Arg(cl_uint address, const char* type, cl_ulong qualifier = 0) {
  KernelMetadata::Arg arg;
  arg.status = CL_SUCCESS;
  arg.address = address;
  arg.type_qualifier = qualifier;
  arg.type_name = type;
  Classify(arg);
  return arg;
}

TEST(KernelTypes, Classifies) {
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_GLOBAL, "float*").kind, ArgKind::kBuffer);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_CONSTANT, "int*").kind, ArgKind::kBuffer);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_LOCAL, "int*").kind, ArgKind::kLocal);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_GLOBAL, "image2d_t").kind, ArgKind::kImage);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_GLOBAL, "image_t*").kind, ArgKind::kBuffer);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "sampler_t").kind, ArgKind::kSampler);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "queue_t").kind, ArgKind::kQueue);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_GLOBAL, "int", CL_KERNEL_ARG_TYPE_PIPE).kind, ArgKind::kPipe);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "float4").kind, ArgKind::kValue);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "float4").value_size, 16u);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "S").kind, ArgKind::kValue);
  EXPECT_EQ(Arg(CL_KERNEL_ARG_ADDRESS_PRIVATE, "S").value_size, 0u);
}

TEST(KernelTypes, WithoutArgumentInfoNothingIsKnown) {
  KernelMetadata::Arg arg;
  arg.kind = ArgKind::kValue;
  Classify(arg);
  EXPECT_EQ(arg.kind, ArgKind::kUnknown);
}

}  // namespace
}  // namespace hawser::ocl
