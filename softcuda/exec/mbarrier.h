// SPDX-License-Identifier: Apache-2.0
// Bulk copies: where their bytes lie, and what they do to the mbarrier object that they complete.
#ifndef HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
#define HAWSER_SOFTCUDA_EXEC_MBARRIER_H_

#include <cstdint>
#include <optional>

namespace hawser::exec {

class Warp;
struct Insn;

/// Insn::op of bulk copies and reductions: which side is global memory; the other, or both, is the block's shared
/// memory.
enum BulkSpaces : uint8_t { kBulkFromGlobal, kBulkToGlobal, kBulkInShared };

struct Bulk {
  char* to = nullptr;
  const char* from = nullptr;
  uint32_t size = 0;  ///< A multiple of 16.
};
/// What a lane copies: a + imm, b + target, c bytes. None after raising a fault.
std::optional<Bulk> ResolveBulk(Warp& w, const Insn& i, uint32_t lane);

/// complete_tx of `bytes` on the object at `i.e` (of `i.wd` bytes) + `i.r` of a lane. False after raising a fault.
bool CompleteTransaction(Warp& w, const Insn& i, uint32_t lane, uint32_t bytes);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_MBARRIER_H_
