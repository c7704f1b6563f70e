#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""killed_test.py BUILD opencl|cuda PROGRAM: kill -9 at any point. While PROGRAM uses the API from several threads, its
worker, the server, or the program itself is killed at a random moment: at its start, or in the middle of its work.

A guest whose worker or server is gone comes back from every call with an error and has all its callbacks called; a
guest of another tenant gets right results meanwhile; nothing is left of a guest that is gone; and who comes then is
served. How the moments fall cannot be repeated, what must hold does not depend on it. HAWSER_KILL_ROUNDS sets the
number of rounds (default 18), HAWSER_KILL_SEED which moments are tried."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

VICTIMS, TRANSPORTS = ("worker", "guest", "server"), ("shm", "unix", "tcp")
# A call takes as long as it takes under a sanitizer on a busy machine; one that hangs takes for ever.
LIMIT_S = 240
# What calls return without a worker. OpenCL: CL_DEVICE_NOT_AVAILABLE, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
# CL_BUILD_PROGRAM_FAILURE (of a build that was under way), and -1001 (no platform) for who comes when there is none.
# CUDA: CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_NO_DEVICE.
TOLD = {"opencl": {-2, -11, -14, -1001}, "cuda": {46, 100}}


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def where(pid):
    """What each thread of a process that hangs waits in."""
    lines = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        try:
            lines.append(f"  thread {task.name} {(task / 'comm').read_text().strip()}: {(task / 'wchan').read_text().strip()}")
        except OSError:
            continue
    return "\n".join(lines)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Guest:
    """PROGRAM as a guest; `pid` is its process."""

    def __init__(self, server, program, seconds):
        self.process = subprocess.Popen([program, str(seconds)], env=server.guest_env(), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.text = ""

    def ready(self):
        self.text = self.process.stdout.readline()
        return self.text == "ready\n"

    def end(self):
        """Its exit status and the codes that it was told."""
        try:
            out, err = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            stacks = where(self.pid)
            self.process.kill()
            out, err = self.process.communicate()
            raise Failure(f"the guest hangs:\n{stacks}\n{self.text}{out}{err}") from None
        self.text += out + err
        told = [line for line in self.text.splitlines() if line.startswith("told:")]
        return self.process.returncode, {int(code) for line in told for code in line.split()[1:]}


def one_round(server, api, program, victim, running, beside, chance):
    other = Guest(server, program, 2) if beside else None
    check(other is None or other.ready(), f"the guest beside it did not start:\n{other.text if other else ''}")
    others = set(server.workers())
    guest = Guest(server, program, LIMIT_S if running else 1)
    try:
        if running:
            if not guest.ready():
                status, _ = guest.end()
                raise Failure(f"the guest did not start, {status}:\n{guest.text}")
        time.sleep(chance.uniform(0, 0.4))
        pids = {"worker": [pid for pid in server.workers() if pid not in others], "server": [server.process.pid], "guest": [guest.pid]}[victim]
        workers = server.workers()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # One that only starts may be over.
                os.kill(pid, signal.SIGKILL)
        status, told = guest.end()
        if victim == "guest":
            check(status in ([-signal.SIGKILL] if running else [-signal.SIGKILL, 0]), f"the guest ended with {status}:\n{guest.text}")
        else:
            check(status in ([2] if running else [0, 2]), f"the guest ended with {status}:\n{guest.text}")
            check(told <= TOLD[api], f"calls returned {sorted(told)}, of which only {sorted(TOLD[api])} are to be expected:\n{guest.text}")
        if other is not None:
            status, _ = other.end()
            check(status == 0, f"the guest beside it ended with {status}:\n{other.text}")
        if victim == "server":
            server.process.wait()
            end = time.monotonic() + 30
            while any(alive(pid) for pid in workers):
                check(time.monotonic() < end, "a worker outlives its server")
                time.sleep(0.01)
        else:
            check(server.process.poll() is None, "hawserd is gone")
            check(server.wait_for_no_workers(30), "a worker is left")
    finally:
        for left in (guest, other):
            if left is not None and left.process.poll() is None:
                left.process.kill()
                left.process.communicate()


def play(server, api, program, transport, plans, chance):
    """Does `plans`, one after the other, until one has killed the server."""
    while plans:
        victim, running = plans.pop(0)
        beside = victim != "server" and chance.random() < 0.4
        text = (f"{transport}: the {victim} is killed {'while the guest works' if running else 'when the guest starts'}"
                f"{', beside another guest' if beside else ''}")
        print(text, flush=True)
        try:
            one_round(server, api, program, victim, running, beside, chance)
        except Failure as failure:
            raise SystemExit(f"{text}: {failure}\nthe server's log:\n{''.join(server.log[-60:])}") from None
        if victim == "server":
            return
    guest = Guest(server, program, 1)
    status, _ = guest.end()
    check(status == 0, f"the guest that came at the end was not served, {status}:\n{guest.text}")


def main():
    build, api, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    count = int(os.environ.get("HAWSER_KILL_ROUNDS", "18"))
    seed = int(os.environ.get("HAWSER_KILL_SEED", str(time.time_ns() % 1000000)))
    print(f"HAWSER_KILL_ROUNDS={count} HAWSER_KILL_SEED={seed}", flush=True)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for transport in TRANSPORTS:
            plans = [(VICTIMS[i % len(VICTIMS)], chance.random() < 0.75) for i in range(-(-count // len(TRANSPORTS)))]
            while plans:
                try:
                    with with_server.Server(build, transport, cuda=api == "cuda", cache=folder) as server:
                        play(server, api, program, transport, plans, chance)
                except RuntimeError as error:  # What it says of a server that did not end by itself.
                    if f"hawserd ended with {-signal.SIGKILL}:" not in str(error):
                        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
