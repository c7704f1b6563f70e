// SPDX-License-Identifier: Apache-2.0
// The results as one SVG image: speed relative to native per measure and transport, and bandwidth
// over transfer size.
#ifndef HAWSER_BENCH_CHART_H_
#define HAWSER_BENCH_CHART_H_

#include <string>

#include "bench/results.h"

namespace hawser::bench {

/// A complete SVG document, with its own fonts' names and colours, no scripts and no outside references.
std::string ChartSvg(const OpenClResults& results);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_CHART_H_
