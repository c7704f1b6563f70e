// SPDX-License-Identifier: Apache-2.0
// Special registers: where a thread is in its warp, its block and on the device, and clocks, which never go back.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

/// What `body` leaves in %r0 .. %r7 of each thread; a block of 10 by 7.
std::vector<std::array<uint32_t, 8>> Execute(const std::string& body, uint32_t blocks = 1,
                                             uint32_t multiprocessors = 0) {
  exec::Device device(2);
  const std::string text =
      ".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p; .reg .b32 %r<12>, %i, %n; .reg .b64 %d<8>, %out; ld.param.u64 %out, [out];\n"
      "mov.u32 %i, %ctaid.x; mov.u32 %n, %tid.y; mad.lo.u32 %i, %i, 7, %n; mov.u32 %n, %tid.x; mad.lo.u32 %i, %i, 10, "
      "%n;\n"
      "mad.wide.u32 %out, %i, 32, %out; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;\n" +
      body +
      "\nst.global.v4.u32 [%out], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%out+16], {%r4, %r5, %r6, %r7}; ret; }\n";
  EXPECT_EQ(device.Load({text}), "");
  EXPECT_TRUE(device.program().unsupported().empty());
  if (multiprocessors != 0) device.config.device.multiprocessors = multiprocessors;
  const uint64_t out = device.Allocate(uint64_t{70} * 32 * blocks);
  const exec::Outcome outcome = device.Run("k", {blocks, 1, 1}, {10, 7, 1}, exec::Arguments().Add(out));
  EXPECT_TRUE(outcome.ok()) << outcome.fault.Text();
  return device.Download<std::array<uint32_t, 8>>(out, size_t{70} * blocks);
}

TEST(SpecialRegisters, LanesAndTheirMasks) {
  const auto got = Execute(
      "mov.u32 %r0, %laneid; mov.u32 %r1, %lanemask_eq; mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_le;\n"
      "mov.u32 %r4, %lanemask_gt; mov.u32 %r5, %lanemask_ge; mov.u32 %r6, WARP_SZ;");
  for (uint32_t thread = 0; thread < got.size(); ++thread) {
    const uint32_t lane = thread % 32;
    uint32_t below = 0;
    uint32_t above = 0;
    for (uint32_t other = 0; other < 32; ++other) (other < lane ? below : above) |= other == lane ? 0 : 1u << other;
    EXPECT_EQ(got[thread][0], lane);
    EXPECT_EQ(got[thread][1], 1u << lane);
    EXPECT_EQ(got[thread][2], below);
    EXPECT_EQ(got[thread][3], below | 1u << lane);
    EXPECT_EQ(got[thread][4], above);
    EXPECT_EQ(got[thread][5], above | 1u << lane);
    EXPECT_EQ(got[thread][6], 32u);
  }
}

TEST(SpecialRegisters, OnlyWrittenWhereTheyAreRead) {
  const auto got = Execute(
      "mov.b32 %r0, 77; mov.b32 %r1, 78; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;\n"
      "and.b32 %r8, %i, 1; setp.eq.u32 %p, %r8, 0; @%p mov.u32 %r0, %laneid; @%p mov.u32 %r1, %nsmid;");
  for (uint32_t thread = 0; thread < got.size(); ++thread) {
    EXPECT_EQ(got[thread][0], thread % 2 == 0 ? thread % 32 : 77);
    EXPECT_EQ(got[thread][1] == 78, thread % 2 != 0);
  }
}

TEST(SpecialRegisters, WarpsAndMultiprocessors) {
  constexpr uint32_t kBlocks = 6;
  const auto got = Execute(
      "mov.u32 %r0, %warpid; mov.u32 %r1, %nwarpid; mov.u32 %r2, %smid; mov.u32 %r3, %nsmid; mov.u32 %r4, %ctaid.x;",
      kBlocks, 4);
  for (uint32_t thread = 0; thread < got.size(); ++thread) {
    EXPECT_EQ(got[thread][0], thread % 70 / 32);
    EXPECT_GE(got[thread][1], 3u);
    EXPECT_LT(got[thread][2], got[thread][3]);
    EXPECT_EQ(got[thread][3], 4u);
    EXPECT_EQ(got[thread][2], got[thread / 70 * 70][2]) << "a block is on one multiprocessor";
  }
}

/// Counts in `counter` that the low word `part` does not lie between %d0 and %d1, which were read before and after it;
/// true however long that took.
std::string CountLow(const std::string& part, const std::string& counter) {
  return "cvt.u32.u64 %r10, %d0; sub.u32 %r10, " + part + ", %r10; cvt.u64.u32 %d4, %r10; sub.u64 %d5, %d1, %d0;\n" +
         "setp.gt.u64 %p, %d4, %d5; @%p add.u32 " + counter + ", " + counter + ", 1;\n";
}

/// The same for the high word.
std::string CountHigh(const std::string& part, const std::string& counter) {
  return "cvt.u64.u32 %d4, " + part + "; shr.u64 %d5, %d0, 32; setp.lt.u64 %p, %d4, %d5; @%p add.u32 " + counter +
         ", " + counter + ", 1;\nshr.u64 %d5, %d1, 32; setp.gt.u64 %p, %d4, %d5; @%p add.u32 " + counter + ", " +
         counter + ", 1;\n";
}

void ExpectClock(const std::string& whole, const std::string& low, const std::string& high) {
  const auto got = Execute(
      "mov.b32 %n, 0; mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;\n"
      "mov.u64 %d2, " +
      whole + ";\nAGAIN: mov.u64 %d0, " + whole + "; mov.u32 %r8, " + low + "; mov.u32 %r9, " + high +
      "; mov.u64 %d1, " + whole + ";\n" +
      // %r0: the whole went back; %r1, %r2: a part is not of its time.
      "setp.lt.u64 %p, %d0, %d2; @%p add.u32 %r0, %r0, 1; setp.lt.u64 %p, %d1, %d0; @%p add.u32 %r0, %r0, 1;\n" +
      CountLow("%r8", "%r1") + CountHigh("%r9", "%r2") +
      "mov.u64 %d2, %d1; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 200; @%p bra AGAIN;\n"
      "setp.ne.u64 %p, %d2, 0; selp.u32 %r3, 1, 0, %p;");
  for (const auto& thread : got) {
    EXPECT_EQ(thread[0], 0u) << whole << " went back";
    EXPECT_EQ(thread[1], 0u) << low;
    EXPECT_EQ(thread[2], 0u) << high;
    EXPECT_EQ(thread[3], 1u) << whole;
  }
}

TEST(SpecialRegisters, ClocksNeverGoBack) {
  ExpectClock("%clock64", "%clock", "%clock_hi");
  ExpectClock("%globaltimer", "%globaltimer_lo", "%globaltimer_hi");
}

}  // namespace
}  // namespace hawser::conformance
