#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redirect_programs_test.py BUILD FOLDER: embedded runtimes in libraries that are opened or linked, stripped programs, a
runtime that the program brings along; and that no file is changed."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2])


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def run(*command, **env):
    full = dict(os.environ, **env)
    return subprocess.run([str(BUILD / "tools" / "hawser"), "run", "--device", "soft", "--", *map(str, command)],
                          capture_output=True, text=True, env=full, timeout=60)


class Redirection(unittest.TestCase):
    def passes(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed", done.stdout)

    def test_a_library_opened_later(self):
        plugin = FOLDER / "libcudart_plugin.so"
        before = digest(plugin)
        done = run(FOLDER / "cudart_plugin_host", plugin, HAWSER_LOG="info")
        self.passes(done)
        self.assertIn("functions of its CUDA 13 runtime are redirected", done.stderr)
        self.assertEqual(digest(plugin), before)

    def test_a_library_that_the_program_is_linked_with(self):
        self.passes(run(FOLDER / "cudart_plugin_linked"))

    def test_the_program_itself_and_its_file(self):
        program = FOLDER / "cudart_launches"
        before = digest(program)
        done = run(program, HAWSER_LOG="info")
        self.passes(done)
        self.assertIn("cudart_launches: ", done.stderr)
        self.assertEqual(digest(program), before)

    def test_a_stripped_program_is_told_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = shutil.copy(FOLDER / "cudart_launches", folder)
            subprocess.run(["strip", stripped], check=True)
            done = run(stripped)
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if "no symbol table" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn("-cudart shared", lines[0])
        self.assertIn("-cudart none", lines[0])

    def test_symbols_of_debugging_alone_may_go(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = shutil.copy(FOLDER / "cudart_launches", folder)
            subprocess.run(["strip", "--strip-debug", stripped], check=True)
            self.passes(run(stripped))

    def test_a_runtime_that_the_program_brings_along(self):
        toolkit = os.environ.get("HAWSER_TEST_CUDART")
        if not toolkit or not os.path.exists(toolkit):
            self.skipTest("the toolkit has no shared runtime here")
        # Preloaded by its full path: the loader takes it instead of ours.
        done = run("env", f"LD_LIBRARY_PATH={os.path.dirname(toolkit)}:{BUILD}/soft", FOLDER / "cudart_launches_shared",
                   HAWSER_LOG="info")
        self.passes(done)
        self.assertIn("libcudart.so.13: 422 functions", done.stderr)

    def test_programs_without_cuda_are_left_alone(self):
        done = run("sh", "-c", "echo fine", HAWSER_LOG="debug")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "fine\n", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
