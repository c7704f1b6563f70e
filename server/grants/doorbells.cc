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
Status Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Status::FromErrno("cannot watch a worker's doorbell");
}

Result<Fd> MakeBell() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return Status::FromErrno("cannot create a worker's doorbell");
  return fd;
}

}  // namespace

Status Doorbells::Open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return Status::FromErrno("cannot create the scheduler's epoll");
  Result<Fd> own = MakeBell();
  if (!own.ok()) return own.status();
  own_ = std::move(*own);
  return Watch(epoll_.get(), own_.get());
}

Result<Fd> Doorbells::Add(uint64_t worker) {
  Result<Fd> fd = MakeBell();
  if (!fd.ok()) return fd.status();
  // Ours stays open, so that Remove() can end the watch whatever the worker does with its own.
  Fd theirs(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!theirs.valid()) return Status::FromErrno("cannot duplicate a worker's doorbell");
  if (Status status = Watch(epoll_.get(), fd->get()); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  workers_[worker] = std::move(*fd);
  return theirs;
}

void Doorbells::Remove(uint64_t worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.get(), nullptr);
  workers_.erase(found);
}

void Doorbells::Ring() {
  const uint64_t one = 1;
  (void)!::write(own_.get(), &one, sizeof(one));
}

void Doorbells::Wait(uint64_t, std::chrono::nanoseconds at_most) {
  const auto bounded =
      std::clamp<std::chrono::nanoseconds>(at_most, std::chrono::nanoseconds(0), std::chrono::hours(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
  const timespec timeout{seconds.count(), (bounded - seconds).count()};
  epoll_event events[16];
  (void)::epoll_pwait2(epoll_.get(), events, 16, &timeout, nullptr);
}

}  // namespace hawser::server
