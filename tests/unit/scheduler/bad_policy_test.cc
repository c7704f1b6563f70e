// SPDX-License-Identifier: Apache-2.0
// Policies that break the rules are refused, or ejected within two seconds of virtual time, and their tenants lose
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/conformance/conformance.h"
#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {
namespace {

using ::testing::HasSubstr;

std::string File(const std::string& bad) { return HAWSER_BAD_POLICY_DIRECTORY "/bad_" + bad + ".so"; }

struct Bad {
  const char* name;
  const char* says;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

class Ejected : public ::testing::TestWithParam<Bad> {};

Scenario ThreeTenants() {
  Scenario scenario = Load("weights-1-2-4");
  scenario.duration_ns = 6'000'000'000;
  SimClient sometimes = scenario.clients[0];  // Is idle now and then.
  sometimes.tenant.name = "sometimes";
  sometimes.think_ns = 5'000'000;
  scenario.clients.push_back(sometimes);
  return scenario;
}

TEST_P(Ejected, WithinTwoSeconds) {
  const auto library = PolicyLibrary::Find(File(GetParam().name));
  ASSERT_TRUE(library.ok()) << library.status().text();
  const auto result = Simulate(ThreeTenants(), library.value());
  ASSERT_TRUE(result.ok()) << result.status().text();
  ASSERT_TRUE(result.value().ejected);
  const auto event = std::find_if(result.value().events.begin(), result.value().events.end(),
                                  [](const PolicyEvent& e) { return e.kind == PolicyEvent::Kind::kEjected; });
  EXPECT_THAT(event->text, HasSubstr(GetParam().says));
  EXPECT_THAT(event->text, HasSubstr("fair takes over"));
  EXPECT_LE(event->at_ns, 2'000'000'000u);
  EXPECT_THAT(event->dump, HasSubstr("\"policy\":\"bad\""));
  EXPECT_THAT(event->dump, HasSubstr("\"tenants\":[{"));
  // From then on it is fair.
  const Metrics metrics = Measure(result.value());
  uint64_t busy = 0;
  for (const SimTenant& tenant : result.value().tenants) busy += tenant.used_ns;
  EXPECT_GT(static_cast<double>(busy), 0.95 * 6e9);
  const auto& last_window = metrics.windows[1].shares.back();
  EXPECT_NEAR(last_window[2] / last_window[1], 2.0, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Policies, Ejected,
                         ::testing::Values(Bad{"error", "select() failed with -7"},
                                           Bad{"stall", "kept the device idle"}, Bad{"starve", "starve"},
                                           Bad{"slow", "slow 3 times in a row"}, Bad{"sleep", "slow 3 times in a row"},
                                           Bad{"nobody", "decided for nobody"},
                                           Bad{"stranger", "a tenant that is not there"},
                                           Bad{"idle_tenant", "which has no work"}, Bad{"flags", "flags"},
                                           Bad{"result", "returned 42"}, Bad{"add", "tenant_add() failed"},
                                           Bad{"stage", "stage() named"}));

class Refused : public ::testing::TestWithParam<Bad> {};

TEST_P(Refused, WithTheReason) {
  const auto library = PolicyLibrary::Find(File(GetParam().name));
  ASSERT_TRUE(library.ok()) << library.status().text();
  const auto result = Simulate(ThreeTenants(), library.value());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().text(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(Policies, Refused,
                         ::testing::Values(Bad{"init", "init() returned -5"}, Bad{"size", "has 7 bytes"},
                                           Bad{"major", "interface 2.0; this host has 1.0"},
                                           Bad{"null", "refused to run here"}, Bad{"no_select", "has no select()"},
                                           Bad{"no_name", "has no name"}));

TEST(Loading, SaysWhatIsWrong) {
  EXPECT_THAT(PolicyLibrary::Find("nonsense").status().text(), HasSubstr("choose among fair, fifo"));
  EXPECT_THAT(PolicyLibrary::Find("/nowhere/x.so").status().text(), HasSubstr("cannot be loaded"));
  EXPECT_THAT(PolicyLibrary::Find(File("no_symbol")).status().text(), HasSubstr("does not export"));
}

std::vector<std::string> Problems(const std::vector<ConformanceCase>& cases) {
  std::vector<std::string> all;
  for (const ConformanceCase& one : cases) all.insert(all.end(), one.problems.begin(), one.problems.end());
  return all;
}

// What cannot be survived in one process is found in another.
TEST(Conformance, FindsACrash) {
  const auto cases = TestConformance(File("crash"), {.seeds = 0});
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains(HasSubstr("crashed: Segmentation fault")));
}

TEST(Conformance, FindsACallbackThatDoesNotReturn) {
  const auto cases = TestConformance(File("spin"), {.seeds = 0, .patience = std::chrono::milliseconds(300)});
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains("a callback did not return"));
}

TEST(Conformance, FindsTheSlow) {
  const auto cases = TestConformance(File("slow"), {.seeds = 0});
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains(HasSubstr("slow 3 times in a row")));
}

TEST(Conformance, AMomentInWhichTheMachineWasElsewhereIsNoProblem) {
  const auto library = PolicyLibrary::Find(File("hiccup"));
  ASSERT_TRUE(library.ok()) << library.status().text();
  EXPECT_THAT(CheckScenario(ThreeTenants(), library.value()), ::testing::Not(::testing::Contains(HasSubstr("slow"))));
}

TEST(Conformance, FindsAnExit) {
  const auto cases = TestConformance(File("exit"), {.seeds = 0});
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains(HasSubstr("ended the process")));
}

TEST(Conformance, NamesWhatIsRefused) {
  EXPECT_THAT(TestConformance(File("major"), {}).status().text(), HasSubstr("interface 2.0"));
}

TEST(Conformance, FindsTheStarving) {
  const auto cases = TestConformance(File("starve"), {.seeds = 3});
  ASSERT_TRUE(cases.ok());
  size_t failed = 0;
  for (const ConformanceCase& one : cases.value()) failed += one.problems.empty() ? 0 : 1;
  EXPECT_GT(failed, 3u);
  EXPECT_GT(cases.value().size(), BuiltinScenarios().size());
}

TEST(Conformance, FindsWhosePiecesAreTooShort) {
  const auto cases = TestConformance(File("unit"), {.seeds = 0});
  ASSERT_TRUE(cases.ok());
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains(HasSubstr("pieces of less than 10 us")));
}

TEST(Conformance, FindsWhoseTimersAreTooDense) {
  const auto cases = TestConformance(File("hurry"), {.seeds = 0});
  ASSERT_TRUE(cases.ok());
  EXPECT_THAT(Problems(cases.value()), ::testing::Contains(HasSubstr("sooner than 250 us after the last one")));
}

class Conforming : public ::testing::TestWithParam<BuiltinPolicy> {};

TEST_P(Conforming, EachBuiltInOne) {
  const auto cases = TestConformance(std::string(GetParam().name), {.seeds = 15});
  ASSERT_TRUE(cases.ok()) << cases.status().text();
  EXPECT_EQ(cases.value().size(), BuiltinScenarios().size() + 30);
  for (const ConformanceCase& one : cases.value()) {
    EXPECT_THAT(one.problems, ::testing::IsEmpty()) << GetParam().name << ": " << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Conforming, ::testing::ValuesIn(BuiltinPolicies()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace hawser::scheduler
