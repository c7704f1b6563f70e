#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the toolkit's public headers and writes tables of the driver API's entry points.

Two uses, both by CMake when the tree is built; only the Python standard library and a C preprocessor are needed:

  generate.py tables --cc CC --include DIR --out DIR
  generate.py stubs  --cc CC --include DIR --out FILE.cc --sources SOURCE...

`stubs` defines every symbol that no SOURCE defines. What the tables look like is said in README.md.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

SPELLING = re.compile(r"^(cu\w+?)(?:_v(\d+))?(_pt[sd][sz])?$")
# A definition starts at the beginning of a line; what ends with ';' is a declaration.
DEFINITION = re.compile(r'^(?:extern\s+"C"\s+)?(?:HAWSER_\w+\s+)?CUresult\s+(?:CUDAAPI\s+)?(cu[A-Z]\w*)\s*\([^;{]*\)\s*\{', re.M)

# What is shared with OpenGL, EGL and VDPAU. These headers include those interfaces' own, which need not be on the machine: the preprocessor gets empty ones.
INTEROP = ("cudaGL", "cudaEGL", "cudaVDPAU")
INTEROP_NEEDS = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")

# Which CUDA version the three entry points that cudaTypedefs.h leaves out came with (cudaProfiler.h's history).
PROFILER_VERSIONS = {"cuProfilerInitialize": 4000, "cuProfilerStart": 4000, "cuProfilerStop": 4000}


class Entry:
    """One exported symbol."""

    def __init__(self, symbol, params, interop=False):
        self.symbol = symbol
        self.interop = interop  # Its parameters have types that cuda.h does not know.
        match = SPELLING.match(symbol)
        self.name = match[1]
        self.variant = int(match[2] or 1)
        self.per_thread = match[3] is not None
        self.legacy = match[1] + ("_v" + match[2] if match[2] else "")
        self.params = params
        self.version = 0

    @property
    def parameter_list(self):
        return ", ".join(declare(kind, name) for kind, name in self.params) or "void"

    @property
    def types(self):
        return ", ".join(kind for kind, _ in self.params) or "void"

    @property
    def arguments(self):
        return ", ".join(name for _, name in self.params)


def declare(kind, name):
    return kind + name if kind.endswith("*") else kind + " " + name


def preprocess(cc, include, header_lines):
    """The headers as a compiler sees them when it asks for every variant, old and new."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "api.c")
        with open(path, "w", encoding="ascii") as file:
            file.write("#define __CUDA_API_VERSION_INTERNAL\n" + header_lines)
        for needed in INTEROP_NEEDS:
            os.makedirs(os.path.join(folder, os.path.dirname(needed)), exist_ok=True)
            open(os.path.join(folder, needed), "w", encoding="ascii").close()
        return subprocess.run([cc, "-E", "-P", "-x", "c", "-I", folder, "-I", include, path], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout


def parse_params(text, symbol):
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    params = []
    for part in text.split(","):
        match = re.match(r"^(.*?[\s*])(\w+)$", part.strip())
        if not match:
            sys.exit(f"generate.py: {symbol}: cannot read the parameter '{part}'")
        params.append((re.sub(r"\s*\*", " *", match[1].strip()).replace("* *", "**"), match[2]))
    return params


def read_entries(cc, include):
    own = "#include <cuda.h>\n#include <cudaProfiler.h>\n"
    entries = {}
    for symbol, params in declarations(preprocess(cc, include, own)):
        if symbol in entries:
            sys.exit(f"generate.py: {symbol} is declared twice")
        entries[symbol] = Entry(symbol, parse_params(params, symbol))
    if len(entries) < 600:
        sys.exit(f"generate.py: only {len(entries)} entry points found in {include}/cuda.h")
    for header in INTEROP:
        found = [(symbol, params) for symbol, params in declarations(preprocess(cc, include, own + f"#include <{header}.h>\n"))
                 if symbol not in entries]
        if not found:
            sys.exit(f"generate.py: no entry points found in {include}/{header}.h")
        entries.update((symbol, Entry(symbol, parse_params(params, symbol), interop=True)) for symbol, params in found)
    typedefs = "".join(f"#include <{header}Typedefs.h>\n" for header in ("cuda", *INTEROP))
    give_versions(entries, preprocess(cc, include, typedefs))
    return [entries[symbol] for symbol in sorted(entries)]


def declarations(text):
    return re.findall(r"\bCUresult\s+(cu\w+)\s*\(([^;{]*?)\)\s*;", text)


def give_versions(entries, typedefs):
    """Variants and PFN_<name>_v<version> types of a name, both in ascending order, are pairs."""
    versions = defaultdict(set)
    for name, version, thread in re.findall(r"\*\s*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\s*\)", typedefs):
        versions[(name, thread != "")].add(int(version))
    variants = defaultdict(list)
    for entry in entries.values():
        variants[(entry.name, entry.per_thread)].append(entry)
    for key, group in variants.items():
        if key[0] in PROFILER_VERSIONS and key not in versions:
            versions[key] = {PROFILER_VERSIONS[key[0]]}
        if len(group) != len(versions[key]):
            sys.exit(f"generate.py: {key[0]}: {len(group)} variants, {len(versions[key])} types in cudaTypedefs.h")
        group.sort(key=lambda entry: entry.variant)
        for entry, version in zip(group, sorted(versions[key])):
            entry.version = version


def read_errors(include):
    with open(os.path.join(include, "cuda.h"), encoding="utf-8") as file:
        body = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", file.read(), re.S)[1]
    return re.findall(r"\b(CUDA_\w+)\s*=\s*(\d+)", re.sub(r"/\*.*?\*/", "", body, flags=re.S))


def words(name):
    return re.sub("^CUDA_(ERROR_)?", "", name).replace("_", " ").lower()


def write(path, text):
    """Leaves a file that did not change alone, so that nothing is built again for it."""
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


NOTE = "// Generated by proto/cuda_api/generate.py from the toolkit's headers; do not edit.\n"


def write_tables(entries, errors, out):
    os.makedirs(out, exist_ok=True)
    known = {entry.symbol for entry in entries}
    lines = [f"HAWSER_CUDA_ENTRY({e.symbol}, {e.name}, {e.version}, {int(e.per_thread)}, CUresult, "
             f"({e.parameter_list}), ({e.arguments}))" for e in entries if not e.interop]
    write(os.path.join(out, "entry_points.inc"), NOTE + "\n".join(lines) + "\n")
    lines = [f"HAWSER_CUDA_INTEROP({e.symbol})" for e in entries if e.interop]
    write(os.path.join(out, "interop.inc"), NOTE + "\n".join(lines) + "\n")

    order = sorted(entries, key=lambda e: (e.name, e.per_thread, e.version))
    lines = [f"HAWSER_CUDA_PROC({e.name}, {e.version}, {int(e.per_thread)}, {e.symbol})" for e in order]
    write(os.path.join(out, "proc_address.inc"), NOTE + "\n".join(lines) + "\n")

    twins = [e for e in entries if e.per_thread and not e.interop]
    for entry in twins:
        if entry.legacy not in known:
            sys.exit(f"generate.py: {entry.symbol} has no twin for the legacy default stream")
    lines = [f"HAWSER_CUDA_PER_THREAD({e.symbol}, {e.legacy}, ({e.parameter_list}), ({e.arguments}))" for e in twins]
    write(os.path.join(out, "per_thread.inc"), NOTE + "\n".join(lines) + "\n")

    lines = [f'HAWSER_CUDA_ERROR({name}, {code}, "{words(name)}")' for name, code in errors]
    write(os.path.join(out, "error_names.inc"), NOTE + "\n".join(lines) + "\n")
    write(os.path.join(out, "names.txt"), "".join(e.symbol + "\n" for e in entries))
    write(os.path.join(out, "exports.map"),
          "{\n  global:\n" + "".join(f"    {e.symbol};\n" for e in entries) + "  local:\n    *;\n};\n")


STUBS_HEAD = """
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>

#include <atomic>

#include "proto/cuda_api/interop.h"
#include "proto/cuda_api/unsupported.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define HAWSER_STUB(symbol, params)                                \\
  extern "C" CUresult CUDAAPI symbol params {                      \\
    static std::atomic_flag said = ATOMIC_FLAG_INIT;               \\
    return hawser::cuda_api::Unsupported(#symbol, &said);          \\
  }
"""

PER_THREAD_HEAD = """
#define HAWSER_FORWARD(symbol, legacy, params, args)               \\
  extern "C" CUresult CUDAAPI symbol params {                      \\
    const hawser::cuda_api::PerThreadDefaultStream scope;          \\
    return legacy args;                                            \\
  }
"""


def write_stubs(entries, sources, forward, out):
    """Symbols that no source defines: stubs; the per-thread twins of those that are defined: forwarded if asked for."""
    defined = set()
    for source in sources:
        with open(source, encoding="utf-8") as file:
            defined.update(DEFINITION.findall(file.read()))
    unknown = defined - {entry.symbol for entry in entries}
    unknown = {symbol for symbol in unknown if SPELLING.match(symbol)}
    if unknown:
        sys.exit(f"generate.py: these are no entry points of the driver API: {' '.join(sorted(unknown))}")
    text = NOTE + STUBS_HEAD + (PER_THREAD_HEAD if forward else "") + "\n"
    for entry in entries:
        if entry.symbol in defined:
            continue
        if forward and entry.per_thread and entry.legacy in defined:
            text += f"HAWSER_FORWARD({entry.symbol}, {entry.legacy}, ({entry.parameter_list}), ({entry.arguments}))\n"
        else:
            text += f"HAWSER_STUB({entry.symbol}, ({'' if entry.interop else entry.types}))\n"
    os.makedirs(os.path.dirname(out), exist_ok=True)
    write(out, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "stubs"])
    parser.add_argument("--cc", required=True, help="C compiler, for its preprocessor")
    parser.add_argument("--include", required=True, help="folder with cuda.h")
    parser.add_argument("--out", required=True)
    parser.add_argument("--forward-per-thread", action="store_true",
                        help="define _ptsz and _ptds variants by their twins, within a PerThreadDefaultStream")
    parser.add_argument("--sources", nargs="*", default=[])
    options = parser.parse_args()
    entries = read_entries(options.cc, options.include)
    if options.what == "tables":
        write_tables(entries, read_errors(options.include), options.out)
    else:
        write_stubs(entries, options.sources, options.forward_per_thread, options.out)


if __name__ == "__main__":
    main()
