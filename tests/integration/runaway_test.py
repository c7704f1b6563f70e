#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runaway_test.py BUILD opencl|cuda PROGRAM: a kernel that never ends costs its own tenant the session and nobody else
anything. As long as its tenant is alone it may run; when another wants the device and the limit is over, its guest is
told, its worker replaced, and the other computes what is right. Many short kernels that take longer together are none,
also when they were launched while their tenant was alone. What a lone tenant has enqueued behind something that only its
guest can do (a function, an event) is its own when it gets to the device, too."""

import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

TOKENS = {"wild": "the token of tenant wild", "tame": "the token of tenant tame"}
# What calls return once the session is over.
ENDED = {"opencl": "ended: -2\n", "cuda": "ended: CUDA_ERROR_LAUNCH_TIMEOUT\n"}


def check(condition, text):
    if not condition:
        raise SystemExit(text)


def main():
    build, api, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "hawserd.toml")
        tenants = "".join(f'[tenants.{name}]\ntoken = "{token}"\n' for name, token in TOKENS.items())
        config.write_text(f'[scheduler]\nmax_unit_ms = 700\n[opencl]\nenv = {{ POCL_CACHE_DIR = "{folder}/cache" }}\n{tenants}')
        with with_server.Server(build, "shm", ["--config", str(config)], cuda=api == "cuda") as server:
            guest = {name: dict(server.guest_env(), HAWSER_TOKEN=token) for name, token in TOKENS.items()}

            def short(name):
                return subprocess.run([program, "short"], env=guest[name], capture_output=True, text=True, timeout=240)

            def short_until_ended(other):
                """The other tenant comes until `other` has ended: a kernel may be launched and still be compiled meanwhile."""
                end = time.monotonic() + 240
                while other.poll() is None and time.monotonic() < end:
                    tame = short("tame")
                    check(tame.returncode == 0 and "result: right" in tame.stdout,
                          f"the other tenant did not get its result:\n{tame.stdout}{tame.stderr}")
                if other.poll() is None:
                    other.kill()

            wild = subprocess.Popen([program, "endless"], env=guest["wild"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            launched = wild.stdout.readline()
            short_until_ended(wild)
            out, err = wild.communicate(timeout=240)
            print(launched + out + err)
            check(wild.returncode == 2 and ENDED[api] in out, "the guest of the endless kernel was not told")
            check("longer than the limit" in err, "the guest was not told why")
            if api == "cuda":
                check("callback: CUDA_ERROR_LAUNCH_TIMEOUT\n" in out, "a callback behind the endless kernel was not told:\n" + out)
            # Everybody may come again.
            for name in TOKENS:
                again = short(name)
                check(again.returncode == 0, f"tenant {name} cannot come again:\n{again.stdout}{again.stderr}")
            check(server.wait_for_no_workers(), "a worker is left")
            check(server.process.poll() is None, "hawserd is gone")
            log = "".join(server.log)
            check("tenant wild has kept the device busy" in log, "the log does not say who it was:\n" + log)
            check(log.count("has kept the device busy") == 1, "more than one session was ended:\n" + log)
            if api == "cuda":
                busy = subprocess.Popen([program, "queue"], env=guest["wild"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                launched = busy.stdout.readline()
                tame = short("tame")
                out, err = busy.communicate(timeout=240)
                print(launched + out + err + tame.stdout + tame.stderr)
                check(tame.returncode == 0, "the other tenant did not get its result beside a long queue")
                check(busy.returncode == 0 and "result: right" in out,
                      "a long queue was taken for a kernel that never ends:\n" + "".join(server.log))
                # Nobody waits for the function before it; when it gets to the device all the same, it is its tenant's.
                wild = subprocess.Popen([program, "behind"], env=guest["wild"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                launched = wild.stdout.readline()
                short_until_ended(wild)
                out, err = wild.communicate(timeout=240)
                print(launched + out + err)
                check(wild.returncode == 2 and ENDED[api] in out, "the guest of the kernel behind a function was not told")
                check("".join(server.log).count("has kept the device busy") == 2, "another session was ended:\n" + "".join(server.log))
            else:
                def behind(mode):
                    """One that waits for an event of its own, after another tenant has come and gone."""
                    guest_of = subprocess.Popen([program, mode], env=guest["wild"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                stderr=subprocess.PIPE, text=True)
                    launched = guest_of.stdout.readline()
                    tame = short("tame")
                    check(tame.returncode == 0, f"the other tenant waits for an event that is not set:\n{tame.stdout}{tame.stderr}")
                    guest_of.stdin.write("go\n")
                    guest_of.stdin.flush()
                    short_until_ended(guest_of)
                    out, err = guest_of.communicate(timeout=240)
                    print(launched + out + err)
                    return guest_of.returncode, out

                code, out = behind("queue")
                check(code == 0 and "result: right" in out, "many kernels behind an event were taken for one that never ends")
                code, out = behind("behind")
                check(code == 2 and ENDED[api] in out, "the guest of the endless kernel behind an event was not told")
                check("".join(server.log).count("has kept the device busy") == 2, "another session was ended:\n" + "".join(server.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
