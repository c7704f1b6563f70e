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
/// How often at most the history is written.
constexpr std::chrono::milliseconds kBetweenSaves{200};
/// Longer estimates are no help, and sums of them would not fit into a time.
constexpr uint64_t kMostEstimateNs = uint64_t{1} << 40;

std::chrono::nanoseconds EstimateOf(const Unit& unit) {
  return std::chrono::nanoseconds(std::min(unit.estimate, kMostEstimateNs));
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
    unit.run_at = Unit::Clock::now();
    const auto begins = units_.empty() ? unit.run_at : std::max(unit.run_at, units_.back().ends_about);
    unit.ends_about = begins + EstimateOf(unit);
    units_.push_back(std::move(unit));
    if (!thread_.joinable()) thread_ = std::thread([this] { Thread(); });
  }
  changed_.notify_all();
  return CUDA_SUCCESS;
}

void Units::Leave(const Unit& unit, uint64_t bill) {
  bool left_early = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    units_.front().over = true;
    left_early = units_.front().left_early;
    if (units_.size() > 1) {
      // The next one begins where this one has ended.
      Unit& next = units_[1];
      next.ends_about = std::max(next.run_at, Unit::Clock::now()) + EstimateOf(next);
    }
  }
  if (!unit.entered) return;
  if (left_early) {
    gate_->LeaveLate(unit.asked, bill);
  } else {
    gate_->Leave(unit.asked, bill);
  }
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

void Units::Finish(Unit& unit) {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < kLooks; ++i) {
    result = driver_->cuEventQuery(unit.end);
    if (result != CUDA_ERROR_NOT_READY) break;
    ::sched_yield();
  }
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) result = driver_->cuEventSynchronize(unit.end);
  const uint64_t now = TraceRing::Now();
  const bool good = result == CUDA_SUCCESS;
  const uint64_t length = good ? ElapsedNs(*driver_, unit.begin, unit.end) : 0;
  // Units of two streams may overlap. What was billed already is not billed again.
  uint64_t bill = length;
  if (good && last_.timers == unit.timers) bill = std::min(length, ElapsedNs(*driver_, last_.end, unit.end));
  Leave(unit, bill);
  if (unit.late && owed_) owed_(bill);
  if (unit.kernel != nullptr && length != 0) Learn(unit, length);
  if (good && unit.blocks == 0 && TraceRing::Wants(stats_->trace, TraceRingKind::kKernel)) {
    const std::string_view name = unit.kernel != nullptr ? std::string_view(unit.kernel->name) : "kernel";
    stats_->ring.Record(TraceRingKind::kKernel, unit.track, now - std::min(now, length), now, name);
  }
  unit.timers->Return(unit.begin);
  if (last_.timers != nullptr) last_.timers->Return(last_.end);
  last_ = Unit();
  last_.timers = unit.timers;
  last_.end = unit.end;
  if (unit.under_way != nullptr) unit.under_way->fetch_sub(1, std::memory_order_relaxed);
}

void Units::Thread() {
  (void)wire::TakeShortSlices();
  // What is done here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  CUcontext current = nullptr;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto something = [&] { return stop_ || !units_.empty(); };
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
    Unit unit = units_.front();
    lock.unlock();
    const CUcontext context = unit.timers->context();
    if (current != context && driver_->cuCtxSetCurrent(context) == CUDA_SUCCESS) current = context;
    Finish(unit);
    if (over_) over_();
    lock.lock();
    units_.pop_front();
    // Nothing overlaps with it any more; and its context may end from now on.
    if (units_.empty() || units_.front().timers != last_.timers) {
      last_.timers->Return(last_.end);
      last_ = Unit();
    }
    changed_.notify_all();
  }
}

void Units::Save() {
  if (file_.empty() || !history_->changed()) return;
  if (const wire::Status status = history_->Save(file_); !status.ok()) log_("warning", status.text());
}

void Units::Drain(CUcontext context) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    return std::none_of(units_.begin(), units_.end(),
                        [&](const Unit& unit) { return unit.timers->context() == context; });
  });
}

}  // namespace hawser::server::cuda_backend
