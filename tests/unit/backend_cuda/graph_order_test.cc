// SPDX-License-Identifier: Apache-2.0
// Which copy takes memory before a function could hand it over, in graphs of a few nodes.
#include "server/backends/cuda/graph_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace hawser::server::cuda_backend {
namespace {

wire::Id Piece(uint32_t number) { return wire::Id(1, 1, number); }

class GraphOrderTest : public testing::Test {
 protected:
  size_t Fills(uint32_t piece) { return order_.Add({{Piece(piece)}, {}, false}); }
  size_t Reads(uint32_t piece) { return order_.Add({{}, {Piece(piece)}, false}); }
  size_t Calls() { return order_.Add({{}, {}, true}); }
  void Chain(const std::vector<size_t>& nodes) {
    for (size_t i = 1; i < nodes.size(); ++i) order_.Connect(nodes[i - 1], nodes[i]);
  }

  GraphOrder order_;
  /// Piece 1 lies before 2, and 3 over both.
  const GraphOrder::Extents extents_ = {
      {Piece(1).raw(), {100, 10}}, {Piece(2).raw(), {110, 10}}, {Piece(3).raw(), {105, 10}}};
};

TEST(HostExtentTest, MeetsWhatItHasAByteOf) {
  const HostExtent extent{100, 10};
  EXPECT_TRUE(extent.Meets(extent));
  EXPECT_TRUE(extent.Meets({109, 1}));
  EXPECT_FALSE(extent.Meets({110, 1}));
  EXPECT_TRUE(extent.Meets({90, 11}));
  EXPECT_FALSE(extent.Meets({90, 10}));
  EXPECT_FALSE(extent.Meets({100, 0}));
  EXPECT_FALSE(extent.Meets({105, 0}));
  EXPECT_TRUE(extent.Meets({90, UINT64_MAX})) << "as far as there are addresses, and farther";
  EXPECT_FALSE((HostExtent{UINT64_MAX, 10}.Meets({5, 10})));
}

TEST_F(GraphOrderTest, OnlyMemoryInCommonMatters) {
  const size_t fills = Fills(1), other = Reads(2), both = Reads(3);
  order_.Connect(fills, other);
  EXPECT_EQ(order_.FindTooEarly(extents_), std::nullopt);
  order_.Connect(fills, both);
  EXPECT_EQ(order_.FindTooEarly(extents_), both);
  EXPECT_FALSE(order_.FindTooEarly({})) << "pieces of which nobody said where they lie";
}

TEST_F(GraphOrderTest, WithoutAnOrderNothingIsTooEarly) {
  (void)Fills(1);
  const size_t reads = Reads(1), later = Fills(1);
  order_.Connect(reads, later);
  EXPECT_EQ(order_.FindTooEarly(extents_), std::nullopt);
}

TEST_F(GraphOrderTest, AFunctionOnAnyWayHandsOver) {
  const size_t fills = Fills(1), calls = Calls(), reads = Reads(1), again = Reads(1);
  Chain({fills, reads});
  Chain({fills, calls, reads, again});
  EXPECT_EQ(order_.FindTooEarly(extents_), std::nullopt);
  const size_t beside = Reads(3);
  order_.Connect(fills, beside);
  EXPECT_EQ(order_.FindTooEarly(extents_), beside) << "the function is not before this one";
}

TEST_F(GraphOrderTest, AFunctionBeforeTheFirstCopyDoesNot) {
  const size_t calls = Calls(), fills = Fills(1), reads = Reads(1);
  Chain({calls, fills, reads});
  EXPECT_EQ(order_.FindTooEarly(extents_), reads);
}

TEST_F(GraphOrderTest, LoopsComeRoundAgain) {
  const size_t reads = Reads(1), fills = Fills(1), calls = Calls();
  Chain({reads, fills, reads});
  EXPECT_EQ(order_.FindTooEarly(extents_), reads);
  Chain({fills, calls, reads});
  EXPECT_EQ(order_.FindTooEarly(extents_), std::nullopt);
}

TEST_F(GraphOrderTest, WhatSeveralFillIsTheLastOnes) {
  const size_t third = Fills(1), second = Fills(2), first = Fills(1);
  Chain({first, second, third});
  EXPECT_EQ(order_.Filled(extents_), (std::vector<wire::Id>{Piece(2), Piece(1)}));
  EXPECT_TRUE(order_.Filled({}).empty());
}

/// The definition, node for node: r is behind f, and no c is behind f and before r.
bool IsTooEarly(const std::vector<std::vector<bool>>& behind, const std::vector<bool>& calls, size_t f, size_t r) {
  if (!behind[f][r]) return false;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (calls[c] && behind[f][c] && behind[c][r]) return false;
  }
  return true;
}

TEST_F(GraphOrderTest, RandomGraphsAreAsTheDefinitionSays) {
  std::mt19937 random(7);
  int early = 0;
  for (int round = 0; round < 2000; ++round) {
    const size_t count = 2 + random() % 9;
    GraphOrder order;
    std::vector<bool> calls(count);
    std::vector<uint32_t> fills(count), reads(count);  // 0: none.
    std::vector<std::vector<bool>> behind(count, std::vector<bool>(count));
    for (size_t i = 0; i < count; ++i) {
      calls[i] = random() % 4 == 0;
      if (!calls[i] && random() % 2 == 0) fills[i] = 1 + random() % 3;
      if (!calls[i] && random() % 2 == 0) reads[i] = 1 + random() % 3;
      GraphOrder::Node node;
      if (fills[i] != 0) node.fills.push_back(Piece(fills[i]));
      if (reads[i] != 0) node.reads.push_back(Piece(reads[i]));
      node.calls = calls[i];
      ASSERT_EQ(order.Add(std::move(node)), i);
    }
    const bool loops = random() % 4 == 0;
    std::vector<std::pair<size_t, size_t>> edges;
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = loops ? 0 : from + 1; to < count; ++to) {
        if (random() % count >= 2) continue;
        order.Connect(from, to);
        edges.emplace_back(from, to);
        behind[from][to] = true;
      }
    }
    for (size_t by = 0; by < count; ++by) {
      for (size_t from = 0; from < count; ++from) {
        for (size_t to = 0; to < count; ++to) {
          if (behind[from][by] && behind[by][to]) behind[from][to] = true;
        }
      }
    }
    bool any = false;
    const auto is_too_early = [&](size_t reader) {
      for (size_t filler = 0; filler < count; ++filler) {
        if (fills[filler] == 0 || reads[reader] == 0) continue;
        if (!extents_.at(Piece(fills[filler]).raw()).Meets(extents_.at(Piece(reads[reader]).raw()))) continue;
        if (IsTooEarly(behind, calls, filler, reader)) return true;
      }
      return false;
    };
    for (size_t reader = 0; reader < count; ++reader) any = any || is_too_early(reader);
    if (!loops) {  // Of two fillers the one that comes behind the other is told behind it.
      GraphOrder apart;
      GraphOrder::Extents all;
      for (uint32_t i = 0; i < count; ++i) {
        (void)apart.Add({{Piece(i)}, {}, false});
        all[Piece(i).raw()] = {};
      }
      for (const auto& [from, to] : edges) apart.Connect(from, to);
      const std::vector<wire::Id> filled = apart.Filled(all);
      ASSERT_EQ(filled.size(), count);
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < i; ++j) {
          EXPECT_FALSE(behind[filled[i].index()][filled[j].index()]) << "round " << round;
        }
      }
    }
    const std::optional<size_t> found = order.FindTooEarly(extents_);
    ASSERT_EQ(found.has_value(), any) << "round " << round;
    if (found) {
      EXPECT_TRUE(is_too_early(*found)) << "round " << round;
      ++early;
    }
  }
  EXPECT_GT(early, 200);
  EXPECT_LT(early, 1800);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
