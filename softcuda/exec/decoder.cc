// SPDX-License-Identifier: Apache-2.0
// Operands and the walk over a function.
#include "softcuda/exec/decoder.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "softcuda/exec/allocation.h"
#include "softcuda/exec/code_layout.h"
#include "softcuda/exec/special.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {

OpText::OpText(std::string_view text) {
  size_t dot = text.find('.');
  base_ = text.substr(0, dot);
  while (dot != std::string_view::npos && count_ < parts_.size()) {
    text.remove_prefix(dot + 1);
    dot = text.find('.');
    parts_[count_] = text.substr(0, dot);
    const auto type = ptx::TypeFromName(parts_[count_]);
    if (type && type_count_ < types_.size()) types_[type_count_++] = *type;
    ++count_;
  }
}

bool OpText::Has(std::string_view modifier) const {
  return std::find(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count_), modifier) !=
         parts_.begin() + static_cast<std::ptrdiff_t>(count_);
}

uint8_t OpText::vector() const { return Has("v8") ? 8 : Has("v4") ? 4 : Has("v2") ? 2 : 1; }

ptx::Space OpText::space() const {
  for (size_t i = 0; i < count_; ++i) {
    const std::string_view part = parts_[i].substr(0, parts_[i].find(':'));
    if (part == "global") return ptx::Space::kGlobal;
    if (part == "shared") return ptx::Space::kShared;
    if (part == "local") return ptx::Space::kLocal;
    if (part == "const") return ptx::Space::kConst;
    if (part == "param") return ptx::Space::kParam;
  }
  return ptx::Space::kNone;
}

uint32_t OpText::flags() const {
  return (Has("ftz") ? kFlagFtz : 0) | (Has("sat") ? kFlagSat : 0) | (Has("NaN") ? kFlagNan : 0);
}

FunctionDecoder::FunctionDecoder(Image* image, Code* code, const SymbolScope* scope,
                                 std::vector<std::string>* unsupported)
    : image_(image),
      code_(code),
      module_(*code->module),
      function_(*code->function),
      scope_(scope),
      unsupported_(unsupported) {}

namespace {

/// An instruction that cannot run.
void Illegal(Warp& w, const Insn& i, uint32_t mask) {
  w.Raise(i, Fault::Kind::kIllegalInstruction, static_cast<uint32_t>(std::countr_zero(mask)), 0, 0, false,
          i.extra->text);
}

// Sizes come from the program's text: they are added up in 64 bits, and compared with these before anything is laid
// out.
constexpr uint64_t kMaxFrame = uint64_t{64} << 20;  // Of one activation: registers and parameters of 32 lanes.
constexpr uint64_t kMaxLocal = uint64_t{64} << 20;  // Of one thread.

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

void ScalarHandler(Warp& w, const Insn& i, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t a = i.wa != 0 ? w.Read(i.a, i.wa, lane) : 0;
    const uint64_t b = i.wb != 0 ? w.Read(i.b, i.wb, lane) : 0;
    const uint64_t c = i.wc != 0 ? w.Read(i.c, i.wc, lane) : 0;
    w.Write(i.d, i.wd, lane, i.scalar(i, a, b, c));
  }
}

std::string FunctionDecoder::Prepare() {
  const auto too_large = [this](const char* what) {
    return "function '" + function_.name.substr(0, 120) + "' needs more than 64 MiB of " + what;
  };
  const RegisterLayout layout = LayOutRegisters(function_);
  register_offset_ = layout.offset;
  uint64_t bytes = layout.bytes;
  if (bytes > kMaxFrame) return too_large("registers");
  carry_ = static_cast<uint32_t>(bytes);
  bytes = RoundUp(bytes + 4, 64);

  variable_place_.assign(function_.variables.size(), 0);
  address_taken_.assign(function_.variables.size(), false);
  for (const ptx::Instruction& instruction : function_.instructions) {
    const OpText op(instruction.op);
    const bool moves = op.base() == "mov" || op.base() == "cvta";
    for (uint32_t i = 0; moves && i < instruction.operand_count; ++i) {
      const ptx::Operand& o = function_.operands[instruction.first_operand + i];
      if (o.kind == Kind::kVariable && function_.variables[o.index].space == Space::kParam) {
        address_taken_[o.index] = true;
      }
    }
  }
  uint64_t parameter_offset = 0;
  uint64_t local = 0;
  for (size_t i = 0; i < function_.variables.size(); ++i) {
    const ptx::Variable& variable = function_.variables[i];
    const uint64_t size = variable.size;
    const auto place = [&](uint64_t* end, uint64_t alignment) {
      *end = RoundUp(*end, alignment);
      variable_place_[i] = static_cast<uint32_t>(*end);
      *end += size;
    };
    switch (variable.space) {
      case Space::kParam:
        if (size > kMaxFrame / kLanes) return too_large("parameters");
        if (IsKernelParameter(static_cast<uint32_t>(i))) {
          place(&parameter_offset, variable.alignment);
        } else if (address_taken_[i]) {
          place(&local, std::max(variable.alignment, 16u));  // Also an area of the frame, through which it is passed.
        } else {
          variable_place_[i] = static_cast<uint32_t>(bytes);
          bytes = RoundUp(bytes + size * kLanes, 64);
        }
        break;
      case Space::kLocal:
        if (size > kMaxLocal) return too_large("local memory");
        place(&local, variable.alignment);
        break;
      case Space::kShared:
        if (!variable.unsized) variable_place_[i] = code_->shared_places[i];
        break;
      default:
        break;
    }
    if (bytes > kMaxFrame || parameter_offset > kMaxFrame) return too_large("parameters");
    if (local > kMaxLocal) return too_large("local memory");
  }
  code_->local_bytes = static_cast<uint32_t>(RoundUp(local, 16));
  const auto formal = [&](uint32_t place) {
    Formal made;
    if ((place & ptx::Function::kRegisterFlag) != 0) {
      const uint32_t index = place & ~ptx::Function::kRegisterFlag;
      made.is_register = true;
      made.slot = RegisterSlot(index);
      const Type type = function_.registers[index].type;
      made.width = made.size = type == Type::kPred ? 0 : ptx::SizeOf(type);
      return made;
    }
    made.size = static_cast<uint32_t>(function_.variables[place].size);
    if (address_taken_[place]) {
      made.local = variable_place_[place];
      made.area = static_cast<uint32_t>(std::min(bytes, kMaxFrame));
      bytes = RoundUp(bytes + uint64_t{made.size} * kLanes, 64);
    } else {
      made.area = variable_place_[place];
    }
    return made;
  };
  if (!function_.entry) {
    for (const uint32_t place : function_.results) code_->results.push_back(formal(place));
    for (const uint32_t place : function_.parameters) code_->parameters.push_back(formal(place));
  }
  if (bytes > kMaxFrame) return too_large("parameters");
  code_->frame_bytes = bytes;
  return {};
}

bool FunctionDecoder::IsKernelParameter(uint32_t variable) const {
  return function_.entry && variable < function_.parameters.size();
}

void FunctionDecoder::DecodeInstruction(uint32_t index) {
  ins_ = &function_.instructions[index];
  index_ = index;
  why_.clear();
  const OpText op(ins_->op);
  const Member member = FindMember(op.base());
  const size_t before = code_->insns.size();
  if (member == nullptr) {
    why_ = "unknown instruction";
  } else if ((this->*member)(op)) {
    return;
  }
  code_->insns.resize(before);
  EmitIllegal();
}

void FunctionDecoder::EmitJump(uint32_t place, uint32_t source) {
  Insn jump;
  jump.control = Control::kBranch;
  jump.target = place;
  jump.source = source;
  code_->insns.push_back(jump);
}

std::string FunctionDecoder::Decode() {
  const CodeLayout layout(function_);
  const auto& places = layout.places();
  std::vector<uint32_t> at;  // Where each place's code begins.
  for (uint32_t p = 0; p < places.size(); ++p) {
    at.push_back(static_cast<uint32_t>(code_->insns.size()));
    const ptx::BasicBlock& block = layout.block(places[p].block);
    if (places[p].latch) {
      EmitJump(layout.PlaceOf(places[p].block), block.first);
      continue;
    }
    size_t extra = code_->extras.size();
    for (uint32_t i = block.first; i < block.end; ++i) DecodeInstruction(i);
    // Until all code is there targets are places.
    for (size_t i = at.back(); i < code_->insns.size(); ++i) {
      Insn& insn = code_->insns[i];
      if (insn.control == Control::kBranch) insn.target = layout.Target(p, insn.target);
    }
    for (; extra < code_->extras.size(); ++extra) {
      for (uint32_t& target : code_->extras[extra].targets) target = layout.Target(p, target);
    }
    if (!ptx::GoesOn(function_.instructions[block.end - 1])) continue;
    const uint32_t next = layout.Target(p, block.end);
    if (next == p + 1) continue;
    Insn* const last = code_->insns.size() > at.back() ? &code_->insns.back() : nullptr;
    if (last != nullptr && last->control == Control::kBranch && last->predicate != kNoSlot && last->target == p + 1) {
      last->predicate_negated = !last->predicate_negated;
      last->target = next;
    } else {
      EmitJump(next, block.end - 1);
    }
  }
  at.push_back(static_cast<uint32_t>(code_->insns.size()));
  // Whoever falls off the end returns.
  Insn last;
  last.control = Control::kReturn;
  last.source = static_cast<uint32_t>(function_.instructions.size());
  code_->insns.push_back(last);
  for (Insn& insn : code_->insns) {
    if (insn.control == Control::kBranch) insn.target = at[insn.target];
  }
  for (Extra& extra : code_->extras) {
    for (uint32_t& target : extra.targets) target = at[target];
  }
  code_->frame_bytes = RoundUp(code_->frame_bytes, 64);
  if (code_->frame_bytes > kMaxFrame) return "function '" + function_.name + "' needs more than 64 MiB of registers";
  return {};
}

bool FunctionDecoder::Fail(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return false;
}

bool FunctionDecoder::Whole(const ptx::Operand& o, bool may_be_negated) {
  if (o.kind != Kind::kRegister) return true;
  if (o.count != 0) return Fail("a part of a register");
  return may_be_negated || !o.negated || Fail("a negated register");
}

bool FunctionDecoder::Need(size_t low, size_t high) {
  if (operands() >= low && operands() <= high) return true;
  return Fail("wrong number of operands");
}

void FunctionDecoder::EmitIllegal() {
  Insn insn = NewInsn();
  insn.fn = Illegal;
  std::string text(ins_->op.substr(0, 100));
  text += ": " + (why_.empty() ? std::string("this form is not known") : why_);
  unsupported_->push_back(text + " (" + function_.name + ", line " + std::to_string(ins_->line) + ")");
  MakeExtra(&insn).text = "this device cannot execute " + text;
  code_->insns.push_back(insn);
}

Insn FunctionDecoder::NewInsn() const {
  Insn insn;
  insn.source = index_;
  if (ins_->predicated) {
    insn.predicate = static_cast<uint32_t>(register_offset_[ins_->predicate]);
    insn.predicate_negated = ins_->predicate_negated;
  }
  return insn;
}

void FunctionDecoder::Emit(const Insn& insn) { code_->insns.push_back(insn); }

Extra& FunctionDecoder::MakeExtra(Insn* insn) {
  Extra& extra = code_->extras.emplace_back();
  insn->extra = &extra;
  return extra;
}

Slot FunctionDecoder::RegisterSlot(uint32_t index) const { return {register_offset_[index], ~uint64_t{0}}; }

Slot FunctionDecoder::ConstantSlot(uint64_t bits, uint32_t width) {
  return {reinterpret_cast<uint64_t>(image_->Constant(bits, width)), 0};
}

Slot FunctionDecoder::Temporary(uint32_t width) {
  code_->frame_bytes = RoundUp(code_->frame_bytes, 64);
  const Slot slot{code_->frame_bytes, ~uint64_t{0}};
  code_->frame_bytes += width * kLanes;
  return slot;
}

bool FunctionDecoder::AddressOf(const ptx::Operand& o, uint32_t width, Slot* slot) {
  if (o.kind == Kind::kVariable) {
    const ptx::Variable& variable = function_.variables[o.index];
    const uint64_t place = variable_place_[o.index] + o.value;
    if (variable.space == Space::kShared) {
      if (variable.unsized) return Fail("dynamic shared memory declared in a function");
      *slot = ConstantSlot(place, width);
      return true;
    }
    // Local memory and parameters move with the activation: computed.
    *slot = Temporary(width);
    Insn insn;
    insn.source = index_;
    insn.d = *slot;
    insn.wd = static_cast<uint8_t>(width);
    insn.imm = place;
    insn.fn = variable.space == Space::kParam && IsKernelParameter(o.index) ? KernelParameterAddress : LocalAddress;
    Emit(insn);
    return true;
  }
  if (o.kind != Kind::kSymbol) return Fail("not an address");
  const std::string& name = module_.names[o.index];
  const SymbolScope::Found found = scope_->Find(module_, name);
  switch (found.kind) {
    case SymbolScope::Kind::kVariable:
      *slot = {reinterpret_cast<uint64_t>(image_->AddressConstant(found.index, static_cast<int64_t>(o.value), width)),
               0};
      return true;
    case SymbolScope::Kind::kShared:
      if (found.dynamic) {
        *slot = Temporary(width);
        Insn insn;
        insn.source = index_;
        insn.d = *slot;
        insn.wd = static_cast<uint8_t>(width);
        insn.imm = o.value;
        insn.fn = DynamicSharedAddress;
        Emit(insn);
        return true;
      }
      *slot = ConstantSlot(found.offset + o.value, width);
      return true;
    case SymbolScope::Kind::kFunction:
      *slot = ConstantSlot(image_->PointerTo(image_->codes[found.index]), width);
      return true;
    default:
      return Fail("unknown name '" + name.substr(0, 80) + "'");
  }
}

bool FunctionDecoder::SpecialValue(ptx::SpecialRegister which, uint32_t width, Slot* slot) {
  *slot = Temporary(width);
  Insn insn;
  insn.source = index_;
  insn.d = *slot;
  insn.wd = static_cast<uint8_t>(width);
  insn.imm = static_cast<uint64_t>(which);
  insn.fn = ReadSpecial;
  insn.predicate = ins_->predicated ? static_cast<uint32_t>(register_offset_[ins_->predicate]) : kNoSlot;
  insn.predicate_negated = ins_->predicate_negated;
  Emit(insn);
  return true;
}

bool FunctionDecoder::Source(const ptx::Operand& o, Type type, Slot* slot, uint8_t* width) {
  const uint32_t size = ptx::SizeOf(type);
  if (width != nullptr) *width = static_cast<uint8_t>(size);
  if (size == 0 || type == Type::kPred) return Fail("no type for an operand");
  if (!Whole(o)) return false;
  const uint64_t mask = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  switch (o.kind) {
    case Kind::kRegister: {
      const Type actual = function_.registers[o.index].type;
      const uint32_t have = ptx::SizeOf(actual);
      if (o.value != 0) return Fail("a register with an offset");
      if (actual == Type::kPred) return Fail("a predicate where a value belongs");
      if (have != size && (width == nullptr || have < size)) {
        return Fail("register " + std::string(function_.registers[o.index].name) + " is of type ." +
                    std::string(ptx::Name(actual)) + ", which does not fit ." + std::string(ptx::Name(type)));
      }
      if (width != nullptr) *width = static_cast<uint8_t>(have);
      *slot = RegisterSlot(o.index);
      return true;
    }
    case Kind::kInteger:
      if (type == Type::kF32 || type == Type::kF64) {
        // An integer constant where a float belongs is its value.
        const ptx::Operand& constant = o;
        const auto value = static_cast<double>(static_cast<int64_t>(constant.value));
        *slot = type == Type::kF32 ? ConstantSlot(std::bit_cast<uint32_t>(static_cast<float>(value)), 4)
                                   : ConstantSlot(std::bit_cast<uint64_t>(value), 8);
        return true;
      }
      if (size > 8) return Fail("a constant of 128 bits");
      *slot = ConstantSlot(o.value & mask, size);
      return true;
    case Kind::kFloat32: {
      const auto single = static_cast<uint32_t>(o.value);
      if (type == Type::kF64) {
        *slot = ConstantSlot(std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(single))), 8);
      } else {
        *slot = ConstantSlot(single & mask, size);
      }
      return size <= 8 ? true : Fail("a float constant of this width");
    }
    case Kind::kFloat64:
      if (type == Type::kF32 || size == 4) {
        *slot = ConstantSlot(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(o.value))), 4);
        return true;
      }
      if (size != 8) return Fail("a float constant of this width");
      *slot = ConstantSlot(o.value, 8);
      return true;
    case Kind::kSpecial:
      return SpecialValue(static_cast<ptx::SpecialRegister>(o.index), size, slot);
    case Kind::kVariable:
    case Kind::kSymbol:
      if (size < 4) return Fail("an address of this width");
      return AddressOf(o, size, slot);
    default:
      return Fail("an operand of another kind was expected");
  }
}

bool FunctionDecoder::Destination(const ptx::Operand& o, Type type, Slot* slot, uint8_t* width) {
  const uint32_t size = ptx::SizeOf(type);
  if (width != nullptr) *width = static_cast<uint8_t>(size);
  if (o.kind == Kind::kSink) {
    *slot = Temporary(std::max(size, 8u));
    return true;
  }
  if (o.kind != Kind::kRegister) return Fail("the destination is no register");
  if (!Whole(o)) return false;
  const Type actual = function_.registers[o.index].type;
  const uint32_t have = ptx::SizeOf(actual);
  if (actual == Type::kPred || (have != size && (width == nullptr || have < size))) {
    return Fail("register " + std::string(function_.registers[o.index].name) + " is of type ." +
                std::string(ptx::Name(actual)) + ", which does not fit ." + std::string(ptx::Name(type)));
  }
  if (width != nullptr) *width = static_cast<uint8_t>(have);
  *slot = RegisterSlot(o.index);
  return true;
}

bool FunctionDecoder::Predicate(const ptx::Operand& o, uint32_t* slot, bool* negated) {
  if (o.kind != Kind::kRegister || function_.registers[o.index].type != Type::kPred) {
    return Fail("a predicate register was expected");
  }
  if (!Whole(o, true)) return false;
  *slot = register_offset_[o.index];
  *negated = o.negated;
  return true;
}

bool FunctionDecoder::PredicateSource(const ptx::Operand& o, uint32_t* slot, bool* negated) {
  if (o.kind != Kind::kInteger) return Predicate(o, slot, negated);
  // A constant: a place of its own, set right before.
  Insn set = NewInsn();
  set.fn = [](Warp& w, const Insn& i, uint32_t) { w.Pred(i.p) = static_cast<uint32_t>(i.imm); };
  set.imm = o.value != 0 ? kAllLanes : 0;
  set.p = static_cast<uint32_t>(Temporary(4).value);
  *slot = set.p;
  *negated = false;
  Emit(set);
  return true;
}

bool FunctionDecoder::PredicateDestination(const ptx::Operand& o, uint32_t* slot) {
  if (o.kind == Kind::kSink) {
    *slot = kNoSlot;
    return true;
  }
  bool negated = false;
  return Predicate(o, slot, &negated);
}

bool FunctionDecoder::VectorSources(const ptx::Operand& o, Type type, size_t count, std::vector<Slot>* slots,
                                    uint8_t* width) {
  uint8_t first = 0;
  if (o.kind != Kind::kVector) {
    if (count != 1) return Fail("a vector was expected");
    slots->emplace_back();
    return Source(o, type, &slots->back(), width);
  }
  if (o.count != count) return Fail("a vector of another length was expected");
  // Registers of one vector must be of one width; constants take that width.
  for (size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = element(o, i);
    if (part.kind != Kind::kRegister) continue;
    const auto have = static_cast<uint8_t>(ptx::SizeOf(function_.registers[part.index].type));
    if (first != 0 && have != first) return Fail("a vector of registers of different widths");
    first = have;
  }
  if (width != nullptr && first != 0) *width = first;
  if (width != nullptr && first == 0) *width = static_cast<uint8_t>(ptx::SizeOf(type));
  for (size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = element(o, i);
    slots->emplace_back();
    if (part.kind == Kind::kSink) return Fail("_ as a source");
    if (part.kind == Kind::kRegister) {
      uint8_t have = 0;
      if (!Source(part, type, &slots->back(), width != nullptr ? &have : nullptr)) return false;
      continue;
    }
    const uint32_t wide = width != nullptr ? *width : ptx::SizeOf(type);
    if (part.kind == Kind::kInteger && wide > ptx::SizeOf(type)) {
      slots->back() = ConstantSlot(part.value & (wide >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * wide)) - 1), wide);
    } else if (wide != ptx::SizeOf(type)) {
      return Fail("a vector of a constant and wider registers");
    } else if (!Source(part, type, &slots->back())) {
      return false;
    }
  }
  return true;
}

bool FunctionDecoder::VectorDestinations(const ptx::Operand& o, Type type, size_t count, std::vector<Slot>* slots,
                                         uint8_t* width) {
  if (o.kind != Kind::kVector) {
    if (count != 1) return Fail("a vector was expected");
    slots->emplace_back();
    return Destination(o, type, &slots->back(), width);
  }
  if (o.count != count) return Fail("a vector of another length was expected");
  uint8_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const ptx::Operand& part = element(o, i);
    slots->emplace_back();
    if (part.kind == Kind::kSink) continue;  // frame_mask 0 says: nobody wants it.
    uint8_t have = 0;
    if (!Destination(part, type, &slots->back(), width != nullptr ? &have : nullptr)) return false;
    if (width == nullptr) continue;
    if (first != 0 && have != first) return Fail("a vector of registers of different widths");
    first = have;
  }
  if (width != nullptr) *width = first != 0 ? first : static_cast<uint8_t>(ptx::SizeOf(type));
  return true;
}

bool FunctionDecoder::Address(const ptx::Operand& o, Space space, Insn* insn) {
  if (o.kind != Kind::kAddress) return Fail("an address in [] was expected");
  const ptx::Operand& base = element(o, 0);
  insn->space = space;
  if (!Whole(base)) return false;
  if (base.kind == Kind::kRegister) {
    const uint32_t size = ptx::SizeOf(function_.registers[base.index].type);
    if (size != 4 && size != 8) return Fail("an address register of this width");
    insn->a = RegisterSlot(base.index);
    insn->imm = o.value;
    if (size == 8) insn->flags |= kFlagAddress64;
    insn->wa = static_cast<uint8_t>(size);
    return true;
  }
  insn->flags |= kFlagAddress64;
  insn->wa = 8;
  if (base.kind == Kind::kInteger) {
    insn->a = ConstantSlot(base.value, 8);
    insn->imm = 0;
    return true;
  }
  insn->imm = 0;
  ptx::Operand whole = base;
  whole.value = o.value;
  return AddressOf(whole, 8, &insn->a);
}

bool FunctionDecoder::EmitScalar(ScalarFn fn, Type type, uint8_t op, uint32_t flags, size_t sources, Type destination,
                                 Type third) {
  if (!Need(sources + 1)) return false;
  Insn insn = NewInsn();
  insn.fn = ScalarHandler;
  insn.scalar = fn;
  insn.type = type;
  insn.op = op;
  insn.flags = flags;
  if (!Destination(operand(0), destination, &insn.d)) return false;
  insn.wd = static_cast<uint8_t>(ptx::SizeOf(destination));
  if (sources >= 1 && !Source(operand(1), type, &insn.a)) return false;
  if (sources >= 2 && !Source(operand(2), type, &insn.b)) return false;
  if (sources >= 3 && !Source(operand(3), third, &insn.c)) return false;
  insn.wa = sources >= 1 ? static_cast<uint8_t>(ptx::SizeOf(type)) : 0;
  insn.wb = sources >= 2 ? static_cast<uint8_t>(ptx::SizeOf(type)) : 0;
  insn.wc = sources >= 3 ? static_cast<uint8_t>(ptx::SizeOf(third)) : 0;
  Emit(insn);
  return true;
}

}  // namespace hawser::exec
