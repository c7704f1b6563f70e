// SPDX-License-Identifier: Apache-2.0
// A policy in a process of its own that crashes, hangs, lies, or is killed at any point is ejected, and nothing of the
// tenants' is lost.
#include "tests/unit/scheduler/isolated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "scheduler/isolated/isolated_policy.h"
#include "scheduler/isolated/log_budget.h"
#include "scheduler/isolated/policy_process.h"

namespace hawser::scheduler {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

Scenario ThreeTenants() {
  Scenario scenario = Load("weights-1-2-4");
  scenario.duration_ns = 3'000'000'000;
  SimClient sometimes = scenario.clients[0];  // Is idle now and then.
  sometimes.tenant.name = "sometimes";
  sometimes.think_ns = 5'000'000;
  scenario.clients.push_back(sometimes);
  return scenario;
}

std::string EjectedFor(const SimResult& result) {
  const auto event = std::find_if(result.events.begin(), result.events.end(),
                                  [](const PolicyEvent& e) { return e.kind == PolicyEvent::Kind::kEjected; });
  return event != result.events.end() ? event->text : "";
}

/// Nobody lost anything, and since the policy is gone it is fair.
void ExpectWell(const SimResult& result) {
  uint64_t busy = 0, used = 0, last_end = 0;
  for (const SimInterval& interval : result.busy) {
    EXPECT_GE(interval.begin_ns, last_end);
    last_end = interval.end_ns;
    busy += interval.end_ns - interval.begin_ns;
  }
  for (const SimTenant& tenant : result.tenants) used += tenant.used_ns;
  EXPECT_EQ(busy, used);
  EXPECT_GT(static_cast<double>(busy), 0.95 * static_cast<double>(result.duration_ns));
  const std::vector<double> last_window = Measure(result).windows[1].shares.back();
  EXPECT_NEAR(last_window[2] / last_window[1], 2.0, 0.1);
}

struct Wrong {
  const char* plugin;
  const char* says;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.plugin; }

class Plugin : public ::testing::TestWithParam<Wrong> {};

TEST_P(Plugin, IsEjected) {
  IsolationOptions options = Patient();
  const auto library = OpenIsolated(BadPlugin(GetParam().plugin), options);
  ASSERT_TRUE(library.ok()) << library.status().text();
  const auto result = Simulate(ThreeTenants(), library.value(), Unmeasured());
  ASSERT_TRUE(result.ok()) << result.status().text();
  ASSERT_TRUE(result.value().ejected);
  EXPECT_THAT(EjectedFor(result.value()), HasSubstr(GetParam().says));
  EXPECT_THAT(EjectedFor(result.value()), HasSubstr("fair takes over"));
  ExpectWell(result.value());
}

INSTANTIATE_TEST_SUITE_P(Isolated, Plugin,
                         ::testing::Values(Wrong{"crash", "its process was killed by signal 11 (SIGSEGV) in select()"},
                                           Wrong{"null_pointer", "killed by signal 11 (SIGSEGV) in select()"},
                                           Wrong{"abort", "killed by signal 6 (SIGABRT) in select()"},
                                           Wrong{"exit", "its process ended with status 0 in select()"},
                                           Wrong{"unmap", "killed by signal 11 (SIGSEGV)"},
                                           Wrong{"protect", "select() failed with -8"},
                                           Wrong{"scribble", "wrote nonsense where it answers in select()"}));

TEST(Isolated, ACallbackThatDoesNotReturnIsEndedAtTheDeadline) {
  IsolationOptions options = Patient();
  options.callback_deadline = std::chrono::milliseconds(300);
  for (const char* plugin : {"spin", "log"}) {
    const auto library = OpenIsolated(BadPlugin(plugin), options);
    ASSERT_TRUE(library.ok()) << library.status().text();
    const auto result = Simulate(ThreeTenants(), library.value(), Unmeasured());
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_THAT(EjectedFor(result.value()), HasSubstr("it did not answer within 300 ms in select()"));
    ExpectWell(result.value());
    // However much it says: a hundred lines a second, clean ones.
    size_t lines = 0;
    for (const PolicyEvent& event : result.value().events) {
      if (event.text.find("everything") == std::string::npos) continue;
      ++lines;
      EXPECT_THAT(event.text, HasSubstr(" [2Jeverything is fine"));
    }
    EXPECT_EQ(lines, std::string(plugin) == "log" ? 101u : 0u);
  }
}

TEST(Isolated, APluginThatAbortsWhileItIsLoadedIsRefused) {
  const auto library = OpenIsolated(BadPlugin("early"), Patient());
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.status().text(), HasSubstr("its process was killed by signal 6 (SIGABRT) while it was loaded"));
}

TEST(Isolated, SaysThatTheProgramIsMissing) {
  IsolationOptions options = Patient();
  options.program = "/nowhere/hawser-policy-host";
  EXPECT_THAT(OpenIsolated("fair", options).status().text(),
              AnyOf(HasSubstr("cannot start '/nowhere/hawser-policy-host'"), HasSubstr("ended with status 127")));
}

// It dies in its n-th callback, whichever that is.
TEST(Isolated, DiesInAnyCallback) {
  const auto library = OpenIsolated(BadPlugin("die"), Patient());
  ASSERT_TRUE(library.ok()) << library.status().text();
  Scenario scenario = ThreeTenants();
  scenario.duration_ns = 1'500'000'000;
  std::set<std::string> where;
  for (int step = 1; step <= 40; ++step) {
    scenario.settings["die_at"] = std::to_string(step);
    const auto result = Simulate(scenario, library.value(), Unmeasured());
    if (step == 1) {  // init(): it does not get as far as that.
      ASSERT_FALSE(result.ok());
      EXPECT_THAT(result.status().text(), HasSubstr("could not begin: its process was killed by signal 9 (SIGKILL)"));
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status().text();
    const std::string text = EjectedFor(result.value());
    EXPECT_THAT(text, HasSubstr("its process was killed by signal 9 (SIGKILL) in ")) << step;
    where.insert(text.substr(text.find(" in ") + 4, text.find("()") - text.find(" in ") - 4));
    ExpectWell(result.value());
  }
  EXPECT_THAT(where, ::testing::IsSupersetOf({"tenant_add", "runnable", "select", "charged", "stage"}));
}

/// Starts the real program, and says which process it is.
class Watched : public PolicyPlace {
 public:
  explicit Watched(std::string policy) : policy_(std::move(policy)) {}
  wire::Result<std::unique_ptr<PolicyRun>> Begin(const hawser_host& host) override {
    auto process = PolicyProcess::Start(policy_, Patient());
    if (!process.ok()) return process.status();
    pidfd_ = wire::Fd(static_cast<int>(::syscall(SYS_pidfd_open, process.value()->pid(), 0)));
    started_ = true;
    if (wire::Status s = LoadIsolated(**process, policy_, std::chrono::seconds(60)); !s.ok()) return s;
    auto run = std::make_unique<IsolatedPolicy>(std::move(*process), host, std::chrono::seconds(60));
    if (wire::Status s = run->Begin(policy_); !s.ok()) return s;
    return std::unique_ptr<PolicyRun>(std::move(run));
  }

  bool started() const { return started_; }
  /// Any thread, once it is started; also when it has long ended.
  void Kill() { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

 private:
  const std::string policy_;
  wire::Fd pidfd_;
  std::atomic<bool> started_{false};
};

TEST(Isolated, IsKilledBetweenAnyTwoQuestions) {
  for (int grant = 1; grant <= 25; ++grant) {
    auto place = std::make_shared<Watched>("drr");
    SimOptions options = Unmeasured();
    int grants = 0;
    options.on_grant_end = [&](Scheduler&, uint64_t) {
      if (++grants == grant) place->Kill();
    };
    Scenario scenario = ThreeTenants();
    scenario.duration_ns = 1'500'000'000;
    const auto result = Simulate(scenario, PolicyLibrary::Elsewhere("drr", place), options);
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_THAT(EjectedFor(result.value()), HasSubstr("its process was killed by signal 9 (SIGKILL)"));
    ExpectWell(result.value());
  }
}

// At whatever instruction: what the time is does not matter, only that nothing hangs and nobody loses anything.
TEST(Isolated, IsKilledAtAnyInstant) {
  for (int round = 0; round < 25; ++round) {
    auto place = std::make_shared<Watched>("fair");
    std::thread killer([&] {
      while (!place->started()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(400 * round));
      place->Kill();
    });
    const auto result = Simulate(ThreeTenants(), PolicyLibrary::Elsewhere("fair", place), Unmeasured());
    killer.join();
    if (!result.ok()) {  // It had not begun.
      EXPECT_THAT(result.status().text(), HasSubstr("SIGKILL"));
      continue;
    }
    if (result.value().ejected) {
      EXPECT_THAT(EjectedFor(result.value()), HasSubstr("SIGKILL"));
    }
    ExpectWell(result.value());
  }
}

// Its process is not hawser-policy-host any more, but something that does as it likes with its page.
class Rogue : public ::testing::TestWithParam<Wrong> {};

IsolationOptions RogueOptions() {
  IsolationOptions options = Patient();
  options.program = HAWSER_ROGUE_POLICY_HOST;
  options.callback_deadline = std::chrono::milliseconds(300);
  return options;
}

TEST_P(Rogue, IsEjected) {
  const auto library = OpenIsolated(GetParam().plugin, RogueOptions());
  ASSERT_TRUE(library.ok()) << library.status().text();
  const auto result = Simulate(ThreeTenants(), library.value(), Unmeasured());
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_THAT(EjectedFor(result.value()), HasSubstr(GetParam().says));
  ExpectWell(result.value());
}

INSTANTIATE_TEST_SUITE_P(Isolated, Rogue,
                         ::testing::Values(Wrong{"wrong-turn", "nonsense where it answers"},
                                           Wrong{"turns-for-ever", "nonsense where it answers"},
                                           Wrong{"no-answer", "answered with nonsense"},
                                           Wrong{"refuses", "answered with nonsense"},
                                           Wrong{"long-text", "a text that is too long"},
                                           Wrong{"stranger", "a tenant that is not there"},
                                           Wrong{"far-stranger", "a tenant that is not there"},
                                           Wrong{"asks-for-ever", "did not answer within 300 ms"},
                                           Wrong{"stops-reading", "did not answer within 300 ms"}));

TEST(Isolated, ARogueThatDoesNoHarmMayStay) {
  for (const char* what : {"revokes", "says-it-sleeps"}) {
    const auto library = OpenIsolated(what, RogueOptions());
    ASSERT_TRUE(library.ok()) << library.status().text();
    Scenario scenario = ThreeTenants();
    scenario.duration_ns = 300'000'000;
    const auto result = Simulate(scenario, library.value(), Unmeasured());
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_FALSE(result.value().ejected) << what;
  }
}

TEST(Isolated, ARogueIsRefusedFromTheBeginning) {
  EXPECT_THAT(OpenIsolated("ends", RogueOptions()).status().text(), HasSubstr("ended with status 7"));
  IsolationOptions impatient = RogueOptions();
  impatient.load_deadline = std::chrono::milliseconds(200);
  EXPECT_THAT(OpenIsolated("silent", impatient).status().text(), HasSubstr("did not answer in time"));
  // It ends with 8 or 9 if it could.
  EXPECT_TRUE(OpenIsolated("shrinks", RogueOptions()).ok());
}

TEST(Isolated, RandomAnswersDoNoHarm) {
  size_t ejected = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const auto library = OpenIsolated("random-" + std::to_string(seed), RogueOptions());
    if (!library.ok()) {
      ++refused;
      continue;
    }
    Scenario scenario = ThreeTenants();
    scenario.duration_ns = 500'000'000;
    const auto result = Simulate(scenario, library.value(), Unmeasured());
    if (!result.ok()) {
      ++refused;
      continue;
    }
    ejected += result.value().ejected ? 1 : 0;
    uint64_t busy = 0, used = 0;
    for (const SimInterval& interval : result.value().busy) busy += interval.end_ns - interval.begin_ns;
    for (const SimTenant& tenant : result.value().tenants) used += tenant.used_ns;
    EXPECT_EQ(busy, used);
  }
  EXPECT_GT(ejected, 40u);
  EXPECT_GT(refused, 10u);
}

TEST(Isolated, HasNothingButItsPages) {
  const auto library = OpenIsolated(HAWSER_NOSY_POLICY, Patient());
  ASSERT_TRUE(library.ok()) << library.status().text();
  std::vector<std::string> lines;
  TenantTable nobody;
  PolicyHost host(nobody, {}, [&](const PolicyEvent& event) { lines.push_back(event.text); });
  EXPECT_FALSE(host.Use(library.value(), 1).ok());
  ASSERT_EQ(lines.size(), 1u);
  std::string did = lines[0];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs files and memory, so they are not taken away:" << did;
#endif
  // Kernels without Landlock let it read files while it is loaded, and only then.
  const size_t running = did.find(" running:");
  ASSERT_NE(running, std::string::npos) << did;
  EXPECT_EQ(did.substr(running), " running:");
  EXPECT_THAT(did.substr(0, running),
              AnyOf(" loading:", " loading: passwd pages", " loading: passwd parent's-memory pages"));
  const bool landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* which version? */) >= 1;
  if (landlock) {
    EXPECT_EQ(did.substr(0, running), " loading:");
  }
}

// As when hawserd is killed: its policy's process must not stay.
TEST(Isolated, DiesWithItsParent) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    auto process = PolicyProcess::Start("fair", Patient());
    const pid_t pid = process.ok() ? process.value()->pid() : -1;
    if (pid > 0 && !LoadIsolated(**process, "fair", std::chrono::seconds(60)).ok()) ::_exit(1);
    if (::write(fds[1], &pid, sizeof(pid)) != sizeof(pid)) ::_exit(1);
    while (true) ::pause();
  }
  pid_t policy = -1;
  ASSERT_EQ(::read(fds[0], &policy, sizeof(policy)), static_cast<ssize_t>(sizeof(policy)));
  ASSERT_GT(policy, 0);
  ASSERT_EQ(::kill(policy, 0), 0);
  ::kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  // It becomes this process's child; without the kernel's signal it would never end.
  ASSERT_EQ(::waitpid(policy, &status, 0), policy);
  EXPECT_TRUE(WIFSIGNALED(status));
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(LogBudget, IsAHundredLinesASecond) {
  LogBudget budget;
  int written = 0, last = 0;
  for (int i = 0; i < 1000; ++i) {
    const LogBudget::Verdict verdict = budget.Take(1'500'000'000 + static_cast<uint64_t>(i));
    written += verdict == LogBudget::Verdict::kWrite ? 1 : 0;
    last += verdict == LogBudget::Verdict::kWriteLast ? 1 : 0;
  }
  EXPECT_EQ(written, 100);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(budget.Take(2'000'000'000), LogBudget::Verdict::kWrite);
}

/// Answers everything at once, in this process; its processor time is what the test says.
class Scripted : public PolicyLink {
 public:
  RequestPage& page() override { return *page_; }
  wire::Status Exchange(const wire::Deadline&, Reply* reply) override {
    cpu_ns += 1000;
    *reply = {};
    reply->answer = answer;
    reply->decision_size = sizeof(hawser_decision);
    reply->tenant = 1;
    return {};
  }
  std::string Text(uint32_t) override { return "scripted\n1"; }
  uint64_t CpuNs() override { return cpu_ns; }
  void Kill() override { ++kills; }

  inline static Answer answer = Answer::kDone;
  inline static uint64_t cpu_ns = 0;
  inline static int kills = 0;

 private:
  std::unique_ptr<RequestPage> page_ = std::make_unique<RequestPage>();
};

class ScriptedPlace : public PolicyPlace {
 public:
  wire::Result<std::unique_ptr<PolicyRun>> Begin(const hawser_host& host) override {
    auto run = std::make_unique<IsolatedPolicy>(std::make_unique<Scripted>(), host, std::chrono::seconds(1));
    if (wire::Status s = run->Begin("scripted"); !s.ok()) return s;
    return std::unique_ptr<PolicyRun>(std::move(run));
  }
};

TEST(Isolated, MayNotWorkUnasked) {
  Scripted::cpu_ns = 0;
  Scripted::kills = 0;
  TenantTable tenants;
  Tenant& tenant = tenants.Add(1, {.name = "one"});
  std::vector<std::string> lines;
  PolicyHost host(tenants, {}, [&](const PolicyEvent& event) { lines.push_back(event.text); });
  ASSERT_TRUE(host.Use(PolicyLibrary::Elsewhere("scripted", std::make_shared<ScriptedPlace>()), 1).ok());
  tenant.has_work = true;
  // A millisecond after each answer is free.
  for (uint64_t i = 0; i < 5000; ++i) {
    Scripted::cpu_ns += 1'000'000;
    EXPECT_EQ(host.Select(2 + i).who, &tenant);
  }
  EXPECT_FALSE(host.ejected());
  for (uint64_t i = 0; i < 10 && !host.ejected(); ++i) {
    Scripted::cpu_ns += 150'000'000;
    EXPECT_EQ(host.Select(6000 + i).who, &tenant);
  }
  EXPECT_TRUE(host.ejected());
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("while nobody asked it anything")));
  EXPECT_EQ(Scripted::kills, 1);
}

// Each of its questions is answered at once, so it never has to be waited for; it is late all the same.
TEST(Isolated, QuestionsWithoutEndAreNoAnswer) {
  Scripted::cpu_ns = 0;
  TenantTable tenants;
  Tenant& tenant = tenants.Add(1, {.name = "one"});
  tenant.has_work = true;
  std::vector<std::string> lines;
  PolicyHost host(tenants, {}, [&](const PolicyEvent& event) { lines.push_back(event.text); });
  ASSERT_TRUE(host.Use(PolicyLibrary::Elsewhere("scripted", std::make_shared<ScriptedPlace>()), 1).ok());
  Scripted::answer = Answer::kSetting;
  EXPECT_EQ(host.Select(2).who, &tenant);  // By fair.
  Scripted::answer = Answer::kDone;
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("did not answer within 1000 ms in select()")));
}

TEST(Isolated, ServesSoManyTenantsAndNoMore) {
  Scripted::cpu_ns = 0;
  TenantTable tenants;
  for (TenantId id = 1; id <= kMostTenants; ++id) tenants.Add(id, {});
  tenants.all()[0]->has_work = true;
  std::vector<std::string> lines;
  PolicyHost host(tenants, {}, [&](const PolicyEvent& event) { lines.push_back(event.text); });
  ASSERT_TRUE(host.Use(PolicyLibrary::Elsewhere("scripted", std::make_shared<ScriptedPlace>()), 1).ok());
  EXPECT_EQ(host.Select(2).who, tenants.all()[0].get());
  EXPECT_FALSE(host.ejected());
  tenants.Add(kMostTenants + 1, {});
  EXPECT_EQ(host.Select(3).who, tenants.all()[0].get());
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("more than 4096 tenants")));
}

}  // namespace
}  // namespace hawser::scheduler
