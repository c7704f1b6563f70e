// SPDX-License-Identifier: Apache-2.0
// What cannot be split runs whole: its tenant is charged the device time that it took, and the policy sees that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <utility>
#include <vector>

#include "scheduler/core/policy_library.h"
#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/gate.h"

namespace hawser::scheduler {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr uint64_t kEstimate = 500'000, kTrue = 80'000'000;

/// A policy that grants to whom a test says, and writes down what it hears of that tenant.
struct Script {
  const hawser_host* host = nullptr;
  uint64_t who = 0;
  std::vector<std::pair<uint64_t, uint32_t>> charges;
  hawser_tenant_view seen{};  ///< At the last charge.

  hawser_tenant_view View(const hawser_tenant* tenant) const {
    hawser_tenant_view view{};
    view.size = sizeof(view);
    host->view(host->ctx, tenant, &view);
    return view;
  }
  hawser_tenant* Find() const {
    for (hawser_tenant* at = host->next_tenant(host->ctx, nullptr); at != nullptr;
         at = host->next_tenant(host->ctx, at)) {
      if (View(at).id == who) return at;
    }
    return nullptr;
  }
};
Script script;
hawser_policy offered;

int Begin(const hawser_host* host, void**) {
  script.host = host;
  return 0;
}
int Select(void*, hawser_decision* out) {
  *out = {};
  out->size = sizeof(*out);
  out->slice_ns = 1'000'000;
  out->who = script.host->next_runnable(script.host->ctx, nullptr);
  for (hawser_tenant* at = out->who; at != nullptr; at = script.host->next_runnable(script.host->ctx, at)) {
    if (script.View(at).id == script.who) out->who = at;
  }
  return HAWSER_SELECT_DECIDED;
}
void Charged(void*, hawser_tenant* tenant, uint64_t gpu_ns, uint32_t why) {
  const hawser_tenant_view view = script.View(tenant);
  if (view.id != script.who) return;
  script.charges.emplace_back(gpu_ns, why);
  script.seen = view;
}
const hawser_policy* Entry(const hawser_host*) { return &offered; }

struct Worker {
  GrantPage page;
  CondvarBell bell;
  Gate gate;
  explicit Worker(Bell& scheduler) : gate(page, scheduler, bell) {}
};

class TrueLength : public ::testing::Test {
 protected:
  TrueLength() : arbiter_(Options(), {}), long_(bell_), other_(bell_) {
    script = {};
    offered = {};
    offered.size = sizeof(offered);
    offered.abi_major = 1;
    offered.name = "scripted";
    offered.init = Begin;
    offered.select = Select;
    offered.charged = Charged;
    EXPECT_TRUE(arbiter_.scheduler().Use(PolicyLibrary::Of("scripted", Entry), now_).ok());
    script.who = Add("long", long_);
    (void)Add("other", other_);
    // Both always want the device.
    long_.gate.Announce(kEstimate, {});
    other_.gate.Announce(kEstimate, {});
  }
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.policy.starvation_ns = 0;
    options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
    return options;
  }
  TenantId Add(const char* name, Worker& worker) {
    TenantConfig config;
    config.name = name;
    const TenantId id = arbiter_.AddTenant(config, now_);
    EXPECT_NE(arbiter_.Attach(id, worker.page, worker.bell), 0u);
    return id;
  }
  void Poll() { arbiter_.Poll(now_ += 1000); }
  /// The long one's kernel goes to the device within a slice.
  bool Launch(uint64_t estimate = kEstimate) {
    for (int i = 0; i < 10; ++i) {
      Poll();
      if (!long_.gate.TryEnter(estimate)) continue;
      if (!long_.gate.open()) return true;
      long_.gate.Leave(estimate, 0);
    }
    return false;
  }

  uint64_t now_ = 1'000'000'000;
  CondvarBell bell_;
  BasicArbiter<std::atomic> arbiter_;
  Worker long_, other_;
};

TEST_F(TrueLength, IsChargedAndShown) {
  ASSERT_TRUE(Launch());
  EXPECT_FALSE(other_.gate.TryEnter(kEstimate));
  now_ += kTrue;
  long_.gate.Leave(kEstimate, kTrue);
  EXPECT_FALSE(long_.gate.TryEnter(kEstimate)) << "its slice is more than used";
  Poll();
  EXPECT_THAT(script.charges, ElementsAre(Pair(kTrue, HAWSER_CHARGE_OVERRUN)));
  EXPECT_EQ(script.seen.last_unit_ns, kTrue);
  EXPECT_EQ(script.seen.used_ns, kTrue);
  EXPECT_EQ(script.seen.window_used_ns, kTrue);
  EXPECT_EQ(script.seen.inflight_ns, 0u);
}

TEST_F(TrueLength, AlsoOfWhatLeftBeforeItsEnd) {
  ASSERT_TRUE(Launch());
  long_.gate.LeaveEarly(kEstimate);
  Poll();
  now_ += kTrue;
  long_.gate.LeaveLate(kEstimate, kTrue);
  Poll();
  EXPECT_EQ(script.View(script.Find()).last_unit_ns, kTrue);
  // Its next grant tells the rest.
  ASSERT_TRUE(Launch());
  long_.gate.Leave(kEstimate, kEstimate);
  Poll();
  uint64_t charged = 0;
  for (const auto& [gpu_ns, why] : script.charges) charged += gpu_ns;
  EXPECT_EQ(charged, kTrue + kEstimate);
  EXPECT_EQ(script.seen.used_ns, kTrue + kEstimate);
}

TEST_F(TrueLength, IsShownAlsoWhenLessIsCharged) {
  ASSERT_TRUE(Launch(kTrue));
  now_ += kTrue;
  long_.gate.LeaveEarly(kTrue);
  long_.gate.LeaveLate(kTrue, kEstimate);  // Charged far too much,
  Poll();
  EXPECT_EQ(script.View(script.Find()).last_unit_ns, kEstimate);
  ASSERT_TRUE(Launch());
  long_.gate.Leave(kEstimate, 2 * kEstimate);  // so this costs nothing.
  Poll();
  EXPECT_EQ(script.View(script.Find()).last_unit_ns, 2 * kEstimate);
  EXPECT_EQ(script.View(script.Find()).used_ns, kTrue);
}

}  // namespace
}  // namespace hawser::scheduler
