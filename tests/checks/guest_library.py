#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest library shows a program its API and nothing else, and brings nothing with it.

usage: guest_library.py LIBRARY
Exported: OpenCL's entry points. Needed: libraries of the C library's own package. No text relocations, no executable
stack, no symbols of C++ or of other libraries.
"""

import re
import subprocess
import sys

EXPORTS = re.compile(r"^cl[A-Z]\w+$")
# The C library, and the dynamic linker for thread-local storage.
NEEDED = re.compile(r"^(libc|libm|libpthread|libdl|librt)\.so\.\d+$|^ld-linux[\w-]*\.so\.\d+$")
# A vendor library is found by the loader through these.
REQUIRED = {"clGetExtensionFunctionAddress", "clIcdGetPlatformIDsKHR"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(library):
    problems = []
    exported = [line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines() if line.strip()]
    exported = [name.split("@")[0] for name in exported]
    problems += [f"exports {name}, which is no OpenCL entry point" for name in exported if not EXPORTS.match(name)]
    problems += [f"does not export {name}" for name in sorted(REQUIRED - set(exported))]

    dynamic = output("readelf", "-dW", library)
    for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
        if not NEEDED.match(needed):
            problems.append(f"needs {needed}; guest libraries bring nothing but the C library")
    if "(TEXTREL)" in dynamic:
        problems.append("has text relocations")
    if re.search(r"GNU_STACK.*RWE", output("readelf", "-lW", library)):
        problems.append("asks for an executable stack")

    for problem in problems:
        print(f"{library}: {problem}")
    if not problems:
        print(f"{library}: {len(exported)} entry points and nothing else")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
