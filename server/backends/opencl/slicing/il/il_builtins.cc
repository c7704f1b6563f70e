// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/il/il_builtins.h"

#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {
namespace {

using spv::BuiltIn;
using spv::Decoration;
using spv::Op;

bool Is(int64_t builtin, BuiltIn wanted) { return builtin == static_cast<int64_t>(wanted); }

// Says something about an id and does nothing with what it stands for.
bool IsRemark(Op opcode) {
  switch (opcode) {
    case Op::OpName:
    case Op::OpMemberName:
    case Op::OpDecorate:
    case Op::OpDecorateId:
    case Op::OpDecorateString:
    case Op::OpEntryPoint:
    case Op::OpVariable:
    case Op::OpLine:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IlBuiltins::IsAffected(int64_t builtin) {
  for (const BuiltIn affected : {BuiltIn::WorkgroupId, BuiltIn::NumWorkgroups, BuiltIn::GlobalSize,
                                 BuiltIn::GlobalOffset, BuiltIn::GlobalLinearId}) {
    if (Is(builtin, affected)) return true;
  }
  return false;
}

bool IlBuiltins::IsCarried(int64_t builtin) {
  return IsAffected(builtin) || Is(builtin, BuiltIn::GlobalInvocationId) || Is(builtin, BuiltIn::WorkDim);
}

bool IlBuiltins::ShowsGroups(int64_t builtin) {
  // All others are unknown here, or show it.
  for (const BuiltIn blind : {BuiltIn::GlobalInvocationId, BuiltIn::GlobalSize, BuiltIn::GlobalOffset,
                              BuiltIn::GlobalLinearId, BuiltIn::WorkDim}) {
    if (Is(builtin, blind)) return false;
  }
  return builtin >= 0;
}

IlBuiltins::IlBuiltins(const IlModule& module) {
  FindVariables(module);
  FindComponents(module);
  LookAtUses(module);
}

int64_t IlBuiltins::Of(uint32_t id) const {
  const auto found = builtins_.find(id);
  return found == builtins_.end() ? -1 : int64_t{found->second};
}

void IlBuiltins::FindVariables(const IlModule& module) {
  constexpr auto kBuiltIn = static_cast<uint32_t>(Decoration::BuiltIn);
  for (size_t i = 0; i < module.size(); ++i) {
    const IlInstruction instruction = module.at(i);
    const auto opcode = static_cast<Op>(instruction.opcode);
    if (opcode == Op::OpDecorate && instruction.words.size() >= 4 && instruction.words[2] == kBuiltIn) {
      builtins_[instruction.words[1]] = instruction.words[3];
    } else if (opcode == Op::OpMemberDecorate && instruction.words.size() >= 4 && instruction.words[3] == kBuiltIn) {
      unclear_ = "a built-in is a member of a structure";
    } else if (opcode == Op::OpVariable) {
      if (const int64_t builtin = Of(instruction.result); builtin >= 0) {
        variables_.emplace(static_cast<uint32_t>(builtin), instruction.result);
      }
    } else if (opcode == Op::OpFunction) {
      break;
    }
  }
  if (builtins_.size() != variables_.size()) unclear_ = "something that is no variable has the name of a built-in";
}

void IlBuiltins::FindComponents(const IlModule& module) {
  for (size_t i = 0; i < module.size(); ++i) {
    const IlInstruction instruction = module.at(i);
    const auto opcode = static_cast<Op>(instruction.opcode);
    if ((opcode == Op::OpAccessChain || opcode == Op::OpInBoundsAccessChain) && instruction.inputs.size() == 2 &&
        IsCarried(Of(instruction.inputs[0]))) {
      components_[instruction.result] = {instruction.inputs[0], instruction.inputs[1]};
    }
  }
}

void IlBuiltins::LookAtUses(const IlModule& module) {
  for (size_t i = 0; i < module.size(); ++i) {
    const IlInstruction instruction = module.at(i);
    const auto opcode = static_cast<Op>(instruction.opcode);
    if (IsRemark(opcode)) continue;
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const uint32_t id = instruction.inputs[k];
      if (components_.count(id) == 0 && !IsCarried(Of(id))) continue;
      const bool is_load = opcode == Op::OpLoad && k == 0;
      const bool is_component = k == 0 && components_.count(instruction.result) != 0;
      if (!is_load && !is_component) problem_ = "the address of a built-in is used otherwise than to load it";
    }
  }
}

}  // namespace hawser::server::slicing
