// SPDX-License-Identifier: Apache-2.0
// The list of measurements of `hawser bench opencl`: what the worker is asked, and which rows of
// the report its answer fills.
#ifndef HAWSER_BENCH_CATALOGUE_H_
#define HAWSER_BENCH_CATALOGUE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/results.h"

namespace hawser::bench {

/// One request to a long-lived worker.
struct Measurement {
  nlohmann::json request;
  /// Which value of the answer fills which row.
  std::vector<std::pair<std::string, RowSpec>> rows;
  /// How often it is asked in a round, all sides in turn each time. Where threads wake each other the same code takes
  /// 20 or 60 us, for seconds on end, as the host places the cores: many short blocks see more of it than a long one.
  int blocks = 1;
};

/// All measurements of the long-lived workers, in the order in which they run.
std::vector<Measurement> Catalogue(bool quick);

/// The rows of the program build, which needs a fresh process per value: cold, cached, and the first
/// launch after each.
struct BuildRows {
  RowSpec cold, cold_launch, cached, cached_launch;
};
BuildRows ProgramBuildRows();

/// What somebody notices whose neighbour goes wrong.
struct NeighbourRows {
  RowSpec killed, wild, garbage;
};
NeighbourRows StallRows();

/// The row of the cost that preloading the guest library adds to /bin/true.
RowSpec PreloadRow();

/// "4KiB", "1MiB"...
std::string SizeName(size_t bytes);
/// The sizes whose bandwidth is measured.
std::vector<size_t> BandwidthSizes();

/// True when `id` is chosen by `only`: empty, or one of its words is a prefix of the id.
bool IsChosen(const std::vector<std::string>& only, const std::string& id);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_CATALOGUE_H_
