// SPDX-License-Identifier: Apache-2.0
// How many threads of a kernel go into one group, and what a group costs its tenant ("GPGPU Task Scheduling Technique
// for Reducing the Performance Deviation of Multiple GPGPU Tasks in RPC-Based GPU Virtualization Environments",
// sections 4.3 and 4.4), as the paper must be read to work. Pure functions.
#ifndef HAWSER_SCHEDULER_CORE_THREAD_GROUP_H_
#define HAWSER_SCHEDULER_CORE_THREAD_GROUP_H_

#include <cstdint>

namespace hawser::scheduler {

/// Groups are multiples of this many threads (a wavefront, two warps).
inline constexpr uint64_t kGroupThreads = 64;

/// First round, nothing is measured: int(cores x beta / tenants / 64) x 64. May be 0: see WholeGroups().
uint64_t FirstGroup(uint64_t cores, double beta, uint64_t tenants);

/// Later rounds: as many as fill a slice at the measured rate. The paper adds the tenant's lack of device time, in
/// seconds, to a number of threads, and then the old number once more, so that its groups double every round; this is
/// what that was meant to reach. 0 threads per second: not measured, 0.
uint64_t NextGroup(uint64_t slice_ns, double threads_per_second);

/// Makes a group of whole work-groups: a multiple of lcm(64, work_group) if that is possible, at least one work-group,
/// at most what remains. `work_group` is at least 1.
uint64_t WholeGroups(uint64_t threads, uint64_t work_group, uint64_t remaining);

/// The paper's usage: runtime x (1 + own / all threads). Kept to compare: it charges a lone tenant double and does not
/// add up to the device's time.
double PaperUsage(double runtime, double own_threads, double all_threads);

/// What is charged where groups of several tenants run at once: runtime x own / all threads. The charges of groups that
/// run together add up to the time that passed. With exclusive grants, own == all: the measured time.
double ConcurrentCharge(double runtime, double own_threads, double all_threads);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_THREAD_GROUP_H_
