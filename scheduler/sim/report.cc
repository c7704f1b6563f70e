// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sim/report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

namespace hawser::scheduler {
namespace {

using nlohmann::ordered_json;

double Ms(double ns) { return ns / 1e6; }

/// JSON has no infinity.
ordered_json Finite(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

__attribute__((format(printf, 2, 3))) void Print(std::string& out, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  out += line;
}

const char* KindName(PolicyEvent::Kind kind) {
  switch (kind) {
    case PolicyEvent::Kind::kLoaded:
      return "loaded";
    case PolicyEvent::Kind::kSlow:
      return "slow";
    case PolicyEvent::Kind::kEjected:
      return "ejected";
    case PolicyEvent::Kind::kLog:
      return "log";
    case PolicyEvent::Kind::kRunaway:
      return "runaway";
  }
  return "";
}

ordered_json ToJson(const Distribution& d) {
  return {{"count", d.count},    {"mean", Ms(d.mean_ns)}, {"min", Ms(d.min_ns)}, {"p50", Ms(d.p50_ns)},
          {"p99", Ms(d.p99_ns)}, {"p999", Ms(d.p999_ns)}, {"max", Ms(d.max_ns)}, {"cv", d.cv}};
}

/// How long the first ten took: the repeats of an experiment.
std::vector<double> FirstRequests(const SimTenant& tenant) {
  std::vector<double> lengths;
  for (size_t i = 0; i < tenant.requests.size() && i < 10; ++i) {
    lengths.push_back(Ms(static_cast<double>(tenant.requests[i].end_ns - tenant.requests[i].arrival_ns)));
  }
  return lengths;
}

}  // namespace

ordered_json ReportJson(const SimResult& result, const Metrics& metrics) {
  ordered_json json;
  json["policy"] = result.policy;
  json["scenario"] = result.scenario.name;
  json["duration_ms"] = Ms(static_cast<double>(result.duration_ns));
  json["busy"] = metrics.busy;
  json["idle_with_work"] = metrics.idle_with_work;
  json["handoff_ms"] = Ms(static_cast<double>(result.handoff_ns));
  json["switches"] = result.switches;
  json["waited_ms"] = Ms(static_cast<double>(result.waited_ns));
  json["lingered_ms"] = Ms(static_cast<double>(result.lingered_ns));
  json["timers"] = result.timers;
  json["ejected"] = result.ejected;
  json["tenants"] = ordered_json::array();
  for (size_t i = 0; i < result.tenants.size(); ++i) {
    const SimTenant& tenant = result.tenants[i];
    const TenantMetrics& m = metrics.tenants[i];
    json["tenants"].push_back({{"name", tenant.name},
                               {"weight", tenant.weight},
                               {"share", m.share},
                               {"weight_share", m.weight_share},
                               {"used_ms", Ms(static_cast<double>(tenant.used_ns))},
                               {"grants", tenant.grants},
                               {"longest_charge_ms", Ms(static_cast<double>(tenant.longest_charge_ns))},
                               {"longest_wait_ms", Ms(static_cast<double>(tenant.longest_wait_ns))},
                               {"lag_max_ms", Ms(m.lag_max_ns)},
                               {"killed", tenant.killed},
                               {"latency_ms", ToJson(m.latency)},
                               {"first_requests_ms", FirstRequests(tenant)}});
  }
  json["windows"] = ordered_json::array();
  for (const WindowMetrics& window : metrics.windows) {
    json["windows"].push_back({{"length_ms", Ms(static_cast<double>(window.length_ns))},
                               {"windows", window.windows},
                               {"jain_min", window.jain_min},
                               {"jain_mean", window.jain_mean},
                               {"share_error_max", window.share_error_max},
                               {"ratio_max", Finite(window.ratio_max)},
                               {"shares", window.shares}});
  }
  json["pairs"] = ordered_json::array();
  for (const PairGap& pair : metrics.pairs) {
    json["pairs"].push_back({{"tenants", {result.tenants[pair.i].name, result.tenants[pair.j].name}},
                             {"gap_ms", Ms(pair.gap_ns)},
                             {"bound_ms", Ms(pair.bound_ns)}});
  }
  json["events"] = ordered_json::array();
  for (const PolicyEvent& event : result.events) {
    json["events"].push_back({{"at_ms", Ms(static_cast<double>(event.at_ns))},
                              {"kind", KindName(event.kind)},
                              {"policy", event.policy},
                              {"text", event.text}});
    if (event.dump.empty()) continue;
    // As it was when it was ejected.
    ordered_json dump = ordered_json::parse(event.dump, nullptr, false);
    json["events"].back()["dump"] = dump.is_discarded() ? ordered_json(event.dump) : std::move(dump);
  }
  return json;
}

std::string ReportText(const SimResult& result, const Metrics& metrics) {
  std::string out;
  Print(out, "%s under %s, %.3g s of virtual time\n", result.scenario.name.c_str(), result.policy.c_str(),
        static_cast<double>(result.duration_ns) / 1e9);
  if (!result.scenario.summary.empty()) out += result.scenario.summary + "\n";
  Print(out, "\n%-16s %6s %7s %7s %9s %8s %9s %9s %9s %9s\n", "tenant", "weight", "share", "ideal", "used ms",
        "requests", "p50 ms", "p99 ms", "wait ms", "lag ms");
  for (size_t i = 0; i < result.tenants.size(); ++i) {
    const SimTenant& tenant = result.tenants[i];
    const TenantMetrics& m = metrics.tenants[i];
    Print(out, "%-16.60s %6u %7.4f %7.4f %9.1f %8zu %9.3f %9.3f %9.3f %9.3f%s\n", tenant.name.c_str(), tenant.weight,
          m.share, m.weight_share, Ms(static_cast<double>(tenant.used_ns)), m.latency.count, Ms(m.latency.p50_ns),
          Ms(m.latency.p99_ns), Ms(static_cast<double>(tenant.longest_wait_ns)), Ms(m.lag_max_ns),
          tenant.killed ? "  ended by the limit" : "");
  }
  Print(out, "\n%-12s %8s %10s %10s %12s %10s\n", "window", "count", "Jain min", "mean", "share error", "max/min");
  for (const WindowMetrics& window : metrics.windows) {
    Print(out, "%9.0f ms %8zu %10.5f %10.5f %12.4f %10.3f\n", Ms(static_cast<double>(window.length_ns)), window.windows,
          window.jain_min, window.jain_mean, window.share_error_max, window.ratio_max);
  }
  const auto worst = std::max_element(metrics.pairs.begin(), metrics.pairs.end(), [](const auto& a, const auto& b) {
    return a.gap_ns * b.bound_ns < b.gap_ns * a.bound_ns;
  });
  if (worst != metrics.pairs.end()) {
    Print(out, "\nlargest gap of two tenants: %.3f ms (%s, %s); one slice and piece of each: %.3f ms\n",
          Ms(worst->gap_ns), result.tenants[worst->i].name.c_str(), result.tenants[worst->j].name.c_str(),
          Ms(worst->bound_ns));
  }
  Print(out,
        "device: busy %.2f %%, idle with work %.2f %%; %llu hand-offs %.2f ms, waits %.2f ms, lingering %.2f ms, %llu "
        "timers\n",
        metrics.busy * 100, metrics.idle_with_work * 100, static_cast<unsigned long long>(result.switches),
        Ms(static_cast<double>(result.handoff_ns)), Ms(static_cast<double>(result.waited_ns)),
        Ms(static_cast<double>(result.lingered_ns)), static_cast<unsigned long long>(result.timers));
  for (const PolicyEvent& event : result.events) {
    if (event.kind == PolicyEvent::Kind::kLoaded) continue;
    Print(out, "at %.3f ms: ", Ms(static_cast<double>(event.at_ns)));
    out += event.text + "\n";
  }
  return out;
}

}  // namespace hawser::scheduler
