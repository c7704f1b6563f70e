// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/opcodes.h"

#include "softcuda/ptx/flow.h"

namespace hawser::server::cuda_slicing {

using ptx::Instruction;

bool Has(std::string_view op, std::string_view modifier) {
  for (size_t at = op.find(modifier); at != std::string_view::npos; at = op.find(modifier, at + 1)) {
    const size_t end = at + modifier.size();
    if (end == op.size() || op[end] == '.') return true;
  }
  return false;
}

bool IsPrivate(std::string_view op) {
  return op.find(".shared") != std::string_view::npos || Has(op, ".local") || Has(op, ".param") || Has(op, ".const");
}
bool IsAtomic(std::string_view op) { return op.starts_with("atom.") && !IsPrivate(op) && !Has(op, ".cta"); }
bool IsWatchfulLoad(std::string_view op) {
  if (!op.starts_with("ld.") || IsPrivate(op) || Has(op, ".cta")) return false;
  for (const std::string_view modifier : {".volatile", ".acquire", ".relaxed", ".mmio", ".cv", ".cg"}) {
    if (Has(op, modifier)) return true;
  }
  return false;
}
bool IsFence(std::string_view op) { return op.starts_with("membar") || op.starts_with("fence"); }
bool IsPlainLoad(std::string_view op) {
  return op.starts_with("ld.") && !IsPrivate(op) && !Has(op, ".nc") && !Has(op, ".cta");
}

bool WritesNoRegister(const Instruction& instruction) {
  const std::string_view opcode = ptx::Opcode(instruction);
  // A barrier may give every thread what all of them said: __syncthreads_or().
  if ((opcode == "bar" || opcode == "barrier") && Has(instruction.op, ".red")) return false;
  for (const std::string_view each :
       {"st",       "red",           "bra",     "brx",          "bar",  "barrier", "membar",    "fence",
        "prefetch", "prefetchu",     "ret",     "exit",         "trap", "brkpt",   "nanosleep", "cp",
        "discard",  "applypriority", "pmevent", "stackrestore", "sust", "sured",   "setmaxnreg"}) {
    if (opcode == each) return true;
  }
  return false;
}

}  // namespace hawser::server::cuda_slicing
