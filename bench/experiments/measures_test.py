#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the experiments, with vectors worked out by hand."""

import math
import os
import pathlib
import subprocess
import sys
import unittest

import experiments
import measures
import stage


class RepetitionTest(unittest.TestCase):
    """Runs that the machine's host disturbed."""

    def chosen(self, *stolen):
        """Which run counts, and how many were made."""
        class Stage:
            device = "pocl"

        bench, runs = experiments.Bench(Stage, say=lambda text: None), list(stolen)
        bench.run = lambda policy, tenants: stage.Result([], {}, {}, runs.pop(0))
        return bench.run_undisturbed("fair", []).stolen, len(stolen) - len(runs)

    def test_a_quiet_run_counts_at_once(self):
        self.assertEqual(self.chosen(0.02, 0), (0.02, 1))

    def test_a_disturbed_one_is_made_again(self):
        self.assertEqual(self.chosen(0.05, 0.004, 0.001), (0.004, 2))

    def test_of_three_disturbed_ones_the_best_counts(self):
        self.assertEqual(self.chosen(0.06, 0.03, 0.05, 0), (0.03, 3))


class ThreadSplitTest(unittest.TestCase):
    """What is made of the runs of the thread-split experiments."""

    def report(self, paces, lengths, mix=("12K",), clock=False):
        """`paces`: of each run, how slow the machine is. `lengths`: policy -> a task's, in ms, at pace 1. `clock`: there is a device's clock; the first of its works
        takes longer by the square of what tasks do, the second does not say anything."""
        class Stage:
            device = "soft"
            has_pace = staticmethod(lambda: clock)

        paces, self.order, self.came = list(paces), [], {}

        def run(policy, tenants, pace=False, **_):
            wanted, pace = pace, 1
            if policy != "none":
                pace = paces.pop(0)
                self.order.append(policy)
                six = sorted((tenant for tenant in tenants if tenant.kind), key=lambda tenant: tenant.work["delay_ms"])
                self.came.setdefault(policy, []).append([tenant.kind for tenant in six])
            each = lengths.get(policy, 100) * pace
            program = {"work": "", "size": 0, "rounds": 0, "checksum": 0, "right": True}
            return stage.Result(tenants, {tenant.name: {**program, "launches_ms": [(i * each, each) for i in range(10)]}
                                          for tenant in tenants}, {}, 0, [(10 * each, (2 * math.log(pace), 7))] if wanted else [])

        bench = experiments.Bench(Stage, say=lambda text: None)
        bench.stage.run = run
        return experiments._thread_split(bench, "figure", "title", "matmul", (mix,))

    def test_sizes_come_in_turn_and_neither_is_always_first(self):
        self.report([1] * 10, {}, mix=("9K", "14K"))
        self.assertEqual(self.came["fifo"], [["9K", "14K"] * 3, ["14K", "9K"] * 3] * 2)
        self.assertEqual(self.came["fair"], [["9K", "14K"] * 3, ["14K", "9K"] * 3, ["9K", "14K"] * 3])

    def test_a_run_is_compared_with_its_neighbours(self):
        # The machine becomes four times as slow meanwhile, between one FIFO and the next.
        report = self.report([1, 1.5, 1.5, 2, 2.5, 2.5, 3, 3.5, 3.5, 4], {"split": 103, "fair": 110})
        self.assertEqual(self.order, "fifo split fair fifo fair split fifo split fair fifo".split())
        rows = {row[1]: row for row in report.rows}
        self.assertEqual(rows["split"][8:11], ("1.030", "", "1.030, 1.030, 1.030"))
        self.assertEqual(rows["fair"][8:11], ("1.100", "", "1.100, 1.100, 1.100"))
        self.assertEqual(rows["fifo"][8:11], ("differ by 44.7 %", "", ""))
        goals = {goal.text: goal.met for goal in report.goals}
        self.assertTrue(goals["12K, split: mean at most 5 % above FIFO's"])
        self.assertFalse(goals["12K, fair: mean at most 5 % above FIFO's"])
        # All tasks of all runs alike: nothing varies within one, and half of FIFO's nothing is nothing.
        self.assertTrue(goals["12K, split: max/min at most 1.15"])

    def test_one_disturbed_run_does_not_count(self):
        report = self.report([1, 1, 1, 1, 1, 5, 1, 1, 1, 1], {"split": 104})
        rows = {row[1]: row for row in report.rows}
        self.assertEqual(rows["split"][10], "1.040, 5.200, 1.040")
        self.assertEqual(rows["split"][8], "1.040")
        self.assertTrue(all(goal.met for goal in report.goals))

    def test_the_device_clock_takes_off_what_the_machine_did_and_nothing_else(self):
        # No FIFO beside them tells that the machine is slower while split and fair run.
        report = self.report([1, 1.2, 1.3, 1.1, 1.3, 1.2, 1, 1.4, 1.4, 1.1], {"split": 103, "fair": 110}, clock=True)
        rows = {row[1]: row for row in report.rows}
        self.assertEqual(rows["split"][8], "1.177")
        self.assertEqual(rows["fair"][8], "1.362")
        for policy, ratio in (("split", 1.03), ("fair", 1.10)):
            self.assertAlmostEqual(float(rows[policy][9]), ratio, delta=0.007)
        self.assertEqual(rows["fifo"][8][:11], "differ by 4")
        self.assertEqual(rows["fifo"][9][:11], "differ by 0")
        goals = {goal.text: goal.met for goal in report.goals}
        self.assertTrue(goals["12K, split: mean at most 5 % above FIFO's"])
        self.assertFalse(goals["12K, fair: mean at most 5 % above FIFO's"])


class ByTheDeviceTest(unittest.TestCase):
    """Runs by the device's clock."""

    @staticmethod
    def run_of(launches, paces):
        tenants = [stage.Tenant(name, {}, "kind") for name in launches] + [stage.Tenant("before", {})]
        result = stage.Result(tenants, {name: {"launches_ms": of} for name, of in launches.items()}, {}, 0, paces)
        return experiments._Run(0, 0, 0, 0, 0, {}, 0, result)

    def test_launches_are_as_long_as_the_device_worked(self):
        slow = math.log(2)
        # One after the other, and twice as long while the first work takes twice as long.
        fifo = self.run_of({"a": [(0, 100), (300, 100)], "b": [(0, 300)]}, [(100, (0, 3)), (300, (slow, 3)), (400, (0, 3))])
        split = self.run_of({"a": [(0, 200)], "b": [(100, 300)]}, [(100, (slow, 3)), (200, (0, 3)), (400, (0, 3))])
        experiments._by_the_device({"fifo": [fifo], "split": [split]}, 1)
        (begin, a), = split.device["a"]
        (_, b), = split.device["b"]
        self.assertEqual(begin, 0)
        self.assertAlmostEqual(b / a, 300 / 150, places=2)
        self.assertAlmostEqual(split.device_mean(1), (a + b) / 2)
        self.assertEqual((split.even_cv, split.even_worst), experiments._at_even_pace(split.device, split.result.tenants, 1))
        self.assertNotIn("before", split.device)


class ProcessorsTest(unittest.TestCase):
    """The device's own processor."""

    def setUp(self):
        self.mine = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, self.mine)

    def test_what_is_started_within_is_kept_to_the_others(self):
        one = {max(self.mine)}
        with stage.on_processors(one):
            inside = subprocess.run([sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], capture_output=True, text=True, check=True)
        self.assertEqual(inside.stdout.strip(), str(one))
        self.assertEqual(os.sched_getaffinity(0), self.mine)
        with stage.on_processors(set()):
            self.assertEqual(os.sched_getaffinity(0), self.mine)

    def test_the_device_has_none_of_its_own_where_there_is_one_or_not_the_first(self):
        os.sched_setaffinity(0, {min(self.mine)})
        self.assertEqual(stage.other_processors(), set())
        os.sched_setaffinity(0, self.mine)
        expected = self.mine - {stage.DEVICE_PROCESSOR} if stage.DEVICE_PROCESSOR in self.mine else set()
        self.assertEqual(stage.other_processors(), expected)

    def test_the_server_is_told_only_if_there_is(self):
        for device, variable in (("pocl", "POCL_AFFINITY"), ("soft", "HAWSER_SOFT_PROCESSORS")):
            one = stage.Stage(pathlib.Path("nowhere"), device)
            self.addCleanup(one.close)
            self.assertIn(f'{variable} = "', one._configuration("fair", [], {}, True))
            self.assertNotIn(variable, one._configuration("fair", [], {}))


class DeviceClockTest(unittest.TestCase):
    BINS = [(100, (0.0, 5.0)), (200, (1.0, 5.0)), (300, (0.5, 6.0))]

    def test_a_task_has_the_device_from_when_the_one_before_is_done(self):
        launches = {"a": [(0, 10), (12, 18)], "b": [(0, 20)], "c": [(35, 5)]}
        self.assertEqual(measures.had_to_itself(launches), [("b", 10, 20), ("a", 20, 30), ("c", 35, 40)])

    def test_paces_are_those_of_the_time(self):
        for begin, end, expected in ((0, 100, (0, 5)), (50, 150, (0.5, 5)), (150, 250, (0.75, 5.5)), (100, 200, (1, 5)), (0, 300, (0.5, 16 / 3)), (290, 500, (0.5, 6)),
                                     (400, 500, (0.5, 6))):
            for value, wanted in zip(measures.paces_of(self.BINS, begin, end), expected):
                self.assertAlmostEqual(value, wanted, msg=(begin, end))

    def test_what_lengths_follow_is_found_for_all_kinds_together(self):
        samples = [(kind, usual * math.exp(0.8 * a - 0.3 * b), [a, b]) for kind, usual in (("short", 100), ("long", 700))
                   for a, b in ((0, 0), (0.5, 0.1), (0.2, 0.6), (1, 0.7), (0.7, -0.4))]
        a, b = measures.follow(samples)
        self.assertAlmostEqual(a, 0.8, places=2)
        self.assertAlmostEqual(b, -0.3, places=2)

    def test_nothing_is_learnt_where_nothing_varies(self):
        samples = [("one", 100 + i % 3, [0.0001 * (i % 2), 0.0]) for i in range(60)]
        for weight in measures.follow(samples):
            self.assertAlmostEqual(weight, 0, places=1)

    def test_the_clock_is_slow_while_the_device_is(self):
        series = measures.device_clock(self.BINS, [math.log(2), 0], [0, 0])
        for time, expected in ((0, 0), (50, 50), (100, 100), (150, 125), (200, 150), (300, 150 + 100 / 2**0.5)):
            self.assertAlmostEqual(measures.at(series, time), expected)


class MeasuresTest(unittest.TestCase):
    def test_percentiles_are_nearest_ranks(self):
        values = [15, 20, 35, 40, 50]
        for part, expected in ((0.05, 15), (0.2, 15), (0.3, 20), (0.4, 20), (0.5, 35), (0.99, 50), (1.0, 50)):
            self.assertEqual(measures.percentile(values, part), expected, part)
        self.assertEqual(measures.percentile(range(1, 101), 0.99), 99)
        self.assertEqual(measures.percentile([7], 0.01), 7)

    def test_variation_of_six_that_wait_for_each_other(self):
        # 1 to 6: mean 3.5, variance 35/12.
        self.assertAlmostEqual(measures.variation({"x": [1, 2, 3, 4, 5, 6]}), (35 / 12) ** 0.5 / 3.5, places=12)
        self.assertEqual(measures.variation({"x": [5, 5, 5]}), 0)

    def test_kinds_are_measured_by_their_own_means(self):
        # 1.5 and 0.5 of the mean in one kind, none in the other: (0.25 + 0.25 + 0 + 0) / 4 = 0.125.
        classes = {"short": [3, 1], "long": [100, 100]}
        self.assertAlmostEqual(measures.variation(classes), 0.125**0.5, places=12)
        self.assertEqual(measures.worst_ratio(classes), 3)
        self.assertEqual(measures.overall_mean(classes), 51)

    def test_an_even_pace_hides_the_machine_and_nothing_else(self):
        # Two tenants; from 200 to 400 ms the machine has half its speed.
        kinds = {"a": "x", "b": "x"}
        slowed = {"a": [(0, 100), (100, 100), (200, 200), (400, 100)], "b": [(0, 100), (100, 100), (200, 200), (400, 100)]}
        for times in measures.at_even_pace(slowed, kinds, 4).values():
            for time in times:
                self.assertAlmostEqual(time, 125)
        # One gets twice what the other gets: a third of the other's pace and its own, by the mean of 400/3.
        unfair = {"a": [(0, 100), (100, 100)], "b": [(0, 200)]}
        times = measures.at_even_pace(unfair, kinds, 2)
        self.assertAlmostEqual(measures.worst_ratio({"x": times["a"] + times["b"]}), 2)
        # Kinds have their own means, and what is beyond the count still says how fast the machine was.
        mixed = {"a": [(0, 100), (100, 100), (200, 200)], "b": [(0, 1000)]}
        times = measures.at_even_pace(mixed, {"a": "x", "b": "y"}, 2)
        self.assertEqual([len(times["a"]), len(times["b"])], [2, 1])
        self.assertAlmostEqual(times["a"][0], 100)
        self.assertAlmostEqual(times["b"][0], 200 + 200 * 0.75 + 600)

    def test_jain(self):
        self.assertEqual(measures.jain([1, 1, 1, 1]), 1)
        self.assertEqual(measures.jain([1, 0, 0, 0]), 0.25)
        self.assertAlmostEqual(measures.jain([1 / 6, 5 / 6]), 36 / 52, places=12)  # GPUvm's FIFO, two tenants
        self.assertEqual(measures.jain([0, 0]), 1)

    def test_a_counter_between_its_samples(self):
        series = [(0, 0), (100, 10), (300, 50)]
        for when, value in ((0, 0), (50, 5), (100, 10), (200, 30), (300, 50)):
            self.assertEqual(measures.at(series, when), value)
        for when in (-1, 301):
            with self.assertRaises(ValueError):
                measures.at(series, when)

    def test_shares_of_windows(self):
        counters = {
            "a": [(0, 1000), (500, 1150), (1000, 1300), (1600, 1300)],
            "b": [(0, 0), (500, 350), (1000, 1050), (1600, 1650)],
        }
        self.assertEqual(measures.shares(counters, 0, 500), {"a": 0.3, "b": 0.7})
        windows = measures.window_shares(counters, 0, 1600, 500)
        self.assertEqual([w["a"] for w in windows], [0.3, 150 / 850, 0.0])
        self.assertAlmostEqual(measures.worst_error(windows[:2], {"a": 0.3, "b": 0.7}), 100 * (0.3 - 150 / 850))
        self.assertEqual(measures.window_shares(counters, 0, 499, 500), [])

    def test_the_part_of_a_span_up_to_a_time_counts(self):
        series = measures.used_of_spans([(10, 20), (40, 70)], 100)
        for when, used in ((0, 0), (10, 0), (15, 5), (20, 10), (39, 10), (55, 25), (70, 40), (100, 40)):
            self.assertAlmostEqual(measures.at(series, when), used)
        self.assertEqual(measures.used_of_spans([], 5), [(0.0, 0.0), (5, 0.0)])
        self.assertEqual(measures.used_of_spans([(-5, 5), (4, 6)], 6)[-1], (6, 6.0))  # What came before does not count, nor anything twice.

    def test_losses_of_pairs(self):
        self.assertEqual(measures.losses([100, 200, 0], [99, 202, 5]), [1 - 0.99, 1 - 1.01])
        # Quartiles of 1..9: 3 and 7; 1.2533 x 4 / 1.349 / 3.
        self.assertAlmostEqual(measures.median_error([5, 1, 9, 2, 8, 3, 7, 4, 6]), 1.2533 * 4 / 1.349 / 3)

    def test_nobody_used_anything(self):
        self.assertEqual(measures.shares({"a": [(0, 5), (1, 5)]}, 0, 1), {"a": 0.0})

    def test_stolen(self):
        before = "cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
        after = "cpu  160 0 60 820 10 0 5 45 90 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
        self.assertAlmostEqual(measures.stolen(before, after), 10 / 100)
        self.assertEqual(measures.stolen(before, before), 0)

    def test_suited(self):
        sizes = {"a": {"rounds": 40}, "b": {"rounds": 20}, "whole": {"size": 7}}
        more, alone = measures.suited(sizes, ("b", "a"), [300, 450], 600)
        self.assertEqual((more, alone), ({"a": {"rounds": 80}, "b": {"rounds": 40}, "whole": {"size": 7}}, [600, 900]))
        # Fewer on a slow machine, whole ones, and one at least.
        self.assertEqual(measures.suited({"a": {"rounds": 3}}, ("a",), [900], 400), ({"a": {"rounds": 1}}, [300]))
        self.assertEqual(measures.suited({"a": {"rounds": 1}}, ("a",), [900], 1), ({"a": {"rounds": 1}}, [900]))
        self.assertEqual(measures.suited(sizes, ("whole",), [100], 600), (sizes, [100]))

    def test_begun(self):
        self.assertEqual(measures.begun([[[0, 10], [10, 10], [20, 5]], [[19, 1]]], 10, 20), 2)
        self.assertEqual(measures.begun([], 0, 1), 0)

    def test_completed_work(self):
        self.assertEqual(measures.completed_work([[0, 10], [10, 10], [10, 30]], 8), [(0.0, 0.0), (10, 8), (20, 16), (40, 24)])
        self.assertEqual(measures.completed_work([[0, 10], [5, 5]], 8), [(0.0, 0.0), (10, 16)])


if __name__ == "__main__":
    unittest.main()
