// SPDX-License-Identifier: Apache-2.0
// Kernels that set the conditions of graphs, as nvcc writes them with -rdc=true.
#ifndef HAWSER_TESTS_SUPPORT_CONDITION_KERNELS_H_
#define HAWSER_TESTS_SUPPORT_CONDITION_KERNELS_H_

namespace hawser {

/// choose(h, p): the condition h becomes *p.
/// count_down(p, h): takes 1 from *p; the condition h becomes what is left.
/// bump(p, n): adds n to *p.
/// put(p, v): *p = v.
inline constexpr char kConditionKernels[] = R"(
.version 7.0
.target sm_75
.address_size 64

.extern .func cudaGraphSetConditional
(
  .param .b64 cudaGraphSetConditional_param_0,
  .param .b32 cudaGraphSetConditional_param_1
)
;

.visible .entry choose(.param .u64 h, .param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [h];
  ld.param.u64 %rd2, [p];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r1, [%rd3];
  {
  .param .b64 param0;
  st.param.b64 [param0+0], %rd1;
  .param .b32 param1;
  st.param.b32 [param1+0], %r1;
  call.uni cudaGraphSetConditional, (param0, param1);
  }
  ret;
}

.visible .entry count_down(.param .u64 p, .param .u64 h)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [h];
  ld.param.u64 %rd2, [p];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r1, [%rd3];
  add.s32 %r2, %r1, -1;
  st.global.u32 [%rd3], %r2;
  {
  .param .b64 param0;
  st.param.b64 [param0+0], %rd1;
  .param .b32 param1;
  st.param.b32 [param1+0], %r2;
  call.uni cudaGraphSetConditional, (param0, param1);
  }
  ret;
}

.visible .entry bump(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  cvta.to.global.u64 %rd2, %rd1;
  atom.global.add.u32 %r2, [%rd2], %r1;
  ret;
}

.visible .entry put(.param .u64 p, .param .u32 v)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

}  // namespace hawser

#endif  // HAWSER_TESTS_SUPPORT_CONDITION_KERNELS_H_
