// SPDX-License-Identifier: Apache-2.0
// What copies do to the mbarrier object that they complete.
#ifndef HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
#define HAWSER_SOFTCUDA_EXEC_MBARRIER_H_

#include <cstdint>

namespace hawser::exec {

class Warp;
struct Insn;

/// complete_tx of `bytes` on the object at `i.e` (of `i.wd` bytes) + `i.r` of a lane. False after raising a fault.
bool CompleteTransaction(Warp& w, const Insn& i, uint32_t lane, uint32_t bytes);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
