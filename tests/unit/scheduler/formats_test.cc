// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/scenario.h"

namespace hawser::scheduler {
namespace {

using ::testing::HasSubstr;

std::string Wrong(const std::string& json) {
  const auto scenario = ParseScenario(json, "x");
  return scenario.ok() ? "" : scenario.status().text();
}

TEST(Scenario, BuiltInOnesAreGood) {
  for (const BuiltinScenario& builtin : BuiltinScenarios()) {
    const auto scenario = FindScenario(std::string(builtin.name));
    ASSERT_TRUE(scenario.ok()) << scenario.status().text();
    EXPECT_EQ(scenario.value().name, builtin.name);
    EXPECT_FALSE(scenario.value().summary.empty());
  }
  EXPECT_GE(BuiltinScenarios().size(), 25u);
}

TEST(Scenario, NamesItsMistakes) {
  EXPECT_THAT(Wrong("["), HasSubstr("not JSON"));
  EXPECT_THAT(Wrong("[]"), HasSubstr("not an object"));
  EXPECT_THAT(Wrong("{}"), HasSubstr("tenants is missing"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a"}]})"), HasSubstr("tenant 1: kernels is missing"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"kernels": [{}]}]})"), HasSubstr("name is missing"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "wieght": 3, "kernels": [{}]}]})"),
              HasSubstr("'wieght' means nothing"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "weight": 0, "kernels": [{}]}]})"),
              HasSubstr("weight is not a number"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "weight": 1.5, "kernels": [{}]}]})"), HasSubstr("whole number"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "count": 257, "kernels": [{}]}]})"), HasSubstr("count"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "arrival": "now", "kernels": [{}]}]})"), HasSubstr("arrival"));
  EXPECT_THAT(Wrong(R"({"tenants": [{"name": "a", "sleep_ms": [[5, 3]], "kernels": [{}]}]})"), HasSubstr("sleep_ms"));
  EXPECT_THAT(Wrong(std::string(100, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(Wrong(std::string(2u << 20, ' ')), HasSubstr("longer than 1 MiB"));
  EXPECT_THAT(FindScenario("nonsense").status().text(), HasSubstr("gpuvm-2"));
  EXPECT_FALSE(FindScenario("/nowhere.json").ok());
}

TEST(Scenario, CopiesAreNumbered) {
  const auto scenario =
      ParseScenario(R"({"tenants": [{"name": "a", "count": 2, "stagger_us": 5, "kernels": [{"length_us": 7}]}]})", "x");
  ASSERT_TRUE(scenario.ok()) << scenario.status().text();
  ASSERT_EQ(scenario.value().clients.size(), 2u);
  EXPECT_EQ(scenario.value().clients[1].tenant.name, "a-2");
  EXPECT_EQ(scenario.value().clients[1].start_ns, 5000u);
  EXPECT_EQ(scenario.value().clients[1].kernels[0].length_ns, 7000u);
}

TEST(Metrics, AreThoseOfTheDefinition) {
  EXPECT_DOUBLE_EQ(Jain({1, 1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(Jain({1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(Jain({1, 5}), 36.0 / 52);
  const std::vector<double> sorted = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(Percentile(sorted, 0.5), 5);
  EXPECT_EQ(Percentile(sorted, 0.99), 10);
  EXPECT_EQ(Percentile({}, 0.5), 0);
  const Distribution d = Describe({2, 4});
  EXPECT_DOUBLE_EQ(d.mean_ns, 3);
  EXPECT_DOUBLE_EQ(d.cv, 1.0 / 3);
}

}  // namespace
}  // namespace hawser::scheduler
