// SPDX-License-Identifier: Apache-2.0
// The .approx functions: within the error that the PTX manual allows, with and without .ftz, at zeros, infinities, NaN
// and subnormal numbers too.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/conformance/harness.h"
#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

struct Operands {
  float a = 0;
  float b = 0;
};

/// %d of `instruction` for %a and %b of each operand pair.
std::vector<float> Execute(const std::string& instruction, const std::vector<Operands>& in) {
  exec::Device device(0);
  const std::string text =
      ".version 8.4\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"
      ".reg .pred %outside; .reg .b32 %i, %n, %t; .reg .b64 %at, %in, %out; .reg .f32 %a, %b, %d;\n"
      "mov.u32 %i, %tid.x; mov.u32 %t, %ctaid.x; mad.lo.u32 %i, %t, 128, %i; ld.param.u32 %n, [n];\n"
      "setp.ge.u32 %outside, %i, %n; @%outside exit;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mad.wide.u32 %at, %i, 8, %in;\n"
      "ld.global.v2.f32 {%a, %b}, [%at];\n" +
      instruction + "\nmad.wide.u32 %at, %i, 4, %out; st.global.f32 [%at], %d; ret; }\n";
  EXPECT_EQ(device.Load({text}), "") << instruction;
  EXPECT_TRUE(device.program().unsupported().empty()) << instruction;
  const auto count = static_cast<uint32_t>(in.size());
  const uint64_t in_at = device.Upload(in);
  const uint64_t out_at = device.Allocate(4 * in.size());
  const exec::Outcome outcome =
      device.Run("k", {(count + 127) / 128, 1, 1}, {128, 1, 1}, exec::Arguments().Add(in_at).Add(out_at).Add(count));
  EXPECT_TRUE(outcome.ok()) << instruction << ": " << outcome.fault.Text();
  return device.Download<float>(out_at, in.size());
}

/// Every exponent with some mantissas, of both signs; infinities; NaN.
std::vector<Operands> Everywhere() {
  std::mt19937 random(3);
  std::vector<Operands> in;
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    const auto any = [&] { return static_cast<uint32_t>(random() & 0x7fffff); };
    for (const uint32_t mantissa : {0u, 1u, 0x400000u, 0x7fffffu, any(), any()}) {
      in.push_back({std::bit_cast<float>(exponent << 23 | mantissa), 0});
      in.push_back({-in.back().a, 0});
    }
  }
  in.push_back({INFINITY, 0});
  in.push_back({-INFINITY, 0});
  in.push_back({NAN, 0});
  return in;
}

/// `count` numbers in [-limit, limit].
std::vector<Operands> Between(float limit, int count) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> range(-limit, limit);
  std::vector<Operands> in;
  for (int i = 0; i < count; ++i) in.push_back({range(random), 0});
  return in;
}

double Flushed(double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }
/// The distance of floats at x.
double Ulp(double x) {
  return x == 0 || !std::isfinite(x) ? 0x1p-149 : std::ldexp(1.0, std::max(std::ilogb(x), -126) - 23);
}

/// `got` is within `error` of the exact result; a zero has its sign.
bool Within(float got, double exact, double error, bool ftz) {
  if (std::isnan(exact)) return std::isnan(got);
  if (std::fabs(exact) >= 0x1.ffffffp127) exact = std::copysign(static_cast<double>(INFINITY), exact);
  if (std::isinf(exact)) return static_cast<double>(got) == exact;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact);
  if (ftz && got == 0 && Flushed(exact) == 0) return std::signbit(got) == std::signbit(exact);
  if (ftz && std::fpclassify(got) == FP_SUBNORMAL) return false;
  // Half a step of the result's own rounding, which matters among subnormal numbers.
  return std::fabs(static_cast<double>(got) - exact) <= error + 0x1p-150;
}

using Function = std::function<double(double x)>;
using Error = std::function<double(double x, double y)>;

/// function.approx.f32 and its .ftz form against `exact`. `error`: what the manual allows for f(x) = y.
void CheckFunction(const std::string& name, const std::vector<Operands>& in, const Function& exact, const Error& error,
                   bool has_ftz = true) {
  for (const bool ftz : {false, true}) {
    if (ftz && !has_ftz) continue;
    const std::string instruction = name + ".approx" + (ftz ? ".ftz" : "") + ".f32 %d, %a;";
    const std::vector<float> out = Execute(instruction, in);
    int shown = 0;
    for (size_t i = 0; i < in.size() && shown < 5; ++i) {
      const auto given = static_cast<double>(in[i].a);
      const double x = ftz ? Flushed(given) : given;
      const double y = exact(x);
      if (Within(out[i], y, error(x, y), ftz)) continue;
      ++shown;
      ADD_FAILURE() << instruction << " of " << std::hexfloat << in[i].a << ": got " << out[i] << ", exactly " << y;
    }
  }
}

Error Relative(double bound) {
  return [bound](double, double y) { return bound * std::fabs(y); };
}

TEST(Approximations, Roots) {
  CheckFunction(
      "sqrt", Everywhere(), [](double x) { return std::sqrt(x); }, Relative(0x1p-23));
  CheckFunction(
      "rsqrt", Everywhere(), [](double x) { return 1 / std::sqrt(x); }, Relative(std::exp2(-22.9)));
  CheckFunction(
      "rcp", Everywhere(), [](double x) { return 1 / x; }, [](double, double y) { return Ulp(y); });
}

TEST(Approximations, PowersAndLogarithms) {
  const auto two_ulp = [](double, double y) { return 2 * Ulp(y); };
  CheckFunction(
      "ex2", Everywhere(), [](double x) { return std::exp2(x); }, two_ulp);
  CheckFunction(
      "ex2", Between(150, 2000), [](double x) { return std::exp2(x); }, two_ulp);
  const auto logarithm = [](double x, double y) { return x > 0.5 && x < 2 ? 0x1p-22 : 0x1p-22 * std::fabs(y); };
  CheckFunction(
      "lg2", Everywhere(), [](double x) { return std::log2(x); }, logarithm);
  CheckFunction(
      "lg2", Between(4, 2000), [](double x) { return std::log2(x); }, logarithm);
}

TEST(Approximations, Trigonometry) {
  constexpr double kPi = 3.14159265358979323846;
  const auto error = [](double x, double) { return std::exp2(std::fabs(x) <= 2 * kPi ? -20.5 : -14.7); };
  std::vector<Operands> in = Between(static_cast<float>(2 * kPi), 2000);
  for (const Operands& more : Between(314.0f, 2000)) in.push_back(more);
  // Nothing is promised for finite numbers beyond 100 pi.
  for (const Operands& more : Everywhere()) {
    if (!(std::fabs(more.a) > 314.0f) || std::isinf(more.a)) in.push_back(more);
  }
  CheckFunction(
      "sin", in, [](double x) { return std::sin(x); }, error);
  CheckFunction(
      "cos", in, [](double x) { return std::cos(x); }, error);
  CheckFunction(
      "tanh", Everywhere(), [](double x) { return std::tanh(x); }, Relative(0x1p-11), false);
}

TEST(Approximations, Quotients) {
  std::mt19937 random(9);
  const std::vector<Operands> numbers = Everywhere();
  std::vector<Operands> all;
  for (const Operands& a : numbers) {
    for (int k = 0; k < 4; ++k) all.push_back({a.a, numbers[random() % numbers.size()].a});
    // Quotients in the middle are rare otherwise.
    all.push_back({a.a, a.a * 1.37f});
  }
  for (const std::string form : {"full", "full.ftz", "approx", "approx.ftz"}) {
    const bool ftz = form.ends_with("ftz");
    // .approx promises nothing for subnormal divisors; of those beyond 2^126 below.
    std::vector<Operands> in;
    for (const Operands& o : all) {
      const float size = std::fabs(o.b);
      if (form.starts_with("full") || (size >= 0x1p-126f && size <= 0x1p126f)) in.push_back(o);
    }
    const std::vector<float> out = Execute("div." + form + ".f32 %d, %a, %b;", in);
    int shown = 0;
    for (size_t i = 0; i < in.size() && shown < 5; ++i) {
      const auto a = static_cast<double>(in[i].a);
      const auto b = static_cast<double>(in[i].b);
      const double y = ftz ? Flushed(a) / Flushed(b) : a / b;
      if (Within(out[i], y, 2 * Ulp(y), ftz)) continue;
      ++shown;
      ADD_FAILURE() << "div." << form << std::hexfloat << " " << in[i].a << " / " << in[i].b << ": got " << out[i];
    }
  }
}

TEST(Approximations, QuotientsByDivisorsBeyondReach) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<Operands> in = {{1.0f, 0x1.8p126f},     {0x1p127f, 0x1p127f}, {-1.0f, 0x1.8p126f},
                                    {infinity, 0x1.8p126f}, {3.0f, infinity},     {0x1p126f, 0x1p126f},
                                    {1.0f, 0.0f},           {infinity, -2.0f}};
  for (const std::string form : {"approx", "approx.ftz"}) {
    const std::vector<float> out = Execute("div." + form + ".f32 %d, %a, %b;", in);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 0.0f) << form << " " << i;
    EXPECT_TRUE(std::isnan(out[3])) << form;
    EXPECT_EQ(out[4], 0.0f) << form;
    EXPECT_EQ(out[5], 1.0f) << form << ": 2^126 is within reach";
    EXPECT_EQ(out[6], infinity) << form;
    EXPECT_EQ(out[7], -infinity) << form;
  }
  // The full range has no such corner.
  EXPECT_EQ(Execute("div.full.f32 %d, %a, %b;", {{0x1p127f, 0x1p127f}})[0], 1.0f);
}

// The manual's tables, as bits. NaN: any.
TEST(Approximations, SpecialValues) {
  constexpr uint32_t kMinus = 0x80000000;
  constexpr uint32_t kOne = 0x3f800000;
  constexpr uint32_t kInfinite = 0x7f800000;
  constexpr uint32_t kNan = 0x7fffffff;
  constexpr uint32_t kTiny = 0x00000100;  // Subnormal.
  struct Row {
    const char* instruction;
    uint32_t in;
    uint32_t out;
  };
  const std::vector<Row> rows = {
      {"sqrt.approx", kMinus, kMinus},
      {"sqrt.approx", kMinus | kOne, kNan},
      {"sqrt.approx", kMinus | kTiny, kNan},
      {"sqrt.approx.ftz", kMinus | kTiny, kMinus},
      {"sqrt.approx.ftz", kTiny, 0},
      {"sqrt.approx", kMinus | kInfinite, kNan},
      {"rcp.approx", kMinus | kInfinite, kMinus},
      {"rcp.approx", kMinus, kMinus | kInfinite},
      {"rcp.approx", kInfinite, 0},
      {"rcp.approx.ftz", kTiny, kInfinite},
      {"rcp.approx.ftz", 0xff000000, kMinus},  // 1 / -2^127 is subnormal.
      {"rcp.approx", 0xff000000, 0x80400000},
      {"rsqrt.approx", kMinus, kMinus | kInfinite},
      {"rsqrt.approx", kMinus | kOne, kNan},
      {"rsqrt.approx", kInfinite, 0},
      {"rsqrt.approx.ftz", kMinus | kTiny, kMinus | kInfinite},
      {"sin.approx", kMinus, kMinus},
      {"sin.approx", kInfinite, kNan},
      {"sin.approx.ftz", kMinus | kTiny, kMinus},
      {"cos.approx", kMinus, kOne},
      {"cos.approx", kMinus | kInfinite, kNan},
      {"ex2.approx", kMinus | kInfinite, 0},
      {"ex2.approx", kMinus, kOne},
      {"ex2.approx", kInfinite, kInfinite},
      {"ex2.approx.ftz", 0xc2fe0000, 0},  // 2^-127
      {"ex2.approx", 0xc2fe0000, 0x00400000},
      {"lg2.approx", kMinus, kMinus | kInfinite},
      {"lg2.approx", kTiny, 0xc30d0000},  // 2^-141
      {"lg2.approx.ftz", kTiny, kMinus | kInfinite},
      {"lg2.approx", kMinus | kOne, kNan},
      {"lg2.approx", kInfinite, kInfinite},
      {"tanh.approx", kInfinite, kOne},
      {"tanh.approx", kMinus | kInfinite, kMinus | kOne},
      {"tanh.approx", kMinus, kMinus},
      {"tanh.approx", kTiny, kTiny},
      {"ex2.approx", kNan, kNan},
      {"rcp.approx", kNan, kNan},
  };
  for (const Row& row : rows) {
    const float out = Execute(std::string(row.instruction) + ".f32 %d, %a;", {{std::bit_cast<float>(row.in), 0}})[0];
    if (row.out == kNan) {
      EXPECT_TRUE(std::isnan(out)) << row.instruction << std::hex << " of " << row.in;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(out), row.out) << row.instruction << std::hex << " of " << row.in;
    }
  }
}

TEST(Approximations, Doubles) {
  Check({
      {"rsqrt.approx.f64 %d, %a;", "f64 f64", [](V a, V, V) { return B(1 / std::sqrt(D(a))); }, 1e-15},
      {"rsqrt.approx.ftz.f64 %d, %a;", "f64 f64",
       [](V a, V, V) {
         const double x = std::fabs(D(a)) < 0x1p-1022 ? std::copysign(0.0, D(a)) : D(a);
         return B(1 / std::sqrt(x));
       },
       1e-5},
      // The lower word of the result is zero.
      {"{ .reg .f64 %x; .reg .b32 %y; rsqrt.approx.ftz.f64 %x, %a; mov.b64 {%d, %y}, %x; }", "b32 f64",
       [](V, V, V) { return V{0}; }},
  });
}

}  // namespace
}  // namespace hawser::conformance
