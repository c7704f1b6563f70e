// SPDX-License-Identifier: Apache-2.0
// Floating-point formats and rounding modes that C++ has no types for.
#ifndef HAWSER_SOFTCUDA_EXEC_NUMERIC_H_
#define HAWSER_SOFTCUDA_EXEC_NUMERIC_H_

#include <cstdint>

namespace hawser::exec {

enum class Rounding : uint8_t { kNearestEven, kZero, kDown, kUp, kNearestAway };

/// A binary format of at most 32 bits.
struct FloatFormat {
  int exponent_bits = 8;
  int mantissa_bits = 23;
  bool has_infinity = true;  ///< e4m3 has none: its top exponent holds numbers and one NaN.
  uint32_t nan = 0x7fffffff;
};
inline constexpr FloatFormat kHalf{5, 10, true, 0x7fff};
inline constexpr FloatFormat kBfloat{8, 7, true, 0x7fff};
inline constexpr FloatFormat kTf32{8, 10, true, 0x3ffff};
inline constexpr FloatFormat kSingle{8, 23, true, 0x7fffffff};
inline constexpr FloatFormat kE4m3{4, 3, false, 0x7f};
inline constexpr FloatFormat kE5m2{5, 2, true, 0x7f};

/// `value` rounded once. `saturate`: what would be infinite becomes the largest finite number.
uint32_t ToFormat(double value, const FloatFormat& format, Rounding rounding, bool saturate = false);
/// Exact.
double FromFormat(uint32_t bits, const FloatFormat& format);

inline double HalfToDouble(uint64_t bits) { return FromFormat(static_cast<uint32_t>(bits & 0xffff), kHalf); }
inline double BfloatToDouble(uint64_t bits) { return FromFormat(static_cast<uint32_t>(bits & 0xffff), kBfloat); }

/// a + b rounded to odd: rounding the result to any format of at most 51 bits equals rounding the exact sum.
double AddToOdd(double a, double b);

/// Rounds to an integral value.
double RoundIntegral(double value, Rounding rounding);

/// The operation in the given rounding mode (kNearestAway is not a mode of arithmetic). T: float, double.
template <typename T>
T RoundedAdd(T a, T b, Rounding rounding);
template <typename T>
T RoundedMul(T a, T b, Rounding rounding);
template <typename T>
T RoundedDiv(T a, T b, Rounding rounding);
template <typename T>
T RoundedFma(T a, T b, T c, Rounding rounding);
template <typename T>
T RoundedSqrt(T a, Rounding rounding);
float RoundedNarrow(double a, Rounding rounding);
/// Integer -> T.
template <typename T>
T RoundedFromInteger(uint64_t value, bool is_signed, Rounding rounding);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_NUMERIC_H_
