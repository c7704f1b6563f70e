// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of a warp (PTX ISA 9.7.14): mma.sync with the fragment layouts of the manual, ldmatrix, stmatrix,
// and wmma, whose fragments are opaque and so have a layout of our own: element e of a matrix lies with lane e /
// (elements / 32). Products are exact and sums are taken in double (in 64 bits for integers), then rounded once.
#include <algorithm>
#include <bit>
#include <cstring>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/numeric.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

constexpr uint32_t kMaxSide = 64;

/// What a matrix instruction needs, in Extra::numbers.
enum Number : size_t {
  kM,
  kN,
  kK,
  kTypeA,
  kTypeB,
  kTypeC,
  kTypeD,
  kCountA,
  kCountB,
  kCountC,
  kTrans,
  kStride,
  kSide,
  kNumbers
};

struct Matrix {
  uint32_t columns = 0;
  double values[kMaxSide * kMaxSide];
  double& At(uint32_t row, uint32_t column) { return values[row * columns + column]; }
};

double Value(Type type, uint64_t bits) {
  switch (type) {
    case Type::kF16:
      return HalfToDouble(bits);
    case Type::kBf16:
      return BfloatToDouble(bits);
    case Type::kF64:
      return std::bit_cast<double>(bits);
    case Type::kS8:
      return static_cast<int8_t>(bits);
    case Type::kU8:
      return static_cast<uint8_t>(bits);
    case Type::kE4m3:
      return FromFormat(static_cast<uint32_t>(bits), kE4m3);
    case Type::kE5m2:
      return FromFormat(static_cast<uint32_t>(bits), kE5m2);
    case Type::kS32:
      return static_cast<int32_t>(static_cast<uint32_t>(bits));
    case Type::kTf32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) & 0xffffe000u));
    default:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
}

uint64_t BitsOf(Type type, double value, bool saturate) {
  switch (type) {
    case Type::kF16:
      return ToFormat(value, kHalf, Rounding::kNearestEven);
    case Type::kF64:
      return std::bit_cast<uint64_t>(value);
    case Type::kS32: {
      const auto whole = static_cast<int64_t>(value);
      if (saturate) return static_cast<uint64_t>(std::clamp<int64_t>(whole, INT32_MIN, INT32_MAX));
      return static_cast<uint64_t>(whole);
    }
    default:
      return ToFormat(value, kSingle, Rounding::kNearestEven);
  }
}

/// Element `e` of the register file of a fragment: registers of 32 bits (64 for f64) hold 32 / bits elements.
uint64_t Element(Warp& w, const std::vector<Slot>& slots, Type type, uint32_t lane, uint32_t e) {
  const uint32_t size = ptx::SizeOf(type);
  if (size == 8) return w.At<uint64_t>(slots[e])[lane];
  const uint32_t per = 4 / size;
  const uint32_t word = w.At<uint32_t>(slots[e / per])[lane];
  return word >> (8 * size * (e % per)) & (size == 4 ? 0xffffffffu : (1u << (8 * size)) - 1);
}

void SetElement(Warp& w, const std::vector<Slot>& slots, Type type, uint32_t lane, uint32_t e, uint64_t bits) {
  const uint32_t size = ptx::SizeOf(type);
  const uint32_t per = size == 8 ? 1 : 4 / size;
  const Slot& slot = slots[e / per];
  if (slot.frame_mask == 0) return;
  if (size == 8) {
    w.At<uint64_t>(slot)[lane] = bits;
    return;
  }
  uint32_t& word = w.At<uint32_t>(slot)[lane];
  const uint32_t shift = 8 * size * (e % per);
  const uint32_t mask = (size == 4 ? 0xffffffffu : (1u << (8 * size)) - 1) << shift;
  word = (word & ~mask) | (static_cast<uint32_t>(bits) << shift & mask);
}

struct Place {
  uint32_t row = 0, column = 0;
};

/// mma: where element e of register-file order lies; `matrix` 0 a, 1 b, 2 c and d.
Place MmaPlace(uint32_t matrix, uint32_t lane, uint32_t e, uint32_t per, uint32_t m) {
  const uint32_t group = lane / 4;
  const uint32_t in = lane % 4;
  const uint32_t reg = e / per;
  const uint32_t part = e % per;
  if (matrix == 0) {
    if (m == 8) return {group, in * per + 4 * per * reg + part};
    return {group + 8 * (reg & 1), in * per + 4 * per * (reg >> 1) + part};
  }
  if (matrix == 1) return {in * per + 4 * per * reg + part, group};
  return {group + 8 * (e / 2), in * 2 + e % 2};
}

/// wmma: the same by number.
Place WmmaPlace(uint32_t lane, uint32_t e, uint32_t elements, uint32_t columns) {
  const uint32_t each = elements / kLanes;
  const uint32_t number = lane * each + e % each;
  return {number / columns, number % columns};
}

/// op 0 mma, 1 wmma.mma. Slots: extra->more holds a, b, c one after the other; extra->slots d.
void MmaHandler(Warp& w, const Insn& i, uint32_t mask) {
  const auto& n = i.extra->numbers;
  const uint32_t m = n[kM];
  const uint32_t columns = n[kN];
  const uint32_t inner = n[kK];
  static thread_local Matrix matrices[3];
  const std::array<std::array<uint32_t, 2>, 3> shape = {{{m, inner}, {inner, columns}, {m, columns}}};
  const std::array<uint32_t, 3> counts{n[kCountA], n[kCountB], n[kCountC]};
  size_t first = 0;
  for (uint32_t which = 0; which < 3; ++which) {
    const auto type = static_cast<Type>(n[kTypeA + which]);
    const std::vector<Slot> slots(i.extra->more.begin() + static_cast<std::ptrdiff_t>(first),
                                  i.extra->more.begin() + static_cast<std::ptrdiff_t>(first + counts[which]));
    first += counts[which];
    Matrix& matrix = matrices[which];
    matrix.columns = shape[which][1];
    const uint32_t size = ptx::SizeOf(type);
    const uint32_t per = size == 8 ? 1 : 4 / size;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t e = 0; e < counts[which] * per; ++e) {
        const Place at = i.op == 0 ? MmaPlace(which, lane, e, per, m)
                                   : WmmaPlace(lane, e, shape[which][0] * shape[which][1], shape[which][1]);
        if (at.row < shape[which][0] && at.column < shape[which][1]) {
          matrix.At(at.row, at.column) = Value(type, Element(w, slots, type, lane, e));
        }
      }
    }
  }
  const auto to = static_cast<Type>(n[kTypeD]);
  for (uint32_t row = 0; row < m; ++row) {
    for (uint32_t column = 0; column < columns; ++column) {
      double sum = matrices[2].At(row, column);
      for (uint32_t k = 0; k < inner; ++k) sum += matrices[0].At(row, k) * matrices[1].At(k, column);
      matrices[2].At(row, column) = sum;
    }
  }
  const uint32_t size = ptx::SizeOf(to);
  const uint32_t per = size == 8 ? 1 : 4 / size;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    for (uint32_t e = 0; e < i.extra->slots.size() * per; ++e) {
      const Place at = i.op == 0 ? MmaPlace(2, lane, e, per, m) : WmmaPlace(lane, e, m * columns, columns);
      SetElement(w, i.extra->slots, to, lane, e,
                 BitsOf(to, matrices[2].At(at.row, at.column), (i.flags & kFlagSat) != 0));
    }
  }
}

/// wmma.load and wmma.store. kSide 0 a, 1 b, 2 c or d; kTrans: column-major; sub 1: store.
void WmmaMemory(Warp& w, const Insn& i, uint32_t mask) {
  const auto& n = i.extra->numbers;
  const auto type = static_cast<Type>(n[kTypeA]);
  const uint32_t rows = n[kSide] == 1 ? n[kK] : n[kM];
  const uint32_t columns = n[kSide] == 0 ? n[kK] : n[kN];
  const uint32_t size = ptx::SizeOf(type);
  const uint32_t per = size == 8 ? 1 : 4 / size;
  const bool by_column = n[kTrans] != 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t base = w.ReadAddress(i.a, i.wa, lane, i.imm);
    const uint64_t stride = n[kStride] != 0 ? w.Read(i.b, 4, lane) : (by_column ? rows : columns);
    for (uint32_t e = 0; e < i.extra->slots.size() * per; ++e) {
      const Place at = WmmaPlace(lane, e, rows * columns, columns);
      const uint64_t offset = by_column ? at.column * stride + at.row : at.row * stride + at.column;
      char* place = w.Resolve(i, i.space, base + offset * size, size, i.sub == 1, lane);
      if (place == nullptr) return;
      uint64_t bits = 0;
      if (i.sub == 1) {
        bits = Element(w, i.extra->slots, type, lane, e);
        std::memcpy(place, &bits, size);
      } else {
        std::memcpy(&bits, place, size);
        SetElement(w, i.extra->slots, type, lane, e, bits);
      }
    }
  }
}

/// ldmatrix and (sub 1) stmatrix: 8 by 8 matrices of halves, whose rows the lanes name eight by eight.
void RowsHandler(Warp& w, const Insn& i, uint32_t mask) {
  const bool trans = i.extra->numbers[kTrans] != 0;
  const auto& slots = i.extra->slots;
  std::array<uint64_t, kLanes> rows{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) rows[lane] = w.ReadAddress(i.a, i.wa, lane, i.imm);
  for (size_t matrix = 0; matrix < slots.size(); ++matrix) {
    std::array<char*, 8> places{};
    for (uint32_t row = 0; row < 8; ++row) {
      const auto lane = static_cast<uint32_t>(8 * matrix) + row;
      places[row] = w.Resolve(i, i.space, rows[lane], 16, i.sub == 1, lane);
      if (places[row] == nullptr) return;
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (uint32_t e = 0; e < 2; ++e) {
        const uint32_t row = trans ? lane % 4 * 2 + e : lane / 4;
        const uint32_t column = trans ? lane / 4 : lane % 4 * 2 + e;
        char* place = places[row] + size_t{2} * column;
        uint16_t half = 0;
        if (i.sub == 1) {
          half = static_cast<uint16_t>(Element(w, {slots[matrix]}, Type::kF16, lane, e));
          std::memcpy(place, &half, 2);
        } else {
          std::memcpy(&half, place, 2);
          SetElement(w, {slots[matrix]}, Type::kF16, lane, e, half);
        }
      }
    }
  }
}

/// movmatrix: an 8 by 8 matrix of halves, transposed from one register of each lane to another.
void TransposeHandler(Warp& w, const Insn& i, uint32_t mask) {
  std::array<uint32_t, kLanes> from{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) from[lane] = w.At<uint32_t>(i.a)[lane];
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    uint32_t word = 0;
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t row = lane % 4 * 2 + e;  // Of the source.
      const uint32_t column = lane / 4;
      word |= (from[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff) << (16 * e);
    }
    w.At<uint32_t>(i.d)[lane] = word;
  }
}

bool ShapeFrom(const OpText& op, std::vector<uint32_t>* numbers) {
  for (size_t k = 0; k < op.count(); ++k) {
    const std::string_view part = op.modifier(k);
    const size_t n = part.find('n');
    const size_t inner = part.find('k');
    if (part.size() < 6 || part[0] != 'm' || n == std::string_view::npos || inner == std::string_view::npos ||
        inner < n)
      continue;
    const auto number = [&](size_t begin, size_t end) {
      uint32_t value = 0;
      for (size_t c = begin; c < end; ++c) {
        if (part[c] < '0' || part[c] > '9' || value > kMaxSide) return uint32_t{0};
        value = value * 10 + static_cast<uint32_t>(part[c] - '0');
      }
      return value;
    };
    (*numbers)[kM] = number(1, n);
    (*numbers)[kN] = number(n + 1, inner);
    (*numbers)[kK] = number(inner + 1, part.size());
    const auto good = [](uint32_t v) { return v >= 4 && v <= kMaxSide && v % 4 == 0; };
    return good((*numbers)[kM]) && good((*numbers)[kN]) && good((*numbers)[kK]);
  }
  return false;
}

bool Multiplies(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kTf32 || type == Type::kF64 || type == Type::kS8 ||
         type == Type::kU8 || type == Type::kE4m3 || type == Type::kE5m2;
}
/// Whether numbers of type `a` are summed up in `c`.
bool SumsIn(Type a, Type c) {
  if (a == Type::kS8 || a == Type::kU8) return c == Type::kS32;
  if (a == Type::kF64) return c == Type::kF64;
  return c == Type::kF32 || (c == Type::kF16 && (a == Type::kF16 || a == Type::kE4m3 || a == Type::kE5m2));
}
bool Accumulates(Type type) {
  return type == Type::kF16 || type == Type::kF32 || type == Type::kF64 || type == Type::kS32;
}
uint32_t RegistersFor(Type type, uint32_t elements) {
  const uint32_t bytes = elements / kLanes * ptx::SizeOf(type);
  return type == Type::kF64 ? bytes / 8 : bytes / 4;
}

}  // namespace

bool FunctionDecoder::Matrix(const OpText& op) {
  Insn insn = NewInsn();
  Extra& extra = MakeExtra(&insn);
  extra.numbers.assign(kNumbers, 0);
  auto& n = extra.numbers;
  if (!MemberMask(nullptr, &insn)) return false;
  if (op.base() == "ldmatrix" || op.base() == "stmatrix") {
    if (!op.Has("m8n8") || !op.Has("b16") || !Need(2)) return Fail("this shape");
    const bool store = op.base() == "stmatrix";
    insn.fn = RowsHandler;
    insn.sub = store ? 1 : 0;
    n[kTrans] = op.Has("trans") ? 1 : 0;
    const size_t count = op.Has("x4") ? 4 : op.Has("x2") ? 2 : 1;
    if (!Address(operand(store ? 0 : 1), Space::kShared, &insn)) return false;
    if (store ? !VectorSources(operand(1), Type::kB32, count, &extra.slots)
              : !VectorDestinations(operand(0), Type::kB32, count, &extra.slots)) {
      return false;
    }
    insn.site = image_->sites++;
    Emit(insn);
    return true;
  }
  if (op.base() == "movmatrix") {
    if (!op.Has("m8n8") || !op.Has("b16") || !op.Has("trans") || !Need(2)) return Fail("this shape");
    insn.fn = TransposeHandler;
    if (!Destination(operand(0), Type::kB32, &insn.d) || !Source(operand(1), Type::kB32, &insn.a)) return false;
    Emit(insn);
    return true;
  }
  if (!ShapeFrom(op, &n)) return Fail("this shape");
  const uint32_t elements_a = n[kM] * n[kK];
  const uint32_t elements_b = n[kK] * n[kN];
  const uint32_t elements_c = n[kM] * n[kN];
  const auto place = [](Type type) { return type == Type::kF64 ? Type::kF64 : Type::kB32; };
  if (op.base() == "wmma" && (op.Has("load") || op.Has("store"))) {
    const bool store = op.Has("store");
    const Type type = op.type(0);
    n[kSide] = op.modifier(1) == "a" ? 0 : op.modifier(1) == "b" ? 1 : 2;
    const uint32_t elements = n[kSide] == 0 ? elements_a : n[kSide] == 1 ? elements_b : elements_c;
    if (!(n[kSide] < 2 ? Multiplies(type) : Accumulates(type)) || elements % kLanes != 0) return Fail("type");
    n[kTypeA] = static_cast<uint32_t>(type);
    n[kTrans] = op.Has("col") ? 1 : 0;
    if (!Need(2, 3)) return false;
    const ptx::Operand& group = operand(store ? 1 : 0);
    // Fragments of halves hold every element twice.
    const uint32_t least = std::max(1u, RegistersFor(type, elements));
    if (group.kind != Kind::kVector || group.count < least || group.count > 16) return Fail("number of registers");
    if (!Address(operand(store ? 0 : 1), op.space(), &insn)) return false;
    if (store ? !VectorSources(group, place(type), group.count, &extra.slots)
              : !VectorDestinations(group, place(type), group.count, &extra.slots)) {
      return false;
    }
    if (operands() == 3) {
      n[kStride] = 1;
      if (!Source(operand(2), Type::kB32, &insn.b)) return false;
    }
    insn.fn = WmmaMemory;
    insn.sub = store ? 1 : 0;
    insn.site = image_->sites++;
    Emit(insn);
    return true;
  }
  const bool wmma = op.base() == "wmma";
  if (!Need(4) || op.Has("sp") || op.Has("xor") || op.Has("and")) return Fail("this form");
  Type d = op.type(0);
  Type a = op.type(1);
  Type b = op.type(2);
  Type c = op.type(3);
  if (wmma && op.type_count() == 2) {  // .dtype.ctype of halves
    c = op.type(1);
    a = b = Type::kF16;
  }
  if (!Multiplies(a) || !Multiplies(b) || !Accumulates(c) || !Accumulates(d) || ptx::SizeOf(a) != ptx::SizeOf(b)) {
    return Fail("types");
  }
  if (!SumsIn(a, c) || !SumsIn(b, c) || !SumsIn(a, d)) return Fail("types");
  if (!wmma && (n[kN] != 8 || (n[kM] != 8 && n[kM] != 16) || (n[kM] == 8 && a == Type::kF16)))
    return Fail("this shape");
  n[kTypeA] = static_cast<uint32_t>(a);
  n[kTypeB] = static_cast<uint32_t>(b);
  n[kTypeC] = static_cast<uint32_t>(c);
  n[kTypeD] = static_cast<uint32_t>(d);
  const auto sources = [&](size_t which, Type type, uint32_t elements, uint32_t* count) {
    const ptx::Operand& group = operand(which);
    *count = group.kind == Kind::kVector ? group.count : 1;
    const uint32_t least = RegistersFor(type, elements);
    if (elements % kLanes != 0 || *count < least || (!wmma && *count != least) || *count > 16)
      return Fail("number of registers");
    return VectorSources(group, place(type), *count, &extra.more);
  };
  const ptx::Operand& to = operand(0);
  const uint32_t wanted = to.kind == Kind::kVector ? to.count : 1;
  if (wanted != RegistersFor(d, elements_c)) return Fail("number of registers");
  if (!VectorDestinations(to, place(d), wanted, &extra.slots) || !sources(1, a, elements_a, &n[kCountA]) ||
      !sources(2, b, elements_b, &n[kCountB]) || !sources(3, c, elements_c, &n[kCountC])) {
    return false;
  }
  insn.fn = MmaHandler;
  insn.op = wmma ? 1 : 0;
  insn.flags = op.Has("satfinite") ? kFlagSat : 0;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
