// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::scheduler {
namespace {

TEST(IsJson, TakesJson) {
  for (const char* text : {"{}", " [ ] ", "null", "true", "-0.5e+3", "0", "\"a\\u00e9\\n\"", "[1,2,[3,{\"a\":{}}]]",
                           "{\"a\": 1, \"b\": [true, false, null]}\n"}) {
    EXPECT_TRUE(IsJson(text)) << text;
  }
}

TEST(IsJson, TakesNothingElse) {
  for (const char* text : {"",         " ",       "{",           "}",      "{}}",   "[1,]",       "[,1]", "{\"a\"}",
                           "{\"a\":}", "{a:1}",   "{1:1}",       "01",     "1.",    "-",          "1e",   "nul",
                           "\"",       "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "[1 2]", "{\"a\":1,}", "'a'",  "{}, {}"}) {
    EXPECT_FALSE(IsJson(text)) << text;
  }
  EXPECT_FALSE(IsJson(std::string("[]\0", 3)));
}

TEST(IsJson, IsNotFoolishlyDeep) {
  EXPECT_TRUE(IsJson(std::string(63, '[') + std::string(63, ']')));
  EXPECT_FALSE(IsJson(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace hawser::scheduler
