// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/wait_scan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "softcuda/ptx/flow.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::BasicBlock;
using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;
using ptx::OperandKind;

bool Has(std::string_view op, std::string_view modifier) {
  for (size_t at = op.find(modifier); at != std::string_view::npos; at = op.find(modifier, at + 1)) {
    const size_t end = at + modifier.size();
    if (end == op.size() || op[end] == '.') return true;
  }
  return false;
}

/// Memory that no other block can reach.
bool IsPrivate(std::string_view op) {
  return op.find(".shared") != std::string_view::npos || Has(op, ".local") || Has(op, ".param") || Has(op, ".const");
}
bool IsAtomic(std::string_view op) { return op.starts_with("atom.") && !IsPrivate(op); }
/// A load that is made again each time because others may write.
bool IsWatchfulLoad(std::string_view op) {
  if (!op.starts_with("ld.") || IsPrivate(op)) return false;
  for (const std::string_view modifier : {".volatile", ".acquire", ".relaxed", ".mmio", ".cv", ".cg"}) {
    if (Has(op, modifier)) return true;
  }
  return false;
}
bool IsFence(std::string_view op) { return op.starts_with("membar") || op.starts_with("fence"); }
bool IsPlainLoad(std::string_view op) { return op.starts_with("ld.") && !IsPrivate(op) && !Has(op, ".nc"); }

/// Instructions whose first operand is no destination.
bool WritesNoRegister(const Instruction& instruction) {
  const std::string_view opcode = ptx::Opcode(instruction);
  // A barrier may give every thread what all of them said: __syncthreads_or().
  if ((opcode == "bar" || opcode == "barrier") && Has(instruction.op, ".red")) return false;
  for (const std::string_view each :
       {"st",       "red",           "bra",     "brx",          "bar",  "barrier", "membar",    "fence",
        "prefetch", "prefetchu",     "ret",     "exit",         "trap", "brkpt",   "nanosleep", "cp",
        "discard",  "applypriority", "pmevent", "stackrestore", "sust", "sured",   "setmaxnreg"}) {
    if (opcode == each) return true;
  }
  return false;
}

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

/// Strongly connected parts of a flow graph that can run more than once. Tarjan's algorithm, without recursion: a
/// hostile text may be as deep as it is long.
std::vector<std::vector<uint32_t>> LoopsOf(const std::vector<BasicBlock>& blocks) {
  constexpr uint32_t kUnseen = UINT32_MAX;
  const auto count = static_cast<uint32_t>(blocks.size());
  std::vector<uint32_t> number(count, kUnseen), low(count, 0);
  std::vector<bool> open(count, false);
  std::vector<uint32_t> stack;
  struct Step {
    uint32_t block = 0;
    size_t next = 0;
  };
  std::vector<Step> path;
  std::vector<std::vector<uint32_t>> loops;
  uint32_t seen = 0;
  const auto enter = [&](uint32_t block) {
    number[block] = low[block] = seen++;
    open[block] = true;
    stack.push_back(block);
    path.push_back({block, 0});
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (number[root] != kUnseen) continue;
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      const uint32_t block = step.block;
      const std::vector<uint32_t>& successors = blocks[block].successors;
      if (step.next < successors.size()) {
        const uint32_t next = successors[step.next++];
        if (number[next] == kUnseen) {
          enter(next);
        } else if (open[next]) {
          low[block] = std::min(low[block], number[next]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().block] = std::min(low[path.back().block], low[block]);
      if (low[block] != number[block]) continue;
      std::vector<uint32_t> part;
      for (;;) {
        const uint32_t member = stack.back();
        stack.pop_back();
        open[member] = false;
        part.push_back(member);
        if (member == block) break;
      }
      const bool itself = std::find(successors.begin(), successors.end(), block) != successors.end();
      if (part.size() > 1 || itself) loops.push_back(std::move(part));
    }
  }
  return loops;
}

/// What follows, within one loop, from what one or more instructions see.
class Taint {
 public:
  Taint(const Function& function, const std::vector<uint32_t>& instructions)
      : function_(function), instructions_(instructions), tainted_(function.registers.size(), false) {}

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
        if (MayKeep(opcode)) {
          more = more || !memory_;
          memory_ = true;
        }
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
    return (memory_ && MayFind(ptx::Opcode(instruction))) || CountReads(instruction, 1) != 0;
  }
  /// How many of the operands that it reads have to do with it; `most` are enough.
  int CountReads(const Instruction& instruction, int most) const {
    const bool writes = !WritesNoRegister(instruction) && ptx::Opcode(instruction) != "call";
    int count = 0;
    for (uint32_t i = writes ? 1 : 0; i < instruction.operand_count && count < most; ++i) {
      count += Reads(function_.operands[instruction.first_operand + i]) ? 1 : 0;
    }
    return count;
  }
  bool Holds(const Operand& operand) const {
    return operand.kind == OperandKind::kRegister && operand.index < tainted_.size() && tainted_[operand.index];
  }

 private:
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
  bool memory_ = false;
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

/// "Old value as I saw it last -> new value; again if it was another": the compared value is what came out before, and
/// it is compared with what comes out now. Without that it is a load of another kind, and may wait for a value.
bool TriesAgainWithWhatItSaw(const Function& function, const std::vector<uint32_t>& loop, const Instruction& atomic) {
  if (!Has(atomic.op, ".cas") || atomic.operand_count < 4) return false;
  const Operand& compared = function.operands[atomic.first_operand + 2];
  if (compared.kind != OperandKind::kRegister) return false;
  Taint taint(function, loop);
  taint.Mark(atomic);
  if (!taint.Spread() || !taint.Holds(compared)) return false;
  return std::any_of(loop.begin(), loop.end(), [&](uint32_t index) {
    const Instruction& each = function.instructions[index];
    return ptx::Opcode(each) == "setp" && taint.CountReads(each, 2) == 2;
  });
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
  return false;
}

bool LooksAtOthers(const Function& function) {
  return std::any_of(function.instructions.begin(), function.instructions.end(), [](const Instruction& each) {
    return ptx::Opcode(each) == "nanosleep" || IsAtomic(each.op) || IsWatchfulLoad(each.op) || IsFence(each.op);
  });
}

}  // namespace hawser::server::cuda_slicing
