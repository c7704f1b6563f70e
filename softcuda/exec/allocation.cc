// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/allocation.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>

#include "softcuda/ptx/liveness.h"

namespace hawser::exec {
namespace {

/// Bytes of one lane's value; a predicate has none of its own. Registers of one width may follow each other in a place,
/// since a handler reads a lane's value before it writes that lane's.
uint32_t WidthOf(ptx::Type type) { return type == ptx::Type::kPred ? 0 : ptx::SizeOf(type); }

uint32_t PlaceBytes(uint32_t width) { return width == 0 ? 4 : (width * 32 + 63) / 64 * 64; }

/// Handlers with several destinations write one while they still need their sources: those must not share a place.
bool HasVector(const ptx::Function& function, const ptx::Instruction& instruction) {
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const ptx::Operand& operand = function.operands[instruction.first_operand + i];
    if (operand.kind == ptx::OperandKind::kVector || operand.kind == ptx::OperandKind::kTexture ||
        operand.kind == ptx::OperandKind::kList || operand.second != ptx::kNone) {
      return true;
    }
  }
  return false;
}

std::vector<ptx::LiveInterval> Intervals(const ptx::Function& function) {
  const auto last = static_cast<uint32_t>(2 * function.instructions.size() + 2);
  auto known = ptx::LiveIntervals(function);
  std::vector<ptx::LiveInterval> intervals =
      known ? std::move(*known) : std::vector<ptx::LiveInterval>(function.registers.size(), {0, last});
  for (uint32_t i = 0; i < function.instructions.size(); ++i) {
    if (!HasVector(function, function.instructions[i])) continue;
    ptx::ForRegisters(function, function.instructions[i],
                      [&](uint32_t reg, bool, bool) { intervals[reg].end = std::max(intervals[reg].end, 2 * i + 1); });
  }
  // What is passed in registers is written and read by the calls.
  for (const auto& list : {function.results, function.parameters}) {
    for (const uint32_t place : list) {
      if ((place & ptx::Function::kRegisterFlag) != 0) intervals[place & ~ptx::Function::kRegisterFlag] = {0, last};
    }
  }
  return intervals;
}

}  // namespace

RegisterLayout LayOutRegisters(const ptx::Function& function) {
  RegisterLayout layout;
  layout.offset.assign(function.registers.size(), 0);
  const std::vector<ptx::LiveInterval> intervals = Intervals(function);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < intervals.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return intervals[a].begin != intervals[b].begin ? intervals[a].begin < intervals[b].begin : a < b;
  });

  // Linear scan, for each width on its own: a place of one width never becomes part of another.
  struct Width {
    std::vector<uint32_t> free;
    uint32_t places = 0;
  };
  using Ending = std::pair<uint32_t, uint32_t>;  // Position, register.
  std::map<uint32_t, Width> widths;
  std::vector<uint32_t> place(function.registers.size(), 0);
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ending;
  uint32_t live = 0;
  const auto words = [&](uint32_t reg) {
    const ptx::Type type = function.registers[reg].type;
    return type == ptx::Type::kPred ? 0 : (ptx::SizeOf(type) + 3) / 4;
  };
  for (const uint32_t reg : order) {
    if (!intervals[reg].used()) continue;  // Never mentioned: any place will do, and the first always exists.
    while (!ending.empty() && ending.top().first < intervals[reg].begin) {
      const uint32_t done = ending.top().second;
      ending.pop();
      widths[WidthOf(function.registers[done].type)].free.push_back(place[done]);
      live -= words(done);
    }
    Width& width = widths[WidthOf(function.registers[reg].type)];
    if (width.free.empty()) {
      place[reg] = width.places++;
    } else {
      place[reg] = width.free.back();
      width.free.pop_back();
    }
    live += words(reg);
    layout.live_words = std::max(layout.live_words, live);
    ending.emplace(intervals[reg].end, reg);
  }
  std::map<uint32_t, uint64_t> base;
  uint64_t bytes = 0;
  for (const auto& [size, width] : widths) {
    base[size] = bytes;
    bytes = (bytes + uint64_t{PlaceBytes(size)} * width.places + 63) / 64 * 64;
  }
  for (uint32_t reg = 0; reg < place.size(); ++reg) {
    const uint32_t size = WidthOf(function.registers[reg].type);
    if (!intervals[reg].used()) continue;
    layout.offset[reg] = static_cast<uint32_t>(base[size] + uint64_t{PlaceBytes(size)} * place[reg]);
  }
  layout.bytes = std::max(bytes, uint64_t{512});  // Room for a register that is declared but never used.
  return layout;
}

}  // namespace hawser::exec
