// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/catalogue.h"

namespace hawser::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::Transport;

TEST(ParseTransports, TakesEachOnceInOrder) {
  auto transports = ParseTransports({"tcp", "shm", "tcp"});
  ASSERT_TRUE(transports.ok());
  EXPECT_THAT(*transports, ElementsAre(Transport::kTcp, Transport::kShm));
}

TEST(ParseTransports, NamesTheBadOne) {
  EXPECT_THAT(ParseTransports({"shm", "pigeon"}).status().text(), HasSubstr("'pigeon'"));
}

TEST(Catalogue, HasEachRowOnce) {
  std::vector<std::string> ids;
  for (const auto& measurement : bench::Catalogue(true)) {
    for (const auto& [key, row] : measurement.rows) ids.push_back(row.id);
  }
  auto sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_THAT(ids, ::testing::Contains("h2d_pageable_256MiB"));
  EXPECT_THAT(ids, ::testing::Contains("d2h_mapped_4KiB"));
}

TEST(Catalogue, ChoosesByPrefix) {
  EXPECT_TRUE(bench::IsChosen({}, "anything"));
  EXPECT_TRUE(bench::IsChosen({"h2d", "launch"}, "launch_finish_p50"));
  EXPECT_FALSE(bench::IsChosen({"h2d"}, "d2h_mapped_4KiB"));
}

}  // namespace
}  // namespace hawser::tools
