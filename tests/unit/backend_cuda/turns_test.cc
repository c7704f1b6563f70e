// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/backends/cuda/sharing.h"
#include "server/session_stats.h"
#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr unsigned kBlocks = 8;
constexpr int kEnough = 1000;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr char kText[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 count, .param .u32 value)\n"
    "{\n.reg .b32 %r<3>;\n.reg .b64 %d<2>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %ctaid.x;\n"
    "st.global.u32 [%d1], %r1;\nret;\n}\n";

std::atomic<int> launches{0};
std::atomic<unsigned> last_blocks{0};       ///< Of the latest launch, in the first axis.
std::latch* loading = nullptr;              ///< Loading a module waits for it.
std::counting_semaphore<>* ends = nullptr;  ///< Units that may end, where a test says that.
std::atomic<CUevent> begun{nullptr};        ///< The first event that was recorded.
std::atomic<CUstream> last_stream{nullptr}, last_waiting{nullptr};
DriverTable fake_table;

CUresult CountLaunch(CUfunction, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     CUstream stream, void**, void**) {
  last_blocks = blocks;
  last_stream = stream;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult RecordAndRemember(CUevent event, CUstream stream) {
  CUevent none = nullptr;
  (void)begun.compare_exchange_strong(none, event);
  return fake_table.cuEventRecord(event, stream);
}

/// As of a part that the device has begun.
CUresult HasOnlyBegun(CUevent event) { return event == begun ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

CUresult RememberWaiting(CUstream stream, CUevent event, unsigned flags) {
  last_waiting = stream;
  return fake_table.cuStreamWaitEvent(stream, event, flags);
}

CUresult HasNotEnded(CUevent) { return CUDA_ERROR_NOT_READY; }

CUresult AwaitEnd(CUevent) {
  ends->acquire();
  return CUDA_SUCCESS;
}

CUresult TakesAMicrosecond(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0.001f;
  return CUDA_SUCCESS;
}

CUresult TakesASecond(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 1000;
  return CUDA_SUCCESS;
}

std::atomic<float> unit_ms{0};

CUresult TakesAsLongAsTheTestSays(float* milliseconds, CUevent, CUevent) {
  *milliseconds = unit_ms;
  return CUDA_SUCCESS;
}

CUresult LoadSlowly(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  loading->wait();
  return fake_table.cuModuleLoadDataEx(module, image, count, options, values);
}

/// A gate whose grant ends after some units: then it is entered by waiting, which begins the next grant. Writes down
/// what is said to it when that happens and from then on.
class TestGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return unit_ns; }
  uint64_t PieceNs(uint64_t grain_ns) const override {
    last_grain_ns = grain_ns;
    return piece_ns != 0 ? piece_ns.load() : UnitNs();
  }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t) override {
    if (piece_after_ns != 0) piece_ns = piece_after_ns.load();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (units > 0) --units;
    if (units == 0 && ended_) return false;
    ended_ = units == 0;
    return true;
  }
  bool Enter(uint64_t) override {
    Note("enter");
    if (unit_of_grant_ns != 0) unit_ns = unit_of_grant_ns.load();
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = false;
    units = kMany;
    return !cancelled_;
  }
  bool EnterPart(uint64_t* estimated_ns, const Resize& resize) override {
    const bool entered = Enter(*estimated_ns);
    *estimated_ns = resize();
    return entered;
  }
  void Leave(uint64_t asked, uint64_t used) override {
    left_for += asked;
    Note("leave " + std::to_string(used));
  }
  void Announce(uint64_t) override { Note("announce"); }
  uint64_t EarlyNs() const override { return early; }
  bool Ends() const override { return ends && ended_; }
  void LeaveEarly(uint64_t estimate) override { Note("early " + std::to_string(estimate)); }
  void LeaveLate(uint64_t estimate, uint64_t used) override {
    Note("late " + std::to_string(estimate) + " " + std::to_string(used));
  }
  void Cancel() override { cancelled_ = true; }

  /// So much was said; or only a failure takes so long.
  void Await(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return said_.size() >= count; }));
  }
  std::vector<std::string> said() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return said_;
  }

  std::atomic<uint64_t> left_for{0};  ///< Nanoseconds, all together: what those who left had asked for.
  static constexpr int kMany = 1000;
  int units = kMany;   ///< Of the grant.
  bool ends = true;    ///< Otherwise it is only refused for a moment.
  uint64_t early = 0;  ///< EarlyNs().
  std::atomic<uint64_t> unit_ns{1'000'000};
  std::atomic<uint64_t> unit_of_grant_ns{0};  ///< What that is from the first wait on; 0: the same.
  std::atomic<uint64_t> piece_ns{0};          ///< PieceNs(); 0: UnitNs().
  std::atomic<uint64_t> piece_after_ns{0};    ///< What that is once the gate was asked; 0: the same.
  mutable std::atomic<uint64_t> last_grain_ns{0};

 private:
  void Note(std::string what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    said_.push_back(std::move(what));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> said_;
  std::atomic<bool> ended_{false}, cancelled_{false};
};

class TurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    launches = 0;
    loading = &loaded_;
    ends = &ends_;
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
        &table_, &gate_, &settings_, "", 128, &stats_,
        [this](std::string_view level, const std::string& text) {
          const std::lock_guard<std::mutex> lock(log_mutex_);
          log_ += std::string(level) + " " + text + "\n";
        },
        [] {});
  }
  std::string log() {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    return log_;
  }

  void TearDown() override { ends_.release(kEnough); }

  /// Units end when a test says so, and take a microsecond.
  void HoldUnits() {
    table_.cuEventQuery = HasNotEnded;
    table_.cuEventSynchronize = AwaitEnd;
    table_.cuEventElapsedTime = TakesAMicrosecond;
  }

  std::unique_ptr<Turn> NewTurn(unsigned block_threads = 1) {
    auto turn = std::make_unique<Turn>();
    turn->stream = stream_;
    turn->timers = events_;
    turn->launch.grid = {kBlocks, 1, 1};
    turn->launch.block = {block_threads, 1, 1};
    turn->launch.parameters.resize(16);
    turn->kernel = kernel_;
    turn->since = std::chrono::steady_clock::now();
    return turn;
  }

  /// In parts, of a copy that is there.
  void AddSliced(std::unique_ptr<Turn> turn) {
    turn->sliced = sharing_->sliced.Find(kernel_, context_, /*one_row=*/true, /*wait=*/true);
    ASSERT_NE(turn->sliced, nullptr);
    sharing_->turns.Add(std::move(turn));
  }

  /// Behind what is under way.
  void RunUnit(uint64_t estimate) {
    Unit unit;
    unit.timers = events_;
    unit.entered = true;
    unit.kernel = kernel_;
    unit.estimate = unit.asked = estimate;
    ASSERT_EQ(sharing_->units.Run(std::move(unit), stream_->native(), [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  }

  /// When the last one should leave, once it is the only one.
  Unit::Clock::time_point AwaitForeseen() {
    for (;;) {
      const Units::Rest rest = sharing_->units.rest();
      if (rest.units == 1 && rest.leaves_at) return *rest.leaves_at;
      std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<Turn>> AwaitOver() {
    std::vector<std::unique_ptr<Turn>> over;
    while ((over = sharing_->turns.TakeOver()).empty()) std::this_thread::yield();
    return over;
  }

  std::latch loaded_{1};               // The builder's thread may look at it until it is joined.
  std::counting_semaphore<> ends_{0};  // Likewise the units'.
  std::mutex log_mutex_;
  std::string log_;
  FakeDriver driver_;
  DriverTable table_ = driver_.table();
  CUcontext context_ = nullptr;
  TestGate gate_;
  SplitSettings settings_;
  SessionStatsPage stats_;
  std::shared_ptr<StreamState> stream_;
  std::shared_ptr<EventPool> events_;
  std::shared_ptr<KernelFacts> kernel_;
  std::unique_ptr<Sharing> sharing_;
};

TEST_F(TurnsTest, ALaunchWaitsForTheCopyThatCanRunInParts) {
  EXPECT_EQ(sharing_->sliced.Find(kernel_, context_, /*one_row=*/true, /*wait=*/false), nullptr);
  ASSERT_TRUE(sharing_->sliced.IsMaking(*kernel_, context_, /*one_row=*/true));
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
  EXPECT_EQ(sharing_->sliced.Find(kernel_, context_, /*one_row=*/true, /*wait=*/false), nullptr);
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
  HoldUnits();
  loaded_.count_down();
  auto turn = NewTurn(64);
  ASSERT_TRUE(sharing_->sizes.IsLong(*kernel_, turn->launch));
  ASSERT_NO_FATAL_FAILURE(AddSliced(std::move(turn)));
  while (launches == 0) std::this_thread::yield();
  EXPECT_EQ(last_blocks, 1u);
  // When this one has had its turn the other one's had come before.
  sharing_->turns.Add(NewTurn());
  EXPECT_EQ(AwaitOver()[0]->sliced, nullptr);
  EXPECT_EQ(launches, 2);
  ends_.release(kEnough);
  EXPECT_NE(AwaitOver()[0]->sliced, nullptr);
  EXPECT_EQ(launches, 3);
  EXPECT_EQ(last_blocks, kBlocks - 1) << "as many as a unit has room for";
}

// The next piece of a slice is another length as soon as one has passed the gate.
TEST_F(TurnsTest, APartIsAsLongAsTheGateWasAskedFor) {
  settings_.size = 0;
  loaded_.count_down();
  HoldUnits();
  constexpr uint64_t kBlockNs = 1'000'000;
  sharing_->history.Learn(kernel_->key, 64, kBlockNs);
  gate_.piece_ns = 3 * kBlockNs;
  gate_.piece_after_ns = kBlockNs;
  ASSERT_NO_FATAL_FAILURE(AddSliced(NewTurn(64)));
  while (launches == 0) std::this_thread::yield();
  EXPECT_EQ(last_blocks, 3u);
  EXPECT_EQ(gate_.last_grain_ns, kBlockNs) << "the gate was told what the smallest part takes";
  ends_.release(kEnough);
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
}

// Before a worker's first grant nobody has told it what the policy wants.
TEST_F(TurnsTest, APartIsAsLongAsThePolicyWantsOnceThatIsKnown) {
  settings_.size = 0;
  loaded_.count_down();
  sharing_->history.Learn(kernel_->key, 64, 1'000'000);
  gate_.unit_of_grant_ns = LaunchGate::kWhole;
  gate_.units = 1;
  ASSERT_TRUE(gate_.TryEnter(0));  // The grant ends: the next one is waited for.
  ASSERT_NO_FATAL_FAILURE(AddSliced(NewTurn(64)));
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_EQ(launches, 1);
  EXPECT_EQ(last_blocks, kBlocks);
}

// A policy may give one tenant a long turn and then a short one.
TEST_F(TurnsTest, APartThatWaitedIsAsLongAsItsGrantWantsIt) {
  settings_.size = 0;
  loaded_.count_down();
  HoldUnits();
  constexpr uint64_t kBlockNs = 1'000'000;
  sharing_->history.Learn(kernel_->key, 64, kBlockNs);
  gate_.unit_ns = 3 * kBlockNs;
  gate_.unit_of_grant_ns = 2 * kBlockNs;
  gate_.units = 1;
  ASSERT_TRUE(gate_.TryEnter(0));  // The grant ends: the next one is waited for.
  ASSERT_NO_FATAL_FAILURE(AddSliced(NewTurn(64)));
  while (launches == 0) std::this_thread::yield();
  EXPECT_EQ(last_blocks, 2u);
  gate_.Await(1);
  const uint64_t before = gate_.left_for;
  ends_.release(1);
  gate_.Await(2);
  EXPECT_EQ(gate_.left_for - before, 2 * kBlockNs);  // As was entered in the end, not as was asked for at first.
  ends_.release(kEnough);
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
}

TEST_F(TurnsTest, WhenTheFirstPartDoesNotEndTheRestRunsBesideIt) {
  HoldUnits();
  begun = nullptr;
  last_waiting = nullptr;
  table_.cuEventRecord = RecordAndRemember;
  table_.cuEventQuery = HasOnlyBegun;
  table_.cuStreamWaitEvent = RememberWaiting;
  CUstream own = nullptr;
  ASSERT_EQ(table_.cuStreamCreateWithPriority(&own, 0, 0), CUDA_SUCCESS);
  stream_->owned = OwnedStream(&table_, own);
  loaded_.count_down();
  ASSERT_NO_FATAL_FAILURE(AddSliced(NewTurn()));
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_EQ(launches, 2);
  EXPECT_EQ(last_blocks, kBlocks - 1) << "all that was left";
  EXPECT_NE(last_stream, own) << "behind the first part it would never begin";
  EXPECT_EQ(last_waiting, own) << "what comes next in the guest's stream comes behind both";
  EXPECT_TRUE(sharing_->alarms.IsRaised(kernel_->key));
  EXPECT_EQ(stats_.split_alarms, 1u);
  EXPECT_THAT(log(), testing::HasSubstr("warning kernel 'add' is split no more: a part of it did not end"));
  ends_.release(kEnough);
  gate_.Await(1);  // The part leaves all the same.
}

TEST_F(TurnsTest, WhileAPartIsWatchedNobodyWaitsInTheGate) {
  HoldUnits();
  begun = nullptr;
  table_.cuEventRecord = RecordAndRemember;
  table_.cuEventQuery = HasOnlyBegun;
  loaded_.count_down();
  gate_.units = 1;
  ASSERT_NO_FATAL_FAILURE(AddSliced(NewTurn()));
  while (launches == 0) std::this_thread::yield();
  sharing_->turns.Add(NewTurn());  // The gate is shut for it: the grant has ended.
  std::vector<std::unique_ptr<Turn>> over = AwaitOver();
  if (over.size() == 1) over.push_back(std::move(AwaitOver()[0]));
  EXPECT_NE(over[0]->sliced, nullptr) << "the one that is stuck goes on first";
  EXPECT_EQ(over[1]->sliced, nullptr);
  EXPECT_EQ(launches, 3);
}

TEST_F(TurnsTest, PartsThatTakeFarTooLongEndTheSplitting) {
  settings_.size = 0;
  HoldUnits();
  table_.cuEventElapsedTime = TakesASecond;
  loaded_.count_down();
  // A block should take a microsecond, and a unit holds a thousand.
  auto turn = NewTurn(64);
  turn->launch.grid = {100'000, 1, 1};
  sharing_->history.Learn(kernel_->key, 64, 1000);
  ends_.release(kEnough);
  ASSERT_NO_FATAL_FAILURE(AddSliced(std::move(turn)));
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_EQ(launches, 4) << "three parts, then the rest";
  EXPECT_THAT(log(), testing::HasSubstr("is split no more: its parts took more than twenty times"));
}

/// The grant ends with the first units, which run until the test ends them.
class GrantsEndTest : public TurnsTest {
 protected:
  static constexpr uint64_t kHourNs = 3'600'000'000'000;

  void SetUp() override {
    TurnsTest::SetUp();
    HoldUnits();
  }
  /// Begins one unit after the other.
  void Run(int units) {
    gate_.units = units;
    for (int i = 0; i < units; ++i) {
      sharing_->turns.Add(NewTurn());
      ASSERT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
    }
  }
  /// Of a whole launch.
  uint64_t Estimate() const { return sharing_->sizes.Estimate(kernel_.get(), kBlocks); }
  void LearnFast() { sharing_->history.Learn(kernel_->key, 1, 100); }
  void LearnSlow() { sharing_->history.Learn(kernel_->key, 1, kHourNs); }
};

TEST_F(GrantsEndTest, TheLastUnitLeavesBeforeItEnds) {
  gate_.early = kHourNs;  // It is always about to end.
  LearnFast();
  const std::string estimate = std::to_string(Estimate());
  Run(1);
  sharing_->turns.Add(NewTurn());
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_THAT(gate_.said(), ElementsAre("announce", "early " + estimate, "enter"));
  ends_.release(2);
  gate_.Await(5);
  EXPECT_THAT(gate_.said(),
              ElementsAre("announce", "early " + estimate, "enter", "late " + estimate + " 1000", "leave 1000"));
}

TEST_F(GrantsEndTest, AUnitThatEndsBeforeItsTimeLeavesThen) {
  gate_.early = 1;
  LearnSlow();
  Run(1);
  sharing_->turns.Add(NewTurn());
  gate_.Await(1);
  ends_.release(1);
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_THAT(gate_.said(), ElementsAre("announce", "leave 1000", "enter"));
}

TEST_F(GrantsEndTest, AUnitLeavesAtItsEndWhereNothingSaysWhenThatIs) {
  gate_.early = kHourNs;
  Run(1);
  sharing_->turns.Add(NewTurn());
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_THAT(gate_.said(), ElementsAre("announce", "enter"));
}

TEST_F(GrantsEndTest, OfTwoUnitsTheSecondLeavesBeforeItEnds) {
  gate_.early = kHourNs;
  LearnFast();
  const std::string estimate = std::to_string(Estimate());
  Run(2);
  sharing_->turns.Add(NewTurn());
  gate_.Await(1);
  for (int i = 0; i < 100; ++i) std::this_thread::yield();  // Time for a mistake to show.
  EXPECT_THAT(gate_.said(), ElementsAre("announce"));
  ends_.release(1);
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  gate_.Await(4);
  EXPECT_THAT(gate_.said(), UnorderedElementsAre("announce", "leave 1000", "early " + estimate, "enter"));
}

// The next tenant was on the device with it.
TEST_F(GrantsEndTest, WhatLeftEarlyBehindAnotherTeachesNothing) {
  gate_.early = kHourNs;
  table_.cuEventElapsedTime = TakesAsLongAsTheTestSays;
  unit_ms = 0.001f;
  sharing_->history.Learn(kernel_->key, kBlocks, 1000);  // As long.
  const double rate = sharing_->history.Rate(kernel_->key);
  Run(2);
  sharing_->turns.Add(NewTurn());
  gate_.Await(1);
  ends_.release(1);
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  gate_.Await(4);  // The second one has left.
  unit_ms = 1000;
  ends_.release(1);
  gate_.Await(5);
  unit_ms = 0.001f;
  ends_.release(1);
  gate_.Await(6);  // The third one's: what the second one's end comes to is over.
  EXPECT_NEAR(sharing_->history.Rate(kernel_->key), rate, rate / 1000);
}

TEST_F(GrantsEndTest, NobodyLeavesAGrantThatGoesOn) {
  gate_.early = kHourNs;
  gate_.ends = false;
  LearnFast();
  Run(1);
  sharing_->turns.Add(NewTurn());
  EXPECT_EQ(AwaitOver()[0]->result, CUDA_SUCCESS);
  EXPECT_THAT(gate_.said(), ElementsAre("enter"));
}

TEST_F(GrantsEndTest, ASessionEndsBeforeAUnitThatNeverDoes) {
  gate_.early = 1;
  LearnSlow();
  Run(1);
  sharing_->turns.Add(NewTurn());
  gate_.Await(1);
  gate_.Cancel();
  sharing_->turns.Stop();
  EXPECT_EQ(launches, 1);
}

TEST_F(TurnsTest, APartBeginsWhereTheOneBeforeItEndedNotWhenThatIsHeardOf) {
  HoldUnits();
  gate_.early = 1;
  RunUnit(1'000);
  RunUnit(kSecondNs);
  const auto run = Unit::Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // By which it is heard of late.
  ends_.release(1);
  EXPECT_LE(AwaitForeseen(), run + std::chrono::nanoseconds(kSecondNs));
}

TEST_F(TurnsTest, APartIsAsSlowAsTheOneBeforeIt) {
  HoldUnits();
  gate_.early = 1;
  const auto run = Unit::Clock::now();
  RunUnit(500);  // It takes twice that.
  RunUnit(kSecondNs);
  ends_.release(1);
  EXPECT_GE(AwaitForeseen(), run + std::chrono::nanoseconds(2 * kSecondNs - 1));
}

TEST_F(TurnsTest, APartOfAnotherKernelIsNot) {
  HoldUnits();
  gate_.early = 1;
  RunUnit(500);
  kernel_ = std::make_shared<KernelFacts>();
  RunUnit(kSecondNs);
  const auto run = Unit::Clock::now();
  ends_.release(1);
  EXPECT_LE(AwaitForeseen(), run + std::chrono::nanoseconds(kSecondNs));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
