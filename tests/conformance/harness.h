// SPDX-License-Identifier: Apache-2.0
// One PTX instruction against one C++ function over many operands. A case is one line:
//   Case("add.sat.s32 %d, %a, %b;", "b32 b32,b32", [](V a, V b, V) { return ...; })
// The signature gives the register types of %d and the operands: b16 b32 b64 f16 bf16 f16x2 bf16x2 f32 f64 pred, where
// the float types choose operands that are interesting as such. Values travel as bits in 64-bit words.
#ifndef HAWSER_TESTS_CONFORMANCE_HARNESS_H_
#define HAWSER_TESTS_CONFORMANCE_HARNESS_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hawser::conformance {

using V = uint64_t;
using Expected = std::function<V(V a, V b, V c)>;

struct Case {
  Case(std::string text, std::string types, Expected function, double error = 0)
      : ptx(std::move(text)), signature(std::move(types)), expected(std::move(function)), tolerance(error) {}

  std::string ptx;
  std::string signature;
  Expected expected;
  double tolerance;  ///< Relative, for approximations; 0: bit for bit (any NaN equals any NaN only for tolerance > 0).
};

/// Runs all cases in one module and reports every mismatch as a test failure (a few per case).
void Check(const std::vector<Case>& cases);

inline float F(V bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double D(V bits) { return std::bit_cast<double>(bits); }
inline V B(float value) { return std::bit_cast<uint32_t>(value); }
inline V B(double value) { return std::bit_cast<uint64_t>(value); }
inline int32_t S(V value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
inline int64_t L(V value) { return static_cast<int64_t>(value); }
inline int16_t H(V value) { return static_cast<int16_t>(static_cast<uint16_t>(value)); }
/// A result of f32 arithmetic: every NaN is the canonical one.
inline V N(float value) { return value != value ? 0x7fffffff : B(value); }

}  // namespace hawser::conformance

#endif  // HAWSER_TESTS_CONFORMANCE_HARNESS_H_
