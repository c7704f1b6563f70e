// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/il/il_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "spirv/unified1/OpenCL.std.h"
#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {
namespace {

using spv::Op;

Op OpcodeOf(const IlInstruction& instruction) { return static_cast<Op>(instruction.opcode); }

bool IsCompareExchange(Op opcode) {
  return opcode == Op::OpAtomicCompareExchange || opcode == Op::OpAtomicCompareExchangeWeak;
}

bool IsAtomicWithResult(Op opcode) {
  const auto number = static_cast<uint32_t>(opcode);
  return (number >= static_cast<uint32_t>(Op::OpAtomicLoad) && number <= static_cast<uint32_t>(Op::OpAtomicXor) &&
          opcode != Op::OpAtomicStore) ||
         opcode == Op::OpAtomicFlagTestAndSet || opcode == Op::OpAtomicFAddEXT || opcode == Op::OpAtomicFMinEXT ||
         opcode == Op::OpAtomicFMaxEXT;
}

// Its result comes from memory (or from a function, which may read it).
bool ReadsMemory(const IlInstruction& instruction) {
  const Op opcode = OpcodeOf(instruction);
  if (IsAtomicWithResult(opcode)) return true;
  switch (opcode) {
    case Op::OpFunctionCall:
    case Op::OpImageSampleExplicitLod:
    case Op::OpImageSampleImplicitLod:
    case Op::OpImageFetch:
    case Op::OpImageRead:
      return true;
    case Op::OpExtInst:
      return instruction.words.size() > 4 && instruction.words[4] >= OpenCLLIB::Vloadn &&
             instruction.words[4] <= OpenCLLIB::Vstorea_halfn_r;
    default:
      return false;
  }
}

bool TouchesGlobalMemory(uint32_t semantics) {
  constexpr auto kGlobal = static_cast<uint32_t>(spv::MemorySemanticsMask::CrossWorkgroupMemory) |
                           static_cast<uint32_t>(spv::MemorySemanticsMask::ImageMemory) |
                           static_cast<uint32_t>(spv::MemorySemanticsMask::UniformMemory);
  return (semantics & kGlobal) != 0;
}

struct Block {
  size_t begin = 0, end = 0;  ///< Instructions, the terminator included.
  std::vector<uint32_t> next;
};

// Of each block; blocks of one cycle have one number; 0: in none.
using Cycles = std::vector<uint32_t>;

class Function {
 public:
  Function(const IlModule& module, size_t begin, size_t end, const IlFacts& facts, const IlBuiltins& builtins,
           const std::function<bool(uint32_t)>& callee_observes, int64_t* budget)
      : module_(module),
        begin_(begin),
        end_(end),
        facts_(facts),
        builtins_(builtins),
        callee_observes_(callee_observes),
        budget_(budget) {}

  bool MayWait() {
    if (!FindBlocks()) return true;
    Cycles cycles;
    const uint32_t count = FindCycles(std::vector<bool>(blocks_.size(), true), &cycles);
    if (count != 0 && AnyObserves(cycles)) {
      if (!FollowMemory()) return true;
      for (uint32_t cycle = 1; cycle <= count; ++cycle) {
        if (CycleMayWait(cycles, cycle)) return true;
      }
    }
    return *budget_ <= 0;
  }

 private:
  bool FindBlocks() {
    std::unordered_map<uint32_t, uint32_t> by_label;
    for (size_t i = begin_; i < end_; ++i) {
      const IlInstruction instruction = module_.at(i);
      if (OpcodeOf(instruction) != Op::OpLabel) continue;
      if (!by_label.emplace(instruction.result, blocks_.size()).second) return false;
      if (!blocks_.empty()) blocks_.back().end = i;
      blocks_.push_back({i, end_, {}});
    }
    for (Block& block : blocks_) {
      for (size_t i = block.begin; i < block.end; ++i) {
        const IlInstruction instruction = module_.at(i);
        const Op opcode = OpcodeOf(instruction);
        if (opcode != Op::OpBranch && opcode != Op::OpBranchConditional && opcode != Op::OpSwitch) continue;
        for (const uint32_t id : instruction.inputs) {
          if (const auto found = by_label.find(id); found != by_label.end()) block.next.push_back(found->second);
        }
      }
    }
    return true;
  }

  // Strongly connected components (Tarjan) of some blocks, without recursion. Returns how many are cycles.
  uint32_t FindCycles(const std::vector<bool>& some, Cycles* found) {
    found->assign(blocks_.size(), 0);
    constexpr uint32_t kNew = UINT32_MAX;
    std::vector<uint32_t> number(blocks_.size(), kNew), low(blocks_.size(), 0);
    std::vector<bool> open(blocks_.size(), false);
    std::vector<uint32_t> stack;
    std::vector<std::pair<uint32_t, size_t>> path;
    uint32_t count = 0, cycles = 0;
    for (uint32_t root = 0; root < blocks_.size(); ++root) {
      if (number[root] != kNew || !some[root]) continue;
      path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [at, edge] = path.back();
        if (edge == 0 && number[at] == kNew) {
          number[at] = low[at] = count++;
          stack.push_back(at);
          open[at] = true;
        }
        if (edge < blocks_[at].next.size()) {
          const uint32_t next = blocks_[at].next[edge++];
          if (!some[next]) {
            // Not looked at.
          } else if (number[next] == kNew) {
            path.emplace_back(next, 0);
          } else if (open[next]) {
            low[at] = std::min(low[at], number[next]);
          }
          --*budget_;
          continue;
        }
        const uint32_t done = at;
        path.pop_back();
        if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[done]);
        if (low[done] != number[done]) continue;
        const bool alone = stack.back() == done;
        const auto& next = blocks_[done].next;
        const bool is_cycle = !alone || std::find(next.begin(), next.end(), done) != next.end();
        if (is_cycle) ++cycles;
        for (uint32_t member = kNew; member != done;) {
          member = stack.back();
          stack.pop_back();
          open[member] = false;
          if (is_cycle) (*found)[member] = cycles;
        }
      }
    }
    return cycles;
  }

  bool Observes(const IlInstruction& instruction) const {
    if (OpcodeOf(instruction) == Op::OpFunctionCall) {
      return !instruction.inputs.empty() && callee_observes_(instruction.inputs[0]);
    }
    return IlObserves(instruction, facts_);
  }

  bool AnyObserves(const Cycles& cycles) const {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (size_t i = blocks_[b].begin; cycles[b] != 0 && i < blocks_[b].end; ++i) {
        if (Observes(module_.at(i))) return true;
      }
    }
    return false;
  }

  // Which ids depend on memory. Variables of the function are followed as long as they are only loaded and stored.
  bool FollowMemory() {
    std::unordered_set<uint32_t> followed;
    for (size_t i = begin_; i < end_; ++i) {
      const IlInstruction instruction = module_.at(i);
      const Op opcode = OpcodeOf(instruction);
      if (opcode == Op::OpVariable) followed.insert(instruction.result);
      if (opcode == Op::OpBitcast || opcode == Op::OpPtrCastToGeneric || opcode == Op::OpGenericCastToPtr) {
        casts_.emplace(instruction.result, instruction.inputs[0]);
      }
    }
    for (size_t i = begin_; i < end_; ++i) {
      const IlInstruction instruction = module_.at(i);
      const Op opcode = OpcodeOf(instruction);
      if (opcode == Op::OpVariable || opcode == Op::OpName || opcode == Op::OpLifetimeStart ||
          opcode == Op::OpLifetimeStop) {
        continue;
      }
      const bool is_access = opcode == Op::OpLoad || opcode == Op::OpStore;
      for (size_t k = is_access ? 1 : 0; k < instruction.inputs.size(); ++k) followed.erase(instruction.inputs[k]);
    }
    // Until nothing new is learnt; one round for each level of loops, as a rule.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = begin_; i < end_; ++i) {
        const IlInstruction instruction = module_.at(i);
        *budget_ -= static_cast<int64_t>(1 + instruction.inputs.size());
        if (*budget_ <= 0) return false;
        const Op opcode = OpcodeOf(instruction);
        const auto depends = [&](uint32_t id) { return from_memory_.count(id) != 0; };
        bool tainted =
            ReadsMemory(instruction) || std::any_of(instruction.inputs.begin(), instruction.inputs.end(), depends);
        uint32_t target = instruction.result;
        if (opcode == Op::OpLoad && !instruction.inputs.empty()) {
          const uint32_t from = instruction.inputs[0];
          const bool is_builtin = builtins_.Of(from) >= 0 || builtins_.components().count(from) != 0;
          tainted = tainted || (!is_builtin && followed.count(from) == 0);
        } else if (opcode == Op::OpStore && instruction.inputs.size() >= 2) {
          tainted = depends(instruction.inputs[1]);
          target = instruction.inputs[0];
        }
        if (tainted && target != 0 && from_memory_.insert(target).second) changed = true;
      }
    }
    return true;
  }

  // Calls visit(block, instruction) for all of a cycle.
  template <typename Visit>
  void ForEachIn(const Cycles& cycles, uint32_t cycle, Visit&& visit) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      --*budget_;
      if (cycles[b] != cycle) continue;
      for (size_t i = blocks_[b].begin; i < blocks_[b].end; ++i, --*budget_) visit(b, module_.at(i));
    }
  }

  // No branch in it depends on memory, or nothing in it looks.
  bool IsHarmless(const Cycles& cycles, uint32_t cycle) {
    bool observes = false, counted = true;
    ForEachIn(cycles, cycle, [&](size_t, const IlInstruction& instruction) {
      const Op opcode = OpcodeOf(instruction);
      observes = observes || Observes(instruction);
      const bool branches = opcode == Op::OpBranchConditional || opcode == Op::OpSwitch;
      if (branches && !instruction.inputs.empty() && from_memory_.count(instruction.inputs[0]) != 0) counted = false;
    });
    return !observes || counted;
  }

  bool CycleMayWait(const Cycles& cycles, uint32_t cycle) {
    if (IsHarmless(cycles, cycle)) return false;
    std::unordered_set<uint32_t> inside;
    ForEachIn(cycles, cycle, [&](size_t, const IlInstruction& instruction) {
      if (instruction.result != 0) inside.insert(instruction.result);
    });
    const auto computed = [&](uint32_t id) { return inside.count(id) != 0 && from_memory_.count(id) != 0; };
    std::vector<bool> others(blocks_.size(), false);
    std::unordered_set<uint32_t> places;
    ForEachIn(cycles, cycle, [&](size_t block, const IlInstruction& instruction) {
      if (OpcodeOf(instruction) == Op::OpLabel) others[block] = true;
      // Pointer, scope, two semantics, value, comparator. Where both are one it is a load.
      if (IsCompareExchange(OpcodeOf(instruction)) && instruction.inputs.size() == 6 &&
          instruction.inputs[4] != instruction.inputs[5] && computed(instruction.inputs[4]) &&
          computed(instruction.inputs[5])) {
        others[block] = false;
        places.insert(Place(instruction.inputs[0]));
      }
    });
    bool waits = false;
    ForEachIn(cycles, cycle, [&](size_t block, const IlInstruction& instruction) {
      if (!Observes(instruction)) return;
      const Op opcode = OpcodeOf(instruction);
      const bool is_look =
          opcode == Op::OpLoad || opcode == Op::OpAtomicLoad || (!others[block] && IsCompareExchange(opcode));
      if (!is_look || places.count(Place(instruction.inputs[0])) == 0) waits = true;
    });
    if (waits) return true;
    // Ways round that leave the exchanges out.
    Cycles rest;
    const uint32_t count = FindCycles(others, &rest);
    for (uint32_t other = 1; other <= count; ++other) {
      if (!IsHarmless(rest, other)) return true;
    }
    return false;
  }

  // What a pointer was before it was given other types.
  uint32_t Place(uint32_t pointer) {
    for (auto from = casts_.find(pointer); from != casts_.end(); from = casts_.find(pointer)) {
      pointer = from->second;
      if (--*budget_ <= 0) break;
    }
    return pointer;
  }

  const IlModule& module_;
  const size_t begin_, end_;
  const IlFacts& facts_;
  const IlBuiltins& builtins_;
  const std::function<bool(uint32_t)>& callee_observes_;
  int64_t* const budget_;
  std::vector<Block> blocks_;
  std::unordered_set<uint32_t> from_memory_;
  std::unordered_map<uint32_t, uint32_t> casts_;
};

}  // namespace

bool IlObserves(const IlInstruction& instruction, const IlFacts& facts) {
  const Op opcode = OpcodeOf(instruction);
  if (IsAtomicWithResult(opcode)) return facts.used[instruction.result];
  const auto& inputs = instruction.inputs;
  const auto is_global = [&](uint32_t semantics) {
    return !facts.has_constant[semantics] || TouchesGlobalMemory(facts.constants[semantics]);
  };
  constexpr auto kVolatile = static_cast<uint32_t>(spv::MemoryAccessMask::Volatile);
  switch (opcode) {
    case Op::OpControlBarrier:
      return inputs.size() != 3 || is_global(inputs[2]);
    case Op::OpMemoryBarrier:
      return inputs.size() != 2 || is_global(inputs[1]);
    case Op::OpLoad:
      return (instruction.words.size() > 4 && (instruction.words[4] & kVolatile) != 0) ||
             (!inputs.empty() && facts.is_volatile[inputs[0]]);
    case Op::OpCopyMemory:
      return instruction.words.size() > 3 && (instruction.words[3] & kVolatile) != 0;
    case Op::OpCopyMemorySized:
      return instruction.words.size() > 4 && (instruction.words[4] & kVolatile) != 0;
    default:
      return false;
  }
}

bool IlMayWait(const IlModule& module, size_t begin, size_t end, const IlFacts& facts, const IlBuiltins& builtins,
               const std::function<bool(uint32_t)>& callee_observes, int64_t* budget) {
  return Function(module, begin, end, facts, builtins, callee_observes, budget).MayWait();
}

}  // namespace hawser::server::slicing
