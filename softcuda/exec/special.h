// SPDX-License-Identifier: Apache-2.0
// Handlers that produce values of the running thread: special registers and addresses that move with the activation.
#ifndef HAWSER_SOFTCUDA_EXEC_SPECIAL_H_
#define HAWSER_SOFTCUDA_EXEC_SPECIAL_H_

#include "softcuda/exec/image.h"

namespace hawser::exec {

/// d = SpecialRegister `imm`.
void ReadSpecial(Warp& w, const Insn& i, uint32_t mask);
/// d = address in the local space of offset `imm` of this activation.
void LocalAddress(Warp& w, const Insn& i, uint32_t mask);
/// d = address of byte `imm` of the launch's parameter buffer.
void KernelParameterAddress(Warp& w, const Insn& i, uint32_t mask);
/// d = shared address of the dynamic shared memory plus `imm`.
void DynamicSharedAddress(Warp& w, const Insn& i, uint32_t mask);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_SPECIAL_H_
