// SPDX-License-Identifier: Apache-2.0
// What must be known of a kernel before it is split, from its program in intermediate language.
//
// What each function does itself is collected first, then what it does through those that it calls. Anything that is
// not known here (a function from elsewhere, a pointer to a function, an extension) makes what calls it run whole.
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/backends/opencl/slicing/il/il_builtins.h"
#include "server/backends/opencl/slicing/il/il_loops.h"
#include "server/backends/opencl/slicing/il/il_module.h"
#include "server/backends/opencl/slicing/kernel_scan.h"
#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {
namespace {

using spv::Op;
using wire::Result;

// As for text: some hundred milliseconds.
constexpr int64_t kBudget = 20'000'000;

bool Between(Op opcode, Op first, Op last) {
  const auto number = static_cast<uint32_t>(opcode);
  return number >= static_cast<uint32_t>(first) && number <= static_cast<uint32_t>(last);
}

// Of an extension of which it is known that it does nothing to other work-groups.
bool IsKnownExtension(Op opcode) {
  return Between(opcode, Op::OpSubgroupBallotKHR, Op::OpSubgroupReadInvocationKHR) ||
         Between(opcode, Op::OpSDot, Op::OpSUDotAccSat) ||
         Between(opcode, Op::OpSubgroupShuffleINTEL, Op::OpSubgroupImageBlockWriteINTEL) ||
         Between(opcode, Op::OpUCountLeadingZerosINTEL, Op::OpUMul32x16INTEL) || opcode == Op::OpAtomicFMinEXT ||
         opcode == Op::OpAtomicFMaxEXT || opcode == Op::OpAtomicFAddEXT || opcode == Op::OpAssumeTrueKHR ||
         opcode == Op::OpExpectKHR || opcode == Op::OpDecorateString ||
         Between(opcode, Op::OpGroupIMulKHR, Op::OpGroupLogicalXorKHR);
}

bool IsOfGroup(Op opcode) {
  return opcode == Op::OpControlBarrier || Between(opcode, Op::OpGroupAsyncCopy, Op::OpGroupSMax) ||
         Between(opcode, Op::OpGroupNonUniformElect, Op::OpGroupNonUniformQuadSwap) ||
         Between(opcode, Op::OpSubgroupBallotKHR, Op::OpSubgroupReadInvocationKHR) ||
         Between(opcode, Op::OpSubgroupShuffleINTEL, Op::OpSubgroupImageBlockWriteINTEL) ||
         Between(opcode, Op::OpGroupIMulKHR, Op::OpGroupLogicalXorKHR);
}

bool IsOfPipes(Op opcode) {
  return Between(opcode, Op::OpReadPipe, Op::OpGroupCommitWritePipe) || opcode == Op::OpConstantPipeStorage ||
         opcode == Op::OpCreatePipeFromPipeStorage || opcode == Op::OpTypePipe || opcode == Op::OpTypePipeStorage;
}

bool Enqueues(Op opcode) {
  return Between(opcode, Op::OpEnqueueMarker, Op::OpBuildNDRange) ||
         Between(opcode, Op::OpGetKernelLocalSizeForSubgroupCount, Op::OpGetKernelMaxNumSubgroups);
}

struct Function {
  size_t begin = 0, end = 0;
  KernelFindings found;
  bool observes = false;
  std::vector<uint32_t> calls;    ///< Ids.
  std::vector<uint32_t> callers;  ///< Indices.
};

class Scan {
 public:
  explicit Scan(const IlModule& module) : module_(module), builtins_(module) {
    facts_.used.resize(module.bound());
    facts_.is_volatile.resize(module.bound());
    facts_.has_constant.resize(module.bound());
    facts_.constants.resize(module.bound());
  }

  /// Empty: what is found is certain.
  std::string Run() {
    if (!builtins_.unclear().empty()) return builtins_.unclear();
    FindFunctions();
    if (!problem_.empty()) return problem_;
    for (Function& function : functions_) LookAt(&function);
    LinkCalls();
    Spread([](const Function& of, Function* to) {
      const bool learns = of.observes && !to->observes;
      to->observes = to->observes || of.observes;
      return learns;
    });
    const std::function<bool(uint32_t)> observes = [this](uint32_t id) {
      const auto found = by_id_.find(id);
      return found == by_id_.end() || functions_[found->second].observes;
    };
    for (Function& function : functions_) {
      function.found.waits = IlMayWait(module_, function.begin, function.end, facts_, builtins_, observes, &budget_);
    }
    Spread(&Learn);
    return budget_ > 0 ? "" : "its intermediate language takes too long to be looked at";
  }

  const KernelFindings* Of(uint32_t function) const {
    const auto found = by_id_.find(function);
    return found == by_id_.end() ? nullptr : &functions_[found->second].found;
  }
  const std::vector<std::pair<std::string, uint32_t>>& kernels() const { return kernels_; }
  /// Why the launch's geometry cannot be given to its kernels.
  std::string CarryProblem() const {
    if (!is_64_bit_) return "its addresses have not 64 bits";
    return builtins_.problem();
  }

 private:
  static bool Learn(const Function& of, Function* to) {
    bool learns = false;
    const auto add = [&](bool from, bool* into) {
      learns = learns || (from && !*into);
      *into = *into || from;
    };
    add(of.found.affected, &to->found.affected);
    add(of.found.groups, &to->found.groups);
    add(of.found.waits, &to->found.waits);
    add(of.found.enqueues, &to->found.enqueues);
    add(of.found.pipes, &to->found.pipes);
    if (!of.found.unknown.empty() && to->found.unknown.empty()) {
      to->found.unknown = of.found.unknown;
      learns = true;
    }
    return learns;
  }

  void FindFunctions() {
    bool inside = false;
    for (size_t i = 0; i < module_.size(); ++i) {
      const IlInstruction instruction = module_.at(i);
      const auto opcode = static_cast<Op>(instruction.opcode);
      if (opcode == Op::OpFunction) {
        if (inside || !by_id_.emplace(instruction.result, functions_.size()).second) {
          problem_ = "a function of its intermediate language is not whole";
          return;
        }
        functions_.emplace_back();
        functions_.back().begin = i;
        inside = true;
      } else if (opcode == Op::OpFunctionEnd) {
        if (!inside) {
          problem_ = "a function of its intermediate language is not whole";
          return;
        }
        functions_.back().end = i + 1;
        inside = false;
      } else if (!inside) {
        LookAtDeclaration(instruction);
      }
      if (inside) {
        for (const uint32_t id : instruction.inputs) facts_.used[id] = true;
      }
    }
    if (inside) problem_ = "a function of its intermediate language is not whole";
  }

  void LookAtDeclaration(const IlInstruction& instruction) {
    const auto& words = instruction.words;
    const auto opcode = static_cast<Op>(instruction.opcode);
    switch (opcode) {
      case Op::OpMemoryModel:
        is_64_bit_ = words.size() > 1 && words[1] == static_cast<uint32_t>(spv::AddressingModel::Physical64);
        return;
      case Op::OpEntryPoint:
        if (words.size() > 3 && words[1] == static_cast<uint32_t>(spv::ExecutionModel::Kernel)) {
          kernels_.emplace_back(std::string(IlText(words.subspan(3))), words[2]);
        }
        return;
      case Op::OpDecorate:
        if (words.size() > 2 && (words[2] == static_cast<uint32_t>(spv::Decoration::Volatile) ||
                                 words[2] == static_cast<uint32_t>(spv::Decoration::Coherent))) {
          facts_.is_volatile[words[1]] = true;
        }
        return;
      case Op::OpConstant:
        if (words.size() > 3) {
          facts_.has_constant[instruction.result] = true;
          facts_.constants[instruction.result] = words[3];
        }
        return;
      case Op::OpConstantNull:
        facts_.has_constant[instruction.result] = true;
        return;
      case Op::OpTypePointer:
        has_local_memory_ =
            has_local_memory_ || (words.size() > 2 && words[2] == static_cast<uint32_t>(spv::StorageClass::Workgroup));
        return;
      case Op::OpMemberDecorate:
        // Which loads go to that member is not followed.
        if (words.size() > 3 && words[3] == static_cast<uint32_t>(spv::Decoration::Volatile)) {
          problem_ = "a member of a structure is volatile";
        }
        return;
      case Op::OpGroupDecorate:
      case Op::OpGroupMemberDecorate:
        problem_ = "its intermediate language has groups of decorations";
        return;
      default:
        if (static_cast<uint32_t>(opcode) >= 4096 && !IsKnownExtension(opcode)) has_extensions_ = true;
        return;
    }
  }

  void LookAt(Function* function) {
    KernelFindings& found = function->found;
    found.groups = has_local_memory_;
    if (has_extensions_) found.unknown = "its program declares what is not known here";
    bool has_body = false;
    for (size_t i = function->begin; i < function->end; ++i) {
      const IlInstruction instruction = module_.at(i);
      const auto opcode = static_cast<Op>(instruction.opcode);
      has_body = has_body || opcode == Op::OpLabel;
      found.groups = found.groups || IsOfGroup(opcode);
      found.pipes = found.pipes || IsOfPipes(opcode);
      found.enqueues = found.enqueues || Enqueues(opcode);
      function->observes = function->observes || IlObserves(instruction, facts_);
      for (const uint32_t id : instruction.inputs) {
        const int64_t builtin = builtins_.Of(id);
        found.affected = found.affected || IlBuiltins::IsAffected(builtin);
        found.groups = found.groups || IlBuiltins::ShowsGroups(builtin);
      }
      if (opcode == Op::OpFunctionCall && !instruction.inputs.empty()) function->calls.push_back(instruction.inputs[0]);
      if (static_cast<uint32_t>(opcode) >= 4096 && !IsKnownExtension(opcode)) {
        found.unknown = "it uses instruction " + std::to_string(instruction.opcode) + ", which is not known here";
      }
    }
    if (!has_body) {
      found.unknown = "it calls a function from elsewhere";
      function->observes = true;
    }
  }

  void LinkCalls() {
    for (size_t i = 0; i < functions_.size(); ++i) {
      for (const uint32_t id : functions_[i].calls) {
        if (const auto callee = by_id_.find(id); callee != by_id_.end()) {
          std::vector<uint32_t>& callers = functions_[callee->second].callers;
          if (callers.empty() || callers.back() != i) callers.push_back(static_cast<uint32_t>(i));
        } else {
          functions_[i].found.unknown = "it calls what is no function";
          functions_[i].observes = true;
        }
      }
    }
  }

  // Until nothing new is learnt. What is known only grows, so this ends.
  template <typename Teach>
  void Spread(Teach&& teach) {
    std::vector<uint32_t> pending;
    for (size_t i = 0; i < functions_.size(); ++i) pending.push_back(static_cast<uint32_t>(i));
    while (!pending.empty()) {
      const Function& function = functions_[pending.back()];
      pending.pop_back();
      for (const uint32_t caller : function.callers) {
        if (--budget_ <= 0) return;
        if (teach(function, &functions_[caller])) pending.push_back(caller);
      }
    }
  }

  const IlModule& module_;
  const IlBuiltins builtins_;
  IlFacts facts_;
  std::vector<Function> functions_;
  std::unordered_map<uint32_t, size_t> by_id_;
  std::vector<std::pair<std::string, uint32_t>> kernels_;
  std::string problem_;
  bool is_64_bit_ = false;
  bool has_local_memory_ = false;
  bool has_extensions_ = false;
  int64_t budget_ = kBudget;
};

}  // namespace

ProgramTraits ProgramTraits::ScanIl(std::span<const std::byte> il) {
  Result<IlModule> module = IlModule::Parse(il);
  if (!module.ok()) return Unknown(module.status().text());
  class Scan scan(*module);
  if (const std::string problem = scan.Run(); !problem.empty()) return Unknown(problem);
  ProgramTraits program;
  program.carry_problem_ = scan.CarryProblem();
  program.any_.reason = "its program does not name it";
  for (const auto& [name, function] : scan.kernels()) {
    const KernelFindings* found = scan.Of(function);
    if (found == nullptr) continue;
    program.kernels_.insert_or_assign(name, Conclude(*found, program.carry_problem_));
  }
  program.SeeWhatWantsCarry();
  return program;
}

}  // namespace hawser::server::slicing
