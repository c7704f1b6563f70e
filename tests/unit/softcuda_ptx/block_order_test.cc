// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/block_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace hawser::ptx {
namespace {

/// Block b goes to successors[b].
std::vector<BasicBlock> Graph(const std::vector<std::vector<uint32_t>>& successors) {
  std::vector<BasicBlock> blocks(successors.size());
  for (size_t b = 0; b < blocks.size(); ++b) blocks[b].successors = successors[b];
  return blocks;
}

/// "0 2 1 <2": blocks 0, 2, 1, and a latch to 2.
std::string Text(const BlockOrder& order) {
  std::string text;
  for (const auto& place : order.places) {
    if (!text.empty()) text += ' ';
    if (place.latch) text += '<';
    text += std::to_string(place.block);
  }
  return text;
}

std::string OrderOf(const std::vector<std::vector<uint32_t>>& successors) {
  return Text(OrderBlocks(Graph(successors)));
}

TEST(BlockOrder, WhatIsInOrderStays) {
  EXPECT_EQ(OrderOf({}), "");
  EXPECT_EQ(OrderOf({{}}), "0");
  EXPECT_EQ(OrderOf({{1, 2}, {3}, {3}, {}}), "0 1 2 3");            // if, else
  EXPECT_EQ(OrderOf({{1, 3}, {2}, {1, 3}, {}}), "0 1 2 3");         // A guarded loop.
  EXPECT_EQ(OrderOf({{1}, {1, 2}, {}}), "0 1 2");                   // A block that is a loop.
  EXPECT_EQ(OrderOf({{1}, {2}, {2, 3}, {1, 4}, {}}), "0 1 2 3 4");  // Two loops.
}

// The end of the outer loop stands before its begin, as compilers write it: 1 is the end, 2 the begin, 3 an inner loop.
TEST(BlockOrder, TheEndOfALoopComesLast) { EXPECT_EQ(OrderOf({{2}, {2, 4}, {1, 3}, {1, 3}, {}}), "0 2 3 1 4"); }

TEST(BlockOrder, WhatFollowsALoopComesBehindIt) {
  EXPECT_EQ(OrderOf({{1}, {2, 3}, {4}, {4}, {1, 5}, {}}), "0 1 2 3 4 5");
  EXPECT_EQ(OrderOf({{1}, {2, 3}, {}, {1}}), "0 1 3 2");  // 2 is where the loop is left to.
}

TEST(BlockOrder, BranchesMeetBehindBoth) { EXPECT_EQ(OrderOf({{1, 3}, {}, {1}, {2}}), "0 3 2 1"); }

TEST(BlockOrder, LoopsThatBeginAnewFromSeveralBlocksHaveALatch) {
  const BlockOrder order = OrderBlocks(Graph({{1}, {2, 3}, {1}, {1, 4}, {}}));
  EXPECT_EQ(Text(order), "0 1 2 3 <1 4");
  ASSERT_EQ(order.latches.size(), 2u);
  EXPECT_EQ(order.latches.at({2, 1}), 4u);
  EXPECT_EQ(order.latches.at({3, 1}), 4u);
}

TEST(BlockOrder, TheEntryStaysFirstAndTheUnreachedCome) {
  EXPECT_EQ(OrderOf({{2}, {0}, {0, 3}, {}}), "0 2 3 1");  // 1 leads to the entry, and nothing to it.
}

TEST(BlockOrder, LoopsWithTwoEntriesHaveSomeOrder) { EXPECT_EQ(OrderOf({{1, 2}, {2}, {1, 3}, {}}), "0 1 2 3"); }

TEST(BlockOrder, NestingWithoutEndIsCutOff) {
  // Block b leads to b + 1 and back to each before it: loops in loops.
  constexpr uint32_t kBlocks = 3 * kDeepestOrderedLoop;
  std::vector<std::vector<uint32_t>> successors(kBlocks);
  for (uint32_t b = 0; b + 1 < kBlocks; ++b) {
    successors[b].push_back(b + 1);
    successors[kBlocks - 1 - b / 2].push_back(b);
  }
  for (auto& each : successors) {
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  const BlockOrder order = OrderBlocks(Graph(successors));
  std::vector<bool> seen(kBlocks, false);
  for (const auto& place : order.places) {
    if (place.latch) continue;
    EXPECT_FALSE(seen[place.block]);
    seen[place.block] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kBlocks);
}

/// Whether `to` can be reached from `from`, by one step or more.
std::vector<std::vector<bool>> Ways(const std::vector<BasicBlock>& blocks) {
  std::vector<std::vector<bool>> ways(blocks.size(), std::vector<bool>(blocks.size(), false));
  for (size_t from = 0; from < blocks.size(); ++from) {
    std::vector<uint32_t> open = blocks[from].successors;
    while (!open.empty()) {
      const uint32_t block = open.back();
      open.pop_back();
      if (ways[from][block]) continue;
      ways[from][block] = true;
      open.insert(open.end(), blocks[block].successors.begin(), blocks[block].successors.end());
    }
  }
  return ways;
}

// Of all graphs: what leads to a block without a way back comes before it, and loops come in one piece.
TEST(BlockOrder, HoldsItsRulesForRandomGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto count = static_cast<uint32_t>(2 + random() % 12);
    std::vector<std::vector<uint32_t>> successors(count);
    for (auto& each : successors) {
      for (uint32_t n = random() % 3; n-- > 0;) each.push_back(random() % count);
      std::sort(each.begin(), each.end());
      each.erase(std::unique(each.begin(), each.end()), each.end());
    }
    const std::vector<BasicBlock> blocks = Graph(successors);
    const auto ways = Ways(blocks);
    const BlockOrder order = OrderBlocks(blocks);
    std::vector<uint32_t> place(count, kNone);
    std::vector<uint32_t> sequence;
    for (const auto& each : order.places) {
      if (each.latch) continue;
      ASSERT_EQ(place[each.block], kNone);
      place[each.block] = static_cast<uint32_t>(sequence.size());
      sequence.push_back(each.block);
    }
    ASSERT_EQ(sequence.size(), count);
    ASSERT_EQ(sequence.front(), 0u);
    for (uint32_t a = 0; a < count; ++a) {
      if (a != 0 && !ways[0][a]) continue;
      for (uint32_t b = 0; b < count; ++b) {
        if (ways[a][b] && !ways[b][a]) {
          EXPECT_LT(place[a], place[b]) << a << " " << b;
        }
        if (a == b || !ways[a][b] || !ways[b][a]) continue;
        for (uint32_t between = std::min(place[a], place[b]); between < std::max(place[a], place[b]); ++between) {
          EXPECT_TRUE(ways[sequence[between]][a] && ways[a][sequence[between]]) << a << " " << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hawser::ptx
