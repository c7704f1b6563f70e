// SPDX-License-Identifier: Apache-2.0
// setp and set (PTX ISA 9.7.6, 9.7.7).
#include <bit>
#include <cmath>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/numeric.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

bool HoldsDouble(Compare compare, double a, double b) {
  const bool nan = std::isnan(a) || std::isnan(b);
  switch (compare) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return !nan && a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
    case Compare::kEqu:
      return nan || a == b;
    case Compare::kNeu:
      return nan || a != b;
    case Compare::kLtu:
      return nan || a < b;
    case Compare::kLeu:
      return nan || a <= b;
    case Compare::kGtu:
      return nan || a > b;
    case Compare::kGeu:
      return nan || a >= b;
    case Compare::kNum:
      return !nan;
    case Compare::kNan:
      return nan;
  }
  return false;
}

template <typename T>
bool HoldsInteger(Compare compare, T a, T b) {
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

double ValueOf(Type type, uint64_t bits, bool ftz) {
  double value = 0;
  double least = 0;
  switch (type) {
    case Type::kF32:
      value = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      least = 0x1p-126;
      break;
    case Type::kF64:
      return std::bit_cast<double>(bits);
    case Type::kF16:
    case Type::kF16x2:
      value = HalfToDouble(bits);
      least = 0x1p-14;
      break;
    default:
      value = BfloatToDouble(bits);
      least = 0x1p-126;
  }
  return ftz && std::fabs(value) < least ? std::copysign(0.0, value) : value;
}

/// The comparison of one lane; insn.op holds it.
bool HoldsLane(const Insn& i, uint64_t a, uint64_t b) {
  const auto compare = static_cast<Compare>(i.op);
  if (ptx::IsFloat(i.type)) {
    const bool ftz = (i.flags & kFlagFtz) != 0;
    return HoldsDouble(compare, ValueOf(i.type, a, ftz), ValueOf(i.type, b, ftz));
  }
  if (ptx::IsSigned(i.type)) {
    const uint32_t shift = 64 - 8 * ptx::SizeOf(i.type);
    return HoldsInteger(compare, static_cast<int64_t>(a << shift) >> shift, static_cast<int64_t>(b << shift) >> shift);
  }
  return HoldsInteger(compare, a, b);
}

uint32_t CombineWith(Warp& w, const Insn& i, uint32_t bits) {
  if (i.sub == 0) return bits;
  const uint32_t r = w.Pred(i.r) ^ ((i.flags & kFlagNegateR) != 0 ? kAllLanes : 0);
  switch (static_cast<Combine>(i.sub)) {
    case Combine::kAnd:
      return bits & r;
    case Combine::kOr:
      return bits | r;
    default:
      return bits ^ r;
  }
}

uint32_t LaneBits(Warp& w, const Insn& i, uint32_t shift) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (HoldsLane(i, w.Read(i.a, i.wa, lane) >> shift, w.Read(i.b, i.wb, lane) >> shift)) bits |= 1u << lane;
  }
  return bits;
}

void SetpHalf(Warp& w, const Insn& i, uint32_t mask) {
  const bool packed = i.type == Type::kF16x2 || i.type == Type::kBf16x2;
  const uint32_t low = LaneBits(w, i, 0);
  const uint32_t p = CombineWith(w, i, low);
  const uint32_t q = CombineWith(w, i, packed ? LaneBits(w, i, 16) : ~low);
  if (i.p != kNoSlot) w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (p & mask);
  if (i.q != kNoSlot) w.Pred(i.q) = (w.Pred(i.q) & ~mask) | (q & mask);
}

/// d = all ones (1.0 for floats) where it holds. type2 is the destination's.
void SetHandler(Warp& w, const Insn& i, uint32_t mask) {
  const bool packed = i.type == Type::kF16x2 || i.type == Type::kBf16x2;
  const uint32_t low = CombineWith(w, i, LaneBits(w, i, 0));
  const uint32_t high = packed ? CombineWith(w, i, LaneBits(w, i, 16)) : 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const bool x = (low >> lane & 1) != 0;
    const bool y = (high >> lane & 1) != 0;
    uint64_t one = 0xffffffff;
    switch (i.type2) {
      case Type::kF32:
        one = 0x3f800000;
        break;
      case Type::kF16:
      case Type::kF16x2:
        one = 0x3c00;
        break;
      case Type::kBf16:
      case Type::kBf16x2:
        one = 0x3f80;
        break;
      default:
        one = i.wd == 2 || packed ? 0xffff : 0xffffffff;
    }
    uint64_t value = x ? one : 0;
    if (packed) value |= (y ? one : 0) << 16;
    w.Write(i.d, i.wd, lane, value);
  }
}

std::optional<Compare> CompareFrom(const OpText& op, bool is_float) {
  static constexpr std::pair<std::string_view, Compare> kNames[] = {
      {"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},   {"le", Compare::kLe},
      {"gt", Compare::kGt},   {"ge", Compare::kGe},   {"lo", Compare::kLt},   {"ls", Compare::kLe},
      {"hi", Compare::kGt},   {"hs", Compare::kGe},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
      {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu}, {"geu", Compare::kGeu},
      {"num", Compare::kNum}, {"nan", Compare::kNan}};
  for (const auto& [name, compare] : kNames) {
    if (op.modifier(0) == name) {
      if (!is_float && compare > Compare::kGe) return std::nullopt;
      return compare;
    }
  }
  return std::nullopt;
}

uint8_t CombineFrom(const OpText& op) {
  const Combine combine = op.modifier(1) == "and"   ? Combine::kAnd
                          : op.modifier(1) == "or"  ? Combine::kOr
                          : op.modifier(1) == "xor" ? Combine::kXor
                                                    : Combine::kNone;
  return static_cast<uint8_t>(combine);
}

}  // namespace

bool FunctionDecoder::Setp(const OpText& op) {
  const Type type = op.type();
  const auto compare = CompareFrom(op, ptx::IsFloat(type));
  if (!compare) return Fail("this comparison");
  Insn insn = NewInsn();
  insn.type = type;
  insn.op = static_cast<uint8_t>(*compare);
  insn.sub = CombineFrom(op);
  insn.flags = op.flags() & kFlagFtz;
  insn.wa = insn.wb = static_cast<uint8_t>(ptx::SizeOf(type));
  if (!Need(insn.sub != 0 ? 4 : 3)) return false;
  const ptx::Operand& to = operand(0);
  if (!PredicateDestination(to, &insn.p)) return false;
  if (to.second != ptx::kNone && !PredicateDestination(function_.operands[to.second], &insn.q)) return false;
  if (insn.sub != 0) {
    bool negated = false;
    if (!PredicateSource(operand(3), &insn.r, &negated)) return false;
    if (negated) insn.flags |= kFlagNegateR;
  }
  if (!Source(operand(1), type, &insn.a) || !Source(operand(2), type, &insn.b)) return false;
  insn.fn = FindLaneOp(LaneOp::kSetp, type, Type::kNone, insn.flags & kFlagFtz, *compare);
  if (insn.fn == nullptr) insn.fn = SetpHalf;
  Emit(insn);
  return true;
}

bool FunctionDecoder::SetInstruction(const OpText& op) {
  const Type to = op.type(0);
  const Type type = op.type(1);
  const auto compare = CompareFrom(op, ptx::IsFloat(type));
  if (!compare || ptx::SizeOf(to) == 0 || ptx::SizeOf(type) == 0) return Fail("this comparison");
  Insn insn = NewInsn();
  insn.fn = SetHandler;
  insn.type = type;
  insn.type2 = to;
  insn.op = static_cast<uint8_t>(*compare);
  insn.sub = CombineFrom(op);
  insn.flags = op.flags() & kFlagFtz;
  insn.wa = insn.wb = static_cast<uint8_t>(ptx::SizeOf(type));
  insn.wd = static_cast<uint8_t>(ptx::SizeOf(to));
  if (!Need(insn.sub != 0 ? 4 : 3)) return false;
  if (!Destination(operand(0), to, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b)) {
    return false;
  }
  if (insn.sub != 0) {
    bool negated = false;
    if (!PredicateSource(operand(3), &insn.r, &negated)) return false;
    if (negated) insn.flags |= kFlagNegateR;
  }
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
