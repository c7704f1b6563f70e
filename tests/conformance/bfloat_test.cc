// SPDX-License-Identifier: Apache-2.0
// bf16 and pairs of halves: arithmetic; conversions with .relu and .satfinite; the 8-bit formats.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/formats.h"
#include "tests/conformance/harness.h"

namespace hawser::conformance {
namespace {

double Bf(V v) { return Value16(v, kBfloatFormat); }
V BfOf(double x) { return Bits16(x, kBfloatFormat); }
double Hf(V v) { return Value16(v, kHalfFormat); }
V HfOf(double x) { return Bits16(x, kHalfFormat); }
double Wide(V v) { return static_cast<double>(F(v)); }
/// .relu: what is below zero is zero, and NaN stays.
double Relu(double x) { return x < 0 ? 0 : x; }

/// One operand is NaN: the other; -0 is less than +0.
double Min(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double Max(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double MinNan(double a, double b) { return std::isnan(a) || std::isnan(b) ? static_cast<double>(NAN) : Min(a, b); }
double MaxNan(double a, double b) { return std::isnan(a) || std::isnan(b) ? static_cast<double>(NAN) : Max(a, b); }

/// `function` on each 16-bit half.
template <typename Function>
Expected Pairwise(Function function) {
  return [function](V a, V b, V c) {
    return function(a & 0xffff, b & 0xffff, c & 0xffff) | function(a >> 16, b >> 16, c >> 16) << 16;
  };
}

/// An instruction on .bf16 and on .bf16x2. `operands`: how many.
void CheckBoth(const std::vector<std::pair<std::string, std::function<V(V, V, V)>>>& list, size_t operands) {
  std::vector<Case> cases;
  for (const auto& [name, function] : list) {
    const std::string text = operands == 1 ? " %d, %a;" : operands == 2 ? " %d, %a, %b;" : " %d, %a, %b, %c;";
    const auto types = [&](const std::string& type) {
      std::string all = type + " " + type;
      for (size_t k = 1; k < operands; ++k) all += "," + type;
      return all;
    };
    cases.emplace_back(name + ".bf16" + text, types("bf16"), function);
    cases.emplace_back(name + ".bf16x2" + text, types("bf16x2"), Pairwise(function));
  }
  Check(cases);
}

TEST(Bfloat, Arithmetic) {
  CheckBoth(
      {
          {"add", [](V a, V b, V) { return BfOf(SumFor16(Bf(a), Bf(b))); }},
          {"add.rn", [](V a, V b, V) { return BfOf(SumFor16(Bf(a), Bf(b))); }},
          {"sub", [](V a, V b, V) { return BfOf(SumFor16(Bf(a), -Bf(b))); }},
          {"mul", [](V a, V b, V) { return BfOf(Bf(a) * Bf(b)); }},
      },
      2);
  CheckBoth(
      {
          {"fma.rn", [](V a, V b, V c) { return BfOf(SumFor16(Bf(a) * Bf(b), Bf(c))); }},
          {"fma.rn.relu", [](V a, V b, V c) { return BfOf(Relu(SumFor16(Bf(a) * Bf(b), Bf(c)))); }},
      },
      3);
}

TEST(Bfloat, MinimumAndMaximum) {
  CheckBoth(
      {
          {"min", [](V a, V b, V) { return BfOf(Min(Bf(a), Bf(b))); }},
          {"max", [](V a, V b, V) { return BfOf(Max(Bf(a), Bf(b))); }},
          {"min.NaN", [](V a, V b, V) { return BfOf(MinNan(Bf(a), Bf(b))); }},
          {"max.NaN", [](V a, V b, V) { return BfOf(MaxNan(Bf(a), Bf(b))); }},
          {"min.xorsign.abs",
           [](V a, V b, V) {
             const double least = Min(std::fabs(Bf(a)), std::fabs(Bf(b)));
             return std::isnan(least) ? V{0x7fff} : BfOf(least) | ((a ^ b) & 0x8000);
           }},
          {"max.NaN.xorsign.abs",
           [](V a, V b, V) {
             const double most = MaxNan(std::fabs(Bf(a)), std::fabs(Bf(b)));
             return std::isnan(most) ? V{0x7fff} : BfOf(most) | ((a ^ b) & 0x8000);
           }},
      },
      2);
}

TEST(Bfloat, Signs) {
  CheckBoth({{"neg", [](V a, V, V) { return a ^ 0x8000; }}, {"abs", [](V a, V, V) { return a & 0x7fff; }}}, 1);
}

TEST(Bfloat, PairsOfHalves) {
  const auto pairs = [](const std::function<V(V, V, V)>& function) { return Pairwise(function); };
  Check({
      {"sub.f16x2 %d, %a, %b;", "f16x2 f16x2,f16x2", pairs([](V a, V b, V) { return HfOf(Hf(a) - Hf(b)); })},
      {"mul.f16x2 %d, %a, %b;", "f16x2 f16x2,f16x2", pairs([](V a, V b, V) { return HfOf(Hf(a) * Hf(b)); })},
      {"add.sat.f16x2 %d, %a, %b;", "f16x2 f16x2,f16x2", pairs([](V a, V b, V) {
         const double sum = Hf(a) + Hf(b);
         return HfOf(sum > 0 ? std::fmin(sum, 1.0) : 0);
       })},
      {"min.f16x2 %d, %a, %b;", "f16x2 f16x2,f16x2", pairs([](V a, V b, V) { return HfOf(Min(Hf(a), Hf(b))); })},
      {"max.NaN.f16x2 %d, %a, %b;", "f16x2 f16x2,f16x2", pairs([](V a, V b, V) { return HfOf(MaxNan(Hf(a), Hf(b))); })},
      {"neg.f16x2 %d, %a;", "f16x2 f16x2", [](V a, V, V) { return a ^ 0x80008000; }},
  });
}

TEST(Bfloat, Conversions) {
  Check({
      {"cvt.rn.relu.bf16.f32 %d, %a;", "bf16 f32", [](V a, V, V) { return BfOf(Relu(Wide(a))); }},
      {"cvt.rz.bf16.f32 %d, %a;", "bf16 f32", [](V a, V, V) { return std::isnan(F(a)) ? 0x7fff : a >> 16; }},
      {"cvt.rn.relu.f16.f32 %d, %a;", "f16 f32", [](V a, V, V) { return HfOf(Relu(Wide(a))); }},
      {"cvt.rn.satfinite.f16.f32 %d, %a;", "f16 f32",
       [](V a, V, V) {
         const V bits = HfOf(Wide(a));
         return (bits & 0x7fff) == 0x7c00 ? bits - 1 : bits;
       }},
      {"cvt.rn.relu.satfinite.bf16.f32 %d, %a;", "bf16 f32",
       [](V a, V, V) {
         const V bits = BfOf(Relu(Wide(a)));
         return bits == 0x7f80 ? bits - 1 : bits;
       }},
      {"cvt.rn.relu.f16x2.f32 %d, %a, %b;", "f16x2 f32,f32",
       [](V a, V b, V) { return HfOf(Relu(Wide(a))) << 16 | HfOf(Relu(Wide(b))); }},
      {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "bf16x2 f32,f32",
       [](V a, V b, V) { return BfOf(Relu(Wide(a))) << 16 | BfOf(Relu(Wide(b))); }},
      {"cvt.rz.bf16x2.f32 %d, %a, %b;", "bf16x2 f32,f32",
       [](V a, V b, V) {
         const auto cut = [](V v) { return std::isnan(F(v)) ? V{0x7fff} : v >> 16; };
         return cut(a) << 16 | cut(b);
       }},
      {"cvt.rn.bf16.s32 %d, %a;", "bf16 b32", [](V a, V, V) { return BfOf(static_cast<double>(S(a))); }},
      {"cvt.rzi.s32.bf16 %d, %a;", "b32 bf16",
       [](V a, V, V) {
         const double x = std::trunc(Bf(a));
         if (std::isnan(x)) return V{0};
         return x >= 0x1p31 ? V{INT32_MAX} : static_cast<V>(x < -0x1p31 ? INT32_MIN : static_cast<int32_t>(x));
       }},
      {"cvt.rn.f16.bf16 %d, %a;", "f16 bf16", [](V a, V, V) { return HfOf(Bf(a)); }},
      {"cvt.rna.satfinite.tf32.f32 %d, %a;", "b32 f32",
       [](V a, V, V) {
         if (std::isnan(F(a))) return V{0x7fffffff} & ~V{0x1fff};
         const V rounded = ((a & 0x7fffffff) + 0x1000) & ~V{0x1fff};
         return (a & 0x80000000) | std::min<V>(rounded, 0x7f7fe000);
       }},
      {"cvt.rn.relu.tf32.f32 %d, %a;", "b32 f32",
       [](V a, V, V) {
         if (std::isnan(F(a))) return V{0x7fffffff} & ~V{0x1fff};
         if (F(a) < 0) return V{0};
         return (a + 0xfff + (a >> 13 & 1)) & ~V{0x1fff};
       }},
  });
}

/// A format of 8 bits: `digits` bits behind the point, the codes from `largest` + 1 on are no finite numbers.
struct Format8 {
  int digits;
  int bias;
  V largest;
};
constexpr Format8 kE4m3Format{3, 7, 0x7e};
constexpr Format8 kE5m2Format{2, 15, 0x7b};

double Value8(V code, const Format8& format) {
  const V mantissa = code & ((V{1} << format.digits) - 1);
  const auto exponent = static_cast<int>((code & 0x7f) >> format.digits);
  const double fraction = std::ldexp(static_cast<double>(mantissa), -format.digits);
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - format.bias) : std::ldexp(1 + fraction, exponent - format.bias);
  return (code & 0x80) != 0 ? -value : value;
}

/// The nearest of all finite numbers, the even code of two; NaN is 0x7f.
V Bits8(double x, const Format8& format) {
  if (std::isnan(x)) return 0x7f;
  const double size = std::fabs(x);
  V best = 0;
  for (V code = 1; code <= format.largest; ++code) {
    const double before = std::fabs(size - Value8(best, format));
    const double now = std::fabs(size - Value8(code, format));
    if (now < before || (now == before && (code & 1) == 0)) best = code;
  }
  if (size >= Value8(format.largest, format)) best = format.largest;
  return best | (std::signbit(x) ? 0x80 : 0);
}

void CheckEight(const std::string& name, const Format8& format) {
  // Of the 8-bit pairs' codes that are no numbers, e5m2 has infinities.
  const auto half = [format](V code) {
    if ((code & 0x7f) > format.largest) return (code & 0x7f) == 0x7c ? HfOf(INFINITY) | (code & 0x80) << 8 : V{0x7fff};
    return HfOf(Value8(code, format));
  };
  const auto relu = [](V h) { return (h & 0x8000) != 0 && h != 0x8000 ? V{0} : h; };
  Check({
      {"cvt.rn.satfinite." + name + ".f32 %d, %a, %b;", "b16 f32,f32",
       [=](V a, V b, V) { return Bits8(Wide(a), format) << 8 | Bits8(Wide(b), format); }},
      {"cvt.rn.satfinite.relu." + name + ".f32 %d, %a, %b;", "b16 f32,f32",
       [=](V a, V b, V) { return Bits8(Relu(Wide(a)), format) << 8 | Bits8(Relu(Wide(b)), format); }},
      {"cvt.rn.satfinite." + name + ".f16x2 %d, %a;", "b16 f16x2",
       [=](V a, V, V) { return Bits8(Hf(a >> 16), format) << 8 | Bits8(Hf(a & 0xffff), format); }},
      {"cvt.rn.satfinite.relu." + name + ".f16x2 %d, %a;", "b16 f16x2",
       [=](V a, V, V) { return Bits8(Relu(Hf(a >> 16)), format) << 8 | Bits8(Relu(Hf(a & 0xffff)), format); }},
      {"cvt.rn.f16x2." + name + " %d, %a;", "f16x2 b16",
       [=](V a, V, V) { return half(a >> 8 & 0xff) << 16 | half(a & 0xff); }},
      {"cvt.rn.relu.f16x2." + name + " %d, %a;", "f16x2 b16",
       [=](V a, V, V) { return relu(half(a >> 8 & 0xff)) << 16 | relu(half(a & 0xff)); }},
  });
}

TEST(Bfloat, EightBits) {
  CheckEight("e4m3x2", kE4m3Format);
  CheckEight("e5m2x2", kE5m2Format);
}

}  // namespace
}  // namespace hawser::conformance
