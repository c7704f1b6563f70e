#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doctor_test.py BUILD [cuda]: what `hawser doctor` says where all is well, where no server answers, and where the
OpenCL loader is missing. With `cuda` the build has CUDA too."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402

LIMIT = 120


def main():
    build, cuda = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] == ["cuda"]
    hawser = build / "tools" / "hawser"

    def doctor(*words, env=None):
        done = subprocess.run([str(hawser), "doctor", *words], env=env, capture_output=True, text=True, timeout=LIMIT)
        print(done.stdout + done.stderr)
        return done.returncode, done.stdout

    def check(condition, text):
        if not condition:
            raise SystemExit(f"doctor_test: {text}")

    with with_server.Server(build, "unix", [], env=dict(os.environ), cuda=cuda) as server:
        # What an operator's shell has, and no more: the command finds the guest side by itself.
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("HAWSER_", "OCL_ICD_", "LD_"))}
        code, said = doctor("--server", server.uri, env=plain)
        if cuda:
            check(code == 0 and said.count("  ok     devices: ") == 2, "all is well, and it says otherwise")
        else:
            check(code == 1 and "OpenCL programs will run; CUDA programs will not." in said, "a build without CUDA is half well")
        code, said = doctor("--server", server.uri, "--api", "opencl", env=plain)
        check(code == 0 and "CUDA" not in said and "Everything is in order" in said, "OpenCL alone is well")
        if cuda:
            code, said = doctor("--server", server.uri, "--api", "cuda", env=plain)
            check(code == 0 and "OpenCL" not in said and "libcudart.so.12, libcudart.so.13" in said, "CUDA alone is well")
        check(doctor("--api", "vulkan", env=plain)[0] not in (0, 1), "there is no such interface")
    with tempfile.TemporaryDirectory() as folder:
        code, said = doctor("--server", f"unix:{folder}/nobody", env=plain)
        check(code == 1 and "wrong  server: " in said, "nobody answers there")
        check("ok     guest library: " in said and "not looked at" in said, "the guest side is well all the same")
        check("Everything" not in said and "will run" not in said, "nothing will run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
