// SPDX-License-Identifier: Apache-2.0
#include "proto/opencl/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "proto/opencl/forwarding_handler.h"
#include "proto/seeds.h"
#include "tests/unit/proto/frame.h"

namespace hawser::opencl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int32_t kInvalidValue = -30;

wire::Id IdOf(Handle handle, uint32_t index = 1) { return {static_cast<uint8_t>(handle), 1, index}; }

/// Counts calls and answers each with `answer`.
class DispatchTest : public ::testing::Test {
 protected:
  Outcome Run(const Frame& frame) {
    ForwardingHandler handler([this](const Call& call, const auto& message) {
      ++calls_;
      last_ = call;
      size_ = message.SizeOf();
      return answer_;
    });
    error_.clear();
    return Dispatch(frame.header, frame.payload, handler, &error_);
  }
  template <typename Message>
  Outcome Run(Opcode opcode, const Message& message) {
    return Run(FrameOf(opcode, message));
  }
  void ExpectMalformed(const Outcome& outcome) {
    EXPECT_EQ(outcome.result, DispatchResult::kMalformed);
    EXPECT_EQ(calls_, 0);
    EXPECT_NE(error_, "");
  }

  static CreateBuffer GoodBuffer() {
    CreateBuffer message;
    message.buffer = IdOf(Handle::kMem);
    message.context = IdOf(Handle::kContext);
    message.flags = 1;
    message.size = 64;
    return message;
  }
  static EnqueueNDRangeKernel GoodLaunch() {
    static const uint64_t kGlobal[3] = {1024, 1, 1};
    EnqueueNDRangeKernel message;
    message.queue = IdOf(Handle::kQueue);
    message.kernel = IdOf(Handle::kKernel);
    message.work_dim = 1;
    message.global = {kGlobal, 1};
    return message;
  }

  int calls_ = 0;
  int32_t answer_ = 0;
  Call last_;
  size_t size_ = 0;
  std::string error_;
};

TEST_F(DispatchTest, HandsTheCallOverAndReturnsItsStatus) {
  answer_ = -61;
  Frame frame = FrameOf(Opcode::kCreateBuffer, GoodBuffer());
  frame.header.flags = wire::kWantStatus;
  const Outcome outcome = Run(frame);
  EXPECT_EQ(outcome.result, DispatchResult::kDone);
  EXPECT_EQ(outcome.status, -61);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(last_.seq, 7u);
  EXPECT_EQ(last_.opcode, static_cast<uint16_t>(Opcode::kCreateBuffer));
  EXPECT_EQ(last_.flags, wire::kWantStatus);
  EXPECT_EQ(size_, frame.payload.size());
  EXPECT_EQ(error_, "");
}

TEST_F(DispatchTest, ReachesTheHandlerWithASampleOfEachCall) {
  proto::SeedSink sink;
  AddSeeds(sink);
  int expected = 0;
  for (const proto::Seed& seed : sink.seeds()) {
    if (seed.folder != "calls") continue;
    Frame frame;
    std::memcpy(&frame.header, seed.frame.data(), sizeof(frame.header));
    frame.payload.assign(seed.frame.begin() + sizeof(frame.header), seed.frame.end());
    EXPECT_EQ(Run(frame).result, DispatchResult::kDone) << seed.name << ": " << error_;
    EXPECT_EQ(calls_, ++expected) << seed.name << ": " << error_;
    EXPECT_EQ(last_.opcode, frame.header.opcode);
    EXPECT_EQ(size_, frame.payload.size()) << seed.name;
  }
  EXPECT_GT(expected, 50);
}

TEST_F(DispatchTest, RefusesAnUnknownOpcode) {
  Frame frame = FrameOf(Opcode::kCreateBuffer, GoodBuffer());
  frame.header.opcode = 999;
  ExpectMalformed(Run(frame));
  EXPECT_THAT(error_, HasSubstr("999"));
}

TEST_F(DispatchTest, RefusesANoticeFromAGuest) {
  Frame frame = FrameOf(Opcode::kReleased, Released{IdOf(Handle::kMem)});
  ExpectMalformed(Run(frame));
}

TEST_F(DispatchTest, RefusesAnIdOfTheWrongType) {
  CreateBuffer message = GoodBuffer();
  message.context = IdOf(Handle::kQueue, 3);
  ExpectMalformed(Run(Opcode::kCreateBuffer, message));
  EXPECT_THAT(error_, AllOf(HasSubstr("clCreateBuffer"), HasSubstr("'context'"), HasSubstr("0x200000100000003"),
                            HasSubstr("command 7")));
}

TEST_F(DispatchTest, RefusesTheWrongTypeForAnObjectToCreate) {
  CreateBuffer message = GoodBuffer();
  message.buffer = IdOf(Handle::kKernel);
  ExpectMalformed(Run(Opcode::kCreateBuffer, message));
  message.buffer = wire::Id();
  ExpectMalformed(Run(Opcode::kCreateBuffer, message));
}

TEST_F(DispatchTest, ZeroIsAnIdOnlyWhereTheDescriptionSaysSo) {
  EnqueueNDRangeKernel message = GoodLaunch();
  EXPECT_EQ(Run(Opcode::kEnqueueNDRangeKernel, message).result, DispatchResult::kDone);  // No event.
  EXPECT_EQ(calls_, 1);
  calls_ = 0;
  message.kernel = wire::Id();
  ExpectMalformed(Run(Opcode::kEnqueueNDRangeKernel, message));
}

TEST_F(DispatchTest, ANullableIdStillHasAType) {
  EnqueueNDRangeKernel message = GoodLaunch();
  message.event = IdOf(Handle::kMem);
  ExpectMalformed(Run(Opcode::kEnqueueNDRangeKernel, message));
  EXPECT_THAT(error_, HasSubstr("'event'"));
  // Type byte 0 with something behind it is not "no object".
  message.event = wire::Id(0, 0, 5);
  ExpectMalformed(Run(Opcode::kEnqueueNDRangeKernel, message));
}

TEST_F(DispatchTest, ChecksEachIdOfAnArray) {
  EnqueueNDRangeKernel message = GoodLaunch();
  wire::Id list[] = {IdOf(Handle::kEvent), IdOf(Handle::kEvent, 2), IdOf(Handle::kMem, 3)};
  message.wait_list = {list, 2};
  EXPECT_EQ(Run(Opcode::kEnqueueNDRangeKernel, message).result, DispatchResult::kDone);
  calls_ = 0;
  message.wait_list = {list, 3};
  ExpectMalformed(Run(Opcode::kEnqueueNDRangeKernel, message));
  EXPECT_THAT(error_, HasSubstr("'wait_list'"));
}

TEST_F(DispatchTest, ChecksIdsInNestedMessages) {
  Header headers[2];
  headers[0].program = IdOf(Handle::kProgram);
  headers[1].program = IdOf(Handle::kContext);
  CompileProgram message;
  message.program = IdOf(Handle::kProgram, 9);
  message.headers = wire::ListView<Header>(headers);
  ExpectMalformed(Run(Opcode::kCompileProgram, message));
  EXPECT_THAT(error_, AllOf(HasSubstr("clCompileProgram"), HasSubstr("'program'")));
}

TEST_F(DispatchTest, AnyHandleIsAnyTypeOfTheDescriptionAndNoOther) {
  for (int type = 0; type < 256; ++type) {
    calls_ = 0;
    const Outcome outcome = Run(Opcode::kReleaseObject, Release{wire::Id(static_cast<uint8_t>(type), 1, 1), 0});
    EXPECT_EQ(outcome.result == DispatchResult::kDone, type >= 1 && type <= 9) << type;
    EXPECT_EQ(calls_, outcome.result == DispatchResult::kDone ? 1 : 0);
  }
}

TEST_F(DispatchTest, AnIllegalMaskIsTheCallersErrorAndEndsNothing) {
  CreateBuffer message = GoodBuffer();
  message.flags = uint64_t{1} << 40;
  const Outcome outcome = Run(Opcode::kCreateBuffer, message);
  EXPECT_EQ(outcome.result, DispatchResult::kDone);
  EXPECT_EQ(outcome.status, kInvalidValue);
  EXPECT_EQ(calls_, 0);
  EXPECT_THAT(error_, AllOf(HasSubstr("clCreateBuffer"), HasSubstr("'flags'"), HasSubstr("mem_flags")));
}

TEST_F(DispatchTest, AnIllegalValueIsTheCallersErrorAndEndsNothing) {
  EnqueueNDRangeKernel message = GoodLaunch();
  for (uint32_t work_dim : {1u, 2u, 3u}) {
    message.work_dim = work_dim;
    EXPECT_EQ(Run(Opcode::kEnqueueNDRangeKernel, message).status, 0) << work_dim;
  }
  EXPECT_EQ(calls_, 3);
  for (uint32_t work_dim : {0u, 4u, 0x80000001u}) {
    message.work_dim = work_dim;
    EXPECT_EQ(Run(Opcode::kEnqueueNDRangeKernel, message).status, kInvalidValue) << work_dim;
  }
  EXPECT_EQ(calls_, 3);
}

TEST_F(DispatchTest, AWrongIdWinsOverAnIllegalValue) {
  CreateBuffer message = GoodBuffer();
  message.flags = ~uint64_t{0};
  message.context = wire::Id();
  ExpectMalformed(Run(Opcode::kCreateBuffer, message));
}

TEST_F(DispatchTest, RefusesAnArrayBeyondItsLimit) {
  const std::vector<uint64_t> four(4, 1);
  EnqueueNDRangeKernel message = GoodLaunch();
  message.local = {four.data(), 3};
  EXPECT_EQ(Run(Opcode::kEnqueueNDRangeKernel, message).result, DispatchResult::kDone);
  calls_ = 0;
  message.local = {four.data(), 4};
  ExpectMalformed(Run(Opcode::kEnqueueNDRangeKernel, message));
  EXPECT_THAT(error_, AllOf(HasSubstr("clEnqueueNDRangeKernel"), HasSubstr("'local'")));
}

TEST_F(DispatchTest, RefusesBytesBeyondTheirLimit) {
  const std::vector<std::byte> pattern(129);
  EnqueueFillBuffer message;
  message.queue = IdOf(Handle::kQueue);
  message.buffer = IdOf(Handle::kMem);
  message.pattern = wire::Bytes(pattern).first(128);
  EXPECT_EQ(Run(Opcode::kEnqueueFillBuffer, message).result, DispatchResult::kDone);
  calls_ = 0;
  message.pattern = pattern;
  ExpectMalformed(Run(Opcode::kEnqueueFillBuffer, message));
  EXPECT_THAT(error_, HasSubstr("'pattern'"));
}

TEST_F(DispatchTest, RefusesACountThatThePayloadDoesNotHave) {
  Frame frame = FrameOf(Opcode::kCreateBuffer, GoodBuffer());
  const uint32_t lie = 0xffffffff;
  const size_t behind = sizeof(CreateBuffer::svm_address);  // `data` is empty: its count stands before this field.
  std::memcpy(frame.payload.data() + frame.payload.size() - behind - sizeof(lie), &lie, sizeof(lie));
  ExpectMalformed(Run(frame));
  EXPECT_THAT(error_, HasSubstr("'data'"));
}

TEST_F(DispatchTest, RefusesTrailingBytes) {
  Frame frame = FrameOf(Opcode::kCreateBuffer, GoodBuffer());
  frame.payload.resize(frame.payload.size() + 3);
  ExpectMalformed(Run(frame));
  EXPECT_THAT(error_, HasSubstr("3 bytes follow"));
}

TEST_F(DispatchTest, RefusesAPayloadThatEndsEarly) {
  Frame frame = FrameOf(Opcode::kFlush, Flush{IdOf(Handle::kQueue)});
  frame.payload.pop_back();
  ExpectMalformed(Run(frame));
  EXPECT_THAT(error_, AllOf(HasSubstr("clFlush"), HasSubstr("'queue'")));
}

TEST_F(DispatchTest, NeedsNoPlaceForErrorTexts) {
  ForwardingHandler handler([](const Call&, const auto&) { return 0; });
  Frame frame = FrameOf(Opcode::kFlush, Flush{IdOf(Handle::kMem)});
  EXPECT_EQ(Dispatch(frame.header, frame.payload, handler, nullptr).result, DispatchResult::kMalformed);
  frame.payload.pop_back();
  EXPECT_EQ(Dispatch(frame.header, frame.payload, handler, nullptr).result, DispatchResult::kMalformed);
  frame.header.opcode = 0;
  EXPECT_EQ(Dispatch(frame.header, frame.payload, handler, nullptr).result, DispatchResult::kMalformed);
}

}  // namespace
}  // namespace hawser::opencl
