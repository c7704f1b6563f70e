#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/vm/run_in_vm.py: what several programs in one machine come to, without the machine."""

import subprocess
import sys
import unittest

from sources import ROOT

sys.path.insert(0, str(ROOT / "tests" / "vm"))
import run_in_vm  # noqa: E402


def status(*ends):
    lines = run_in_vm.run_all([["sh", "-c", f"exit {end}"] for end in ends])
    return subprocess.run(["sh", "-c", "\n".join(lines + ["exit $status"])]).returncode


class RunAllTest(unittest.TestCase):
    def test_all_pass(self):
        self.assertEqual(status(0, 0, 0), 0)

    def test_whoever_fails_is_seen(self):
        self.assertEqual([status(3, 0, 0), status(0, 3, 0), status(0, 0, 3)], [3, 3, 3])

    def test_skipped_is_not_passed(self):
        self.assertEqual([status(77, 0), status(0, 77)], [77, 77])

    def test_skipped_hides_no_failure(self):
        self.assertEqual([status(1, 77), status(77, 1)], [1, 1])


if __name__ == "__main__":
    unittest.main()
