#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""no_code_test.py BUILD PROGRAM...: programs whose code does not run on the device are told once, on stderr, what they
have, on the device itself and through a server."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import with_server  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
PROGRAMS = sys.argv[2:]


def environment():
    env = dict(os.environ)
    for name in ("HAWSER_SERVER", "HAWSER_LOG", "HAWSER_LOG_FILE"):
        env.pop(name, None)
    return env


class NoCode(unittest.TestCase):
    def is_told(self, *arguments):
        for program in PROGRAMS:
            with self.subTest(program=pathlib.Path(program).name):
                done = subprocess.run([str(BUILD / "tools" / "hawser"), "run", *arguments, "--", program],
                                      capture_output=True, text=True, env=environment(), timeout=60)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                lines = [line for line in done.stderr.splitlines() if "cubin for sm_75" in line]
                self.assertEqual(len(lines), 1, done.stderr)

    def test_on_the_device_itself(self):
        self.is_told("--device", "soft")

    def test_through_a_server(self):
        with with_server.Server(BUILD, "unix", ["--device", "soft"], environment()) as server:
            self.is_told("--server", server.uri)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
