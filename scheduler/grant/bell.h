// SPDX-License-Identifier: Apache-2.0
// How one side wakes the other. The server implements it with a futex in shared memory, tests with a condition
// variable.
#ifndef HAWSER_SCHEDULER_GRANT_BELL_H_
#define HAWSER_SCHEDULER_GRANT_BELL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace hawser::scheduler {

/// An event count. To wait for a condition: take a ticket, look at the condition, and if it does not hold, wait with
/// the ticket: a ring after the ticket was taken ends the wait, so none is lost.
class Bell {
 public:
  virtual ~Bell() = default;
  /// Any thread. Cheap when nobody waits.
  virtual void Ring() = 0;
  virtual uint64_t Ticket() = 0;
  /// Until a ring after `ticket`, or `at_most` has passed; or, rarely, for no reason.
  virtual void Wait(uint64_t ticket, std::chrono::nanoseconds at_most) = 0;
};

/// Within one process.
class CondvarBell : public Bell {
 public:
  void Ring() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++rings_;
    }
    condition_.notify_all();
  }
  uint64_t Ticket() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return rings_;
  }
  void Wait(uint64_t ticket, std::chrono::nanoseconds at_most) override {
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait_for(lock, at_most, [&] { return rings_ != ticket; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  uint64_t rings_ = 0;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_BELL_H_
