#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reruns the simulated scheduling experiments and writes docs/experiments/simulated.md and its pictures.

    docs/experiments/simulated.py [--hawser build/release/tools/hawser] [--out docs/experiments] [--check]

Virtual time: the same numbers on every machine. --check writes nothing; exit status 1 when the page or a picture is not
what this would write, and then it says which."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


class Simulator:
    def __init__(self, hawser, out):
        self.hawser, self.out = hawser, out

    def run(self, scenario, policy, picture=False, settings=()):
        command = [self.hawser, "sim", "sched", "--scenario", scenario, "--policy", policy, "--json", "-"]
        for setting in settings:
            command += ["--set", setting]
        if picture:
            command += ["--svg", str(self.out / f"{scenario}-{policy}.svg")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 2):
            raise SystemExit(result.stderr)
        return json.loads(result.stdout)


def window(result, length):
    return next(w for w in result["windows"] if w["length_ms"] == length)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def gpuvm(sim):
    rows = []
    for tenants in (2, 4, 8):
        for policy in ("fifo", "credit", "band", "fair"):
            result = sim.run(f"gpuvm-{tenants}", policy, picture=True)
            short, long = result["tenants"][0]["share"], result["tenants"][-1]["share"]
            rows.append((tenants, policy, f"{short:.3f}", f"{long:.3f}", f"{window(result, 500)['jain_min']:.3f}",
                         f"{window(result, 100)['jain_min']:.3f}", f"{100 * result['busy']:.1f} %"))
    result = sim.run("gpuvm-8-sliced", "fair", picture=True)
    rows.append((8, "fair, kernels split at 0.5 ms", f"{result['tenants'][0]['share']:.3f}", f"{result['tenants'][-1]['share']:.3f}",
                 f"{window(result, 500)['jain_min']:.5f}", f"{window(result, 100)['jain_min']:.5f}", f"{100 * result['busy']:.1f} %"))
    return ["## GPUvm, figures 7 and 8", "",
            "Half of the tenants loop madd (10 ms), half long-madd (50 ms), kernels whole, half a millisecond between one's end and the next.",
            "Share of one madd and of one long-madd tenant, and the least Jain index over windows of 500 and 100 ms.", ""] + \
        table(("tenants", "policy", "madd", "long-madd", "Jain 500 ms", "Jain 100 ms", "busy"), rows) + \
        ["With two tenants, CREDIT is as unfair as FIFO and BAND is not; with four and eight, CREDIT is fair as well; all fluctuate over 100 ms,",
         "because a kernel cannot be interrupted: the paper's findings. Splitting kernels removes the fluctuation.", "",
         "![gpuvm-2 under fifo](gpuvm-2-fifo.svg) ![gpuvm-2 under band](gpuvm-2-band.svg) ![gpuvm-8-sliced](gpuvm-8-sliced-fair.svg)", ""]


def repeats(result):
    """The first ten runtimes of each tenant, by class: tenants with the same name but for the number."""
    classes = {}
    for tenant in result["tenants"]:
        classes.setdefault(tenant["name"].rsplit("-", 1)[0], []).extend(tenant["first_requests_ms"])
    return classes


def deviation(result):
    normalised, classes = [], repeats(result)
    for times in classes.values():
        normalised += [time / statistics.fmean(times) for time in times]
    worst = max(max(times) / min(times) for times in classes.values())
    return statistics.pstdev(normalised), worst, {name: statistics.fmean(times) for name, times in classes.items()}


def thread_split(sim):
    rows = []
    for scenario in ("split-7-12k", "split-7-13k", "split-7-14k", "split-8-9k-14k", "split-8-10k-14k", "split-8-11k-13k",
                     "split-9-sobel-2560", "split-9-sobel-8192", "split-9-sobel-mixed", "split-10-options-5m",
                     "split-10-options-10m", "split-10-options-20m", "split-10-options-mixed"):
        for policy in ("fifo", "split", "fair"):
            cv, worst, means = deviation(sim.run(scenario, policy, picture=scenario == "split-8-9k-14k"))
            rows.append((scenario, policy, f"{100 * cv:.1f} %", f"{worst:.2f}",
                         ", ".join(f"{name}: {mean:.1f}" for name, mean in means.items())))
    for scenario in ("split-9-sobel-2560", "split-9-sobel-mixed"):
        cv, worst, means = deviation(sim.run(scenario, "split", settings=("slice_us=100",)))
        rows.append((scenario, "split, slices of 0.1 ms", f"{100 * cv:.1f} %", f"{worst:.2f}",
                     ", ".join(f"{name}: {mean:.1f}" for name, mean in means.items())))
    return ["## Thread-split, figures 7 to 10", "",
            "Six tenants, ten repeats each, kernels in proportion to the paper's sizes (14K = 100 ms). CV: standard deviation by mean of the runtimes, those of",
            "different kernels each by their own mean. max/min: of the same kernel. Means in ms.", ""] + \
        table(("experiment", "policy", "CV", "max/min", "mean runtime"), rows) + \
        ["Runtimes of equal tasks become equal. What FIFO gave the long kernels at the short ones' cost moves back: with mixed sizes the short ones' mean falls by more than half and",
         "the long ones' rises, because equal time is what is asked for. With equal sizes the mean rises by up to 4 %: FIFO's first finishers finish early. At 2560 x 2560",
         "a task is one millisecond, shorter than a slice: there is nothing to split, and turns decide. Then FIFO deviates least: of all orders that keep a device busy and run tasks",
         "whole, that of arrival has the least variance of waits. With slices of a tenth of a task (last two rows) the mixed sizes deviate half as much as under FIFO; equal tasks of a",
         "millisecond deviate as much, because how many others are there when one comes is chance, and no order takes that away.", "",
         "![9K and 14K under fifo](split-8-9k-14k-fifo.svg) ![under split](split-8-9k-14k-split.svg)", ""]


def weights(sim):
    rows = []
    for scenario in ("weights-30-70", "weights-10-90", "weights-1-2-4"):
        for policy in ("fair", "drr", "slo"):
            result = sim.run(scenario, policy)
            rows.append((scenario, policy, " : ".join(f"{100 * t['share']:.2f}" for t in result["tenants"]),
                         f"{100 * window(result, 500)['share_error_max']:.2f}", f"{100 * window(result, 100)['share_error_max']:.2f}",
                         f"{max(p['gap_ms'] / p['bound_ms'] for p in result['pairs']):.2f}"))
    return ["## Weights", "", "Shares in percent, largest error in points over windows of 500 and 100 ms, and how much of the bound of one slice and piece each is reached",
            "(1 is the bound; it is promised for `fair` only).", ""] + \
        table(("scenario", "policy", "shares", "error 500 ms", "error 100 ms", "gap / bound"), rows)


def latency(sim):
    rows = []
    for policy in ("fifo", "fair", "prio", "slo"):
        result = sim.run("latency-batch", policy, picture=policy in ("fifo", "prio"))
        service, batch = result["tenants"]
        rows.append((policy, f"{service['latency_ms']['p50']:.2f}", f"{service['latency_ms']['p99']:.2f}",
                     f"{service['latency_ms']['p99'] / 5:.2f}", f"{100 * batch['share']:.1f} %"))
    return ["## A service beside a batch job", "", "5 ms of work every 50 ms beside a job that never stops; alone it takes 5.00 ms.", ""] + \
        table(("policy", "p50 ms", "p99 ms", "p99 by alone", "batch's share"), rows) + \
        ["![fifo](latency-batch-fifo.svg) ![prio](latency-batch-prio.svg)", ""]


def others(sim):
    rows = []
    alone = sim.run("alone", "fair")
    rows.append(("alone", "device busy, timers", f"{100 * alone['busy']:.1f} %, {alone['timers']}"))
    newcomer = sim.run("newcomer", "fair", picture=True)
    rows.append(("newcomer", "first wait beside a tenant that was alone", f"{newcomer['tenants'][1]['longest_wait_ms']:.2f} ms"))
    sleeper = sim.run("sleeper", "fair", picture=True)
    rows.append(("sleeper", "longest wait of the steady one", f"{sleeper['tenants'][0]['longest_wait_ms']:.2f} ms"))
    runaway = sim.run("runaway", "fair", picture=True)
    rows.append(("runaway", "shares of the two others after the kernel without end was ended",
                 ", ".join(f"{t['used_ms']:.0f} ms" for t in runaway["tenants"][1:])))
    return ["## Alone, newcomer, sleeper, runaway", ""] + table(("scenario", "what", "result"), rows) + \
        ["![newcomer](newcomer-fair.svg) ![sleeper](sleeper-fair.svg)", ""]


def write(hawser, out):
    out.mkdir(parents=True, exist_ok=True)
    sim = Simulator(hawser, out)
    lines = ["# Scheduling experiments in virtual time", "",
             "Written by `docs/experiments/simulated.py`. The simulator runs the scheduler and the policies that the server runs; time is virtual, so the numbers are the same everywhere.",
             "`hawser sim sched --scenario NAME --policy NAME` shows each one.", ""]
    for part in (gpuvm, thread_split, weights, latency, others):
        lines += part(sim)
    (out / "simulated.md").write_text("\n".join(lines).rstrip() + "\n")


def stale(hawser, kept):
    """Names of the files in `kept` that would be written otherwise."""
    with tempfile.TemporaryDirectory() as fresh:
        fresh = pathlib.Path(fresh)
        write(hawser, fresh)
        return sorted(file.name for file in fresh.iterdir()
                      if not (kept / file.name).is_file() or (kept / file.name).read_bytes() != file.read_bytes())


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser()
    parser.add_argument("--hawser", default="build/release/tools/hawser")
    parser.add_argument("--out", type=pathlib.Path, default=here)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check:
        write(options.hawser, options.out)
        return 0
    old = stale(options.hawser, options.out)
    if old:
        print(f"not what the simulator says now: {', '.join(old)}; run docs/experiments/simulated.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
