// SPDX-License-Identifier: Apache-2.0
// Random straight-line PTX with guards and divergence against a scalar interpreter of its own: one thread after the
// other, no masks, no register allocation. Finds what single instructions do not show: places shared by registers,
// guarded writes, operands that are destinations.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>

#include "tests/conformance/harness.h"
#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

constexpr int kWords = 10;   // %r
constexpr int kLongs = 6;    // %d
constexpr int kFloats = 6;   // %f
constexpr int kDoubles = 4;  // %g
constexpr int kGuards = 4;   // %p
constexpr uint32_t kThreads = 96;

/// The registers of one thread.
struct State {
  std::array<uint32_t, kWords> r{};
  std::array<uint64_t, kLongs> d{};
  std::array<float, kFloats> f{};
  std::array<double, kDoubles> g{};
  std::array<bool, kGuards> p{};
};

/// One kind of instruction. In the text: R D F G P a register of the class, I a small constant, each drawn anew.
struct Kind {
  const char* text;
  std::function<void(State& s, const std::array<size_t, 6>& n)> run;  ///< n: the numbers drawn, in order.
};

float Canonical(float x) { return x != x ? std::bit_cast<float>(0x7fffffff) : x; }

const std::vector<Kind>& Kinds() {
  using N = const std::array<size_t, 6>&;
  static const auto* const kKinds = new std::vector<Kind>{
      {"add.u32 R, R, R;", [](State& s, N n) { s.r[n[0]] = s.r[n[1]] + s.r[n[2]]; }},
      {"sub.s32 R, R, I;", [](State& s, N n) { s.r[n[0]] = s.r[n[1]] - static_cast<uint32_t>(n[2]); }},
      {"mad.lo.s32 R, R, R, R;", [](State& s, N n) { s.r[n[0]] = s.r[n[1]] * s.r[n[2]] + s.r[n[3]]; }},
      {"mul.hi.u32 R, R, R;",
       [](State& s, N n) { s.r[n[0]] = static_cast<uint32_t>(uint64_t{s.r[n[1]]} * s.r[n[2]] >> 32); }},
      {"mul.wide.s32 D, R, R;",
       [](State& s, N n) {
         s.d[n[0]] = static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[n[1]])} * static_cast<int32_t>(s.r[n[2]]));
       }},
      {"shl.b32 R, R, I;", [](State& s, N n) { s.r[n[0]] = n[2] > 31 ? 0 : s.r[n[1]] << n[2]; }},
      {"shr.s32 R, R, I;",
       [](State& s, N n) {
         s.r[n[0]] = static_cast<uint32_t>(static_cast<int32_t>(s.r[n[1]]) >> (n[2] > 31 ? 31 : n[2]));
       }},
      {"xor.b32 R, R, R;", [](State& s, N n) { s.r[n[0]] = s.r[n[1]] ^ s.r[n[2]]; }},
      {"lop3.b32 R, R, R, R, 0xca;",
       [](State& s, N n) { s.r[n[0]] = (s.r[n[1]] & s.r[n[2]]) | (~s.r[n[1]] & s.r[n[3]]); }},
      {"min.s32 R, R, R;",
       [](State& s, N n) {
         s.r[n[0]] = static_cast<uint32_t>(std::min(static_cast<int32_t>(s.r[n[1]]), static_cast<int32_t>(s.r[n[2]])));
       }},
      {"popc.b32 R, R;", [](State& s, N n) { s.r[n[0]] = static_cast<uint32_t>(std::popcount(s.r[n[1]])); }},
      {"rem.u32 R, R, 1000;", [](State& s, N n) { s.r[n[0]] = s.r[n[1]] % 1000; }},
      {"bfe.u32 R, R, I, 7;", [](State& s, N n) { s.r[n[0]] = n[2] > 31 ? 0 : s.r[n[1]] >> n[2] & 127; }},
      {"selp.b32 R, R, R, P;", [](State& s, N n) { s.r[n[0]] = s.p[n[3]] ? s.r[n[1]] : s.r[n[2]]; }},
      {"add.s64 D, D, D;", [](State& s, N n) { s.d[n[0]] = s.d[n[1]] + s.d[n[2]]; }},
      {"mul.lo.u64 D, D, D;", [](State& s, N n) { s.d[n[0]] = s.d[n[1]] * s.d[n[2]]; }},
      {"shr.u64 D, D, I;", [](State& s, N n) { s.d[n[0]] = s.d[n[1]] >> n[2]; }},
      {"cvt.u64.u32 D, R;", [](State& s, N n) { s.d[n[0]] = s.r[n[1]]; }},
      {"cvt.u32.u64 R, D;", [](State& s, N n) { s.r[n[0]] = static_cast<uint32_t>(s.d[n[1]]); }},
      {"cvt.s64.s32 D, R;",
       [](State& s, N n) { s.d[n[0]] = static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[n[1]])}); }},
      {"mov.b64 {R, R}, D;",
       [](State& s, N n) {
         const uint64_t whole = s.d[n[2]];
         s.r[n[0]] = static_cast<uint32_t>(whole);
         s.r[n[1]] = static_cast<uint32_t>(whole >> 32);
       }},
      {"mov.b64 D, {R, R};", [](State& s, N n) { s.d[n[0]] = s.r[n[1]] | uint64_t{s.r[n[2]]} << 32; }},
      {"add.f32 F, F, F;", [](State& s, N n) { s.f[n[0]] = Canonical(s.f[n[1]] + s.f[n[2]]); }},
      {"mul.ftz.f32 F, F, F;",
       [](State& s, N n) {
         const auto z = [](float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; };
         s.f[n[0]] = Canonical(z(z(s.f[n[1]]) * z(s.f[n[2]])));
       }},
      {"fma.rn.f32 F, F, F, F;",
       [](State& s, N n) { s.f[n[0]] = Canonical(std::fma(s.f[n[1]], s.f[n[2]], s.f[n[3]])); }},
      {"div.rn.f32 F, F, F;", [](State& s, N n) { s.f[n[0]] = Canonical(s.f[n[1]] / s.f[n[2]]); }},
      {"sqrt.rn.f32 F, F;", [](State& s, N n) { s.f[n[0]] = Canonical(std::sqrt(s.f[n[1]])); }},
      {"cvt.rn.f32.s32 F, R;", [](State& s, N n) { s.f[n[0]] = static_cast<float>(static_cast<int32_t>(s.r[n[1]])); }},
      {"cvt.rzi.s32.f32 R, F;",
       [](State& s, N n) {
         const float x = s.f[n[1]];
         s.r[n[0]] = x != x          ? 0
                     : x >= 0x1p31f  ? 0x7fffffff
                     : x <= -0x1p31f ? 0x80000000
                                     : static_cast<uint32_t>(static_cast<int32_t>(x));
       }},
      {"cvt.f64.f32 G, F;", [](State& s, N n) { s.g[n[0]] = static_cast<double>(s.f[n[1]]); }},
      {"cvt.rn.f32.f64 F, G;", [](State& s, N n) { s.f[n[0]] = Canonical(static_cast<float>(s.g[n[1]])); }},
      {"fma.rn.f64 G, G, G, G;", [](State& s, N n) { s.g[n[0]] = std::fma(s.g[n[1]], s.g[n[2]], s.g[n[3]]); }},
      {"sub.f64 G, G, G;", [](State& s, N n) { s.g[n[0]] = s.g[n[1]] - s.g[n[2]]; }},
      {"cvt.rn.f64.s64 G, D;", [](State& s, N n) { s.g[n[0]] = static_cast<double>(static_cast<int64_t>(s.d[n[1]])); }},
      {"setp.lt.s32 P, R, R;",
       [](State& s, N n) { s.p[n[0]] = static_cast<int32_t>(s.r[n[1]]) < static_cast<int32_t>(s.r[n[2]]); }},
      {"setp.ge.u64 P, D, D;", [](State& s, N n) { s.p[n[0]] = s.d[n[1]] >= s.d[n[2]]; }},
      {"setp.gtu.f32 P, F, F;", [](State& s, N n) { s.p[n[0]] = !(s.f[n[1]] <= s.f[n[2]]); }},
      {"setp.eq.and.u32 P|P, R, I, P;",
       [](State& s, N n) {
         const bool holds = s.r[n[2]] == static_cast<uint32_t>(n[3]);
         const bool with = s.p[n[4]];
         s.p[n[0]] = holds && with;
         s.p[n[1]] = !holds && with;
       }},
      {"xor.pred P, P, P;", [](State& s, N n) { s.p[n[0]] = s.p[n[1]] != s.p[n[2]]; }},
      // Registers that live for a moment: what is made of one may take its place.
      {"{ .reg .u8 t; .reg .b16 u; cvt.u8.u32 t, R; cvt.u16.u8 u, t; cvt.u32.u16 R, u; }",
       [](State& s, N n) { s.r[n[1]] = s.r[n[0]] & 255; }},
      {"{ .reg .s8 t; .reg .b16 u; cvt.s8.s32 t, R; cvt.s16.s8 u, t; cvt.s32.s16 R, u; }",
       [](State& s, N n) { s.r[n[1]] = static_cast<uint32_t>(static_cast<int8_t>(s.r[n[0]])); }},
      {"{ .reg .b64 t; .reg .b16 u, v; mov.b64 t, D; cvt.u16.u64 u, t; add.u16 v, u, 3; cvt.u64.u16 D, v; }",
       [](State& s, N n) { s.d[n[1]] = static_cast<uint16_t>(s.d[n[0]] + 3); }},
      {"{ .reg .b32 t, u; .reg .f64 v; mov.b64 {t, u}, D; cvt.rn.f64.u32 v, u; cvt.rzi.u32.f64 R, v; }",
       [](State& s, N n) { s.r[n[1]] = static_cast<uint32_t>(s.d[n[0]] >> 32); }},
      {"not.pred P, P;", [](State& s, N n) { s.p[n[0]] = !s.p[n[1]]; }},
  };
  return *kKinds;
}

struct Step {
  const Kind* kind = nullptr;
  std::array<size_t, 6> numbers{};
  int guard = -1;
  bool negated = false;
  int skip = 0;  ///< A branch over the next steps instead.
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Make(std::vector<Step>* steps) {
    std::ostringstream o;
    o << ".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 io) {\n.reg .b32 %r<"
      << kWords + 1 << ">; .reg .b64 %d<" << kLongs << ">, %io; .reg .f32 %f<" << kFloats << ">; .reg .f64 %g<"
      << kDoubles << ">; .reg .pred %p<" << kGuards << ">;\nld.param.u64 %io, [io]; mov.u32 %r" << kWords
      << ", %tid.x; mad.wide.u32 %io, %r" << kWords << ", " << sizeof(State) << ", %io;\n";
    Transfer(o, true);
    const int count = 60 + Draw(60);
    std::vector<int> labels(static_cast<size_t>(count) + 8, 0);
    for (int i = 0; i < count; ++i) {
      if (labels[static_cast<size_t>(i)] != 0) o << "L" << i << ":\n";
      Step step;
      if (Draw(4) == 0) {
        step.guard = Draw(kGuards);
        step.negated = Draw(2) == 0;
        o << "@" << (step.negated ? "!" : "") << "%p" << step.guard << " ";
        if (Draw(3) == 0 && i + 6 < count) {
          step.skip = 1 + Draw(5);
          labels[static_cast<size_t>(i + step.skip + 1)] = 1;
          o << "bra L" << i + step.skip + 1 << ";\n";
          steps->push_back(step);
          continue;
        }
      }
      do {
        step.kind = &Kinds()[static_cast<size_t>(Draw(static_cast<int>(Kinds().size())))];
      } while (step.guard >= 0 && step.kind->text[0] == '{');  // A scope has no guard.
      Write(o, &step);
      steps->push_back(step);
    }
    Transfer(o, false);
    o << "ret;\n}\n";
    return o.str();
  }

  State Start() {
    State s;
    for (auto& v : s.r) v = static_cast<uint32_t>(random_() >> (random_() % 64));
    for (auto& v : s.d) v = random_() >> (random_() % 64);
    for (auto& v : s.f)
      v = Draw(3) == 0 ? Canonical(std::bit_cast<float>(static_cast<uint32_t>(random_())))
                       : static_cast<float>(Draw(2000) - 1000) / 8;
    for (auto& v : s.g) v = static_cast<double>(Draw(2000) - 1000) / 16;
    for (auto& v : s.p) v = Draw(2) == 0;
    return s;
  }

 private:
  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Write(std::ostringstream& o, Step* step) {
    size_t next = 0;
    int before = -1;
    for (const char* c = step->kind->text; *c != '\0'; ++c) {
      const auto reg = [&](const char* name, int count) {
        int number = Draw(count);
        // {R, R} and P|P name two different destinations.
        if (next == 1 &&
            (step->kind->text[8] == '{' || std::string_view(step->kind->text).find("P|P") != std::string_view::npos) &&
            number == before) {
          number = (number + 1) % count;
        }
        before = number;
        step->numbers[next++] = static_cast<size_t>(number);
        o << name << number;
      };
      switch (*c) {
        case 'R':
          reg("%r", kWords);
          break;
        case 'D':
          reg("%d", kLongs);
          break;
        case 'F':
          reg("%f", kFloats);
          break;
        case 'G':
          reg("%g", kDoubles);
          break;
        case 'P':
          reg("%p", kGuards);
          break;
        case 'I':
          step->numbers[next] = static_cast<size_t>(Draw(40));
          o << step->numbers[next++];
          break;
        default:
          o << *c;
      }
    }
    o << "\n";
  }

  static void Transfer(std::ostringstream& o, bool load) {
    const auto move = [&](const char* type, const std::string& name, size_t offset) {
      if (load) {
        o << "ld.global." << type << " " << name << ", [%io+" << offset << "];\n";
      } else {
        o << "st.global." << type << " [%io+" << offset << "], " << name << ";\n";
      }
    };
    for (size_t i = 0; i < kWords; ++i) move("u32", "%r" + std::to_string(i), offsetof(State, r) + 4 * i);
    for (size_t i = 0; i < kLongs; ++i) move("u64", "%d" + std::to_string(i), offsetof(State, d) + 8 * i);
    for (size_t i = 0; i < kFloats; ++i) move("f32", "%f" + std::to_string(i), offsetof(State, f) + 4 * i);
    for (size_t i = 0; i < kDoubles; ++i) move("f64", "%g" + std::to_string(i), offsetof(State, g) + 8 * i);
    for (size_t i = 0; i < kGuards; ++i) {
      const std::string p = "%p" + std::to_string(i);
      const size_t at = offsetof(State, p) + i;
      const std::string t = "%r" + std::to_string(kWords);
      if (load) {
        o << "ld.global.u8 " << t << ", [%io+" << at << "]; setp.ne.u32 " << p << ", " << t << ", 0;\n";
      } else {
        o << "selp.u32 " << t << ", 1, 0, " << p << "; st.global.u8 [%io+" << at << "], " << t << ";\n";
      }
    }
  }

  std::mt19937_64 random_;
};

void RunScalar(State& s, const std::vector<Step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.guard >= 0 && s.p[static_cast<size_t>(step.guard)] == step.negated) continue;
    if (step.skip > 0) {
      i += static_cast<size_t>(step.skip);
    } else {
      step.kind->run(s, step.numbers);
    }
  }
}

class RandomPrograms : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomPrograms, AgreeWithAScalarInterpreter) {
  for (uint64_t seed = GetParam() * 1000; seed < GetParam() * 1000 + 40; ++seed) {
    Generator generator(seed);
    std::vector<Step> steps;
    const std::string text = generator.Make(&steps);
    exec::Device device(0);
    ASSERT_EQ(device.Load({text}), "") << text;
    std::vector<State> states(kThreads);
    for (State& s : states) s = generator.Start();
    const uint64_t io = device.Upload(states);
    const exec::Outcome outcome = device.Run("k", {1, 1, 1}, {kThreads, 1, 1}, exec::Arguments().Add(io));
    ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
    const auto results = device.Download<State>(io, kThreads);
    for (size_t t = 0; t < kThreads; ++t) {
      State& s = states[t];
      RunScalar(s, steps);
      const State& got = results[t];
      ASSERT_EQ(got.r, s.r) << "seed " << seed << " thread " << t << "\n" << text;
      ASSERT_EQ(got.d, s.d) << "seed " << seed << " thread " << t << "\n" << text;
      ASSERT_EQ(got.p, s.p) << "seed " << seed << " thread " << t << "\n" << text;
      for (size_t k = 0; k < kFloats; ++k) {
        ASSERT_EQ(std::bit_cast<uint32_t>(got.f[k]), std::bit_cast<uint32_t>(s.f[k]))
            << "seed " << seed << " %f" << k << "\n"
            << text;
      }
      for (size_t k = 0; k < kDoubles; ++k) {
        ASSERT_TRUE(got.g[k] == s.g[k] || (std::isnan(got.g[k]) && std::isnan(s.g[k])))
            << "seed " << seed << " %g" << k << "\n"
            << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace hawser::conformance
