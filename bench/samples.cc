// SPDX-License-Identifier: Apache-2.0
#include "bench/samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hawser::bench {

double Percentile(std::vector<double> samples, double fraction) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double position = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double weight = position - static_cast<double>(below);
  return samples[below] * (1 - weight) + samples[above] * weight;
}

}  // namespace hawser::bench
