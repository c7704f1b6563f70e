// SPDX-License-Identifier: Apache-2.0
// Opening isolated policies in a test.
#ifndef HAWSER_TESTS_UNIT_SCHEDULER_ISOLATED_H_
#define HAWSER_TESTS_UNIT_SCHEDULER_ISOLATED_H_

#include <string>

#include "scheduler/isolated/isolation.h"
#include "tests/unit/scheduler/simulate.h"

namespace hawser::scheduler {

/// Patient, because what is slow here is the machine.
inline IsolationOptions Patient() {
  IsolationOptions options;
  options.program = HAWSER_POLICY_HOST;
  options.callback_deadline = std::chrono::seconds(60);
  options.load_deadline = std::chrono::seconds(60);
  return options;
}

/// What a callback costs on this machine at this moment is not what these tests are about.
inline SimOptions Unmeasured() {
  SimOptions options;
  options.host.callback_cpu_ns = 0;
  options.host.callback_wall_ns = 0;
  return options;
}

inline std::string BadPlugin(const std::string& bad) { return HAWSER_BAD_POLICY_DIRECTORY "/bad_" + bad + ".so"; }

}  // namespace hawser::scheduler

#endif  // HAWSER_TESTS_UNIT_SCHEDULER_ISOLATED_H_
