// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/reply_table.h"

namespace hawser::guest {

bool ReplyTable::Add(uint64_t seq, ReplySink* sink) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  sinks_.emplace(seq, sink);
  return true;
}

ReplySink* ReplyTable::Take(uint64_t seq) {
  std::lock_guard lock(mutex_);
  const auto found = sinks_.find(seq);
  if (found == sinks_.end()) return nullptr;
  ReplySink* sink = found->second;
  sinks_.erase(found);
  return sink;
}

std::vector<ReplySink*> ReplyTable::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  std::vector<ReplySink*> sinks;
  sinks.reserve(sinks_.size());
  for (const auto& [seq, sink] : sinks_) sinks.push_back(sink);
  sinks_.clear();
  return sinks;
}

}  // namespace hawser::guest
