// SPDX-License-Identifier: Apache-2.0
#include "proto/opencl/opcodes.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "proto/opencl/messages.h"
#include "proto/session/opcodes.h"

namespace hawser::opencl {
namespace {

template <typename Message, typename = void>
struct HasOpcode : std::false_type {};
template <typename Message>
struct HasOpcode<Message, std::void_t<decltype(OpcodeOf<Message>::value)>> : std::true_type {};

TEST(OpcodesTest, NumbersAreThoseOfTheDescription) {
  EXPECT_EQ(static_cast<int>(Opcode::kGetInventory), 1);
  EXPECT_EQ(static_cast<int>(Opcode::kReleaseObject), 2);
  EXPECT_EQ(static_cast<int>(Opcode::kCreateBuffer), 21);
  EXPECT_EQ(static_cast<int>(Opcode::kEventStatus), 1001);
}

TEST(OpcodesTest, NamesAreThoseOfTheApi) {
  EXPECT_STREQ(OpcodeName(Opcode::kCreateBuffer), "clCreateBuffer");
  EXPECT_STREQ(OpcodeName(2), "ReleaseObject");
  EXPECT_STREQ(OpcodeName(1001), "EventStatus");
  EXPECT_STREQ(OpcodeName(0), "?");
  EXPECT_STREQ(OpcodeName(65535), "?");
}

TEST(OpcodesTest, AMessageOfOneCallKnowsItsOpcode) {
  EXPECT_EQ(OpcodeOf<CreateBuffer>::value, Opcode::kCreateBuffer);
  EXPECT_EQ(OpcodeOf<CreateQueue>::value, Opcode::kCreateCommandQueueWithProperties);
  EXPECT_EQ(OpcodeOf<SessionLost>::value, Opcode::kSessionLost);
  EXPECT_FALSE(HasOpcode<Nothing>::value);    // Serves several calls.
  EXPECT_FALSE(HasOpcode<InfoValue>::value);  // Part of others.
  EXPECT_TRUE((std::is_same_v<ReplyOf<ReadBuffer>::type, ReadReply>));
}

TEST(OpcodesTest, SaysWhichCallsAreAnswered) {
  EXPECT_TRUE(HasReply(Opcode::kFinish));
  EXPECT_TRUE(HasReply(Opcode::kGetInventory));
  EXPECT_FALSE(HasReply(Opcode::kCreateBuffer));
  EXPECT_FALSE(HasReply(Opcode::kEventStatus));
}

TEST(OpcodesTest, HandlesHaveNames) {
  EXPECT_STREQ(HandleName(static_cast<uint8_t>(Handle::kContext)), "context");
  EXPECT_STREQ(HandleName(static_cast<uint8_t>(Handle::kPlatform)), "platform");
  EXPECT_FALSE(IsHandle(0));
  EXPECT_FALSE(IsHandle(255));
}

TEST(OpcodesTest, BothPackagesSpeakOfOneDescription) {
  EXPECT_EQ(kDescriptionHash, session::kDescriptionHash);
  EXPECT_EQ(kProtocolVersion, session::kProtocolVersion);
  EXPECT_NE(kDescriptionHash, 0u);
}

}  // namespace
}  // namespace hawser::opencl
