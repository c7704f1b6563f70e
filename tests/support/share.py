# SPDX-License-Identifier: Apache-2.0
"""A share of the work, another one for each commit, so that a few runs see all of it and each is done in time."""
import datetime
import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit(root=ROOT):
    """Of the checkout; outside of one the day, so that no part is left out for ever."""
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout.strip()
    return head or str(datetime.date.today())


def number(variable):
    """Of how many parts one is looked at, as the environment says. 1: all."""
    return int(os.environ.get(variable, "1"))


def is_chosen(name, seed, share):
    """Whether `name` is of the one in `share` that `seed` (a commit) chooses. All are where `share` is less than 2."""
    return share < 2 or int(hashlib.sha256(f"{seed}{name}".encode()).hexdigest(), 16) % share == 0


def part(names, seed, share):
    """Of a few names every one in `share`, from where `seed` says: at least one of `share` names."""
    if share < 2:
        return list(names)
    first = int(hashlib.sha256(seed.encode()).hexdigest(), 16) % share
    return [name for i, name in enumerate(names) if i % share == first]


def left_out(count, total, what, variable, share):
    """The line that says so; scripts/test_summary.py lists it."""
    return f"skipped here: {count} of {total} {what}, looked at in runs of other commits ({variable}={share})"
