// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic (PTX ISA 9.7.3, 9.7.4). f32 and f64 to nearest even are lane operations; here are the other
// rounding modes, the half formats and the functions. Approximations are computed in double and rounded: closer than
// asked.
#include <bit>
#include <cmath>
#include <limits>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/numeric.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

enum FloatOp : uint8_t {
  kAddOp,
  kSubOp,
  kMulOp,
  kDivOp,
  kFmaOp,
  kMinOp,
  kMaxOp,
  kNegOp,
  kAbsOp,
  kRcpOp,
  kSqrtOp,
  kRsqrtOp,
  kSinOp,
  kCosOp,
  kLg2Op,
  kEx2Op,
  kTanhOp,
  kCopysignOp,
};
constexpr uint32_t kFlagRelu = 32;
constexpr uint32_t kFlagXorSign = 64;  ///< min.xorsign.abs
constexpr uint32_t kFlagApprox = 128;
constexpr uint32_t kModeShift = 8;  ///< Rounding in the flags above this bit.

Rounding ModeOf(const Insn& i) { return static_cast<Rounding>(i.flags >> kModeShift); }

uint32_t ModeFlags(const OpText& op) {
  const Rounding mode = op.Has("rz")   ? Rounding::kZero
                        : op.Has("rm") ? Rounding::kDown
                        : op.Has("rp") ? Rounding::kUp
                                       : Rounding::kNearestEven;
  return static_cast<uint32_t>(mode) << kModeShift;
}

float Single(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double Double(uint64_t bits) { return std::bit_cast<double>(bits); }

float Flush(const Insn& i, float x) {
  return (i.flags & kFlagFtz) != 0 && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

uint64_t FinishSingle(const Insn& i, float x) {
  x = Flush(i, x);
  if ((i.flags & kFlagSat) != 0) x = x > 0 ? (x < 1 ? x : 1) : 0;
  if (std::isnan(x)) return 0x7fffffff;
  return std::bit_cast<uint32_t>(x);
}

/// min and max of PTX: NaN loses (or wins with .NaN), -0 < +0.
double MinMaxOf(const Insn& i, double a, double b) {
  bool negative = false;
  if ((i.flags & kFlagXorSign) != 0) {
    negative = std::signbit(a) != std::signbit(b);
    a = std::fabs(a);
    b = std::fabs(b);
  }
  double result = 0;
  if (std::isnan(a) || std::isnan(b)) {
    if ((i.flags & kFlagNan) != 0 || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<double>::quiet_NaN();
    result = std::isnan(a) ? b : a;
  } else if (a == b) {
    result = (std::signbit(a) == (i.op == kMinOp)) ? a : b;
  } else {
    result = (a < b) == (i.op == kMinOp) ? a : b;
  }
  return negative ? -result : result;
}

uint64_t SingleOp(const Insn& i, uint64_t x, uint64_t y, uint64_t z) {
  const float a = Flush(i, Single(x));
  const float b = Flush(i, Single(y));
  const float c = Flush(i, Single(z));
  const Rounding mode = ModeOf(i);
  switch (i.op) {
    case kAddOp:
      return FinishSingle(i, RoundedAdd(a, b, mode));
    case kSubOp:
      return FinishSingle(i, RoundedAdd(a, -b, mode));
    case kMulOp:
      return FinishSingle(i, RoundedMul(a, b, mode));
    case kDivOp:
      return FinishSingle(i, RoundedDiv(a, b, mode));
    case kFmaOp:
      return FinishSingle(i, RoundedFma(a, b, c, mode));
    case kMinOp:
    case kMaxOp:
      return FinishSingle(i, static_cast<float>(MinMaxOf(i, a, b)));
    case kRcpOp:
      return FinishSingle(i, RoundedDiv(1.0f, a, mode));
    case kSqrtOp:
      return FinishSingle(i, RoundedSqrt(a, mode));
    case kNegOp:
      return std::bit_cast<uint32_t>(a) ^ 0x80000000u;
    case kAbsOp:
      return std::bit_cast<uint32_t>(a) & 0x7fffffffu;
    case kRsqrtOp:
      return FinishSingle(i, static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))));
    case kSinOp:
      return FinishSingle(i, static_cast<float>(std::sin(static_cast<double>(a))));
    case kCosOp:
      return FinishSingle(i, static_cast<float>(std::cos(static_cast<double>(a))));
    case kLg2Op:
      return FinishSingle(i, static_cast<float>(std::log2(static_cast<double>(a))));
    case kEx2Op:
      return FinishSingle(i, static_cast<float>(std::exp2(static_cast<double>(a))));
    case kTanhOp:
      return FinishSingle(i, static_cast<float>(std::tanh(static_cast<double>(a))));
    default:
      return (x & 0x80000000u) | (y & 0x7fffffffu);  // copysign: the sign of a, the rest of b
  }
}

uint64_t DoubleOp(const Insn& i, uint64_t x, uint64_t y, uint64_t z) {
  const double a = Double(x);
  const double b = Double(y);
  const double c = Double(z);
  const Rounding mode = ModeOf(i);
  double result = 0;
  switch (i.op) {
    case kAddOp:
      result = RoundedAdd(a, b, mode);
      break;
    case kSubOp:
      result = RoundedAdd(a, -b, mode);
      break;
    case kMulOp:
      result = RoundedMul(a, b, mode);
      break;
    case kDivOp:
      result = RoundedDiv(a, b, mode);
      break;
    case kFmaOp:
      result = RoundedFma(a, b, c, mode);
      break;
    case kMinOp:
    case kMaxOp:
      result = MinMaxOf(i, a, b);
      break;
    case kSqrtOp:
      result = RoundedSqrt(a, mode);
      break;
    case kRcpOp:
    case kRsqrtOp:
      result = i.op == kRcpOp ? RoundedDiv(1.0, a, mode) : 1.0 / std::sqrt(a);
      if ((i.flags & kFlagApprox) != 0 && (i.flags & kFlagFtz) != 0) {
        // The .approx.ftz.f64 forms give the upper word of an approximation: subnormals are zero, the lower word is.
        const double flushed = std::fabs(a) < 0x1p-1022 ? std::copysign(0.0, a) : a;
        result = i.op == kRcpOp ? 1.0 / flushed : 1.0 / std::sqrt(flushed);
        if (std::fabs(result) < 0x1p-1022) result = std::copysign(0.0, result);
        if (std::isnan(result)) return uint64_t{0x7fffffff} << 32;
        return std::bit_cast<uint64_t>(result) & 0xffffffff00000000u;
      }
      break;
    case kCopysignOp:
      return (x & (uint64_t{1} << 63)) | (y & ~(uint64_t{1} << 63));
    default:
      break;
  }
  return std::bit_cast<uint64_t>(result);
}

/// f16 and bf16, one or two elements. type2 is the element's type.
uint64_t HalfOp(const Insn& i, uint64_t x, uint64_t y, uint64_t z) {
  const FloatFormat& format = i.type2 == Type::kF16 ? kHalf : kBfloat;
  uint64_t packed = 0;
  for (uint32_t shift = 0; shift < 8u * i.wd; shift += 16) {
    const auto xa = static_cast<uint32_t>(x >> shift & 0xffff);
    const auto ya = static_cast<uint32_t>(y >> shift & 0xffff);
    const auto za = static_cast<uint32_t>(z >> shift & 0xffff);
    const auto in = [&](uint32_t bits) {
      const double value = FromFormat(bits, format);
      const double least = std::ldexp(1.0, i.type2 == Type::kF16 ? -14 : -126);
      return (i.flags & kFlagFtz) != 0 && std::fabs(value) < least ? std::copysign(0.0, value) : value;
    };
    const double a = in(xa);
    const double b = in(ya);
    double result = 0;
    uint32_t bits = 0;
    bool done = false;
    switch (i.op) {
      case kAddOp:
        result = AddToOdd(a, b);
        break;
      case kSubOp:
        result = AddToOdd(a, -b);
        break;
      case kMulOp:
        result = a * b;
        break;
      case kFmaOp:
        result = AddToOdd(a * b, in(za));
        break;
      case kMinOp:
      case kMaxOp:
        result = MinMaxOf(i, a, b);
        break;
      case kNegOp:
        bits = (a == 0 ? (std::signbit(a) ? 0x8000u : 0u) : xa) ^ 0x8000u;
        if (xa << 17 == 0) bits = xa ^ 0x8000u;
        done = true;
        break;
      case kAbsOp:
        bits = (a == 0 ? 0 : xa) & 0x7fffu;
        done = true;
        break;
      case kTanhOp:
        result = std::tanh(a);
        break;
      case kEx2Op:
        result = std::exp2(a);
        break;
      default:
        result = std::numeric_limits<double>::quiet_NaN();
    }
    if (!done) {
      if ((i.flags & kFlagSat) != 0) result = result > 0 ? (result < 1 ? result : 1) : 0;
      if ((i.flags & kFlagRelu) != 0 && result < 0) result = 0;
      bits = ToFormat(result, format, ModeOf(i));
      if ((i.flags & kFlagFtz) != 0 && std::fabs(FromFormat(bits, format)) < 0x1p-14 && i.type2 == Type::kF16) {
        bits &= 0x8000u;
      }
    }
    packed |= static_cast<uint64_t>(bits) << shift;
  }
  return packed;
}

enum Test : uint8_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

void Testp(Warp& w, const Insn& i, uint32_t mask) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t raw = w.Read(i.a, i.wa, lane);
    const int kind = i.wa == 4 ? std::fpclassify(Single(raw)) : std::fpclassify(Double(raw));
    bool holds = false;
    switch (i.op) {
      case kFinite:
        holds = kind != FP_NAN && kind != FP_INFINITE;
        break;
      case kInfinite:
        holds = kind == FP_INFINITE;
        break;
      case kNumber:
        holds = kind != FP_NAN;
        break;
      case kNotANumber:
        holds = kind == FP_NAN;
        break;
      case kNormal:
        holds = kind == FP_NORMAL || kind == FP_ZERO;
        break;
      default:
        holds = kind == FP_SUBNORMAL;
    }
    bits |= holds ? 1u << lane : 0;
  }
  if (i.p != kNoSlot) w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (bits & mask);
}

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}

Type ElementOf(Type type) { return type == Type::kF16 || type == Type::kF16x2 ? Type::kF16 : Type::kBf16; }

ScalarFn FunctionFor(Type type) {
  if (type == Type::kF32) return SingleOp;
  if (type == Type::kF64) return DoubleOp;
  return IsHalf(type) ? HalfOp : nullptr;
}

uint32_t AllFlags(const OpText& op) {
  uint32_t flags = op.flags() | ModeFlags(op);
  if (op.Has("relu")) flags |= kFlagRelu;
  if (op.Has("xorsign")) flags |= kFlagXorSign;
  if (op.Has("approx")) flags |= kFlagApprox;
  return flags;
}

}  // namespace

bool FunctionDecoder::FloatArithmetic(const OpText& op) {
  const Type type = op.type();
  if (op.type_count() > 1) return Fail("mixed types");
  const std::string_view base = op.base();
  const uint8_t kind = base == "add" ? kAddOp : base == "sub" ? kSubOp : base == "mul" ? kMulOp : kDivOp;
  const uint32_t flags = AllFlags(op);
  if ((type == Type::kF32 || type == Type::kF64) && flags >> kModeShift == 0) {
    const LaneOp lane = kind == kAddOp               ? LaneOp::kAdd
                        : kind == kSubOp             ? LaneOp::kSub
                        : kind == kMulOp             ? LaneOp::kMul
                        : (flags & kFlagApprox) != 0 ? LaneOp::kDivApprox
                                                     : LaneOp::kDiv;
    Insn insn = NewInsn();
    insn.fn = FindLaneOp(lane, type, Type::kNone, op.flags(), Compare::kEq);
    if (!Need(3) || !Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
        !Source(operand(2), type, &insn.b)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  const ScalarFn fn = FunctionFor(type);
  if (fn == nullptr || (IsHalf(type) && kind == kDivOp)) return Fail("type");
  if (!EmitScalar(fn, type, kind, flags, 2, type, type)) return false;
  code_->insns.back().type2 = ElementOf(type);
  return true;
}

bool FunctionDecoder::Fma(const OpText& op) {
  const Type type = op.type();
  if (op.type_count() > 1) return Fail("mixed types");
  const uint32_t flags = AllFlags(op);
  if ((type == Type::kF32 || type == Type::kF64) && flags >> kModeShift == 0) {
    Insn insn = NewInsn();
    insn.fn = FindLaneOp(LaneOp::kFma, type, Type::kNone, op.flags(), Compare::kEq);
    if (!Need(4) || !Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
        !Source(operand(2), type, &insn.b) || !Source(operand(3), type, &insn.c)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  const ScalarFn fn = FunctionFor(type);
  if (fn == nullptr) return Fail("type");
  if (!EmitScalar(fn, type, kFmaOp, flags, 3, type, type)) return false;
  code_->insns.back().type2 = ElementOf(type);
  return true;
}

bool FunctionDecoder::FloatMisc(const OpText& op) {
  const Type type = op.type();
  const std::string_view base = op.base();
  if (base == "testp") {
    Insn insn = NewInsn();
    insn.fn = Testp;
    insn.op = op.Has("finite")       ? kFinite
              : op.Has("infinite")   ? kInfinite
              : op.Has("number")     ? kNumber
              : op.Has("notanumber") ? kNotANumber
              : op.Has("normal")     ? kNormal
                                     : kSubnormal;
    if (type != Type::kF32 && type != Type::kF64) return Fail("type");
    insn.wa = static_cast<uint8_t>(ptx::SizeOf(type));
    if (!Need(2) || !PredicateDestination(operand(0), &insn.p) || !Source(operand(1), type, &insn.a)) return false;
    Emit(insn);
    return true;
  }
  static constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"min", kMinOp},   {"max", kMaxOp},     {"neg", kNegOp},          {"abs", kAbsOp}, {"rcp", kRcpOp},
      {"sqrt", kSqrtOp}, {"rsqrt", kRsqrtOp}, {"sin", kSinOp},          {"cos", kCosOp}, {"lg2", kLg2Op},
      {"ex2", kEx2Op},   {"tanh", kTanhOp},   {"copysign", kCopysignOp}};
  uint8_t kind = 255;
  for (const auto& [name, value] : kNames) kind = name == base ? value : kind;
  const size_t sources = kind == kMinOp || kind == kMaxOp || kind == kCopysignOp ? 2 : 1;
  const uint32_t flags = AllFlags(op);
  if ((type == Type::kF32 || type == Type::kF64) && flags >> kModeShift == 0 && (flags & kFlagXorSign) == 0 &&
      !(type == Type::kF64 && (flags & kFlagApprox) != 0)) {
    const LaneOp lane = kind == kMinOp    ? LaneOp::kMin
                        : kind == kMaxOp  ? LaneOp::kMax
                        : kind == kNegOp  ? LaneOp::kNeg
                        : kind == kAbsOp  ? LaneOp::kAbs
                        : kind == kRcpOp  ? LaneOp::kRcp
                        : kind == kSqrtOp ? LaneOp::kSqrt
                                          : LaneOp::kPack;
    const Handler fn = lane == LaneOp::kPack ? nullptr : FindLaneOp(lane, type, Type::kNone, op.flags(), Compare::kEq);
    if (fn != nullptr) {
      Insn insn = NewInsn();
      insn.fn = fn;
      if (!Need(sources + 1) || !Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a))
        return false;
      if (sources == 2 && !Source(operand(2), type, &insn.b)) return false;
      Emit(insn);
      return true;
    }
  }
  const ScalarFn fn = FunctionFor(type);
  if (fn == nullptr || kind == 255) return Fail("type");
  if (type == Type::kF64 && (kind == kSinOp || kind == kCosOp || kind == kLg2Op || kind == kEx2Op || kind == kTanhOp)) {
    return Fail("type");
  }
  if (IsHalf(type) && kind != kMinOp && kind != kMaxOp && kind != kNegOp && kind != kAbsOp && kind != kTanhOp &&
      kind != kEx2Op) {
    return Fail("type");
  }
  if (!EmitScalar(fn, type, kind, flags, sources, type, type)) return false;
  code_->insns.back().type2 = ElementOf(type);
  return true;
}

}  // namespace hawser::exec
