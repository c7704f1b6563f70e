// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/module_loader.h"

#include <utility>

namespace hawser::server::cuda_backend {

ModuleLoader::~ModuleLoader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ModuleLoader::Post(CUcontext context, std::function<void()> job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back({context, std::move(job)});
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_all();
}

void ModuleLoader::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void ModuleLoader::Run() {
  // What is loaded here is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    if (job.context != nullptr) (void)driver_->cuCtxSetCurrent(job.context);
    job.run();
    job.run = nullptr;  // What it owns ends before Drain() returns.
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace hawser::server::cuda_backend
