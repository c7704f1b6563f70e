// SPDX-License-Identifier: Apache-2.0
// Where a function's registers lie in its frame.
#ifndef HAWSER_SOFTCUDA_EXEC_ALLOCATION_H_
#define HAWSER_SOFTCUDA_EXEC_ALLOCATION_H_

#include <cstdint>
#include <vector>

#include "softcuda/ptx/module.h"

namespace hawser::exec {

struct RegisterLayout {
  std::vector<uint32_t> offset;  ///< Of each register, in bytes.
  uint64_t bytes = 0;            ///< Offsets hold only where these are less than 4 GiB.
  uint32_t live_words = 0;       ///< Most 32-bit words that are alive at once in one thread: the register estimate.
};

/// Registers whose lives do not overlap share a place, but only with registers of the same width: handlers rely on two
/// places being equal or disjoint.
RegisterLayout LayOutRegisters(const ptx::Function& function);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_ALLOCATION_H_
