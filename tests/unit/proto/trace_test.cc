// SPDX-License-Identifier: Apache-2.0
#include "proto/opencl/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "proto/opencl/messages.h"
#include "proto/seeds.h"
#include "tests/unit/proto/frame.h"

namespace hawser::opencl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

wire::Id IdOf(Handle handle, uint32_t generation, uint32_t index) {
  return {static_cast<uint8_t>(handle), generation, index};
}

template <typename Message>
std::string TraceOf(Opcode opcode, const Message& message) {
  const Frame frame = FrameOf(opcode, message);
  return Trace(frame.header.opcode, frame.payload);
}

TEST(TraceTest, ShowsACallLikeACall) {
  const uint64_t global[] = {1024, 16};
  const wire::Id list[] = {IdOf(Handle::kEvent, 1, 8), IdOf(Handle::kEvent, 2, 9)};
  EnqueueNDRangeKernel message;
  message.queue = IdOf(Handle::kQueue, 1, 3);
  message.kernel = IdOf(Handle::kKernel, 4, 2);
  message.work_dim = 2;
  message.global = {global, 2};
  message.wait_list = {list, 2};
  EXPECT_EQ(TraceOf(Opcode::kEnqueueNDRangeKernel, message),
            "clEnqueueNDRangeKernel(queue=queue#3.1, kernel=kernel#2.4, work_dim=2, offset=[], global=[1024, 16], "
            "local=[], wait_list=[event#8.1, event#9.2], event=null)");
}

TEST(TraceTest, ShowsNoticesAndAnswers) {
  EventStatus notice;
  notice.event = IdOf(Handle::kEvent, 1, 2);
  notice.status = -5;
  EXPECT_EQ(TraceOf(Opcode::kEventStatus, notice),
            "EventStatus(event=event#2.1, status=-5, has_times=0, times=[0, 0, 0, 0, 0])");
  const Frame answer = FrameOf(Opcode::kFinish, Status{-36});
  EXPECT_EQ(TraceReply(answer.header.opcode, answer.payload), "clFinish -> (status=-36)");
}

TEST(TraceTest, ShowsNestedMessages) {
  Header header;
  header.program = IdOf(Handle::kProgram, 1, 2);
  header.name = "a.h";
  CompileProgram message;
  message.program = IdOf(Handle::kProgram, 1, 1);
  message.headers = wire::ListView<Header>({&header, 1});
  EXPECT_THAT(TraceOf(Opcode::kCompileProgram, message), HasSubstr("headers=[(program=program#2.1, name=\"a.h\")]"));
}

TEST(TraceTest, CutsLongValues) {
  const std::vector<std::byte> data(100, std::byte{0xab});
  CreateBuffer message;
  message.heap_offset = ~uint64_t{0};
  message.data = data;
  const std::string line = TraceOf(Opcode::kCreateBuffer, message);
  EXPECT_THAT(line, HasSubstr("data=100 bytes: ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ..., svm_address"));
  EXPECT_THAT(line, HasSubstr("heap_offset=0xffffffffffffffff"));

  const std::vector<wire::Id> events(1000, IdOf(Handle::kEvent, 1, 1));
  EnqueueBarrierWithWaitList barrier;
  barrier.wait_list = wire::ArrayView<wire::Id>(std::span<const wire::Id>(events));
  EXPECT_THAT(TraceOf(Opcode::kEnqueueBarrierWithWaitList, barrier), HasSubstr("event#1.1, ... 992 more]"));
}

TEST(TraceTest, HostileTextCannotDriveATerminal) {
  CreateKernel message;
  const std::string name = "k\x1b[2J\"\n" + std::string(500, 'x');
  message.name = name;
  const std::string line = TraceOf(Opcode::kCreateKernel, message);
  EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_LT(line.size(), 300u);
}

TEST(TraceTest, ShowsGarbageAsBytes) {
  const std::vector<std::byte> payload(5, std::byte{0x5a});
  EXPECT_EQ(Trace(999, payload), "opcode 999, 5 bytes: 5a 5a 5a 5a 5a");
  EXPECT_THAT(Trace(static_cast<uint16_t>(Opcode::kFlush), payload), StartsWith("clFlush undecodable, 5 bytes"));
  EXPECT_THAT(TraceReply(static_cast<uint16_t>(Opcode::kFlush), payload), HasSubstr("5 bytes"));
}

TEST(TraceTest, ASampleOfEverythingIsDecodableAndOneBoundedLine) {
  proto::SeedSink sink;
  AddSeeds(sink);
  for (const proto::Seed& seed : sink.seeds()) {
    wire::FrameHeader header;
    std::memcpy(&header, seed.frame.data(), sizeof(header));
    const wire::Bytes payload = wire::Bytes(seed.frame).subspan(sizeof(header));
    const std::string line =
        seed.folder == "replies" ? TraceReply(header.opcode, payload) : Trace(header.opcode, payload);
    EXPECT_THAT(line, StartsWith(seed.name));
    EXPECT_THAT(line, Not(HasSubstr("undecodable")));
    EXPECT_LT(line.size(), 8192u);
  }
}

}  // namespace
}  // namespace hawser::opencl
