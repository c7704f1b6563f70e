// SPDX-License-Identifier: Apache-2.0
// What a scheduler's thread waits for: an eventfd for each worker, and one of its own.
//
// Each ring makes the scheduler look at all pages. A worker rings once or twice for each slice and piece; one that
// rings without end would keep the scheduler's thread busy, so who has rung very often within a short time is listened
// to only now and then until that is over. None of its rings is lost: what it rang for is looked at when it is listened
// to again.
#ifndef HAWSER_SERVER_GRANTS_DOORBELLS_H_
#define HAWSER_SERVER_GRANTS_DOORBELLS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "scheduler/grant/bell.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: Wait() from one thread; the rest from any. A ring stays until Wait() takes it, so no ticket is needed.
class Doorbells final : public scheduler::Bell {
 public:
  wire::Status Open();

  /// A fresh bell for a worker.
  static wire::Result<wire::Fd> Make();
  /// Its rings are heard until Remove(). `bell` stays the caller's, and other schedulers may hear it too.
  wire::Status Add(uint64_t worker, int bell);
  void Remove(uint64_t worker);

  void Ring() override;
  uint64_t Ticket() override { return 0; }
  void Wait(uint64_t ticket, std::chrono::nanoseconds at_most) override;

  /// Rings of workers that Wait() heard so far. From the thread that waits.
  uint64_t heard() const { return heard_; }

  /// A worker that rings more often than kMost times in kWindow is listened to once in kPause for the rest of it.
  static constexpr uint32_t kMost = 256;
  static constexpr std::chrono::nanoseconds kWindow = std::chrono::milliseconds(10);
  static constexpr std::chrono::nanoseconds kPause = std::chrono::microseconds(200);

 private:
  struct Worker {
    wire::Fd bell;
    std::chrono::nanoseconds window{0};  ///< When it began.
    uint32_t rings = 0;                  ///< Heard in it.
  };
  /// Not listened to until then.
  struct Paused {
    uint64_t worker;
    std::chrono::nanoseconds until;
  };
  void Heard(uint64_t worker, std::chrono::nanoseconds now);
  /// Listens again to whom it is time to; when that is for the next one.
  std::chrono::nanoseconds Resume(std::chrono::nanoseconds now);

  wire::Fd epoll_;
  wire::Fd own_;
  std::mutex mutex_;  ///< A leaf.
  std::map<uint64_t, Worker> workers_;
  std::vector<Paused> paused_;
  uint64_t heard_ = 0;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_GRANTS_DOORBELLS_H_
