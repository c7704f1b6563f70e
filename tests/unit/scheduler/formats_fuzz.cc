// SPDX-License-Identifier: Apache-2.0
// Scenarios are files that anybody may have written.
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/sim/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hawser::scheduler::ParseScenario(text, "fuzz");
  return 0;
}
