#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads CTest's JUnit file and prints what was skipped and why, what failed, and the totals.

What a passing program says behind "skipped here:" is listed as well: a part of its work that it left out.

The last line reads "N passed, N failed, N skipped". A test inside a GoogleTest or unittest program that
skipped itself is listed too, but the program counts once, as CTest counts it.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

PART = "skipped here:"
UNITTEST_SKIP = re.compile(r"^(\w+) \(.*\.\.\. skipped (['\"])(.*)\2$")
UNITTEST_SKIPS = re.compile(r"^(?:OK|FAILED) \(.*\bskipped=(\d+)")
GTEST_SKIP = re.compile(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)$")


def reason_of(case):
    """Why CTest skipped this test: what the test said last, or what CTest itself says."""
    output = (case.findtext("system-out") or "").strip().splitlines()
    told = [line.strip() for line in output if re.search(r"\bskip", line, re.IGNORECASE)]
    if told:
        return told[-1]
    if output:
        return output[-1].strip()
    skipped = case.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    return message or "no reason given"


def inner_skips(case):
    """(test, reason) of the GoogleTest and unittest tests that skipped themselves inside a program that passed."""
    lines = (case.findtext("system-out") or "").splitlines()
    found = {match.group(1): match.group(3) for match in map(UNITTEST_SKIP.match, lines) if match}
    # unittest names them with verbosity=2 only.
    unnamed = sum(int(match.group(1)) for match in map(UNITTEST_SKIPS.match, lines) if match) - len(found)
    if unnamed > 0:
        found[f"{unnamed} of its tests"] = "no reason given; unittest gives it with verbosity=2"
    for index, line in enumerate(lines):
        match = GTEST_SKIP.match(line)
        if not match:
            continue
        # GTEST_SKIP() << "reason" prints "file:line: Skipped" and the reason on the lines before.
        reason = []
        for before in reversed(lines[:index]):
            if before.startswith("[ RUN ") or re.search(r": Skipped$", before):
                break
            if before.strip():
                reason.insert(0, before.strip())
        found.setdefault(match.group(1), " ".join(reason) or "no reason given")
    found.update((f"part {index + 1}", line.split(":", 1)[1].strip())
                 for index, line in enumerate(line for line in lines if line.startswith(PART)))
    return found.items()


def summarise(path, out):
    passed, failed, skipped, inner = 0, [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name", "?")
        status = case.get("status", "")
        mark = case.find("skipped")
        message = mark.get("message", "") if mark is not None else ""
        if message.startswith("SKIP_") or status == "disabled":
            skipped.append((name, reason_of(case)))
        elif case.find("failure") is not None or status == "fail":
            failed.append(name)
        elif mark is not None or status == "notrun":
            # A program that was not built, or a fixture that failed: nothing was tested, and CTest fails.
            failed.append(f"{name}: not run: {message or 'no reason given'}")
        else:
            passed += 1
            inner.extend((f"{name}: {test}", why) for test, why in inner_skips(case))
    print(file=out)
    for name, why in skipped:
        print(f"skipped: {name}: {why}", file=out)
    for name, why in inner:
        print(f"skipped inside {name}: {why}", file=out)
    for name in failed:
        print(f"failed: {name}", file=out)
    if inner:
        print(f"{len(inner)} skipped inside programs that passed", file=out)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped", file=out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: test_summary.py RESULTS.xml")
    summarise(sys.argv[1], sys.stdout)
