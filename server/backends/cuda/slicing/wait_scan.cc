// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/wait_scan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/backends/cuda/slicing/loops.h"
#include "server/backends/cuda/slicing/opcodes.h"
#include "server/backends/cuda/slicing/repeat_scan.h"
#include "softcuda/ptx/flow.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::BasicBlock;
using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;
using ptx::OperandKind;

/// Whether what the instruction reads may be found in memory afterwards, and whether it may give what is there.
bool MayKeep(std::string_view opcode) {
  for (const std::string_view each :
       {"st", "call", "cp", "atom", "red", "sust", "sured", "stmatrix", "wmma", "mbarrier"}) {
    if (opcode == each) return true;
  }
  return false;
}
bool MayFind(std::string_view opcode) {
  for (const std::string_view each : {"ld", "ldu", "call", "atom", "suld", "tex", "ldmatrix", "wmma", "mbarrier"}) {
    if (opcode == each) return true;
  }
  return false;
}
bool IsBarrier(const Instruction& instruction) {
  const std::string_view opcode = ptx::Opcode(instruction);
  return opcode == "bar" || opcode == "barrier" || opcode == "call";
}

/// What follows, within one loop, from what one or more instructions see.
class Taint {
 public:
  Taint(const Function& function, const std::vector<uint32_t>& instructions)
      : function_(function), instructions_(instructions), tainted_(function.registers.size(), false) {
    has_barrier_ = std::any_of(instructions.begin(), instructions.end(),
                               [&](uint32_t index) { return IsBarrier(function.instructions[index]); });
  }

  void Mark(const Instruction& instruction) { MarkDestination(instruction); }

  /// To the end, but for texts that nobody would write: then false.
  bool Spread() {
    constexpr int kMostRounds = 64;
    int round = 0;
    for (bool more = true; more;) {
      more = false;
      if (++round > kMostRounds) return false;
      for (const uint32_t index : instructions_) {
        const Instruction& instruction = function_.instructions[index];
        if (!IsTainted(instruction)) continue;
        const std::string_view opcode = ptx::Opcode(instruction);
        if (MayKeep(opcode)) more = Keep(instruction) || more;
        if (!WritesNoRegister(instruction) && opcode != "call") more = MarkDestination(instruction) || more;
      }
    }
    return true;
  }
  /// What the instruction reads has to do with it.
  bool IsTainted(const Instruction& instruction) const {
    if (instruction.predicated && instruction.predicate < tainted_.size() && tainted_[instruction.predicate]) {
      return true;
    }
    if (MayFind(ptx::Opcode(instruction))) {
      if (kept_private_ && !Has(instruction.op, ".global")) return true;
      if (kept_global_ && !IsPrivate(instruction.op)) return true;
    }
    const bool writes = !WritesNoRegister(instruction) && ptx::Opcode(instruction) != "call";
    for (uint32_t i = writes ? 1 : 0; i < instruction.operand_count; ++i) {
      if (Reads(function_.operands[instruction.first_operand + i])) return true;
    }
    return false;
  }
  bool Holds(const Operand& operand) const {
    return operand.kind == OperandKind::kRegister && operand.index < tainted_.size() && tainted_[operand.index];
  }

 private:
  /// What is kept in memory may be read again: what its block has for itself always, global memory where there is a
  /// barrier, behind which other threads read it. A thread needs no memory to know what it has just written. Nor does
  /// it matter where something is written in global memory: places in queues come from atomics.
  bool Keep(const Instruction& instruction) {
    bool changed = false;
    if (!Has(instruction.op, ".global")) changed = !std::exchange(kept_private_, true);
    if (IsPrivate(instruction.op) || !has_barrier_ || !KeepsAsValue(instruction)) return changed;
    return !std::exchange(kept_global_, true) || changed;
  }
  bool KeepsAsValue(const Instruction& instruction) const {
    if (ptx::Opcode(instruction) != "st") return true;
    if (instruction.predicated && instruction.predicate < tainted_.size() && tainted_[instruction.predicate])
      return true;
    for (uint32_t i = 1; i < instruction.operand_count; ++i) {
      if (Reads(function_.operands[instruction.first_operand + i])) return true;
    }
    return false;
  }
  bool Reads(const Operand& operand) const {
    if (Holds(operand)) return true;
    if (operand.first == ptx::kNone) return false;
    // Groups do not nest deeper than a few levels: the parser sees to that.
    for (uint32_t i = 0; i < operand.count && operand.first + i < function_.operands.size(); ++i) {
      if (Reads(function_.operands[operand.first + i])) return true;
    }
    return false;
  }
  bool MarkOperand(const Operand& operand) {
    bool changed = false;
    if (operand.kind == OperandKind::kRegister && operand.index < tainted_.size() && !tainted_[operand.index]) {
      tainted_[operand.index] = changed = true;
    }
    if (operand.second != ptx::kNone) changed = MarkOperand(function_.operands[operand.second]) || changed;
    if (operand.kind != OperandKind::kVector) return changed;
    for (uint32_t i = 0; i < operand.count; ++i) {
      changed = MarkOperand(function_.operands[operand.first + i]) || changed;
    }
    return changed;
  }
  bool MarkDestination(const Instruction& instruction) {
    return instruction.operand_count != 0 && MarkOperand(function_.operands[instruction.first_operand]);
  }

  const Function& function_;
  const std::vector<uint32_t>& instructions_;
  std::vector<bool> tainted_;
  bool has_barrier_ = false;   ///< Or calls, which may have one.
  bool kept_private_ = false;  ///< Memory of the block or the thread may hold it,
  bool kept_global_ = false;   ///< and global memory.
};

/// True when a branch of the loop depends on it.
bool Decides(const Function& function, const std::vector<uint32_t>& loop, const Taint& taint) {
  return std::any_of(loop.begin(), loop.end(), [&](uint32_t index) {
    const Instruction& instruction = function.instructions[index];
    const std::string_view opcode = ptx::Opcode(instruction);
    if (opcode != "bra" && opcode != "brx" && opcode != "ret" && opcode != "exit" && opcode != "trap") return false;
    return taint.IsTainted(instruction);
  });
}

/// What a register was before the loop moved it: what it is compared with below.
uint32_t MovedFrom(const Function& function, const std::vector<uint32_t>& loop, uint32_t at) {
  constexpr int kMostMoves = 4;
  for (int moves = 0; moves < kMostMoves; ++moves) {
    uint32_t from = at;
    for (const uint32_t index : loop) {
      const Instruction& each = function.instructions[index];
      if (ptx::Opcode(each) != "mov" || each.operand_count != 2) continue;
      const Operand* const operands = &function.operands[each.first_operand];
      if (operands[0].kind != OperandKind::kRegister || operands[0].index != at) continue;
      if (operands[1].kind != OperandKind::kRegister || from != at) return at;  // More than one.
      from = operands[1].index;
    }
    if (from == at) break;
    at = from;
  }
  return at;
}

/// "Old value as I saw it last -> new value; again if it was another": the compared value is what came out before. Who
/// exchanges a value with itself loads it in another way, and may wait.
bool TriesAgainWithWhatItSaw(const Function& function, const std::vector<uint32_t>& loop, const Instruction& atomic) {
  if (!Has(atomic.op, ".cas") || atomic.operand_count < 4) return false;
  const Operand& compared = function.operands[atomic.first_operand + 2];
  const Operand& wanted = function.operands[atomic.first_operand + 3];
  if (compared.kind != OperandKind::kRegister) return false;
  if (wanted.kind == OperandKind::kRegister &&
      MovedFrom(function, loop, wanted.index) == MovedFrom(function, loop, compared.index)) {
    return false;
  }
  Taint taint(function, loop);
  taint.Mark(atomic);
  return taint.Spread() && taint.Holds(compared);
}

std::string_view CalleeOf(const Module& module, const Function& function, const Instruction& call) {
  for (uint32_t i = 0; i < call.operand_count; ++i) {
    const Operand& operand = function.operands[call.first_operand + i];
    if (operand.kind == OperandKind::kSymbol && operand.index < module.names.size()) return module.names[operand.index];
  }
  return {};
}

bool LoopMayWait(const Module& module, const Function& function, const std::vector<uint32_t>& loop,
                 const std::function<bool(std::string_view)>& polls) {
  const auto any = [&](auto&& holds) {
    return std::any_of(loop.begin(), loop.end(), [&](uint32_t i) { return holds(function.instructions[i]); });
  };
  if (any([](const Instruction& each) { return ptx::Opcode(each) == "nanosleep"; })) return true;
  if (any([&](const Instruction& each) {
        return ptx::Opcode(each) == "call" && polls(CalleeOf(module, function, each));
      })) {
    return true;
  }
  const bool fenced = any([](const Instruction& each) { return IsFence(each.op); });
  Taint taint(function, loop);
  bool watches = false;
  constexpr int kMostAtomics = 64;  // Of a loop: each is looked at alone.
  int atomics = 0;
  for (const uint32_t index : loop) {
    const Instruction& instruction = function.instructions[index];
    if (IsAtomic(instruction.op) && ++atomics > kMostAtomics) return true;
    const bool sees = IsWatchfulLoad(instruction.op) || (fenced && IsPlainLoad(instruction.op)) ||
                      (IsAtomic(instruction.op) && !TriesAgainWithWhatItSaw(function, loop, instruction));
    if (!sees) continue;
    watches = true;
    taint.Mark(instruction);
  }
  if (!watches) return false;
  if (!taint.Spread()) return true;
  return Decides(function, loop, taint);
}

}  // namespace

bool MayWait(const Module& module, const Function& function, const std::function<bool(std::string_view)>& polls) {
  const std::vector<BasicBlock> blocks = ptx::FlowOf(function);
  for (const std::vector<uint32_t>& part : LoopsOf(blocks)) {
    std::vector<uint32_t> loop;
    for (const uint32_t block : part) {
      for (uint32_t i = blocks[block].first; i < blocks[block].end; ++i) loop.push_back(i);
    }
    std::sort(loop.begin(), loop.end());
    if (LoopMayWait(module, function, loop, polls)) return true;
  }
  return OnlyReadsAgain(function, blocks);
}

bool LooksAtOthers(const Function& function) {
  return std::any_of(function.instructions.begin(), function.instructions.end(), [](const Instruction& each) {
    return ptx::Opcode(each) == "nanosleep" || IsAtomic(each.op) || IsWatchfulLoad(each.op) || IsFence(each.op);
  });
}

}  // namespace hawser::server::cuda_slicing
