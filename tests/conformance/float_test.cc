// SPDX-License-Identifier: Apache-2.0
// Floating-point instructions, all formats and roundings.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>

#include "tests/conformance/harness.h"

namespace hawser::conformance {
namespace {

/// f() computed in a rounding mode.
template <typename F>
auto In(int mode, F f) {
  const int before = std::fegetround();
  std::fesetround(mode);
  auto volatile result = f();
  std::fesetround(before);
  return static_cast<decltype(f())>(result);
}

float Ftz(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
float Sat(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }
V Hex(_Float16 x) { return x != x ? 0x7fff : std::bit_cast<uint16_t>(x); }
_Float16 Half(V v) { return std::bit_cast<_Float16>(static_cast<uint16_t>(v)); }
/// Exact in double, then one rounding by the compiler's own conversion.
V HalfOf(double x) { return Hex(static_cast<_Float16>(x)); }
float Bf(V v) { return std::bit_cast<float>(static_cast<uint32_t>(v << 16)); }
V BfOf(float x) {
  if (x != x) return 0x7fff;
  const V bits = B(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <typename T>
T Min(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T Max(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

TEST(Conformance, SingleArithmetic) {
  Check({
      {"add.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(F(a) + F(b)); }},
      {"add.rz.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return N(In(FE_TOWARDZERO, [&] { return F(a) + F(b); })); }},
      {"add.rm.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return N(In(FE_DOWNWARD, [&] { return F(a) + F(b); })); }},
      {"sub.rp.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return N(In(FE_UPWARD, [&] { return F(a) - F(b); })); }},
      {"add.ftz.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(Ftz(Ftz(F(a)) + Ftz(F(b)))); }},
      {"add.sat.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return B(Sat(F(a) + F(b))); }},
      {"sub.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(F(a) - F(b)); }},
      {"mul.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(F(a) * F(b)); }},
      {"mul.rz.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return N(In(FE_TOWARDZERO, [&] { return F(a) * F(b); })); }},
      {"mul.ftz.sat.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return B(Sat(Ftz(Ftz(F(a)) * Ftz(F(b))))); }},
      {"div.rn.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(F(a) / F(b)); }},
      {"div.rp.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return N(In(FE_UPWARD, [&] { return F(a) / F(b); })); }},
      {"fma.rn.f32 %d, %a, %b, %c;", "f32 f32,f32,f32", [](V a, V b, V c) { return N(std::fma(F(a), F(b), F(c))); }},
      {"fma.rm.f32 %d, %a, %b, %c;", "f32 f32,f32,f32",
       [](V a, V b, V c) { return N(In(FE_DOWNWARD, [&] { return std::fma(F(a), F(b), F(c)); })); }},
      {"fma.rn.ftz.f32 %d, %a, %b, %c;", "f32 f32,f32,f32",
       [](V a, V b, V c) { return N(Ftz(std::fma(Ftz(F(a)), Ftz(F(b)), Ftz(F(c))))); }},
      {"mad.rn.f32 %d, %a, %b, %c;", "f32 f32,f32,f32", [](V a, V b, V c) { return N(std::fma(F(a), F(b), F(c))); }},
      {"min.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(Min(F(a), F(b))); }},
      {"max.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(Max(F(a), F(b))); }},
      {"min.NaN.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) { return std::isnan(F(a)) || std::isnan(F(b)) ? 0x7fffffff : N(Min(F(a), F(b))); }},
      {"max.ftz.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return N(Max(Ftz(F(a)), Ftz(F(b)))); }},
      {"min.xorsign.abs.f32 %d, %a, %b;", "f32 f32,f32",
       [](V a, V b, V) {
         if (std::isnan(F(a)) && std::isnan(F(b))) return V{0x7fffffff};
         return (B(Min(std::fabs(F(a)), std::fabs(F(b)))) & 0x7fffffff) | ((a ^ b) & 0x80000000);
       }},
      {"abs.f32 %d, %a;", "f32 f32", [](V a, V, V) { return a & 0x7fffffff; }},
      {"neg.f32 %d, %a;", "f32 f32", [](V a, V, V) { return a ^ 0x80000000; }},
      {"neg.ftz.f32 %d, %a;", "f32 f32", [](V a, V, V) { return B(-Ftz(F(a))); }},
      {"sqrt.rn.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::sqrt(F(a))); }},
      {"sqrt.rz.f32 %d, %a;", "f32 f32",
       [](V a, V, V) { return N(In(FE_TOWARDZERO, [&] { return std::sqrt(F(a)); })); }},
      {"rcp.rn.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(1.0f / F(a)); }},
      {"rcp.rm.ftz.f32 %d, %a;", "f32 f32",
       [](V a, V, V) { return N(Ftz(In(FE_DOWNWARD, [&] { return 1.0f / Ftz(F(a)); }))); }},
      {"copysign.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return (a & 0x80000000) | (b & 0x7fffffff); }},
      {"rsqrt.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(1.0f / std::sqrt(F(a))); }, 1e-6},
      {"sin.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::sin(F(a))); }, 1e-5},
      {"cos.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::cos(F(a))); }, 1e-5},
      {"lg2.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::log2(F(a))); }, 1e-6},
      {"ex2.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::exp2(F(a))); }, 1e-6},
      {"tanh.approx.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::tanh(F(a))); }, 1e-5},
      {"add.f32 %d, %a, 0f3FC00000;", "f32 f32", [](V a, V, V) { return N(F(a) + 1.5f); }},
      {"add.f32 %d, %a, 1.5;", "f32 f32", [](V a, V, V) { return N(F(a) + 1.5f); }},
  });
}

TEST(Conformance, DoubleArithmetic) {
  // What bits a NaN has is the processor's choice: compare with a tolerance of next to nothing.
  constexpr double kNan = 1e-17;
  Check({
      {"add.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(D(a) + D(b)); }, kNan},
      {"add.rp.f64 %d, %a, %b;", "f64 f64,f64",
       [](V a, V b, V) { return B(In(FE_UPWARD, [&] { return D(a) + D(b); })); }, kNan},
      {"sub.rz.f64 %d, %a, %b;", "f64 f64,f64",
       [](V a, V b, V) { return B(In(FE_TOWARDZERO, [&] { return D(a) - D(b); })); }, kNan},
      {"mul.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(D(a) * D(b)); }, kNan},
      {"mul.rm.f64 %d, %a, %b;", "f64 f64,f64",
       [](V a, V b, V) { return B(In(FE_DOWNWARD, [&] { return D(a) * D(b); })); }, kNan},
      {"div.rn.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(D(a) / D(b)); }, kNan},
      {"fma.rn.f64 %d, %a, %b, %c;", "f64 f64,f64,f64", [](V a, V b, V c) { return B(std::fma(D(a), D(b), D(c))); },
       kNan},
      {"fma.rp.f64 %d, %a, %b, %c;", "f64 f64,f64,f64",
       [](V a, V b, V c) { return B(In(FE_UPWARD, [&] { return std::fma(D(a), D(b), D(c)); })); }, kNan},
      {"min.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(Min(D(a), D(b))); }, kNan},
      {"max.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(Max(D(a), D(b))); }, kNan},
      {"sqrt.rn.f64 %d, %a;", "f64 f64", [](V a, V, V) { return B(std::sqrt(D(a))); }, kNan},
      {"rcp.rn.f64 %d, %a;", "f64 f64", [](V a, V, V) { return B(1.0 / D(a)); }, kNan},
      {"abs.f64 %d, %a;", "f64 f64", [](V a, V, V) { return a & ~(V{1} << 63); }},
      {"neg.f64 %d, %a;", "f64 f64", [](V a, V, V) { return a ^ V { 1 } << 63; }},
      {"copysign.f64 %d, %a, %b;", "f64 f64,f64", [](V a, V b, V) { return B(std::copysign(D(b), D(a))); }, kNan},
      {"rcp.approx.ftz.f64 %d, %a;", "f64 f64",
       [](V a, V, V) {
         const double x = std::fabs(D(a)) < 0x1p-1022 ? std::copysign(0.0, D(a)) : D(a);
         const double r = 1.0 / x;
         return B(std::fabs(r) < 0x1p-1022 ? std::copysign(0.0, r) : r);
       },
       1e-5},
  });
}

TEST(Conformance, HalfArithmetic) {
  const auto d = [](V v) { return static_cast<double>(Half(v)); };
  const auto pair = [](V low, V high) { return low | high << 16; };
  Check({
      {"add.f16 %d, %a, %b;", "f16 f16,f16", [=](V a, V b, V) { return HalfOf(d(a) + d(b)); }},
      {"sub.rn.f16 %d, %a, %b;", "f16 f16,f16", [=](V a, V b, V) { return HalfOf(d(a) - d(b)); }},
      {"mul.f16 %d, %a, %b;", "f16 f16,f16", [=](V a, V b, V) { return HalfOf(d(a) * d(b)); }},
      {"mul.sat.f16 %d, %a, %b;", "f16 f16,f16",
       [=](V a, V b, V) {
         const double p = d(a) * d(b);
         return HalfOf(p > 0 ? std::fmin(p, 1.0) : 0);
       }},
      {"fma.rn.f16 %d, %a, %b, %c;", "f16 f16,f16,f16",
       [=](V a, V b, V c) {
         const __float128 sum = static_cast<__float128>(d(a)) * d(b) + d(c);  // Exact.
         if (std::isnan(static_cast<double>(sum))) return V{0x7fff};
         // One rounding to 11 bits through a double rounded to odd.
         auto x = static_cast<double>(sum);
         if (std::isfinite(x) && static_cast<__float128>(x) != sum) {
           const bool up = sum > static_cast<__float128>(x);
           V bits = B(x);
           if ((bits & 1) == 0) bits = up == (x > 0) ? bits + 1 : bits - 1;
           x = D(bits);
         }
         return HalfOf(x);
       }},
      {"fma.rn.relu.f16 %d, %a, %b, %c;", "f16 f16,f16,f16",
       [=](V a, V b, V c) {
         const double s = d(a) * d(b) + d(c);
         if (std::isnan(s)) return V{0x7fff};
         return s < 0 ? V{0} : HalfOf(static_cast<double>(static_cast<_Float16>(std::fma(d(a), d(b), d(c)))));
       }},
      {"add.f16x2 %d, %a, %b;", "b32 b32,b32",
       [=](V a, V b, V) { return pair(HalfOf(d(a & 0xffff) + d(b & 0xffff)), HalfOf(d(a >> 16) + d(b >> 16))); }},
      {"neg.f16 %d, %a;", "f16 f16", [](V a, V, V) { return a ^ 0x8000; }},
      {"abs.f16x2 %d, %a;", "b32 b32", [](V a, V, V) { return a & 0x7fff7fff; }},
      {"min.f16 %d, %a, %b;", "f16 f16,f16", [=](V a, V b, V) { return HalfOf(Min(d(a), d(b))); }},
      {"max.NaN.f16 %d, %a, %b;", "f16 f16,f16",
       [=](V a, V b, V) { return std::isnan(d(a)) || std::isnan(d(b)) ? 0x7fff : HalfOf(Max(d(a), d(b))); }},
      {"setp.lt.f16 %d, %a, %b;", "pred f16,f16", [=](V a, V b, V) { return d(a) < d(b) ? 1 : 0; }},
      {"setp.neu.f16 %d, %a, %b;", "pred f16,f16", [=](V a, V b, V) { return !(d(a) == d(b)) ? 1 : 0; }},
      {"setp.gt.f16x2 %pd|%d, %a, %b;", "pred b32,b32", [=](V a, V b, V) { return d(a >> 16) > d(b >> 16) ? 1 : 0; }},
      {"add.bf16 %d, %a, %b;", "b16 b16,b16",
       [](V a, V b, V) {
         const double s = static_cast<double>(Bf(a)) + static_cast<double>(Bf(b));
         // The double sum may be inexact, but only far below half a unit of 8 bits unless it is exact.
         auto f = In(FE_TOWARDZERO, [&] { return static_cast<float>(s); });
         if (static_cast<double>(f) != s && std::isfinite(f)) f = F(B(f) | 1);
         return BfOf(f);
       }},
      {"mul.bf16 %d, %a, %b;", "b16 b16,b16", [](V a, V b, V) { return BfOf(Bf(a) * Bf(b)); }},
  });
}

TEST(Conformance, FloatCompare) {
  Check({
      {"setp.eq.f32 %d, %a, %b;", "pred f32,f32", [](V a, V b, V) { return F(a) == F(b) ? 1 : 0; }},
      {"setp.ne.f32 %d, %a, %b;", "pred f32,f32",
       [](V a, V b, V) { return !std::isunordered(F(a), F(b)) && F(a) != F(b) ? 1 : 0; }},
      {"setp.lt.ftz.f32 %d, %a, %b;", "pred f32,f32", [](V a, V b, V) { return Ftz(F(a)) < Ftz(F(b)) ? 1 : 0; }},
      {"setp.equ.f32 %d, %a, %b;", "pred f32,f32",
       [](V a, V b, V) { return std::isunordered(F(a), F(b)) || F(a) == F(b) ? 1 : 0; }},
      {"setp.ltu.f64 %d, %a, %b;", "pred f64,f64", [](V a, V b, V) { return !(D(a) >= D(b)) ? 1 : 0; }},
      {"setp.leu.f32 %d, %a, %b;", "pred f32,f32", [](V a, V b, V) { return !(F(a) > F(b)) ? 1 : 0; }},
      {"setp.gtu.f32 %d, %a, %b;", "pred f32,f32", [](V a, V b, V) { return !(F(a) <= F(b)) ? 1 : 0; }},
      {"setp.geu.f64 %d, %a, %b;", "pred f64,f64", [](V a, V b, V) { return !(D(a) < D(b)) ? 1 : 0; }},
      {"setp.num.f32 %d, %a, %b;", "pred f32,f32", [](V a, V b, V) { return std::isunordered(F(a), F(b)) ? 0 : 1; }},
      {"setp.nan.f64 %d, %a, %b;", "pred f64,f64", [](V a, V b, V) { return std::isunordered(D(a), D(b)) ? 1 : 0; }},
      {"set.gt.f32.f32 %d, %a, %b;", "f32 f32,f32", [](V a, V b, V) { return F(a) > F(b) ? B(1.0f) : 0; }},
      {"set.le.u32.f64 %d, %a, %b;", "b32 f64,f64", [](V a, V b, V) { return D(a) <= D(b) ? ~V{0} : 0; }},
      {"testp.finite.f32 %d, %a;", "pred f32", [](V a, V, V) { return std::isfinite(F(a)) ? 1 : 0; }},
      {"testp.infinite.f64 %d, %a;", "pred f64", [](V a, V, V) { return std::isinf(D(a)) ? 1 : 0; }},
      {"testp.notanumber.f32 %d, %a;", "pred f32", [](V a, V, V) { return std::isnan(F(a)) ? 1 : 0; }},
      {"testp.subnormal.f32 %d, %a;", "pred f32",
       [](V a, V, V) { return std::fpclassify(F(a)) == FP_SUBNORMAL ? 1 : 0; }},
      {"testp.number.f64 %d, %a;", "pred f64", [](V a, V, V) { return std::isnan(D(a)) ? 0 : 1; }},
  });
}

}  // namespace
}  // namespace hawser::conformance
