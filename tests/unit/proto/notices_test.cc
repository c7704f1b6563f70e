// SPDX-License-Identifier: Apache-2.0
#include "proto/opencl/notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/proto/frame.h"

namespace hawser::opencl {
namespace {

using ::testing::_;
using ::testing::Field;
using ::testing::StrictMock;

class MockHandler : public NoticeHandler {
 public:
  MOCK_METHOD(void, OnEventStatus, (const EventStatus&), (override));
  MOCK_METHOD(void, OnCommandFailed, (const CommandFailed&), (override));
  MOCK_METHOD(void, OnReleased, (const Released&), (override));
  MOCK_METHOD(void, OnKernelOutput, (const KernelOutput&), (override));
  MOCK_METHOD(void, OnContextError, (const ContextError&), (override));
  MOCK_METHOD(void, OnSessionLost, (const SessionLost&), (override));
};

TEST(NoticesTest, HandsANoticeToItsFunction) {
  StrictMock<MockHandler> handler;
  const wire::Id event(static_cast<uint8_t>(Handle::kEvent), 1, 4);
  EXPECT_CALL(handler, OnEventStatus(Field(&EventStatus::event, event)));
  EventStatus status;
  status.event = event;
  const Frame frame = FrameOf(OpcodeOf<EventStatus>::value, status);
  EXPECT_TRUE(DispatchNotice(frame.header, frame.payload, handler));

  EXPECT_CALL(handler, OnSessionLost(Field(&SessionLost::reason, "the worker died")));
  SessionLost lost;
  lost.reason = "the worker died";
  const Frame last = FrameOf(OpcodeOf<SessionLost>::value, lost);
  EXPECT_TRUE(DispatchNotice(last.header, last.payload, handler));
}

TEST(NoticesTest, RefusesWhatItCannotDecode) {
  StrictMock<MockHandler> handler;
  Frame frame = FrameOf(Opcode::kReleased, Released{});
  frame.payload.pop_back();
  EXPECT_FALSE(DispatchNotice(frame.header, frame.payload, handler));
  frame.payload.resize(frame.payload.size() + 2);
  EXPECT_FALSE(DispatchNotice(frame.header, frame.payload, handler));
}

TEST(NoticesTest, ACallIsNoNotice) {
  StrictMock<MockHandler> handler;
  const Frame frame = FrameOf(Opcode::kFlush, Flush{});
  EXPECT_FALSE(DispatchNotice(frame.header, frame.payload, handler));
}

}  // namespace
}  // namespace hawser::opencl
