// SPDX-License-Identifier: Apache-2.0
// PTX constants: 42, 0x2aU, 0b101010, 052, 1.5e3, 0f3f800000, 0d3ff0000000000000 (PTX ISA 4.5).
#ifndef HAWSER_SOFTCUDA_PTX_NUMBER_H_
#define HAWSER_SOFTCUDA_PTX_NUMBER_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace hawser::ptx {

struct Number {
  enum class Kind : uint8_t { kInteger, kFloat32, kFloat64 };
  Kind kind = Kind::kInteger;
  bool is_unsigned = false;  ///< Had a U suffix, or does not fit in 63 bits.
  uint64_t bits = 0;
};

/// None when it is no number or does not fit in 64 bits.
std::optional<Number> ParseNumber(std::string_view text);

/// The same value as 32-bit float bits: for a 64-bit constant where an f32 is wanted.
uint32_t Float32Bits(const Number& number);
/// As 64-bit float bits.
uint64_t Float64Bits(const Number& number);

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_NUMBER_H_
