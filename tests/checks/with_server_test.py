#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/support/with_server.py with a program in hawserd's place: what it says or does not do at its end is no secret."""

import pathlib
import sys
import tempfile
import unittest

from sources import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
import with_server  # noqa: E402

SERVER = """#!/usr/bin/env python3
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit({status}))
print({line!r}, flush=True)
print("listening on unix:/nowhere", flush=True)
while True:
    signal.pause()
"""
RACE = "2026-11-21 12:00:00.000 [warning] session 3: WARNING: ThreadSanitizer: data race (pid=7)"


class WithServerTest(unittest.TestCase):
    def run_server(self, status=0, line="all is well"):
        """Starts and stops it; the text of the error, or None."""
        with tempfile.TemporaryDirectory() as build:
            program = pathlib.Path(build, "server", "hawserd")
            program.parent.mkdir()
            program.write_text(SERVER.format(status=status, line=line))
            program.chmod(0o755)
            try:
                with with_server.Server(build, "unix"):
                    pass
            except RuntimeError as error:
                return str(error)
        return None

    def test_a_server_that_stops_as_it_should(self):
        self.assertIsNone(self.run_server())

    def test_a_server_that_fails_at_its_end(self):
        self.assertIn("hawserd ended with 66", self.run_server(status=66))

    def test_what_a_sanitizer_reports(self):
        for line in (RACE, "==7==ERROR: AddressSanitizer: heap-use-after-free", "a.cc:12:3: runtime error: shift exponent 64"):
            self.assertIn(line, self.run_server(line=line))

    def test_errors_of_other_kinds_are_the_tests_business(self):
        self.assertIsNone(self.run_server(line="session 3: a runtime error: of the guest's"))

    def test_a_failing_test_keeps_its_own_error(self):
        with tempfile.TemporaryDirectory() as build:
            program = pathlib.Path(build, "server", "hawserd")
            program.parent.mkdir()
            program.write_text(SERVER.format(status=66, line=RACE))
            program.chmod(0o755)
            with self.assertRaises(KeyError):
                with with_server.Server(build, "unix"):
                    raise KeyError("the test's")


if __name__ == "__main__":
    unittest.main()
