#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a bare machine could build what tests/gpu/pack brings along: it configures without Python, and links only
what it has.

    minimal_build.py --build DIR [--cmake=ARGUMENT]...

Nothing is compiled: a library of ours that the short list of tests/gpu/minimal.cmake forgot shows in what is linked.
Exit status: 0, 1 with what is missing, 77 where there is no git checkout to pack.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", action="append", default=[])
    args = parser.parse_args()
    if not (ROOT / ".git").exists():
        print("skipped: this is no git checkout, and tests/gpu/pack asks git what belongs to it")
        return 77
    with tempfile.TemporaryDirectory(prefix="hawser-minimal-") as folder:
        pack, build = pathlib.Path(folder, "pack"), pathlib.Path(folder, "build")
        subprocess.run([sys.executable, ROOT / "tests/gpu/pack", pack, "--build", args.build], check=True)
        configured = subprocess.run(["cmake", "-S", pack, "-B", build, "-G", "Ninja", "-DHAWSER_MINIMAL=ON",
                                     "-DCMAKE_BUILD_TYPE=Release", "-DHAWSER_PYTHON=OFF", *args.cmake], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True)
        if configured.returncode != 0:
            print(configured.stdout)
            print("tests/gpu/minimal.cmake does not configure")
            return 1
        unknown = sorted(set(re.findall(r"-l(hawser_\w+)", (build / "build.ninja").read_text())))
    for name in unknown:
        print(f"{name} is linked, but tests/gpu/minimal.cmake does not make it")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
