// SPDX-License-Identifier: Apache-2.0
// Variables, registers, functions and constant expressions.
#include <algorithm>
#include <bit>
#include <utility>

#include "softcuda/ptx/parser.h"

namespace hawser::ptx {
namespace {

constexpr uint32_t kMaxDepth = 48;                // Nesting of braces, scopes and expressions.
constexpr uint64_t kMaxSize = uint64_t{1} << 40;  // Bytes of one variable.
constexpr uint64_t kMaxParameter = 1u << 20;      // Bytes of one parameter.
constexpr uint32_t kMaxAlignment = 1u << 16;

}  // namespace

// ---- constant expressions (PTX ISA 4.6), in C's precedence ----

Number Parser::Expression(uint32_t depth) {
  if (depth > kMaxDepth) {
    Fail("an expression nested too deeply");
    return {};
  }
  Number condition = Binary(depth, 0);
  if (!Accept("?")) return condition;
  const Number yes = Expression(depth + 1);
  Expect(":");
  const Number no = Expression(depth + 1);
  return condition.bits != 0 ? yes : no;
}

namespace {

int Precedence(std::string_view op) {
  if (op == "||") return 1;
  if (op == "&&") return 2;
  if (op == "|") return 3;
  if (op == "^") return 4;
  if (op == "&") return 5;
  if (op == "==" || op == "!=") return 6;
  if (op == "<" || op == ">" || op == "<=" || op == ">=") return 7;
  if (op == "<<" || op == ">>") return 8;
  if (op == "+" || op == "-") return 9;
  if (op == "*" || op == "/" || op == "%") return 10;
  return 0;
}

double AsDouble(const Number& number) { return std::bit_cast<double>(Float64Bits(number)); }

Number FloatBinary(std::string_view op, const Number& a, const Number& b) {
  const double x = AsDouble(a);
  const double y = AsDouble(b);
  Number result;
  result.kind = Number::Kind::kFloat64;
  double value = 0;
  if (op == "+") value = x + y;
  if (op == "-") value = x - y;
  if (op == "*") value = x * y;
  if (op == "/") value = x / y;
  result.bits = std::bit_cast<uint64_t>(value);
  return result;
}

uint64_t Shift(std::string_view op, uint64_t x, uint64_t by, bool is_unsigned) {
  if (by > 63) return 0;
  if (op == "<<") return x << by;
  return is_unsigned ? x >> by : static_cast<uint64_t>(static_cast<int64_t>(x) >> by);
}

std::optional<uint64_t> Divide(std::string_view op, uint64_t x, uint64_t y, bool is_unsigned) {
  if (y == 0) return std::nullopt;
  if (is_unsigned) return op == "/" ? x / y : x % y;
  const auto a = static_cast<int64_t>(x);
  const auto b = static_cast<int64_t>(y);
  if (b == -1) return op == "/" ? uint64_t{0} - x : 0;
  return static_cast<uint64_t>(op == "/" ? a / b : a % b);
}

bool Compare(std::string_view op, uint64_t x, uint64_t y, bool is_unsigned) {
  const auto a = static_cast<int64_t>(x);
  const auto b = static_cast<int64_t>(y);
  if (op == "==") return x == y;
  if (op == "!=") return x != y;
  if (op == "<") return is_unsigned ? x < y : a < b;
  if (op == ">") return is_unsigned ? x > y : a > b;
  if (op == "<=") return is_unsigned ? x <= y : a <= b;
  return is_unsigned ? x >= y : a >= b;
}

}  // namespace

Number Parser::Binary(uint32_t depth, int precedence) {
  if (depth > kMaxDepth) {
    Fail("an expression nested too deeply");
    return {};
  }
  Number left = Unary(depth + 1);
  while (ok() && Peek().kind == TokenKind::kPunctuation) {
    const std::string_view op = Peek().text;
    const int mine = Precedence(op);
    if (mine == 0 || mine <= precedence) break;
    Next();
    const Number right = Binary(depth + 1, mine);
    if (left.kind != Number::Kind::kInteger || right.kind != Number::Kind::kInteger) {
      left = FloatBinary(op, left, right);
      continue;
    }
    const bool is_unsigned = left.is_unsigned || right.is_unsigned;
    const uint64_t x = left.bits;
    const uint64_t y = right.bits;
    left.is_unsigned = is_unsigned;
    switch (mine) {
      case 1:
        left.bits = (x != 0 || y != 0) ? 1 : 0;
        break;
      case 2:
        left.bits = (x != 0 && y != 0) ? 1 : 0;
        break;
      case 3:
        left.bits = x | y;
        break;
      case 4:
        left.bits = x ^ y;
        break;
      case 5:
        left.bits = x & y;
        break;
      case 6:
      case 7:
        left.bits = Compare(op, x, y, is_unsigned) ? 1 : 0;
        break;
      case 8:
        left.bits = Shift(op, x, y, is_unsigned);
        break;
      case 9:
        left.bits = op == "+" ? x + y : x - y;
        break;
      default: {
        const auto value = op == "*" ? std::optional(x * y) : Divide(op, x, y, is_unsigned);
        if (!value) Fail("a division by zero");
        left.bits = value.value_or(0);
      }
    }
  }
  return left;
}

Number Parser::Unary(uint32_t depth) {
  if (depth > kMaxDepth) {
    Fail("an expression nested too deeply");
    return {};
  }
  if (Accept("-")) {
    Number value = Unary(depth + 1);
    if (value.kind == Number::Kind::kInteger) {
      value.bits = 0 - value.bits;
    } else {
      value.bits ^= value.kind == Number::Kind::kFloat64 ? uint64_t{1} << 63 : uint64_t{1} << 31;
    }
    return value;
  }
  if (Accept("+")) return Unary(depth + 1);
  if (Accept("!")) {
    Number value = Unary(depth + 1);
    value.bits = value.bits == 0 ? 1 : 0;
    return value;
  }
  if (Accept("~")) {
    Number value = Unary(depth + 1);
    value.bits = ~value.bits;
    return value;
  }
  if (Accept("(")) {
    if (At(".s64") || At(".u64")) {
      const bool is_unsigned = Next().text == ".u64";
      Expect(")");
      Number value = Unary(depth + 1);
      value.is_unsigned = is_unsigned;
      return value;
    }
    const Number value = Expression(depth + 1);
    Expect(")");
    return value;
  }
  if (Accept("WARP_SZ")) {
    Number value;
    value.bits = 32;
    return value;
  }
  const auto number = Peek().kind == TokenKind::kNumber ? ParseNumber(Peek().text) : std::nullopt;
  if (!number) {
    Fail("expected a constant");
    return {};
  }
  Next();
  return *number;
}

// ---- variables ----

bool Parser::TypeAndAlignment(Variable* variable, uint32_t* vector) {
  bool pointer = false;
  while (ok() && Peek().kind == TokenKind::kDirective) {
    const std::string_view word = Next().text.substr(1);
    if (word == "align") {
      const uint32_t alignment = SmallNumber("an alignment");
      if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMaxAlignment) {
        return Fail("an alignment that is no power of two up to 65536");
      }
      if (!pointer) variable->alignment = alignment;  // After .ptr it speaks of what is pointed to.
    } else if (word == "v2" || word == "v4" || word == "v8") {
      *vector = static_cast<uint32_t>(word[1] - '0');
    } else if (word == "ptr") {
      pointer = variable->pointer = true;
    } else if (word == "attribute") {
      SkipAttribute(variable);
    } else if (pointer && (word == "global" || word == "shared" || word == "const" || word == "local" ||
                           word == "generic" || word == "param")) {
      continue;
    } else if (const auto type = TypeFromName(word)) {
      variable->type = *type;
    } else {
      return Fail("unknown type or attribute '." + std::string(word.substr(0, 40)) + "'");
    }
  }
  if (ok() && (SizeOf(variable->type) == 0 || variable->type == Type::kPred)) return Fail("a variable without a type");
  return ok();
}

bool Parser::Extents(Variable* variable, uint32_t vector) {
  uint64_t size = uint64_t{SizeOf(variable->type)} * vector;
  variable->alignment = std::max(variable->alignment, static_cast<uint32_t>(size));
  variable->element_size = static_cast<uint32_t>(size);
  bool first = true;
  while (Accept("[")) {
    if (first && Accept("]")) {
      variable->unsized = true;
    } else {
      const Number extent = Expression(0);
      Expect("]");
      if (!ok()) return false;
      const bool fits = extent.kind == Number::Kind::kInteger && (extent.bits == 0 || size <= kMaxSize / extent.bits);
      if (!fits) return Fail("an array that is too large");
      size *= extent.bits;
    }
    first = false;
    ++variable->dimensions;
  }
  variable->size = variable->unsized ? 0 : size;
  return ok();
}

void Parser::InitialValue(Variable* variable, uint32_t element_size, uint64_t offset) {
  const uint64_t end = offset + element_size;
  if (!variable->unsized && end > variable->size) {
    Fail("more initial values than the variable holds");
    return;
  }
  InitialAddress address;
  address.offset = offset;
  address.width = static_cast<uint8_t>(std::min<uint32_t>(element_size, 8));
  const auto symbol = [&] {
    address.generic = Accept("generic");
    if (address.generic) Expect("(");
    address.name = Intern(Word("a symbol"));
    if (address.generic) Expect(")");
    if (At("+") || At("-")) address.addend = static_cast<int64_t>(Expression(0).bits);
    variable->addresses.push_back(address);
  };
  uint64_t bits = 0;
  if (Peek().kind == TokenKind::kWord && Peek().text != "WARP_SZ") {
    symbol();
  } else {
    const Number number = Expression(0);
    if (Accept("(")) {  // mask(symbol)
      address.shift = static_cast<uint8_t>(std::countr_zero(number.bits | (uint64_t{1} << 56)));
      address.shift = static_cast<uint8_t>(address.shift & ~7);
      symbol();
      Expect(")");
    } else {
      bits = variable->type == Type::kF32   ? Float32Bits(number)
             : variable->type == Type::kF64 ? Float64Bits(number)
                                            : number.bits;
    }
  }
  if (!ok() || bits == 0) {
    if (variable->unsized) variable->size = std::max(variable->size, end);
    return;
  }
  if (variable->initial.size() < end) {
    total_bytes_ += end - variable->initial.size();
    if (total_bytes_ > std::max<uint64_t>(uint64_t{64} << 20, text_->size() * 8)) {
      Fail("too many initial bytes");
      return;
    }
    variable->initial.resize(end);
  }
  for (uint32_t i = 0; i < element_size && i < 8; ++i) {
    variable->initial[offset + i] = static_cast<uint8_t>(bits >> (8 * i));
  }
  if (variable->unsized) variable->size = std::max(variable->size, end);
}

void Parser::InitialList(Variable* variable, uint32_t element_size, uint64_t* offset, uint32_t depth) {
  if (depth > kMaxDepth) {
    Fail("an initialiser nested too deeply");
    return;
  }
  Expect("{");
  while (ok() && !At("}")) {
    if (At("{")) {
      InitialList(variable, element_size, offset, depth + 1);
    } else {
      InitialValue(variable, element_size, *offset);
      *offset += element_size;
    }
    if (!Accept(",")) break;
  }
  Expect("}");
}

void Parser::Initialiser(Variable* variable, uint32_t element_size) {
  uint64_t offset = 0;
  if (At("{")) {
    InitialList(variable, element_size, &offset, 0);
  } else {
    InitialValue(variable, element_size, 0);
  }
}

void Parser::Variables(Space space, Linkage linkage, Function* function) {
  Variable prototype;
  uint32_t vector = 1;
  prototype.space = space;
  prototype.linkage = linkage;
  if (!TypeAndAlignment(&prototype, &vector)) return;
  do {
    Variable variable = prototype;
    variable.line = Peek().line;
    const std::string_view name = Word("a variable's name");
    variable.name = name;
    uint64_t count = 1;
    if (At("<")) {  // .param .b32 p<4>
      Next();
      count = SmallNumber("a count");
      Expect(">");
      if (count > 4096) Fail("too many variables");
    }
    if (!Extents(&variable, vector)) return;
    if (space == Space::kParam && variable.size > kMaxParameter) Fail("a parameter of more than 1 MiB");
    if (Accept("=")) {
      if (space != Space::kGlobal && space != Space::kConst) Fail("an initial value in a space that has none");
      Initialiser(&variable, SizeOf(variable.type));
    }
    if (!ok()) return;
    if (function == nullptr) {
      const auto index = static_cast<uint32_t>(module_->variables.size());
      const auto [it, fresh] = globals_.emplace(name, index);
      if (fresh) {
        module_->variables.push_back(std::move(variable));
      } else {
        Variable& known = module_->variables[it->second];
        if (known.linkage != Linkage::kExtern && linkage != Linkage::kExtern) {
          Fail("a second definition of '" + variable.name.substr(0, 80) + "'");
        } else if (linkage != Linkage::kExtern) {
          known = std::move(variable);
        }
      }
      continue;
    }
    if (function->variables.size() >= 1u << 20) {
      Fail("too many variables");
      return;
    }
    if (count > 1 || name.find('<') != std::string_view::npos) {
      Fail("a numbered variable");
      return;
    }
    scopes_.back().names[name] = {false, static_cast<uint32_t>(function->variables.size())};
    function->variables.push_back(std::move(variable));
  } while (Accept(","));
  Expect(";");
}

void Parser::Registers() {
  Variable type;
  uint32_t vector = 1;
  if (At(".pred")) {
    Next();
    type.type = Type::kPred;
  } else if (!TypeAndAlignment(&type, &vector)) {
    return;
  }
  if (vector != 1) {
    Fail("vector registers, which this device does not know,");
    return;
  }
  do {
    const std::string_view name = Word("a register's name");
    uint32_t count = kNone;
    if (Accept("<")) {
      count = SmallNumber("a count");
      Expect(">");
    }
    if (!ok()) return;
    if (count != kNone) {
      scopes_.back().ranges[name] = {count, type.type};
    } else {
      scopes_.back().names[name] = {true, static_cast<uint32_t>(function_->registers.size())};
      function_->registers.push_back({name, type.type});
    }
  } while (Accept(","));
  Expect(";");
}

// ---- functions ----

std::vector<Variable> Parser::ParameterList(std::vector<std::string_view>* keys) {
  std::vector<Variable> list;
  if (!Expect("(")) return list;
  while (ok() && !At(")")) {
    Variable variable;
    uint32_t vector = 1;
    variable.line = Peek().line;
    if (Accept(".reg")) {
      variable.space = Space::kRegister;
    } else {
      Expect(".param");
      variable.space = Space::kParam;
    }
    if (variable.space == Space::kRegister && Accept(".pred")) {
      variable.type = Type::kPred;
    } else if (!TypeAndAlignment(&variable, &vector)) {
      break;
    }
    keys->push_back(Word("a parameter's name"));
    variable.name = keys->back();
    if (variable.type != Type::kPred && !Extents(&variable, vector)) break;
    if (variable.size > kMaxParameter) Fail("a parameter of more than 1 MiB");
    list.push_back(std::move(variable));
    if (list.size() > 65536) Fail("too many parameters");
    if (!Accept(",")) break;
  }
  Expect(")");
  return list;
}

uint32_t Parser::AddParameter(Function* function, Variable variable) {
  if (variable.space == Space::kRegister) {
    function->registers.push_back({{}, variable.type});
    return Function::kRegisterFlag | static_cast<uint32_t>(function->registers.size() - 1);
  }
  function->variables.push_back(std::move(variable));
  return static_cast<uint32_t>(function->variables.size() - 1);
}

void Parser::PerformanceDirectives(Function* function) {
  while (ok() && Peek().kind == TokenKind::kDirective) {
    const std::string_view word = Next().text;
    const auto triple = [&] {
      std::array<uint32_t, 3> value{1, 1, 1};
      for (size_t i = 0; i < 3; ++i) {
        value[i] = SmallNumber("a number");
        if (!Accept(",")) break;
      }
      return value;
    };
    if (word == ".maxntid") {
      function->max_threads = triple();
    } else if (word == ".reqntid") {
      function->required_threads = triple();
    } else if (word == ".minnctapersm") {
      function->min_blocks = SmallNumber("a number");
    } else if (word == ".maxnreg") {
      function->max_registers = SmallNumber("a number");
    } else if (word == ".noreturn") {
      function->noreturn = true;
    } else if (word == ".pragma") {
      SkipStatement();
    } else if (word == ".attribute") {
      SkipAttribute(nullptr);
    } else if (word == ".reqnctapercluster") {
      function->required_cluster = triple();
      for (const uint32_t blocks : function->required_cluster) {
        if (blocks == 0) Fail("a cluster without blocks");
      }
    } else if (word == ".explicitcluster") {
      function->explicit_cluster = true;
    } else if (word == ".maxclusterrank") {
      function->max_cluster = SmallNumber("a number");
    } else if (word == ".abi_preserve" || word == ".abi_preserve_control" || word == ".maxnctapersm") {
      triple();
    } else if (word == ".blocksareclusters") {
      function->blocks_are_clusters = true;
    } else {
      Fail("unknown directive '" + std::string(word.substr(0, 40)) + "' of a function");
    }
  }
}

void Parser::FunctionDeclaration(bool entry, Linkage linkage) {
  if (At(".attribute")) {
    Next();
    SkipAttribute(nullptr);
  }
  std::vector<Variable> results;
  std::vector<std::string_view> result_keys;
  if (!entry && At("(")) results = ParameterList(&result_keys);
  const uint32_t line = Peek().line;
  const std::string_view name = Word("a function's name");
  std::vector<Variable> parameters;
  std::vector<std::string_view> parameter_keys;
  if (At("(")) parameters = ParameterList(&parameter_keys);
  const auto in_register = [](const Variable& variable) { return variable.space == Space::kRegister; };
  if (entry && std::any_of(parameters.begin(), parameters.end(), in_register))
    Fail("a kernel's parameter in a register");
  if (!ok()) return;

  Function made;
  made.name = name;
  made.linkage = linkage;
  made.entry = entry;
  made.line = line;
  made.result_count = static_cast<uint32_t>(results.size());
  made.parameter_count = static_cast<uint32_t>(parameters.size());
  Scope scope;
  const auto add = [&](std::vector<Variable>& list, const std::vector<std::string_view>& keys,
                       std::vector<uint32_t>* places) {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string_view key = keys[i];
      const uint32_t place = AddParameter(&made, std::move(list[i]));
      places->push_back(place);
      const bool is_register = (place & Function::kRegisterFlag) != 0;
      scope.names[key] = {is_register, place & ~Function::kRegisterFlag};
      if (is_register) made.registers.back().name = key;
    }
  };
  add(results, result_keys, &made.results);
  add(parameters, parameter_keys, &made.parameters);
  PerformanceDirectives(&made);
  const bool has_body = At("{");
  const uint32_t known = FindFunction(name);
  Function* target = nullptr;
  if (known == kNone) {
    functions_[name] = static_cast<uint32_t>(module_->functions.size());
    module_->functions.push_back(std::move(made));
    target = &module_->functions.back();
  } else {
    target = &module_->functions[known];
    if (target->defined && has_body) {
      Fail("a second definition of '" + std::string(name.substr(0, 80)) + "'");
      return;
    }
    if (!target->defined) {
      if (linkage == Linkage::kInternal || linkage == Linkage::kExtern) made.linkage = target->linkage;
      if (linkage != Linkage::kExtern && target->linkage == Linkage::kExtern) made.linkage = linkage;
      *target = std::move(made);
    }
  }
  if (!has_body) {
    Expect(";");
    return;
  }
  target->defined = true;
  if (target->linkage == Linkage::kExtern) target->linkage = Linkage::kVisible;
  function_ = target;
  scopes_.clear();
  scopes_.push_back(std::move(scope));
  Body(target);
  function_ = nullptr;
}

}  // namespace hawser::ptx
