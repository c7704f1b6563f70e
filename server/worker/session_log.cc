// SPDX-License-Identifier: Apache-2.0
#include "server/worker/session_log.h"

#include <unistd.h>

#include "server/worker_settings.h"

namespace hawser::server {

void SessionLog::Write(std::string_view level, const std::string& text) {
  std::lock_guard lock(mutex_);
  const RateLimiter::Verdict verdict = limiter_.Ask(RateLimiter::Clock::now());
  if (!verdict.allowed) return;
  std::string line;
  if (verdict.suppressed > 0) {
    line = "warning: " + std::to_string(verdict.suppressed) + " lines were left out\n";
  }
  constexpr size_t kMaxText = 2000;
  line.append(level).append(": ").append(OneLine(std::string_view(text).substr(0, kMaxText))).append("\n");
  (void)!::write(fd_, line.data(), line.size());
}

}  // namespace hawser::server
