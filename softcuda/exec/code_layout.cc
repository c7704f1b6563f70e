// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/code_layout.h"

#include <algorithm>

namespace hawser::exec {

CodeLayout::CodeLayout(const ptx::Function& function)
    : blocks_(ptx::FlowOf(function)), order_(ptx::OrderBlocks(blocks_)), place_(blocks_.size(), 0) {
  for (uint32_t p = 0; p < order_.places.size(); ++p) {
    if (!order_.places[p].latch) place_[order_.places[p].block] = p;
  }
}

uint32_t CodeLayout::Target(uint32_t from_place, uint32_t instruction) const {
  // Whatever is jumped to begins a block.
  const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), instruction,
                                      [](const ptx::BasicBlock& each, uint32_t i) { return each.first < i; });
  if (block == blocks_.end()) return static_cast<uint32_t>(order_.places.size());
  const auto number = static_cast<uint32_t>(block - blocks_.begin());
  const auto latch = order_.latches.find({order_.places[from_place].block, number});
  return latch != order_.latches.end() ? latch->second : place_[number];
}

}  // namespace hawser::exec
