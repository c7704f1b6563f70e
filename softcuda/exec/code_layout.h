// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a function go in its code: warps run the lowest pc first (warp.cc), so the order decides where
// lanes that part meet again (softcuda/ptx/block_order.h).
#ifndef HAWSER_SOFTCUDA_EXEC_CODE_LAYOUT_H_
#define HAWSER_SOFTCUDA_EXEC_CODE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "softcuda/ptx/block_order.h"

namespace hawser::exec {

/// The function must stay.
class CodeLayout {
 public:
  explicit CodeLayout(const ptx::Function& function);

  const std::vector<ptx::BlockOrder::Place>& places() const { return order_.places; }
  const ptx::BasicBlock& block(uint32_t number) const { return blocks_[number]; }
  uint32_t PlaceOf(uint32_t block) const { return place_[block]; }
  /// Where a jump from the block at a place to an instruction goes: to a place, by way of a latch where the block's
  /// loop has one. places().size(): behind the end.
  uint32_t Target(uint32_t from_place, uint32_t instruction) const;

 private:
  std::vector<ptx::BasicBlock> blocks_;
  ptx::BlockOrder order_;
  std::vector<uint32_t> place_;  ///< Of each block.
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_CODE_LAYOUT_H_
