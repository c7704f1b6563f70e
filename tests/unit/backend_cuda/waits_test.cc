// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/waits.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

CUresult RefuseCallback(CUstream, CUstreamCallback, void*, unsigned) { return CUDA_ERROR_OUT_OF_MEMORY; }

class WaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(table_.cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuStreamCreateWithPriority(&stream_, 0, 0), CUDA_SUCCESS);
    events_ = std::make_shared<EventPool>(&table_, context_);
  }

  void TearDown() override {
    waits_.reset();
    EXPECT_EQ(table_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(table_.cuStreamDestroy(stream_), CUDA_SUCCESS);
  }

  void Make(bool calls_back) {
    waits_ = std::make_unique<Waits>(
        &table_, calls_back, [] {}, [this](CUcontext, CUresult result) { observed_.push_back(result); });
  }

  /// Keeps the stream busy until the latch is down.
  void Block(std::latch* until) {
    ASSERT_EQ(table_.cuLaunchHostFunc(
                  stream_, [](void* latch) { static_cast<std::latch*>(latch)->wait(); }, until),
              CUDA_SUCCESS);
  }

  FakeDriver driver_;
  DriverTable table_ = driver_.table();
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::shared_ptr<EventPool> events_;
  Waits::StreamLane lane_;
  std::vector<CUresult> observed_;
  std::unique_ptr<Waits> waits_;
};

TEST_F(WaitsTest, ADriverThatCallsBackNeedsNoLane) {
  for (const bool calls_back : {false, true}) {
    Make(calls_back);
    std::latch go(1);
    Block(&go);
    std::promise<CUresult> told;
    std::future<CUresult> result = told.get_future();
    ASSERT_EQ(waits_->Tell(&lane_, stream_, events_, [&told](CUresult end) { told.set_value(end); }), CUDA_SUCCESS);
    EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    go.count_down();
    EXPECT_EQ(result.get(), CUDA_SUCCESS);
    waits_->Drain(context_);
    EXPECT_EQ(observed_.size(), 1u);
    EXPECT_EQ(lane_.lane == nullptr, calls_back);
    observed_.clear();
    lane_.lane.reset();
  }
}

TEST_F(WaitsTest, ToldAfterTheDataThatLandsBefore) {
  Make(true);
  std::latch go(1);
  std::latch land(1);
  Block(&go);
  std::vector<std::string> order;  // Written by one lane, which runs its jobs one after the other.
  ASSERT_EQ(waits_->After(&lane_, stream_, events_, true,
                          [&](CUresult) {
                            land.wait();
                            order.emplace_back("landed");
                          }),
            CUDA_SUCCESS);
  std::promise<void> told;
  ASSERT_EQ(waits_->Tell(&lane_, stream_, events_,
                         [&](CUresult) {
                           order.emplace_back("told");
                           told.set_value();
                         }),
            CUDA_SUCCESS);
  go.count_down();
  land.count_down();
  told.get_future().wait();
  EXPECT_EQ(order, (std::vector<std::string>{"landed", "told"}));
  waits_->Drain(context_);
}

TEST_F(WaitsTest, DataThatIsNotCompleteKeepsNoAnswerBack) {
  Make(true);
  EXPECT_TRUE(waits_->AllHandedOver(context_));
  std::latch go(1), land(1), landing(1);
  Block(&go);
  ASSERT_EQ(waits_->After(&lane_, stream_, events_, true,
                          [&](CUresult) {
                            landing.count_down();
                            land.wait();
                          }),
            CUDA_SUCCESS);
  // Whoever asks for another stream has nothing to wait for.
  EXPECT_TRUE(waits_->AllHandedOver(context_));
  go.count_down();
  landing.wait();
  EXPECT_FALSE(waits_->AllHandedOver(context_));
  land.count_down();
  waits_->Drain(context_);
  EXPECT_TRUE(waits_->AllHandedOver(context_));
}

TEST_F(WaitsTest, ACallbackThatComesTooLateIsDropped) {
  Make(true);
  std::latch go(1);
  Block(&go);
  bool told = false;
  ASSERT_EQ(waits_->Tell(&lane_, stream_, events_, [&told](CUresult) { told = true; }), CUDA_SUCCESS);
  waits_.reset();
  go.count_down();
  ASSERT_EQ(table_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_FALSE(told);
}

TEST_F(WaitsTest, ALaneMayBeGivenBackToNobody) {
  Make(false);
  std::promise<void> told;
  ASSERT_EQ(waits_->Tell(&lane_, stream_, events_, [&told](CUresult) { told.set_value(); }), CUDA_SUCCESS);
  told.get_future().wait();
  const std::weak_ptr<Waits::Lane> lane = lane_.lane;
  ASSERT_FALSE(lane.expired());
  waits_.reset();
  lane_.lane.reset();  // Of a stream whose context broke. A sanitizer sees who is asked.
  EXPECT_TRUE(lane.expired());
}

TEST_F(WaitsTest, ARefusedCallbackIsNotWaitedFor) {
  table_.cuStreamAddCallback = RefuseCallback;
  Make(true);
  bool told = false;
  EXPECT_EQ(waits_->Tell(&lane_, stream_, events_, [&told](CUresult) { told = true; }), CUDA_ERROR_OUT_OF_MEMORY);
  waits_->Drain(context_);
  EXPECT_FALSE(told);
}

TEST_F(WaitsTest, WithoutTheCallALaneWaits) {
  table_.cuStreamAddCallback = nullptr;
  Make(true);
  std::promise<CUresult> told;
  ASSERT_EQ(waits_->Tell(&lane_, stream_, events_, [&told](CUresult end) { told.set_value(end); }), CUDA_SUCCESS);
  EXPECT_EQ(told.get_future().get(), CUDA_SUCCESS);
  EXPECT_NE(lane_.lane, nullptr);
  waits_->Drain(context_);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
