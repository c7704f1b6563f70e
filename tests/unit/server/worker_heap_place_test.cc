// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <utility>

#include "server/worker/heap_place.h"
#include "wire/shm.h"

namespace hawser::server {
namespace {

constexpr uint64_t kSize = uint64_t{4} << 20;

wire::Fd NewHeap(uint64_t size) {
  wire::Result<wire::Fd> fd = wire::CreateHeap(size, "heap-place-test");
  EXPECT_TRUE(fd.ok()) << fd.status().text();
  return fd.ok() ? std::move(*fd) : wire::Fd();
}

TEST(HeapPlace, IsWhereNothingElseLies) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no addresses of our choice";
#endif
  const wire::Fd fd = NewHeap(kSize);
  uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    wire::Result<std::byte*> heap = MapHeap(kSize, fd.get());
    ASSERT_TRUE(heap.ok()) << heap.status().text();
    const auto address = reinterpret_cast<uint64_t>(*heap);
    EXPECT_GE(address, kHeapsBegin);
    EXPECT_LE(address + kSize, kHeapsEnd);
    EXPECT_NE(address, before);
    before = address;
    (*heap)[kSize - 1] = std::byte{7};
    EXPECT_EQ((*heap)[kSize - 1], std::byte{7});
    ::munmap(*heap, kSize);
  }
}

TEST(HeapPlace, IsSharedWithWhoeverMapsTheFile) {
  const wire::Fd fd = NewHeap(kSize);
  wire::Result<std::byte*> one = MapHeap(kSize, fd.get());
  wire::Result<std::byte*> two = MapHeap(kSize, fd.get());
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(*one, *two);
  (*one)[4097] = std::byte{42};
  EXPECT_EQ((*two)[4097], std::byte{42});
  ::munmap(*one, kSize);
  ::munmap(*two, kSize);
}

TEST(HeapPlace, SaysWhyThereIsNone) {
  wire::Result<std::byte*> heap = MapHeap(kSize, -1);
  ASSERT_FALSE(heap.ok());
  EXPECT_NE(heap.status().text().find("no shared heap"), std::string::npos) << heap.status().text();
}

}  // namespace
}  // namespace hawser::server
