// SPDX-License-Identifier: Apache-2.0
// PTX text -> tokens, one at a time, with one token of look-ahead. Never allocates per token.
#ifndef HAWSER_SOFTCUDA_PTX_LEXER_H_
#define HAWSER_SOFTCUDA_PTX_LEXER_H_

#include <cstdint>
#include <string_view>

namespace hawser::ptx {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,         ///< Names and opcodes with their modifiers: "%tid.x", "ld.global.u32", "$L1".
  kDirective,    ///< ".reg", ".shared::cta"
  kNumber,       ///< Unsigned; the sign is a kPunctuation.
  kString,       ///< With its quotes.
  kPunctuation,  ///< One of []{}()<>,;:=+-*/%!~&|^?@#, or << >> <= >= == != && ||
  kBad,          ///< A byte or an unfinished comment or string that no token begins with.
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  uint32_t line = 1;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { Advance(); }

  const Token& Peek() const { return token_; }
  Token Next() {
    Token token = token_;
    Advance();
    return token;
  }
  /// Offset of the token that Peek shows.
  size_t Offset() const { return static_cast<size_t>(token_.text.data() - text_.data()); }
  /// Skips raw text up to and including the '}' that closes an already consumed '{' (debug sections). False at the end.
  bool SkipBraces();

 private:
  void Advance();
  bool SkipBlank();
  void Take(TokenKind kind, size_t end);

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  Token token_;
};

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_LEXER_H_
