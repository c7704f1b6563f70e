// SPDX-License-Identifier: Apache-2.0
// A point in time until which somebody waits. Internal to wire/.
#ifndef HAWSER_WIRE_DEADLINE_H_
#define HAWSER_WIRE_DEADLINE_H_

#include <chrono>
#include <optional>

namespace hawser::wire {

/// Monotonic; "never" when made from no timeout. A timeout too large to add is "never" too.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::optional<std::chrono::nanoseconds> timeout) {
    if (!timeout) return;
    const Clock::time_point now = Clock::now();
    if (*timeout < Clock::time_point::max() - now) at_ = now + *timeout;
  }

  bool never() const { return at_ == Clock::time_point::max(); }
  bool Passed() const { return !never() && Clock::now() >= at_; }
  /// Time left, at least 0 and at most `most`.
  std::chrono::nanoseconds Left(std::chrono::nanoseconds most) const {
    if (never()) return most;
    const std::chrono::nanoseconds left = at_ - Clock::now();
    if (left.count() < 0) return std::chrono::nanoseconds(0);
    return left < most ? left : most;
  }

 private:
  Clock::time_point at_ = Clock::time_point::max();
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_DEADLINE_H_
