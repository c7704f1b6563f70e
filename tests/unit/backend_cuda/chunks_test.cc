// SPDX-License-Identifier: Apache-2.0
// Linear memory in chunks: where it comes from, and when it goes.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Session::Options InChunks(FakeVmm* vmm) {
  Session::Options options;
  options.memory_from = CudaMemory::kChunks;
  options.vmm = vmm;
  return options;
}

/// Waits until the condition holds; false: it never did.
template <typename Condition>
bool Comes(Condition&& condition) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

int32_t Free(Session& session, wire::Id context, uint64_t address) {
  cuda::Free free;
  free.context = context;
  free.address = address;
  return session.Do(free);
}

uint64_t FreeMemory(Session& session, wire::Id context) {
  cuda::GetMemoryInfo get;
  get.context = context;
  return session.Ask<cuda::MemoryInfo>(get)->free;
}

TEST(CudaChunks, MemoryIsMadeOfThemAndUsable) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 5 * kMiB);
  ASSERT_NE(memory, 0u);
  EXPECT_EQ(vmm.mappings(), 3u);
  EXPECT_EQ(session.driver.allocated(), 0u) << "cuMemAlloc was not called";
  std::memset(reinterpret_cast<void*>(memory), 0, 4096);  // NOLINT(performance-no-int-to-ptr)
  const wire::Id add = session.NewFunction(session.NewModule(context), "add");
  struct {
    uint64_t pointer;
    uint32_t count, value;
  } const parameters = {memory, 1024, 7};
  ASSERT_EQ(session.Launch(context, {}, add, wire::Bytes(reinterpret_cast<const std::byte*>(&parameters), 16)), 0);
  ASSERT_EQ(session.Synchronize(context), 0);
  EXPECT_EQ(reinterpret_cast<const uint32_t*>(memory)[1023], 7u);  // NOLINT(performance-no-int-to-ptr)
  EXPECT_EQ(Free(session, context, memory), 0);
  EXPECT_TRUE(Comes([&] { return vmm.created() == 0; }));
  EXPECT_NE(Free(session, context, memory), 0) << "it is free already";
}

TEST(CudaChunks, SmallOnesShareOneAndPitchesAreMultiplesOf512) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const uint64_t first = session.NewMemory(context, 100), second = session.NewMemory(context, 100);
  EXPECT_EQ(second, first + 512);
  EXPECT_EQ(vmm.created(), 2 * kMiB);
  cuda::AllocatePitch allocate;
  allocate.context = context;
  allocate.width = 1000;
  allocate.height = 10;
  allocate.element = 4;
  const auto rows = session.Ask<cuda::PitchedAddress>(allocate);
  EXPECT_EQ(rows->status, 0);
  EXPECT_EQ(rows->pitch, 1024u);
  EXPECT_EQ(rows->address, second + 512);
  allocate.element = 5;
  EXPECT_EQ(session.Ask<cuda::PitchedAddress>(allocate)->status, CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaChunks, WhatIsFreedStaysUntilTheDeviceIsDoneAndNobodyWaits) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4 * kMiB);
  const uint64_t free_before = FreeMemory(session, context);
  const wire::Id block = session.NewFunction(session.NewModule(context), "block");
  ASSERT_EQ(session.Launch(context, {}, block), 0);
  EXPECT_EQ(Free(session, context, memory), 0) << "returns although the kernel runs";
  EXPECT_EQ(vmm.created(), 4 * kMiB);
  EXPECT_GE(FreeMemory(session, context), free_before) << "as the program sees it, it is free";
  session.driver.Unblock();
  EXPECT_TRUE(Comes([&] { return vmm.created() == 0; }));
}

TEST(CudaChunks, AnAllocationWaitsForWhatIsBeingFreed) {
  FakeVmm vmm(64 * kMiB);
  Session::Options options = InChunks(&vmm);
  options.limits.device_memory = 6 * kMiB;
  Session session(options);
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4 * kMiB);
  ASSERT_NE(memory, 0u);
  EXPECT_EQ(session.NewMemory(context, 4 * kMiB), 0u) << "over the limit";
  const wire::Id block = session.NewFunction(session.NewModule(context), "block");
  ASSERT_EQ(session.Launch(context, {}, block), 0);
  ASSERT_EQ(Free(session, context, memory), 0);
  std::thread unblocks([&] { session.driver.Unblock(); });
  EXPECT_NE(session.NewMemory(context, 4 * kMiB), 0u);
  unblocks.join();
}

TEST(CudaChunks, AFreeInAStreamComesWhenTheStreamIsThere) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const wire::Id stream = session.NewStream(context);
  const uint64_t memory = session.NewMemory(context, 4 * kMiB);
  const wire::Id block = session.NewFunction(session.NewModule(context), "block");
  ASSERT_EQ(session.Launch(context, stream, block), 0);
  cuda::FreeAsync free;
  free.context = context;
  free.stream = stream;
  free.address = memory;
  EXPECT_EQ(session.Do(free), 0);
  EXPECT_NE(session.Do(free), 0) << "twice";
  EXPECT_EQ(vmm.created(), 4 * kMiB);
  session.driver.Unblock();
  EXPECT_TRUE(Comes([&] { return vmm.created() == 0; }));
}

TEST(CudaChunks, TheEndOfAContextEndsItsMemory) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  ASSERT_NE(session.NewMemory(context, 4 * kMiB), 0u);
  ASSERT_NE(session.NewMemory(context, 6 * kMiB), 0u);
  cuda::Release release;
  release.object = context;
  ASSERT_EQ(session.Do(release), 0);
  EXPECT_EQ(vmm.created(), 0u);
}

TEST(CudaChunks, GuestsHearWhereTheyLie) {
  FakeVmm vmm(64 * kMiB);
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4 * kMiB);
  const auto inventory = session.Ask<cuda::Inventory>(cuda::Nothing());
  bool told = false;
  inventory->ranges.ForEach([&](const cuda::AddressRange& range) {
    told = told || (memory >= range.address && memory - range.address < range.size);
  });
  EXPECT_TRUE(told);
}

TEST(CudaChunks, ADeviceThatCannotShareThemAfterAllHasThemAllTheSame) {
  FakeVmm vmm(64 * kMiB);
  vmm.PromiseInVain();
  Session session(InChunks(&vmm));
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, 4 * kMiB);
  EXPECT_NE(memory, 0u);
  EXPECT_EQ(vmm.created(), 4 * kMiB);
  cuda::ExportMemory share;
  share.context = context;
  share.address = memory;
  EXPECT_EQ(session.Ask<cuda::Token>(share)->status, CUDA_ERROR_NOT_SUPPORTED);
}

TEST(CudaChunks, WithoutThemTheDriverAllocates) {
  Session::Options options;
  options.memory_from = CudaMemory::kChunks;
  Session session(options);
  EXPECT_NE(session.log.find("no virtual memory management"), std::string::npos) << session.log;
  EXPECT_NE(session.NewMemory(session.NewContext(), 1000), 0u);
  EXPECT_EQ(session.driver.allocated(), 1000u);
}

TEST(CudaChunks, AutoMeansThemOnARealDeviceOnly) {
  for (const bool soft : {false, true}) {
    FakeVmm vmm(64 * kMiB);
    Session::Options options;
    options.vmm = &vmm;
    options.soft = soft;
    Session session(options);
    ASSERT_NE(session.NewMemory(session.NewContext(), 4 * kMiB), 0u);
    EXPECT_EQ(vmm.created(), soft ? 0u : 4 * kMiB);
  }
}

}  // namespace
}  // namespace hawser::server::cuda_backend
