// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/lexer.h"

#include <utility>

namespace hawser::server::slicing {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// Bytes beyond ASCII belong to identifiers, as compilers have it; '$' too.
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         (static_cast<unsigned char>(c) & 0x80);
}

// Longest first.
constexpr std::string_view kPunctuators[] = {
    "%:%:", "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=",   "-=",  "*=",  "/=",  "%=", "&=", "^=", "|=", "##", "%:", "<:", ":>", "<%", "%>", "::"};
constexpr std::pair<std::string_view, std::string_view> kDigraphs[] = {{"%:%:", "##"}, {"%:", "#"}, {"<:", "["},
                                                                       {":>", "]"},    {"<%", "{"}, {"%>", "}"}};

Status Unclear(const char* what) { return Status(Code::kInvalid, what); }

}  // namespace

class Lexer {
 public:
  explicit Lexer(std::string_view text) : source_(text) {}

  Result<TokenList> Run() {
    if (source_.size() > kLongestText) return Unclear("the text is too long to be looked at");
    if (Status status = Join(); !status.ok()) return status;
    text_ = std::string_view(list_.text_.data(), list_.text_.size());
    while (at_ < text_.size()) {
      if (Status status = Step(); !status.ok()) return status;
      if (list_.tokens_.size() > kMostTokens) return Unclear("the text has too many tokens to be looked at");
    }
    return std::move(list_);
  }

 private:
  // Translation phases 1 and 2: one kind of line end, spliced lines joined.
  Status Join() {
    std::vector<char>& out = list_.text_;
    out.reserve(source_.size() + 1);
    for (size_t i = 0; i < source_.size(); ++i) {
      const char c = source_[i];
      const bool control =
          static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\v' && c != '\f' && c != '\r';
      if (control || c == 0x7f) return Unclear("the text has control characters");
      if (c == '?' && i + 2 < source_.size() && source_[i + 1] == '?' &&
          std::string_view("=/'()!<>-").find(source_[i + 2]) != std::string_view::npos) {
        return Unclear("the text has trigraphs");
      }
      if (c == '\\') {
        // Compilers let blanks stand between the backslash and the end of the line.
        size_t end = i + 1;
        while (end < source_.size() && (IsSpace(source_[end]) || source_[end] == '\r')) ++end;
        if (end < source_.size() && source_[end] == '\n') {
          i = end;
          continue;
        }
        if (end > i + 1 && source_[end - 1] == '\r') return Unclear("the text has unusual ends of lines");
      }
      if (c == '\r') {
        if (i + 1 >= source_.size() || source_[i + 1] != '\n') return Unclear("the text has unusual ends of lines");
        continue;
      }
      out.push_back(c);
    }
    out.push_back('\n');
    return {};
  }

  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }

  void Add(TokenKind kind, size_t size) {
    list_.tokens_.push_back({kind, line_start_, text_.substr(at_, size)});
    line_start_ = false;
    at_ += size;
  }

  Status Step() {
    const char c = text_[at_];
    if (c == '\n') {
      line_start_ = true;
      ++at_;
    } else if (IsSpace(c)) {
      ++at_;
    } else if (c == '/' && Peek(1) == '/') {
      while (text_[at_] != '\n') ++at_;
    } else if (c == '/' && Peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return Unclear("a comment has no end");
      at_ = end + 2;
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      Add(TokenKind::kNumber, NumberSize());
    } else if (IsLetter(c)) {
      size_t size = 1;
      while (IsLetter(Peek(size)) || IsDigit(Peek(size))) ++size;
      if (Peek(size) == '"' && text_.substr(at_, size).find('R') != std::string_view::npos) {
        return Unclear("the text may have raw strings");
      }
      Add(TokenKind::kIdentifier, size);
    } else if (c == '"' || c == '\'') {
      return Literal(c);
    } else if (c == '\\') {
      return Unclear("the text has a backslash outside of literals");
    } else {
      Punctuator();
    }
    return {};
  }

  size_t NumberSize() const {
    size_t size = 1;
    for (;; ++size) {
      const char c = Peek(size), before = Peek(size - 1);
      const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      if (!IsDigit(c) && !IsLetter(c) && c != '.' && !sign) return size;
    }
  }

  Status Literal(char quote) {
    for (size_t size = 1;; ++size) {
      const char c = Peek(size);
      if (c == '\n') return Unclear("a literal has no end");
      if (c == '\\') {
        ++size;
        if (Peek(size) == '\n') return Unclear("a literal has no end");
      } else if (c == quote) {
        Add(TokenKind::kText, size + 1);
        return {};
      }
    }
  }

  void Punctuator() {
    size_t size = 1;
    for (const std::string_view known : kPunctuators) {
      if (text_.substr(at_, known.size()) == known) {
        size = known.size();
        break;
      }
    }
    Add(TokenKind::kPunctuator, size);
    Token& token = list_.tokens_.back();
    for (const auto& [digraph, usual] : kDigraphs) {
      if (token.text == digraph) token.text = usual;
    }
  }

  const std::string_view source_;
  std::string_view text_;
  size_t at_ = 0;
  bool line_start_ = true;
  TokenList list_;
};

Result<TokenList> TokenList::Lex(std::string_view text) { return Lexer(text).Run(); }

}  // namespace hawser::server::slicing
