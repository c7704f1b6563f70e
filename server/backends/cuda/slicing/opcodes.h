// SPDX-License-Identifier: Apache-2.0
// What an instruction does to memory and registers, as far as its opcode tells.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_OPCODES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_OPCODES_H_

#include <string_view>

#include "softcuda/ptx/module.h"

namespace hawser::server::cuda_slicing {

/// `modifier` (".red") is one of its modifiers.
bool Has(std::string_view op, std::string_view modifier);
/// Memory that no other block can reach.
bool IsPrivate(std::string_view op);
/// With a result that depends on other blocks. An atomic of the block's own scope orders nothing among blocks.
bool IsAtomic(std::string_view op);
/// A load that is made again each time because others may write, in other blocks too.
bool IsWatchfulLoad(std::string_view op);
bool IsFence(std::string_view op);
/// Of memory that others may write, but the compiler need not think of that.
bool IsPlainLoad(std::string_view op);
/// The first operand is no destination.
bool WritesNoRegister(const ptx::Instruction& instruction);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_OPCODES_H_
