// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/allocation.h"

namespace hawser::exec {

RegisterLayout LayOutRegisters(const ptx::Function& function) {
  RegisterLayout layout;
  layout.offset.resize(function.registers.size());
  uint32_t bytes = 0;
  for (const bool predicates : {true, false}) {
    for (size_t i = 0; i < function.registers.size(); ++i) {
      const ptx::Type type = function.registers[i].type;
      if ((type == ptx::Type::kPred) != predicates) continue;
      layout.offset[i] = bytes;
      bytes += predicates ? 4 : (ptx::SizeOf(type) * 32 + 63) / 64 * 64;
    }
    bytes = (bytes + 63) / 64 * 64;
  }
  layout.bytes = bytes;
  return layout;
}

}  // namespace hawser::exec
