#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devices_test.py BUILD opencl|cuda PROGRAM: a server with two devices, each shared out by itself. A kernel that never
ends keeps the first from everybody who wants that, and from nobody else; nobody is ended for it here, so whoever waits
for it waits for ever. A tenant may have both devices (CUDA)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

TOKENS = {name: f"the token of tenant {name}" for name in ("wild", "tame", "third")}
LIMIT = 120


def check(condition, text):
    if not condition:
        raise SystemExit(text)


def main():
    build, api, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    hawser = build / "tools" / "hawser"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "hawserd.toml")
        tenants = "".join(f'[tenants.{name}]\ntoken = "{token}"\n' for name, token in TOKENS.items())
        config.write_text(f'[scheduler]\nmax_unit_ms = 0\n{tenants}')
        # One thread for each device, so that an endless kernel leaves a processor to others.
        two = {"HAWSER_CPU_DEVICES_APART": "1", "HAWSER_SOFT_DEVICES": "2", "HAWSER_SOFT_THREADS": "1",
               "POCL_DEVICES": "pthread pthread", "POCL_CACHE_DIR": f"{folder}/cache", "POCL_MAX_PTHREAD_COUNT": "1"}
        with with_server.Server(build, "shm", ["--config", str(config)], env=dict(os.environ, **two), cuda=api == "cuda") as server:
            guest = {name: dict(server.guest_env(), HAWSER_TOKEN=token) for name, token in TOKENS.items()}

            def begin(name, *words):
                process = subprocess.Popen([program, *words], env=guest[name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                launched = process.stdout.readline()
                if not launched.startswith("launched"):
                    raise SystemExit(f"{words} of {name} did not begin: {launched}{process.communicate()}")
                return process

            def run(name, *words):
                done = subprocess.run([program, *words], env=guest[name], capture_output=True, text=True, timeout=LIMIT)
                check(done.returncode == 0 and "result: right" in done.stdout, f"{words} of {name}:\n{done.stdout}{done.stderr}")

            def devices():
                shown = subprocess.run([str(hawser), "top", "--once", "--json"], env=dict(os.environ, HAWSER_SERVER=server.uri),
                                       capture_output=True, text=True, check=True)
                return {t["name"]: {d["device"] for d in t["device_times"]} for t in json.loads(shown.stdout)["tenants"]}

            wild = begin("wild", "endless", "0")
            run("tame", "short", "1")
            # Whoever wants the same device is kept waiting; on the other one two still take turns.
            waits = begin("third", "short", "0")
            for name in ("tame", "third", "tame"):
                run(name, "short", "1")
            check(waits.poll() is None and wild.poll() is None, "a kernel that never ends has left its device")
            wild.kill()
            wild.communicate()
            out, err = waits.communicate(timeout=LIMIT)
            check(waits.returncode == 0 and "result: right" in out, f"it has waited in vain:\n{out}{err}")
            if api == "cuda":
                # One process has the first device for ever, and the second for a moment, while others come to that.
                beside = [begin("wild", "endless", "0")]
                for name in ("wild", "third"):
                    run(name, "beside")
                    run("tame", "short", "1")
                beside[0].kill()
                beside[0].communicate()
            used = devices()
            print(used)
            check(all(one <= {"cpu:0", "cpu:1"} for one in used.values()), f"there are other devices: {used}")
            check(server.wait_for_no_workers(), "a worker is left")
            check(server.process.poll() is None, "hawserd is gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
