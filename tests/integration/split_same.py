#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program locally, then against servers that split its launches into parts, and compares what it prints.

    split_same.py --build DIR --transport shm --items 64 128 1024 [--split NAME]... [--whole NAME]... -- program args...

--split and --whole: kernels that the server's log must name as split, and as run whole, so that the test fails when
nothing is split at all. Exit status 0 when all is the same.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from with_server import Server  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--items", nargs="+", required=True, help="work-items of a part; 0: the server splits nothing")
    parser.add_argument("--split", action="append", default=[])
    parser.add_argument("--whole", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    cache = tempfile.mkdtemp(prefix="hawser-pocl-")
    env = dict(os.environ, POCL_CACHE_DIR=cache)
    env.pop("HAWSER_OPENCL_SPLIT", None)
    good = True
    try:
        local = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
        if local.returncode != 0:
            print(f"locally: exit status {local.returncode}")
            return 1
        for items in args.items:
            mode = "off" if items == "0" else f"items={items}"
            server_env = dict(env, HAWSER_OPENCL_SPLIT=mode)
            with Server(args.build, args.transport, env=server_env) as server:
                remote = subprocess.run(command, env=server.guest_env(env), stdout=subprocess.PIPE, text=True)
                server.wait_for_no_workers()
            log = "".join(server.log)
            for ours, theirs in zip(local.stdout.splitlines(), remote.stdout.splitlines()):
                if ours != theirs:
                    good = False
                    print(f"{mode}: '{theirs}' instead of '{ours}'")
            missing = [f"kernel '{name}' is split" for name in args.split] + [f"kernel '{name}' runs whole" for name in args.whole]
            missing = [text for text in missing if text not in log] if items != "0" else []
            if remote.returncode != 0 or len(remote.stdout) != len(local.stdout) or missing:
                good = False
                print(f"{mode}: exit status {remote.returncode}; not in the server's log: {missing}\n{log}")
            else:
                print(f"{mode}: {len(remote.stdout.splitlines())} lines")
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
