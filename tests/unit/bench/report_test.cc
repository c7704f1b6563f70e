// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hawser::bench {
namespace {

using ::testing::HasSubstr;
using wire::Transport;

OpenClResults Sample() {
  OpenClResults results;
  results.device = "a device";
  results.date = "2026-01-02T03:04:05Z";
  results.command = "hawser bench opencl --quick";
  results.rounds = 3;
  results.transports = {Transport::kShm};
  results.raw[Transport::kShm] = {2.0, 8.0, 90.0};
  Row launch;
  launch.spec = {"launch_finish_p50", "launch + finish, p50", "us"};
  launch.native_rounds = {30, 31, 50};
  launch.remote[Transport::kShm].rounds = {40, 33, 35};
  Row waits;
  waits.spec = {"step_waits", "waits per step", "", Better::kLower, true};
  waits.remote[Transport::kShm].rounds = {1, 1, 2};
  results.rows = {launch, waits};
  Finish(results);
  return results;
}

TEST(Quantity, AdaptsTheUnit) {
  EXPECT_EQ(Quantity(845526, "1/s"), "846 k/s");
  EXPECT_EQ(Quantity(1.5e6, "1/s"), "1.50 M/s");
  EXPECT_EQ(Quantity(31.94, "us"), "31.9 us");
  EXPECT_EQ(Quantity(0.0073, "us"), "7.30 ns");
  EXPECT_EQ(Quantity(44000, "us"), "44.0 ms");
  EXPECT_EQ(Quantity(0, ""), "0");
}

TEST(Finish, TakesMediansRatiosAndTargets) {
  const OpenClResults results = Sample();
  const Row* row = results.Find("launch_finish_p50");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->native, 31);
  const RemoteValue& remote = row->remote.at(Transport::kShm);
  EXPECT_EQ(remote.median, 35);
  EXPECT_DOUBLE_EQ(*remote.ratio, 33.0 / 31);  // 1.33, 1.06, 0.70
  EXPECT_TRUE(remote.target->met);
}

TEST(Finish, JudgesPairsSoThatAMachineMayChangeItsSpeed) {
  OpenClResults results;
  results.raw[Transport::kShm] = {2.0, 8.0, 100};
  Row build;
  build.spec = {"build_cached", "", "ms"};
  // Always 0.1 over, which is within the limit; the remote median is of the slow half, the native one of the fast.
  build.native_rounds = {20, 20, 20, 38, 38};
  build.remote[Transport::kShm].rounds = {20.1, 20.1, 38.1, 38.1, 38.1};
  results.rows = {build};
  Finish(results);
  EXPECT_TRUE(results.rows[0].remote[Transport::kShm].target->met);
  // And always more than that is more than that.
  for (double& round : results.rows[0].remote[Transport::kShm].rounds) round += 0.2;
  Finish(results);
  EXPECT_FALSE(results.rows[0].remote[Transport::kShm].target->met);
}

TEST(Finish, TakesMediansWhereThereAreNoPairs) {
  OpenClResults results = Sample();
  results.rows[0].native_rounds.push_back(1000);
  Finish(results);
  EXPECT_DOUBLE_EQ(*results.rows[0].remote[Transport::kShm].ratio, 35 / 40.5);
}

TEST(ReportJson, HasSchemaMachineAndMeasures) {
  const auto json = ReportJson(Sample());
  EXPECT_EQ(json.at("schema"), "hawser.bench.opencl/1");
  EXPECT_TRUE(json.at("machine").contains("processor"));
  const auto& measure = json.at("measures").at(0);
  EXPECT_EQ(measure.at("native"), 31);
  EXPECT_EQ(measure.at("remote").at("shm").at("met"), true);
  EXPECT_EQ(json.at("measures").at(1).at("native"), nullptr);
  EXPECT_EQ(json.at("raw").at("shm").at("round_trip_us"), 2.0);
}

TEST(ReportText, ShowsEachRowAndWhetherItsTargetIsMet) {
  const std::string text = ReportText(Sample());
  EXPECT_THAT(text, HasSubstr("Over shm"));
  EXPECT_THAT(text, HasSubstr("1.06x"));
  EXPECT_THAT(text, HasSubstr("yes"));
}

TEST(ReportMarkdown, HasTheCommandAndATable) {
  const std::string text = ReportMarkdown(Sample());
  EXPECT_THAT(text, HasSubstr("hawser bench opencl --quick"));
  EXPECT_THAT(text, HasSubstr("| launch + finish, p50 | 31.0 us | 35.0 us | 1.06x |"));
}

}  // namespace
}  // namespace hawser::bench
