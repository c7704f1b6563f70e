#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cupy_check.py, CuPy against NumPy, on the software CUDA device: directly, and through a server.

    cupy_suite.py --build DIR --packages DIR... [--ways soft shm ...]

CuPy compiles its kernels with NVRTC, whose PTX it hands over (CUPY_COMPILE_WITH_PTX), and brings CUB's kernels
compiled, with PTX for compute capability 12.0 alone. Both ways share its cache of kernels, so the second costs little. Status 77
(skip) when the packages are not there.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--packages", required=True, nargs="+", type=pathlib.Path,
                        help="folders with CuPy, and with NumPy, NVRTC and CUDA's headers")
    parser.add_argument("--ways", nargs="+", default=["soft", "shm"], help="soft, shm, unix or tcp")
    args = parser.parse_args()
    for folder in args.packages:
        if not (folder / ".packages").exists():
            print(f"skipped: {folder} has no packages (./hawser setup fetches them)")
            return 77
    libraries = [str(lib) for folder in args.packages for lib in sorted(folder.glob("nvidia/*/lib"))]
    toolkits = [str(path) for folder in args.packages for path in sorted(folder.glob("nvidia/cu*"))]
    failed = []
    with tempfile.TemporaryDirectory(prefix="hawser-cupy-") as work:
        env = dict(os.environ, PYTHONPATH=":".join(map(str, args.packages)), PYTHONDONTWRITEBYTECODE="1",
                   LD_LIBRARY_PATH=":".join(libraries), CUDA_PATH=toolkits[0], CUDA_HOME=toolkits[0],
                   CUPY_CACHE_DIR=f"{work}/kernels", CUPY_COMPILE_WITH_PTX="1", HAWSER_SOFT_CC="12.0", HOME=work)
        run = [str(args.build / "tools/hawser"), "run"]
        program = ["--", sys.executable, str(HERE / "cupy_check.py")]
        for way in args.ways:
            print(f"== {way}", flush=True)
            if way == "soft":
                status = subprocess.run([*run, "--device", "soft", *program], env=env).returncode
            else:
                with Server(args.build, way, env=env, cuda=True) as server:
                    status = subprocess.run([*run, "--server", server.guest_env(env)["HAWSER_SERVER"], *program],
                                            env=env).returncode
                    if not server.wait_for_no_workers():
                        print("a worker was left behind")
                        status = status or 1
                    if status != 0:
                        print("--- hawserd's log\n" + "".join(server.log[-50:]))
            if status != 0:
                failed.append(f"{way} (status {status})")
    print("failed: " + ", ".join(failed) if failed else f"the same as NumPy in {len(args.ways)} ways")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
