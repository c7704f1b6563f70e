// SPDX-License-Identifier: Apache-2.0
// A program of the driver API: two devices of 256 MiB, a context, the tests' kernels.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_DRIVER_TEST_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_DRIVER_TEST_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/softcuda_driver/kernels.h"

namespace hawser::soft {

inline constexpr size_t kDeviceBytes = size_t{256} << 20;

#define EXPECT_CUDA(expected, expression) EXPECT_EQ(static_cast<int>(expected), static_cast<int>(expression))
#define ASSERT_CUDA(expected, expression) ASSERT_EQ(static_cast<int>(expected), static_cast<int>(expression))

/// Without a context.
class DriverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_CUDA(CUDA_SUCCESS, cuInit(0)); }
};

class ContextTest : public DriverTest {
 protected:
  void SetUp() override {
    CUctxCreateParams params{};
    ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&context_, &params, 0, 0));
  }
  void TearDown() override { EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(context_)); }

  CUfunction Function(const char* name) {
    if (module_ == nullptr) {
      EXPECT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, kKernels));
    }
    CUfunction function = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuModuleGetFunction(&function, module_, name));
    return function;
  }
  template <typename... A>
  CUresult Launch(const char* name, unsigned blocks, unsigned threads, CUstream stream, A... arguments) {
    void* params[] = {&arguments..., nullptr};
    return cuLaunchKernel(Function(name), blocks, 1, 1, threads, 1, 1, 0, stream, params, nullptr);
  }
  CUdeviceptr Alloc(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemAlloc(&address, bytes));
    EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD8(address, 0, bytes));
    return address;
  }
  uint32_t Read(CUdeviceptr address) {
    uint32_t value = 0xdeadbeef;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(&value, address, sizeof(value)));
    return value;
  }
  CUstream Stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuStreamCreate(&stream, flags));
    return stream;
  }
  CUevent Event(unsigned flags = CU_EVENT_DEFAULT) {
    CUevent event = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuEventCreate(&event, flags));
    return event;
  }
  /// A word that host and device see, at 0.
  volatile uint32_t* Flag() {
    void* flag = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemHostAlloc(&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    auto* const word = static_cast<volatile uint32_t*>(flag);
    *word = 0;
    return word;
  }
  static CUdeviceptr Address(const volatile void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

}  // namespace hawser::soft

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_DRIVER_TEST_H_
