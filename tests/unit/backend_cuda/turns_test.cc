// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "server/backends/cuda/sharing.h"
#include "server/session_stats.h"
#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr unsigned kBlocks = 8;
constexpr char kText[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 count, .param .u32 value)\n"
    "{\n.reg .b32 %r<3>;\n.reg .b64 %d<2>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %ctaid.x;\n"
    "st.global.u32 [%d1], %r1;\nret;\n}\n";

std::atomic<int> launches{0};
std::atomic<unsigned> last_blocks{0};  ///< Of the latest launch, in the first axis.
std::latch* loading = nullptr;         ///< Loading a module waits for it.
std::latch* ending = nullptr;          ///< Events wait for it, where a test wants that.
DriverTable fake_table;

CUresult CountLaunch(CUfunction, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                     void**, void**) {
  last_blocks = blocks;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult LookAtEnd(CUevent) { return ending->try_wait() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

CUresult AwaitEnd(CUevent) {
  ending->wait();
  return CUDA_SUCCESS;
}

CUresult TakesAMicrosecond(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0.001f;
  return CUDA_SUCCESS;
}

CUresult LoadSlowly(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  loading->wait();
  return fake_table.cuModuleLoadDataEx(module, image, count, options, values);
}

/// A gate that is always entered.
class EasyGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return 1'000'000; }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t) override { return true; }
  bool Enter(uint64_t) override { return true; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}
};

class TurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    launches = 0;
    loading = &loaded_;
    ending = &ended_;
    fake_table = table_;
    table_.cuLaunchKernel = CountLaunch;
    table_.cuModuleLoadDataEx = LoadSlowly;
    settings_.splits = true;
    settings_.size = 1;  // Blocks of a part.
    ASSERT_EQ(table_.cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
    stream_ = std::make_shared<StreamState>();
    events_ = std::make_shared<EventPool>(&table_, context_);
    kernel_ = std::make_shared<KernelFacts>();
    kernel_->name = "add";
    auto code = std::make_shared<ModuleCode>();
    code->text = std::make_shared<cuda_slicing::ModuleText>(
        cuda_slicing::ModuleText::Bytes(std::make_shared<std::vector<std::byte>>(
            reinterpret_cast<const std::byte*>(kText), reinterpret_cast<const std::byte*>(kText) + sizeof(kText))),
        /*in_fatbin=*/false);
    kernel_->code = code;
    sharing_ = std::make_unique<Sharing>(
        &table_, &gate_, &settings_, 128, &stats_, [](std::string_view, const std::string&) {}, [] {});
  }

  std::unique_ptr<Turn> NewTurn() {
    auto turn = std::make_unique<Turn>();
    turn->stream = stream_;
    turn->timers = events_;
    turn->launch.grid = {kBlocks, 1, 1};
    turn->launch.parameters.resize(16);
    turn->kernel = kernel_;
    turn->since = std::chrono::steady_clock::now();
    return turn;
  }

  std::vector<std::unique_ptr<Turn>> AwaitOver() {
    std::vector<std::unique_ptr<Turn>> over;
    while ((over = sharing_->turns.TakeOver()).empty()) std::this_thread::yield();
    return over;
  }

  std::latch loaded_{1};  // The builder's thread may look at it until it is joined.
  std::latch ended_{1};   // Likewise the units'.
  FakeDriver driver_;
  DriverTable table_ = driver_.table();
  CUcontext context_ = nullptr;
  EasyGate gate_;
  SplitSettings settings_;
  SessionStatsPage stats_;
  std::shared_ptr<StreamState> stream_;
  std::shared_ptr<EventPool> events_;
  std::shared_ptr<KernelFacts> kernel_;
  std::unique_ptr<Sharing> sharing_;
};

TEST_F(TurnsTest, ALaunchWaitsForTheCopyThatCanRunInParts) {
  EXPECT_EQ(sharing_->sliced.Find(kernel_, context_, /*wait=*/false), nullptr);
  ASSERT_TRUE(sharing_->sliced.IsMaking(*kernel_, context_));
  auto turn = NewTurn();
  turn->since += std::chrono::hours(1);  // Its patience does not end.
  turn->awaits_copy = true;
  sharing_->turns.Add(std::move(turn));
  auto another = NewTurn();
  sharing_->turns.Add(std::move(another));
  EXPECT_EQ(AwaitOver().size(), 1u) << "others do not wait for it";
  EXPECT_EQ(launches, 1) << "as it is";
  loaded_.count_down();
  const auto over = AwaitOver();
  EXPECT_EQ(over[0]->result, CUDA_SUCCESS);
  EXPECT_NE(over[0]->sliced, nullptr);
  EXPECT_EQ(launches, 1 + static_cast<int>(kBlocks));
}

TEST_F(TurnsTest, PatienceWithTheCopyEnds) {
  EXPECT_EQ(sharing_->sliced.Find(kernel_, context_, /*wait=*/false), nullptr);
  auto turn = NewTurn();
  turn->since -= std::chrono::hours(1);
  turn->awaits_copy = true;
  sharing_->turns.Add(std::move(turn));
  const auto over = AwaitOver();
  EXPECT_EQ(over[0]->sliced, nullptr);
  EXPECT_EQ(launches, 1);
  loaded_.count_down();
}

TEST_F(TurnsTest, TheFirstPartOfAnUnknownKernelIsMeasuredBeforeTheSecond) {
  settings_.size = 0;
  settings_.beta = 1;  // 128 * 1 / 2 tenants = 64 threads.
  table_.cuEventQuery = LookAtEnd;
  table_.cuEventSynchronize = AwaitEnd;
  table_.cuEventElapsedTime = TakesAMicrosecond;
  loaded_.count_down();
  auto turn = NewTurn();
  turn->launch.block = {64, 1, 1};
  ASSERT_TRUE(sharing_->sizes.IsLong(*kernel_, turn->launch));
  turn->sliced = sharing_->sliced.Find(kernel_, context_, /*wait=*/true);
  ASSERT_NE(turn->sliced, nullptr);
  sharing_->turns.Add(std::move(turn));
  while (launches == 0) std::this_thread::yield();
  EXPECT_EQ(last_blocks, 1u);
  // When this one has had its turn the other one's had come before.
  sharing_->turns.Add(NewTurn());
  EXPECT_EQ(AwaitOver()[0]->sliced, nullptr);
  EXPECT_EQ(launches, 2);
  ended_.count_down();
  EXPECT_NE(AwaitOver()[0]->sliced, nullptr);
  EXPECT_EQ(launches, 3);
  EXPECT_EQ(last_blocks, kBlocks - 1) << "as many as a unit has room for";
}

}  // namespace
}  // namespace hawser::server::cuda_backend
