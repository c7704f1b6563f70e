// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/turns.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "wire/short_slice.h"

namespace hawser::server::cuda_backend {
namespace {

/// Parts of one launch that are with the driver, so that the device finds the next one at once.
constexpr uint32_t kUnderWay = 2;
/// Between two looks at streams that are to become idle: nobody tells.
constexpr std::chrono::microseconds kLook{50};
/// The same for what is paused: milliseconds of work are behind it.
constexpr std::chrono::microseconds kPauseLook{500};
/// Kernels of fewer blocks are not worth to know what their empty blocks cost.
constexpr uint64_t kManyBlocks = 64;

}  // namespace

Turns::Turns(const DriverTable* driver, LaunchGate* gate, Units* units, const PartSizes* sizes, SlicedKernels* sliced,
             SplitAlarms* alarms, Strays* strays, std::function<void()> wake)
    : driver_(driver),
      gate_(gate),
      units_(units),
      sizes_(sizes),
      sliced_(sliced),
      alarms_(alarms),
      strays_(strays),
      wake_(std::move(wake)) {}

void Turns::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Turns::Add(std::unique_ptr<Turn> turn) {
  waiting_.fetch_add(1, std::memory_order_acq_rel);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    added_.push_back(std::move(turn));
    if (!thread_.joinable()) thread_ = std::thread([this] { Thread(); });
  }
  changed_.notify_all();
}

std::vector<std::unique_ptr<Turn>> Turns::TakeOver() {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_over_.store(false, std::memory_order_relaxed);
  return std::exchange(over_, {});
}

void Turns::OnUnitOver() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++units_over_;
  }
  changed_.notify_all();
}

bool Turns::HasCopy(Turn& turn) {
  if (!turn.awaits_copy) return true;
  const CUcontext context = turn.timers->context();
  if (sliced_->IsMaking(*turn.kernel, context, turn.launch.one_row()) &&
      std::chrono::steady_clock::now() - turn.since <= kPatience) {
    return false;
  }
  turn.awaits_copy = false;
  turn.sliced = sliced_->Made(*turn.kernel, context, turn.launch.one_row());
  if (turn.sliced != nullptr && turn.launch.parameters.size() < turn.sliced->layout.own_bytes) turn.sliced = nullptr;
  return true;
}

bool Turns::MayRun(Turn& turn, bool* late) {
  *late = false;
  if (!HasCopy(turn)) return false;
  if (turn.pause != nullptr) {
    if (driver_->cuEventQuery(turn.pause->native()) != CUDA_ERROR_NOT_READY) return true;
    return turn.late = std::chrono::steady_clock::now() - turn.since > turn.patience;
  }
  const uint32_t under_way = turn.under_way->load(std::memory_order_relaxed);
  if (under_way >= kUnderWay) return false;
  if (under_way != 0 && IsOnlyPart(turn)) return IsStuck(turn);
  turn.watch.reset();
  std::erase_if(turn.before, [&](const std::shared_ptr<StreamState>& stream) {
    return driver_->cuStreamQuery(stream->native()) != CUDA_ERROR_NOT_READY;
  });
  if (turn.before.empty()) return true;
  *late = std::chrono::steady_clock::now() - turn.since > kPatience;
  return *late;
}

uint64_t Turns::NextBlocks(const Turn& turn) const {
  const uint64_t left = turn.launch.blocks() - turn.next_block;
  if (alarms_->IsRaised(turn.kernel->key)) return std::min(left, KernelLaunch::kMostPartBlocks);
  return sizes_->Blocks(*turn.kernel, turn.launch, left);
}

bool Turns::IsOnlyPart(const Turn& turn) const {
  // A first group may take any time: the second part waits until it was measured.
  return turn.sliced != nullptr && (!sizes_->IsKnown(*turn.kernel) || !alarms_->IsTrusted(turn.kernel->key));
}

bool Turns::IsStuck(Turn& turn) {
  if (!turn.watch || turn.begun == nullptr) return false;
  const bool runs = driver_->cuEventQuery(turn.begun->native()) == CUDA_SUCCESS;
  return turn.watch->Look(runs, PartWatch::Clock::now());
}

std::shared_ptr<const PooledEvent> Turns::Mark(const Turn& turn) const {
  auto mark = PooledEvent::Take(turn.timers);
  if (mark != nullptr && driver_->cuEventRecord(mark->native(), turn.stream->native()) != CUDA_SUCCESS) mark = nullptr;
  return mark;
}

bool Turns::Give(Turn& turn, uint64_t estimate, uint64_t asked, bool entered, bool late) {
  const std::shared_ptr<const PooledEvent> begin = late ? Mark(turn) : nullptr;
  // Without marks it is paid for when it is over.
  const bool over = GiveUnit(turn, estimate, asked, entered, late && begin == nullptr);
  if (begin == nullptr || turn.result != CUDA_SUCCESS) return over;
  if (auto end = Mark(turn); end != nullptr) {
    strays_->Add({turn.timers->context(), begin, std::move(end), nullptr});
  }
  return over;
}

bool Turns::GiveUnit(Turn& turn, uint64_t estimate, uint64_t asked, bool entered, bool late) {
  const uint64_t all = turn.launch.blocks();
  const uint64_t blocks = turn.sliced == nullptr ? all : turn.part_blocks;
  Unit unit;
  unit.timers = turn.timers;
  unit.entered = entered;
  unit.late = late;
  unit.kernel = turn.kernel;
  unit.track = turn.stream->id.index();
  unit.under_way = turn.under_way;
  unit.threads = blocks * turn.launch.block_threads();
  unit.estimate = estimate;
  unit.asked = asked;
  const CUstream stream = turn.stream->native();
  if (turn.sliced == nullptr) {
    turn.result = units_->Run(std::move(unit), stream, [&] { return turn.launch.Run(*driver_, stream); });
    return true;
  }
  const uint64_t low = turn.next_block;
  const uint64_t high = low + blocks;
  unit.part = true;
  // Where the settings say how large parts are, how long they take is nobody's affair.
  if (sizes_->FromTheGate()) unit.expected = estimate;
  turn.watch.reset();
  if (IsOnlyPart(turn) && high != all) {
    turn.begun = PooledEvent::Take(turn.timers);
    if (turn.begun != nullptr && driver_->cuEventRecord(turn.begun->native(), stream) == CUDA_SUCCESS) {
      turn.watch.emplace(unit.expected);
    }
  }
  turn.result = units_->Run(std::move(unit), stream,
                            [&] { return turn.launch.RunPart(*driver_, stream, *turn.sliced, low, high); });
  turn.next_block = high;
  return high == all || turn.result != CUDA_SUCCESS;
}

void Turns::GiveRest(Turn& turn) {
  alarms_->OnStuck(turn.kernel->key, turn.kernel->name);
  CUstream beside = nullptr;
  turn.result = driver_->cuStreamCreateWithPriority(&beside, CU_STREAM_NON_BLOCKING, 0);
  if (turn.result != CUDA_SUCCESS) return;
  const uint64_t all = turn.launch.blocks();
  while (turn.next_block != all && turn.result == CUDA_SUCCESS) {
    const uint64_t low = turn.next_block, high = low + NextBlocks(turn);
    Unit unit;
    unit.timers = turn.timers;
    unit.late = true;  // The gate is not asked: a part of the launch has passed it, and waits for this.
    unit.kernel = turn.kernel;
    unit.track = turn.stream->id.index();
    unit.under_way = turn.under_way;
    unit.threads = (high - low) * turn.launch.block_threads();
    turn.result = units_->Run(std::move(unit), beside,
                              [&] { return turn.launch.RunPart(*driver_, beside, *turn.sliced, low, high); });
    turn.next_block = high;
  }
  // The guest's stream goes on when both are over.
  const std::shared_ptr<const PooledEvent> end = PooledEvent::Take(turn.timers);
  CUresult result = end != nullptr ? driver_->cuEventRecord(end->native(), beside) : CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) result = driver_->cuStreamWaitEvent(turn.stream->native(), end->native(), 0);
  if (turn.result == CUDA_SUCCESS) turn.result = result;
  (void)driver_->cuStreamDestroy(beside);  // What it still has to do goes on.
}

void Turns::AwaitLeft() {
  for (;;) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t seen = units_over_;
    if (stop_) return;
    lock.unlock();
    const Units::Rest rest = units_->rest();
    // Of one whose end cannot be foreseen the gate tells.
    if (rest.units == 0 || (rest.units == 1 && !rest.leaves_at)) return;
    lock.lock();
    const auto news = [&] { return stop_ || units_over_ != seen; };
    if (!rest.leaves_at) {
      changed_.wait(lock, news);
    } else if (!changed_.wait_until(lock, *rest.leaves_at, news)) {
      lock.unlock();
      return units_->LeaveEarly();
    }
  }
}

void Turns::AwaitEnd(uint64_t estimate) {
  if (gate_->EarlyNs() == 0 || !gate_->Ends()) return;
  // That more will come is said before anything leaves.
  gate_->Announce(estimate);
  AwaitLeft();
}

bool Turns::Enter(uint64_t estimate) {
  if (gate_->TryEnter(estimate)) return true;
  AwaitEnd(estimate);
  return gate_->Enter(estimate);
}

bool Turns::EnterPart(uint64_t* estimate, const LaunchGate::Resize& resize, bool may_wait) {
  if (gate_->TryEnterPart(estimate, resize)) return true;
  if (!may_wait) return false;
  AwaitEnd(*estimate);
  return gate_->EnterPart(estimate, resize);
}

Turns::Outcome Turns::Step(Turn& turn, bool late, bool may_wait) {
  if (current_ != turn.timers->context()) {
    turn.result = driver_->cuCtxSetCurrent(turn.timers->context());
    if (turn.result != CUDA_SUCCESS) return Outcome::kOver;
    current_ = turn.timers->context();
  }
  if (turn.watch) {
    GiveRest(turn);
    return Outcome::kOver;
  }
  // What ran unasked.
  if (may_wait) {
    const uint64_t owed = owed_.exchange(0, std::memory_order_relaxed);
    if (owed != 0 && Enter(owed)) gate_->Leave(owed, owed);
  }
  const uint64_t all = turn.launch.blocks();
  if (turn.sliced != nullptr) {
    turn.part_blocks = NextBlocks(turn);
    const bool measure = turn.sliced->way == cuda_slicing::Way::kGuard && all >= kManyBlocks &&
                         turn.kernel->empty_ns.load(std::memory_order_relaxed) == 0 && !late && may_wait &&
                         !turn.kernel->measures.exchange(true, std::memory_order_relaxed);
    if (measure && Enter(0)) {
      Unit unit;
      unit.timers = turn.timers;
      unit.entered = true;
      unit.kernel = turn.kernel;
      unit.blocks = all;
      const CUstream stream = turn.stream->native();
      turn.result = units_->Run(std::move(unit), stream,
                                [&] { return turn.launch.RunPart(*driver_, stream, *turn.sliced, 0, 0); });
      if (turn.result != CUDA_SUCCESS) return Outcome::kOver;
    }
  }
  const auto estimate = [&] {
    const uint64_t blocks = turn.sliced != nullptr ? turn.part_blocks : all;
    return sizes_->Estimate(turn.kernel.get(), blocks * turn.launch.block_threads());
  };
  uint64_t estimated = estimate();
  uint64_t asked = PartSizes::Asked(estimated);
  if (late) return Give(turn, estimated, asked, /*entered=*/false, late) ? Outcome::kOver : Outcome::kMore;
  bool entered = false;
  if (turn.sliced == nullptr) {
    entered = may_wait ? Enter(asked) : gate_->TryEnter(asked);
  } else {
    const auto resize = [&] {
      turn.part_blocks = NextBlocks(turn);
      estimated = estimate();
      return PartSizes::Asked(estimated);
    };
    entered = EnterPart(&asked, std::ref(resize), may_wait);
  }
  if (!entered) {
    if (!may_wait) return Outcome::kNotNow;
    turn.result = CUDA_ERROR_NOT_PERMITTED;  // The session ends.
    return Outcome::kOver;
  }
  return Give(turn, estimated, asked, /*entered=*/true, late) ? Outcome::kOver : Outcome::kMore;
}

bool Turns::Try(std::list<std::unique_ptr<Turn>>& turns) {
  for (auto at = turns.begin(); at != turns.end(); ++at) {
    Turn& turn = **at;
    bool late = false;
    if (driver_->cuCtxSetCurrent(turn.timers->context()) == CUDA_SUCCESS) current_ = turn.timers->context();
    if (!MayRun(turn, &late)) continue;
    // The gate may stay shut until a part that is watched has ended; and if it does not, this thread must see to it.
    const bool may_wait = std::none_of(turns.begin(), turns.end(),
                                       [&](const auto& other) { return other != *at && other->watch.has_value(); });
    const Outcome outcome = turn.pause != nullptr ? Outcome::kOver : Step(turn, late, may_wait);
    if (outcome == Outcome::kNotNow) continue;
    const bool over = outcome == Outcome::kOver;
    std::unique_ptr<Turn> taken = std::move(*at);
    turns.erase(at);
    if (!over) {
      turns.push_back(std::move(taken));  // The others have theirs first.
      return true;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_.push_back(std::move(taken));
      has_over_.store(true, std::memory_order_release);
      waiting_.fetch_sub(1, std::memory_order_acq_rel);
    }
    changed_.notify_all();
    wake_();
    return true;
  }
  return false;
}

void Turns::Sleep(std::unique_lock<std::mutex>* lock, const std::list<std::unique_ptr<Turn>>& turns, uint64_t seen) {
  const auto something = [&] { return stop_ || !added_.empty() || (!turns.empty() && units_over_ != seen); };
  const auto any = [&](auto&& has) {
    return std::any_of(turns.begin(), turns.end(), [&](const auto& turn) { return has(*turn); });
  };
  if (any([](const Turn& turn) { return !turn.before.empty(); })) {
    changed_.wait_for(*lock, kLook, something);
  } else if (any([](const Turn& turn) { return turn.pause != nullptr || turn.awaits_copy; })) {
    changed_.wait_for(*lock, kPauseLook, something);
  } else if (any([](const Turn& turn) { return turn.watch.has_value(); })) {
    changed_.wait_for(*lock, PartWatch::kLook, something);
  } else {
    changed_.wait(*lock, something);
  }
}

void Turns::Thread() {
  (void)wire::TakeShortSlices();
  (void)wire::TakeExactTimers();
  // What is done here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::list<std::unique_ptr<Turn>> turns;
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      Sleep(&lock, turns, seen);
      if (stop_) return;
      seen = units_over_;
      turns.splice(turns.end(), added_);
    }
    while (Try(turns)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
      turns.splice(turns.end(), added_);
    }
  }
}

}  // namespace hawser::server::cuda_backend
