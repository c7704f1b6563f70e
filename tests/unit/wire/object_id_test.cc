// SPDX-License-Identifier: Apache-2.0
// The guest's allocator and the server's table, alone and against each other.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "wire/id.h"
#include "wire/id_allocator.h"
#include "wire/object_table.h"

namespace hawser::wire {
namespace {

constexpr uint8_t kType = 3;

TEST(Id, PacksItsParts) {
  const Id id(0xab, 0x123456, 0xdeadbeef);
  EXPECT_EQ(id.raw(), 0xab123456deadbeefu);
  EXPECT_EQ(id.type(), 0xab);
  EXPECT_EQ(id.generation(), 0x123456u);
  EXPECT_EQ(id.index(), 0xdeadbeefu);
  EXPECT_FALSE(Id());
  EXPECT_TRUE(id);
  EXPECT_EQ(Id(id.raw()), id);
}

TEST(IdAllocator, NeverGivesTheSameIdTwice) {
  IdAllocator ids(kType);
  std::set<uint64_t> seen;
  std::vector<Id> held;
  for (int round = 0; round < 2000; ++round) {
    const Id id = ids.Allocate();
    ASSERT_TRUE(id);
    ASSERT_EQ(id.type(), kType);
    ASSERT_TRUE(seen.insert(id.raw()).second);
    held.push_back(id);
    if (round % 3 == 2) {
      ids.Free(held[held.size() / 2]);
      held.erase(held.begin() + static_cast<ptrdiff_t>(held.size() / 2));
    }
  }
  EXPECT_EQ(ids.live(), held.size());
}

TEST(IdAllocator, ReusesTheLastFreedIndexWithANewGeneration) {
  IdAllocator ids(kType);
  const Id a = ids.Allocate();
  const Id b = ids.Allocate();
  EXPECT_EQ(a.generation(), 1u);
  ids.Free(a);
  ids.Free(b);
  const Id c = ids.Allocate();
  EXPECT_EQ(c.index(), b.index());
  EXPECT_EQ(c.generation(), 2u);
  EXPECT_EQ(ids.Allocate().index(), a.index());
  EXPECT_EQ(ids.Allocate().index(), 2u);
}

TEST(IdAllocator, IgnoresIdsThatAreNotAllocated) {
  IdAllocator ids(kType);
  const Id id = ids.Allocate();
  ids.Free(Id());
  ids.Free(Id(kType + 1, 1, 0));
  ids.Free(Id(kType, 1, 77));
  ids.Free(Id(kType, 2, 0));
  EXPECT_EQ(ids.live(), 1u);
  ids.Free(id);
  ids.Free(id);
  EXPECT_EQ(ids.live(), 0u);
  EXPECT_NE(ids.Allocate().index(), ids.Allocate().index()) << "a double free must not hand out one index twice";
}

TEST(IdAllocator, RetiresAnIndexWhoseGenerationsAreUsedUp) {
  IdAllocator ids(kType);
  for (uint32_t generation = 1; generation <= 0xffffff; ++generation) {
    const Id id = ids.Allocate();
    ASSERT_EQ(id.index(), 0u);
    ASSERT_EQ(id.generation(), generation);
    ids.Free(id);
  }
  const Id next = ids.Allocate();
  EXPECT_EQ(next.index(), 1u);
  EXPECT_EQ(next.generation(), 1u);
}

TEST(ObjectTable, FindsWhatWasInsertedAndSaysWhyNot) {
  ObjectTable<std::string> table(kType, 1000);
  const Id id(kType, 5, 300);
  EXPECT_EQ(table.Insert(id, "object"), Lookup::kOk);
  ASSERT_NE(table.Find(id), nullptr);
  EXPECT_EQ(*table.Find(id), "object");
  EXPECT_EQ(table.size(), 1u);

  const struct {
    Id id;
    Lookup why;
  } cases[] = {
      {Id(), Lookup::kNull},
      {Id(kType + 1, 5, 300), Lookup::kWrongType},
      {Id(kType, 5, 1000), Lookup::kOutOfRange},
      {Id(kType, 5, UINT32_MAX), Lookup::kOutOfRange},
      {Id(kType, 4, 300), Lookup::kStale},
      {Id(kType, 6, 300), Lookup::kStale},
      {Id(kType, 5, 301), Lookup::kEmpty},
      {Id(kType, 5, 999), Lookup::kEmpty},
  };
  for (const auto& c : cases) {
    Lookup why = Lookup::kOk;
    EXPECT_EQ(table.Find(c.id, &why), nullptr);
    EXPECT_EQ(why, c.why) << std::hex << c.id.raw();
    EXPECT_FALSE(table.Erase(c.id));
    EXPECT_FALSE(LookupText(c.why).empty());
  }
  EXPECT_EQ(table.size(), 1u);
}

TEST(ObjectTable, InsertRefusesWhatIsNotNewer) {
  ObjectTable<int> table(kType, 10);
  EXPECT_EQ(table.Insert(Id(), 0), Lookup::kNull);
  EXPECT_EQ(table.Insert(Id(kType + 1, 1, 0), 0), Lookup::kWrongType);
  EXPECT_EQ(table.Insert(Id(kType, 1, 10), 0), Lookup::kOutOfRange);
  EXPECT_EQ(table.Insert(Id(kType, 0, 1), 0), Lookup::kStale) << "generations count from 1";
  ASSERT_EQ(table.Insert(Id(kType, 3, 1), 42), Lookup::kOk);
  EXPECT_EQ(table.Insert(Id(kType, 3, 1), 0), Lookup::kStale);
  EXPECT_EQ(table.Insert(Id(kType, 4, 1), 0), Lookup::kStale) << "the slot is in use";
  EXPECT_EQ(*table.Find(Id(kType, 3, 1)), 42);
  ASSERT_TRUE(table.Erase(Id(kType, 3, 1)));
  EXPECT_EQ(table.Insert(Id(kType, 3, 1), 0), Lookup::kStale);
  EXPECT_EQ(table.Insert(Id(kType, 2, 1), 0), Lookup::kStale);
  Lookup why = Lookup::kOk;
  EXPECT_EQ(table.Find(Id(kType, 3, 1), &why), nullptr);
  EXPECT_EQ(why, Lookup::kStale);
  EXPECT_EQ(table.Insert(Id(kType, 4, 1), 43), Lookup::kOk);
  EXPECT_EQ(table.size(), 1u);
}

TEST(ObjectTable, ObjectsStayWhereTheyAreAndDieWhenErased) {
  ObjectTable<std::unique_ptr<int>> table(kType);
  ASSERT_EQ(table.Insert(Id(kType, 1, 0), std::make_unique<int>(1)), Lookup::kOk);
  std::unique_ptr<int>* first = table.Find(Id(kType, 1, 0));
  for (uint32_t i = 1; i < 5000; ++i) ASSERT_EQ(table.Insert(Id(kType, 1, i), nullptr), Lookup::kOk);
  EXPECT_EQ(table.Find(Id(kType, 1, 0)), first);

  auto refused = std::make_unique<int>(2);
  EXPECT_EQ(table.InsertFrom(Id(kType, 1, 0), &refused), Lookup::kStale);
  ASSERT_NE(refused, nullptr) << "what is refused stays with its owner";

  auto shared = std::make_shared<int>(7);
  ObjectTable<std::shared_ptr<int>> holders(kType);
  ASSERT_EQ(holders.Insert(Id(kType, 1, 0), shared), Lookup::kOk);
  EXPECT_EQ(shared.use_count(), 2);
  EXPECT_TRUE(holders.Erase(Id(kType, 1, 0)));
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(ObjectTable, VisitsEachObjectOnceByIndex) {
  ObjectTable<int> table(kType);
  for (const uint32_t index : {700u, 3u, 256u, 255u}) {
    ASSERT_EQ(table.Insert(Id(kType, index + 1, index), static_cast<int>(index)), Lookup::kOk);
  }
  std::vector<uint32_t> seen;
  table.ForEach([&](Id id, int& object) {
    EXPECT_EQ(id.generation(), id.index() + 1);
    EXPECT_EQ(static_cast<uint32_t>(object), id.index());
    seen.push_back(id.index());
    if (id.index() == 255) {
      EXPECT_TRUE(table.Erase(id));
    }
  });
  EXPECT_EQ(seen, (std::vector<uint32_t>{3, 255, 256, 700}));
  EXPECT_EQ(table.size(), 3u);
}

TEST(ObjectTable, FollowsAnAllocatorThroughReuse) {
  IdAllocator ids(kType);
  ObjectTable<uint64_t> table(kType);
  std::vector<Id> held;
  uint32_t random = 1;
  for (int round = 0; round < 20'000; ++round) {
    random = random * 1664525 + 1013904223;
    if (held.empty() || (random >> 16) % 5 < 3) {
      const Id id = ids.Allocate();
      ASSERT_EQ(table.Insert(id, id.raw()), Lookup::kOk);
      held.push_back(id);
    } else {
      const size_t at = (random >> 16) % held.size();
      const Id id = held[at];
      held[at] = held.back();
      held.pop_back();
      ASSERT_EQ(*table.Find(id), id.raw());
      ASSERT_TRUE(table.Erase(id));
      ids.Free(id);
      ASSERT_EQ(table.Find(id), nullptr);
    }
  }
  EXPECT_EQ(table.size(), held.size());
}

}  // namespace
}  // namespace hawser::wire
