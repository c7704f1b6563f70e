// SPDX-License-Identifier: Apache-2.0
// Loops of PTX functions whose rounds differ by nothing but what they read again from the same place of global memory.
// One round or no end, unless somebody else writes there: a flag that is waited for by plain loads, behind a barrier of
// the block or in inline assembler, where the compiler cannot move them out of the loop.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_REPEAT_SCAN_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_REPEAT_SCAN_H_

#include <vector>

#include "softcuda/ptx/flow.h"
#include "softcuda/ptx/module.h"

namespace hawser::server::cuda_slicing {

/// True when the function has such a loop, within others too. `blocks`: its flow graph.
bool OnlyReadsAgain(const ptx::Function& function, const std::vector<ptx::BasicBlock>& blocks);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_REPEAT_SCAN_H_
