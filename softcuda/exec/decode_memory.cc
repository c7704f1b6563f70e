// SPDX-License-Identifier: Apache-2.0
// ld, st, fences, synchronous forms of cp.async.
#include <atomic>
#include <bit>
#include <cstring>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/special.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::Space;

uint64_t Extend(uint64_t value, uint32_t size, bool sign) {
  if (!sign || size >= 8) return value;
  const uint32_t shift = 64 - 8 * size;
  return static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
}

uint64_t Fetch(const char* from, uint32_t size) {
  uint64_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

const Slot& Element(const Insn& i, uint32_t element) { return i.count == 1 ? i.d : i.extra->slots[element]; }

template <typename D>
void Broadcast(Warp& w, const Slot& slot, uint32_t mask, uint64_t value) {
  D* d = w.At<D>(slot);
  if (mask == kAllLanes) {
    for (uint32_t k = 0; k < kLanes; ++k) d[k] = static_cast<D>(value);
    return;
  }
  for (; mask != 0; mask &= mask - 1) d[std::countr_zero(mask)] = static_cast<D>(value);
}

/// ld.param of a kernel: the same for all lanes.
void LoadKernelParameter(Warp& w, const Insn& i, uint32_t mask) {
  const auto* base = reinterpret_cast<const char*>(w.launch().parameters.data()) + i.imm;
  const uint32_t size = ptx::SizeOf(i.type);
  for (uint32_t n = 0; n < i.count; ++n) {
    const Slot& slot = Element(i, n);
    if (slot.frame_mask == 0) continue;
    const uint64_t value = Extend(Fetch(base + n * size, size), size, i.sign);
    switch (i.wd) {
      case 8:
        Broadcast<uint64_t>(w, slot, mask, value);
        break;
      case 4:
        Broadcast<uint32_t>(w, slot, mask, value);
        break;
      case 2:
        Broadcast<uint16_t>(w, slot, mask, value);
        break;
      default:
        Broadcast<uint8_t>(w, slot, mask, value);
    }
  }
}

/// ld.param, st.param of a function: every lane has `target` bytes of its own at frame offset `imm`.
void LoadArea(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t size = ptx::SizeOf(i.type);
  const char* base = w.At<char>(Slot{i.imm, ~uint64_t{0}});
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    for (uint32_t n = 0; n < i.count; ++n) {
      const Slot& slot = Element(i, n);
      if (slot.frame_mask == 0) continue;
      const char* from = base + size_t{lane} * i.target + i.site + size_t{n} * size;
      if (size == 16) {
        std::memcpy(w.At<char>(slot) + 16 * lane, from, 16);
      } else {
        w.Write(slot, i.wd, lane, Extend(Fetch(from, size), size, i.sign));
      }
    }
  }
}

void StoreArea(Warp& w, const Insn& i, uint32_t mask) {
  const uint32_t size = ptx::SizeOf(i.type);
  char* base = w.At<char>(Slot{i.imm, ~uint64_t{0}});
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    for (uint32_t n = 0; n < i.count; ++n) {
      const Slot& slot = i.count == 1 ? i.b : i.extra->slots[n];
      char* to = base + size_t{lane} * i.target + i.site + size_t{n} * size;
      if (size == 16) {
        std::memcpy(to, w.At<char>(slot) + 16 * lane, 16);
      } else {
        const uint64_t value = w.Read(slot, i.wb, lane);
        std::memcpy(to, &value, size);
      }
    }
  }
}

void FenceHandler(Warp&, const Insn&, uint32_t) {
#if defined(__SANITIZE_THREAD__)
  // That sanitizer knows no fences. An exchange that all threads make orders them too, and it knows that.
  static std::atomic<uint32_t> point{0};
  point.fetch_add(1, std::memory_order_seq_cst);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

void CopyAsync(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const auto size = static_cast<uint32_t>(i.count);
    char* to = w.Resolve(i, Space::kShared, w.ReadAddress(i.a, i.wa, lane, i.imm), size, true, lane);
    if (to == nullptr) return;
    uint64_t bytes = size;
    if (i.sub == 1) bytes = std::min<uint64_t>(size, w.Read(i.c, 4, lane));
    if (i.sub == 2 && ((w.Pred(i.r) ^ ((i.flags & kFlagNegateR) != 0 ? kAllLanes : 0)) >> lane & 1) != 0) bytes = 0;
    const char* from = to;
    if (bytes > 0) {
      const uint64_t address =
          w.ReadAddress(i.b, i.wb, lane, static_cast<uint64_t>(int64_t{static_cast<int32_t>(i.target)}));
      // Aligned as for the whole copy; but no more has to be there than is read.
      if (address % size != 0) {
        w.Raise(i, Fault::Kind::kMisaligned, lane, address, size, false);
        return;
      }
      from = w.Resolve(i, Space::kGlobal, address, static_cast<uint32_t>(bytes), false, lane);
      if (from == nullptr) return;
    }
    std::memmove(to, from, bytes);
    std::memset(to + bytes, 0, size - bytes);
  }
}

}  // namespace

uint32_t FunctionDecoder::ParamArea(const ptx::Operand& o, const ptx::Variable** variable) const {
  if (o.kind != Kind::kAddress) return ptx::kNone;
  const ptx::Operand& base = element(o, 0);
  if (base.kind != Kind::kVariable || function_.variables[base.index].space != Space::kParam) return ptx::kNone;
  *variable = &function_.variables[base.index];
  return base.index;
}

bool FunctionDecoder::LoadStoreParam(const OpText& op, bool load, uint32_t index, uint32_t size) {
  const ptx::Operand& address = operand(load ? 1 : 0);
  const ptx::Operand& value = operand(load ? 0 : 1);
  Insn insn = NewInsn();
  insn.type = op.type();
  insn.count = op.vector();
  insn.sign = ptx::IsSigned(insn.type);
  const uint64_t offset = address.value;
  const uint64_t bytes = uint64_t{ptx::SizeOf(insn.type)} * insn.count;
  const uint64_t begin = IsKernelParameter(index) ? variable_place_[index] + offset : offset;
  uint64_t room = size;
  if (IsKernelParameter(index)) {
    // A compiler may read across the end of one parameter into its padding: the buffer as a whole is the limit.
    for (uint32_t i = 0; i < function_.parameters.size(); ++i) {
      room = std::max(room, variable_place_[i] + function_.variables[i].size);
    }
  }
  if (begin > room || bytes > room - begin) return Fail("an access outside the parameter");
  if (IsKernelParameter(index)) {
    if (!load || ptx::SizeOf(insn.type) > 8) return Fail("this access to a kernel's parameter");
    insn.fn = LoadKernelParameter;
    insn.imm = begin;
  } else {
    insn.fn = load ? LoadArea : StoreArea;
    insn.imm = variable_place_[index];
    insn.site = static_cast<uint32_t>(offset);
    insn.target = size;
    if (load && insn.count == 1 && offset == 0 && size == ptx::SizeOf(insn.type) && size > 1) {
      // The area has the layout of a register.
      insn.a = {insn.imm, ~uint64_t{0}};
    }
  }
  Extra* extra = insn.count > 1 ? &MakeExtra(&insn) : nullptr;
  if (load) {
    if (extra != nullptr ? !VectorDestinations(value, insn.type, insn.count, &extra->slots, &insn.wd)
                         : !Destination(value, insn.type, &insn.d, &insn.wd)) {
      return false;
    }
    if (insn.fn == LoadArea && insn.a.frame_mask != 0 && insn.wd == size) {
      insn.fn = FindLaneOp(LaneOp::kMov, insn.type, Type::kNone, 0, Compare::kEq);
    }
  } else {
    if (extra != nullptr ? !VectorSources(value, insn.type, insn.count, &extra->slots, &insn.wb)
                         : !Source(value, insn.type, &insn.b, &insn.wb)) {
      return false;
    }
    if (insn.count == 1 && offset == 0 && size == insn.wb && size == ptx::SizeOf(insn.type) && size > 1) {
      insn.fn = FindLaneOp(LaneOp::kMov, insn.type, Type::kNone, 0, Compare::kEq);
      insn.d = {insn.imm, ~uint64_t{0}};
      insn.a = insn.b;
    }
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Load(const OpText& op) {
  if (!Need(2, 3)) return false;
  Space space = op.space();
  const ptx::Variable* variable = nullptr;
  uint32_t index = ptx::kNone;
  if (space == Space::kParam) {
    index = ParamArea(operand(1), &variable);
    if (index != ptx::kNone && !address_taken_[index]) {
      return LoadStoreParam(op, true, index, static_cast<uint32_t>(variable->size));
    }
    if (index != ptx::kNone && IsKernelParameter(index)) {
      return LoadStoreParam(op, true, index, static_cast<uint32_t>(variable->size));
    }
    space = function_.entry ? Space::kGlobal : Space::kLocal;
  }
  if (space == Space::kConst) space = Space::kGlobal;
  Insn insn = NewInsn();
  insn.type = op.type();
  insn.count = op.vector();
  insn.strong = op.Has("volatile") || op.Has("acquire") || op.Has("relaxed");
  insn.fn = FindLaneOp(LaneOp::kLoad, insn.type, Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  if (insn.count > 1) {
    if (!VectorDestinations(operand(0), insn.type, insn.count, &MakeExtra(&insn).slots, &insn.wd)) return false;
  } else if (operand(0).kind == Kind::kVector) {
    Extra& extra = MakeExtra(&insn);
    if (!VectorDestinations(operand(0), insn.type, 1, &extra.slots, &insn.wd)) return false;
    insn.d = extra.slots[0];
  } else if (!Destination(operand(0), insn.type, &insn.d, &insn.wd)) {
    return false;
  }
  if (!Address(operand(1), space, &insn)) return false;
  insn.site = image_->sites++;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Store(const OpText& op) {
  const bool async = op.Has("async");
  if (op.Has("bulk") || (async && !op.Has("mbarrier::complete_tx::bytes"))) return Fail("this form of store");
  if (!Need(async ? 3 : 2, 3)) return false;
  Space space = op.space();
  const ptx::Variable* variable = nullptr;
  if (space == Space::kParam) {
    const uint32_t index = ParamArea(operand(0), &variable);
    if (index == ptx::kNone) return Fail("a store to a parameter through a register");
    if (!address_taken_[index]) return LoadStoreParam(op, false, index, static_cast<uint32_t>(variable->size));
    space = Space::kLocal;
  }
  if (space == Space::kConst) return Fail("a store to constant memory");
  Insn insn = NewInsn();
  insn.type = op.type();
  insn.count = op.vector();
  insn.fn = FindLaneOp(LaneOp::kStore, insn.type, Type::kNone, 0, Compare::kEq);
  if (insn.fn == nullptr) return Fail("type");
  if (insn.count > 1) {
    if (!VectorSources(operand(1), insn.type, insn.count, &MakeExtra(&insn).slots, &insn.wb)) return false;
  } else if (operand(1).kind == Kind::kVector) {
    Extra& extra = MakeExtra(&insn);
    if (!VectorSources(operand(1), insn.type, 1, &extra.slots, &insn.wb)) return false;
    insn.b = extra.slots[0];
  } else if (!Source(operand(1), insn.type, &insn.b, &insn.wb)) {
    return false;
  }
  if (!Address(operand(0), space, &insn)) return false;
  insn.site = image_->sites++;
  Emit(insn);
  return !async || EmitCompletion(operand(2), ptx::SizeOf(insn.type) * insn.count);
}

bool FunctionDecoder::Fence(const OpText&) {
  Insn insn = NewInsn();
  insn.fn = FenceHandler;
  Emit(insn);
  return true;
}

bool FunctionDecoder::CpAsync(const OpText& op) {
  if (op.Has("commit_group") || op.Has("wait_group") || op.Has("wait_all")) return true;  // Copies are done at once.
  if (op.modifier(1) == "mbarrier") return Mbarrier(op);
  if (op.Has("bulk")) return BulkCopyOp(op);
  if (!op.Has("global")) return Fail("this form of asynchronous copy");
  if (!Need(3, 5)) return false;
  Insn insn = NewInsn();
  Insn from = NewInsn();
  if (!Address(operand(0), Space::kShared, &insn) || !Address(operand(1), Space::kGlobal, &from)) return false;
  insn.b = from.a;
  insn.wb = from.wa;
  if (from.imm + 0x80000000 > 0xffffffff) return Fail("the source's offset");
  insn.target = static_cast<uint32_t>(from.imm);
  const ptx::Operand& size = operand(2);
  if (size.kind != Kind::kInteger || (size.value != 4 && size.value != 8 && size.value != 16)) return Fail("size");
  insn.count = static_cast<uint8_t>(size.value);
  // A cache policy comes last, behind the bytes that are read or whether any are.
  const size_t others = operands() - (op.Has("L2::cache_hint") ? 1 : 0);
  if (others != 3 && others != 4) return Fail("wrong number of operands");
  if (others == 4) {
    const ptx::Operand& rest = operand(3);
    if (rest.kind == Kind::kRegister && function_.registers[rest.index].type == Type::kPred) {
      bool negated = false;
      if (!Predicate(rest, &insn.r, &negated)) return false;
      insn.sub = 2;
      if (negated) insn.flags |= kFlagNegateR;
    } else {
      insn.sub = 1;
      if (!Source(rest, Type::kU32, &insn.c)) return false;
    }
  }
  insn.fn = CopyAsync;
  insn.site = image_->sites++;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
