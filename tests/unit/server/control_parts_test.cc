// SPDX-License-Identifier: Apache-2.0
// The parts of the control plane that need no gRPC: mailbox, tenants' changes, traces, conversion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "server/admin/convert.h"
#include "server/admin/settings.h"
#include "server/control_plane.h"
#include "server/mailbox.h"
#include "server/tenant_ledger.h"
#include "server/trace_collector.h"

namespace hawser::server {
namespace {

using ::testing::HasSubstr;
using wire::Code;
using wire::Result;

// ---------------------------------------------------------------------------------------------
// Mailbox

TEST(MailboxTest, RunsOnTheLoopAndAnswers) {
  EventLoop loop;
  ASSERT_TRUE(loop.Open().ok());
  Mailbox mailbox;
  ASSERT_TRUE(mailbox.Open(&loop).ok());
  const auto loop_thread = std::this_thread::get_id();
  std::thread caller([&] {
    for (int i = 0; i < 100; ++i) {
      const Result<int> result = mailbox.Call<int>([&, i]() -> Result<int> {
        EXPECT_EQ(std::this_thread::get_id(), loop_thread);
        return 2 * i;
      });
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result.value(), 2 * i);
    }
    const auto failed = mailbox.Call<int>([]() -> Result<int> { return wire::Status(Code::kInvalid, "no"); });
    EXPECT_EQ(failed.status().text(), "no");
    (void)mailbox.Call<int>([&]() -> Result<int> {
      loop.Stop();
      return 0;
    });
  });
  loop.Run();
  caller.join();
}

TEST(MailboxTest, ClosingFailsWhoWaitsAndWhoComes) {
  EventLoop loop;
  ASSERT_TRUE(loop.Open().ok());
  Mailbox mailbox;
  EXPECT_EQ(mailbox.Call<int>([]() -> Result<int> { return 1; }).status().code(), Code::kClosed) << "not open yet";
  ASSERT_TRUE(mailbox.Open(&loop).ok());
  std::atomic<bool> calling{false};
  std::thread caller([&] {
    calling = true;
    EXPECT_EQ(mailbox.Call<int>([]() -> Result<int> { return 1; }).status().code(), Code::kClosed);
  });
  while (!calling) std::this_thread::yield();
  mailbox.Close();  // Before or after it has posted: the same end.
  caller.join();
  EXPECT_EQ(mailbox.Call<int>([]() -> Result<int> { return 1; }).status().code(), Code::kClosed);
  EXPECT_EQ(loop.watches(), 0u);
}

// ---------------------------------------------------------------------------------------------
// Tenants

Tenant Configured() {
  Tenant tenant;
  tenant.name = "lab";
  tenant.max_sessions = 4;
  tenant.limits.device_memory = 1000;
  return tenant;
}

TEST(TenantLedgerTest, ChangesLieOnTop) {
  TenantLedger ledger;
  admin::TenantChange change;
  change.weight = 7;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  change = {};
  change.max_sessions = 1;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  Tenant now = ledger.Effective(Configured());
  EXPECT_EQ(now.share.weight, 7u) << "the first change stays";
  EXPECT_EQ(now.max_sessions, 1u);
  EXPECT_EQ(now.limits.device_memory, 1000u);
  EXPECT_TRUE(ledger.Changed("lab"));
  change = {};
  change.reset = true;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  EXPECT_EQ(ledger.Effective(Configured()).max_sessions, 4u);
  EXPECT_FALSE(ledger.Changed("lab"));
}

TEST(TenantLedgerTest, AWrongChangeChangesNothing) {
  TenantLedger ledger;
  admin::TenantChange change;
  change.weight = 7;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  change.weight = 8;
  change.priority = 5000;
  EXPECT_EQ(ledger.Change(Configured(), change).code(), Code::kInvalid);
  EXPECT_EQ(ledger.Effective(Configured()).share.weight, 7u);
}

TEST(TenantLedgerTest, AConfigurationThatDoesNotFitWins) {
  TenantLedger ledger;
  admin::TenantChange change;
  change.min_share_ppm = 600'000;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  Tenant later = Configured();
  later.share.max_share_ppm = 500'000;
  EXPECT_EQ(ledger.Effective(later).share, later.share);
}

TEST(TenantLedgerTest, AWantedLatencyIsKeptBesideOtherChanges) {
  TenantLedger ledger;
  admin::TenantChange change;
  change.slo_ns = 20'000'000;
  EXPECT_FALSE(change.empty());
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  change = {};
  change.weight = 7;
  ASSERT_TRUE(ledger.Change(Configured(), change).ok());
  EXPECT_EQ(ledger.Effective(Configured()).share.slo_ns, 20'000'000u);
  change.slo_ns = TenantShare::kLongestSloNs + 1;
  EXPECT_EQ(ledger.Change(Configured(), change).code(), Code::kInvalid);
}

TEST(TenantLedgerTest, AddsUpWhatWasUsed) {
  TenantLedger ledger;
  EXPECT_FALSE(ledger.Knows("lab"));
  ledger.Add("lab", {1, 2, 3, {}, 4, 5});
  EXPECT_TRUE(ledger.Used("lab").device_ns.empty());
  ledger.Add("lab", {10, 20, 30, {{"cpu", 30}}, 50, 60});
  ledger.Add("lab", {0, 0, 0, {{"cpu", 10}, {"pci:0000:01:00", 5}}, 0, 0});
  const TenantLedger::Totals used = ledger.Used("lab");
  EXPECT_EQ(used.commands, 11u);
  EXPECT_EQ(used.bytes_up, 22u);
  EXPECT_EQ(used.bytes_down, 33u);
  EXPECT_EQ(used.device_ns, (std::map<std::string, uint64_t>{{"cpu", 40}, {"pci:0000:01:00", 5}}));
  EXPECT_EQ(used.copied_in, 54u);
  EXPECT_EQ(used.copied_out, 65u);
  EXPECT_EQ(ledger.Used("other").commands, 0u);
  ledger.Meet("other");
  EXPECT_THAT(ledger.Names(), ::testing::ElementsAre("lab", "other"));
}

// ---------------------------------------------------------------------------------------------
// Traces

struct Traced {
  SessionStats stats = std::move(SessionStats::Create().value());
  SessionStatsPage* page = stats.page();
  void Kernel(uint64_t at) { page->ring.Record(TraceRingKind::kKernel, 0, at, at + 1, "k"); }
};

std::shared_ptr<admin::TraceFeed> MakeFeed(std::set<uint64_t> sessions = {}, bool commands = false) {
  return std::make_shared<admin::TraceFeed>(admin::TraceFeed::Filter{std::move(sessions), commands});
}

std::string Kinds(const admin::TraceBatch& batch) {
  std::string text;
  for (const admin::TraceEvent& event : batch.events) text += "?BEKCGc"[static_cast<int>(event.kind)];
  return text;
}

TEST(TraceCollectorTest, SessionsRecordOnlyWhileSomebodyListens) {
  TraceCollector collector;
  Traced one;
  collector.SessionStarted(1, "lab", "prog", one.page);
  EXPECT_EQ(one.page->trace.load(), 0u);
  one.Kernel(1);  // Of a worker that does not look; it must not reach a later listener.
  auto feed = MakeFeed();
  collector.AddFeed(feed);
  EXPECT_TRUE(TraceRing::Wants(one.page->trace, TraceRingKind::kKernel));
  EXPECT_FALSE(TraceRing::Wants(one.page->trace, TraceRingKind::kCommand)) << "only when asked for";
  one.Kernel(10);
  Traced two;
  collector.SessionStarted(2, "lab", "prog", two.page);
  two.Kernel(20);
  collector.Collect();
  collector.SessionEnded(2);
  const admin::TraceBatch batch = feed->Take(std::chrono::milliseconds(0));
  EXPECT_EQ(Kinds(batch), "BBKKE");
  EXPECT_EQ(batch.events[2].begin_ns, 10u);
  EXPECT_EQ(batch.events[2].tenant, "lab");
  feed.reset();
  collector.Collect();
  EXPECT_FALSE(collector.listening());
  EXPECT_EQ(one.page->trace.load(), 0u);
  collector.SessionEnded(1);
}

TEST(TraceCollectorTest, FeedsGetWhatTheyAskedFor) {
  TraceCollector collector;
  Traced one, two;
  collector.SessionStarted(1, "a", "p", one.page);
  collector.SessionStarted(2, "b", "q", two.page);
  auto only_two = MakeFeed({2}, true);
  collector.AddFeed(only_two);
  EXPECT_EQ(one.page->trace.load(), 0u) << "nobody wants session 1";
  EXPECT_TRUE(TraceRing::Wants(two.page->trace, TraceRingKind::kCommand));
  auto all = MakeFeed();
  collector.AddFeed(all);
  one.Kernel(1);
  two.page->ring.Record(TraceRingKind::kCommand, 0, 2, 3, "c");
  collector.Collect();
  EXPECT_EQ(Kinds(only_two->Take(std::chrono::milliseconds(0))), "BC");
  EXPECT_EQ(Kinds(all->Take(std::chrono::milliseconds(0))), "BBK");
  only_two->Close();
  collector.Collect();
  EXPECT_FALSE(TraceRing::Wants(two.page->trace, TraceRingKind::kCommand));
  collector.CloseFeeds();
  EXPECT_TRUE(all->closed());
}

TEST(TraceCollectorTest, WhatIsLostIsCounted) {
  TraceCollector collector;
  Traced one;
  collector.SessionStarted(1, "a", "p", one.page);
  auto feed = MakeFeed();
  collector.AddFeed(feed);
  for (uint64_t i = 0; i < TraceRing::kSlots + 5; ++i) one.Kernel(i);
  collector.Collect();
  EXPECT_EQ(feed->Take(std::chrono::milliseconds(0)).lost, 5u);
  EXPECT_EQ(feed->Take(std::chrono::milliseconds(0)).lost, 0u);
  admin::TraceEvent event;
  for (size_t i = 0; i < admin::TraceFeed::kMaxEvents + 3; ++i) collector.Put(event);
  const admin::TraceBatch batch = feed->Take(std::chrono::milliseconds(0));
  EXPECT_EQ(batch.events.size(), admin::TraceFeed::kMaxEvents);
  EXPECT_EQ(batch.lost, 3u);
}

// ---------------------------------------------------------------------------------------------
// Conversion

TEST(ConvertTest, TextIsMadeFitForProtobufAndTerminals) {
  using admin::CleanText;
  EXPECT_EQ(CleanText("plain"), "plain");
  EXPECT_EQ(CleanText("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2");
  EXPECT_EQ(CleanText("a\nb\x1b[2J\x7f"), "a?b?[2J?");
  EXPECT_EQ(CleanText("\xc2\x9b"
                      "31m"),
            "?31m")
      << "a control character of two bytes";
  EXPECT_EQ(CleanText("\xff\xfe"), "??");
  EXPECT_EQ(CleanText("\xc0\xaf \xe0\x80\x80 \xed\xa0\x80 \xf5\x80\x80\x80"), "?? ??? ??? ????") << "never valid";
  EXPECT_EQ(CleanText("cut \xe2\x82"), "cut ??");
}

// Workers name devices, and a guest may have had its worker lie.
TEST(TenantLedgerTest, KeepsABoundedNumberOfDevices) {
  TenantLedger ledger;
  for (int i = 0; i < 1000; ++i) ledger.Add("lab", {0, 0, 0, {{"cpu:" + std::to_string(i), 1}}, 0, 0});
  const TenantLedger::Totals used = ledger.Used("lab");
  EXPECT_EQ(used.device_ns.size(), TenantLedger::kMostDevices + 1);
  EXPECT_EQ(used.device_ns.at(TenantLedger::kOtherDevices), 1000u - TenantLedger::kMostDevices);
}

TEST(ConvertTest, DeviceTimeIsAbsentWhenNobodyMeasuresIt) {
  admin::SessionState state;
  state.id = 3;
  state.program = "p\xff";
  state.phase = admin::SessionPhase::kEnding;
  admin::pb::Session message;
  ToMessage(state, &message);
  EXPECT_EQ(message.id(), 3u);
  EXPECT_EQ(message.program(), "p?");
  EXPECT_EQ(message.state(), admin::pb::SESSION_STATE_ENDING);
  EXPECT_FALSE(message.has_gpu_ns());
  state.device_time = admin::DeviceTime{1, 2, 3};
  ToMessage(state, &message);
  EXPECT_EQ(message.gpu_ns(), 1u);
  EXPECT_EQ(message.pending_ns(), 2u);
  EXPECT_EQ(message.inflight_ns(), 3u);
  EXPECT_EQ(message.device_times_size(), 0);
  state.device_times["pci:0000:65:00"] = {1, 2, 3};
  message.Clear();
  ToMessage(state, &message);
  ASSERT_EQ(message.device_times_size(), 1);
  EXPECT_EQ(message.device_times(0).device(), "pci:0000:65:00");
  EXPECT_EQ(message.device_times(0).gpu_ns(), 1u);
  EXPECT_EQ(message.device_times(0).pending_ns(), 2u);
  EXPECT_EQ(message.device_times(0).inflight_ns(), 3u);
}

TEST(ConvertTest, WhatASessionDidIsCountedUnderItsName) {
  admin::SessionState state;
  state.commands = 1;
  state.bytes_up = 2;
  state.bytes_down = 3;
  state.copied_in = 4;
  state.copied_out = 5;
  state.device_memory = 6;
  state.kernels = 7;
  state.split_alarms = 8;
  admin::pb::Session message;
  ToMessage(state, &message);
  EXPECT_EQ(message.commands(), 1u);
  EXPECT_EQ(message.bytes_up(), 2u);
  EXPECT_EQ(message.bytes_down(), 3u);
  EXPECT_EQ(message.copied_in_bytes(), 4u);
  EXPECT_EQ(message.copied_out_bytes(), 5u);
  EXPECT_EQ(message.device_memory_bytes(), 6u);
  EXPECT_EQ(message.kernels(), 7u);
  EXPECT_EQ(message.split_alarms(), 8u);
}

TEST(ConvertTest, WhatSharingCostsIsAbsentWithoutAScheduler) {
  admin::Snapshot state;
  admin::pb::Snapshot message;
  ToMessage(state, &message);
  EXPECT_FALSE(message.has_system());
  state.system = admin::SystemState{7, 2, 5};
  ToMessage(state, &message);
  EXPECT_EQ(message.system().gap_ns(), 7u);
  EXPECT_EQ(message.system().switches(), 2u);
  EXPECT_EQ(message.system().waited_ns(), 5u);
}

TEST(ConvertTest, AnEjectionIsToldIfThereWasOne) {
  admin::PolicyState state;
  state.name = "fair";
  admin::pb::Policy message;
  ToMessage(state, &message);
  EXPECT_FALSE(message.has_last_ejection());
  EXPECT_EQ(message.ejections(), 0u);
  state.ejections = 3;
  state.last_ejection = admin::EjectionState{"m\xffne", "was\nslow", 17, "{}"};
  message.Clear();
  ToMessage(state, &message);
  EXPECT_EQ(message.ejections(), 3u);
  EXPECT_EQ(message.last_ejection().policy(), "m?ne");
  EXPECT_EQ(message.last_ejection().reason(), "was?slow");
  EXPECT_EQ(message.last_ejection().unix_ns(), 17u);
  EXPECT_EQ(message.last_ejection().dump(), "{}");
}

TEST(ConvertTest, OnlyWhatIsGivenIsChanged) {
  admin::pb::SetTenantRequest request;
  request.set_name("lab");
  EXPECT_EQ(admin::FromMessage(request).status().code(), Code::kInvalid);
  request.set_priority(0);  // Given, although it is 0.
  const auto change = admin::FromMessage(request);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change.value().priority, 0);
  EXPECT_FALSE(change.value().weight);
  admin::TenantSettings settings;
  settings.share.weight = 5;
  settings.share.priority = 9;
  ASSERT_TRUE(Apply(change.value(), &settings).ok());
  EXPECT_EQ(settings.share.weight, 5u);
  EXPECT_EQ(settings.share.priority, 0);
}

TEST(ControlPlaneTest, TheDefaultIsBesideTheFirstUnixSocket) {
  EXPECT_EQ(DefaultAdminAddress({"tcp:127.0.0.1:9700", "shm:/run/a.sock", "unix:/run/b.sock"}),
            "unix:/run/a.sock.admin");
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(DefaultAdminAddress({"tcp:127.0.0.1:9700"}), "unix:/run/user/7/hawser.sock.admin");
}

TEST(ControlPlaneTest, RefusesAddressesThatProveNothing) {
  EventLoop loop;
  ASSERT_TRUE(loop.Open().ok());
  const auto refused = [&](const std::string& uri) {
    return ControlPlane::Open(uri, false, &loop, nullptr).status().text();
  };
  EXPECT_THAT(refused("tcp:127.0.0.1:0"), HasSubstr("yes, whoever can connect may control this server"));
  EXPECT_THAT(refused("vsock::99"), HasSubstr("unix:/path"));
  EXPECT_THAT(refused("nonsense"), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace hawser::server
