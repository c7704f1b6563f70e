#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvrtc_test.py BUILD FOLDER CUBIN_DRIVER: programs that have NVRTC compile for sm_90 get PTX where the device executes PTX
alone, and their machine code everywhere else."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import with_server  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2])
CUBIN_DRIVER = sys.argv[3]
FAKE = FOLDER / "libnvrtc-for-tests.so"
OPENED = FOLDER / "cudart_nvrtc_opened"
LINKED = FOLDER / "cudart_nvrtc_linked"


def environment(**more):
    env = dict(os.environ)
    env.pop("HAWSER_SERVER", None)
    env.update(more)
    return env


def run(where, *command, **more):
    return subprocess.run([str(BUILD / "tools" / "hawser"), "run", *where, "--", *map(str, command)],
                          capture_output=True, text=True, env=environment(**more), timeout=60)


def run_without_server(*command, **more):
    """hawser run would say that no server answers; programs are started without it, too."""
    env = environment(HAWSER_SERVER="unix:/nonexistent/hawser.sock", LD_PRELOAD=str(BUILD / "guest" / "libhawser_preload.so"),
                      **more)
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(BUILD / "guest"), more.get("LD_LIBRARY_PATH")]))
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=60)


class Nvrtc(unittest.TestCase):
    def passes(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed", done.stdout)

    def test_ptx_on_the_software_device(self):
        done = run(["--device", "soft"], OPENED, FAKE, "ptx", "run", HAWSER_LOG="info")
        self.passes(done)
        self.assertIn("whoever asks for machine code (cubins) gets PTX", done.stderr)
        self.passes(run(["--device", "soft"], LINKED, "-", "ptx", "run"))

    def test_ptx_through_a_server(self):
        with with_server.Server(BUILD, "shm", ["--device", "soft"], environment()) as server:
            self.passes(run(["--server", server.uri], OPENED, FAKE, "ptx", "run"))
            self.passes(run(["--server", server.uri], LINKED, "-", "ptx", "run"))

    def test_machine_code_for_a_device_that_takes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "seven.ptx"
            text.write_text(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry seven(.param .u64 to) {\n"
                            ".reg .b64 %a; ld.param.u64 %a, [to]; st.global.u32 [%a], 7; ret; }\n")
            env = environment(HAWSER_TEST_CUBIN_TEXT=str(text))
            with with_server.Server(BUILD, "unix", ["--cuda-driver", CUBIN_DRIVER], env) as server:
                self.passes(run(["--server", server.uri], OPENED, FAKE, "cubin", "run"))
                self.passes(run(["--server", server.uri], LINKED, "-", "cubin", "run"))

    def test_machine_code_where_there_is_no_server(self):
        self.passes(run_without_server(OPENED, FAKE, "cubin"))
        self.passes(run_without_server(LINKED, "-", "cubin"))

    def test_machine_code_for_who_says_so(self):
        self.passes(run(["--device", "soft"], OPENED, FAKE, "cubin", HAWSER_NVRTC="cubin"))

    def test_nvrtc_itself(self):
        library = os.environ.get("HAWSER_TEST_NVRTC")
        if not library or not os.path.exists(library):
            self.skipTest("the toolkit has no NVRTC here")
        path = os.path.dirname(library)
        self.passes(run(["--device", "soft"], OPENED, library, "ptx", "run", LD_LIBRARY_PATH=path))
        self.passes(run(["--device", "soft"], OPENED, library, "cubin", LD_LIBRARY_PATH=path, HAWSER_NVRTC="cubin"))
        self.passes(run_without_server(OPENED, library, "cubin", LD_LIBRARY_PATH=path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
