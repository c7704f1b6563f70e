// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of a function.
#ifndef HAWSER_SOFTCUDA_PTX_FLOW_H_
#define HAWSER_SOFTCUDA_PTX_FLOW_H_

#include <cstdint>
#include <vector>

#include "softcuda/ptx/module.h"

namespace hawser::ptx {

/// Instructions [first, end) that run one after the other. A call is inside a block: it comes back.
struct BasicBlock {
  uint32_t first = 0;
  uint32_t end = 0;
  std::vector<uint32_t> successors;  ///< Block numbers, without doubles.
};

/// Blocks in the order of the text; the first is the entry. Falling off the end is a return.
std::vector<BasicBlock> FlowOf(const Function& function);

/// Whether control may go on behind the instruction.
bool GoesOn(const Instruction& instruction);

/// Opcode without modifiers: "ld.global.u32" -> "ld".
std::string_view Opcode(const Instruction& instruction);

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_FLOW_H_
