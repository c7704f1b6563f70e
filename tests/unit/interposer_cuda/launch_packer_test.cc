// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/launch_packer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace hawser::cu {
namespace {

struct Kernel : FunctionBase {
  Kernel(std::vector<uint32_t> at, std::vector<uint32_t> of) : FunctionBase(Kind::kFunction) {
    offsets = std::move(at);
    sizes = std::move(of);
    for (size_t i = 0; i < offsets.size(); ++i) parameter_bytes = std::max(parameter_bytes, offsets[i] + sizes[i]);
  }
};

TEST(ParameterBlockTest, PlacesEachParameterAndClearsThePadding) {
  // void kernel(char, double, int)
  const Kernel kernel({0, 8, 16}, {1, 8, 4});
  char a = 'x';
  double b = 2.5;
  int c = -7;
  void* parameters[] = {&a, &b, &c};
  ParameterBlock block;
  ASSERT_EQ(block.Pack(kernel, parameters, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(block.bytes().size(), 20u);
  std::byte expected[20]{};
  std::memcpy(expected, &a, 1);
  std::memcpy(expected + 8, &b, 8);
  std::memcpy(expected + 16, &c, 4);
  EXPECT_EQ(std::memcmp(block.bytes().data(), expected, sizeof(expected)), 0);
}

TEST(ParameterBlockTest, TakesLargeParameters) {
  const Kernel kernel({0, 4096}, {4096, 8});
  std::vector<char> large(4096, 'y');
  uint64_t last = 42;
  void* parameters[] = {large.data(), &last};
  ParameterBlock block;
  ASSERT_EQ(block.Pack(kernel, parameters, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(block.bytes().size(), 4104u);
  EXPECT_EQ(block.bytes()[4095], std::byte{'y'});
  EXPECT_EQ(block.bytes()[4096], std::byte{42});
}

TEST(ParameterBlockTest, TakesAReadyBuffer) {
  const Kernel kernel({0}, {8});
  uint64_t value = 5;
  size_t size = sizeof(value);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  ParameterBlock block;
  ASSERT_EQ(block.Pack(kernel, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(block.bytes().data(), reinterpret_cast<std::byte*>(&value));
  EXPECT_EQ(block.bytes().size(), 8u);
}

TEST(ParameterBlockTest, ChangesNothingOfTheApplications) {
  for (const size_t words : {size_t{2}, size_t{400}}) {
    const Kernel kernel({0}, {8});
    std::vector<uint64_t> theirs(words, 5);
    size_t size = words * 8;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, theirs.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    ParameterBlock block;
    ASSERT_EQ(block.Pack(kernel, nullptr, extra), CUDA_SUCCESS);
    block.Writable()[0] = std::byte{6};
    block.Writable()[size - 8] = std::byte{7};
    EXPECT_EQ(block.bytes()[0], std::byte{6});
    EXPECT_EQ(block.bytes()[size - 8], std::byte{7});
    EXPECT_EQ(block.bytes().size(), size);
    EXPECT_EQ(theirs, std::vector<uint64_t>(words, 5));
  }
  // What was packed is changed in place.
  const Kernel kernel({0, 4096}, {4096, 8});
  std::vector<char> large(4096, 'y');
  uint64_t last = 42;
  void* parameters[] = {large.data(), &last};
  ParameterBlock block;
  ASSERT_EQ(block.Pack(kernel, parameters, nullptr), CUDA_SUCCESS);
  const std::byte* const before = block.bytes().data();
  block.Writable()[4096] = std::byte{43};
  EXPECT_EQ(block.bytes().data(), before);
  EXPECT_EQ(block.bytes()[4096], std::byte{43});
  EXPECT_EQ(last, 42u);
}

TEST(ParameterBlockTest, RefusesNonsense) {
  const Kernel kernel({0}, {8});
  uint64_t value = 5;
  size_t huge = 1u << 20;
  size_t little = 7;
  void* parameters[] = {&value};
  void* missing[] = {nullptr};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_BUFFER_SIZE, &huge, CU_LAUNCH_PARAM_END};
  void* too_few[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_BUFFER_SIZE, &little, CU_LAUNCH_PARAM_END};
  void* no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_END};
  void* unknown[] = {reinterpret_cast<void*>(uintptr_t{77}), &value, CU_LAUNCH_PARAM_END};
  ParameterBlock block;
  EXPECT_EQ(block.Pack(kernel, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, missing, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, parameters, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, nullptr, too_few), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, nullptr, no_size), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(block.Pack(kernel, nullptr, unknown), CUDA_ERROR_INVALID_VALUE);
}

TEST(ParameterBlockTest, AKernelWithoutParametersNeedsNone) {
  const Kernel kernel({}, {});
  ParameterBlock block;
  EXPECT_EQ(block.Pack(kernel, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(block.bytes().empty());
}

LaunchLimits Limits() {
  LaunchLimits limits;
  limits.grid = {2147483647, 65535, 65535};
  limits.block = {1024, 1024, 64};
  limits.threads_of_device = 1024;
  limits.threads_of_kernel = 512;
  limits.dynamic_shared = 48 << 10;
  return limits;
}

TEST(CheckShapeTest, SaysWhatADriverSays) {
  const LaunchLimits limits = Limits();
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {512, 1, 1}, 0), CUDA_SUCCESS);
  EXPECT_EQ(CheckShape(limits, {2147483647, 65535, 65535}, {1, 1, 1}, 48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(CheckShape(limits, {0, 1, 1}, {1, 1, 1}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CheckShape(limits, {1, 65536, 1}, {1, 1, 1}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {1, 0, 1}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {1, 1, 65}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {1024, 2, 1}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {1024, 1, 1}, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(CheckShape(limits, {1, 1, 1}, {1, 1, 1}, (48 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(WhyTooManyTest, LaunchBoundsAreNoResource) {
  EXPECT_EQ(WhyTooMany(1024, 64, 65536), CUDA_ERROR_INVALID_VALUE);  // They would fit.
  EXPECT_EQ(WhyTooMany(1024, 65, 65536), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(WhyTooMany(129, 64, 65536), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(WhyTooMany(896, 72, 65536), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(WhyTooMany(897, 72, 65536), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);  // Whole warps.
  EXPECT_EQ(WhyTooMany(2, UINT32_MAX, 65536), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

}  // namespace
}  // namespace hawser::cu
