// SPDX-License-Identifier: Apache-2.0
// What must hold for a guest whose worker or server is killed, wherever its threads are at that moment: each of them is
// told and comes back, no call that succeeded gave wrong bytes, and every callback that was accepted comes, once.
#ifndef HAWSER_TESTS_INTEGRATION_KILLED_GUEST_H_
#define HAWSER_TESTS_INTEGRATION_KILLED_GUEST_H_

#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hawser::test {

/// A callback that the API has accepted or is about to. Lives as long as the Outcome that gave it.
class Promised {
 public:
  Promised(std::string what, bool must) : what_(std::move(what)), must_(must) {}
  /// The callback is called.
  void Keep() { kept_.fetch_add(1); }
  /// The API did not accept it after all.
  void Withdraw() { must_ = false, may_ = false; }

  const std::string& what() const { return what_; }
  bool missing() const { return must_ && kept_.load() == 0; }
  bool wrong() const { return kept_.load() > (may_ ? 1 : 0); }

 private:
  const std::string what_;
  bool must_;        ///< It has to come.
  bool may_ = true;  ///< It must not come.
  std::atomic<int> kept_{0};
};

/// Any thread.
class Outcome {
 public:
  /// A call returned an error.
  void Told(int code) {
    std::lock_guard lock(mutex_);
    told_.insert(code);
  }
  /// A call succeeded and what it gave is wrong.
  void Wrong(const std::string& what) {
    std::lock_guard lock(mutex_);
    wrong_.push_back(what);
  }
  /// `must`: it comes even when there is an error (else it may be left out).
  Promised* Promise(const std::string& what, bool must = true) {
    std::lock_guard lock(mutex_);
    return &promises_.emplace_back(what, must);
  }
  /// When all threads have ended. Waits for the callbacks that still have to come, a minute at most. Says what was seen
  /// and returns the exit status: 0, no call failed; 2, some did; 1, something is wrong.
  int Report() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (Missing() != 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard lock(mutex_);
    for (const Promised& promised : promises_) {
      if (promised.missing()) wrong_.push_back(promised.what() + " was not called");
      if (promised.wrong()) wrong_.push_back(promised.what() + " was called too often");
    }
    printf("callbacks: %zu\ntold:", promises_.size());
    for (const int code : told_) printf(" %d", code);
    printf("\n");
    for (const std::string& what : wrong_) printf("wrong: %s\n", what.c_str());
    fflush(stdout);
    return !wrong_.empty() ? 1 : told_.empty() ? 0 : 2;
  }

 private:
  size_t Missing() {
    std::lock_guard lock(mutex_);
    size_t missing = 0;
    for (const Promised& promised : promises_) missing += promised.missing() ? 1 : 0;
    return missing;
  }

  std::mutex mutex_;
  std::set<int> told_;
  std::vector<std::string> wrong_;
  std::deque<Promised> promises_;
};

/// Calls round(0), round(1)... until one returns an error, which it tells, or the time is over.
template <typename Round>
void Repeat(Outcome* outcome, std::chrono::steady_clock::time_point end, const Round& round) {
  for (unsigned i = 0; std::chrono::steady_clock::now() < end; ++i) {
    if (const int code = static_cast<int>(round(i)); code != 0) return outcome->Told(code);
  }
}

}  // namespace hawser::test

#endif  // HAWSER_TESTS_INTEGRATION_KILLED_GUEST_H_
