#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""golden.py PROGRAM GOLDEN: the program prints every line of the golden file (it may print more: later minor versions append).
golden.py --same FILE FILE: two files are the same."""

import pathlib
import subprocess
import sys


def main():
    if sys.argv[1] == "--same":
        first, second = (pathlib.Path(name).read_text() for name in sys.argv[2:4])
        if first == second:
            return 0
        print("The header of an unreleased or released version differs from the copy in tests/abi. If version 1.0 has been "
              "released, raise HAWSER_POLICY_ABI_MINOR and add a copy; else bring the copy up to date.")
        return 1
    printed = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
    golden = pathlib.Path(sys.argv[2]).read_text().splitlines()
    missing = [line for line in golden if line not in printed]
    for line in missing:
        name = line.split()[0]
        now = [other for other in printed if other.split()[0] == name]
        print(f"released: {line}   now: {now[0] if now else 'gone'}")
    if not golden:
        print("the golden file is empty")
    return 1 if missing or not golden else 0


if __name__ == "__main__":
    sys.exit(main())
