#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reruns the sharing experiments on the real server and writes docs/experiments/real.md and its pictures.

    docs/experiments/real.py --build build/release [--device pocl|soft]... [--only NAME]... [--quick] [--out DIR]

Times are real: run it on a machine that does nothing else. Thread-split's take an hour and more
each, the others up to ten minutes.
Exit status: 0 when everything ran; 1 when something did not; 2 when a goal was missed and --strict was given.
Each experiment's numbers are kept as DIR/real/DEVICE-NAME.json, and real.md is made from all that are there, so that
one experiment can be repeated alone. --quick writes to DIR only when --out says where."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench" / "experiments"))
import experiments  # noqa: E402
import stage  # noqa: E402

DEVICE_NAMES = {"pocl": "PoCL, one thread", "soft": "the software CUDA device, one thread"}


def machine():
    model = "unknown"
    try:
        with open("/proc/cpuinfo") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    return {"processor": model, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
            "load_before": round(os.getloadavg()[0], 2), "apart": bool(stage.other_processors())}


def revision():
    result = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else ""


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def section(kept):
    report = kept["report"]
    missed = [goal for goal in report["goals"] if not goal["met"]]
    lines = [f"### {report['title']}", "", *report["text"], ""] + table(report["head"], report["rows"])
    lines += [f"Goals: {len(report['goals']) - len(missed)} of {len(report['goals'])} met." + (" Missed:" if missed else ""), ""]
    lines += [f"* {goal['text']}: {goal['value']}" for goal in missed] + ([""] if missed else [])
    if kept["note"]:
        lines += [kept["note"], ""]
    lines += [" ".join(f"![{name}](real/{kept['device']}-{name}.svg)" for name in kept["pictures"]), ""]
    machine_text = kept["machine"]
    lines += [f"{kept['date']}, {kept['revision']}, {machine_text['cores']} cores ({machine_text['processor']}){', one of them the device' if machine_text.get('apart') else ''}, "
              f"load before {machine_text['load_before']}: `docs/experiments/real.py --device {kept['device']} --only {kept['name']}`", ""]
    return lines


def write_page(out):
    kept = []
    for device in stage.DEVICES:
        for name in experiments.EXPERIMENTS:
            file = out / "real" / f"{device}-{name}.json"
            if file.exists():
                kept.append(json.loads(file.read_text()))
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# Scheduling experiments on the real server", "",
             "Written by `docs/experiments/real.py`: ordinary programs (`bench/experiments/`), one for each tenant, with a hawserd of their own, over shared memory.",
             "Workers compute with one thread, so that a core is left to guests and server, as it is beside a GPU; where it says so, the thread has a processor of its own, where the kernel puts nothing else. "
             "[simulated.md](simulated.md) has the same experiments in virtual time.", ""]
    for device in stage.DEVICES:
        mine = [one for one in kept if one["device"] == device]
        if mine:
            lines += [f"## On {DEVICE_NAMES[device]}", ""]
            for one in mine:
                lines += section(one)
    (out / "real.md").write_text("\n".join(lines).rstrip() + "\n")


def keep(out, device, name, report, quick):
    folder = out / "real"
    folder.mkdir(parents=True, exist_ok=True)
    for picture, svg in report.pictures.items():
        (folder / f"{device}-{picture}.svg").write_text(svg)
    fields = dataclasses.asdict(report)
    pictures = list(fields.pop("pictures"))
    text = json.dumps({
        "name": name, "device": device, "note": "With --quick: too short to mean anything." if quick else "",
        "date": datetime.date.today().isoformat(), "revision": revision(), "machine": {**keep.machine, "apart": keep.machine["apart"] and name not in experiments.IN_TURN}, "pictures": pictures,
        "report": fields,
    })
    # Times to a tenth of a microsecond are enough.
    text = json.dumps(json.loads(text, parse_float=lambda number: round(float(number), 4)), indent=None)
    (folder / f"{device}-{name}.json").write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "release")
    parser.add_argument("--device", action="append", choices=list(stage.DEVICES))
    parser.add_argument("--only", action="append", choices=list(experiments.EXPERIMENTS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="shorter: to see that it works")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="name the experiments and end")
    parser.add_argument("--strict", action="store_true", help="exit with 2 when a goal is missed")
    parser.add_argument("--page-only", action="store_true", help="write real.md from the numbers that are there")
    options = parser.parse_args()
    if options.list:
        print("\n".join(experiments.EXPERIMENTS))
        return 0
    out = options.out or (pathlib.Path(tempfile.mkdtemp(prefix="hawser-experiments-")) if options.quick else HERE)
    if options.page_only:
        write_page(out)
        return 0
    keep.machine = machine()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that what was started is stopped.
    failed, missed = [], 0
    for device in options.device or list(stage.DEVICES):
        with_device = stage.Stage(options.build, device)
        try:
            if with_device.missing:
                print(f"{device}: not built: {', '.join(with_device.missing)}", file=sys.stderr)
                failed.append(device)
                continue
            for name in options.only or list(experiments.EXPERIMENTS):
                print(f"{device} {name}", flush=True)
                try:
                    bench = experiments.Bench(with_device, options.quick, lambda text: print(text, flush=True))
                    report = experiments.EXPERIMENTS[name](bench)
                except (stage.Failure, ValueError) as failure:  # The second: samples are missing.
                    print(f"{device} {name}: {failure}", file=sys.stderr)
                    failed.append(f"{device} {name}")
                    continue
                print("\n".join(table(report.head, report.rows)))
                for goal in report.goals:
                    print(f"  {'met   ' if goal.met else 'MISSED'} {goal.text}: {goal.value}", flush=True)
                    missed += not goal.met
                keep(out, device, name, report, options.quick)
        finally:
            with_device.close()
    write_page(out)
    print(f"written to {out}; goals missed: {missed}; did not run: {', '.join(failed) or 'none'}")
    return 1 if failed else 2 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
