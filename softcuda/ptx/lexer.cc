// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/lexer.h"

namespace hawser::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNameStart(char c) { return IsAlpha(c) || c == '_' || c == '$' || c == '%'; }
bool IsName(char c) { return IsAlpha(c) || IsDigit(c) || c == '_' || c == '$'; }

}  // namespace

bool Lexer::SkipBlank() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (text_.substr(position_, 2) == "//") {
      const size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else if (text_.substr(position_, 2) == "/*") {
      const size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) return false;
      for (size_t i = position_; i < end; ++i) line_ += text_[i] == '\n' ? 1 : 0;
      position_ = end + 2;
    } else {
      return true;
    }
  }
  return true;
}

void Lexer::Take(TokenKind kind, size_t end) {
  token_ = {kind, text_.substr(position_, end - position_), line_};
  position_ = end;
}

void Lexer::Advance() {
  if (!SkipBlank()) return Take(TokenKind::kBad, text_.size());
  if (position_ >= text_.size()) return Take(TokenKind::kEnd, text_.size());
  const char c = text_[position_];
  const auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  size_t end = position_ + 1;
  if (IsNameStart(c) && (c != '%' || IsName(at(end)))) {
    while (true) {
      if (IsName(at(end))) {
        ++end;
      } else if (at(end) == '.' && IsName(at(end + 1))) {
        ++end;
      } else if (at(end) == ':' && at(end + 1) == ':' && IsName(at(end + 2))) {
        end += 2;
      } else {
        break;
      }
    }
    return Take(TokenKind::kWord, end);
  }
  if (c == '.' && (IsAlpha(at(end)) || at(end) == '_')) {
    while (IsName(at(end)) || (at(end) == ':' && at(end + 1) == ':' && IsName(at(end + 2)))) {
      end += at(end) == ':' ? 2 : 1;
    }
    return Take(TokenKind::kDirective, end);
  }
  if (IsDigit(c) || (c == '.' && IsDigit(at(end)))) {
    const bool based = c == '0' && (IsAlpha(at(end)));  // 0x, 0b, 0f, 0d
    while (IsName(at(end)) || at(end) == '.' ||
           (!based && (at(end) == '+' || at(end) == '-') && (at(end - 1) == 'e' || at(end - 1) == 'E'))) {
      ++end;
    }
    return Take(TokenKind::kNumber, end);
  }
  if (c == '"') {
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (at(end) != '"') return Take(TokenKind::kBad, end < text_.size() ? end : text_.size());
    return Take(TokenKind::kString, end + 1);
  }
  constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
  for (const auto pair : kPairs) {
    if (text_.substr(position_, 2) == pair) return Take(TokenKind::kPunctuation, position_ + 2);
  }
  if (std::string_view("[]{}()<>,;:=+-*/%!~&|^?@#").find(c) != std::string_view::npos) {
    return Take(TokenKind::kPunctuation, end);
  }
  Take(TokenKind::kBad, end);
}

bool Lexer::SkipBraces() {
  uint32_t depth = 1;
  while (token_.kind != TokenKind::kEnd) {
    const Token token = Next();
    if (token.text == "{") ++depth;
    if (token.text == "}" && --depth == 0) return true;
  }
  return false;
}

}  // namespace hawser::ptx
