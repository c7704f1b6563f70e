// SPDX-License-Identifier: Apache-2.0
// A token bucket with injected time: for log lines that strangers can cause.
#ifndef HAWSER_SERVER_RATE_LIMITER_H_
#define HAWSER_SERVER_RATE_LIMITER_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace hawser::server {

/// Threading: none; the owner's lock or thread guards it.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  RateLimiter(double burst, double per_second) : burst_(burst), per_second_(per_second), tokens_(burst) {}

  struct Verdict {
    bool allowed = false;
    uint64_t suppressed = 0;  ///< How many were refused since the last one that was allowed.
  };
  Verdict Ask(Clock::time_point now) {
    if (last_ != Clock::time_point()) {
      const double seconds = std::chrono::duration<double>(now - last_).count();
      tokens_ = std::min(burst_, tokens_ + std::max(0.0, seconds) * per_second_);
    }
    last_ = now;
    if (tokens_ < 1) {
      ++suppressed_;
      return {};
    }
    tokens_ -= 1;
    return {true, std::exchange(suppressed_, 0)};
  }

 private:
  const double burst_;
  const double per_second_;
  double tokens_;
  Clock::time_point last_;
  uint64_t suppressed_ = 0;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_RATE_LIMITER_H_
