#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/run makes of programs: in which ways they run, what it compares, its table and its exit status.

The build is a pretended one: cmake does nothing, the server only says that it listens, and the programs are scripts.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from sources import ROOT

SERVER = """#!/usr/bin/env python3
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("listening on", sys.argv[sys.argv.index("--listen") + 1], flush=True)
while True:
    signal.pause()
"""


class GpuRunTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hawser-gpu-run-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.build = self.folder / "build"
        self.file("bin/cmake", "#!/bin/sh\n")
        self.file("build/CMakeCache.txt", "HAWSER_NVCC:FILEPATH=\n")
        self.file("build/soft/libcuda.so.1", "")
        self.file("build/server/hawserd", SERVER)

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def program(self, name, body):
        self.file(f"build/{name}", f"#!/bin/bash\n{body}\n")

    def run_all(self, *options):
        """(exit status, {program: (cells, result)}, output)"""
        env = dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        done = subprocess.run([ROOT / "tests/gpu/run", "--device", "soft", "--build", self.build, "--skip-bench", *options],
                              env=env, capture_output=True, text=True, timeout=100)
        rows = {}
        results = self.build / "results.txt"
        lines = results.read_text().splitlines() if results.exists() else []
        for line in lines[next((i for i, each in enumerate(lines) if each.startswith("program ")), len(lines)) + 1:]:
            words = line.replace(" s ", "s ").split()
            if not words:
                break
            rows[words[0]] = (words[1:6], " ".join(words[6:]))
        return done.returncode, rows, done.stdout + done.stderr

    def test_each_program_runs_in_its_ways(self):
        self.program("tests/integration/cuda_basics_test", "echo $RANDOM")  # Times, addresses: not compared.
        self.program("tests/integration/cuda_server_test", 'kill -0 "$HAWSER_TEST_SERVER_PID"')
        self.program("tests/integration/cudart/cudart_boxes_shared", 'echo "$HAWSER_SERVER" | cut -c1 >&2; echo passed')
        self.program("examples/cuda/driver_api", 'echo "the sum is 4995000"')
        status, rows, output = self.run_all()
        self.assertEqual(status, 0, output)
        ways = {name: "".join("-" if cell == "-" else "x" for cell in cells) for name, (cells, _) in rows.items()}
        self.assertEqual(ways, {"cuda_basics_test": "x-xxx", "cuda_server_test": "--xxx", "cudart_boxes_shared": "-xxxx",
                                "example/driver_api": "x-xxx"}, output)
        self.assertEqual({result for _, result in rows.values()}, {"passed"})

    def test_a_program_that_fails_in_one_way(self):
        self.program("tests/integration/cuda_basics_test", '[[ $HAWSER_SERVER != tcp* ]] || exit 3')
        status, rows, output = self.run_all()
        self.assertEqual(status, 1, output)
        cells, result = rows["cuda_basics_test"]
        self.assertEqual(cells[4], "FAILED")
        self.assertNotIn("FAILED", cells[:4])
        self.assertEqual(result, "FAILED tcp: ended with 3")

    def test_an_example_that_prints_something_else_than_expected(self):
        self.program("examples/cuda/vector_add_shared", "echo 50000 sums are wrong")
        status, rows, output = self.run_all("--transports", "unix")
        self.assertEqual(status, 1, output)
        self.assertIn("unix: does not print what vector_add.txt says", output)

    def test_ways_that_differ(self):
        self.program("tests/integration/cudart/cudart_boxes_shared", 'echo "${HAWSER_SERVER%%:*}"')
        self.program("examples/cuda/driver_api", 'echo "the sum is 4995000"; echo "$HAWSER_SERVER" >a_file')
        status, rows, output = self.run_all()
        self.assertEqual(status, 1, output)
        self.assertIn("shm: prints something else than runtime", rows["cudart_boxes_shared"][1])
        self.assertIn("tcp: writes other files than native", rows["example/driver_api"][1])

    def test_lines_of_threads_may_come_in_any_order(self):
        self.program("tests/integration/cudart/cudart_launches_shared",
                     '[[ -n $HAWSER_SERVER ]] && printf "a\\nb\\n" || printf "b\\na\\n"')
        status, _, output = self.run_all()
        self.assertEqual(status, 0, output)

    def test_only_some(self):
        self.program("tests/integration/cuda_basics_test", "true")
        self.program("tests/integration/cuda_order_test", "false")
        status, rows, output = self.run_all("--only", "cuda_basics_.*", "--transports", "shm")
        self.assertEqual(status, 0, output)
        self.assertEqual(list(rows), ["cuda_basics_test"])
        status, _, output = self.run_all("--only", "basics")
        self.assertEqual(status, 2, output)

    def test_wrong_words(self):
        for words in (["--device", "fpga"], ["--transports", "pigeon"], ["--only"], ["--what"]):
            done = subprocess.run([ROOT / "tests/gpu/run", *words], capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
