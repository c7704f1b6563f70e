#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ffmpeg's CUDA and OpenCL filters directly and through a server, and compares every frame that they make.

    ffmpeg_suite.py --build DIR --api cuda|opencl [--ways shm tcp ...] [--split blocks=3 ...] [--only NAME ...]

The distribution's ffmpeg finds the CUDA driver by itself and brings its kernels compiled to PTX; its OpenCL filters bring
their sources. cuda: the software device in ffmpeg's own process, and through a server that has it; a case may name
the filter that does the same on the processor, and how near both must be. opencl: the machine's own platform, and through a server. Status 77
(skip) when there is no ffmpeg with these filters.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from with_server import Server  # noqa: E402

EXACT = float("inf")
VIDEO = "testsrc2=size=192x128:rate=10:duration=0.6"
OTHER = "mandelbrot=size=64x48:rate=10"

# Name: (inputs, filters between upload and download, format before, format after, [the processor's filters, least PSNR in dB]).
CUDA = {
    "copy": ([VIDEO], "null", "yuv420p", "yuv420p", ("null", EXACT)),
    "scale-nearest": ([VIDEO], "scale_cuda=96:64:interp_algo=nearest", "yuv420p", "yuv420p", ("scale=96:64:flags=neighbor", EXACT)),
    "scale-bilinear": ([VIDEO], "scale_cuda=288:96:interp_algo=bilinear", "nv12", "nv12", ("scale=288:96:flags=bilinear", 30)),
    "scale-bicubic": ([VIDEO], "scale_cuda=384:256:interp_algo=bicubic", "yuv444p", "yuv444p", ("scale=384:256:flags=bicubic", 30)),
    "scale-lanczos": ([VIDEO], "scale_cuda=384:256:interp_algo=lanczos", "p010le", "p010le", ("scale=384:256:flags=lanczos", 30)),
    "scale-16-bits": ([VIDEO], "scale_cuda=200:100", "yuv444p16le", "yuv444p16le", ("scale=200:100:flags=bicubic", 25)),
    "scale-format": ([VIDEO], "scale_cuda=192:128:format=nv12:passthrough=0", "yuv420p", "nv12", ("null", 40)),
    "yadif": ([VIDEO], "yadif_cuda", "yuv420p", "yuv420p", ("yadif", 45)),
    "yadif-fields": ([VIDEO], "yadif_cuda=mode=1:parity=bff", "nv12", "nv12", ("yadif=mode=1:parity=bff", 45)),
    "overlay": ([VIDEO, OTHER], "overlay_cuda=x=20:y=10", "yuv420p", "yuv420p", ("overlay=x=20:y=10", 40)),
    "chromakey": ([VIDEO], "chromakey_cuda=0x25302D:0.1:0.12:1", "yuv420p", "yuva420p", None),
}
OPENCL = {name: ([VIDEO], filters, before, before, None) for name, filters, before in (
    ("avgblur", "avgblur_opencl=3", "yuv420p"),
    ("boxblur", "boxblur_opencl=2:3", "yuv420p"),
    ("colorkey", "colorkey_opencl=green:0.3:0.1", "rgba"),
    ("convolution", "convolution_opencl=-2 -1 0 -1 1 1 0 1 2:-2 -1 0 -1 1 1 0 1 2", "yuv420p"),
    ("deshake", "deshake_opencl", "yuv420p"),
    ("dilation", "dilation_opencl", "yuv420p"),
    ("erosion", "erosion_opencl", "yuv420p"),
    ("nlmeans", "nlmeans_opencl=s=2:p=3:r=5", "yuv420p"),
    ("pad", "pad_opencl=w=256:h=200:x=10:y=20:color=red", "rgba"),
    ("prewitt", "prewitt_opencl", "yuv420p"),
    ("roberts", "roberts_opencl=scale=2:delta=10", "yuv420p"),
    ("sobel", "sobel_opencl=planes=1", "yuv420p"),
    ("transpose", "transpose_opencl=clock", "yuv420p"),
    ("unsharp", "unsharp_opencl=5:5:2", "yuv420p"),
)}
OPENCL["overlay"] = ([VIDEO, OTHER], "overlay_opencl=30:20", "yuv420p", "yuv420p", None)
OPENCL["xfade"] = ([VIDEO, VIDEO.replace("testsrc2", "smptebars")], "xfade_opencl=transition=wipeleft:duration=0.4:offset=0.1", "yuv420p", "yuv420p", None)
DEVICES = {"cuda": "cuda=device", "opencl": "opencl=device:0.0"}


def inputs(case):
    return [word for source in case[0] for word in ("-f", "lavfi", "-i", source)]


def graph(case, api):
    """All inputs through the filters, on the device or (api: none) on the processor."""
    sources, on_device, before, after, reference = case
    filters = on_device if api else reference[0]
    upload = f",hwupload{'_cuda' if api == 'cuda' else ''}" if api else ""
    download = f",hwdownload,format={after}" if api else f",format={after}"
    ups = [f"[{i}:v]format={before}{upload}[in{i}]" for i in range(len(sources))]
    return ";".join(ups) + ";" + "".join(f"[in{i}]" for i in range(len(sources))) + filters + download + "[out]"


def ffmpeg(case, api, to, env):
    device = ["-init_hw_device", DEVICES[api], "-filter_hw_device", "device"] if api else []
    command = ["ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "error", *device, *inputs(case), "-filter_complex", graph(case, api),
               "-map", "[out]", "-frames:v", "6", "-f", "rawvideo", "-y", str(to)]
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def psnr(case, one, other, after):
    """Decibels between two files of raw frames; infinity when they are equal."""
    size = re.search(r"=(\d+):(\d+)", case[1]) if "scale" in case[1] else None
    size = f"{size[1]}x{size[2]}" if size else "192x128"
    raw = ["-f", "rawvideo", "-pix_fmt", after, "-s", size]
    done = subprocess.run(["ffmpeg", "-hide_banner", "-nostdin", *raw, "-i", one, *raw, "-i", other, "-lavfi", "psnr", "-f", "null", "-"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    found = re.search(r"average:(\S+)", done.stdout)
    return float(found[1]) if found else float("nan")


def available(cases):
    """The cases whose filter this ffmpeg has."""
    if shutil.which("ffmpeg") is None:
        return {}
    have = subprocess.run(["ffmpeg", "-hide_banner", "-filters"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    have = set(re.findall(r"^ \S+ (\w+)", have, re.M))
    return {name: case for name, case in cases.items() if case[1].split("=")[0] in have}


def run_way(cases, api, folder, way, env):
    """Every case; gives the problems."""
    problems = []
    for name, case in cases.items():
        done = ffmpeg(case, api, folder / f"{name}.{way}", env)
        if done.returncode != 0:
            problems.append(f"{name} {way}: status {done.returncode}: {done.stdout.strip()[-1500:]}")
    return problems


def compare(cases, api, folder, way):
    problems = []
    for name, case in cases.items():
        here = folder / f"{name}.local"
        there = folder / f"{name}.{way}"
        if not here.exists() or not there.exists():
            continue  # Said already.
        if here.stat().st_size == 0:
            problems.append(f"{name}: no frames")
        elif here.read_bytes() != there.read_bytes():
            problems.append(f"{name}: {way} gives other frames than the device itself")
    return problems


def judge_by_processor(cases, folder):
    problems = []
    for name, case in cases.items():
        here = folder / f"{name}.local"
        if case[4] is None or not here.exists():
            continue
        reference = folder / f"{name}.processor"
        done = ffmpeg(case, None, reference, os.environ)
        near = psnr(case, here, reference, case[3]) if done.returncode == 0 else float("nan")
        print(f"  {name}: {near:.1f} dB to {case[4][0]} on the processor (at least {case[4][1]})")
        if not near >= case[4][1]:
            problems.append(f"{name}: {near:.1f} dB to the processor's {case[4][0]}, not {case[4][1]} {done.stdout[-500:]}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--api", required=True, choices=["cuda", "opencl"])
    parser.add_argument("--ways", nargs="+", default=["shm"], help="shm, unix or tcp")
    parser.add_argument("--split", nargs="*", default=[],
                        help="once more for each, over shared memory, through a server that runs all launches in such parts: blocks=N, items=N")
    parser.add_argument("--only", nargs="+")
    args = parser.parse_args()
    args.build = args.build.resolve()
    wanted = CUDA if args.api == "cuda" else OPENCL
    if args.only:
        wanted = {name: wanted[name] for name in args.only}
    cases = available(wanted)
    if not cases:
        print(f"skipped: there is no ffmpeg with {args.api} filters")
        return 77
    for name in wanted.keys() - cases.keys():
        print(f"  {name}: this ffmpeg has no such filter")
    with tempfile.TemporaryDirectory(prefix="hawser-ffmpeg-") as work:
        folder = pathlib.Path(work)
        env = {k: v for k, v in os.environ.items() if k not in ("HAWSER_SERVER", "LD_PRELOAD")}
        env["POCL_CACHE_DIR"] = f"{work}/pocl"
        local = dict(env, LD_LIBRARY_PATH=str(args.build / "soft")) if args.api == "cuda" else env
        problems = run_way(cases, args.api, folder, "local", local)
        problems += judge_by_processor(cases, folder)
        ways = [(way, way, None) for way in args.ways] + [(split, "shm", split) for split in args.split]
        for name, way, split in ways:
            with Server(args.build, way, env=env, cuda=args.api == "cuda", split=split) as server:
                problems += run_way(cases, args.api, folder, name, server.guest_env(env))
                if not server.wait_for_no_workers():
                    problems.append(f"{name}: a worker was left behind")
                if split is not None:
                    count, text = server.splits()
                    print(f"{name}: {text}")
                    if not count:
                        problems.append(f"{name}: nothing was split")
                if problems:
                    print("--- hawserd's log\n" + "".join(server.log[-50:]))
            problems += compare(cases, args.api, folder, name)
    for problem in problems:
        print(problem)
    print(f"{len(cases)} filters, {len(ways)} ways: {'all frames equal' if not problems else 'FAILED'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
