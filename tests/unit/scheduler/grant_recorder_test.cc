// SPDX-License-Identifier: Apache-2.0
#include "scheduler/grant/grant_recorder.h"

#include <gtest/gtest.h>

namespace hawser::scheduler {
namespace {

TEST(GrantRecorder, KeepsNothingUnlessAsked) {
  GrantRecorder recorder;
  recorder.Given(1, false, 100);
  recorder.Ended(1, 200);
  EXPECT_TRUE(recorder.Take().records.empty());
  recorder.Record(true);
  EXPECT_TRUE(recorder.Take().records.empty());
}

TEST(GrantRecorder, TellsWhatEndedAndWhatGoesOn) {
  GrantRecorder recorder;
  recorder.Given(1, true, 50);
  recorder.Record(true);
  GrantRecords taken = recorder.Take();
  ASSERT_EQ(taken.records.size(), 1u);
  EXPECT_EQ(taken.records[0].begin_ns, 50u);
  EXPECT_EQ(taken.records[0].end_ns, 0u);
  EXPECT_TRUE(taken.records[0].open);
  EXPECT_TRUE(recorder.Take().records.empty());
  recorder.Ended(1, 300);
  recorder.Ended(1, 400);  // Has none.
  recorder.Given(2, false, 310);
  recorder.Gone(2, 320);
  recorder.Given(1, false, 330);
  taken = recorder.Take();
  ASSERT_EQ(taken.records.size(), 3u);
  EXPECT_EQ(taken.records[0].end_ns, 300u);
  EXPECT_EQ(taken.records[1].door, 2u);
  EXPECT_EQ(taken.records[1].end_ns, 320u);
  EXPECT_EQ(taken.records[2].begin_ns, 330u);
  EXPECT_EQ(taken.records[2].end_ns, 0u);
  recorder.Record(false);
  recorder.Ended(1, 350);
  EXPECT_TRUE(recorder.Take().records.empty());
}

TEST(GrantRecorder, CountsWhatItCannotKeep) {
  GrantRecorder recorder;
  recorder.Record(true);
  for (uint64_t i = 1; i <= GrantRecorder::kMost + 3; ++i) {
    recorder.Given(1, false, i);
    recorder.Ended(1, i + 1);
  }
  const GrantRecords taken = recorder.Take();
  EXPECT_EQ(taken.records.size(), GrantRecorder::kMost);
  EXPECT_EQ(taken.lost, 3u);
  EXPECT_EQ(recorder.Take().lost, 0u);
}

}  // namespace
}  // namespace hawser::scheduler
