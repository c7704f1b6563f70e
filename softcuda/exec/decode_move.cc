// SPDX-License-Identifier: Apache-2.0
// mov, selp, slct, cvta, isspacep, and instructions without effect here.
#include <bit>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/decoder.h"
#include "softcuda/exec/special.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Space;

void MovPredicate(Warp& w, const Insn& i, uint32_t mask) {
  uint32_t value = i.r == kNoSlot ? static_cast<uint32_t>(i.imm) : w.Pred(i.r);
  if ((i.flags & kFlagNegateR) != 0) value = ~value;
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (value & mask);
}

/// %is_explicit_cluster, the one special register that is a predicate.
void MovExplicitCluster(Warp& w, const Insn& i, uint32_t mask) {
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (w.launch().config->explicit_cluster ? mask : 0);
}

void SelectPredicate(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t p = w.Pred(i.r) ^ ((i.flags & kFlagNegateR) != 0 ? kAllLanes : 0);
  const uint32_t value = (w.Pred(static_cast<uint32_t>(i.imm)) & p) | (w.Pred(i.target) & ~p);
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (value & mask);
}

uint64_t Slct(const Insn& i, uint64_t a, uint64_t b, uint64_t c) {
  if (i.type2 == ptx::Type::kF32) {
    float value = std::bit_cast<float>(static_cast<uint32_t>(c));
    if ((i.flags & kFlagFtz) != 0 && value < 0 && value > -0x1p-126f) value = -0.0f;
    return value >= 0 ? a : b;  // NaN selects b.
  }
  return static_cast<int32_t>(static_cast<uint32_t>(c)) >= 0 ? a : b;
}

/// Space address -> generic address (sub 0), or back (sub 1). Outside its window a generic address stays as it is, and
/// the access will fault.
void Cvta(Warp& w, const Insn& i, uint32_t mask) {
  const uint64_t base = i.space == Space::kShared ? Windows::Shared() : i.space == Space::kLocal ? Windows::Local() : 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    uint64_t address = w.Read(i.a, i.wa, lane) + i.imm;
    if (i.sub == 0) {
      if (base == 0 || address < Windows::kSize) address += base;
    } else {
      if (base == 0 || address - base < Windows::kSize) address -= base;
    }
    w.Write(i.d, i.wd, lane, address);
  }
}

/// Whether a shared address is the block's own memory, and not another's of the cluster.
bool IsOwn(const Warp& w, uint64_t address) {
  return Cluster::RankOf(address).value_or(w.block().rank) == w.block().rank;
}

/// sub 1: of .shared::cluster.
void IsSpace(Warp& w, const Insn& i, uint32_t mask) {
  uint32_t bits = 0;
  const auto& parameters = w.launch().parameters;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t address = w.Read(i.a, i.wa, lane);
    const bool shared = address - Windows::Shared() < Windows::kSize;
    const bool in_space = i.sub == 1 || !shared || IsOwn(w, address - Windows::Shared());
    const bool local = address - Windows::Local() < Windows::kSize;
    const bool param = address - reinterpret_cast<uint64_t>(parameters.data()) < parameters.size();
    bool is = false;
    switch (i.space) {
      case Space::kShared:
        is = shared && in_space;
        break;
      case Space::kLocal:
        is = local;
        break;
      case Space::kParam:
        is = param;
        break;
      case Space::kConst:
        is = false;  // Constants lie in global memory here.
        break;
      default:
        is = !shared && !local && !param;
    }
    bits |= is ? 1u << lane : 0;
  }
  w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (bits & mask);
}

enum RankOp : uint8_t { kMapa, kGetRank, kZero };

/// mapa: address a as that of the block with rank b; getctarank: whose address a is. Both of shared addresses, or of
/// generic ones.
void Rank(Warp& w, const Insn& i, uint32_t mask) {
  const Cluster& cluster = w.block().cluster;
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    if (i.sub == kZero) {
      w.Write(i.d, i.wd, lane, 0);
      continue;
    }
    const uint64_t given = w.Read(i.a, i.wa, lane);
    const bool generic = i.space == Space::kNone;
    const uint64_t address = generic ? given - Windows::Shared() : given;
    uint64_t result = 0;
    if (i.sub == kGetRank) {
      result = Cluster::RankOf(address).value_or(w.block().rank);
    } else {
      result = given;
      if (address < Windows::kSize) {
        result = cluster.At(address, static_cast<uint32_t>(w.Read(i.b, 4, lane))) + (generic ? Windows::Shared() : 0);
      }
    }
    w.Write(i.d, i.wd, lane, result);
  }
}

}  // namespace

bool FunctionDecoder::Mov(const OpText& op) {
  if (!Need(2)) return false;
  const Type type = op.type();
  const ptx::Operand& to = operand(0);
  const ptx::Operand& from = operand(1);
  Insn insn = NewInsn();
  insn.type = type;
  if (type == Type::kPred) {
    if (!PredicateDestination(to, &insn.p)) return false;
    if (insn.p == kNoSlot) return true;
    if (from.kind == Kind::kSpecial && from.index == static_cast<uint32_t>(ptx::SpecialRegister::kIsExplicitCluster)) {
      insn.fn = MovExplicitCluster;
      Emit(insn);
      return true;
    }
    if (from.kind == Kind::kInteger) {
      insn.imm = from.value != 0 ? kAllLanes : 0;
    } else {
      bool negated = false;
      if (!Predicate(from, &insn.r, &negated)) return false;
      if (negated) insn.flags |= kFlagNegateR;
    }
    insn.fn = MovPredicate;
    Emit(insn);
    return true;
  }
  if (ptx::SizeOf(type) == 0) return Fail("a type was expected");
  const bool unpack = to.kind == Kind::kVector;
  const bool pack = from.kind == Kind::kVector;
  if (unpack && pack) return Fail("vectors on both sides");
  if (unpack || pack) {
    const ptx::Operand& group = unpack ? to : from;
    if (group.count == 0 || ptx::SizeOf(type) % group.count != 0) return Fail("a vector that does not fill the type");
    const uint32_t size = ptx::SizeOf(type) / group.count;
    const Type part = size == 1 ? Type::kB8 : size == 2 ? Type::kB16 : size == 4 ? Type::kB32 : Type::kB64;
    Extra& extra = MakeExtra(&insn);
    insn.fn = FindLaneOp(unpack ? LaneOp::kUnpack : LaneOp::kPack, type, part, 0, Compare::kEq);
    if (insn.fn == nullptr) return Fail("this split of a value");
    if (unpack) {
      if (!VectorDestinations(to, part, group.count, &extra.slots) || !Source(from, type, &insn.a)) return false;
    } else {
      if (!VectorSources(from, part, group.count, &extra.slots) || !Destination(to, type, &insn.d)) return false;
    }
    Emit(insn);
    return true;
  }
  if (!Destination(to, type, &insn.d)) return false;
  insn.wd = static_cast<uint8_t>(ptx::SizeOf(type));
  if (from.kind == Kind::kSpecial) {
    insn.fn = ReadSpecial;
    insn.imm = from.index;
    Emit(insn);
    return true;
  }
  if (!Source(from, type, &insn.a)) return false;
  insn.fn = FindLaneOp(LaneOp::kMov, type, Type::kNone, 0, Compare::kEq);
  Emit(insn);
  return insn.fn != nullptr;
}

bool FunctionDecoder::Selp(const OpText& op) {
  if (!Need(4)) return false;
  Insn insn = NewInsn();
  bool negated = false;
  if (!PredicateSource(operand(3), &insn.r, &negated)) return false;
  if (negated) insn.flags |= kFlagNegateR;
  if (op.type() == Type::kPred) {
    bool unused = false;
    uint32_t a = 0;
    if (!PredicateDestination(operand(0), &insn.p) || !PredicateSource(operand(1), &a, &unused) ||
        !PredicateSource(operand(2), &insn.target, &unused)) {
      return false;
    }
    insn.imm = a;
    insn.fn = SelectPredicate;
    Emit(insn);
    return true;
  }
  insn.fn = FindLaneOp(LaneOp::kSelp, op.type(), Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  if (!Destination(operand(0), op.type(), &insn.d) || !Source(operand(1), op.type(), &insn.a) ||
      !Source(operand(2), op.type(), &insn.b)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Slct(const OpText& op) {
  if (!Need(4)) return false;
  const Type type = op.type(0);
  const Type by = op.type(1);
  if (by != Type::kS32 && by != Type::kF32) return Fail("the type of the selecting operand");
  Insn insn = NewInsn();
  insn.fn = ScalarHandler;
  insn.scalar = exec::Slct;
  insn.type2 = by;
  insn.flags = op.flags();
  insn.wd = insn.wa = insn.wb = static_cast<uint8_t>(ptx::SizeOf(type));
  insn.wc = 4;
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a) ||
      !Source(operand(2), type, &insn.b) || !Source(operand(3), by, &insn.c)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Cvta(const OpText& op) {
  if (!Need(2)) return false;
  const Type type = op.type();
  if (type != Type::kU64 && type != Type::kU32) return Fail("type");
  Insn insn = NewInsn();
  insn.space = op.space();
  insn.sub = op.Has("to") ? 1 : 0;
  insn.wd = insn.wa = static_cast<uint8_t>(ptx::SizeOf(type));
  if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a)) return false;
  if (insn.space == Space::kGlobal || insn.space == Space::kConst || insn.space == Space::kParam) {
    insn.fn = FindLaneOp(LaneOp::kMov, type, Type::kNone, 0, Compare::kEq);
  } else {
    insn.fn = exec::Cvta;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Isspacep(const OpText& op) {
  if (!Need(2)) return false;
  Insn insn = NewInsn();
  insn.space = op.space();
  insn.sub = op.Has("shared::cluster") ? 1 : 0;
  insn.fn = IsSpace;
  if (insn.space == Space::kNone) return Fail("a state space was expected");
  if (!PredicateDestination(operand(0), &insn.p)) return false;
  if (insn.p == kNoSlot) return true;
  if (!Source(operand(1), Type::kU64, &insn.a)) return false;
  insn.wa = 8;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Nothing(const OpText& op) {
  if (op.base() == "mapa" || op.base() == "getctarank") {
    if (op.base() == "mapa" && !Need(3)) return false;
    Insn insn = NewInsn();
    insn.fn = Rank;
    const Type type = op.type();
    const Type to = op.base() == "mapa" ? type : Type::kU32;
    insn.sub = op.base() == "mapa" ? kMapa : kGetRank;
    insn.space = op.space();
    insn.wd = static_cast<uint8_t>(ptx::SizeOf(to));
    insn.wa = static_cast<uint8_t>(ptx::SizeOf(type));
    if (!Destination(operand(0), to, &insn.d) || !SourceN(1, type, &insn.a)) return false;
    if (insn.sub == kMapa && !SourceN(2, Type::kU32, &insn.b)) return false;
    Emit(insn);
  }
  if (op.base() == "createpolicy") {  // Only cache hints use it, and they are ignored.
    Insn insn = NewInsn();
    insn.fn = Rank;
    insn.sub = kZero;
    insn.wd = 8;
    if (!Need(1, 5) || !Destination(operand(0), Type::kB64, &insn.d)) return false;
    Emit(insn);
  }
  return true;  // Hints: prefetch, applypriority, discard, pmevent, setmaxnreg, griddepcontrol.
}

}  // namespace hawser::exec
