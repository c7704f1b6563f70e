// SPDX-License-Identifier: Apache-2.0
// How often a program waits for the server, as its guest library counts.
#ifndef HAWSER_TESTS_INTEGRATION_GUEST_WAITS_H_
#define HAWSER_TESTS_INTEGRATION_GUEST_WAITS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/other_process.h"

namespace hawser {

/// For a disabled test in a process of its own: how many rounds to make.
inline int WantedRounds() {
  const char* text = std::getenv("HAWSER_TEST_ROUNDS");
  return text != nullptr ? std::atoi(text) : 1;
}

/// The waiting round trips of a whole process that runs this disabled test so many rounds. -1: it failed, or its guest
/// library wrote no count.
inline long WaitsOf(const std::string& test, int rounds, std::vector<std::pair<std::string, std::string>> environment) {
  const std::string file = testing::TempDir() + "hawser-waits-" + std::to_string(::getpid()) + ".json";
  environment.emplace_back("HAWSER_STATS", file);
  environment.emplace_back("HAWSER_TEST_ROUNDS", std::to_string(rounds));
  const bool passed = OtherProcess(test, environment).Wait();
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  ::unlink(file.c_str());
  const std::string name = "\"waits\":";
  const size_t found = text.find(name);
  if (!passed || found == std::string::npos) return -1;
  return std::strtol(text.c_str() + found + name.size(), nullptr, 10);
}

/// What `rounds` rounds cost once everything has been used, by an earlier process too: a longer run's waits without a
/// shorter one's. -1: see WaitsOf().
inline long WaitsOfRounds(const std::string& test, int rounds,
                          const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  constexpr int kFirst = 2;
  if (WaitsOf(test, kFirst, environment) < 0) return -1;  // From now on the server has the program's modules.
  const long first = WaitsOf(test, kFirst, environment);
  const long all = WaitsOf(test, kFirst + rounds, environment);
  return first < 0 || all < first ? -1 : all - first;
}

}  // namespace hawser

#endif  // HAWSER_TESTS_INTEGRATION_GUEST_WAITS_H_
