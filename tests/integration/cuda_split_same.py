#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a CUDA program on the software device in its own process, then through servers that split its launches into
parts or whose gate refuses, and compares what it prints.

    cuda_split_same.py --build DIR --transport shm --settings off blocks=1 gate,refuse=2,cores=1
                       [--server-arg ARG]... [--server-env K=V]... [--split NAME]... [--whole NAME]... [--never NAME]... [--alarm NAME]... -- program args...

--settings: values of HAWSER_CUDA_SPLIT. --split and --whole: kernels that the server's log must name as split, and as
run whole, with settings that name blocks, so that the test fails when nothing is split at all; and with settings that
name cores, so that it fails when kernels that were never measured are not. --never: kernels that are launched in a way
that nobody even thinks of splitting. --alarm: kernels that are split and must not be, which only the alarm shows. Exit status 0 when all is the same, 77 when
a piece is not built here.
"""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from with_server import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--settings", nargs="+", required=True)
    parser.add_argument("--server-arg", action="append", default=[])
    parser.add_argument("--server-env", action="append", default=[])
    parser.add_argument("--split", action="append", default=[])
    parser.add_argument("--whole", action="append", default=[])
    parser.add_argument("--never", action="append", default=[])
    parser.add_argument("--alarm", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    build = args.build.resolve()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    hawser = build / "tools" / "hawser"
    missing = [str(piece) for piece in (hawser, pathlib.Path(command[0])) if not piece.exists()]
    if missing:
        print("skipped: not built here: " + ", ".join(missing))
        return 77
    env = dict(os.environ)
    for name in ("HAWSER_SERVER", "HAWSER_CUDA_SPLIT"):
        env.pop(name, None)
    local = subprocess.run([hawser, "run", "--device", "soft", "--"] + command, env=env, stdout=subprocess.PIPE,
                           text=True)
    if local.returncode != 0:
        print(f"locally: exit status {local.returncode}\n{local.stdout}")
        return 1
    good = True
    for setting in args.settings:
        server_env = dict(env, HAWSER_CUDA_SPLIT=setting, **dict(each.split("=", 1) for each in args.server_env))
        with Server(build, args.transport, args.server_arg, env=server_env, cuda=True) as server:
            remote = subprocess.run([hawser, "run", "--server", server.uri, "--"] + command, env=env,
                                    stdout=subprocess.PIPE, text=True)
            clean = server.wait_for_no_workers() and server.process.poll() is None
        log = "".join(server.log)
        for ours, theirs in zip(local.stdout.splitlines(), remote.stdout.splitlines()):
            if ours != theirs:
                print(f"{setting}: '{theirs}' instead of '{ours}'")
        absent = []
        if setting.startswith("blocks") or "cores=" in setting:
            # The compiler's names: _Z6placesPj
            kernels = [line.split("kernel '")[1] for line in log.splitlines() if "kernel '" in line]
            for names, how in ((args.split, "is split"), (args.whole, "runs whole"), (args.alarm, "is split no more")):
                absent += [f"{name} {how}" for name in names
                           if not any(f"{len(name)}{name}" in each and how in each for each in kernels)]
            absent += [f"nothing of {name}" for name in args.never
                       if any(f"{len(name)}{name}" in each and "is split" in each for each in kernels)]
        if remote.returncode != 0 or remote.stdout != local.stdout or absent or not clean:
            good = False
            print(f"{setting}: exit status {remote.returncode}; clean: {clean}; not in the server's log: {absent}\n{log}")
        else:
            print(f"{setting}: {len(remote.stdout.splitlines())} lines")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
