// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/processor_set.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace hawser::soft {
namespace {

cpu_set_t Mine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

int First(const cpu_set_t& set) {
  int first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  return first;
}

TEST(ProcessorSet, ReadsNumbersAndRanges) {
  EXPECT_EQ(ProcessorSet::Parse("0")->count(), 1U);
  EXPECT_EQ(ProcessorSet::Parse("2-5,8")->count(), 5U);
  EXPECT_EQ(ProcessorSet::Parse("3,3,1-3")->count(), 3U);
  EXPECT_EQ(ProcessorSet::Parse("7-7")->count(), 1U);
  EXPECT_EQ(ProcessorSet::Parse("0-" + std::to_string(CPU_SETSIZE - 1))->count(), static_cast<unsigned>(CPU_SETSIZE));
  EXPECT_EQ(ProcessorSet().count(), 0U);
}

TEST(ProcessorSet, RefusesWhatIsNone) {
  for (const char* text :
       {"", ",", "a", "1,", ",1", "1-", "-1", "5-2", "1 2", "1-2-3", "0x1", "99999999999", "1;2", "+1"}) {
    EXPECT_FALSE(ProcessorSet::Parse(text).has_value()) << text;
  }
  EXPECT_FALSE(ProcessorSet::Parse(std::to_string(CPU_SETSIZE)).has_value());
  EXPECT_FALSE(ProcessorSet::Parse("0-" + std::to_string(CPU_SETSIZE)).has_value());
}

TEST(ProcessorSet, TheThreadAndThoseItStartsRunThere) {
  const cpu_set_t before = Mine();
  const int first = First(before);
  const ProcessorSet set = *ProcessorSet::Parse(std::to_string(first));
  EXPECT_TRUE(set.Usable());
  const cpu_set_t asked = Mine();
  EXPECT_TRUE(CPU_EQUAL(&before, &asked));  // Only asked.
  std::thread([&] {
    EXPECT_TRUE(set.Take());
    std::thread([&] {
      const cpu_set_t inherited = Mine();
      EXPECT_EQ(CPU_COUNT(&inherited), 1);
      EXPECT_TRUE(CPU_ISSET(first, &inherited));
    }).join();
  }).join();
  const cpu_set_t after = Mine();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ProcessorSet, OneThatIsNotThereChangesNothing) {
  const cpu_set_t before = Mine();
  const ProcessorSet set = *ProcessorSet::Parse(std::to_string(CPU_SETSIZE - 1));
  EXPECT_FALSE(set.Usable());
  EXPECT_FALSE(set.Take());
  const cpu_set_t after = Mine();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ProcessorSet, AllIsNoRestriction) {
  const cpu_set_t before = Mine();
  EXPECT_TRUE(ProcessorSet().Take());
  EXPECT_TRUE(ProcessorSet().Usable());
  const cpu_set_t after = Mine();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ProcessorSet, WhoComputesOnProcessorsOfItsOwnPreemptsNobody) {
  const int first = First(Mine());
  std::thread([&] {
    ProcessorSet::Parse(std::to_string(first))->Join();
    const cpu_set_t mine = Mine();
    EXPECT_EQ(CPU_COUNT(&mine), 1);
    EXPECT_TRUE(CPU_ISSET(first, &mine));
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  }).join();
  std::thread([] {
    ProcessorSet().Join();  // Among others.
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

}  // namespace
}  // namespace hawser::soft
