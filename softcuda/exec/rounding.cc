// SPDX-License-Identifier: Apache-2.0
// Arithmetic in the processor's rounding modes. Compiled with -frounding-math; operands pass through volatiles so that
// nothing moves across the change of mode.
#include <cfenv>
#include <cmath>

#include "softcuda/exec/numeric.h"

namespace hawser::exec {
namespace {

class ScopedRounding {
 public:
  explicit ScopedRounding(Rounding rounding) : before_(std::fegetround()) {
    switch (rounding) {
      case Rounding::kZero:
        std::fesetround(FE_TOWARDZERO);
        break;
      case Rounding::kDown:
        std::fesetround(FE_DOWNWARD);
        break;
      case Rounding::kUp:
        std::fesetround(FE_UPWARD);
        break;
      default:
        std::fesetround(FE_TONEAREST);
    }
  }
  ~ScopedRounding() { std::fesetround(before_); }
  ScopedRounding(const ScopedRounding&) = delete;
  ScopedRounding& operator=(const ScopedRounding&) = delete;

 private:
  int before_;
};

}  // namespace

template <typename T>
T RoundedAdd(T a, T b, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile T x = a;
  volatile T y = b;
  volatile T result = x + y;
  return result;
}

template <typename T>
T RoundedMul(T a, T b, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile T x = a;
  volatile T y = b;
  volatile T result = x * y;
  return result;
}

template <typename T>
T RoundedDiv(T a, T b, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile T x = a;
  volatile T y = b;
  volatile T result = x / y;
  return result;
}

template <typename T>
T RoundedFma(T a, T b, T c, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile T x = a;
  volatile T y = b;
  volatile T z = c;
  volatile T result = std::fma(x, y, z);
  return result;
}

template <typename T>
T RoundedSqrt(T a, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile T x = a;
  volatile T result = std::sqrt(x);
  return result;
}

float RoundedNarrow(double a, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile double x = a;
  volatile float result = static_cast<float>(x);
  return result;
}

template <typename T>
T RoundedFromInteger(uint64_t value, bool is_signed, Rounding rounding) {
  const ScopedRounding scope(rounding);
  volatile uint64_t magnitude = value;
  if (is_signed) {
    volatile auto x = static_cast<int64_t>(magnitude);
    volatile T result = static_cast<T>(x);
    return result;
  }
  // Halves first: an unsigned 64-bit conversion would be built from signed ones in ways that round twice.
  if (value >> 63 == 0) {
    volatile auto x = static_cast<int64_t>(magnitude);
    volatile T result = static_cast<T>(x);
    return result;
  }
  volatile auto x = static_cast<int64_t>((value >> 1) | (value & 1));  // Sticky bit: one rounding.
  volatile T half = static_cast<T>(x);
  volatile T result = half * T{2};
  return result;
}

template float RoundedAdd(float, float, Rounding);
template double RoundedAdd(double, double, Rounding);
template float RoundedMul(float, float, Rounding);
template double RoundedMul(double, double, Rounding);
template float RoundedDiv(float, float, Rounding);
template double RoundedDiv(double, double, Rounding);
template float RoundedFma(float, float, float, Rounding);
template double RoundedFma(double, double, double, Rounding);
template float RoundedSqrt(float, Rounding);
template double RoundedSqrt(double, Rounding);
template float RoundedFromInteger(uint64_t, bool, Rounding);
template double RoundedFromInteger(uint64_t, bool, Rounding);

}  // namespace hawser::exec
