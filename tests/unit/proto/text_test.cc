// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/text.h"

#include <gtest/gtest.h>

namespace hawser::plugin {
namespace {

TEST(TextTest, FillsInValues) {
  Text text;
  text.Add("$type$ $name$;", {{"type", "int"}, {"name", "a"}});
  text.Add(" // plain");
  EXPECT_EQ(text.str(), "int a; // plain");
}

TEST(TextDeathTest, AMissingValueEndsTheProgram) {
  Text text;
  EXPECT_DEATH(text.Add("$name$"), "'name'");
  EXPECT_DEATH(text.Add("$name", {{"name", "a"}}), "name");
}

TEST(TextTest, MakesNames) {
  EXPECT_EQ(CamelCase("mem_flags"), "MemFlags");
  EXPECT_EQ(CamelCase("CONTEXT"), "Context");
  EXPECT_EQ(LowerCase("CONTEXT"), "context");
  EXPECT_EQ(Quoted("a \"b\" \\"), "\"a \\\"b\\\" \\\\\"");
  EXPECT_EQ(Hex(0x1fbf), "0x1fbf");
}

}  // namespace
}  // namespace hawser::plugin
