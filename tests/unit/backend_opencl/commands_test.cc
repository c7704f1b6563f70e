// SPDX-License-Identifier: Apache-2.0
// Kernels, buffers, order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

constexpr std::string_view kAdd = R"(
kernel void add(global int* a, int value) { a[get_global_id(0)] += value; }
kernel void offsets(global int* a) { a[get_global_id(0)] = get_global_offset(0) + 100 * get_local_size(0); }
kernel void shared(global int* a, local int* scratch) {
  scratch[get_local_id(0)] = a[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = scratch[get_local_size(0) - 1 - get_local_id(0)];
}
kernel void wide(global ulong* a, ulong value) { a[0] = value; }
)";

TEST(Commands, WriteKernelReadInOrder) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "add");
  ASSERT_TRUE(kernel);
  const Id buffer = session.Buffer(64 * sizeof(int));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  for (int round = 0; round < 50; ++round) {
    const std::vector<int> values(64, round);
    ASSERT_EQ(session.Write(queue, buffer, BytesOf(values)), CL_SUCCESS);
    ASSERT_EQ(session.SetValue(kernel, 1, 3), CL_SUCCESS);
    ASSERT_EQ(session.Launch(queue, kernel, 64), CL_SUCCESS);
    ASSERT_EQ(session.SetValue(kernel, 1, 40), CL_SUCCESS);
    ASSERT_EQ(session.Launch(queue, kernel, 64), CL_SUCCESS);
    ASSERT_EQ(session.ReadAs<int>(queue, buffer, 64), std::vector<int>(64, round + 43));
  }
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_GT(session.drains(), 0);
}

TEST(Commands, ManyPipelinedLaunches) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "add");
  const Id buffer = session.BufferOf(std::vector<int>(8, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.SetValue(kernel, 1, 1), CL_SUCCESS);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(session.Launch(queue, kernel, 8), CL_SUCCESS);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 8), std::vector<int>(8, 3000));
}

TEST(Commands, OffsetAndLocalSize) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "offsets");
  const Id buffer = session.BufferOf(std::vector<int>(16, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  opencl::EnqueueNDRangeKernel launch;
  launch.queue = queue;
  launch.kernel = kernel;
  launch.work_dim = 1;
  const uint64_t offset = 8, global = 8, local = 4;
  launch.offset = wire::ArrayView<uint64_t>(&offset, 1);
  launch.global = wire::ArrayView<uint64_t>(&global, 1);
  launch.local = wire::ArrayView<uint64_t>(&local, 1);
  ASSERT_EQ(session.Do(launch), CL_SUCCESS);
  std::vector<int> expected(16, 0);
  std::fill(expected.begin() + 8, expected.end(), 408);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 16), expected);

  // Lists of another length than the dimension; a local size of zero; one that does not divide.
  const uint64_t pair[] = {1, 1}, zero = 0, three = 3;
  launch.offset = wire::ArrayView<uint64_t>(pair, 2);
  EXPECT_EQ(session.Do(launch), CL_INVALID_GLOBAL_OFFSET);
  launch.offset = {};
  launch.global = wire::ArrayView<uint64_t>(pair, 2);
  EXPECT_EQ(session.Do(launch), CL_INVALID_GLOBAL_WORK_SIZE);
  launch.global = wire::ArrayView<uint64_t>(&global, 1);
  launch.local = wire::ArrayView<uint64_t>(&zero, 1);
  EXPECT_EQ(session.Do(launch), CL_INVALID_WORK_GROUP_SIZE);
  launch.local = wire::ArrayView<uint64_t>(&three, 1);
  EXPECT_EQ(session.Do(launch), CL_INVALID_WORK_GROUP_SIZE);
  launch.work_dim = 7;  // Refused by the description.
  EXPECT_EQ(session.Do(launch), CL_INVALID_VALUE);
}

TEST(Commands, LocalMemory) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "shared");
  const Id buffer = session.BufferOf(std::vector<int>{1, 2, 3, 4});
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  opencl::SetKernelArg set;
  set.kernel = kernel;
  set.index = 1;
  set.kind = 4;
  set.size = 4 * sizeof(int);
  ASSERT_EQ(session.Do(set), CL_SUCCESS);
  opencl::EnqueueNDRangeKernel launch;
  launch.queue = queue;
  launch.kernel = kernel;
  launch.work_dim = 1;
  const uint64_t four = 4;
  launch.global = launch.local = wire::ArrayView<uint64_t>(&four, 1);
  ASSERT_EQ(session.Do(launch), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 4), (std::vector<int>{4, 3, 2, 1}));
}

TEST(Commands, ArgumentsThatLie) {
  Session session;
  const Id program = session.Program(kAdd);
  const Id add = session.Kernel(program, "add");
  const Id wide = session.Kernel(program, "wide");
  const Id buffer = session.Buffer(64);

  EXPECT_EQ(session.SetValue(add, 0, uint64_t{0x4141414141414141}), CL_INVALID_ARG_VALUE) << "bytes for a handle";
  EXPECT_EQ(session.SetValue(wide, 1, uint64_t{0x4141414141414141}), CL_SUCCESS) << "a plain value of that size";
  EXPECT_EQ(session.SetBuffer(wide, 1, buffer), CL_INVALID_ARG_VALUE) << "a handle for a plain value";
  EXPECT_EQ(session.SetBuffer(add, 0, Id(static_cast<uint8_t>(opencl::Handle::kMem), 1, 999)), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(session.SetBuffer(add, 0, {}), CL_SUCCESS) << "a null buffer";
  EXPECT_EQ(session.SetBuffer(add, 77, buffer), CL_INVALID_ARG_INDEX);
  EXPECT_EQ(session.SetValue(add, 1, uint64_t{1}), CL_INVALID_ARG_SIZE);

  opencl::SetKernelArg set;
  set.kernel = add;
  set.index = 1;
  set.kind = 1;
  set.size = 4;  // and no bytes
  EXPECT_EQ(session.Do(set), CL_INVALID_ARG_SIZE);
  set.index = 0;
  set.kind = 2;
  set.size = 64;
  set.object = buffer;
  EXPECT_EQ(session.Do(set), CL_INVALID_ARG_SIZE);
  set.size = 8;
  set.object = session.UserEvent();
  EXPECT_EQ(session.Do(set), CL_INVALID_ARG_VALUE);
}

TEST(Commands, AKernelWithoutItsArguments) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "add");
  const Id event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Launch(queue, kernel, 1, {}, event), CL_INVALID_KERNEL_ARGS);
  const Backend::Failure failure = session.backend().TakeFailure();
  EXPECT_EQ(failure.object, event);
  EXPECT_EQ(failure.queue, queue);
  // What waits for it does not run; the queue goes on.
  const Id buffer = session.Buffer(64);
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {event}),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
}

TEST(Commands, CloneKernel) {
  Session session;
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kAdd), "add");
  const Id buffer = session.BufferOf(std::vector<int>(4, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.SetValue(kernel, 1, 5), CL_SUCCESS);
  opencl::CloneKernel clone;
  clone.kernel = session.NewId(opencl::Handle::kKernel);
  clone.source = kernel;
  const int32_t status = session.Do(clone);
  if (status != CL_SUCCESS) GTEST_SKIP() << "the platform cannot clone kernels: " << status;
  ASSERT_EQ(session.SetValue(kernel, 1, 100), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, clone.kernel, 4), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 4), std::vector<int>(4, 5));
}

TEST(Commands, FillAndCopy) {
  Session session;
  const Id queue = session.Queue();
  const Id source = session.BufferOf(std::vector<int>(16, 0));
  const Id destination = session.BufferOf(std::vector<int>(16, 7));
  opencl::EnqueueFillBuffer fill;
  fill.queue = queue;
  fill.buffer = source;
  const int pattern = 42;
  fill.pattern = wire::AsBytes(&pattern, sizeof(pattern));
  fill.offset = 16;
  fill.size = 32;
  ASSERT_EQ(session.Do(fill), CL_SUCCESS);
  opencl::EnqueueCopyBuffer copy;
  copy.queue = queue;
  copy.source = source;
  copy.destination = destination;
  copy.source_offset = 12;
  copy.destination_offset = 0;
  copy.size = 12;
  ASSERT_EQ(session.Do(copy), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<int>(queue, destination, 4), (std::vector<int>{0, 42, 42, 7}));

  fill.offset = 64;
  EXPECT_EQ(session.Do(fill), CL_INVALID_VALUE);
  fill.offset = ~uint64_t{0} - 15;
  EXPECT_EQ(session.Do(fill), CL_INVALID_VALUE);
  fill.offset = 0;
  fill.pattern = wire::AsBytes("abc", 3);
  EXPECT_EQ(session.Do(fill), CL_INVALID_VALUE);
  fill.pattern = {};
  EXPECT_EQ(session.Do(fill), CL_INVALID_VALUE);
  copy.size = ~uint64_t{0};
  EXPECT_EQ(session.Do(copy), CL_INVALID_VALUE);
  copy.size = 12;
  copy.destination_offset = 60;
  EXPECT_EQ(session.Do(copy), CL_INVALID_VALUE);
}

TEST(Commands, CopyRectangle) {
  Session session;
  const Id queue = session.Queue();
  std::vector<uint8_t> bytes(64);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  const Id source = session.BufferOf(bytes);
  const Id destination = session.BufferOf(std::vector<uint8_t>(64, 0));
  opencl::EnqueueCopyBufferRect copy;
  copy.queue = queue;
  copy.source = source;
  copy.destination = destination;
  copy.source_origin = {2, 1, 0};
  copy.destination_origin = {0, 0, 0};
  copy.region = {3, 2, 1};
  copy.source_row_pitch = 8;
  copy.destination_row_pitch = 4;
  ASSERT_EQ(session.Do(copy), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<uint8_t>(queue, destination, 8), (std::vector<uint8_t>{10, 11, 12, 0, 18, 19, 20, 0}));
  for (const auto& [origin, region] : std::vector<std::pair<std::array<uint64_t, 3>, std::array<uint64_t, 3>>>{
           {{6, 7, 0}, {3, 1, 1}},
           {{0, 0, 0}, {3, 0, 1}},
           {{0, 0, 0}, {~uint64_t{0}, 2, 2}},
           {{0, 0, ~uint64_t{0}}, {1, 1, 2}},
           {{0, uint64_t{1} << 61, 0}, {1, 1, 1}}}) {
    copy.source_origin = origin;
    copy.region = region;
    EXPECT_EQ(session.Do(copy), CL_INVALID_VALUE) << origin[0] << " " << region[0];
  }
}

// PoCL 3.1 crashes where one of the two is a sub-buffer.
TEST(Commands, CopyRectanglesOfSubBuffers) {
  Session session;
  const Id queue = session.Queue();
  std::vector<uint8_t> bytes(8192);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i + i / 251);
  const Id parent = session.BufferOf(bytes);
  const Id other = session.BufferOf(std::vector<uint8_t>(8192, 0));
  const auto sub_buffer = [&](Id of, uint64_t origin) {
    opencl::CreateSubBuffer create;
    create.buffer = session.NewId(opencl::Handle::kMem);
    create.parent = of;
    create.origin = origin;
    create.size = 4096;
    EXPECT_EQ(session.Do(create), CL_SUCCESS);
    return create.buffer;
  };
  const Id source = sub_buffer(parent, 2048), destination = sub_buffer(other, 1024), behind = sub_buffer(parent, 4096);
  opencl::EnqueueCopyBufferRect copy;
  copy.queue = queue;
  copy.source = source;
  copy.destination = destination;
  copy.source_origin = {2, 3, 1};
  copy.destination_origin = {1, 0, 2};
  copy.region = {3, 2, 1};
  copy.source_row_pitch = 16;
  copy.source_slice_pitch = 256;
  copy.destination_row_pitch = 8;
  copy.destination_slice_pitch = 64;
  ASSERT_EQ(session.Do(copy), CL_SUCCESS);
  const std::vector<uint8_t> result = session.ReadAs<uint8_t>(queue, other, 8192);
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t at = i - 1024 - 2 * 64 - 1;  // In the rectangle's rows of 8.
    const bool copied = i >= 1024 + 2 * 64 + 1 && at < 16 && at % 8 < 3;
    const uint8_t expected = copied ? bytes[2048 + 256 + 3 * 16 + 2 + at / 8 * 16 + at % 8] : 0;
    ASSERT_EQ(result[i], expected) << i;
  }
  copy.source_origin[2] = 16;  // In the parent, and not in the sub-buffer.
  EXPECT_EQ(session.Do(copy), CL_INVALID_VALUE);
  copy.source_origin[2] = 1;
  // Within one buffer the driver wants one pitch.
  copy.destination_row_pitch = copy.source_row_pitch;
  copy.destination_slice_pitch = copy.source_slice_pitch;
  copy.destination = behind;
  EXPECT_EQ(session.Do(copy), CL_SUCCESS) << "beside each other in one buffer";
  copy.destination = parent;
  copy.destination_origin = {0, 0, 0};
  EXPECT_EQ(session.Do(copy), CL_SUCCESS) << "from a part to the whole";
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
}

TEST(Commands, MigrateMarkerBarrier) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  opencl::EnqueueMigrateMemObjects migrate;
  migrate.queue = queue;
  migrate.objects = wire::ArrayView<Id>(&buffer, 1);
  migrate.event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Do(migrate), CL_SUCCESS);
  opencl::EnqueueMarkerWithWaitList marker;
  marker.queue = queue;
  marker.wait_list = wire::ArrayView<Id>(&migrate.event, 1);
  marker.event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Do(marker), CL_SUCCESS);
  opencl::EnqueueBarrierWithWaitList barrier;
  barrier.queue = queue;
  barrier.event = session.NewId(opencl::Handle::kEvent);
  EXPECT_EQ(session.Do(barrier), CL_SUCCESS);
  EXPECT_EQ(session.Finish(queue), CL_SUCCESS);
  for (const Id event : {migrate.event, marker.event, barrier.event}) {
    const auto notice = session.AwaitEvent(event);
    ASSERT_TRUE(notice.has_value());
    EXPECT_EQ(notice->message.status, CL_COMPLETE);
  }
  migrate.objects = {};
  migrate.event = {};
  EXPECT_EQ(session.Do(migrate), CL_INVALID_VALUE);
}

TEST(Commands, AWaitListOfMany) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const Id buffer = session.BufferOf(std::vector<int>(64, 0));
  std::vector<Id> events;
  for (int i = 0; i < 40; ++i) {
    events.push_back(session.NewId(opencl::Handle::kEvent));
    ASSERT_EQ(
        session.Write(queue, buffer, wire::AsBytes(&i, sizeof(i)), 4 * static_cast<uint64_t>(i), {}, events.back()),
        CL_SUCCESS);
  }
  const std::vector<std::byte> read = session.Read(queue, buffer, 160, 0, events);
  std::vector<int> expected(40);
  for (int i = 0; i < 40; ++i) expected[static_cast<size_t>(i)] = i;
  EXPECT_EQ(ValuesOf<int>(wire::Bytes(read.data(), read.size())), expected);
}

TEST(Commands, OutOfOrderQueue) {
  Session session;
  const Id queue = session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_TRUE(queue);
  const Id buffer = session.BufferOf(std::vector<int>(2, 0));
  const Id gate = session.UserEvent();
  const Id held = session.NewId(opencl::Handle::kEvent);
  const int one = 1, two = 2;
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes(&one, 4), 0, {gate}, held), CL_SUCCESS);
  // What comes later overtakes the command that is held.
  const Id free = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes(&two, 4), 4, {}, free), CL_SUCCESS);
  ASSERT_TRUE(session.AwaitEvent(free).has_value());
  EXPECT_FALSE(session.HasEvent(held));

  // A finish waits for both.
  opencl::Finish finish;
  finish.queue = queue;
  uint64_t seq = 0;
  ASSERT_EQ(session.Do(finish, &seq), CL_SUCCESS);
  EXPECT_FALSE(session.HasEvent(held));
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_TRUE(session.AwaitReply<opencl::Status>(seq).has_value());
  EXPECT_TRUE(session.HasEvent(held));
  EXPECT_EQ(session.ReadAs<int>(queue, buffer, 2), (std::vector<int>{1, 2}));
}

TEST(Commands, AFinishOfAnIdleQueueAnswersAtOnce) {
  Session session;
  EXPECT_EQ(session.Finish(session.Queue()), CL_SUCCESS);
  EXPECT_EQ(session.Finish(session.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)), CL_SUCCESS);
}

TEST(Commands, SmallWritesShareBlocks) {
  // Enough for several blocks; each write must keep its own data until it is done.
  Session session;
  const Id queue = session.Queue();
  const Id gate = session.UserEvent();
  constexpr size_t kWrites = 200, kSize = 4096;
  const Id buffer = session.Buffer(kWrites * kSize);
  for (size_t i = 0; i < kWrites; ++i) {
    const std::vector<uint8_t> data(kSize, static_cast<uint8_t>(i));
    const std::vector<Id> wait = i == 0 ? std::vector<Id>{gate} : std::vector<Id>{};
    ASSERT_EQ(session.Write(queue, buffer, BytesOf(data), i * kSize, wait), CL_SUCCESS);
  }
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  for (size_t i = 0; i < kWrites; ++i) {
    const std::vector<std::byte> read = session.Read(queue, buffer, kSize, i * kSize);
    ASSERT_EQ(read, std::vector<std::byte>(kSize, static_cast<std::byte>(i))) << i;
  }
}

TEST(Commands, StagingIsBounded) {
  SessionOptions options;
  options.limits.staging_memory = 1 << 20;
  Session session(options);
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(1 << 16);
  const Id gate = session.UserEvent();
  const std::vector<uint8_t> data(32 << 10, 1);
  ASSERT_EQ(session.Write(queue, buffer, BytesOf(data), 0, {gate}), CL_SUCCESS);
  int32_t status = CL_SUCCESS;
  int accepted = 0;
  for (; accepted < 1000 && status == CL_SUCCESS; ++accepted) status = session.Write(queue, buffer, BytesOf(data));
  EXPECT_EQ(status, CL_OUT_OF_RESOURCES);
  EXPECT_GE(accepted, 16);
  ASSERT_EQ(session.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  // What was used comes back.
  for (int i = 0; i < 200; ++i) {
    status = session.Write(queue, buffer, BytesOf(data));
    if (status != CL_SUCCESS) {
      ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
      status = session.Write(queue, buffer, BytesOf(data));
    }
    ASSERT_EQ(status, CL_SUCCESS) << i;
  }
}

}  // namespace
}  // namespace hawser::server::ocl
