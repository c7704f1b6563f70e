// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/parser.h"

#include <utility>

namespace hawser::ptx {

Parser::Parser(std::shared_ptr<const std::string> text, std::string name)
    : text_(std::move(text)), name_(std::move(name)), lexer_(*text_), module_(std::make_shared<Module>()) {
  module_->text = text_;
}

bool Parser::Fail(const std::string& what) {
  if (!ok()) return false;
  const Token& token = lexer_.Peek();
  std::string near(token.text.substr(0, 60));
  if (token.kind == TokenKind::kEnd) near = "end of text";
  for (char& c : near) {
    if (c < ' ' || c > '~') c = '?';
  }
  error_ = name_ + ": line " + std::to_string(token.line) + ": " + what + " near '" + near + "'";
  return false;
}

Token Parser::Next() {
  if (!ok()) return {};
  if (lexer_.Peek().kind == TokenKind::kBad) Fail("a byte that begins no token");
  return lexer_.Next();
}

bool Parser::Accept(std::string_view text) {
  if (!At(text)) return false;
  Next();
  return true;
}

bool Parser::Expect(std::string_view text) {
  if (Accept(text)) return true;
  return Fail("expected '" + std::string(text) + "'");
}

std::string_view Parser::Word(const char* what) {
  if (!ok()) return {};
  if (Peek().kind != TokenKind::kWord) {
    Fail(std::string("expected ") + what);
    return {};
  }
  return Next().text;
}

uint32_t Parser::SmallNumber(const char* what) {
  if (!ok()) return 0;
  const auto number = Peek().kind == TokenKind::kNumber ? ParseNumber(Peek().text) : std::nullopt;
  if (!number || number->kind != Number::Kind::kInteger || number->bits > 0x7fffffff) {
    Fail(std::string("expected ") + what);
    return 0;
  }
  Next();
  return static_cast<uint32_t>(number->bits);
}

uint32_t Parser::Intern(std::string_view name) {
  const auto it = interned_.find(name);
  if (it != interned_.end()) return it->second;
  const auto index = static_cast<uint32_t>(module_->names.size());
  module_->names.emplace_back(name);
  interned_[name] = index;  // `name` points into the module's text.
  return index;
}

uint32_t Parser::FindFunction(std::string_view name) {
  const auto it = functions_.find(name);
  return it == functions_.end() ? kNone : it->second;
}

void Parser::Version() {
  const std::string_view text = Next().text;
  const size_t dot = text.find('.');
  const auto major = ParseNumber(text.substr(0, dot));
  if (!major || major->kind != Number::Kind::kInteger || dot == std::string_view::npos) {
    Fail("expected a version such as 8.4");
    return;
  }
  const std::string_view minor = text.substr(dot + 1);
  module_->version_major = static_cast<uint32_t>(major->bits);
  for (const char c : minor) {
    if (c < '0' || c > '9' || module_->version_minor > 999) {
      Fail("expected a version such as 8.4");
      return;
    }
    module_->version_minor = module_->version_minor * 10 + static_cast<uint32_t>(c - '0');
  }
}

void Parser::Target() {
  do {
    std::string_view word = Word("a target such as sm_90");
    if (!word.starts_with("sm_") && !word.starts_with("compute_")) continue;
    word.remove_prefix(word.find('_') + 1);
    uint32_t target = 0;
    size_t i = 0;
    for (; i < word.size() && word[i] >= '0' && word[i] <= '9' && target < 100000; ++i) {
      target = target * 10 + static_cast<uint32_t>(word[i] - '0');
    }
    if (i == 0 || (i < word.size() && i + 1 != word.size())) {
      Fail("a target that is no sm_NN: '" + std::string(word.substr(0, 20)) + "'");
      return;
    }
    module_->target = target;
    module_->target_suffix = i < word.size() ? word[i] : '\0';
  } while (Accept(","));
}

void Parser::SkipLoc() {
  // .loc file line column [, function_name LABEL [+ N] , inlined_at file line column]: no semicolon ends it.
  for (int i = 0; i < 3 && Peek().kind == TokenKind::kNumber; ++i) Next();
  while (ok() && At(",")) {
    Next();
    const std::string_view word = Word("function_name or inlined_at");
    if (word == "function_name") {
      Word("a label");
      if (Accept("+")) SmallNumber("an offset");
    } else {
      for (int i = 0; i < 3 && Peek().kind == TokenKind::kNumber; ++i) Next();
    }
  }
}

void Parser::SkipStatement() {
  while (ok() && !At(";")) {
    if (Peek().kind == TokenKind::kEnd) {
      Fail("unfinished statement");
      return;
    }
    Next();
  }
  Accept(";");
}

void Parser::AliasStatement() {
  Alias alias;
  alias.line = Peek().line;
  alias.name = Word("a function's name");
  Expect(",");
  alias.target = Word("a function's name");
  Expect(";");
  if (ok()) module_->aliases.push_back(std::move(alias));
}

void Parser::SkipAttribute(Variable* variable) {
  if (!Expect("(")) return;
  uint32_t depth = 1;
  while (ok() && depth > 0) {
    const Token token = Next();
    if (token.kind == TokenKind::kEnd) Fail("unfinished attribute");
    if (token.text == "(") ++depth;
    if (token.text == ")") --depth;
    if (token.text == ".managed" && variable != nullptr) variable->managed = true;
  }
}

void Parser::TopLevel() {
  const Token token = Peek();
  if (token.kind != TokenKind::kDirective) {
    if (Accept(";")) return;
    Fail("expected a directive");
    return;
  }
  const std::string_view word = token.text;
  if (word == ".version") {
    Next();
    return Version();
  }
  if (word == ".target") {
    Next();
    return Target();
  }
  if (word == ".address_size") {
    Next();
    if (SmallNumber("an address size") != 64) Fail("only 64-bit modules can run; address_size must be 64");
    return;
  }
  if (word == ".file") {
    Next();
    SmallNumber("a file number");
    if (Peek().kind == TokenKind::kString) Next();
    while (Accept(",")) SmallNumber("a time or size");
    return;
  }
  if (word == ".loc") {
    Next();
    return SkipLoc();
  }
  if (word == ".section") {
    Next();
    Next();
    if (!Expect("{")) return;
    if (!lexer_.SkipBraces()) Fail("unfinished section");
    return;
  }
  if (word == ".pragma") {
    Next();
    return SkipStatement();
  }
  if (word == ".alias") {
    Next();
    return AliasStatement();
  }
  Declaration();
}

void Parser::Declaration() {
  Linkage linkage = Linkage::kInternal;
  Variable attributes;
  while (ok()) {
    const std::string_view word = Peek().text;
    if (word == ".extern") {
      linkage = Linkage::kExtern;
    } else if (word == ".visible") {
      linkage = Linkage::kVisible;
    } else if (word == ".weak") {
      linkage = Linkage::kWeak;
    } else if (word == ".common") {
      linkage = Linkage::kCommon;
    } else if (word == ".func" || word == ".entry") {
      Next();
      return FunctionDeclaration(word == ".entry", linkage);
    } else if (word == ".global" || word == ".const" || word == ".shared" || word == ".shared::cta" || word == ".tex") {
      Next();
      const Space space = word == ".const"              ? Space::kConst
                          : word.starts_with(".shared") ? Space::kShared
                                                        : Space::kGlobal;
      return Variables(space, linkage, nullptr);
    } else {
      Fail("unknown directive");
      return;
    }
    Next();
  }
}

wire::Result<std::shared_ptr<const Module>> Parser::Run() {
  while (ok() && Peek().kind != TokenKind::kEnd) TopLevel();
  if (ok() && module_->version_major == 0) Fail("no .version directive");
  if (ok() && module_->target == 0) Fail("no .target directive");
  if (!ok()) return wire::Status(wire::Code::kInvalid, error_);
  return std::shared_ptr<const Module>(module_);
}

wire::Result<std::shared_ptr<const Module>> Parse(std::string_view text, const ParseOptions& options) {
  text = text.substr(0, text.find('\0'));
  if (text.size() > options.max_text) {
    return wire::Status(wire::Code::kExhausted, options.name + ": a PTX text of " + std::to_string(text.size()) +
                                                    " bytes is above the limit of " + std::to_string(options.max_text));
  }
  Parser parser(std::make_shared<const std::string>(text), options.name);
  return parser.Run();
}

}  // namespace hawser::ptx
