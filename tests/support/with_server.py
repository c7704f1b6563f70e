#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program against a hawserd of its own.

    with_server.py --build DIR --transport shm|unix|tcp|vsock|none [--env K=V]... -- program args...

Starts hawserd in a temporary folder (unix socket, or a free TCP port on loopback; vsock: where the kernel has
vsock_loopback, see tests/vm), sets the environment so that the program sees only the server's devices, runs it, and
stops what it started. `none` runs the program locally, with the system's own platforms. Exit status: the program's; 99 when the server did not start, or did not stop cleanly, or left a
worker behind.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time


# What a sanitizer says, in the server or in a worker. Neither of them fails for it in front of the guest.
REPORT = re.compile(r"WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|:\d+: runtime error: ")


class Server:
    """A hawserd that lives as long as the `with` block, which raises RuntimeError at its end when the server did not
    stop as it should, or when a sanitizer reported something in it or in a worker. What it keeps from one time to the
    next it keeps in `cache`; by default that is a folder of its own. `split`: how it splits launches, whoever else is
    there ("blocks=3", "items=7")."""

    def __init__(self, build, transport, extra_args=(), env=None, cuda=False, cache=None, split=None):
        self.build = pathlib.Path(build)
        self.transport = transport
        self.cuda = cuda
        self.extra_args = list(extra_args) + (["--device", "soft"] if cuda else [])
        self.env = dict(os.environ if env is None else env)
        # glibc fills what is freed: what the server, a worker or a driver still uses of it fails at once, not one day.
        self.env.setdefault("MALLOC_PERTURB_", "165")
        if split is not None:
            self.env["HAWSER_CUDA_SPLIT" if split.startswith("blocks") else "HAWSER_OPENCL_SPLIT"] = split
        self.cache = cache
        self.folder = None
        self.process = None
        self.uri = None
        self.log = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="hawser-test-")
        self.env["XDG_CACHE_HOME"] = str(self.cache or pathlib.Path(self.folder, "cache"))
        listen = {"tcp": "tcp:127.0.0.1:0", "vsock": "vsock::0"}.get(self.transport, f"unix:{self.folder}/hawser.sock")
        if self.transport == "vsock":  # There a guest is known by the number of its machine.
            config = pathlib.Path(self.folder, "vsock.toml")
            config.write_text("[tenants.machine]\ncid = [1]\n")
            self.extra_args += ["--config", str(config)]
        # Without a unix socket of its own the operators' would be the machine's.
        if not listen.startswith("unix:") and "--admin" not in self.extra_args:
            self.extra_args += ["--admin", f"unix:{self.folder}/hawser.sock.admin"]
        command = [str(self.build / "server" / "hawserd"), "--listen", listen] + self.extra_args
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=self.env, stdin=subprocess.DEVNULL)
        ready = threading.Event()

        def read():
            for line in self.process.stdout:
                self.log.append(line)
                found = re.search(r"listening on (\S+)", line)
                if found and self.uri is None:
                    self.uri = found.group(1)
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        if not ready.wait(30) or self.uri is None:
            self.__exit__(RuntimeError, None, None)
            raise RuntimeError("hawserd did not start:\n" + "".join(self.log))
        if self.transport == "shm":
            self.uri = self.uri.replace("unix:", "shm:", 1)
        if self.transport == "vsock":  # CID 1 is this machine (vsock_loopback).
            self.uri = "vsock:1:" + self.uri.rsplit(":", 1)[1]
        return self

    def workers(self):
        """Pids of the server's workers."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
                return [int(pid) for pid in children.read().split()]
        except OSError:
            return []

    def wait_for_no_workers(self, seconds=10):
        """Workers end with their guests; True when none is left in time."""
        deadline = time.monotonic() + seconds
        while self.workers():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def splits(self):
        """What the log tells of kernels: how many were split, and a text with that and with those that were not, or no more."""
        split, whole = set(), {}
        for line in self.log:
            found = re.search(r"kernel '(.*)' (is split no more|is split|runs whole)(.*)", line)
            if found is not None and found[2] == "is split":
                split.add(found[1])
            elif found is not None:
                whole[found[1]] = found[2] + found[3]
        lines = [f"{len(split)} kernels were split, {len(whole)} not, or not always"]
        return len(split), "\n".join(lines + [f"  {name[:80]} {how}" for name, how in whole.items()])

    def guest_env(self, env=None):
        env = dict(os.environ if env is None else env)
        env["OCL_ICD_VENDORS"] = str(self.build / "icd")
        env.pop("OCL_ICD_FILENAMES", None)
        env["HAWSER_SERVER"] = self.uri
        if self.cuda:
            env["LD_LIBRARY_PATH"] = str(self.build / "guest")
        return env

    def __exit__(self, kind, *_):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.reader.join(5)
            if not self.reader.is_alive():  # A worker that was left behind still holds the other end.
                self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if kind is not None or self.process is None:
            return
        log = "".join(self.log)
        if REPORT.search(log):
            raise RuntimeError("a sanitizer reported something in the server or in a worker:\n" + log)
        if self.process.returncode != 0:
            raise RuntimeError(f"hawserd ended with {self.process.returncode}:\n" + "".join(self.log[-200:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--transport", required=True, choices=["shm", "unix", "tcp", "vsock", "none"])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--server-arg", action="append", default=[])
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--show-log", action="store_true", help="print the server's log at the end")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    env = dict(os.environ)
    env.update(pair.split("=", 1) for pair in args.env)
    cache = tempfile.mkdtemp(prefix="hawser-pocl-") if "POCL_CACHE_DIR" not in env else None
    if cache:
        env["POCL_CACHE_DIR"] = cache
    try:
        if args.transport == "none":
            if args.cuda:
                env["LD_LIBRARY_PATH"] = str(pathlib.Path(args.build) / "soft")
            return subprocess.run(command, env=env).returncode
        with Server(args.build, args.transport, args.server_arg, env, args.cuda) as server:
            guest = server.guest_env(env)
            guest["HAWSER_TEST_SERVER_PID"] = str(server.process.pid)
            status = subprocess.run(command, env=guest).returncode
            clean = server.wait_for_no_workers()
            alive = server.process.poll() is None
            if status != 0 or args.show_log or not clean or not alive:
                sys.stderr.write("--- hawserd's log\n" + "".join(server.log[-200:]) + "---\n")
            if not alive:
                sys.stderr.write("hawserd ended during the test\n")
                return 99
            if not clean:
                sys.stderr.write(f"workers left behind: {server.workers()}\n")
                return 99
            return status if status >= 0 else 128 - status
    finally:
        if cache:
            shutil.rmtree(cache, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
