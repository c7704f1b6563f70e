// SPDX-License-Identifier: Apache-2.0
// A policy decides the same in a process of its own as in this one: every built-in policy, as a plugin, over every
// built-in scenario and some random ones; and a bad one is found out for the same reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "scheduler/conformance/conformance.h"
#include "tests/unit/scheduler/isolated.h"

namespace hawser::scheduler {
namespace {

using ::testing::HasSubstr;

void ExpectEqual(const SimResult& here, const SimResult& there) {
  ASSERT_EQ(here.events.size(), there.events.size());
  for (size_t i = 0; i < here.events.size(); ++i) {
    EXPECT_EQ(here.events[i].kind, there.events[i].kind);
    EXPECT_EQ(here.events[i].at_ns, there.events[i].at_ns);
    EXPECT_EQ(here.events[i].text, there.events[i].text);
    EXPECT_EQ(here.events[i].dump, there.events[i].dump);
  }
  EXPECT_EQ(here.ejected, there.ejected);
  ASSERT_EQ(here.busy.size(), there.busy.size());
  for (size_t i = 0; i < here.busy.size(); ++i) {
    ASSERT_EQ(std::tie(here.busy[i].tenant, here.busy[i].begin_ns, here.busy[i].end_ns),
              std::tie(there.busy[i].tenant, there.busy[i].begin_ns, there.busy[i].end_ns))
        << "piece " << i;
  }
  ASSERT_EQ(here.samples.size(), there.samples.size());
  for (size_t i = 0; i < here.tenants.size(); ++i) {
    EXPECT_EQ(here.tenants[i].charged_ns, there.tenants[i].charged_ns);
    EXPECT_EQ(here.tenants[i].grants, there.tenants[i].grants);
    EXPECT_EQ(here.tenants[i].requests.size(), there.tenants[i].requests.size());
  }
  EXPECT_EQ(here.handoff_ns, there.handoff_ns);
  EXPECT_EQ(here.waited_ns, there.waited_ns);
  EXPECT_EQ(here.lingered_ns, there.lingered_ns);
  EXPECT_EQ(here.timers, there.timers);
  EXPECT_EQ(here.final_dump, there.final_dump);
}

class Equal : public ::testing::TestWithParam<BuiltinPolicy> {};

TEST_P(Equal, InEveryScenario) {
  const std::string plugin = HAWSER_POLICY_DIRECTORY "/" + std::string(GetParam().name) + ".so";
  const auto here = PolicyLibrary::Find(plugin);
  ASSERT_TRUE(here.ok()) << here.status().text();
  const auto there = OpenIsolated(plugin, Patient());
  ASSERT_TRUE(there.ok()) << there.status().text();
  std::vector<Scenario> scenarios;
  for (const BuiltinScenario& builtin : BuiltinScenarios()) scenarios.push_back(Load(std::string(builtin.name)));
  for (uint64_t seed = 1; seed <= 5; ++seed) scenarios.push_back(RandomScenario(seed));
  size_t pieces = 0;
  for (Scenario& scenario : scenarios) {
    SCOPED_TRACE(scenario.name);
    scenario.duration_ns = std::min<uint64_t>(scenario.duration_ns, 5'000'000'000);
    const auto a = Simulate(scenario, here.value(), Unmeasured());
    const auto b = Simulate(scenario, there.value(), Unmeasured());
    ASSERT_TRUE(a.ok()) << a.status().text();
    ASSERT_TRUE(b.ok()) << b.status().text();
    EXPECT_FALSE(b.value().ejected);
    ExpectEqual(a.value(), b.value());
    pieces += a.value().busy.size();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(pieces, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Policies, Equal, ::testing::ValuesIn(BuiltinPolicies()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// A built-in policy can be shut in by its name.
TEST(EqualByName, Fair) {
  const auto there = OpenIsolated("fair", Patient());
  ASSERT_TRUE(there.ok()) << there.status().text();
  const Scenario scenario = Load("many");
  const auto a = Simulate(scenario, PolicyLibrary::Fair(), Unmeasured());
  const auto b = Simulate(scenario, there.value(), Unmeasured());
  ASSERT_TRUE(a.ok() && b.ok());
  ExpectEqual(a.value(), b.value());
}

class EqualWrongs : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualWrongs, AreEjectedForTheSameReason) {
  const auto here = PolicyLibrary::Find(BadPlugin(GetParam()));
  const auto there = OpenIsolated(BadPlugin(GetParam()), Patient());
  ASSERT_TRUE(here.ok() && there.ok()) << there.status().text();
  Scenario scenario = Load("weights-1-2-4");
  scenario.duration_ns = 3'000'000'000;
  scenario.clients[2].think_ns = 5'000'000;
  const auto a = Simulate(scenario, here.value(), Unmeasured());
  const auto b = Simulate(scenario, there.value(), Unmeasured());
  ASSERT_TRUE(a.ok() && b.ok()) << b.status().text();
  EXPECT_TRUE(b.value().ejected);
  ExpectEqual(a.value(), b.value());
}

INSTANTIATE_TEST_SUITE_P(Policies, EqualWrongs,
                         ::testing::Values("error", "stall", "starve", "nobody", "stranger", "idle_tenant", "flags",
                                           "result", "add", "stage", "dump"));

class EqualRefusals : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualRefusals, AreForTheSameReason) {
  const auto here = PolicyLibrary::Find(BadPlugin(GetParam()));
  ASSERT_TRUE(here.ok());
  const auto there = OpenIsolated(BadPlugin(GetParam()), Patient());
  ASSERT_TRUE(there.ok()) << there.status().text();
  const auto a = Simulate(Load("gpuvm-2"), here.value());
  const auto b = Simulate(Load("gpuvm-2"), there.value());
  ASSERT_FALSE(a.ok());
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(a.status().text(), b.status().text());
  EXPECT_EQ(a.status().code(), b.status().code());
}

INSTANTIATE_TEST_SUITE_P(Policies, EqualRefusals,
                         ::testing::Values("init", "size", "major", "null", "no_select", "no_name"));

TEST(EqualLoading, SaysTheSame) {
  for (const std::string& what : {BadPlugin("no_symbol"), std::string("/nowhere/x.so"), std::string("nonsense")}) {
    const auto here = PolicyLibrary::Find(what);
    const auto there = OpenIsolated(what, Patient());
    ASSERT_FALSE(here.ok());
    ASSERT_FALSE(there.ok());
    EXPECT_EQ(here.status().text(), there.status().text());
  }
}

TEST(ConformanceShutIn, PassesAndFindsACrash) {
  ConformanceOptions options;
  options.seeds = 2;
  options.open = [](const std::string& name) { return OpenIsolated(name, Patient()); };
  auto cases = TestConformance(HAWSER_POLICY_DIRECTORY "/drr.so", options);
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_EQ(cases.value().size(), BuiltinScenarios().size() + 4);
  // Not that nothing was slow on this machine, but that nothing was wrong.
  for (const ConformanceCase& one : cases.value()) {
    for (const std::string& problem : one.problems) EXPECT_THAT(problem, HasSubstr("slow")) << one.name;
  }
  options.seeds = 0;
  cases = TestConformance(BadPlugin("crash"), options);
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  size_t crashes = 0;
  for (const ConformanceCase& one : cases.value()) {
    crashes += one.problems.size();
    for (const std::string& problem : one.problems) {
      EXPECT_THAT(problem, HasSubstr("killed by signal 11 (SIGSEGV) in select()")) << one.name;
    }
  }
  // Each is survived, so that every scenario is played; only who is alone is not asked for often enough to crash.
  EXPECT_EQ(cases.value().size(), BuiltinScenarios().size());
  EXPECT_GT(crashes, BuiltinScenarios().size() - 4);
}

}  // namespace
}  // namespace hawser::scheduler
