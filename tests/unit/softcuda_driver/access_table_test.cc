// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/access_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hawser::soft {
namespace {

TEST(AccessTable, IsEmptyAtFirst) {
  AccessTable table;
  EXPECT_FALSE(table.Find(0).has_value());
  EXPECT_FALSE(table.Nearest(5).has_value());
  table.Remove(5);
}

TEST(AccessTable, KnowsTheNearest) {
  AccessTable table;
  table.Insert({100, 110, true});
  table.Insert({200, 210, false});
  EXPECT_EQ(table.Nearest(105)->begin, 100U);
  EXPECT_EQ(table.Nearest(111)->begin, 100U);
  EXPECT_EQ(table.Nearest(199)->begin, 200U);
  EXPECT_EQ(table.Nearest(0)->begin, 100U);
  EXPECT_EQ(table.Nearest(1000)->begin, 200U);
  EXPECT_TRUE(table.Find(109)->writable);
  EXPECT_FALSE(table.Find(209)->writable);
  EXPECT_FALSE(table.Find(110).has_value());
}

TEST(AccessTable, AgreesWithAMapOverManyChanges) {
  AccessTable table;
  std::map<uint64_t, uint64_t> model;  // begin -> end
  std::mt19937 random(7);              // NOLINT: the same sequence each time.
  constexpr uint64_t kSlots = 5000;
  constexpr uint64_t kSlot = 64;
  for (int i = 0; i < 30000; ++i) {
    const uint64_t begin = random() % kSlots * kSlot + kSlot;
    if (model.contains(begin)) {
      model.erase(begin);
      table.Remove(begin);
    } else {
      const uint64_t end = begin + 1 + random() % kSlot;
      model[begin] = end;
      table.Insert({begin, end, true});
    }
    const uint64_t asked = random() % ((kSlots + 2) * kSlot);
    const auto after = model.upper_bound(asked);
    const bool live = after != model.begin() && asked < std::prev(after)->second;
    const auto found = table.Find(asked);
    ASSERT_EQ(found.has_value(), live) << asked;
    if (live) {
      ASSERT_EQ(found->begin, std::prev(after)->first);
    }
  }
}

}  // namespace
}  // namespace hawser::soft
