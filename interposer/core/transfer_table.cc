// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/transfer_table.h"

#include <utility>

namespace hawser::guest {

void TransferTable::Add(uint64_t transfer, BulkSink* sink) {
  std::lock_guard lock(mutex_);
  if (!closed_) sinks_.emplace(transfer, sink);
}

bool TransferTable::Cancel(uint64_t transfer) {
  std::unique_lock lock(mutex_);
  sinks_.erase(transfer);
  // From within its own sink there is nothing to wait for.
  if (!Receiver::DeliveringHere()) {
    while (in_use_ == transfer && in_use_ != 0) released_.wait(lock);
  }
  EndBackgroundIfEmpty();
  return !closed_transfers_.contains(transfer);
}

BulkSink* TransferTable::Use(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  const auto found = sinks_.find(transfer);
  if (found == sinks_.end()) return nullptr;
  in_use_ = transfer;
  return found->second;
}

void TransferTable::Release(uint64_t transfer, bool ended) {
  std::lock_guard lock(mutex_);
  in_use_ = 0;
  if (ended) sinks_.erase(transfer);
  released_.notify_all();
  EndBackgroundIfEmpty();
}

void TransferTable::ReceiveInBackground(Receiver* receiver) {
  std::lock_guard lock(mutex_);
  if (background_ != nullptr || sinks_.empty()) return;
  background_ = receiver;
  receiver->AddInterest();
}

std::vector<BulkSink*> TransferTable::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  std::vector<BulkSink*> sinks;
  sinks.reserve(sinks_.size());
  for (const auto& [transfer, sink] : sinks_) {
    sinks.push_back(sink);
    closed_transfers_.insert(transfer);
  }
  sinks_.clear();
  EndBackgroundIfEmpty();
  return sinks;
}

void TransferTable::EndBackgroundIfEmpty() {
  if (background_ != nullptr && sinks_.empty()) std::exchange(background_, nullptr)->RemoveInterest();
}

}  // namespace hawser::guest
