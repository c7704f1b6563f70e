// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/lexer.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::server::slicing {
namespace {

std::string Words(std::string_view text) {
  wire::Result<TokenList> list = TokenList::Lex(text);
  if (!list.ok()) return "error: " + list.status().text();
  std::string words;
  for (const Token& token : list->tokens()) {
    if (!words.empty()) words += token.starts_line ? " | " : " ";
    words += token.text;
  }
  return words;
}

TEST(Lexer, CommentsAndLiteralsHideNames) {
  EXPECT_EQ(Words("a // get_group_id(0)\nb /* get_group_id\n */ c"), "a | b c");
  EXPECT_EQ(Words("x = \"get_group_id /* \\\" \" + '\\'';"), "x = \"get_group_id /* \\\" \" + '\\'' ;");
  EXPECT_EQ(Words("a /* // */ b // /* \n c"), "a b | c");
  EXPECT_EQ(Words("/\\\n/ gone\nhere"), "here");
}

TEST(Lexer, SplicedLinesAreOne) {
  EXPECT_EQ(Words("get_gr\\\noup_id"), "get_group_id");
  EXPECT_EQ(Words("get_gr\\  \noup_id"), "get_group_id");
  EXPECT_EQ(Words("get_gr\\\r\noup_id\r\nb"), "get_group_id | b");
  EXPECT_EQ(Words("#define A \\\n B\nC"), "# define A B | C");
}

TEST(Lexer, NumbersAndPunctuators) {
  EXPECT_EQ(Words("1.0e+3f+.5-0x1p-2 a+++b"), "1.0e+3f + .5 - 0x1p-2 a ++ + b");
  EXPECT_EQ(Words("a<<=b>>=c...->x"), "a <<= b >>= c ... -> x");
  EXPECT_EQ(Words("%:define x <% a<:0:> %> %:%:"), "# define x { a [ 0 ] } ##");
}

TEST(Lexer, WhatIsUnclearIsRefused) {
  for (const std::string_view text :
       {"a ?\?= b", "/* no end", "\"no end\n\"", "'no end", "a \\u0067 b", "R\"x(raw)x\"", "a \\ b", "a\rb", "a\x01"}) {
    EXPECT_EQ(Words(text).substr(0, 6), "error:") << text;
  }
  EXPECT_EQ(Words(std::string_view("a\0b", 3)).substr(0, 6), "error:");
  EXPECT_EQ(Words(std::string(kLongestText + 1, ' ')).substr(0, 6), "error:");
  EXPECT_EQ(Words(std::string(kMostTokens + 2, ';')).substr(0, 6), "error:");
}

}  // namespace
}  // namespace hawser::server::slicing
