#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tracked C and C++ file is as clang-format 14 writes it. Other versions format a little differently."""

import shutil
import subprocess
import sys

from sources import ROOT, SKIPPED, cpp_files


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and " 14." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return None


def main():
    tool = clang_format()
    if tool is None:
        print("skipped: clang-format 14 is not installed (package clang-format-14)")
        return SKIPPED
    files = [str(ROOT / name) for name in cpp_files()]
    result = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", *files], cwd=ROOT,
                            capture_output=True, text=True)
    if result.returncode == 0:
        print(f"{len(files)} files are in order")
        return 0
    bad = sorted({line.split(":", 1)[0] for line in result.stderr.splitlines() if "error:" in line})
    print("\n".join(result.stderr.splitlines()[:40]))
    print(f"{len(bad)} files are not formatted. Type:\n  {tool} -i {' '.join(bad)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
