#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks NVIDIA's assembler whether it takes the copies of kernels that a server would run in parts.

    cuda_copies_assemble.py --rewrite PROGRAM --nvcc NVCC [--arch compute_80] [--gpu sm_90] SOURCE...

The software device reads the same PTX as the rewriting does, with the same parser; only the assembler can say what a GPU's
driver would. Each source must give at least one copy. Exit status 0: it takes all of them; 77: there is no assembler."""
import argparse
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rewrite", required=True, type=pathlib.Path)
    parser.add_argument("--nvcc", required=True, type=pathlib.Path)
    parser.add_argument("--arch", default="compute_80")
    parser.add_argument("--gpu", default="sm_90")
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    ptxas = args.nvcc.resolve().parent / "ptxas"
    if not ptxas.exists():
        print(f"skipped: there is no {ptxas}")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in args.sources:
            work = pathlib.Path(folder) / source.stem
            work.mkdir()
            subprocess.run([args.nvcc, "-ptx", f"-arch={args.arch}", "-std=c++17", "-O2", "-w", "-o", work / "whole.ptx", source],
                           check=True)
            listed = subprocess.run([args.rewrite, work / "whole.ptx", work], check=True, stdout=subprocess.PIPE,
                                    text=True).stdout.splitlines()
            copies = [line.split(" ", 2) for line in listed if not line.startswith("-")]
            for number, way, name in copies:
                result = subprocess.run([ptxas, f"-arch={args.gpu}", "-o", "/dev/null", work / f"{number}.ptx"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if result.returncode != 0:
                    bad += 1
                    print(f"{source.name}: {name}, {way}:\n{result.stdout}\n{(work / f'{number}.ptx').read_text()}")
            print(f"{source.name}: {len(copies)} copies; whole: {[line for line in listed if line.startswith('-')]}")
            bad += not copies
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
