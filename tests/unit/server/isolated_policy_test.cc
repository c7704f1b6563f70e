// SPDX-License-Identifier: Apache-2.0
// A plugin in a process of its own decides for hawserd's scheduler, and crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/server/scheduled_worker.h"

namespace hawser::server {
namespace {

using ::testing::HasSubstr;

/// A worker that uses one device, as its gate to that.
struct Worked {
  std::unique_ptr<ScheduledWorker> worker;
  LaunchGate* gate;
  LaunchGate* operator->() const { return gate; }
  LaunchGate& operator*() const { return *gate; }
};
Worked Work(DeviceSchedulers& scheduler, uint64_t session, const std::string& tenant) {
  auto worker = std::make_unique<ScheduledWorker>(scheduler, session, tenant);
  LaunchGate* const gate = &worker->Of("cpu");
  return {std::move(worker), gate};
}

/// Two tenants that take turns with half a millisecond each; every launch must come to its end.
void TakeTurns(DeviceSchedulers& scheduler) {
  auto a = Work(scheduler, 1, "a"), b = Work(scheduler, 2, "b");
  const auto run = [](LaunchGate& gate) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(gate.Enter(500'000));
      std::this_thread::yield();
      gate.Leave(500'000, 500'000);
    }
  };
  std::thread first([&] { run(*a); }), second([&] { run(*b); });
  first.join();
  second.join();
  EXPECT_EQ(scheduler.SessionUse(1).at(0).used_ns, 200u * 500'000);
  EXPECT_EQ(scheduler.SessionUse(2).at(0).used_ns, 200u * 500'000);
  scheduler.SessionEnded(1);
  scheduler.SessionEnded(2);
}

SchedulerSettings Isolated(const std::string& plugin) { return {.policy = plugin, .policy_host = HAWSER_POLICY_HOST}; }

TEST(IsolatedPolicyTest, Decides) {
  auto scheduler = DeviceSchedulers::Start(Isolated(HAWSER_POLICY_DIRECTORY "/drr.so"));
  ASSERT_TRUE(scheduler.ok()) << scheduler.status().text();
  EXPECT_EQ((*scheduler)->Policy(), "drr");
  TakeTurns(**scheduler);
  // A built-in one stays in this process; a plugin comes from another again.
  EXPECT_TRUE((*scheduler)->SetPolicy("rr").ok());
  EXPECT_TRUE((*scheduler)->SetPolicy(HAWSER_POLICY_DIRECTORY "/drr.so").ok());
  TakeTurns(**scheduler);
}

TEST(IsolatedPolicyTest, ItsCrashAndItsHangAreTold) {
  for (const auto& [plugin, says] : {std::pair{"crash", "killed by signal 11 (SIGSEGV) in select()"},
                                     std::pair{"spin", "did not answer within 100 ms in select()"}}) {
    auto scheduler =
        DeviceSchedulers::Start(Isolated(HAWSER_BAD_POLICY_DIRECTORY "/bad_" + std::string(plugin) + ".so"));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status().text();
    TakeTurns(**scheduler);
    EXPECT_EQ((*scheduler)->Policy(), "fair");
    std::string told;
    for (const SchedulerNotice& notice : (*scheduler)->TakeNotices()) {
      if (notice.kind == SchedulerNotice::Kind::kWarning) told += notice.text + "\n";
    }
    // On a machine that is very busy any callback may be late; then that is what it says.
    EXPECT_THAT(told, ::testing::AnyOf(HasSubstr(says), HasSubstr("did not answer within 100 ms in")));
    EXPECT_THAT(told, HasSubstr("fair takes over"));
    EXPECT_EQ((*scheduler)->EjectedPolicies().count, 1u);
  }
}

TEST(EjectedPolicyTest, IsKeptWithItsReasonAndItsDump) {
  auto scheduler = DeviceSchedulers::Start({.policy = HAWSER_BAD_POLICY_DIRECTORY "/bad_error.so", .isolated = false});
  ASSERT_TRUE(scheduler.ok()) << scheduler.status().text();
  EXPECT_FALSE((*scheduler)->EjectedPolicies().last);
  TakeTurns(**scheduler);
  const Ejections ejections = (*scheduler)->EjectedPolicies();
  EXPECT_EQ(ejections.count, 1u);
  ASSERT_TRUE(ejections.last);
  EXPECT_EQ(ejections.last->policy, "bad");
  EXPECT_THAT(ejections.last->reason, HasSubstr("select() failed with -"));
  EXPECT_THAT(ejections.last->dump, HasSubstr("\"policy\":\"bad\""));
  EXPECT_GT(ejections.last->unix_ns, 1'600'000'000'000'000'000u);
  // It stays, whoever is in charge now and whatever was told.
  (void)(*scheduler)->TakeNotices();
  EXPECT_TRUE((*scheduler)->SetPolicy("rr").ok());
  EXPECT_EQ((*scheduler)->EjectedPolicies().last->policy, "bad");
}

// A callback that never returns is ended with its process, whichever it is; so it is by default.
TEST(IsolatedPolicyTest, IsWhatAPluginIsUnlessSaidOtherwise) {
  ASSERT_TRUE(SchedulerSettings().isolated);
  auto scheduler = DeviceSchedulers::Start(
      {.policy = HAWSER_BAD_POLICY_DIRECTORY "/bad_spin.so", .policy_host = HAWSER_POLICY_HOST});
  ASSERT_TRUE(scheduler.ok()) << scheduler.status().text();
  TakeTurns(**scheduler);  // Would never end with the plugin in this process.
  EXPECT_EQ((*scheduler)->Policy(), "fair");
}

TEST(IsolatedPolicyTest, IsRefusedWithTheReason) {
  EXPECT_THAT(DeviceSchedulers::Start(Isolated("/nowhere/mine.so")).status().text(), HasSubstr("cannot be loaded"));
  SchedulerSettings settings = Isolated(HAWSER_POLICY_DIRECTORY "/drr.so");
  settings.policy_host = "/nowhere/hawser-policy-host";
  EXPECT_THAT(DeviceSchedulers::Start(settings).status().text(),
              HasSubstr("cannot start '/nowhere/hawser-policy-host'"));
}

}  // namespace
}  // namespace hawser::server
