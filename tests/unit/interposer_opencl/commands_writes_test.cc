// SPDX-License-Identifier: Apache-2.0
// Which commands are made to wait for blocking writes of other queues, as the server is told.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/event_state.h"
#include "interposer/opencl/transfers.h"
#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::ocl {
namespace {

class WritesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [session, peer] = server_.Connect();
    session_ = session;
    peer_ = std::move(peer);
    context_ = std::make_unique<_cl_context>(Magic::kContext, session_, Id<cl_context>());
    context_->uses.store(100);  // Never destroyed by what it is used for.
  }

  template <typename Handle>
  wire::Id Id() {
    return wire::Id(HandleTraits<Handle>::kType, 1, ++ids_);
  }
  cl_command_queue Queue(cl_command_queue_properties properties = 0) {
    queues_.push_back(std::make_unique<_cl_command_queue>(Magic::kQueue, session_, Id<cl_command_queue>()));
    cl_command_queue queue = queues_.back().get();
    queue->uses.store(100);
    queue->context = context_.get();
    queue->properties = properties;
    AddToContext(queue);
    return queue;
  }
  /// A small blocking write; which event the server is to tell of.
  wire::Id Write(cl_command_queue queue) {
    Enqueue enqueue(queue, CL_COMMAND_WRITE_BUFFER, 0, nullptr, nullptr);
    EXPECT_EQ(enqueue.Begin(), CL_SUCCESS);
    opencl::WriteBuffer message;
    const uint32_t value = 7;
    EXPECT_EQ(
        SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteBuffer, message, &value, Region::Flat(sizeof(value)), true),
        CL_SUCCESS);
    return Take<opencl::WriteBuffer>().event;
  }
  /// Another command; what the server is to let it wait for.
  std::vector<wire::Id> Fill(cl_command_queue queue) {
    Enqueue enqueue(queue, CL_COMMAND_FILL_BUFFER, 0, nullptr, nullptr);
    EXPECT_EQ(enqueue.Begin(), CL_SUCCESS);
    opencl::EnqueueFillBuffer message;
    EXPECT_EQ(enqueue.Submit(message), CL_SUCCESS);
    const auto sent = Take<opencl::EnqueueFillBuffer>();
    std::vector<wire::Id> waits;
    for (uint32_t i = 0; i < sent.wait_list.size(); ++i) waits.push_back(sent.wait_list[i]);
    return waits;
  }
  void End(wire::Id event, int32_t status = CL_COMPLETE) {
    opencl::EventStatus notice;
    notice.event = event;
    notice.status = status;
    OnEventStatus(notice);
  }
  /// The next command of this kind; flushes and releases may be between.
  template <typename Message>
  Message Take() {
    session_->Flush();
    wire::FrameHeader header;
    while (peer_->Next(&header, &payload_)) {
      if (header.opcode != static_cast<uint16_t>(opencl::OpcodeOf<Message>::value)) continue;
      wire::Reader reader(payload_);
      Message message;
      EXPECT_TRUE(message.Decode(reader));
      return message;  // Views into payload_.
    }
    ADD_FAILURE() << "the stream has ended";
    return {};
  }

  guest::FakeServer server_{wire::Transport::kUnix};
  guest::Session* session_ = nullptr;  // Never destroyed.
  std::unique_ptr<guest::Peer> peer_;
  std::unique_ptr<_cl_context> context_;
  std::vector<std::unique_ptr<_cl_command_queue>> queues_;
  std::vector<std::byte> payload_;
  uint32_t ids_ = 5000;
};

TEST_F(WritesTest, TheOnlyQueueOfAContextHasNoEventForThem) {
  EXPECT_FALSE(Write(Queue()));
  EXPECT_FALSE(context_->writes.Any());
}

TEST_F(WritesTest, OtherQueuesWaitUntilTheyAreComplete) {
  cl_command_queue one = Queue(), other = Queue();
  const wire::Id write = Write(one);
  ASSERT_TRUE(write);
  EXPECT_TRUE(Fill(one).empty()) << "its own order is enough";
  EXPECT_EQ(Fill(other), std::vector<wire::Id>{write});
  EXPECT_EQ(Fill(other), std::vector<wire::Id>{write});
  End(write);
  EXPECT_TRUE(Fill(other).empty());
  EXPECT_FALSE(context_->writes.Any());
}

TEST_F(WritesTest, OneThatFailedIsNotWaitedFor) {
  cl_command_queue one = Queue(), other = Queue();
  End(Write(one), CL_OUT_OF_RESOURCES);
  EXPECT_TRUE(Fill(other).empty());
  EXPECT_FALSE(context_->writes.Any());
}

TEST_F(WritesTest, AMarkerStandsForThoseOfAQueueThatWasAlone) {
  cl_command_queue one = Queue();
  (void)Write(one);
  cl_command_queue other = Queue();
  const wire::Id marker = Take<opencl::EnqueueMarkerWithWaitList>().event;
  ASSERT_TRUE(marker);
  EXPECT_EQ(Fill(other), std::vector<wire::Id>{marker});
  End(marker);
  EXPECT_TRUE(Fill(other).empty());
}

TEST_F(WritesTest, NoMarkerForWhatIsComplete) {
  cl_command_queue one = Queue();
  (void)Write(one);
  AdvanceFinished(one, 1);
  cl_command_queue other = Queue();
  EXPECT_TRUE(Fill(other).empty());
  EXPECT_FALSE(context_->writes.Any());
}

TEST_F(WritesTest, MarkersAndBarriersKeepTheirMeaning) {
  cl_command_queue one = Queue(), other = Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const wire::Id write = Write(one);
  Enqueue enqueue(other, CL_COMMAND_MARKER, 0, nullptr, nullptr);
  ASSERT_EQ(enqueue.Begin(), CL_SUCCESS);
  ASSERT_EQ(SubmitMarker(enqueue), CL_SUCCESS);
  EXPECT_TRUE(Take<opencl::EnqueueMarkerWithWaitList>().wait_list.empty());
  End(write);
}

TEST_F(WritesTest, WhoAsksForTheEventIsToldThatItsCallHasReturned) {
  cl_command_queue one = Queue();
  cl_event event = nullptr;
  {
    Enqueue enqueue(one, CL_COMMAND_WRITE_BUFFER, 0, nullptr, &event);
    ASSERT_EQ(enqueue.Begin(), CL_SUCCESS);
    opencl::WriteBuffer message;
    const uint32_t value = 7;
    ASSERT_EQ(
        SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteBuffer, message, &value, Region::Flat(sizeof(value)), true),
        CL_SUCCESS);
  }
  ASSERT_NE(event, nullptr);
  EXPECT_TRUE(event->returned.load());
  End(event->id);
  EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  EXPECT_EQ(ReleaseObject(event), CL_SUCCESS);
}

}  // namespace
}  // namespace hawser::ocl
