// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/description_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/proto/description.h"

namespace hawser::plugin {
namespace {

uint64_t HashOf(const std::string& body) {
  const Description description(body);
  return DescriptionHash({description.file()});
}

TEST(DescriptionHashTest, IsTheSameForTheSameDescription) {
  EXPECT_EQ(HashOf("message A { uint32 a = 1; }"), HashOf("message A { uint32 a = 1; }"));
}

TEST(DescriptionHashTest, CommentsAndLayoutDoNotCount) {
  EXPECT_EQ(HashOf("message A { uint32 a = 1; }"),
            HashOf("// What it is.\nmessage A {\n  uint32 a = 1;  // Mine.\n}\n"));
}

TEST(DescriptionHashTest, ChangesWithEachPropertyOfAField) {
  const uint64_t hash = HashOf("message A { uint32 a = 1; }");
  EXPECT_NE(hash, HashOf("message A { uint32 b = 1; }"));
  EXPECT_NE(hash, HashOf("message A { int32 a = 1; }"));
  EXPECT_NE(hash, HashOf("message A { uint32 a = 2; }"));
  EXPECT_NE(hash, HashOf("message A { repeated uint32 a = 1; }"));
  EXPECT_NE(hash, HashOf("message A { uint32 a = 1; uint32 b = 2; }"));
}

TEST(DescriptionHashTest, ChangesWithOptions) {
  const uint64_t hash = HashOf("message A { bytes a = 1 [(field) = {max: 3}]; }");
  EXPECT_NE(hash, HashOf("message A { bytes a = 1; }"));
  EXPECT_NE(hash, HashOf("message A { bytes a = 1 [(field) = {max: 4}]; }"));
  const std::string start =
      "message A { uint32 a = 1; } service S { rpc clX(A) returns (A) { option (call) = {opcode: ";
  EXPECT_NE(HashOf(start + "5 since: \"1.0\"}; } }"), HashOf(start + "6 since: \"1.0\"}; } }"));
}

TEST(DescriptionHashTest, CountsEachFileButNotTheirOrder) {
  const Description one("message A { uint32 a = 1; }");
  const google::protobuf::FileDescriptor* other = one.file()->dependency(0);
  EXPECT_EQ(DescriptionHash({one.file(), other}), DescriptionHash({other, one.file()}));
  EXPECT_NE(DescriptionHash({one.file(), other}), DescriptionHash({one.file()}));
}

}  // namespace
}  // namespace hawser::plugin
