// SPDX-License-Identifier: Apache-2.0
// What the tests' devices are like; set before anything of the driver is called.
#include <cstdlib>

namespace {

const int set = [] {
  ::setenv("HAWSER_SOFT_DEVICES", "2", 1);
  ::setenv("HAWSER_SOFT_MEMORY", "256M", 1);
  ::setenv("HAWSER_SOFT_THREADS", "2", 1);
  ::unsetenv("HAWSER_SOFT_CC");
  return 0;
}();

}  // namespace
