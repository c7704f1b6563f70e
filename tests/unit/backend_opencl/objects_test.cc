// SPDX-License-Identifier: Apache-2.0
// Creating and releasing objects; ids that are wrong, stale or failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Objects, UnknownIdsAreRefusedByTypeAndExplained) {
  Session session;
  const Id queue = session.Queue();
  const Id nothing(static_cast<uint8_t>(opencl::Handle::kMem), 1, 999);
  EXPECT_EQ(session.Write(queue, nothing, wire::AsBytes("abcd", 4)), CL_INVALID_MEM_OBJECT);
  const Backend::Failure failure = session.backend().TakeFailure();
  EXPECT_EQ(failure.queue, queue);
  EXPECT_THAT(failure.text, HasSubstr("clEnqueueWriteBuffer"));
  EXPECT_THAT(failure.text, HasSubstr("buffer"));
  EXPECT_THAT(failure.text, HasSubstr("CL_INVALID_MEM_OBJECT"));
  EXPECT_THAT(session.Log(), Contains(HasSubstr("names no object")));

  EXPECT_EQ(session.Finish(Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, 999)), CL_INVALID_COMMAND_QUEUE);
  EXPECT_EQ(session.Launch(queue, Id(static_cast<uint8_t>(opencl::Handle::kKernel), 1, 999), 1), CL_INVALID_KERNEL);
  EXPECT_EQ(session.Kernel(Id(static_cast<uint8_t>(opencl::Handle::kProgram), 1, 999), "k"), Id());
  EXPECT_EQ(session.SetUserEvent(Id(static_cast<uint8_t>(opencl::Handle::kEvent), 1, 999), 0), CL_INVALID_EVENT);
}

TEST(Objects, StaleIdsAreRefused) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(64);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(session.Release(buffer), CL_SUCCESS);
  EXPECT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4)), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(session.Release(buffer), CL_INVALID_MEM_OBJECT);
  EXPECT_THAT(session.Log(), Contains(HasSubstr("stale")));
}

TEST(Objects, ANameThatIsTakenIsRefused) {
  Session session;
  opencl::CreateBuffer create;
  create.buffer = session.Buffer(64);
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE;
  create.size = 64;
  create.heap_offset = ~uint64_t{0};
  EXPECT_EQ(session.Do(create), CL_INVALID_VALUE);
}

TEST(Objects, AnIdOfAnotherTypeNeverReachesTheHandler) {
  Session session;
  opencl::Finish finish;
  finish.queue = session.Buffer(64);
  EXPECT_EQ(session.Do(finish), Session::kMalformed);
}

TEST(Objects, WhatCouldNotBeCreatedReportsWhy) {
  Session session;
  const Id queue = session.Queue();
  opencl::CreateBuffer create;
  create.buffer = session.NewId(opencl::Handle::kMem);
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE;
  create.size = 0;
  create.heap_offset = ~uint64_t{0};
  ASSERT_EQ(session.Do(create), CL_INVALID_BUFFER_SIZE);
  const Backend::Failure failure = session.backend().TakeFailure();
  EXPECT_EQ(failure.object, create.buffer);
  EXPECT_THAT(failure.text, HasSubstr("clCreateBuffer"));

  EXPECT_EQ(session.Write(queue, create.buffer, wire::AsBytes("abcd", 4)), CL_INVALID_BUFFER_SIZE);
  EXPECT_THAT(session.backend().TakeFailure().text, HasSubstr("could not be created"));
  // It can be released like any other, once.
  EXPECT_EQ(session.Release(create.buffer, true), CL_SUCCESS);
  EXPECT_TRUE(session.AwaitReleased(create.buffer));
  EXPECT_EQ(session.Write(queue, create.buffer, wire::AsBytes("abcd", 4)), CL_INVALID_MEM_OBJECT);
}

TEST(Objects, EveryKindOfObjectKeepsItsFailure) {
  Session session;
  opencl::CreateContext context;
  context.context = session.NewId(opencl::Handle::kContext);
  ASSERT_EQ(session.Do(context), CL_INVALID_VALUE);  // no devices

  opencl::CreateQueue queue;
  queue.queue = session.NewId(opencl::Handle::kQueue);
  queue.context = context.context;
  queue.device = session.Device();
  EXPECT_EQ(session.Do(queue), CL_INVALID_VALUE);
  EXPECT_EQ(session.Finish(queue.queue), CL_INVALID_VALUE);

  opencl::CreateSampler sampler;
  sampler.sampler = session.NewId(opencl::Handle::kSampler);
  sampler.context = context.context;
  EXPECT_EQ(session.Do(sampler), CL_INVALID_VALUE);

  opencl::CreateProgramWithSource program;
  program.program = session.NewId(opencl::Handle::kProgram);
  program.context = context.context;
  program.source = wire::AsBytes(std::string_view("kernel void k() {}"));
  EXPECT_EQ(session.Do(program), CL_INVALID_VALUE);

  opencl::CreateKernel kernel;
  kernel.kernel = session.NewId(opencl::Handle::kKernel);
  kernel.program = program.program;
  kernel.name = "k";
  EXPECT_EQ(session.Do(kernel), CL_INVALID_VALUE);
  EXPECT_EQ(session.SetValue(kernel.kernel, 0, 1), CL_INVALID_VALUE);

  opencl::CreateUserEvent event;
  event.event = session.NewId(opencl::Handle::kEvent);
  event.context = context.context;
  EXPECT_EQ(session.Do(event), CL_INVALID_VALUE);
  EXPECT_EQ(session.SetUserEvent(event.event, 0), CL_INVALID_VALUE);
  // A command that waits for it cannot run.
  const Id good = session.Queue();
  const Id buffer = session.Buffer(64);
  EXPECT_EQ(session.Write(good, buffer, wire::AsBytes("abcd", 4), 0, {event.event}),
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(session.Write(good, buffer, wire::AsBytes("abcd", 4), 0,
                          {Id(static_cast<uint8_t>(opencl::Handle::kEvent), 1, 999)}),
            CL_INVALID_EVENT_WAIT_LIST);
}

TEST(Objects, ContextPropertiesThatAreHandlesAreRefused) {
  Session session;
  opencl::CreateContext create;
  create.context = session.NewId(opencl::Handle::kContext);
  const Id device = session.Device();
  create.devices = wire::ArrayView<Id>(&device, 1);
  const int64_t properties[] = {0x2008 /* CL_GL_CONTEXT_KHR */, 0x1234};
  create.properties = wire::ArrayView<int64_t>(properties, 2);
  EXPECT_EQ(session.Do(create), CL_INVALID_PROPERTY);
}

TEST(Objects, QueuePropertiesThatTheDriverRefuses) {
  Session session;
  opencl::CreateQueue create;
  create.queue = session.NewId(opencl::Handle::kQueue);
  create.context = session.Context();
  create.device = session.Device();
  const uint64_t properties[] = {0xdead, 1};
  create.properties = wire::ArrayView<uint64_t>(properties, 2);
  EXPECT_LT(session.Do(create), 0);
  EXPECT_LT(session.Finish(create.queue), 0);
}

TEST(Objects, Sampler) {
  Session session;
  opencl::CreateSampler create;
  create.sampler = session.NewId(opencl::Handle::kSampler);
  create.context = session.Context();
  const uint64_t properties[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE,
                                 CL_SAMPLER_ADDRESSING_MODE,   CL_ADDRESS_CLAMP,
                                 CL_SAMPLER_FILTER_MODE,       CL_FILTER_NEAREST};
  create.properties = wire::ArrayView<uint64_t>(properties, 6);
  EXPECT_EQ(session.Do(create), CL_SUCCESS);
  EXPECT_EQ(session.Release(create.sampler), CL_SUCCESS);
  EXPECT_EQ(session.Release(create.sampler), CL_INVALID_SAMPLER);
}

TEST(Memory, InitialContents) {
  Session session;
  const Id queue = session.Queue();
  const std::vector<uint32_t> values = {1, 2, 3, 4};
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, session.BufferOf(values), 4), values);

  opencl::CreateBuffer create;
  create.context = session.Context();
  create.flags = CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS;  // The guest sees to access by its host.
  create.size = 16;
  create.heap_offset = ~uint64_t{0};
  create.buffer = session.NewId(opencl::Handle::kMem);
  create.transfer = 5;
  session.bulk_in().Deliver(5, OwnBytes(values));
  ASSERT_EQ(session.Do(create), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, create.buffer, 4), values);

  create.buffer = session.NewId(opencl::Handle::kMem);
  create.transfer = 6;
  session.bulk_in().Break(6, CL_OUT_OF_RESOURCES);
  EXPECT_EQ(session.Do(create), CL_OUT_OF_RESOURCES);

  create.buffer = session.NewId(opencl::Handle::kMem);
  create.transfer = 0;
  create.data = wire::AsBytes("too short", 9);
  EXPECT_EQ(session.Do(create), CL_INVALID_VALUE);
}

TEST(Memory, StagingForInitialContentsIsBounded) {
  SessionOptions options;
  options.limits.staging_memory = 1 << 20;
  Session session(options);
  opencl::CreateBuffer create;
  create.buffer = session.NewId(opencl::Handle::kMem);
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE;
  create.size = uint64_t{1} << 40;
  create.heap_offset = ~uint64_t{0};
  create.transfer = 9;
  EXPECT_EQ(session.Do(create), CL_OUT_OF_HOST_MEMORY);
}

TEST(Memory, TheSessionsLimitHolds) {
  SessionOptions options;
  options.limits.device_memory = 1 << 20;
  Session session(options);
  const Id queue = session.Queue();
  const Id first = session.Buffer(768 << 10);
  ASSERT_TRUE(first);
  EXPECT_FALSE(session.Buffer(512 << 10));
  EXPECT_FALSE(session.Buffer(~uint64_t{0} - 5));
  // The memory comes back when the driver has let it go.
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  ASSERT_EQ(session.Release(first, true), CL_SUCCESS);
  ASSERT_TRUE(session.AwaitReleased(first));
  EXPECT_TRUE(session.Buffer(512 << 10));
}

TEST(Memory, AFailedBufferCostsNothing) {
  SessionOptions options;
  options.limits.device_memory = 1 << 20;
  Session session(options);
  for (int i = 0; i < 4; ++i) {
    opencl::CreateBuffer create;
    create.buffer = session.NewId(opencl::Handle::kMem);
    create.context = session.Context();
    create.flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;  // nonsense
    create.size = 1 << 20;
    create.heap_offset = ~uint64_t{0};
    EXPECT_LT(session.Do(create), 0);
  }
  EXPECT_TRUE(session.Buffer(1 << 20));
}

TEST(Memory, ABufferInTheHeapIsThePages) {
  SessionOptions options;
  options.heap = 1 << 20;
  Session session(options);
  if (!session.backend().WantsHeap()) GTEST_SKIP() << "no device works in place on host memory";
  const Id queue = session.Queue();
  opencl::CreateBuffer create;
  create.buffer = session.NewId(opencl::Handle::kMem);
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
  create.size = 4096;
  create.heap_offset = 8192;
  ASSERT_EQ(session.Do(create), CL_SUCCESS);
  // What the guest stores, the device reads.
  auto* words = reinterpret_cast<uint32_t*>(session.heap() + create.heap_offset);
  for (uint32_t i = 0; i < 1024; ++i) words[i] = i;
  const Id kernel =
      session.Kernel(session.Program("kernel void twice(global uint* a) { a[get_global_id(0)] *= 2; }"), "twice");
  ASSERT_EQ(session.SetBuffer(kernel, 0, create.buffer), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1024), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  // What the device stores, the guest reads.
  for (uint32_t i = 0; i < 1024; ++i) ASSERT_EQ(words[i], 2 * i);

  // Released once nothing uses it: neither a command nor a sub-buffer.
  opencl::CreateSubBuffer sub;
  sub.buffer = session.NewId(opencl::Handle::kMem);
  sub.parent = create.buffer;
  sub.flags = CL_MEM_READ_WRITE;
  sub.origin = 1024;
  sub.size = 1024;
  ASSERT_EQ(session.Do(sub), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, sub.buffer, 1), std::vector<uint32_t>{512});
  ASSERT_EQ(session.Release(create.buffer, true), CL_SUCCESS);
  EXPECT_FALSE(session.HasReleased(create.buffer));
  ASSERT_EQ(session.Release(kernel), CL_SUCCESS);
  ASSERT_EQ(session.Release(sub.buffer, true), CL_SUCCESS);
  EXPECT_TRUE(session.AwaitReleased(sub.buffer));
  EXPECT_TRUE(session.AwaitReleased(create.buffer));
}

TEST(Memory, PlacesOutsideTheHeapAreRefused) {
  SessionOptions options;
  options.heap = 1 << 20;
  Session session(options);
  opencl::CreateBuffer create;
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE;
  const struct {
    uint64_t offset, size;
  } places[] = {{1 << 20, 128},        {64, 128}, {(1 << 20) - 128, 256}, {128, ~uint64_t{0} - 64},
                {~uint64_t{127}, 256}, {0, 0}};
  for (const auto& place : places) {
    create.buffer = session.NewId(opencl::Handle::kMem);
    create.heap_offset = place.offset;
    create.size = place.size;
    EXPECT_EQ(session.Do(create), CL_INVALID_HOST_PTR) << place.offset << " " << place.size;
  }
  Session without;
  create.buffer = without.NewId(opencl::Handle::kMem);
  create.context = without.Context();
  create.heap_offset = 0;
  create.size = 128;
  EXPECT_EQ(without.Do(create), CL_INVALID_HOST_PTR);
}

TEST(Memory, SubBuffers) {
  Session session;
  const Id queue = session.Queue();
  std::vector<uint32_t> values(1024);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = i;
  opencl::CreateSubBuffer create;
  create.buffer = session.NewId(opencl::Handle::kMem);
  create.parent = session.BufferOf(values);
  create.flags = CL_MEM_READ_ONLY;
  create.origin = 2048;
  create.size = 1024;
  ASSERT_EQ(session.Do(create), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, create.buffer, 2), (std::vector<uint32_t>{512, 513}));
  // Beyond its end, though inside the parent.
  EXPECT_TRUE(session.Read(queue, create.buffer, 4, 1024).empty());

  create.origin = 4096;
  create.buffer = session.NewId(opencl::Handle::kMem);
  EXPECT_EQ(session.Do(create), CL_INVALID_VALUE);
  create.origin = ~uint64_t{0} - 511;
  create.buffer = session.NewId(opencl::Handle::kMem);
  EXPECT_EQ(session.Do(create), CL_INVALID_VALUE);
  create.origin = 0;
  create.size = 0;
  create.buffer = session.NewId(opencl::Handle::kMem);
  EXPECT_EQ(session.Do(create), CL_INVALID_BUFFER_SIZE);
}

TEST(Memory, ReleasedIsNotSaidWhileACommandUsesTheBuffer) {
  Session session;
  const Id queue = session.Queue();
  const Id buffer = session.Buffer(4096);
  const Id event = session.UserEvent();
  ASSERT_EQ(session.Write(queue, buffer, wire::AsBytes("abcd", 4), 0, {event}), CL_SUCCESS);
  ASSERT_EQ(session.Release(buffer, true), CL_SUCCESS);
  const Id other = session.Queue();
  ASSERT_EQ(session.Finish(other), CL_SUCCESS);
  EXPECT_FALSE(session.HasReleased(buffer));
  ASSERT_EQ(session.SetUserEvent(event, CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(session.AwaitReleased(buffer));
}

TEST(Memory, Pipe) {
  Session session;
  opencl::CreatePipe create;
  create.pipe = session.NewId(opencl::Handle::kMem);
  create.context = session.Context();
  create.flags = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
  create.packet_size = 16;
  create.max_packets = 16;
  const int32_t status = session.Do(create);
  const Id queue = session.Queue();
  // Whatever the driver says: it is no buffer.
  EXPECT_TRUE(session.Read(queue, create.pipe, 16).empty());
  if (status == CL_SUCCESS) {
    EXPECT_EQ(session.Release(create.pipe), CL_SUCCESS);
  }
}

TEST(Objects, ReleaseOfEveryKind) {
  Session session;
  const Id queue = session.Queue();
  const Id program = session.Program("kernel void k(global int* a) { a[0] = 1; }");
  const Id kernel = session.Kernel(program, "k");
  const Id buffer = session.Buffer(64);
  const Id event = session.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1, {}, event), CL_SUCCESS);
  // All of it while the command may still run.
  for (const Id id : {event, kernel, program, buffer, queue, session.Context()}) {
    EXPECT_EQ(session.Release(id), CL_SUCCESS) << unsigned{id.type()};
    EXPECT_LT(session.Release(id), 0) << unsigned{id.type()};
  }
  const auto done = session.AwaitEvent(event);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->message.status, CL_COMPLETE);
}

TEST(Objects, NotifiedReleaseOfOtherKindsIsAnnouncedAtOnce) {
  Session session;
  const Id queue = session.Queue();
  EXPECT_EQ(session.Release(queue, true), CL_SUCCESS);
  EXPECT_TRUE(session.HasReleased(queue));
}

TEST(Objects, SetDefaultDeviceCommandQueue) {
  Session session;
  opencl::SetDefaultDeviceCommandQueue set;
  set.context = session.Context();
  set.device = session.Device();
  set.queue = session.Queue();
  EXPECT_LE(session.Do(set), 0);  // A host queue is none of the device's; drivers differ in the code.
  set.queue = Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, 999);
  EXPECT_EQ(session.Do(set), CL_INVALID_COMMAND_QUEUE);
}

}  // namespace
}  // namespace hawser::server::ocl
