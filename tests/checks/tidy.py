#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the hand-written sources of the product, in parallel.

A file that was clean stays clean until it, a header it includes, its compile command, the checks or clang-tidy change:
the outcome is kept in the user's cache folder (XDG_CACHE_HOME, ~/.cache), keyed by a hash of all these, so that another
checkout of the same sources need not look again.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from sources import ROOT, SKIPPED

sys.path.insert(0, str(ROOT / "tests" / "support"))
import share  # noqa: E402

PARTS = ("wire", "proto", "softcuda", "scheduler", "memmgr", "interposer", "server", "tools", "bench")


def find_tool():
    for name in ("clang-tidy", "clang-tidy-18", "clang-tidy-14"):
        path = shutil.which(name)
        if path:
            return path
    return None


def commands(build):
    """The compile commands, without the compiler's precompiled headers: clang's would be others."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        entry["command"] = re.sub(r" -Winvalid-pch -include \S+/cmake_pch\.hxx", "", entry["command"])
    return entries


def units(build):
    """(source, compile command) of each hand-written source of the product."""
    for entry in commands(build):
        path = pathlib.Path(entry["file"])
        try:
            relative = path.relative_to(ROOT)
        except ValueError:
            continue
        if relative.parts[0] in PARTS and path.suffix == ".cc" and build not in path.parents:
            yield relative, entry


def dependencies(build):
    """object -> the files it was compiled from, as ninja recorded them."""
    result = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True)
    found, current = {}, None
    for line in result.stdout.splitlines():
        if line.startswith("    "):
            found[current].append(line.strip())
        elif ": #deps" in line:
            current = line.split(":", 1)[0]
            found[current] = []
    return found


class Hashes:
    def __init__(self):
        self._known = {}

    def of(self, path):
        if path not in self._known:
            try:
                self._known[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            except OSError:
                self._known[path] = "missing"
        return self._known[path]


def key_of(entry, deps, build, hashes, common):
    output = re.search(r" -o (\S+)", entry.get("command", ""))
    files = deps.get(output.group(1), []) if output else []
    digest = hashlib.sha256(common.encode())
    def plain(text):  # The same in every checkout and build folder.
        return text.replace(str(build), "BUILD").replace(str(ROOT), "ROOT").encode()

    digest.update(plain(entry.get("command", "")))
    # System headers change only with their package, and with it the compiler's version in `common`.
    for name in sorted({entry["file"], *(str((build / f).resolve()) for f in files)}):
        if not name.startswith("/usr/") and "/cmake_pch.hxx" not in name:
            digest.update(plain(name))
            digest.update(hashes.of(name).encode())
    return digest.hexdigest() if files else None


def check(tool, database, relative):
    command = [tool, "-p", str(database), "--quiet", "--extra-arg=-Wno-unknown-warning-option", str(ROOT / relative)]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout.strip() + ("" if result.returncode == 0 else "\n" + result.stderr.strip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="only sources whose path begins with this")
    parser.add_argument("--share", type=int, default=share.number("HAWSER_TIDY_SHARE"),
                        help="only one file of so many, others for each commit (default: HAWSER_TIDY_SHARE, else all)")
    parser.add_argument("--flat", action="store_true", help="not the folders below")
    args = parser.parse_args()
    build = args.build.resolve()
    tool = find_tool()
    if tool is None:
        print("skipped: clang-tidy is not installed")
        return SKIPPED
    version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    common = version + (ROOT / ".clang-tidy").read_text()
    hashes, deps = Hashes(), dependencies(build)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hawser" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)

    work, clean, left = [], 0, 0
    head = share.commit()
    for relative, entry in sorted(dict(units(build)).items()):
        if not str(relative).startswith(args.only) or (args.flat and relative.parent != pathlib.Path(args.only)):
            continue
        if not share.is_chosen(relative, head, args.share):
            left += 1
            continue
        key = key_of(entry, deps, build, hashes, common)
        if key and (cache / key).exists():
            clean += 1
        else:
            work.append((relative, key))
    failed = 0
    with (tempfile.TemporaryDirectory() as database,
          concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool):
        (pathlib.Path(database) / "compile_commands.json").write_text(json.dumps(commands(build)))
        for (relative, key), (code, text) in zip(work, pool.map(lambda item: check(tool, database, item[0]), work)):
            if code == 0:
                if key:
                    (cache / key).touch()
            else:
                failed += 1
                print(f"== {relative}\n{text}\n", flush=True)
    print(f"{len(work)} sources checked, {clean} unchanged since they were clean, {failed} with findings")
    if left:
        print(share.left_out(left, left + clean + len(work), "sources", "HAWSER_TIDY_SHARE", args.share))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
