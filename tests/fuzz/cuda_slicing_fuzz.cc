// SPDX-License-Identifier: Apache-2.0
// PTX of guests: whatever it is, the scan ends; a kernel that may be split is rewritten, and what comes out is PTX with
// that kernel and a few parameters more.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/scan.h"

using hawser::ptx::Function;
using hawser::server::cuda_slicing::MayOffset;
using hawser::server::cuda_slicing::Rewrite;
using hawser::server::cuda_slicing::Way;
using hawser::server::cuda_slicing::WhyWhole;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::ptx::ParseOptions options;
  options.max_text = 1u << 20;
  auto module = hawser::ptx::Parse({reinterpret_cast<const char*>(data), size}, options);
  if (!module.ok()) return 0;
  for (const Function& kernel : (*module)->functions) {
    if (!WhyWhole(**module, kernel.name).empty()) continue;
    for (const Way way : {Way::kGuard, Way::kOffset, Way::kRow}) {
      if (way != Way::kGuard && !MayOffset(**module, kernel.name)) continue;
      auto copy = Rewrite(**module, kernel.name, way);
      if (!copy.ok()) continue;  // It has names of ours, or there are two of it.
      auto rewritten = hawser::ptx::Parse(copy->text);
      if (!rewritten.ok()) std::abort();
      bool found = false;
      for (const Function& each : (*rewritten)->functions) {
        if (!each.entry) continue;
        const uint32_t added = way == Way::kGuard ? 2 : 4;
        if (found || each.name != kernel.name || each.parameter_count != kernel.parameter_count + added) std::abort();
        found = true;
      }
      if (!found) std::abort();
    }
  }
  return 0;
}
