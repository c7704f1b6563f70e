// SPDX-License-Identifier: Apache-2.0
// Order statistics of measured values.
#ifndef HAWSER_BENCH_SAMPLES_H_
#define HAWSER_BENCH_SAMPLES_H_

#include <vector>

namespace hawser::bench {

/// The value below which `fraction` (0 to 1) of the samples lie, interpolated between neighbours.
/// 0 when there are none.
double Percentile(std::vector<double> samples, double fraction);

inline double Median(std::vector<double> samples) { return Percentile(std::move(samples), 0.5); }

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_SAMPLES_H_
