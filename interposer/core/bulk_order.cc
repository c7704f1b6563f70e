// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/bulk_order.h"

#include <algorithm>

namespace hawser::guest {

void BulkOrder::Announce(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  announced_.push_back(transfer);
}

bool BulkOrder::Await(uint64_t transfer) {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] {
    return closed_ || announced_.empty() || announced_.front() == transfer ||
           std::find(announced_.begin(), announced_.end(), transfer) == announced_.end();
  });
  return !closed_;
}

void BulkOrder::Done(uint64_t transfer) {
  {
    std::lock_guard lock(mutex_);
    if (announced_.empty() || announced_.front() != transfer) return;  // Nobody announced it.
    announced_.pop_front();
    if (announced_.empty()) return;
  }
  turn_.notify_all();
}

void BulkOrder::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  turn_.notify_all();
}

}  // namespace hawser::guest
