#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/cuda-coverage.md tells the truth: cuda_coverage.py NAMES SOURCE...

NAMES: the driver's entry points as the toolkit's headers have them (generated/cuda_api/names.txt); SOURCEs: those of the
guest library. The description (proto/hawser/cuda.proto) must list exactly these names, and must call supported exactly
what has a definition, apart from what is refused on purpose.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = re.compile(r"^CUresult CUDAAPI (cu\w+)\(", re.M)
CALL = re.compile(r"^  rpc (cu\w+)\(Nothing\).*?\(call\) = \{(.*)\}; \}$", re.M)


def main():
    names = set(pathlib.Path(sys.argv[1]).read_text().split())
    defined = set()
    for source in sys.argv[2:]:
        defined.update(DEFINITION.findall(pathlib.Path(source).read_text()))
    wrong = []
    listed = set()
    for call, options in CALL.findall((ROOT / "proto/hawser/cuda.proto").read_text()):
        symbols = re.search(r'symbols: "([^"]*)"', options)
        symbols = set(symbols[1].split()) if symbols else {call}
        listed |= symbols
        has = bool(symbols & defined)
        if 'refuse_code: "CUDA_ERROR_NOT_SUPPORTED"' in options and has:
            wrong.append(f"{call} is defined, but the description says that it is not supported")
        if "answer: REFUSED" not in options and not has:
            wrong.append(f"{call} is said to be supported, but no source defines it")
    wrong += [f"{name} is not in the description" for name in sorted(names - listed)]
    wrong += [f"{name} is in the description, but the toolkit's headers do not have it" for name in sorted(listed - names)]
    for line in wrong:
        print(line)
    print(f"{len(listed)} names, {len(listed & defined)} defined")
    return 1 if wrong or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
