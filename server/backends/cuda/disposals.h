// SPDX-License-Identifier: Apache-2.0
// What is freed while the device may be held up. NVIDIA's driver waits for the device before it frees memory; the
// device may wait for the guest (a function in a graph, a value in memory); and what the guest does about it is a
// command that the executor reads. So the executor does not free itself then: this thread does, and whatever else waits
// so.
//
// Threading: thread-safe; one lock, not held while something is freed. One thread, started with the first of them,
// which frees in order.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_DISPOSALS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_DISPOSALS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

class Disposals {
 public:
  /// `driver` is borrowed.
  explicit Disposals(const DriverTable* driver) : driver_(driver) {}
  /// Waits until all is freed; nothing may hold the device up any more.
  ~Disposals();
  Disposals(const Disposals&) = delete;
  Disposals& operator=(const Disposals&) = delete;

  /// Runs `free` on the thread, with `context` current (null: whichever is).
  void Add(CUcontext context, std::function<void()> free);
  /// Waits until all that was added is freed; nothing may hold the device up any more.
  void Drain();
  /// The same, but not for longer. False: not all is freed. After somebody has waited in vain nobody waits until
  /// something more is freed: what holds up the first holds up all behind it, and each wait keeps a whole session.
  bool DrainFor(std::chrono::milliseconds longest);

 private:
  void Thread();

  const DriverTable* const driver_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<CUcontext, std::function<void()>>> waiting_;
  bool busy_ = false;
  bool stop_ = false;
  uint64_t freed_ = 0;
  std::optional<uint64_t> in_vain_;  ///< `freed_` when somebody had waited in vain.
  std::thread thread_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DISPOSALS_H_
