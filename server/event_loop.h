// SPDX-License-Identifier: Apache-2.0
// One thread that waits for many descriptors and for moments in time.
#ifndef HAWSER_SERVER_EVENT_LOOP_H_
#define HAWSER_SERVER_EVENT_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: everything on one thread. Callbacks may watch, unwatch and cancel anything, themselves
/// included; an event that was already there for something unwatched is dropped.
class EventLoop {
 public:
  using WatchId = uint64_t;
  using TimerId = uint64_t;

  wire::Status Open();

  /// Calls `ready(events)` while one of the EPOLL... events holds (EPOLLHUP and EPOLLERR always
  /// count). The descriptor stays the caller's and must be unwatched before it is closed, because
  /// duplicates of it may live on in other processes.
  wire::Result<WatchId> Watch(int fd, uint32_t events, std::function<void(uint32_t)> ready);
  void Change(WatchId watch, uint32_t events);
  void Unwatch(WatchId watch);

  TimerId After(std::chrono::milliseconds delay, std::function<void()> due);
  void Cancel(TimerId timer);

  /// Runs until Stop().
  void Run();
  void Stop() { stopped_ = true; }

  size_t watches() const { return watches_.size(); }
  size_t timers() const { return timers_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    int fd = -1;
    std::function<void(uint32_t)> ready;
  };

  int TimeToNext() const;
  void RunDue();

  wire::Fd epoll_;
  bool stopped_ = false;
  uint64_t next_id_ = 1;
  std::unordered_map<WatchId, Entry> watches_;
  std::map<std::pair<Clock::time_point, TimerId>, std::function<void()>> timers_;
  std::unordered_map<TimerId, Clock::time_point> deadlines_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EVENT_LOOP_H_
