// SPDX-License-Identifier: Apache-2.0
// Staging memory over a driver that keeps whoever unregisters memory, as one does whose device has something to do.
#include "server/backends/cuda/staging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "server/backends/cuda/disposals.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kMegabyte = 1u << 20;

/// The device is busy until it is said to be idle.
struct Device {
  std::mutex mutex;
  std::condition_variable changed;
  bool idle = false;
  std::set<void*> registered;

  void BecomeIdle() {
    const std::lock_guard<std::mutex> lock(mutex);
    idle = true;
    changed.notify_all();
  }
  size_t count() {
    const std::lock_guard<std::mutex> lock(mutex);
    return registered.size();
  }
};
Device* device = nullptr;

class Staging : public ::testing::Test {
 protected:
  Staging() {
    device = &device_;
    driver_.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
    driver_.cuMemHostRegister = [](void* memory, size_t, unsigned) {
      const std::lock_guard<std::mutex> lock(device->mutex);
      device->registered.insert(memory);
      return CUDA_SUCCESS;
    };
    driver_.cuMemHostUnregister = [](void* memory) {
      std::unique_lock<std::mutex> lock(device->mutex);
      device->changed.wait(lock, [] { return device->idle; });
      return device->registered.erase(memory) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
  }
  std::shared_ptr<StagingPool> Pool(StagingBudget* budget) {
    return std::make_shared<StagingPool>(&driver_, nullptr, budget, &disposals_);
  }

  Device device_;
  DriverTable driver_{};
  Disposals disposals_{&driver_};
};

TEST_F(Staging, ABlockIsUsedAgain) {
  StagingBudget budget(kMegabyte);
  const auto pool = Pool(&budget);
  std::byte* const first = pool->Take(5000).data();
  EXPECT_EQ(pool->Take(8192).data(), first);
  EXPECT_EQ(budget.used(), 8192u);
  device_.BecomeIdle();
}

TEST_F(Staging, TakingNeverWaitsForTheDevice) {
  StagingBudget budget(4 * kMegabyte);
  const auto pool = Pool(&budget);
  {
    std::vector<StagingPool::Block> small;
    for (int i = 0; i < 4; ++i) small.push_back(pool->Take(kMegabyte));
    EXPECT_FALSE(pool->Take(kMegabyte)) << "beyond the limit";
    for (const uint64_t size : {uint64_t{1} << 48, (uint64_t{1} << 63) + 1, ~uint64_t{0}})
      EXPECT_FALSE(pool->Take(size));
  }
  // There is room only when the free ones leave, which they cannot yet.
  const StagingPool::Block large = pool->Take(4 * kMegabyte);
  ASSERT_TRUE(large);
  large.data()[4 * kMegabyte - 1] = std::byte{1};
  EXPECT_EQ(budget.used(), 4 * kMegabyte);
  EXPECT_EQ(device_.count(), 5u);
  device_.BecomeIdle();
  disposals_.Drain();
  EXPECT_EQ(device_.count(), 1u);
}

TEST_F(Staging, WhatLeavesIsBounded) {
  StagingBudget budget(2 * kMegabyte);
  EXPECT_TRUE(budget.Take(2 * kMegabyte));
  EXPECT_TRUE(budget.Leave(kMegabyte));
  EXPECT_TRUE(budget.Leave(kMegabyte));
  EXPECT_TRUE(budget.Take(kMegabyte));
  EXPECT_FALSE(budget.Leave(kMegabyte)) << "as much as the limit leaves already";
  budget.Left(kMegabyte);
  EXPECT_TRUE(budget.Leave(kMegabyte));
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(Staging, ARetiredPoolUnregistersNothing) {
  StagingBudget budget(kMegabyte);
  const auto pool = Pool(&budget);
  StagingPool::Block kept = pool->Take(4096);
  (void)pool->Take(8192);
  pool->Retire();
  EXPECT_EQ(budget.used(), 4096u);
  kept = StagingPool::Block();
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
