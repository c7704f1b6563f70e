#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""max_share_test.py BUILD: a tenant that is alone on a real server, with a maximum of a quarter, gets no more than that, and
computes what is right; its maximum can be taken away while it runs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

TOKEN = "the token of tenant one"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    program, hawser = build / "bench" / "experiments" / "hawser-experiment-opencl", build / "tools" / "hawser"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "hawserd.toml")
        config.write_text(f'[opencl]\nenv = {{ POCL_MAX_PTHREAD_COUNT = "1", POCL_CACHE_DIR = "{folder}/cache" }}\n'
                          f'[tenants.one]\ntoken = "{TOKEN}"\nmax_share = 25\n')
        with with_server.Server(build, "shm", ["--config", str(config)]) as server:
            operator = dict(os.environ, HAWSER_SERVER=server.uri)

            def used():
                shown = subprocess.run([str(hawser), "top", "--once", "--json"], env=operator, capture_output=True, text=True, check=True)
                snapshot = json.loads(shown.stdout)
                return snapshot["monotonic_ns"], {t["name"]: t.get("gpu_ns") or 0 for t in snapshot["tenants"]}.get("one", 0)

            command = [str(program), "--work", "matmul", "--size", "160", "--seconds", "12"]
            with subprocess.Popen(command, env=dict(server.guest_env(), HAWSER_TOKEN=TOKEN), stdout=subprocess.PIPE, text=True) as guest:
                deadline = time.monotonic() + 60
                while used()[1] == 0 and time.monotonic() < deadline:
                    time.sleep(0.05)
                begin, at_begin = used()
                time.sleep(2)
                end, at_end = used()
                subprocess.run([str(hawser), "tenants", "set", "one", "--max-share", "0"], env=operator, check=True, stdout=subprocess.DEVNULL)
                out, _ = guest.communicate(timeout=120)
            had, time_ns = at_end - at_begin, end - begin
            # A quarter of this time and of 100 ms more, and a piece, which a busy machine can make long.
            most = (time_ns + 100_000_000) // 4 + 100_000_000
            print(f"{had / 1e6:.0f} of {time_ns / 1e6:.0f} ms; {most / 1e6:.0f} ms at most")
            if not 0 < had <= most:
                raise SystemExit("this is not a quarter at most")
            if not json.loads(out)["right"]:
                raise SystemExit("a result is wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
