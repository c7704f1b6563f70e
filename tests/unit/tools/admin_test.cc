// SPDX-License-Identifier: Apache-2.0
// The commands for operators, without a server: addresses, words, tables, JSON, timelines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/admin/address.h"
#include "tools/admin/chrome_trace.h"
#include "tools/admin/json.h"
#include "tools/admin/tenants_command.h"
#include "tools/admin/text.h"

namespace hawser::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// ---------------------------------------------------------------------------------------------
// Addresses

class AddressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("HAWSER_ADMIN");
    ::unsetenv("HAWSER_SERVER");
    ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  }
  static std::string Of(const std::string& admin, const std::string& server) {
    const auto endpoint = AdminEndpoint(admin, server);
    return endpoint.ok() ? endpoint.value().ToString() : endpoint.status().text();
  }
};

TEST_F(AddressTest, IsBesideTheServersSocket) {
  EXPECT_EQ(Of("", ""), "unix:/run/user/7/hawser.sock.admin");
  EXPECT_EQ(Of("", "shm:/run/a.sock"), "unix:/run/a.sock.admin");
  ::setenv("HAWSER_SERVER", "unix:/run/b.sock", 1);
  EXPECT_EQ(Of("", ""), "unix:/run/b.sock.admin");
  ::setenv("HAWSER_ADMIN", "unix:/run/c.admin", 1);
  EXPECT_EQ(Of("", ""), "unix:/run/c.admin");
  EXPECT_EQ(Of("", "unix:/run/a.sock"), "unix:/run/a.sock.admin") << "what was typed counts more";
  EXPECT_EQ(Of("tcp:127.0.0.1:9701", "unix:/run/a.sock"), "tcp:127.0.0.1:9701");
}

TEST_F(AddressTest, SaysWhatToTypeForServersElsewhere) {
  EXPECT_THAT(Of("", "tcp:gpubox:9700"), HasSubstr("--admin unix:/path"));
  EXPECT_THAT(Of("vsock:2:9700", ""), HasSubstr("unix:/path or tcp:host:port"));
  EXPECT_THAT(Of("nonsense", ""), HasSubstr("nonsense"));
}

// ---------------------------------------------------------------------------------------------
// Words

TEST(TenantWordsTest, BecomeARequest) {
  TenantWords words;
  words.name = "alice";
  words.weight = 300;
  words.memory = "2GiB";
  words.max_share = "12.5%";
  words.slo_ms = 7.5;
  const auto request = ToRequest(words);
  ASSERT_TRUE(request.ok()) << request.status().text();
  EXPECT_EQ(request.value().name(), "alice");
  EXPECT_EQ(request.value().weight(), 300u);
  EXPECT_EQ(request.value().session_device_memory_bytes(), uint64_t{2} << 30);
  EXPECT_EQ(request.value().max_share_ppm(), 125'000u);
  EXPECT_EQ(request.value().slo_ns(), 7'500'000u);
  EXPECT_FALSE(request.value().has_priority());
  EXPECT_FALSE(request.value().has_min_share_ppm());
  words.memory = "device";
  EXPECT_TRUE(ToRequest(words).value().has_session_device_memory_bytes());
  EXPECT_EQ(ToRequest(words).value().session_device_memory_bytes(), 0u);
}

TEST(TenantWordsTest, SayWhichOptionIsWrong) {
  TenantWords words;
  words.name = "alice";
  words.memory = "2GB";
  EXPECT_THAT(ToRequest(words).status().text(), HasSubstr("--memory: '2GB'"));
  words.memory.clear();
  words.min_share = "half";
  EXPECT_THAT(ToRequest(words).status().text(), HasSubstr("--min-share: 'half'"));
  words.min_share.clear();
  words.slo_ms = -1;
  EXPECT_THAT(ToRequest(words).status().text(), HasSubstr("--slo-ms"));
  for (const char* bad : {"", "%", "-1", "101", "50%%", "nan", "inf", "1e9"})
    EXPECT_FALSE(ParsePercent(bad).ok()) << bad;
  EXPECT_EQ(ParsePercent("100").value(), 1'000'000u);
  EXPECT_EQ(ParsePercent("0.0001%").value(), 1u);
}

// ---------------------------------------------------------------------------------------------
// Tables

TEST(TextTest, QuantitiesAreShort) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(4096), "4.0 KiB");
  EXPECT_EQ(BytesText(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(BytesText(uint64_t{500} << 20), "500 MiB");
  EXPECT_THAT(BytesText(UINT64_MAX), HasSubstr("EiB"));
  EXPECT_EQ(DurationText(0), "0");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'500'000), "1.5 ms");
  EXPECT_EQ(DurationText(59'000'000'000), "59 s");
  EXPECT_EQ(DurationText(uint64_t{3} * 3600 * 1'000'000'000), "3h00m");
  EXPECT_EQ(DurationText(uint64_t{50} * 3600 * 1'000'000'000), "2d02h");
  EXPECT_EQ(PercentText(125'000), "12.5%");
}

TEST(TextTest, ColumnsAreAligned) {
  Table table({"NAME", "N"}, {true});
  table.Add({"a", "1000"});
  table.Add({"gr\xc3\xbc\xc3\x9f", "2"});
  EXPECT_EQ(table.Text(), "NAME     N\na     1000\ngr\xc3\xbc\xc3\x9f     2\n");
}

pb::Snapshot Sample(uint64_t at_s, uint64_t busy_a_ms, uint64_t busy_b_ms) {
  pb::Snapshot snapshot;
  snapshot.set_monotonic_ns(at_s * 1'000'000'000);
  snapshot.mutable_status()->set_version("9.9");
  snapshot.mutable_status()->mutable_policy()->set_name("fair");
  for (const auto& [name, busy] : {std::pair{"alice", busy_a_ms}, {"bob", busy_b_ms}}) {
    pb::Tenant* tenant = snapshot.add_tenants();
    tenant->set_name(name);
    tenant->mutable_settings()->set_weight(100);
    tenant->set_gpu_ns(busy * 1'000'000);
    tenant->set_commands(1000 * at_s);
  }
  pb::Session* session = snapshot.add_sessions();
  session->set_id(3);
  session->set_tenant("alice");
  session->set_program("train");
  session->set_state(pb::SESSION_STATE_RUNNING);
  session->set_device_memory_bytes(1u << 20);
  session->set_commands(500 * at_s);
  return snapshot;
}

std::string Line(const std::string& text, const std::string& with) {
  const size_t at = text.find(with);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(TopTest, ShowsSharesAndRatesBetweenTwoSnapshots) {
  const pb::Snapshot before = Sample(10, 1000, 5000), now = Sample(12, 2200, 5400);
  const std::string text = TopText(now, &before, "unix:/x", 0, 0);
  EXPECT_THAT(text, HasSubstr("policy fair"));
  // 1200 of 1600 ms of work, in 2000 ms.
  EXPECT_THAT(Line(text, "alice   "), HasSubstr(" 75.0%   60.0%"));
  EXPECT_THAT(Line(text, "bob"), HasSubstr(" 25.0%   20.0%"));
  EXPECT_THAT(Line(text, "bob"), HasSubstr(" 1000 ")) << "commands a second";
  EXPECT_THAT(Line(text, "train"), HasSubstr("running"));
  EXPECT_THAT(Line(text, "train"), HasSubstr("1.0 MiB    500"));
}

TEST(TopTest, ShowsWhatSharingCosts) {
  pb::Snapshot before = Sample(10, 1000, 5000), now = Sample(12, 2200, 5400);
  EXPECT_THAT(TopText(now, &before, "unix:/x", 0, 0), Not(HasSubstr("(system)"))) << "a server without a scheduler";
  before.mutable_system()->set_gap_ns(100'000'000);
  now.mutable_system()->set_gap_ns(150'000'000);
  now.mutable_system()->set_waited_ns(30'000'000);
  const std::string text = TopText(now, &before, "unix:/x", 0, 0);
  EXPECT_THAT(Line(text, "(system)"), HasSubstr(" 2.5%")) << "50 of 2000 ms";
  EXPECT_THAT(Line(text, "(waits)"), HasSubstr(" 1.5%"));
  EXPECT_THAT(Line(text, "alice   "), HasSubstr(" 75.0%   60.0%")) << "nobody's share changes";
  EXPECT_THAT(Line(TopText(now, nullptr, "unix:/x", 0, 0), "(system)"), Not(HasSubstr("%")));
}

TEST(TextTest, ThePolicyAndWhatElseThereIs) {
  pb::Policy policy;
  policy.set_name("none");
  policy.add_available("none");
  EXPECT_EQ(PolicyText(policy), "policy none\n");
  policy.set_name("fair");
  policy.clear_available();
  for (const char* name : {"fair", "drr", "band"}) policy.add_available(name);
  policy.mutable_last_ejection()->set_policy("mine");
  policy.mutable_last_ejection()->set_reason("select() failed with -1");
  EXPECT_EQ(PolicyText(policy),
            "policy fair\nothers drr, band, or a plugin's file\npolicy mine was ejected: select() failed with -1\n");
}

TEST(TopTest, SaysWhichPolicyWasEjectedAndWhy) {
  pb::Snapshot now = Sample(12, 2200, 5400);
  EXPECT_THAT(TopText(now, nullptr, "unix:/x", 0, 0), Not(HasSubstr("ejected")));
  EXPECT_TRUE(ToJson(now)["status"]["policy"]["last_ejection"].is_null());
  EXPECT_TRUE(ToJson(now)["system"].is_null());
  now.set_unix_ns(100'000'000'000);
  pb::Ejection* last = now.mutable_status()->mutable_policy()->mutable_last_ejection();
  last->set_policy("mine");
  last->set_reason("select() failed with -1");
  last->set_unix_ns(97'000'000'000);
  last->set_dump("{}");
  EXPECT_EQ(Line(TopText(now, nullptr, "unix:/x", 0, 0), "ejected"),
            "policy mine was ejected 3 s ago: select() failed with -1");
  EXPECT_EQ(ToJson(now)["status"]["policy"]["last_ejection"]["dump"], "{}");
  now.mutable_system()->set_switches(7);
  EXPECT_EQ(ToJson(now)["system"]["switches"], 7);
}

TEST(TopTest, KnowsNothingBeforeTheSecondSnapshot) {
  const pb::Snapshot now = Sample(12, 2200, 5400);
  const std::string text = TopText(now, nullptr, "unix:/x", 0, 0);
  EXPECT_THAT(Line(text, "bob"), Not(HasSubstr("%")));
  // A server that was started again counts from zero.
  const pb::Snapshot before = Sample(10, 9000, 9000);
  EXPECT_THAT(TopText(now, &before, "unix:/x", 0, 0), Not(HasSubstr("-1")));
}

TEST(TopTest, SaysWhoHasHowMuchOfWhichDevice) {
  pb::Snapshot before = Sample(10, 1000, 1000), now = Sample(12, 2000, 2000);
  const auto add = [](pb::Snapshot* snapshot, int tenant, const char* device, uint64_t ms) {
    pb::DeviceTime* time = snapshot->mutable_tenants(tenant)->add_device_times();
    time->set_device(device);
    time->set_gpu_ns(ms * 1'000'000);
  };
  add(&before, 0, "pci:0000:01:00", 1000);
  add(&now, 0, "pci:0000:01:00", 1600);
  add(&now, 1, "pci:0000:01:00", 200);
  // With one device the tenants' own table says it all.
  EXPECT_THAT(TopText(now, &before, "unix:/x", 0, 0), Not(HasSubstr("pci:")));
  add(&before, 1, "pci:0000:02:00", 100);
  add(&now, 1, "pci:0000:02:00", 1100);
  const std::string text = TopText(now, &before, "unix:/x", 0, 0);
  const std::string first = Line(text, "pci:0000:01:00");
  EXPECT_THAT(first, HasSubstr(now.tenants(0).name()));
  EXPECT_THAT(first, HasSubstr("75.0%"));  // Of what was used there.
  EXPECT_THAT(first, HasSubstr("30.0%"));  // Of the time.
  EXPECT_THAT(Line(text, "pci:0000:02:00"), HasSubstr("100.0%"));
  EXPECT_THAT(Line(text, "pci:0000:02:00"), HasSubstr("50.0%"));
}

TEST(TopTest, FitsItsScreen) {
  const pb::Snapshot now = Sample(12, 2200, 5400);
  const std::string text = TopText(now, nullptr, "unix:/x", 3, 20);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(end - at, 20u);
  }
}

// ---------------------------------------------------------------------------------------------
// JSON

TEST(JsonTest, NumbersAreNumbersAndAbsentIsNull) {
  pb::Session session;
  session.set_id(UINT64_MAX);
  session.set_program("a \"quoted\" name");
  session.set_state(pb::SESSION_STATE_RUNNING);
  session.set_gpu_ns(0);
  const auto json = ToJson(session);
  EXPECT_EQ(json["id"], UINT64_MAX);
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["gpu_ns"], 0);
  EXPECT_TRUE(json["pending_ns"].is_null());
  EXPECT_EQ(json["commands"], 0);
  const auto snapshot = ToJson(Sample(1, 2, 3));
  EXPECT_EQ(snapshot["tenants"][1]["name"], "bob");
  EXPECT_EQ(snapshot["status"]["policy"]["available"], nlohmann::ordered_json::array());
  EXPECT_EQ(nlohmann::ordered_json::parse(snapshot.dump()), snapshot);
}

// ---------------------------------------------------------------------------------------------
// Timelines

class ChromeTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hawser-trace-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/trace.json"; }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  static void Add(pb::TraceBatch* batch, pb::TraceKind kind, uint64_t session, uint64_t begin, uint64_t end,
                  const std::string& name, uint32_t track = 0) {
    pb::TraceEvent* event = batch->add_events();
    event->set_kind(kind);
    event->set_session(session);
    event->set_begin_ns(begin);
    event->set_end_ns(end);
    event->set_tenant("lab");
    event->set_name(name);
    event->set_track(track);
  }
  nlohmann::json Read() const { return nlohmann::json::parse(std::ifstream(path())); }

  std::string folder_;
};

TEST_F(ChromeTraceTest, EventsBecomeSpans) {
  pb::TraceBatch batch;
  Add(&batch, pb::TRACE_KIND_SESSION_BEGIN, 3, 1'000'000, 0, "prog \"x\"");
  Add(&batch, pb::TRACE_KIND_KERNEL, 3, 1'002'000, 1'005'500, "_Z5saxpyfPKfPf", 2);
  Add(&batch, pb::TRACE_KIND_COMMAND, 3, 1'003'000, 1'003'000, "Finish");
  Add(&batch, pb::TRACE_KIND_SESSION_END, 3, 1'010'000, 0, "prog");
  Add(&batch, pb::TRACE_KIND_SESSION_BEGIN, 4, 1'011'000, 0, "other");
  batch.set_lost(5);
  batch.set_unix_minus_monotonic_ns(7);
  ChromeTrace trace(path());
  ASSERT_TRUE(trace.Open().ok());
  trace.Add(batch);
  ASSERT_TRUE(trace.Finish(1'020'000).ok());
  EXPECT_EQ(trace.events(), 2u);
  EXPECT_EQ(trace.sessions(), 2u);
  const auto json = Read();
  EXPECT_EQ(json["otherData"]["lost_events"], 5);
  EXPECT_EQ(json["otherData"]["begin_unix_ns"], 1'000'007);
  const auto find = [&](const std::string& name) -> nlohmann::json {
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == "X" && event["name"] == name) return event;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  };
  EXPECT_EQ(find("saxpy")["ts"], 2.0);
  EXPECT_EQ(find("saxpy")["dur"], 3.5);
  EXPECT_EQ(find("saxpy")["pid"], 3);
  EXPECT_EQ(find("saxpy")["args"]["symbol"], "_Z5saxpyfPKfPf");
  EXPECT_FALSE(find("Finish").contains("args"));
  EXPECT_NE(find("saxpy")["tid"], find("Finish")["tid"]);
  EXPECT_EQ(find("prog \"x\"")["dur"], 10.0);
  EXPECT_EQ(find("other")["dur"], 9.0) << "until the end of the trace";
  EXPECT_THAT(json.dump(), HasSubstr("kernels, queue 2"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ChromeTraceTest, AGrantThatGoesOnIsOneSpan) {
  pb::TraceBatch batch;
  Add(&batch, pb::TRACE_KIND_SESSION_BEGIN, 3, 1'000'000, 0, "prog");
  Add(&batch, pb::TRACE_KIND_SESSION_BEGIN, 4, 1'000'000, 0, "prog");
  Add(&batch, pb::TRACE_KIND_GRANT, 3, 1'001'000, 0, "alone");
  Add(&batch, pb::TRACE_KIND_GRANT, 3, 1'001'000, 1'003'000, "alone");
  Add(&batch, pb::TRACE_KIND_GRANT, 4, 1'003'000, 1'004'000, "turn");
  Add(&batch, pb::TRACE_KIND_GRANT, 3, 1'004'000, 0, "turn");
  ChromeTrace trace(path());
  ASSERT_TRUE(trace.Open().ok());
  trace.Add(batch);
  ASSERT_TRUE(trace.Finish(1'009'000).ok());
  std::vector<std::pair<std::string, double>> grants;
  const nlohmann::json json = Read();
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "grant") grants.emplace_back(event["name"], event["dur"]);
  }
  EXPECT_EQ(grants, (std::vector<std::pair<std::string, double>>{{"alone", 2.0}, {"turn", 1.0}, {"turn", 5.0}}));
  EXPECT_EQ(trace.events(), 3u);
}

// A session may have two devices at a time.
TEST_F(ChromeTraceTest, GrantsOfEachDeviceHaveATrack) {
  pb::TraceBatch batch;
  Add(&batch, pb::TRACE_KIND_SESSION_BEGIN, 3, 1'000'000, 0, "prog");
  for (const char* device : {"pci:0000:01:00", "pci:0000:02:00"}) {
    Add(&batch, pb::TRACE_KIND_GRANT, 3, 1'001'000, 0, "alone");
    batch.mutable_events(batch.events_size() - 1)->set_device(device);
  }
  Add(&batch, pb::TRACE_KIND_GRANT, 3, 1'001'000, 1'003'000, "alone");
  batch.mutable_events(batch.events_size() - 1)->set_device("pci:0000:02:00");
  ChromeTrace trace(path());
  ASSERT_TRUE(trace.Open().ok());
  trace.Add(batch);
  ASSERT_TRUE(trace.Finish(1'009'000).ok());
  std::map<std::string, int> tracks;
  std::map<int, double> lengths;
  const nlohmann::json json = Read();
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "grant") lengths[event["tid"]] = event["dur"];
    if (event["ph"] == "M" && event["name"] == "thread_name") tracks[event["args"]["name"]] = event["tid"];
  }
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_EQ(lengths[tracks.at("grants, pci:0000:01:00")], 8.0);
  EXPECT_EQ(lengths[tracks.at("grants, pci:0000:02:00")], 2.0);
}

TEST_F(ChromeTraceTest, AnEmptyTraceIsGoodJson) {
  ChromeTrace trace(path());
  ASSERT_TRUE(trace.Open().ok());
  ASSERT_TRUE(trace.Finish(1).ok());
  EXPECT_TRUE(Read()["traceEvents"].empty());
}

TEST_F(ChromeTraceTest, LeavesNothingWhenItIsNotFinished) {
  {
    std::ofstream(path()) << "old";
    ChromeTrace trace(path());
    ASSERT_TRUE(trace.Open().ok());
    pb::TraceBatch batch;
    Add(&batch, pb::TRACE_KIND_KERNEL, 1, 1, 2, "k");
    trace.Add(batch);
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(files(), 1u);
  std::string text;
  std::getline(std::ifstream(path()), text);
  EXPECT_EQ(text, "old");
  EXPECT_THAT(ChromeTrace(folder_ + "/no/such/folder").Open().text(), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace hawser::tools
