// SPDX-License-Identifier: Apache-2.0
// mma of every shape and type of operands that the device knows, by the layouts of fragments in the PTX ISA (9.7.14.5);
// ldmatrix, stmatrix and movmatrix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

constexpr uint32_t kLanes = 32;

struct Place {
  uint32_t row = 0;
  uint32_t column = 0;
};
/// Where element i of a lane lies; group: lane / 4, in: lane % 4.
using Layout = std::function<Place(uint32_t group, uint32_t in, uint32_t i)>;

struct Format {
  const char* name;
  uint32_t bits;      ///< Of an element.
  int exponent_bits;  ///< 0: an integer.
  int mantissa_bits;
};
constexpr Format kF16{"f16", 16, 5, 10};
constexpr Format kBf16{"bf16", 16, 8, 7};
constexpr Format kTf32{"tf32", 32, 8, 23};
constexpr Format kF32{"f32", 32, 8, 23};
constexpr Format kF64{"f64", 64, 11, 52};
constexpr Format kE4m3{"e4m3", 8, 4, 3};
constexpr Format kE5m2{"e5m2", 8, 5, 2};
constexpr Format kS8{"s8", 8, 0, 0};
constexpr Format kU8{"u8", 8, 0, 0};
constexpr Format kS32{"s32", 32, 0, 0};

/// A number that the format holds exactly, as bits.
uint64_t Encode(const Format& format, double value) {
  const uint64_t mask = format.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << format.bits) - 1;
  if (format.exponent_bits == 0) return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // In [0.5, 1).
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction * 2 - 1, format.mantissa_bits));
  const int biased = exponent - 1 + (1 << (format.exponent_bits - 1)) - 1;
  const uint64_t sign = value < 0 ? uint64_t{1} << (format.bits - 1) : 0;
  return sign | static_cast<uint64_t>(biased) << format.mantissa_bits | mantissa;
}

struct Shape {
  uint32_t m, n, k;
  Format a, b, c, d;
  Layout layout_a, layout_b, layout_c;
};

Place LayoutC(uint32_t group, uint32_t in, uint32_t i) { return {group + (i < 2 ? 0 : 8), in * 2 + (i & 1)}; }

// The formulas of the manual, shape by shape.
const Layout kA8x4 = [](uint32_t group, uint32_t in, uint32_t) { return Place{group, in}; };
const Layout kB4 = [](uint32_t group, uint32_t in, uint32_t i) { return Place{in + 4 * i, group}; };
const Layout kA16x4 = [](uint32_t group, uint32_t in, uint32_t i) { return Place{group + (i == 0 ? 0 : 8), in}; };
const Layout kA16x8 = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i == 0 || i == 2 ? group : group + 8, i < 2 ? in : in + 4};
};
const Layout kA16x16Doubles = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i % 2 == 0 ? group : group + 8, i % 2 == 0 ? i * 2 + in : i * 2 - 2 + in};
};
const Layout kA16x8Halves = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i < 2 ? group : group + 8, in * 2 + (i & 1)};
};
const Layout kA16x16Halves = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i < 2 || (i >= 4 && i < 6) ? group : group + 8, in * 2 + (i & 1) + (i < 4 ? 0 : 8)};
};
const Layout kBHalves = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{in * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
};
const Layout kA8x16Bytes = [](uint32_t group, uint32_t in, uint32_t i) { return Place{group, in * 4 + (i & 3)}; };
const Layout kA16x16Bytes = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i < 4 ? group : group + 8, in * 4 + (i & 3)};
};
const Layout kA16x32Bytes = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{i < 4 || (i >= 8 && i < 12) ? group : group + 8, in * 4 + (i & 3) + (i < 8 ? 0 : 16)};
};
const Layout kBBytes = [](uint32_t group, uint32_t in, uint32_t i) {
  return Place{in * 4 + (i & 3) + (i < 4 ? 0 : 16), group};
};

uint32_t Elements(uint32_t rows, uint32_t columns) { return rows * columns / kLanes; }
uint32_t Bytes(const Format& format, uint32_t elements) { return format.bits / 8 * elements; }

/// Every lane's elements one after the other.
std::vector<uint8_t> Fragments(const Format& format, const Layout& layout, uint32_t elements,
                               const std::function<double(Place)>& value) {
  std::vector<uint8_t> bytes;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < elements; ++i) {
      const uint64_t bits = Encode(format, value(layout(lane / 4, lane % 4, i)));
      for (uint32_t k = 0; k < format.bits; k += 8) bytes.push_back(static_cast<uint8_t>(bits >> k));
    }
  }
  return bytes;
}

/// Loads a lane's fragment of `bytes` into registers, and their list.
std::string Load(const std::string& name, const Format& format, uint32_t bytes, std::string* list) {
  const uint32_t width = format.bits == 64 ? 8 : 4;
  const std::string number = std::to_string(width * 8);
  std::string text = ".reg .b" + number + " %" + name + "<16>; ld.param.u64 %at, [" + name +
                     "]; mad.wide.u32 %at, %t, " + std::to_string(bytes) + ", %at;\n";
  *list = "{";
  for (uint32_t i = 0; i < bytes / width; ++i) {
    const std::string reg = "%" + name + std::to_string(i);
    text += "ld.global.b" + number + " " + reg + ", [%at+" + std::to_string(width * i) + "]; ";
    *list += (i == 0 ? "" : ", ") + reg;
  }
  *list += "}";
  return text + "\n";
}

std::string Store(const std::string& name, const Format& format, uint32_t bytes, std::string* list) {
  std::string text = Load(name, format, bytes, list);
  for (size_t at = text.find("ld.global"); at != std::string::npos; at = text.find("ld.global", at)) {
    const size_t type = text.find(' ', at);
    const size_t comma = text.find(", ", type);
    const size_t end = text.find(';', comma);
    const std::string reg = text.substr(type + 1, comma - type - 1);
    const std::string place = text.substr(comma + 2, end - comma - 2);
    text.replace(at, end - at, "st.global" + text.substr(at + 9, type - at - 9) + " " + place + ", " + reg);
  }
  return text;
}

void Multiply(const Shape& s, double offset = 0, bool saturate = false) {
  const std::string name = "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k);
  const std::string op = "mma.sync.aligned." + name + ".row.col" + (saturate ? ".satfinite" : "") + "." + s.d.name +
                         "." + s.a.name + "." + s.b.name + "." + s.c.name;
  SCOPED_TRACE(op);
  const uint32_t count_c = Elements(s.m, s.n);
  const auto value_a = [](Place p) { return static_cast<double>((p.row * 7 + p.column * 3 + p.row / 3) % 9) - 4; };
  const auto value_b = [](Place p) { return static_cast<double>((p.row * 5 + p.column * 2 + p.column / 2) % 7) - 3; };
  const auto value_c = [&](Place p) { return offset + static_cast<double>(p.row) - 3 * static_cast<double>(p.column); };
  const bool no_sign_a = s.a.name == std::string("u8");
  const bool no_sign_b = s.b.name == std::string("u8");
  const auto given_a = [&](Place p) { return no_sign_a ? value_a(p) + 200 : value_a(p); };
  const auto given_b = [&](Place p) { return no_sign_b ? value_b(p) + 250 : value_b(p); };
  std::string a, b, c, d;
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {\n"
      ".reg .b32 %t; .reg .b64 %at; mov.u32 %t, %tid.x;\n" +
      Load("a", s.a, Bytes(s.a, Elements(s.m, s.k)), &a) + Load("b", s.b, Bytes(s.b, Elements(s.k, s.n)), &b) +
      Load("c", s.c, Bytes(s.c, count_c), &c);
  const std::string store = Store("d", s.d, Bytes(s.d, count_c), &d);
  const size_t declared = store.find(';') + 1;
  text += store.substr(0, declared) + "\n" + op + " " + d + ", " + a + ", " + b + ", " + c + ";\n" +
          store.substr(declared) + "ret; }\n";
  exec::Device device(0);
  ASSERT_EQ(device.Load({text}), "");
  ASSERT_THAT(device.program().unsupported(), testing::IsEmpty());
  const uint64_t out = device.Allocate(kLanes * Bytes(s.d, count_c));
  const exec::Outcome outcome =
      device.Run("k", {1, 1, 1}, {kLanes, 1, 1},
                 exec::Arguments()
                     .Add(device.Upload(Fragments(s.a, s.layout_a, Elements(s.m, s.k), given_a)))
                     .Add(device.Upload(Fragments(s.b, s.layout_b, Elements(s.k, s.n), given_b)))
                     .Add(device.Upload(Fragments(s.c, s.layout_c, count_c, value_c)))
                     .Add(out));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  const auto expected = Fragments(s.d, s.layout_c, count_c, [&](Place p) {
    double sum = value_c(p);
    for (uint32_t k = 0; k < s.k; ++k) sum += given_a({p.row, k}) * given_b({k, p.column});
    return saturate ? std::fmin(std::fmax(sum, INT32_MIN), INT32_MAX) : sum;
  });
  EXPECT_EQ(device.Download<uint8_t>(out, expected.size()), expected);
}

TEST(Matrix, Halves) {
  for (const Format& sum : {kF32, kF16}) {
    Multiply({16, 8, 8, kF16, kF16, sum, sum, kA16x8Halves, kBHalves, LayoutC});
    Multiply({16, 8, 16, kF16, kF16, sum, sum, kA16x16Halves, kBHalves, LayoutC});
  }
  Multiply({16, 8, 8, kBf16, kBf16, kF32, kF32, kA16x8Halves, kBHalves, LayoutC});
  Multiply({16, 8, 16, kBf16, kBf16, kF32, kF32, kA16x16Halves, kBHalves, LayoutC});
}

TEST(Matrix, SinglesAndDoubles) {
  Multiply({16, 8, 4, kTf32, kTf32, kF32, kF32, kA16x4, kB4, LayoutC});
  Multiply({16, 8, 8, kTf32, kTf32, kF32, kF32, kA16x8, kB4, LayoutC});
  Multiply({8, 8, 4, kF64, kF64, kF64, kF64, kA8x4, kB4, LayoutC}, 0.1);
  Multiply({16, 8, 4, kF64, kF64, kF64, kF64, kA16x4, kB4, LayoutC}, 0x1p40);
  Multiply({16, 8, 8, kF64, kF64, kF64, kF64, kA16x8, kB4, LayoutC});
  Multiply({16, 8, 16, kF64, kF64, kF64, kF64, kA16x16Doubles, kB4, LayoutC});
}

TEST(Matrix, Bytes) {
  for (const Format& a : {kS8, kU8}) {
    for (const Format& b : {kS8, kU8}) {
      Multiply({8, 8, 16, a, b, kS32, kS32, kA8x16Bytes, kBBytes, LayoutC});
      Multiply({16, 8, 16, a, b, kS32, kS32, kA16x16Bytes, kBBytes, LayoutC});
      Multiply({16, 8, 32, a, b, kS32, kS32, kA16x32Bytes, kBBytes, LayoutC});
      // Around the ends of the range: wrapped, or held there.
      for (const double offset : {2147483600.0, -2147483600.0}) {
        Multiply({16, 8, 32, a, b, kS32, kS32, kA16x32Bytes, kBBytes, LayoutC}, offset, true);
        Multiply({16, 8, 16, a, b, kS32, kS32, kA16x16Bytes, kBBytes, LayoutC}, offset);
      }
    }
  }
}

TEST(Matrix, FloatsOfEightBits) {
  for (const Format& a : {kE4m3, kE5m2}) {
    for (const Format& b : {kE4m3, kE5m2}) {
      for (const Format& sum : {kF32, kF16}) {
        Multiply({16, 8, 32, a, b, sum, sum, kA16x32Bytes, kBBytes, LayoutC});
        Multiply({16, 8, 16, a, b, sum, sum, kA16x16Bytes, kBBytes, LayoutC});
      }
    }
  }
}

TEST(Matrix, TypesThatDoNotGoTogetherAreRefused) {
  for (const std::string op : {"m16n8k32.row.col.s32.e4m3.e4m3.s32", "m16n8k16.row.col.f32.s8.s8.f32",
                               "m16n8k16.row.col.f16.bf16.bf16.f16", "m16n8k16.row.col.f32.s8.f16.f32"}) {
    exec::Device device(0);
    ASSERT_EQ(
        device.Load({".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b32 %r<16>;\n"
                     "mma.sync.aligned." +
                     op + " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3};\nret; }"}),
        "");
    EXPECT_EQ(device.program().unsupported().size(), 1u) << op;
  }
}

/// Runs `body` with %t the lane, %s the address of 512 halves in shared memory (64 rows of 8, numbered through), and
/// %d0 to %d3 loaded with numbers: 0x10000 * (2 * (lane + 32 * register) + 1) + 2 * (lane + 32 * register). Gives the
/// registers of all lanes, or shared memory.
std::vector<uint16_t> Rows(const std::string& body, bool registers) {
  exec::Device device(0);
  std::string text =
      ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .pred %p; .reg .b32 %t, %s, %d<4>, %r<8>; .reg .b16 %h; .reg .b64 %out; .shared .align 16 .b8 s[1024];\n"
      "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %s, s; shl.b32 %r0, %t, 5; add.u32 %r0, %s, %r0;\n";
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    text += "mad.lo.u32 %r1, %t, 16, " + std::to_string(2 * i) + "; add.u32 %r2, %r1, 1; shl.b32 %r2, %r2, 16; " +
            "or.b32 %r1, %r1, %r2; st.shared.b32 [%r0+" + std::to_string(4 * i) + "], %r1;\n";
  }
  for (int i = 0; i < 4; ++i) {
    text += "mad.lo.u32 %r1, %t, 2, " + std::to_string(64 * i) +
            "; add.u32 %r2, %r1, 1; shl.b32 %r2, %r2, 16; or.b32 %d" + std::to_string(i) + ", %r1, %r2;\n";
  }
  text += "bar.warp.sync -1;\n" + body + "\nbar.warp.sync -1;\n";
  if (registers) {
    text += "mad.wide.u32 %out, %t, 16, %out; st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3}; ret; }\n";
  } else {
    text += "mad.wide.u32 %out, %t, 32, %out;\n";
    for (int i = 0; i < 8; ++i) {
      const std::string at = std::to_string(4 * i);
      text += "ld.shared.b32 %r1, [%r0+" + at + "]; st.global.b32 [%out+" + at + "], %r1;\n";
    }
    text += "ret; }\n";
  }
  EXPECT_EQ(device.Load({text}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty()) << body;
  const uint64_t out = device.Allocate(1024);
  const exec::Outcome outcome = device.Run("k", {1, 1, 1}, {kLanes, 1, 1}, exec::Arguments().Add(out));
  EXPECT_TRUE(outcome.ok()) << body << ": " << outcome.fault.Text();
  return device.Download<uint16_t>(out, registers ? 256 : 512);
}

constexpr char kRowAddress[] = "shl.b32 %r3, %t, 4; add.u32 %r3, %s, %r3;\n";  // Lane i's row is row i.

TEST(Matrix, RowsAreLoaded) {
  for (const uint32_t count : {1u, 2u, 4u}) {
    for (const bool trans : {false, true}) {
      const std::string list = count == 1 ? "{%d0}" : count == 2 ? "{%d0, %d1}" : "{%d0, %d1, %d2, %d3}";
      const auto got = Rows(kRowAddress + ("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count)) +
                                (trans ? ".trans" : "") + ".shared.b16 " + list + ", [%r3];",
                            true);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        for (uint32_t r = 0; r < 4; ++r) {
          for (uint32_t e = 0; e < 2; ++e) {
            uint32_t row = lane / 4;
            uint32_t column = lane % 4 * 2 + e;
            if (trans) std::swap(row, column);
            const uint32_t expected = r < count ? 64 * r + 8 * row + column : 64 * r + 2 * lane + e;
            EXPECT_EQ(got[lane * 8 + r * 2 + e], expected) << count << trans << " lane " << lane;
          }
        }
      }
    }
  }
}

TEST(Matrix, RowsAreStored) {
  for (const uint32_t count : {1u, 2u, 4u}) {
    for (const bool trans : {false, true}) {
      const std::string list = count == 1 ? "{%d0}" : count == 2 ? "{%d0, %d1}" : "{%d0, %d1, %d2, %d3}";
      // From row 16 on.
      const auto got = Rows(kRowAddress + ("stmatrix.sync.aligned.m8n8.x" + std::to_string(count)) +
                                (trans ? ".trans" : "") + ".shared.b16 [%r3+256], " + list + ";",
                            false);
      for (uint32_t at = 0; at < 512; ++at) {
        uint32_t expected = at;
        if (at >= 128 && at < 128 + 64 * count) {
          const uint32_t r = (at - 128) / 64;
          uint32_t row = at % 64 / 8;
          uint32_t column = at % 8;
          if (trans) std::swap(row, column);
          expected = 64 * r + 2 * (row * 4 + column / 2) + column % 2;
        }
        EXPECT_EQ(got[at], expected) << count << trans << " at " << at;
      }
    }
  }
}

TEST(Matrix, FragmentsAreTransposed) {
  const auto got =
      Rows("movmatrix.sync.aligned.m8n8.trans.b16 %d1, %d0; movmatrix.sync.aligned.m8n8.trans.b16 %d0, %d0;", true);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t e = 0; e < 2; ++e) {
      // Element (row, column) is numbered 8 * row + column before.
      const uint32_t expected = 8 * (lane % 4 * 2 + e) + lane / 4;
      EXPECT_EQ(got[lane * 8 + e], expected);
      EXPECT_EQ(got[lane * 8 + 2 + e], expected);
    }
  }
}

}  // namespace
}  // namespace hawser::conformance
