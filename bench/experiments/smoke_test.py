#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The experiments' machinery on the real server, small: tenants run, results are right, nobody is missing. No times.

    smoke_test.py BUILD pocl|soft"""

import dataclasses
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import experiments
import pictures
import stage

BUILD, DEVICE = pathlib.Path("build/release"), "pocl"
SMALL = {"matmul": 40, "sobel": 40, "binomial": 40, "madd": 40}


def real():
    """docs/experiments/real.py as a module."""
    spec = importlib.util.spec_from_file_location("real", stage.ROOT / "docs" / "experiments" / "real.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SmokeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stage = stage.Stage(BUILD, DEVICE)
        cls.addClassCleanup(cls.stage.close)

    def test_every_policy_computes_the_same(self):
        bench = experiments.Bench(self.stage, quick=True, say=lambda text: None)
        for policy in ("none", "fifo", "fair", "split"):
            tenants = [stage.Tenant(name, {"work": name, "size": size, "repeat": 3, "rounds": 2}, name) for name, size in SMALL.items()]
            result = bench.run(policy, tenants)
            self.assertEqual(sorted(result.programs), sorted(SMALL))
            for name, program in result.programs.items():
                self.assertGreaterEqual(len(program["launches_ms"]), 3, f"{name} under {policy}")
                self.assertTrue(program["right"], f"{name} under {policy}")
                self.assertEqual(program["work"], name)
            self.assertEqual(sorted(result.counters), sorted(SMALL))
        report = experiments.Report("", [], ())
        bench.judge_results(report)
        self.assertTrue(report.goals[0].met, report.goals[0].value)

    def test_the_pace_of_the_device_is_known_for_the_whole_run(self):
        if not self.stage.has_pace():
            self.skipTest("the device has no processor of its own here")
        result = self.stage.run("fair", [stage.Tenant("one", {"work": "madd", "size": 40, "repeat": 3, "delay_ms": 600})], pace=True)
        ends = [end for end, _ in result.paces]
        self.assertEqual(ends, sorted(ends))
        self.assertGreaterEqual(len(ends), 2)
        last = max(begin + length for begin, length in result.launches("one"))
        self.assertGreaterEqual(ends[-1], last)
        for _, paces in result.paces:
            self.assertEqual(len(paces), 2)
            for pace in paces:  # Logarithms of microseconds: between a tenth and a second.
                self.assertTrue(-2.3 < pace < 14, pace)

    def test_launches_that_wait_for_each_other(self):
        # Several under way in one queue, each long enough to be split: the second must not pass the gate and then wait
        # for parts of the first, which would have to pass it too.
        for policy in ("fair", "fifo"):
            tenants = [stage.Tenant(name, {"work": "matmul", "size": 192, "repeat": 4, "depth": 3}) for name in ("one", "two")]
            result = self.stage.run(policy, tenants)
            for name in ("one", "two"):
                self.assertTrue(result.programs[name]["right"])
                self.assertGreaterEqual(len(result.launches(name)), 4)

    def test_a_program_that_fails_is_told(self):
        with self.assertRaisesRegex(stage.Failure, "there is no work 'nonsense'"):
            self.stage.run("none", [stage.Tenant("one", {"work": "nonsense", "repeat": 1})])

    def test_a_policy_that_is_not_there_is_told(self):
        with self.assertRaisesRegex(stage.Failure, "nonsense"):
            self.stage.run("nonsense", [stage.Tenant("one", {"work": "madd", "size": 40, "repeat": 1})])


class PageTest(unittest.TestCase):
    def test_numbers_pictures_and_page(self):
        page = real()
        page.keep.machine = page.machine()
        report = experiments.Report("A title", ["Words."], ("tenant", "share"), [("one", "30.0")], data=[{"one": 1.23456789}])
        report.goal("this", True, "1")
        report.goal("that", False, "0.123")
        report.pictures["weights"] = pictures.bars("Bars <&>", "%", [("group", [("one", 30, 33.3), ("two", 0, None)])])
        report.pictures["boxes"] = pictures.boxes("Boxes", "ms", [("fifo", [("one", [1, 2, 9]), ("two", [3])])])
        with tempfile.TemporaryDirectory(prefix="hawser-experiment-page-") as name:
            out = pathlib.Path(name)
            page.keep(out, DEVICE, "weights", report, quick=False)
            page.write_page(out)
            text = (out / "real.md").read_text()
            for words in ("### A title", "| one | 30.0 |", "1 of 2 met", "* that: 0.123", f"real/{DEVICE}-weights.svg"):
                self.assertIn(words, text)
            kept = json.loads((out / "real" / f"{DEVICE}-weights.json").read_text())
            self.assertEqual(kept["report"]["data"], [{"one": 1.2346}])
            self.assertEqual(kept["report"]["goals"], [dataclasses.asdict(goal) for goal in report.goals])
            for picture in ("weights", "boxes"):
                xml.etree.ElementTree.parse(out / "real" / f"{DEVICE}-{picture}.svg")


if __name__ == "__main__":
    BUILD, DEVICE = pathlib.Path(sys.argv[1]), sys.argv[2]
    missing = stage.Stage(BUILD, DEVICE)
    missing.close()
    if missing.missing:
        print("skipped: not built here: " + ", ".join(missing.missing))
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
