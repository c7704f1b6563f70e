// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/flow.h"

#include <algorithm>

namespace hawser::ptx {

std::string_view Opcode(const Instruction& instruction) { return instruction.op.substr(0, instruction.op.find('.')); }

namespace {

enum class End : uint8_t { kNone, kBranch, kIndexed, kLeave };

End EndOf(const Instruction& instruction) {
  const std::string_view op = Opcode(instruction);
  if (op == "bra") return End::kBranch;
  if (op == "brx") return End::kIndexed;
  if (op == "ret" || op == "exit") return End::kLeave;
  return End::kNone;
}

/// Instruction numbers that control may go to, other than the next.
void Targets(const Function& function, const Instruction& instruction, std::vector<uint32_t>* targets) {
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = function.operands[instruction.first_operand + i];
    if (operand.kind == OperandKind::kLabel) targets->push_back(operand.index);
    if (operand.kind != OperandKind::kTargets) continue;
    for (const uint32_t label : function.target_lists[operand.index].labels) {
      if (label != kNone) targets->push_back(label);
    }
  }
}

}  // namespace

bool GoesOn(const Instruction& instruction) { return EndOf(instruction) == End::kNone || instruction.predicated; }

std::vector<BasicBlock> FlowOf(const Function& function) {
  const auto count = static_cast<uint32_t>(function.instructions.size());
  std::vector<bool> leads(count + 1, false);
  leads[0] = true;
  std::vector<uint32_t> targets;
  for (uint32_t i = 0; i < count; ++i) {
    if (EndOf(function.instructions[i]) == End::kNone) continue;
    leads[i + 1] = true;
    Targets(function, function.instructions[i], &targets);
  }
  for (const uint32_t target : targets) leads[std::min(target, count)] = true;
  std::vector<uint32_t> block_of(count + 1, 0);
  std::vector<BasicBlock> blocks;
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i]) {
      if (!blocks.empty()) blocks.back().end = i;
      blocks.emplace_back();
      blocks.back().first = i;
    }
    block_of[i] = static_cast<uint32_t>(blocks.size() - 1);
  }
  if (blocks.empty()) return blocks;
  blocks.back().end = count;
  for (size_t b = 0; b < blocks.size(); ++b) {
    BasicBlock& block = blocks[b];
    const Instruction& last = function.instructions[block.end - 1];
    const End end = EndOf(last);
    targets.clear();
    if (end == End::kBranch || end == End::kIndexed) Targets(function, last, &targets);
    if (GoesOn(last)) targets.push_back(block.end);
    for (const uint32_t target : targets) {
      if (target < count) block.successors.push_back(block_of[target]);
    }
    std::sort(block.successors.begin(), block.successors.end());
    block.successors.erase(std::unique(block.successors.begin(), block.successors.end()), block.successors.end());
  }
  return blocks;
}

}  // namespace hawser::ptx
