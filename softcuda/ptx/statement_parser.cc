// SPDX-License-Identifier: Apache-2.0
// Function bodies: scopes, labels, instructions and their operands.
#include <utility>

#include "softcuda/ptx/parser.h"

namespace hawser::ptx {
namespace {

constexpr uint32_t kMaxScopes = 64;
constexpr uint32_t kMaxOperandDepth = 4;
constexpr uint32_t kMaxOperands = 1u << 24;      // In one function, vectors' elements included.
constexpr uint32_t kMaxInstructions = 1u << 22;  // In one function.
constexpr uint32_t kMaxGroup = 4096;             // Elements of a vector or argument list.

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Parser::PushScope() {
  if (scopes_.size() >= kMaxScopes) {
    Fail("scopes nested too deeply");
    return;
  }
  scopes_.emplace_back();
}

void Parser::Resolve(const Fixup& fixup, uint32_t label) {
  if (fixup.list != kNone) {
    function_->target_lists[fixup.list].labels[fixup.element] = label;
    return;
  }
  Operand& operand = function_->operands[fixup.operand];
  operand.kind = OperandKind::kLabel;
  operand.index = label;
}

void Parser::PopScope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const Fixup& fixup : scope.fixups) {
    const auto label = scope.labels.find(fixup.name);
    if (label != scope.labels.end()) {
      Resolve(fixup, label->second);
      continue;
    }
    if (fixup.list == kNone) {
      const auto prototype = scope.prototypes.find(fixup.name);
      const auto targets = scope.targets.find(fixup.name);
      if (prototype != scope.prototypes.end() || targets != scope.targets.end()) {
        Operand& operand = function_->operands[fixup.operand];
        const bool is_prototype = prototype != scope.prototypes.end();
        operand.kind = is_prototype ? OperandKind::kPrototype : OperandKind::kTargets;
        operand.index = is_prototype ? prototype->second : targets->second;
        continue;
      }
    }
    if (!scopes_.empty()) {
      scopes_.back().fixups.push_back(fixup);
    } else if (fixup.list != kNone) {
      function_->target_lists[fixup.list].names.push_back(Intern(fixup.name));
    } else {
      Operand& operand = function_->operands[fixup.operand];
      operand.kind = OperandKind::kSymbol;
      operand.index = Intern(fixup.name);
    }
  }
}

void Parser::Body(Function* function) {
  if (!Expect("{")) return;
  const size_t base = scopes_.size();
  while (ok()) {
    if (At("}")) {
      Next();
      PopScope();
      if (scopes_.size() < base) return;
      continue;
    }
    if (At("{")) {
      Next();
      PushScope();
      continue;
    }
    Statement();
    if (function->instructions.size() > kMaxInstructions) Fail("a function of too many instructions");
  }
}

void Parser::Statement() {
  const Token token = Peek();
  if (token.kind == TokenKind::kEnd) {
    Fail("unfinished function");
    return;
  }
  if (token.text == ";") {
    Next();
    return;
  }
  if (token.kind == TokenKind::kDirective) {
    const std::string_view word = token.text;
    Next();
    if (word == ".reg") return Registers();
    if (word == ".local") return Variables(Space::kLocal, Linkage::kInternal, function_);
    if (word == ".shared" || word == ".shared::cta") return Variables(Space::kShared, Linkage::kInternal, function_);
    if (word == ".param") return Variables(Space::kParam, Linkage::kInternal, function_);
    if (word == ".loc") return SkipLoc();
    if (word == ".pragma") return SkipStatement();
    Fail("unknown directive in a function");
    return;
  }
  if (token.kind == TokenKind::kWord) {
    // A label is a word followed by a colon; opcodes never are.
    Lexer ahead = lexer_;
    ahead.Next();
    if (ahead.Peek().text == ":") {
      Next();
      Next();
      return LabelStatement(token.text);
    }
  }
  InstructionStatement();
}

void Parser::LabelStatement(std::string_view name) {
  Scope& scope = scopes_.back();
  if (Accept(".callprototype")) {
    Prototype prototype;
    std::vector<std::string_view> keys;
    if (At("(")) prototype.results = ParameterList(&keys);
    Word("_");
    if (At("(")) prototype.parameters = ParameterList(&keys);
    if (Accept(".noreturn")) {
    }
    if (At(".abi_preserve") || At(".abi_preserve_control")) {
      Next();
      SmallNumber("a number");
    }
    Expect(";");
    scope.prototypes[name] = static_cast<uint32_t>(function_->prototypes.size());
    function_->prototypes.push_back(std::move(prototype));
    return;
  }
  if (At(".branchtargets") || At(".calltargets")) {
    Next();
    const auto list = static_cast<uint32_t>(function_->target_lists.size());
    function_->target_lists.emplace_back();
    scope.targets[name] = list;
    do {
      Fixup fixup;
      fixup.line = Peek().line;
      fixup.name = Word("a label");
      fixup.list = list;
      fixup.element = static_cast<uint32_t>(function_->target_lists[list].labels.size());
      function_->target_lists[list].labels.push_back(kNone);
      scope.fixups.push_back(fixup);
    } while (Accept(","));
    Expect(";");
    return;
  }
  const auto at = static_cast<uint32_t>(function_->instructions.size());
  if (!scope.labels.emplace(name, at).second) {
    Fail("a second label '" + std::string(name.substr(0, 60)) + "'");
    return;
  }
  function_->labels.push_back({name, at});
}

std::optional<Parser::Entry> Parser::FromRange(Scope& scope, std::string_view name) {
  if (scope.ranges.empty() || name.empty() || !IsDigit(name.back())) return std::nullopt;
  uint64_t number = 0;
  uint64_t scale = 1;
  for (size_t i = name.size(); i > 1 && IsDigit(name[i - 1]) && name.size() - i < 9; --i) {
    number += scale * static_cast<uint64_t>(name[i - 1] - '0');
    scale *= 10;
    if (name[i - 1] == '0' && i != name.size()) continue;  // No leading zeros: "%r01" is not "%r<2>"'s second.
    const auto range = scope.ranges.find(name.substr(0, i - 1));
    if (range == scope.ranges.end() || number >= range->second.count) continue;
    const Entry entry{true, static_cast<uint32_t>(function_->registers.size())};
    function_->registers.push_back({name, range->second.type});
    scope.names[name] = entry;
    return entry;
  }
  return std::nullopt;
}

std::optional<Parser::Entry> Parser::Lookup(std::string_view name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto it = scopes_[i].names.find(name);
    if (it != scopes_[i].names.end()) return it->second;
    if (const auto made = FromRange(scopes_[i], name)) return made;
  }
  return std::nullopt;
}

uint32_t Parser::AddOperand(const Operand& operand) {
  if (function_->operands.size() >= kMaxOperands) {
    Fail("a function of too many operands");
    return 0;
  }
  const auto index = static_cast<uint32_t>(function_->operands.size());
  function_->operands.push_back(operand);
  return index;
}

void Parser::OptionalOffset(Operand* operand) {
  if (At("+") || At("-")) {
    const bool minus = Next().text == "-";
    const uint64_t value = Unary(0).bits;
    operand->value += minus ? 0 - value : value;
  }
}

/// array[3]: the address of an element (PTX ISA, "Arrays as Operands"). An index in a register, which the manual has as
/// well, is not known here.
void Parser::OptionalIndex(std::string_view name, Operand* operand) {
  if (!Accept("[")) return;
  const Variable* array = nullptr;
  if (operand->kind == OperandKind::kVariable) {
    array = &function_->variables[operand->index];
  } else if (const auto global = globals_.find(name);
             operand->kind == OperandKind::kSymbol && global != globals_.end()) {
    array = &module_->variables[global->second];
  }
  if (array == nullptr || array->dimensions != 1) {
    Fail("an index of '" + std::string(name.substr(0, 60)) + "', which is no array of one dimension,");
    return;
  }
  const Number index = Expression(0);
  Expect("]");
  if (ok() && (index.kind != Number::Kind::kInteger || index.bits > ~uint32_t{0})) {
    Fail("an index out of range");
    return;
  }
  operand->value = index.bits * array->element_size;
  indexed_ = true;
}

std::optional<Part> Part::FromName(std::string_view name) {
  if (name.size() < 2 || name.size() > 5 || (name[0] != 'b' && name[0] != 'h')) return std::nullopt;
  Part part;
  part.halves = name[0] == 'h';
  for (size_t i = name.size() - 1; i > 0; --i) {
    if (name[i] < '0' || name[i] > '7') return std::nullopt;
    part.lanes[part.count++] = static_cast<uint8_t>(name[i] - '0');
  }
  return part;
}

uint16_t Part::code() const {
  if (count == 0) return 0;
  uint32_t code = (halves ? 8u : 0u) | count;
  for (size_t i = 0; i < lanes.size(); ++i) code |= uint32_t{lanes[i]} << (4 + 3 * i);
  return static_cast<uint16_t>(code);
}

Part Part::FromCode(uint16_t code) {
  Part part;
  part.halves = (code & 8) != 0;
  part.count = code & 7;
  for (size_t i = 0; i < part.lanes.size(); ++i) part.lanes[i] = code >> (4 + 3 * i) & 7;
  return part;
}

/// %r.b0: a part of a register of the video instructions.
std::optional<Operand> Parser::PartOperand(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto part = Part::FromName(name.substr(dot + 1));
  if (!part) return std::nullopt;
  const auto entry = Lookup(name.substr(0, dot));
  if (!entry || !entry->is_register) return std::nullopt;
  Operand operand;
  operand.kind = OperandKind::kRegister;
  operand.index = entry->index;
  operand.count = part->code();
  return operand;
}

Operand Parser::NameOperand(std::string_view name) {
  Operand operand;
  if (name.empty() || name == "_") return operand;
  if (const auto entry = Lookup(name)) {
    operand.kind = entry->is_register ? OperandKind::kRegister : OperandKind::kVariable;
    operand.index = entry->index;
    return operand;
  }
  if (const auto special = SpecialFromName(name)) {
    operand.kind = OperandKind::kSpecial;
    operand.index = static_cast<uint32_t>(*special);
    return operand;
  }
  if (const auto part = PartOperand(name)) return *part;
  if (name[0] == '%') {
    Fail("unknown register '" + std::string(name.substr(0, 60)) + "'");
    return operand;
  }
  operand.kind = OperandKind::kSymbol;  // Or a label: known when the scope ends. The caller adds the fix-up.
  operand.index = kNone;
  return operand;
}

Operand Parser::GroupOperand(OperandKind kind, std::string_view close, uint32_t depth) {
  Operand group;
  group.kind = kind;
  std::vector<Operand> elements;
  std::vector<std::pair<size_t, std::string_view>> pending;
  while (ok() && !At(close)) {
    const std::string_view name = Peek().text;
    elements.push_back(ParseOperand(depth + 1));
    if (elements.back().kind == OperandKind::kSymbol && elements.back().index == kNone) {
      pending.emplace_back(elements.size() - 1, name);
    }
    if (elements.size() > kMaxGroup) Fail("too many elements");
    if (!Accept(",")) break;
  }
  Expect(close);
  if (!ok()) return group;
  group.count = static_cast<uint16_t>(elements.size());
  group.first = static_cast<uint32_t>(function_->operands.size());
  for (const Operand& element : elements) AddOperand(element);
  for (const auto& [element, name] : pending) {
    Fixup fixup;
    fixup.name = name;
    fixup.operand = group.first + static_cast<uint32_t>(element);
    scopes_.back().fixups.push_back(fixup);
  }
  return group;
}

Operand Parser::AddressOperand(uint32_t depth) {
  Operand address;
  address.kind = OperandKind::kAddress;
  const std::string_view name = Peek().text;
  const Operand base = ParseOperand(depth + 1);
  if (!ok()) return address;
  if (Accept(",")) {  // [texture, {coordinates}] and the like
    std::vector<Operand> rest{base};
    do {
      rest.push_back(ParseOperand(depth + 1));
      if (rest.size() > 4) Fail("too many parts of an address");
    } while (Accept(","));
    Expect("]");
    address.kind = OperandKind::kTexture;
    address.count = static_cast<uint16_t>(rest.size());
    address.first = static_cast<uint32_t>(function_->operands.size());
    for (const Operand& operand : rest) AddOperand(operand);
    FixLater(base, name, address.first);
    return address;
  }
  Expect("]");
  return AddressOf(base, name);
}

/// [base], of which `name` is the first word.
Operand Parser::AddressOf(const Operand& base, std::string_view name) {
  Operand address;
  address.kind = OperandKind::kAddress;
  address.count = 1;
  address.value = base.value;
  if (base.kind == OperandKind::kInteger) address.value = 0;
  address.first = AddOperand(base);
  FixLater(base, name, address.first);
  return address;
}

/// What `name`, which operand `index` is, means is known when the scope ends.
void Parser::FixLater(const Operand& operand, std::string_view name, uint32_t index) {
  if (!ok() || operand.kind != OperandKind::kSymbol || operand.index != kNone) return;
  Fixup fixup;
  fixup.name = name;
  fixup.operand = index;
  scopes_.back().fixups.push_back(fixup);
}

Operand Parser::ParseOperand(uint32_t depth) {
  Operand operand;
  if (depth > kMaxOperandDepth) {
    Fail("operands nested too deeply");
    return operand;
  }
  const Token token = Peek();
  if (Accept("[")) return AddressOperand(depth);
  if (Accept("{")) return GroupOperand(OperandKind::kVector, "}", depth);
  if (token.text == "(" && depth == 0 && in_call_) {
    Next();
    return GroupOperand(OperandKind::kList, ")", depth);
  }
  if (Accept("!")) {
    operand = ParseOperand(depth + 1);
    operand.negated = !operand.negated;
    return operand;
  }
  if (token.text == "-") {
    Lexer ahead = lexer_;
    ahead.Next();
    if (ahead.Peek().kind == TokenKind::kWord && ahead.Peek().text != "WARP_SZ") {
      Next();
      operand = ParseOperand(depth + 1);
      if (operand.kind != OperandKind::kRegister) Fail("a minus before what is no register");
      operand.negated = !operand.negated;
      return operand;
    }
  }
  if (token.kind == TokenKind::kWord && token.text != "WARP_SZ") {
    Next();
    operand = NameOperand(token.text);
    if (!ok()) return operand;
    if (Accept("|")) {
      const std::string_view name = Word("a second destination");
      operand.second = AddOperand(NameOperand(name));
    } else if (operand.kind != OperandKind::kSpecial) {
      OptionalIndex(token.text, &operand);
      OptionalOffset(&operand);
    }
    return operand;
  }
  const Number number = Expression(0);
  operand.value = number.bits;
  operand.kind = number.kind == Number::Kind::kInteger   ? OperandKind::kInteger
                 : number.kind == Number::Kind::kFloat32 ? OperandKind::kFloat32
                                                         : OperandKind::kFloat64;
  return operand;
}

void Parser::InstructionStatement() {
  Instruction instruction;
  instruction.line = Peek().line;
  const size_t begin = lexer_.Offset();
  if (Accept("@")) {
    instruction.predicated = true;
    instruction.predicate_negated = Accept("!");
    const std::string_view name = Word("a predicate register");
    const auto entry = ok() ? Lookup(name) : std::nullopt;
    if (!entry || !entry->is_register || function_->registers[entry->index].type != Type::kPred) {
      Fail("a guard that is no predicate register: '" + std::string(name.substr(0, 60)) + "'");
      return;
    }
    instruction.predicate = entry->index;
  }
  instruction.op = Word("an instruction");
  in_call_ = instruction.op == "call" || instruction.op.starts_with("call.");
  std::vector<Operand> operands;
  std::vector<std::pair<size_t, std::string_view>> pending;
  while (ok() && !At(";")) {
    const std::string_view name = Peek().text;
    indexed_ = false;
    operands.push_back(ParseOperand(0));
    // Moved, an element is its address; elsewhere it is what is there: ld.global.u32 %r, array[1].
    const OperandKind kind = operands.back().kind;
    if (indexed_ && (kind == OperandKind::kVariable || kind == OperandKind::kSymbol) &&
        !instruction.op.starts_with("mov")) {
      operands.back() = AddressOf(operands.back(), name);
    }
    if (operands.back().kind == OperandKind::kSymbol && operands.back().index == kNone) {
      pending.emplace_back(operands.size() - 1, name);
    }
    if (operands.size() > 64) Fail("too many operands");
    // A vote or setp destination "p|q" is one operand; everything else is separated by commas.
    if (!Accept(",")) break;
  }
  const size_t end = lexer_.Offset();
  if (!At(";")) {
    Fail("expected ',' or ';' after an operand of '" + std::string(instruction.op.substr(0, 60)) + "'");
    return;
  }
  Next();
  if (!ok()) return;
  instruction.text = std::string_view(*text_).substr(begin, end - begin);
  instruction.first_operand = static_cast<uint32_t>(function_->operands.size());
  instruction.operand_count = static_cast<uint16_t>(operands.size());
  for (const Operand& operand : operands) AddOperand(operand);
  for (const auto& [element, name] : pending) {
    Fixup fixup;
    fixup.name = name;
    fixup.operand = instruction.first_operand + static_cast<uint32_t>(element);
    scopes_.back().fixups.push_back(fixup);
  }
  function_->instructions.push_back(instruction);
}

}  // namespace hawser::ptx
