// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating-point formats as their definitions say, for expected values; no types of the compiler.
#ifndef HAWSER_TESTS_CONFORMANCE_FORMATS_H_
#define HAWSER_TESTS_CONFORMANCE_FORMATS_H_

#include <algorithm>
#include <cmath>

#include "tests/conformance/harness.h"

namespace hawser::conformance {

/// A format with `digits` bits behind the point whose normal numbers are from 2^least to below 2^above.
struct Format16 {
  int digits = 10;
  int least = -14;
  int above = 16;
};
inline constexpr Format16 kHalfFormat{10, -14, 16};
inline constexpr Format16 kBfloatFormat{7, -126, 128};

/// The number that the low 16 bits mean.
inline double Value16(V bits, const Format16& format) {
  const V mantissa = bits & ((V{1} << format.digits) - 1);
  const int exponent = static_cast<int>((bits & 0x7fff) >> format.digits);
  const auto fraction = std::ldexp(static_cast<double>(mantissa), -format.digits);
  double value = 0;
  if (exponent == format.above - format.least + 1) {
    value = mantissa != 0 ? static_cast<double>(NAN) : static_cast<double>(INFINITY);
  } else {
    value = exponent == 0 ? std::ldexp(fraction, format.least) : std::ldexp(1 + fraction, format.least + exponent - 1);
  }
  return std::copysign(value, (bits & 0x8000) != 0 ? -1.0 : 1.0);
}

/// `x` as 16 bits, to the nearest, ties to even; every NaN is 0x7fff.
inline V Bits16(double x, const Format16& format) {
  if (std::isnan(x)) return 0x7fff;
  const V sign = std::signbit(x) ? 0x8000 : 0;
  const V infinity = static_cast<V>(format.above - format.least + 1) << format.digits;
  x = std::fabs(x);
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | infinity;
  const int exponent = std::max(std::ilogb(x), format.least);
  const double units = std::nearbyint(std::ldexp(x, format.digits - exponent));  // Up to 2 * 2^digits.
  // The hidden bit and a carry go into the exponent's place by themselves.
  const V code = (static_cast<V>(exponent - format.least) << format.digits) + static_cast<V>(units);
  return sign | std::min(code, infinity);
}

/// a + b for a rounding to few bits: exact, or at least on the same side of everything that such a rounding decides by.
/// At most 16 bits of each operand count.
inline double SumFor16(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a + b;
  if (std::fabs(a) < std::fabs(b)) std::swap(a, b);
  const double least = std::fabs(a) * 0x1p-30;
  return a + (std::fabs(b) < least ? std::copysign(least, b) : b);
}

}  // namespace hawser::conformance

#endif  // HAWSER_TESTS_CONFORMANCE_FORMATS_H_
