#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program locally and through a server and compares what it prints, line by line.

    same_output.py --build DIR --transport shm [--explained FILE] [--status-only] [--split items=N ...] -- program args...

FILE holds regular expressions, one a line, each under a comment that explains it: a line that differs is accepted when
one of them matches it. --status-only compares exit codes alone (programs that print measurements).
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from with_server import Server  # noqa: E402


def compare(args, command, env, split, local, explained):
    """Runs it through a server; True when that is as it was locally."""
    with Server(args.build, args.transport, env=env, split=split) as server:
        remote = subprocess.run(command, env=server.guest_env(env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)
        left = not server.wait_for_no_workers()
        log = list(server.log)
    differences = []
    if not args.status_only:
        for line in difflib.unified_diff(local.stdout.splitlines(), remote.stdout.splitlines(), "local", "remote",
                                         lineterm="", n=0):
            if line.startswith(("---", "+++", "@@")):
                continue
            if not any(pattern.search(line[1:]) for pattern in explained):
                differences.append(line)
    print(f"remote over {args.transport}{', ' + split if split else ''}: exit {remote.returncode}, "
          f"{len(remote.stdout.splitlines())} lines")
    for line in differences:
        print(line)
    bad = bool(differences) or local.returncode != remote.returncode or left
    if split is not None:
        count, text = server.splits()
        print(text)
        bad = bad or not count
    if bad:
        print(remote.stdout[-3000:] if args.status_only else "")
        print("--- hawserd's log\n" + "".join(log[-100:]))
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--explained", default=None)
    parser.add_argument("--status-only", action="store_true")
    parser.add_argument("--split", nargs="*", default=[],
                        help="once more for each, through a server that runs all launches in such parts: items=N")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if shutil.which(command[0]) is None:
        print(f"skipped: {command[0]} is not installed")
        return 77
    explained = []
    if args.explained:
        lines = pathlib.Path(args.explained).read_text().splitlines()
        explained = [re.compile(line) for line in lines if line.strip() and not line.startswith("#")]
    cache = tempfile.mkdtemp(prefix="hawser-pocl-")
    try:
        env = dict(os.environ, POCL_CACHE_DIR=cache)
        local = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if local.returncode == 77:  # It says why.
            print(local.stdout.strip())
            return 77
        print(f"local: exit {local.returncode}, {len(local.stdout.splitlines())} lines")
        if local.returncode != 0 or not local.stdout.strip():
            print(local.stdout[-3000:])
            print("the local run failed: nothing was compared")
            return 1
        good = [compare(args, command, env, split, local, explained) for split in [None] + args.split]
        return 0 if all(good) else 1
    finally:
        shutil.rmtree(cache, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
