// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "softcuda/ptx/flow.h"
#include "softcuda/ptx/liveness.h"
#include "softcuda/ptx/module.h"
#include "softcuda/ptx/number.h"

namespace hawser::ptx {
namespace {

using testing::HasSubstr;

constexpr const char* kHead = ".version 8.4\n.target sm_80\n.address_size 64\n";

std::shared_ptr<const Module> Good(const std::string& text) {
  auto module = Parse(kHead + text);
  EXPECT_TRUE(module.ok()) << module.status().text();
  return module.ok() ? *module : std::make_shared<const Module>();
}

std::string Bad(const std::string& text) {
  auto module = Parse(kHead + text);
  EXPECT_FALSE(module.ok());
  return module.ok() ? "" : module.status().text();
}

TEST(Number, AllForms) {
  EXPECT_EQ(ParseNumber("42")->bits, 42u);
  EXPECT_EQ(ParseNumber("0x2A")->bits, 42u);
  EXPECT_EQ(ParseNumber("0b101010")->bits, 42u);
  EXPECT_EQ(ParseNumber("052")->bits, 42u);
  EXPECT_TRUE(ParseNumber("42U")->is_unsigned);
  EXPECT_EQ(ParseNumber("18446744073709551615")->bits, UINT64_MAX);
  EXPECT_EQ(ParseNumber("0f3f800000")->kind, Number::Kind::kFloat32);
  EXPECT_EQ(ParseNumber("0d3ff0000000000000")->bits, 0x3ff0000000000000u);
  EXPECT_EQ(ParseNumber("1.5e3")->bits, Float64Bits(*ParseNumber("1500")));
  EXPECT_EQ(Float32Bits(*ParseNumber("0.1")), 0x3dcccccdu);
  for (const char* bad : {"", "0f3f8", "0d1", "18446744073709551616", "12ab", "0x", "1.2.3", "08", "U", "1e999"}) {
    EXPECT_FALSE(ParseNumber(bad).has_value()) << bad;
  }
}

TEST(Parser, ModuleFacts) {
  auto module = Parse(".version 8.4\n.target sm_90a, debug\n.address_size 64\n");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->version_major, 8u);
  EXPECT_EQ((*module)->version_minor, 4u);
  EXPECT_EQ((*module)->target, 90u);
  EXPECT_EQ((*module)->target_suffix, 'a');
}

TEST(Parser, Variables) {
  const auto module = Good(
      ".visible .global .align 8 .u64 p[2] = {generic(x)+4, f};\n"
      ".global .attribute(.managed) .u32 x = 7;\n"
      ".const .align 4 .b8 bytes[8] = {1, 2, 0xff, -1};\n"
      ".global .f32 floats[2][3] = {{1.0, 2.0, 3.0}, {0f40800000, 5.0}};\n"
      ".global .u8 mask[2] = {0xff(x), 0xff00(x)};\n"
      ".extern .shared .align 16 .b8 dynamic[];\n"
      ".global .v4 .f32 vector;\n"
      ".func f() { ret; }\n");
  ASSERT_EQ(module->variables.size(), 7u);
  EXPECT_EQ(module->variables[0].size, 16u);
  ASSERT_EQ(module->variables[0].addresses.size(), 2u);
  EXPECT_TRUE(module->variables[0].addresses[0].generic);
  EXPECT_EQ(module->variables[0].addresses[0].addend, 4);
  EXPECT_EQ(module->variables[0].addresses[1].offset, 8u);
  EXPECT_TRUE(module->variables[1].managed);
  EXPECT_THAT(module->variables[2].initial, testing::ElementsAre(1, 2, 0xff, 0xff));
  EXPECT_EQ(module->variables[3].size, 24u);
  EXPECT_EQ(module->variables[3].initial.size(), 20u);
  EXPECT_EQ(module->variables[4].addresses[1].shift, 8);
  EXPECT_TRUE(module->variables[5].unsized);
  EXPECT_EQ(module->variables[6].size, 16u);
  EXPECT_EQ(module->variables[6].alignment, 16u);
}

TEST(Parser, ScopesOfRegistersAndLabels) {
  const auto module = Good(
      ".entry k() {\n .reg .b32 %r<3>;\n"
      "L: { .reg .b64 %r1; L: mov.b64 %r1, 1; bra L; }\n"
      "mov.b32 %r1, 2; bra L; }\n");
  const Function& f = module->functions[0];
  ASSERT_EQ(f.instructions.size(), 4u);
  EXPECT_EQ(f.registers[f.operands[f.instructions[0].first_operand].index].type, Type::kB64);
  EXPECT_EQ(f.registers[f.operands[f.instructions[2].first_operand].index].type, Type::kB32);
  EXPECT_EQ(f.operands[f.instructions[1].first_operand].index, 0u);
  EXPECT_EQ(f.operands[f.instructions[3].first_operand].index, 0u);
}

TEST(Parser, OperandForms) {
  const auto module = Good(
      ".entry k(.param .u64 a) {\n .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<2>;\n"
      "ld.global.v2.u32 {%r0, _}, [%d1+-16];\n"
      "setp.lt.and.s32 %p0|%p1, %r0, -5, !%p2;\n"
      "@!%p0 st.local.u32 [%d0 + 8], %r1;\n"
      "ld.param.u64 %d0, [a+0];\n"
      "tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%d0, {%r0, %r1}];\n"
      "mov.u32 %r0, (1 << 4) | 3; }\n");
  const Function& f = module->functions[0];
  const Instruction& load = f.instructions[0];
  const Operand& address = f.operands[load.first_operand + 1];
  EXPECT_EQ(address.kind, OperandKind::kAddress);
  EXPECT_EQ(static_cast<int64_t>(address.value), -16);
  EXPECT_NE(f.operands[f.instructions[1].first_operand].second, kNone);
  EXPECT_TRUE(f.operands[f.instructions[1].first_operand + 3].negated);
  EXPECT_TRUE(f.instructions[2].predicated);
  EXPECT_TRUE(f.instructions[2].predicate_negated);
  EXPECT_EQ(f.operands[f.instructions[4].first_operand + 1].kind, OperandKind::kTexture);
  EXPECT_EQ(f.operands[f.instructions[5].first_operand + 1].value, 19u);
  EXPECT_EQ(f.instructions[1].line, 7u);
}

TEST(Parser, IndicesOfWhatHasNone) {
  EXPECT_THAT(Bad(".global .u32 x; .entry k() { .reg .b64 %d; mov.u64 %d, x[0]; }"),
              HasSubstr("'x', which is no array"));
  EXPECT_THAT(Bad(".global .u32 x[2][2]; .entry k() { .reg .b64 %d; mov.u64 %d, x[0]; }"), HasSubstr("one dimension"));
  EXPECT_THAT(Bad(".entry k() { .reg .b64 %d; mov.u64 %d, %d[0]; }"), HasSubstr("'%d', which is no array"));
  EXPECT_THAT(Bad(".entry k() { .reg .b64 %d; mov.u64 %d, unknown[0]; }"), HasSubstr("'unknown', which is no array"));
  EXPECT_THAT(Bad(".global .u32 x[2]; .entry k() { .reg .b64 %d; mov.u64 %d, x[-1]; }"),
              HasSubstr("an index out of range"));
  EXPECT_THAT(Bad(".global .u32 x[2]; .entry k() { .reg .b64 %d; mov.u64 %d, x[1.5]; }"),
              HasSubstr("an index out of range"));
}

TEST(Parser, ErrorsNameLineAndToken) {
  EXPECT_THAT(Bad(".entry k() {\n .reg .b32 %r1;\n mov.b32 %r2, 1;\n}"), HasSubstr("line 6: unknown register '%r2'"));
  EXPECT_THAT(Bad(".entry k() {\n mov.b32 \n"), HasSubstr("end of text"));
  EXPECT_THAT(Bad(".glob .u32 x;"), HasSubstr("unknown directive near '.glob'"));
  EXPECT_THAT(Bad(".global .u32 x[2] = {1,2,3};"), HasSubstr("more initial values"));
  EXPECT_THAT(Bad(".global .u32 x; .global .u32 x;"), HasSubstr("second definition"));
  EXPECT_THAT(Bad(".entry k() { @%p ret; }"), HasSubstr("no predicate register"));
  EXPECT_THAT(Bad(".global .align 3 .u32 x;"), HasSubstr("power of two"));
  EXPECT_THAT(Bad("\x01"), HasSubstr("line 4"));
  EXPECT_THAT(Parse(".target sm_80").status().text(), HasSubstr(".version"));
  EXPECT_THAT(Parse(".version 8.0\n.target sm_80\n.address_size 32").status().text(), HasSubstr("64-bit"));
}

TEST(Parser, HostileNestingIsRefused) {
  EXPECT_THAT(Bad(".global .u32 x = " + std::string(100000, '(')), HasSubstr("deeply"));
  EXPECT_THAT(Bad(".global .u32 x = " + std::string(100000, '-') + "1;"), HasSubstr("deeply"));
  EXPECT_THAT(Bad(".global .u32 x[4] = " + std::string(100000, '{')), HasSubstr("deeply"));
  EXPECT_THAT(Bad(".entry k() " + std::string(100000, '{')), HasSubstr("deeply"));
  EXPECT_THAT(Bad(".entry k() { mov.b32 " + std::string(100000, '[')), HasSubstr("deeply"));
  EXPECT_THAT(Bad(".global .u8 x[4294967296][4294967296];"), HasSubstr("too large"));
  EXPECT_THAT(Bad(".global .u8 x[1099511627776] = {{1}, {2}} ; .entry k() {"), HasSubstr("unfinished"));
}

TEST(Parser, TextEndsAtANul) { EXPECT_TRUE(Parse(std::string(kHead) + std::string("\0garbage {", 10)).ok()); }

TEST(Parser, DebugSectionsAndLocationsAreSkipped) {
  const auto module = Good(
      ".file 1 \"a.cu\", 123, 456\n"
      ".entry k() {\n .loc 1 2 3\n .loc 1 4 5, function_name $L + 8, inlined_at 1 2 3\n ret;\n}\n"
      ".section .debug_str { .b8 1,2,{3} L: .b64 x }\n");
  EXPECT_EQ(module->functions[0].instructions.size(), 1u);
}

TEST(Flow, BlocksAndSuccessors) {
  const auto module = Good(
      ".entry k() {\n .reg .pred %p; .reg .b32 %i;\n"
      "mov.b32 %i, 0;\nL: add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 9;\n@%p bra L;\n@%p exit;\nret; }\n");
  const auto blocks = FlowOf(module->functions[0]);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_THAT(blocks[0].successors, testing::ElementsAre(1));
  EXPECT_THAT(blocks[1].successors, testing::ElementsAre(1, 2));
  EXPECT_THAT(blocks[2].successors, testing::ElementsAre(3));
  EXPECT_THAT(blocks[3].successors, testing::IsEmpty());
}

TEST(Liveness, LoopsKeepAndGuardsKeep) {
  const auto module = Good(
      ".entry k() {\n .reg .pred %p; .reg .b32 %i, %limit, %t, %g, %unused;\n"
      "mov.b32 %limit, 9;\n"                // 0
      "mov.b32 %i, 0;\n"                    // 1
      "mov.b32 %g, 5;\n"                    // 2
      "L: add.u32 %t, %i, 1;\n"             // 3
      "mov.b32 %i, %t;\n"                   // 4
      "setp.lt.u32 %p, %i, %limit;\n"       // 5
      "@%p mov.b32 %g, 1;\n"                // 6: keeps the old value of the other lanes
      "@%p bra L;\n"                        // 7
      "st.global.u32 [0], %g;\nret; }\n");  // 8
  const Function& f = module->functions[0];
  const auto intervals = LiveIntervals(f);
  ASSERT_TRUE(intervals.has_value());
  const auto of = [&](std::string_view name) {
    for (size_t i = 0; i < f.registers.size(); ++i) {
      if (f.registers[i].name == name) return (*intervals)[i];
    }
    return LiveInterval{};
  };
  EXPECT_EQ(of("%limit").begin, 1u);
  EXPECT_EQ(of("%limit").end, 15u);  // Through the back edge.
  EXPECT_EQ(of("%t").begin, 7u);
  EXPECT_EQ(of("%t").end, 8u);
  EXPECT_EQ(of("%g").begin, 5u);
  EXPECT_GE(of("%g").end, 16u);
  EXPECT_FALSE(of("%unused").used());
}

}  // namespace
}  // namespace hawser::ptx
