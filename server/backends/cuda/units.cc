// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/units.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/worker/early_leave.h"
#include "wire/short_slice.h"

namespace hawser::server::cuda_backend {
namespace {

/// Looks before the thread sleeps in the driver: short work is over by then.
constexpr int kLooks = 40;
/// Units that should be this short are looked at until they are over: to be woken takes as long as one of them, and the
/// device, which is given one or two of them ahead where a policy wants them short, would wait for the next.
constexpr uint64_t kShortNs = 300'000;
/// Between two looks at units of which nobody knows when they end, and at those beside them.
constexpr std::chrono::microseconds kBetweenLooks{200};
/// How often at most the history is written.
constexpr std::chrono::milliseconds kBetweenSaves{200};
/// Longer estimates are no help, and sums of them would not fit into a time.
constexpr uint64_t kMostEstimateNs = uint64_t{1} << 40;

std::chrono::nanoseconds Bounded(uint64_t estimate) {
  return std::chrono::nanoseconds(std::min(estimate, kMostEstimateNs));
}

}  // namespace

Units::~Units() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  Save();
}

void Units::GiveUp(Unit& unit) {
  if (unit.begin != nullptr) unit.timers->Return(unit.begin);
  if (unit.end != nullptr) unit.timers->Return(unit.end);
  if (unit.entered) gate_->Leave(unit.asked, 0);
}

CUresult Units::Run(Unit unit, CUstream stream, const std::function<CUresult()>& launch) {
  CUresult result = unit.timers->Take(&unit.begin);
  if (result == CUDA_SUCCESS) result = unit.timers->Take(&unit.end);
  if (result == CUDA_SUCCESS) result = driver_->cuEventRecord(unit.begin, stream);
  if (result == CUDA_SUCCESS) result = launch();
  if (result != CUDA_SUCCESS) {
    GiveUp(unit);
    return result;
  }
  if (driver_->cuEventRecord(unit.end, stream) != CUDA_SUCCESS) {
    // The context broke under it. The launch itself was taken.
    GiveUp(unit);
    return CUDA_SUCCESS;
  }
  if (unit.under_way != nullptr) unit.under_way->fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (unit.entered) {
      unit.run_at = Unit::Clock::now();
      unit.behind = !units_.empty() && !units_.back().over && !units_.back().left_early;
      const bool alone = units_.empty() || units_.back().over;
      unit.begins_about = alone ? unit.run_at : std::max(unit.run_at, units_.back().ends_about);
      unit.ends_about = unit.begins_about + Bounded(unit.estimate);
      units_.push_back(std::move(unit));
    } else {
      unasked_.push_back(std::move(unit));
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Thread(); });
  }
  changed_.notify_all();
  return CUDA_SUCCESS;
}

bool Units::Leave(const Unit& unit, uint64_t bill, uint64_t length) {
  bool left_early = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Unit& front = units_.front();
    front.over = true;
    left_early = front.left_early;
    if (units_.size() > 1) {
      // The next one began where this one has ended; to hear of that took this thread a while.
      const auto now = Unit::Clock::now();
      const auto end = length != 0 ? std::min(now, front.begins_about + Bounded(length)) : now;
      Unit& next = units_[1];
      const bool alike = unit.kernel != nullptr && next.kernel == unit.kernel;
      const uint64_t rest = alike ? RevisedNs(next.estimate, unit.estimate, length) : next.estimate;
      next.begins_about = std::max(next.run_at, end);
      next.ends_about = next.begins_about + Bounded(rest);
    }
  }
  if (left_early) {
    gate_->LeaveLate(unit.asked, bill);
  } else {
    gate_->Leave(unit.asked, bill);
  }
  return left_early;
}

Unit* Units::Foreseen() {
  const size_t first = !units_.empty() && units_.front().over ? 1 : 0;
  if (units_.size() != first + 1) return nullptr;
  Unit& unit = units_[first];
  return unit.entered && unit.estimate != 0 && !unit.left_early ? &unit : nullptr;
}

Units::Rest Units::rest() {
  const uint64_t handover = gate_->EarlyNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  Rest rest;
  rest.units = static_cast<size_t>(std::count_if(
      units_.begin(), units_.end(), [](const Unit& unit) { return unit.entered && !unit.left_early && !unit.over; }));
  const Unit* const unit = Foreseen();
  if (unit == nullptr) return rest;
  const std::chrono::nanoseconds early(EarlyRestNs(handover, unit->estimate));
  if (early.count() != 0) rest.leaves_at = unit->ends_about - early;
  return rest;
}

void Units::LeaveEarly() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Unit* const unit = Foreseen();
  if (unit == nullptr || !gate_->Ends()) return;
  unit->left_early = true;
  gate_->LeaveEarly(unit->asked);
}

void Units::Learn(const Unit& unit, uint64_t length) {
  KernelFacts& kernel = *unit.kernel;
  if (kernel.graph) {
    kernel.last_ns.store(length, std::memory_order_relaxed);
    return;
  }
  if (unit.blocks != 0) {
    kernel.empty_ns.store(static_cast<float>(length) / static_cast<float>(unit.blocks));
    return;
  }
  if (unit.part) {
    alarms_->OnEnd(kernel.key, kernel.name, unit.expected, length);
    // That it waited says nothing of its speed.
    if (alarms_->IsRaised(kernel.key)) return;
  }
  history_->Learn(kernel.key, unit.threads, length);
}

CUresult Units::Await(const Unit& unit) {
  // One that takes much longer than it should is waited for like any other.
  const bool is_short = unit.part && unit.estimate != 0 && unit.estimate <= kShortNs;
  const auto until = is_short ? Unit::Clock::now() + 2 * Bounded(unit.estimate) : Unit::Clock::time_point();
  for (int i = 0; i < kLooks || (is_short && Unit::Clock::now() < until); ++i) {
    const CUresult result = driver_->cuEventQuery(unit.end);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
    if (result == CUDA_SUCCESS) break;
    ::sched_yield();
  }
  return driver_->cuEventSynchronize(unit.end);
}

void Units::Finish(Unit& unit, CUresult result) {
  const uint64_t now = TraceRing::Now();
  const bool good = result == CUDA_SUCCESS;
  const uint64_t length = good ? ElapsedNs(*driver_, unit.begin, unit.end) : 0;
  if (unit.entered) {
    // Units of two streams may overlap. What was billed already is not billed again.
    uint64_t bill = length;
    if (good && last_.timers == unit.timers) bill = std::min(length, ElapsedNs(*driver_, last_.end, unit.end));
    // The next tenant was on the device with it. The longer one before it shows better how fast the kernel is.
    if (Leave(unit, bill, length) && unit.behind) unit.threads = 0;
  } else if (unit.late && owed_) {
    owed_(length);
  }
  if (unit.kernel != nullptr && length != 0) Learn(unit, length);
  if (good && unit.blocks == 0 && TraceRing::Wants(stats_->trace, TraceRingKind::kKernel)) {
    const std::string_view name = unit.kernel != nullptr ? std::string_view(unit.kernel->name) : "kernel";
    stats_->ring.Record(TraceRingKind::kKernel, unit.track, now - std::min(now, length), now, name);
  }
  unit.timers->Return(unit.begin);
  if (unit.entered) {
    if (last_.timers != nullptr) last_.timers->Return(last_.end);
    last_ = Unit();
    last_.timers = unit.timers;
    last_.end = unit.end;
  } else {
    unit.timers->Return(unit.end);
  }
  if (unit.under_way != nullptr) unit.under_way->fetch_sub(1, std::memory_order_relaxed);
}

void Units::Thread() {
  (void)wire::TakeShortSlices();
  // What is done here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto something = [&] { return stop_ || !units_.empty() || !unasked_.empty(); };
    while (!something()) {
      if (file_.empty() || !history_->changed()) {
        changed_.wait(lock);
      } else if (changed_.wait_for(lock, kBetweenSaves) == std::cv_status::timeout) {
        lock.unlock();
        Save();
        lock.lock();
      }
    }
    if (stop_) return;
    if (unasked_.empty()) {
      FinishFirst(&units_, &lock, /*may_wait=*/true);
      continue;
    }
    // These may wait for the guest, and whoever has passed the gate must leave it meanwhile.
    bool found = !units_.empty() && FinishFirst(&units_, &lock, /*may_wait=*/false);
    found = FinishUnasked(&lock) || found;
    if (!found && !stop_) changed_.wait_for(lock, kBetweenLooks);
  }
}

void Units::Enter(const Unit& unit) {
  const CUcontext context = unit.timers->context();
  if (current_ != context && driver_->cuCtxSetCurrent(context) == CUDA_SUCCESS) current_ = context;
}

bool Units::FinishFirst(std::deque<Unit>* units, std::unique_lock<std::mutex>* lock, bool may_wait) {
  Unit unit = units->front();
  lock->unlock();
  Enter(unit);
  const CUresult result = may_wait ? Await(unit) : driver_->cuEventQuery(unit.end);
  const bool over = may_wait || result != CUDA_ERROR_NOT_READY;
  if (over) {
    Finish(unit, result);
    if (over_) over_();
  }
  lock->lock();
  if (!over) return false;
  units->pop_front();
  // Nothing overlaps with it any more; and its context may end from now on.
  if (last_.timers != nullptr && (units_.empty() || units_.front().timers != last_.timers)) {
    last_.timers->Return(last_.end);
    last_ = Unit();
  }
  changed_.notify_all();
  return true;
}

bool Units::FinishUnasked(std::unique_lock<std::mutex>* lock) {
  // Each is looked at once: who is not over goes to the end. Run() adds to the end, too.
  bool found = false;
  for (size_t left = unasked_.size(); left != 0 && !unasked_.empty() && !stop_; --left) {
    if (FinishFirst(&unasked_, lock, /*may_wait=*/false)) {
      found = true;
    } else {
      unasked_.push_back(std::move(unasked_.front()));
      unasked_.pop_front();
    }
  }
  return found;
}

void Units::Save() {
  if (file_.empty() || !history_->changed()) return;
  if (const wire::Status status = history_->Save(file_); !status.ok()) log_("warning", status.text());
}

void Units::Drain(CUcontext context) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    const auto is_its = [&](const Unit& unit) { return unit.timers->context() == context; };
    return std::none_of(units_.begin(), units_.end(), is_its) && std::none_of(unasked_.begin(), unasked_.end(), is_its);
  });
}

}  // namespace hawser::server::cuda_backend
