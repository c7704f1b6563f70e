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
  std::string named;
  for (int i = 0; i < 300; ++i) {
    local += ".local .b8 l" + std::to_string(i) + "[16777216]; ";
    shared += ".shared .b8 s" + std::to_string(i) + "[16777216]; ";
    module += ".shared .b8 m" + std::to_string(i) + "[16777216];\n";
    named += "mov.u32 %r0, m" + std::to_string(i) + "; ";
  }
  EXPECT_THAT(Loaded(local + "mov.b32 %r0, 0;"), HasSubstr("64 MiB of local memory"));
  EXPECT_THAT(Loaded(shared + "mov.b32 %r0, 0;"), HasSubstr("need more than 64 MiB"));
  EXPECT_THAT(Loaded(named, module), HasSubstr("need more than 64 MiB"));
  EXPECT_EQ(Loaded("mov.b32 %r0, 0;", module), "");  // No kernel has any of it.
  EXPECT_THAT(Loaded("mov.u32 %r0, m;", ".shared .b8 m[1099511627776];\n"), HasSubstr("need more than 64 MiB"));
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

/// Thread i copies 16 bytes from in + 16 i to its place in shared memory, which held ones, and gives the sum of the
/// words.
std::string AsyncCopy(const std::string& instruction) {
  return kHead +
         ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
         ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .shared .align 16 .b8 s[1024];\n"
         "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r7, %tid.x; mul.wide.u32 %d2, %r7, 16;\n"
         "add.u64 %d0, %d0, %d2; mov.u32 %r1, s; shl.b32 %r2, %r7, 4; add.u32 %r1, %r1, %r2; mov.b32 %r3, 0x1000000;\n"
         "st.shared.v4.u32 [%r1], {%r3, %r3, %r3, %r3}; setp.lt.u32 %p0, %r7, 4; mul.lo.u32 %r4, %r7, 4;\n"
         "createpolicy.fractional.L2::evict_first.b64 %d3, 1.0;\n" +
         instruction +
         "\ncp.async.commit_group; cp.async.wait_group 0; ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r1];\n"
         "add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r10; add.u32 %r8, %r8, %r11; mul.wide.u32 %d2, %r7, 4;\n"
         "add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r8; ret; }\n";
}

Outcome RunCopy(const std::string& instruction, uint32_t threads, uint64_t bytes, std::vector<uint32_t>* got) {
  Device device(0);
  EXPECT_EQ(device.Load({AsyncCopy(instruction)}), "");
  EXPECT_THAT(device.program().unsupported(), IsEmpty()) << instruction;
  const uint64_t in = device.Allocate(bytes);
  for (uint64_t at = 0; at + 4 <= bytes; at += 4) *reinterpret_cast<uint32_t*>(in + at) = 1;
  const uint64_t out = device.Allocate(uint64_t{4} * threads);
  Outcome outcome = device.Run("k", {1, 1, 1}, {threads, 1, 1}, Arguments().Add(in).Add(out));
  *got = device.Download<uint32_t>(out, threads);
  return outcome;
}

TEST(AsyncCopies, ReadWhatTheySayWithAndWithoutAPolicy) {
  constexpr uint32_t kThreads = 5;
  for (const bool hint : {false, true}) {
    const std::string op = hint ? "cp.async.cg.shared.global.L2::cache_hint [%r1], [%d0], 16"
                                : "cp.async.cg.shared.global [%r1], [%d0], 16";
    const std::string end = hint ? ", %d3;" : ";";
    std::vector<uint32_t> got;
    EXPECT_TRUE(RunCopy(op + end, kThreads, 16 * kThreads, &got).ok());
    EXPECT_EQ(got, (std::vector<uint32_t>{4, 4, 4, 4, 4}));
    EXPECT_TRUE(RunCopy(op + ", %r4" + end, kThreads, 16 * kThreads, &got).ok());
    EXPECT_EQ(got, (std::vector<uint32_t>{0, 1, 2, 3, 4})) << hint;  // The rest is zeros.
    EXPECT_TRUE(RunCopy(op + ", %p0" + end, kThreads, 16 * kThreads, &got).ok());
    EXPECT_EQ(got, (std::vector<uint32_t>{0, 0, 0, 0, 4})) << hint;
    EXPECT_TRUE(RunCopy(op + ", !%p0" + end, kThreads, 16 * kThreads, &got).ok());
    EXPECT_EQ(got, (std::vector<uint32_t>{4, 4, 4, 4, 0})) << hint;
  }
  Device device(0);
  ASSERT_EQ(device.Load({AsyncCopy("cp.async.cg.shared.global [%r1], [%d0], 16, %r4, %d3;")}), "");
  EXPECT_EQ(device.program().unsupported().size(), 1u);  // A policy that nothing announces.
}

TEST(AsyncCopies, NeedNoMoreThanTheyRead) {
  std::vector<uint32_t> got;
  const std::string op = "cp.async.ca.shared.global [%r1], [%d0], 16, ";
  EXPECT_TRUE(RunCopy(op + "4;", 2, 20, &got).ok());
  EXPECT_EQ(got, (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(RunCopy(op + "8;", 2, 20, &got).fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_TRUE(RunCopy(op + "0;", 3, 20, &got).ok());
  EXPECT_EQ(RunCopy("add.u64 %d0, %d0, 4; " + op + "4;", 1, 32, &got).fault.kind, Fault::Kind::kMisaligned);
}

}  // namespace
}  // namespace hawser::exec
