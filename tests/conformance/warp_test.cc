// SPDX-License-Identifier: Apache-2.0
// What lanes of a warp tell each other: redux, match, vote, elect, activemask, for whole and partial member masks, lane
// by lane against the same on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/softcuda_exec/device.h"

namespace hawser::conformance {
namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kUntouched = 0xdeadbeef;

/// What a lane brings: %a, %m (its member mask; a lane of mask 0 stays away), %v.
struct Given {
  uint32_t a = 0;
  uint32_t m = 0;
  uint64_t v = 0;
};
/// What a lane has afterwards: %d, and whether %q holds.
struct Got {
  uint32_t d = 0;
  uint32_t q = 0;
};
using Lanes = std::array<Given, kWarp>;

/// Runs `body` in the lanes that have members. %p: %a is not zero.
std::array<Got, kWarp> Execute(const std::string& body, const Lanes& lanes, uint32_t threads = kWarp) {
  exec::Device device(0);
  const std::string text =
      ".version 8.4\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
      ".reg .pred %p, %q, %g, %h; .reg .b32 %lane, %a, %m, %d, %t; .reg .b64 %v, %in, %out;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %tid.x;\n"
      "mad.wide.u32 %in, %lane, 16, %in; mad.wide.u32 %out, %lane, 8, %out;\n"
      "ld.global.u32 %a, [%in]; ld.global.u32 %m, [%in+4]; ld.global.u64 %v, [%in+8];\n"
      "mov.b32 %d, 0xdeadbeef; setp.ne.u32 %p, %a, 0; setp.ne.u32 %q, %a, %a; setp.eq.u32 %g, %m, 0; @%g bra END;\n" +
      body + "\nEND: selp.u32 %t, 1, 0, %q; st.global.v2.u32 [%out], {%d, %t}; ret; }\n";
  EXPECT_EQ(device.Load({text}), "") << body;
  EXPECT_TRUE(device.program().unsupported().empty()) << body;
  const uint64_t in = device.Upload(std::vector<Given>(lanes.begin(), lanes.end()));
  const uint64_t out = device.Allocate(sizeof(Got) * kWarp);
  const exec::Outcome outcome = device.Run("k", {1, 1, 1}, {threads, 1, 1}, exec::Arguments().Add(in).Add(out));
  EXPECT_TRUE(outcome.ok()) << body << ": " << outcome.fault.Text();
  std::array<Got, kWarp> result;
  const std::vector<Got> got = device.Download<Got>(out, kWarp);
  std::copy(got.begin(), got.end(), result.begin());
  return result;
}

/// Ways to divide a warp: everybody; two groups; four, mixed; one group and others who stay away; one lane alone.
std::vector<std::array<uint32_t, kWarp>> Divisions() {
  std::vector<std::array<uint32_t, kWarp>> all;
  for (const std::vector<uint32_t>& groups :
       {std::vector<uint32_t>{0xffffffff}, std::vector<uint32_t>{0xffff, 0xffff0000},
        std::vector<uint32_t>{0x11111111, 0x42424242, 0x88888888, 0x24242424}, std::vector<uint32_t>{0x7ffe0ff8},
        std::vector<uint32_t>{0x00000400, 0x0f0ff000}, std::vector<uint32_t>{0x80000001}}) {
    std::array<uint32_t, kWarp> masks{};
    for (const uint32_t group : groups) {
      for (uint32_t lane = 0; lane < kWarp; ++lane) {
        if ((group >> lane & 1) != 0) masks[lane] = group;
      }
    }
    all.push_back(masks);
  }
  return all;
}

/// Values with edges among them; `kinds`: how many different ones (0: as they come).
Lanes Values(const std::array<uint32_t, kWarp>& masks, uint32_t seed, uint32_t kinds = 0) {
  constexpr std::array<uint32_t, 6> kEdges{0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 0x55555555};
  std::mt19937_64 random(seed);
  Lanes lanes;
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    const uint64_t drawn = random();
    lanes[lane].m = masks[lane];
    lanes[lane].a = drawn % 3 == 0 ? kEdges[drawn / 3 % kEdges.size()] : static_cast<uint32_t>(drawn >> 32);
    if (kinds != 0) lanes[lane].a = static_cast<uint32_t>(drawn % kinds);
    // Equal low words with different high ones.
    lanes[lane].v = kinds != 0 ? (drawn % kinds) << 32 | 5 : drawn;
  }
  return lanes;
}

/// Calls f(group) for each lane's group in turn, and compares.
void Compare(const std::string& body, const Lanes& lanes, const std::function<Got(uint32_t lane, uint32_t group)>& f) {
  const auto got = Execute(body, lanes);
  for (uint32_t lane = 0; lane < kWarp; ++lane) {
    const Got expected = lanes[lane].m == 0 ? Got{kUntouched, 0} : f(lane, lanes[lane].m);
    EXPECT_EQ(got[lane].d, expected.d) << body << " lane " << lane << " of " << std::hex << lanes[lane].m;
    EXPECT_EQ(got[lane].q, expected.q) << body << " lane " << lane << " of " << std::hex << lanes[lane].m;
  }
}

TEST(Warp, Reductions) {
  struct Reduction {
    const char* text;
    std::function<uint32_t(uint32_t, uint32_t)> combine;
  };
  const auto s = [](uint32_t x) { return static_cast<int32_t>(x); };
  const std::vector<Reduction> reductions = {
      {"add.u32", [](uint32_t x, uint32_t y) { return x + y; }},
      {"add.s32", [](uint32_t x, uint32_t y) { return x + y; }},
      {"min.u32", [](uint32_t x, uint32_t y) { return std::min(x, y); }},
      {"max.u32", [](uint32_t x, uint32_t y) { return std::max(x, y); }},
      {"min.s32", [s](uint32_t x, uint32_t y) { return s(x) < s(y) ? x : y; }},
      {"max.s32", [s](uint32_t x, uint32_t y) { return s(x) > s(y) ? x : y; }},
      {"and.b32", [](uint32_t x, uint32_t y) { return x & y; }},
      {"or.b32", [](uint32_t x, uint32_t y) { return x | y; }},
      {"xor.b32", [](uint32_t x, uint32_t y) { return x ^ y; }},
  };
  uint32_t seed = 0;
  for (const auto& masks : Divisions()) {
    for (const Reduction& r : reductions) {
      const Lanes lanes = Values(masks, ++seed);
      Compare(std::string("redux.sync.") + r.text + " %d, %a, %m;", lanes, [&](uint32_t, uint32_t group) {
        uint32_t total = lanes[static_cast<uint32_t>(std::countr_zero(group))].a;
        for (uint32_t rest = group & (group - 1); rest != 0; rest &= rest - 1) {
          total = r.combine(total, lanes[static_cast<uint32_t>(std::countr_zero(rest))].a);
        }
        return Got{total, 0};
      });
    }
  }
}

TEST(Warp, Matches) {
  uint32_t seed = 100;
  for (const auto& masks : Divisions()) {
    for (const uint32_t kinds : {1u, 2u, 5u, 0u}) {
      for (const bool wide : {false, true}) {
        const Lanes lanes = Values(masks, ++seed, kinds);
        const auto value = [&](uint32_t lane) { return wide ? lanes[lane].v : lanes[lane].a; };
        const auto like = [&](uint32_t lane, uint32_t group) {
          uint32_t same = 0;
          for (uint32_t other = 0; other < kWarp; ++other) {
            if ((group >> other & 1) != 0 && value(other) == value(lane)) same |= 1u << other;
          }
          return same;
        };
        const std::string rest = wide ? ".b64 %d, %v, %m;" : ".b32 %d, %a, %m;";
        Compare("match.any.sync" + rest, lanes, [&](uint32_t lane, uint32_t group) {
          return Got{like(lane, group), 0};
        });
        const auto all = [&](uint32_t lane, uint32_t group) { return like(lane, group) == group; };
        Compare("match.all.sync" + rest, lanes, [&](uint32_t lane, uint32_t group) {
          return Got{all(lane, group) ? group : 0, 0};
        });
        Compare(wide ? "match.all.sync.b64 %d|%q, %v, %m;" : "match.all.sync.b32 %d|%q, %a, %m;", lanes,
                [&](uint32_t lane, uint32_t group) {
                  return Got{all(lane, group) ? group : 0, all(lane, group) ? 1u : 0u};
                });
      }
    }
  }
}

TEST(Warp, Votes) {
  uint32_t seed = 200;
  for (const auto& masks : Divisions()) {
    // %a: 0 everywhere, 0 or 1, 1 everywhere.
    for (const uint32_t kind : {0u, 1u, 2u, 3u}) {
      Lanes lanes = Values(masks, ++seed, 2);
      for (Given& lane : lanes) lane.a = kind == 0 ? 0u : kind == 1 ? 1u : lane.a;
      for (const bool negated : {false, true}) {
        const auto votes = [&](uint32_t group) {
          uint32_t bits = 0;
          for (uint32_t lane = 0; lane < kWarp; ++lane) bits |= ((lanes[lane].a != 0) != negated ? 1u : 0u) << lane;
          return bits & group;
        };
        const std::string source = negated ? "!%p, %m;" : "%p, %m;";
        const auto truth = [](bool value) { return Got{kUntouched, value ? 1u : 0u}; };
        Compare("vote.sync.all.pred %q, " + source, lanes,
                [&](uint32_t, uint32_t group) { return truth(votes(group) == group); });
        Compare("vote.sync.any.pred %q, " + source, lanes,
                [&](uint32_t, uint32_t group) { return truth(votes(group) != 0); });
        Compare("vote.sync.uni.pred %q, " + source, lanes,
                [&](uint32_t, uint32_t group) { return truth(votes(group) == group || votes(group) == 0); });
        Compare("vote.sync.ballot.b32 %d, " + source, lanes, [&](uint32_t, uint32_t group) {
          return Got{votes(group), 0};
        });
      }
    }
  }
}

TEST(Warp, OneOfEachGroupIsElected) {
  for (const auto& masks : Divisions()) {
    const Lanes lanes = Values(masks, 1);
    const auto got = Execute("elect.sync %d|%q, %m;", lanes);
    const auto again = Execute("elect.sync _|%q, %m;", lanes);
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      if (masks[lane] == 0) {
        EXPECT_EQ(got[lane].q, 0u);
        continue;
      }
      ASSERT_LT(got[lane].d, kWarp);
      EXPECT_EQ(masks[lane] >> got[lane].d & 1, 1u) << "elected from outside";
      EXPECT_EQ(got[lane].q, got[lane].d == lane ? 1u : 0u);
      EXPECT_EQ(again[lane].q, got[lane].q) << "the same members elect the same leader";
      for (uint32_t other = 0; other < kWarp; ++other) {
        if (masks[other] == masks[lane]) {
          EXPECT_EQ(got[other].d, got[lane].d);
        }
      }
    }
  }
}

TEST(Warp, TheActiveAreThoseWhoAreHere) {
  for (const auto& masks : Divisions()) {
    const Lanes lanes = Values(masks, 3, 2);
    uint32_t here = 0;
    uint32_t set = 0;
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      here |= (masks[lane] != 0 ? 1u : 0u) << lane;
      set |= (masks[lane] != 0 && lanes[lane].a != 0 ? 1u : 0u) << lane;
    }
    Compare("activemask.b32 %d;", lanes, [&](uint32_t, uint32_t) { return Got{here, 0}; });
    const auto guarded = [&](uint32_t lane, uint32_t) { return Got{(set >> lane & 1) != 0 ? set : kUntouched, 0}; };
    Compare("@%p activemask.b32 %d;", lanes, guarded);
    Compare("@!%p bra END; activemask.b32 %d;", lanes, guarded);
  }
}

// Two groups at places of their own in the text.
TEST(Warp, GroupsMeetApart) {
  std::array<uint32_t, kWarp> masks{};
  for (uint32_t lane = 0; lane < kWarp; ++lane) masks[lane] = lane % 3 == 0 ? 0x49249249 : 0xb6db6db6;
  const Lanes lanes = Values(masks, 11);
  Compare(
      "setp.eq.u32 %h, %m, 0x49249249; @%h bra OTHER; redux.sync.add.u32 %d, %a, %m; bra END;\n"
      "OTHER: redux.sync.xor.b32 %d, %a, %m;",
      lanes, [&](uint32_t lane, uint32_t group) {
        uint32_t sum = 0;
        uint32_t folded = 0;
        for (uint32_t rest = group; rest != 0; rest &= rest - 1) {
          const uint32_t value = lanes[static_cast<uint32_t>(std::countr_zero(rest))].a;
          sum += value;
          folded ^= value;
        }
        return Got{lane % 3 == 0 ? folded : sum, 0};
      });
}

TEST(Warp, LanesWithoutAThreadDoNotCount) {
  std::array<uint32_t, kWarp> masks;
  masks.fill(0x000fffff);
  Lanes lanes = Values(masks, 12);
  for (Given& lane : lanes) lane.a = 7;
  constexpr uint32_t kThreads = 20;
  EXPECT_EQ(Execute("redux.sync.add.u32 %d, %a, %m;", lanes, kThreads)[3].d, 140u);
  EXPECT_EQ(Execute("activemask.b32 %d;", lanes, kThreads)[19].d, 0x000fffffu);
  EXPECT_EQ(Execute("vote.sync.ballot.b32 %d, %p, %m;", lanes, kThreads)[0].d, 0x000fffffu);
  EXPECT_EQ(Execute("match.any.sync.b32 %d, %a, %m;", lanes, kThreads)[0].d, 0x000fffffu);
}

}  // namespace
}  // namespace hawser::conformance
