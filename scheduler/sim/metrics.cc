// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sim/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hawser::scheduler {
namespace {

using Intervals = std::vector<SimInterval>;

/// When each tenant wanted the device: a closed client between its requests as well, because it would have sent the
/// next one earlier if the last had been done earlier.
std::vector<Intervals> Wanting(const SimResult& result) {
  std::vector<Intervals> wanting(result.tenants.size());
  for (const SimInterval& work : result.work) wanting[work.tenant].push_back(work);
  for (size_t i = 0; i < wanting.size(); ++i) {
    std::sort(wanting[i].begin(), wanting[i].end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    const SimClient& client = result.scenario.clients[i];
    if (client.arrival != SimClient::Arrival::kClosed) continue;
    const auto longest = static_cast<uint64_t>(static_cast<double>(client.think_ns) * (1 + client.think_jitter)) + 1;
    Intervals joined;
    for (const SimInterval& work : wanting[i]) {
      if (!joined.empty() && work.begin_ns <= joined.back().end_ns + longest) {
        joined.back().end_ns = std::max(joined.back().end_ns, work.end_ns);
      } else {
        joined.push_back(work);
      }
    }
    // The think time in which the simulation ended.
    if (!joined.empty() && joined.back().end_ns + longest >= result.duration_ns && !result.tenants[i].killed &&
        client.requests == 0 && client.stop_ns >= result.duration_ns) {
      joined.back().end_ns = result.duration_ns;
    }
    wanting[i] = std::move(joined);
  }
  return wanting;
}

bool Covers(const Intervals& intervals, uint64_t begin, uint64_t end) {
  return std::any_of(intervals.begin(), intervals.end(),
                     [&](const SimInterval& i) { return i.begin_ns <= begin && i.end_ns >= end; });
}

WindowMetrics MeasureWindows(const SimResult& result, uint64_t length, const std::vector<Intervals>& wanting) {
  WindowMetrics out;
  out.length_ns = length;
  const size_t count = result.duration_ns / length;
  const size_t n = result.tenants.size();
  std::vector<std::vector<double>> used(count, std::vector<double>(n));
  for (const SimInterval& busy : result.busy) {
    for (uint64_t w = busy.begin_ns / length; w < count && w * length < busy.end_ns; ++w) {
      const uint64_t from = std::max(busy.begin_ns, w * length), to = std::min(busy.end_ns, (w + 1) * length);
      used[w][busy.tenant] += static_cast<double>(to - from);
    }
  }
  double sum = 0;
  for (size_t w = 0; w < count; ++w) {
    const double all = std::accumulate(used[w].begin(), used[w].end(), 0.0);
    std::vector<double> shares(n);
    for (size_t i = 0; i < n; ++i) shares[i] = all > 0 ? used[w][i] / all : 0;
    out.shares.push_back(std::move(shares));
    std::vector<double> y;
    double x_sum = 0, weights = 0;
    for (size_t i = 0; i < n; ++i) {
      if (!Covers(wanting[i], w * length, (w + 1) * length)) continue;
      y.push_back(used[w][i] / result.tenants[i].weight);
      x_sum += used[w][i];
      weights += result.tenants[i].weight;
    }
    if (y.size() < 2 || x_sum == 0) continue;
    for (size_t i = 0; i < n; ++i) {
      if (!Covers(wanting[i], w * length, (w + 1) * length)) continue;
      out.share_error_max =
          std::max(out.share_error_max, std::abs(used[w][i] / x_sum - result.tenants[i].weight / weights));
    }
    const auto [least, most] = std::minmax_element(y.begin(), y.end());
    out.ratio_max = std::max(out.ratio_max, *least > 0 ? *most / *least : std::numeric_limits<double>::infinity());
    const double jain = Jain(y);
    out.jain_min = std::min(out.jain_min, jain);
    sum += jain;
    ++out.windows;
  }
  if (out.windows > 0) out.jain_mean = sum / static_cast<double>(out.windows);
  return out;
}

double Weight(const SimResult& result, size_t i) { return result.tenants[i].weight / 100.0; }

std::vector<PairGap> MeasurePairs(const SimResult& result) {
  const size_t n = result.tenants.size();
  std::vector<PairGap> pairs;
  if (n > 64) return pairs;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      PairGap pair{i, j};
      bool work_i = false, work_j = false, together = false;
      double used_i = 0, used_j = 0, least = 0, most = 0;
      const auto difference = [&] { return used_i / Weight(result, i) - used_j / Weight(result, j); };
      for (const SimSample& sample : result.samples) {
        if (sample.tenant != i && sample.tenant != j) continue;
        (sample.tenant == i ? used_i : used_j) = static_cast<double>(sample.used_ns);
        if (together) {
          least = std::min(least, difference());
          most = std::max(most, difference());
          pair.gap_ns = std::max(pair.gap_ns, most - least);
        }
        if (sample.kind == SimSample::Kind::kBeginsWork || sample.kind == SimSample::Kind::kEndsWork) {
          (sample.tenant == i ? work_i : work_j) = sample.kind == SimSample::Kind::kBeginsWork;
          if (work_i && work_j && !together) least = most = difference();
          together = work_i && work_j;
        }
      }
      pair.bound_ns = static_cast<double>(result.tenants[i].longest_charge_ns) / Weight(result, i) +
                      static_cast<double>(result.tenants[j].longest_charge_ns) / Weight(result, j);
      if (pair.gap_ns > 0) pairs.push_back(pair);
    }
  }
  return pairs;
}

void MeasureLag(const SimResult& result, std::vector<TenantMetrics>& out) {
  const size_t n = result.tenants.size();
  std::vector<double> used(n), lag(n);
  std::vector<bool> work(n);
  for (const SimSample& sample : result.samples) {
    const double served = static_cast<double>(sample.used_ns) - used[sample.tenant];
    used[sample.tenant] = static_cast<double>(sample.used_ns);
    double weights = 0;
    for (size_t i = 0; i < n; ++i) weights += work[i] ? result.tenants[i].weight : 0;
    if (served > 0 && weights > 0 && work[sample.tenant]) {
      for (size_t i = 0; i < n; ++i) {
        if (!work[i]) continue;
        lag[i] += served * result.tenants[i].weight / weights - (i == sample.tenant ? served : 0);
        out[i].lag_max_ns = std::max(out[i].lag_max_ns, std::abs(lag[i]));
      }
    }
    if (sample.kind == SimSample::Kind::kGrantEnd || sample.kind == SimSample::Kind::kSnapshot) continue;
    work[sample.tenant] = sample.kind == SimSample::Kind::kBeginsWork;
    lag[sample.tenant] = 0;
  }
}

/// How long the device idled while somebody had work.
uint64_t IdleWithWork(const SimResult& result) {
  std::vector<std::pair<uint64_t, int>> edges;
  for (const SimInterval& work : result.work) {
    edges.emplace_back(work.begin_ns, 1);
    edges.emplace_back(work.end_ns, -1);
  }
  std::sort(edges.begin(), edges.end());
  uint64_t with_work = 0, since = 0;
  int depth = 0;
  for (const auto& [at, step] : edges) {
    if (depth > 0) with_work += at - since;
    since = at;
    depth += step;
  }
  uint64_t busy = 0;
  for (const SimInterval& interval : result.busy) busy += interval.end_ns - interval.begin_ns;
  return with_work > busy ? with_work - busy : 0;
}

}  // namespace

double Percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

Distribution Describe(std::vector<double> values) {
  Distribution out;
  out.count = values.size();
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  out.min_ns = values.front();
  out.max_ns = values.back();
  out.p50_ns = Percentile(values, 0.5);
  out.p99_ns = Percentile(values, 0.99);
  out.p999_ns = Percentile(values, 0.999);
  out.mean_ns = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - out.mean_ns) * (value - out.mean_ns);
  if (out.mean_ns > 0) out.cv = std::sqrt(squares / static_cast<double>(values.size())) / out.mean_ns;
  return out;
}

double Jain(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 1;
}

Metrics Measure(const SimResult& result, const std::vector<uint64_t>& windows_ns) {
  Metrics out;
  double used = 0, weights = 0;
  for (const SimTenant& tenant : result.tenants) {
    used += static_cast<double>(tenant.used_ns);
    weights += tenant.weight;
  }
  for (const SimTenant& tenant : result.tenants) {
    TenantMetrics metrics;
    metrics.share = used > 0 ? static_cast<double>(tenant.used_ns) / used : 0;
    metrics.weight_share = tenant.weight / weights;
    std::vector<double> latencies;
    for (const SimRequest& request : tenant.requests) {
      latencies.push_back(static_cast<double>(request.end_ns - request.arrival_ns));
    }
    metrics.latency = Describe(std::move(latencies));
    out.tenants.push_back(metrics);
  }
  MeasureLag(result, out.tenants);
  const auto wanting = Wanting(result);
  for (const uint64_t length : windows_ns) {
    if (length <= result.duration_ns) out.windows.push_back(MeasureWindows(result, length, wanting));
  }
  out.pairs = MeasurePairs(result);
  out.busy = used / static_cast<double>(result.duration_ns);
  out.idle_with_work = static_cast<double>(IdleWithWork(result)) / static_cast<double>(result.duration_ns);
  return out;
}

}  // namespace hawser::scheduler
