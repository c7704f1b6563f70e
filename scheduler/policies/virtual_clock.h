/* SPDX-License-Identifier: Apache-2.0 */
/* Start-time fair queueing on device time (Goyal, Vin and Cheng 1997): a grant starts at S = max(V, F), ends at
 * F = S + used / weight, and V is the start of the grant in service. Whoever has the least S is next. A tenant that was
 * away comes back at V: it has neither saved anything nor fallen behind.
 *
 * While two tenants have work, |W_i/w_i - W_j/w_j| <= l_i/w_i + l_j/w_j, where l is the longest charge of one grant: at
 * most a slice and a piece.
 *
 * Times are in 1/1024 ns for weight 1, and wrap: they are compared by their difference. */
#ifndef HAWSER_SCHEDULER_POLICIES_VIRTUAL_CLOCK_H_
#define HAWSER_SCHEDULER_POLICIES_VIRTUAL_CLOCK_H_

#include "scheduler/policies/settings.h"

typedef struct virtual_clock {
  uint64_t now;
} virtual_clock;

typedef struct virtual_times {
  uint64_t start;
  uint64_t finish;
  uint64_t weight;
} virtual_times;

static inline int virtual_before(uint64_t a, uint64_t b) { return (int64_t)(a - b) < 0; }

static inline uint64_t virtual_length(const virtual_times* times, uint64_t gpu_ns) {
  return gpu_ns * 1024u / (times->weight != 0 ? times->weight : 1);
}

/* Where it would start if it came now. */
static inline uint64_t virtual_start(const virtual_clock* clock, const virtual_times* times) {
  return virtual_before(clock->now, times->finish) ? times->finish : clock->now;
}

static inline void virtual_join(const virtual_clock* clock, virtual_times* times, uint64_t weight) {
  times->weight = weight;
  times->start = times->finish = clock->now;
}

static inline void virtual_charge(virtual_clock* clock, virtual_times* times, uint64_t gpu_ns, uint32_t why) {
  if (why & HAWSER_CHARGE_ALONE) { /* its time is everybody's: nobody is owed anything for it */
    clock->now = virtual_start(clock, times) + virtual_length(times, gpu_ns);
    times->start = times->finish = clock->now;
    return;
  }
  times->finish = times->start + virtual_length(times, gpu_ns);
  times->start = times->finish;
}

#endif /* HAWSER_SCHEDULER_POLICIES_VIRTUAL_CLOCK_H_ */
