#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest library costs a program that never touches the GPU nothing: no thread, no descriptor, no signal handler,
no output. How many microseconds it costs is a row of `hawser bench opencl`, not of a test.

usage: guest_preload.py PROBE LIBRARY
"""

import os
import subprocess
import sys


def run(probe, library):
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    # A server that nobody answers at: a library that connects at load would show it.
    environment["HAWSER_SERVER"] = "unix:/nonexistent/hawser.sock"
    if library:
        environment["LD_PRELOAD"] = library
    return subprocess.run([probe], env=environment, capture_output=True, text=True, timeout=30)


def main(probe, library):
    without, preloaded = run(probe, None), run(probe, library)
    if (without.returncode, without.stdout, without.stderr) == (
            preloaded.returncode, preloaded.stdout, preloaded.stderr):
        print(f"with and without {library}:\n{without.stdout}", end="")
        return 0
    print(f"without: exit {without.returncode}\n{without.stdout}{without.stderr}")
    print(f"preloaded: exit {preloaded.returncode}\n{preloaded.stdout}{preloaded.stderr}")
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
