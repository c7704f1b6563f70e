// SPDX-License-Identifier: Apache-2.0
#include "tools/sim_timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "bench/svg_canvas.h"

namespace hawser::tools {
namespace {

using bench::Anchor;
using bench::SvgCanvas;
using scheduler::Metrics;
using scheduler::SimInterval;
using scheduler::SimResult;
using scheduler::WindowMetrics;

constexpr double kLeft = 130, kWidth = 820, kRow = 18, kChart = 120;
constexpr size_t kMostRows = 32;
constexpr size_t kMostBars = 4000;

/// Told apart also by those who see no difference between red and green.
std::string Colour(size_t tenant) {
  constexpr std::array kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                   "#56b4e9", "#d55e00", "#999999", "#b8a800"};
  return kColours[tenant % kColours.size()];
}

std::string Short(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.4g %s", value, unit);
  return text;
}

void DrawShares(SvgCanvas& canvas, double top, const SimResult& result, const WindowMetrics& window) {
  canvas.Text(kLeft, top - 8, "share of the device over " + Short(static_cast<double>(window.length_ns) / 1e6, "ms"),
              {.size = 12, .bold = true});
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double y = top + kChart * (1 - part);
    canvas.Line(kLeft, y, kLeft + kWidth, y, "#dddddd");
    canvas.Text(kLeft - 8, y + 4, Short(part * 100, "%"), {.size = 10, .anchor = Anchor::kEnd});
  }
  const size_t count = window.shares.size();
  if (count < 2) return;
  // With more windows than there are pixels, some are left out.
  const size_t step = std::max<size_t>(1, count / 400);
  for (size_t tenant = 0; tenant < result.tenants.size() && tenant < kMostRows; ++tenant) {
    double last_x = 0, last_y = 0;
    for (size_t w = 0; w < count; w += step) {
      const double x = kLeft + kWidth * (static_cast<double>(w) + 0.5) / static_cast<double>(count);
      const double y = top + kChart * (1 - window.shares[w][tenant]);
      if (w > 0) canvas.Line(last_x, last_y, x, y, Colour(tenant), 1.5);
      last_x = x;
      last_y = y;
    }
  }
  canvas.Text(kLeft + kWidth, top + kChart + 14, Short(static_cast<double>(result.duration_ns) / 1e9, "s"),
              {.size = 10, .anchor = Anchor::kEnd});
}

}  // namespace

std::string TimelineSvg(const SimResult& result, const Metrics& metrics) {
  const size_t rows = std::min(result.tenants.size(), kMostRows);
  size_t charts = 0;
  for (const WindowMetrics& window : metrics.windows) charts += window.shares.size() >= 2 ? 1 : 0;
  const double height = 90 + static_cast<double>(charts) * (kChart + 50) + static_cast<double>(rows) * kRow + 40;
  SvgCanvas canvas(kLeft + kWidth + 30, height);
  canvas.Text(kLeft, 24, result.scenario.name + " under " + result.policy, {.size = 16, .bold = true});
  canvas.Text(kLeft, 42, result.scenario.summary, {.size = 11});
  double top = 80;
  for (const WindowMetrics& window : metrics.windows) {
    if (window.shares.size() < 2) continue;
    DrawShares(canvas, top, result, window);
    top += kChart + 50;
  }
  // The stretch begins after the first tenth, so that it shows how it usually is.
  const uint64_t from = result.duration_ns / 10;
  uint64_t to = result.duration_ns;
  size_t bars = 0;
  uint64_t longest = 0;
  for (const SimInterval& busy : result.busy) {
    if (busy.end_ns <= from) continue;
    longest = std::max(longest, busy.end_ns - busy.begin_ns);
    // Sixty grants can be told apart; what lasts longer gets its place.
    if (++bars >= 60 && busy.end_ns - from >= 10 * longest) {
      to = busy.end_ns;
      break;
    }
    if (bars >= kMostBars) {
      to = busy.end_ns;
      break;
    }
  }
  const auto x_of = [&](uint64_t at) {
    const double part =
        static_cast<double>(std::clamp(at, from, to) - from) / static_cast<double>(std::max<uint64_t>(1, to - from));
    return kLeft + kWidth * part;
  };
  canvas.Text(kLeft, top - 8,
              "the device from " + Short(static_cast<double>(from) / 1e6, "ms") + " to " +
                  Short(static_cast<double>(to) / 1e6, "ms") + " (grey: has work and waits)",
              {.size = 12, .bold = true});
  for (size_t tenant = 0; tenant < rows; ++tenant) {
    const double y = top + static_cast<double>(tenant) * kRow;
    canvas.Text(kLeft - 8, y + 13, result.tenants[tenant].name,
                {.size = 11, .anchor = Anchor::kEnd, .colour = Colour(tenant)});
  }
  for (const SimInterval& work : result.work) {
    if (work.tenant >= rows || work.end_ns <= from || work.begin_ns >= to) continue;
    const double y = top + static_cast<double>(work.tenant) * kRow;
    canvas.Rectangle(x_of(work.begin_ns), y + 7, std::max(0.3, x_of(work.end_ns) - x_of(work.begin_ns)), 4, "#d8d8d8");
  }
  for (const SimInterval& busy : result.busy) {
    if (busy.tenant >= rows || busy.end_ns <= from || busy.begin_ns >= to) continue;
    const double y = top + static_cast<double>(busy.tenant) * kRow;
    canvas.Rectangle(x_of(busy.begin_ns), y + 2, std::max(0.3, x_of(busy.end_ns) - x_of(busy.begin_ns)), kRow - 4,
                     Colour(busy.tenant));
  }
  return canvas.Document();
}

}  // namespace hawser::tools
