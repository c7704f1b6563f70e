// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/liveness.h"

#include <algorithm>
#include <array>
#include <bit>

#include "softcuda/ptx/flow.h"

namespace hawser::ptx {
namespace {

constexpr uint64_t kMaxBits = uint64_t{1} << 29;  // Blocks times registers that live across blocks, twice.

/// Opcodes whose first operand is nothing but a destination.
bool WritesFirst(std::string_view op) {
  static constexpr std::array<std::string_view, 66> kNames = {
      "abs",   "activemask", "add",   "addc", "and",  "bfe",   "bfi",   "bfind", "bmsk",     "brev", "clz",
      "cnot",  "copysign",   "cos",   "cvt",  "cvta", "div",   "dp2a",  "dp4a",  "ex2",      "fma",  "fns",
      "ld",    "ldu",        "lg2",   "lop3", "mad",  "mad24", "madc",  "max",   "min",      "mov",  "mul",
      "mul24", "neg",        "not",   "or",   "popc", "prmt",  "rcp",   "rem",   "rsqrt",    "sad",  "selp",
      "set",   "setp",       "shf",   "shfl", "shl",  "shr",   "sin",   "slct",  "sqrt",     "sub",  "subc",
      "szext", "tanh",       "testp", "vote", "xor",  "atom",  "match", "redux", "isspacep", "tex",  "elect"};
  return std::find(kNames.begin(), kNames.end(), op) != kNames.end();
}

using Visitor = std::function<void(uint32_t reg, bool writes, bool kills)>;

void Visit(const Function& function, const Operand& operand, bool writes, bool kills, const Visitor& f) {
  switch (operand.kind) {
    case OperandKind::kRegister:
      f(operand.index, writes, kills);
      break;
    case OperandKind::kVector:
    case OperandKind::kList:
      for (uint32_t i = 0; i < operand.count; ++i)
        Visit(function, function.operands[operand.first + i], writes, kills, f);
      break;
    case OperandKind::kAddress:
    case OperandKind::kTexture:
      for (uint32_t i = 0; i < operand.count; ++i)
        Visit(function, function.operands[operand.first + i], false, false, f);
      break;
    default:
      break;
  }
  if (operand.second != kNone) Visit(function, function.operands[operand.second], writes, kills, f);
}

}  // namespace

void ForRegisters(const Function& function, const Instruction& instruction, const Visitor& f) {
  if (instruction.predicated) f(instruction.predicate, false, false);
  const bool writes_first = WritesFirst(Opcode(instruction));
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = function.operands[instruction.first_operand + i];
    // What is not known to be a pure destination counts as read and written.
    const bool destination = i == 0 && writes_first;
    Visit(function, operand, i == 0, destination && !instruction.predicated, f);
    if (i == 0 && !(destination && !instruction.predicated)) Visit(function, operand, false, false, f);
  }
}

std::optional<std::vector<LiveInterval>> LiveIntervals(const Function& function) {
  const std::vector<BasicBlock> blocks = FlowOf(function);
  const size_t registers = function.registers.size();
  std::vector<LiveInterval> intervals(registers);
  const auto cover = [&](uint32_t reg, uint32_t position) {
    intervals[reg].begin = std::min(intervals[reg].begin, position);
    intervals[reg].end = std::max(intervals[reg].end, position);
  };
  // Registers that a block reads before it writes them live across blocks; only these need the dataflow.
  std::vector<uint32_t> number(registers, kNone);
  std::vector<uint32_t> across;
  std::vector<uint32_t> written(registers, kNone);
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
      const Visitor reads = [&](uint32_t reg, bool writes, bool) {
        if (writes) return;
        cover(reg, 2 * i);
        if (written[reg] == b || number[reg] != kNone) return;
        number[reg] = static_cast<uint32_t>(across.size());
        across.push_back(reg);
      };
      ForRegisters(function, function.instructions[i], reads);
      const Visitor kills = [&](uint32_t reg, bool writes, bool kill) {
        if (writes) cover(reg, 2 * i + 1);
        if (kill) written[reg] = b;
      };
      ForRegisters(function, function.instructions[i], kills);
    }
  }
  const size_t words = (across.size() + 63) / 64;
  if (uint64_t{words} * 64 * blocks.size() * 2 > kMaxBits) return std::nullopt;
  std::vector<uint64_t> in(words * blocks.size());
  std::vector<uint64_t> killed(words * blocks.size());
  const auto bit = [&](std::vector<uint64_t>& set, size_t block, uint32_t n) -> uint64_t& {
    return set[block * words + n / 64];
  };
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t i = blocks[b].first; i < blocks[b].end; ++i) {
      ForRegisters(function, function.instructions[i], [&](uint32_t reg, bool writes, bool) {
        const uint32_t n = number[reg];
        if (writes || n == kNone || (bit(killed, b, n) >> (n % 64) & 1) != 0) return;
        bit(in, b, n) |= uint64_t{1} << (n % 64);
      });
      ForRegisters(function, function.instructions[i], [&](uint32_t reg, bool, bool kill) {
        const uint32_t n = number[reg];
        if (kill && n != kNone) bit(killed, b, n) |= uint64_t{1} << (n % 64);
      });
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;) {
      for (const uint32_t s : blocks[b].successors) {
        for (size_t w = 0; w < words; ++w) {
          const uint64_t more = in[s * words + w] & ~killed[b * words + w] & ~in[b * words + w];
          if (more == 0) continue;
          in[b * words + w] |= more;
          changed = true;
        }
      }
    }
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto live = [&](size_t of, uint32_t position) {
      for (size_t w = 0; w < words; ++w) {
        for (uint64_t rest = in [of * words + w]; rest != 0; rest &= rest - 1) {
          cover(across[w * 64 + static_cast<size_t>(std::countr_zero(rest))], position);
        }
      }
    };
    live(b, 2 * blocks[b].first);
    for (const uint32_t s : blocks[b].successors) live(s, 2 * blocks[b].end - 1);
  }
  return intervals;
}

}  // namespace hawser::ptx
