// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/numeric.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hawser::exec {

uint32_t ToFormat(double value, const FloatFormat& format, Rounding rounding, bool saturate) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> 63) != 0;
  const uint32_t sign = negative ? 1u << (width - 1) : 0;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t top = (1u << format.exponent_bits) - 1;
  const uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const uint32_t infinity = top << format.mantissa_bits;
  // e4m3's largest number is the code before its NaN.
  const uint32_t largest = format.has_infinity ? infinity - 1 : (infinity | mantissa_mask) - 1;
  if (std::isnan(value)) return format.nan;
  if (std::isinf(value)) return sign | (saturate || !format.has_infinity ? largest : infinity);
  if (value == 0) return sign;

  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);     // [0.5, 1)
  auto significand = static_cast<uint64_t>(std::ldexp(fraction, 53));  // 53 bits
  int biased = exponent - 1 + bias;
  int drop = 52 - format.mantissa_bits;
  if (biased <= 0) {
    drop += 1 - biased;  // Subnormal: fewer bits stay.
    biased = 0;
  }
  uint64_t kept = 0;
  uint64_t rest = significand;
  uint64_t half = 0;
  if (drop < 63) {
    kept = significand >> drop;
    rest = significand & ((uint64_t{1} << drop) - 1);
    half = uint64_t{1} << (drop - 1);
  } else {
    rest = 1;
    half = 2;
  }
  bool up = false;
  switch (rounding) {
    case Rounding::kNearestEven:
      up = rest > half || (rest == half && (kept & 1) != 0);
      break;
    case Rounding::kNearestAway:
      up = rest >= half;
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = negative && rest != 0;
      break;
    case Rounding::kUp:
      up = !negative && rest != 0;
      break;
  }
  if (up) ++kept;
  // For normal numbers `kept` includes the hidden bit, which the addition carries into the exponent.
  uint64_t code = biased == 0 ? kept : (static_cast<uint64_t>(biased - 1) << format.mantissa_bits) + kept;
  if (code > largest) {
    const bool towards_zero = rounding == Rounding::kZero || (rounding == Rounding::kDown && !negative) ||
                              (rounding == Rounding::kUp && negative);
    if (saturate || towards_zero) {
      code = largest;
    } else {
      code = format.has_infinity ? infinity : (infinity | mantissa_mask);
    }
  }
  return sign | static_cast<uint32_t>(code);
}

double FromFormat(uint32_t bits, const FloatFormat& format) {
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> (width - 1) & 1) != 0;
  const uint32_t top = (1u << format.exponent_bits) - 1;
  const uint32_t exponent = (bits >> format.mantissa_bits) & top;
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == top && format.has_infinity) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == top && mantissa == (1u << format.mantissa_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | (1u << format.mantissa_bits)),
                       static_cast<int>(exponent) - bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

double AddToOdd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  if (error == 0) return sum;
  auto bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) != 0) return sum;
  // The exact sum lies between `sum` and its neighbour towards the error; the odd one of the two is wanted.
  const bool away = (error > 0) == (sum > 0);
  bits = away ? bits + 1 : bits - 1;
  return std::bit_cast<double>(bits);
}

double RoundIntegral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNearestAway:
      return std::round(value);
    default:
      return std::nearbyint(value);
  }
}

}  // namespace hawser::exec
