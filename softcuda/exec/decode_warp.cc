// SPDX-License-Identifier: Apache-2.0
// Instructions in which the lanes of a warp exchange values: shfl, vote, match, activemask, redux, elect (PTX
// ISA 9.7.9, 9.7.13). Their handlers run when all lanes of the membermask are there.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Type;

enum ShflMode : uint8_t { kUp, kDown, kBfly, kIdx };
enum VoteMode : uint8_t { kAll, kAny, kUni, kBallot };
enum ReduxOp : uint8_t { kAddR, kMinR, kMaxR, kAndR, kOrR, kXorR };

void ShflHandler(Warp& w, const Insn& i, uint32_t mask) {
  std::array<uint32_t, kLanes> source{};
  std::copy_n(w.At<uint32_t>(i.a), kLanes, source.begin());
  const uint32_t* b = w.At<uint32_t>(i.b);
  const uint32_t* c = w.At<uint32_t>(i.c);
  uint32_t* d = w.At<uint32_t>(i.d);
  uint32_t valid = 0;
  std::array<uint32_t, kLanes> result{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t offset = b[lane] & 0x1f;
    const uint32_t segment = c[lane] >> 8 & 0x1f;
    const uint32_t clamp = c[lane] & 0x1f;
    const uint32_t high = (lane & segment) | (clamp & ~segment);
    const uint32_t low = lane & segment;
    int32_t from = 0;
    bool in = false;
    switch (i.op) {
      case kUp:
        from = static_cast<int32_t>(lane) - static_cast<int32_t>(offset);
        in = from >= static_cast<int32_t>(high);
        break;
      case kDown:
        from = static_cast<int32_t>(lane + offset);
        in = from <= static_cast<int32_t>(high);
        break;
      case kBfly:
        from = static_cast<int32_t>(lane ^ offset);
        in = from <= static_cast<int32_t>(high);
        break;
      default:
        from = static_cast<int32_t>(low | (offset & ~segment));
        in = from <= static_cast<int32_t>(high);
    }
    if (!in) from = static_cast<int32_t>(lane);
    valid |= in ? 1u << lane : 0;
    result[lane] = source[static_cast<uint32_t>(from) & 31];
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0) d[lane] = result[lane];
  }
  if (i.p != kNoSlot) w.Pred(i.p) = (w.Pred(i.p) & ~mask) | (valid & mask);
}

/// Calls f(members) once for each group of lanes that named the same membermask.
template <typename F>
void ForGroups(Warp& w, const Insn& i, uint32_t mask, F&& f) {
  const uint32_t* members = w.At<uint32_t>(i.e);
  while (mask != 0) {
    const uint32_t first = members[std::countr_zero(mask)];
    uint32_t same = 0;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(m));
      same |= members[lane] == first ? 1u << lane : 0;
    }
    f(same);
    mask &= ~same;
  }
}

void VoteHandler(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t p = w.Pred(i.r) ^ ((i.flags & kFlagNegateR) != 0 ? kAllLanes : 0);
  ForGroups(w, i, mask, [&](uint32_t group) {
    const uint32_t votes = p & group;
    if (i.op == kBallot) {
      for (uint32_t m = group; m != 0; m &= m - 1) w.At<uint32_t>(i.d)[std::countr_zero(m)] = votes;
      return;
    }
    const bool all = votes == group;
    const bool value = i.op == kAll ? all : i.op == kAny ? votes != 0 : all || votes == 0;
    if (i.p != kNoSlot) w.Pred(i.p) = value ? w.Pred(i.p) | group : w.Pred(i.p) & ~group;
  });
}

void MatchHandler(Warp& w, const Insn& i, uint32_t mask) {
  std::array<uint64_t, kLanes> value{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) value[lane] = w.Read(i.a, i.wa, lane);
  ForGroups(w, i, mask, [&](uint32_t group) {
    bool all = true;
    for (uint32_t m = group; m != 0; m &= m - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(m));
      uint32_t same = 0;
      for (uint32_t n = group; n != 0; n &= n - 1) {
        const auto other = static_cast<uint32_t>(std::countr_zero(n));
        same |= value[other] == value[lane] ? 1u << other : 0;
      }
      all = all && same == group;
      if (i.op == 0) w.At<uint32_t>(i.d)[lane] = same;
    }
    if (i.op == 0) return;
    for (uint32_t m = group; m != 0; m &= m - 1) w.At<uint32_t>(i.d)[std::countr_zero(m)] = all ? group : 0;
    if (i.p != kNoSlot) w.Pred(i.p) = all ? w.Pred(i.p) | group : w.Pred(i.p) & ~group;
  });
}

void ActivemaskHandler(Warp& w, const Insn& i, uint32_t mask) {
  for (uint32_t m = mask; m != 0; m &= m - 1) w.At<uint32_t>(i.d)[std::countr_zero(m)] = mask;
}

void ReduxHandler(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t* a = w.At<uint32_t>(i.a);
  std::array<uint32_t, kLanes> source{};
  std::copy_n(a, kLanes, source.begin());
  ForGroups(w, i, mask, [&](uint32_t group) {
    uint32_t total = 0;
    bool first = true;
    bool nan = false;
    for (uint32_t m = group; m != 0; m &= m - 1) {
      const uint32_t value = source[static_cast<uint32_t>(std::countr_zero(m))];
      if (i.type == Type::kF32) {
        float x = std::bit_cast<float>(value);
        if ((i.flags & 1) != 0) x = std::fabs(x);
        nan = nan || std::isnan(x);
        const float before = std::bit_cast<float>(total);
        const bool take = first || std::isnan(before) || (i.op == kMinR ? x < before : x > before);
        if (take) total = std::bit_cast<uint32_t>(x);
        first = false;
        continue;
      }
      if (first) {
        total = value;
        first = false;
        continue;
      }
      const bool less =
          i.type == Type::kS32 ? static_cast<int32_t>(value) < static_cast<int32_t>(total) : value < total;
      switch (i.op) {
        case kAddR:
          total += value;
          break;
        case kMinR:
          total = less ? value : total;
          break;
        case kMaxR:
          total = less ? total : value;
          break;
        case kAndR:
          total &= value;
          break;
        case kOrR:
          total |= value;
          break;
        default:
          total ^= value;
      }
    }
    if (i.type == Type::kF32 && (std::isnan(std::bit_cast<float>(total)) || (nan && (i.flags & 2) != 0)))
      total = 0x7fffffff;
    for (uint32_t m = group; m != 0; m &= m - 1) w.At<uint32_t>(i.d)[std::countr_zero(m)] = total;
  });
}

void ElectHandler(Warp& w, const Insn& i, uint32_t mask) {
  ForGroups(w, i, mask, [&](uint32_t group) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(group));
    for (uint32_t m = group; m != 0; m &= m - 1) w.At<uint32_t>(i.d)[std::countr_zero(m)] = leader;
    if (i.p != kNoSlot) w.Pred(i.p) = (w.Pred(i.p) & ~group) | 1u << leader;
  });
}

}  // namespace

bool FunctionDecoder::Shfl(const OpText& op) {
  const bool sync = op.Has("sync");
  if (!Need(sync ? 5 : 4)) return false;
  Insn insn = NewInsn();
  insn.fn = ShflHandler;
  insn.op = op.Has("up") ? kUp : op.Has("down") ? kDown : op.Has("bfly") ? kBfly : kIdx;
  const ptx::Operand& to = operand(0);
  if (!Destination(to, Type::kB32, &insn.d)) return false;
  if (to.second != ptx::kNone && !PredicateDestination(function_.operands[to.second], &insn.p)) return false;
  if (!Source(operand(1), Type::kB32, &insn.a) || !Source(operand(2), Type::kB32, &insn.b) ||
      !Source(operand(3), Type::kB32, &insn.c)) {
    return false;
  }
  if (sync && !MemberMask(&operand(4), &insn)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Vote(const OpText& op) {
  const bool sync = op.Has("sync");
  if (!Need(sync ? 3 : 2)) return false;
  Insn insn = NewInsn();
  insn.fn = VoteHandler;
  insn.op = op.Has("all") ? kAll : op.Has("any") ? kAny : op.Has("uni") ? kUni : kBallot;
  if (insn.op == kBallot ? !Destination(operand(0), Type::kB32, &insn.d) : !PredicateDestination(operand(0), &insn.p)) {
    return false;
  }
  bool negated = false;
  const ptx::Operand& value = operand(1);
  if (!PredicateSource(value, &insn.r, &negated)) return false;
  if (negated) insn.flags |= kFlagNegateR;
  if (sync) {
    if (!MemberMask(&operand(2), &insn)) return false;
  } else {
    insn.e = ConstantSlot(kAllLanes, 4);
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Match(const OpText& op) {
  if (!Need(3)) return false;
  Insn insn = NewInsn();
  insn.fn = MatchHandler;
  insn.op = op.Has("any") ? 0 : 1;
  const Type type = op.type();
  if (type != Type::kB32 && type != Type::kB64) return Fail("type");
  insn.wa = static_cast<uint8_t>(ptx::SizeOf(type));
  const ptx::Operand& to = operand(0);
  if (!Destination(to, Type::kB32, &insn.d)) return false;
  if (to.second != ptx::kNone && !PredicateDestination(function_.operands[to.second], &insn.p)) return false;
  if (!Source(operand(1), type, &insn.a) || !MemberMask(&operand(2), &insn)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Activemask(const OpText&) {
  Insn insn = NewInsn();
  insn.fn = ActivemaskHandler;
  if (!Need(1) || !Destination(operand(0), Type::kB32, &insn.d)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Redux(const OpText& op) {
  if (!Need(3)) return false;
  Insn insn = NewInsn();
  insn.fn = ReduxHandler;
  insn.type = op.type();
  insn.op = op.Has("add")   ? kAddR
            : op.Has("min") ? kMinR
            : op.Has("max") ? kMaxR
            : op.Has("and") ? kAndR
            : op.Has("or")  ? kOrR
                            : kXorR;
  if (ptx::SizeOf(insn.type) != 4) return Fail("type");
  if (insn.type == Type::kF32 && insn.op != kMinR && insn.op != kMaxR) return Fail("this reduction of floats");
  insn.flags = (op.Has("abs") ? 1 : 0) | (op.Has("NaN") ? 2 : 0);
  if (!Destination(operand(0), insn.type, &insn.d) || !Source(operand(1), insn.type, &insn.a) ||
      !MemberMask(&operand(2), &insn)) {
    return false;
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Elect(const OpText&) {
  if (!Need(2)) return false;
  Insn insn = NewInsn();
  insn.fn = ElectHandler;
  const ptx::Operand& to = operand(0);
  if (!Destination(to, Type::kB32, &insn.d)) return false;
  if (to.second == ptx::kNone || !PredicateDestination(function_.operands[to.second], &insn.p)) {
    return Fail("no predicate destination");
  }
  if (!MemberMask(&operand(1), &insn)) return false;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
