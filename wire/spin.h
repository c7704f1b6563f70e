// SPDX-License-Identifier: Apache-2.0
// Waiting for a moment without sleeping.
#ifndef HAWSER_WIRE_SPIN_H_
#define HAWSER_WIRE_SPIN_H_

#include <sched.h>

#include <chrono>

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

/// Asks ready() again and again, at most `limit`; returns whether it said yes. Between questions the
/// core rests for a few pauses, at first for few, because most answers come soon, then for more,
/// because each question takes a cache line away from whoever is about to write it. Every few
/// questions the core is offered to other threads: a CPU device may need it. The clock is read rarely.
template <typename Ready>
bool SpinUntil(std::chrono::nanoseconds limit, Ready ready) {
  constexpr int kMaxPauses = 32;
  constexpr int kRoundsPerYield = 4;
  constexpr int kRoundsPerClock = 16;
  const Deadline deadline(limit);
  int pauses = 1;
  for (int round = 1;; ++round) {
    for (int i = 0; i < pauses; ++i) CpuPause();
    if (pauses < kMaxPauses) pauses *= 2;
    if (ready()) return true;
    if (round % kRoundsPerYield == 0) ::sched_yield();
    if (round % kRoundsPerClock == 0 && deadline.Passed()) return false;
  }
}

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SPIN_H_
