#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/test_summary.py on results as CTest writes them."""

import io
import pathlib
import sys
import tempfile
import unittest

from sources import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import test_summary  # noqa: E402

RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="4" failures="1" disabled="0" skipped="1">
  <testcase name="good" classname="good" time="0.1" status="run"><system-out>fine</system-out></testcase>
  <testcase name="bad" classname="bad" time="0.1" status="fail"><failure message="Failed"/><system-out>no</system-out></testcase>
  <testcase name="absent" classname="absent" time="0" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>looking around
skipped: clpeak is not installed
</system-out></testcase>
  <testcase name="silent" classname="silent" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="unbuilt" classname="unbuilt" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="units" classname="units" time="0.2" status="run"><system-out>[ RUN      ] Vsock.Loopback
a_test.cc:12: Skipped
this kernel has no AF_VSOCK loopback

[  SKIPPED ] Vsock.Loopback (0 ms)
[ RUN      ] Other.Works
[       OK ] Other.Works (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Vsock.Loopback
</system-out></testcase>
  <testcase name="python" classname="python" time="0.2" status="run"><system-out>test_all (__main__.ATest.test_all) ... ok
test_processors (__main__.ATest.test_processors) ... skipped "there's one processor"
test_skips (__main__.ATest.test_skips) ... ok

Ran 3 tests in 0.010s

OK (skipped=1)
</system-out></testcase>
  <testcase name="terse" classname="terse" time="0.2" status="run"><system-out>s..s
Ran 4 tests in 0.010s

OK (skipped=2)
</system-out></testcase>
  <testcase name="tidy" classname="tidy" time="0.2" status="run"><system-out>3 sources checked
skipped here: 6 of 9 sources, looked at elsewhere
</system-out></testcase>
</testsuite>
"""


class SummaryTest(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.xml"
            path.write_text(RESULTS, encoding="utf-8")
            out = io.StringIO()
            test_summary.summarise(path, out)
        self.lines = out.getvalue().splitlines()

    def test_the_last_line_counts(self):
        self.assertEqual(self.lines[-1], "5 passed, 2 failed, 2 skipped")
        self.assertEqual(self.lines[-2], "4 skipped inside programs that passed")

    def test_skipped_tests_have_their_reason(self):
        self.assertIn("skipped: absent: skipped: clpeak is not installed", self.lines)
        self.assertIn("skipped: silent: SKIP_RETURN_CODE=77", self.lines)

    def test_tests_that_skip_inside_a_program_are_listed(self):
        self.assertIn("skipped inside units: Vsock.Loopback: this kernel has no AF_VSOCK loopback", self.lines)

    def test_python_tests_that_skip_are_listed(self):
        self.assertIn("skipped inside python: test_processors: there's one processor", self.lines)
        self.assertIn("skipped inside terse: 2 of its tests: no reason given; unittest gives it with verbosity=2", self.lines)

    def test_what_a_program_leaves_out_is_listed(self):
        self.assertIn("skipped inside tidy: part 1: 6 of 9 sources, looked at elsewhere", self.lines)

    def test_failures_are_named(self):
        self.assertIn("failed: bad", self.lines)

    def test_a_program_that_was_not_built_is_a_failure(self):
        self.assertIn("failed: unbuilt: not run: Unable to find executable", self.lines)


if __name__ == "__main__":
    unittest.main()
