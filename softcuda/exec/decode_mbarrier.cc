// SPDX-License-Identifier: Apache-2.0
// mbarrier objects and the bulk copies that complete them (PTX ISA 9.7.13.15, 9.7.9.25). A copy is done when its
// instruction is.
//
// The 64-bit object is opaque to programs; ours: bits 0-19 arrivals still to come, 20-39 arrivals of a phase, 40-62
// bytes still to come (biased), 63 parity of the phase. A block runs on one thread, so nothing here is atomic.
#include <algorithm>
#include <bit>
#include <cstring>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/mbarrier.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Space;

enum BarrierOp : uint8_t {
  kInit,
  kInval,
  kArrive,
  kArriveDrop,
  kExpect,
  kCompleteTx,
  kTestWait,
  kPending,
  kAsyncArrive
};
constexpr uint32_t kFlagParity = 32;
constexpr uint32_t kFlagExpect = 64;
constexpr uint64_t kCountMask = 0xfffff;
constexpr int64_t kTxBias = 1 << 22;

struct State {
  uint64_t pending = 0;
  uint64_t expected = 0;
  int64_t tx = 0;
  bool parity = false;

  static State From(uint64_t word) {
    State state;
    state.pending = word & kCountMask;
    state.expected = word >> 20 & kCountMask;
    state.tx = static_cast<int64_t>(word >> 40 & 0x7fffff) - kTxBias;
    state.parity = word >> 63 != 0;
    return state;
  }
  uint64_t Word() const {
    return (pending & kCountMask) | (expected & kCountMask) << 20 |
           static_cast<uint64_t>((tx + kTxBias) & 0x7fffff) << 40 | static_cast<uint64_t>(parity) << 63;
  }
  void Arrive(uint64_t count) {
    pending -= std::min(pending, count);
    Complete();
  }
  void Complete() {
    if (pending != 0 || tx != 0) return;
    pending = expected;
    parity = !parity;
  }
};

char* Object(Warp& w, const Insn& i, const Slot& base, uint64_t offset, uint32_t width, uint32_t lane) {
  return w.Resolve(i, i.space, w.ReadAddress(base, width, lane, offset), 8, true, lane);
}

void MbarrierHandler(Warp& w, const Insn& i, uint32_t mask) {
  uint32_t done = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    if (i.op == kPending) {
      w.Write(i.d, 4, lane, State::From(w.Read(i.b, 8, lane)).pending);
      continue;
    }
    char* place = Object(w, i, i.a, i.imm, i.wa, lane);
    if (place == nullptr) return;
    uint64_t word = 0;
    std::memcpy(&word, place, 8);
    State state = State::From(word);
    const uint64_t value = i.wb != 0 ? w.Read(i.b, i.wb, lane) : 1;
    switch (i.op) {
      case kInit:
        state = {};
        state.pending = state.expected = value & kCountMask;
        break;
      case kInval:
        state = {};
        break;
      case kArrive:
      case kArriveDrop: {
        const bool expects = (i.flags & kFlagExpect) != 0;  // The value is bytes, and one arrives.
        const uint64_t count = expects ? 1 : value;
        if (expects) state.tx += static_cast<int64_t>(value);
        if (i.op == kArriveDrop) state.expected -= std::min(state.expected, count);
        state.Arrive(count);
        if (i.wd != 0) w.Write(i.d, 8, lane, word);
        break;
      }
      case kAsyncArrive:
        if (i.sub == 1) state.Arrive(1);  // .noinc; otherwise the arrival was added before it is taken.
        break;
      case kExpect:
        state.tx += static_cast<int64_t>(value);
        break;
      case kCompleteTx:
        state.tx -= static_cast<int64_t>(value);
        state.Complete();
        break;
      default: {
        w.SawStrong();
        const bool asked = (i.flags & kFlagParity) != 0 ? (value & 1) != 0 : State::From(value).parity;
        done |= asked != state.parity ? 1u << lane : 0;
        continue;
      }
    }
    word = state.Word();
    std::memcpy(place, &word, 8);
  }
  if (i.op == kTestWait && i.p != kNoSlot) w.Pred(i.p) = (w.Pred(i.p) & ~mask) | done;
}

/// a: destination, b: source, c: size; e and r: the barrier object when sub is 1. op: BulkSpaces.
void BulkCopy(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const bool copied = ForTargets(w, i, lane, [&](std::optional<uint32_t> rank) {
      const auto bulk = ResolveBulk(w, i, lane, rank);
      if (!bulk) return false;
      if (bulk->size > 0) std::memmove(bulk->to, bulk->from, bulk->size);
      return i.sub != 1 || CompleteTransaction(w, i, lane, bulk->size, rank);
    });
    if (!copied) return;
  }
}

}  // namespace

std::optional<Bulk> ResolveBulk(Warp& w, const Insn& i, uint32_t lane, std::optional<uint32_t> rank) {
  Bulk bulk;
  bulk.size = static_cast<uint32_t>(w.Read(i.c, 4, lane));
  uint64_t to = w.ReadAddress(i.a, i.wa, lane, i.imm);
  if (rank) to = w.block().cluster.At(to, *rank);
  const uint64_t from = w.ReadAddress(i.b, i.wb, lane, static_cast<uint64_t>(int64_t{static_cast<int32_t>(i.target)}));
  if (bulk.size % 16 != 0 || to % 16 != 0 || from % 16 != 0) {
    w.Raise(i, Fault::Kind::kMisaligned, lane, to, bulk.size, true, "a bulk copy of bytes that are no multiples of 16");
    return std::nullopt;
  }
  if (bulk.size == 0) return bulk;
  // 16 is aligned; the whole is checked by its ends, which must lie in one range.
  const auto resolve = [&](uint64_t address, bool global, bool write) -> char* {
    const Space space = global ? Space::kGlobal : Space::kShared;
    char* first = w.Resolve(i, space, address, 16, write, lane);
    if (first == nullptr) return nullptr;
    if (w.Resolve(i, space, address + bulk.size - 16, 16, write, lane) != first + bulk.size - 16) {
      if (!w.faulted()) w.Raise(i, Fault::Kind::kIllegalAddress, lane, address, bulk.size, write);
      return nullptr;
    }
    if (!global) return first;
    const auto range = w.launch().config->memory->Find(address);
    if (range && range->end - address >= bulk.size) return first;
    w.Raise(i, Fault::Kind::kIllegalAddress, lane, address, bulk.size, write, "across the end of an allocation");
    return nullptr;
  };
  bulk.to = resolve(to, i.op == kBulkToGlobal, true);
  if (bulk.to == nullptr) return std::nullopt;
  bulk.from = resolve(from, i.op == kBulkFromGlobal, false);
  if (bulk.from == nullptr) return std::nullopt;
  return bulk;
}

bool CompleteTransaction(Warp& w, const Insn& i, uint32_t lane, uint32_t bytes, std::optional<uint32_t> rank) {
  const auto offset = static_cast<uint64_t>(int64_t{static_cast<int32_t>(i.r)});
  uint64_t address = w.ReadAddress(i.e, i.wd, lane, offset);
  if (rank) address = w.block().cluster.At(address, *rank);
  char* place = w.Resolve(i, Space::kShared, address, 8, true, lane);
  if (place == nullptr) return false;
  uint64_t word = 0;
  std::memcpy(&word, place, 8);
  State state = State::From(word);
  state.tx -= bytes;
  state.Complete();
  word = state.Word();
  std::memcpy(place, &word, 8);
  return true;
}

bool FunctionDecoder::Mbarrier(const OpText& op) {
  Insn insn = NewInsn();
  insn.fn = MbarrierHandler;
  const Space space = op.space();
  const std::string_view what = op.modifier(0);
  const bool async = op.base() == "cp";
  // mbarrier.arrive.expect_tx arrives; mbarrier.expect_tx does not.
  insn.op = async                                       ? kAsyncArrive
            : what == "init"                            ? kInit
            : what == "inval"                           ? kInval
            : what == "arrive"                          ? kArrive
            : what == "arrive_drop"                     ? kArriveDrop
            : what == "expect_tx"                       ? kExpect
            : what == "complete_tx"                     ? kCompleteTx
            : what == "test_wait" || what == "try_wait" ? kTestWait
            : what == "pending_count"                   ? kPending
                                                        : 255;
  switch (insn.op) {
    case kPending:
      if (!Need(2) || !Destination(operand(0), Type::kU32, &insn.d) || !Source(operand(1), Type::kB64, &insn.b))
        return false;
      Emit(insn);
      return true;
    case kInit:
    case kExpect:
    case kCompleteTx:
      if (!Need(2) || !Address(operand(0), space, &insn) || !Source(operand(1), Type::kU32, &insn.b)) return false;
      insn.wb = 4;
      break;
    case kInval:
      if (!Need(1) || !Address(operand(0), space, &insn)) return false;
      break;
    case kAsyncArrive:
      insn.sub = op.Has("noinc") ? 1 : 0;
      if (!Need(1) || !Address(operand(0), space, &insn)) return false;
      break;
    case kArrive:
    case kArriveDrop: {
      if (!Need(1, 3)) return false;
      if (op.Has("expect_tx")) insn.flags |= kFlagExpect;
      size_t next = 0;
      uint32_t keep = insn.flags;
      if (operand(0).kind != Kind::kAddress) {
        if (operand(0).kind != Kind::kSink) {
          if (!Destination(operand(0), Type::kB64, &insn.d)) return false;
          insn.wd = 8;
        }
        next = 1;
      }
      if (next >= operands() || !Address(operand(next), space, &insn)) return Fail("no address");
      insn.flags |= keep;
      if (next + 1 < operands()) {
        if (!Source(operand(next + 1), Type::kU32, &insn.b)) return false;
        insn.wb = 4;
      } else if ((keep & kFlagExpect) != 0) {
        return Fail("no byte count");
      }
      break;
    }
    case kTestWait: {
      if (!Need(3, 4) || !PredicateDestination(operand(0), &insn.p)) return false;
      const bool parity = op.Has("parity");
      if (!Address(operand(1), space, &insn)) return false;
      insn.flags |= parity ? kFlagParity : 0;
      if (!Source(operand(2), parity ? Type::kU32 : Type::kB64, &insn.b)) return false;
      insn.wb = parity ? 4 : 8;
      break;
    }
    default:
      return Fail("this operation");
  }
  insn.site = image_->sites++;
  Emit(insn);
  return true;
}

bool FunctionDecoder::BarrierObject(const ptx::Operand& o, Insn* insn) {
  Insn object = NewInsn();
  if (!Address(o, Space::kShared, &object)) return false;
  if (object.imm + 0x80000000 > 0xffffffff) return Fail("the offset of the barrier's address");
  insn->e = object.a;
  insn->wd = object.wa;
  insn->r = static_cast<uint32_t>(object.imm);
  insn->sub = 1;
  return true;
}

bool FunctionDecoder::Multicast(const OpText& op, size_t i, Insn* insn) {
  if (!op.Has("multicast::cluster")) return true;
  Extra& extra = insn->extra != nullptr ? code_->extras.back() : MakeExtra(insn);
  insn->flags |= kFlagMulticast;
  extra.slots.emplace_back();
  return SourceN(i, Type::kB16, &extra.slots.back());
}

bool FunctionDecoder::EmitCompletion(const ptx::Operand& o, uint32_t bytes) {
  Insn insn = NewInsn();
  insn.fn = [](Warp& w, const Insn& i, uint32_t mask) {
    for (; mask != 0; mask &= mask - 1) {
      if (!CompleteTransaction(w, i, static_cast<uint32_t>(std::countr_zero(mask)), static_cast<uint32_t>(i.imm)))
        return;
    }
  };
  insn.imm = bytes;
  if (!BarrierObject(o, &insn)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::BulkCopyOp(const OpText& op) {
  if (op.Has("prefetch")) return true;  // There is no cache to fill.
  const bool reduces = op.Has("reduce");
  if (op.Has("tensor")) return reduces ? Fail("this form of bulk copy") : TensorCopyOp(op);
  if (op.Has("cp_mask")) return Fail("bulk copies of some of the bytes");
  // cp.async.bulk.to.from, cp.reduce.async.bulk.to.from
  const bool to_global = op.modifier(reduces ? 3 : 2) == "global";
  const bool from_global = op.modifier(reduces ? 4 : 3) == "global";
  if (to_global && from_global) return Fail("this form of bulk copy");
  if (!Need(to_global ? 3 : 4, 6)) return false;
  Insn insn = NewInsn();
  Insn from = NewInsn();
  insn.op = to_global ? kBulkToGlobal : from_global ? kBulkFromGlobal : kBulkInShared;
  if (!Address(operand(0), Space::kGlobal, &insn) || !Address(operand(1), Space::kGlobal, &from)) return false;
  if (!Source(operand(2), Type::kU32, &insn.c)) return false;
  insn.b = from.a;
  insn.wb = from.wa;
  insn.target = static_cast<uint32_t>(from.imm);
  if (from.imm + 0x80000000 > 0xffffffff) return Fail("the source's offset");
  insn.site = image_->sites++;
  if (!to_global && !BarrierObject(operand(3), &insn)) return false;
  if (!Multicast(op, to_global ? operands() : 4, &insn)) return false;
  insn.fn = BulkCopy;
  if (reduces && !BulkReduction(op, &insn)) return false;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
