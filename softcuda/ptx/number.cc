// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/number.h"

#include <bit>
#include <charconv>
#include <string>

namespace hawser::ptx {
namespace {

std::optional<uint64_t> Digits(std::string_view text, int base) {
  uint64_t value = 0;
  if (text.empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Number> ParseNumber(std::string_view text) {
  Number number;
  if (text.empty()) return std::nullopt;
  const char second = text.size() > 1 ? text[1] : '\0';
  if (text[0] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    const bool is_double = second == 'd' || second == 'D';
    if (text.size() != (is_double ? 18u : 10u)) return std::nullopt;
    const auto bits = Digits(text.substr(2), 16);
    if (!bits) return std::nullopt;
    number.kind = is_double ? Number::Kind::kFloat64 : Number::Kind::kFloat32;
    number.bits = *bits;
    return number;
  }
  const bool hex = second == 'x' || second == 'X';
  if (!hex && text.find_first_of(".eE") != std::string_view::npos) {
    const std::string copy(text);
    double value = 0;
    const auto [end, error] = std::from_chars(copy.data(), copy.data() + copy.size(), value);
    if (error == std::errc::invalid_argument || end != copy.data() + copy.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) return std::nullopt;
    number.kind = Number::Kind::kFloat64;
    number.bits = std::bit_cast<uint64_t>(value);
    return number;
  }
  if (text.back() == 'U') {
    number.is_unsigned = true;
    text.remove_suffix(1);
    if (text.empty()) return std::nullopt;
  }
  std::optional<uint64_t> value;
  if (text.size() > 2 && text[0] == '0' && hex) {
    value = Digits(text.substr(2), 16);
  } else if (text.size() > 2 && text[0] == '0' && (second == 'b' || second == 'B')) {
    value = Digits(text.substr(2), 2);
  } else if (text.size() > 1 && text[0] == '0') {
    value = Digits(text.substr(1), 8);
  } else {
    value = Digits(text, 10);
  }
  if (!value) return std::nullopt;
  number.bits = *value;
  number.is_unsigned = number.is_unsigned || (*value >> 63) != 0;
  return number;
}

uint32_t Float32Bits(const Number& number) {
  switch (number.kind) {
    case Number::Kind::kFloat32:
      return static_cast<uint32_t>(number.bits);
    case Number::Kind::kFloat64:
      return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
    case Number::Kind::kInteger:
      return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(number.bits)));
  }
  return 0;
}

uint64_t Float64Bits(const Number& number) {
  switch (number.kind) {
    case Number::Kind::kFloat32:
      return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(number.bits))));
    case Number::Kind::kFloat64:
      return number.bits;
    case Number::Kind::kInteger:
      return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(number.bits)));
  }
  return 0;
}

}  // namespace hawser::ptx
