// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/builder.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace hawser::server::ocl {
namespace {

/// The first pages of this thread's heap: as many as a build of a program that the driver knows takes.
void TouchHeap() {
  constexpr size_t kBytes = 1u << 20;
  constexpr size_t kPage = 4096;
  const std::unique_ptr<char[]> memory(new char[kBytes]);
  for (size_t at = 0; at < kBytes; at += kPage) static_cast<volatile char*>(memory.get())[at] = 0;
}

}  // namespace

Builder::~Builder() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Builder::Prepare() { Start(); }

void Builder::Start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void Builder::Post(std::function<void()> job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  Start();
  wake_.notify_one();
}

void Builder::Run() {
  TouchHeap();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace hawser::server::ocl
