// SPDX-License-Identifier: Apache-2.0
// Memory in chunks of two processes, which share it. Both are this one, over one driver.
#include "server/backends/cuda/linear_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/backend_cuda/fake_driver.h"
#include "tests/unit/backend_cuda/fake_vmm.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class SharedLinearMemory : public testing::Test {
 protected:
  void SetUp() override {
    vmm_.KeepPromise();
    vmm_.AddTo(&table_);
    std::string why;
    ASSERT_TRUE(maker_.Prepare({0}, &why)) << why;
    ASSERT_TRUE(opener_.Prepare({0}, &why)) << why;
  }
  uint64_t Allocate(uint64_t size) {
    uint64_t address = 0;
    CUdeviceptr pointer = 0;
    EXPECT_EQ(maker_.Allocate(0, size, &pointer), CUDA_SUCCESS);
    address = pointer;
    return address;
  }

  FakeDriver driver_{64 * kMiB};
  FakeVmm vmm_{64 * kMiB};
  DriverTable table_ = driver_.table();
  LinearMemory maker_{&table_}, opener_{&table_};
  SharedChunks chunks_;
  std::vector<wire::Fd> files_;
};

TEST_F(SharedLinearMemory, IsOpenedWhereItBegins) {
  ASSERT_TRUE(maker_.shareable());
  (void)Allocate(512);
  const uint64_t small = Allocate(1000), large = Allocate(5 * kMiB);
  ASSERT_EQ(maker_.Share(small, 1000, &chunks_, &files_), CUDA_SUCCESS);
  EXPECT_EQ(chunks_, (SharedChunks{2 * kMiB, 2 * kMiB, 512}));
  ASSERT_EQ(files_.size(), 1u);
  uint64_t opened = 0;
  ASSERT_EQ(opener_.Open(0, chunks_, files_, 1000, &opened), CUDA_SUCCESS);
  EXPECT_EQ(opened % (2 * kMiB), 512u);
  EXPECT_TRUE(opener_.InChunks(opened));
  ASSERT_EQ(maker_.Share(large, 5 * kMiB, &chunks_, &files_), CUDA_SUCCESS);
  EXPECT_EQ(chunks_, (SharedChunks{2 * kMiB, 6 * kMiB, 0}));
  EXPECT_EQ(files_.size(), 3u);
  uint64_t other = 0;
  ASSERT_EQ(opener_.Open(0, chunks_, files_, 5 * kMiB, &other), CUDA_SUCCESS);
  EXPECT_EQ(maker_.Free(large), CUDA_SUCCESS);
  EXPECT_EQ(opener_.Free(opened), CUDA_SUCCESS);
  EXPECT_EQ(opener_.Free(opened), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(opener_.Free(other), CUDA_SUCCESS);
  EXPECT_EQ(vmm_.created(), 2 * kMiB) << "the slab";
}

TEST_F(SharedLinearMemory, NothingThatAnotherProcessSaysIsBelieved) {
  const uint64_t large = Allocate(5 * kMiB);
  ASSERT_EQ(maker_.Share(large, 5 * kMiB, &chunks_, &files_), CUDA_SUCCESS);
  const uint64_t before = vmm_.created();
  uint64_t opened = 0;
  const auto fails = [&](SharedChunks chunks, uint64_t size, const std::vector<wire::Fd>& files) {
    EXPECT_NE(opener_.Open(0, chunks, files, size, &opened), CUDA_SUCCESS);
    EXPECT_EQ(vmm_.created(), before) << "nothing is left";
    EXPECT_EQ(vmm_.mappings(), 3u);
  };
  fails({2 * kMiB, 6 * kMiB, 0}, 6 * kMiB + 1, files_);
  fails({2 * kMiB, 6 * kMiB, 6 * kMiB}, 1, files_);
  fails({2 * kMiB, 8 * kMiB, 0}, 8 * kMiB, files_);
  fails({kMiB, 3 * kMiB, 0}, 100, files_);
  fails({4 * kMiB, 12 * kMiB, 0}, 100, files_);  // Larger than they are.
  fails({2 * kMiB, 6 * kMiB, 0}, 100, {});
  // The last one is something else.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  files_[2].Reset(ends[0]);
  fails({2 * kMiB, 6 * kMiB, 0}, 100, files_);
  const wire::Fd writer(ends[1]);
  EXPECT_EQ(opener_.Open(7, chunks_, files_, 100, &opened), CUDA_ERROR_INVALID_HANDLE) << "no such device";
}

TEST_F(SharedLinearMemory, OnlyAllocationsAreShared) {
  const uint64_t memory = Allocate(3 * kMiB);
  EXPECT_EQ(maker_.Share(memory, 9 * kMiB, &chunks_, &files_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(maker_.Share(12345, 1, &chunks_, &files_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(files_.empty());
  // What comes from elsewhere is shared by whoever made it.
  ASSERT_EQ(maker_.Share(memory, 3 * kMiB, &chunks_, &files_), CUDA_SUCCESS);
  uint64_t opened = 0;
  ASSERT_EQ(opener_.Open(0, chunks_, files_, 3 * kMiB, &opened), CUDA_SUCCESS);
  EXPECT_EQ(opener_.Share(opened, 3 * kMiB, &chunks_, &files_), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
