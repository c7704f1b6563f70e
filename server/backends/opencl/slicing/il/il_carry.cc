// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/il/il_carry.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "server/backends/opencl/slicing/il/il_builtins.h"
#include "server/backends/opencl/slicing/il/il_writer.h"

namespace hawser::server::slicing {
namespace {

using spv::BuiltIn;
using spv::Op;
using wire::Code;
using wire::Result;
using wire::Status;

Op OpcodeOf(const IlInstruction& instruction) { return static_cast<Op>(instruction.opcode); }
uint32_t Raw(BuiltIn builtin) { return static_cast<uint32_t>(builtin); }

bool IsTypeOrConstant(Op opcode) {
  const auto number = static_cast<uint32_t>(opcode);
  return (number >= static_cast<uint32_t>(Op::OpTypeVoid) && number <= static_cast<uint32_t>(Op::OpSpecConstantOp)) ||
         opcode == Op::OpVariable || opcode == Op::OpUndef || opcode == Op::OpFunction;
}

bool IsRemark(Op opcode) {
  return opcode == Op::OpName || opcode == Op::OpDecorate || opcode == Op::OpDecorateId ||
         opcode == Op::OpDecorateString;
}

// What the added functions need: each type once, in the module or behind its own declarations.
class Declarations {
 public:
  Declarations(const IlModule& module, const IlBuiltins& builtins, IlIds* ids)
      : ids_(ids), decorations_(ids), declarations_(ids) {
    for (size_t i = 0; i < module.size(); ++i) {
      const IlInstruction instruction = module.at(i);
      if (OpcodeOf(instruction) == Op::OpFunction) break;
      Note(instruction);
    }
    for (const auto& [builtin, variable] : builtins.variables()) variables_.emplace(builtin, variable);
  }

  uint32_t Long() { return Type(Op::OpTypeInt, {64, 0}); }
  uint32_t Int() { return Type(Op::OpTypeInt, {32, 0}); }
  uint32_t Bool() { return Type(Op::OpTypeBool, {}); }
  uint32_t Longs() { return Type(Op::OpTypeVector, {Long(), 3}); }
  uint32_t Returning(uint32_t type) { return Type(Op::OpTypeFunction, {type}); }

  /// Of a built-in: a vector of three sizes but for two.
  uint32_t TypeOf(uint32_t builtin) {
    if (builtin == Raw(BuiltIn::WorkDim)) return Int();
    return builtin == Raw(BuiltIn::GlobalLinearId) ? Long() : Longs();
  }
  /// A variable of the module where it has one.
  uint32_t Variable(BuiltIn builtin) {
    uint32_t& variable = variables_[Raw(builtin)];
    if (variable == 0) {
      constexpr auto kInput = static_cast<uint32_t>(spv::StorageClass::Input);
      const uint32_t pointer = Type(Op::OpTypePointer, {kInput, TypeOf(Raw(builtin))});
      variable = declarations_.Value(Op::OpVariable, pointer, {kInput});
      decorations_.Add(Op::OpDecorate, {variable, static_cast<uint32_t>(spv::Decoration::BuiltIn), Raw(builtin)});
    }
    if (std::find(used_.begin(), used_.end(), variable) == used_.end()) used_.push_back(variable);
    return variable;
  }
  uint32_t LongConstant(uint64_t value) {
    uint32_t& constant = long_constants_[value];
    if (constant == 0) {
      constant = declarations_.Value(Op::OpConstant, Long(),
                                     {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)});
    }
    return constant;
  }
  uint32_t IntConstant(uint32_t value) { return declarations_.Value(Op::OpConstant, Int(), {value}); }

  /// What the pointer's variable holds; 0: it is no pointer.
  uint32_t Pointee(uint32_t variable) const {
    const auto type = variable_types_.find(variable);
    if (type == variable_types_.end()) return 0;
    const auto pointee = pointees_.find(type->second);
    return pointee == pointees_.end() ? 0 : pointee->second;
  }

  /// Variables that the added functions load.
  const std::vector<uint32_t>& used() const { return used_; }
  const std::vector<uint32_t>& decorations() const { return decorations_.words(); }
  const std::vector<uint32_t>& declarations() const { return declarations_.words(); }

 private:
  using Key = std::pair<uint32_t, std::vector<uint32_t>>;

  void Note(const IlInstruction& instruction) {
    const auto& words = instruction.words;
    switch (OpcodeOf(instruction)) {
      case Op::OpTypePointer:
        if (words.size() == 4) pointees_[instruction.result] = words[3];
        [[fallthrough]];
      case Op::OpTypeInt:
      case Op::OpTypeBool:
      case Op::OpTypeVector:
      case Op::OpTypeFunction:
        types_.emplace(Key{instruction.opcode, std::vector<uint32_t>(words.begin() + 2, words.end())},
                       instruction.result);
        return;
      case Op::OpVariable:
        variable_types_[instruction.result] = instruction.type;
        return;
      default:
        return;
    }
  }

  uint32_t Type(Op opcode, const std::vector<uint32_t>& operands) {
    uint32_t& type = types_[Key{static_cast<uint32_t>(opcode), operands}];
    if (type == 0) {
      type = ids_->New();
      std::vector<uint32_t> words = {static_cast<uint32_t>(operands.size() + 2) << 16 | static_cast<uint32_t>(opcode),
                                     type};
      words.insert(words.end(), operands.begin(), operands.end());
      declarations_.Append(words);
    }
    return type;
  }

  IlIds* const ids_;
  IlWriter decorations_, declarations_;
  std::map<Key, uint32_t> types_;
  std::map<uint32_t, uint32_t> pointees_, variable_types_, variables_;
  std::map<uint64_t, uint32_t> long_constants_;
  std::vector<uint32_t> used_;
};

// The functions that stand for built-ins: CarryPrelude() in instructions.
class CarryFunctions {
 public:
  CarryFunctions(Declarations* declarations, IlIds* ids) : known_(*declarations), ids_(ids), out_(ids) {}

  /// The function that stands for this one; written when it is asked for first.
  uint32_t Of(uint32_t builtin) {
    uint32_t& function = functions_[builtin];
    if (function == 0) function = Write(static_cast<BuiltIn>(builtin));
    return function;
  }
  const std::vector<uint32_t>& words() const { return out_.words(); }

 private:
  using Triple = std::array<uint32_t, 3>;

  // The fields of the word; ids of the function that is being written.
  struct Word {
    uint32_t on = 0, dims = 0, base = 0, all = 0, depth = 0;
    Triple divided = {};  ///< The launch is divided along this axis.
  };

  uint32_t Write(BuiltIn builtin) {
    const uint32_t type = known_.TypeOf(Raw(builtin));
    const uint32_t signature = known_.Returning(type);
    // Not to be called from the header: constants and variables are declared while the body is written.
    const uint32_t function =
        out_.Value(Op::OpFunction, type, {static_cast<uint32_t>(spv::FunctionControlMask::Inline), signature});
    out_.Add(Op::OpLabel, {ids_->New()});
    const Word word = ReadWord();
    uint32_t value = 0;
    switch (builtin) {
      case BuiltIn::WorkgroupId:
        value = Vector(GroupId(word));
        break;
      case BuiltIn::NumWorkgroups: {
        const Triple groups = Components(BuiltIn::NumWorkgroups);
        value = Vector(Each([&](uint32_t d) { return Select(word.divided[d], word.all, groups[d]); }));
        break;
      }
      case BuiltIn::GlobalSize:
        value = Vector(GlobalSize(word));
        break;
      case BuiltIn::GlobalInvocationId:
        value = Vector(GlobalId(word));
        break;
      case BuiltIn::GlobalOffset: {
        const Triple offset = Components(BuiltIn::GlobalOffset), carried = GlobalOffset(word);
        value = Vector(Each([&](uint32_t d) { return Select(word.on, carried[d], offset[d]); }));
        break;
      }
      case BuiltIn::WorkDim: {
        const uint32_t dims = out_.Value(Op::OpUConvert, known_.Int(), {word.dims});
        const uint32_t whole = Load(BuiltIn::WorkDim);
        value = out_.Value(Op::OpSelect, known_.Int(), {word.on, dims, whole});
        break;
      }
      default:
        value = Select(word.on, LinearId(word), Load(BuiltIn::GlobalLinearId));
        break;
    }
    out_.Add(Op::OpReturnValue, {value});
    out_.Add(Op::OpFunctionEnd, {});
    return function;
  }

  Word ReadWord() {
    Word word;
    const uint32_t w = Components(BuiltIn::GlobalInvocationId)[2];
    word.on = Equal(Shift(w, 58), 1);
    const uint32_t deep = out_.Value(Op::OpINotEqual, known_.Bool(), {Field(w, 57, 1), known_.LongConstant(0)});
    const uint32_t axis = Field(w, 54, 3);
    word.dims = Long(Op::OpIAdd, Field(w, 56, 3), known_.LongConstant(1));
    word.all = Select(deep, Field(w, 38, 0xffff), Field(w, 27, 0x7ffffff));
    word.base = Select(deep, Field(w, 22, 0xffff), Field(w, 0, 0x7ffffff));
    word.depth = Select(deep, Field(w, 0, 0x3fffff), known_.LongConstant(0));
    word.divided = Each([&](uint32_t d) {
      return out_.Value(Op::OpLogicalAnd, known_.Bool(), {word.on, Equal(axis, d)});
    });
    return word;
  }

  Triple GroupId(const Word& word) {
    const Triple group = Components(BuiltIn::WorkgroupId);
    return Each([&](uint32_t d) {
      return Long(Op::OpIAdd, group[d], Select(word.divided[d], word.base, known_.LongConstant(0)));
    });
  }
  Triple GlobalId(const Word& word) {
    Triple id = Components(BuiltIn::GlobalInvocationId);
    id[2] = Select(word.on, word.depth, id[2]);
    return id;
  }
  Triple GlobalSize(const Word& word) {
    const Triple size = Components(BuiltIn::GlobalSize), local = Components(BuiltIn::WorkgroupSize);
    return Each([&](uint32_t d) { return Select(word.divided[d], Long(Op::OpIMul, word.all, local[d]), size[d]); });
  }
  // Of a part; from the ids, because drivers are wrong about the offset (carry.h).
  Triple GlobalOffset(const Word& word) {
    const Triple id = GlobalId(word), group = GroupId(word);
    const Triple local_id = Components(BuiltIn::LocalInvocationId), local = Components(BuiltIn::WorkgroupSize);
    return Each([&](uint32_t d) {
      const uint32_t behind = Long(Op::OpISub, id[d], local_id[d]);
      return Long(Op::OpISub, behind, Long(Op::OpIMul, group[d], local[d]));
    });
  }
  // Dimensions that the launch does not have add nothing.
  uint32_t LinearId(const Word& word) {
    const Triple id = GlobalId(word), offset = GlobalOffset(word), size = GlobalSize(word);
    const Triple at = Each([&](uint32_t d) { return Long(Op::OpISub, id[d], offset[d]); });
    const uint32_t row = Long(Op::OpIAdd, at[1], Long(Op::OpIMul, at[2], size[1]));
    return Long(Op::OpIAdd, at[0], Long(Op::OpIMul, row, size[0]));
  }

  template <typename Make>
  static Triple Each(Make&& make) {
    // One after the other: each writes instructions.
    const uint32_t x = make(0), y = make(1), z = make(2);
    return {x, y, z};
  }
  uint32_t Long(Op opcode, uint32_t one, uint32_t other) { return out_.Value(opcode, known_.Long(), {one, other}); }
  uint32_t Shift(uint32_t value, uint32_t bits) {
    return bits == 0 ? value : Long(Op::OpShiftRightLogical, value, known_.LongConstant(bits));
  }
  uint32_t Field(uint32_t word, uint32_t bits, uint64_t mask) {
    return Long(Op::OpBitwiseAnd, Shift(word, bits), known_.LongConstant(mask));
  }
  uint32_t Equal(uint32_t value, uint64_t to) {
    return out_.Value(Op::OpIEqual, known_.Bool(), {value, known_.LongConstant(to)});
  }
  uint32_t Select(uint32_t condition, uint32_t yes, uint32_t no) {
    return out_.Value(Op::OpSelect, known_.Long(), {condition, yes, no});
  }
  uint32_t Load(BuiltIn builtin) {
    return out_.Value(Op::OpLoad, known_.TypeOf(Raw(builtin)), {known_.Variable(builtin)});
  }
  Triple Components(BuiltIn builtin) {
    const uint32_t vector = Load(builtin);
    return Each([&](uint32_t d) { return out_.Value(Op::OpCompositeExtract, known_.Long(), {vector, d}); });
  }
  uint32_t Vector(const Triple& parts) {
    return out_.Value(Op::OpCompositeConstruct, known_.Longs(), {parts[0], parts[1], parts[2]});
  }

  Declarations& known_;
  IlIds* const ids_;
  IlWriter out_;
  std::map<uint32_t, uint32_t> functions_;
};

class Rewriter {
 public:
  Rewriter(const IlModule& module, const IlBuiltins& builtins)
      : module_(module),
        builtins_(builtins),
        ids_(module.bound()),
        declarations_(module, builtins, &ids_),
        functions_(&declarations_, &ids_),
        body_(&ids_) {}

  Result<std::vector<uint32_t>> Run() {
    // Types in the module may be others than those that the specification gives the built-ins.
    for (const auto& [builtin, variable] : builtins_.variables()) {
      if (Needs(builtin) && declarations_.Pointee(variable) != declarations_.TypeOf(builtin)) {
        return Status(Code::kInvalid, "a built-in has another type than it should");
      }
    }
    size_t first_function = module_.size();
    for (size_t i = 0; i < module_.size() && first_function == module_.size(); ++i) {
      if (OpcodeOf(module_.at(i)) == Op::OpFunction) first_function = i;
    }
    for (size_t i = first_function; i < module_.size(); ++i) {
      if (const Status status = Rewrite(module_.at(i)); !status.ok()) return status;
    }
    if (ids_.bound() > IlModule::kMostIds) return Status(Code::kExhausted, "its intermediate language has no ids left");
    return Join(first_function);
  }

 private:
  // Some added function may load it.
  static bool Needs(uint32_t builtin) {
    return IlBuiltins::IsCarried(builtin) || builtin == Raw(BuiltIn::LocalInvocationId) ||
           builtin == Raw(BuiltIn::WorkgroupSize);
  }

  Status Rewrite(const IlInstruction& instruction) {
    const bool is_component = builtins_.components().count(instruction.result) != 0;
    if (is_component) return {};  // Its loads take the component out of the whole.
    if (OpcodeOf(instruction) == Op::OpLoad && !instruction.inputs.empty()) {
      const uint32_t from = instruction.inputs[0];
      if (const int64_t builtin = builtins_.Of(from); IlBuiltins::IsCarried(builtin)) {
        const auto number = static_cast<uint32_t>(builtin);
        if (instruction.type != declarations_.TypeOf(number)) {
          return {Code::kInvalid, "a built-in is loaded as something else"};
        }
        body_.Add(Op::OpFunctionCall, {instruction.type, instruction.result, functions_.Of(number)});
        return {};
      }
      if (const auto component = builtins_.components().find(from); component != builtins_.components().end()) {
        const auto number = static_cast<uint32_t>(builtins_.Of(component->second.variable));
        if (declarations_.TypeOf(number) != declarations_.Longs() || instruction.type != declarations_.Long()) {
          return {Code::kInvalid, "a built-in is loaded as something else"};
        }
        const uint32_t whole = body_.Value(Op::OpFunctionCall, declarations_.Longs(), {functions_.Of(number)});
        body_.Add(Op::OpVectorExtractDynamic, {instruction.type, instruction.result, whole, component->second.index});
        return {};
      }
    }
    body_.Append(instruction.words);
    return {};
  }

  Result<std::vector<uint32_t>> Join(size_t first_function) {
    std::vector<uint32_t> all(module_.header().begin(), module_.header().end());
    all[3] = ids_.bound();
    const auto append = [&all](std::span<const uint32_t> words) { all.insert(all.end(), words.begin(), words.end()); };
    bool decorated = false;
    for (size_t i = 0; i < first_function; ++i) {
      const IlInstruction instruction = module_.at(i);
      if (!decorated && IsTypeOrConstant(OpcodeOf(instruction))) {
        append(declarations_.decorations());
        decorated = true;
      }
      // Names and decorations of what is no longer there.
      if (instruction.words.size() > 1 && IsRemark(OpcodeOf(instruction)) &&
          builtins_.components().count(instruction.words[1]) != 0) {
        continue;
      }
      const size_t at = all.size();
      append(instruction.words);
      if (OpcodeOf(instruction) != Op::OpEntryPoint) continue;
      // Every variable that the functions load stands in the interface; the first input is the function itself.
      for (const uint32_t variable : declarations_.used()) {
        const auto& interface = instruction.inputs;
        if (std::find(interface.begin() + 1, interface.end(), variable) == interface.end()) all.push_back(variable);
      }
      if (all.size() - at > UINT16_MAX) return Status(Code::kExhausted, "a kernel has too many built-ins");
      all[at] = static_cast<uint32_t>(all.size() - at) << 16 | static_cast<uint32_t>(Op::OpEntryPoint);
    }
    append(declarations_.declarations());
    append(body_.words());
    append(functions_.words());
    return all;
  }

  const IlModule& module_;
  const IlBuiltins& builtins_;
  IlIds ids_;
  Declarations declarations_;
  CarryFunctions functions_;
  IlWriter body_;
};

}  // namespace

Result<std::vector<uint32_t>> WithIlCarry(std::span<const std::byte> il) {
  Result<IlModule> module = IlModule::Parse(il);
  if (!module.ok()) return module.status();
  const IlBuiltins builtins(*module);
  if (!builtins.unclear().empty()) return Status(Code::kInvalid, builtins.unclear());
  if (!builtins.problem().empty()) return Status(Code::kInvalid, builtins.problem());
  return Rewriter(*module, builtins).Run();
}

}  // namespace hawser::server::slicing
