// SPDX-License-Identifier: Apache-2.0
// What a benchmark run found: rows of native and remote values, and how they stand to the targets.
#ifndef HAWSER_BENCH_RESULTS_H_
#define HAWSER_BENCH_RESULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wire/endpoint.h"

namespace hawser::bench {

enum class Better : uint8_t { kLower, kHigher };

/// One line of the report.
struct RowSpec {
  std::string id;     ///< Stable name, e.g. "launch_finish_p50".
  std::string title;  ///< In words.
  std::string unit;   ///< "us", "ms", "1/s", "GiB/s", "bytes" or "" for a count.
  Better better = Better::kLower;
  bool remote_only = false;  ///< Has no native side (bytes and waits on the wire).
};

/// The bare transport, measured in the same run.
struct RawTransport {
  double round_trip_us = 0;  ///< Median, 64 bytes each way.
  double one_way_gib_s = 0;  ///< A plain stream of large blocks.
  /// As round_trip_us, but both ends have long slept (MeasureParkedRoundTrip).
  double parked_round_trip_us = 0;
};

/// What was asked of this row, and whether it was reached.
struct Target {
  std::string text;
  double limit = 0;  ///< In the row's unit.
  bool met = false;
};

/// A row's values over one transport.
struct RemoteValue {
  std::vector<double> rounds;
  double median = 0;
  /// remote / native: of the medians, or where each remote value has a native one that was measured beside it, the
  /// median of those pairs' ratios: a machine that changes its speed in the middle changes both.
  std::optional<double> ratio;
  std::optional<Target> target;
};

struct Row {
  RowSpec spec;
  std::vector<double> native_rounds;
  std::optional<double> native;  ///< Median over the rounds.
  std::map<wire::Transport, RemoteValue> remote;
};

struct MachineFacts {
  std::string processor;
  unsigned cores = 0;
  double memory_gib = 0;
  std::string kernel;
  std::string distribution;
  double load_before = 0;  ///< One-minute load average when the run began.

  static MachineFacts Read();
};

struct OpenClResults {
  std::string api = "OpenCL";  ///< For titles; also of other interfaces.
  std::string hawser_version;
  std::string date;     ///< UTC, ISO 8601.
  std::string command;  ///< Reproduces the run.
  bool quick = false;
  int rounds = 0;
  double seconds = 0;  ///< Length of the run.
  MachineFacts machine;
  std::string device;  ///< Name on the native side (the remote one with an external server).
  std::string device_version;
  std::string note;  ///< Why some comparison is missing; empty when all is well.
  std::vector<wire::Transport> transports;
  std::map<wire::Transport, RawTransport> raw;
  std::vector<Row> rows;

  const Row* Find(const std::string& id) const;
};

/// Fills medians, ratios and targets from the rounds. Where values come in pairs (RemoteValue::ratio), a target is met
/// when at least half of the pairs meet it, which is to say that the median of the differences does.
void Finish(OpenClResults& results);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_RESULTS_H_
