// SPDX-License-Identifier: Apache-2.0
// cvt: integer widths, saturation, float to integer out of range, integer rounding, halves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/conformance/harness.h"

namespace hawser::conformance {
namespace {

/// Float to integer as the PTX manual says: round, then clamp; NaN gives 0, with 64 bits on either side the top bit.
template <typename T>
V ToInt(double x, double (*round)(double), bool wide_source) {
  if (std::isnan(x)) return wide_source || sizeof(T) == 8 ? V{1} << (8 * sizeof(T) - 1) : 0;
  x = round(x);
  if (x < static_cast<double>(std::numeric_limits<T>::min())) return static_cast<V>(std::numeric_limits<T>::min());
  if (x >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return static_cast<V>(std::numeric_limits<T>::max());
  return static_cast<V>(static_cast<T>(x));
}

template <typename F>
auto In(int mode, F f) {
  const int before = std::fegetround();
  std::fesetround(mode);
  auto volatile result = f();
  std::fesetround(before);
  return static_cast<decltype(f())>(result);
}

V HalfOf(double x) { return x != x ? 0x7fff : std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
double FromHalf(V v) { return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(v))); }

// Registers of eight bits, as compilers use them for __ldg of characters: what is made of one may take its place.
TEST(Conformance, RegistersOfEightBits) {
  const Expected low = [](V a, V, V) { return a & 255; };
  const Expected extended = [](V a, V, V) { return static_cast<V>(static_cast<int8_t>(a)); };
  Check({
      {"{ .reg .u8 t; cvt.u8.u32 t, %a; cvt.u16.u8 %d, t; }", "b16 b32", low},
      {"{ .reg .u8 t; cvt.u8.u16 t, %a; cvt.u16.u8 %d, t; }", "b16 b16", low},
      {"{ .reg .s8 t; cvt.s8.s32 t, %a; cvt.s16.s8 %d, t; }", "b16 b32", extended},
      {"{ .reg .s8 t; cvt.s8.s16 t, %a; cvt.s32.s8 %d, t; }", "b32 b16", extended},
      {"{ .reg .b8 t; cvt.u8.u16 t, %a; cvt.u64.u8 %d, t; }", "b64 b16", low},
  });
}

TEST(Conformance, ConvertIntegers) {
  Check({
      {"cvt.s32.s8 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(static_cast<int8_t>(a)); }},
      {"cvt.u32.u8 %d, %a;", "b32 b16", [](V a, V, V) { return a & 255; }},
      {"cvt.u16.u32 %d, %a;", "b16 b32", [](V a, V, V) { return a; }},
      {"cvt.s64.s32 %d, %a;", "b64 b32", [](V a, V, V) { return static_cast<V>(S(a)); }},
      {"cvt.u64.u32 %d, %a;", "b64 b32", [](V a, V, V) { return a; }},
      {"cvt.s64.s16 %d, %a;", "b64 b16", [](V a, V, V) { return static_cast<V>(H(a)); }},
      {"cvt.u32.u64 %d, %a;", "b32 b64", [](V a, V, V) { return a; }},
      {"cvt.s8.s32 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(static_cast<int8_t>(a)); }},
      {"cvt.u8.u64 %d, %a;", "b32 b64", [](V a, V, V) { return a & 255; }},
      {"cvt.sat.u8.s32 %d, %a;", "b32 b32", [](V a, V, V) { return static_cast<V>(std::clamp(S(a), 0, 255)); }},
      {"cvt.sat.s16.s32 %d, %a;", "b16 b32", [](V a, V, V) { return static_cast<V>(std::clamp(S(a), -32768, 32767)); }},
      {"cvt.sat.s32.u32 %d, %a;", "b32 b32", [](V a, V, V) { return std::min<V>(a, INT32_MAX); }},
      {"cvt.sat.u32.s64 %d, %a;", "b32 b64",
       [](V a, V, V) { return static_cast<V>(std::clamp<int64_t>(L(a), 0, 0xffffffff)); }},
      {"cvt.sat.u64.s64 %d, %a;", "b64 b64", [](V a, V, V) { return L(a) < 0 ? 0 : a; }},
      {"cvt.pack.sat.s16.s32 %d, %a, %b;", "b32 b32,b32",
       [](V a, V b, V) {
         return static_cast<V>(std::clamp(S(a), -32768, 32767)) << 16 |
                (static_cast<V>(std::clamp(S(b), -32768, 32767)) & 0xffff);
       }},
      {"cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", "b32 b32,b32,b32",
       [](V a, V b, V c) {
         return c << 16 | static_cast<V>(std::clamp(S(a), 0, 255)) << 8 | static_cast<V>(std::clamp(S(b), 0, 255));
       }},
  });
}

TEST(Conformance, ConvertFloatToInteger) {
  Check({
      {"cvt.rzi.s32.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<int32_t>(F(a), std::trunc, false); }},
      {"cvt.rzi.u32.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<uint32_t>(F(a), std::trunc, false); }},
      {"cvt.rni.s32.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<int32_t>(F(a), std::nearbyint, false); }},
      {"cvt.rmi.s32.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<int32_t>(F(a), std::floor, false); }},
      {"cvt.rpi.u32.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<uint32_t>(F(a), std::ceil, false); }},
      {"cvt.rzi.s64.f32 %d, %a;", "b64 f32", [](V a, V, V) { return ToInt<int64_t>(F(a), std::trunc, false); }},
      {"cvt.rzi.u64.f32 %d, %a;", "b64 f32", [](V a, V, V) { return ToInt<uint64_t>(F(a), std::trunc, false); }},
      {"cvt.rzi.s32.f64 %d, %a;", "b32 f64", [](V a, V, V) { return ToInt<int32_t>(D(a), std::trunc, true); }},
      {"cvt.rzi.u32.f64 %d, %a;", "b32 f64", [](V a, V, V) { return ToInt<uint32_t>(D(a), std::trunc, true); }},
      {"cvt.rni.s64.f64 %d, %a;", "b64 f64", [](V a, V, V) { return ToInt<int64_t>(D(a), std::nearbyint, true); }},
      {"cvt.rpi.u64.f64 %d, %a;", "b64 f64", [](V a, V, V) { return ToInt<uint64_t>(D(a), std::ceil, true); }},
      {"cvt.rzi.s16.f32 %d, %a;", "b16 f32", [](V a, V, V) { return ToInt<int16_t>(F(a), std::trunc, false); }},
      {"cvt.rzi.u8.f32 %d, %a;", "b32 f32", [](V a, V, V) { return ToInt<uint8_t>(F(a), std::trunc, false); }},
      {"cvt.rzi.s32.f16 %d, %a;", "b32 f16", [](V a, V, V) { return ToInt<int32_t>(FromHalf(a), std::trunc, false); }},
      {"cvt.rni.u16.f16 %d, %a;", "b16 f16",
       [](V a, V, V) { return ToInt<uint16_t>(FromHalf(a), std::nearbyint, false); }},
      {"cvt.rni.f32.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::nearbyint(F(a))); }},
      {"cvt.rmi.f32.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::floor(F(a))); }},
      {"cvt.rpi.f64.f64 %d, %a;", "f64 f64", [](V a, V, V) { return B(std::ceil(D(a))); }, 1e-17},
      {"cvt.rzi.f64.f64 %d, %a;", "f64 f64", [](V a, V, V) { return B(std::trunc(D(a))); }, 1e-17},
      {"cvt.rzi.ftz.f32.f32 %d, %a;", "f32 f32", [](V a, V, V) { return N(std::trunc(F(a))); }},
  });
}

TEST(Conformance, ConvertToFloat) {
  Check({
      {"cvt.rn.f32.s32 %d, %a;", "f32 b32", [](V a, V, V) { return B(static_cast<float>(S(a))); }},
      {"cvt.rz.f32.u32 %d, %a;", "f32 b32",
       [](V a, V, V) {
         // All 32 bits fit a double; towards zero is below.
         const auto x = static_cast<double>(static_cast<uint32_t>(a));
         return B(In(FE_TOWARDZERO, [&] { return static_cast<float>(x); }));
       }},
      {"cvt.rn.f32.u64 %d, %a;", "f32 b64",
       [](V a, V, V) { return B(static_cast<float>(static_cast<__float128>(a))); }},
      {"cvt.rn.f64.s64 %d, %a;", "f64 b64",
       [](V a, V, V) { return B(static_cast<double>(static_cast<__float128>(L(a)))); }},
      {"cvt.rn.f64.u64 %d, %a;", "f64 b64",
       [](V a, V, V) { return B(static_cast<double>(static_cast<__float128>(a))); }},
      {"cvt.rp.f64.s64 %d, %a;", "f64 b64",
       [](V a, V, V) {
         const auto exact = static_cast<__float128>(L(a));
         auto x = static_cast<double>(exact);
         if (static_cast<__float128>(x) < exact) x = std::nextafter(x, static_cast<double>(INFINITY));
         return B(x);
       }},
      {"cvt.rn.f32.s8 %d, %a;", "f32 b32", [](V a, V, V) { return B(static_cast<float>(static_cast<int8_t>(a))); }},
      {"cvt.rn.f64.u16 %d, %a;", "f64 b16", [](V a, V, V) { return B(static_cast<double>(a)); }},
      {"cvt.f64.f32 %d, %a;", "f64 f32", [](V a, V, V) { return B(static_cast<double>(F(a))); }, 1e-17},
      {"cvt.rn.f32.f64 %d, %a;", "f32 f64", [](V a, V, V) { return N(static_cast<float>(D(a))); }},
      {"cvt.rz.f32.f64 %d, %a;", "f32 f64",
       [](V a, V, V) { return N(In(FE_TOWARDZERO, [&] { return static_cast<float>(D(a)); })); }},
      {"cvt.rp.f32.f64 %d, %a;", "f32 f64",
       [](V a, V, V) { return N(In(FE_UPWARD, [&] { return static_cast<float>(D(a)); })); }},
      {"cvt.rm.f32.f64 %d, %a;", "f32 f64",
       [](V a, V, V) { return N(In(FE_DOWNWARD, [&] { return static_cast<float>(D(a)); })); }},
      {"cvt.sat.f32.f32 %d, %a;", "f32 f32", [](V a, V, V) { return B(F(a) > 0 ? std::fmin(F(a), 1.0f) : 0.0f); }},
      {"cvt.rn.f16.f32 %d, %a;", "f16 f32", [](V a, V, V) { return HalfOf(static_cast<double>(F(a))); }},
      {"cvt.rn.f16.f64 %d, %a;", "f16 f64", [](V a, V, V) { return HalfOf(D(a)); }},
      {"cvt.f32.f16 %d, %a;", "f32 f16", [](V a, V, V) { return N(static_cast<float>(FromHalf(a))); }},
      {"cvt.f64.f16 %d, %a;", "f64 f16", [](V a, V, V) { return B(FromHalf(a)); }, 1e-17},
      {"cvt.rn.f16.s32 %d, %a;", "f16 b32", [](V a, V, V) { return HalfOf(static_cast<double>(S(a))); }},
      {"cvt.rz.f16.f32 %d, %a;", "f16 f32",
       [](V a, V, V) {
         const double x = static_cast<double>(F(a));
         V h = HalfOf(x);
         if (std::isfinite(x) && std::fabs(FromHalf(h)) > std::fabs(x)) --h;
         return h;
       }},
      {"cvt.rn.bf16.f32 %d, %a;", "b16 f32",
       [](V a, V, V) { return std::isnan(F(a)) ? 0x7fff : (a + 0x7fff + (a >> 16 & 1)) >> 16; }},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", "b32 f32,f32",
       [](V a, V b, V) { return HalfOf(static_cast<double>(F(a))) << 16 | HalfOf(static_cast<double>(F(b))); }},
      {"cvt.rn.bf16x2.f32 %d, %a, %b;", "b32 f32,f32",
       [](V a, V b, V) {
         const auto bf = [](V v) { return std::isnan(F(v)) ? V{0x7fff} : (v + 0x7fff + (v >> 16 & 1)) >> 16; };
         return bf(a) << 16 | bf(b);
       }},
      {"cvt.f32.bf16 %d, %a;", "f32 b16", [](V a, V, V) { return N(F(a << 16)); }},
      {"cvt.rna.tf32.f32 %d, %a;", "b32 f32",
       [](V a, V, V) {
         return std::isnan(F(a)) ? V{0x7fffffff} & ~V{0x1fff} : std::isinf(F(a)) ? a : (a + 0x1000) & ~V{0x1fff};
       }},
      {"mov.b64 %d, {%a, %b};", "b64 b32,b32", [](V a, V b, V) { return b << 32 | a; }},
      {"{ .reg .b32 %x; mov.b64 {%x, %d}, %a; }", "b32 b64", [](V a, V, V) { return a >> 32; }},
      {"{ .reg .b16 %x<4>; mov.b64 {%x0,%x1,%x2,%x3}, %a; mov.b64 %d, {%x3,%x2,%x1,%x0}; }", "b64 b64",
       [](V a, V, V) { return a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 | a >> 48; }},
  });
}

}  // namespace
}  // namespace hawser::conformance
