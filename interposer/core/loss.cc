// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/loss.h"

#include <utility>

namespace hawser::guest {

bool Loss::Mark(std::string reason) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kAlive) return false;
  phase_ = Phase::kMarked;
  reason_ = std::move(reason);
  return true;
}

void Loss::TellOnce(const std::function<void(const std::string& reason)>& tell) {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kAlive) return;  // Not marked: nothing to tell.
  if (phase_ == Phase::kMarked) {
    phase_ = Phase::kTelling;
    const std::string reason = reason_;
    lock.unlock();
    tell(reason);
    lock.lock();
    phase_ = Phase::kTold;
    told_.notify_all();
    return;
  }
  while (phase_ != Phase::kTold) told_.wait(lock);
}

}  // namespace hawser::guest
