// SPDX-License-Identifier: Apache-2.0
// A tenant's maximum share, exactly, in virtual time.
#include "scheduler/core/share_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

TEST(ShareLimit, IsNoneAtFirst) {
  ShareLimit limit;
  EXPECT_FALSE(limit.limited());
  EXPECT_EQ(limit.Allowance(kSecond), UINT64_MAX);
  EXPECT_EQ(limit.ReadyAt(kMs), 0u);
  limit.Set(ShareLimit::kWhole, kSecond);
  EXPECT_FALSE(limit.limited());
}

TEST(ShareLimit, FillsAtItsShare) {
  ShareLimit limit;
  limit.Set(250'000, kSecond);
  EXPECT_EQ(limit.Allowance(kSecond), 25 * kMs);
  EXPECT_EQ(limit.Allowance(9 * kSecond), 25 * kMs);  // It holds no more.
  limit.Charge(25 * kMs, kSecond);
  EXPECT_EQ(limit.Allowance(kSecond), 0u);
  EXPECT_EQ(limit.ReadyAt(2 * kMs), kSecond + 8 * kMs);
  EXPECT_EQ(limit.Allowance(kSecond + 8 * kMs), 2 * kMs);
  limit.Charge(10 * kMs, kSecond + 8 * kMs);  // 8 more than it was allowed: 32 ms of waiting.
  EXPECT_EQ(limit.ReadyAt(2 * kMs), kSecond + (8 + 32 + 8) * kMs);
  EXPECT_EQ(limit.ReadyAt(kSecond), kSecond + (8 + 32 + 100) * kMs);  // A full bucket is enough for anything.
}

TEST(ShareLimit, KeepsWhatWasUsedWhenTheShareChanges) {
  ShareLimit limit;
  limit.Set(500'000, kSecond);
  limit.Charge(70 * kMs, kSecond);  // 20 ms too much.
  limit.Set(100'000, kSecond);
  EXPECT_EQ(limit.ReadyAt(kMs), kSecond + 200 * kMs + 10 * kMs);
  limit.Set(0, kSecond);
  EXPECT_FALSE(limit.limited());
  limit.Set(100'000, 2 * kSecond);
  EXPECT_EQ(limit.Allowance(2 * kSecond), 10 * kMs);
  limit.Charge(6 * kMs, 2 * kSecond);
  limit.Set(200'000, 2 * kSecond);
  EXPECT_EQ(limit.Allowance(2 * kSecond), 4 * kMs);
}

TEST(ShareLimit, DoesNotOverflow) {
  ShareLimit limit;
  limit.Set(1, kSecond);
  EXPECT_EQ(limit.Allowance(kSecond), 100u);
  limit.Charge(UINT64_MAX, kSecond);  // Cut to a thousand seconds, a millionth of which is allowed.
  EXPECT_EQ(limit.ReadyAt(kMs), 900 * kMs + 1'000'000'000 * kSecond + 100 * kMs);
  limit.Set(999'999, UINT64_MAX / 2);
  limit.Charge(3 * kMs, UINT64_MAX / 2);
  EXPECT_LE(limit.Allowance(UINT64_MAX / 2), 100 * kMs);
}

SimClient Backlogged(const char* name, double max_share, uint64_t length_us, uint64_t unit_us) {
  SimClient client;
  client.tenant.name = name;
  client.tenant.max_share_ppm = static_cast<uint32_t>(max_share * 1e6);
  client.kernels.push_back({length_us * 1000, unit_us * 1000});
  return client;
}

Scenario Of(std::vector<SimClient> clients) {
  Scenario scenario;
  scenario.name = "limited";
  scenario.duration_ns = 20 * kSecond;
  scenario.clients = std::move(clients);
  return scenario;
}

/// The most beyond `share` of the time between any two of its pieces' beginnings and ends.
double MostAbove(const SimResult& result, size_t tenant, double share) {
  // used(b) - used(a) - share x (b - a), greatest over a < b: a scan, with the least of used(a) - share x a so far.
  double used = 0, least = 0, most = 0;
  for (const SimInterval& interval : result.busy) {
    if (interval.tenant != tenant) continue;
    least = std::min(least, used - share * static_cast<double>(interval.begin_ns));
    used += static_cast<double>(interval.end_ns - interval.begin_ns);
    most = std::max(most, used - share * static_cast<double>(interval.end_ns) - least);
  }
  return most;
}

// Alone, and yet no more than a quarter: the bucket at first, and from then on 2 ms in every 8.
TEST(MaximumShare, HoldsForWhoIsAlone) {
  const Played played = Play(Of({Backlogged("alone", 0.25, 10'000, 500)}), "fair");
  EXPECT_TRUE(played.result.open.empty());
  EXPECT_NEAR(static_cast<double>(played.result.tenants[0].used_ns), 5.025e9, 2e6);
  ASSERT_GT(played.result.busy.size(), 2000u);
  for (size_t i = 100; i + 2 < played.result.busy.size(); ++i) {
    const SimInterval& piece = played.result.busy[i];
    ASSERT_EQ(piece.end_ns - piece.begin_ns, 2 * kMs) << i;
    ASSERT_EQ(played.result.busy[i + 1].begin_ns - piece.begin_ns, 8 * kMs) << i;
  }
  EXPECT_LE(MostAbove(played.result, 0, 0.25), 25e6);
  EXPECT_GE(MostAbove(played.result, 0, 0.25), 12e6);  // The bucket is used.
}

// A kernel that cannot be split runs whole, and is waited for afterwards: 50 ms in every 200.
TEST(MaximumShare, IsKeptOnAverageByKernelsThatCannotBeSplit) {
  const Played played = Play(Of({Backlogged("whole", 0.25, 50'000, 0)}), "fair");
  ASSERT_GT(played.result.busy.size(), 90u);
  for (size_t i = 1; i + 1 < played.result.busy.size(); ++i) {
    ASSERT_EQ(played.result.busy[i + 1].begin_ns - played.result.busy[i].begin_ns, 200 * kMs);
  }
  EXPECT_LE(MostAbove(played.result, 0, 0.25), 25e6 + 50e6);
}

// Whatever the policy is: it does not even see the tenant, and the other gets what is left.
TEST(MaximumShare, HoldsUnderEveryPolicy) {
  for (const BuiltinPolicy& policy : BuiltinPolicies()) {
    const Played played =
        Play(Of({Backlogged("limited", 0.1, 4'000, 500), Backlogged("free", 0, 4'000, 500)}), std::string(policy.name));
    const double piece = policy.name == "fifo" || policy.name == "credit" || policy.name == "band" ? 4e6 : 0.5e6;
    EXPECT_LE(MostAbove(played.result, 0, 0.1), 10e6 + piece) << policy.name;
    EXPECT_NEAR(static_cast<double>(played.result.tenants[0].used_ns), 2.01e9, 0.02e9) << policy.name;
    EXPECT_NEAR(static_cast<double>(played.result.tenants[1].used_ns), 17.99e9, 0.05e9) << policy.name;
  }
}

// 10 % at most, though its weight would give it 90: the others share the rest by weight.
TEST(MaximumShare, LeavesTheRestToWeights) {
  std::vector<SimClient> clients = {Backlogged("limited", 0.1, 10'000, 500), Backlogged("one", 0, 10'000, 500),
                                    Backlogged("two", 0, 10'000, 500)};
  clients[0].tenant.weight = 2700;
  clients[2].tenant.weight = 200;
  const Played played = Play(Of(clients), "fair");
  EXPECT_NEAR(static_cast<double>(played.result.tenants[0].used_ns), 2.01e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(played.result.tenants[1].used_ns), 5.997e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(played.result.tenants[2].used_ns), 11.993e9, 0.01e9);
}

// Who stays below its maximum anyway is served as if there were none.
TEST(MaximumShare, ChangesNothingBelowIt) {
  Scenario with = Of({Backlogged("a", 0.7, 10'000, 500), Backlogged("b", 0.7, 10'000, 500)});
  Scenario without = with;
  for (SimClient& client : without.clients) client.tenant.max_share_ppm = 0;
  const Played a = Play(with, "fair"), b = Play(without, "fair");
  ASSERT_EQ(a.result.busy.size(), b.result.busy.size());
  for (size_t i = 0; i < a.result.busy.size(); ++i) {
    ASSERT_EQ(a.result.busy[i].begin_ns, b.result.busy[i].begin_ns);
    ASSERT_EQ(a.result.busy[i].tenant, b.result.busy[i].tenant);
  }
}

// A short burst after a silence is not slowed down: 20 ms of work in every second, with a maximum of a quarter.
TEST(MaximumShare, LetsABurstThrough) {
  SimClient client = Backlogged("bursts", 0.25, 20'000, 500);
  client.arrival = SimClient::Arrival::kPeriodic;
  client.think_ns = kSecond;
  const Played played = Play(Of({client}), "fair");
  ASSERT_EQ(played.result.tenants[0].requests.size(), 20u);
  for (const SimRequest& request : played.result.tenants[0].requests) {
    EXPECT_EQ(request.end_ns - request.arrival_ns, 20 * kMs);
  }
}

/// Workers of which it is only known what the scheduler told them.
class Sink : public GrantSink {
 public:
  void Give(TenantId tenant, const Grant& grant) override {
    holder = tenant;
    given = grant;
    revoked = false;
  }
  void Revoke(TenantId) override { revoked = true; }
  void Stage(TenantId) override {}

  TenantId holder = 0;
  Grant given;
  bool revoked = false;
};

class Changed : public ::testing::Test {
 protected:
  Changed() : scheduler_({}, sink_, {}) { EXPECT_TRUE(scheduler_.Use(PolicyLibrary::Fair(), now_).ok()); }

  void Drain(TenantId id, uint64_t used_ns) {
    now_ += used_ns;
    facts_.used_ns += used_ns;
    scheduler_.Facts(id, facts_, now_);
    sink_.holder = 0;
    scheduler_.Drained(id, now_);
  }

  Sink sink_;
  Scheduler scheduler_;
  WorkerFacts facts_;
  uint64_t now_ = kSecond;
};

TEST_F(Changed, AnOpenGrantIsTakenBackFromWhoGetsAMaximum) {
  const TenantId id = scheduler_.Add({.name = "one"}, now_);
  now_ += kSecond;
  scheduler_.Runnable(id, now_);
  ASSERT_EQ(sink_.holder, id);
  EXPECT_EQ(sink_.given.kind, Grant::Kind::kOpen);
  scheduler_.Configure(id, {.name = "one", .max_share_ppm = 500'000}, now_);
  EXPECT_TRUE(sink_.revoked);
  Drain(id, 10 * kMs);
  ASSERT_EQ(sink_.holder, id);  // The bucket still has 40 ms.
  EXPECT_EQ(sink_.given.kind, Grant::Kind::kSlice);
  EXPECT_EQ(sink_.given.slice_ns, 2 * kMs);
  Drain(id, 51 * kMs);
  EXPECT_EQ(sink_.holder, 0u);  // It has had too much, and waits until it may have a slice again.
  EXPECT_EQ(scheduler_.next_wake_ns(), now_ + 2 * kMs + 4 * kMs);
  now_ = scheduler_.next_wake_ns();
  scheduler_.Advance(now_);
  EXPECT_EQ(sink_.holder, id);
}

TEST_F(Changed, WhoIsHeldIsReleasedWithItsMaximum) {
  const TenantId id = scheduler_.Add({.name = "one", .max_share_ppm = 10'000}, now_);
  scheduler_.Runnable(id, now_);
  Drain(id, 100 * kMs);
  EXPECT_EQ(sink_.holder, 0u);
  EXPECT_GT(scheduler_.next_wake_ns(), now_ + 9 * kSecond);
  EXPECT_EQ(scheduler_.policy().Select(now_).kind, Choice::Kind::kNobody);
  scheduler_.Configure(id, {.name = "one"}, now_);
  EXPECT_EQ(sink_.holder, id);
}

TEST_F(Changed, WhoIsHeldMayGoAwayOrLoseItsWork) {
  const TenantId id = scheduler_.Add({.name = "one", .max_share_ppm = 10'000}, now_);
  const TenantId other = scheduler_.Add({.name = "other"}, now_);
  scheduler_.Runnable(id, now_);
  Drain(id, 100 * kMs);
  scheduler_.Runnable(other, now_);
  EXPECT_EQ(sink_.holder, other);
  scheduler_.Idle(id, now_);
  EXPECT_EQ(scheduler_.next_wake_ns(), UINT64_MAX);
  scheduler_.Runnable(id, now_);  // It still is above.
  EXPECT_FALSE(sink_.revoked);
  EXPECT_LT(scheduler_.next_wake_ns(), UINT64_MAX);
  scheduler_.Remove(id, now_);
  EXPECT_EQ(scheduler_.next_wake_ns(), UINT64_MAX);
  EXPECT_EQ(sink_.holder, other);
}

}  // namespace
}  // namespace hawser::scheduler
