#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A module is uploaded once for all processes of a tenant, and a damaged file in the cache is not believed.

    cuda_cache_test.py BUILD PROGRAM
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import with_server  # noqa: E402


def uploads(server, program):
    """Runs the program; how many images it uploaded."""
    trace = pathlib.Path(server.folder) / "trace"
    trace.unlink(missing_ok=True)
    env = server.guest_env()
    env["HAWSER_TRACE"] = str(trace)
    done = subprocess.run([program, "--gtest_filter=*AddsVectors*"], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the program failed:\n{done.stdout}{done.stderr}")
    return sum("UploadImage" in line for line in trace.read_text(errors="replace").splitlines())


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: {got} instead of {wanted}")


def by_default(build, program, folder):
    """Without a word in the configuration."""
    cache = pathlib.Path(folder) / "home"
    images = cache / "hawser" / "images"
    with with_server.Server(build, "shm", cuda=True, cache=cache) as server:
        expect("whether there is a folder before anybody needs it", images.exists(), False)
        expect("uploads of the first process, by default", uploads(server, program), 1)
        expect("uploads of the second process, by default", uploads(server, program), 0)
    expect("the folder's mode", oct(images.stat().st_mode & 0o7777), oct(0o700))
    expect("files by default", len([path for path in images.rglob("*") if path.is_file()]), 1)
    nowhere = pathlib.Path(folder) / "file"
    nowhere.write_text("no folder")
    with with_server.Server(build, "shm", cuda=True, cache=nowhere) as server:
        for process in ("first", "second"):
            expect(f"uploads of the {process} process, where nothing can be kept", uploads(server, program), 1)
        expect("complaints", "".join(server.log).count("modules are not kept on disk"), 1)


def switched_off(build, program, folder):
    cache = pathlib.Path(folder) / "unused"
    config = pathlib.Path(folder) / "off.toml"
    config.write_text('[cuda]\ncache = ""\n')
    with with_server.Server(build, "shm", ["--config", str(config)], cuda=True, cache=cache) as server:
        for process in ("first", "second"):
            expect(f"uploads of the {process} process, switched off", uploads(server, program), 1)
    expect("whether there is a folder when it is switched off", (cache / "hawser" / "images").exists(), False)


def main():
    build, program = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="hawser-cache-") as folder:
        cache = pathlib.Path(folder) / "modules"
        config = pathlib.Path(folder) / "hawserd.toml"
        config.write_text(f'[cuda]\ncache = "{cache}"\n')
        with with_server.Server(build, "shm", ["--config", str(config)], cuda=True) as server:
            expect("uploads of the first process", uploads(server, program), 1)
            expect("uploads of the second process", uploads(server, program), 0)
            files = [path for path in cache.rglob("*") if path.is_file()]
            expect("files in the cache", len(files), 1)
            text = bytearray(files[0].read_bytes())
            text[len(text) // 2] ^= 1
            files[0].write_bytes(bytes(text))
            expect("uploads after the file was damaged", uploads(server, program), 1)
            expect("uploads after it was mended", uploads(server, program), 0)
        # Another hawserd finds it too.
        with with_server.Server(build, "unix", ["--config", str(config)], cuda=True) as server:
            expect("uploads with another server", uploads(server, program), 0)
        by_default(build, program, folder)
        switched_off(build, program, folder)


if __name__ == "__main__":
    main()
