// SPDX-License-Identifier: Apache-2.0
// Intermediate language of guests: whatever it is, the scan and the rewriting end; what is rewritten can be read again,
// and nothing in it needs rewriting any more than it did.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "server/backends/opencl/slicing/il/il_carry.h"
#include "server/backends/opencl/slicing/il/il_module.h"
#include "server/backends/opencl/slicing/kernel_scan.h"

using hawser::server::slicing::IlModule;
using hawser::server::slicing::KernelTraits;
using hawser::server::slicing::ProgramTraits;
using hawser::server::slicing::WithIlCarry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto il = std::as_bytes(std::span(data, size));
  const ProgramTraits traits = ProgramTraits::ScanIl(il);
  const KernelTraits& kernel = traits.Of("k");
  if (kernel.may_split != kernel.reason.empty()) std::abort();
  if (kernel.may_split && kernel.needs_carry && !traits.may_carry()) std::abort();
  const auto carried = WithIlCarry(il);
  if (!carried.ok()) return 0;
  if (!IlModule::Parse(std::as_bytes(std::span(carried.value()))).ok()) std::abort();
  return 0;
}
