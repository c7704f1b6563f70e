// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/chunk_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace hawser::soft {
namespace {

constexpr uint64_t kChunk = uint64_t{2} << 20;
constexpr uint64_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

CUresult Open(int descriptor) {
  SharedFile file;
  ChunkFacts facts;
  const CUresult result = OpenChunkFile(descriptor, &file, &facts);
  EXPECT_EQ(file.valid(), result == CUDA_SUCCESS);
  return result;
}

/// A file in memory with what lies behind a real chunk, but `size` bytes long, and `seals`.
SharedFile Forged(uint64_t size, int seals, const SharedFile& real) {
  const int fd = ::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
  char label[64] = {};
  EXPECT_EQ(::pread(real.fd(), label, sizeof(label), kChunk), 64);
  if (size > kPage) {
    EXPECT_EQ(::pwrite(fd, label, sizeof(label), static_cast<off_t>(size - kPage)), 64);
  }
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  SharedFile file;
  EXPECT_TRUE(file.Duplicate(fd));
  ::close(fd);
  return file;
}

TEST(SoftChunkFile, SaysWhatItIsAndIsOneMemory) {
  SharedFile made, opened;
  ASSERT_TRUE(CreateChunkFile({kChunk, 3}, &made));
  ChunkFacts facts;
  ASSERT_EQ(OpenChunkFile(made.fd(), &opened, &facts), CUDA_SUCCESS);
  EXPECT_EQ(facts, (ChunkFacts{kChunk, 3}));
  EXPECT_NE(opened.fd(), made.fd());
  EXPECT_NE(::fcntl(opened.fd(), F_GETFD) & FD_CLOEXEC, 0);
  const char word[] = "here";
  ASSERT_EQ(::pwrite(made.fd(), word, sizeof(word), 12345), 5);
  made.Close();
  char back[5] = {};
  ASSERT_EQ(::pread(opened.fd(), back, sizeof(back), 12345), 5);
  EXPECT_STREQ(back, word);
  EXPECT_NE(::ftruncate(opened.fd(), 4096), 0) << "whoever maps it never faults";
}

TEST(SoftChunkFile, NothingElseIsTakenForOne) {
  SharedFile real;
  ASSERT_TRUE(CreateChunkFile({kChunk, 0}, &real));
  EXPECT_EQ(Open(Forged(kChunk + kPage, kSeals, real).fd()), CUDA_SUCCESS) << "what the others lack";
  EXPECT_EQ(Open(Forged(kChunk + kPage, F_SEAL_GROW | F_SEAL_SEAL, real).fd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Open(Forged(kChunk + kPage, F_SEAL_SHRINK | F_SEAL_GROW, real).fd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Open(Forged(kChunk + kPage, kSeals | F_SEAL_WRITE, real).fd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Open(Forged(kChunk, kSeals, real).fd()), CUDA_ERROR_INVALID_VALUE) << "shorter than it says";
  EXPECT_EQ(Open(Forged(kPage, kSeals, real).fd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Open(Forged(kChunk + kPage + 1, kSeals, real).fd()), CUDA_ERROR_INVALID_VALUE);
  SharedFile other;
  ASSERT_TRUE(other.Create("other", kChunk + kPage));
  EXPECT_EQ(Open(other.fd()), CUDA_ERROR_INVALID_VALUE) << "says nothing";
  const std::string path = "/proc/self/fd/" + std::to_string(real.fd());
  const int read_only = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(read_only, 0);
  EXPECT_EQ(Open(read_only), CUDA_ERROR_INVALID_VALUE);
  ::close(read_only);
}

TEST(SoftChunkFile, WhateverElseADescriptorIsNobodyWaits) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  for (const int each : {ends[0], ends[1], -1, 100000}) EXPECT_EQ(Open(each), CUDA_ERROR_INVALID_VALUE);
  for (const int each : ends) ::close(each);
  for (const char* path : {"/dev/zero", "/proc/self/exe", "/"}) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(Open(fd), CUDA_ERROR_INVALID_VALUE) << path;
    ::close(fd);
  }
}

TEST(SoftChunkFile, ASizeThatIsNoneIsRefused) {
  SharedFile file;
  EXPECT_FALSE(CreateChunkFile({UINT64_MAX - 4095, 0}, &file));
  EXPECT_FALSE(file.valid());
}

}  // namespace
}  // namespace hawser::soft
