// SPDX-License-Identifier: Apache-2.0
// The loops of a flow graph.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_LOOPS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_LOOPS_H_

#include <cstdint>
#include <vector>

#include "softcuda/ptx/flow.h"

namespace hawser::server::cuda_slicing {

/// Strongly connected parts of a flow graph that can run more than once: the outermost loops, as numbers of blocks.
std::vector<std::vector<uint32_t>> LoopsOf(const std::vector<ptx::BasicBlock>& blocks);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_LOOPS_H_
