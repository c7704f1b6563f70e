# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder count and say: results against NumPy's."""
import sys

import numpy


class Comparisons:
    """Counts comparisons and says which ones failed."""

    def __init__(self):
        self.count = 0
        self.failures = []

    def same(self, what, ours, theirs, tolerance=None):
        """Whether `ours`, an array, is `theirs`: bit for bit, or within `tolerance`, relative and absolute."""
        self.count += 1
        ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
        equal = ours.shape == theirs.shape and (
            numpy.array_equal(ours, theirs) if tolerance is None
            else numpy.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True))
        if not equal:
            self.failures.append(what)
            print(f"differs: {what}\n  here : {ours.ravel()[:8]}\n  NumPy: {theirs.ravel()[:8]}")

    def end(self):
        """Says how many, and leaves with status 1 when one failed or none was made."""
        print(f"{self.count} comparisons, {len(self.failures)} differ" + (": " + ", ".join(self.failures) if self.failures else ""))
        sys.exit(1 if self.failures or not self.count else 0)
