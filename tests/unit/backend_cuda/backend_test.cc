// SPDX-License-Identifier: Apache-2.0
// The backend over the fake driver.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

using cuda::Handle;

std::vector<std::byte> Pattern(size_t size, int seed = 1) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return bytes;
}

/// add(pointer, count, value)
struct AddParameters {
  uint64_t pointer = 0;
  uint32_t count = 0;
  uint32_t value = 0;
  wire::Bytes bytes() const { return wire::AsBytes(this, sizeof(*this)); }
};

std::vector<std::byte> ReadBack(Session& session, wire::Id context, uint64_t address, uint64_t size,
                                wire::Id stream = {}) {
  cuda::Read read;
  read.context = context;
  read.stream = stream;
  read.address = address;
  read.size = size;
  const auto reply = session.Ask<cuda::ReadReply>(read);
  EXPECT_EQ(reply->status, 0);
  return {reply->data.begin(), reply->data.end()};
}

int32_t WriteInline(Session& session, wire::Id context, uint64_t address, const std::vector<std::byte>& data,
                    wire::Id stream = {}) {
  cuda::Write write;
  write.context = context;
  write.stream = stream;
  write.address = address;
  write.size = data.size();
  write.data = data;
  return session.Do(write);
}

TEST(CudaBackend, TellsTheGuestWhatThereIs) {
  Session session;
  const auto inventory = session.Ask<cuda::Inventory>(cuda::Nothing());
  EXPECT_EQ(inventory->status, 0);
  EXPECT_EQ(inventory->driver_version, 13000u);
  EXPECT_EQ(inventory->driver, "software device");
  int devices = 0;
  inventory->devices.ForEach([&](const cuda::DeviceInfo& device) {
    ++devices;
    EXPECT_EQ(device.name, "Fake");
    EXPECT_EQ(device.total_memory, 64u << 20);
    ASSERT_EQ(device.attributes.size(), device.values.size());
    bool major = false;
    for (uint32_t i = 0; i < device.attributes.size(); ++i) {
      if (device.attributes[i] != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) continue;
      major = true;
      EXPECT_EQ(device.values[i], 9);
    }
    EXPECT_TRUE(major);
  });
  EXPECT_EQ(devices, 1);
  EXPECT_EQ(inventory->heap_address, reinterpret_cast<uint64_t>(session.heap().data()));
}

TEST(CudaBackend, WritesLaunchesAndReads) {
  Session session;
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4096);
  ASSERT_NE(memory, 0u);
  const wire::Id add = session.NewFunction(session.NewModule(context), "add");
  std::vector<std::byte> numbers(4096);
  EXPECT_EQ(WriteInline(session, context, memory, numbers), 0);
  EXPECT_EQ(session.Launch(context, {}, add, AddParameters{memory, 1024, 5}.bytes()), 0);
  EXPECT_EQ(session.Launch(context, {}, add, AddParameters{memory, 512, 2}.bytes()), 0);
  const std::vector<std::byte> result = ReadBack(session, context, memory, 4096);
  ASSERT_EQ(result.size(), 4096u);
  for (uint32_t i = 0; i < 1024; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, result.data() + 4 * i, 4);
    ASSERT_EQ(value, i < 512 ? 7u : 5u) << i;
  }
  EXPECT_EQ(session.driver.loaded_images().back(), "ptx") << "text ends with a zero byte";
}

TEST(CudaBackend, MemoryOfOthersIsOutOfReach) {
  Session session;
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4096);
  std::vector<std::byte> secret(64);
  const auto wild = reinterpret_cast<uint64_t>(secret.data());
  EXPECT_EQ(WriteInline(session, context, wild, Pattern(64)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(session.backend->TakeFailure().text.find("not the session's"), std::string::npos);
  EXPECT_EQ(WriteInline(session, context, memory + 4090, Pattern(64)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(secret, std::vector<std::byte>(64));
  cuda::Read read;
  read.context = context;
  read.address = wild;
  read.size = 64;
  EXPECT_EQ(session.Ask<cuda::ReadReply>(read)->status, CUDA_ERROR_INVALID_VALUE);
  cuda::CopyLinear copy;
  copy.context = context;
  copy.destination = memory;
  copy.source = wild;
  copy.size = 64;
  EXPECT_EQ(session.Do(copy), CUDA_ERROR_INVALID_VALUE);
  cuda::Memset set;
  set.context = context;
  set.address = memory;
  set.element = 4;
  set.width = UINT64_MAX / 2;
  set.height = 1;
  EXPECT_EQ(session.Do(set), CUDA_ERROR_INVALID_VALUE);
  cuda::Free free;
  free.context = context;
  free.address = memory + 16;
  EXPECT_EQ(session.Do(free), CUDA_ERROR_INVALID_VALUE);
  cuda::CopyHeap heap;
  heap.context = context;
  heap.address = memory;
  heap.heap_offset = session.heap().size() - 10;
  heap.size = 11;
  EXPECT_EQ(session.Do(heap), CUDA_ERROR_INVALID_VALUE);
  heap.heap_offset = UINT64_MAX - 4;
  EXPECT_EQ(session.Do(heap), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaBackend, TheHeapIsCopiedInPlace) {
  Session session;
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4096);
  const std::vector<std::byte> data = Pattern(4096);
  std::copy(data.begin(), data.end(), session.heap().begin() + 8192);
  cuda::CopyHeap copy;
  copy.context = context;
  copy.address = memory;
  copy.heap_offset = 8192;
  copy.size = 4096;
  EXPECT_EQ(session.Do(copy), 0);
  copy.heap_offset = 16384;
  copy.to_heap = 1;
  EXPECT_EQ(session.Do(copy), 0);
  EXPECT_EQ(session.Synchronize(context), 0);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), session.heap().begin() + 16384));
}

TEST(CudaBackend, ALargeWriteHoldsItsStreamUntilTheDataIsThereAndNothingElse) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), other = session.NewStream(context);
  const uint64_t memory = session.NewMemory(context, 1u << 20);
  const std::vector<std::byte> data = Pattern(1u << 20);
  cuda::Write write;
  write.context = context;
  write.stream = one;
  write.address = memory;
  write.size = data.size();
  write.transfer = 7;
  EXPECT_EQ(session.Do(write), 0);
  cuda::SynchronizeStream synchronize;
  synchronize.context = context;
  synchronize.stream = one;
  const uint64_t waiting = session.Start(synchronize);
  EXPECT_EQ(session.Synchronize(context, other), 0) << "another stream goes on";
  EXPECT_FALSE(session.Answered(waiting));
  session.bulk_in.Deliver(7, data);
  EXPECT_EQ(session.Answer<cuda::Status>(waiting)->status, 0);
  EXPECT_EQ(ReadBack(session, context, memory, data.size()), data);
}

TEST(CudaBackend, AWriteWhoseDataDoesNotComeIsReported) {
  Session session;
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 1u << 16);
  cuda::Write write;
  write.context = context;
  write.address = memory;
  write.size = 1u << 16;
  write.transfer = 7;
  ASSERT_EQ(session.Do(write), 0);
  session.bulk_in.Deliver(7, {}, -5);
  EXPECT_EQ(session.AwaitNotice<cuda::CommandFailed>()->status, -5);
  EXPECT_EQ(session.Synchronize(context), 0) << "the stream is not stuck";
}

TEST(CudaBackend, DataIsOnItsWayBeforeALaterCompletionIsTold) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), other = session.NewStream(context);
  const uint64_t memory = session.NewMemory(context, 1u << 20);
  cuda::CreateEvent create;
  create.event = session.NewId(Handle::kEvent);
  create.context = context;
  ASSERT_EQ(session.Do(create), 0);
  for (uint64_t round = 1; round <= 200; ++round) {
    cuda::Read read;
    read.context = context;
    read.stream = one;
    read.address = memory;
    read.size = 1u << 20;
    read.transfer = round;
    ASSERT_EQ(session.Do(read), 0);
    cuda::RecordEvent record;
    record.context = context;
    record.stream = one;
    record.event = create.event;
    ASSERT_EQ(session.Do(record), 0);
    // Through another stream that waits for the event.
    cuda::WaitEvent wait;
    wait.context = context;
    wait.stream = other;
    wait.event = create.event;
    ASSERT_EQ(session.Do(wait), 0);
    ASSERT_EQ(session.Synchronize(context, other), 0);
    ASSERT_TRUE(session.bulk_out.Has(round)) << "round " << round;
  }
}

TEST(CudaBackend, WaitingForOneStreamDelaysNobody) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), other = session.NewStream(context);
  const wire::Id block = session.NewFunction(session.NewModule(context), "block");
  ASSERT_EQ(session.Launch(context, one, block), 0);
  cuda::SynchronizeStream synchronize;
  synchronize.context = context;
  synchronize.stream = one;
  const uint64_t waiting = session.Start(synchronize);
  EXPECT_EQ(session.Synchronize(context, other), 0);
  EXPECT_FALSE(session.Answered(waiting));
  session.driver.Unblock();
  EXPECT_EQ(session.Answer<cuda::Status>(waiting)->status, 0);
}

TEST(CudaBackend, WatchedStreamsAndEventsAreAnnounced) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id stream = session.NewStream(context);
  const wire::Id block = session.NewFunction(session.NewModule(context), "block");
  cuda::CreateEvent create;
  create.event = session.NewId(Handle::kEvent);
  create.context = context;
  ASSERT_EQ(session.Do(create), 0);
  cuda::WatchEvent watch_event;
  watch_event.event = create.event;
  watch_event.ticket = 1;
  EXPECT_EQ(session.Ask<cuda::Status>(watch_event)->status, 0) << "never recorded is complete";
  ASSERT_EQ(session.Launch(context, stream, block), 0);
  cuda::RecordEvent record;
  record.context = context;
  record.stream = stream;
  record.event = create.event;
  ASSERT_EQ(session.Do(record), 0);
  watch_event.ticket = 2;
  EXPECT_EQ(session.Ask<cuda::Status>(watch_event)->status, CUDA_ERROR_NOT_READY);
  cuda::WatchStream watch;
  watch.context = context;
  watch.stream = stream;
  watch.ticket = 3;
  EXPECT_EQ(session.Ask<cuda::Status>(watch)->status, CUDA_ERROR_NOT_READY);
  session.driver.Unblock();
  bool event_told = false, stream_told = false;
  const auto told = [&] {
    for (const auto& frame : session.replies.all()) {
      if (frame->opcode != static_cast<uint16_t>(cuda::Opcode::kCompleted)) continue;
      wire::Reader reader(frame->payload);
      cuda::Completed notice;
      EXPECT_TRUE(notice.Decode(reader));
      EXPECT_EQ(notice.status, 0);
      if (notice.ticket == 2) event_told = notice.object == create.event;
      if (notice.ticket == 3) stream_told = notice.object == stream;
    }
    return event_told && stream_told;
  };
  session.replies.Await(
      [&](const Frame& frame) { return frame.opcode == static_cast<uint16_t>(cuda::Opcode::kCompleted); });
  EXPECT_EQ(session.Synchronize(context, stream), 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!told() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(event_told);
  EXPECT_TRUE(stream_told);
}

TEST(CudaBackend, AFunctionOfTheGuestHoldsItsStream) {
  Session session;
  const wire::Id context = session.NewContext();
  // The legacy stream, which goes on, would wait for one that blocks.
  cuda::CreateStream create;
  create.stream = session.NewId(cuda::Handle::kStream);
  create.context = context;
  create.flags = CU_STREAM_NON_BLOCKING;
  ASSERT_EQ(session.Do(create), 0);
  const wire::Id stream = create.stream;
  cuda::EnqueueHostFunction enqueue;
  enqueue.context = context;
  enqueue.stream = stream;
  enqueue.callback = 55;
  ASSERT_EQ(session.Do(enqueue), 0);
  const auto run = session.AwaitNotice<cuda::RunHostFunction>();
  EXPECT_EQ(run->callback, 55u);
  cuda::SynchronizeStream synchronize;
  synchronize.context = context;
  synchronize.stream = stream;
  const uint64_t waiting = session.Start(synchronize);
  EXPECT_EQ(session.Synchronize(context), 0);
  EXPECT_FALSE(session.Answered(waiting));
  cuda::HostFunctionDone done;
  done.callback = 55;
  done.run = run->run + 1000;
  EXPECT_EQ(session.Do(done), CUDA_ERROR_INVALID_VALUE) << "nobody runs that";
  done.run = run->run;
  EXPECT_EQ(session.Do(done), 0);
  EXPECT_EQ(session.Answer<cuda::Status>(waiting)->status, 0);
}

TEST(CudaBackend, TheInventoryKeepsNoContextButTheFirstDevices) {
  static std::map<CUdevice, int> retained;
  retained.clear();
  Session::Options options;
  options.devices = 3;
  options.adjust = [](DriverTable* driver) {
    driver->cuDeviceGet = [](CUdevice* device, int index) {
      *device = index;
      return CUDA_SUCCESS;
    };
    driver->cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
      ++retained[device];
      *context = reinterpret_cast<CUcontext>(uintptr_t{0x77} + static_cast<uintptr_t>(device));
      return CUDA_SUCCESS;
    };
    driver->cuDevicePrimaryCtxRelease = [](CUdevice device) {
      --retained[device];
      return CUDA_SUCCESS;
    };
  };
  Session session(options);
  EXPECT_EQ(session.Ask<cuda::Inventory>(cuda::Nothing()).message.devices.size(), 3u);
  EXPECT_EQ(retained, (std::map<CUdevice, int>{{0, 1}, {1, 0}, {2, 0}}));
  (void)session.NewContext(0);
  (void)session.NewContext(2);
  EXPECT_EQ(retained, (std::map<CUdevice, int>{{0, 1}, {1, 0}, {2, 1}}));
}

TEST(CudaBackend, AFaultIsToldOnceAndAResetMendsIt) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id module = session.NewModule(context);
  const wire::Id fault = session.NewFunction(module, "fault");
  ASSERT_EQ(session.Launch(context, {}, fault), 0) << "it shows later";
  EXPECT_EQ(session.Synchronize(context), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(session.AwaitNotice<cuda::ContextFault>()->status, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(session.Launch(context, {}, fault), CUDA_ERROR_ILLEGAL_ADDRESS) << "sticky";
  EXPECT_EQ(session.Synchronize(context), CUDA_ERROR_ILLEGAL_ADDRESS);
  int notices = 0;
  for (const auto& frame : session.replies.all()) {
    if (frame->opcode == static_cast<uint16_t>(cuda::Opcode::kContextFault)) ++notices;
  }
  EXPECT_EQ(notices, 1);
  cuda::ResetPrimary reset;
  reset.context = context;
  EXPECT_EQ(session.Do(reset), 0);
  EXPECT_EQ(session.Launch(context, {}, fault), CUDA_ERROR_INVALID_CONTEXT) << "the name has ended";
  const wire::Id fresh = session.NewContext();
  const uint64_t memory = session.NewMemory(fresh, 64);
  EXPECT_EQ(WriteInline(session, fresh, memory, Pattern(64)), 0);
  EXPECT_EQ(ReadBack(session, fresh, memory, 64), Pattern(64));
}

TEST(CudaBackend, WhatCouldNotBeCreatedReportsWhy) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id module = session.NewModule(context);
  const wire::Id nothing = session.NewFunction(module, "nothing");
  EXPECT_EQ(session.last().status, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(session.backend->TakeFailure().object, nothing);
  EXPECT_EQ(session.Launch(context, {}, nothing), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(session.Launch(context, {}, session.NewId(Handle::kFunction)), CUDA_ERROR_INVALID_HANDLE);
  const wire::Id add = session.NewFunction(module, "add");
  EXPECT_EQ(session.Launch(context, {}, add, wire::AsBytes("few")), CUDA_ERROR_INVALID_VALUE) << "parameters missing";
  cuda::Release release;
  release.object = module;
  EXPECT_EQ(session.Do(release), 0);
  EXPECT_EQ(session.Launch(context, {}, add, AddParameters{}.bytes()), CUDA_ERROR_INVALID_HANDLE)
      << "its functions end with a module";
  EXPECT_EQ(session.Do(release), CUDA_ERROR_INVALID_HANDLE) << "twice";
}

TEST(CudaBackend, MemoryIsLimitedAndTheLimitIsWhatTheGuestSees) {
  Session::Options options;
  options.limits.device_memory = 1000;
  Session session(options);
  const wire::Id context = session.NewContext();
  cuda::Allocate allocate;
  allocate.context = context;
  allocate.size = 600;
  const auto first = session.Ask<cuda::Address>(allocate);
  EXPECT_EQ(first->status, 0);
  EXPECT_EQ(session.Ask<cuda::Address>(allocate)->status, CUDA_ERROR_OUT_OF_MEMORY);
  cuda::GetMemoryInfo info;
  info.context = context;
  const auto told = session.Ask<cuda::MemoryInfo>(info);
  EXPECT_EQ(told->free, 400u);
  EXPECT_EQ(told->total, 1000u);
  cuda::Free free;
  free.context = context;
  free.address = first->address;
  EXPECT_EQ(session.Do(free), 0);
  EXPECT_EQ(session.Ask<cuda::Address>(allocate)->status, 0);
}

TEST(CudaBackend, AModuleIsUploadedOnceForATenant) {
  char name[] = "/tmp/hawser-cache-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  Session::Options options;
  options.cache = folder;
  const std::string text = "some code";
  cuda::ImageEntry entry;
  entry.form = 2;
  entry.kind = 1;
  entry.size = text.size();
  entry.hash = wire::Sha256Of(wire::AsBytes(text));
  const auto load = [&](Session& session) {
    cuda::LoadModule message;
    message.module = session.NewId(Handle::kModule);
    message.context = session.NewContext();
    message.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
    return session.Ask<cuda::ModuleInfo>(message);
  };
  {
    Session first(options);
    const auto asked = load(first);
    EXPECT_EQ(asked->status, 0);
    ASSERT_EQ(asked->missing.size(), 1u);
    EXPECT_EQ(asked->missing[0], 0u);
    EXPECT_TRUE(first.NewModule(first.NewContext(), text)) << "uploaded";
    EXPECT_EQ(load(first)->missing.size(), 0u);
  }
  {
    Session second(options);
    const auto asked = load(second);
    EXPECT_EQ(asked->missing.size(), 0u) << "another process of the tenant";
    EXPECT_EQ(asked->kernels.size(), 3u);
    asked->kernels.ForEach([](const cuda::KernelInfo& kernel) {
      if (kernel.name != "add") return;
      ASSERT_EQ(kernel.offsets.size(), 3u);
      EXPECT_EQ(kernel.offsets[2], 12u);
      EXPECT_EQ(kernel.sizes[0], 8u);
    });
  }
  {
    options.tenant = "bob";
    Session other(options);
    EXPECT_EQ(load(other)->missing.size(), 1u) << "another tenant";
  }
  std::filesystem::remove_all(folder);
}

TEST(CudaBackend, ImagesAreNotBelieved) {
  Session session;
  const wire::Id context = session.NewContext();
  cuda::UploadImage upload;
  upload.hash = wire::Sha256Of(wire::AsBytes("good"));
  upload.size = upload.total = 4;
  upload.data = wire::AsBytes("evil");
  EXPECT_EQ(session.Do(upload), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_FALSE(session.NewModule(context, "bad")) << "the driver refuses it";
  cuda::LoadModule empty;
  empty.module = session.NewId(Handle::kModule);
  empty.context = context;
  const auto reply = session.Ask<cuda::ModuleInfo>(empty);
  EXPECT_EQ(reply->status, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_NE(reply->error_log.find("sm_90"), std::string_view::npos) << reply->error_log;
}

TEST(CudaBackend, OthersGoOnWhileAModuleIsLoaded) {
  Session session;
  const wire::Id context = session.NewContext();
  const std::string text = "slow";
  cuda::UploadImage upload;
  upload.hash = wire::Sha256Of(wire::AsBytes(text));
  upload.size = upload.total = text.size();
  upload.data = wire::AsBytes(text);
  ASSERT_EQ(session.Do(upload), 0);
  cuda::ImageEntry entry;
  entry.form = 2;
  entry.kind = 1;
  entry.size = text.size();
  entry.hash = upload.hash;
  cuda::LoadModule load;
  load.module = session.NewId(Handle::kModule);
  load.context = context;
  load.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
  const uint64_t loading = session.Start(load);
  // Another thread of the guest.
  const uint64_t memory = session.NewMemory(context, 64);
  EXPECT_NE(memory, 0u);
  EXPECT_EQ(session.Synchronize(context), 0);
  cuda::GetFunction early;
  early.function = session.NewId(Handle::kFunction);
  early.module = load.module;
  early.name = "add";
  EXPECT_EQ(session.Do(early), CUDA_ERROR_NOT_READY) << "used before the answer";
  cuda::LoadModule again = load;
  const auto taken = session.Ask<cuda::ModuleInfo>(again);
  EXPECT_EQ(taken->status, CUDA_ERROR_INVALID_VALUE) << "the name is taken";
  session.driver.Unblock();
  const auto loaded = session.Answer<cuda::ModuleInfo>(loading);
  EXPECT_EQ(loaded->status, 0);
  EXPECT_EQ(loaded->kernels.size(), 3u);
  const wire::Id function = session.NewFunction(load.module, "add");
  EXPECT_EQ(session.last().status, 0);
  EXPECT_TRUE(function);
}

TEST(CudaBackend, AContextEndsWhileItsModuleIsLoaded) {
  Session session;
  const wire::Id context = session.NewContext();
  const std::string text = "slow";
  cuda::UploadImage upload;
  upload.hash = wire::Sha256Of(wire::AsBytes(text));
  upload.size = upload.total = text.size();
  upload.data = wire::AsBytes(text);
  ASSERT_EQ(session.Do(upload), 0);
  cuda::ImageEntry entry;
  entry.form = 2;
  entry.kind = 1;
  entry.size = text.size();
  entry.hash = upload.hash;
  cuda::LoadModule load;
  load.module = session.NewId(Handle::kModule);
  load.context = context;
  load.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
  const uint64_t loading = session.Start(load);
  std::thread device([&] { session.driver.Unblock(); });
  cuda::Release release;
  release.object = context;
  EXPECT_EQ(session.Do(release), 0);
  device.join();
  EXPECT_EQ(session.Answer<cuda::ModuleInfo>(loading)->status, 0);
  cuda::GetFunction late;
  late.function = session.NewId(Handle::kFunction);
  late.module = load.module;
  late.name = "add";
  EXPECT_EQ(session.Do(late), CUDA_ERROR_INVALID_HANDLE) << "it ended with its context";
}

TEST(CudaBackend, RegionsGoBothWays) {
  Session session;
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 64 * 16);
  const std::vector<std::byte> rows = Pattern(10 * 16);
  cuda::WriteRegion write;
  write.context = context;
  write.destination.kind = 0;
  write.destination.address = memory;
  write.destination.x_bytes = 4;
  write.destination.y = 2;
  write.destination.pitch = 64;
  write.destination.height = 16;
  write.width_bytes = 16;
  write.height = 10;
  write.depth = 1;
  write.size = rows.size();
  write.data = rows;
  EXPECT_EQ(session.Do(write), 0);
  cuda::ReadRegion read;
  read.context = context;
  read.source = write.destination;
  read.width_bytes = 16;
  read.height = 10;
  read.depth = 1;
  read.size = rows.size();
  const auto back = session.Ask<cuda::ReadReply>(read);
  EXPECT_EQ(back->status, 0);
  EXPECT_EQ(std::vector<std::byte>(back->data.begin(), back->data.end()), rows);
  write.size = 5;
  write.data = wire::Bytes(rows).first(5);
  EXPECT_EQ(session.Do(write), CUDA_ERROR_INVALID_VALUE) << "the size is not the region's";
  read.source.y = 7;
  EXPECT_EQ(session.Ask<cuda::ReadReply>(read)->status, CUDA_ERROR_INVALID_VALUE) << "one row too far";
  read.source.y = UINT64_MAX - 1;
  EXPECT_EQ(session.Ask<cuda::ReadReply>(read)->status, CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaBackend, StagingMemoryIsBounded) {
  Session::Options options;
  options.limits.staging_memory = 1u << 20;
  Session session(options);
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 8u << 20);
  cuda::Read read;
  read.context = context;
  read.address = memory;
  read.size = 8u << 20;
  read.transfer = 1;
  ASSERT_EQ(session.Do(read), 0);
  EXPECT_EQ(session.bulk_out.Await(1).second, CUDA_ERROR_OUT_OF_MEMORY);
  read.size = 512u << 10;
  read.transfer = 2;
  ASSERT_EQ(session.Do(read), 0);
  EXPECT_EQ(session.bulk_out.Await(2).first.size(), read.size);
}

TEST(CudaBackend, AContextTakesEverythingWithIt) {
  Session session;
  const wire::Id context = session.NewContext();
  (void)session.NewStream(context);
  (void)session.NewMemory(context, 4096);
  ASSERT_EQ(session.driver.live_objects(), 2u);
  cuda::ResetPrimary reset;
  reset.context = context;
  EXPECT_EQ(session.Do(reset), 0);
  EXPECT_EQ(session.driver.live_objects(), 0u);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
