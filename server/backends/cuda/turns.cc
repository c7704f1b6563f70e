// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/turns.h"

#include <algorithm>
#include <utility>

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
             std::function<void()> wake)
    : driver_(driver), gate_(gate), units_(units), sizes_(sizes), sliced_(sliced), wake_(std::move(wake)) {}

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
  if (sliced_->IsMaking(*turn.kernel, context) && std::chrono::steady_clock::now() - turn.since <= kPatience) {
    return false;
  }
  turn.awaits_copy = false;
  turn.sliced = sliced_->Made(*turn.kernel, context);
  if (turn.sliced != nullptr && turn.launch.parameters.size() < turn.sliced->layout.own_bytes) turn.sliced = nullptr;
  return true;
}

bool Turns::MayRun(Turn& turn, bool* late) {
  *late = false;
  if (!HasCopy(turn)) return false;
  if (turn.pause != nullptr) {
    if (driver_->cuEventQuery(turn.pause->native()) != CUDA_ERROR_NOT_READY) return true;
    return turn.late = std::chrono::steady_clock::now() - turn.since > kPatience;
  }
  const uint32_t under_way = turn.under_way->load(std::memory_order_relaxed);
  if (under_way >= kUnderWay) return false;
  // A first group may take any time: the second part waits until it was measured.
  if (under_way != 0 && turn.sliced != nullptr && !sizes_->IsKnown(*turn.kernel)) return false;
  std::erase_if(turn.before, [&](const std::shared_ptr<StreamState>& stream) {
    return driver_->cuStreamQuery(stream->native()) != CUDA_ERROR_NOT_READY;
  });
  if (turn.before.empty()) return true;
  *late = std::chrono::steady_clock::now() - turn.since > kPatience;
  return *late;
}

bool Turns::Give(Turn& turn, uint64_t estimate, bool entered, bool late) {
  const uint64_t all = turn.launch.blocks();
  Unit unit;
  unit.timers = turn.timers;
  unit.entered = entered;
  unit.late = late;
  unit.kernel = turn.kernel;
  unit.track = turn.stream->id.index();
  unit.under_way = turn.under_way;
  unit.estimate = estimate;
  const CUstream stream = turn.stream->native();
  if (turn.sliced == nullptr) {
    unit.threads = all * turn.launch.block_threads();
    turn.result = units_->Run(std::move(unit), stream, [&] { return turn.launch.Run(*driver_, stream); });
    return true;
  }
  const uint64_t low = turn.next_block;
  const uint64_t high = low + sizes_->Blocks(*turn.kernel, turn.launch, all - low);
  unit.part = sizes_->FromTheGate();
  unit.threads = (high - low) * turn.launch.block_threads();
  turn.result = units_->Run(std::move(unit), stream,
                            [&] { return turn.launch.RunPart(*driver_, stream, *turn.sliced, low, high); });
  turn.next_block = high;
  return high == all || turn.result != CUDA_SUCCESS;
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

bool Turns::Enter(uint64_t estimate) {
  if (gate_->TryEnter(estimate)) return true;
  if (gate_->EarlyNs() != 0 && gate_->Ends()) {
    // That more will come is said before anything leaves.
    gate_->Announce(estimate);
    AwaitLeft();
  }
  return gate_->Enter(estimate);
}

bool Turns::Step(Turn& turn, bool late) {
  if (current_ != turn.timers->context()) {
    turn.result = driver_->cuCtxSetCurrent(turn.timers->context());
    if (turn.result != CUDA_SUCCESS) return true;
    current_ = turn.timers->context();
  }
  // What ran unasked.
  if (const uint64_t owed = owed_.exchange(0, std::memory_order_relaxed); owed != 0) {
    if (Enter(owed)) gate_->Leave(owed, owed);
  }
  const uint64_t all = turn.launch.blocks();
  uint64_t blocks = all;
  if (turn.sliced != nullptr) {
    blocks = sizes_->Blocks(*turn.kernel, turn.launch, all - turn.next_block);
    const bool measure = turn.sliced->way == cuda_slicing::Way::kGuard && all >= kManyBlocks &&
                         turn.kernel->empty_ns.load(std::memory_order_relaxed) == 0 && !late &&
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
      if (turn.result != CUDA_SUCCESS) return true;
    }
  }
  const uint64_t estimate = sizes_->Estimate(turn.kernel.get(), blocks * turn.launch.block_threads());
  if (!late && !Enter(estimate)) {
    turn.result = CUDA_ERROR_NOT_PERMITTED;  // The session ends.
    return true;
  }
  return Give(turn, estimate, !late, late);
}

bool Turns::Try(std::list<std::unique_ptr<Turn>>& turns) {
  for (auto at = turns.begin(); at != turns.end(); ++at) {
    Turn& turn = **at;
    bool late = false;
    if (driver_->cuCtxSetCurrent(turn.timers->context()) == CUDA_SUCCESS) current_ = turn.timers->context();
    if (!MayRun(turn, &late)) continue;
    const bool over = turn.pause != nullptr || Step(turn, late);
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

void Turns::Thread() {
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
      const auto something = [&] { return stop_ || !added_.empty() || units_over_ != seen; };
      if (turns.empty()) {
        changed_.wait(lock, [&] { return stop_ || !added_.empty(); });
      } else if (!something()) {
        const bool looks =
            std::any_of(turns.begin(), turns.end(), [](const auto& turn) { return !turn->before.empty(); });
        const bool pauses = std::any_of(turns.begin(), turns.end(),
                                        [](const auto& turn) { return turn->pause != nullptr || turn->awaits_copy; });
        if (looks || pauses) {
          changed_.wait_for(lock, looks ? kLook : kPauseLook, something);
        } else {
          changed_.wait(lock, something);
        }
      }
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
