// SPDX-License-Identifier: Apache-2.0
// What the scan of intermediate language says of kernels: who needs the launch's geometry, who may wait, and that what
// is not understood runs whole.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "server/backends/opencl/slicing/kernel_scan.h"
#include "tests/unit/opencl_slicing/il_text.h"

namespace hawser::server::slicing {
namespace {

using ::testing::HasSubstr;

ProgramTraits ScanText(const std::string& text) {
  const std::vector<uint32_t> words = Assemble(text);
  EXPECT_EQ(Problem(words), "") << text;
  return ProgramTraits::ScanIl(std::as_bytes(std::span(words)));
}

KernelTraits ScanKernel(const std::string& body, const std::string& more = "", const std::string& decorations = "") {
  return ScanText(IlKernel(body, more, decorations)).Of("k");
}

constexpr const char* kWaits = "it may wait for another work-group";

TEST(IlScan, KernelThatSeesOnlyItsIdsIsSplitAsItIs) {
  const KernelTraits kernel = ScanKernel(R"(
    %id = OpLoad %v3 %gid
    %x = OpCompositeExtract %ulong %id 0
    %at = OpInBoundsPtrAccessChain %global_ulong %out %x
    OpStore %at %x Aligned 8)");
  EXPECT_TRUE(kernel.may_split) << kernel.reason;
  EXPECT_FALSE(kernel.needs_carry);
  EXPECT_FALSE(kernel.sees_local_size);
}

TEST(IlScan, BuiltInsThatChangeNeedTheCarry) {
  for (const char* name : {"wgid", "nwg", "gsize", "goff"}) {
    const KernelTraits kernel = ScanKernel("%v = OpLoad %v3 %" + std::string(name));
    EXPECT_TRUE(kernel.may_split) << name << ": " << kernel.reason;
    EXPECT_TRUE(kernel.needs_carry) << name;
  }
  EXPECT_TRUE(ScanKernel("%v = OpLoad %ulong %glin").needs_carry);
  EXPECT_FALSE(ScanKernel("%v = OpLoad %v3 %lid").needs_carry);
  EXPECT_FALSE(ScanKernel("%v = OpLoad %uint %dim").needs_carry);
}

TEST(IlScan, GroupingIsSeen) {
  for (const char* name : {"wgid", "nwg", "lid", "wsize"}) {
    EXPECT_TRUE(ScanKernel("%v = OpLoad %v3 %" + std::string(name)).sees_local_size) << name;
  }
  EXPECT_FALSE(ScanKernel("%v = OpLoad %v3 %gsize").sees_local_size);
  EXPECT_TRUE(ScanKernel("OpControlBarrier %u2 %u2 %u272").sees_local_size);
  EXPECT_TRUE(ScanKernel("", "%local_uint = OpTypePointer Workgroup %uint").sees_local_size);
}

TEST(IlScan, ComponentsMayBeTakenOutOfTheVariable) {
  const ProgramTraits program = ScanText(IlKernel(R"(
    %at = OpInBoundsAccessChain %in_ulong %wgid %u1
    %v = OpLoad %ulong %at)"));
  EXPECT_TRUE(program.may_carry()) << program.carry_problem();
  EXPECT_TRUE(program.wants_carry());
  EXPECT_TRUE(program.Of("k").may_split) << program.Of("k").reason;
}

TEST(IlScan, AddressOfABuiltInThatGoesElsewhereForbidsTheCarry) {
  const ProgramTraits program = ScanText(IlKernel(R"(
    %copy = OpCopyObject %in_v3 %wgid
    %v = OpLoad %v3 %copy)"));
  EXPECT_FALSE(program.may_carry());
  EXPECT_FALSE(program.Of("k").may_split);
  EXPECT_THAT(program.Of("k").reason, HasSubstr("geometry"));
}

TEST(IlScan, WhatAFunctionDoesItsCallersDo) {
  const KernelTraits kernel = ScanKernel("%v = OpFunctionCall %ulong %outer", R"(
    %get = OpTypeFunction %ulong
    %outer = OpFunction %ulong None %get
    %ol = OpLabel
    %inner_value = OpFunctionCall %ulong %inner
    OpReturnValue %inner_value
    OpFunctionEnd
    %inner = OpFunction %ulong None %get
    %il = OpLabel
    %lin = OpLoad %ulong %glin
    OpReturnValue %lin
    OpFunctionEnd)");
  EXPECT_TRUE(kernel.needs_carry);
  EXPECT_TRUE(kernel.may_split) << kernel.reason;
}

TEST(IlScan, FunctionFromElsewhereRunsWhole) {
  const std::string decorations = "OpDecorate %strange LinkageAttributes \"strange\" Import";
  const std::string more = R"(
    %get = OpTypeFunction %ulong
    %strange = OpFunction %ulong None %get
    OpFunctionEnd)";
  EXPECT_EQ(ScanKernel("%v = OpFunctionCall %ulong %strange", more, decorations).reason,
            "it calls a function from elsewhere");
  EXPECT_TRUE(ScanKernel("", more, decorations).may_split);
}

// A loop over `look`, which gives %seen; it goes round as long as %again, which `condition` computes.
std::string Loop(const std::string& look, const std::string& condition) {
  return "OpBranch %loop\n%loop = OpLabel\n%i = OpPhi %uint %u0 %begin %next %loop\n%next = OpIAdd %uint %i %u1\n" +
         look + "\n" + condition + "\nOpBranchConditional %again %loop %end\n%end = OpLabel\n";
}
constexpr const char* kUntilSeen = "%again = OpIEqual %bool %seen %u0";
constexpr const char* kCounted = "%again = OpULessThan %bool %next %n";

TEST(IlScan, LoopUntilSomethingIsSeenWaits) {
  for (const char* look : {
           "%seen = OpAtomicLoad %uint %flag %u1 %u528",
           "%seen = OpAtomicExchange %uint %flag %u1 %u528 %u1",
           "%seen = OpAtomicIAdd %uint %flag %u1 %u528 %u1",
           "%seen = OpAtomicCompareExchange %uint %flag %u1 %u528 %u528 %u1 %u0",
           "%seen = OpLoad %uint %flag Volatile",
           "OpMemoryBarrier %u1 %u528\n%seen = OpLoad %uint %flag",
           "OpControlBarrier %u2 %u2 %u528\n%seen = OpLoad %uint %flag",
       }) {
    EXPECT_EQ(ScanKernel(Loop(look, kUntilSeen)).reason, kWaits) << look;
    EXPECT_EQ(ScanKernel(Loop(look, kCounted)).reason, "") << look;
  }
}

TEST(IlScan, ValueThatGoesThroughAVariableIsStillFromMemory) {
  const std::string look = R"(
    %fresh = OpAtomicLoad %uint %flag %u1 %u528
    OpStore %kept %fresh
    %seen = OpLoad %uint %kept)";
  const std::string variable = "%kept = OpVariable %private_uint Function\n";
  EXPECT_EQ(ScanKernel(variable + Loop(look, kUntilSeen)).reason, kWaits);
  // A counter in a variable depends on no memory, as long as nothing else can write there.
  const std::string counter = R"(
    %fresh = OpAtomicIAdd %uint %flag %u1 %u528 %u1
    %sum = OpIAdd %uint %fresh %u1
    OpStore %kept %next
    %seen = OpLoad %uint %kept)";
  EXPECT_EQ(ScanKernel(variable + Loop(counter, kUntilSeen)).reason, "");
  const std::string escapes = "%slot = OpVariable %private_generic Function\nOpStore %slot %kept\n";
  EXPECT_EQ(ScanKernel(variable + escapes + Loop(counter, kUntilSeen),
                       "%private_generic = OpTypePointer Function %private_uint")
                .reason,
            kWaits);
}

TEST(IlScan, PlainMemoryIsNoLook) {
  EXPECT_EQ(ScanKernel(Loop("%seen = OpLoad %uint %flag", kUntilSeen)).reason, "");
  EXPECT_EQ(ScanKernel(Loop("OpControlBarrier %u2 %u2 %u272\n%seen = OpLoad %uint %flag", kUntilSeen)).reason, "");
}

TEST(IlScan, AtomicWhoseResultNobodyUsesIsNoLook) {
  EXPECT_EQ(ScanKernel(Loop("%unused = OpAtomicIAdd %uint %flag %u1 %u528 %u1\n%seen = OpLoad %uint %flag", kUntilSeen))
                .reason,
            "");
}

constexpr const char* kUpdate = R"(
    %sum = OpIAdd %uint %old %n
    %got = OpAtomicCompareExchange %uint %flag %u1 %u528 %u528 %sum %old)";

TEST(IlScan, UpdateByCompareAndExchangeGetsOn) {
  const std::string again = "%again = OpINotEqual %bool %got %old";
  for (const char* look : {"%old = OpLoad %uint %flag", "%old = OpLoad %uint %flag Volatile",
                           "%cast = OpBitcast %global_uint %flag\n%old = OpAtomicLoad %uint %cast %u1 %u528"}) {
    EXPECT_EQ(ScanKernel(Loop(std::string(look) + kUpdate, again)).reason, "") << look;
  }
  // Something else is looked at as well.
  EXPECT_EQ(ScanKernel(Loop("%other = OpInBoundsPtrAccessChain %global_uint %flag %u1\n"
                            "%old = OpLoad %uint %other Volatile" +
                                std::string(kUpdate),
                            again))
                .reason,
            kWaits);
  // A lock: what is put there does not come from what was there.
  EXPECT_EQ(ScanKernel(Loop("%old = OpLoad %uint %flag Volatile\n"
                            "%got = OpAtomicCompareExchange %uint %flag %u1 %u528 %u528 %n %old",
                            again))
                .reason,
            kWaits);
}

TEST(IlScan, CompareAndExchangeThatChangesNothingIsALoad) {
  EXPECT_EQ(ScanKernel(Loop("%old = OpLoad %uint %flag\n"
                            "%got = OpAtomicCompareExchange %uint %flag %u1 %u528 %u528 %old %old",
                            "%again = OpINotEqual %bool %got %n"))
                .reason,
            kWaits);
}

TEST(IlScan, WayRoundThatLeavesTheExchangeOutMayWait) {
  const KernelTraits kernel = ScanKernel(R"(
    OpBranch %loop
    %loop = OpLabel
    %old = OpLoad %uint %flag Volatile
    %ready = OpINotEqual %bool %old %u0
    OpBranchConditional %ready %change %loop
    %change = OpLabel)" + std::string(kUpdate) +
                                         R"(
    %again = OpINotEqual %bool %got %old
    OpBranchConditional %again %loop %end
    %end = OpLabel)");
  EXPECT_EQ(kernel.reason, kWaits);
}

TEST(IlScan, InnerLoopThatWaitsIsFoundInACountedOne) {
  const KernelTraits kernel = ScanKernel(R"(
    OpBranch %outer
    %outer = OpLabel
    %i = OpPhi %uint %u0 %begin %next %after
    OpBranch %loop
    %loop = OpLabel
    %seen = OpAtomicLoad %uint %flag %u1 %u528
    %again = OpIEqual %bool %seen %u0
    OpBranchConditional %again %loop %after
    %after = OpLabel
    %next = OpIAdd %uint %i %u1
    %more = OpULessThan %bool %next %n
    OpBranchConditional %more %outer %end
    %end = OpLabel)");
  EXPECT_EQ(kernel.reason, kWaits);
}

TEST(IlScan, LoopAroundACallOfAFunctionThatLooksWaits) {
  const std::string more = R"(
    %look_type = OpTypeFunction %uint %global_uint
    %look = OpFunction %uint None %look_type
    %p = OpFunctionParameter %global_uint
    %ll = OpLabel
    %value = OpAtomicLoad %uint %p %u1 %u528
    OpReturnValue %value
    OpFunctionEnd)";
  const std::string call = "%seen = OpFunctionCall %uint %look %flag";
  EXPECT_EQ(ScanKernel(Loop(call, kUntilSeen), more).reason, kWaits);
  EXPECT_EQ(ScanKernel(Loop(call, kCounted), more).reason, "");
}

TEST(IlScan, WhatIsNoIntermediateLanguageRunsWhole) {
  std::vector<uint32_t> words = Assemble(IlKernel("%v = OpLoad %v3 %wgid"));
  const auto reason = [](std::span<const std::byte> bytes) {
    const ProgramTraits program = ProgramTraits::ScanIl(bytes);
    EXPECT_FALSE(program.may_carry());
    EXPECT_FALSE(program.Of("k").may_split);
    return program.Of("k").reason;
  };
  EXPECT_THAT(reason({}), HasSubstr("words"));
  const auto bytes = std::as_bytes(std::span(words));
  EXPECT_THAT(reason(bytes.first(bytes.size() - 1)), HasSubstr("words"));
  EXPECT_THAT(reason(bytes.first(bytes.size() - 4)), HasSubstr("whole"));  // No OpFunctionEnd.
  std::vector<uint32_t> wide = words;
  wide[3] = 0x7fffffff;
  EXPECT_NE(reason(std::as_bytes(std::span(wide))), "");
  std::vector<uint32_t> narrow = words;
  narrow[3] = 5;
  EXPECT_NE(reason(std::as_bytes(std::span(narrow))), "");
  words[0] = 1;
  EXPECT_NE(reason(std::as_bytes(std::span(words))), "");
}

TEST(IlScan, ByteOrderDoesNotMatter) {
  std::vector<uint32_t> words = Assemble(IlKernel("%v = OpLoad %v3 %wgid"));
  for (uint32_t& word : words) word = __builtin_bswap32(word);
  const ProgramTraits program = ProgramTraits::ScanIl(std::as_bytes(std::span(words)));
  EXPECT_TRUE(program.Of("k").may_split) << program.Of("k").reason;
  EXPECT_TRUE(program.Of("k").needs_carry);
}

}  // namespace
}  // namespace hawser::server::slicing
