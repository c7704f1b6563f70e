// SPDX-License-Identifier: Apache-2.0
#include "bench/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/svg_canvas.h"

namespace hawser::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using wire::Transport;

OpenClResults Sample() {
  OpenClResults results;
  results.device = "<device> & co";
  results.date = "2026-01-02T03:04:05Z";
  results.transports = {Transport::kShm, Transport::kTcp};
  Row launch;
  launch.spec = {"launch_finish_p50", "launch + finish, p50", "us"};
  launch.native_rounds = {20};
  launch.remote[Transport::kShm].rounds = {40};
  launch.remote[Transport::kTcp].rounds = {10};
  Row upload;
  upload.spec = {"h2d_pageable_1MiB", "H2D pageable, 1MiB", "GiB/s", Better::kHigher};
  upload.native_rounds = {10};
  upload.remote[Transport::kShm].rounds = {9};
  results.rows = {launch, upload};
  Finish(results);
  return results;
}

TEST(ChartSvg, LowerIsBetterBecomesSpeed) {
  const std::string svg = ChartSvg(Sample());
  EXPECT_THAT(svg, HasSubstr(">50 %</text>"));
  EXPECT_THAT(svg, HasSubstr("20.0 us → 40.0 us"));
  EXPECT_THAT(svg, HasSubstr(">200 %</text>"));
  EXPECT_THAT(svg, HasSubstr("20.0 us → 10.0 us"));
}

TEST(ChartSvg, EscapesText) {
  const std::string svg = ChartSvg(Sample());
  EXPECT_THAT(svg, HasSubstr("&lt;device&gt; &amp; co"));
  EXPECT_THAT(svg, Not(HasSubstr("<device>")));
}

TEST(ChartSvg, DrawsPanelsOnlyWithBandwidth) {
  EXPECT_THAT(ChartSvg(Sample()), HasSubstr("Host to device, pageable memory"));
  OpenClResults nothing = Sample();
  nothing.rows.resize(1);
  EXPECT_THAT(ChartSvg(nothing), Not(HasSubstr("Host to device")));
}

TEST(ChartSvg, IsOneCompleteDocument) {
  const std::string svg = ChartSvg(OpenClResults{});
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(SvgCanvas, CurveHasADotPerPoint) {
  SvgCanvas canvas(10, 10);
  canvas.Curve({{1, 1}, {2, 2}}, "#000000");
  const std::string svg = canvas.Document();
  EXPECT_THAT(svg, HasSubstr("points=\"1.0,1.0 2.0,2.0 \""));
  EXPECT_THAT(svg, HasSubstr("cx=\"2.0\""));
}

}  // namespace
}  // namespace hawser::bench
