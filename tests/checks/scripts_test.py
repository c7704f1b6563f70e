#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The set-up of ./hawser with a pretended distribution: what it installs, and what it says when it cannot.

dpkg-query, apt-get, sudo and id are small scripts in a folder that comes first in PATH; nothing is installed.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from sources import ROOT


class SetUpTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hawser-setup-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "root"
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.root.mkdir()
        shutil.copy(ROOT / "hawser", self.root / "hawser")
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        # As if unpacked before, so that nothing is downloaded.
        (self.root / "build/foreign/python-pyopencl-doc/usr/share/doc/python-pyopencl-doc/examples").mkdir(parents=True)
        # A toolkit is there, and the Python package index cannot be reached.
        toolkit = self.folder / "toolkit"
        (toolkit / "bin").mkdir(parents=True)
        (toolkit / "include").mkdir()
        (toolkit / "include/cudaTypedefs.h").touch()
        nvcc = toolkit / "bin/nvcc"
        nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
        nvcc.chmod(0o755)
        self.command("python3", f"""case "$*" in *"-m pip"*) echo "no network" >&2; exit 1;; esac
exec {shutil.which("python3")} "$@\"""")
        self.os_release = self.folder / "os-release"
        self.status = self.folder / "status"
        self.status.write_text("1")
        self.log = self.folder / "log"
        self.distribution("debian", "12")
        self.missing([])
        self.command("apt-get", 'echo "apt-get $*" >>"$LOG"; case "$*" in *install*) : >"$MISSING"; echo x >>"$STATUS";; esac')

    def distribution(self, name, version):
        self.os_release.write_text(f'ID={name}\nVERSION_ID="{version}"\n')

    def command(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def missing(self, names):
        """Every package is installed but these."""
        (self.folder / "missing").write_text("".join(name + "\n" for name in names))
        self.command("dpkg-query", """
while [ "$#" -gt 0 ]; do
  case "$1" in -W) shift;; -f) shift 2;; *)
    if grep -qx "$1" "$MISSING"; then printf 'un \\t%s\\n' "$1"; else printf 'ii \\t%s\\n' "$1"; fi; shift;; esac
done""")

    def run_setup(self, uid="0"):
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}", "HAWSER_UID": uid, "HAWSER_OS_RELEASE": str(self.os_release),
            "HAWSER_DPKG_STATUS": str(self.status), "LOG": str(self.log), "MISSING": str(self.folder / "missing"),
            "STATUS": str(self.status), "HOME": str(self.folder), "CUDA_PATH": str(self.folder / "toolkit"),
        }
        return subprocess.run([str(self.root / "hawser"), "setup"], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def test_nothing_missing_calls_no_package_manager(self):
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls(), [])

    def test_without_a_package_index_numba_and_cupy_are_left_out(self):
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        for package in ("numba-cuda", "cupy-cuda13x"):
            self.assertIn(f"{package} could not be fetched (no network)", result.stdout + result.stderr)

    def test_only_what_is_missing_is_installed(self):
        self.missing(["clpeak", "ninja-build"])
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.calls()), 2)
        self.assertIn("update", self.calls()[0])
        self.assertTrue(self.calls()[1].endswith("install -y --no-install-recommends clpeak ninja-build"), self.calls())

    def test_the_second_run_asks_nothing(self):
        self.run_setup()
        self.command("dpkg-query", 'echo dpkg-query >>"$LOG"')
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual(self.calls(), [])

    def test_a_change_of_packages_is_noticed(self):
        self.run_setup()
        self.missing(["clinfo"])
        self.status.write_text("22")
        self.run_setup()
        self.assertEqual(len(self.calls()), 2)

    def test_sudo_is_used_by_others_than_root(self):
        self.missing(["clinfo"])
        self.command("sudo", 'if [ "$1" = -n ]; then exit 0; fi; echo sudo >>"$LOG"; exec "$@"')
        result = self.run_setup(uid="1000")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.calls()[0], "sudo")

    def test_without_root_or_sudo_it_says_what_to_type(self):
        self.missing(["clinfo"])
        self.command("sudo", "exit 1")
        result = self.run_setup(uid="1000")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("sudo apt-get update && sudo apt-get install -y --no-install-recommends clinfo", result.stderr)
        self.assertEqual(self.calls(), [])

    def test_an_unknown_distribution_gets_the_list(self):
        self.distribution("plan9", "4")
        result = self.run_setup()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("'plan9 4'", result.stderr)
        self.assertIn("pocl-opencl-icd", result.stderr)
        self.assertIn("HAWSER_SKIP_PACKAGES=1 ./hawser setup", result.stderr)

    def test_ubuntu_is_known(self):
        self.distribution("ubuntu", "24.04")
        self.missing(["libclang-rt-18-dev"])
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertIn("libclang-rt-18-dev", self.calls()[-1])

    def test_a_failing_package_manager_shows_its_last_words(self):
        self.missing(["clinfo"])
        self.command("apt-get", "echo 'E: no network'; exit 100")
        result = self.run_setup()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("E: no network", result.stderr)
        self.assertIn("sudo apt-get install", result.stderr)

    def test_help_needs_nothing(self):
        result = subprocess.run([str(self.root / "hawser")], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0)
        self.assertIn("./hawser demo", result.stdout)


class SyntaxTest(unittest.TestCase):
    def test_all_shell_scripts_parse(self):
        for script in [ROOT / "hawser", ROOT / ".ci/run", *sorted((ROOT / "scripts").glob("*.sh"))]:
            result = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, f"{script}: {result.stderr}")

    def test_shellcheck_has_nothing_to_say(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not installed")
        scripts = [str(ROOT / "hawser"), str(ROOT / ".ci/run"), *map(str, sorted((ROOT / "scripts").glob("*.sh")))]
        result = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
