#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs modules of numba-cuda's own test suite on the software CUDA device, directly and through a server.

    numba_suite.py --build DIR --packages DIR --way soft|shm|unix|tcp [--split blocks=3] [--modules cudadrv.test_events ...] [--explained FILE]

numba-cuda compiles Python to PTX and uses the driver API through NVIDIA's own bindings (cuda-core, cuda-bindings): nobody
here wrote any of it. It is run as where nvJitLink is not installed, because that library turns PTX into machine code,
which a device that executes PTX cannot run; then the driver's own linker is asked. Fails when a test fails that
FILE does not explain; those with a ! before their name there are not run at all. Exit 77 (skip) when the packages are not there.
HAWSER_FOREIGN_SHARE=N: of N modules one, others for each commit.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import share  # noqa: E402
from with_server import Server  # noqa: E402

# Read by every interpreter that starts with its folder in PYTHONPATH: the tests' own children need the packages too.
CUSTOMIZE = r"""
import os, site, sys
packages = os.environ["HAWSER_NUMBA_PACKAGES"]
sys.path.insert(0, packages)
site.addsitedir(packages)  # numba-cuda puts itself in numba's place by a .pth file.
import cuda.bindings._internal.nvjitlink as nvjitlink
nvjitlink._inspect_function_pointer = lambda name: 0
import cuda.core._linker as linker
linker._nvjitlink_has_version_symbol = lambda *unused: False
"""

# Writes {test: outcome} to its first argument.
RUNNER = r"""
import json, sys, unittest
report, left_out, modules = sys.argv[1], set(json.loads(sys.argv[2])), sys.argv[3:]

class Result(unittest.TextTestResult):
    outcomes = {}
    def note(self, test, outcome):
        self.outcomes.setdefault(test.id(), outcome)
    def addSuccess(self, test): super().addSuccess(test); self.note(test, "passed")
    def addError(self, test, error):
        if error[0].__name__ == "Skipped":  # pytest.importorskip()
            return self.addSkip(test, str(error[1]))
        super().addError(test, error)
        self.note(test, "failed")
    def addFailure(self, test, error): super().addFailure(test, error); self.note(test, "failed")
    def addSkip(self, test, reason): super().addSkip(test, reason); self.note(test, "skipped")
    def addExpectedFailure(self, test, error): super().addExpectedFailure(test, error); self.note(test, "passed")
    def addUnexpectedSuccess(self, test): super().addUnexpectedSuccess(test); self.note(test, "passed")
    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None: self.note(test, "failed")

def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite): yield from cases(item)
        elif item.id() not in left_out: yield item

def load(module):
    try:
        return unittest.defaultTestLoader.loadTestsFromName(module)
    except BaseException as error:
        if type(error).__name__ != "Skipped":  # pytest.importorskip()
            raise
        Result.outcomes[module] = "skipped"
        print(module, "skips itself:", error)
        return unittest.TestSuite()

suite = unittest.TestSuite(cases(unittest.TestSuite(load(module) for module in modules)))
unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Result).run(suite)
json.dump(Result.outcomes, open(report, "w"))
"""


def run_module(module, left_out, env, folder, seconds):
    if module.endswith("test_caching"):  # It looks into the folders that numba would choose by itself.
        env = {key: value for key, value in env.items() if key != "NUMBA_CACHE_DIR"}
    report = os.path.join(folder, "report.json")
    command = [sys.executable, "-c", RUNNER, report, json.dumps(left_out), "numba.cuda.tests." + module]
    try:
        done = subprocess.run(command, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, stdin=subprocess.DEVNULL, errors="replace")
        text, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        text, status = (late.stdout or b"").decode(errors="replace"), "no end in time"
    outcomes = None
    if os.path.exists(report):
        outcomes = json.loads(pathlib.Path(report).read_text())
        os.unlink(report)
    if outcomes is None:
        outcomes = {"numba.cuda.tests." + module: f"failed ({status})"}
    return outcomes, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--packages", required=True, type=pathlib.Path, help="folder with numba_cuda and what it needs")
    parser.add_argument("--way", required=True, choices=["soft", "shm", "unix", "tcp"])
    parser.add_argument("--modules", nargs="+", required=True, help="all: every one that there is")
    parser.add_argument("--explained", type=pathlib.Path)
    parser.add_argument("--split", help="the server runs all launches in such parts: blocks=N")
    parser.add_argument("--module-timeout", type=int, default=300, help="seconds")
    args = parser.parse_args()
    build, args.packages = args.build.resolve(), args.packages.resolve()
    if not (args.packages / "numba_cuda").is_dir():
        print(f"skipped: numba-cuda is not in {args.packages} (./hawser setup puts it there)")
        return 77
    if args.modules == ["all"]:
        tests = args.packages / "numba_cuda" / "numba" / "cuda" / "tests"
        args.modules = sorted(f"{folder}.{path.stem}" for folder in ("cudadrv", "cudapy", "nrt", "doc_examples")
                              for path in (tests / folder).glob("test_*.py"))
    # In parts all of them, because most of their kernels are not split.
    # Otherwise several modules always: numba itself skips all tests of some.
    number = 1 if args.split else min(share.number("HAWSER_FOREIGN_SHARE"), 6)
    modules = args.modules
    args.modules = share.part(modules, f"{args.way} {share.commit()}", number) or modules
    if len(args.modules) != len(modules):
        print(share.left_out(len(modules) - len(args.modules), len(modules), "modules of numba-cuda's tests",
                             "HAWSER_FOREIGN_SHARE", number))
    explained, left_out = set(), []
    if args.explained:
        lines = args.explained.read_text().splitlines()
        names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
        left_out = [name[1:] for name in names if name.startswith("!")]
        explained = set(names)

    env = {k: v for k, v in os.environ.items() if k not in ("HAWSER_SERVER", "PYTHONPATH", "LD_PRELOAD")}
    env["LD_LIBRARY_PATH"] = str(build / ("soft" if args.way == "soft" else "guest"))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    counts, unexplained = {"passed": 0, "failed": 0, "skipped": 0}, []
    with tempfile.TemporaryDirectory(prefix="hawser-numba-") as folder:
        env["NUMBA_CACHE_DIR"] = folder
        site = pathlib.Path(folder, "site")
        site.mkdir()
        (site / "sitecustomize.py").write_text(CUSTOMIZE)
        env["PYTHONPATH"] = str(site)
        env["HAWSER_NUMBA_PACKAGES"] = str(args.packages)
        server = Server(build, args.way, ["--device", "soft"], env, split=args.split) if args.way != "soft" else None
        try:
            if server is not None:
                server.__enter__()
                env["HAWSER_SERVER"] = server.uri
            for module in args.modules:
                outcomes, text = run_module(module, left_out, env, folder, args.module_timeout)
                bad = [name for name, outcome in outcomes.items() if outcome.startswith("failed")]
                for outcome in outcomes.values():
                    counts["failed" if outcome.startswith("failed") else outcome] += 1
                news = [name for name in bad if name not in explained]
                unexplained += news
                print(f"{module}: {len(outcomes)} tests, {len(bad)} failed" + (", not explained:" if news else ""), flush=True)
                if news:
                    print("  " + "\n  ".join(news) + "\n" + text[-6000:], flush=True)
            clean = server is None or (server.wait_for_no_workers() and server.process.poll() is None)
        finally:
            if server is not None:
                server.__exit__(None, None, None)
    print(f"{counts['passed']} passed, {counts['failed']} failed ({len(unexplained)} of them not explained), "
          f"{counts['skipped']} skipped by numba-cuda itself")
    if args.split and server is not None:
        split, text = server.splits()
        print(text)
        clean = clean and split != 0
    if not clean:
        print("the server ended, or left a worker behind, or split nothing")
    return 1 if unexplained or not clean or counts["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
