#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs pyopencl's own test suite locally and through a server, and compares the outcomes test by test.

    pyopencl_suite.py --build DIR --tests DIR --transport shm [--files test_wrapper.py ...] [--explained FILE] [--split items=N]

The second run costs as much as the first: what the server compiles are programs that can be split, others than those
in the device's cache. Fails when a test passes
locally and not remotely, unless FILE explains it. Exit 77 (skip) when pyopencl or its tests are not installed.
HAWSER_FOREIGN_SHARE=N: of N test functions one, others for each commit.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import share  # noqa: E402
from with_server import Server  # noqa: E402

PYTHON = "/usr/bin/python3"  # The distribution's: python3-pyopencl is installed for it.

# For pytest. A test function is chosen with all of its parameters, whose names differ between devices.
CHOOSE = """import os, share
def pytest_collection_modifyitems(config, items):
    seed, number, out = os.environ["HAWSER_CHOICE"].split(",")
    kept = [item for item in items
            if share.is_chosen(item.location[0] + getattr(item, "originalname", item.name), seed, int(number))]
    with open(out, "w") as file: file.write(f"{len(items) - len(kept)} {len(items)}")
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
"""


def outcomes(report):
    result = {}
    for case in xml.parse(report).iter("testcase"):
        # The device's name differs between machines: explanations leave it out.
        name = re.sub(r"<context factory for <pyopencl.Device '[^']*' on '[^']*'>>", "DEVICE",
                      f"{case.get('classname')}::{case.get('name')}")
        outcome = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = "failed"
            elif child.tag == "skipped":
                outcome = "skipped"
        result[name] = outcome
    return result


def run(folder, files, env, report):
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short",
               f"--junitxml={report}"] + files
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--tests", required=True, help="folder with pyopencl's test_*.py")
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--files", nargs="*", default=None)
    parser.add_argument("--explained", default=None, help="file with names of tests whose difference is explained")
    parser.add_argument("--split", help="the server runs all launches in such parts: items=N")
    args = parser.parse_args()
    source = pathlib.Path(args.tests)
    if subprocess.run([PYTHON, "-c", "import pyopencl, pytest, mako"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: the distribution's python3-pyopencl, python3-pytest and python3-mako are not installed")
        return 77
    files = args.files or sorted(p.name for p in source.glob("test_*.py"))
    if not files or not (source / files[0]).exists():
        print(f"skipped: pyopencl's tests are not in {source} (package python-pyopencl-doc)")
        return 77
    explained = set()
    if args.explained:
        for line in pathlib.Path(args.explained).read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                explained.add(line.strip())
    folder = tempfile.mkdtemp(prefix="hawser-pyopencl-")
    try:
        for name in files:
            shutil.copy(source / name, folder)
        env = dict(os.environ, POCL_CACHE_DIR=f"{folder}/cache", XDG_CACHE_HOME=f"{folder}/xdg", PYOPENCL_NO_CACHE="1")
        number = share.number("HAWSER_FOREIGN_SHARE")
        if args.files:
            number = min(number, 3)  # A smaller part of one file could be none that the device can do.
        shutil.copy(share.__file__, folder)
        pathlib.Path(folder, "conftest.py").write_text(CHOOSE)
        env["HAWSER_CHOICE"] = f"{share.commit()},{number},{folder}/chosen"
        local_status, local_text = run(folder, files, env, f"{folder}/local.xml")
        with Server(args.build, args.transport, env=env, split=args.split) as server:
            remote_status, remote_text = run(folder, files, server.guest_env(env), f"{folder}/remote.xml")
            left = not server.wait_for_no_workers()
            log = list(server.log)
            split, text = server.splits()
        local, remote = outcomes(f"{folder}/local.xml"), outcomes(f"{folder}/remote.xml")
        worse = sorted(n for n, o in local.items() if o == "passed" and remote.get(n) != "passed" and n not in explained)
        count = lambda r: ", ".join(f"{list(r.values()).count(o)} {o}" for o in ("passed", "failed", "skipped"))
        print(f"local : {count(local)} (pytest exit {local_status})")
        print(f"remote: {count(remote)} over {args.transport} (pytest exit {remote_status})")
        if number > 1:
            left_out, total = pathlib.Path(folder, "chosen").read_text().split()
            print(share.left_out(left_out, total, "of pyopencl's tests", "HAWSER_FOREIGN_SHARE", number))
        for name in worse:
            print(f"passes locally, not remotely ({remote.get(name, 'did not run')}): {name}")
        if worse or left or not remote:
            print(remote_text[-15000:])
            print("--- hawserd's log\n" + "".join(log[-100:]))
        if args.split:
            print(text)
            left = left or not split
        if left:
            print("a worker was left behind, or nothing was split")
        if not any(o == "passed" for o in local.values()):
            print(local_text[-5000:])
            print("no test passed locally: nothing was compared")
            return 1
        return 1 if worse or left else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
