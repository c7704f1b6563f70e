// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/callback_thread.h"

#include <utility>

#include "interposer/core/own_thread.h"

namespace hawser::guest {

void CallbackThread::Post(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(function));
  if (!started_) started_ = StartThread(name_, kDefaultStack, &Run, this);
  wake_.notify_one();
}

void CallbackThread::Main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue_.empty()) wake_.wait(lock);
    std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    function();
    function = nullptr;  // What it holds ends before the next one runs, and without the lock.
    if (abandoned_.load(std::memory_order_acquire)) return;
    lock.lock();
  }
}

}  // namespace hawser::guest
