#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which way large copies take. Over shared memory, on a device that works in the server's memory: no byte of pageable
memory passes through slots, rings or commands, and small copies of pinned memory that wait for nothing are no command.
Counted, not measured. And that such memory is bounded to the byte.

    cuda_copies_test.py BUILD PROGRAM
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

COPIES = 6  # Of 16 MiB: what the program's test makes.
SIZE = 16 << 20


def run(build, program, transport, memory, test="PageableCopiesOf16Megabytes"):
    """The program's commands by name, and the session's counters."""
    args = ["--cuda-memory", memory] if memory else []
    with with_server.Server(build, transport, args, cuda=True) as server:
        trace = pathlib.Path(server.folder) / "trace"
        stats = pathlib.Path(server.folder) / "stats"
        env = server.guest_env()
        env["HAWSER_TRACE"] = str(trace)
        env["HAWSER_STATS"] = str(stats)
        done = subprocess.run([program, f"--gtest_filter=*{test}"], env=env, capture_output=True,
                              text=True)
        if done.returncode != 0 or "1 test from 1 test suite ran" not in done.stdout:
            raise SystemExit(f"the program failed:\n{done.stdout}{done.stderr}")
        names = re.findall(r"^\S+ #\d+ (\w+)\(", trace.read_text(errors="replace"), re.MULTILINE)
        server.wait_for_no_workers()
        top = subprocess.run([pathlib.Path(build) / "tools" / "hawser", "top", "--once", "--json"], env=env,
                             capture_output=True, text=True, check=True)
        counts = json.loads(stats.read_text())
        for way in ("copied_in_bytes", "copied_out_bytes"):
            counts[way] = sum(tenant[way] for tenant in json.loads(top.stdout)["tenants"])
        return collections.Counter(names), counts


def bounds(build, program):
    """What the server says of a kernel that writes behind its memory's last byte."""
    with with_server.Server(build, "shm", cuda=True) as server:
        done = subprocess.run([program, "--gtest_also_run_disabled_tests", "--gtest_filter=*AnAccessBehindTheLastByte*"],
                              env=server.guest_env(), capture_output=True, text=True)
        if done.returncode != 0 or "1 test from 1 test suite ran" not in done.stdout:
            raise SystemExit(f"the access was not found:\n{done.stdout}{done.stderr}")
        server.wait_for_no_workers()
        return done.stderr + "".join(server.log)


def expect(what, truth, details):
    if not truth:
        raise SystemExit(f"{what}: {details}")


def main():
    build, program = sys.argv[1:]
    commands, _ = run(build, program, "shm", "", "PinnedCopiesInAStream")
    copies = {name: commands[name] for name in ("CopyHeap", "Write", "Read", "CopyLinear") if commands[name]}
    expect("copies of pinned memory, three behind kernels and a large one", copies == {"CopyHeap": 4}, copies)
    for memory in ("", "heap"):
        commands, stats = run(build, program, "shm", memory)
        copies = {name: commands[name] for name in ("CopyHeap", "Write", "Read") if commands[name]}
        expect("copies by command", not copies, copies)
        expect("bulk data", stats["bulk_up"] == 0 and stats["bulk_down"] == 0, stats)
        expect("copies by the device", stats["copied_in_bytes"] + stats["copied_out_bytes"] < SIZE // 16, stats)
        expect("bytes in commands and answers", stats["bytes_up"] + stats["bytes_down"] < SIZE // 16, stats)
        expect("freed otherwise than it was allocated", commands["FreeInHeap"] == 1 and commands["Free"] == 0, commands)
    said = bounds(build, program)
    expect("the nearest allocation is named", "nearest allocation" in said and ", 0 bytes before the address" in said, said)
    # Otherwise they go through slots, or on the bulk channel.
    commands, stats = run(build, program, "shm", "driver")
    expect("copies through slots", commands["CopyHeap"] >= COPIES and commands["FreeInHeap"] == 0, commands)
    expect("copies by the device", stats["copied_in_bytes"] + stats["copied_out_bytes"] >= COPIES * SIZE, stats)
    commands, stats = run(build, program, "unix", "")
    expect("copies by the device", stats["copied_in_bytes"] + stats["copied_out_bytes"] >= COPIES * SIZE, stats)
    expect("bulk data over a socket", stats["bulk_up"] + stats["bulk_down"] == COPIES * SIZE, stats)
    expect("memory over a socket", commands["FreeInHeap"] == 0 and commands["Free"] == 1, commands)


if __name__ == "__main__":
    main()
