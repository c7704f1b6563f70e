// SPDX-License-Identifier: Apache-2.0
// Memory that lies in the session's heap, as the guest asks for it and gives it back.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kPage = HeapMemory::kPage;

/// The driver's own allocator behind the calls for external memory.
struct Externals {
  decltype(&::cuMemAlloc) allocate = nullptr;
  int imports = 0;
  std::vector<CUDA_EXTERNAL_MEMORY_BUFFER_DESC> windows;
};
Externals* externals = nullptr;

CUresult CUDAAPI Import(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  ++externals->imports;
  ::close(description->handle.fd);
  *memory = reinterpret_cast<CUexternalMemory>(externals);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI Map(CUdeviceptr* address, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* window) {
  externals->windows.push_back(*window);
  return externals->allocate(address, window->size);
}

CUresult CUDAAPI Destroy(CUexternalMemory) { return CUDA_SUCCESS; }

class HeapSessions : public testing::Test {
 protected:
  void SetUp() override {
    externals = &externals_;
    file_ = ::memfd_create("heap-sessions-test", MFD_CLOEXEC);
  }
  void TearDown() override { ::close(file_); }
  Session::Options Options() const {
    Session::Options options;
    options.heap_file = file_;
    options.adjust = [](DriverTable* driver) {
      externals->allocate = driver->cuMemAlloc;
      driver->cuImportExternalMemory = Import;
      driver->cuExternalMemoryGetMappedBuffer = Map;
      driver->cuDestroyExternalMemory = Destroy;
    };
    return options;
  }
  static cuda::Allocate Request(wire::Id context, uint64_t size, uint64_t offset, uint64_t pages) {
    cuda::Allocate allocate;
    allocate.context = context;
    allocate.size = size;
    allocate.heap_offset = offset;
    allocate.heap_size = pages;
    return allocate;
  }
  static int32_t Free(Session& session, wire::Id context, uint64_t address) {
    cuda::FreeInHeap free;
    free.context = context;
    free.address = address;
    return session.Ask<cuda::Status>(free)->status;
  }

  Externals externals_;
  int file_ = -1;
};

TEST_F(HeapSessions, MemoryOfTheSoftwareDeviceLiesInThePagesThatTheGuestNames) {
  Session session(Options());
  EXPECT_EQ(session.Ask<cuda::Inventory>(cuda::Nothing())->memory_in_heap, 1u);
  const wire::Id context = session.NewContext();
  const auto memory = session.Ask<cuda::Address>(Request(context, 2 * kPage - 5, 16 * kPage, 2 * kPage));
  EXPECT_EQ(memory->status, 0);
  EXPECT_EQ(memory->in_heap, 1u);
  ASSERT_EQ(externals_.windows.size(), 1u);
  EXPECT_EQ(externals_.windows[0].offset, 16 * kPage);
  EXPECT_EQ(externals_.windows[0].size, 2 * kPage - 5);
  EXPECT_EQ(Free(session, context, memory->address + kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Free(session, context, memory->address), 0);
  EXPECT_EQ(session.driver.allocated(), 0u);
  EXPECT_EQ(Free(session, context, memory->address), CUDA_ERROR_INVALID_VALUE);
  // No pages: as ever.
  EXPECT_EQ(session.Ask<cuda::Address>(Request(context, 100, 0, 0))->in_heap, 0u);
  EXPECT_EQ(externals_.windows.size(), 1u);
}

TEST_F(HeapSessions, PagesThatAreNotTheHeapsAreRefused) {
  Session session(Options());
  const wire::Id context = session.NewContext();
  const uint64_t heap = session.heap().size();
  for (const auto& [size, offset, pages] : std::vector<std::array<uint64_t, 3>>{{kPage, heap, kPage},
                                                                                {kPage, heap - kPage + 1, kPage},
                                                                                {kPage, ~uint64_t{0}, kPage},
                                                                                {kPage + 1, 0, kPage},
                                                                                {kPage, 0, heap + kPage},
                                                                                {1, 0, ~uint64_t{0}}}) {
    const auto memory = session.Ask<cuda::Address>(Request(context, size, offset, pages));
    EXPECT_EQ(memory->status, CUDA_ERROR_INVALID_VALUE) << size << " at " << offset;
  }
  EXPECT_TRUE(externals_.windows.empty());
  EXPECT_EQ(session.driver.allocated(), 0u);
}

TEST_F(HeapSessions, TheSessionsLimitHolds) {
  Session::Options options = Options();
  options.limits.device_memory = 4 * kPage;
  Session session(options);
  const wire::Id context = session.NewContext();
  const auto memory = session.Ask<cuda::Address>(Request(context, 3 * kPage, 0, 3 * kPage));
  EXPECT_EQ(memory->status, 0);
  EXPECT_EQ(session.Ask<cuda::Address>(Request(context, 2 * kPage, 3 * kPage, 2 * kPage))->status,
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Free(session, context, memory->address), 0);
  EXPECT_EQ(session.Ask<cuda::Address>(Request(context, 2 * kPage, 3 * kPage, 2 * kPage))->in_heap, 1u);
}

TEST_F(HeapSessions, RowsLieThereWhenTheyNeedJustThePages) {
  Session session(Options());
  const wire::Id context = session.NewContext();
  cuda::AllocatePitch rows;
  rows.context = context;
  rows.width = 500;
  rows.height = 16;
  rows.element = 4;
  rows.heap_offset = 0;
  rows.heap_size = 2 * kPage;
  const auto memory = session.Ask<cuda::PitchedAddress>(rows);
  EXPECT_EQ(memory->status, 0);
  EXPECT_EQ(memory->in_heap, 1u);
  EXPECT_EQ(memory->pitch, 512u);
  EXPECT_EQ(Free(session, context, memory->address), 0);
}

TEST_F(HeapSessions, NvidiasDriverIsNotAskedUnlessTheConfigurationSaysSo) {
  Session::Options options = Options();
  options.soft = false;
  {
    Session session(options);
    EXPECT_EQ(session.Ask<cuda::Inventory>(cuda::Nothing())->memory_in_heap, 0u);
    const wire::Id context = session.NewContext();
    const auto memory = session.Ask<cuda::Address>(Request(context, kPage, 0, kPage));
    EXPECT_EQ(memory->status, 0);
    EXPECT_EQ(memory->in_heap, 0u);
    EXPECT_EQ(externals_.imports, 0);
  }
  options.memory_from = CudaMemory::kHeap;
  Session session(options);
  EXPECT_EQ(session.Ask<cuda::Inventory>(cuda::Nothing())->memory_in_heap, 1u);
}

TEST_F(HeapSessions, TheDriversOwnAllocatorStaysWhereItIsWanted) {
  Session::Options options = Options();
  options.memory_from = CudaMemory::kDriver;
  Session session(options);
  EXPECT_EQ(session.Ask<cuda::Inventory>(cuda::Nothing())->memory_in_heap, 0u);
  EXPECT_EQ(externals_.imports, 0);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
