// SPDX-License-Identifier: Apache-2.0
// Launches, links, faults and scheduling in hand-written PTX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

using testing::HasSubstr;

TEST(Launch, BadLaunchesAreRefused) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + ".visible .entry k(.param .u32 a) .maxntid 64, 1, 1 { .shared .b8 s[1000]; ret; }"}),
            "");
  const Arguments one = Arguments().Add(1);
  EXPECT_TRUE(device.Run("k", {1, 1, 1}, {64, 1, 1}, one).ok());
  for (const auto& [grid, block] :
       std::vector<std::pair<std::array<uint32_t, 3>, std::array<uint32_t, 3>>>{{{0, 1, 1}, {1, 1, 1}},
                                                                                {{1, 65536, 1}, {1, 1, 1}},
                                                                                {{1, 1, 1}, {65, 1, 1}},
                                                                                {{1, 1, 1}, {1, 0, 1}},
                                                                                {{1, 1, 1}, {1, 1, 65}}}) {
    EXPECT_EQ(device.Run("k", grid, block, one).fault.kind, Fault::Kind::kBadLaunch);
  }
  EXPECT_EQ(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments()).fault.kind, Fault::Kind::kBadLaunch);
  EXPECT_EQ(device.Run("k", {1, 1, 1}, {1, 1, 1}, one, 232'000).fault.kind, Fault::Kind::kBadLaunch);
  EXPECT_EQ(device.Run("none", {1, 1, 1}, {1, 1, 1}, one).fault.kind, Fault::Kind::kBadLaunch);
  EXPECT_EQ(device.program().kernels()[0].static_shared_bytes, 1000u);
  EXPECT_EQ(device.program().kernels()[0].max_threads, 64u);
}

TEST(Launch, KernelParametersAreLaidOutAsDeclared) {
  Device device(0);
  ASSERT_EQ(device.Load(
                {kHead +
                 ".visible .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .u16 d) { ret; }"}),
            "");
  const KernelInfo& info = device.program().kernels()[0];
  ASSERT_EQ(info.parameters.size(), 4u);
  EXPECT_EQ(info.parameters[1].offset, 8u);
  EXPECT_EQ(info.parameters[2].offset, 16u);
  EXPECT_EQ(info.parameters[3].offset, 36u);
  EXPECT_EQ(info.parameter_bytes, 38u);
}

TEST(Link, ModulesShareNames) {
  Device device(0);
  const std::string a =
      kHead +
      ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .u32 shared_value;\n"
      ".visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d;\n"
      "ld.global.u32 %r1, [shared_value]; { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;\n"
      "call (q), twice, (p); ld.param.b32 %r2, [q]; } ld.param.u64 %d, [out]; st.global.u32 [%d], %r2; ret; }";
  const std::string b =
      kHead +
      ".visible .global .u32 shared_value = 21;\n.visible .func (.param .b32 r) twice(.param .b32 x) {\n"
      ".reg .b32 %r<2>; ld.param.u32 %r0, [x]; shl.b32 %r1, %r0, 1; st.param.b32 [r], %r1; ret; }";
  ASSERT_EQ(device.Load({a, b}), "");
  const uint64_t out = device.Allocate(4);
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], 42u);
  EXPECT_THAT(device.Load({a}), HasSubstr("'twice'"));
  EXPECT_THAT(device.Load({a, b, b}), HasSubstr("two modules define"));
  EXPECT_THAT(device.Load({a, b}, {.compute_capability = 75}), HasSubstr("sm_80"));
}

TEST(Link, InitialValuesHoldAddresses) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + ".global .align 8 .u64 p[2] = {x, generic(x)+4}; .global .u32 x[2] = {5, 6};\n" +
                         ".visible .entry k(.param .u64 out) { ret; }"}),
            "");
  const auto p = device.Download<uint64_t>(device.symbol("p"), 2);
  EXPECT_EQ(p[0], device.symbol("x"));
  EXPECT_EQ(p[1], device.symbol("x") + 4);
  EXPECT_EQ(device.Download<uint32_t>(p[1], 1)[0], 6u);
}

TEST(Link, UnknownInstructionsFaultByNameWhenReached) {
  Device device(0);
  ASSERT_EQ(device.Load({Kernel("mov.b32 %r0, 1; setp.eq.u32 %p0, %r7, 5; @%p0 tcgen05.whatever.b32 %r1, %r2;")}), "");
  ASSERT_EQ(device.program().unsupported().size(), 1u);
  EXPECT_THAT(device.program().unsupported()[0], HasSubstr("tcgen05.whatever"));
  const uint64_t out = device.Allocate(256);
  EXPECT_TRUE(device.Run("k", {1, 1, 1}, {4, 1, 1}, Arguments().Add(out)).ok());
  const Fault fault = device.Run("k", {1, 1, 1}, {32, 1, 1}, Arguments().Add(out)).fault;
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalInstruction);
  EXPECT_THAT(fault.message, HasSubstr("tcgen05.whatever"));
  EXPECT_EQ(fault.thread[0], 5u);
}

TEST(Control, DivergentBranchesMeetAgain) {
  const auto result = RunBody(
      "and.b32 %r1, %r7, 1; setp.eq.u32 %p0, %r1, 0; @%p0 bra EVEN;\nmov.b32 %r2, 100; bra JOIN;\nEVEN: mov.b32 %r2, "
      "200;\n"
      "JOIN: activemask.b32 %r0;");
  for (const uint32_t mask : result) EXPECT_EQ(mask, 0xffffffffu);
}

TEST(Control, IndexedBranch) {
  const auto result = RunBody(
      "and.b32 %r1, %r7, 3; brx.idx %r1, T;\nT: .branchtargets A, B, C, A;\nA: mov.b32 %r0, 10; bra E;\nB: mov.b32 "
      "%r0, 20; bra E;\n"
      "C: mov.b32 %r0, 30;\nE:");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], (std::array<uint32_t, 4>{10, 20, 30, 10}[i % 4]));
}

// Each thread shows its round (%r1) at %r2, and looks at its neighbour's at %r4; %p0: one of the lanes from 16 on. %r0:
// how often the neighbour was in another round.
const std::string kRounds = R"(
    .shared .b32 round[64];
    mov.u32 %r2, round; shl.b32 %r3, %r7, 2; add.u32 %r2, %r2, %r3;
    xor.b32 %r4, %r7, 16; shl.b32 %r4, %r4, 2; mov.u32 %r5, round; add.u32 %r4, %r4, %r5;
    and.b32 %r6, %r7, 16; setp.ne.u32 %p0, %r6, 0;
    mov.u32 %r0, 0; mov.u32 %r1, 0; st.shared.u32 [%r2], %r1;
)";

// Lanes that skip an inner loop meet the others at its end, though the text has the end of the outer loop first. As on
// GPUs with a reconvergence stack; programs rely on it.
TEST(Control, LanesMeetBehindAnInnerLoop) {
  const std::vector<uint32_t> wrong = RunBody(kRounds + R"(
    bra.uni BEGIN;
  END:
    ld.volatile.shared.u32 %r5, [%r4]; setp.ne.u32 %p1, %r5, %r1; @%p1 add.u32 %r0, %r0, 1;
    add.u32 %r1, %r1, 1; st.volatile.shared.u32 [%r2], %r1;
    setp.eq.u32 %p1, %r1, 5; @%p1 bra DONE;
  BEGIN:
    @%p0 bra END;
    mov.u32 %r6, 0;
  INNER:
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 3; @%p1 bra INNER;
    bra.uni END;
  DONE:)");
  EXPECT_THAT(wrong, testing::Each(0u));
}

// The same for a loop that begins anew from two blocks.
TEST(Control, LanesMeetBeforeTheNextRound) {
  const std::vector<uint32_t> wrong = RunBody(kRounds + R"(
  BEGIN:
    ld.volatile.shared.u32 %r5, [%r4]; setp.ne.u32 %p1, %r5, %r1; @%p1 add.u32 %r0, %r0, 1;
    setp.eq.u32 %p1, %r1, 5; @%p1 bra DONE;
    add.u32 %r1, %r1, 1; st.volatile.shared.u32 [%r2], %r1;
    @%p0 bra BEGIN;
    add.u32 %r6, %r6, 1;
    bra.uni BEGIN;
  DONE:)");
  EXPECT_THAT(wrong, testing::Each(0u));
}

TEST(Control, BarrierInDivergentCode) {
  // Both halves of each warp reach a barrier of their own text; together they are all threads.
  const auto result = RunBody(
      "mov.u32 %r5, s; mad.lo.u32 %r6, %r7, 4, %r5; add.u32 %r1, %r7, 7; st.shared.u32 [%r6], %r1;\n"
      "and.b32 %r1, %r7, 1; setp.eq.u32 %p0, %r1, 0; @%p0 bra A;\nbarrier.sync 0; bra B;\nA: barrier.sync 0;\n"
      "B: xor.b32 %r1, %r7, 63; mad.lo.u32 %r6, %r1, 4, %r5; ld.shared.u32 %r0, [%r6];",
      64, 1, ".shared .u32 s[64];\n");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], (i ^ 63) + 7);
}

TEST(Control, NamedBarriersCount) {
  // Warp 0 produces, warp 1 consumes.
  const auto result = RunBody(
      "mov.b32 %r0, 0; setp.ge.u32 %p0, %r7, 32; @%p0 bra C;\nst.shared.u32 [s], 77; bar.arrive 3, 64; bra E;\n"
      "C: bar.sync 3, 64; ld.shared.u32 %r0, [s];\nE:",
      64, 1, ".shared .u32 s;\n");
  EXPECT_EQ(result[40], 77u);
}

TEST(Control, BarrierReductions) {
  const auto result = RunBody(
      "setp.lt.u32 %p0, %r7, 10; bar.red.popc.u32 %r1, 0, %p0; bar.red.or.pred %p1, 1, %p0;\n"
      "bar.red.and.pred %p2, 2, %p0; selp.b32 %r2, 100, 0, %p1; selp.b32 %r3, 1000, 0, %p2;\n"
      "add.u32 %r0, %r1, %r2; add.u32 %r0, %r0, %r3;");
  for (const uint32_t value : result) EXPECT_EQ(value, 110u);
}

TEST(Control, ExitedThreadsAreNotWaitedFor) {
  Device device(0);
  ASSERT_EQ(device.Load({Kernel("setp.ge.u32 %p0, %r7, 40; @%p0 exit; bar.sync 0; mov.b32 %r0, 3;")}), "");
  const uint64_t out = device.Allocate(256);
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {64, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(device.Download<uint32_t>(out, 64)[39], 3u);
}

TEST(Control, BarrierThatCannotCompleteIsADeadlock) {
  EXPECT_EQ(FaultOf("setp.ge.u32 %p0, %r7, 32; @%p0 bra E;\nbar.sync 1, 96;\nE: bar.sync 0;").kind,
            Fault::Kind::kDeadlock);
}

TEST(Control, WarpInstructionsWaitForTheirMembers) {
  // Half of the lanes come later, by another way.
  const auto result = RunBody(
      "setp.ge.u32 %p0, %r7, 16; @%p0 bra S;\nmov.b32 %r2, 5; bra S;\nS: mov.b32 %r1, %r7; setp.lt.u32 %p1, %r7, 8; "
      "@%p1 bra T;\n"
      "add.u32 %r1, %r1, 100;\nT: shfl.sync.idx.b32 %r0, %r1, 31, 31, -1;",
      32);
  for (const uint32_t value : result) EXPECT_EQ(value, 131u);
}

TEST(Control, PartsOfAWarpSynchroniseApart) {
  const auto result = RunBody(
      "setp.lt.u32 %p0, %r7, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p0; setp.lt.u32 %p1, %r7, 20;\n"
      "vote.sync.ballot.b32 %r0, %p1, %r1;",
      32);
  EXPECT_EQ(result[3], 0xffffu);
  EXPECT_EQ(result[20], 0xf0000u);
}

TEST(Control, ShuffleModes) {
  const auto result = RunBody(
      "shfl.sync.up.b32 %r1|%p0, %r7, 3, 0, -1; shfl.sync.down.b32 %r2|%p1, %r7, 2, 31, -1; shfl.sync.bfly.b32 %r3, "
      "%r7, 5, 31, -1;\n"
      "shfl.sync.idx.b32 %r4, %r7, 1, 0x181f, -1; selp.b32 %r5, 1, 0, %p0; selp.b32 %r6, 1, 0, %p1;\n"
      "mad.lo.u32 %r0, %r1, 32, %r2; mad.lo.u32 %r0, %r0, 32, %r3; mad.lo.u32 %r0, %r0, 32, %r4;\n"
      "mad.lo.u32 %r0, %r0, 2, %r5; mad.lo.u32 %r0, %r0, 2, %r6;",
      32);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t up = i >= 3 ? i - 3 : i;
    const uint32_t down = i + 2 < 32 ? i + 2 : i;
    const uint32_t expected =
        ((((up * 32 + down) * 32 + (i ^ 5)) * 32 + (i / 8 * 8 + 1)) * 2 + (i >= 3 ? 1 : 0)) * 2 + (i < 30 ? 1 : 0);
    EXPECT_EQ(result[i], expected) << i;
  }
}

TEST(Memory, GenericAddressesOfAllSpaces) {
  const auto result = RunBody(
      ".local .align 8 .b8 loc[16]; mov.u64 %d1, loc; cvta.local.u64 %d1, %d1; st.u32 [%d1+4], %r7; ld.local.u32 %r1, "
      "[loc+4];\n"
      "mov.u32 %r5, s; mad.lo.u32 %r6, %r7, 4, %r5; cvt.u64.u32 %d2, %r6; cvta.shared.u64 %d2, %d2; st.u32 [%d2], "
      "%r7;\n"
      "ld.shared.u32 %r2, [%r6]; isspacep.shared %p0, %d2; isspacep.local %p1, %d1; isspacep.global %p2, %d0;\n"
      "isspacep.global %p3, %d2; selp.b32 %r3, 1, 0, %p0; selp.b32 %r4, 2, 0, %p1; add.u32 %r3, %r3, %r4; selp.b32 "
      "%r4, 4, 0, %p2;\n"
      "add.u32 %r3, %r3, %r4; selp.b32 %r4, 8, 0, %p3; add.u32 %r3, %r3, %r4; cvta.to.shared.u64 %d3, %d2; cvt.u32.u64 "
      "%r4, %d3;\n"
      "sub.u32 %r4, %r4, %r6; add.u32 %r0, %r1, %r2; mad.lo.u32 %r0, %r0, 16, %r3; add.u32 %r0, %r0, %r4;",
      64, 1, ".shared .u32 s[64];\n");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], 2 * i * 16 + 7);
}

// PTX ISA, "Arrays as Operands": elements count, not bytes. A move gives the address, a load what is there.
TEST(Memory, ElementsOfArraysAreOperands) {
  const auto result = RunBody(
      ".shared .align 16 .b8 bytes[64]; .local .v2 .u32 pairs[4]; .reg .b64 %e;\n"
      "mov.u64 %d1, bytes[0]; mov.u64 %d2, bytes; sub.u64 %d2, %d2, %d1; cvt.u32.u64 %r0, %d2;\n"
      "mov.u64 %d1, pairs[3]; mov.u64 %d2, pairs; sub.u64 %d1, %d1, %d2; cvt.u32.u64 %r1, %d1; add.u32 %r0, %r0, %r1;\n"
      "mov.u64 %d1, table[1]; ld.global.u32 %r2, [%d1+4]; add.u32 %r0, %r0, %r2; ld.global.u32 %r2, table[3-1]; "
      "add.u32 %r0, %r0, %r2;\n"
      "st.shared.u32 s[1], 500; ld.shared.u32 %r3, [s+4]; add.u32 %r0, %r0, %r3; st.local.u32 pairs[1]+4, 7000; "
      "ld.local.u32 %r3, "
      "[pairs+12]; add.u32 %r0, %r0, %r3;",
      1, 1, ".shared .u32 s[2]; .global .u32 table[3] = {10, 20, 30};\n");
  EXPECT_EQ(result[0], 0u + 24u + 30u + 30u + 500u + 7000u);
}

TEST(Memory, NarrowLoadsExtend) {
  const auto result = RunBody(
      "st.shared.u32 [s], 0x8081ff80; ld.shared.s8 %r1, [s]; ld.shared.u8 %r2, [s+1]; ld.shared.s16 %r3, [s+2];\n"
      "ld.shared.u16 %h1, [s]; cvt.u32.u16 %r4, %h1; xor.b32 %r0, %r1, %r2; xor.b32 %r0, %r0, %r3; xor.b32 %r0, %r0, "
      "%r4;",
      1, 1, ".shared .u32 s;\n");
  EXPECT_EQ(result[0], 0xffffff80u ^ 0xffu ^ 0xffff8081u ^ 0xff80u);
}

// Programs put a flag beside the value that it guards, and read both at once from another block.
TEST(Memory, VectorsAreNotTorn) {
  for (const std::string type : {"v2.u32", "v2.u64", "v4.u32"}) {
    const bool wide = type == "v2.u64";
    const std::string four = type == "v4.u32" ? ", %a, %a" : "";
    const std::string other = type == "v4.u32" ? ", %b, %b" : "";
    const std::string bits = wide ? "64" : "32";
    Device device(2);
    ASSERT_EQ(device.Load({kHead + ".visible .entry k(.param .u64 out) {\n.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b" +
                           bits + " %a, %b; .reg .b64 %d<4>;\n" + R"(
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d1, %r1, 16;
  add.u64 %d2, %d0, %d1;
  setp.eq.u32 %p0, %r0, 0;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
LOOP:
  @%p0 bra WRITE;
  ld.relaxed.gpu.global.)" +
                           type + " {%a, %b" + other + "}, [%d2];\n setp.ne.u" + bits + R"( %p1, %a, %b;
  @%p1 add.u32 %r3, %r3, 1;
  bra NEXT;
WRITE:
  cvt.u)" + bits + ".u32 %a, %r2;\n st.relaxed.gpu.global." +
                           type + " [%d2], {%a, %a" + four + R"(};
NEXT:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 200000;
  @%p2 bra LOOP;
  red.global.add.u32 [%d0+512], %r3;
  ret;
})"}),
              "");
    const uint64_t out = device.Allocate(516);
    std::memset(reinterpret_cast<void*>(out), 0, 516);
    ASSERT_TRUE(device.Run("k", {2, 1, 1}, {32, 1, 1}, Arguments().Add(out)).ok());
    EXPECT_EQ(device.Download<uint32_t>(out + 512, 1)[0], 0u) << type;
  }
}

// Compilers put what they know of an index into the offset, and what is left may be less than nothing.
TEST(Memory, AddressesMayLieBeforeTheirRegister) {
  const std::string body = R"(
.shared .align 16 .b8 place[256];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, place;
  shl.b32 %r3, %r1, 2;
  add.u32 %r4, %r2, %r3;
  sub.u32 %r5, %r4, 512;
  add.u32 %r6, %r1, 100;
  st.shared.u32 [%r5+512], %r6;
  ld.shared.u32 %r7, [%r5+512];
  atom.shared.add.u32 %r8, [%r5+512], 1;
  ld.shared.u32 %r9, [%r4];
  add.u32 %r0, %r7, %r8;
  add.u32 %r0, %r0, %r9;
)";
  const std::vector<uint32_t> result = RunBody(body, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], 3 * (100 + i) + 1) << i;
}

TEST(Memory, CopiesFromBeforeTheRegister) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + R"(.visible .entry k(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  .shared .align 16 .b8 place[16];
  ld.param.u64 %d0, [out];
  add.u64 %d1, %d0, 64;
  mov.u32 %r0, place;
  cp.async.ca.shared.global [%r0], [%d1+-48], 16;
  cp.async.wait_all;
  ld.shared.u32 %r1, [%r0+4];
  st.global.u32 [%d0], %r1;
  ret;
})"}),
            "");
  const uint64_t out = device.Allocate(128);
  auto* words = reinterpret_cast<uint32_t*>(out);
  for (uint32_t i = 0; i < 32; ++i) words[i] = i;
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(words[0], 5u);
}

TEST(Memory, FaultsSayWhere) {
  Fault fault = FaultOf("setp.eq.u32 %p0, %r7, 37; mov.u64 %d1, 64; @%p0 ld.global.u32 %r0, [%d1];");
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(fault.thread[0], 37u);
  EXPECT_EQ(fault.address, 64u);
  EXPECT_FALSE(fault.write);
  EXPECT_THAT(fault.instruction, HasSubstr("ld.global.u32 %r0, [%d1]"));
  EXPECT_TRUE(fault.nearest.has_value());
  EXPECT_EQ(FaultOf("st.shared.u32 [64], 1;").kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(FaultOf("st.global.u64 [%d0+4], %d0;", 1).kind, Fault::Kind::kMisaligned);
  EXPECT_EQ(FaultOf("mov.u64 %d1, 12345; call %d1, P;\nP: .callprototype _ ();").kind, Fault::Kind::kInvalidPc);
}

TEST(Memory, AtomicOperationsOnLocalMemoryNeedANewDevice) {
  const std::string body =
      ".local .u32 l; mov.u64 %d1, l; cvta.local.u64 %d1, %d1; st.u32 [%d1], %r7; atom.add.u32 %r1, [%d1], 5; "
      "ld.local.u32 %r0, [l]; mad.lo.u32 %r0, %r1, 1000, %r0;";
  const auto result = RunBody(body, 40);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(result[i], i * 1000 + i + 5);
  Device old(0);
  old.config.device.local_atomics = false;
  ASSERT_EQ(old.Load({Kernel(body)}), "");
  const uint64_t out = old.Allocate(256);
  EXPECT_EQ(old.Run("k", {1, 1, 1}, {4, 1, 1}, Arguments().Add(out)).fault.kind, Fault::Kind::kInvalidAddressSpace);
}

TEST(Memory, ReadOnlyAllocationsRefuseStores) {
  Device device(0);
  ASSERT_EQ(device.Load({Kernel("mov.b32 %r0, 1;")}), "");
  alignas(256) static std::array<uint32_t, 64> constant{};
  const auto address = reinterpret_cast<uint64_t>(constant.data());
  ASSERT_TRUE(device.memory().Insert({address, address + 256, false}));
  EXPECT_EQ(device.Run("k", {1, 1, 1}, {64, 1, 1}, Arguments().Add(address)).fault.kind, Fault::Kind::kIllegalAddress);
}

TEST(Calls, EndlessRecursionOverflowsTheStack) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + ".func f() { call f; ret; }\n.visible .entry k() { call f; ret; }"}), "");
  EXPECT_EQ(device.Run("k", {1, 1, 1}, {32, 1, 1}, Arguments()).fault.kind, Fault::Kind::kStackOverflow);
}

TEST(Calls, RegistersArePassed) {
  const auto result = RunBody("call (%r0), f, (%r7, 3);", 32, 1,
                              ".func (.reg .b32 r) f(.reg .b32 a, .reg .b32 b) { mad.lo.u32 r, a, b, 1; ret; }\n");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], 3 * i + 1);
}

TEST(Calls, AllocaIsPerThread) {
  const auto result = RunBody(
      "stacksave.u64 %d1; mad.wide.u32 %d2, %r7, 8, 8; alloca.u64 %d3, %d2; st.local.u32 [%d3], %r7; bar.warp.sync "
      "-1;\n"
      "ld.local.u32 %r0, [%d3]; stackrestore.u64 %d1;");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], i);
}

TEST(Scheduling, CancelEndsAnEndlessKernel) {
  Device device(2);
  ASSERT_EQ(device.Load({Kernel("L: bra L;")}), "");
  const uint64_t out = device.Allocate(4 * 64);
  std::atomic<bool> cancel{false};
  device.config.cancel = &cancel;
  std::thread other([&] { cancel = true; });
  const Outcome outcome = device.Run("k", {8, 1, 1}, {8, 1, 1}, Arguments().Add(out));
  other.join();
  EXPECT_EQ(outcome.fault.kind, Fault::Kind::kCancelled);
}

TEST(Scheduling, ALaterBlockCanReleaseAnEarlierOne) {
  // Block 0 spins until block 7 has written, also with one thread.
  Device device(0);
  ASSERT_EQ(
      device.Load(
          {kHead +
           ".visible .entry k(.param .u64 out) { .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d, "
           "[out];\n"
           "mov.u32 %r0, %ctaid.x; setp.ne.u32 %p, %r0, 0; @%p bra W;\nL: ld.volatile.global.u32 %r1, [%d];\n"
           "setp.eq.u32 %p, %r1, 0; @%p bra L;\nst.global.u32 [%d+4], %r1; ret;\nW: setp.ne.u32 %p, %r0, 7; @%p exit;\n"
           "st.volatile.global.u32 [%d], 9; ret; }"}),
      "");
  const uint64_t out = device.Allocate(8);
  ASSERT_TRUE(device.Run("k", {8, 1, 1}, {32, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(device.Download<uint32_t>(out, 2)[1], 9u);
}

TEST(Scheduling, LaunchesRunBesideEachOther) {
  // The first launch waits for what the second writes.
  Device device(1);
  ASSERT_EQ(
      device.Load(
          {kHead +
           ".visible .entry wait(.param .u64 f) { .reg .pred %p; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [f];\n"
           "L: ld.acquire.gpu.global.u32 %r, [%d]; setp.eq.u32 %p, %r, 0; @%p bra L;\nret; }\n"
           ".visible .entry set(.param .u64 f) { .reg .b64 %d; ld.param.u64 %d, [f]; st.release.gpu.global.u32 [%d], "
           "1; ret; }"}),
      "");
  const uint64_t flag = device.Allocate(4);
  const Arguments arguments = Arguments().Add(flag);
  LaunchConfig wait = device.config;
  wait.kernel = device.program().FindKernel("wait");
  wait.grid = {64, 1, 1};
  wait.block = {64, 1, 1};
  wait.parameters = arguments.bytes();
  wait.memory = &device.memory();
  Outcome waited;
  std::thread first([&] { waited = device.engine().Run(device.program(), wait); });
  const Outcome set = device.Run("set", {1, 1, 1}, {1, 1, 1}, arguments);
  first.join();
  EXPECT_TRUE(set.ok());
  EXPECT_TRUE(waited.ok()) << waited.fault.Text();
}

TEST(Mbarrier, PhasesOfArrivals) {
  // All threads arrive, then wait for the phase; twice, by token and by parity.
  const auto result = RunBody(
      "mov.u32 %r1, bar; setp.ne.u32 %p0, %r7, 0; @!%p0 mbarrier.init.shared.b64 [%r1], 64; bar.sync 0;\n"
      "mad.lo.u32 %r2, %r7, 4, 0; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; add.u32 %r4, %r7, 5; st.shared.u32 [%r3], "
      "%r4;\n"
      "mbarrier.arrive.shared.b64 %d1, [%r1];\nW: mbarrier.test_wait.shared.b64 %p1, [%r1], %d1; @!%p1 bra W;\n"
      "xor.b32 %r2, %r2, 252; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; ld.shared.u32 %r0, [%r3];\n"
      "mbarrier.arrive.shared.b64 _, [%r1];\nV: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 1; @!%p1 bra "
      "V;\nadd.u32 %r0, %r0, 100;",
      64, 1, ".shared .b64 bar; .shared .u32 s[64];\n");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], (i ^ 63) + 105) << i;
}

TEST(Mbarrier, CopiesCompleteThem) {
  const auto result = RunBody(
      "st.global.u32 [%d0], %r7; membar.gl; bar.sync 0; mov.u32 %r1, bar; mov.u32 %r3, s; setp.ne.u32 %p0, %r7, 0; "
      "@%p0 bra W;\n"
      "mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1], 256;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d0], 256, [%r1];\n"
      "W: bar.sync 0;\nV: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra V;\n"
      "mad.lo.u32 %r3, %r7, 4, %r3; ld.shared.u32 %r0, [%r3]; add.u32 %r0, %r0, 1000;\n"
      "mov.b32 %r5, 0; cp.async.ca.shared.global [%r3], [%d0], 4, %r5; cp.async.commit_group; cp.async.wait_group 0;\n"
      "ld.shared.u32 %r5, [%r3]; add.u32 %r0, %r0, %r5;",
      64, 1, ".shared .b64 bar; .shared .align 16 .u32 s[64];\n");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], i + 1000) << i;
}

TEST(Matrix, FragmentsOfLdmatrixMultiply) {
  // A 16x16 and B 16x8, both row-major halves in shared memory; the result by the documented layout of the
  // accumulators.
  Device device(0);
  ASSERT_EQ(
      device.Load(
          {kHead +
           ".shared .align 16 .b8 sa[512]; .shared .align 16 .b8 sb[256];\n"
           ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {\n"
           ".reg .b32 %r<20>; .reg .b64 %d<6>; .reg .f32 %f<4>;\n"
           "ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; mov.u32 %r0, %tid.x;\n"
           "mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 8, %d1; mov.u32 %r1, sa; mov.u32 %r2, sb;\n"
           "mad.lo.u32 %r3, %r0, 16, %r1; ld.global.v2.u64 {%d3, %d4}, [%d0]; st.shared.v2.u64 [%r3], {%d3, %d4};\n"
           "mad.lo.u32 %r3, %r0, 8, %r2; ld.global.u64 %d3, [%d1]; st.shared.u64 [%r3], %d3; bar.sync 0;\n"
           // Lane l names row l % 16 of A, columns 8 * (l / 16); row l % 16 of B.
           "and.b32 %r4, %r0, 15; shr.u32 %r5, %r0, 4; mad.lo.u32 %r6, %r4, 32, %r1; mad.lo.u32 %r6, %r5, 16, %r6;\n"
           "mad.lo.u32 %r7, %r4, 16, %r2;\n"
           "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r6];\n"
           "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r12, %r13}, [%r7];\n"
           "mov.f32 %f0, 0f3f800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r8,%r9,%r10,%r11}, {%r12,%r13},\n"
           " {%f0,%f1,%f2,%f3};\n"
           // c0, c1 at row l / 4, columns 2 * (l % 4); c2, c3 eight rows below.
           "shr.u32 %r4, %r0, 2; and.b32 %r5, %r0, 3; mad.lo.u32 %r6, %r4, 32, 0; mad.lo.u32 %r6, %r5, 8, %r6;\n"
           "cvt.u64.u32 %d3, %r6; add.u64 %d2, %d2, %d3; st.global.v2.f32 [%d2], {%f0, %f1};\n"
           "st.global.v2.f32 [%d2+256], {%f2, %f3}; ret; }"}),
      "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  // Halves of small integers: n is 0x3c00 for 1, 0x4000 for 2, 0xbc00 for -1, 0 for 0.
  constexpr std::array<uint16_t, 4> kHalves{0x3c00, 0x4000, 0xbc00, 0x0000};
  constexpr std::array<int, 4> kValues{1, 2, -1, 0};
  std::vector<uint16_t> a(256);
  std::vector<uint16_t> b(128);
  const auto pick_a = [](size_t i) { return (i * 7 + i / 16) % 4; };
  const auto pick_b = [](size_t i) { return (i * 5 + i / 8) % 4; };
  for (size_t i = 0; i < a.size(); ++i) a[i] = kHalves[pick_a(i)];
  for (size_t i = 0; i < b.size(); ++i) b[i] = kHalves[pick_b(i)];
  const uint64_t c = device.Allocate(512);
  const Outcome outcome =
      device.Run("k", {1, 1, 1}, {32, 1, 1}, Arguments().Add(device.Upload(a)).Add(device.Upload(b)).Add(c));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  const auto result = device.Download<float>(c, 128);
  for (size_t y = 0; y < 16; ++y) {
    for (size_t x = 0; x < 8; ++x) {
      int sum = 1;
      for (size_t k = 0; k < 16; ++k) sum += kValues[pick_a(y * 16 + k)] * kValues[pick_b(k * 8 + x)];
      EXPECT_EQ(result[y * 8 + x], static_cast<float>(sum)) << y << ", " << x;
    }
  }
}

TEST(AllocationMap, FindsAndRefusesOverlap) {
  AllocationMap map;
  EXPECT_TRUE(map.Insert({100, 200}));
  EXPECT_TRUE(map.Insert({200, 300}));
  EXPECT_FALSE(map.Insert({150, 160}));
  EXPECT_FALSE(map.Insert({50, 101}));
  EXPECT_FALSE(map.Insert({60, 60}));
  EXPECT_EQ(map.Find(199)->begin, 100u);
  EXPECT_EQ(map.Find(200)->begin, 200u);
  EXPECT_FALSE(map.Find(300).has_value());
  EXPECT_EQ(map.Nearest(1000)->begin, 200u);
  EXPECT_EQ(map.Nearest(0)->begin, 100u);
  EXPECT_TRUE(map.Remove(100));
  EXPECT_FALSE(map.Remove(100));
  EXPECT_FALSE(map.Find(150).has_value());
  EXPECT_EQ(map.size(), 1u);
}

TEST(DeviceHeap, MergesWhatIsFreed) {
  DeviceHeap heap(0x1000, 256);
  const uint64_t a = heap.Allocate(100);
  const uint64_t b = heap.Allocate(1);
  EXPECT_EQ(a, 0x1000u);
  EXPECT_EQ(b, 0x1070u);
  EXPECT_EQ(heap.Allocate(200), 0u);
  EXPECT_EQ(heap.Allocate(0), 0u);
  EXPECT_TRUE(heap.Free(a));
  EXPECT_FALSE(heap.Free(a));
  EXPECT_FALSE(heap.Free(0x1010));
  EXPECT_TRUE(heap.Free(b));
  EXPECT_EQ(heap.Allocate(256), 0x1000u);
}

}  // namespace
}  // namespace hawser::exec
