// SPDX-License-Identifier: Apache-2.0
// Waiting for a moment without sleeping.
#ifndef HAWSER_WIRE_SPIN_H_
#define HAWSER_WIRE_SPIN_H_

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "wire/deadline.h"

namespace hawser::wire {

/// Tells the core that this is a spin.
inline void CpuPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Whether other programs want the cores, as far as spins have noticed. A thread that offers its core to others gets it
/// back after their time slice: milliseconds, where it waited for microseconds, while a thread that sleeps and is woken
/// is let in at once. So a yield that took long ends the spin, and for a while nobody spins: not for long the first
/// time, because a machine has its moments, and twice as long each time that it happens again.
///
/// Threading: any.
class Crowd {
 public:
  using Clock = std::chrono::steady_clock;
  /// A yield that takes as long was more than a switch there and back.
  static constexpr std::chrono::microseconds kLongYield{200};
  /// How long nobody spins after the first of them.
  static constexpr std::chrono::milliseconds kRespite{1};
  /// It doubles so many times: 64 ms.
  static constexpr int kMostDoublings = 6;
  /// So many yields in a row that did not take long: it was a moment only.
  static constexpr int kCalm = 200;

  /// The one of this process.
  static Crowd& Process() {
    static Crowd crowd;
    return crowd;
  }

  /// One load while nothing was noticed.
  bool IsHere() const {
    const int64_t until = until_.load(std::memory_order_relaxed);
    return until != 0 && Clock::now().time_since_epoch().count() < until;
  }
  /// A yield is over. Returns whether it took long.
  bool Yielded(Clock::time_point began, Clock::time_point ended) {
    if (ended - began < kLongYield) {
      // Two threads may count one yield for both, or none: it is a measure, not a sum.
      const int calm = calm_.load(std::memory_order_relaxed);
      if (calm < kCalm) {
        calm_.store(calm + 1, std::memory_order_relaxed);
        if (calm + 1 == kCalm) doublings_.store(0, std::memory_order_relaxed);
      }
      return false;
    }
    const int doublings = doublings_.load(std::memory_order_relaxed);
    if (doublings < kMostDoublings) doublings_.store(doublings + 1, std::memory_order_relaxed);
    calm_.store(0, std::memory_order_relaxed);
    until_.store((ended + kRespite * (1 << doublings)).time_since_epoch().count(), std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<int64_t> until_{0};  ///< 0: nothing was noticed yet.
  std::atomic<int> doublings_{0};  ///< Of the next respite.
  std::atomic<int> calm_{kCalm};   ///< Yields in a row that did not take long, at most kCalm.
};

/// Asks ready() again and again, at most `limit`; returns whether it said yes. Between questions the
/// core rests for a few pauses, at first for few, because most answers come soon, then for more,
/// because each question takes a cache line away from whoever is about to write it. Every few
/// questions the core is offered to other threads: a CPU device may need it. The clock is read rarely. Gives up at once
/// where the cores are wanted by others.
template <typename Ready>
bool SpinUntil(std::chrono::nanoseconds limit, Ready ready, Crowd& crowd = Crowd::Process()) {
  constexpr int kMaxPauses = 32;
  constexpr int kRoundsPerYield = 4;
  if (crowd.IsHere()) return false;
  const Deadline deadline(limit);
  int pauses = 1;
  for (int round = 1;; ++round) {
    for (int i = 0; i < pauses; ++i) CpuPause();
    if (pauses < kMaxPauses) pauses *= 2;
    if (ready()) return true;
    if (round % kRoundsPerYield != 0) continue;
    const Crowd::Clock::time_point began = Crowd::Clock::now();
    ::sched_yield();
    const bool crowded = crowd.Yielded(began, Crowd::Clock::now());
    if (crowded || deadline.Passed()) return ready();
  }
}

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SPIN_H_
