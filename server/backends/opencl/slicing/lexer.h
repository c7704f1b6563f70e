// SPDX-License-Identifier: Apache-2.0
// Splits the text of an OpenCL C program into preprocessing tokens (C99 6.4), as far as the scanner needs them.
//
// The text is hostile. What a compiler might read in another way than we do (trigraphs, universal character names, raw
// strings, unterminated literals, control characters) is not guessed at: Lex() fails, and the program is never split.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LEXER_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/status.h"

namespace hawser::server::slicing {

enum class TokenKind : uint8_t { kIdentifier, kNumber, kText, kPunctuator };

struct Token {
  TokenKind kind = TokenKind::kPunctuator;
  bool starts_line = false;  ///< The first of its (logical) line: where a '#' begins a directive.
  std::string_view text;     ///< Digraphs in their usual spelling.

  bool Is(std::string_view other) const { return text == other && kind != TokenKind::kText; }
  bool IsIdentifier() const { return kind == TokenKind::kIdentifier; }
};

/// Longest text that is looked at, bytes; and most tokens.
inline constexpr size_t kLongestText = size_t{4} << 20;
inline constexpr size_t kMostTokens = size_t{1} << 20;

/// Tokens together with the text that they view (comments are not in it, spliced lines are joined).
/// Threading: none; const use from many threads.
class TokenList {
 public:
  static wire::Result<TokenList> Lex(std::string_view text);

  const std::vector<Token>& tokens() const { return tokens_; }

  TokenList(TokenList&&) = default;
  TokenList& operator=(TokenList&&) = default;
  TokenList(const TokenList&) = delete;
  TokenList& operator=(const TokenList&) = delete;

 private:
  TokenList() = default;
  friend class Lexer;

  std::vector<char> text_;  ///< Not a string: short ones move their bytes, and the tokens would view the old place.
  std::vector<Token> tokens_;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LEXER_H_
