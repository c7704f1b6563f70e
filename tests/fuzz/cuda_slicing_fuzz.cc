// SPDX-License-Identifier: Apache-2.0
// PTX of guests: whatever it is, the scan ends; a kernel that may be split is rewritten, and what comes out is PTX with
// that kernel, two parameters longer.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/scan.h"

using hawser::ptx::Function;
using hawser::ptx::Module;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::ptx::ParseOptions options;
  options.max_text = 1u << 20;
  auto module = hawser::ptx::Parse({reinterpret_cast<const char*>(data), size}, options);
  if (!module.ok()) return 0;
  for (const Function& kernel : (*module)->functions) {
    if (!hawser::server::cuda_slicing::WhyWhole(**module, kernel.name).empty()) continue;
    auto text = hawser::server::cuda_slicing::GuardKernel(**module, kernel.name);
    if (!text.ok()) continue;  // It has names of ours, or there are two of it.
    auto guarded = hawser::ptx::Parse(*text);
    if (!guarded.ok()) std::abort();
    bool found = false;
    for (const Function& each : (*guarded)->functions) {
      if (!each.entry) continue;
      if (found || each.name != kernel.name || each.parameter_count != kernel.parameter_count + 2) std::abort();
      found = true;
    }
    if (!found) std::abort();
  }
  return 0;
}
