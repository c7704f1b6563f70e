// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/places.h"

#include <cstdint>
#include <string>

#include "softcuda/ptx/lexer.h"

namespace hawser::server::cuda_slicing {
namespace {

using ptx::Lexer;
using ptx::Token;
using ptx::TokenKind;
using wire::Code;
using wire::Result;
using wire::Status;

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".weak" || word == ".extern" || word == ".common";
}

Status Unclear(const char* what) {
  return Status(Code::kInvalid, std::string("a kernel's text cannot be told from the rest: ") + what);
}

/// One pass over the text.
class Finder {
 public:
  explicit Finder(std::string_view text) : lexer_(text) { places_.first = text.size(); }

  Result<Places> Run() {
    size_t linkage = kNowhere;
    bool any = false;
    while (lexer_.Peek().kind != TokenKind::kEnd) {
      if (lexer_.Peek().kind == TokenKind::kBad) return Unclear("a byte that begins no token");
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      const bool declares = IsLinkage(token.text) || token.text == ".entry" || token.text == ".func" ||
                            token.text == ".global" || token.text == ".const" || token.text == ".shared";
      if (declares && !any) places_.first = at;
      any = any || declares;
      if (IsLinkage(token.text)) {
        if (linkage == kNowhere) linkage = at;
        continue;
      }
      const size_t begin = linkage == kNowhere ? at : linkage;
      linkage = kNowhere;
      bool good = true;
      if (token.text == ".entry" || token.text == ".func") {
        good = Function(begin, token.text == ".entry");
      } else if (token.text == ".global" || token.text == ".const") {
        good = Variable(begin);
      } else if (token.text == "{" && !lexer_.SkipBraces()) {
        good = Problem("a brace that does not close");
      }
      if (!good) return Unclear(problem_);
    }
    return std::move(places_);
  }

 private:
  static constexpr size_t kNowhere = SIZE_MAX;

  bool Function(size_t begin, bool entry) {
    FunctionPlace place;
    place.begin = begin;
    place.entry = entry;
    while (lexer_.Peek().text == ".attribute") {
      lexer_.Next();
      if (lexer_.Next().text != "(" || !SkipParentheses()) return Problem("an attribute without its list");
    }
    if (!entry && lexer_.Peek().text == "(") {  // Its results.
      lexer_.Next();
      if (!SkipParentheses()) return Problem("a list of results that does not end");
    }
    if (lexer_.Peek().kind != TokenKind::kWord) return Problem("a kernel without a name");
    place.name = lexer_.Peek().text;
    place.name_end = lexer_.Offset() + place.name.size();
    lexer_.Next();
    if (lexer_.Peek().text == "(") {
      place.parameters_begin = lexer_.Offset() + 1;
      lexer_.Next();
      if (!SkipParentheses()) return Problem("a list of parameters that does not end");
      place.parameters_end = closed_at_;
    }
    for (;;) {
      if (lexer_.Peek().kind == TokenKind::kEnd) return Problem("a kernel that does not end");
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == ".pragma") {
        while (lexer_.Peek().kind != TokenKind::kEnd && lexer_.Next().text != ";") {
        }
      } else if (token.text == ";") {
        place.end = at + 1;
        break;
      } else if (token.text == "{") {
        place.body = at + 1;
        if (!SkipBody(&place.end)) return Problem("a body that does not end");
        break;
      }
    }
    places_.functions.push_back(place);
    return true;
  }

  /// To its ';': what initial values it has are in braces.
  bool Variable(size_t begin) {
    while (lexer_.Peek().kind != TokenKind::kEnd) {
      const size_t at = lexer_.Offset();
      if (lexer_.Next().text != ";") continue;
      places_.variables.push_back({begin, at + 1});
      return true;
    }
    return Problem("a variable whose declaration does not end");
  }

  /// Behind '(' to behind its ')'.
  bool SkipParentheses() {
    for (uint32_t depth = 1; lexer_.Peek().kind != TokenKind::kEnd;) {
      closed_at_ = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == "(") ++depth;
      if (token.text == ")" && --depth == 0) return true;
    }
    return false;
  }

  bool SkipBody(size_t* end) {
    for (uint32_t depth = 1; lexer_.Peek().kind != TokenKind::kEnd;) {
      const size_t at = lexer_.Offset();
      const Token token = lexer_.Next();
      if (token.text == "{") ++depth;
      if (token.text != "}" || --depth != 0) continue;
      *end = at + 1;
      return true;
    }
    return false;
  }

  bool Problem(const char* what) {
    problem_ = what;
    return false;
  }

  Lexer lexer_;
  size_t closed_at_ = 0;
  const char* problem_ = "";
  Places places_;
};

}  // namespace

Result<Places> FindPlaces(std::string_view text) { return Finder(text.substr(0, text.find('\0'))).Run(); }

}  // namespace hawser::server::cuda_slicing
