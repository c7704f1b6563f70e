// SPDX-License-Identifier: Apache-2.0
// A worker's log: lines "level: text" on stderr, which hawserd reads, prefixes with session and
// tenant, and writes to its own log. At most kBurst lines at once and kPerSecond on average, so that
// a guest cannot flood it.
#ifndef HAWSER_SERVER_WORKER_SESSION_LOG_H_
#define HAWSER_SERVER_WORKER_SESSION_LOG_H_

#include <mutex>
#include <string>
#include <string_view>

#include "server/rate_limiter.h"

namespace hawser::server {

/// Thread-safe.
class SessionLog {
 public:
  explicit SessionLog(int fd = 2) : fd_(fd) {}
  /// `level`: "error", "warning", "info", "debug".
  void Write(std::string_view level, const std::string& text);

 private:
  static constexpr double kBurst = 100;
  static constexpr double kPerSecond = 10;

  const int fd_;
  std::mutex mutex_;
  RateLimiter limiter_{kBurst, kPerSecond};
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SESSION_LOG_H_
