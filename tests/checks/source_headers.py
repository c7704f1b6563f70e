#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a machine can see: a licence line at the top of each source file, include guards named after
the path, and no source file beyond its length."""

import re
import sys

from sources import ROOT, tracked

LICENCE = "SPDX-License-Identifier: Apache-2.0"
SUFFIXES = {".cc", ".h", ".c", ".py", ".sh", ".proto", ".cmake", ".toml"}
NAMES = {"CMakeLists.txt", "hawser", "run"}
MAX_LINES = 700


def problems(name):
    text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    if LICENCE not in "\n".join(lines[:2]):
        yield f"{name}: the first line is not '{LICENCE}'"
    if name.suffix == ".h":
        guard = "HAWSER_" + re.sub(r"[^A-Za-z0-9]", "_", str(name)).upper() + "_"
        if f"#ifndef {guard}" not in text and "#pragma once" not in text:
            yield f"{name}: the include guard is not {guard}"
    if name.suffix in (".cc", ".h", ".c") and len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines; split it ({MAX_LINES} at most)"


def main():
    files = [name for name in tracked() if name.suffix in SUFFIXES or name.name in NAMES]
    found = [problem for name in files for problem in problems(name)]
    print("\n".join(found) if found else f"{len(files)} files are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
