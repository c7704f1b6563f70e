// SPDX-License-Identifier: Apache-2.0
// Launches behind a gate, and what waits behind them.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

using cuda::Handle;

/// A gate that a test opens and shuts.
class TestGate final : public LaunchGate {
 public:
  bool BeginOpen() override { return alone; }
  void SetDrain(std::function<void()> drain_function) override { drain = std::move(drain_function); }
  uint64_t OpenCapNs() const override { return 10'000'000; }
  uint64_t UnitNs() const override { return alone ? 0 : 1'000'000; }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t estimated_ns) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++asked;
    estimates.push_back(estimated_ns);
    if (shut_) return false;
    ++entered;
    return true;
  }
  bool Enter(uint64_t) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !shut_ || cancelled_; });
    if (cancelled_) return false;
    ++entered;
    return true;
  }
  void Leave(uint64_t, uint64_t) override { ++left; }
  void Charge(uint64_t) override { ++charged; }
  void Cancel() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  void Shut(bool shut) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = shut;
    changed_.notify_all();
  }

  std::atomic<bool> alone{false};
  std::atomic<int> asked{0}, entered{0}, left{0}, charged{0};
  std::function<void()> drain;
  std::vector<uint64_t> estimates;  ///< Of who asked without waiting; to be read when they have left.

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  bool cancelled_ = false;
};

struct AddParameters {
  uint64_t pointer = 0;
  uint32_t count = 0;
  uint32_t value = 0;
  wire::Bytes bytes() const { return wire::AsBytes(this, sizeof(*this)); }
};

/// A session behind a gate, with a context, a kernel and two streams.
class CudaGated : public ::testing::Test {
 protected:
  static Session::Options Behind(LaunchGate* gate) {
    Session::Options options;
    options.gate = gate;
    return options;
  }

  wire::Id NonBlocking() {
    cuda::CreateStream create;
    create.stream = session.NewId(Handle::kStream);
    create.context = context;
    create.flags = CU_STREAM_NON_BLOCKING;
    session.Do(create);
    return create.stream;
  }
  void Clear(uint64_t address, wire::Id stream) {
    cuda::Memset set;
    set.context = context;
    set.stream = stream;
    set.address = address;
    set.element = 4;
    set.width = 4;
    set.height = 1;
    session.Do(set);
  }
  int32_t Add(uint64_t address, uint32_t value, wire::Id stream) {
    return session.Launch(context, stream, add, AddParameters{address, 4, value}.bytes());
  }
  /// A write to `a` that waits in a stream for what is before it, and whose data has come.
  cuda::Write WriteBehind(wire::Id stream, uint32_t value) {
    cuda::Write write;
    write.context = context;
    write.stream = stream;
    write.address = a;
    write.size = sizeof(value);
    write.transfer = 77;
    session.Do(write);
    EXPECT_TRUE(session.last().deferred);
    const wire::Bytes data = wire::AsBytes(&value, sizeof(value));
    session.bulk_in.Deliver(write.transfer, {data.begin(), data.end()});
    return write;
  }
  uint64_t StartRead(uint64_t address, wire::Id stream) {
    cuda::Read read;
    read.context = context;
    read.stream = stream;
    read.address = address;
    read.size = 4;
    return session.Start(read);
  }
  uint32_t Value(uint64_t seq) {
    const auto reply = session.Answer<cuda::ReadReply>(seq);
    uint32_t value = 0;
    if (reply->data.size() == sizeof(value)) std::memcpy(&value, reply->data.data(), sizeof(value));
    return value;
  }
  void Record(wire::Id event, wire::Id stream) {
    cuda::RecordEvent record;
    record.context = context;
    record.stream = stream;
    record.event = event;
    session.Do(record);
  }
  /// Alone: a launch that does not end, one behind it, which adds 5, and one that waits for them, which adds 6.
  void AloneWithOneThatWaits() {
    gate.alone = true;
    Clear(a, one);
    EXPECT_EQ(session.Launch(context, one, session.NewFunction(module, "block")), 0);
    EXPECT_EQ(Add(a, 5, one), 0);
    EXPECT_EQ(Add(a, 6, one), 0);
    EXPECT_TRUE(session.last().deferred);
  }
  /// All units have left the gate.
  void ExpectAllLeft() {
    EXPECT_EQ(session.Synchronize(context, one), 0);
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    while (gate.left != gate.entered && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    EXPECT_EQ(gate.left, gate.entered);
  }

  TestGate gate;
  Session session{Behind(&gate)};
  const wire::Id context = session.NewContext();
  const wire::Id module = session.NewModule(context);
  const wire::Id add = session.NewFunction(module, "add");
  const wire::Id one = NonBlocking(), two = NonBlocking();
  const uint64_t a = session.NewMemory(context, 64), b = session.NewMemory(context, 64);
};

TEST_F(CudaGated, AloneNobodyIsAsked) {
  gate.alone = true;
  Clear(a, one);
  EXPECT_EQ(Add(a, 5, one), 0);
  EXPECT_FALSE(session.last().deferred);
  EXPECT_EQ(Value(StartRead(a, one)), 5u);
  EXPECT_EQ(gate.asked, 0);
}

TEST_F(CudaGated, AnOpenGateIsEnteredAndLeft) {
  Clear(a, one);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Add(a, 1, one), 0);
  EXPECT_EQ(Value(StartRead(a, one)), 10u);
  ExpectAllLeft();
  EXPECT_EQ(gate.entered, 10);
}

TEST_F(CudaGated, AShutGateHoldsItsStreamAndNoOther) {
  Clear(a, one);
  gate.Shut(true);
  EXPECT_EQ(Add(a, 7, one), 0);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_EQ(Add(a, 1, one), 0);
  EXPECT_TRUE(session.last().deferred);
  const uint64_t held = StartRead(a, one);
  // The other one goes on.
  Clear(b, two);
  EXPECT_EQ(Value(StartRead(b, two)), 0u);
  EXPECT_EQ(session.Synchronize(context, two), 0);
  EXPECT_FALSE(session.Answered(held));
  // A question is answered.
  cuda::WatchStream watch;
  watch.context = context;
  watch.stream = one;
  watch.ticket = 42;
  EXPECT_EQ(session.Ask<cuda::Status>(watch)->status, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(gate.entered, 0);
  gate.Shut(false);
  EXPECT_EQ(Value(held), 8u);
  const auto over = session.AwaitNotice<cuda::Completed>();
  EXPECT_EQ(over->ticket, 42u);
  EXPECT_EQ(over->status, 0);
  ExpectAllLeft();
}

TEST_F(CudaGated, EventsKeepTheirOrder) {
  cuda::CreateEvent create;
  create.event = session.NewId(Handle::kEvent);
  create.context = context;
  session.Do(create);
  Clear(a, one);
  Record(create.event, one);
  gate.Shut(true);
  Add(a, 7, one);
  Record(create.event, one);  // Anew.
  cuda::WatchEvent watch;
  watch.event = create.event;
  watch.ticket = 9;
  EXPECT_EQ(session.Ask<cuda::Status>(watch)->status, CUDA_ERROR_NOT_READY);
  cuda::WaitEvent wait;
  wait.context = context;
  wait.stream = two;
  wait.event = create.event;
  session.Do(wait);
  const uint64_t read = StartRead(a, two);
  // Its name may end before.
  cuda::Release release;
  release.object = create.event;
  session.Do(release);
  EXPECT_TRUE(session.last().deferred);
  gate.Shut(false);
  EXPECT_EQ(Value(read), 7u);
  EXPECT_EQ(session.AwaitNotice<cuda::Completed>()->ticket, 9u);
}

TEST_F(CudaGated, TheDefaultStreamWaits) {
  const wire::Id blocking = session.NewStream(context);
  Clear(a, blocking);
  gate.Shut(true);
  Add(a, 3, blocking);
  const uint64_t read = StartRead(a, {});
  EXPECT_TRUE(session.last().deferred);
  Clear(b, one);
  EXPECT_FALSE(session.last().deferred);
  gate.Shut(false);
  EXPECT_EQ(Value(read), 3u);
}

TEST_F(CudaGated, MemoryStaysUntilItsLaunchWasMade) {
  Clear(a, one);
  gate.Shut(true);
  Add(a, 3, one);
  const uint64_t before = session.driver.allocated();
  cuda::Free free;
  free.context = context;
  free.address = a;
  session.Do(free);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_EQ(session.driver.allocated(), before);
  gate.Shut(false);
  EXPECT_EQ(session.Synchronize(context, one), 0);
  // By another thread than the executor.
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (session.driver.allocated() == before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_LT(session.driver.allocated(), before);
}

TEST_F(CudaGated, DataThatIsOnItsWayIsTakenAtOnce) {
  Clear(a, one);
  gate.Shut(true);
  Add(a, 3, one);
  WriteBehind(one, 1000);
  const uint64_t read = StartRead(a, one);
  gate.Shut(false);
  EXPECT_EQ(Value(read), 1000u);
}

TEST_F(CudaGated, DataOfAnotherCommandIsNotTakenForMore) {
  gate.Shut(true);
  Add(a, 3, one);
  const cuda::Write held = WriteBehind(one, 1000);
  // A guest that gives two commands one name: what is behind the four bytes is the server's.
  cuda::Write wild = held;
  wild.stream = NonBlocking();
  wild.address = session.NewMemory(context, 1 << 20);
  wild.size = 1 << 20;
  EXPECT_EQ(session.Do(wild), CUDA_ERROR_INVALID_VALUE);
  gate.Shut(false);
}

TEST_F(CudaGated, WhatWaitsTellsItsOutcomeLater) {
  gate.Shut(true);
  Add(a, 3, one);
  cuda::Memset foreign;
  foreign.context = context;
  foreign.stream = one;
  foreign.address = 0x1000;
  foreign.element = 1;
  foreign.width = 16;
  foreign.height = 1;
  const uint64_t seq = session.Start(foreign);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_TRUE(session.late.empty());
  gate.Shut(false);
  EXPECT_EQ(session.Synchronize(context, one), 0);
  ASSERT_EQ(session.late.count(seq), 1u);
  EXPECT_EQ(session.late[seq].status, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaGated, AUnitIsAskedForWhenItCouldRun) {
  Clear(a, one);
  cuda::EnqueueHostFunction function;
  function.context = context;
  function.stream = one;
  function.callback = 5;
  session.Do(function);
  // The gate is open, but the guest's function is before it.
  Add(a, 3, one);
  EXPECT_TRUE(session.last().deferred);
  const auto run = session.AwaitNotice<cuda::RunHostFunction>();
  EXPECT_EQ(run->callback, 5u);
  cuda::HostFunctionDone done;
  done.run = run->run;
  EXPECT_EQ(session.Do(done), 0);
  EXPECT_FALSE(session.last().deferred);
  EXPECT_EQ(Value(StartRead(a, one)), 3u);
  ExpectAllLeft();
}

TEST_F(CudaGated, StreamsThatWaitForEachOtherGoOn) {
  // `one` waits for a function of the guest, which waits for what the guest does in `two`; a launch in `one` and what
  // concerns everything are between. It is never asked to run, and given to the driver after a while all the same.
  Clear(a, one);
  cuda::EnqueueHostFunction function;
  function.context = context;
  function.stream = one;
  session.Do(function);
  Add(a, 3, one);
  cuda::SetContextFlags flags;
  flags.context = context;
  session.Do(flags);
  EXPECT_FALSE(session.last().deferred);
  const uint64_t read = StartRead(a, two);
  EXPECT_EQ(Value(read), 0u);
  cuda::HostFunctionDone done;
  done.run = session.AwaitNotice<cuda::RunHostFunction>()->run;
  session.Do(done);
  EXPECT_EQ(Value(StartRead(a, one)), 3u);
}

TEST_F(CudaGated, TheGateLearnsWhenWhatRanUnaskedIsOver) {
  gate.alone = true;
  const wire::Id block = session.NewFunction(module, "block");
  EXPECT_EQ(session.Launch(context, one, block), 0);
  std::atomic<bool> drained{false};
  std::thread thread([&] {
    gate.drain();
    drained = true;
  });
  // Everything before the kernel's end is too early.
  for (int i = 0; i < 20; ++i) {
    session.backend->Resume();
    std::this_thread::yield();
  }
  EXPECT_FALSE(drained);
  session.driver.Unblock();
  while (!drained) session.backend->Resume();
  thread.join();
}

TEST_F(CudaGated, ADrainWaitsForStreamsThatAreGone) {
  gate.alone = true;
  Clear(a, one);
  ASSERT_EQ(session.Launch(context, one, session.NewFunction(module, "block")), 0);
  ASSERT_EQ(Add(a, 5, one), 0);
  cuda::Release release;
  release.object = one;
  ASSERT_EQ(session.Do(release), 0);
  std::atomic<bool> drained{false};
  std::thread somebody_comes([&] {
    gate.drain();
    drained = true;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) session.backend->Resume();
  EXPECT_FALSE(drained);
  session.driver.Unblock();
  while (!drained) session.backend->Resume();
  somebody_comes.join();
}

TEST_F(CudaGated, ADrainTellsThatTheDeviceGoesOn) {
  gate.alone = true;
  Clear(a, one);
  const wire::Id block = session.NewFunction(module, "block");
  EXPECT_EQ(session.Launch(context, one, block), 0);
  EXPECT_EQ(Add(a, 5, one), 0);
  std::atomic<bool> drained{false};
  std::thread thread([&] {
    gate.drain();
    drained = true;
  });
  for (int i = 0; i < 20; ++i) {
    session.backend->Resume();
    std::this_thread::yield();
  }
  EXPECT_EQ(gate.charged, 0);
  session.driver.Unblock();
  while (!drained) session.backend->Resume();
  thread.join();
  EXPECT_EQ(gate.charged, 2);  // Of each launch that it saw end.
}

// What a launch waited for in vain goes on all the same: a drain tells so, and the next launch waits for it too.
TEST_F(CudaGated, WhatALaunchGaveUpOnStillCounts) {
  AloneWithOneThatWaits();
  const int before = session.driver.launches;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (session.driver.launches == before && std::chrono::steady_clock::now() < give_up) session.backend->Resume();
  ASSERT_EQ(session.driver.launches, before + 1);
  EXPECT_EQ(Add(a, 7, one), 0);
  EXPECT_TRUE(session.last().deferred);
  std::atomic<bool> drained{false};
  std::thread thread([&] {
    gate.drain();
    drained = true;
  });
  for (int i = 0; i < 20; ++i) {
    session.backend->Resume();
    std::this_thread::yield();
  }
  gate.alone = false;
  session.driver.Unblock();
  while (!drained) session.backend->Resume();
  thread.join();
  EXPECT_EQ(gate.charged, 3);
}

TEST_F(CudaGated, AloneALaunchWaitsWhileMuchIsUnderWay) {
  gate.alone = true;
  Clear(a, one);
  const wire::Id block = session.NewFunction(module, "block");
  EXPECT_EQ(session.Launch(context, one, block), 0);
  EXPECT_EQ(Add(a, 5, one), 0);
  EXPECT_FALSE(session.last().deferred);
  // Of kernels that are not known yet two may be under way.
  EXPECT_EQ(Add(a, 6, one), 0);
  EXPECT_TRUE(session.last().deferred);
  const uint64_t read = StartRead(a, one);
  EXPECT_TRUE(session.last().deferred);
  // Others go on.
  Clear(b, two);
  EXPECT_EQ(Add(b, 1, two), 0);
  EXPECT_FALSE(session.last().deferred);
  EXPECT_EQ(Value(StartRead(b, two)), 1u);
  EXPECT_FALSE(session.Answered(read));
  session.driver.Unblock();
  EXPECT_EQ(Value(read), 11u);
  EXPECT_EQ(gate.asked, 0);
}

TEST_F(CudaGated, WhatWaitedAloneAsksWhenSomebodyCame) {
  AloneWithOneThatWaits();
  gate.Shut(true);
  gate.alone = false;
  std::atomic<bool> drained{false};
  std::thread thread([&] {
    gate.drain();
    drained = true;
  });
  session.driver.Unblock();
  // What waits is no part of what is drained.
  while (!drained) session.backend->Resume();
  thread.join();
  const uint64_t read = StartRead(a, one);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_EQ(gate.entered, 0);
  gate.Shut(false);
  EXPECT_EQ(Value(read), 11u);
  EXPECT_EQ(gate.entered, 1);
  ExpectAllLeft();
}

TEST_F(CudaGated, ALaunchBehindWhatNeverEndsWaitsNoLongerThanOthers) {
  // Kernels that wait for what the guest does elsewhere, behind what concerns everything.
  gate.alone = true;
  Clear(a, one);
  const wire::Id block = session.NewFunction(module, "block");
  EXPECT_EQ(session.Launch(context, one, block), 0);
  EXPECT_EQ(session.Launch(context, one, block), 0);
  EXPECT_EQ(Add(a, 3, one), 0);
  EXPECT_TRUE(session.last().deferred);
  cuda::SetPeerAccess access;
  access.context = context;
  access.peer = context;
  access.enabled = 0;
  session.Do(access);
  EXPECT_TRUE(session.last().deferred);
  EXPECT_EQ(Value(StartRead(a, two)), 0u);
  session.driver.Unblock();
  EXPECT_EQ(Value(StartRead(a, one)), 3u);
}

TEST_F(CudaGated, WhoListensHearsOfKernelsAlsoWhenNobodyElseIsThere) {
  gate.alone = true;
  SessionStatsPage* const stats = UncountedSession();
  TraceReader reader;
  reader.SkipTo(stats->ring);
  Clear(a, one);
  Add(a, 1, one);
  stats->trace.store(TraceRing::Bit(TraceRingKind::kKernel));
  Add(a, 2, one);
  stats->trace.store(0);
  Add(a, 4, one);
  EXPECT_EQ(Value(StartRead(a, one)), 7u);
  std::vector<TraceRingEvent> events;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (events.empty() && std::chrono::steady_clock::now() < give_up) {
    stats->trace.store(TraceRing::Bit(TraceRingKind::kKernel));  // Also when its end is seen.
    (void)reader.Drain(stats->ring, [&](TraceRingEvent&& event) { events.push_back(std::move(event)); });
    if (events.empty()) Add(b, 1, two);
  }
  stats->trace.store(0);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].kind, TraceRingKind::kKernel);
  EXPECT_EQ(events[0].name, "add");
  EXPECT_LE(events[0].begin_ns, events[0].end_ns);
  EXPECT_EQ(gate.asked, 0);
}

TEST_F(CudaGated, ASessionEndsWhileALaunchWaits) {
  gate.Shut(true);
  Add(a, 3, one);
  StartRead(a, one);
  // The fixture's end must not wait for the gate.
}

TEST(CudaHistory, SpeedsAreKeptFromRunToRun) {
  char folder[] = "/tmp/hawser-split-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/history";
  ::setenv("HAWSER_CUDA_SPLIT_HISTORY", file.c_str(), 1);
  std::vector<uint64_t> first_estimates;
  for (int run = 0; run < 2; ++run) {
    TestGate gate;
    Session::Options options;
    options.gate = &gate;
    options.adjust = [](DriverTable* driver) {
      driver->cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
        *milliseconds = 5;
        return CUDA_SUCCESS;
      };
    };
    Session session(options);
    const wire::Id context = session.NewContext();
    const wire::Id add = session.NewFunction(session.NewModule(context), "add");
    const AddParameters parameters{session.NewMemory(context, 64), 4, 1};
    EXPECT_EQ(session.Launch(context, session.NewStream(context), add, parameters.bytes()), 0);
    EXPECT_EQ(session.Synchronize(context), 0);
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    while (gate.left == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    ASSERT_EQ(gate.left, 1);
    first_estimates.push_back(gate.estimates.at(0));
  }
  ::unsetenv("HAWSER_CUDA_SPLIT_HISTORY");
  EXPECT_EQ(first_estimates, (std::vector<uint64_t>{PartSizes::kUnknownNs, 5'000'000}));
  scheduler::KernelHistory history;
  EXPECT_TRUE(history.Load(file).ok());
  EXPECT_EQ(history.size(), 1u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
