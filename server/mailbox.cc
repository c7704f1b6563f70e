// SPDX-License-Identifier: Apache-2.0
#include "server/mailbox.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace hawser::server {

using wire::Code;
using wire::Fd;
using wire::Status;

Status Mailbox::Stopping() { return Status(Code::kClosed, "the server is stopping"); }

Status Mailbox::Open(EventLoop* loop) {
  doorbell_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell_.valid()) return Status::FromErrno("cannot create an eventfd");
  auto watch = loop->Watch(doorbell_.get(), EPOLLIN, [this](uint32_t) { Run(); });
  if (!watch.ok()) return watch.status();
  loop_ = loop;
  watch_ = *watch;
  const std::lock_guard lock(mutex_);
  closed_ = false;
  return {};
}

void Mailbox::Close() {
  std::deque<Request> left;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    left.swap(requests_);
  }
  loop_->Unwatch(watch_);
  for (const Request& request : left) request.fail(Stopping());
}

Status Mailbox::Post(Request request) {
  const std::lock_guard lock(mutex_);
  if (closed_) return Stopping();
  requests_.push_back(std::move(request));
  const uint64_t one = 1;
  // It cannot fail: the counter is far from its end. Under the lock, so that Close() comes before or after all of this.
  (void)!::write(doorbell_.get(), &one, sizeof(one));
  return {};
}

void Mailbox::Run() {
  uint64_t rung = 0;
  (void)!::read(doorbell_.get(), &rung, sizeof(rung));
  std::deque<Request> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(requests_);
  }
  for (const Request& request : now) request.run();
}

}  // namespace hawser::server
