// SPDX-License-Identifier: Apache-2.0
// What got to the device unasked is asked for when it runs, and held until it is over.
#include "server/backends/cuda/strays.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

/// Lets everybody in, and counts.
class CountingGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return kWhole; }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t) override { return false; }
  bool Enter(uint64_t estimated_ns) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_) return false;
    ++inside_;
    estimated_ = estimated_ns;
    changed_.notify_all();
    return true;
  }
  void Leave(uint64_t, uint64_t measured_ns) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    --inside_;
    ++left_;
    measured_ += measured_ns;
    changed_.notify_all();
  }
  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
  }
  void AwaitInside(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == count; });
  }
  void AwaitLeft(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return left_ == count; });
  }
  int left() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return left_;
  }
  uint64_t measured() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return measured_;
  }
  uint64_t estimated() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return estimated_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0, left_ = 0;
  uint64_t measured_ = 0, estimated_ = 0;
  bool cancelled_ = false;
};

// Which events have happened, as the tests have it.
std::atomic<CUevent> begin_event{nullptr}, end_event{nullptr};
std::atomic<bool> has_begun{false}, has_ended{false};

CUresult QueryAsSaid(CUevent event) {
  const bool happened = event == begin_event ? has_begun.load() : event == end_event && has_ended.load();
  return happened ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult TakesFiveMilliseconds(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 5;
  return CUDA_SUCCESS;
}

class CudaStrays : public testing::Test {
 protected:
  CudaStrays() {
    table_.cuEventQuery = QueryAsSaid;
    table_.cuEventElapsedTime = TakesFiveMilliseconds;
    CUcontext context = nullptr;
    (void)table_.cuInit(0);
    (void)table_.cuDevicePrimaryCtxRetain(&context, 0);
    (void)table_.cuCtxSetCurrent(context);
    pool_ = std::make_shared<EventPool>(&table_, context);
    has_begun = false;
    has_ended = false;
    begin_event = nullptr;  // Of the test before; an event of this one may have the same address.
    stray_.context = context;
    stray_.end = PooledEvent::Take(pool_);
    end_event = stray_.end->native();
  }
  ~CudaStrays() override {
    stray_ = {};
    pool_->Retire();
  }
  void Begin() {
    stray_.begin = PooledEvent::Take(pool_);
    begin_event = stray_.begin->native();
  }

  FakeDriver driver_;
  DriverTable table_ = driver_.table();
  CountingGate gate_;
  std::shared_ptr<EventPool> pool_;
  Stray stray_;
};

TEST_F(CudaStrays, WhatRunsIsHeldUntilItIsOver) {
  Begin();
  Strays strays(&table_, &gate_);
  strays.Add(stray_);
  has_begun = true;
  gate_.AwaitInside(1);
  EXPECT_EQ(gate_.left(), 0);
  has_ended = true;
  gate_.AwaitLeft(1);
  EXPECT_GT(gate_.measured(), 0u);
  gate_.Cancel();
}

TEST_F(CudaStrays, WhatWasTooShortToBeSeenIsPaidForAfterwards) {
  Begin();
  has_begun = true;
  has_ended = true;
  Strays strays(&table_, &gate_);
  strays.Add(stray_);
  gate_.AwaitLeft(1);
  EXPECT_EQ(gate_.estimated(), 5'000'000u);
  EXPECT_EQ(gate_.measured(), 5'000'000u);
  gate_.Cancel();
}

TEST_F(CudaStrays, WhatWaitsForTheGuestHoldsNothing) {
  std::atomic<bool> waits{true};
  std::atomic<int> looks{0};
  stray_.waits = [&] {
    ++looks;
    return waits.load();
  };
  Strays strays(&table_, &gate_);
  strays.Add(stray_);
  while (looks < 3) std::this_thread::yield();
  EXPECT_EQ(gate_.left(), 0);
  waits = false;
  gate_.AwaitInside(1);
  // Another function of the guest is before what is left.
  waits = true;
  gate_.AwaitLeft(1);
  waits = false;
  gate_.AwaitInside(1);
  has_ended = true;
  gate_.AwaitLeft(2);
  gate_.Cancel();
}

TEST_F(CudaStrays, AContextsAreForgottenWithIt) {
  Begin();
  has_begun = true;
  Strays strays(&table_, &gate_);
  strays.Add(stray_);
  gate_.AwaitInside(1);
  strays.Forget(stray_.context);
  gate_.AwaitLeft(1);
  gate_.Cancel();
}

TEST_F(CudaStrays, TheSessionsEndIsNotWaitedFor) {
  Begin();
  gate_.Cancel();
  Strays strays(&table_, &gate_);
  strays.Add(stray_);
  has_begun = true;
  strays.Stop();
}

}  // namespace
}  // namespace hawser::server::cuda_backend
