// SPDX-License-Identifier: Apache-2.0
// The parser's parts, private to softcuda/ptx. One Parser per text and thread. Errors are sticky: the first one is kept
// and every later step does nothing, so callers check once at the end of a statement.
#ifndef HAWSER_SOFTCUDA_PTX_PARSER_H_
#define HAWSER_SOFTCUDA_PTX_PARSER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softcuda/ptx/lexer.h"
#include "softcuda/ptx/module.h"
#include "softcuda/ptx/number.h"

namespace hawser::ptx {

class Parser {
 public:
  Parser(std::shared_ptr<const std::string> text, std::string name);
  wire::Result<std::shared_ptr<const Module>> Run();

 private:
  struct Entry {
    bool is_register = false;
    uint32_t index = 0;
  };
  struct RegisterRange {
    uint32_t count = 0;
    Type type = Type::kNone;
  };
  struct Fixup {
    std::string_view name;
    uint32_t operand = kNone;  ///< In operands; or,
    uint32_t list = kNone;     ///< an element of a target list.
    uint32_t element = 0;
    uint32_t line = 0;
  };
  struct Scope {
    std::unordered_map<std::string_view, Entry> names;
    std::unordered_map<std::string_view, RegisterRange> ranges;
    std::unordered_map<std::string_view, uint32_t> labels;
    std::unordered_map<std::string_view, uint32_t> prototypes;
    std::unordered_map<std::string_view, uint32_t> targets;
    std::vector<Fixup> fixups;
  };

  // Tokens.
  bool Fail(const std::string& what);
  bool ok() const { return error_.empty(); }
  const Token& Peek() const { return lexer_.Peek(); }
  Token Next();
  bool At(std::string_view text) const {
    return ok() && lexer_.Peek().text == text && lexer_.Peek().kind != TokenKind::kString;
  }
  bool Accept(std::string_view text);
  bool Expect(std::string_view text);
  std::string_view Word(const char* what);
  uint32_t SmallNumber(const char* what);

  // Module scope (parser.cc).
  void TopLevel();
  void Target();
  void Version();
  void SkipLoc();
  void SkipStatement();
  void AliasStatement();
  void Declaration();
  void SkipAttribute(Variable* variable);
  uint32_t Intern(std::string_view name);
  uint32_t FindFunction(std::string_view name);

  // Declarations (declaration_parser.cc).
  void Variables(Space space, Linkage linkage, Function* function);
  void Registers();
  bool TypeAndAlignment(Variable* variable, uint32_t* vector);
  bool Extents(Variable* variable, uint32_t vector);
  void Initialiser(Variable* variable, uint32_t element_size);
  void InitialList(Variable* variable, uint32_t element_size, uint64_t* offset, uint32_t depth);
  void InitialValue(Variable* variable, uint32_t element_size, uint64_t offset);
  void FunctionDeclaration(bool entry, Linkage linkage);
  std::vector<Variable> ParameterList(std::vector<std::string_view>* keys);
  uint32_t AddParameter(Function* function, Variable variable);
  void PerformanceDirectives(Function* function);

  // Constant expressions (declaration_parser.cc).
  Number Expression(uint32_t depth);
  Number Binary(uint32_t depth, int precedence);
  Number Unary(uint32_t depth);

  // Bodies (statement_parser.cc).
  void Body(Function* function);
  void Statement();
  void PushScope();
  void PopScope();
  void InstructionStatement();
  uint32_t AddOperand(const Operand& operand);
  Operand ParseOperand(uint32_t depth);
  void OptionalIndex(std::string_view name, Operand* operand);
  Operand AddressOf(const Operand& base, std::string_view name);
  void FixLater(const Operand& operand, std::string_view name, uint32_t index);
  Operand AddressOperand(uint32_t depth);
  Operand GroupOperand(OperandKind kind, std::string_view close, uint32_t depth);
  Operand NameOperand(std::string_view name);
  std::optional<Operand> PartOperand(std::string_view name);
  void OptionalOffset(Operand* operand);
  std::optional<Entry> Lookup(std::string_view name);
  std::optional<Entry> FromRange(Scope& scope, std::string_view name);
  void LabelStatement(std::string_view name);
  void Resolve(const Fixup& fixup, uint32_t label);

  std::shared_ptr<const std::string> text_;
  std::string name_;
  Lexer lexer_;
  std::string error_;
  std::shared_ptr<Module> module_;
  std::unordered_map<std::string_view, uint32_t> interned_;
  std::unordered_map<std::string_view, uint32_t> functions_;
  std::unordered_map<std::string_view, uint32_t> globals_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  uint64_t total_bytes_ = 0;  ///< Sum of initialised bytes, bounded.
  bool indexed_ = false;      ///< An operand was array[index].
  bool in_call_ = false;      ///< Parentheses hold arguments, not an expression.
};

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_PARSER_H_
