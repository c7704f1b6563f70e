// SPDX-License-Identifier: Apache-2.0
// The prelude of carry.h for programs in intermediate language: each load of a built-in that would show that a launch
// is only a part becomes a call of a function that computes it from the word in the third dimension's offset.
//
// As with text, no kernel's signature changes and the same module serves whole launches, so nothing that a guest can
// ask about its kernels differs. Types and variables that the module has already are used again, because SPIR-V allows
// no type to be declared twice.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_CARRY_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_CARRY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/backends/opencl/slicing/il/il_module.h"
#include "wire/status.h"

namespace hawser::server::slicing {

/// The module, rewritten. Fails, with the reason, for one whose ProgramTraits::may_carry() is false, and where ids or
/// words run out. Threading: any.
wire::Result<std::vector<uint32_t>> WithIlCarry(std::span<const std::byte> il);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_CARRY_H_
