// SPDX-License-Identifier: Apache-2.0
// Reads and writes, in frames and over the bulk channel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

constexpr size_t kBig = 1 << 20;

std::vector<uint8_t> Pattern(size_t size, uint8_t seed = 1) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
  return bytes;
}

opencl::WriteBuffer BulkWrite(Id queue, Id buffer, uint64_t transfer, uint64_t size, uint64_t offset = 0) {
  opencl::WriteBuffer write;
  write.queue = queue;
  write.buffer = buffer;
  write.offset = offset;
  write.size = size;
  write.transfer = transfer;
  return write;
}

opencl::ReadBuffer BulkRead(Id queue, Id buffer, uint64_t transfer, uint64_t size, uint64_t offset = 0) {
  opencl::ReadBuffer read;
  read.queue = queue;
  read.buffer = buffer;
  read.offset = offset;
  read.size = size;
  read.transfer = transfer;
  return read;
}

TEST(InlineTransfers, ARangeOfABuffer) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(Pattern(256));
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("HELLO", 5), 10), CL_SUCCESS);
  std::vector<uint8_t> expected = Pattern(256);
  std::memcpy(expected.data() + 10, "HELLO", 5);
  EXPECT_EQ(session.ReadAs<uint8_t>(queue, buffer, 256), expected);
}

TEST(InlineTransfers, RangesOutsideAreRefused) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 61), CL_INVALID_VALUE);
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), ~uint64_t{0} - 1), CL_INVALID_VALUE);
  EXPECT_EQ(session.Write(queue, buffer, {}), CL_INVALID_VALUE);
  opencl::WriteBuffer lie;
  lie.queue = queue;
  lie.buffer = buffer;
  lie.size = 32;
  lie.data = wire::AsBytes("abcd", 4);
  EXPECT_EQ(session.Do(lie), CL_INVALID_VALUE);

  opencl::ReadBuffer read = BulkRead(queue, buffer, 0, 65);
  read.event = session.NewId(opencl::Handle::kEvent);
  const auto reply = session.Ask<opencl::ReadReply>(read);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->message.status, CL_INVALID_VALUE);
  const auto event = session.AwaitEvent(read.event);
  ASSERT_TRUE(event.has_value()) << "the event of a refused read fails too";
  EXPECT_EQ(event->message.status, CL_INVALID_VALUE);
  read = BulkRead(queue, session.Buffer(uint64_t{1} << 30), 0, uint64_t{1} << 30);
  const auto large = session.Ask<opencl::ReadReply>(read);
  ASSERT_TRUE(large.has_value());
  EXPECT_LT(large->message.status, 0) << "an answer of 1 GiB";
}

TEST(InlineTransfers, DataComesBeforeTheEvent) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(Pattern(64));
  for (int i = 0; i < 50; ++i) {
    const Id event = session.NewId(opencl::Handle::kEvent);
    const size_t before = session.replies().Count();
    ASSERT_EQ(session.Read(queue, buffer, 64, 0, {}, event).size(), 64u);
    ASSERT_TRUE(session.AwaitEvent(event).has_value());
    const std::vector<std::shared_ptr<Frame>> frames = session.replies().All();
    ASSERT_EQ(frames.size(), before + 2);
    EXPECT_EQ(frames[before]->opcode, static_cast<uint16_t>(opencl::Opcode::kEnqueueReadBuffer));
    EXPECT_EQ(frames[before + 1]->opcode, static_cast<uint16_t>(opencl::Opcode::kEventStatus));
    EXPECT_TRUE(frames[before + 1]->flush);
  }
}

TEST(InlineTransfers, Rectangles) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(std::vector<uint8_t>(64, 0));
  opencl::WriteBufferRect write;
  write.queue = queue;
  write.buffer = buffer;
  write.origin = {1, 2, 0};
  write.region = {3, 2, 1};
  write.row_pitch = 8;
  write.data = wire::AsBytes("abcdef", 6);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  std::vector<uint8_t> expected(64, 0);
  std::memcpy(expected.data() + 17, "abc", 3);
  std::memcpy(expected.data() + 25, "def", 3);
  EXPECT_EQ(session.ReadAs<uint8_t>(queue, buffer, 64), expected);

  opencl::ReadBufferRect read;
  read.queue = queue;
  read.buffer = buffer;
  read.origin = {2, 2, 0};
  read.region = {2, 2, 1};
  read.row_pitch = 8;
  const auto reply = session.Ask<opencl::ReadReply>(read);
  ASSERT_TRUE(reply.has_value());
  ASSERT_EQ(reply->message.status, CL_SUCCESS);
  EXPECT_EQ(ValuesOf<char>(reply->message.data), (std::vector<char>{'b', 'c', 'e', 'f'}));

  write.data = wire::AsBytes("abcde", 5);
  EXPECT_EQ(session.Do(write), CL_INVALID_VALUE);
  write.region = {uint64_t{1} << 32, uint64_t{1} << 32, 1};
  EXPECT_EQ(session.Do(write), CL_INVALID_VALUE);
  read.region = {uint64_t{1} << 63, 2, 1};
  const auto refused = session.Ask<opencl::ReadReply>(read);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->message.status, CL_INVALID_VALUE);
}

TEST(BulkTransfers, WriteThenReadWithAKernelBetween) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel =
      session.Kernel(session.Program("kernel void inc(global uchar* a) { a[get_global_id(0)] += 1; }"), "inc");
  const Id buffer = session.Buffer(kBig);
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  // All is enqueued before the data comes: order must hold.
  ASSERT_EQ(session.Do(BulkWrite(queue, buffer, 1, kBig)), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, kBig), CL_SUCCESS);
  ASSERT_EQ(session.Do(BulkRead(queue, buffer, 2, kBig)), CL_SUCCESS);
  session.bulk_in().Deliver(1, OwnBytes(Pattern(kBig)));
  const auto result = session.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, 0);
  EXPECT_EQ(result->data, OwnBytes(Pattern(kBig, 2)));
}

TEST(BulkTransfers, DataThatComesFirst) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(kBig);
  session.bulk_in().Deliver(1, OwnBytes(Pattern(kBig)));
  opencl::WriteBuffer write = BulkWrite(queue, buffer, 1, kBig);
  write.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  const auto event = session.AwaitEvent(write.event);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->message.status, CL_COMPLETE);
  ASSERT_EQ(session.Do(BulkRead(queue, buffer, 2, 1000, 5)), CL_SUCCESS);
  const auto result = session.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  const std::vector<std::byte> all = OwnBytes(Pattern(kBig));
  EXPECT_EQ(result->data, std::vector<std::byte>(all.begin() + 5, all.begin() + 1005));
}

TEST(BulkTransfers, LaterCommandsStayBehindARead) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(Pattern(kBig));
  session.bulk_out().Hold(true);
  opencl::ReadBuffer read = BulkRead(queue, buffer, 1, kBig);
  read.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  const std::vector<uint8_t> zeros(32 << 10, 0);
  const Id behind = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, BytesOf(zeros), 0, {}, behind), CL_SUCCESS);
  const Id other = session.Queue();
  ASSERT_EQ(session.Read(other, session.Buffer(64), 64).size(), 64u);
  EXPECT_FALSE(session.HasEvent(behind));
  EXPECT_FALSE(session.HasEvent(read.event)) << "complete when the data has left";
  session.bulk_out().Hold(false);
  const auto result = session.bulk_out().Await(1);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(Pattern(kBig))) << "the write behind it must not be in it";
  EXPECT_TRUE(session.AwaitEvent(read.event).has_value());
  EXPECT_TRUE(session.AwaitEvent(behind).has_value());
}

TEST(BulkTransfers, OnAnOutOfOrderQueue) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Id buffer = session.Buffer(kBig);
  opencl::WriteBuffer write = BulkWrite(queue, buffer, 1, kBig);
  write.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  opencl::ReadBuffer read = BulkRead(queue, buffer, 2, kBig);
  read.wait_list = wire::ArrayView<Id>(&write.event, 1);
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  EXPECT_FALSE(session.HasEvent(write.event));
  session.bulk_in().Deliver(1, OwnBytes(Pattern(kBig)));
  const auto result = session.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(Pattern(kBig)));
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
}

TEST(BulkTransfers, ProfilingCoversTheTransfer) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_PROFILING_ENABLE);
  const Id buffer = session.BufferOf(Pattern(kBig));
  opencl::ReadBuffer read = BulkRead(queue, buffer, 1, kBig);
  read.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  const auto event = session.AwaitEvent(read.event);
  ASSERT_TRUE(event.has_value());
  ASSERT_EQ(event->message.has_times, 1u);
  for (size_t i = 1; i < 5; ++i) EXPECT_GE(event->message.times[i], event->message.times[i - 1]) << i;
}

TEST(BulkTransfers, AReadThatCannotBeIsAborted) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  opencl::ReadBuffer read = BulkRead(queue, buffer, 1, kBig);
  read.event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Do(read), CL_SUCCESS) << "answered on the bulk channel";
  auto result = session.bulk_out().Await(1);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, CL_INVALID_VALUE);
  EXPECT_TRUE(session.AwaitEvent(read.event).has_value());
  EXPECT_EQ(session.Do(BulkRead(Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, 999), buffer, 2, 64)), CL_SUCCESS);
  result = session.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, CL_INVALID_COMMAND_QUEUE);

  // It waits for what fails.
  const Id gate = session.UserEvent();
  read = BulkRead(queue, session.Buffer(kBig), 3, kBig);
  read.wait_list = wire::ArrayView<Id>(&gate, 1);
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  ASSERT_EQ(session.SetUserEvent(gate, -9), CL_SUCCESS);
  result = session.bulk_out().Await(3);
  ASSERT_TRUE(result.has_value());
  EXPECT_LT(result->status, 0);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
}

TEST(BulkTransfers, AWriteThatCannotBeIsDrained) {
  Session session;
  const Id queue = session.Queue();
  opencl::WriteBuffer write = BulkWrite(queue, session.Buffer(64), 1, kBig);
  write.event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Do(write), CL_INVALID_VALUE);
  EXPECT_EQ(session.backend().TakeFailure().object, write.event);
  EXPECT_TRUE(session.bulk_in().AwaitTarget(1)) << "the guest's data must not be stuck";
  session.bulk_in().Deliver(1, OwnBytes(Pattern(kBig)));
  EXPECT_EQ(session.Do(BulkWrite(queue, Id(static_cast<uint8_t>(opencl::Handle::kMem), 1, 999), 2, kBig)),
            CL_INVALID_MEM_OBJECT);
  EXPECT_TRUE(session.bulk_in().AwaitTarget(2));

  // The map fails later.
  const Id gate = session.UserEvent();
  const Id buffer = session.BufferOf(Pattern(kBig));
  write = BulkWrite(queue, buffer, 3, kBig);
  write.wait_list = wire::ArrayView<Id>(&gate, 1);
  write.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  ASSERT_EQ(session.SetUserEvent(gate, -9), CL_SUCCESS);
  const auto event = session.AwaitEvent(write.event);
  ASSERT_TRUE(event.has_value());
  EXPECT_LT(event->message.status, 0);
  EXPECT_TRUE(session.bulk_in().AwaitTarget(3));
  session.bulk_in().Deliver(3, OwnBytes(Pattern(kBig, 99)));
  ASSERT_EQ(session.Do(BulkRead(queue, buffer, 4, kBig)), CL_SUCCESS);
  const auto result = session.bulk_out().Await(4);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(Pattern(kBig))) << "nothing was written";
}

TEST(BulkTransfers, ATransferThatBreaksFailsItsCommandAndThoseBehind) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(Pattern(kBig));
  opencl::WriteBuffer write = BulkWrite(queue, buffer, 1, kBig);
  write.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  const Id behind = session.NewId(opencl::Handle::kEvent);
  const Id other = session.Queue();
  ASSERT_EQ(session.Write(other, buffer, wire::AsBytes("abcd", 4), 0, {write.event}, behind), CL_SUCCESS);
  session.bulk_in().Break(1, CL_OUT_OF_RESOURCES);
  for (const Id id : {write.event, behind}) {
    const auto event = session.AwaitEvent(id);
    ASSERT_TRUE(event.has_value());
    EXPECT_LT(event->message.status, 0);
  }
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(session.Finish(other), CL_SUCCESS);
  // The queue works on.
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4)), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<char>(queue, buffer, 4), (std::vector<char>{'a', 'b', 'c', 'd'}));
}

TEST(BulkTransfers, ATransferThatIsRefused) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(kBig);
  session.bulk_in().RefuseAll();
  EXPECT_EQ(session.Do(BulkWrite(queue, buffer, 1, kBig)), CL_OUT_OF_RESOURCES);
  opencl::WriteBufferRect rect;
  rect.queue = queue;
  rect.buffer = buffer;
  rect.region = {64, 64, 1};
  rect.transfer = 2;
  EXPECT_EQ(session.Do(rect), CL_OUT_OF_RESOURCES);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS) << "the queue is not stuck";
}

TEST(BulkTransfers, Rectangles) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.BufferOf(std::vector<uint8_t>(kBig, 0));
  opencl::WriteBufferRect write;
  write.queue = queue;
  write.buffer = buffer;
  write.origin = {512, 100, 0};
  write.region = {256, 300, 1};
  write.row_pitch = 1024;
  write.transfer = 1;
  const std::vector<uint8_t> data = Pattern(256 * 300);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  opencl::ReadBufferRect read;
  read.queue = queue;
  read.buffer = buffer;
  read.origin = write.origin;
  read.region = write.region;
  read.row_pitch = 1024;
  read.transfer = 2;
  read.event = session.NewId(opencl::Handle::kEvent);
  // The event may be announced before the data has left: the guest holds it back until the data has landed.
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  session.bulk_in().Deliver(1, OwnBytes(data));
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  const auto result = session.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(data));
  EXPECT_TRUE(session.AwaitEvent(read.event).has_value());

  // A broken transfer and a rectangle that fits nowhere.
  write.transfer = 3;
  write.event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Do(write), CL_SUCCESS);
  session.bulk_in().Break(3, CL_OUT_OF_RESOURCES);
  const auto event = session.AwaitEvent(write.event);
  ASSERT_TRUE(event.has_value());
  EXPECT_LT(event->message.status, 0);
  write.transfer = 4;
  write.event = {};
  write.origin = {kBig, 0, 0};
  EXPECT_EQ(session.Do(write), CL_INVALID_VALUE);
  EXPECT_TRUE(session.bulk_in().AwaitTarget(4));
}

TEST(BulkTransfers, StagingIsBounded) {
  SessionOptions options;
  options.limits.staging_memory = 1 << 20;
  Session session(options);
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(8 << 20);
  opencl::ReadBufferRect read;
  read.queue = queue;
  read.buffer = buffer;
  read.region = {4 << 20, 1, 1};
  read.transfer = 1;
  ASSERT_EQ(session.Do(read), CL_SUCCESS);
  const auto result = session.bulk_out().Await(1);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, CL_OUT_OF_RESOURCES);
  opencl::WriteBufferRect write;
  write.queue = queue;
  write.buffer = buffer;
  write.region = {4 << 20, 1, 1};
  write.transfer = 2;
  EXPECT_EQ(session.Do(write), CL_OUT_OF_RESOURCES);
}

TEST(BulkTransfers, TheEndOfTheSessionLetsGo) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(kBig);
  ASSERT_EQ(session.Do(BulkWrite(queue, buffer, 1, kBig)), CL_SUCCESS);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4)), CL_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  session.EndBackend();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4)) << "it waited for data that cannot come";
}

}  // namespace
}  // namespace hawser::server::ocl
