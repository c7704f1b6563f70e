// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/shared_layout.h"

#include <algorithm>
#include <numeric>

namespace hawser::exec {
namespace {

using ptx::OperandKind;
using ptx::Space;

/// Names of kernels, functions and variables that are followed for one program. More, and all of its kernels have all
/// of its variables.
constexpr uint64_t kMostSteps = uint64_t{1} << 24;

bool IsStatic(const ptx::Variable& variable) { return variable.space == Space::kShared && !variable.unsized; }

}  // namespace

uint32_t SharedLayout::Add(const ptx::Variable& variable) {
  variables_.push_back({&variable, 0, {}});
  return static_cast<uint32_t>(variables_.size() - 1);
}

SharedLayout::Uses SharedLayout::UsesOf(const Code& code, const std::vector<SymbolScope::Found>& names) {
  Uses uses;
  const ptx::Function& function = *code.function;
  const auto name = [&](uint32_t index) {
    const SymbolScope::Found& found = names[index];
    if (found.kind == SymbolScope::Kind::kShared && !found.dynamic) uses.variables.push_back(found.index);
    if (found.kind == SymbolScope::Kind::kFunction) uses.functions.push_back(found.index);
  };
  for (const ptx::Operand& operand : function.operands) {
    if (operand.kind == OperandKind::kSymbol && operand.index < names.size()) name(operand.index);
  }
  for (const ptx::TargetList& list : function.target_lists) {
    for (const uint32_t index : list.names) name(index);
  }
  for (const ptx::Instruction& instruction : function.instructions) {
    if (OpText(instruction.op).base() != "call") continue;
    const auto first = function.operands.begin() + instruction.first_operand;
    uses.calls_any = uses.calls_any || std::none_of(first, first + instruction.operand_count, [](const auto& operand) {
                       return operand.kind == OperandKind::kSymbol;
                     });
  }
  for (std::vector<uint32_t>* const list : {&uses.variables, &uses.functions}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return uses;
}

bool SharedLayout::FindKernels(const std::deque<Code>& codes, const std::vector<Uses>& uses) {
  std::vector<uint32_t> all;  // What a pointer may lead to.
  for (const Code& code : codes) {
    if (!code.entry) all.push_back(code.index);
  }
  std::vector<uint32_t> seen(codes.size(), UINT32_MAX), left;
  for (const Code& kernel : codes) {
    if (!kernel.entry) continue;
    bool any = false;
    const auto visit = [&](const std::vector<uint32_t>& functions) {
      steps_ += functions.size() + 1;
      for (const uint32_t index : functions) {
        // A kernel whose address is taken is launched, which is another block's affair.
        if (codes[index].entry || seen[index] == kernel.index) continue;
        seen[index] = kernel.index;
        left.push_back(index);
      }
    };
    seen[kernel.index] = kernel.index;
    left.push_back(kernel.index);
    while (!left.empty() && steps_ <= kMostSteps) {
      const Uses& of = uses[left.back()];
      left.pop_back();
      steps_ += of.variables.size();
      for (const uint32_t number : of.variables) {
        std::vector<uint32_t>& kernels = variables_[number].kernels;
        if (kernels.empty() || kernels.back() != kernel.index) kernels.push_back(kernel.index);
      }
      visit(of.functions);
      if (of.calls_any && !any) visit(all);
      any = any || of.calls_any;
    }
    if (steps_ > kMostSteps) return false;
  }
  return true;
}

std::string SharedLayout::PlaceAll(std::deque<Code>* codes) {
  // What most kernels have comes first, so that those that have nothing else have no gap before it.
  std::vector<uint32_t> order(variables_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [this](uint32_t one, uint32_t other) {
    return variables_[one].kernels.size() > variables_[other].kernels.size();
  });
  for (const uint32_t number : order) {
    Placed& placed = variables_[number];
    const ptx::Variable& variable = *placed.variable;
    uint64_t begin = 0;
    for (const uint32_t kernel : placed.kernels) begin = std::max<uint64_t>(begin, (*codes)[kernel].static_shared);
    begin = (begin + variable.alignment - 1) / variable.alignment * variable.alignment;
    if (variable.size > kMaxBytes || begin + variable.size > kMaxBytes) {
      return "the .shared variables of a kernel, '" + variable.name.substr(0, 120) +
             "' among them, need more than 64 MiB";
    }
    placed.offset = begin;
    for (const uint32_t kernel : placed.kernels) {
      (*codes)[kernel].static_shared = static_cast<uint32_t>(begin + variable.size);
    }
  }
  return {};
}

std::string SharedLayout::Place(std::deque<Code>* codes, const SymbolScope& scope) {
  std::vector<std::pair<uint32_t, uint32_t>> inside;  // Of each code, in order: which of its variables; its number.
  std::vector<size_t> first_inside;
  for (const Code& code : *codes) {
    first_inside.push_back(inside.size());
    const auto& variables = code.function->variables;
    for (uint32_t i = 0; i < variables.size(); ++i) {
      if (IsStatic(variables[i])) inside.emplace_back(i, Add(variables[i]));
    }
  }
  first_inside.push_back(inside.size());
  if (variables_.empty()) return {};

  Names names;
  std::vector<Uses> uses;
  for (const Code& code : *codes) {
    const auto [module, fresh] = names.try_emplace(code.module.get());
    if (fresh) {
      for (const std::string& name : code.module->names) module->second.push_back(scope.Find(*code.module, name));
    }
    uses.push_back(UsesOf(code, module->second));
    for (size_t i = first_inside[code.index]; i < first_inside[code.index + 1]; ++i) {
      uses.back().variables.push_back(inside[i].second);
    }
  }
  if (!FindKernels(*codes, uses)) {
    // One list for all would be long as well: the first kernel stands for them, and the others get what it has.
    const auto first = std::find_if(codes->begin(), codes->end(), [](const Code& code) { return code.entry; });
    for (Placed& placed : variables_) placed.kernels.assign(1, first->index);
    if (std::string error = PlaceAll(codes); !error.empty()) return error;
    for (Code& code : *codes) code.static_shared = code.entry ? first->static_shared : 0;
  } else if (std::string error = PlaceAll(codes); !error.empty()) {
    return error;
  }
  for (Code& code : *codes) {
    if (first_inside[code.index] == first_inside[code.index + 1]) continue;
    code.shared_places.resize(code.function->variables.size());
    for (size_t i = first_inside[code.index]; i < first_inside[code.index + 1]; ++i) {
      code.shared_places[inside[i].first] = static_cast<uint32_t>(OffsetOf(inside[i].second));
    }
  }
  return {};
}

}  // namespace hawser::exec
