// SPDX-License-Identifier: Apache-2.0
// Bulk copies and reductions without tensors, aliases of functions, and operands that only some instructions take.
#include <cmath>

#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// One thread: copies 64 bytes of `in` to shared memory, does `body` with %s (that place), %o (64 bytes of `out`) and
/// %m (an mbarrier that expects one arrival), and gives the 64 bytes at %s + 64 to out + 64.
std::string BulkKernel(const std::string& body) {
  return ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
         ".reg .pred %p; .reg .b32 %s, %m, %n, %r<4>; .reg .b64 %i, %o; .shared .align 16 .b8 s[128];\n"
         ".shared .align 8 .b64 bar; ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %s, s; mov.u32 %m, bar;\n"
         "mbarrier.init.shared::cta.b64 [%m], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 128;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%i], 64, [%m];\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s+64], [%i+64], 64, [%m];\n"
         "W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 0; @!%p bra W; mov.b32 %n, 64;\n" +
         body +
         "\nmov.b32 %r0, 64;\nL: add.u32 %r1, %s, %r0; ld.shared.b32 %r2, [%r1]; cvt.u64.u32 %i, %r0;\n"
         "add.u64 %i, %o, %i; st.global.b32 [%i], %r2; add.u32 %r0, %r0, 4; setp.lt.u32 %p, %r0, 128; @%p bra L;\n"
         "ret; }\n";
}

template <typename T>
struct Bulks {
  std::vector<T> global;  ///< What became of it: 64 bytes.
  std::vector<T> shared;
  Outcome outcome;
};

/// `in`: 64 bytes that are reduced, then 64 that are in shared memory; `out`: 64 bytes in global memory.
template <typename T>
Bulks<T> RunBulk(const std::string& body, const std::vector<T>& in, std::vector<T> out) {
  Device device(0);
  EXPECT_EQ(device.Load({BulkKernel(body)}), "");
  EXPECT_THAT(device.program().unsupported(), IsEmpty());
  const size_t count = out.size();
  out.resize(2 * count);
  const uint64_t in_at = device.Upload(in);
  const uint64_t out_at = device.Upload(out);
  Bulks<T> result;
  result.outcome = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(in_at).Add(out_at));
  result.global = device.Download<T>(out_at, count);
  result.shared = device.Download<T>(out_at + 64, count);
  return result;
}

TEST(Bulk, ReducesToGlobalMemory) {
  std::vector<uint32_t> in(32);
  std::vector<uint32_t> out(16);
  for (uint32_t i = 0; i < 16; ++i) {
    in[i] = 0x80000000 * (i % 2) + 3 * i;
    out[i] = 100 - 7 * i;
  }
  const auto check = [&](const std::string& op, const std::function<uint32_t(uint32_t, uint32_t)>& f) {
    const auto got =
        RunBulk<uint32_t>("cp.reduce.async.bulk.global.shared::cta.bulk_group." + op + " [%o], [%s], %n;", in, out);
    EXPECT_TRUE(got.outcome.ok()) << got.outcome.fault.Text();
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(got.global[i], f(out[i], in[i])) << op << " " << i;
  };
  const auto s = [](uint32_t x) { return static_cast<int32_t>(x); };
  check("add.u32", [](uint32_t x, uint32_t y) { return x + y; });
  check("min.s32", [s](uint32_t x, uint32_t y) { return s(x) < s(y) ? x : y; });
  check("max.u32", [](uint32_t x, uint32_t y) { return std::max(x, y); });
  check("xor.b32", [](uint32_t x, uint32_t y) { return x ^ y; });
  check("inc.u32", [](uint32_t x, uint32_t y) { return x >= y ? 0 : x + 1; });
  std::vector<double> numbers(16, 0.25);
  const auto sums = RunBulk<double>("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%o], [%s], %n;",
                                    numbers, std::vector<double>(8, 1.5));
  for (const double sum : sums.global) EXPECT_EQ(sum, 1.75);
  std::vector<uint16_t> halves(64, 0x3c00);  // 1
  const auto added =
      RunBulk<uint16_t>("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%o], [%s], %n;", halves,
                        std::vector<uint16_t>(32, 0x4000));
  for (const uint16_t sum : added.global) EXPECT_EQ(sum, 0x4200);  // 3
}

TEST(Bulk, ReducesInSharedMemoryAndCompletes) {
  std::vector<uint32_t> in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = i;
  const auto got = RunBulk<uint32_t>(
      "add.u32 %r0, %s, 64; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 64;\n"
      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r0], [%s], %n, [%m];\n"
      "V: mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 1; @!%p bra V;",
      in, std::vector<uint32_t>(16));
  ASSERT_TRUE(got.outcome.ok()) << got.outcome.fault.Text();
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(got.shared[i], 2 * i + 16);
  const auto copied = RunBulk<uint32_t>(
      "add.u32 %r0, %s, 64; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 64;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r0], [%s], %n, [%m];\n"
      "V: mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 1; @!%p bra V;",
      in, std::vector<uint32_t>(16));
  ASSERT_TRUE(copied.outcome.ok()) << copied.outcome.fault.Text();
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(copied.shared[i], i);
}

TEST(Bulk, ReductionsAreChecked) {
  const std::vector<uint32_t> in(32);
  const std::string op = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%o], [%s], ";
  EXPECT_EQ(RunBulk<uint32_t>("mov.b32 %n, 144; " + op + "%n;", in, std::vector<uint32_t>(16)).outcome.fault.kind,
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunBulk<uint32_t>(op + "20;", in, std::vector<uint32_t>(16)).outcome.fault.kind, Fault::Kind::kMisaligned);
  for (const std::string bad :
       {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.pred [%o], [%s], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.exch.b32 [%o], [%s], 16;",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%o, {%n}], [%s];"}) {
    Device device(0);
    ASSERT_EQ(device.Load({BulkKernel(bad)}), "");
    EXPECT_EQ(device.program().unsupported().size(), 1u) << bad;
  }
}

constexpr char kTwice[] =
    ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r0, [x];\n"
    "add.u32 %r1, %r0, %r0; st.param.b32 [r], %r1; ret; }\n";
constexpr char kCall[] =
    "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r7; call (b), both, (a); ld.param.b32 %r0, [b]; }";

TEST(Alias, IsAnotherNameOfAFunction) {
  const std::string more =
      std::string(kTwice) + ".visible .func (.param .b32 r) both(.param .b32 x);\n.alias both, twice;\n";
  const auto got = RunBody(kCall, 32, 1, more);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 2 * i);
  // Another module calls it, and its address is the function's.
  Device device(0);
  ASSERT_EQ(device.Load({Kernel(kCall, ".extern .func (.param .b32 r) both(.param .b32 x);\n"), kHead + more}), "");
  const uint64_t out = device.Allocate(128);
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {32, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(device.Download<uint32_t>(out, 32)[31], 62u);
  EXPECT_EQ(RunBody("mov.u64 %d1, both; mov.u64 %d2, twice; setp.eq.u64 %p0, %d1, %d2; selp.b32 %r0, 1, 0, %p0;", 1, 1,
                    more)[0],
            1u);
}

TEST(Alias, OfWhatIsNoFunctionIsRefused) {
  Device device(0);
  const std::string declared = ".visible .func (.param .b32 r) both(.param .b32 x);\n";
  EXPECT_THAT(device.Load({Kernel(kCall, declared + ".alias both, nobody;\n")}), HasSubstr("'nobody'"));
  EXPECT_THAT(device.Load({kHead + ".visible .func f();\n.visible .entry e() { ret; }\n.alias f, e;\n"}),
              HasSubstr("no function that can be called"));
  EXPECT_THAT(device.Load({kHead + std::string(kTwice) + ".visible .func f() { ret; }\n.alias f, twice;\n"}),
              HasSubstr("a function and an alias"));
  EXPECT_THAT(device.Load({kHead + ".alias f;\n"}), HasSubstr("expected ','"));
}

TEST(Operands, PartsAndNegativesAreForVideoInstructions) {
  for (const std::string body :
       {"add.u32 %r0, %r7.b0, %r1;", "add.u32 %r0.h1, %r7, %r1;", "sub.s32 %r0, %r1, -%r7;",
        "ld.global.u32 %r0, [-%d0];", "ld.global.u32 %r0, [%d0.h0];", "vadd.u32.u32.u32 %r0, -%r1, %r7;",
        "vadd.u32.u32.u32 %r0, %r1.b4, %r7;", "vadd.u32.u32.u32 %r0.b1, %r1, %r7;",
        "vadd4.u32.u32.u32 %r0, %r1.h10, %r7, %r2;", "vmad.s32.s32.s32 %r0, -%r1, %r7, -%r2;",
        "vmad.s32.s32.s32 %r0, %r1, %r7, %r2.b0;", "selp.b32 %r0, 1, 0, %p0.b1;"}) {
    Device device(0);
    ASSERT_EQ(device.Load({Kernel(body)}), "") << body;
    EXPECT_EQ(device.program().unsupported().size(), 1u) << body;
  }
  Device device(0);
  EXPECT_THAT(device.Load({Kernel("add.u32 %r0, %r7.b8, %r1;")}), HasSubstr("unknown register"));
  EXPECT_THAT(device.Load({Kernel("mov.u64 %d0, -k;")}), HasSubstr("a minus before what is no register"));
}

}  // namespace
}  // namespace hawser::exec
