#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the results of `hawser bench opencl --json` as a small table: measure, native, remote, ratio."""

import json
import sys


def quantity(value, unit):
    if value is None:
        return "-"
    if unit == "1/s":
        return f"{value / 1e3:.0f} k/s"
    if unit == "us" and value < 0.1:
        return f"{value * 1e3:.0f} ns"
    return f"{value:.1f} {unit}" if unit else f"{value:g}"


def main(path):
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    lines = [("", "native", "remote", "ratio")]
    for measure in results["measures"]:
        for transport, remote in measure["remote"].items():
            ratio = remote["ratio"]
            lines.append((
                f"{measure['title']} ({transport})",
                quantity(measure["native"], measure["unit"]),
                quantity(remote["value"], measure["unit"]),
                "-" if ratio is None else f"{ratio:.3g}x",
            ))
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [line[i].rjust(widths[i]) for i in range(1, 4)]
        print("     " + "   ".join(cells))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: demo_table.py RESULTS.json")
    main(sys.argv[1])
