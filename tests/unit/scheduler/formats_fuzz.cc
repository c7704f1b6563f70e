// SPDX-License-Identifier: Apache-2.0
// Scenarios and kernel histories are files that anybody may have written.
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/core/kernel_history.h"
#include "scheduler/sim/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hawser::scheduler::ParseScenario(text, "fuzz");
  hawser::scheduler::KernelHistory history(64);
  if (history.Load(text).ok()) {
    hawser::scheduler::KernelHistory again(64);
    if (!again.Load(history.Save()).ok()) __builtin_trap();
  }
  return 0;
}
