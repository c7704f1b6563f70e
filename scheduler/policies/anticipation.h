/* SPDX-License-Identifier: Apache-2.0 */
/* Anticipation: a client that sends its next request when the last is done has, for a moment, no work; the device may
 * wait for it. Not for somebody who came back too late the last three times; and as waits are charged to nobody, for
 * nobody longer than the device was used by it: work of a microsecond every 200 would else keep the device idle for
 * most of the time. A few waits are free, and as many may be saved. */
#ifndef HAWSER_SCHEDULER_POLICIES_ANTICIPATION_H_
#define HAWSER_SCHEDULER_POLICIES_ANTICIPATION_H_

#include <stdint.h>

enum { anticipation_patience = 3, anticipation_credit = 8 };

/* What is known of a tenant. `longest_ns` below: the longest wait for anybody. */
typedef struct anticipation {
  uint64_t idle_since; /* 0: it has not been idle yet */
  uint64_t waits_ns;   /* for so long it may still be waited for */
  uint32_t late;       /* came back after more than the longest wait, so many times in a row */
} anticipation;

static inline void anticipation_join(anticipation* who, uint64_t longest_ns) {
  who->waits_ns = anticipation_credit * longest_ns;
}

static inline void anticipation_goes(anticipation* who, uint64_t now_ns) { who->idle_since = now_ns; }

/* Whether it is back in time. */
static inline int anticipation_returns(anticipation* who, uint64_t longest_ns, uint64_t now_ns) {
  if (who->idle_since == 0) return 1;
  const uint64_t away = now_ns - who->idle_since;
  const uint64_t waited = away < longest_ns ? away : longest_ns;
  who->waits_ns -= waited < who->waits_ns ? waited : who->waits_ns;
  if (away <= longest_ns) {
    who->late = 0;
    return 1;
  }
  if (who->late < anticipation_patience) ++who->late;
  return 0;
}

static inline void anticipation_charge(anticipation* who, uint64_t longest_ns, uint64_t gpu_ns) {
  const uint64_t most = anticipation_credit * longest_ns;
  who->waits_ns = gpu_ns >= most - who->waits_ns ? most : who->waits_ns + gpu_ns;
}

/* For how long it is waited for when it goes. */
static inline uint64_t anticipation_ns(const anticipation* who, uint64_t longest_ns) {
  if (who->late >= anticipation_patience) return 0;
  return who->waits_ns < longest_ns ? who->waits_ns : longest_ns;
}

/* For how long it is still waited for, at most `longest_ns`; it has no work. */
static inline uint64_t anticipation_left_ns(const anticipation* who, uint64_t longest_ns, uint64_t now_ns) {
  if (who->idle_since == 0) return 0;
  const uint64_t end = who->idle_since + anticipation_ns(who, longest_ns);
  return end > now_ns ? end - now_ns : 0;
}

#endif /* HAWSER_SCHEDULER_POLICIES_ANTICIPATION_H_ */
