#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exports_test.py LIBRARY NAMES NODE: the library exports exactly these names, each with the version NODE, has that
SONAME, needs libc only, and asks for neither text relocations nor an executable stack."""
import re
import subprocess
import sys

LIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}


def main():
    library, names_file, node = sys.argv[1:]
    with open(names_file, encoding="utf-8") as file:
        expected = {line.strip() for line in file if line.strip()}
    listing = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True,
                             text=True, check=True).stdout
    found = {}
    for line in listing.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@@")
        if kind != "A":
            found[name] = version
    problems = [f"missing: {name}" for name in sorted(expected - found.keys())]
    problems += [f"not expected: {name}" for name in sorted(found.keys() - expected)]
    problems += [f"{name}: version '{version}'" for name, version in sorted(found.items()) if version != node]
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic)
    if soname is None or soname.group(1) != node:
        problems.append(f"SONAME is {soname and soname.group(1)}")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    if "libasan" not in dynamic and "libtsan" not in dynamic:
        problems += [f"needs {name}" for name in sorted(needed - LIBC)]
    if "(TEXTREL)" in dynamic:
        problems.append("has text relocations")
    segments = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    if re.search(r"GNU_STACK.*RWE", segments):
        problems.append("asks for an executable stack")
    print("\n".join(problems) or f"{len(found)} names, all with version {node}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
