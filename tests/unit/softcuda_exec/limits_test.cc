// SPDX-License-Identifier: Apache-2.0
// Sizes that a program's text claims, and accesses at the ends of what there is.
#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string Loaded(const std::string& body, const std::string& more = "") {
  Device device(0);
  return device.Load({Kernel(body, more)});
}

TEST(Limits, ParametersOfAbsurdSizes) {
  EXPECT_THAT(Loaded(".param .b8 p[134217728]; st.param.b32 [p+134217724], %r7; ld.param.b32 %r0, [p+134217724];"),
              HasSubstr("1 MiB"));
  EXPECT_THAT(Loaded(".param .align 8 .b8 p[1048577]; st.param.b32 [p], %r7;"), HasSubstr("1 MiB"));
  // Each is allowed; all together, times 32 lanes, are more than 32 bits can count.
  std::string many;
  for (int i = 0; i < 130; ++i) many += ".param .b8 p" + std::to_string(i) + "[1048576]; ";
  EXPECT_THAT(Loaded(many + "st.param.b32 [p129], %r7; ld.param.b32 %r0, [p129];"), HasSubstr("64 MiB of parameters"));
  const std::string callee =
      ".visible .func f(.param .b8 a[1048576], .param .b8 b[1048576], .param .b8 c[1048576]) {\n"
      ".reg .b64 %d<4>; mov.u64 %d0, a; mov.u64 %d1, b; mov.u64 %d2, c; ret; }\n";
  EXPECT_THAT(Loaded("mov.b32 %r0, 0;", callee), HasSubstr("64 MiB of parameters"));
}

TEST(Limits, LargeParametersHoldWhatIsStored) {
  const std::string body =
      ".param .b8 p[1000000]; .param .b32 q; st.param.b32 [q], %r9; st.param.b32 [p+999996], %r7;\n"
      "ld.param.b32 %r0, [p+999996]; ld.param.b32 %r1, [q]; add.u32 %r0, %r0, %r1;";
  const auto got = RunBody(body, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], i + 32);
}

TEST(Limits, LocalAndSharedMemoryOfAbsurdSizes) {
  std::string local;
  std::string shared;
  std::string module;
  for (int i = 0; i < 300; ++i) {
    local += ".local .b8 l" + std::to_string(i) + "[16777216]; ";
    shared += ".shared .b8 s" + std::to_string(i) + "[16777216]; ";
    module += ".shared .b8 m" + std::to_string(i) + "[16777216];\n";
  }
  EXPECT_THAT(Loaded(local + "mov.b32 %r0, 0;"), HasSubstr("64 MiB of local memory"));
  EXPECT_THAT(Loaded(shared + "mov.b32 %r0, 0;"), HasSubstr("64 MiB of shared memory"));
  EXPECT_THAT(Loaded("mov.b32 %r0, 0;", module), HasSubstr("64 MiB"));
  EXPECT_THAT(Loaded(".local .b8 l[1099511627776]; mov.b32 %r0, 0;"), HasSubstr("64 MiB of local memory"));
}

TEST(Limits, ParametersWhoseAddressesAreTaken) {
  // A structure of 64 bytes that is aligned to 8: its size says nothing about its place.
  const std::string callee =
      ".visible .func (.param .align 8 .b8 r[64]) f(.param .align 8 .b8 a[64]) {\n"
      ".reg .b64 %d<4>; .reg .b32 %r<4>; .local .align 8 .b8 before[24]; mov.u64 %d0, a; mov.u64 %d1, r;\n"
      "ld.local.u32 %r0, [%d0+60]; add.u32 %r0, %r0, 5; st.local.u32 [%d1+60], %r0; ret; }\n";
  const auto got = RunBody(
      "{ .param .align 8 .b8 a[64]; .param .align 8 .b8 r[64]; st.param.b32 [a+60], %r7;\n"
      "call (r), f, (a); ld.param.b32 %r0, [r+60]; }",
      64, 1, callee);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i + 5);
}

}  // namespace
}  // namespace hawser::exec
