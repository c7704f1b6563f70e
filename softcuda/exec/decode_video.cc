// SPDX-License-Identifier: Apache-2.0
// Video instructions without byte selectors: vabsdiff4 and its kin on packed bytes and halves, vadd and its kin on
// words (PTX ISA 9.7.17).
#include <algorithm>
#include <bit>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

enum VideoOp : uint8_t { kVadd, kVsub, kVavrg, kVabsdiff, kVmin, kVmax, kVset, kVshl, kVshr };
enum Second : uint8_t { kNoSecond, kSecondAdd, kSecondMin, kSecondMax };
constexpr uint32_t kFlagASigned = 32;
constexpr uint32_t kFlagBSigned = 64;
constexpr uint32_t kFlagDSigned = 128;
constexpr uint32_t kFlagWrap = 256;
constexpr uint32_t kCompareShift = 16;

int64_t Take(uint64_t word, uint32_t at, uint32_t bits, bool sign) {
  const uint64_t raw = word >> at & ((uint64_t{1} << bits) - 1);
  return sign ? static_cast<int64_t>(raw << (64 - bits)) >> (64 - bits) : static_cast<int64_t>(raw);
}

bool Holds(Compare compare, int64_t a, int64_t b) {
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t Operate(const Insn& i, int64_t a, int64_t b, uint32_t bits) {
  switch (i.op) {
    case kVadd:
      return a + b;
    case kVsub:
      return a - b;
    case kVavrg:
      return (a + b + ((i.flags & (kFlagASigned | kFlagBSigned)) != 0 && a + b < 0 ? 0 : 1)) >> 1;
    case kVabsdiff:
      return a < b ? b - a : a - b;
    case kVmin:
      return std::min(a, b);
    case kVmax:
      return std::max(a, b);
    case kVset:
      return Holds(static_cast<Compare>(i.flags >> kCompareShift), a, b) ? 1 : 0;
    default: {
      auto by = static_cast<uint32_t>(b);
      by = (i.flags & kFlagWrap) != 0 ? by & (bits - 1) : std::min(by, bits);
      return i.op == kVshl ? a << by : a >> by;
    }
  }
}

int64_t Saturate(const Insn& i, int64_t value, uint32_t bits) {
  if ((i.flags & kFlagSat) == 0) return value;
  const bool sign = (i.flags & kFlagDSigned) != 0;
  const int64_t high = sign ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  return std::clamp(value, sign ? -(int64_t{1} << (bits - 1)) : 0, high);
}

/// sub: lanes in a word (1, 2 or 4); wc: whether there is a third operand.
uint64_t VideoLane(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const uint32_t lanes = i.sub;
  const uint32_t bits = 32 / lanes;
  const auto second = static_cast<Second>(i.imm);
  uint64_t packed = 0;
  int64_t sum = 0;
  for (uint32_t k = 0; k < lanes; ++k) {
    const int64_t x = Take(a, bits * k, bits, (i.flags & kFlagASigned) != 0);
    const int64_t y = Take(b, bits * k, bits, (i.flags & kFlagBSigned) != 0);
    const int64_t value = Saturate(i, Operate(i, x, y, bits), bits);
    sum += value;
    packed |= (static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1)) << (bits * k);
  }
  if (second == kNoSecond) return packed;
  if (lanes > 1 || second == kSecondAdd) return (lanes > 1 ? static_cast<uint64_t>(sum) : packed) + c;
  const bool sign = (i.flags & kFlagDSigned) != 0;
  const int64_t x = Take(packed, 0, 32, sign);
  const int64_t y = Take(c, 0, 32, sign);
  return static_cast<uint64_t>(second == kSecondMin ? std::min(x, y) : std::max(x, y));
}

}  // namespace

bool FunctionDecoder::Video(const OpText& op) {
  static constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"vadd", kVadd}, {"vsub", kVsub}, {"vavrg", kVavrg}, {"vabsdiff", kVabsdiff}, {"vmin", kVmin},
      {"vmax", kVmax}, {"vset", kVset}, {"vshl", kVshl},   {"vshr", kVshr}};
  std::string_view base = op.base();
  Insn insn = NewInsn();
  insn.sub = 1;
  if (base.ends_with('2') || base.ends_with('4')) {
    insn.sub = static_cast<uint8_t>(base.back() - '0');
    base.remove_suffix(1);
  }
  insn.op = 255;
  for (const auto& [name, value] : kNames) insn.op = name == base ? value : insn.op;
  if (insn.op == 255) return Fail("this video instruction");
  const bool compares = insn.op == kVset;
  if (op.type_count() < (compares ? 2u : 3u)) return Fail("types");
  const size_t a_type = compares ? 0 : 1;
  insn.flags = op.flags() & kFlagSat;
  if (!compares && ptx::IsSigned(op.type(0))) insn.flags |= kFlagDSigned;
  if (ptx::IsSigned(op.type(a_type))) insn.flags |= kFlagASigned;
  if (ptx::IsSigned(op.type(a_type + 1))) insn.flags |= kFlagBSigned;
  if (op.Has("wrap")) insn.flags |= kFlagWrap;
  if (compares) {
    const Compare compare = op.Has("eq")   ? Compare::kEq
                            : op.Has("ne") ? Compare::kNe
                            : op.Has("lt") ? Compare::kLt
                            : op.Has("le") ? Compare::kLe
                            : op.Has("gt") ? Compare::kGt
                                           : Compare::kGe;
    insn.flags |= static_cast<uint32_t>(compare) << kCompareShift;
  }
  insn.imm = op.Has("add") ? kSecondAdd : op.Has("min") ? kSecondMin : op.Has("max") ? kSecondMax : kNoSecond;
  if (!Need(3, 4)) return false;
  if (insn.imm != kNoSecond && operands() < 4) return Fail("no third operand");
  insn.fn = ScalarHandler;
  insn.scalar = VideoLane;
  insn.wd = insn.wa = insn.wb = 4;
  if (!Destination(operand(0), Type::kB32, &insn.d) || !Source(operand(1), Type::kB32, &insn.a) ||
      !Source(operand(2), Type::kB32, &insn.b)) {
    return false;
  }
  if (operands() == 4) {
    insn.wc = 4;
    if (!Source(operand(3), Type::kB32, &insn.c)) return false;
  }
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
