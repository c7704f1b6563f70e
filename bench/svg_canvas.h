// SPDX-License-Identifier: Apache-2.0
// The few shapes of which the charts consist, written as SVG. Coordinates are pixels, y downward.
#ifndef HAWSER_BENCH_SVG_CANVAS_H_
#define HAWSER_BENCH_SVG_CANVAS_H_

#include <string>
#include <utility>
#include <vector>

namespace hawser::bench {

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 12;
  Anchor anchor = Anchor::kStart;
  std::string colour = "#333333";
  bool bold = false;
};

class SvgCanvas {
 public:
  SvgCanvas(double width, double height) : width_(width), height_(height) {}

  void Rectangle(double x, double y, double width, double height, const std::string& colour);
  void Line(double x1, double y1, double x2, double y2, const std::string& colour, double width = 1,
            bool dashed = false);
  /// A curve with a dot on each point.
  void Curve(const std::vector<std::pair<double, double>>& points, const std::string& colour);
  void Text(double x, double y, const std::string& text, const TextStyle& style = {});

  std::string Document() const;

 private:
  double width_, height_;
  std::string shapes_;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_SVG_CANVAS_H_
