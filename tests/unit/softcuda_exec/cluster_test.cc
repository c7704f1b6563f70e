// SPDX-License-Identifier: Apache-2.0
// Clusters of one block and of several: their barrier, the memory that their blocks share, their sizes; targets of PTX.
#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Cluster, ArrivalsDoNotBlock) {
  // Thread 0 arrives, and only then writes what the others need to come to their own arrival.
  const auto result = RunBody(
      "mov.u32 %r1, s; setp.eq.u32 %p0, %r7, 0; @!%p0 bra OTHER;\n"
      "barrier.cluster.arrive.release; mov.b32 %r2, 7; st.volatile.shared.u32 [%r1], %r2; bra JOIN;\n"
      "OTHER: ld.volatile.shared.u32 %r2, [%r1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra OTHER;\n"
      "st.shared.u32 [%r1+4], %r2; barrier.cluster.arrive.release;\n"
      "JOIN: barrier.cluster.wait.acquire; ld.shared.u32 %r0, [%r1+4];",
      64, 1, ".shared .u32 s[2];\n");
  for (const uint32_t value : result) EXPECT_EQ(value, 7u);
}

TEST(Cluster, WaitsWaitForAllWarps) {
  // The last warp works before it arrives; three rounds, so that the barrier is used again.
  const auto result = RunBody(
      "mov.u32 %r1, s; mov.b32 %r2, 0; mov.b32 %r0, 0;\n"
      "ROUND: setp.lt.u32 %p0, %r7, 96; @%p0 bra ARRIVE; mov.b32 %r3, 1000;\n"
      "WORK: sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra WORK;\n"
      "add.u32 %r4, %r2, 1; st.shared.u32 [%r1], %r4;\n"
      "ARRIVE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ld.shared.u32 %r5, [%r1];\n"
      "mad.lo.u32 %r0, %r0, 10, %r5; barrier.cluster.arrive; barrier.cluster.wait;\n"
      "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3; @%p2 bra ROUND;",
      128, 1, ".shared .u32 s[1];\n");
  for (const uint32_t value : result) EXPECT_EQ(value, 123u);
}

TEST(Cluster, ItsBarrierIsNoneOfThePrograms) {
  // 32 threads wait at barrier 15 for those who meet at the cluster's barrier first.
  const auto result = RunBody(
      "mov.u32 %r1, s; barrier.cluster.arrive; setp.lt.u32 %p0, %r7, 32; @%p0 bra FIRST;\n"
      "barrier.cluster.wait; mov.b32 %r2, 5; st.shared.u32 [%r1], %r2; bar.arrive 15, 64; bra END;\n"
      "FIRST: bar.sync 15, 64; barrier.cluster.wait;\nEND: bar.sync 0; ld.shared.u32 %r0, [%r1];",
      64, 1, ".shared .u32 s[1];\n");
  for (const uint32_t value : result) EXPECT_EQ(value, 5u);
}

TEST(Cluster, ExitedThreadsAreNotWaitedFor) {
  const auto result = RunBody(
      "mov.b32 %r0, 3; st.global.u32 [%d0], %r0; and.b32 %r1, %r7, 1; setp.eq.u32 %p0, %r1, 0; @%p0 exit;\n"
      "barrier.cluster.arrive; barrier.cluster.wait; mov.b32 %r0, 4;",
      64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], i % 2 == 0 ? 3u : 4u);
  EXPECT_EQ(FaultOf("setp.eq.u32 %p0, %r7, 0; @%p0 bar.sync 1; barrier.cluster.arrive; barrier.cluster.wait;").kind,
            Fault::Kind::kDeadlock);
}

/// What the one-block cluster's registers and instructions say, each in a bit or a place of its own.
constexpr char kRanks[] =
    "mov.pred %p0, %is_explicit_cluster; selp.b32 %r0, 1, 0, %p0; mov.u32 %r1, s;\n"
    "mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; shl.b32 %r3, %r3, 4; or.b32 %r0, %r0, %r3;\n"
    "shl.b32 %r2, %r2, 8; or.b32 %r0, %r0, %r2; mapa.shared::cluster.u32 %r4, %r1, 0; setp.eq.u32 %p1, %r4, %r1;\n"
    "@%p1 or.b32 %r0, %r0, 0x1000; getctarank.shared::cluster.u32 %r5, %r1; shl.b32 %r5, %r5, 16;\n"
    "or.b32 %r0, %r0, %r5; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; mapa.u64 %d2, %d1, 0; setp.eq.u64 %p2, %d2, %d1;\n"
    "@%p2 or.b32 %r0, %r0, 0x2000; getctarank.u64 %r6, %d1; shl.b32 %r6, %r6, 20; or.b32 %r0, %r0, %r6;\n"
    "mov.b32 %r3, 77; st.shared.u32 [%r1], %r3; ld.shared::cluster.u32 %r5, [%r4]; setp.eq.u32 %p3, %r5, 77;\n"
    "@%p3 or.b32 %r0, %r0, 0x4000; mov.u32 %r5, %cluster_nctaid.y; shl.b32 %r5, %r5, 24; or.b32 %r0, %r0, %r5;\n";

TEST(Cluster, OneBlockHasRankZeroOfOne) {
  for (const bool is_explicit : {false, true}) {
    Device device(0);
    ASSERT_EQ(device.Load({Kernel(kRanks, ".shared .u32 s[1];\n")}), "");
    EXPECT_THAT(device.program().unsupported(), IsEmpty());
    const uint64_t out = device.Allocate(4);
    device.config.explicit_cluster = is_explicit;
    ASSERT_TRUE(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out)).ok());
    EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], 0x01007010u + (is_explicit ? 1 : 0));
  }
}

TEST(Cluster, SizesAreChecked) {
  const auto load = [](Device* device, const std::string& directives) {
    return device->Load({kHead + ".visible .entry k() " + directives + " { ret; }\n"});
  };
  const auto run = [](Device* device, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> cluster) {
    device->config.cluster = cluster;
    return device->Run("k", grid, {1, 1, 1}, Arguments()).fault;
  };
  Device device(0);
  ASSERT_EQ(load(&device, ".explicitcluster .reqnctapercluster 2, 1, 1 .maxntid 64"), "");
  EXPECT_EQ(device.program().kernels()[0].required_cluster, (std::array<uint32_t, 3>{2, 1, 1}));
  EXPECT_TRUE(device.program().kernels()[0].explicit_cluster);
  EXPECT_THAT(run(&device, {2, 1, 1}, {1, 1, 1}).message, HasSubstr("other clusters"));
  EXPECT_THAT(run(&device, {3, 1, 1}, {2, 1, 1}).message, HasSubstr("whole clusters"));
  EXPECT_EQ(run(&device, {6, 1, 1}, {2, 1, 1}).kind, Fault::Kind::kNone);
  ASSERT_EQ(load(&device, ".reqnctapercluster 1"), "");
  EXPECT_FALSE(device.program().kernels()[0].explicit_cluster);
  EXPECT_EQ(run(&device, {2, 1, 1}, {1, 1, 1}).kind, Fault::Kind::kNone);
  ASSERT_EQ(load(&device, ".reqnctapercluster 2 .blocksareclusters"), "");
  EXPECT_THAT(run(&device, {2, 1, 1}, {2, 1, 1}).message, HasSubstr("count clusters"));
  ASSERT_EQ(load(&device, ".maxclusterrank 4"), "");
  EXPECT_EQ(run(&device, {8, 2, 1}, {2, 2, 1}).kind, Fault::Kind::kNone);
  EXPECT_THAT(run(&device, {8, 1, 1}, {8, 1, 1}).message, HasSubstr("too large"));
  ASSERT_EQ(load(&device, ""), "");
  EXPECT_THAT(run(&device, {8, 8, 1}, {8, 4, 1}).message, HasSubstr("too large"));
  EXPECT_THAT(run(&device, {8, 8, 1}, {8, 0, 1}).message, HasSubstr("whole clusters"));
  EXPECT_THAT(load(&device, ".reqnctapercluster 2, 0, 1"), HasSubstr("without blocks"));
}

/// Runs `body` in `grid` blocks of `threads`, in clusters; %r0 of all threads by their number. %r10: the block's rank.
std::vector<uint32_t> RunClusters(const std::string& body, std::array<uint32_t, 3> grid,
                                  std::array<uint32_t, 3> cluster, uint32_t threads, Fault* fault = nullptr,
                                  unsigned helpers = 2) {
  Device device(helpers);
  EXPECT_EQ(device.Load({kHead +
                         ".visible .entry k(.param .u64 out) {\n.reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<8>;\n"
                         ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 bar; ld.param.u64 %d0, [out];\n"
                         "mov.u32 %r7, %tid.x; mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %cluster_nctarank;\n"
                         "mov.u32 %r1, s; mov.u32 %r12, bar; mov.u32 %r8, %ctaid.x; mov.u32 %r9, %nctaid.x;\n"
                         "mov.u32 %r13, %ctaid.y; mad.lo.u32 %r8, %r13, %r9, %r8; mov.u32 %r9, %ntid.x;\n"
                         "mad.lo.u32 %r8, %r8, %r9, %r7; mad.wide.u32 %d0, %r8, 4, %d0;\n" +
                         body + "\nst.global.u32 [%d0], %r0; ret; }\n"}),
            "");
  EXPECT_THAT(device.program().unsupported(), IsEmpty());
  const uint32_t count = grid[0] * grid[1] * threads;
  const uint64_t out = device.Allocate(uint64_t{4} * count);
  device.config.cluster = cluster;
  const Outcome outcome = device.Run("k", grid, {threads, 1, 1}, Arguments().Add(out));
  if (fault != nullptr) {
    *fault = outcome.fault;
  } else {
    EXPECT_TRUE(outcome.ok()) << outcome.fault.Text();
  }
  return device.Download<uint32_t>(out, count);
}

TEST(Cluster, BlocksKnowTheirPlace) {
  const auto got = RunClusters(
      "mov.u32 %r2, %cluster_ctaid.x; mov.u32 %r3, %cluster_ctaid.y; mov.u32 %r4, %clusterid.x; mov.u32 %r5, "
      "%clusterid.y;\n"
      "mov.u32 %r6, %nclusterid.x; mov.u32 %r13, %cluster_nctaid.y; mad.lo.u32 %r0, %r10, 10, %r11;\n"
      "mad.lo.u32 %r0, %r0, 10, %r2; mad.lo.u32 %r0, %r0, 10, %r3; mad.lo.u32 %r0, %r0, 10, %r4;\n"
      "mad.lo.u32 %r0, %r0, 10, %r5; mad.lo.u32 %r0, %r0, 10, %r6; mad.lo.u32 %r0, %r0, 10, %r13;",
      {6, 4, 1}, {3, 2, 1}, 1);
  for (uint32_t y = 0; y < 4; ++y) {
    for (uint32_t x = 0; x < 6; ++x) {
      uint32_t expected = x % 3 + 3 * (y % 2);
      for (const uint32_t digit : {6u, x % 3, y % 2, x / 3, y / 2, 2u, 2u}) expected = expected * 10 + digit;
      EXPECT_EQ(got[y * 6 + x], expected) << x << ", " << y;
    }
  }
}

/// Waits for all blocks of the cluster.
constexpr char kSync[] = "barrier.cluster.arrive; barrier.cluster.wait;\n";

TEST(Cluster, BlocksReadAndWriteEachOthersMemory) {
  // Each writes into the next block's memory, by a shared address; then reads the block's after that, by a generic one.
  const std::string body =
      std::string("add.u32 %r2, %r10, 1; rem.u32 %r2, %r2, %r11; shl.b32 %r3, %r7, 2; add.u32 %r3, %r1, %r3;\n") +
      "mapa.shared::cluster.u32 %r4, %r3, %r2; mad.lo.u32 %r5, %r10, 100, %r7;\n" + kSync +
      "st.shared::cluster.u32 [%r4], %r5;\n" + kSync +
      "cvt.u64.u32 %d1, %r3; cvta.shared.u64 %d1, %d1; add.u32 %r6, %r10, 2; rem.u32 %r6, %r6, %r11;\n"
      "mapa.u64 %d2, %d1, %r6; ld.u32 %r0, [%d2]; getctarank.u64 %r13, %d2; mad.lo.u32 %r0, %r13, 1000, %r0;\n"
      "getctarank.shared::cluster.u32 %r13, %r4; mad.lo.u32 %r0, %r13, 10000, %r0;\n"
      "isspacep.shared::cluster %p1, %d2; isspacep.shared::cta %p2, %d2; @%p1 add.u32 %r0, %r0, 100000;\n"
      "@%p2 add.u32 %r0, %r0, 200000; isspacep.shared::cta %p2, %d1; @%p2 add.u32 %r0, %r0, 400000;\n" +
      kSync;
  for (const unsigned helpers : {0u, 3u}) {
    const auto got = RunClusters(body, {12, 1, 1}, {4, 1, 1}, 48, nullptr, helpers);
    for (uint32_t block = 0; block < 12; ++block) {
      const uint32_t rank = block % 4;
      for (uint32_t t = 0; t < 48; ++t) {
        // Two further, the memory was written by the one before that.
        const uint32_t expected = (rank + 1) % 4 * 100 + t + (rank + 2) % 4 * 1000 + (rank + 1) % 4 * 10000 + 500000;
        EXPECT_EQ(got[block * 48 + t], expected) << block << ", " << t;
      }
    }
  }
}

TEST(Cluster, AtomicsAndBarriersReachOtherBlocks) {
  // All add to rank 0's word and arrive at its barrier; its own threads wait for them there.
  const std::string body =
      std::string("mov.b32 %r2, 0; @%p0 bra NEXT; NEXT: setp.ne.u32 %p1, %r7, 0; @%p1 bra READY;\n") +
      "st.shared.u32 [%r1], %r2; mul.lo.u32 %r3, %r11, 32; mbarrier.init.shared::cta.b64 [%r12], %r3;\nREADY:\n" +
      kSync +
      "mapa.shared::cluster.u32 %r4, %r1, 0; mapa.shared::cluster.u32 %r5, %r12, 0; add.u32 %r6, %r10, 1;\n"
      "atom.shared::cluster.add.u32 %r13, [%r4], %r6; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];\n"
      "setp.ne.u32 %p2, %r10, 0; mov.b32 %r0, 0; @%p2 bra DONE;\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r12], 0; @!%p3 bra W; ld.shared.u32 %r0, [%r1];\nDONE:\n" +
      kSync;
  const auto got = RunClusters(body, {8, 1, 1}, {4, 1, 1}, 32);
  for (uint32_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i / 32 % 4 == 0 ? 32 * (1u + 2 + 3 + 4) : 0) << i;
}

TEST(Cluster, StoresAndCopiesCompleteBarriersOfOtherBlocks) {
  // Thread 0 of rank 1 sends to rank 0 eight bytes by st.async, four to add, and 32 bytes by a bulk copy, which waits.
  const std::string body =
      std::string(
          "setp.ne.u32 %p1, %r7, 0; @%p1 bra READY; mbarrier.init.shared::cta.b64 [%r12], 1; mov.b32 %r2, 5;\n") +
      "st.shared.u32 [%r1+8], %r2; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], 44;\nREADY:\n" + kSync +
      "setp.ne.u32 %p2, %r10, 1; or.pred %p2, %p2, %p1; @%p2 bra WAIT; mapa.shared::cluster.u32 %r4, %r1, 0;\n"
      "mapa.shared::cluster.u32 %r5, %r12, 0; mov.b32 %r2, 70; mov.b32 %r3, 700;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r4], {%r2, %r3}, [%r5];\n"
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+8], %r2, [%r5];\n"
      "mov.b32 %r3, 9000; st.shared.v4.u32 [%r1+32], {%r3, %r3, %r3, %r3}; st.shared.v4.u32 [%r1+48], {%r3, %r3, %r3, "
      "%r3};\n"
      "add.u32 %r13, %r1, 32; add.u32 %r14, %r4, 64;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r14], [%r13], 32, [%r5];\n"
      "WAIT: mov.b32 %r0, 0; setp.ne.u32 %p3, %r10, 0; @%p3 bra DONE;\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], 0; @!%p4 bra W; ld.shared.u32 %r0, [%r1];\n"
      "ld.shared.u32 %r2, [%r1+4]; add.u32 %r0, %r0, %r2; ld.shared.u32 %r2, [%r1+8]; add.u32 %r0, %r0, %r2;\n"
      "ld.shared.u32 %r2, [%r1+92]; add.u32 %r0, %r0, %r2;\nDONE:\n" +
      kSync;
  const auto got = RunClusters(body, {2, 1, 1}, {2, 1, 1}, 32);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i < 32 ? 70u + 700 + 75 + 9000 : 0u) << i;
}

TEST(Cluster, OneCopyReachesSeveralBlocks) {
  // The words of `out` before, which are their numbers, go from rank 2 to ranks 0 and 3.
  const std::string body =
      std::string("st.global.u32 [%d0], %r8; membar.gl; setp.ne.u32 %p1, %r7, 0; mov.b32 %r2, 0;\n") +
      "mad.lo.u32 %r3, %r7, 4, %r1; st.shared.u32 [%r3], %r2; @%p1 bra READY; mbarrier.init.shared::cta.b64 [%r12], "
      "1;\n"
      "setp.eq.u32 %p2, %r10, 0; setp.eq.u32 %p3, %r10, 3; or.pred %p2, %p2, %p3; selp.b32 %r4, 128, 0, %p2;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], %r4;\nREADY:\n" +
      kSync +
      "setp.ne.u32 %p2, %r10, 2; or.pred %p2, %p2, %p1; @%p2 bra WAIT; { .reg .b16 %to; mov.b16 %to, 9;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d0], 128, [%r12], "
      "%to; }\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], 0; @!%p4 bra WAIT; ld.shared.u32 %r0, "
      "[%r3];\n" +
      kSync;
  const auto got = RunClusters(body, {4, 1, 1}, {4, 1, 1}, 32);
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(got[i], i < 32 || i >= 96 ? 64 + i % 32 : 0u) << i;
}

TEST(Cluster, SpinningBlocksLetTheOthersRun) {
  const std::string body =
      std::string("mov.b32 %r2, 0; st.shared.u32 [%r1], %r2; mapa.shared::cluster.u32 %r4, %r1, 0;\n") + kSync +
      "setp.eq.u32 %p1, %r10, 0; @%p1 bra SPIN; mov.b32 %r2, 1; atom.shared::cluster.add.u32 %r3, [%r4], %r2; bra "
      "DONE;\n"
      "SPIN: ld.volatile.shared.u32 %r3, [%r1]; setp.lt.u32 %p2, %r3, 96; @%p2 bra SPIN;\nDONE: mov.b32 %r0, 1;\n" +
      kSync;
  const auto got = RunClusters(body, {8, 1, 1}, {4, 1, 1}, 32);
  for (const uint32_t each : got) EXPECT_EQ(each, 1u);
}

TEST(Cluster, FaultsOfClusters) {
  Fault fault;
  RunClusters(
      "mov.b32 %r0, 0; setp.eq.u32 %p1, %r10, 1; @%p1 bar.sync 1, 64; @!%p1 barrier.cluster.arrive;\n"
      "@!%p1 barrier.cluster.wait;",
      {2, 1, 1}, {2, 1, 1}, 32, &fault);
  EXPECT_EQ(fault.kind, Fault::Kind::kDeadlock);
  RunClusters("mov.b32 %r0, 0; mapa.shared::cluster.u32 %r4, %r1, 2; ld.shared::cluster.u32 %r0, [%r4];", {2, 1, 1},
              {2, 1, 1}, 32, &fault);
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);
  RunClusters("mov.b32 %r0, 0; mapa.shared::cluster.u32 %r4, %r1, 1; ld.shared::cluster.u32 %r0, [%r4+4096];",
              {2, 1, 1}, {2, 1, 1}, 32, &fault);
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);
  // A block that is gone is not waited for.
  const auto got = RunClusters("mov.b32 %r0, 6; setp.eq.u32 %p1, %r10, 1; @%p1 st.global.u32 [%d0], %r0; @%p1 exit;\n" +
                                   std::string(kSync) + "mov.b32 %r0, 7;",
                               {2, 1, 1}, {2, 1, 1}, 32);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i < 32 ? 7u : 6u);
}

TEST(Link, TargetsOfOneDeviceOrOneFamily) {
  const auto load = [](const std::string& target, uint32_t capability) {
    Device device(0);
    return device.Load({".version 8.8\n.target " + target + "\n.address_size 64\n.visible .entry k() { ret; }\n"},
                       {.compute_capability = capability});
  };
  EXPECT_EQ(load("sm_90a", 90), "");
  EXPECT_THAT(load("sm_90a", 120), HasSubstr("sm_90a, this device is sm_120"));
  EXPECT_THAT(load("sm_90a", 89), HasSubstr("sm_90a"));
  EXPECT_EQ(load("sm_90", 120), "");
  EXPECT_EQ(load("sm_100f", 103), "");
  EXPECT_THAT(load("sm_100f", 120), HasSubstr("sm_100f"));
  EXPECT_THAT(load("sm_103f", 100), HasSubstr("sm_103f"));
}

TEST(Mbarrier, DropsCountInLaterPhases) {
  // Two are expected; one of them expects bytes and drops itself, so that the next phase needs one arrival alone.
  const auto result = RunBody(
      "mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 2;\n"
      "mbarrier.arrive_drop.expect_tx.shared.b64 %d1, [%r1], 16; mbarrier.arrive.shared.b64 %d2, [%r1];\n"
      "mbarrier.test_wait.parity.shared.b64 %p0, [%r1], 0; selp.b32 %r0, 1, 0, %p0;\n"
      "mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 16;\n"
      "mbarrier.test_wait.parity.shared.b64 %p0, [%r1], 0; @%p0 or.b32 %r0, %r0, 2;\n"
      "mbarrier.arrive.shared.b64 %d2, [%r1]; mbarrier.test_wait.shared.b64 %p0, [%r1], %d2;\n"
      "@%p0 or.b32 %r0, %r0, 4; mbarrier.arrive_drop.shared.b64 %d2, [%r1], 1;",
      1, 1, ".shared .b64 bar;\n");
  EXPECT_EQ(result[0], 6u);
}

}  // namespace
}  // namespace hawser::exec
