#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a Python program that uses CUDA on the software CUDA device: directly, and through a server.

    python_suite.py --build DIR --packages DIR... --check CHECK.py [--ways soft shm ...] [--split blocks=3 ...] [--env NAME=VALUE ...]

CHECK.py says by its status whether all was right. --split: once more for each, over shared memory, through a server that runs all launches in
such parts. {work} in a value is a temporary folder that all ways share, for what a program keeps from one run to the next. NVRTC is found where
the packages have it, also under the plain name that some programs ask for. Status 77 (skip) when the packages are not there.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from with_server import Server  # noqa: E402


def environment(args, work):
    libraries = [lib for folder in args.packages for lib in sorted(folder.glob("nvidia/*/lib"))]
    toolkits = [str(path) for folder in args.packages for path in sorted(folder.glob("nvidia/cu*"))]
    plain = pathlib.Path(work, "lib")
    plain.mkdir()
    for library in libraries:
        for nvrtc in library.glob("libnvrtc.so.*"):
            (plain / "libnvrtc.so").symlink_to(nvrtc)
    env = dict(os.environ, PYTHONPATH=":".join(map(str, args.packages)), PYTHONDONTWRITEBYTECODE="1", HOME=work, XDG_CACHE_HOME=f"{work}/cache",
               LD_LIBRARY_PATH=":".join(map(str, [*libraries, plain])))
    if toolkits:
        env.update(CUDA_PATH=toolkits[0], CUDA_HOME=toolkits[0])
    for pair in args.env:
        name, value = pair.split("=", 1)
        env[name] = value.replace("{work}", work)
    return env


def run_way(args, way, split, env):
    run = [str(args.build / "tools/hawser"), "run"]
    program = ["--", sys.executable, str(args.check)]
    if way == "soft":
        return subprocess.run([*run, "--device", "soft", *program], env=env).returncode
    with Server(args.build, way, env=env, cuda=True, split=split) as server:
        status = subprocess.run([*run, "--server", server.guest_env(env)["HAWSER_SERVER"], *program], env=env).returncode
        if not server.wait_for_no_workers():
            print("a worker was left behind")
            status = status or 1
        if split is not None:
            count, text = server.splits()
            print(text)
            status = status or (0 if count else 1)
        if status != 0:
            print("--- hawserd's log\n" + "".join(server.log[-50:]))
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--packages", required=True, nargs="+", type=pathlib.Path,
                        help="folders with the program's packages, and with NumPy, NVRTC and CUDA's headers")
    parser.add_argument("--ways", nargs="*", default=["soft", "shm"], help="soft, shm, unix or tcp")
    parser.add_argument("--split", nargs="*", default=[], help="blocks=N")
    parser.add_argument("--env", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--check", required=True, type=pathlib.Path, metavar="CHECK.py")
    args = parser.parse_args()
    for folder in args.packages:
        if not (folder / ".packages").exists():
            print(f"skipped: {folder} has no packages (./hawser setup fetches them)")
            return 77
    failed = []
    with tempfile.TemporaryDirectory(prefix="hawser-python-") as work:
        env = environment(args, work)
        ways = [(way, None) for way in args.ways] + [("shm", split) for split in args.split]
        for way, split in ways:
            name = way if split is None else f"{way}, {split}"
            print(f"== {name}", flush=True)
            status = run_way(args, way, split, env)
            if status != 0:
                failed.append(f"{name} (status {status})")
    print("failed: " + ", ".join(failed) if failed else f"{args.check.name}: all right in {len(ways)} ways")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
