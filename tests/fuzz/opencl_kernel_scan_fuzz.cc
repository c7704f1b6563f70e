// SPDX-License-Identifier: Apache-2.0
// Texts of programs: the input's first line is the build options. Whatever it is, the scan ends, and says why when a
// kernel must run whole.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/backends/opencl/slicing/kernel_scan.h"

using hawser::server::slicing::KernelTraits;
using hawser::server::slicing::MayNeedCarry;
using hawser::server::slicing::ProgramTraits;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  const std::string_view options = input.substr(0, end);
  const std::string_view source = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  const ProgramTraits traits = ProgramTraits::Scan(source, options);
  for (const std::string_view name : {"waits", "adds", "k", "k_int", "nobody"}) {
    const KernelTraits& kernel = traits.Of(name);
    if (kernel.may_split != kernel.reason.empty()) std::abort();
    if (kernel.may_split && kernel.needs_carry && !traits.may_carry()) std::abort();
    // Options can name a built-in too; then the text need not.
    if (kernel.may_split && kernel.needs_carry && options.empty() && !MayNeedCarry(source)) std::abort();
  }
  return 0;
}
