// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/bulk_order.h"

#include <algorithm>

namespace hawser::guest {

void BulkOrder::Announce(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  announced_.push_back({transfer, !late_.empty() && late_.erase(transfer) != 0});
}

void BulkOrder::Expect(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  late_.insert(transfer);
}

bool BulkOrder::IsTurn(uint64_t transfer) const {
  for (const Entry& entry : announced_) {
    if (entry.transfer == transfer) return true;
    if (entry.late) continue;
    // One that is ahead of it, unless nobody announced it.
    return std::none_of(announced_.begin(), announced_.end(),
                        [&](const Entry& other) { return other.transfer == transfer; });
  }
  return true;
}

bool BulkOrder::Await(uint64_t transfer) {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return closed_ || IsTurn(transfer); });
  return !closed_;
}

void BulkOrder::Done(uint64_t transfer) {
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(announced_.begin(), announced_.end(),
                                    [&](const Entry& entry) { return entry.transfer == transfer; });
    if (found == announced_.end()) return;  // Nobody announced it.
    announced_.erase(found);
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
