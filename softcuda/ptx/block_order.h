// SPDX-License-Identifier: Apache-2.0
// The order of a function's blocks in which lanes that part meet again as early as they do on a GPU.
//
// Who runs a warp by "the lowest block first" brings lanes together where their ways must meet (at the immediate
// post-dominator of the branch, as GPUs with a reconvergence stack do) if each block comes after all that lead to it,
// and a loop's blocks come one after the other, before what follows the loop. Texts are not in that order: compilers
// put the end of a loop before its begin. Then lanes that skip an inner loop would go on with the next rounds of the
// outer one alone, and programs whose lanes rely on each other without saying so (there are many) would go wrong. The
// order is a weak topological one (F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993), as
// close to the text's as may be.
#ifndef HAWSER_SOFTCUDA_PTX_BLOCK_ORDER_H_
#define HAWSER_SOFTCUDA_PTX_BLOCK_ORDER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "softcuda/ptx/flow.h"

namespace hawser::ptx {

struct BlockOrder {
  struct Place {
    uint32_t block = 0;
    bool latch = false;  ///< Not the block, but a jump to it: where the lanes of a loop meet before its next round.
  };
  std::vector<Place> places;  ///< Each block once, and latches of loops that begin anew from several blocks.
  /// From a block to the begin of its loop by way of a latch: number in `places`.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> latches;
};

/// Loops nested deeper than this keep the order of the text.
inline constexpr uint32_t kDeepestOrderedLoop = 64;

/// `blocks`: of FlowOf(); the first is the entry and stays the first. Blocks that are never reached come last.
BlockOrder OrderBlocks(const std::vector<BasicBlock>& blocks);

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_BLOCK_ORDER_H_
