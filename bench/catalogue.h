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
};

/// All measurements of the long-lived workers, in the order in which they run.
std::vector<Measurement> Catalogue(bool quick);

/// The rows of the program build, which needs a fresh process per value: cold, cached, and the first
/// launch after each.
struct BuildRows {
  RowSpec cold, cold_launch, cached, cached_launch;
};
BuildRows ProgramBuildRows();

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
