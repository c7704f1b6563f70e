// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/repeat_scan.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "server/backends/cuda/slicing/loops.h"
#include "server/backends/cuda/slicing/opcodes.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::BasicBlock;
using ptx::Function;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;

/// Registers in one loop.
class Rounds {
 public:
  Rounds(const Function& function, const std::vector<uint32_t>& instructions)
      : function_(function), instructions_(instructions) {}

  /// False: too deep to be seen.
  bool Find() {
    constexpr int kMostRounds = 64;
    for (const uint32_t index : instructions_) {
      ForEachDestination(function_.instructions[index], [&](uint32_t at) { ++defined_[at].definitions; });
    }
    // What goes on from one round to the next, a counter, is never reached from what stays.
    int round = 0;
    for (bool more = true; more;) {
      if (++round > kMostRounds) return false;
      more = false;
      for (auto& [at, value] : defined_) value.same_definitions = 0;
      for (const uint32_t index : instructions_) {
        const Instruction& instruction = function_.instructions[index];
        if (!IsSame(instruction)) continue;
        const bool global = IsPlainLoad(instruction.op) || ReadsGlobal(instruction);
        if (global && Keeps(instruction)) more = !std::exchange(kept_global_, true) || more;
        ForEachDestination(instruction, [&](uint32_t at) {
          ++defined_[at].same_definitions;
          if (global) more = !std::exchange(defined_[at].global, true) || more;
        });
      }
      for (auto& [at, value] : defined_) {
        if (value.same_definitions == value.definitions) more = !std::exchange(value.same, true) || more;
      }
    }
    return true;
  }

  /// All that it reads is the same, but for what loads find.
  bool IsSame(const Instruction& instruction) const {
    if (instruction.predicated && !IsSame(instruction.predicate)) return false;
    return !AnySource(instruction, [&](uint32_t at) { return !IsSame(at); });
  }
  /// Something that it reads comes from global memory.
  bool ReadsGlobal(const Instruction& instruction) const {
    if (instruction.predicated && IsGlobal(instruction.predicate)) return true;
    if (kept_global_ && instruction.op.starts_with("ld.")) return true;
    return AnySource(instruction, [&](uint32_t at) { return IsGlobal(at); });
  }
  /// Writes to memory of the block or the thread.
  static bool Keeps(const Instruction& instruction) {
    return instruction.op.starts_with("st.") && IsPrivate(instruction.op);
  }

 private:
  struct Value {
    uint32_t definitions = 0, same_definitions = 0;
    bool same = false;    ///< The same in every round, but for what loads from the same places find.
    bool global = false;  ///< Made of what came from global memory.
  };
  bool IsSame(uint32_t at) const {
    const auto found = defined_.find(at);
    return found == defined_.end() || found->second.same;
  }
  bool IsGlobal(uint32_t at) const {
    const auto found = defined_.find(at);
    return found != defined_.end() && found->second.global;
  }

  template <typename Do>
  void ForEachRegister(const Operand& operand, const Do& what) const {
    if (operand.kind == OperandKind::kRegister && operand.index < function_.registers.size()) what(operand.index);
    if (operand.second != ptx::kNone) ForEachRegister(function_.operands[operand.second], what);
    if (operand.first == ptx::kNone) return;
    // Groups do not nest deeper than a few levels: the parser sees to that.
    const uint32_t count = operand.kind == OperandKind::kAddress ? 1 : operand.count;
    for (uint32_t i = 0; i < count && operand.first + i < function_.operands.size(); ++i) {
      ForEachRegister(function_.operands[operand.first + i], what);
    }
  }
  template <typename Do>
  void ForEachDestination(const Instruction& instruction, const Do& what) const {
    if (instruction.operand_count == 0 || WritesNoRegister(instruction)) return;
    ForEachRegister(function_.operands[instruction.first_operand], what);
  }
  template <typename Is>
  bool AnySource(const Instruction& instruction, const Is& is) const {
    bool any = false;
    for (uint32_t i = WritesNoRegister(instruction) ? 0 : 1; i < instruction.operand_count; ++i) {
      ForEachRegister(function_.operands[instruction.first_operand + i], [&](uint32_t at) { any = any || is(at); });
    }
    return any;
  }

  const Function& function_;
  const std::vector<uint32_t>& instructions_;
  std::unordered_map<uint32_t, Value> defined_;  ///< Those that the loop writes.
  bool kept_global_ = false;                     ///< Memory of the block or the thread holds such values too.
};

/// Whether control leaves the loop behind this block, other than by its end.
bool Leaves(const Function& function, const BasicBlock& block, const std::vector<bool>& inside) {
  if (block.end == block.first) return false;
  const std::string_view opcode = ptx::Opcode(function.instructions[block.end - 1]);
  return opcode == "ret" || opcode == "exit" || opcode == "trap" ||
         std::any_of(block.successors.begin(), block.successors.end(), [&](uint32_t next) { return !inside[next]; });
}

/// What may change something for itself or others, or is not understood.
bool IsMore(const Instruction& instruction) {
  const std::string_view opcode = ptx::Opcode(instruction);
  for (const std::string_view each : {"atom", "red", "call", "cp", "sust", "sured", "stmatrix", "wmma", "mbarrier",
                                      "suld", "brx", "multimem", "tcgen05", "wgmma", "mma", "setmaxnreg"}) {
    if (opcode == each) return true;
  }
  return opcode == "st" && !Rounds::Keeps(instruction);
}

bool LoopOnlyReadsAgain(const Function& function, const std::vector<BasicBlock>& blocks,
                        const std::vector<uint32_t>& loop, const std::vector<bool>& inside) {
  std::vector<uint32_t> instructions;
  for (const uint32_t block : loop) {
    for (uint32_t i = blocks[block].first; i < blocks[block].end; ++i) instructions.push_back(i);
  }
  bool loads = false;
  for (const uint32_t index : instructions) {
    if (IsMore(function.instructions[index])) return false;
    loads = loads || IsPlainLoad(function.instructions[index].op);
  }
  if (!loads) return false;
  std::sort(instructions.begin(), instructions.end());
  Rounds rounds(function, instructions);
  if (!rounds.Find()) return true;
  for (const uint32_t index : instructions) {
    const Instruction& instruction = function.instructions[index];
    if (Rounds::Keeps(instruction) && !rounds.IsSame(instruction)) return false;
  }
  bool by_global = false;
  for (const uint32_t block : loop) {
    if (!Leaves(function, blocks[block], inside)) continue;
    const Instruction& last = function.instructions[blocks[block].end - 1];
    if (!rounds.IsSame(last)) return false;
    by_global = by_global || rounds.ReadsGlobal(last);
  }
  return by_global;
}

}  // namespace

bool OnlyReadsAgain(const Function& function, const std::vector<BasicBlock>& all) {
  constexpr int kDeepest = 16;
  std::vector<std::vector<BasicBlock>> level{all}, next;
  for (int depth = 0; depth < kDeepest && !level.empty(); ++depth, level = std::exchange(next, {})) {
    for (const std::vector<BasicBlock>& blocks : level) {
      std::vector<uint32_t> place(blocks.size(), ptx::kNone);
      std::vector<bool> inside(blocks.size(), false);
      for (const std::vector<uint32_t>& loop : LoopsOf(blocks)) {
        for (const uint32_t block : loop) inside[block] = true;
        if (LoopOnlyReadsAgain(function, blocks, loop, inside)) return true;
        for (const uint32_t block : loop) inside[block] = false;
        // The loops within it: without the block where it begins.
        const uint32_t head = *std::min_element(loop.begin(), loop.end());
        std::vector<BasicBlock> inner;
        for (const uint32_t block : loop) {
          if (block == head) continue;
          place[block] = static_cast<uint32_t>(inner.size());
          inner.push_back(blocks[block]);
        }
        for (BasicBlock& block : inner) {
          // An edge to elsewhere leaves all loops that are left: it goes to a block behind the last.
          for (uint32_t& successor : block.successors) {
            successor = place[successor] == ptx::kNone ? static_cast<uint32_t>(loop.size()) - 1 : place[successor];
          }
        }
        for (const uint32_t block : loop) place[block] = ptx::kNone;
        if (inner.empty()) continue;
        inner.push_back({});
        next.push_back(std::move(inner));
      }
    }
  }
  return false;
}

}  // namespace hawser::server::cuda_slicing
