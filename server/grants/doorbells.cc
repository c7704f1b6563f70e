// SPDX-License-Identifier: Apache-2.0
#include "server/grants/doorbells.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hawser::server {

using wire::Fd;
using wire::Result;
using wire::Status;

namespace {

/// Edge triggered: nobody needs to read a bell to hear it again, and a worker that reads its own takes nothing away.
Status Watch(int epoll, int fd, uint64_t whose) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = whose;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Status::FromErrno("cannot watch a worker's doorbell");
}

constexpr uint64_t kOwn = UINT64_MAX;

std::chrono::nanoseconds Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

Result<Fd> Doorbells::Make() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return Status::FromErrno("cannot create a worker's doorbell");
  return fd;
}

Status Doorbells::Open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return Status::FromErrno("cannot create the scheduler's epoll");
  Result<Fd> own = Make();
  if (!own.ok()) return own.status();
  own_ = std::move(*own);
  return Watch(epoll_.get(), own_.get(), kOwn);
}

Status Doorbells::Add(uint64_t worker, int bell) {
  // Ours stays open, so that Remove() can end the watch whatever others do with theirs; and a worker may be here twice.
  Fd ours(::fcntl(bell, F_DUPFD_CLOEXEC, 0));
  if (!ours.valid()) return Status::FromErrno("cannot duplicate a worker's doorbell");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Status status = Watch(epoll_.get(), ours.get(), worker); !status.ok()) return status;
  workers_[worker] = {std::move(ours)};
  return {};
}

void Doorbells::Remove(uint64_t worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.bell.get(), nullptr);
  workers_.erase(found);
  std::erase_if(paused_, [worker](const Paused& paused) { return paused.worker == worker; });
}

void Doorbells::Ring() {
  const uint64_t one = 1;
  (void)!::write(own_.get(), &one, sizeof(one));
}

void Doorbells::Heard(uint64_t id, std::chrono::nanoseconds now) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  ++heard_;
  Worker& worker = found->second;
  if (now - worker.window >= kWindow) {
    worker.window = now;
    worker.rings = 0;
  }
  if (++worker.rings <= kMost) return;
  epoll_event none{};
  none.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, worker.bell.get(), &none) == 0) paused_.push_back({id, now + kPause});
}

std::chrono::nanoseconds Doorbells::Resume(std::chrono::nanoseconds now) {
  auto next = std::chrono::nanoseconds::max();
  for (size_t i = 0; i < paused_.size();) {
    if (paused_[i].until > now) {
      next = std::min(next, paused_[i].until);
      ++i;
      continue;
    }
    // A bell that was ever rung is heard at once: nobody reads it.
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = paused_[i].worker;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, workers_.at(event.data.u64).bell.get(), &event);
    paused_[i] = paused_.back();
    paused_.pop_back();
  }
  return next;
}

void Doorbells::Wait(uint64_t, std::chrono::nanoseconds at_most) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!paused_.empty()) {
      const auto now = Now();
      at_most = std::min(at_most, Resume(now) - now);
    }
  }
  const auto bounded =
      std::clamp<std::chrono::nanoseconds>(at_most, std::chrono::nanoseconds(0), std::chrono::hours(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
  const timespec timeout{seconds.count(), (bounded - seconds).count()};
  epoll_event events[16];
  const int count = ::epoll_pwait2(epoll_.get(), events, 16, &timeout, nullptr);
  if (count <= 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = Now();
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != kOwn) Heard(events[i].data.u64, now);
  }
}

}  // namespace hawser::server
