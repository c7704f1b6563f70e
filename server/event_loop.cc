// SPDX-License-Identifier: Apache-2.0
#include "server/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace hawser::server {

using wire::Fd;
using wire::Result;
using wire::Status;

Status EventLoop::Open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return Status::FromErrno("cannot create an epoll instance");
  return {};
}

Result<EventLoop::WatchId> EventLoop::Watch(int fd, uint32_t events, std::function<void(uint32_t)> ready) {
  const WatchId id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Status::FromErrno("cannot watch a descriptor");
  }
  watches_.emplace(id, Entry{fd, std::move(ready)});
  return id;
}

void EventLoop::Change(WatchId watch, uint32_t events) {
  const auto at = watches_.find(watch);
  if (at == watches_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, at->second.fd, &event);
}

void EventLoop::Unwatch(WatchId watch) {
  const auto at = watches_.find(watch);
  if (at == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second.fd, nullptr);
  watches_.erase(at);
}

EventLoop::TimerId EventLoop::After(std::chrono::milliseconds delay, std::function<void()> due) {
  const TimerId id = next_id_++;
  const Clock::time_point at = Clock::now() + delay;
  timers_.emplace(std::pair{at, id}, std::move(due));
  deadlines_.emplace(id, at);
  return id;
}

void EventLoop::Cancel(TimerId timer) {
  const auto at = deadlines_.find(timer);
  if (at == deadlines_.end()) return;
  timers_.erase({at->second, timer});
  deadlines_.erase(at);
}

int EventLoop::TimeToNext() const {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - Clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

void EventLoop::RunDue() {
  const Clock::time_point now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto first = timers_.begin();
    const std::function<void()> due = std::move(first->second);
    deadlines_.erase(first->first.second);
    timers_.erase(first);
    due();
  }
}

void EventLoop::Run() {
  std::array<epoll_event, 64> events;
  while (!stopped_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), TimeToNext());
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count && !stopped_; ++i) {
      const auto at = watches_.find(events[static_cast<size_t>(i)].data.u64);
      if (at == watches_.end()) continue;
      // A copy: the callback may unwatch itself.
      const std::function<void(uint32_t)> ready = at->second.ready;
      ready(events[static_cast<size_t>(i)].events);
    }
    RunDue();
  }
}

}  // namespace hawser::server
