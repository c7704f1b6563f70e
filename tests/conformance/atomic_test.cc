// SPDX-License-Identifier: Apache-2.0
// atom and red: what one operation leaves behind and returns, for every operation and type, in global and shared memory
// and through generic addresses, at the edges of the types.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/conformance/formats.h"
#include "tests/conformance/harness.h"
#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

enum class Where : uint8_t { kGlobal, kShared, kGenericGlobal, kGenericShared };
constexpr std::array<Where, 4> kEverywhere{Where::kGlobal, Where::kShared, Where::kGenericGlobal,
                                           Where::kGenericShared};

bool InShared(Where where) { return where == Where::kShared || where == Where::kGenericShared; }

/// The place holds `old`; operands `b`, and `c` of cas.
struct Given {
  V old = 0;
  V b = 0;
  V c = 0;
};
struct Got {
  V returned = 0;
  V left = 0;
};

/// "atom" and "add.u32" -> the statement for `where`; %place addresses it.
std::string Statement(const std::string& base, const std::string& operation, Where where) {
  const std::string space = where == Where::kGlobal ? ".global" : where == Where::kShared ? ".shared" : "";
  return base + space + "." + operation + (base == "atom" ? " %d, [%place], %b" : " [%place], %b") +
         (operation.starts_with("cas") ? ", %c;" : ";");
}

/// One thread per entry of `in`, each at a place of its own. `bits`: of the type.
std::vector<Got> Execute(const std::string& statement, uint32_t bits, Where where, const std::vector<Given>& in) {
  exec::Device device(0);
  const std::string b = ".b" + std::to_string(bits);
  const std::string space = InShared(where) ? ".shared" : ".global";
  std::string text =
      ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
      ".shared .align 16 .b8 s[8192]; .reg .b32 %i; .reg .b64 %in, %out, %own, %place; .reg " +
      b + " %d, %b, %c, %left;\n" +
      "mov.u32 %i, %tid.x; ld.param.u64 %in, [in]; mad.wide.u32 %in, %i, 24, %in;\n"
      "ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, 16, %out;\n";
  if (InShared(where)) {
    text += "mov.u64 %own, s; mad.wide.u32 %own, %i, 8, %own; ld.global" + b + " %d, [%in]; st.shared" + b +
            " [%own], %d;\n";
  } else {
    text += "mov.u64 %own, %in;\n";
  }
  text += where == Where::kGenericShared ? "cvta.shared.u64 %place, %own;\n" : "mov.u64 %place, %own;\n";
  text += "ld.global" + b + " %b, [%in+8]; ld.global" + b + " %c, [%in+16]; mov" + b + " %d, 0;\n" + statement +
          "\nld" + space + b + " %left, [%own]; st.global" + b + " [%out], %d; st.global" + b +
          " [%out+8], %left; ret; }\n";
  EXPECT_EQ(device.Load({text}), "") << statement;
  EXPECT_TRUE(device.program().unsupported().empty()) << statement;
  const uint64_t in_at = device.Upload(in);
  const uint64_t out_at = device.Allocate(sizeof(Got) * in.size());
  const exec::Outcome outcome =
      device.Run("k", {1, 1, 1}, {static_cast<uint32_t>(in.size()), 1, 1}, exec::Arguments().Add(in_at).Add(out_at));
  EXPECT_TRUE(outcome.ok()) << statement << ": " << outcome.fault.Text();
  return device.Download<Got>(out_at, in.size());
}

/// Pairs of `edges`, some with random bits, at most a block of them.
std::vector<Given> Pairs(const std::vector<V>& edges, V mask) {
  std::mt19937_64 random(17);
  std::vector<Given> in;
  for (const V old : edges) {
    for (const V b : edges) in.push_back({old & mask, b & mask, random() & mask});
  }
  for (int i = 0; i < 100; ++i) in.push_back({random() & mask, random() & mask, random() & mask});
  return in;
}

using Function = std::function<V(V old, V b, V c)>;
using Same = std::function<bool(V got, V expected)>;

void CheckAt(const std::string& operation, uint32_t bits, Where where, const std::vector<Given>& in,
             const Function& expected, const Same& same) {
  const V mask = bits == 64 ? ~V{0} : (V{1} << bits) - 1;
  for (const std::string base : {"atom", "red"}) {
    if (base == "red" && (operation.starts_with("cas") || operation.starts_with("exch"))) continue;
    const std::string statement = Statement(base, operation, where);
    const std::vector<Got> out = Execute(statement, bits, where, in);
    int shown = 0;
    for (size_t i = 0; i < in.size() && shown < 3; ++i) {
      const V left = expected(in[i].old, in[i].b, in[i].c) & mask;
      const V returned = base == "atom" ? in[i].old : 0;
      if (same(out[i].left, left) && out[i].returned == returned) continue;
      ++shown;
      ADD_FAILURE() << statement << (InShared(where) ? " (shared)" : " (global)") << std::hex << " at " << in[i].old
                    << " with " << in[i].b << ", " << in[i].c << ": left " << out[i].left << " (expected " << left
                    << "), returned " << out[i].returned;
    }
  }
}

bool SameBits(V got, V expected) { return got == expected; }

void CheckInteger(const std::string& operation, const Function& expected) {
  const uint32_t bits = operation.ends_with("64") ? 64 : operation.ends_with("16") ? 16 : 32;
  const V top = V{1} << (bits - 1);
  const std::vector<Given> in =
      Pairs({0, 1, 2, 100, top, top - 1, top + 1, ~V{0}, ~V{1}, 0x5555555555555555, 0xaaaaaaaa00000000},
            bits == 64 ? ~V{0} : (V{1} << bits) - 1);
  for (const Where where : kEverywhere) CheckAt(operation, bits, where, in, expected, SameBits);
}

TEST(Atomic, Bits) {
  for (const std::string type : {"b32", "b64"}) {
    CheckInteger("and." + type, [](V a, V b, V) { return a & b; });
    CheckInteger("or." + type, [](V a, V b, V) { return a | b; });
    CheckInteger("xor." + type, [](V a, V b, V) { return a ^ b; });
    CheckInteger("exch." + type, [](V, V b, V) { return b; });
  }
  for (const std::string type : {"b16", "b32", "b64"}) {
    CheckInteger("cas." + type, [](V a, V b, V c) { return a == b ? c : a; });
  }
}

TEST(Atomic, Integers) {
  for (const std::string type : {"u32", "s32", "u64"}) {
    CheckInteger("add." + type, [](V a, V b, V) { return a + b; });
  }
  CheckInteger("inc.u32", [](V a, V b, V) { return a >= b ? 0 : a + 1; });
  CheckInteger("dec.u32", [](V a, V b, V) { return a == 0 || a > b ? b : a - 1; });
  CheckInteger("min.u32", [](V a, V b, V) { return std::min(a, b); });
  CheckInteger("max.u32", [](V a, V b, V) { return std::max(a, b); });
  CheckInteger("min.s32", [](V a, V b, V) { return S(a) < S(b) ? a : b; });
  CheckInteger("max.s32", [](V a, V b, V) { return S(a) > S(b) ? a : b; });
  CheckInteger("min.u64", [](V a, V b, V) { return std::min(a, b); });
  CheckInteger("max.u64", [](V a, V b, V) { return std::max(a, b); });
  CheckInteger("min.s64", [](V a, V b, V) { return L(a) < L(b) ? a : b; });
  CheckInteger("max.s64", [](V a, V b, V) { return L(a) > L(b) ? a : b; });
}

// On global memory subnormal numbers are zeros of their sign; on shared memory they are numbers.
TEST(Atomic, SingleFloats) {
  std::vector<V> edges = {0x7f800000, 0xff800000, 0x7fc00000};
  for (const float x : {0.0f, 1.0f, 1.5f, 0x1p-126f, 0x1p-127f, 0x1.8p-126f, 0x1p-149f, 0x0.fffffep-126f, 3.4e38f}) {
    edges.push_back(B(x));
    edges.push_back(B(-x));
  }
  const auto flushed = [](V v) { return (v & 0x7f800000) == 0 ? F(v & 0x80000000) : F(v); };
  const auto same = [](V got, V expected) {
    return got == expected || (std::isnan(F(got)) && std::isnan(F(expected)));
  };
  for (const Where where : kEverywhere) {
    CheckAt(
        "add.f32", 32, where, Pairs(edges, 0xffffffff),
        [&](V a, V b, V) { return InShared(where) ? B(F(a) + F(b)) : B(flushed(B(flushed(a) + flushed(b)))); }, same);
  }
}

TEST(Atomic, DoubleFloats) {
  std::vector<V> edges = {V{0x7ff} << 52, V{0xfff} << 52, V{0x7ff8} << 48};
  for (const double x : {0.0, 1.0, 0.1, 0x1p-1022, 0x1p-1074, 0x1.8p-1022, 1e308}) {
    edges.push_back(B(x));
    edges.push_back(B(-x));
  }
  const auto same = [](V got, V expected) {
    return got == expected || (std::isnan(D(got)) && std::isnan(D(expected)));
  };
  for (const Where where : kEverywhere) {
    CheckAt(
        "add.f64", 64, where, Pairs(edges, ~V{0}), [](V a, V b, V) { return B(D(a) + D(b)); }, same);
  }
}

TEST(Atomic, Halves) {
  const auto sum = [](const Format16& format) {
    return [format](V a, V b, V) { return Bits16(SumFor16(Value16(a, format), Value16(b, format)), format); };
  };
  const auto pair = [](const Function& one) {
    return [one](V a, V b, V) { return one(a & 0xffff, b & 0xffff, 0) | one(a >> 16, b >> 16, 0) << 16; };
  };
  // Subnormal numbers, infinities and NaN of both formats among them.
  const std::vector<V> halves = {0,      0x8000, 1,      0x8001, 0x3c00, 0xbc00, 0x3f80, 0xbf80, 0x0400,
                                 0x83ff, 0x7bff, 0x7f7f, 0x7c00, 0xff80, 0x7f80, 0x7e00, 0x7fc0, 0x3555};
  std::vector<V> pairs;
  for (size_t i = 0; i < halves.size(); ++i) pairs.push_back(halves[i] | halves[(i + 5) % halves.size()] << 16);
  for (const Where where : kEverywhere) {
    CheckAt("add.noftz.f16", 16, where, Pairs(halves, 0xffff), sum(kHalfFormat), SameBits);
    CheckAt("add.noftz.bf16", 16, where, Pairs(halves, 0xffff), sum(kBfloatFormat), SameBits);
    CheckAt("add.noftz.f16x2", 32, where, Pairs(pairs, 0xffffffff), pair(sum(kHalfFormat)), SameBits);
    CheckAt("add.noftz.bf16x2", 32, where, Pairs(pairs, 0xffffffff), pair(sum(kBfloatFormat)), SameBits);
  }
}

/// Runs `body` in one thread: %p names `memory` in global memory, which is returned as it is then; 64 bytes.
std::vector<uint32_t> Single(const std::string& body, std::vector<uint32_t> memory) {
  memory.resize(16);
  exec::Device device(0);
  EXPECT_EQ(device.Load({".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
                         ".reg .b64 %p, %u<8>; .reg .b128 %q<4>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b16 %h<16>;\n"
                         "ld.param.u64 %p, [p];\n" +
                         body + "\nret; }\n"}),
            "");
  for (const std::string& unknown : device.program().unsupported()) ADD_FAILURE() << unknown;
  const uint64_t place = device.Upload(memory);
  const exec::Outcome outcome = device.Run("k", {1, 1, 1}, {1, 1, 1}, exec::Arguments().Add(place));
  EXPECT_TRUE(outcome.ok()) << outcome.fault.Text();
  return device.Download<uint32_t>(place, memory.size());
}

TEST(Atomic, Wide) {
  // Words 0 to 3 are exchanged with 4 to 7; then 8 to 11 are compared, first with what is not there.
  const auto got = Single(
      "ld.global.v2.u64 {%u0, %u1}, [%p+16]; mov.b128 %q0, {%u0, %u1}; atom.global.exch.b128 %q1, [%p], %q0;\n"
      "mov.b128 {%u2, %u3}, %q1; st.global.v2.u64 [%p+16], {%u2, %u3};\n"
      "ld.global.v2.u64 {%u4, %u5}, [%p+32]; add.u64 %u6, %u5, 1; mov.b128 %q2, {%u4, %u6};\n"
      "atom.global.cas.b128 %q3, [%p+32], %q2, %q0; mov.b128 {%u2, %u3}, %q3; st.global.v2.u64 [%p+48], {%u2, %u3};\n"
      "mov.b128 %q2, {%u4, %u5}; atom.global.cas.b128 %q3, [%p+32], %q2, %q0;",
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(got, (std::vector<uint32_t>{5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const auto unequal = Single(
      "mov.u64 %u0, 77; mov.b128 %q0, {%u0, %u0}; atom.global.cas.b128 %q1, [%p], %q0, %q0;\n"
      "mov.b128 {%u2, %u3}, %q1; st.global.v2.u64 [%p+16], {%u2, %u3};",
      {1, 2, 3, 4});
  EXPECT_EQ(unequal, (std::vector<uint32_t>{1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0}));
}

std::vector<uint32_t> Floats(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  bits.resize(16);
  return bits;
}

TEST(Atomic, VectorsOfFloats) {
  const float tiny = 0x1p-130f;
  // The sources are the destinations too, in another order; the last element's sum is subnormal.
  EXPECT_EQ(Single("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p+16];\n"
                   "atom.global.add.v4.f32 {%f3, %f2, %f1, %f0}, [%p], {%f0, %f1, %f2, %f3};\n"
                   "st.global.v4.f32 [%p+32], {%f0, %f1, %f2, %f3};",
                   Floats({1, 2, 3, tiny, 10, 20, 30, tiny})),
            Floats({11, 22, 33, 0, 10, 20, 30, tiny, tiny, 3, 2, 1}));
  EXPECT_EQ(Single("mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000; red.global.add.v2.f32 [%p+8], {%f0, %f1};\n"
                   "atom.add.v2.f32 {_, %f2}, [%p], {%f1, %f1}; st.global.f32 [%p+16], %f2;",
                   Floats({5, 6, 7, 8})),
            Floats({7, 8, 8, 10, 6}));
}

TEST(Atomic, VectorsOfHalves) {
  // 1, 2, -3, 0.5 as halves, and as pairs of bf16.
  EXPECT_EQ(Single("ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%p+8];\n"
                   "atom.global.add.noftz.v4.f16 {%h4, %h5, %h6, %h7}, [%p], {%h0, %h1, %h2, %h3};\n"
                   "st.global.v4.u16 [%p+16], {%h4, %h5, %h6, %h7};",
                   {0x40003c00, 0x3800c200, 0x3c003c00, 0x3c003c00}),
            (std::vector<uint32_t>{0x42004000, 0x3e00c000, 0x3c003c00, 0x3c003c00, 0x40003c00, 0x3800c200, 0, 0, 0, 0,
                                   0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Single("ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%p+16]; ld.global.v4.u16 {%h4, %h5, %h6, %h7}, [%p+24];\n"
                   "red.global.max.noftz.v8.f16 [%p], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};",
                   {0x40003c00, 0x3800c200, 0x7e007e00, 0x7c00fc00, 0x3c004200, 0xbc00c400, 0x3c007e00, 0x44004400}),
            (std::vector<uint32_t>{0x40004200, 0x3800c200, 0x3c007fff, 0x7c004400, 0x3c004200, 0xbc00c400, 0x3c007e00,
                                   0x44004400, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(
      Single("ld.global.v2.b32 {%r0, %r1}, [%p+8]; atom.global.add.noftz.v2.bf16x2 {%r2, %r3}, [%p], {%r0, %r1};\n"
             "st.global.v2.b32 [%p+16], {%r2, %r3}; red.global.min.noftz.v2.bf16x2 [%p], {%r1, %r0};",
             {0x40003f80, 0x3f00c040, 0x3f803f80, 0x3f803f80}),
      (std::vector<uint32_t>{0x3f803f80, 0x3f80c000, 0x3f803f80, 0x3f803f80, 0x40003f80, 0x3f00c040, 0, 0, 0, 0, 0, 0,
                             0, 0, 0, 0}));
}

}  // namespace
}  // namespace hawser::conformance
