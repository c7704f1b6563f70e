// SPDX-License-Identifier: Apache-2.0
// What the host makes of a policy's answers, with policies that are functions of this program.
#include "scheduler/core/policy_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "scheduler/core/scheduler.h"

namespace hawser::scheduler {
namespace {

hawser_decision answer;
int result = 0;
const hawser_host* the_host = nullptr;
hawser_policy offered;

int Answer(void*, hawser_decision* out) {
  hawser_tenant* first = the_host->next_runnable(the_host->ctx, nullptr);
  *out = answer;
  out->size = sizeof(*out);
  out->who = first;
  return result;
}

int Begin(const hawser_host* host, void**) {
  the_host = host;
  return 0;
}

const hawser_policy* Entry(const hawser_host*) { return &offered; }

class PolicyHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    answer = {};
    result = HAWSER_SELECT_DECIDED;
    offered = {};
    offered.size = sizeof(offered);
    offered.abi_major = 1;
    offered.name = "scripted";
    offered.priv_size = 24;
    offered.init = Begin;
    offered.select = Answer;
    options_.callback_cpu_ns = options_.callback_wall_ns = 0;
    options_.min_slice_ns = 1000;
    options_.settings["colour"] = "blue";
    tenant_ = &tenants_.Add(7, {.name = "seven", .weight = 250, .priority = -3});
  }

  PolicyHost& Host() {
    if (!host_) {
      host_ = std::make_unique<PolicyHost>(tenants_, options_,
                                           [this](const PolicyEvent& event) { events_.push_back(event); });
      EXPECT_TRUE(host_->Use(PolicyLibrary::Of("scripted", Entry), 100).ok());
    }
    return *host_;
  }

  Choice Ask(uint64_t now_ns = 200) {
    tenant_->has_work = true;
    return Host().Select(now_ns);
  }

  PolicyHostOptions options_;
  TenantTable tenants_;
  Tenant* tenant_ = nullptr;
  std::vector<PolicyEvent> events_;
  std::unique_ptr<PolicyHost> host_;
};

TEST_F(PolicyHostTest, ZeroIsTheDefault) {
  const Choice choice = Ask();
  EXPECT_EQ(choice.kind, Choice::Kind::kGrant);
  EXPECT_EQ(choice.who, tenant_);
  EXPECT_EQ(choice.slice_ns, options_.default_slice_ns);
  EXPECT_EQ(choice.cap_ns, options_.default_cap_ns);
  EXPECT_EQ(choice.unit_ns, options_.default_unit_ns);
  EXPECT_EQ(choice.linger_ns, 0u);
}

TEST_F(PolicyHostTest, WhatIsTooMuchIsCut) {
  answer.slice_ns = answer.inflight_cap_ns = answer.linger_ns = UINT64_MAX;
  Choice choice = Ask();
  EXPECT_EQ(choice.slice_ns, options_.max_slice_ns);
  EXPECT_EQ(choice.cap_ns, options_.max_cap_ns);
  EXPECT_EQ(choice.linger_ns, options_.max_wait_ns);
  answer.slice_ns = 1;
  choice = Ask();
  EXPECT_EQ(choice.slice_ns, 1000u);
  result = HAWSER_SELECT_WAIT;
  answer.wait_ns = UINT64_MAX;
  EXPECT_EQ(Ask().wait_ns, options_.max_wait_ns);
  answer.wait_ns = 1;
  EXPECT_EQ(Ask().wait_ns, 1000u);
  EXPECT_FALSE(Host().ejected());
}

TEST_F(PolicyHostTest, UnitsThatAreTooShortAreLengthened) {
  answer.unit_ns = 1;
  EXPECT_EQ(Ask().unit_ns, options_.min_unit_ns);
  EXPECT_EQ(Host().short_units(), 1u);
  answer.unit_ns = options_.min_unit_ns;
  EXPECT_EQ(Ask().unit_ns, options_.min_unit_ns);
  answer.unit_ns = HAWSER_UNIT_WHOLE;
  EXPECT_EQ(Ask().unit_ns, HAWSER_UNIT_WHOLE);
  EXPECT_EQ(Host().short_units(), 1u);
  EXPECT_FALSE(Host().ejected());
}

TEST_F(PolicyHostTest, ALongGrantOfWhoHasLittleWeightIsNoReasonToEject) {
  Tenant& other = tenants_.Add(8, {.name = "eight", .weight = UINT32_MAX});
  other.has_work = true;
  tenant_->config.weight = 1;
  other.longest_charge_ns = UINT64_MAX / 2 + 1;  // Twice that is 0, if it wraps.
  for (int i = 0; i < 100; ++i) (void)Ask(200 + 100'000'000ull * static_cast<uint64_t>(i));
  EXPECT_FALSE(Host().ejected());
  EXPECT_EQ(Host().DebtNs(other), UINT64_MAX);
}

// `fair` is not expected to fail. If it does there is nothing better, so it would at each decision: an operator hears
// of it, and of other things too. Here nobody is told that its tenants are served, so it always chooses the same.
TEST_F(PolicyHostTest, WhatFailsAtEachDecisionIsNotToldEachTime) {
  options_.starvation_ns = 1;
  tenants_.Add(8, {.name = "eight"}).has_work = true;
  ASSERT_TRUE(Host().Use(PolicyLibrary::Fair(), 300).ok());
  const auto told = [this] {
    return std::count_if(events_.begin(), events_.end(),
                         [](const PolicyEvent& event) { return event.kind == PolicyEvent::Kind::kEjected; });
  };
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(Ask(1000 + i).kind, Choice::Kind::kGrant);
  EXPECT_EQ(told(), 1);
  const uint64_t failures = Host().ejections();
  EXPECT_GT(failures, 1000u);
  (void)Ask(60'000'000'000);
  ASSERT_EQ(told(), 2);
  EXPECT_THAT(events_.back().text, ::testing::HasSubstr(std::to_string(failures + 1) + " times"));
}

TEST_F(PolicyHostTest, WhoStaysAndIsSlowIsToldOfLessAndLess) {
  options_.callback_wall_ns = 1;  // Everything takes longer.
  ASSERT_TRUE(Host().Use(PolicyLibrary::Fair(), 300).ok());
  events_.clear();
  for (uint64_t i = 0; i < 1000; ++i) (void)Ask(1000 + i);
  EXPECT_LT(events_.size(), 20u);
  EXPECT_FALSE(events_.empty());
}

// What is called once may take its time, but an operator hears of it; and what is called for each tenant is timed.
TEST_F(PolicyHostTest, BeginningAndEndingAreTimed) {
  options_.callback_wall_ns = 1'000'000;
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  static const auto sleep = slow;
  offered.init = [](const hawser_host* host, void**) {
    the_host = host;
    sleep();
    return 0;
  };
  offered.fini = [](void*) { sleep(); };
  offered.dump = [](void*, char*, size_t) -> size_t {
    sleep();
    return 0;
  };
  (void)Host().Dump();
  ASSERT_TRUE(Host().Use(PolicyLibrary::Fair(), 300).ok());
  std::string told;
  for (const PolicyEvent& event : events_) told += event.kind == PolicyEvent::Kind::kSlow ? event.text : "";
  for (const char* callback : {"init()", "dump()", "fini()"}) EXPECT_THAT(told, ::testing::HasSubstr(callback));
  // Three tenants in a row are too much.
  offered.init = Begin;
  offered.fini = nullptr;
  offered.tenant_add = [](void*, hawser_tenant*, const hawser_tenant_cfg*) {
    sleep();
    return 0;
  };
  for (TenantId id = 11; id < 14; ++id) tenants_.Add(id, {.name = "more"});
  EXPECT_FALSE(Host().Use(PolicyLibrary::Of("scripted", Entry), 400).ok());
  EXPECT_EQ(Host().policy_name(), "fair");
}

TEST_F(PolicyHostTest, WaitsInARowAreBounded) {
  result = HAWSER_SELECT_WAIT;
  answer.wait_ns = 1'000'000;
  EXPECT_EQ(Ask(1000).kind, Choice::Kind::kWait);
  EXPECT_EQ(Ask(1000 + options_.max_idle_ns).kind, Choice::Kind::kWait);
  EXPECT_EQ(Ask(1001 + options_.max_idle_ns).kind, Choice::Kind::kGrant);  // By fair.
  EXPECT_TRUE(Host().ejected());
  EXPECT_EQ(Host().policy_name(), "fair");
}

TEST_F(PolicyHostTest, NobodyHasWork) {
  EXPECT_EQ(Host().Select(200).kind, Choice::Kind::kNobody);
  EXPECT_FALSE(Host().ejected());
}

TEST_F(PolicyHostTest, ShowsTenants) {
  (void)Host();
  hawser_tenant_view view;
  view.size = sizeof(view);
  the_host->view(the_host->ctx, tenant_, &view);
  EXPECT_EQ(view.id, 7u);
  EXPECT_EQ(view.weight, 250u);
  EXPECT_EQ(view.priority, -3);
  EXPECT_STREQ(the_host->cfg(the_host->ctx, "colour"), "blue");
  EXPECT_EQ(the_host->cfg(the_host->ctx, "taste"), nullptr);
  EXPECT_EQ(the_host->now_ns(the_host->ctx), 100u);
}

TEST_F(PolicyHostTest, DeadlinesComeFromArrivalAndSlo) {
  (void)Host();
  const auto deadline = [&](uint64_t arrival_ns, uint64_t slo_ns) {
    tenant_->facts.oldest_arrival_ns = arrival_ns;
    tenant_->config.slo_ns = slo_ns;
    hawser_tenant_view view;
    view.size = sizeof(view);
    the_host->view(the_host->ctx, tenant_, &view);
    return view.deadline_ns;
  };
  EXPECT_EQ(deadline(1000, 5'000'000), 5'001'000u);
  EXPECT_EQ(deadline(1000, 0), 0u);
  EXPECT_EQ(deadline(0, 5'000'000), 0u);  // Nothing waits.
  EXPECT_EQ(deadline(UINT64_MAX - 1, 5), UINT64_MAX);
}

TEST_F(PolicyHostTest, AnEjectionIsToldWithItsReasonAndDump) {
  result = -7;
  EXPECT_EQ(Ask().kind, Choice::Kind::kGrant);  // By fair.
  const auto event = std::find_if(events_.begin(), events_.end(),
                                  [](const PolicyEvent& e) { return e.kind == PolicyEvent::Kind::kEjected; });
  ASSERT_NE(event, events_.end());
  EXPECT_EQ(event->policy, "scripted");
  EXPECT_EQ(event->reason, "select() failed with -7");
  EXPECT_EQ(event->at_ns, 200u);
  EXPECT_THAT(event->text, ::testing::HasSubstr(event->reason));
  EXPECT_THAT(event->dump, ::testing::HasSubstr("\"seven\""));
}

// A policy of an older and of a newer minor version: its view is shorter or longer than the host's.
TEST_F(PolicyHostTest, ViewsOfOtherSizes) {
  (void)Host();
  struct {
    hawser_tenant_view view;
    uint64_t newer;
  } longer;
  std::memset(&longer, 0xff, sizeof(longer));
  longer.view.size = sizeof(longer);
  the_host->view(the_host->ctx, tenant_, &longer.view);
  EXPECT_EQ(longer.view.id, 7u);
  EXPECT_EQ(longer.newer, 0u);
  hawser_tenant_view shorter;
  std::memset(&shorter, 0xff, sizeof(shorter));
  shorter.size = offsetof(hawser_tenant_view, weight);
  the_host->view(the_host->ctx, tenant_, &shorter);
  EXPECT_EQ(shorter.id, 7u);
  EXPECT_EQ(shorter.weight, UINT32_MAX);  // Not touched.
}

// A newer policy's struct is longer; what this host does not know is ignored.
TEST(ReadPolicy, TakesLongerOnes) {
  struct {
    hawser_policy policy{};
    void* newer = nullptr;
  } longer;
  longer.policy.size = sizeof(longer);
  longer.policy.abi_major = 1;
  longer.policy.abi_minor = 9;
  longer.policy.name = "newer";
  longer.policy.select = Answer;
  const auto read = ReadPolicy(&longer.policy, "test");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read.value().size, sizeof(hawser_policy));
}

TEST_F(PolicyHostTest, PrivateMemoryIsZeroedForEachPolicy) {
  (void)Host();
  auto* memory = static_cast<unsigned char*>(the_host->priv(the_host->ctx, tenant_));
  ASSERT_NE(memory, nullptr);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(memory[i], 0);
  std::memset(memory, 0x55, 24);
  ASSERT_TRUE(Host().Use(PolicyLibrary::Of("scripted", Entry), 300).ok());
  memory = static_cast<unsigned char*>(the_host->priv(the_host->ctx, tenant_));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(memory[i], 0);
}

TEST_F(PolicyHostTest, APolicyThatCannotBeginLeavesTheOldOneInCharge) {
  (void)Host();
  hawser_policy broken = offered;
  static hawser_policy kept;
  kept = broken;
  kept.init = [](const hawser_host*, void**) { return -1; };
  EXPECT_FALSE(
      Host()
          .Use(PolicyLibrary::Of("broken", [](const hawser_host*) -> const hawser_policy* { return &kept; }), 300)
          .ok());
  EXPECT_EQ(Host().policy_name(), "scripted");
  EXPECT_EQ(Ask().kind, Choice::Kind::kGrant);
}

TEST_F(PolicyHostTest, TimersAreNeverNow) {
  (void)Host();
  the_host->timer(the_host->ctx, 0);
  EXPECT_GT(Host().timer_ns(), 100u);
  the_host->timer(the_host->ctx, UINT64_MAX);
  EXPECT_EQ(Host().timer_ns(), UINT64_MAX);
}

TEST_F(PolicyHostTest, TimersKeepTheirDistance) {
  offered.on_timer = [](void*, uint64_t now_ns) { the_host->timer(the_host->ctx, now_ns + 1000); };
  (void)Host();
  // The first one is when it is wanted.
  the_host->timer(the_host->ctx, 50'000);
  EXPECT_EQ(Host().timer_ns(), 50'000u);
  uint64_t now = 0;
  int calls = 0;
  while (now < 10'000'000) {
    now = Host().timer_ns();
    Host().Advance(now);
    ++calls;
  }
  EXPECT_EQ(calls, 1 + (10'000'000 - 50'000 + 249'999) / 250'000);
  EXPECT_EQ(Host().hurried_timers(), static_cast<uint64_t>(calls));
  // One that is far enough away is no matter of haste.
  the_host->timer(the_host->ctx, now + 400'000);
  EXPECT_EQ(Host().timer_ns(), now + 400'000);
  EXPECT_EQ(Host().hurried_timers(), static_cast<uint64_t>(calls));
}

TEST_F(PolicyHostTest, ATimerSetInInitStays) {
  offered.init = [](const hawser_host* host, void**) {
    the_host = host;
    host->timer(host->ctx, 5000);
    return 0;
  };
  EXPECT_EQ(Host().timer_ns(), 5000u);
  // One that cannot begin does not take the timer of the one that stays.
  static hawser_policy broken;
  broken = offered;
  broken.init = [](const hawser_host* host, void**) {
    host->timer(host->ctx, 7000);
    return -1;
  };
  const auto entry = [](const hawser_host*) -> const hawser_policy* { return &broken; };
  EXPECT_FALSE(Host().Use(PolicyLibrary::Of("broken", entry), 300).ok());
  EXPECT_EQ(Host().timer_ns(), 5000u);
}

TEST(UsageWindow, ForgetsAfterASecond) {
  UsageWindow window;
  window.Add(100, 1'000'000'000);
  window.Add(50, 1'500'000'000);
  EXPECT_EQ(window.Sum(1'600'000'000), 150u);
  EXPECT_EQ(window.Sum(2'100'000'000), 50u);
  EXPECT_EQ(window.Sum(9'000'000'000), 0u);
}

}  // namespace
}  // namespace hawser::scheduler
