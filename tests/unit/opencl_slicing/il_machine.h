// SPDX-License-Identifier: Apache-2.0
// Runs straight-line kernels in intermediate language, one work-item after the other, as a device would: for tests of
// what is rewritten, on machines that have no device which takes it.
#ifndef HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_MACHINE_H_
#define HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_MACHINE_H_

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/backends/opencl/slicing/il/il_builtins.h"
#include "server/backends/opencl/slicing/il/il_module.h"
#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {

/// What clEnqueueNDRangeKernel is told.
struct Grid {
  uint32_t dimensions = 1;
  uint64_t offset[3] = {0, 0, 0};
  uint64_t global[3] = {1, 1, 1};
  uint64_t local[3] = {1, 1, 1};
};

class IlMachine {
 public:
  using Value = std::vector<uint64_t>;

  explicit IlMachine(const IlModule& module) : module_(module), builtins_(module) {
    for (size_t i = 0; i < module.size(); ++i) {
      const IlInstruction instruction = module.at(i);
      const auto opcode = static_cast<spv::Op>(instruction.opcode);
      if (opcode == spv::Op::OpFunction) functions_[instruction.result] = i;
      if (opcode == spv::Op::OpEntryPoint) kernel_ = instruction.words[2];
      if (opcode == spv::Op::OpConstant) {
        uint64_t value = instruction.words[3];
        if (instruction.words.size() > 4) value |= uint64_t{instruction.words[4]} << 32;
        constants_[instruction.result] = {value};
      }
    }
  }

  /// What each work-item stored, by index; work-items in order.
  std::vector<std::map<uint64_t, uint64_t>> Launch(const Grid& grid) {
    std::vector<std::map<uint64_t, uint64_t>> all;
    for (uint64_t z = 0; z < grid.global[2]; ++z) {
      for (uint64_t y = 0; y < grid.global[1]; ++y) {
        for (uint64_t x = 0; x < grid.global[0]; ++x) {
          SetBuiltins(grid, {x, y, z});
          stored_.clear();
          Call(kernel_);
          all.push_back(stored_);
        }
      }
    }
    return all;
  }

 private:
  void SetBuiltins(const Grid& grid, const Value& at) {
    using spv::BuiltIn;
    Value id, local_id, group, groups;
    for (size_t d = 0; d < 3; ++d) {
      id.push_back(grid.offset[d] + at[d]);
      local_id.push_back(at[d] % grid.local[d]);
      group.push_back(at[d] / grid.local[d]);
      groups.push_back(grid.global[d] / grid.local[d]);
    }
    const auto triple = [](const uint64_t* values) { return Value(values, values + 3); };
    now_[BuiltIn::GlobalInvocationId] = id;
    now_[BuiltIn::LocalInvocationId] = local_id;
    now_[BuiltIn::WorkgroupId] = group;
    now_[BuiltIn::NumWorkgroups] = groups;
    now_[BuiltIn::GlobalSize] = triple(grid.global);
    now_[BuiltIn::WorkgroupSize] = triple(grid.local);
    now_[BuiltIn::GlobalOffset] = triple(grid.offset);
    now_[BuiltIn::GlobalLinearId] = {(at[2] * grid.global[1] + at[1]) * grid.global[0] + at[0]};
    now_[BuiltIn::WorkDim] = {grid.dimensions};
  }

  Value Call(uint32_t function) {
    std::map<uint32_t, Value> values = constants_;
    for (size_t i = functions_.at(function);; ++i) {
      const IlInstruction instruction = module_.at(i);
      const auto in = [&](size_t k) -> const Value& { return values[instruction.inputs[k]]; };
      const auto number = [&](size_t k) { return in(k).at(0); };
      Value& result = values[instruction.result];
      switch (static_cast<spv::Op>(instruction.opcode)) {
        case spv::Op::OpFunction:
        case spv::Op::OpFunctionParameter:
        case spv::Op::OpLabel:
          break;
        case spv::Op::OpAccessChain:
        case spv::Op::OpInBoundsAccessChain:
          result = {instruction.inputs[0], number(1)};
          break;
        case spv::Op::OpLoad:
          if (const int64_t builtin = builtins_.Of(instruction.inputs[0]); builtin >= 0) {
            result = now_.at(static_cast<spv::BuiltIn>(builtin));
          } else {
            result = {now_.at(static_cast<spv::BuiltIn>(builtins_.Of(static_cast<uint32_t>(in(0)[0])))).at(in(0)[1])};
          }
          break;
        case spv::Op::OpCompositeExtract:
          result = {in(0).at(instruction.words[4])};
          break;
        case spv::Op::OpVectorExtractDynamic:
          result = {in(0).at(number(1))};
          break;
        case spv::Op::OpCompositeConstruct:
          result = {number(0), number(1), number(2)};
          break;
        case spv::Op::OpIAdd:
          result = {number(0) + number(1)};
          break;
        case spv::Op::OpISub:
          result = {number(0) - number(1)};
          break;
        case spv::Op::OpIMul:
          result = {number(0) * number(1)};
          break;
        case spv::Op::OpShiftRightLogical:
          result = {number(0) >> number(1)};
          break;
        case spv::Op::OpBitwiseAnd:
          result = {number(0) & number(1)};
          break;
        case spv::Op::OpIEqual:
          result = {number(0) == number(1) ? 1u : 0u};
          break;
        case spv::Op::OpINotEqual:
          result = {number(0) != number(1) ? 1u : 0u};
          break;
        case spv::Op::OpLogicalAnd:
          result = {number(0) & number(1)};
          break;
        case spv::Op::OpSelect:
          result = {number(0) != 0 ? number(1) : number(2)};
          break;
        case spv::Op::OpUConvert:
          result = {number(0)};
          break;
        case spv::Op::OpInBoundsPtrAccessChain:
          result = {number(1)};
          break;
        case spv::Op::OpStore:
          stored_[number(0)] = number(1);
          break;
        case spv::Op::OpFunctionCall:
          result = Call(instruction.inputs[0]);
          break;
        case spv::Op::OpReturn:
          return {};
        case spv::Op::OpReturnValue:
          return in(0);
        default:
          throw std::runtime_error("instruction " + std::to_string(instruction.opcode));
      }
    }
  }

  const IlModule& module_;
  const IlBuiltins builtins_;
  std::map<uint32_t, size_t> functions_;
  std::map<uint32_t, Value> constants_;
  std::map<spv::BuiltIn, Value> now_;
  std::map<uint64_t, uint64_t> stored_;
  uint32_t kernel_ = 0;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_TESTS_UNIT_OPENCL_SLICING_IL_MACHINE_H_
