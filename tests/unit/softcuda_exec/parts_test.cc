// SPDX-License-Identifier: Apache-2.0
// Small parts of the executor: number formats, printf.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "softcuda/exec/numeric.h"
#include "softcuda/exec/print_format.h"

namespace hawser::exec {
namespace {

TEST(Numeric, SingleRoundsAsTheProcessorDoes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Exponents around those of a float, so that subnormals and overflow come up.
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const double x = std::ldexp(mantissa, static_cast<int>(random() % 300) - 160) * (random() % 2 == 0 ? 1 : -1);
    ASSERT_EQ(ToFormat(x, kSingle, Rounding::kNearestEven), std::bit_cast<uint32_t>(static_cast<float>(x))) << x;
    ASSERT_EQ(ToFormat(x, kSingle, Rounding::kUp), std::bit_cast<uint32_t>(RoundedNarrow(x, Rounding::kUp))) << x;
    ASSERT_EQ(ToFormat(x, kSingle, Rounding::kDown), std::bit_cast<uint32_t>(RoundedNarrow(x, Rounding::kDown))) << x;
    ASSERT_EQ(ToFormat(x, kSingle, Rounding::kZero), std::bit_cast<uint32_t>(RoundedNarrow(x, Rounding::kZero))) << x;
  }
}

TEST(Numeric, EveryHalfSurvivesTheWayThroughDouble) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const FloatFormat& format : {kHalf, kBfloat}) {
      const double value = FromFormat(bits, format);
      if (std::isnan(value)) continue;
      EXPECT_EQ(ToFormat(value, format, Rounding::kNearestEven), bits);
    }
  }
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    for (const FloatFormat& format : {kE4m3, kE5m2}) {
      const double value = FromFormat(bits, format);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(ToFormat(value, format, Rounding::kNearestEven, true), bits);
    }
  }
  EXPECT_EQ(ToFormat(1e9, kE4m3, Rounding::kNearestEven, true), 0x7eu);
  EXPECT_EQ(FromFormat(0x7e, kE4m3), 448.0);
}

TEST(Numeric, HalfEdges) {
  EXPECT_EQ(ToFormat(65519.0, kHalf, Rounding::kNearestEven), 0x7bffu);
  EXPECT_EQ(ToFormat(65520.0, kHalf, Rounding::kNearestEven), 0x7c00u);
  EXPECT_EQ(ToFormat(1e6, kHalf, Rounding::kZero), 0x7bffu);
  EXPECT_EQ(ToFormat(1e6, kHalf, Rounding::kNearestEven, true), 0x7bffu);
  EXPECT_EQ(ToFormat(0x1p-25, kHalf, Rounding::kNearestEven), 0u);  // Half of the least: to even.
  EXPECT_EQ(ToFormat(0x1.8p-25, kHalf, Rounding::kNearestEven), 1u);
  EXPECT_EQ(ToFormat(-0x1p-60, kHalf, Rounding::kDown), 0x8001u);
  EXPECT_EQ(ToFormat(std::numeric_limits<double>::quiet_NaN(), kHalf, Rounding::kNearestEven), 0x7fffu);
}

TEST(Numeric, SumsRoundedToOddRoundOnce) {
  // 1 + 2^-11 is a tie for a half; a tail far below must break it.
  EXPECT_EQ(ToFormat(AddToOdd(1 + 0x1p-11, 0x1p-70), kHalf, Rounding::kNearestEven), 0x3c01u);
  EXPECT_EQ(ToFormat(AddToOdd(1 + 0x1p-11, -0x1p-70), kHalf, Rounding::kNearestEven), 0x3c00u);
  EXPECT_EQ(AddToOdd(1, 2), 3.0);
}

Printed Print(std::string_view format, const std::vector<uint64_t>& words) {
  const ArgumentReader argument = [&](uint32_t offset, uint32_t size) -> std::optional<uint64_t> {
    if (offset + size > words.size() * 8) return std::nullopt;
    uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const char*>(words.data()) + offset, size);
    return value;
  };
  const StringReader string = [](uint64_t) { return std::optional<std::string>("text"); };
  return FormatPrint(format, argument, string);
}

TEST(PrintFormat, Conversions) {
  const uint64_t two = uint64_t{0xffffffff} | uint64_t{7} << 32;  // Two 32-bit arguments in one word.
  EXPECT_EQ(Print("%d %u|", {two}).text, "-1 7|");
  EXPECT_EQ(Print("%5.1f", {std::bit_cast<uint64_t>(3.25)}).text, "  3.2");
  EXPECT_EQ(Print("%lld %#x", {static_cast<uint64_t>(-5), 255}).text, "-5 0xff");
  EXPECT_EQ(Print("%s/%6s/%p", {1, 1, 0xabc}).text, "text/  text/0xabc");
  EXPECT_EQ(Print("%c%%%-4d|", {'x' | uint64_t{3} << 32}).text, "x%3   |");
  EXPECT_EQ(Print("%*d", {5 | uint64_t{42} << 32}).text, "   42");
  EXPECT_EQ(Print("%hhd", {0x1ff}).text, "-1");
  EXPECT_EQ(Print("%d", {1}).arguments, 1);
}

TEST(PrintFormat, HostileFormats) {
  EXPECT_EQ(Print("%", {}).text, "%");
  EXPECT_EQ(Print("%5", {}).text, "%5");
  EXPECT_EQ(Print("%y %n%d", {1, 2}).text, "%y 2");
  EXPECT_EQ(Print("%s", {0}).text, "(null)");
  EXPECT_LE(Print("%999999999d", {1}).text.size(), 1024u);
  EXPECT_LE(Print("%.999999999f", {std::bit_cast<uint64_t>(1e300)}).text.size(), 2560u);
  EXPECT_EQ(Print("a%d", {}).text.substr(0, 1), "a");  // No argument there: stops.
  EXPECT_LE(Print(std::string(200000, 'x'), {}).text.size(), 65536u);
}

}  // namespace
}  // namespace hawser::exec
