#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""isolated_policy_test.py BUILD PLUGIN: two tenants share a real server under a policy in a process of its own. That process is
killed while they work: both programs end with right results, and the operator is told what happened, in the log and by `hawser top`,
which also shows what sharing cost."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

TOKENS = {"one": "the token of tenant one", "two": "the token of tenant two"}


def policy_hosts(server):
    """The pids of a server's hawser-policy-host processes. A thread of the server started each."""
    found = []
    for task in pathlib.Path(f"/proc/{server}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
            found += [int(pid) for pid in children if os.readlink(f"/proc/{pid}/exe").endswith("hawser-policy-host")]
        except OSError:
            continue  # It has just ended.
    return found


def wait_for(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def main():
    build, plugin = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    program = build / "bench" / "experiments" / "hawser-experiment-opencl"
    hawser = build / "tools" / "hawser"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "hawserd.toml")
        config.write_text(f'[opencl]\nenv = {{ POCL_MAX_PTHREAD_COUNT = "1", POCL_CACHE_DIR = "{folder}/cache" }}\n'
                          f'[scheduler]\npolicy = "{plugin}"\nisolated = true\nalone_after_ms = 60000\n'
                          + "".join(f'[tenants.{name}]\ntoken = "{token}"\n' for name, token in TOKENS.items()))
        with with_server.Server(build, "shm", ["--config", str(config)]) as server:
            hosts = policy_hosts(server.process.pid)
            if len(hosts) != 1:
                raise SystemExit(f"there are {len(hosts)} policy processes:\n" + "".join(server.log))
            guests = []
            for token in TOKENS.values():
                env = dict(server.guest_env(), HAWSER_TOKEN=token)
                command = [str(program), "--work", "matmul", "--size", "160", "--seconds", "6"]
                guests.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

            def top(*options):
                env = dict(os.environ, HAWSER_SERVER=server.uri)
                return subprocess.run([str(hawser), "top", "--once", *options], env=env, capture_output=True, text=True, check=True).stdout

            def used():
                return {tenant["name"]: tenant.get("gpu_ns") or 0 for tenant in json.loads(top("--json"))["tenants"]}

            wait_for("both work", lambda: all(used().get(name, 0) > 0 for name in TOKENS))
            wait_for("they take turns", lambda: json.loads(top("--json"))["system"]["switches"] > 0)
            if json.loads(top("--json"))["status"]["policy"]["last_ejection"] is not None:
                raise SystemExit("a policy was ejected already")
            os.kill(hosts[0], signal.SIGKILL)
            for guest in guests:
                out, errors = guest.communicate(timeout=120)
                if guest.returncode != 0:
                    raise SystemExit(f"a program ended with {guest.returncode}: {errors}\n" + "".join(server.log))
                result = json.loads(out)
                print(len(result["launches_ms"]), "launches, right:", result["right"])
                if not result["right"] or not result["launches_ms"]:
                    raise SystemExit("a result is wrong")
            log = "".join(server.log)
            print(log)
            for text in ("its process was killed by signal 9 (SIGKILL)", "fair takes over", '"tenants":['):
                if text not in log:
                    raise SystemExit(f"the log does not say: {text}")
            policy = json.loads(top("--json"))["status"]["policy"]
            last = policy["last_ejection"]
            print(last)
            if policy["name"] != "fair" or policy["ejections"] != 1 or last["policy"] != "drr":
                raise SystemExit(f"top does not say what was ejected: {policy}")
            if "SIGKILL" not in last["reason"] or abs(time.time() - last["unix_ns"] / 1e9) > 600:
                raise SystemExit(f"top does not say why, or when: {last}")
            if {tenant["name"] for tenant in json.loads(last["dump"])["tenants"]} != set(TOKENS):
                raise SystemExit(f"the dump is not the tenants': {last['dump']}")
            shown = top("--interval", "0.1")
            for text in ("policy drr was ejected", "SIGKILL", "(system)", "(waits)"):
                if text not in shown:
                    raise SystemExit(f"top does not say {text}: {shown}")
            wait_for("the process is gone", lambda: not policy_hosts(server.process.pid))
    return 0


if __name__ == "__main__":
    sys.exit(main())
