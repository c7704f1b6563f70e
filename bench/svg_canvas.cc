// SPDX-License-Identifier: Apache-2.0
#include "bench/svg_canvas.h"

#include <cstdio>

namespace hawser::bench {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

void SvgCanvas::Rectangle(double x, double y, double width, double height, const std::string& colour) {
  shapes_ += "<rect x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" width=\"" + Number(width) + "\" height=\"" +
             Number(height) + "\" fill=\"" + colour + "\"/>\n";
}

void SvgCanvas::Line(double x1, double y1, double x2, double y2, const std::string& colour, double width, bool dashed) {
  shapes_ += "<line x1=\"" + Number(x1) + "\" y1=\"" + Number(y1) + "\" x2=\"" + Number(x2) + "\" y2=\"" + Number(y2) +
             "\" stroke=\"" + colour + "\" stroke-width=\"" + Number(width) + "\"" +
             (dashed ? " stroke-dasharray=\"5 4\"" : "") + "/>\n";
}

void SvgCanvas::Curve(const std::vector<std::pair<double, double>>& points, const std::string& colour) {
  std::string list;
  for (const auto& [x, y] : points) list += Number(x) + "," + Number(y) + " ";
  shapes_ += "<polyline points=\"" + list + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"/>\n";
  for (const auto& [x, y] : points) {
    shapes_ += "<circle cx=\"" + Number(x) + "\" cy=\"" + Number(y) + "\" r=\"3\" fill=\"" + colour + "\"/>\n";
  }
}

void SvgCanvas::Text(double x, double y, const std::string& text, const TextStyle& style) {
  const char* anchor = style.anchor == Anchor::kStart ? "start" : style.anchor == Anchor::kEnd ? "end" : "middle";
  shapes_ += "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" font-size=\"" + Number(style.size) +
             "\" text-anchor=\"" + anchor + "\" fill=\"" + style.colour + "\"" +
             (style.bold ? " font-weight=\"bold\"" : "") + ">" + Escaped(text) + "</text>\n";
}

std::string SvgCanvas::Document() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Number(width_) + " " + Number(height_) +
         "\" width=\"" + Number(width_) + "\" height=\"" + Number(height_) +
         "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#ffffff\"/>\n" +
         shapes_ + "</svg>\n";
}

}  // namespace hawser::bench
