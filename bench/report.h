// SPDX-License-Identifier: Apache-2.0
// The results as text, JSON and Markdown.
#ifndef HAWSER_BENCH_REPORT_H_
#define HAWSER_BENCH_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/results.h"

namespace hawser::bench {

/// The schema of ReportJson's "schema" member. A new number when a member changes its meaning or goes.
inline constexpr char kOpenClSchema[] = "hawser.bench.opencl/1";

/// "31.9 us", "845 k/s", "11.4 GiB/s": three significant digits, the unit adapted.
std::string Quantity(double value, const std::string& unit);

/// One table per transport, for a terminal.
std::string ReportText(const OpenClResults& results);

/// Everything, including each round's values.
nlohmann::json ReportJson(const OpenClResults& results);

/// Tables for docs/performance.md: facts of the machine, the command, one table per transport.
std::string ReportMarkdown(const OpenClResults& results);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_REPORT_H_
