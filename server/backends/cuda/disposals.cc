// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/disposals.h"

namespace hawser::server::cuda_backend {

Disposals::~Disposals() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Disposals::Add(CUcontext context, std::function<void()> free) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace_back(context, std::move(free));
    if (!thread_.joinable()) thread_ = std::thread([this] { Thread(); });
  }
  changed_.notify_all();
}

void Disposals::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
}

bool Disposals::DrainFor(std::chrono::milliseconds longest) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto all_freed = [&] { return waiting_.empty() && !busy_; };
  if (in_vain_ == freed_) return all_freed();
  if (changed_.wait_for(lock, longest, all_freed)) return true;
  in_vain_ = freed_;
  return false;
}

void Disposals::Thread() {
  // What is freed here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto [context, free] = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    if (context != nullptr) (void)driver_->cuCtxSetCurrent(context);
    free();
    free = nullptr;
    lock.lock();
    busy_ = false;
    ++freed_;
    changed_.notify_all();
  }
}

}  // namespace hawser::server::cuda_backend
