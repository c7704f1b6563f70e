// SPDX-License-Identifier: Apache-2.0
#include "proto/plugin/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/proto/description.h"

namespace hawser::plugin {
namespace {

using ::testing::HasSubstr;

/// What is wrong with the description; empty when nothing is.
std::string ErrorOf(const std::string& body) {
  const Description description(body);
  if (description.file() == nullptr) return "not even protoc takes it";
  Model model;
  std::string error;
  const bool good = ReadModel({description.file()}, &model, &error);
  EXPECT_EQ(good, error.empty()) << error;
  return error;
}

std::string Rpc(const std::string& call, const std::string& messages = "message A { uint32 a = 1; }") {
  return messages + " service S { rpc clThing(A) returns (A) { option (call) = {" + call + "}; } }";
}

TEST(ModelTest, ReadsFieldsInTheirShapes) {
  const Description description(R"(
    message Inner { uint32 x = 1; }
    message A {
      uint64 id = 1 [(field) = {handle: MEM}];
      int64 number = 2;
      bytes data = 3 [(field) = {max: 9}];
      bytes nonce = 4 [(field) = {fixed: 16}];
      repeated uint64 ids = 5 [(field) = {handle: EVENT}];
      repeated uint32 three = 6 [(field) = {fixed: 3}];
      repeated Inner inners = 7;
      Inner inner = 8;
      string text = 9;
      bool flag = 10;
    })");
  Model model;
  std::string error;
  ASSERT_TRUE(ReadModel({description.file()}, &model, &error)) << error;
  ASSERT_EQ(model.packages.size(), 1u);
  EXPECT_EQ(model.packages[0].cpp_name, "test");
  const Message& message = *model.packages[0].messages.back();
  EXPECT_EQ(message.name, "A");
  const char* types[] = {"wire::Id",
                         "int64_t",
                         "wire::Bytes",
                         "std::array<std::byte, 16>",
                         "wire::ArrayView<wire::Id>",
                         "std::array<uint32_t, 3>",
                         "wire::ListView<Inner>",
                         "Inner",
                         "std::string_view",
                         "uint8_t"};
  const uint32_t sizes[] = {8, 8, 4, 16, 4, 12, 0, 0, 4, 1};
  ASSERT_EQ(message.fields.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(message.fields[i].CppType(), types[i]);
    EXPECT_EQ(message.fields[i].FixedSize(), sizes[i]) << message.fields[i].name;
  }
}

TEST(ModelTest, PutsAMessageAfterThoseItContains) {
  const Description description("message Outer { repeated Inner inner = 1; } message Inner { uint32 x = 1; }");
  Model model;
  std::string error;
  ASSERT_TRUE(ReadModel({description.file()}, &model, &error)) << error;
  EXPECT_EQ(model.packages[0].messages[0]->name, "Inner");
  EXPECT_EQ(model.packages[0].messages[1]->name, "Outer");
}

TEST(ModelTest, RefusesFieldsWithoutAPackedForm) {
  EXPECT_THAT(ErrorOf("message A { float a = 1; }"), HasSubstr("hawser.test.A.a"));
  EXPECT_NE(ErrorOf("message A { repeated string a = 1; }"), "");
  EXPECT_NE(ErrorOf("message A { repeated bool a = 1; }"), "");
  EXPECT_NE(ErrorOf("message A { map<uint32, uint32> a = 1; }"), "");
  EXPECT_NE(ErrorOf("message A { oneof o { uint32 a = 1; } }"), "");
  EXPECT_THAT(ErrorOf("message A { repeated A a = 1; }"), HasSubstr("contains itself"));
  EXPECT_NE(ErrorOf("message E {} message A { repeated E e = 1; }"), "");
}

TEST(ModelTest, RefusesFieldsOutOfOrder) {
  EXPECT_NE(ErrorOf("message A { uint32 a = 2; }"), "");
  EXPECT_NE(ErrorOf("message A { uint32 a = 2; uint32 b = 1; }"), "");
}

TEST(ModelTest, RefusesOptionsThatDoNotFitTheField) {
  EXPECT_NE(ErrorOf("message A { uint32 a = 1 [(field) = {handle: MEM}]; }"), "");
  EXPECT_NE(ErrorOf("message A { uint64 a = 1 [(field) = {nullable: true}]; }"), "");
  EXPECT_NE(ErrorOf("message A { uint64 a = 1 [(field) = {max: 3}]; }"), "");
  EXPECT_NE(ErrorOf("message A { string a = 1 [(field) = {fixed: 3}]; }"), "");
  EXPECT_THAT(ErrorOf("message A { uint32 a = 1 [(field) = {legal: \"odd\"}]; }"), HasSubstr("'odd'"));
  EXPECT_NE(ErrorOf("option (legal) = {name: \"none\"};"), "");
}

TEST(ModelTest, RefusesNumbersThatAreUsedTwice) {
  const std::string two = R"(message A { uint32 a = 1; }
    service S {
      rpc clOne(A) returns (A) { option (call) = {opcode: 5 since: "1.0"}; }
      rpc clTwo(A) returns (A) { option (call) = {opcode: 5 since: "1.0"}; }
    })";
  EXPECT_THAT(ErrorOf(two), HasSubstr("clOne"));
  EXPECT_NE(ErrorOf(Rpc("opcode: 5 since: \"1.0\"",
                        "message A { uint32 a = 1; } message N { option (notice) = {opcode: 5}; uint32 a = 1; }")),
            "");
  EXPECT_NE(ErrorOf(Rpc("opcode: 65520 since: \"1.0\"")), "");
}

TEST(ModelTest, RefusesCallsThatSayTooLittle) {
  EXPECT_EQ(ErrorOf(Rpc("opcode: 5 since: \"1.0\"")), "");
  EXPECT_NE(ErrorOf(Rpc("opcode: 5")), "");
  EXPECT_NE(ErrorOf(Rpc("since: \"1.0\"", "message A {}")), "");
  EXPECT_EQ(ErrorOf(Rpc("since: \"1.0\" answer: LOCAL", "message A {}")), "");
  EXPECT_THAT(ErrorOf(Rpc("since: \"1.0\" via: \"clOther\"", "message A {}")), HasSubstr("clOther"));
  EXPECT_NE(ErrorOf(Rpc("since: \"1.0\" answer: LOCAL entry: RETAIN", "message A {}")), "");
  EXPECT_NE(
      ErrorOf(Rpc("since: \"1.0\" answer: REFUSED entry: REFUSE refuse_code: \"CL_INVALID_VALUE\"", "message A {}")),
      "");
}

TEST(ModelTest, AGeneratedEnqueueNeedsQueueWaitListAndEvent) {
  const std::string call = "opcode: 5 since: \"1.0\" entry: ENQUEUE command_type: \"CL_COMMAND_MARKER\"";
  const std::string queue = "uint64 queue = 1 [(field) = {handle: QUEUE}]; ";
  const auto rest = [](int n) {
    return "repeated uint64 wait_list = " + std::to_string(n) +
           " [(field) = {handle: EVENT}]; uint64 event = " + std::to_string(n + 1) +
           " [(field) = {handle: EVENT creates: true nullable: true}]; ";
  };
  EXPECT_EQ(ErrorOf(Rpc(call, "message A { " + queue + rest(2) + "}")), "");
  EXPECT_NE(ErrorOf(Rpc(call, "message A { " + queue + "}")), "");
  const std::string size = "message A { " + queue + "uint64 size = 2";
  EXPECT_EQ(ErrorOf(Rpc(call, size + " [(field) = {c_type: \"size_t\"}]; " + rest(3) + "}")), "");
  EXPECT_THAT(ErrorOf(Rpc(call, size + "; " + rest(3) + "}")), HasSubstr("'size'"));
}

}  // namespace
}  // namespace hawser::plugin
