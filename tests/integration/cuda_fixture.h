// SPDX-License-Identifier: Apache-2.0
// What the CUDA programs share: a primary context for each test, and kernels as PTX text.
#ifndef HAWSER_TESTS_INTEGRATION_CUDA_FIXTURE_H_
#define HAWSER_TESTS_INTEGRATION_CUDA_FIXTURE_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hawser {

inline std::string ErrorName(CUresult result) {
  const char* name = nullptr;
  return cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : std::to_string(result);
}

#define HAWSER_CU(call)                                                 \
  do {                                                                  \
    const CUresult hawser_result = (call);                              \
    ASSERT_EQ(hawser_result, CUDA_SUCCESS) << ErrorName(hawser_result); \
  } while (false)

/// The kernels of all tests:
///   vector_add(c, a, b, n)      floats
///   add(p, n, value)            adds to each 32-bit number
///   store(p, value)             thread 0 of block 0 stores 32 bits; any address
///   spin(p, rounds)             counts in *p for a while
///   shared_sum(p, out)          sums blockDim numbers in dynamic shared memory
inline const char* Kernels() {
  return R"(
.version 7.0
.target sm_75
.address_size 64
.global .align 8 .u64 counter = 7;
.extern .shared .align 4 .b8 scratch[];

.visible .entry vector_add(.param .u64 pc, .param .u64 pa, .param .u64 pb, .param .u32 pn)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %d<11>;
  ld.param.u64 %d1, [pc];
  ld.param.u64 %d2, [pa];
  ld.param.u64 %d3, [pb];
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %d4, %d1;
  cvta.to.global.u64 %d5, %d2;
  cvta.to.global.u64 %d6, %d3;
  mul.wide.u32 %d7, %r5, 4;
  add.s64 %d8, %d5, %d7;
  add.s64 %d9, %d6, %d7;
  add.s64 %d10, %d4, %d7;
  ld.global.f32 %f1, [%d8];
  ld.global.f32 %f2, [%d9];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%d10], %f3;
DONE:
  ret;
}

.visible .entry add(.param .u64 pp, .param .u32 pn, .param .u32 pvalue)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [pp];
  ld.param.u32 %r1, [pn];
  ld.param.u32 %r6, [pvalue];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE2;
  cvta.to.global.u64 %d2, %d1;
  mul.wide.u32 %d3, %r5, 4;
  add.s64 %d4, %d2, %d3;
  ld.global.u32 %r7, [%d4];
  add.u32 %r7, %r7, %r6;
  st.global.u32 [%d4], %r7;
DONE2:
  ret;
}

.visible .entry store(.param .u64 pp, .param .u32 pvalue)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [pp];
  ld.param.u32 %r1, [pvalue];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  or.b32 %r2, %r2, %r3;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra DONE3;
  st.global.u32 [%d1], %r1;
DONE3:
  ret;
}

.visible .entry spin(.param .u64 pp, .param .u32 prounds)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [pp];
  ld.param.u32 %r1, [prounds];
  mov.u32 %r2, 0;
LOOP:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE4;
  ld.volatile.global.u32 %r3, [%d1];
  add.u32 %r3, %r3, 1;
  st.volatile.global.u32 [%d1], %r3;
  add.u32 %r2, %r2, 1;
  bra LOOP;
DONE4:
  ret;
}

.visible .entry shared_sum(.param .u64 pp, .param .u64 pout)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [pp];
  ld.param.u64 %d2, [pout];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ntid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.s64 %d4, %d1, %d3;
  ld.global.u32 %r3, [%d4];
  mov.u32 %r4, scratch;
  shl.b32 %r5, %r1, 2;
  add.u32 %r6, %r4, %r5;
  st.shared.u32 [%r6], %r3;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE5;
  mov.u32 %r7, 0;
  mov.u32 %r8, 0;
LOOP5:
  setp.ge.u32 %p2, %r7, %r2;
  @%p2 bra OUT5;
  shl.b32 %r9, %r7, 2;
  add.u32 %r10, %r4, %r9;
  ld.shared.u32 %r11, [%r10];
  add.u32 %r8, %r8, %r11;
  add.u32 %r7, %r7, 1;
  bra LOOP5;
OUT5:
  st.global.u32 [%d2], %r8;
DONE5:
  ret;
}
)";
}

/// A test in the device's primary context, which is reset when it ends.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    HAWSER_CU(cuInit(0));
    HAWSER_CU(cuDeviceGet(&device_, 0));
    HAWSER_CU(cuDevicePrimaryCtxRetain(&context_, device_));
    HAWSER_CU(cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    if (context_ != nullptr) {
      (void)cuDevicePrimaryCtxReset(device_);
      (void)cuDevicePrimaryCtxRelease(device_);
    }
  }
  CUfunction Function(const char* name) {
    if (module_ == nullptr) {
      const CUresult loaded = cuModuleLoadData(&module_, Kernels());
      EXPECT_EQ(loaded, CUDA_SUCCESS) << ErrorName(loaded);
    }
    CUfunction function = nullptr;
    const CUresult found = cuModuleGetFunction(&function, module_, name);
    EXPECT_EQ(found, CUDA_SUCCESS) << name << ": " << ErrorName(found);
    return function;
  }
  static CUresult LaunchAdd(CUfunction add, CUdeviceptr memory, uint32_t count, uint32_t value, CUstream stream) {
    void* parameters[] = {&memory, &count, &value};
    return cuLaunchKernel(add, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_INTEGRATION_CUDA_FIXTURE_H_
