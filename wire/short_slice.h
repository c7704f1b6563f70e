// SPDX-License-Identifier: Apache-2.0
// How soon a thread runs that has just been woken, or that a timer wakes.
#ifndef HAWSER_WIRE_SHORT_SLICE_H_
#define HAWSER_WIRE_SHORT_SLICE_H_

namespace hawser::wire {

/// For threads that work for some microseconds, then sleep, and that a device or another process waits for meanwhile:
/// asks the kernel for short time slices, so that the calling thread, woken, goes before one that computes (Linux 6.12
/// and later, sched_setattr(2), sched_runtime; no effect before). Where all processors are busy it otherwise waits for
/// the end of somebody's slice, some milliseconds. It gets no larger part of the processors for it. Threads that it
/// starts have none of this. False: nothing was changed, because the kernel refused, or because somebody gave the
/// thread a scheduling class or a nice value below 0 already.
bool TakeShortSlices();

/// For threads that compute, on processors where nothing else does: woken, the calling thread does not take a processor
/// from another one that computes, but goes on when that sleeps or its slice is over (SCHED_BATCH, sched(7)), which is
/// as long as the kernel allows (0.1 s; Linux 6.12 and later). It gets no smaller part of the processors for it.
/// Threads that it starts have this, too. False: nothing was changed, because the kernel refused, or because somebody
/// gave the thread a scheduling class already.
bool TakeBatchClass();
/// Takes that back.
void LeaveBatchClass();

/// For threads that sleep until some moment and that a device or another process waits for then: timers wake the
/// calling thread, and those it starts from now on, when they are due; the kernel may let others sleep 50 us longer, to
/// wake several at once (prctl(2), PR_SET_TIMERSLACK). False: nothing was changed, because the kernel refused.
bool TakeExactTimers();

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SHORT_SLICE_H_
