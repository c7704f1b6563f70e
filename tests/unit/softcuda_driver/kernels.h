// SPDX-License-Identifier: Apache-2.0
// Kernels of the tests, as PTX text.
#ifndef HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_KERNELS_H_
#define HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_KERNELS_H_

namespace hawser::soft {

/// add(a, b, c, n): c[i] = a[i] + b[i], float.
/// poke(p, v): *p = v, u32.
/// spin(flag, out): waits until *flag != 0, then *out = 1.
/// bump(p): adds 1 to *p, atomically.
/// fail(): trap.
/// needs_shape(): must be launched with blocks of 64 threads.
/// table[4] = {1, 2, 3, 4}; counter; sum(out): *out = sum of table.
inline constexpr char kKernels[] = R"(
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .global .align 4 .u32 counter;
.visible .const .align 4 .u32 factor = 7;

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra done;
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  mul.wide.u32 %rd7, %r1, 4;
  add.s64 %rd8, %rd4, %rd7;
  add.s64 %rd9, %rd5, %rd7;
  add.s64 %rd10, %rd6, %rd7;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd9];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd10], %f3;
done:
  ret;
}

.visible .entry poke(.param .u64 p, .param .u32 v)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry spin(.param .u64 flag, .param .u64 out)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
  ld.param.u64 %rd2, [out];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  mov.u32 %r2, 1;
  st.global.u32 [%rd2], %r2;
  ret;
}

.visible .entry bump(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}

.visible .entry fail()
{
  trap;
  ret;
}

.visible .entry needs_shape()
.reqntid 64, 1, 1
{
  ret;
}

.visible .entry sum(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, table;
  ld.global.u32 %r1, [%rd2];
  ld.global.u32 %r2, [%rd2+4];
  ld.global.u32 %r3, [%rd2+8];
  ld.global.u32 %r4, [%rd2+12];
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  add.u32 %r1, %r1, %r4;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

/// Two units that need each other: main(out) calls helper(x) of the other.
inline constexpr char kUnitMain[] = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 result) helper(.param .b32 x);
.visible .entry main_kernel(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 20;
  {
    .param .b32 in0;
    .param .b32 out0;
    st.param.b32 [in0], %r1;
    call.uni (out0), helper, (in0);
    ld.param.b32 %r2, [out0];
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

inline constexpr char kUnitHelper[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .func (.param .b32 result) helper(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, 22;
  st.param.b32 [result], %r2;
  ret;
}
)";

}  // namespace hawser::soft

#endif  // HAWSER_TESTS_UNIT_SOFTCUDA_DRIVER_KERNELS_H_
