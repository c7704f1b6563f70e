// SPDX-License-Identifier: Apache-2.0
// Bulk copies: where their bytes lie, and what they do to the mbarrier object that they complete.
#ifndef HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
#define HAWSER_SOFTCUDA_EXEC_MBARRIER_H_

#include <cstdint>
#include <optional>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {

/// Insn::op of bulk copies and reductions: which side is global memory; the other, or both, is the block's shared
/// memory.
enum BulkSpaces : uint8_t { kBulkFromGlobal, kBulkToGlobal, kBulkInShared };

struct Bulk {
  char* to = nullptr;
  const char* from = nullptr;
  uint32_t size = 0;  ///< A multiple of 16.
};
/// What a lane copies: a + imm, b + target, c bytes; `rank`: to the same place of that block of the cluster. None after
/// raising a fault.
std::optional<Bulk> ResolveBulk(Warp& w, const Insn& i, uint32_t lane, std::optional<uint32_t> rank = std::nullopt);

/// complete_tx of `bytes` on the object at `i.e` (of `i.wd` bytes) + `i.r` of a lane, or on that at the same place of
/// block `rank`. False after raising a fault.
bool CompleteTransaction(Warp& w, const Insn& i, uint32_t lane, uint32_t bytes,
                         std::optional<uint32_t> rank = std::nullopt);

/// Insn::flags of a copy to several blocks of the cluster: extra->slots[0] has a bit for each.
inline constexpr uint32_t kFlagMulticast = 4096;
/// Calls f(rank) for each of them; once, with none, for other copies and in clusters of one. f: false after a fault.
template <typename F>
bool ForTargets(Warp& w, const Insn& i, uint32_t lane, const F& f) {
  const uint32_t size = w.block().cluster.size();
  if ((i.flags & kFlagMulticast) == 0 || size == 1) return f(std::optional<uint32_t>());
  const uint64_t targets = w.Read(i.extra->slots[0], 2, lane);
  for (uint32_t rank = 0; rank < size; ++rank) {
    if ((targets >> rank & 1) != 0 && !f(std::optional<uint32_t>(rank))) return false;
  }
  return true;
}

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
