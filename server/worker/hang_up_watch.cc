// SPDX-License-Identifier: Apache-2.0
#include "server/worker/hang_up_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hawser::server {

using wire::Fd;
using wire::Result;
using wire::Status;

Result<std::unique_ptr<HangUpWatch>> HangUpWatch::Start(int socket, std::function<void()> gone) {
  Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return Status::FromErrno("cannot create an eventfd to watch the guest");
  return std::unique_ptr<HangUpWatch>(new HangUpWatch(socket, std::move(stop), std::move(gone)));
}

HangUpWatch::HangUpWatch(int socket, Fd stop, std::function<void()> gone)
    : socket_(socket), stop_(std::move(stop)), gone_(std::move(gone)), thread_([this] { Run(); }) {}

HangUpWatch::~HangUpWatch() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void HangUpWatch::Run() const {
  for (;;) {
    // Only the end matters: a guest over shared memory has nothing more to say on its socket, and what it says all the
    // same must not wake this thread again and again.
    pollfd entries[2] = {{socket_, POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
    const int ready = ::poll(entries, 2, -1);
    if (ready < 0 && errno != EINTR) return;  // The executor still looks by itself.
    if (ready <= 0) continue;
    if (entries[1].revents == 0) gone_();
    return;
  }
}

}  // namespace hawser::server
