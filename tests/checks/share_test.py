#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/support/share.py: what one commit leaves out, others look at."""

import sys
import tempfile
import unittest

from sources import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
import share  # noqa: E402

NAMES = [f"server/file_{number}.cc" for number in range(300)]


def chosen(seed, number):
    return {name for name in NAMES if share.is_chosen(name, seed, number)}


class ShareTest(unittest.TestCase):
    def test_is_about_as_large_as_it_says(self):
        self.assertTrue(60 < len(chosen("a commit", 3)) < 140)

    def test_is_the_same_each_time(self):
        self.assertEqual(chosen("a commit", 3), chosen("a commit", 3))

    def test_commits_see_all_together(self):
        seen = set().union(*(chosen(f"commit {number}", 3) for number in range(40)))
        self.assertEqual(seen, set(NAMES))

    def test_is_all_without_a_number(self):
        self.assertEqual(chosen("a commit", 1), set(NAMES))
        self.assertEqual(chosen("a commit", 0), set(NAMES))

    def test_part_of_a_few_is_never_empty(self):
        few = ["one", "two", "three"]
        parts = [share.part(few, f"commit {number}", 3) for number in range(40)]
        self.assertEqual({len(part) for part in parts}, {1})
        self.assertEqual({name for part in parts for name in part}, set(few))
        self.assertEqual(share.part(few, "a commit", 1), few)

    def test_no_checkout_has_no_commit_and_changes_all_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertRegex(share.commit(folder), r"^\d{4}-\d\d-\d\d$")

    def test_says_what_is_left_out(self):
        self.assertEqual(share.left_out(4, 9, "sources", "SOME_SHARE", 2),
                         "skipped here: 4 of 9 sources, looked at in runs of other commits (SOME_SHARE=2)")


if __name__ == "__main__":
    unittest.main()
