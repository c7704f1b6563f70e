// SPDX-License-Identifier: Apache-2.0
#include "wire/short_slice.h"

#include <errno.h>
#include <sched.h>
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

}  // namespace

bool TakeShortSlices() {
  const int policy = ::sched_getscheduler(0);
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  // Whoever gave the thread another class, or a better place in this one, knows what for; and the threads of a thread
  // with kResetOnFork lose a nice value below 0.
  if (policy != SCHED_OTHER || errno != 0 || nice < 0) return false;
  SchedulingAttributes attributes;
  attributes.size = sizeof(attributes);
  attributes.flags = kResetOnFork;
  attributes.nice = nice;
  attributes.runtime_ns = kSliceNs;
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

bool TakeBatchClass() {
  const sched_param none{};
  return ::sched_getscheduler(0) == SCHED_OTHER && ::sched_setscheduler(0, SCHED_BATCH, &none) == 0;
}

void LeaveBatchClass() {
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_BATCH) (void)::sched_setscheduler(0, SCHED_OTHER, &none);
}

}  // namespace hawser::wire
