// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/experiments/options.h"
#include "bench/experiments/runner.h"
#include "bench/experiments/work.h"

namespace experiments {
namespace {

std::string ParseWords(std::vector<std::string> words, Options* options) {
  std::vector<char*> arguments;
  words.insert(words.begin(), "program");
  for (std::string& word : words) arguments.push_back(word.data());
  return Parse(static_cast<int>(arguments.size()), arguments.data(), options);
}

TEST(ExperimentPercentile, IsTheNearestRank) {
  EXPECT_EQ(Percentile({}, 0.5), 0);
  EXPECT_EQ(Percentile({50, 15, 40, 20, 35}, 0.3), 20);
  EXPECT_EQ(Percentile({50, 15, 40, 20, 35}, 0.5), 35);
  EXPECT_EQ(Percentile({50, 15, 40, 20, 35}, 1), 50);
  std::vector<int64_t> hundred;
  for (int64_t i = 1; i <= 100; ++i) hundred.push_back(i);
  EXPECT_EQ(Percentile(hundred, 0.99), 99);
  EXPECT_EQ(Percentile(hundred, 0.999), 100);
}

TEST(ExperimentOptions, ReadWhatIsGiven) {
  Options options;
  ASSERT_EQ(ParseWords({"--work", "sobel", "--size", "64", "--seconds", "1.5", "--depth", "4"}, &options), "");
  EXPECT_EQ(options.work, "sobel");
  EXPECT_EQ(options.size, 64);
  EXPECT_EQ(options.seconds, 1.5);
  EXPECT_EQ(options.depth, 4);
}

TEST(ExperimentOptions, NameWhatIsWrong) {
  const std::vector<std::vector<std::string>> wrong = {{"--size", "0", "--repeat", "1"},
                                                       {"--size", "8x", "--repeat", "1"},
                                                       {"--size", "nan", "--repeat", "1"},
                                                       {"--repeat"},
                                                       {"--repeats", "1"},
                                                       {"--size", "8"},
                                                       {"--columns", "9", "--repeat", "1"},
                                                       {"--seconds", "1", "--until", "file"}};
  for (const auto& words : wrong) {
    Options options;
    EXPECT_NE(ParseWords(words, &options), "") << words.front();
  }
}

TEST(ExperimentWork, CoversAllResultsWithWholeGroups) {
  for (const char* name : {"matmul", "sobel", "binomial", "madd"}) {
    Work work;
    ASSERT_TRUE(MakeWork(name, 33, 2, &work)) << name;
    size_t items = 1;
    for (unsigned d = 0; d < work.dimensions; ++d) {
      EXPECT_EQ(work.items[d] % work.group[d], 0u) << name;
      items *= work.items[d];
    }
    EXPECT_GE(items, work.results) << name;
    EXPECT_EQ(work.a.size(), work.results) << name;
  }
  Work work;
  EXPECT_FALSE(MakeWork("nothing", 33, 2, &work));
}

TEST(ExperimentWork, HasGroupsAsWideAsIsSaid) {
  Work rows, tiles;
  ASSERT_TRUE(MakeWork("matmul", 36, 1, &rows));
  EXPECT_EQ(rows.group[0], 64u);
  EXPECT_EQ(rows.items[1], 36u) << "a group is a row";
  ASSERT_TRUE(MakeWork("matmul", 36, 1, &tiles, 8));
  EXPECT_EQ(tiles.group[0] * tiles.group[1], 64u);
  EXPECT_EQ(tiles.items[0], 40u);
  EXPECT_EQ(tiles.items[1], 40u);
  Options options;
  EXPECT_EQ(ParseWords({"--work", "matmul", "--repeat", "1", "--columns", "8"}, &options), "");
  EXPECT_EQ(options.columns, 8);
}

TEST(ExperimentWork, SeesAWrongResult) {
  Work work;
  ASSERT_TRUE(MakeWork("madd", 4, 3, &work));
  std::vector<float> out;
  for (size_t i = 0; i < work.results; ++i) out.push_back(work.a[i] + work.b[i] + work.b[i] + work.b[i]);
  EXPECT_LT(work.WorstError(out), 1e-6);
  const uint64_t right = Checksum(out);
  out[5] += 0.5F;
  EXPECT_GT(work.WorstError(out), 0.1);
  EXPECT_NE(Checksum(out), right);
  out.pop_back();
  EXPECT_GT(work.WorstError(out), 1);
}

TEST(ExperimentWork, KnowsProductAndFilter) {
  Work work;
  ASSERT_TRUE(MakeWork("matmul", 2, 1, &work));
  work.a = {1, 2, 3, 4};
  work.b = {5, 6, 7, 8};
  EXPECT_EQ(work.Expected(0), 19);
  EXPECT_EQ(work.Expected(3), 50);
  ASSERT_TRUE(MakeWork("sobel", 3, 1, &work));
  work.a = {0, 0, 1, 0, 0, 1, 0, 0, 1};  // An edge between the second and the third column.
  EXPECT_EQ(work.Expected(4), 4);
  EXPECT_EQ(work.Expected(3), 0);
  ASSERT_TRUE(MakeWork("matmul", 2, 3, &work));
  work.a = {1, 2, 3, 4};
  work.b = {5, 6, 7, 8};
  EXPECT_EQ(work.Expected(0), 57);
  ASSERT_TRUE(MakeWork("sobel", 3, 2, &work));
  work.a = {0, 0, 1, 0, 0, 1, 0, 0, 1};
  EXPECT_EQ(work.Expected(4), 8);  // At a distance of two it looks at the same columns, because there are no others.
}

TEST(ExperimentWork, KnowsOptions) {
  Work work;
  ASSERT_TRUE(MakeWork("binomial", 2, 1, &work));
  work.a = {100, 100};
  work.b = {0.0F, 1000};
  // Nothing to pay for: the price itself, grown and discounted. So dear that nobody takes it: nothing.
  double price = 100;
  for (int step = 0; step < kSteps; ++step) price *= 0.9995 * (0.5 * 1.02 + 0.5 / 1.02);
  EXPECT_NEAR(work.Expected(0), price, 1e-3);
  EXPECT_EQ(work.Expected(1), 0);
}

}  // namespace
}  // namespace experiments
