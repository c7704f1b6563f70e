// SPDX-License-Identifier: Apache-2.0
// Expected values computed by hand from the allocation rules (registers by 256 for each warp, over four schedulers).
#include "interposer/cuda/occupancy.h"

#include <gtest/gtest.h>

namespace hawser::cu {
namespace {

/// Compute capability 8.0.
OccupancyDevice Ampere() {
  OccupancyDevice device;
  device.warp = 32;
  device.threads = 2048;
  device.blocks = 32;
  device.registers = 65536;
  device.shared = 164 << 10;
  device.shared_reserved = 1 << 10;
  device.threads_per_block = 1024;
  device.shared_per_block = 163 << 10;
  device.multiprocessors = 108;
  return device;
}

OccupancyKernel Kernel(uint32_t registers, uint64_t shared = 0) {
  OccupancyKernel kernel;
  kernel.registers = registers;
  kernel.shared_static = shared;
  kernel.threads = 1024;
  kernel.dynamic_most = 163 << 10;
  return kernel;
}

TEST(OccupancyTest, ThreadsAndBlocksLimit) {
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 256, 0), 8u);   // 2048 / 256
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 32, 0), 32u);   // 32 blocks
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 1024, 0), 2u);  // 2048 / 1024
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 100, 0), 16u);  // 4 warps each, 64 in all
}

TEST(OccupancyTest, RegistersLimit) {
  // 64 x 32 = 2048 for a warp; 16384 / 2048 = 8 warps for each of 4 schedulers: 32 warps; 8 a block.
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(64), 256, 0), 4u);
  // 33 x 32 = 1056, rounded to 1280; 16384 / 1280 = 12; 48 warps.
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(33), 256, 0), 6u);
  // 255 x 32 = 8160 -> 8192; 2 warps on each: 8 warps; a block of 1024 threads needs 32.
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(255), 1024, 0), 0u);
}

TEST(OccupancyTest, SharedMemoryLimits) {
  // 40 KiB and 1 KiB reserved: 164 / 41 = 4.
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16, 40 << 10), 128, 0), 4u);
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16, 8 << 10), 128, 32 << 10), 4u);
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 128, 163 << 10), 1u);
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), Kernel(16), 128, (163 << 10) + 1), 0u);
}

TEST(OccupancyTest, BlocksAtOnceAreThoseOfAllMultiprocessors) {
  EXPECT_EQ(BlocksAtOnce(Ampere(), Kernel(16), 256, 0), 8u * 108u);
  EXPECT_EQ(BlocksAtOnce(Ampere(), Kernel(255), 1024, 0), 108u) << "whether a block fits at all is not said here";
}

TEST(OccupancyTest, TooManyThreadsFitNowhere) {
  OccupancyKernel kernel = Kernel(16);
  kernel.threads = 512;
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), kernel, 513, 0), 0u);
  EXPECT_EQ(BlocksPerMultiprocessor(Ampere(), kernel, 0, 0), 0u);
}

TEST(OccupancyTest, TheBestBlockIsTheLargestOfTheBest) {
  const auto none = [](uint32_t) { return uint64_t{0}; };
  const BestBlock best = FindBestBlock(Ampere(), Kernel(16), none, 0);
  EXPECT_EQ(best.threads, 1024u);
  EXPECT_EQ(best.grid, 2u * 108u);
  EXPECT_EQ(FindBestBlock(Ampere(), Kernel(16), none, 300).threads, 256u);  // 300: 6 x 300 < 8 x 256
}

TEST(OccupancyTest, TheBestBlockAsksForEachSizesSharedMemory) {
  // 1 KiB for each thread: at most 163 threads in a block; 160 threads are the most in whole warps.
  const BestBlock best = FindBestBlock(
      Ampere(), Kernel(16), [](uint32_t threads) { return uint64_t{threads} << 10; }, 0);
  EXPECT_EQ(best.threads, 160u);
}

TEST(OccupancyTest, SharedMemoryForSeveralBlocks) {
  EXPECT_EQ(SharedForBlocks(Ampere(), Kernel(16), 4, 128), uint64_t{40} << 10);
  EXPECT_EQ(SharedForBlocks(Ampere(), Kernel(16), 1, 128), uint64_t{163} << 10);
  EXPECT_EQ(SharedForBlocks(Ampere(), Kernel(16), 33, 32), 0u);
}

}  // namespace
}  // namespace hawser::cu
