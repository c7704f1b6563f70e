// SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA 9.7.13). Lanes act one after the other, in ascending order; every scope is the widest, because
// blocks run on different threads of this process.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/decoder.h"
#include "softcuda/exec/mbarrier.h"
#include "softcuda/exec/numeric.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Space;
using ptx::Type;

constexpr size_t kMaxElements = 8;  ///< Of a vector form: .v8.

enum AtomOp : uint8_t { kExch, kAdd, kInc, kDec, kMin, kMax, kAnd, kOr, kXor, kCas };

template <typename B>
B HalfCombine(const Insn& i, B x, B y) {
  const FloatFormat& format = i.type == Type::kF16 || i.type == Type::kF16x2 ? kHalf : kBfloat;
  B result = 0;
  for (uint32_t shift = 0; shift < 8 * sizeof(B); shift += 16) {
    const double a = FromFormat(static_cast<uint32_t>(x >> shift) & 0xffff, format);
    const double b = FromFormat(static_cast<uint32_t>(y >> shift) & 0xffff, format);
    double value = 0;
    if (i.op == kAdd) {
      value = AddToOdd(a, b);
    } else if (std::isnan(a) || std::isnan(b)) {
      value = std::isnan(a) ? b : a;
    } else {
      value = i.op == kMin ? std::min(a, b) : std::max(a, b);
    }
    result = static_cast<B>(result | static_cast<B>(ToFormat(value, format, Rounding::kNearestEven)) << shift);
  }
  return result;
}

float Flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// The new value at the place. B: unsigned type of the width. `flush`: subnormal numbers of .f32 count as zeros.
template <typename B>
B NewValue(const Insn& i, B old, B b, bool flush) {
  using S = std::make_signed_t<B>;
  switch (i.type) {
    case Type::kF32:
      if constexpr (sizeof(B) == 4) {
        const auto x = std::bit_cast<float>(old);
        const auto y = std::bit_cast<float>(b);
        return std::bit_cast<B>(flush ? Flush(Flush(x) + Flush(y)) : x + y);
      }
      return old;
    case Type::kF64:
      if constexpr (sizeof(B) == 8) return std::bit_cast<B>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
      return old;
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBf16:
    case Type::kBf16x2:
      return HalfCombine<B>(i, old, b);
    default:
      break;
  }
  switch (i.op) {
    case kAdd:
      return static_cast<B>(old + b);
    case kInc:
      return old >= b ? 0 : static_cast<B>(old + 1);
    case kDec:
      return old == 0 || old > b ? b : static_cast<B>(old - 1);
    case kMin:
      return ptx::IsSigned(i.type) ? static_cast<B>(std::min(static_cast<S>(old), static_cast<S>(b)))
                                   : std::min(old, b);
    case kMax:
      return ptx::IsSigned(i.type) ? static_cast<B>(std::max(static_cast<S>(old), static_cast<S>(b)))
                                   : std::max(old, b);
    case kAnd:
      return old & b;
    case kOr:
      return old | b;
    case kXor:
      return old ^ b;
    default:
      return b;
  }
}

template <typename B>
B AtomicValue(const Insn& i, char* place, B b, B c, bool flush) {
  auto* at = reinterpret_cast<B*>(place);
  if (i.op == kCas) {
    __atomic_compare_exchange_n(at, &b, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return b;
  }
  if (i.op == kExch) return __atomic_exchange_n(at, b, __ATOMIC_SEQ_CST);
  if (i.op == kAdd && !ptx::IsFloat(i.type)) return __atomic_fetch_add(at, b, __ATOMIC_SEQ_CST);
  B old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(at, &old, NewValue<B>(i, old, b, flush), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

char* PlaceOf(Warp& w, const Insn& i, uint32_t lane, uint32_t size) {
  const uint64_t address = w.ReadAddress(i.a, i.wa, lane, i.imm);
  if (i.space == Space::kNone && address - Windows::Local() < Windows::kSize &&
      !w.launch().config->device.local_atomics) {
    w.Raise(i, Fault::Kind::kInvalidAddressSpace, lane, address, size, true, "an atomic operation on local memory");
    return nullptr;
  }
  if (i.space != Space::kShared) {
    const SiteCache& cache = w.sites[i.site];
    if (cache.writable && address >= cache.begin && address < cache.end && cache.end - address >= size &&
        (address & (size - 1)) == 0) {
      return reinterpret_cast<char*>(address);
    }
  }
  return w.Resolve(i, i.space, address, size, true, lane);
}

bool InShared(const Warp& w, const char* place) { return w.block().cluster.BaseOf(place) != nullptr; }

template <typename B>
void AtomHandler(Warp& w, const Insn& i, uint32_t mask) {
  if (i.op == kCas || i.op == kExch) {
    w.SawStrong();
  } else {
    w.SawAtomic();
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    char* place = PlaceOf(w, i, lane, sizeof(B) * i.count);
    if (place == nullptr) return;
    // Global memory adds .f32 without subnormal numbers, shared memory with them; where a generic address lies decides.
    const bool flush = i.type == Type::kF32 && !InShared(w, place);
    const B c = i.op == kCas ? w.At<B>(i.c)[lane] : 0;
    std::array<B, kMaxElements> sources{};  // All before the first destination, which may be one of them.
    for (uint32_t n = 0; n < i.count; ++n) sources[n] = w.At<B>(i.count == 1 ? i.b : i.extra->more[n])[lane];
    for (uint32_t n = 0; n < i.count; ++n) {
      const B old = AtomicValue<B>(i, place + n * sizeof(B), sources[n], c, flush);
      if (i.wd == 0) continue;
      const Slot& target = i.count == 1 ? i.d : i.extra->slots[n];
      if (target.frame_mask != 0) w.At<B>(target)[lane] = old;
    }
  }
}

/// 128 bits: one lock for all, held for a copy.
void AtomWide(Warp& w, const Insn& i, uint32_t mask) {
  static std::mutex mutex;
  w.SawStrong();
  struct Wide {
    uint64_t words[2];
  };
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    char* place = PlaceOf(w, i, lane, 16);
    if (place == nullptr) return;
    const Wide b = w.At<Wide>(i.b)[lane];
    const std::lock_guard lock(mutex);
    Wide old;
    std::memcpy(&old, place, 16);
    if (i.op == kExch) {
      std::memcpy(place, &b, 16);
    } else if (std::memcmp(&old, &b, 16) == 0) {
      std::memcpy(place, &w.At<Wide>(i.c)[lane], 16);
    }
    w.At<Wide>(i.d)[lane] = old;
  }
}

/// cp.reduce.async.bulk: every element on its own. imm and target are offsets, op the spaces; so the operation is q.
template <typename B>
void BulkReduce(Warp& w, const Insn& i, uint32_t mask) {
  Insn each = i;  // As an atomic operation of one element.
  each.op = static_cast<uint8_t>(i.q);
  const bool flush = i.type == Type::kF32 && i.op == kBulkToGlobal;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const auto bulk = ResolveBulk(w, i, lane);
    if (!bulk) return;
    for (uint32_t at = 0; at < bulk->size; at += sizeof(B)) {
      B value = 0;
      std::memcpy(&value, bulk->from + at, sizeof(B));
      AtomicValue<B>(each, bulk->to + at, value, 0, flush);
    }
    if (i.sub == 1 && !CompleteTransaction(w, i, lane, bulk->size)) return;
  }
}

bool Allowed(uint8_t op, Type type) {
  const uint32_t size = ptx::SizeOf(type);
  if (ptx::IsFloat(type)) {
    if (op == kAdd) return true;
    return (op == kMin || op == kMax) && size <= 4 && type != Type::kF32;
  }
  if (op == kExch) return size >= 4 && size <= 16;
  if (op == kCas) return size >= 2 && size <= 16;
  return size == 4 || size == 8;
}

uint8_t OperationOf(const OpText& op) {
  static constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"exch", kExch}, {"add", kAdd}, {"inc", kInc}, {"dec", kDec}, {"min", kMin},
      {"max", kMax},   {"and", kAnd}, {"or", kOr},   {"xor", kXor}, {"cas", kCas}};
  uint8_t found = 255;
  for (const auto& [name, value] : kNames) found = op.Has(name) ? value : found;
  return found;
}

}  // namespace

bool FunctionDecoder::BulkReduction(const OpText& op, Insn* insn) {
  const uint8_t operation = OperationOf(op);
  insn->q = operation;
  insn->type = op.type();
  const uint32_t size = ptx::SizeOf(insn->type);
  if (operation == 255 || operation == kExch || operation == kCas || size < 2 || !Allowed(operation, insn->type)) {
    return Fail("this reduction");
  }
  insn->fn = size == 8 ? BulkReduce<uint64_t> : size == 4 ? BulkReduce<uint32_t> : BulkReduce<uint16_t>;
  return true;
}

bool FunctionDecoder::Atom(const OpText& op) {
  const bool red = op.base() == "red";
  Insn insn = NewInsn();
  insn.op = OperationOf(op);
  const bool async = op.Has("async");
  if (insn.op == 255 || (async && (!red || operands() != 3 || !op.Has("mbarrier::complete_tx::bytes")))) {
    return Fail("this operation");
  }
  insn.type = op.type();
  insn.count = op.vector();
  const uint32_t size = ptx::SizeOf(insn.type);
  if (!Allowed(insn.op, insn.type)) return Fail("this operation on this type");
  size_t next = red ? 0 : 1;
  const size_t sources = insn.op == kCas ? 2 : 1;
  if (!Need(next + 1 + sources, next + 2 + sources)) return false;
  const Type value = ptx::IsFloat(insn.type) || size == 16 ? insn.type
                     : size == 2                           ? Type::kB16
                     : size == 4                           ? Type::kB32
                                                           : Type::kB64;
  if (!Address(operand(next), op.space(), &insn)) return false;
  if (insn.count > 1) {
    if (insn.op == kCas) return Fail("a vector");
    Extra& extra = MakeExtra(&insn);
    if (!red && !VectorDestinations(operand(0), value, insn.count, &extra.slots)) return false;
    if (!VectorSources(operand(next + 1), value, insn.count, &extra.more)) return false;
  } else {
    if (!red && !Destination(operand(0), value, &insn.d)) return false;
    if (!Source(operand(next + 1), value, &insn.b)) return false;
    if (sources == 2 && !Source(operand(next + 2), value, &insn.c)) return false;
  }
  insn.wd = red ? 0 : static_cast<uint8_t>(size);
  insn.site = image_->sites++;
  switch (size) {
    case 2:
      insn.fn = AtomHandler<uint16_t>;
      break;
    case 4:
      insn.fn = AtomHandler<uint32_t>;
      break;
    case 8:
      insn.fn = AtomHandler<uint64_t>;
      break;
    default:
      if (red || insn.count > 1) return Fail("type");
      insn.fn = AtomWide;
  }
  Emit(insn);
  return !async || EmitCompletion(operand(2), size * insn.count);
}

}  // namespace hawser::exec
