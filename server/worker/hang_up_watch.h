// SPDX-License-Identifier: Apache-2.0
// Notices at once that a guest over shared memory is gone.
#ifndef HAWSER_SERVER_WORKER_HANG_UP_WATCH_H_
#define HAWSER_SERVER_WORKER_HANG_UP_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Rings do not tell that the process at the other end has died; its unix socket does. Without this watch a sleeping
/// executor looks every 100 ms, and the end of one session would disturb the beginning of the next.
///
/// Threads: one of its own, asleep in poll(). `gone` runs on it, at most once, and must not destroy the watch.
class HangUpWatch {
 public:
  /// `socket` is borrowed and must outlive the watch.
  static wire::Result<std::unique_ptr<HangUpWatch>> Start(int socket, std::function<void()> gone);
  /// Stops watching; `gone` does not run afterwards.
  ~HangUpWatch();

  HangUpWatch(const HangUpWatch&) = delete;
  HangUpWatch& operator=(const HangUpWatch&) = delete;

 private:
  HangUpWatch(int socket, wire::Fd stop, std::function<void()> gone);
  void Run() const;

  const int socket_;
  const wire::Fd stop_;  ///< An eventfd.
  const std::function<void()> gone_;
  std::thread thread_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_HANG_UP_WATCH_H_
