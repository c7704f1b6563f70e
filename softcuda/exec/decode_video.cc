// SPDX-License-Identifier: Apache-2.0
// Video instructions: vabsdiff4 and its kin on packed bytes and halves, vadd and its kin on words or parts of them,
// vmad (PTX ISA 9.7.17).
#include <algorithm>
#include <bit>
#include <cstdint>

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
constexpr uint32_t kFlagProductNegated = 512;  // vmad
constexpr uint32_t kFlagThirdNegated = 1024;
constexpr uint32_t kFlagPlusOne = 2048;
constexpr uint32_t kCompareShift = 16;

/// Extra::numbers: codes of ptx::Part for the sources; and for the destination, of which 0 means all.
enum Number : size_t { kPartA, kPartB, kPartD, kNumbers };

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

ptx::Part PartOf(const Insn& i, Number which) {
  return ptx::Part::FromCode(static_cast<uint16_t>(i.extra->numbers[which]));
}

/// A source of an instruction on words: a byte, a half or all of it.
int64_t TakePart(uint64_t word, const ptx::Part& part, bool sign) {
  const uint32_t bits = part.count == 0 ? 32 : part.halves ? 16 : 8;
  return Take(word, part.lanes[0] * bits, bits, sign);
}

/// wc: whether there is a third operand, which a result that is a part of the destination gets its rest from.
uint64_t VideoWord(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const auto second = static_cast<Second>(i.imm);
  const ptx::Part to = PartOf(i, kPartD);
  const uint32_t bits = to.count == 0 ? 32 : to.halves ? 16 : 8;
  const int64_t x = TakePart(a, PartOf(i, kPartA), (i.flags & kFlagASigned) != 0);
  const int64_t y = TakePart(b, PartOf(i, kPartB), (i.flags & kFlagBSigned) != 0);
  const uint64_t value = static_cast<uint64_t>(Saturate(i, Operate(i, x, y, 32), bits)) & 0xffffffff;
  if (second == kSecondAdd) return value + c;
  if (second != kNoSecond) {
    const bool sign = (i.flags & kFlagDSigned) != 0;
    const int64_t one = Take(value, 0, 32, sign);
    const int64_t other = Take(c, 0, 32, sign);
    return static_cast<uint64_t>(second == kSecondMin ? std::min(one, other) : std::max(one, other));
  }
  if (to.count == 0) return value;
  const uint64_t mask = ((uint64_t{1} << bits) - 1) << (to.lanes[0] * bits);
  return (value << (to.lanes[0] * bits) & mask) | (c & ~mask);
}

/// sub: lanes in a word, 2 or 4. A source's lane comes from the lanes of both sources: of a first, then of b.
uint64_t VideoLanes(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const uint32_t lanes = i.sub;
  const uint32_t bits = 32 / lanes;
  const uint64_t all = (a & 0xffffffff) | b << 32;
  const ptx::Part from_a = PartOf(i, kPartA);
  const ptx::Part from_b = PartOf(i, kPartB);
  const ptx::Part to = PartOf(i, kPartD);
  uint32_t wanted = to.count == 0 ? 15 : 0;
  for (uint32_t k = 0; k < to.count; ++k) wanted |= 1u << to.lanes[k];
  uint64_t packed = 0;
  int64_t sum = 0;
  for (uint32_t k = 0; k < lanes; ++k) {
    const uint64_t mask = ((uint64_t{1} << bits) - 1) << (bits * k);
    if ((wanted >> k & 1) == 0) {
      packed |= c & mask;
      continue;
    }
    const uint32_t at_a = from_a.count == 0 ? k : from_a.lanes[k];
    const uint32_t at_b = from_b.count == 0 ? lanes + k : from_b.lanes[k];
    const int64_t x = Take(all, bits * at_a, bits, (i.flags & kFlagASigned) != 0);
    const int64_t y = Take(all, bits * at_b, bits, (i.flags & kFlagBSigned) != 0);
    const int64_t value = Saturate(i, Operate(i, x, y, bits), bits);
    sum += value;
    packed |= static_cast<uint64_t>(value) << (bits * k) & mask;
  }
  return static_cast<Second>(i.imm) == kNoSecond ? packed : static_cast<uint64_t>(sum) + c;
}

/// vmad: a * b + c in 128 bits, shifted by `imm` and clamped.
uint64_t VideoMadWord(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  const bool product_negated = (i.flags & kFlagProductNegated) != 0;
  const bool third_negated = (i.flags & kFlagThirdNegated) != 0;
  const bool sign =
      (i.flags & (kFlagASigned | kFlagBSigned | kFlagProductNegated | kFlagThirdNegated)) != 0;  // Of the result.
  const __int128 x = TakePart(a, PartOf(i, kPartA), (i.flags & kFlagASigned) != 0);
  const __int128 y = TakePart(b, PartOf(i, kPartB), (i.flags & kFlagBSigned) != 0);
  const __int128 product = x * y;
  const __int128 third = Take(c, 0, 32, sign);
  const __int128 all = (product_negated ? -product : product) + (third_negated ? -third : third) +
                       ((i.flags & kFlagPlusOne) != 0 ? 1 : 0);
  const __int128 scaled = all >> i.imm;
  if ((i.flags & kFlagSat) == 0) return static_cast<uint64_t>(scaled);
  const __int128 low = sign ? INT32_MIN : 0;
  const __int128 high = sign ? __int128{INT32_MAX} : __int128{UINT32_MAX};
  return static_cast<uint64_t>(std::clamp(scaled, low, high));
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
  if (insn.sub > 1 && (insn.imm == kSecondMin || insn.imm == kSecondMax)) return Fail("this second operation");
  insn.fn = ScalarHandler;
  insn.scalar = insn.sub == 1 ? VideoWord : VideoLanes;
  insn.wd = insn.wa = insn.wb = 4;
  Extra& extra = MakeExtra(&insn);
  extra.numbers.assign(kNumbers, 0);
  ptx::Part a;
  ptx::Part b;
  ptx::Operand to = operand(0);
  const ptx::Part part = ptx::Part::FromCode(to.kind == Kind::kRegister ? to.count : 0);
  to.count = to.kind == Kind::kRegister ? 0 : to.count;
  if (!Destination(to, Type::kB32, &insn.d) || !VideoSource(1, &insn.a, &a) || !VideoSource(2, &insn.b, &b)) {
    return false;
  }
  // How many lanes a source may name, and of how many.
  const auto good = [&](const ptx::Part& of, uint32_t count, uint32_t sources) {
    if (of.count == 0) return true;
    if (insn.sub > 1 && of.halves != (insn.sub == 2)) return false;
    if (count != 0 && of.count != count) return false;
    const uint32_t most = sources * (of.halves ? 2 : 4);
    return std::all_of(of.lanes.begin(), of.lanes.begin() + of.count, [most](uint8_t lane) { return lane < most; });
  };
  const uint32_t sources = insn.sub == 1 ? 1 : 2;
  if (!good(a, insn.sub, sources) || !good(b, insn.sub, sources) || !good(part, insn.sub == 1 ? 1 : 0, 1)) {
    return Fail("this part of a register");
  }
  if (part.count != 0 && (operands() < 4 || (insn.sub == 1 && insn.imm != kNoSecond))) return Fail("no third operand");
  extra.numbers = {a.code(), b.code(), part.code()};
  if (operands() == 4) {
    insn.wc = 4;
    if (!Source(operand(3), Type::kB32, &insn.c)) return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::VideoSource(size_t i, Slot* slot, ptx::Part* part, bool* negated) {
  ptx::Operand o = operand(i);
  if (o.kind == Kind::kRegister) {
    *part = ptx::Part::FromCode(o.count);
    o.count = 0;
    if (negated != nullptr) *negated = o.negated;
    if (negated != nullptr) o.negated = false;
  }
  return Source(o, Type::kB32, slot);
}

bool FunctionDecoder::VideoMad(const OpText& op) {
  if (!Need(4)) return false;
  if (op.type_count() < 3) return Fail("types");
  Insn insn = NewInsn();
  insn.fn = ScalarHandler;
  insn.scalar = VideoMadWord;
  insn.wd = insn.wa = insn.wb = insn.wc = 4;
  ptx::Part parts[3];
  bool negated[3] = {};
  if (!Destination(operand(0), Type::kB32, &insn.d) || !VideoSource(1, &insn.a, &parts[0], &negated[0]) ||
      !VideoSource(2, &insn.b, &parts[1], &negated[1]) || !VideoSource(3, &insn.c, &parts[2], &negated[2])) {
    return false;
  }
  for (const ptx::Part& part : parts) {
    if (part.count > 1 || part.lanes[0] >= (part.halves ? 2 : 4)) return Fail("this part of a register");
  }
  const bool product_negated = negated[0] != negated[1];
  if (parts[2].count != 0) return Fail("a part of the third operand");
  if ((op.Has("po") && (negated[0] || negated[1] || negated[2])) || (product_negated && negated[2])) {
    return Fail("negated operands that may not be together");
  }
  insn.flags = op.flags() & kFlagSat;
  if (ptx::IsSigned(op.type(1))) insn.flags |= kFlagASigned;
  if (ptx::IsSigned(op.type(2))) insn.flags |= kFlagBSigned;
  if (product_negated) insn.flags |= kFlagProductNegated;
  if (negated[2]) insn.flags |= kFlagThirdNegated;
  if (op.Has("po")) insn.flags |= kFlagPlusOne;
  insn.imm = op.Has("shr7") ? 7 : op.Has("shr15") ? 15 : 0;
  MakeExtra(&insn).numbers = {parts[0].code(), parts[1].code(), 0};
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
