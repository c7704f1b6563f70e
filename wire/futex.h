// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of shared memory. The word may be mapped at different addresses in different
// processes, so the futexes are process-shared.
#ifndef HAWSER_WIRE_FUTEX_H_
#define HAWSER_WIRE_FUTEX_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hawser::wire {

/// Sleeps while `word` is `expected`, at most `limit`. Returns for any reason, also for none:
/// the caller looks again.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds limit);

/// Wakes everybody who sleeps on `word`.
void FutexWake(std::atomic<uint32_t>& word);

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_FUTEX_H_
