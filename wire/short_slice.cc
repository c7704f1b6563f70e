// SPDX-License-Identifier: Apache-2.0
#include "wire/short_slice.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hawser::wire {
namespace {

// sched_setattr(2) has no declaration in the C library's headers of older distributions, and later ones name this
// alike.
struct SchedulingAttributes {
  uint32_t size = 0;
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

constexpr uint64_t kResetOnFork = 1;
/// Long enough for what such a thread does at a time; every default is longer.
constexpr uint64_t kSliceNs = 300'000;
/// Longer than the turns of who computes; the longest that the kernel takes.
constexpr uint64_t kLongSliceNs = 100'000'000;

// The calling thread's class and nice value; false: not known.
bool Look(int* policy, int* nice) {
  *policy = ::sched_getscheduler(0);
  errno = 0;
  *nice = ::getpriority(PRIO_PROCESS, 0);
  return *policy >= 0 && errno == 0;
}

// `runtime_ns` 0: slices as everybody has them.
bool Set(int policy, int nice, uint64_t runtime_ns, uint64_t flags) {
  SchedulingAttributes attributes;
  attributes.size = sizeof(attributes);
  attributes.policy = static_cast<uint32_t>(policy);
  attributes.flags = flags;
  attributes.nice = nice;
  attributes.runtime_ns = runtime_ns;
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

bool TakeShortSlices() {
  int policy = 0, nice = 0;
  // Whoever gave the thread another class, or a better place in this one, knows what for; and the threads of a thread
  // with kResetOnFork lose a nice value below 0.
  return Look(&policy, &nice) && policy == SCHED_OTHER && nice >= 0 && Set(SCHED_OTHER, nice, kSliceNs, kResetOnFork);
}

bool TakeBatchClass() {
  int policy = 0, nice = 0;
  return Look(&policy, &nice) && policy == SCHED_OTHER && Set(SCHED_BATCH, nice, kLongSliceNs, 0);
}

void LeaveBatchClass() {
  int policy = 0, nice = 0;
  // sched_setscheduler() would keep the long slices.
  if (Look(&policy, &nice) && policy == SCHED_BATCH) (void)Set(SCHED_OTHER, nice, 0, 0);
}

bool TakeExactTimers() {
  // The least that there is; 0 would be the usual.
  constexpr unsigned long kLeastSlackNs = 1;
  return ::prctl(PR_SET_TIMERSLACK, kLeastSlackNs, 0, 0, 0) == 0;
}

}  // namespace hawser::wire
