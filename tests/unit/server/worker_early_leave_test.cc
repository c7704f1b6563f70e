// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/worker/early_leave.h"

namespace hawser::server {
namespace {

TEST(EarlyLeave, TakesWhatHandingOverTakesOfALongPiece) {
  EXPECT_EQ(EarlyRestNs(250'000, 1'000'000), 250'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 1'000'000'000), 250'000u);
}

TEST(EarlyLeave, TakesAQuarterOfAShorterOne) {
  EXPECT_EQ(EarlyRestNs(250'000, 800'000), 200'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 500'000), 125'000u);
}

TEST(EarlyLeave, TakesHalfOfAHandoverOfAShortOne) {
  EXPECT_EQ(EarlyRestNs(250'000, 400'000), 125'000u);
  EXPECT_EQ(EarlyRestNs(250'000, 0), 125'000u);
}

TEST(EarlyLeave, NeverWhereHandingOverTakesNothing) {
  EXPECT_EQ(EarlyRestNs(0, 1'000'000), 0u);
  EXPECT_EQ(EarlyRestNs(0, 0), 0u);
}

}  // namespace
}  // namespace hawser::server
