// SPDX-License-Identifier: Apache-2.0
// The parts that need no device.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "server/backends/opencl/builder.h"
#include "server/backends/opencl/cl.h"
#include "server/backends/opencl/image_shape.h"
#include "server/backends/opencl/staging.h"

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kHuge = ~uint64_t{0};

TEST(ImageShape, ExtentsByType) {
  ImageShape shape;
  ASSERT_TRUE(ImageShape::FromDescription(CL_MEM_OBJECT_IMAGE1D_ARRAY, 10, 0, 0, 3, 4, &shape));
  EXPECT_EQ(shape.extent, (Triple{10, 3, 1}));
  ASSERT_TRUE(ImageShape::FromDescription(CL_MEM_OBJECT_IMAGE2D_ARRAY, 10, 5, 0, 3, 4, &shape));
  EXPECT_EQ(shape.extent, (Triple{10, 5, 3}));
  ASSERT_TRUE(ImageShape::FromDescription(CL_MEM_OBJECT_IMAGE3D, 10, 5, 2, 9, 4, &shape));
  uint64_t bytes = 0;
  ASSERT_TRUE(shape.Bytes(&bytes));
  EXPECT_EQ(bytes, 400u);
  EXPECT_TRUE(shape.Contains({9, 4, 1}, {1, 1, 1}));
  EXPECT_FALSE(shape.Contains({9, 4, 1}, {1, 1, 2}));
  EXPECT_FALSE(shape.Contains({kHuge, 0, 0}, {1, 1, 1}));
  EXPECT_FALSE(ImageShape::FromDescription(CL_MEM_OBJECT_IMAGE2D, 0, 5, 0, 0, 4, &shape));
  EXPECT_FALSE(ImageShape::FromDescription(CL_MEM_OBJECT_IMAGE2D, kHuge, kHuge, 0, 0, 4, &shape));
  EXPECT_FALSE(ImageShape::FromDescription(0, 1, 1, 1, 1, 4, &shape));
}

TEST(Regions, Rectangles) {
  EXPECT_TRUE(RectInBuffer({0, 0, 0}, {4, 4, 4}, 0, 0, 64));
  EXPECT_FALSE(RectInBuffer({0, 0, 0}, {4, 4, 4}, 0, 0, 63));
  EXPECT_TRUE(RectInBuffer({12, 3, 0}, {4, 1, 1}, 16, 0, 64));
  EXPECT_FALSE(RectInBuffer({13, 3, 0}, {4, 1, 1}, 16, 0, 64));
  EXPECT_FALSE(RectInBuffer({0, 0, 0}, {4, 2, 1}, 3, 0, 64)) << "rows overlap";
  EXPECT_FALSE(RectInBuffer({0, 0, 0}, {4, 2, 2}, 4, 7, 64)) << "slices overlap";
  EXPECT_FALSE(RectInBuffer({0, 0, 0}, {4, 0, 1}, 0, 0, 64));
  EXPECT_FALSE(RectInBuffer({kHuge, 0, 0}, {2, 1, 1}, 0, 0, 64));
  EXPECT_FALSE(RectInBuffer({0, kHuge, 0}, {1, 2, 1}, 0, 0, 64));
  EXPECT_FALSE(RectInBuffer({0, 0, kHuge / 2}, {1, 1, 1}, 0, 4, 64));
  EXPECT_FALSE(RectInBuffer({0, 0, 0}, {kHuge, kHuge, kHuge}, 0, 0, kHuge));
  uint64_t bytes = 0;
  EXPECT_FALSE(RegionBytes({uint64_t{1} << 32, uint64_t{1} << 32, 1}, 1, &bytes));
  EXPECT_FALSE(RegionBytes({uint64_t{1} << 62, 1, 1}, 16, &bytes));
  EXPECT_TRUE(InRange(64, 0, 64));
  EXPECT_FALSE(InRange(65, 0, 64));
  EXPECT_FALSE(InRange(60, kHuge, 64));
}

TEST(Staging, BlocksAreReusedAndBounded) {
  StagingPool pool(64 << 10);
  std::byte* first = nullptr;
  {
    const StagingPool::Owned block = pool.Acquire(100);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(block->capacity, 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data) % 128, 0u);
    first = block->data;
    EXPECT_GT(pool.in_use(), 0u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.Acquire(500)->data, first);
  EXPECT_EQ(pool.Acquire(65 << 10), nullptr);
  EXPECT_EQ(pool.Acquire(kHuge), nullptr);
  const StagingPool::Owned most = pool.Acquire(64 << 10);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(pool.Acquire(1), nullptr);
}

TEST(Staging, OtherThreadsRelease) {
  StagingPool pool(uint64_t{1} << 30);
  constexpr int kBlocks = 20000;
  std::vector<std::atomic<StagingPool::Block*>> handed(kBlocks);
  std::thread releaser([&] {
    for (std::atomic<StagingPool::Block*>& slot : handed) {
      StagingPool::Block* block = nullptr;
      while ((block = slot.load(std::memory_order_acquire)) == nullptr) std::this_thread::yield();
      const StagingPool::Owned release(block);
    }
  });
  for (std::atomic<StagingPool::Block*>& slot : handed) {
    StagingPool::Owned block = pool.Acquire(1000);
    ASSERT_NE(block, nullptr);
    std::memset(block->data, 1, 1000);
    slot.store(block.release(), std::memory_order_release);
  }
  releaser.join();
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Builder, IsPreparedOnceAndThenRunsWhatIsPosted) {
  std::atomic<bool> ran{false};
  {
    Builder builder;
    builder.Prepare();
    builder.Prepare();
    builder.Post([&] { ran = true; });
    while (!ran) std::this_thread::yield();
  }
  {
    Builder idle;
    idle.Prepare();
  }
  EXPECT_TRUE(ran);
}

TEST(Builder, RunsInOrderAndDropsTheRestAtTheEnd) {
  std::vector<int> order;
  std::atomic<bool> go{false}, began{false};
  {
    Builder builder;
    for (int i = 0; i < 3; ++i) builder.Post([&order, i] { order.push_back(i); });
    builder.Post([&] {
      began = true;
      while (!go) std::this_thread::yield();
      order.push_back(3);
    });
    while (!began) std::this_thread::yield();
    builder.Post([&order] { order.push_back(4); });
    go = true;
  }
  ASSERT_GE(order.size(), 4u);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i));
}

}  // namespace
}  // namespace hawser::server::ocl
