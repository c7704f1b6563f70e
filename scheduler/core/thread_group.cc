// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/thread_group.h"

#include <algorithm>
#include <numeric>

namespace hawser::scheduler {
namespace {

/// More threads than any launch has; also keeps a hostile rate from overflowing.
constexpr double kMostThreads = 1e18;

uint64_t DownTo64(double threads) {
  if (!(threads > 0)) return 0;
  return static_cast<uint64_t>(std::min(threads, kMostThreads)) / kGroupThreads * kGroupThreads;
}

}  // namespace

uint64_t FirstGroup(uint64_t cores, double beta, uint64_t tenants) {
  return DownTo64(static_cast<double>(cores) * beta / static_cast<double>(std::max<uint64_t>(1, tenants)));
}

uint64_t NextGroup(uint64_t slice_ns, double threads_per_second) {
  return DownTo64(static_cast<double>(slice_ns) * threads_per_second / 1e9);
}

uint64_t WholeGroups(uint64_t threads, uint64_t work_group, uint64_t remaining) {
  if (threads >= remaining) return remaining;
  const uint64_t step = std::lcm(kGroupThreads, work_group);
  uint64_t whole = threads / step * step;
  if (whole == 0) whole = threads / work_group * work_group;
  if (whole == 0) whole = work_group;
  return std::min(whole, remaining);
}

double PaperUsage(double runtime, double own_threads, double all_threads) {
  return runtime * (1 + own_threads / all_threads);
}

double ConcurrentCharge(double runtime, double own_threads, double all_threads) {
  return all_threads > 0 ? runtime * own_threads / all_threads : 0;
}

}  // namespace hawser::scheduler
