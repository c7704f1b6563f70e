# SPDX-License-Identifier: Apache-2.0
"""Pictures of the experiments, as SVG text."""

import math
import statistics
import xml.sax.saxutils

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#888888", "#000000"]
HEIGHT, TOP, BOTTOM, LEFT = 260, 34, 52, 56


def _text(x, y, text, size=11, anchor="middle", colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
            f"{xml.sax.saxutils.escape(str(text))}</text>")


def _step(top):
    """A round step of an axis that reaches to `top`, for about five of them."""
    rough = top / 5
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough - 1e-12)


class _Plot:
    def __init__(self, title, unit, top, width):
        self.top = top if top > 0 else 1
        self.width = width
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
                      'font-family="sans-serif">', f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
                      _text(width / 2, 18, title, 13)]
        step = _step(self.top)
        for i in range(int(self.top / step + 1e-9) + 1):
            y = self.y(i * step)
            self.parts += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{width - 8}" y2="{y:.1f}" stroke="#ddd"/>',
                           _text(LEFT - 6, y + 4, f"{i * step:g}", 10, "end")]
        self.parts.append(_text(LEFT - 6, TOP - 6, unit, 10, "end"))

    def y(self, value):
        return HEIGHT - BOTTOM - value / self.top * (HEIGHT - BOTTOM - TOP)

    def finish(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def _quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def boxes(title, unit, groups):
    """Box plots with every value as a dot. `groups`: [(label, [(name, values)])]: one box for each name."""
    count = sum(len(group) for _, group in groups)
    slot = max(30, min(60, 840 / max(1, count)))
    width = LEFT + 16 + slot * count + 14 * len(groups)
    plot = _Plot(title, unit, 1.05 * max(max(values) for _, group in groups for _, values in group), width)
    x = LEFT + 10
    for label, group in groups:
        begin = x
        for i, (name, values) in enumerate(group):
            middle, colour = x + slot / 2, COLOURS[i % len(COLOURS)]
            low, half, high = _quartiles(values)
            wide = slot * 0.3
            plot.parts += [
                f'<line x1="{middle:.1f}" y1="{plot.y(min(values)):.1f}" x2="{middle:.1f}" y2="{plot.y(max(values)):.1f}" stroke="{colour}"/>',
                f'<rect x="{middle - wide:.1f}" y="{plot.y(high):.1f}" width="{2 * wide:.1f}" height="{max(1, plot.y(low) - plot.y(high)):.1f}" '
                f'fill="{colour}" fill-opacity="0.25" stroke="{colour}"/>',
                f'<line x1="{middle - wide:.1f}" y1="{plot.y(half):.1f}" x2="{middle + wide:.1f}" y2="{plot.y(half):.1f}" stroke="{colour}" stroke-width="2"/>']
            for k, value in enumerate(values):
                aside = ((k * 7) % 11 - 5) / 11 * slot * 0.4
                plot.parts.append(f'<circle cx="{middle + aside:.1f}" cy="{plot.y(value):.1f}" r="1.6" fill="{colour}" fill-opacity="0.6"/>')
            plot.parts.append(_text(middle, HEIGHT - BOTTOM + 15, name, 9))
            x += slot
        plot.parts.append(_text((begin + x) / 2, HEIGHT - 18, label, 11))
        x += 14
    return plot.finish()


def bars(title, unit, groups, top=None):
    """`groups`: [(label, [(name, value, expected or None)])]; what is expected is a line across the bar."""
    count = sum(len(group) for _, group in groups)
    slot = max(16, min(48, 840 / max(1, count)))
    width = LEFT + 16 + slot * count + 14 * len(groups)
    largest = max(max(value, expected or 0) for _, group in groups for _, value, expected in group)
    plot = _Plot(title, unit, top or 1.1 * largest, width)
    x = LEFT + 10
    for label, group in groups:
        begin = x
        for i, (name, value, expected) in enumerate(group):
            plot.parts.append(f'<rect x="{x + slot * 0.12:.1f}" y="{plot.y(value):.1f}" width="{slot * 0.76:.1f}" '
                              f'height="{max(0.5, plot.y(0) - plot.y(value)):.1f}" fill="{COLOURS[i % len(COLOURS)]}"/>')
            if expected is not None:
                y = plot.y(expected)
                plot.parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + slot:.1f}" y2="{y:.1f}" stroke="black" stroke-width="1.5"/>')
            plot.parts.append(_text(x + slot / 2, HEIGHT - BOTTOM + 15, name, 9))
            x += slot
        plot.parts.append(_text((begin + x) / 2, HEIGHT - 18, label, 11))
        x += 14
    return plot.finish()
