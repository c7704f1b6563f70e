// SPDX-License-Identifier: Apache-2.0
// How far ahead of the device a stream may be.
#include "server/backends/cuda/ahead.h"

#include <gtest/gtest.h>

namespace hawser::server::cuda_backend {
namespace {

using Marks = Ahead<int>;

/// Gives commands until a mark is asked for; how many that were.
int GiveUntilMark(Marks* ahead) {
  int given = 1;
  while (!ahead->Count()) ++given;
  return given;
}

TEST(CudaAhead, IsFullWithSomeMarksThatWereNotPassed) {
  Marks ahead;
  int given = 0;
  for (int mark = 1; mark <= static_cast<int>(Marks::kMarks); ++mark) {
    EXPECT_FALSE(ahead.full());
    given += GiveUntilMark(&ahead);
    ahead.Look([](int) { return false; });
    ahead.Put(mark);
  }
  EXPECT_TRUE(ahead.full());
  // Twice as many commands of the driver must fit into its queue.
  EXPECT_LT(2 * given, 1024);
  // Something is left to do when it goes on.
  EXPECT_EQ(ahead.ResumeAt(), 2);
}

TEST(CudaAhead, PassedMarksAreForgotten) {
  Marks ahead;
  for (int mark = 1; mark < 100; ++mark) {
    (void)GiveUntilMark(&ahead);
    ahead.Look([&](int passed) { return passed < mark - 1; });
    ahead.Put(mark);
    EXPECT_FALSE(ahead.full());
  }
}

TEST(CudaAhead, CountsSeveralAtATime) {
  Marks ahead;
  EXPECT_FALSE(ahead.Count(Marks::kStep));
  EXPECT_TRUE(ahead.Count());
  ahead.Skip();
  EXPECT_FALSE(ahead.Count());
}

}  // namespace
}  // namespace hawser::server::cuda_backend
