#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a bare machine could build what tests/gpu/pack brings along: it configures without Python, and links only
what it has.

    minimal_build.py --build DIR [--cmake=ARGUMENT]...

Nothing is compiled: a library of ours that the short list of tests/gpu/minimal.cmake forgot shows in what is linked, and a
source in the objects that the ordinary build has made of the others: what they need is looked for there.
Exit status: 0, 1 with what is missing, 77 where there is no git checkout to pack.
"""
import argparse
import json
import pathlib
import shlex
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


# What the ordinary build's worker has and a minimal one is compiled without.
LEFT_OUT = {"server/backends/opencl/backend.cc"}


def commands(build, root):
    """[(source below `root` or `build`, object file)] of a build."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"])
        words = shlex.split(entry["command"])
        if words[words.index("-o") + 1].endswith(".gch"):
            continue  # Precompiled headers.
        for base in (build, root):
            if source.is_relative_to(base):
                yield str(source.relative_to(base)), pathlib.Path(entry["directory"], words[words.index("-o") + 1])
                break


def symbols(objects, *options):
    """{object: names of Hawser's own}, as nm lists them."""
    found = {}
    for begin in range(0, len(objects), 100):
        done = subprocess.run(["nm", "-A", "-P", *options, *objects[begin:begin + 100]], stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            where, name, kind = line.split()[:3]
            # V, W, w: of a header, or wherever it is used.
            if "6hawser" in name and kind not in "VWvw":
                found.setdefault(where.rstrip(":"), set()).add(name)
    return found


def forgotten(ordinary, minimal, pack):
    """[(source that the minimal build lacks, a name that it needs of it)]."""
    def key(source):
        return re.sub(r"^generated/", "", source)  # Brought along, or made by the build.

    # Tests and tools make objects of the same sources again: any will do.
    objects = {}
    for source, file in commands(ordinary, ROOT):
        if file.exists():
            objects.setdefault(key(source), str(file))
    there = {key(source) for source, _ in commands(minimal, pack)}
    known = sorted(there & objects.keys())
    if len(known) < 0.9 * len([source for source in there if not source.startswith("third_party/")]):
        raise SystemExit(f"the ordinary build has only {len(known)} of the minimal one's {len(there)} sources: build it first")
    defined = symbols(list(objects.values()), "--defined-only", "-g")
    owners = {name: source for source, file in objects.items() for name in defined.get(file, ()) if source not in there}
    for source in known:
        for name in defined.get(objects[source], ()):
            owners.pop(name, None)
    missing = {}
    for names in symbols([objects[source] for source in known], "-u").values():
        for name in names & owners.keys():
            missing[owners[name]] = name
    return sorted((source, name) for source, name in missing.items() if source not in LEFT_OUT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", action="append", default=[])
    args = parser.parse_args()
    if not (ROOT / ".git").exists():
        print("skipped: this is no git checkout, and tests/gpu/pack asks git what belongs to it")
        return 77
    with tempfile.TemporaryDirectory(prefix="hawser-minimal-") as folder:
        pack, build = pathlib.Path(folder, "pack"), pathlib.Path(folder, "build")
        subprocess.run([sys.executable, ROOT / "tests/gpu/pack", pack, "--build", args.build], check=True)
        configured = subprocess.run(["cmake", "-S", pack, "-B", build, "-G", "Ninja", "-DHAWSER_MINIMAL=ON",
                                     "-DCMAKE_BUILD_TYPE=Release", "-DHAWSER_PYTHON=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *args.cmake], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True)
        if configured.returncode != 0:
            print(configured.stdout)
            print("tests/gpu/minimal.cmake does not configure")
            return 1
        unknown = sorted(set(re.findall(r"-l(hawser_\w+)", (build / "build.ninja").read_text())))
        lacking = forgotten(pathlib.Path(args.build).resolve(), build, pack)
    for name in unknown:
        print(f"{name} is linked, but tests/gpu/minimal.cmake does not make it")
    for source, name in lacking:
        print(f"{source} is not in tests/gpu/minimal.cmake, but what is there needs it: {name}")
    return 1 if unknown or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
