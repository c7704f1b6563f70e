// SPDX-License-Identifier: Apache-2.0
// cvt and cvt.pack (PTX ISA 9.7.9.21, 9.7.9.22): every pair of types and every rounding, one lane at a time; the usual
// pairs are lane operations.
#include <algorithm>
#include <bit>
#include <cmath>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/numeric.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

constexpr uint32_t kFlagRelu = 32;
constexpr uint32_t kFlagIntegral = 64;  ///< .rni, .rzi, .rmi, .rpi
constexpr uint32_t kFlagSatFinite = 128;
constexpr uint32_t kModeShift = 8;

Rounding ModeOf(const Insn& i) { return static_cast<Rounding>(i.flags >> kModeShift); }

int64_t Signed(uint64_t value, uint32_t size) {
  if (size >= 8) return static_cast<int64_t>(value);
  const uint32_t shift = 64 - 8 * size;
  return static_cast<int64_t>(value << shift) >> shift;
}

uint64_t Low(uint64_t value, uint32_t size) { return size >= 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1); }

/// An integer of `from` clamped to the range of `to`.
uint64_t ClampInteger(uint64_t value, Type from, Type to) {
  const uint32_t size = ptx::SizeOf(to);
  const __int128 wide = ptx::IsSigned(from) ? static_cast<__int128>(Signed(value, ptx::SizeOf(from)))
                                            : static_cast<__int128>(Low(value, ptx::SizeOf(from)));
  const __int128 one = 1;
  const __int128 high = ptx::IsSigned(to) ? (one << (8 * size - 1)) - 1 : (one << (8 * size)) - 1;
  const __int128 low = ptx::IsSigned(to) ? -(one << (8 * size - 1)) : 0;
  return static_cast<uint64_t>(std::clamp(wide, low, high));
}

/// Out of range saturates. NaN gives 0, but the top bit alone when either side has 64 bits (PTX ISA, cvt).
uint64_t ToInteger(double value, Type to, Type from, Rounding rounding) {
  const uint32_t size = ptx::SizeOf(to);
  const bool sign = ptx::IsSigned(to);
  if (std::isnan(value)) return size == 8 || from == Type::kF64 ? uint64_t{1} << (8 * size - 1) : 0;
  const double x = RoundIntegral(value, rounding);
  const auto bits = static_cast<int>(8 * size);
  if (sign) {
    const double limit = std::ldexp(1.0, bits - 1);
    if (x >= limit) return (uint64_t{1} << (bits - 1)) - 1;
    if (x < -limit) return uint64_t{0} - (uint64_t{1} << (bits - 1));
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  }
  if (x <= 0) return 0;
  if (x >= std::ldexp(1.0, bits)) return Low(~uint64_t{0}, size);
  return static_cast<uint64_t>(x);
}

double FloatValue(Type type, uint64_t bits) {
  switch (type) {
    case Type::kF16:
      return HalfToDouble(bits);
    case Type::kBf16:
      return BfloatToDouble(bits);
    case Type::kF64:
      return std::bit_cast<double>(bits);
    default:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
}

uint64_t FromFloat(const Insn& i, double value, Type to) {
  if ((i.flags & kFlagRelu) != 0 && value < 0) value = 0;
  if ((i.flags & kFlagSat) != 0) value = value > 0 ? std::min(value, 1.0) : 0;
  const bool finite = (i.flags & kFlagSatFinite) != 0;
  switch (to) {
    case Type::kF64:
      return std::bit_cast<uint64_t>(value);
    case Type::kF16:
      return ToFormat(value, kHalf, ModeOf(i), finite);
    case Type::kBf16:
      return ToFormat(value, kBfloat, ModeOf(i), finite);
    case Type::kTf32:
      return static_cast<uint64_t>(ToFormat(value, kTf32, ModeOf(i), finite)) << 13;
    default: {
      uint64_t bits = ToFormat(value, kSingle, ModeOf(i), finite);
      if ((i.flags & kFlagFtz) != 0 && (bits & 0x7f800000) == 0) bits &= 0x80000000;
      return bits;
    }
  }
}

uint64_t CvtLane(const Insn& i, uint64_t a, uint64_t, uint64_t) {
  const Type to = i.type;
  const Type from = i.type2;
  const uint32_t from_size = ptx::SizeOf(from);
  a = Low(a, from_size);
  const bool to_float = ptx::IsFloat(to);
  if (!ptx::IsFloat(from)) {
    if (!to_float) {
      uint64_t value = ptx::IsSigned(from) ? static_cast<uint64_t>(Signed(a, from_size)) : a;
      if ((i.flags & kFlagSat) != 0) value = ClampInteger(a, from, to);
      value = Low(value, ptx::SizeOf(to));
      // A wider register gets the value extended as its type says.
      return ptx::IsSigned(to) ? static_cast<uint64_t>(Signed(value, ptx::SizeOf(to))) : value;
    }
    const bool sign = ptx::IsSigned(from);
    const uint64_t wide = sign ? static_cast<uint64_t>(Signed(a, from_size)) : a;
    if (to == Type::kF64) return std::bit_cast<uint64_t>(RoundedFromInteger<double>(wide, sign, ModeOf(i)));
    if (to == Type::kF32) {
      float value = RoundedFromInteger<float>(wide, sign, ModeOf(i));
      if ((i.flags & kFlagSat) != 0) value = std::clamp(value, 0.0f, 1.0f);
      return std::bit_cast<uint32_t>(value);
    }
    // To a half: a 64-bit integer is rounded to odd first, so that there is one rounding in effect.
    const bool negative = sign && static_cast<int64_t>(wide) < 0;
    uint64_t magnitude = negative ? uint64_t{0} - wide : wide;
    const int shift = std::max(0, 64 - std::countl_zero(magnitude | 1) - 52);
    const bool sticky = (magnitude & ((uint64_t{1} << shift) - 1)) != 0;
    magnitude = (magnitude >> shift) | (sticky ? 1 : 0);
    const double value = std::ldexp(static_cast<double>(magnitude), shift);
    return FromFloat(i, negative ? -value : value, to);
  }
  double value = FloatValue(from, a);
  if ((i.flags & kFlagFtz) != 0 && (from == Type::kF32 || from == Type::kF16) && std::fabs(value) < 0x1p-126) {
    value = std::copysign(0.0, value);
  }
  if (!to_float) {
    const uint64_t bits = ToInteger(value, to, from, ModeOf(i));
    return ptx::IsSigned(to) ? static_cast<uint64_t>(Signed(Low(bits, ptx::SizeOf(to)), ptx::SizeOf(to))) : bits;
  }
  if ((i.flags & kFlagIntegral) != 0) {
    value = RoundIntegral(value, ModeOf(i));
    if (std::isnan(value)) return FromFloat(i, value, to);
    Insn exact = i;
    exact.flags &= (1u << kModeShift) - 1;
    return FromFloat(exact, value, to);
  }
  if (from == to && (i.flags & (kFlagSat | kFlagRelu | kFlagSatFinite)) == 0) {
    if (to == Type::kF32 && std::isnan(value)) return 0x7fffffff;
    if (to == Type::kF64) return a;
  }
  if (from == Type::kF64 && to == Type::kF64 && (i.flags & kFlagSat) == 0) return a;
  return FromFloat(i, value, to);
}

/// d = {a (high), b (low)} from f32 to a packed pair. type: the packed type.
uint64_t CvtPair(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  double x = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(a)));
  double y = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(b)));
  if ((i.flags & kFlagRelu) != 0) {
    x = x < 0 ? 0 : x;
    y = y < 0 ? 0 : y;
  }
  const bool eight = i.type == Type::kE4m3x2 || i.type == Type::kE5m2x2;
  const FloatFormat& format = i.type == Type::kF16x2    ? kHalf
                              : i.type == Type::kBf16x2 ? kBfloat
                              : i.type == Type::kE4m3x2 ? kE4m3
                                                        : kE5m2;
  const bool finite = eight || (i.flags & kFlagSatFinite) != 0;
  const uint64_t high = ToFormat(x, format, ModeOf(i), finite);
  const uint64_t low = ToFormat(y, format, ModeOf(i), finite);
  return low | high << (eight ? 8 : 16);
}

/// Between pairs of halves and of 8-bit floats.
uint64_t CvtEight(const Insn& i, uint64_t a, uint64_t, uint64_t) {
  const bool to_half = i.type == Type::kF16x2;
  const FloatFormat& eight = (to_half ? i.type2 : i.type) == Type::kE4m3x2 ? kE4m3 : kE5m2;
  uint64_t result = 0;
  for (uint32_t k = 0; k < 2; ++k) {
    if (to_half) {
      double value = FromFormat(static_cast<uint32_t>(a >> (8 * k) & 0xff), eight);
      if ((i.flags & kFlagRelu) != 0 && value < 0) value = 0;
      result |= static_cast<uint64_t>(ToFormat(value, kHalf, Rounding::kNearestEven)) << (16 * k);
    } else {
      double value = HalfToDouble(a >> (16 * k));
      if ((i.flags & kFlagRelu) != 0 && value < 0) value = 0;
      result |= static_cast<uint64_t>(ToFormat(value, eight, Rounding::kNearestEven, true)) << (8 * k);
    }
  }
  return result;
}

/// cvt.pack.sat: a and b saturated to type, above the upper half (or less) of c.
uint64_t PackLane(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const uint32_t bits = i.op;
  const Type to = i.type;
  const __int128 one = 1;
  const bool sign = ptx::IsSigned(to) || i.sub == 1;
  const __int128 high = sign ? (one << (bits - 1)) - 1 : (one << bits) - 1;
  const __int128 low = sign ? -(one << (bits - 1)) : 0;
  const auto clamp = [&](uint64_t value) {
    return static_cast<uint64_t>(std::clamp(static_cast<__int128>(Signed(value, 4)), low, high)) &
           ((uint64_t{1} << bits) - 1);
  };
  const uint64_t pair = clamp(a) << bits | clamp(b);
  return 2 * bits >= 32 ? pair : pair | c << (2 * bits);
}

Rounding FloatRounding(const OpText& op) {
  return op.Has("rz")    ? Rounding::kZero
         : op.Has("rm")  ? Rounding::kDown
         : op.Has("rp")  ? Rounding::kUp
         : op.Has("rna") ? Rounding::kNearestAway
                         : Rounding::kNearestEven;
}

}  // namespace

bool FunctionDecoder::Cvt(const OpText& op) {
  if (op.Has("pack")) return CvtPack(op);
  Type to = op.type(0);
  const Type from = op.type(1);
  if (ptx::SizeOf(to) == 0 || ptx::SizeOf(from) == 0 || op.type_count() != 2) return Fail("types");
  uint32_t flags = op.flags();
  if (op.Has("relu")) flags |= kFlagRelu;
  if (op.Has("satfinite")) flags |= kFlagSatFinite;
  const bool integral = op.Has("rni") || op.Has("rzi") || op.Has("rmi") || op.Has("rpi");
  Rounding mode = FloatRounding(op);
  if (integral) {
    flags |= kFlagIntegral;
    mode = op.Has("rzi")   ? Rounding::kZero
           : op.Has("rmi") ? Rounding::kDown
           : op.Has("rpi") ? Rounding::kUp
                           : Rounding::kNearestEven;
  }
  flags |= static_cast<uint32_t>(mode) << kModeShift;
  const bool pair = to == Type::kF16x2 || to == Type::kBf16x2 || to == Type::kE4m3x2 || to == Type::kE5m2x2;
  if (pair) {
    const bool eight = to == Type::kE4m3x2 || to == Type::kE5m2x2;
    Insn insn = NewInsn();
    insn.fn = ScalarHandler;
    insn.type = to;
    insn.type2 = from;
    insn.flags = flags;
    insn.wd = eight ? 2 : 4;
    const Type place = eight ? Type::kB16 : to;
    if (!Destination(operand(0), place, &insn.d)) return false;
    if (from == Type::kF32) {
      if (!Need(3) || !Source(operand(1), from, &insn.a) || !Source(operand(2), from, &insn.b)) return false;
      insn.scalar = CvtPair;
      insn.wa = insn.wb = 4;
    } else if ((eight && from == Type::kF16x2) ||
               (to == Type::kF16x2 && (from == Type::kE4m3x2 || from == Type::kE5m2x2))) {
      if (!Need(2) || !Source(operand(1), eight ? from : Type::kB16, &insn.a)) return false;
      insn.scalar = CvtEight;
      insn.wa = eight ? 4 : 2;
    } else {
      return Fail("types");
    }
    Emit(insn);
    return true;
  }
  if (!Need(2)) return false;
  Insn insn = NewInsn();
  insn.type = to;
  insn.type2 = from;
  insn.flags = flags;
  if (!Destination(operand(0), to == Type::kTf32 ? Type::kB32 : to, &insn.d, &insn.wd) ||
      !Source(operand(1), from, &insn.a, &insn.wa)) {
    return false;
  }
  // A float occupies exactly its register.
  if (ptx::IsFloat(to) && insn.wd != ptx::SizeOf(to)) return Fail("a destination wider than the float");
  insn.scalar = CvtLane;
  insn.fn = ScalarHandler;
  const bool plain =
      insn.wd == ptx::SizeOf(to) && insn.wa == ptx::SizeOf(from) && (flags & (kFlagRelu | kFlagSatFinite)) == 0;
  const bool to_float = ptx::IsFloat(to);
  const bool from_float = ptx::IsFloat(from);
  bool lane = plain;
  if (!to_float && !from_float) {
    lane = lane && !op.Has("sat");
    // Extending or truncating in place: signs follow the source, a same-size move is a move.
  } else if (to_float && !from_float) {
    lane = lane && mode == Rounding::kNearestEven;
  } else if (!to_float) {
    lane = lane && op.Has("rzi") && ptx::SizeOf(to) == 4;
    if (op.Has("sat")) lane = false;
  } else {
    lane = lane && !integral && mode == Rounding::kNearestEven && from != to && !op.Has("sat");
  }
  if (lane) {
    const Handler fn = FindLaneOp(LaneOp::kConvert, to, from, flags & (kFlagFtz | kFlagSat), Compare::kEq);
    if (fn != nullptr) insn.fn = fn;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::CvtPack(const OpText& op) {
  if (!Need(3, 4)) return false;
  Insn insn = NewInsn();
  insn.fn = ScalarHandler;
  insn.scalar = PackLane;
  insn.type = op.type(0);
  insn.op = static_cast<uint8_t>(8 * ptx::SizeOf(insn.type));
  for (size_t k = 0; k < op.count(); ++k) {
    const std::string_view part = op.modifier(k);
    if (part == "u4" || part == "s4" || part == "u2" || part == "s2") {
      insn.op = static_cast<uint8_t>(part[1] - '0');
      insn.sub = part[0] == 's' ? 1 : 0;
      insn.type = Type::kU32;
    }
  }
  if (insn.op == 0 || insn.op > 16) return Fail("type");
  insn.wd = insn.wa = insn.wb = 4;
  if (!Destination(operand(0), Type::kB32, &insn.d) || !Source(operand(1), Type::kS32, &insn.a) ||
      !Source(operand(2), Type::kS32, &insn.b)) {
    return false;
  }
  if (operands() == 4) {
    if (!Source(operand(3), Type::kB32, &insn.c)) return false;
    insn.wc = 4;
  }
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
