// SPDX-License-Identifier: Apache-2.0
// Events on their way from hawserd's event loop to one listener of a trace.
//
// Threads: the event loop puts, one thread of the gRPC server takes. Lock: mutex_, held for the moving of values only.
// A listener that is slow loses events and is told how many; the event loop never waits for it.
#ifndef HAWSER_SERVER_ADMIN_TRACE_FEED_H_
#define HAWSER_SERVER_ADMIN_TRACE_FEED_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "server/admin/state.h"

namespace hawser::server::admin {

class TraceFeed {
 public:
  static constexpr size_t kMaxEvents = size_t{1} << 16;

  struct Filter {
    std::set<uint64_t> sessions;  ///< Empty: all.
    bool commands = false;
  };
  explicit TraceFeed(Filter filter) : filter_(std::move(filter)) {}

  bool WantsSession(uint64_t session) const { return filter_.sessions.empty() || filter_.sessions.count(session) != 0; }
  bool WantsCommands() const { return filter_.commands; }

  void Put(TraceEvent event) {
    if (!WantsSession(event.session) || (event.kind == TraceKind::kCommand && !filter_.commands)) return;
    const std::lock_guard lock(mutex_);
    if (events_.size() >= kMaxEvents) {
      ++lost_;
      return;
    }
    events_.push_back(std::move(event));
    if (events_.size() == 1) changed_.notify_one();
  }
  /// Events that were lost before they came here.
  void AddLost(uint64_t count) {
    const std::lock_guard lock(mutex_);
    lost_ += count;
  }
  /// What is there; waits at most so long for the first.
  TraceBatch Take(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return !events_.empty() || closed_; });
    TraceBatch batch;
    batch.events.swap(events_);
    batch.lost = lost_;
    lost_ = 0;
    return batch;
  }
  /// Nothing more will come, or nobody listens any more.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  const Filter filter_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TraceEvent> events_;
  uint64_t lost_ = 0;
  bool closed_ = false;
};

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_TRACE_FEED_H_
