// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/part_sizes.h"

#include <gtest/gtest.h>

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kUnit = 1'000'000;

class UnitGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return unit; }
  uint32_t Tenants() const override { return tenants; }
  bool TryEnter(uint64_t) override { return true; }
  bool Enter(uint64_t) override { return true; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}

  uint64_t unit = kUnit;
  uint32_t tenants = 2;
};

class PartSizesTest : public testing::Test {
 protected:
  /// A launch of so many blocks of 32 threads.
  static KernelLaunch Launch(unsigned blocks) {
    KernelLaunch launch;
    launch.grid = {blocks, 1, 1};
    launch.block = {32, 1, 1};
    return launch;
  }
  bool IsLong(unsigned blocks) const { return sizes_.IsLong(kernel_, Launch(blocks)); }
  uint64_t Blocks(unsigned blocks) const { return sizes_.Blocks(kernel_, Launch(blocks), blocks); }

  UnitGate gate_;
  SplitSettings settings_;
  scheduler::KernelHistory history_;
  KernelFacts kernel_;
  const PartSizes sizes_{&settings_, &gate_, &history_, /*cores=*/128};
};

TEST_F(PartSizesTest, WhatWasNeverMeasuredBeginsWithThePapersFirstGroup) {
  EXPECT_FALSE(sizes_.IsKnown(kernel_));
  settings_.beta = 1;  // 128 * 1 / 2 tenants = 64 threads.
  EXPECT_FALSE(IsLong(4)) << "two first groups";
  EXPECT_TRUE(IsLong(5));
  EXPECT_EQ(Blocks(5), 2u);
  settings_.beta = 2;
  EXPECT_FALSE(IsLong(8));
  EXPECT_TRUE(IsLong(9));
  EXPECT_EQ(Blocks(9), 4u);
  gate_.tenants = 4;
  EXPECT_TRUE(IsLong(5));
  EXPECT_EQ(Blocks(9), 2u);
  settings_.beta = 0.001;  // No thread: one block all the same.
  EXPECT_FALSE(IsLong(2));
  EXPECT_TRUE(IsLong(3));
  EXPECT_EQ(Blocks(3), 1u);
}

TEST_F(PartSizesTest, WhatWasMeasuredIsLongByItsTime) {
  history_.Learn(kernel_.key, 32, 1000);  // A block in a microsecond.
  EXPECT_TRUE(sizes_.IsKnown(kernel_));
  EXPECT_FALSE(IsLong(1000)) << "one unit";
  EXPECT_TRUE(IsLong(2000));
  EXPECT_EQ(Blocks(2000), 1000u);
}

TEST_F(PartSizesTest, NothingIsLongWhereNothingIsSplit) {
  for (const uint64_t unit : {uint64_t{0}, LaunchGate::kWhole}) {
    gate_.unit = unit;
    EXPECT_FALSE(IsLong(1'000'000));
    history_.Learn(kernel_.key, 32, 1'000'000'000);
    EXPECT_FALSE(IsLong(1'000'000));
  }
}

TEST_F(PartSizesTest, TheSettingsMaySayAllOfIt) {
  settings_.size = 3;
  EXPECT_TRUE(sizes_.IsKnown(kernel_));
  EXPECT_FALSE(IsLong(3));
  EXPECT_TRUE(IsLong(4));
  EXPECT_EQ(Blocks(4), 3u);
}

TEST_F(PartSizesTest, WhatNoDeviceTakesIsLeftToTheDriver) {
  const auto is_long = [this](std::array<unsigned, 3> grid, std::array<unsigned, 3> block) {
    KernelLaunch launch;
    launch.grid = grid;
    launch.block = block;
    return sizes_.IsLong(kernel_, launch);
  };
  ASSERT_TRUE(is_long({100, 100, 100}, {8, 8, 8}));
  EXPECT_FALSE(is_long({100, 100, 100}, {0, 8, 8}));
  EXPECT_FALSE(is_long({100, 0, 100}, {8, 8, 8}));
  EXPECT_FALSE(is_long({100, 65536, 100}, {8, 8, 8}));
  EXPECT_FALSE(is_long({100, 100, 65536}, {8, 8, 8}));
  EXPECT_FALSE(is_long({1u << 31, 1, 1}, {8, 8, 8}));
  EXPECT_FALSE(is_long({100, 100, 100}, {8, 8, 17}));
  EXPECT_FALSE(is_long({100, 100, 100}, {1u << 31, 1u << 31, 4})) << "zero modulo 2^64";
}

}  // namespace
}  // namespace hawser::server::cuda_backend
