// SPDX-License-Identifier: Apache-2.0
// What the scheduler's thread waits for: an eventfd for each worker, and one of its own.
#ifndef HAWSER_SERVER_GRANTS_DOORBELLS_H_
#define HAWSER_SERVER_GRANTS_DOORBELLS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "scheduler/grant/bell.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: Wait() from one thread; the rest from any. A ring stays until Wait() takes it, so no ticket is needed.
class Doorbells final : public scheduler::Bell {
 public:
  wire::Status Open();

  /// A fresh bell: the descriptor that the worker gets. Its rings are heard until Remove().
  wire::Result<wire::Fd> Add(uint64_t worker);
  void Remove(uint64_t worker);

  void Ring() override;
  uint64_t Ticket() override { return 0; }
  void Wait(uint64_t ticket, std::chrono::nanoseconds at_most) override;

 private:
  wire::Fd epoll_;
  wire::Fd own_;
  std::mutex mutex_;  ///< A leaf.
  std::map<uint64_t, wire::Fd> workers_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_DOORBELLS_H_
