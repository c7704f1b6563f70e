// SPDX-License-Identifier: Apache-2.0
// Clusters, which have one block here, and the barriers that blocks of a cluster and parts of a block meet at.
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

TEST(Cluster, KernelsThatNeedSeveralBlocksAreRefused) {
  const auto load = [](Device* device, const std::string& directives) {
    return device->Load({kHead + ".visible .entry k() " + directives + " { ret; }\n"});
  };
  Device device(0);
  ASSERT_EQ(load(&device, ".explicitcluster .reqnctapercluster 2, 1, 1 .maxntid 64"), "");
  EXPECT_EQ(device.program().kernels()[0].required_cluster, (std::array<uint32_t, 3>{2, 1, 1}));
  EXPECT_TRUE(device.program().kernels()[0].explicit_cluster);
  const Fault fault = device.Run("k", {2, 1, 1}, {1, 1, 1}, Arguments()).fault;
  EXPECT_EQ(fault.kind, Fault::Kind::kBadLaunch);
  EXPECT_THAT(fault.message, HasSubstr("clusters"));
  ASSERT_EQ(load(&device, ".reqnctapercluster 1"), "");
  EXPECT_FALSE(device.program().kernels()[0].explicit_cluster);
  EXPECT_TRUE(device.Run("k", {2, 1, 1}, {1, 1, 1}, Arguments()).ok());
  ASSERT_EQ(load(&device, ".maxclusterrank 8 .blocksareclusters"), "");
  EXPECT_TRUE(device.Run("k", {2, 1, 1}, {1, 1, 1}, Arguments()).ok());
  EXPECT_THAT(load(&device, ".reqnctapercluster 2, 0, 1"), HasSubstr("without blocks"));
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
