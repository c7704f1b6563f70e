// SPDX-License-Identifier: Apache-2.0
// What a worker can do to others by what it says in its page: no more than its tenant pays for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/gate.h"
#include "tests/unit/scheduler/hostile_world.h"

namespace hawser::scheduler {
namespace {

using hostile::kMaxUnitNs;
using hostile::kMs;
using hostile::kPieceNs;
using hostile::kStepNs;
using hostile::World;
using ::testing::IsEmpty;

uint64_t Epoch(const World& world) { return EpochOf(world.page->word); }

/// Has the device for whole slices, as long as `length_ns`, and says that it used `said_ns` of each.
void TakeSlices(World& world, uint64_t length_ns, uint64_t said_ns) {
  world.page->demand = 1;
  auto since = std::make_shared<uint64_t>(0);
  world.lie = [&world, length_ns, said_ns, since] {
    world.page->demand = 1;
    if (!world.MaySubmit()) {
      world.device_is_kept = false;
      *since = 0;
      return;
    }
    if (*since == 0) {
      *since = world.now_ns;
      world.page->active = MakePiece(length_ns);
      world.device_is_kept = true;
    } else if (world.now_ns - *since >= length_ns) {
      world.page->used_ns += said_ns;
      world.page->spent_epoch = Epoch(world);
      world.page->active = 0;
      world.device_is_kept = false;
    }
  };
}

TEST(HostilePage, WhoSaysThatItUsedNothingIsChargedAllTheSame) {
  World world("fair");
  ASSERT_TRUE(world.ok);
  TakeSlices(world, 2 * kMs, 0);
  world.RunFor(2000 * kMs);
  EXPECT_GE(world.workers[0]->served_ns, 2000 * kMs / 4);
  EXPECT_THAT(world.ejected, IsEmpty());
  EXPECT_EQ(world.Wrong(), "");
}

TEST(HostilePage, AlsoWithLongSlices) {
  World world("fair");
  TakeSlices(world, 15 * kMs, 0);
  world.RunFor(4000 * kMs);
  EXPECT_GE(world.workers[0]->served_ns, 4000 * kMs / 4);
  EXPECT_EQ(world.wrongly_blamed, 0);
}

TEST(HostilePage, WhoTellsTheTruthGetsHalf) {
  World world("fair");
  TakeSlices(world, 2 * kMs, 2 * kMs);
  world.RunFor(2000 * kMs);
  EXPECT_GE(world.workers[0]->served_ns, 850 * kMs);
  EXPECT_LE(world.workers[0]->served_ns, 1050 * kMs);
  EXPECT_EQ(world.runaways, 0);
}

TEST(HostilePage, WhoSaysThatItUsedAnAgeHarmsItselfOnly) {
  for (const uint64_t said : {uint64_t{1} << 40, uint64_t{1} << 62, UINT64_MAX / 3}) {
    World world("rr", 2);
    TakeSlices(world, 2 * kMs, said);
    world.RunFor(3000 * kMs);
    EXPECT_THAT(world.ejected, IsEmpty());
    EXPECT_EQ(world.arbiter().scheduler().policy().policy_name(), "rr");
    EXPECT_EQ(world.Wrong(), "");
    for (const auto& worker : world.workers) EXPECT_GE(worker->served_ns, 500 * kMs);
    // Nor does it when it is gone.
    world.lie = nullptr;
    world.device_is_kept = false;
    world.arbiter().Detach(world.liar_door);
    world.RunFor(100 * kMs);
    EXPECT_EQ(world.Wrong(), "");
  }
}

// A policy that serves the one with the least use never comes back to who says that it used an age. That is what it
// said, and no reason to take the policy away.
TEST(HostilePage, NoPolicyIsEjectedForWhatItSays) {
  for (const BuiltinPolicy& policy : BuiltinPolicies()) {
    if (policy.name == "prio" || policy.name == "fifo") continue;  // Let starve, each in its way.
    World world{std::string(policy.name)};
    TakeSlices(world, 2 * kMs, UINT64_MAX / 1000);
    world.RunFor(5000 * kMs);
    EXPECT_THAT(world.ejected, IsEmpty()) << policy.name;
    EXPECT_EQ(world.Wrong(), "") << policy.name;
  }
}

TEST(HostilePage, ANanosecondNowAndThenIsNoProgress) {
  World world("fair");
  world.lie = [&world] {
    world.page->demand = 1;
    if (world.MaySubmit()) {
      world.page->active = MakePiece(1);
      world.device_is_kept = true;
    }
    if (world.page->active != 0) world.page->used_ns += 1;
    if (world.runaways != 0) world.device_is_kept = false;
  };
  world.RunFor(5 * kMaxUnitNs);
  EXPECT_GE(world.runaways, 1);
  EXPECT_EQ(world.wrongly_blamed, 0);
  EXPECT_GT(world.workers[0]->served_ns, 0u);
}

TEST(HostilePage, NothingAnswersForADrainWithoutEnd) {
  World world("fair");
  world.lie = [&world] {
    world.page->demand = 1;
    if (world.MaySubmit()) world.page->active = MakePiece(1);
    if (world.page->active != 0) world.page->used_ns += kStepNs;  // All of it.
  };
  world.RunFor((KeptTime::kMostPieces + 1) * kMaxUnitNs);
  EXPECT_EQ(world.runaways, 1);
  EXPECT_EQ(world.wrongly_blamed, 0);
  EXPECT_LE(world.longest_wait_ns, (KeptTime::kMostPieces + 1) * kMaxUnitNs);
}

// It keeps the device with something that it says has left, and takes that back whenever it would be asked for it.
TEST(HostilePage, ATailThatComesAndGoesIsKnown) {
  World world("fair", 2);
  uint64_t begin = 0;
  world.lie = [&] {
    if (begin == 0) begin = world.now_ns;
    const uint64_t phase = (world.now_ns - begin) % kMaxUnitNs;
    const bool tail = phase < kMaxUnitNs - 2 * kStepNs;
    world.page->tail = tail ? MakePiece(1) : 0;
    world.device_is_kept = tail && world.runaways == 0;
  };
  world.RunFor(4 * kMaxUnitNs);
  EXPECT_GE(world.runaways, 1);
  EXPECT_EQ(world.wrongly_blamed, 0);
  EXPECT_LT(world.longest_wait_ns, 3 * kMaxUnitNs);
}

// It ends each slice before it begins, and asks for the next.
TEST(HostilePage, SlicesThatEndAtOnceEndSomeTime) {
  World world("fair");
  world.page->demand = 1;
  world.bell->on_ring = [&world] { world.page->spent_epoch = Epoch(world); };
  world.RunFor(1000 * kMs);
  EXPECT_GE(world.workers[0]->served_ns, 1000 * kMs / 2);
  EXPECT_THAT(world.ejected, IsEmpty());
}

// Nor does the scheduler go on giving it slices, within one look, while a policy always chooses it.
TEST(HostilePage, ALookComesToItsEnd) {
  World world("fifo");
  world.page->demand = 1;
  world.bell->on_ring = [&world] { world.page->spent_epoch = Epoch(world); };
  world.RunFor(10 * kMs);
  EXPECT_LE(world.arbiter().next_wake_ns(), world.now_ns);  // It goes on soon.
  world.bell->on_ring = nullptr;
  world.page->demand = 0;
  world.RunFor(10 * kMs);
  EXPECT_GT(world.workers[0]->served_ns, 0u);
}

// Whoever joins a tenant that has been asked for the device gets what the others of that tenant have: nothing.
TEST(HostilePage, AWorkerThatComesDuringADrainHasNoGrant) {
  World world("fair", 0);
  world.RunFor(200 * kMs);
  world.page->demand = 1;
  world.Step();
  ASSERT_EQ(world.mode(), GateMode::kOpen);
  world.page->active = MakePiece(0);
  hostile::SilentBell bell;
  hostile::Honest other(bell);
  const TenantId id = world.arbiter().AddTenant({"other"}, world.now_ns);
  ASSERT_NE(world.arbiter().Attach(id, other.page, other.bell), 0u);
  other.page.demand = 1;
  world.Step();
  ASSERT_EQ(world.mode(), GateMode::kRevoked);
  GrantPage late;
  const DoorId door = world.arbiter().Attach(world.liars(), late, bell);
  EXPECT_EQ(ModeOf(late.word), GateMode::kClosed);
  world.arbiter().Detach(world.liar_door);
  world.Step();
  EXPECT_EQ(ModeOf(other.page.word), GateMode::kSlice);
  world.arbiter().Detach(door);
  world.arbiter().RemoveTenant(id, world.now_ns);
}

// It comes back at once, as another worker: what its tenant owes is still known. Later nothing of it is left.
TEST(HostilePage, WhoLeavesAndComesBackGainsNothing) {
  World world("fair", 2);
  uint64_t had_ns = 0;
  world.lie = [&] {
    world.page->demand = 1;
    if (!world.MaySubmit()) {
      world.device_is_kept = false;
      return;
    }
    // Ten milliseconds, then it leaves in the middle of its grant.
    world.page->active = MakePiece(1);
    world.device_is_kept = true;
    had_ns += kStepNs;
    if (had_ns % (10 * kMs) != 0) return;
    world.device_is_kept = false;
    world.arbiter().Detach(world.liar_door);
    world.arbiter().Retire(world.liars(), world.now_ns);
    world.Rejoin();
  };
  world.RunFor(2000 * kMs);
  // It said nothing, so half of it is charged: it has had as much as the two others together.
  EXPECT_LE(had_ns, 2000 * kMs / 2 + 50 * kMs);
  EXPECT_EQ(world.arbiter().scheduler().tenants().all().size(), 3u);
  world.lie = nullptr;
  world.device_is_kept = false;
  world.arbiter().Detach(world.liar_door);
  world.arbiter().Retire(world.liars(), world.now_ns);
  world.RunFor(4900 * kMs);
  EXPECT_EQ(world.arbiter().scheduler().tenants().all().size(), 3u);
  world.RunFor(10'000 * kMs);
  EXPECT_EQ(world.arbiter().scheduler().tenants().all().size(), 2u);
  EXPECT_EQ(world.arbiter().Attach(world.liars(), *world.page, *world.bell), 0u);
}

TEST(HostilePage, CompanyIsWhoHadWorkLately) {
  World world("fair", 0);
  std::atomic<uint32_t> told{7};
  hostile::SilentBell bell;
  GrantPage page;
  const TenantId id = world.arbiter().AddTenant({"other"}, world.now_ns);
  ASSERT_NE(world.arbiter().Attach(id, page, bell, nullptr, &told), 0u);
  world.Step();
  EXPECT_EQ(told, 1u);  // Itself. The other one is there and has no work.
  world.page->demand = 1;
  world.Step();
  EXPECT_EQ(told, 2u);
  page.demand = 1;
  world.Step();
  EXPECT_EQ(told, 2u);
  world.page->demand = 0;
  world.RunFor(900 * kMs);
  EXPECT_EQ(told, 2u);
  world.RunFor(200 * kMs);
  EXPECT_EQ(told, 1u);
}

// Any values at any time.
TEST(HostilePage, NoiseStopsNobody) {
  for (const char* policy : {"fair", "drr", "slo", "band", "split", "prio"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      World world(policy, 2);
      std::mt19937_64 random(seed);
      const auto any = [&random]() -> uint64_t {
        switch (random() % 6) {
          case 0:
            return 0;
          case 1:
            return UINT64_MAX - random() % 3;
          case 2:
            return MakePiece(random());
          case 3:
            return uint64_t{1} << random() % 64;
          case 4:
            return random() % 1000;
          default:
            return random();
        }
      };
      world.lie = [&] {
        GrantPage& page = *world.page;
        for (auto* word : {&page.active, &page.demand, &page.tail, &page.used_ns, &page.pending_ns, &page.pending_count,
                           &page.oldest_arrival_ns, &page.next_unit_ns, &page.last_unit_ns, &page.mem_resident,
                           &page.mem_total, &page.word, &page.slice_ns}) {
          if (random() % 4 == 0) *word = any();
        }
        if (random() % 3 == 0) page.spent_epoch = random() % 2 == 0 ? any() : Epoch(world);
      };
      world.RunFor(3000 * kMs);
      EXPECT_EQ(world.Wrong(), "") << policy << " " << seed;
      // `fair`, or whatever was asked for until `fair` had to take its place.
      EXPECT_LT(world.longest_wait_ns, 1500 * kMs + 20 * kMaxUnitNs) << policy << " " << seed;
      EXPECT_EQ(world.wrongly_blamed, 0) << policy << " " << seed;
    }
  }
}

// With the threads of a server: somebody scribbles over a page for as long as another one works.
TEST(HostilePage, SomebodyScribblesWhileOthersWork) {
  SchedulerOptions options;
  options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
  options.max_unit_ns = 5 * kMs;
  CondvarBell bell, liars_bell;
  auto page = std::make_unique<GrantPage>();
  std::mutex mutex;
  std::vector<uint64_t> blamed;
  std::atomic<bool> news{false};
  ArbiterThread arbiter(
      options,
      [&](const PolicyEvent& event) {
        const std::lock_guard<std::mutex> lock(mutex);
        blamed.insert(blamed.end(), event.doors.begin(), event.doors.end());
        news = true;
      },
      bell);
  ASSERT_TRUE(arbiter.Use(PolicyLibrary::Fair()).ok());
  const TenantId liar = arbiter.AddTenant({"liar"}), honest = arbiter.AddTenant({"honest"});
  std::atomic<DoorId> door{arbiter.Attach(liar, *page, liars_bell)};
  std::atomic<bool> done{false};
  std::thread scribbler([&] {
    std::mt19937_64 random(1);
    while (!done) {
      page->active = random() % 2 == 0 ? random() : 0;
      page->tail = random() % 2 == 0 ? random() : 0;
      page->used_ns = random();
      page->demand = random() % 2;
      page->spent_epoch = EpochOf(page->word);
      if (random() % 8 == 0) bell.Ring();
    }
  });
  // As the server does it: whoever is blamed is ended, and comes again.
  std::thread server([&] {
    while (!done) {
      std::this_thread::yield();
      if (!news.exchange(false)) continue;
      std::vector<uint64_t> doors;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        doors.swap(blamed);
      }
      for (const uint64_t one : doors) {
        if (one != door) continue;
        arbiter.Detach(one);
        door = arbiter.Attach(liar, *page, liars_bell);
      }
    }
  });
  GrantPage mine;
  CondvarBell my_bell;
  Gate gate(mine, bell, my_bell);
  ASSERT_NE(arbiter.Attach(honest, mine, my_bell), 0u);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(gate.Enter(kPieceNs, {}, std::chrono::hours(1)));
    gate.Leave(kPieceNs, kPieceNs);
  }
  done = true;
  scribbler.join();
  server.join();
  arbiter.RemoveTenant(liar);
  arbiter.RemoveTenant(honest);
}

}  // namespace
}  // namespace hawser::scheduler
