// SPDX-License-Identifier: Apache-2.0
// Files in memory whose bytes are device memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr size_t kPage = 4096;

class SoftExternalMemory : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    file_ = File(F_SEAL_SHRINK | F_SEAL_GROW);
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    host_ = static_cast<uint32_t*>(mapped);
  }
  void TearDown() override {
    ::munmap(host_, kBytes);
    ::close(file_);
    ContextTest::TearDown();
  }
  static int File(int seals) {
    const int file = ::memfd_create("external-memory-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(::ftruncate(file, kBytes), 0);
    EXPECT_EQ(::fcntl(file, F_ADD_SEALS, seals), 0);
    return file;
  }
  static CUresult Import(int file, uint64_t size, CUexternalMemory* memory,
                         CUexternalMemoryHandleType type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
    description.type = type;
    description.handle.fd = ::dup(file);
    description.size = size;
    const CUresult result = cuImportExternalMemory(memory, &description);
    if (result != CUDA_SUCCESS) ::close(description.handle.fd);
    return result;
  }
  CUexternalMemory Imported() const {
    CUexternalMemory memory = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, Import(file_, kBytes, &memory));
    return memory;
  }
  static CUresult Map(CUexternalMemory memory, uint64_t offset, uint64_t size, CUdeviceptr* address) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC description{};
    description.offset = offset;
    description.size = size;
    return cuExternalMemoryGetMappedBuffer(address, memory, &description);
  }
  static CUdeviceptr Mapped(CUexternalMemory memory, uint64_t offset, uint64_t size) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(CUDA_SUCCESS, Map(memory, offset, size, &address));
    return address;
  }
  static size_t Free() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
    return free;
  }

  int file_ = -1;
  uint32_t* host_ = nullptr;
};

TEST_F(SoftExternalMemory, KernelsAndTheFilesOtherUsersSeeTheSameBytes) {
  const CUexternalMemory memory = Imported();
  const CUdeviceptr window = Mapped(memory, kPage, 8 * kPage);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, window, 7U));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(host_[kPage / 4], 7U);
  host_[kPage / 4 + 1] = 9;
  EXPECT_EQ(Read(window + 4), 9U);
  unsigned type = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, window));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  // Windows outlive what they were opened in.
  EXPECT_CUDA(CUDA_SUCCESS, cuDestroyExternalMemory(memory));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(memory));
  EXPECT_EQ(Read(window), 7U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(window));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(window));
  EXPECT_EQ(host_[kPage / 4], 7U);  // The file's bytes are not the driver's to take away.
}

TEST_F(SoftExternalMemory, AWindowIsBoundExactlyAndCountsAgainstTheCapacity) {
  const CUexternalMemory memory = Imported();
  const size_t before = Free();
  const CUdeviceptr window = Mapped(memory, 0, 2 * kPage - 6);
  EXPECT_EQ(before - Free(), 2 * kPage);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD8(window, 1, 2 * kPage - 6));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(window, 1, 2 * kPage - 5));
  EXPECT_EQ(host_[kPage / 2 - 1] & 0xffff0000, 0U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(window));
  EXPECT_EQ(Free(), before);
  CUdeviceptr all = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAlloc(&all, before));
  CUdeviceptr none = 0;
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, Map(memory, 0, kPage, &none));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(all));
}

TEST_F(SoftExternalMemory, WhatIsNoWindowIsRefused) {
  const CUexternalMemory memory = Imported();
  CUdeviceptr none = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Map(memory, 0, 0, &none));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Map(memory, 8, kPage, &none));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Map(memory, kPage, kBytes, &none));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Map(memory, ~uint64_t{0} - kPage + 1, 2 * kPage, &none));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, Map(nullptr, 0, kPage, &none));
}

TEST_F(SoftExternalMemory, WhatCouldFaultIsNotImported) {
  CUexternalMemory memory = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Import(file_, kBytes + 1, &memory));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, Import(file_, 0, &memory));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, Import(-1, kBytes, &memory));
  const int open = File(F_SEAL_GROW);
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, Import(open, kBytes, &memory));
  ::close(open);
  EXPECT_CUDA(CUDA_ERROR_NOT_SUPPORTED, Import(file_, kBytes, &memory, CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32));
}

TEST_F(SoftExternalMemory, AnExportedWindowKeepsItsBytesAndHasThemForItself) {
  const CUdeviceptr window = Mapped(Imported(), kPage, 4 * kPage);
  host_[kPage / 4] = 5;
  CUipcMemHandle handle{};
  ASSERT_CUDA(CUDA_SUCCESS, cuIpcGetMemHandle(&handle, window));
  host_[kPage / 4] = 6;
  EXPECT_EQ(Read(window), 5U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(window));
}

}  // namespace
}  // namespace hawser::soft
