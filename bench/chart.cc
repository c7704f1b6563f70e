// SPDX-License-Identifier: Apache-2.0
#include "bench/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/catalogue.h"
#include "bench/report.h"
#include "bench/svg_canvas.h"

namespace hawser::bench {
namespace {

using wire::Transport;

constexpr double kWidth = 960;
constexpr double kMargin = 24;
constexpr char kNativeColour[] = "#8d939b";
constexpr char kGridColour[] = "#e4e6e9";
constexpr char kMutedColour[] = "#6b7177";

const char* Colour(Transport transport) {
  switch (transport) {
    case Transport::kShm:
      return "#0b6e99";
    case Transport::kUnix:
      return "#3fa34d";
    case Transport::kTcp:
      return "#d9822b";
    case Transport::kVsock:
      break;
  }
  return "#8f4a9e";
}

/// The measures drawn as bars; bandwidth of the small sizes is in the curves.
const std::vector<std::string>& BarIds() {
  static const std::vector<std::string> kIds = {"launch_finish_p50",
                                                "launch_burst_rate",
                                                "set_arg",
                                                "read_small_p50",
                                                "step_p50",
                                                "write_burst_rate",
                                                "create_release",
                                                "h2d_pageable_256MiB",
                                                "d2h_pageable_256MiB",
                                                "h2d_mapped_256MiB",
                                                "d2h_mapped_256MiB",
                                                "build_cold",
                                                "build_cached"};
  return kIds;
}

/// How fast the remote side is, in parts of native: above 1 is faster.
double Speed(const Row& row, const RemoteValue& value) {
  const double ratio = value.ratio.value_or(0);
  if (row.spec.better == Better::kHigher) return ratio;
  return ratio > 0 ? 1 / ratio : 0;
}

std::string Percent(double speed) {
  if (speed >= 10) return std::to_string(std::lround(speed)) + "x";
  return std::to_string(std::lround(speed * 100)) + " %";
}

void DrawLegend(SvgCanvas& canvas, const OpenClResults& results, double y) {
  double x = kMargin;
  canvas.Rectangle(x, y - 9, 10, 10, kNativeColour);
  canvas.Text(x + 15, y, "native");
  x += 80;
  for (const Transport transport : results.transports) {
    canvas.Rectangle(x, y - 9, 10, 10, Colour(transport));
    canvas.Text(x + 15, y, "remote over " + std::string(TransportName(transport)));
    x += 150;
  }
}

/// Horizontal bars, native at 100 %. Returns the y below them.
double DrawBars(SvgCanvas& canvas, const OpenClResults& results, double top) {
  constexpr double kLeft = 260, kNumbers = 190, kBar = 11, kGap = 9;
  constexpr double kMost = 1.25;  // longer bars are cut; their number tells
  const double right = kWidth - kMargin - kNumbers;
  const auto x_of = [&](double speed) { return kLeft + (right - kLeft) * std::min(speed, kMost) / kMost; };

  canvas.Text(kMargin, top, "Speed in parts of native (right of the dashed line: as fast or faster)",
              {14, Anchor::kStart, "#222222", true});
  double y = top + 30;
  const double first = y - 6;
  std::vector<const Row*> rows;
  for (const std::string& id : BarIds()) {
    const Row* row = results.Find(id);
    if (row != nullptr && row->native && !row->remote.empty()) rows.push_back(row);
  }
  const double row_height = kBar * static_cast<double>(results.transports.size()) + kGap;
  const double last = first + row_height * static_cast<double>(rows.size());
  for (const double mark : {0.0, 0.25, 0.5, 0.75}) {
    canvas.Line(x_of(mark), first, x_of(mark), last, kGridColour);
    canvas.Text(x_of(mark), last + 16, Percent(mark), {11, Anchor::kMiddle, kMutedColour});
  }
  for (const Row* row : rows) {
    const double middle = y + (row_height - kGap) / 2 - kBar / 2 + 10;
    canvas.Text(kLeft - 10, middle, row->spec.title, {12, Anchor::kEnd});
    for (const Transport transport : results.transports) {
      const auto remote = row->remote.find(transport);
      if (remote != row->remote.end()) {
        const double speed = Speed(*row, remote->second);
        canvas.Rectangle(kLeft, y, std::max(1.0, x_of(speed) - kLeft), kBar - 1, Colour(transport));
        canvas.Text(right + 44, y + 9, Percent(speed), {10.5, Anchor::kEnd, "#333333"});
        canvas.Text(right + 54, y + 9,
                    Quantity(*row->native, row->spec.unit) + " → " + Quantity(remote->second.median, row->spec.unit),
                    {10.5, Anchor::kStart, kMutedColour});
      }
      y += kBar;
    }
    y += kGap;
  }
  canvas.Line(x_of(1), first, x_of(1), last, kNativeColour, 1.5, true);
  canvas.Text(x_of(1), last + 16, "native", {11, Anchor::kMiddle, kMutedColour});
  return last + 34;
}

struct Curve {
  std::string colour;
  std::vector<std::pair<size_t, double>> points;  ///< Size, GiB/s.
};

std::vector<Curve> CurvesOf(const OpenClResults& results, const std::string& prefix) {
  std::vector<Curve> curves(1 + results.transports.size());
  curves[0].colour = kNativeColour;
  for (size_t i = 0; i < results.transports.size(); ++i) curves[i + 1].colour = Colour(results.transports[i]);
  const std::vector<size_t> sizes = BandwidthSizes();
  for (size_t index = 0; index < sizes.size(); ++index) {
    const Row* row = results.Find(prefix + SizeName(sizes[index]));
    if (row == nullptr) continue;
    if (row->native) curves[0].points.emplace_back(index, *row->native);
    for (size_t i = 0; i < results.transports.size(); ++i) {
      const auto remote = row->remote.find(results.transports[i]);
      if (remote != row->remote.end()) curves[i + 1].points.emplace_back(index, remote->second.median);
    }
  }
  return curves;
}

/// One panel: transfer size to the right (each step its own distance), GiB/s upward in decades.
void DrawPanel(SvgCanvas& canvas, const std::string& title, const std::vector<Curve>& curves, double x, double y,
               double width, double height) {
  // Decades: a small transfer over a socket and a large one in shared memory are a thousand apart.
  int lowest = 0, highest = 1;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) {
      if (point.second <= 0) continue;
      lowest = std::min(lowest, static_cast<int>(std::floor(std::log10(point.second))));
      highest = std::max(highest, static_cast<int>(std::ceil(std::log10(point.second))));
    }
  }
  const double left = x + 36, bottom = y + height - 22, top = y + 24;
  const auto y_of = [&](double value) {
    const double part = (std::log10(std::max(value, 1e-9)) - lowest) / (highest - lowest);
    return bottom - (bottom - top) * std::clamp(part, 0.0, 1.0);
  };
  const std::vector<size_t> sizes = BandwidthSizes();
  const auto x_of = [&](size_t index) {
    return left + 14 + (width - 66) * static_cast<double>(index) / static_cast<double>(sizes.size() - 1);
  };
  canvas.Text(x, y + 8, title, {12, Anchor::kStart, "#222222", true});
  for (int decade = lowest; decade <= highest; ++decade) {
    const double value = std::pow(10, decade);
    char label[16];
    std::snprintf(label, sizeof(label), "%g", value);
    canvas.Line(left, y_of(value), x + width, y_of(value), kGridColour);
    canvas.Text(left - 6, y_of(value) + 4, label, {11, Anchor::kEnd, kMutedColour});
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    canvas.Text(x_of(i), bottom + 16, SizeName(sizes[i]), {10, Anchor::kMiddle, kMutedColour});
  }
  for (const Curve& curve : curves) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [index, value] : curve.points) points.emplace_back(x_of(index), y_of(value));
    if (!points.empty()) canvas.Curve(points, curve.colour);
  }
}

double DrawCurves(SvgCanvas& canvas, const OpenClResults& results, double top) {
  constexpr double kPanelWidth = 440, kPanelHeight = 210;
  const std::vector<std::pair<std::string, std::string>> panels = {{"h2d_pageable_", "Host to device, pageable memory"},
                                                                   {"d2h_pageable_", "Device to host, pageable memory"},
                                                                   {"h2d_mapped_", "Host to device, mapped memory"},
                                                                   {"d2h_mapped_", "Device to host, mapped memory"}};
  bool any = false;
  for (const auto& [prefix, title] : panels) {
    for (const Curve& curve : CurvesOf(results, prefix)) any |= !curve.points.empty();
  }
  if (!any) return top;
  canvas.Text(kMargin, top, "Bandwidth over transfer size, GiB/s (logarithmic)", {14, Anchor::kStart, "#222222", true});
  for (size_t i = 0; i < panels.size(); ++i) {
    const double x = kMargin + static_cast<double>(i % 2) * (kPanelWidth + 32);
    const double y = top + 22 + static_cast<double>(i / 2) * (kPanelHeight + 14);
    DrawPanel(canvas, panels[i].second, CurvesOf(results, panels[i].first), x, y, kPanelWidth, kPanelHeight);
  }
  return top + 22 + 2 * (kPanelHeight + 14);
}

double Draw(SvgCanvas& canvas, const OpenClResults& results) {
  canvas.Text(kMargin, 36, "Hawser: " + results.api + " native and remote", {20, Anchor::kStart, "#111111", true});
  canvas.Text(kMargin, 56,
              results.device + " · " + results.machine.processor + ", " + std::to_string(results.machine.cores) +
                  " cores · " + results.date.substr(0, 10) + " · medians of " + std::to_string(results.rounds) +
                  " interleaved rounds",
              {11.5, Anchor::kStart, kMutedColour});
  DrawLegend(canvas, results, 80);
  double y = 112;
  if (!results.transports.empty()) y = DrawBars(canvas, results, y);
  y = DrawCurves(canvas, results, y + 10);
  return y + 10;
}

}  // namespace

std::string ChartSvg(const OpenClResults& results) {
  // The height is known once everything is drawn.
  SvgCanvas measuring(kWidth, 0);
  SvgCanvas canvas(kWidth, Draw(measuring, results));
  Draw(canvas, results);
  return canvas.Document();
}

}  // namespace hawser::bench
