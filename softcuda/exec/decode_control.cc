// SPDX-License-Identifier: Apache-2.0
// bra, brx, call, ret, exit, trap, nanosleep, bar and barrier.
#include <bit>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/system_calls.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

void RaiseTrap(Warp& w, const Insn& i, uint32_t mask) {
  w.Raise(i, Fault::Kind::kTrap, static_cast<uint32_t>(std::countr_zero(mask)));
}

void WarpBarrier(Warp&, const Insn&, uint32_t) {}  // That all lanes are here is all there is to it.

uint32_t Alloca(Warp& w, const Insn& i, uint32_t lane, uint64_t size) {
  const uint64_t align = i.imm;
  const uint64_t begin = (w.stack_pointer[lane] + align - 1) & ~(align - 1);
  if (size > w.launch().local_bytes || begin + size > w.launch().local_bytes) {
    w.Raise(i, Fault::Kind::kStackOverflow, lane, 0, 0, false,
            "alloca of " + std::to_string(size) + " bytes does not fit in the stack");
    return 0;
  }
  w.stack_pointer[lane] = static_cast<uint32_t>(begin + size);
  return static_cast<uint32_t>(begin);
}

void StackHandler(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0 && !w.faulted(); mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    if (i.op == 0) {
      w.Write(i.d, i.wd, lane, Alloca(w, i, lane, w.Read(i.a, i.wa, lane)));
    } else if (i.op == 1) {
      w.Write(i.d, i.wd, lane, w.stack_pointer[lane]);
    } else {
      const uint64_t to = w.Read(i.a, i.wa, lane);
      if (to <= w.launch().local_bytes) w.stack_pointer[lane] = static_cast<uint32_t>(to);
    }
  }
}

}  // namespace

bool FunctionDecoder::Bra(const OpText&) {
  if (!Need(1)) return false;
  if (operand(0).kind != Kind::kLabel) return Fail("no such label");
  Insn insn = NewInsn();
  insn.control = Control::kBranch;
  insn.target = operand(0).index;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Brx(const OpText&) {
  if (!Need(2)) return false;
  if (operand(1).kind != Kind::kTargets) return Fail("no list of targets");
  Insn insn = NewInsn();
  insn.control = Control::kBranchIndexed;
  if (!Source(operand(0), Type::kU32, &insn.a)) return false;
  const ptx::TargetList& list = function_.target_lists[operand(1).index];
  for (const uint32_t label : list.labels) {
    if (label == ptx::kNone) return Fail("no such label in the list of targets");
  }
  MakeExtra(&insn).targets = list.labels;
  Emit(insn);
  return true;
}

bool FunctionDecoder::CallArguments(const ptx::Operand& o, bool results, std::vector<CallArgument>* list) {
  const size_t count = o.kind == Kind::kList ? o.count : 1;
  for (size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = o.kind == Kind::kList ? element(o, i) : o;
    CallArgument argument;
    if (part.kind == Kind::kVariable && function_.variables[part.index].space == Space::kParam) {
      const ptx::Variable& variable = function_.variables[part.index];
      if (IsKernelParameter(part.index)) return Fail("a kernel's parameter as an argument");
      if (address_taken_[part.index]) return Fail("an argument whose address is taken");
      argument.area = variable_place_[part.index];
      argument.size = static_cast<uint32_t>(variable.size);
    } else if (part.kind == Kind::kRegister) {
      if (!Whole(part)) return false;
      argument.is_register = true;
      argument.slot = RegisterSlot(part.index);
      const Type type = function_.registers[part.index].type;
      argument.size = type == Type::kPred ? 0 : ptx::SizeOf(type);
    } else if (part.kind == Kind::kSink && results) {
      argument.is_register = true;
    } else {
      argument.is_register = true;
      argument.size = ptx::kNone;  // A constant: its width is the formal's.
      argument.area = part.kind == Kind::kInteger || part.kind == Kind::kFloat32 || part.kind == Kind::kFloat64
                          ? static_cast<uint32_t>(i)
                          : ptx::kNone;
      if (results || argument.area == ptx::kNone) return Fail("an argument of this kind");
      argument.slot.value = part.value;
    }
    list->push_back(argument);
  }
  return true;
}

bool FunctionDecoder::CallOp(const OpText&) {
  // call (results), function, (arguments), targets-or-prototype; results and arguments may be missing.
  size_t next = 0;
  Insn insn = NewInsn();
  Extra& extra = MakeExtra(&insn);
  if (operands() == 0) return Fail("no function");
  if (operand(next).kind == Kind::kList) {
    if (!CallArguments(operand(next), true, &extra.call.results)) return false;
    ++next;
  }
  if (next >= operands()) return Fail("no function");
  const ptx::Operand& target = operand(next++);
  if (next < operands() && operand(next).kind == Kind::kList) {
    if (!CallArguments(operand(next), false, &extra.call.arguments)) return false;
    ++next;
  }
  insn.control = Control::kCall;
  const auto fit = [&](std::vector<CallArgument>* list, const std::vector<Formal>& formals) {
    if (list->size() != formals.size()) return Fail("another number of arguments than the function has");
    for (size_t i = 0; i < list->size(); ++i) {
      CallArgument& argument = (*list)[i];
      if (argument.size == ptx::kNone) {
        if (formals[i].size == 0 || formals[i].size > 8) return Fail("a constant as this argument");
        argument.slot = ConstantSlot(argument.slot.value, formals[i].size);
        argument.size = formals[i].size;
      }
      if (argument.is_register && argument.slot.frame_mask == 0 && argument.slot.value == 0) continue;  // _
      if (argument.size != formals[i].size) return Fail("an argument of another size than the function's");
    }
    return true;
  };
  if (target.kind == Kind::kSymbol) {
    const std::string& name = module_.names[target.index];
    const SymbolScope::Found found = scope_->Find(module_, name);
    if (found.kind == SymbolScope::Kind::kFunction) {
      const Code& callee = image_->codes[found.index];
      if (callee.entry) return Fail("a call of a kernel");
      extra.call.callee = &callee;
      code_->callees.push_back(&callee);
      // A caller may expect a result of a function that has none, as of the C that numba declares: nobody sets it.
      if (callee.results.empty()) extra.call.results.clear();
      if (!fit(&extra.call.results, callee.results) || !fit(&extra.call.arguments, callee.parameters)) return false;
      Emit(insn);
      return true;
    }
    if (found.kind == SymbolScope::Kind::kSystemCall) {
      if (!Fits(*found.call, extra.call.arguments)) {
        return Fail("a constant, too few or others than '" + name.substr(0, 80) + "' has as arguments");
      }
      insn.control = Control::kPlain;
      insn.fn = found.call->handler;
      Emit(insn);
      return true;
    }
    return Fail("unknown function '" + name.substr(0, 80) + "'");
  }
  if (!Source(target, Type::kU64, &insn.a)) return false;
  code_->calls_indirect = true;
  for (const CallArgument& argument : extra.call.arguments) {
    if (argument.size == ptx::kNone) return Fail("a constant as an argument of an indirect call");
  }
  Emit(insn);
  return true;
}

bool FunctionDecoder::Ret(const OpText&) {
  Insn insn = NewInsn();
  insn.control = Control::kReturn;
  Emit(insn);
  return Need(0);
}

bool FunctionDecoder::Exit(const OpText&) {
  Insn insn = NewInsn();
  insn.control = Control::kExit;
  Emit(insn);
  return Need(0);
}

bool FunctionDecoder::Trap(const OpText&) {
  Insn insn = NewInsn();
  insn.fn = RaiseTrap;
  Emit(insn);
  return Need(0);
}

bool FunctionDecoder::Nanosleep(const OpText&) {
  Insn insn = NewInsn();
  insn.control = Control::kYield;
  Emit(insn);
  return Need(1);
}

bool FunctionDecoder::MemberMask(const ptx::Operand* o, Insn* insn) {
  insn->control = Control::kWarpSync;
  if (o == nullptr) {  // All lanes that live.
    insn->e = ConstantSlot(kAllLanes, 4);
    return true;
  }
  return Source(*o, Type::kB32, &insn->e);
}

bool FunctionDecoder::Bar(const OpText& op) {
  Insn insn = NewInsn();
  if (op.Has("warp")) {
    if (!Need(1) || !MemberMask(&operand(0), &insn)) return false;
    insn.fn = WarpBarrier;
    Emit(insn);
    return true;
  }
  Extra& extra = MakeExtra(&insn);
  BarrierFacts& facts = extra.barrier;
  insn.control = Control::kBarrier;
  if (op.Has("cluster")) {
    if (op.Has("wait") == op.Has("arrive") || !Need(0)) return Fail("this form of barrier");
    facts.kind = op.Has("wait") ? BarrierFacts::Kind::kClusterWait : BarrierFacts::Kind::kClusterArrive;
    Emit(insn);
    return true;
  }
  if (op.Has("red")) {
    if (!Need(3, 4)) return false;
    const bool has_count = operands() == 4;
    if (!Source(operand(1), Type::kB32, &insn.a)) return false;
    if (has_count && !Source(operand(2), Type::kB32, &insn.b)) return false;
    if (!Predicate(operand(operands() - 1), &facts.predicate, &facts.negated)) return false;
    facts.has_count = has_count;
    if (op.Has("popc")) {
      facts.kind = BarrierFacts::Kind::kRedPopc;
      if (!Destination(operand(0), Type::kU32, &insn.d)) return false;
    } else if (op.Has("and") || op.Has("or")) {
      facts.kind = op.Has("and") ? BarrierFacts::Kind::kRedAnd : BarrierFacts::Kind::kRedOr;
      if (!PredicateDestination(operand(0), &facts.result_predicate)) return false;
    } else {
      return Fail("this reduction");
    }
    Emit(insn);
    return true;
  }
  if (op.Has("arrive")) {
    facts.kind = BarrierFacts::Kind::kArrive;
    if (!Need(2)) return false;
  } else if (!op.Has("sync") || !Need(1, 2)) {
    return Fail("this form of barrier");
  }
  if (!Source(operand(0), Type::kB32, &insn.a)) return false;
  facts.has_count = operands() == 2;
  if (facts.has_count && !Source(operand(1), Type::kB32, &insn.b)) return false;
  Emit(insn);
  return true;
}

bool FunctionDecoder::StackOp(const OpText& op) {
  Insn insn = NewInsn();
  insn.fn = StackHandler;
  code_->uses_stack = true;
  const Type type = op.type();
  if (ptx::SizeOf(type) != 4 && ptx::SizeOf(type) != 8) return Fail("type");
  insn.wd = insn.wa = static_cast<uint8_t>(ptx::SizeOf(type));
  if (op.base() == "alloca") {
    if (!Need(2, 3)) return false;
    insn.imm = 8;
    if (operands() == 3) {
      insn.imm = operand(2).value;
      if (operand(2).kind != Kind::kInteger || !std::has_single_bit(insn.imm) || insn.imm > 4096)
        return Fail("alignment");
    }
    if (!Destination(operand(0), type, &insn.d) || !Source(operand(1), type, &insn.a)) return false;
  } else if (op.base() == "stacksave") {
    insn.op = 1;
    if (!Need(1) || !Destination(operand(0), type, &insn.d)) return false;
  } else {
    insn.op = 2;
    if (!Need(1) || !Source(operand(0), type, &insn.a)) return false;
  }
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
