#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a bare machine could build and use what tests/gpu/pack brings along.

    minimal_build.py --build DIR [--jobs N] [--cmake=ARGUMENT]...

Packs the tree, and lets tests/gpu/run do there, without Python, what takes a few minutes: guest, worker, server and
software device, and one program of each kind. The rest is only configured: what it links must exist. The folder stays
(DIR/minimal), so that the next time only what changed is compiled. Exit status: 0, 1 with what is wrong, 77 where there
is no git checkout to pack.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Target: its program's name in the table, and the ways in which it must have run (tests/gpu/run --help).
PROGRAMS = {
    "cuda_basics_test": ("cuda_basics_test", "native shm tcp"),
    "cudart_waits_test": ("cudart_waits_test", "shm tcp"),
    "nvcc_cudart_textures": ("cudart_textures", "runtime shm tcp"),
    "nvcc_vector_add_shared": ("example/vector_add_shared", "runtime shm tcp"),
    "driver_api": ("example/driver_api", "native shm tcp"),
}
PARTS = ["hawserd", "hawser-worker", "hawser_soft_cuda", "hawser_cuda", "hawser_cudart12", "hawser_cudart13",
         "hawser_preload"]


def run(command, env):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        print(done.stdout[-20000:])
        print(f"{' '.join(map(str, command))}: ended with {done.returncode}")
    return done


def table(text):
    """{program: {way: cell}} of the table that tests/gpu/run prints."""
    rows, ways = {}, []
    for line in text.splitlines():
        words = re.split(r"  +", line.strip())
        if words[0] == "program":
            ways = words[1:-1]
        elif ways and len(words) > len(ways):
            rows[words[0]] = dict(zip(ways, words[1:]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("--cmake", action="append", default=[])
    args = parser.parse_args()
    if not (ROOT / ".git").exists():
        print("skipped: this is no git checkout, and tests/gpu/pack asks git what belongs to it")
        return 77
    folder = args.build.resolve() / "minimal"
    pack, build = folder / "pack", folder / "build"
    shutil.rmtree(pack, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    env = dict(os.environ)
    # A compiler's cache is of use to other checkouts, too.
    env.setdefault("CCACHE_BASEDIR", str(folder))
    env.setdefault("CCACHE_NOHASHDIR", "1")
    if run([sys.executable, ROOT / "tests/gpu/pack", pack, "--build", args.build], env).returncode != 0:
        return 1
    names = [name for name, _ in PROGRAMS.values()]
    results = folder / "results.txt"
    results.unlink(missing_ok=True)
    command = [pack / "tests/gpu/run", "--device", "soft", "--build", build, "--transports", "shm,tcp", "--skip-bench",
               "--results", results, "--only", "|".join(names), "--targets", " ".join([*PARTS, *PROGRAMS]), "-j", args.jobs,
               # Speed is not the point, and time to compile is.
               "--cmake=-DCMAKE_CXX_FLAGS_RELEASE=-O0", "--cmake=-DHAWSER_PYTHON=OFF"]
    if run(command + [f"--cmake={argument}" for argument in args.cmake], env).returncode != 0:
        return 1
    wrong = [f"{name} is linked, but tests/gpu/minimal.cmake does not make it"
             for name in sorted(set(re.findall(r"-l(hawser_\w+)", (build / "build.ninja").read_text())))]
    text = results.read_text()
    print(text)
    rows = table(text)
    for name, ways in PROGRAMS.values():
        for way in ways.split():
            cell = rows.get(name, {}).get(way, "missing")
            if not re.fullmatch(r"\d+\.\d s", cell):
                wrong.append(f"{name}, {way}: {cell}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
