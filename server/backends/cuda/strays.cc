// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/strays.h"

#include <algorithm>
#include <utility>

namespace hawser::server::cuda_backend {

void Strays::Add(Stray stray) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return;
    entries_.push_back({std::move(stray), next_++, false});
    if (!thread_.joinable()) thread_ = std::thread([this] { Thread(); });
  }
  changed_.notify_all();
}

void Strays::Forget(CUcontext context) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.remove_if([&](const Entry& entry) { return entry.stray.context == context; });
  }
  changed_.notify_all();
}

void Strays::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Strays::State Strays::StateOf(const Entry& entry) const {
  const Stray& stray = entry.stray;
  (void)driver_->cuCtxSetCurrent(stray.context);
  if (driver_->cuEventQuery(stray.end->native()) != CUDA_ERROR_NOT_READY) return State::kOver;
  if (stray.begin != nullptr) {
    return driver_->cuEventQuery(stray.begin->native()) != CUDA_ERROR_NOT_READY ? State::kRuns : State::kWaits;
  }
  return stray.waits != nullptr && stray.waits() ? State::kWaits : State::kRuns;
}

Strays::Entry* Strays::Find(uint64_t number) {
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.number == number; });
  return at != entries_.end() ? &*at : nullptr;
}

uint64_t Strays::Look(uint64_t* running) {
  uint64_t owed = 0;
  *running = 0;
  entries_.remove_if([&](const Entry& entry) {
    const State state = StateOf(entry);
    if (state == State::kRuns && *running == 0) *running = entry.number;
    if (state != State::kOver) return false;
    const Stray& stray = entry.stray;
    if (stray.begin != nullptr && !entry.held) {
      owed += ElapsedNs(*driver_, stray.begin->native(), stray.end->native());
    }
    return true;
  });
  return owed;
}

void Strays::Thread() {
  using Clock = std::chrono::steady_clock;
  // What is done here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !entries_.empty(); });
    if (stop_) return;
    uint64_t running = 0;
    const uint64_t owed = Look(&running);
    if (owed != 0 || running != 0) {
      lock.unlock();
      if (!gate_->Enter(owed)) return;  // The session ends.
      const Clock::time_point since = Clock::now();
      lock.lock();
      // Held as long as it runs: whoever schedules sees that the device is this tenant's, and for how long.
      for (Entry* entry = Find(running); entry != nullptr && !stop_; entry = Find(running)) {
        entry->held = true;
        if (StateOf(*entry) != State::kRuns) break;
        changed_.wait_for(lock, kLook);
      }
      const auto held = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
      lock.unlock();
      gate_->Leave(owed, owed + (running != 0 ? static_cast<uint64_t>(held) : 0));
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kLook, [&] { return stop_; });
  }
}

}  // namespace hawser::server::cuda_backend
