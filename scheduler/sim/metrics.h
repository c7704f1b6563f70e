// SPDX-License-Identifier: Apache-2.0
// What a simulation's result says about fairness. Definitions:
//
//   share         device time of a tenant by that of all
//   window        a stretch of time, end to end; only tenants count that wanted the device during the whole of it
//   Jain          (sum y)^2 / (n sum y^2) with y = device time / weight; 1 is fair, 1/n is one for all
//   share error   the largest |share - weight / weights|
//   lag           what a tenant should have had by its weight, of what was served while the same tenants had work, less
//   what it had gap           the largest |W_i/w_i - W_j/w_j| over any stretch of time in which both had work all the
//   time
#ifndef HAWSER_SCHEDULER_SIM_METRICS_H_
#define HAWSER_SCHEDULER_SIM_METRICS_H_

#include <cstdint>
#include <vector>

#include "scheduler/sim/simulator.h"

namespace hawser::scheduler {

struct WindowMetrics {
  uint64_t length_ns = 0;
  size_t windows = 0;  ///< That had two tenants or more to compare.
  double jain_min = 1, jain_mean = 1;
  double share_error_max = 0;
  double ratio_max = 1;                     ///< Largest by smallest y of a window; infinite if somebody had nothing.
  std::vector<std::vector<double>> shares;  ///< Of each window of the whole run, each tenant's share.
};

/// Of a set of times: how long they are.
struct Distribution {
  size_t count = 0;
  double mean_ns = 0, min_ns = 0, max_ns = 0, p50_ns = 0, p99_ns = 0, p999_ns = 0;
  double cv = 0;  ///< Standard deviation by mean.
};

struct TenantMetrics {
  double share = 0;
  double weight_share = 0;  ///< Weight by all weights.
  double lag_max_ns = 0;
  Distribution latency;  ///< Arrival to end.
};

/// A pair of tenants; lengths are by weight (weight 100 counts as 1).
struct PairGap {
  size_t i = 0, j = 0;
  double gap_ns = 0;
  double bound_ns = 0;  ///< l_i/w_i + l_j/w_j
};

struct Metrics {
  std::vector<TenantMetrics> tenants;
  std::vector<WindowMetrics> windows;
  std::vector<PairGap> pairs;  ///< That had work at the same time; with more than 64 tenants, none.
  double busy = 0;             ///< Part of the time.
  double idle_with_work = 0;   ///< Part of the time in which the device idled although somebody had work.
};

/// The value below which `part` (0 to 1) of them are; nearest rank. `sorted` is.
double Percentile(const std::vector<double>& sorted, double part);
Distribution Describe(std::vector<double> values_ns);
double Jain(const std::vector<double>& values);

Metrics Measure(const SimResult& result,
                const std::vector<uint64_t>& windows_ns = {100'000'000, 500'000'000, 10'000'000'000});

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_SIM_METRICS_H_
