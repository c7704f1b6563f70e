// SPDX-License-Identifier: Apache-2.0
// The end of a session: found by any thread, told once.
#ifndef HAWSER_INTERPOSER_CORE_LOSS_H_
#define HAWSER_INTERPOSER_CORE_LOSS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace hawser::guest {

/// Thread-safe.
class Loss {
 public:
  /// True for the first caller only, whose reason counts.
  bool Mark(std::string reason);
  /// Runs `tell` in the first thread that comes; the others return once it has run. Only after Mark().
  void TellOnce(const std::function<void(const std::string& reason)>& tell);

 private:
  enum class Phase : uint8_t { kAlive, kMarked, kTelling, kTold };

  std::mutex mutex_;
  std::condition_variable told_;
  Phase phase_ = Phase::kAlive;
  std::string reason_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_LOSS_H_
