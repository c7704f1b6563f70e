// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/variables.h"

#include "softcuda/ptx/lexer.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::Function;
using ptx::Instruction;
using ptx::Lexer;
using ptx::Operand;
using ptx::OperandKind;
using ptx::TokenKind;
using ptx::Variable;
using wire::Code;
using wire::Status;

/// What compilers name the texts of messages: nobody writes to them.
bool IsText(const Variable& variable) {
  return variable.space == ptx::Space::kGlobal && variable.linkage == ptx::Linkage::kInternal &&
         !variable.initial.empty() && variable.addresses.empty() &&
         (variable.name.starts_with("$str") || variable.name.starts_with("_$_str") ||
          variable.name.starts_with("__unnamed_"));
}

Status Whole(const std::string& why) { return Status(Code::kInvalid, why); }

/// Where in an opcode ".const" stands, as one of its parts; npos: nowhere.
size_t ConstPart(std::string_view op) {
  constexpr std::string_view kPart = ".const";
  for (size_t at = op.find(kPart); at != std::string_view::npos; at = op.find(kPart, at + 1)) {
    const size_t end = at + kPart.size();
    if (end == op.size() || op[end] == '.') return at;
  }
  return std::string_view::npos;
}

/// An operand that names something, in the text of its instruction: from the name to where the operand ends.
struct Named {
  size_t begin = 0, end = 0;
  bool bracketed = false;  ///< Behind '['.
};

/// The only one of this name; false when there is none, or more.
bool FindNamed(std::string_view instruction, std::string_view name, Named* named) {
  bool found = false;
  std::string_view before;
  for (Lexer lexer(instruction); lexer.Peek().kind != TokenKind::kEnd;) {
    if (lexer.Peek().kind != TokenKind::kWord || lexer.Peek().text != name) {
      before = lexer.Next().text;
      continue;
    }
    if (found) return false;
    found = true;
    named->bracketed = before == "[";
    named->begin = lexer.Offset();
    named->end = named->begin + name.size();
    lexer.Next();
    // What follows belongs to it (name+4, name[2]) up to what closes or separates.
    for (int depth = 0; lexer.Peek().kind != TokenKind::kEnd;) {
      const std::string_view next = lexer.Peek().text;
      if (depth == 0 && (next == "," || next == "]" || next == ")" || next == "}")) break;
      if (next == "[" || next == "(") ++depth;
      if (next == "]" || next == ")") --depth;
      named->end = lexer.Offset() + next.size();
      lexer.Next();
    }
  }
  return found;
}

}  // namespace

bool IsReference(const Variable& variable) {
  return variable.type == ptx::Type::kTexref || variable.type == ptx::Type::kSamplerref ||
         variable.type == ptx::Type::kSurfref;
}

bool IsTheModules(const Variable& variable) {
  const bool memory = variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst;
  return memory && !IsText(variable);
}

VariableUses::VariableUses(const ptx::Module& module, TextEdits* edits) : module_(module), edits_(edits) {
  for (const Variable& variable : module.variables) {
    if (!IsTheModules(variable)) continue;
    variables_.emplace(variable.name, &variable);
    constants_ = constants_ || variable.space == ptx::Space::kConst;
  }
}

size_t VariableUses::SlotOf(const std::string& name) {
  const auto [at, is_new] = slots_.emplace(name, used_.size());
  if (is_new) used_.push_back(name);
  return at->second;
}

Status VariableUses::Redirect(const Function& function) {
  // Addresses that the assembler writes into a variable of the function would be those of variables that are gone.
  for (const Variable& variable : function.variables) {
    for (const ptx::InitialAddress& address : variable.addresses) {
      if (address.name < module_.names.size() && variables_.contains(module_.names[address.name])) {
        return Whole("a variable of a function holds the address of one of its module");
      }
    }
  }
  for (const Instruction& instruction : function.instructions) {
    if (Status status = RedirectOne(function, instruction); !status.ok()) return status;
  }
  return Status();
}

Status VariableUses::RedirectOne(const Function& function, const Instruction& instruction) {
  const auto symbol = [&](const Operand& operand) -> const Variable* {
    if (operand.kind != OperandKind::kSymbol || operand.index >= module_.names.size()) return nullptr;
    const auto at = variables_.find(module_.names[operand.index]);
    return at == variables_.end() ? nullptr : at->second;
  };
  const Variable* used = nullptr;
  uint64_t distance = 0;
  bool in_brackets = false;
  // The operands with all that is in them lie together, before those of the next instruction; only those that stand for
  // themselves, or alone in brackets, are known here.
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = function.operands[instruction.first_operand + i];
    const bool address = operand.kind == OperandKind::kAddress;
    if (operand.kind == OperandKind::kVector || operand.kind == OperandKind::kList ||
        operand.kind == OperandKind::kTexture) {
      for (uint32_t each = 0; each < operand.count; ++each) {
        if (symbol(function.operands[operand.first + each]) != nullptr) {
          return Whole("it names a variable of its module where that cannot be replaced");
        }
      }
      continue;
    }
    const Operand& base = address ? function.operands[operand.first] : operand;
    const Variable* variable = symbol(base);
    if (variable == nullptr) continue;
    if (used != nullptr || IsReference(*variable) || base.negated) {
      return Whole("it names variables of its module where they cannot be replaced");
    }
    used = variable;
    distance = operand.value;
    in_brackets = address;
  }
  if (constants_ && instruction.op.starts_with("isspacep")) return Whole("it asks what memory an address is of");
  const size_t begin = edits_->Offset(instruction.text);
  if (const size_t part = ConstPart(instruction.op); constants_ && part != std::string_view::npos) {
    if (!instruction.op.starts_with("ld.") && !instruction.op.starts_with("cvta.")) {
      return Whole("what it does with constant memory cannot be done with other memory");
    }
    const size_t at = edits_->Offset(instruction.op) + part;
    edits_->Replace(at, at + std::string_view(".const").size(), ".global");
  }
  if (used == nullptr) return Status();
  const size_t slot = SlotOf(used->name);
  if (slot >= kMost) return Whole("it uses too many variables of its module");
  Named named;
  if (!FindNamed(instruction.text, used->name, &named)) {
    return Whole("it names a variable of its module where that cannot be replaced");
  }
  std::string before = "{ .reg .b64 %__hawser_v; ld.const.u64 %__hawser_v, [" + std::string(kVariableTable) + "+" +
                       std::to_string(8 * slot) + "]; ";
  if (distance != 0) {
    before += "add.s64 %__hawser_v, %__hawser_v, " + std::to_string(static_cast<int64_t>(distance)) + "; ";
  }
  edits_->Insert(begin, std::move(before));
  // ld.global.u32 %r, name[1]: an element that stands for what is there.
  const bool element = in_brackets && !named.bracketed;
  edits_->Replace(begin + named.begin, begin + named.end, element ? "[%__hawser_v]" : "%__hawser_v");
  const size_t end = edits_->text().find(';', begin + instruction.text.size());
  if (end == std::string_view::npos) return Whole("an instruction does not end");
  edits_->Insert(end + 1, " }");
  return Status();
}

Status VariableUses::Declare(const Places& places) {
  // Ahead of what may go from the same place.
  if (!used_.empty()) {
    edits_->Insert(places.first, ".visible .const .align 8 .b64 " + std::string(kVariableTable) + "[" +
                                     std::to_string(used_.size()) + "];\n");
  }
  std::unordered_map<std::string_view, const Variable*> all;
  for (const Variable& variable : module_.variables) all.emplace(variable.name, &variable);
  for (const VariablePlace& place : places.variables) {
    size_t theirs = 0, others = 0;
    int depth = 0;  // Initial values name variables too.
    for (Lexer lexer(edits_->text().substr(place.begin, place.end - place.begin)); lexer.Peek().kind != TokenKind::kEnd;
         lexer.Next()) {
      const std::string_view text = lexer.Peek().text;
      if (text == "{" || text == "(" || text == "[") ++depth;
      if (text == "}" || text == ")" || text == "]") --depth;
      const auto at = all.find(text);
      if (depth != 0 || lexer.Peek().kind != TokenKind::kWord || at == all.end()) continue;
      ++(IsTheModules(*at->second) ? theirs : others);
      // What a name begins with ends at "," or ";".
      while (lexer.Peek().kind != TokenKind::kEnd && !(depth == 0 && lexer.Peek().text == ",")) {
        lexer.Next();
        if (lexer.Peek().text == "{" || lexer.Peek().text == "(" || lexer.Peek().text == "[") ++depth;
        if (lexer.Peek().text == "}" || lexer.Peek().text == ")" || lexer.Peek().text == "]") --depth;
      }
      if (lexer.Peek().kind == TokenKind::kEnd) break;
    }
    if (theirs != 0 && others != 0) return Whole("its module declares texts together with variables");
    if (theirs != 0) edits_->Replace(place.begin, place.end, "");
  }
  return Status();
}

}  // namespace hawser::server::cuda_slicing
