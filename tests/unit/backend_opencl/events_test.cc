// SPDX-License-Identifier: Apache-2.0
// Events: announcements, times, user events, failures, flushing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

TEST(Events, CompletionIsAnnounced) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {}, event), CL_SUCCESS);
  const auto notice = session.AwaitEvent(event);
  ASSERT_TRUE(notice.has_value());
  EXPECT_EQ(notice->message.status, CL_COMPLETE);
  EXPECT_EQ(notice->message.has_times, 0u);
  EXPECT_TRUE(session.replies().AwaitFlushed());
}

TEST(Events, ProfilingTimesComeWithIt) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_PROFILING_ENABLE);
  const Id buffer = session.Buffer(64);
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {}, event), CL_SUCCESS);
  const auto notice = session.AwaitEvent(event);
  ASSERT_TRUE(notice.has_value());
  ASSERT_EQ(notice->message.has_times, 1u);
  EXPECT_GT(notice->message.times[0], 0u);
  for (size_t i = 1; i < 5; ++i) EXPECT_GE(notice->message.times[i], notice->message.times[i - 1]) << i;
}

TEST(Events, EveryCompletionIsFlushedSooner) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  std::vector<Id> events;
  for (int i = 0; i < 500; ++i) {
    events.push_back(session.NewId(opencl::Handle::kEvent));
    ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {}, events.back()), CL_SUCCESS);
  }
  for (const Id event : events) ASSERT_TRUE(session.AwaitEvent(event).has_value());
  EXPECT_TRUE(session.replies().AwaitFlushed()) << "nobody asked; the last one flushes";
}

TEST(Events, AfterAFlushEachCompletionIsFlushed) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  const Id first = session.NewId(opencl::Handle::kEvent), second = session.NewId(opencl::Handle::kEvent);
  const Id gate = session.UserEvent(), later = session.UserEvent();
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {gate}, first), CL_SUCCESS);
  opencl::Flush flush;
  flush.queue = queue;
  ASSERT_EQ(session.Do(flush), CL_SUCCESS);
  // The second is still to come when the first is done.
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {later}, second), CL_SUCCESS);
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  const auto notice = session.AwaitEvent(first);
  ASSERT_TRUE(notice.has_value());
  EXPECT_TRUE(notice->frame->flush);
  EXPECT_FALSE(session.HasEvent(second));
  ASSERT_EQ(session.SetUserEvent(later, CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(session.AwaitEvent(second).has_value());
}

TEST(Events, AnEventMayBeReleasedBeforeItIsComplete) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  const Id gate = session.UserEvent();
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {gate}, event), CL_SUCCESS);
  ASSERT_EQ(session.Release(event), CL_SUCCESS);
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(session.Release(gate), CL_SUCCESS);
  EXPECT_TRUE(session.AwaitEvent(event).has_value());
}

TEST(Events, WatchingStatesBeforeCompletion) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  const Id gate = session.UserEvent();
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {gate}, event), CL_SUCCESS);
  opencl::WatchEvent watch;
  watch.event = event;
  for (const int32_t status : {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE}) {
    watch.status = status;
    ASSERT_EQ(session.Do(watch), CL_SUCCESS);
  }
  watch.status = 17;
  EXPECT_EQ(session.Do(watch), CL_INVALID_VALUE);
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  for (const int32_t status : {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE}) {
    EXPECT_TRUE(session
                    .AwaitNotice<opencl::EventStatus>([&](const opencl::EventStatus& notice) {
                      return notice.event == event && notice.status == status;
                    })
                    .has_value())
        << status;
  }
}

TEST(UserEvents, HoldCommandsBack) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(std::vector<int>(1, 1));
  const Id gate = session.UserEvent();
  const int two = 2;
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes(&two, 4), 0, {gate}, event), CL_SUCCESS);
  const Id other = session.Queue();
  EXPECT_EQ(session.ReadAs<int>(other, session.BufferOf(std::vector<int>(1, 9)), 1), std::vector<int>{9});
  EXPECT_FALSE(session.HasEvent(event));
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1), std::vector<int>{2});
  EXPECT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_INVALID_OPERATION) << "set once only";
  EXPECT_EQ(session.SetUserEvent(gate, 5), CL_INVALID_VALUE);
  EXPECT_EQ(session.SetUserEvent(event, CL_COMPLETE), CL_INVALID_EVENT) << "no user event";
}

TEST(UserEvents, AnErrorFailsWhatWaits) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(std::vector<int>(1, 1));
  const Id gate = session.UserEvent();
  const int two = 2;
  const Id first = session.NewId(opencl::Handle::kEvent);
  const Id second = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes(&two, 4), 0, {gate}, first), CL_SUCCESS);
  const Id other = session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_EQ(session.Write(other, buffer, wire::AsBytes(&two, 4), 0, {first}, second), CL_SUCCESS);
  opencl::Finish finish;
  finish.queue = queue;
  uint64_t seq = 0;
  ASSERT_EQ(session.Do(finish, &seq), CL_SUCCESS);

  ASSERT_EQ(session.SetUserEvent(gate, -77), CL_SUCCESS);
  for (const Id event : {first, second}) {
    const auto notice = session.AwaitEvent(event);
    ASSERT_TRUE(notice.has_value());
    EXPECT_LT(notice->message.status, 0);
  }
  EXPECT_TRUE(session.replies().AwaitFlushed());
  EXPECT_TRUE(session.AwaitReply<opencl::Status>(seq).has_value()) << "a finish that waited is answered";
  // Later commands that name the failed event do not hang: they fail.
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes(&two, 4), 0, {first}),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes(&two, 4), 0, {gate}),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(session.Finish(other), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 1), std::vector<int>{1});
}

TEST(UserEvents, AReadThatFailsIsAnswered) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(std::vector<int>(1, 1));
  const Id gate = session.UserEvent();
  opencl::ReadBuffer read;
  read.queue = queue;
  read.buffer = buffer;
  read.size = 4;
  read.wait_list = wire::ArrayView<Id>(&gate, 1);
  read.event = session.NewId(opencl::Handle::kEvent);
  uint64_t seq = 0;
  ASSERT_EQ(session.Do(read, &seq), CL_SUCCESS);
  ASSERT_EQ(session.SetUserEvent(gate, -5), CL_SUCCESS);
  const auto reply = session.AwaitReply<opencl::ReadReply>(seq);
  ASSERT_TRUE(reply.has_value());
  EXPECT_LT(reply->message.status, 0);
  EXPECT_TRUE(reply->message.data.empty());
  EXPECT_TRUE(session.AwaitEvent(read.event).has_value());
}

TEST(UserEvents, ManyFailAtOnce) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Id buffer = session.Buffer(4096);
  const Id gate = session.UserEvent();
  std::vector<Id> events;
  for (int i = 0; i < 600; ++i) {
    events.push_back(session.NewId(opencl::Handle::kEvent));
    // Every other one is free to run while the sweep looks.
    const std::vector<Id> wait = i % 2 == 0 ? std::vector<Id>{gate} : std::vector<Id>{};
    ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, wait, events.back()), CL_SUCCESS);
  }
  ASSERT_EQ(session.SetUserEvent(gate, -1), CL_SUCCESS);
  for (size_t i = 0; i < events.size(); ++i) {
    const auto notice = session.AwaitEvent(events[i]);
    ASSERT_TRUE(notice.has_value()) << i;
    EXPECT_EQ(notice->message.status < 0, i % 2 == 0) << i;
  }
  // Each exactly once.
  size_t notices = 0;
  for (const std::shared_ptr<Frame>& frame : session.replies().All()) {
    if (frame->opcode == static_cast<uint16_t>(opencl::Opcode::kEventStatus)) ++notices;
  }
  EXPECT_EQ(notices, events.size());
}

TEST(UserEvents, TheEndOfTheSessionLetsGo) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  const Id gate = session.UserEvent();
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {gate}), CL_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  session.EndBackend();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << "it waited for what cannot come";
}

TEST(Events, ALongFinishIsAnsweredWhenTheKernelIsDone) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel =
      session.Kernel(session.Program("kernel void spin(global uint* a, uint n) { uint x = a[0];"
                                     " for (uint i = 0; i < n; ++i) x = x * 1664525u + 1013904223u; a[0] = x; }"),
                     "spin");
  const Id buffer = session.BufferOf(std::vector<uint32_t>{1});
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.SetValue(kernel, 1, uint32_t{50'000'000}), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
  opencl::Finish finish;
  finish.queue = queue;
  uint64_t seq = 0;
  ASSERT_EQ(session.Do(finish, &seq), CL_SUCCESS);
  // The executor is free meanwhile.
  EXPECT_TRUE(session.Buffer(64));
  EXPECT_TRUE(session.AwaitReply<opencl::Status>(seq).has_value());
  uint32_t expected = 1;
  for (uint32_t i = 0; i < 50'000'000; ++i) expected = expected * 1664525u + 1013904223u;
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, buffer, 1), std::vector<uint32_t>{expected});
}

}  // namespace
}  // namespace hawser::server::ocl
