// SPDX-License-Identifier: Apache-2.0
// Atomic operations of many threads at one place, from several blocks that run at once: nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/conformance/harness.h"
#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

constexpr uint32_t kBlocks = 12;
constexpr uint32_t kBlock = 96;
constexpr uint32_t kThreads = kBlocks * kBlock;

/// What thread t brings: %x (32 bits) and %y (64 bits), the same number in both.
uint64_t Brought(uint32_t t) { return (t * 2654435761u) >> 7; }

/// Every thread executes `body` with %p: the place, of 8 bytes, that begins as `start`. What is there in the end, and
/// what each thread has in %d. Through shared memory: each block begins with `start` too, and adds up its own place.
struct Result {
  uint64_t place = 0;
  std::vector<uint64_t> returned;
};

Result Execute(const std::string& body, uint64_t start) {
  exec::Device device(3);
  const std::string text =
      ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 place, .param .u64 out) {\n"
      ".shared .align 8 .u64 s; .reg .pred %q; .reg .b32 %t, %i, %x, %r<4>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg "
      ".b16 "
      "%h<4>;\n"
      ".reg .b64 %p, %y, %d, %out, %z<4>; ld.param.u64 %p, [place]; ld.param.u64 %out, [out]; mov.u32 %t, %ctaid.x;\n"
      "mov.u32 %i, %tid.x; mad.lo.u32 %t, %t, 96, %i; mad.wide.u32 %out, %t, 8, %out; mul.lo.u32 %x, %t, 2654435761;\n"
      "shr.u32 %x, %x, 7; cvt.u64.u32 %y, %x; mov.u64 %d, 0;\n" +
      body + "\nst.global.u64 [%out], %d; ret; }\n";
  EXPECT_EQ(device.Load({text}), "") << body;
  EXPECT_TRUE(device.program().unsupported().empty()) << body;
  const uint64_t place = device.Upload(std::vector<uint64_t>{start});
  const uint64_t out = device.Allocate(8 * kThreads);
  const exec::Outcome outcome = device.Run("k", {kBlocks, 1, 1}, {kBlock, 1, 1}, exec::Arguments().Add(place).Add(out));
  EXPECT_TRUE(outcome.ok()) << body << ": " << outcome.fault.Text();
  return {device.Download<uint64_t>(place, 1)[0], device.Download<uint64_t>(out, kThreads)};
}

uint64_t Fold(uint64_t start, const std::function<uint64_t(uint64_t, uint64_t)>& f) {
  for (uint32_t t = 0; t < kThreads; ++t) start = f(start, Brought(t));
  return start;
}

TEST(AtomicMany, OneOperationForAll) {
  struct Operation {
    const char* text;
    uint64_t start;
    std::function<uint64_t(uint64_t, uint64_t)> f;
  };
  const std::vector<Operation> operations = {
      {"add.u32", 5, [](uint64_t a, uint64_t b) { return (a + b) & 0xffffffff; }},
      {"add.s32", 0, [](uint64_t a, uint64_t b) { return (a + b) & 0xffffffff; }},
      {"add.u64", uint64_t{1} << 60, [](uint64_t a, uint64_t b) { return a + b; }},
      {"and.b32", 0xffffffff, [](uint64_t a, uint64_t b) { return a & (b | 0xffff0000); }},
      {"or.b32", 0, [](uint64_t a, uint64_t b) { return a | b; }},
      {"xor.b32", 1, [](uint64_t a, uint64_t b) { return a ^ b; }},
      {"xor.b64", ~uint64_t{0}, [](uint64_t a, uint64_t b) { return a ^ b; }},
      {"min.u32", 0xffffffff, [](uint64_t a, uint64_t b) { return std::min(a, b); }},
      {"max.s32", 0x80000000, [](uint64_t a, uint64_t b) { return S(a) > S(b) ? a : b; }},
      {"min.s64", INT64_MAX, [](uint64_t a, uint64_t b) { return L(a) < L(b) ? a : b; }},
      {"max.u64", 0, [](uint64_t a, uint64_t b) { return std::max(a, b); }},
  };
  for (const Operation& o : operations) {
    const std::string name = o.text;
    const bool wide = name.ends_with("64");
    // With all their bits, the numbers brought would leave nothing of an "and".
    const std::string prepare = name.starts_with("and") ? "or.b32 %x, %x, 0xffff0000; " : "";
    const std::string value = wide ? "%y" : "%x";
    const uint64_t expected = Fold(o.start, o.f);
    EXPECT_EQ(Execute(prepare + "red.global." + name + " [%p], " + value + ";", o.start).place, expected) << name;
    EXPECT_EQ(Execute(prepare + "atom." + name + (wide ? " %z0" : " %r0") + ", [%p], " + value + ";", o.start).place,
              expected)
        << name;
  }
}

TEST(AtomicMany, TicketsAreHandedOutOnce) {
  std::vector<uint64_t> all(kThreads);
  std::iota(all.begin(), all.end(), 100);
  for (const std::string statement : {"atom.global.add.u32 %r0, [%p], 1;", "atom.global.inc.u32 %r0, [%p], -1;"}) {
    Result result = Execute(statement + " cvt.u64.u32 %d, %r0;", 100);
    EXPECT_EQ(result.place, 100 + kThreads) << statement;
    std::sort(result.returned.begin(), result.returned.end());
    EXPECT_EQ(result.returned, all) << statement;
  }
  Result down = Execute("atom.global.dec.u32 %r0, [%p], 5000; cvt.u64.u32 %d, %r0;", kThreads + 99);
  EXPECT_EQ(down.place, 99u);
  std::sort(down.returned.begin(), down.returned.end());
  EXPECT_EQ(down.returned, all);
}

TEST(AtomicMany, CountersWrap) {
  // Up to 6 and then 0; from 0 to 9 and down.
  EXPECT_EQ(Execute("red.global.inc.u32 [%p], 6;", 0).place, kThreads % 7);
  EXPECT_EQ(Execute("red.global.dec.u32 [%p], 9;", 0).place, (10 - kThreads % 10) % 10);
}

TEST(AtomicMany, ExchangesLoseNothing) {
  // What was there before and what comes out are all numbers that were brought, one of them left behind.
  Result result = Execute("atom.global.exch.b64 %d, [%p], %y;", 424242424242);
  result.returned.push_back(result.place);
  std::vector<uint64_t> expected{424242424242};
  for (uint32_t t = 0; t < kThreads; ++t) expected.push_back(Brought(t));
  std::sort(result.returned.begin(), result.returned.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(result.returned, expected);
}

TEST(AtomicMany, CompareAndSwapLoops) {
  EXPECT_EQ(Execute("ld.global.u32 %r0, [%p];\nAGAIN: add.u32 %r1, %r0, 3; mov.u32 %r2, %r0;\n"
                    "atom.global.cas.b32 %r0, [%p], %r2, %r1; setp.ne.u32 %q, %r0, %r2; @%q bra AGAIN;",
                    7)
                .place,
            7u + 3 * kThreads);
  EXPECT_EQ(Execute("ld.global.u16 %h0, [%p+2];\nAGAIN: add.u16 %h1, %h0, 1; mov.u16 %h2, %h0;\n"
                    "atom.global.cas.b16 %h0, [%p+2], %h2, %h1; setp.ne.u16 %q, %h0, %h2; @%q bra AGAIN;",
                    0xfffe0001)
                .place,
            uint64_t{(0xfffe + kThreads) & 0xffff} << 16 | 1);
}

TEST(AtomicMany, SumsOfFloats) {
  EXPECT_EQ(Execute("red.global.add.f32 [%p], 0f3f800000;", 0).place, B(static_cast<float>(kThreads)));
  EXPECT_EQ(Execute("cvt.rn.f64.u32 %g0, %t; red.global.add.f64 [%p], %g0;", 0).place,
            B(static_cast<double>(kThreads) * (kThreads - 1) / 2));
  // 1152 in the upper half and 576 in the lower; every sum on the way is exact.
  EXPECT_EQ(Execute("mov.b32 %r0, 0x3c003800; red.global.add.noftz.f16x2 [%p], %r0;", 0).place, 0x64806080u);
}

// Each block adds up in shared memory, and its first thread adds that to the place.
TEST(AtomicMany, SharedMemory) {
  const auto through = [](const std::string& type, const std::string& value) {
    const std::string bits = type.ends_with("64") ? "%z0" : "%r0";
    return "setp.eq.u32 %q, %i, 0; @%q st.shared.u64 [s], 0; bar.sync 0; red.shared.add." + type + " [s], " + value +
           "; bar.sync 0;\n@!%q bra END; ld.shared." + type + " " + bits + ", [s]; red.global.add." + type + " [%p], " +
           bits + ";\nEND:";
  };
  const uint64_t sum = Fold(0, [](uint64_t a, uint64_t b) { return a + b; });
  EXPECT_EQ(Execute(through("u32", "%x"), 0).place, sum & 0xffffffff);
  EXPECT_EQ(Execute(through("u64", "%y"), 0).place, sum);
  EXPECT_EQ(Execute(through("f64", "0d3ff8000000000000"), 0).place, B(1.5 * kThreads));
  EXPECT_EQ(Execute(through("f32", "0f3f000000"), 0).place, B(0.5f * kThreads));
}

}  // namespace
}  // namespace hawser::conformance
