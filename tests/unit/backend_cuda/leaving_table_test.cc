// SPDX-License-Identifier: Apache-2.0
// Objects that end later than their names' places are used anew.
#include "server/backends/cuda/leaving_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace hawser::server::cuda_backend {
namespace {

using Table = LeavingTable<std::shared_ptr<int>>;
const wire::Id kOld(3, 1, 7), kNew(3, 2, 7), kOther(3, 1, 8);

TEST(CudaLeavingTable, AnObjectThatLeavesIsFoundBesideTheOneInItsPlace) {
  Table table(3, 16);
  auto old = std::make_shared<int>(1);
  ASSERT_EQ(table.Insert(kOld, old), wire::Lookup::kOk);
  EXPECT_EQ(table.Insert(kNew, std::make_shared<int>(2)), wire::Lookup::kStale);
  table.Leave(kOld);
  ASSERT_EQ(table.Insert(kNew, std::make_shared<int>(2)), wire::Lookup::kOk);
  wire::Lookup why = wire::Lookup::kEmpty;
  ASSERT_NE(table.Find(kOld, &why), nullptr);
  EXPECT_EQ(why, wire::Lookup::kOk);
  EXPECT_EQ(**table.Find(kOld), 1);
  EXPECT_EQ(**table.Find(kNew), 2);
  std::set<int> seen;
  table.ForEach([&](wire::Id id, std::shared_ptr<int>& object) {
    EXPECT_TRUE(id == kOld || id == kNew);
    seen.insert(*object);
  });
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
  EXPECT_TRUE(table.Erase(kOld));
  EXPECT_EQ(old.use_count(), 1);
  EXPECT_FALSE(table.Erase(kOld));
  EXPECT_EQ(table.Find(kOld, &why), nullptr);
  EXPECT_EQ(why, wire::Lookup::kStale);
  EXPECT_EQ(**table.Find(kNew), 2);
}

TEST(CudaLeavingTable, WhatNamesNothingDoesNotLeave) {
  Table table(3, 16);
  table.Leave(kOther);
  table.Leave({});
  EXPECT_EQ(table.Find(kOther), nullptr);
  EXPECT_FALSE(table.Erase(kOther));
}

TEST(CudaLeavingTable, AVisitorMayErase) {
  Table table(3, 16);
  for (const wire::Id id : {kOld, kOther}) {
    ASSERT_EQ(table.Insert(id, std::make_shared<int>(0)), wire::Lookup::kOk);
    table.Leave(id);
  }
  table.ForEach([&](wire::Id id, std::shared_ptr<int>&) { EXPECT_TRUE(table.Erase(id)); });
  EXPECT_EQ(table.Find(kOld), nullptr);
  EXPECT_EQ(table.Find(kOther), nullptr);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
