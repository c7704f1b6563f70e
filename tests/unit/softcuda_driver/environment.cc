// SPDX-License-Identifier: Apache-2.0
// What the tests' devices are like; set before anything of the driver is called.
#include <cstdlib>

namespace {

/// What a test wants of a process that it starts, or what all have.
const char* Wish(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

const int set = [] {
  ::setenv("HAWSER_SOFT_DEVICES", Wish("HAWSER_TEST_DEVICES", "2"), 1);
  ::setenv("HAWSER_SOFT_MEMORY", Wish("HAWSER_TEST_MEMORY", "256M"), 1);
  ::setenv("HAWSER_SOFT_THREADS", "2", 1);
  ::unsetenv("HAWSER_SOFT_CC");
  return 0;
}();

}  // namespace
