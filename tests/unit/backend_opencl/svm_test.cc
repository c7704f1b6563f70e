// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/backends/opencl/svm_ranges.h"
#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kSize = 1 << 20;

class Svm : public testing::Test {
 protected:
  void SetUp() override {
    address_ = Allocate(kSize);
    if (address_ == 0) GTEST_SKIP() << "the device has no shared virtual memory";
    queue_ = session_.Queue();
  }
  uint64_t Allocate(uint64_t size) {
    opencl::SVMAlloc alloc;
    alloc.context = session_.Context();
    alloc.flags = CL_MEM_READ_WRITE;
    alloc.size = size;
    const auto reply = session_.Ask<opencl::SVMAddress>(alloc);
    return reply && reply->message.status == CL_SUCCESS ? reply->message.address : 0;
  }
  int32_t WriteAt(uint64_t address, wire::Bytes data) {
    opencl::SVMWrite write;
    write.queue = queue_;
    write.address = address;
    write.size = data.size();
    write.data = data;
    return session_.Do(write);
  }
  std::vector<std::byte> ReadAt(uint64_t address, uint64_t size) {
    opencl::SVMRead read;
    read.queue = queue_;
    read.address = address;
    read.size = size;
    const auto reply = session_.Ask<opencl::ReadReply>(read);
    if (!reply || reply->message.status != CL_SUCCESS) return {};
    return {reply->message.data.begin(), reply->message.data.end()};
  }

  Session session_;
  Id queue_;
  uint64_t address_ = 0;
};

TEST_F(Svm, WriteKernelRead) {
  const Id kernel =
      session_.Kernel(session_.Program("kernel void inc(global int* a) { a[get_global_id(0)] += 1; }"), "inc");
  const std::vector<int> values = {1, 2, 3, 4};
  ASSERT_EQ(WriteAt(address_ + 64, BytesOf(values)), CL_SUCCESS);
  opencl::SetKernelArgSVMPointer set;
  set.kernel = kernel;
  set.address = address_ + 64;
  ASSERT_EQ(session_.Do(set), CL_SUCCESS);
  ASSERT_EQ(session_.Launch(queue_, kernel, 4), CL_SUCCESS);
  EXPECT_EQ(ReadAt(address_ + 64, 16), OwnBytes(std::vector<int>{2, 3, 4, 5}));

  set.address = 0;
  EXPECT_EQ(session_.Do(set), CL_SUCCESS) << "a null pointer";
  set.address = address_ + kSize;
  EXPECT_EQ(session_.Do(set), CL_INVALID_ARG_VALUE);
  set.address = SvmRanges::Address(this);
  EXPECT_EQ(session_.Do(set), CL_INVALID_ARG_VALUE);

  opencl::SetKernelExecInfo info;
  info.kernel = kernel;
  info.param = CL_KERNEL_EXEC_INFO_SVM_PTRS;
  uint64_t pointers[] = {address_};
  info.value = wire::AsBytes(pointers, sizeof(pointers));
  EXPECT_EQ(session_.Do(info), CL_SUCCESS);
  pointers[0] = 4096;
  info.value = wire::AsBytes(pointers, sizeof(pointers));
  EXPECT_EQ(session_.Do(info), CL_INVALID_VALUE);
  info.value = wire::AsBytes(pointers, 5);
  EXPECT_EQ(session_.Do(info), CL_INVALID_VALUE);
  info.param = 0x4242;
  EXPECT_EQ(session_.Do(info), CL_INVALID_VALUE);
  info.param = CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM;
  EXPECT_EQ(session_.Do(info), CL_INVALID_VALUE) << "of another size";
}

TEST_F(Svm, OverTheBulkChannel) {
  std::vector<uint32_t> values(kSize / 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 7);
  opencl::SVMWrite write;
  write.queue = queue_;
  write.address = address_;
  write.size = kSize;
  write.transfer = 1;
  write.event = session_.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session_.Do(write), CL_SUCCESS);
  opencl::SVMRead read;
  read.queue = queue_;
  read.address = address_;
  read.size = kSize;
  read.transfer = 2;
  ASSERT_EQ(session_.Do(read), CL_SUCCESS);
  session_.bulk_in().Deliver(1, OwnBytes(values));
  const auto result = session_.bulk_out().Await(2);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(values));
  EXPECT_TRUE(session_.AwaitEvent(write.event).has_value());
}

TEST_F(Svm, CopyFillMigrate) {
  const uint64_t other = Allocate(4096);
  ASSERT_NE(other, 0u);
  opencl::EnqueueSVMMemFill fill;
  fill.queue = queue_;
  fill.address = address_;
  const uint32_t pattern = 0xabcd1234;
  fill.pattern = wire::AsBytes(&pattern, 4);
  fill.size = 4096;
  ASSERT_EQ(session_.Do(fill), CL_SUCCESS);
  opencl::SVMCopy copy;
  copy.queue = queue_;
  copy.source = address_;
  copy.destination = other;
  copy.size = 4096;
  ASSERT_EQ(session_.Do(copy), CL_SUCCESS);
  EXPECT_EQ(ReadAt(other, 8), OwnBytes(std::vector<uint32_t>{pattern, pattern}));
  opencl::EnqueueSVMMigrateMem migrate;
  migrate.queue = queue_;
  migrate.addresses = wire::ArrayView<uint64_t>(&other, 1);
  EXPECT_EQ(session_.Do(migrate), CL_SUCCESS);

  fill.size = 4098;
  EXPECT_EQ(session_.Do(fill), CL_INVALID_VALUE) << "no multiple of the pattern";
  fill.size = kSize + 4;
  EXPECT_EQ(session_.Do(fill), CL_INVALID_VALUE);
  copy.size = 4097;
  EXPECT_EQ(session_.Do(copy), CL_INVALID_VALUE);
  copy.size = ~uint64_t{0};
  EXPECT_EQ(session_.Do(copy), CL_INVALID_VALUE);
  const uint64_t sizes[] = {1, 2};
  migrate.sizes = wire::ArrayView<uint64_t>(sizes, 2);
  EXPECT_EQ(session_.Do(migrate), CL_INVALID_VALUE);
}

TEST_F(Svm, ForeignAddressesAreRefused) {
  const uint64_t foreign = SvmRanges::Address(&session_);
  EXPECT_EQ(WriteAt(foreign, wire::AsBytes("abcd", 4)), CL_INVALID_VALUE);
  EXPECT_EQ(WriteAt(address_ + kSize - 2, wire::AsBytes("abcd", 4)), CL_INVALID_VALUE);
  EXPECT_TRUE(ReadAt(foreign, 4).empty());
  EXPECT_TRUE(ReadAt(address_ - 1, 4).empty());
  EXPECT_TRUE(ReadAt(0, 4).empty());
  opencl::SVMFree release;
  release.context = session_.Context();
  release.address = address_ + 8;
  EXPECT_EQ(session_.Do(release), CL_INVALID_VALUE) << "not its beginning";
  release.address = address_;
  EXPECT_EQ(session_.Do(release), CL_SUCCESS);
  EXPECT_EQ(session_.Do(release), CL_INVALID_VALUE) << "twice";
  EXPECT_TRUE(ReadAt(address_, 4).empty()) << "after its end";
}

TEST_F(Svm, FreeInACommand) {
  opencl::EnqueueSVMFree release;
  release.queue = queue_;
  const uint64_t twice[] = {address_, address_};
  release.addresses = wire::ArrayView<uint64_t>(twice, 2);
  EXPECT_EQ(session_.Do(release), CL_INVALID_VALUE);
  release.addresses = wire::ArrayView<uint64_t>(twice, 1);
  release.event = session_.NewId(opencl::Handle::kEvent);
  ASSERT_EQ(session_.Do(release), CL_SUCCESS);
  EXPECT_TRUE(session_.AwaitEvent(release.event).has_value());
  release.event = {};
  EXPECT_EQ(session_.Do(release), CL_INVALID_VALUE);
}

TEST_F(Svm, WhatIsLeftIsFreedWithTheSession) {
  ASSERT_NE(Allocate(4096), 0u);
  session_.EndBackend();
}

TEST_F(Svm, CountsAgainstTheLimit) {
  SessionOptions options;
  options.limits.device_memory = kSize;
  Session limited(options);
  opencl::SVMAlloc alloc;
  alloc.context = limited.Context();
  alloc.flags = CL_MEM_READ_WRITE;
  alloc.size = 2 * kSize;
  auto reply = limited.Ask<opencl::SVMAddress>(alloc);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->message.status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  alloc.size = 0;
  reply = limited.Ask<opencl::SVMAddress>(alloc);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->message.status, CL_INVALID_VALUE);
  for (int i = 0; i < 3; ++i) {
    alloc.size = kSize;
    reply = limited.Ask<opencl::SVMAddress>(alloc);
    ASSERT_TRUE(reply.has_value());
    ASSERT_EQ(reply->message.status, CL_SUCCESS) << i;
    opencl::SVMFree release;
    release.context = limited.Context();
    release.address = reply->message.address;
    ASSERT_EQ(limited.Do(release), CL_SUCCESS);
  }
}

}  // namespace
}  // namespace hawser::server::ocl
