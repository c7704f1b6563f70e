// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/heap_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kPage = HeapMemory::kPage;
constexpr uint64_t kHeap = 64 * kPage;

/// A driver that takes external memory, or says that it does not.
struct FakeExternals {
  CUresult answer = CUDA_SUCCESS;
  int imports = 0;
  int live = 0;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC window{};
};
FakeExternals* fake = nullptr;

CUexternalMemory Handle(int number) { return reinterpret_cast<CUexternalMemory>(static_cast<uintptr_t>(number)); }

CUresult CUDAAPI Import(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  ++fake->imports;
  EXPECT_EQ(description->type, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
  EXPECT_EQ(description->size, kHeap);
  if (fake->answer != CUDA_SUCCESS) return fake->answer;
  EXPECT_EQ(::close(description->handle.fd), 0);  // The driver's own.
  ++fake->live;
  *memory = Handle(fake->imports);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI Map(CUdeviceptr* address, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* window) {
  EXPECT_EQ(memory, Handle(fake->imports));
  fake->window = *window;
  *address = 0x1000;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI Destroy(CUexternalMemory) {
  --fake->live;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI Name(CUresult, const char** name) {
  *name = "NO";
  return CUDA_SUCCESS;
}

class HeapMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    fake = &externals_;
    driver_.cuImportExternalMemory = Import;
    driver_.cuExternalMemoryGetMappedBuffer = Map;
    driver_.cuDestroyExternalMemory = Destroy;
    driver_.cuGetErrorName = Name;
    file_ = ::memfd_create("heap-memory-test", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file_, kHeap), 0);
  }
  void TearDown() override { ::close(file_); }
  Heap TheHeap() const {
    Heap heap;
    heap.size = kHeap;
    heap.file = file_;
    return heap;
  }
  static CUcontext Context(uintptr_t number) { return reinterpret_cast<CUcontext>(number); }

  FakeExternals externals_;
  DriverTable driver_;
  int file_ = -1;
  std::string why_;
};

TEST_F(HeapMemoryTest, IsOfNoUseUnlessOffered) {
  HeapMemory memory(&driver_);
  EXPECT_FALSE(memory.Usable(Context(1), &why_));
  EXPECT_EQ(externals_.imports, 0);
}

TEST_F(HeapMemoryTest, EachContextImportsTheHeapOnceAndGivesItBack) {
  HeapMemory memory(&driver_);
  memory.Offer(TheHeap());
  EXPECT_TRUE(memory.Usable(Context(1), &why_));
  EXPECT_TRUE(memory.Usable(Context(1), &why_));
  EXPECT_EQ(externals_.imports, 1);
  EXPECT_TRUE(memory.Usable(Context(2), &why_));
  EXPECT_EQ(externals_.live, 2);
  EXPECT_NE(::fcntl(file_, F_GETFD), -1);  // The heap's own descriptor is nobody else's.
  memory.EndContext(Context(1));
  memory.EndContext(Context(1));
  EXPECT_EQ(externals_.live, 1);
  EXPECT_TRUE(memory.Usable(Context(1), &why_));
  EXPECT_EQ(externals_.imports, 3);
  EXPECT_EQ(why_, "");
}

TEST_F(HeapMemoryTest, ADriverThatDoesNotTakeItIsAskedOnce) {
  externals_.answer = CUDA_ERROR_INVALID_HANDLE;
  HeapMemory memory(&driver_);
  memory.Offer(TheHeap());
  EXPECT_FALSE(memory.Usable(Context(1), &why_));
  EXPECT_NE(why_, "");
  EXPECT_FALSE(memory.Usable(Context(1), &why_));
  EXPECT_EQ(externals_.imports, 1);
  CUdeviceptr address = 0;
  EXPECT_EQ(memory.Allocate(Context(1), {0, kPage}, kPage, &address), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(HeapMemoryTest, ADriverWithoutTheCallsHasNone) {
  driver_.cuExternalMemoryGetMappedBuffer = nullptr;
  HeapMemory memory(&driver_);
  memory.Offer(TheHeap());
  EXPECT_FALSE(memory.Usable(Context(1), &why_));
  EXPECT_EQ(externals_.imports, 0);
}

TEST_F(HeapMemoryTest, AnAllocationIsAWindowOfItsSize) {
  HeapMemory memory(&driver_);
  memory.Offer(TheHeap());
  ASSERT_TRUE(memory.Usable(Context(1), &why_));
  CUdeviceptr address = 0;
  EXPECT_EQ(memory.Allocate(Context(1), {3 * kPage, 2 * kPage}, kPage + 10, &address), CUDA_SUCCESS);
  EXPECT_EQ(externals_.window.offset, 3 * kPage);
  EXPECT_EQ(externals_.window.size, kPage + 10);
}

TEST_F(HeapMemoryTest, PagesMustBeTheHeapsAndJustWhatTheMemoryNeeds) {
  HeapMemory memory(&driver_);
  memory.Offer(TheHeap());
  EXPECT_TRUE(memory.Fits({0, kPage}, 1));
  EXPECT_TRUE(memory.Fits({kHeap - kPage, kPage}, kPage));
  EXPECT_TRUE(memory.Fits({0, kHeap}, kHeap));
  EXPECT_FALSE(memory.Fits({0, kPage}, 0));
  EXPECT_FALSE(memory.Fits({0, kPage}, kPage + 1));
  EXPECT_FALSE(memory.Fits({0, 2 * kPage}, kPage));
  EXPECT_FALSE(memory.Fits({0, kPage + 1}, kPage + 1));
  EXPECT_FALSE(memory.Fits({8, kPage}, kPage));
  EXPECT_FALSE(memory.Fits({kHeap, kPage}, kPage));
  EXPECT_FALSE(memory.Fits({kHeap - kPage, 2 * kPage}, 2 * kPage));
  EXPECT_FALSE(memory.Fits({~uint64_t{0} - kPage + 1, 2 * kPage}, 2 * kPage));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
