// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/scan.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/places.h"
#include "server/backends/cuda/slicing/variables.h"
#include "server/backends/cuda/slicing/wait_scan.h"
#include "softcuda/ptx/flow.h"
#include "softcuda/ptx/lexer.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;
using ptx::OperandKind;
using ptx::SpecialRegister;
using ptx::Variable;

bool In(SpecialRegister which, SpecialRegister first, SpecialRegister last) { return which >= first && which <= last; }

/// Empty, or what the register tells that is another thing in a part.
std::string_view WhatItTells(SpecialRegister which) {
  if (which == SpecialRegister::kSmId || which == SpecialRegister::kNsmId)
    return "it asks on which multiprocessor it runs";
  if (which == SpecialRegister::kGridId) return "it asks for the number of its grid";
  if (In(which, SpecialRegister::kClock, SpecialRegister::kGlobaltimerHi)) return "it asks for the time";
  if (which == SpecialRegister::kPm) return "it reads counters of the device";
  if (which == SpecialRegister::kCurrentGraphExec) return "it asks for its graph";
  if (In(which, SpecialRegister::kClusterIdX, SpecialRegister::kIsExplicitCluster)) return "it knows of clusters";
  if (In(which, SpecialRegister::kEnvreg0, SpecialRegister::kEnvreg31)) return "it reads what the driver alone knows";
  return {};
}

/// Functions of the driver itself that do the same in a part.
bool IsHarmless(std::string_view name) {
  constexpr std::array<std::string_view, 4> kHarmless = {"vprintf", "malloc", "free", "__assertfail"};
  return std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
}

constexpr const char* kTakesAddress = "it takes the address of a function";
constexpr const char* kMayWait = "a loop may wait for another block";

bool IsCall(const Instruction& instruction) { return ptx::Opcode(instruction) == "call"; }

/// A kernel with all that it may call.
class Scan {
 public:
  explicit Scan(const Module& module) : module_(module) {
    for (const Function& function : module.functions) functions_.emplace(function.name, &function);
    for (const Variable& variable : module.variables) variables_.emplace(variable.name, &variable);
  }

  std::string Run(std::string_view name) {
    const auto kernel = functions_.find(name);
    if (kernel == functions_.end() || !kernel->second->entry || !kernel->second->defined) {
      return "it is not in its module's text";
    }
    if (const auto layout = LayoutOf(module_, *kernel->second); !layout.ok()) return layout.status().text();
    if (std::string why = Directives(name); !why.empty()) return why;
    Reach(*kernel->second);
    for (size_t i = 0; i < reached_.size() && why_.empty(); ++i) Look(*reached_[i]);
    if (!why_.empty()) return why_;
    for (const Function* function : reached_) {
      if (MayWait(module_, *function, [&](std::string_view callee) { return Polls(callee); })) {
        return kMayWait;
      }
    }
    return RecursionMayWait() ? kMayWait : "";
  }

  /// Whatever else there is to say of it.
  std::vector<const Function*> Reached(std::string_view name) {
    const auto kernel = functions_.find(name);
    if (kernel == functions_.end() || !kernel->second->entry || !kernel->second->defined) return {};
    Reach(*kernel->second);
    for (size_t i = 0; i < reached_.size(); ++i) Look(*reached_[i]);
    return reached_;
  }

  /// After Run() has found nothing.
  bool OnlyTheKernelAsksForPlace() const {
    return std::all_of(reached_.begin(), reached_.end(), [&](const Function* function) {
      if (function != reached_.front() && Asks(*function)) return false;
      return function != reached_.front() || AsksByMovesAlone(*function);
    });
  }

 private:
  static bool IsPlace(const Operand& operand) {
    return operand.kind == OperandKind::kSpecial &&
           In(static_cast<SpecialRegister>(operand.index), SpecialRegister::kCtaidX, SpecialRegister::kNctaidZ);
  }
  static bool Asks(const Function& function) {
    return std::any_of(function.operands.begin(), function.operands.end(), IsPlace);
  }
  static bool AsksByMovesAlone(const Function& function) {
    const auto count = static_cast<size_t>(std::count_if(function.operands.begin(), function.operands.end(), IsPlace));
    size_t moves = 0;
    for (const Instruction& instruction : function.instructions) {
      if (instruction.op != "mov.u32" && instruction.op != "mov.b32" && instruction.op != "mov.s32") continue;
      if (instruction.operand_count == 2 && IsPlace(function.operands[instruction.first_operand + 1])) ++moves;
    }
    return moves == count;
  }

  std::string Directives(std::string_view name) {
    auto places = FindPlaces(*module_.text);
    if (!places.ok()) return places.status().text();
    for (const FunctionPlace& place : places->functions) {
      if (!place.entry || place.name != name || place.body == 0) continue;
      ptx::Lexer lexer(std::string_view(*module_.text).substr(place.begin, place.body - place.begin));
      while (lexer.Peek().kind != ptx::TokenKind::kEnd) {
        if (lexer.Next().text.find("cluster") != std::string_view::npos) return "it knows of clusters";
      }
    }
    return {};
  }

  void Reach(const Function& function) {
    if (seen_.insert(&function).second) reached_.push_back(&function);
  }

  void Symbol(uint32_t index) {
    if (index >= module_.names.size()) return;
    const std::string& name = module_.names[index];
    if (const auto variable = variables_.find(name); variable != variables_.end()) {
      if (IsReference(*variable->second)) why_ = "it uses a texture reference of its module";
      return;
    }
    const auto function = functions_.find(name);
    if (function == functions_.end()) {
      why_ = "it names what is not in its module's text";
    } else if (function->second->defined) {
      Reach(*function->second);
    } else if (!IsHarmless(name)) {
      why_ = "it calls what is not in its module's text";
    }
  }

  void Look(const Function& function) {
    for (const Operand& operand : function.operands) {
      if (operand.kind == OperandKind::kSymbol) Symbol(operand.index);
      if (operand.kind != OperandKind::kSpecial) continue;
      const std::string_view tells = WhatItTells(static_cast<SpecialRegister>(operand.index));
      if (!tells.empty()) why_ = tells;
    }
    for (const ptx::TargetList& list : function.target_lists) {
      for (const uint32_t name : list.names) Symbol(name);
    }
    for (const Variable& variable : function.variables) {
      for (const ptx::InitialAddress& address : variable.addresses) Symbol(address.name);
    }
    for (const Instruction& instruction : function.instructions) {
      const std::string_view op = instruction.op;
      if (op.starts_with("griddepcontrol")) why_ = "it is launched together with what comes behind it";
      if (op.find("cluster") != std::string_view::npos || op.starts_with("mapa") || op.starts_with("getctarank")) {
        why_ = "it knows of clusters";
      }
      if (IsCall(instruction) && IsIndirect(function, instruction)) why_ = "it calls functions by their addresses";
      if (TakesAddress(function, instruction)) why_ = kTakesAddress;
    }
  }

  /// Of a function: that of the copy is another one than the module's, which others may call by it.
  bool TakesAddress(const Function& function, const Instruction& instruction) const {
    for (uint32_t i = 0; i < instruction.operand_count; ++i) {
      const Operand& operand = function.operands[instruction.first_operand + i];
      if (IsCall(instruction) && operand.kind == OperandKind::kSymbol) continue;
      if (NamesFunction(function, operand)) return true;
    }
    return false;
  }
  bool NamesFunction(const Function& function, const Operand& operand) const {
    if (operand.kind == OperandKind::kSymbol) return IsFunction(operand.index);
    if (operand.first == ptx::kNone) return false;
    // An address has its base alone there. Groups do not nest deeper than a few levels: the parser sees to that.
    const uint32_t count = operand.kind == OperandKind::kAddress ? 1 : operand.count;
    for (uint32_t i = 0; i < count && operand.first + i < function.operands.size(); ++i) {
      if (NamesFunction(function, function.operands[operand.first + i])) return true;
    }
    return false;
  }
  bool IsFunction(uint32_t name) const {
    return name < module_.names.size() && functions_.contains(module_.names[name]);
  }

  /// The functions of the module that it calls by their names, once for each call.
  std::vector<const Function*> Callees(const Function& function) const {
    std::vector<const Function*> callees;
    for (const Operand& operand : function.operands) {
      if (operand.kind != OperandKind::kSymbol || !IsFunction(operand.index)) continue;
      callees.push_back(functions_.find(module_.names[operand.index])->second);
    }
    return callees;
  }

  /// Functions that call each other are a loop too. What neither calls nor is called by one of those that are left is
  /// in none; of the rest nobody may look at other blocks, nor those that they call.
  bool RecursionMayWait() const {
    std::unordered_map<const Function*, std::vector<const Function*>> callees, callers;
    for (const Function* function : reached_) {
      callees[function] = Callees(*function);
      for (const Function* callee : callees[function]) callers[callee].push_back(function);
    }
    std::unordered_set<const Function*> left(reached_.begin(), reached_.end());
    Peel(callees, callers, &left);
    Peel(callers, callees, &left);
    std::vector<const Function*> next(left.begin(), left.end());
    while (!next.empty()) {
      const Function* const function = next.back();
      next.pop_back();
      if (LooksAtOthers(*function)) return true;
      for (const Function* callee : callees[function]) {
        if (left.insert(callee).second) next.push_back(callee);
      }
    }
    return false;
  }
  using Edges = std::unordered_map<const Function*, std::vector<const Function*>>;
  /// Takes away those from whom no edge leads to another one that is left, again and again.
  static void Peel(const Edges& out, const Edges& in, std::unordered_set<const Function*>* left) {
    std::unordered_map<const Function*, size_t> edges;
    std::vector<const Function*> free;
    for (const Function* function : *left) {
      const auto at = out.find(function);
      if (at != out.end()) {
        edges[function] = static_cast<size_t>(std::count_if(
            at->second.begin(), at->second.end(), [&](const Function* each) { return left->contains(each); }));
      }
      if (edges[function] == 0) free.push_back(function);
    }
    while (!free.empty()) {
      const Function* const function = free.back();
      free.pop_back();
      left->erase(function);
      const auto at = in.find(function);
      if (at == in.end()) continue;
      for (const Function* other : at->second) {
        if (left->contains(other) && --edges[other] == 0) free.push_back(other);
      }
    }
  }

  /// call (result), %register, (arguments), prototype;
  static bool IsIndirect(const Function& function, const Instruction& call) {
    for (uint32_t i = 0; i < call.operand_count; ++i) {
      if (function.operands[call.first_operand + i].kind == OperandKind::kRegister) return true;
    }
    return false;
  }

  /// Whether a call of this within a loop may be how the loop waits.
  bool Polls(std::string_view name) {
    const auto function = functions_.find(name);
    if (function == functions_.end()) return true;
    if (!function->second->defined) return !IsHarmless(name);
    const std::vector<ptx::Instruction>& instructions = function->second->instructions;
    return LooksAtOthers(*function->second) || std::any_of(instructions.begin(), instructions.end(), IsCall);
  }

  const Module& module_;
  std::unordered_map<std::string_view, const Function*> functions_;
  std::unordered_map<std::string_view, const Variable*> variables_;
  std::unordered_set<const Function*> seen_;
  std::vector<const Function*> reached_;
  std::string why_;
};

}  // namespace

std::string WhyWhole(const Module& module, std::string_view kernel) { return Scan(module).Run(kernel); }

bool MayOffset(const Module& module, std::string_view kernel) {
  Scan scan(module);
  return scan.Run(kernel).empty() && scan.OnlyTheKernelAsksForPlace();
}

std::vector<const ptx::Function*> ReachedFrom(const Module& module, std::string_view kernel) {
  return Scan(module).Reached(kernel);
}

}  // namespace hawser::server::cuda_slicing
