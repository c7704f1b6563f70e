// SPDX-License-Identifier: Apache-2.0
// Threads that make a random program's calls, one at a time. A call that does not come back is a fault with a name.
#ifndef HAWSER_TESTS_RANDOM_HANDS_H_
#define HAWSER_TESTS_RANDOM_HANDS_H_

#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hawser::random {

/// Used by one thread, which has the calls made.
class Hands {
 public:
  Hands(size_t count, const std::function<void()>& begin) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, i, begin] { Work(i, begin); });
  }
  ~Hands() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
  }
  Hands(const Hands&) = delete;
  Hands& operator=(const Hands&) = delete;

  size_t count() const { return threads_.size(); }

  /// `call` made by that thread. `what` is said when it has not come back within a minute, and the program ends.
  int Run(size_t who, const std::string& what, const std::function<int()>& call) {
    std::unique_lock lock(mutex_);
    who_ = who, call_ = &call;
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::seconds(limit_), [this] { return call_ == nullptr; })) {
      printf("wrong: a call has not come back: %s\n", what.c_str());
      fflush(stdout);
      if (getenv("HAWSER_RANDOM_STOP") != nullptr) std::this_thread::sleep_for(std::chrono::hours(1));
      abort();
    }
    return result_;
  }

 private:
  void Work(size_t self, const std::function<void()>& begin) {
    begin();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return done_ || (call_ != nullptr && who_ == self); });
      if (done_) return;
      const std::function<int()>* const call = call_;
      lock.unlock();
      const int result = (*call)();
      lock.lock();
      result_ = result, call_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<int()>* call_ = nullptr;
  size_t who_ = 0;
  int result_ = 0;
  const int limit_ = getenv("HAWSER_RANDOM_LIMIT") != nullptr ? atoi(getenv("HAWSER_RANDOM_LIMIT")) : 60;
  bool done_ = false;
  std::vector<std::jthread> threads_;
};

/// A thread that does things a little later, in their order, while others wait for them.
class Later {
 public:
  explicit Later(std::function<void()> begin) : thread_([this, begin = std::move(begin)] { Work(begin); }) {}
  ~Later() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void Do(std::chrono::microseconds delay, std::function<void()> what) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(delay, std::move(what));
    }
    changed_.notify_all();
  }

 private:
  void Work(const std::function<void()>& begin) {
    begin();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return done_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto [delay, what] = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      lock.unlock();
      std::this_thread::sleep_for(delay);
      what();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::chrono::microseconds, std::function<void()>>> waiting_;
  bool done_ = false;
  std::jthread thread_;
};

}  // namespace hawser::random

#endif  // HAWSER_TESTS_RANDOM_HANDS_H_
