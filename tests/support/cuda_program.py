#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a CUDA program one way and compares what it prints.

    cuda_program.py --build DIR --way soft|shm|unix|tcp [--expect FILE] [--env K=V]... [--server-arg=ARG]... -- program args...

soft: on the software device in the program's own process (hawser run --device soft). Otherwise through a hawserd of its
own that computes on the software device (hawser run --server). Exit status: 0 when the program succeeded and printed
on stdout exactly what FILE holds; 77 when a piece is not built here.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import with_server  # noqa: E402


def run(command, env, folder):
    return subprocess.run(command, env=env, cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--way", required=True, choices=["soft", "shm", "unix", "tcp"])
    parser.add_argument("--expect", type=pathlib.Path)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--server-arg", action="append", default=[])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.build = args.build.resolve()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    hawser = str(args.build / "tools" / "hawser")
    pieces = [hawser, args.build / "soft" / "libcuda.so.1", args.build / "guest" / "libcudart.so.13"]
    if args.way != "soft":
        pieces += [args.build / "guest" / "libcuda.so.1", args.build / "server" / "hawserd"]
    missing = [str(piece) for piece in pieces if not os.path.exists(piece)]
    if missing:
        print("skipped: not built here: " + ", ".join(missing))
        return 77
    env = dict(os.environ)
    env.pop("HAWSER_SERVER", None)
    env.update(pair.split("=", 1) for pair in args.env)
    with tempfile.TemporaryDirectory(prefix="hawser-cuda-") as folder:
        if args.way == "soft":
            done = run([hawser, "run", "--device", "soft", "--"] + command, env, folder)
            clean = True
        else:
            with with_server.Server(args.build, args.way, ["--device", "soft"] + args.server_arg, env) as server:
                done = run([hawser, "run", "--server", server.uri, "--"] + command, env, folder)
                clean = server.wait_for_no_workers() and server.process.poll() is None
                if done.returncode != 0 or not clean:
                    sys.stderr.write("--- hawserd's log\n" + "".join(server.log[-200:]) + "---\n")
    output = done.stdout.decode(errors="replace")
    sys.stdout.write(output)
    if done.returncode != 0:
        print(f"the program ended with {done.returncode}")
        return 1
    if not clean:
        print("the server ended, or left a worker behind")
        return 1
    if args.expect is not None and output != args.expect.read_text():
        print(f"that is not what {args.expect} holds:\n{args.expect.read_text()}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
