// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.2, 9.7.8).
#include <algorithm>
#include <bit>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

int64_t Signed(uint64_t value, uint32_t size) {
  if (size >= 8) return static_cast<int64_t>(value);
  const uint32_t shift = 64 - 8 * size;
  return static_cast<int64_t>(value << shift) >> shift;
}

uint64_t Ones(uint32_t bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

uint64_t AddSat(const Insn&, uint64_t a, uint64_t b, uint64_t) {
  return static_cast<uint64_t>(std::clamp<int64_t>(Signed(a, 4) + Signed(b, 4), INT32_MIN, INT32_MAX));
}
uint64_t SubSat(const Insn&, uint64_t a, uint64_t b, uint64_t) {
  return static_cast<uint64_t>(std::clamp<int64_t>(Signed(a, 4) - Signed(b, 4), INT32_MIN, INT32_MAX));
}
uint64_t Add16x2(const Insn&, uint64_t a, uint64_t b, uint64_t) {
  return ((a + b) & 0xffff) | (((a >> 16) + (b >> 16)) << 16);
}

uint64_t HighProduct(uint64_t a, uint64_t b, Type type) {
  const uint32_t size = ptx::SizeOf(type);
  if (ptx::IsSigned(type)) {
    const __int128 product = static_cast<__int128>(Signed(a, size)) * Signed(b, size);
    return static_cast<uint64_t>(product >> (8 * size));
  }
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product >> (8 * size));
}
uint64_t MadHi(const Insn& i, uint64_t a, uint64_t b, uint64_t c) { return HighProduct(a, b, i.type) + c; }
uint64_t MadHiSat(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const int64_t sum = Signed(HighProduct(a, b, i.type), 4) + Signed(c, 4);
  return static_cast<uint64_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}

/// 48-bit product of the low 24 bits; op 0: low 32 bits of it, 1: its bits 16 to 47.
uint64_t Product24(const Insn& i, uint64_t a, uint64_t b) {
  int64_t product = 0;
  if (ptx::IsSigned(i.type)) {
    product = (static_cast<int64_t>(a << 40) >> 40) * (static_cast<int64_t>(b << 40) >> 40);
  } else {
    product = static_cast<int64_t>((a & 0xffffff) * (b & 0xffffff));
  }
  return static_cast<uint32_t>(i.op == 1 ? product >> 16 : product);
}
uint64_t MulBits24(const Insn& i, uint64_t a, uint64_t b, uint64_t) { return Product24(i, a, b); }
uint64_t MadBits24(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  if ((i.flags & kFlagSat) == 0) return Product24(i, a, b) + c;
  const int64_t sum = Signed(Product24(i, a, b), 4) + Signed(c, 4);
  return static_cast<uint64_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}

// Division by zero has no defined value; all ones (quotient) and the dividend (remainder) are what devices give.
uint64_t DivI(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  if (b == 0) return ~uint64_t{0};
  if (!ptx::IsSigned(i.type)) return a / b;
  const int64_t x = Signed(a, i.wa);
  const int64_t y = Signed(b, i.wb);
  return y == -1 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x / y);
}
uint64_t RemI(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  if (b == 0) return a;
  if (!ptx::IsSigned(i.type)) return a % b;
  const int64_t x = Signed(a, i.wa);
  const int64_t y = Signed(b, i.wb);
  return y == -1 ? 0 : static_cast<uint64_t>(x % y);
}

/// op 0 min, 1 max; sub 1: relu.
uint64_t MinMaxI(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  if (i.type == Type::kU16x2 || i.type == Type::kS16x2) {
    uint64_t result = 0;
    for (uint32_t half = 0; half < 2; ++half) {
      const uint64_t x = a >> (16 * half) & 0xffff;
      const uint64_t y = b >> (16 * half) & 0xffff;
      const bool less = i.type == Type::kS16x2 ? Signed(x, 2) < Signed(y, 2) : x < y;
      uint64_t value = less == (i.op == 0) ? x : y;
      if (i.sub == 1 && Signed(value, 2) < 0) value = 0;
      result |= value << (16 * half);
    }
    return result;
  }
  const bool less = ptx::IsSigned(i.type) ? Signed(a, i.wa) < Signed(b, i.wb) : a < b;
  const uint64_t value = less == (i.op == 0) ? a : b;
  return i.sub == 1 && Signed(value, i.wd) < 0 ? 0 : value;
}

uint64_t Sad(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const bool less = ptx::IsSigned(i.type) ? Signed(a, i.wa) < Signed(b, i.wb) : a < b;
  return c + (less ? b - a : a - b);
}

uint64_t Popc(const Insn&, uint64_t a, uint64_t, uint64_t) { return static_cast<uint64_t>(std::popcount(a)); }
uint64_t Clz(const Insn& i, uint64_t a, uint64_t, uint64_t) {
  return static_cast<uint64_t>(std::countl_zero(a)) - (64 - 8 * i.wa);
}
/// Position of the highest bit that differs from the sign; op 1: how far it would have to be shifted left.
uint64_t Bfind(const Insn& i, uint64_t a, uint64_t, uint64_t) {
  if (ptx::IsSigned(i.type) && Signed(a, i.wa) < 0) a = ~a & Ones(8 * i.wa);
  if (a == 0) return 0xffffffff;
  const auto at = static_cast<uint64_t>(63 - std::countl_zero(a));
  return i.op == 1 ? 8 * i.wa - 1 - at : at;
}
uint64_t Brev(const Insn& i, uint64_t a, uint64_t, uint64_t) {
  uint64_t result = 0;
  for (uint32_t bit = 0; bit < 8u * i.wa; ++bit) result |= (a >> bit & 1) << (8 * i.wa - 1 - bit);
  return result;
}
uint64_t Bfe(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const uint32_t width = 8 * i.wa;
  const auto pos = static_cast<uint32_t>(b & 0xff);
  const auto length = static_cast<uint32_t>(c & 0xff);
  const bool sign = ptx::IsSigned(i.type);
  uint64_t fill = 0;
  if (sign && length != 0) {
    const uint32_t top = std::min(pos + length - 1, width - 1);
    fill = (a >> top & 1) != 0 ? ~uint64_t{0} : 0;
  }
  uint64_t value = 0;
  const uint32_t usable = pos >= width ? 0 : std::min(length, width - pos);
  if (usable > 0) value = a >> pos & Ones(usable);
  return value | (fill & ~Ones(usable));
}
uint64_t Cnot(const Insn&, uint64_t a, uint64_t, uint64_t) { return a == 0 ? 1 : 0; }
uint64_t Fns(const Insn&, uint64_t a, uint64_t b, uint64_t c) {
  const auto mask = static_cast<uint32_t>(a);
  const auto base = static_cast<uint32_t>(b);
  auto offset = static_cast<int32_t>(static_cast<uint32_t>(c));
  if (base > 31) return 0xffffffff;
  int32_t at = static_cast<int32_t>(base);
  if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xffffffff;
  const int32_t step = offset > 0 ? 1 : -1;
  int64_t count = std::abs(static_cast<int64_t>(offset));
  for (; at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) != 0 && --count == 0) return static_cast<uint64_t>(at);
  }
  return 0xffffffff;
}
/// op 0 clamp, 1 wrap: keeps `b` low bits, extended.
uint64_t Szext(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  auto n = static_cast<uint32_t>(b);
  n = i.op == 1 ? n & 31 : std::min(n, 32u);
  if (n == 0) return 0;
  const uint64_t low = a & Ones(n);
  if (!ptx::IsSigned(i.type) || (low >> (n - 1) & 1) == 0) return low;
  return low | (0xffffffff & ~Ones(n));
}
uint64_t Bmsk(const Insn& i, uint64_t a, uint64_t b, uint64_t) {
  auto pos = static_cast<uint32_t>(a);
  auto length = static_cast<uint32_t>(b);
  if (i.op == 1) {
    pos &= 31;
    length &= 31;
  } else {
    pos = std::min(pos, 32u);
    length = std::min(length, 32u);
  }
  return (Ones(length) << pos) & 0xffffffff;
}
/// op bit 0: a is signed, bit 1: b is signed.
uint64_t Dp4a(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  int64_t sum = static_cast<int64_t>(c);
  for (uint32_t k = 0; k < 4; ++k) {
    const uint64_t x = a >> (8 * k) & 0xff;
    const uint64_t y = b >> (8 * k) & 0xff;
    sum += ((i.op & 1) != 0 ? Signed(x, 1) : static_cast<int64_t>(x)) *
           ((i.op & 2) != 0 ? Signed(y, 1) : static_cast<int64_t>(y));
  }
  return static_cast<uint64_t>(sum);
}
/// sub 1: the high half of b.
uint64_t Dp2a(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  int64_t sum = static_cast<int64_t>(c);
  for (uint32_t k = 0; k < 2; ++k) {
    const uint64_t x = a >> (16 * k) & 0xffff;
    const uint64_t y = b >> (8 * (k + 2 * i.sub)) & 0xff;
    sum += ((i.op & 1) != 0 ? Signed(x, 2) : static_cast<int64_t>(x)) *
           ((i.op & 2) != 0 ? Signed(y, 1) : static_cast<int64_t>(y));
  }
  return static_cast<uint64_t>(sum);
}

void Bfi(Warp& w, const Insn& i, uint32_t mask) {  // d = a's low bits put into b
  const uint32_t width = 8 * i.wd;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t a = w.Read(i.a, i.wd, lane);
    const uint64_t b = w.Read(i.b, i.wd, lane);
    const auto pos = static_cast<uint32_t>(w.Read(i.c, 4, lane) & 0xff);
    const auto length = static_cast<uint32_t>(w.Read(i.e, 4, lane) & 0xff);
    uint64_t result = b;
    if (pos < width && length > 0) {
      const uint64_t field = Ones(std::min(length, width - pos)) << pos;
      result = (b & ~field) | ((a << pos) & field);
    }
    w.Write(i.d, i.wd, lane, result);
  }
}

uint32_t Lop3Value(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    if ((table >> k & 1) == 0) continue;
    result |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
  }
  return result;
}

void Lop3Handler(Warp& w, const Insn& i, uint32_t mask) {
  const auto table = static_cast<uint32_t>(i.imm);
  const uint32_t* a = w.At<uint32_t>(i.a);
  const uint32_t* b = w.At<uint32_t>(i.b);
  const uint32_t* c = w.At<uint32_t>(i.c);
  uint32_t* d = w.At<uint32_t>(i.d);
  uint32_t nonzero = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t value = Lop3Value(a[lane], b[lane], c[lane], table);
    nonzero |= value != 0 ? 1u << lane : 0;
    if ((mask >> lane & 1) != 0) d[lane] = value;
  }
  if (i.p == kNoSlot) return;
  const uint32_t q = w.Pred(i.r) ^ ((i.flags & kFlagNegateR) != 0 ? kAllLanes : 0);
  const uint32_t bits = i.sub == 0 ? nonzero | q : nonzero & q;
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (bits & mask);
}

enum PrmtMode : uint8_t { kPrmtDefault, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

uint64_t PrmtValue(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t bytes = (a & 0xffffffff) | (b << 32);
  const auto s = static_cast<uint32_t>(c & 3);
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    uint32_t select = 0;
    switch (i.op) {
      case kF4e:
        select = s + k;
        break;
      case kB4e:
        select = (s - k) & 7;
        break;
      case kRc8:
        select = s;
        break;
      case kEcl:
        select = std::max(s, k);
        break;
      case kEcr:
        select = std::min(s, k);
        break;
      case kRc16:
        select = 2 * (s & 1) + (k & 1);
        break;
      default:
        select = static_cast<uint32_t>(c >> (4 * k) & 0xf);
    }
    auto byte = static_cast<uint32_t>(bytes >> (8 * (select & 7)) & 0xff);
    if ((select & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * k);
  }
  return result;
}

/// op 0 left, 1 right; sub 0 clamp, 1 wrap.
uint64_t Shf(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  auto n = static_cast<uint32_t>(c);
  n = i.sub == 1 ? n & 31 : std::min(n, 32u);
  const uint64_t whole = a | (b << 32);
  return i.op == 0 ? (whole << n) >> 32 : whole >> n;
}

// Extended precision. The CC register is one bit per lane.
enum CarryOp : uint8_t { kAddC, kSubC, kMadLoC, kMadHiC };

void CarryHandler(Warp& w, const Insn& i, uint32_t mask) {
  uint32_t& carry = w.Pred(i.q);
  const bool use = (i.flags & 1) != 0;
  const bool set = (i.flags & 2) != 0;
  const uint32_t bits = 8 * i.wd;
  uint32_t next = carry;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    uint64_t a = w.Read(i.a, i.wd, lane);
    uint64_t b = w.Read(i.b, i.wd, lane);
    const uint64_t in = use ? carry >> lane & 1 : 0;
    if (i.op == kMadLoC || i.op == kMadHiC) {
      a = i.op == kMadLoC ? (a * b) & Ones(bits) : HighProduct(a, b, i.type) & Ones(bits);
      b = w.Read(i.c, i.wd, lane);
    }
    uint64_t result = 0;
    bool out = false;
    if (i.op == kSubC) {
      // The carry of a subtraction is that of a + ~b + 1: one when nothing was borrowed. Compilers mix it with addc.
      const uint64_t borrow = use ? 1 - in : 0;
      result = (a - b - borrow) & Ones(bits);
      out = static_cast<unsigned __int128>(a) >= static_cast<unsigned __int128>(b) + borrow;
    } else {
      const unsigned __int128 sum = static_cast<unsigned __int128>(a) + b + in;
      result = static_cast<uint64_t>(sum) & Ones(bits);
      out = (sum >> bits) != 0;
    }
    w.Write(i.d, i.wd, lane, result);
    next = out ? next | 1u << lane : next & ~(1u << lane);
  }
  if (set) carry = next;
}

void PredicateLogic(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t a = w.Pred(i.q);
  const uint32_t b = i.r == kNoSlot ? 0 : w.Pred(i.r);
  const uint32_t x = (i.flags & 1) != 0 ? ~a : a;
  const uint32_t y = (i.flags & 2) != 0 ? ~b : b;
  const uint32_t value = i.op == 0 ? x & y : i.op == 1 ? x | y : i.op == 2 ? x ^ y : ~x;
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (value & mask);
}

bool LaneType(Type type) { return ptx::IsInteger(type) && ptx::SizeOf(type) >= 2; }

}  // namespace

bool FunctionDecoder::AddSub(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return FloatArithmetic(op);
  if (op.Has("cc")) return Carry(op);
  const bool add = op.base() == "add";
  if (type == Type::kU16x2 || type == Type::kS16x2) {
    return add ? EmitScalar(Add16x2, type, 0, 0, 2, type, type) : Fail("type");
  }
  if (op.Has("sat")) {
    if (type != Type::kS32) return Fail("saturation of this type");
    return EmitScalar(add ? AddSat : SubSat, type, 0, 0, 2, type, type);
  }
  if (!LaneType(type) || !Need(3)) return Fail("type");
  Insn insn = NewInsn();
  insn.fn = FindLaneOp(add ? LaneOp::kAdd : LaneOp::kSub, type, Type::kNone, 0, Compare::kEq);
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Mul(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return FloatArithmetic(op);
  if (!LaneType(type) || !Need(3)) return Fail("type");
  const bool wide = op.Has("wide");
  Insn insn = NewInsn();
  const LaneOp kind = wide ? LaneOp::kMulWide : op.Has("hi") ? LaneOp::kMulHi : LaneOp::kMulLo;
  insn.fn = FindLaneOp(kind, type, Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  const Type to = !wide ? type : ptx::SizeOf(type) == 2 ? Type::kU32 : Type::kU64;
  if (!Destination(operand(0), to, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Mad(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return Fma(op);
  if (op.Has("cc") || op.base() == "madc") return Carry(op);
  if (!LaneType(type) || !Need(4)) return Fail("type");
  if (op.Has("hi")) {
    const bool sat = op.Has("sat");
    if (sat && type != Type::kS32) return Fail("saturation of this type");
    return EmitScalar(sat ? MadHiSat : MadHi, type, 0, 0, 3, type, type);
  }
  const bool wide = op.Has("wide");
  Insn insn = NewInsn();
  insn.fn = FindLaneOp(wide ? LaneOp::kMadWide : LaneOp::kMadLo, type, Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  const Type to = !wide ? type : ptx::SizeOf(type) == 2 ? Type::kU32 : Type::kU64;
  if (!Destination(operand(0), to, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b) || !Source(operand(3), to, &insn.c)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Mul24(const OpText& op) {
  const Type type = op.type();
  if (type != Type::kU32 && type != Type::kS32) return Fail("type");
  const uint8_t high = op.Has("hi") ? 1 : 0;
  if (op.base() == "mul24") return EmitScalar(MulBits24, type, high, 0, 2, type, type);
  return EmitScalar(MadBits24, type, high, op.flags(), 3, type, type);
}

bool FunctionDecoder::Carry(const OpText& op) {
  const Type type = op.type();
  if (!ptx::IsInteger(type) || ptx::SizeOf(type) < 4) return Fail("type");
  const std::string_view base = op.base();
  const bool mad = base.starts_with("mad");
  if (!Need(mad ? 4 : 3)) return false;
  Insn insn = NewInsn();
  insn.fn = CarryHandler;
  insn.type = type;
  insn.op = mad ? (op.Has("hi") ? kMadHiC : kMadLoC) : base.starts_with("sub") ? kSubC : kAddC;
  insn.flags = (base.ends_with("c") ? 1 : 0) | (op.Has("cc") ? 2 : 0);
  insn.q = carry_;
  insn.wd = static_cast<uint8_t>(ptx::SizeOf(type));
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b) || (mad && !Source(operand(3), type, &insn.c))) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::DivRem(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return FloatArithmetic(op);
  if (!LaneType(type) || ptx::IsBits(type)) return Fail("type");
  return EmitScalar(op.base() == "div" ? DivI : RemI, type, 0, 0, 2, type, type);
}

bool FunctionDecoder::MinMax(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return FloatMisc(op);
  const bool min = op.base() == "min";
  const bool relu = op.Has("relu");
  if (relu || type == Type::kU16x2 || type == Type::kS16x2) {
    if (!Need(3)) return false;
    Insn insn = NewInsn();
    insn.fn = ScalarHandler;
    insn.scalar = MinMaxI;
    insn.type = type;
    insn.op = min ? 0 : 1;
    insn.sub = relu ? 1 : 0;
    insn.wd = insn.wa = insn.wb = static_cast<uint8_t>(ptx::SizeOf(type));
    if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
        !Source(operand(2), type, &insn.b)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  if (!LaneType(type) || !Need(3)) return Fail("type");
  Insn insn = NewInsn();
  insn.fn = FindLaneOp(min ? LaneOp::kMin : LaneOp::kMax, type, Type::kNone, 0, Compare::kEq);
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b)) {
    return false;
  }
  Emit(insn);
  return insn.fn != nullptr;
}

bool FunctionDecoder::AbsNeg(const OpText& op) {
  const Type type = op.type();
  if (ptx::IsFloat(type)) return FloatMisc(op);
  if (!LaneType(type) || !Need(2)) return Fail("type");
  Insn insn = NewInsn();
  insn.fn = FindLaneOp(op.base() == "abs" ? LaneOp::kAbs : LaneOp::kNeg, type, Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::LogicPredicate(const OpText& op) {
  const std::string_view base = op.base();
  const bool unary = base == "not";
  if (!Need(unary ? 2 : 3)) return false;
  Insn insn = NewInsn();
  insn.fn = PredicateLogic;
  insn.op = base == "and" ? 0 : base == "or" ? 1 : base == "xor" ? 2 : 3;
  bool negated = false;
  if (!PredicateDestination(operand(0), &insn.p)) return false;
  if (insn.p == kNoSlot) return true;
  if (!PredicateSource(operand(1), &insn.q, &negated)) return false;
  insn.flags |= negated ? 1 : 0;
  if (!unary) {
    if (!PredicateSource(operand(2), &insn.r, &negated)) return false;
    insn.flags |= negated ? 2 : 0;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Logic(const OpText& op) {
  const Type type = op.type();
  if (type == Type::kPred) return LogicPredicate(op);
  const std::string_view base = op.base();
  if (base == "cnot") return EmitScalar(Cnot, type, 0, 0, 1, type, type);
  const bool unary = base == "not";
  if (!LaneType(type) || !Need(unary ? 2 : 3)) return Fail("type");
  Insn insn = NewInsn();
  const LaneOp kind = unary ? LaneOp::kNot : base == "and" ? LaneOp::kAnd : base == "or" ? LaneOp::kOr : LaneOp::kXor;
  insn.fn = FindLaneOp(kind, type, Type::kNone, 0, Compare::kEq);
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a)) return false;
  if (!unary && !Source(operand(2), type, &insn.b)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Shift(const OpText& op) {
  const Type type = op.type();
  if (op.base() == "shf") {
    Insn insn = NewInsn();
    if (!Need(4)) return false;
    insn.fn = ScalarHandler;
    insn.scalar = Shf;
    insn.op = op.Has("l") ? 0 : 1;
    insn.sub = op.Has("wrap") ? 1 : 0;
    insn.wd = insn.wa = insn.wb = insn.wc = 4;
    if (!Destination(operand(0), Type::kB32, &insn.d) || !Source(operand(1), Type::kB32, &insn.a) ||
        !Source(operand(2), Type::kB32, &insn.b) || !Source(operand(3), Type::kU32, &insn.c)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  if (!LaneType(type) || !Need(3)) return Fail("type");
  Insn insn = NewInsn();
  insn.fn = FindLaneOp(op.base() == "shl" ? LaneOp::kShl : LaneOp::kShr, type, Type::kNone, 0, Compare::kEq);
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), Type::kU32, &insn.b)) {
    return false;
  }
  Emit(insn);
  return insn.fn != nullptr;
}

bool FunctionDecoder::Lop3(const OpText& op) {
  const bool with_predicate = op.Has("or") || op.Has("and");
  if (!Need(with_predicate ? 6 : 5)) return false;
  Insn insn = NewInsn();
  insn.fn = Lop3Handler;
  const ptx::Operand& to = operand(0);
  if (!Destination(to, Type::kB32, &insn.d)) return false;
  if (with_predicate) {
    if (to.second == ptx::kNone) return Fail("no predicate destination");
    if (!PredicateDestination(function_.operands[to.second], &insn.p)) return false;
    bool negated = false;
    if (!PredicateSource(operand(5), &insn.r, &negated)) return false;
    insn.flags |= negated ? kFlagNegateR : 0;
    insn.sub = op.Has("or") ? 0 : 1;
  }
  if (operand(4).kind != Kind::kInteger || operand(4).value > 255) return Fail("the table is no constant up to 255");
  insn.imm = operand(4).value;
  if (!Source(operand(1), Type::kB32, &insn.a) || !Source(operand(2), Type::kB32, &insn.b) ||
      !Source(operand(3), Type::kB32, &insn.c)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Prmt(const OpText& op) {
  const uint8_t mode = op.Has("f4e")    ? kF4e
                       : op.Has("b4e")  ? kB4e
                       : op.Has("rc8")  ? kRc8
                       : op.Has("ecl")  ? kEcl
                       : op.Has("ecr")  ? kEcr
                       : op.Has("rc16") ? kRc16
                                        : kPrmtDefault;
  return EmitScalar(PrmtValue, Type::kB32, mode, 0, 3, Type::kB32, Type::kB32);
}

bool FunctionDecoder::IntegerMisc(const OpText& op) {
  const std::string_view base = op.base();
  const Type type = op.type();
  if (!ptx::IsInteger(type)) return Fail("type");
  const uint32_t size = ptx::SizeOf(type);
  const uint8_t wrap = op.Has("wrap") ? 1 : 0;
  if (base == "popc") return EmitScalar(Popc, type, 0, 0, 1, Type::kU32, type);
  if (base == "clz") return EmitScalar(Clz, type, 0, 0, 1, Type::kU32, type);
  if (base == "bfind") return EmitScalar(Bfind, type, op.Has("shiftamt") ? 1 : 0, 0, 1, Type::kU32, type);
  if (base == "brev") return EmitScalar(Brev, type, 0, 0, 1, type, type);
  if (base == "sad") return EmitScalar(Sad, type, 0, 0, 3, type, type);
  if (base == "bmsk") return EmitScalar(Bmsk, type, wrap, 0, 2, type, type);
  if (base == "szext") return EmitScalar(Szext, type, wrap, 0, 2, type, type);
  if (base == "fns") return EmitScalar(Fns, type, 0, 0, 3, type, type);
  if (base == "dp4a" || base == "dp2a") {
    if (!Need(4)) return false;
    const auto kinds = static_cast<uint8_t>((ptx::IsSigned(op.type(0)) ? 1 : 0) | (ptx::IsSigned(op.type(1)) ? 2 : 0));
    if (!EmitScalar(base == "dp4a" ? Dp4a : Dp2a, Type::kB32, kinds, 0, 3, Type::kB32, Type::kB32)) return false;
    code_->insns.back().sub = op.Has("hi") ? 1 : 0;
    return true;
  }
  if (base == "bfe") {
    if (!Need(4) || size < 4) return Fail("type");
    Insn insn = NewInsn();
    insn.fn = ScalarHandler;
    insn.scalar = Bfe;
    insn.type = type;
    insn.wd = insn.wa = static_cast<uint8_t>(size);
    insn.wb = insn.wc = 4;
    if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
        !Source(operand(2), Type::kU32, &insn.b) || !Source(operand(3), Type::kU32, &insn.c)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  if (base == "bfi") {
    if (!Need(5) || size < 4) return Fail("type");
    Insn insn = NewInsn();
    insn.fn = Bfi;
    insn.wd = static_cast<uint8_t>(size);
    if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
        !Source(operand(2), type, &insn.b) || !Source(operand(3), Type::kU32, &insn.c) ||
        !Source(operand(4), Type::kU32, &insn.e)) {
      return false;
    }
    Emit(insn);
    return true;
  }
  return Fail("unknown instruction");
}

}  // namespace hawser::exec
