// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (c == ' ' || c == ',') {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

bool IsPair(const std::string& type) { return type == "f16x2" || type == "bf16x2"; }

uint32_t Bits(const std::string& type) {
  if (type == "pred") return 1;
  return IsPair(type) ? 32 : static_cast<uint32_t>(std::stoul(type.substr(type.find_first_of("0123456789"))));
}

/// Operands worth trying: edges first, then random bits.
std::vector<V> Interesting(const std::string& type) {
  std::vector<V> values;
  const uint32_t bits = Bits(type);
  if (type == "pred") return {0, 1};
  if (IsPair(type)) {
    const std::vector<V> halves = Interesting(type.substr(0, type.size() - 2));
    for (size_t i = 0; i < halves.size(); ++i) values.push_back(halves[i] | halves[(i * 7 + 3) % halves.size()] << 16);
    return values;
  }
  if (type == "f32") {
    for (const float f :
         {0.0f,          1.0f,    1.5f,  2.5f,          0.5f,           3.0f,     100.7f,   16777217.0f, 2147483648.0f,
          4294967296.0f, 9.3e18f, 1e30f, 3.4028235e38f, 1.1754944e-38f, 1e-40f,   1.4e-45f, INFINITY,    65504.0f,
          65520.0f,      6e-8f,   1e-5f, 127.5f,        255.5f,         32767.5f, 0.1f}) {
      values.push_back(B(f));
      values.push_back(B(-f));
    }
    values.push_back(0x7fc00000);
    values.push_back(0xffc01234);
  } else if (type == "f64") {
    for (const double f :
         {0.0,          1.0,    1.5,    2.5,   0.5,      3.0,       100.7,  2147483648.5,
          4294967296.0, 9.3e18, 1.9e19, 1e300, 2.2e-308, 5e-324,    1e-310, static_cast<double>(INFINITY),
          65520.0,      3.5e38, 1e-40,  0.1,   127.5,    16777217.0}) {
      values.push_back(B(f));
      values.push_back(B(-f));
    }
    values.push_back(0x7ff8000000000000);
  } else if (type == "f16") {
    for (const V v :
         {0x0000, 0x3c00, 0x3e00, 0x4100, 0x7bff, 0x0001, 0x0400, 0x03ff, 0x7c00, 0x7e00, 0x2e66, 0x5640, 0x4900}) {
      values.push_back(v);
      values.push_back(v | 0x8000);
    }
  } else if (type == "bf16") {
    for (const V v : {0x0000, 0x3f80, 0x3fc0, 0x4020, 0x7f7f, 0x0001, 0x0080, 0x007f, 0x7f80, 0x7fc0, 0x3dcd, 0x42c9,
                      0x4700, 0x4b80, 0x3300, 0x3b80}) {
      values.push_back(v);
      values.push_back(v | 0x8000);
    }
  } else {
    const V top = V{1} << (bits - 1);
    const V ones = bits == 64 ? ~V{0} : (V{1} << bits) - 1;
    for (const V v : {V{0},
                      V{1},
                      V{2},
                      V{3},
                      V{7},
                      V{8},
                      V{15},
                      V{16},
                      V{31},
                      V{32},
                      V{33},
                      V{63},
                      V{64},
                      V{127},
                      V{128},
                      V{255},
                      V{0x1234567890abcdef},
                      V{0x80808080},
                      V{0x7fff8000},
                      V{0xff00ff00ff00ff00},
                      V{0x5555555555555555}}) {
      values.push_back(v & ones);
    }
    for (const V v : {top, top - 1, top + 1, ones, ones - 1, ones - 6}) values.push_back(v & ones);
  }
  std::mt19937_64 random(type.size() * 1000 + bits);
  const V ones = bits >= 64 ? ~V{0} : (V{1} << bits) - 1;
  for (int i = 0; i < 14; ++i) values.push_back(random() & ones);
  return values;
}

std::string RegisterType(const std::string& type) {
  return type == "pred" ? ".pred" : ".b" + std::to_string(Bits(type));
}

std::string Kernel(const Case& c, size_t number, const std::vector<std::string>& types) {
  std::ostringstream o;
  o << ".visible .entry k" << number << "(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
    << ".reg .pred %outside, %pd, %pq; .reg .b32 %i, %n, %t; .reg .b64 %w, %at, %in, %out, %wide;\n";
  const char* names[] = {"%d", "%a", "%b", "%c"};
  for (size_t k = 0; k < types.size(); ++k) o << ".reg " << RegisterType(types[k]) << " " << names[k] << ";\n";
  o << "mov.u32 %i, %tid.x; mov.u32 %t, %ctaid.x; mad.lo.u32 %i, %t, 128, %i; ld.param.u32 %n, [n];\n"
    << "setp.ge.u32 %outside, %i, %n; @%outside exit;\n"
    << "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mad.wide.u32 %at, %i, 24, %in;\n";
  for (size_t k = 1; k < types.size(); ++k) {
    const size_t offset = 8 * (k - 1);
    if (types[k] == "pred") {
      o << "ld.global.u32 %t, [%at+" << offset << "]; setp.ne.u32 " << names[k] << ", %t, 0;\n";
    } else {
      o << "ld.global.b" << Bits(types[k]) << " " << names[k] << ", [%at+" << offset << "];\n";
    }
  }
  o << c.ptx << "\n";
  if (types[0] == "pred") {
    o << "selp.b64 %wide, 1, 0, %d;\n";
  } else if (types[0] == "b64" || types[0] == "f64") {
    o << "mov.b64 %wide, %d;\n";
  } else {
    o << "cvt.u64.u" << Bits(types[0]) << " %wide, %d;\n";
  }
  o << "mad.wide.u32 %at, %i, 8, %out; st.global.u64 [%at], %wide; ret;\n}\n";
  return o.str();
}

bool Equal(V got, V expected, const Case& c, const std::string& type) {
  if (got == expected) return true;
  if (c.tolerance <= 0) return false;
  double x = 0;
  double y = 0;
  if (type == "f32") {
    x = static_cast<double>(F(got));
    y = static_cast<double>(F(expected));
  } else {
    x = D(got);
    y = D(expected);
  }
  if (std::isnan(y)) return std::isnan(x);
  if (std::isinf(y)) return x == y;
  return std::fabs(x - y) <= c.tolerance * std::fabs(y) + 1e-44;
}

}  // namespace

void Check(const std::vector<Case>& cases) {
  std::string text = ".version 8.5\n.target sm_90\n.address_size 64\n";
  std::vector<std::vector<std::string>> types;
  for (size_t i = 0; i < cases.size(); ++i) {
    types.push_back(Split(cases[i].signature));
    text += Kernel(cases[i], i, types[i]);
  }
  exec::Device device(0);
  ASSERT_EQ(device.Load({text}), "");
  for (const std::string& u : device.program().unsupported()) ADD_FAILURE() << "not known: " << u;
  std::mt19937_64 random(7);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<std::vector<V>> sets(3, {0});
    for (size_t k = 1; k < types[i].size(); ++k) sets[k - 1] = Interesting(types[i][k]);
    std::vector<V> in;
    const auto add = [&](V a, V b, V c) { in.insert(in.end(), {a, b, c}); };
    if (types[i].size() <= 3) {
      for (const V a : sets[0]) {
        for (const V b : sets[1]) add(a, b, 0);
      }
    } else {
      const auto pick = [&](size_t k) { return sets[k][random() % sets[k].size()]; };
      for (int n = 0; n < 4000; ++n) add(pick(0), pick(1), pick(2));
    }
    const auto count = static_cast<uint32_t>(in.size() / 3);
    const uint64_t in_at = device.Upload(in);
    const uint64_t out_at = device.Allocate(8 * count);
    const exec::Outcome outcome = device.Run("k" + std::to_string(i), {(count + 127) / 128, 1, 1}, {128, 1, 1},
                                             exec::Arguments().Add(in_at).Add(out_at).Add(count));
    ASSERT_TRUE(outcome.ok()) << cases[i].ptx << ": " << outcome.fault.Text();
    const auto out = device.Download<V>(out_at, count);
    const uint32_t bits = Bits(types[i][0]);
    const V mask = bits >= 64 ? ~V{0} : (V{1} << bits) - 1;
    int shown = 0;
    for (size_t n = 0; n < count && shown < 3; ++n) {
      const V expected = cases[i].expected(in[3 * n], in[3 * n + 1], in[3 * n + 2]) & mask;
      if (Equal(out[n], expected, cases[i], types[i][0])) continue;
      ++shown;
      ADD_FAILURE() << cases[i].ptx << std::hex << "  a=" << in[3 * n] << " b=" << in[3 * n + 1]
                    << " c=" << in[3 * n + 2] << ": got " << out[n] << ", expected " << expected;
    }
  }
}

}  // namespace hawser::conformance
