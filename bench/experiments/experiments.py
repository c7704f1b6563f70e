# SPDX-License-Identifier: Apache-2.0
"""The sharing experiments: who runs what, what is computed from it, and which goal it must meet.

Each function takes a Bench and returns a Report. Times are ms."""

import dataclasses
import statistics

import measures
import pictures
from stage import Tenant

# Sizes so that one launch takes about as long on each device: the thread-split paper's 14K about 100 ms. For quick looks; see LONG.
SIZES = {
    "pocl": {
        "matmul": {f"{k}K": {"work": "matmul", "size": 32 * k} for k in (9, 10, 11, 12, 13, 14)},
        "sobel": {"2560": {"work": "sobel", "size": 960}, "8192": {"work": "sobel", "size": 3072}},
        "options": {"5M": {"work": "binomial", "size": 2304}, "10M": {"work": "binomial", "size": 4608},
                    "20M": {"work": "binomial", "size": 9216}},
        "madd": {"work": "madd", "size": 256},
        "service": {"work": "matmul", "size": 160},
        "short": {"work": "madd", "size": 64, "rounds": 1},
        "middle": {"work": "matmul", "size": 192},
    },
    "soft": {
        # An interpreter: fewer threads with more to do each, as on a device that is worth splitting for.
        "matmul": {f"{k}K": {"work": "matmul", "size": 8 * k, "rounds": 20} for k in (9, 10, 11, 12, 13, 14)},
        "sobel": {"2560": {"work": "sobel", "size": 64, "rounds": 20}, "8192": {"work": "sobel", "size": 192, "rounds": 20}},
        "options": {"5M": {"work": "binomial", "size": 384}, "10M": {"work": "binomial", "size": 768},
                    "20M": {"work": "binomial", "size": 1536}},
        "madd": {"work": "madd", "size": 256},
        "service": {"work": "matmul", "size": 40, "rounds": 20},
        "short": {"work": "madd", "size": 16, "rounds": 1},
        "middle": {"work": "matmul", "size": 64, "rounds": 20},
    },
}


# What thread-split really measures; how many rounds is set for each machine, see TASK_MS. The matrices stay small, so that one fits a core's own cache: with large ones
# every turn begins by fetching them anew, which has nothing to do with whose turn it is. Sobel's widths are multiples of its work-group's 64: groups of which half a row is outside of the picture
# take half as long as others, and how long a part takes is foreseen by their number. So on the software device, whose matrices are smaller than that, the product's work-groups are tiles of
# 8 columns and 8 rows (and a row is no whole number of cache lines: of 192 numbers the columns of a tile share 16 of 64 sets; rows of 64 left the second group of a row of 104 a fifth shorter than the first, and a turn has only some twenty of them).
LONG = {
    "pocl": {
        "matmul": {f"{k}K": {"work": "matmul", "size": 20 * k, "rounds": 40} for k in (9, 10, 11, 12, 13, 14)},
        "sobel": {"2560": {"work": "sobel", "size": 960, "rounds": 75}, "8192": {"work": "sobel", "size": 1536, "rounds": 75}},
        "options": {"5M": {"work": "binomial", "size": 32256}, "10M": {"work": "binomial", "size": 64512},
                    "20M": {"work": "binomial", "size": 129024}},
    },
    "soft": {
        "matmul": {f"{k}K": {"work": "matmul", "size": 16 * k + 8, "rounds": 60, "columns": 8} for k in (9, 10, 11, 12, 13, 14)},
        "sobel": {"2560": {"work": "sobel", "size": 128, "rounds": 2200}, "8192": {"work": "sobel", "size": 192, "rounds": 1280}},
        "options": {"5M": {"work": "binomial", "size": 23040}, "10M": {"work": "binomial", "size": 46080},
                    "20M": {"work": "binomial", "size": 92160}},
    },
}
# A task has this many turns if it is the shortest of its mix. Fewer, and one that ends a turn later than another has waited much longer; more, and what changing over costs
# (caches that are cold) is what is measured. And a half, so that a machine whose speed varies by some percent does not add a turn.
TURNS = 22.5

# The shortest task of a mix takes this long alone, on a fast machine and on a slow one: all of the mix do their rounds as often as it takes. So an experiment takes about
# as long everywhere, and a turn is a hundred times longer than changing over, which takes 0.4 to 0.7 ms on the machines that were seen:
# of the 5 % that the mean may be longer, 4.3 are gone before any is lost. (The paper's tasks take 900 ms, its table 2: six of 12K in 5.2 s. With that, turns were 40 ms,
# and the mean 0 to 2.6 % above what it has to be, more on one day's machine than on the next's.)
TASK_MS = 1500

# A run is repeated, three times at most, when the machine's host took more than this part of the processors' time from it; the run that lost least counts, whatever
# it measured.
STOLEN, TRIES = 0.02, 3


@dataclasses.dataclass
class Goal:
    text: str
    met: bool
    value: str


@dataclasses.dataclass
class Report:
    title: str
    text: list
    head: tuple
    rows: list = dataclasses.field(default_factory=list)
    goals: list = dataclasses.field(default_factory=list)
    pictures: dict = dataclasses.field(default_factory=dict)  # Name: SVG.
    data: list = dataclasses.field(default_factory=list)  # What the numbers were computed from.

    def goal(self, text, met, value):
        self.goals.append(Goal(text, bool(met), value))


class Bench:
    """What experiments share: the stage, how long they may be, and whether all results were right."""

    def __init__(self, stage, quick=False, say=print):
        self.stage, self.quick, self.say = stage, quick, say
        self.sizes = SIZES[stage.device]
        self.checksums = {}  # What was computed: the checksums that were seen.
        self.wrong = []

    def run(self, policy, tenants, **options):
        self.say(f"  {policy}: " + ", ".join(tenant.name for tenant in tenants))
        result = self.stage.run(policy, tenants, **options)
        for name, program in result.programs.items():
            key = (program["work"], program["size"], program["rounds"])
            self.checksums.setdefault(key, set()).add(program["checksum"])
            if not program["right"]:
                self.wrong.append(f"{name} under {policy}")
        return result

    def run_undisturbed(self, policy, tenants, **options):
        """run(), and again when the host was busy with something else."""
        results = []
        while len(results) < (1 if self.quick else TRIES):
            results.append(self.run(policy, tenants, **options))
            if results[-1].stolen <= STOLEN:
                break
            self.say(f"    the host took {_percent(results[-1].stolen)} of the processors")
        return min(results, key=lambda result: result.stolen)

    def madd(self, *lengths_ms):
        """The work of madd for each length, from how long few and many rounds take alone."""
        base, points = self.sizes["madd"], []
        for rounds in (50, 500):
            result = self.run("none", [Tenant("alone", {**base, "rounds": rounds, "seconds": 0.5})])
            points.append((rounds, measures.percentile(result.lengths("alone"), 0.25)))
        (few, short), (many, long) = points
        each = (long - short) / (many - few)
        return [{**base, "rounds": max(1, round(few + (length - short) / each))} for length in lengths_ms]

    def seconds(self, usual, quick):
        return quick if self.quick else usual

    def judge_results(self, report):
        """Also whether launches in parts gave the same bytes as whole ones."""
        different = [f"{work} {size}" for (work, size, _), sums in self.checksums.items() if len(sums) != 1]
        report.goal("all results right, and the same bytes under every policy", not self.wrong and not different,
                    "yes" if not self.wrong and not different else f"wrong: {self.wrong}, different: {different}")


_STOLEN_TEXT = (f"Stolen: what the machine's host took of its processors' time meanwhile (`/proc/stat`). A run that lost more than {100 * STOLEN:.0f} % is made again, {TRIES - 1} times at most, and the one "
                "that lost least counts, whatever it measured.")


def _percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


# ---------------------------------------------------------------------------------------------- thread-split
def _six(kinds, sizes, repeat, run=0):
    """Six tenants, as many of each kind. They come two milliseconds apart, the kinds in turn, another kind first in every run: who comes first is done first under
    FIFO, and short ones before long ones would lower its mean by a hundredth."""
    each = 6 // len(kinds)
    tenants = []
    for i in range(6):
        kind = i // each
        place = i % each * len(kinds) + (kind + run) % len(kinds)
        tenants.append(Tenant(f"{kinds[kind]}-{i + 1}", {**sizes[kinds[kind]], "repeat": repeat, "think_us": 4000, "seed": i + 1, "delay_ms": 100 + 2 * place}, kinds[kind]))
    return tenants


def _alone_ms(bench, works):
    return [min(bench.run("none", [Tenant("alone", {**work, "repeat": 3})]).lengths("alone")) for work in works]


def _slice_us(alone):
    """The slice for tasks that take so long alone, for each policy that has one."""
    return dict.fromkeys(("split", "fair"), max(2000, round(1000 * min(alone) / TURNS)))


@dataclasses.dataclass
class _Run:
    """One run of six tasks under a policy."""
    cv: float
    worst: float
    even_cv: float
    even_worst: float
    mean: float
    kinds: dict  # Name: the mean of its runtimes.
    stolen: float
    result: object  # The stage's.
    device: dict = dataclasses.field(default_factory=dict)  # Its tasks' launches by the device's clock, if it has one.

    def device_mean(self, repeat):
        return statistics.fmean(length for of in self.device.values() for _, length in of[:repeat])


def _run_six(bench, label, policy, tenants, repeat, slice_us, report):
    # Who is alone runs whole kernels: somebody with short ones is there before, so that none of the six is.
    before = Tenant("before", {**bench.sizes["short"], "seconds": 0.15})
    # A rest, so that a policy that remembers use has forgotten that of the preparations.
    result = bench.run_undisturbed(policy, [*tenants, before], settings={"slice_us": slice_us} if slice_us else None, rest_s=bench.seconds(4, 0),
                                   pace=not bench.quick and bench.stage.has_pace())
    classes = {}
    for tenant in tenants:
        classes.setdefault(tenant.kind, []).extend(result.lengths(tenant.name)[:repeat])
    report.data.append({"mix": label, "policy": policy, "slice_us": slice_us, "stolen": result.stolen, "launches_ms": {
        tenant.name: result.launches(tenant.name) for tenant in tenants},
        "paces": [[round(end), [round(pace, 3) for pace in paces]] for end, paces in result.paces]})
    run = _Run(measures.variation(classes), measures.worst_ratio(classes), *_at_even_pace({tenant.name: result.launches(tenant.name) for tenant in tenants}, tenants, repeat), measures.overall_mean(classes),
               {kind: statistics.fmean(times) for kind, times in classes.items()}, result.stolen, result)
    return run, {tenant.name: result.lengths(tenant.name)[:repeat] for tenant in tenants}


def _by_the_device(runs, repeat):
    """Gives each run what it is by the device's clock. How the lengths of tasks follow the paces is learnt from FIFO's, which had the device for themselves. `runs`:
    policy -> [_Run]; all have paces."""
    samples = []
    for run in runs["fifo"]:
        kinds = {tenant.name: tenant.kind for tenant in run.result.tenants if tenant.kind}
        for name, begin, end in measures.had_to_itself({name: run.result.launches(name) for name in kinds}):
            if end > begin:
                samples.append((kinds[name], end - begin, measures.paces_of(run.result.paces, begin, end)))
    weights = measures.follow(samples)
    usual = [statistics.fmean(paces) for paces in zip(*(paces for _, _, paces in samples))]

    for of in runs.values():
        for run in of:
            clock = measures.device_clock(run.result.paces, weights, usual)
            run.device = {tenant.name: [(measures.at(clock, begin), measures.at(clock, begin + length) - measures.at(clock, begin))
                                        for begin, length in run.result.launches(tenant.name)] for tenant in run.result.tenants if tenant.kind}
            run.even_cv, run.even_worst = _at_even_pace(run.device, run.result.tenants, repeat)


def _at_even_pace(launches, tenants, repeat):
    """CV and max/min at an even pace. `launches`: of those with a kind."""
    kinds = {tenant.name: tenant.kind for tenant in tenants if tenant.kind}
    classes = {}
    for name, times in measures.at_even_pace(launches, kinds, repeat).items():
        classes.setdefault(kinds[name], []).extend(times)
    return measures.variation(classes), measures.worst_ratio(classes)


def _by_neighbours(order, values):
    """Each value that is not FIFO's by the mean of FIFO's before and behind it, {policy: [ratio]}. `order`: the policies as they ran; `values`: policy -> [value] in
    that order. Where FIFO does not come again, the one before counts."""
    counts, placed = {}, []
    for policy in order:
        placed.append((policy, values[policy][counts.setdefault(policy, 0)]))
        counts[policy] += 1
    ratios = {}
    for place, (policy, value) in enumerate(placed):
        if policy != "fifo":
            before = next(v for p, v in placed[place::-1] if p == "fifo")
            behind = next((v for p, v in placed[place:] if p == "fifo"), before)
            ratios.setdefault(policy, []).append(2 * value / (before + behind))
    return ratios


def _spread(values):
    """Standard deviation by mean."""
    return statistics.pstdev(values) / statistics.fmean(values)


def _thread_split(bench, figure, title, family, mixes):
    repeat = bench.seconds(10, 3)
    report = Report(title, [
        f"Six tenants, {repeat} repeats each, a common start; who is ready goes on until all are; a tenant with short launches was there before, so that nobody begins alone. Four milliseconds, more or less by half, between one's end and the next, for "
        "what a program does on its own. CV: standard deviation by mean of the runtimes, each by the mean of its kind. max/min: of one kind.",
        "At an even pace: a shared machine becomes slower and faster by a tenth and more while this runs, for all six alike. That is taken off (`at_even_pace` in `bench/experiments/measures.py`: each runtime by how fast "
        "all that ran meanwhile went on), and what one task got more than another stays. The goals for CV and max/min are judged by these, against FIFO's plain CV.",
        _STOLEN_TEXT,
    ], ("tasks", "policy", "runs", "CV", "max/min", "CV, even pace", "max/min, even pace", "mean", "mean by FIFO's", "by the device's clock", "of each run", "stolen"))
    family_sizes = bench.sizes[family] if bench.quick else LONG[bench.stage.device][family]
    if not bench.quick:
        columns = next((size["columns"] for size in family_sizes.values() if "columns" in size), None)
        if columns:
            report.text.append(f"Work-groups are tiles of {columns} by {64 // columns}, so that all have as much to do.")
        report.text.append(f"Where a task has rounds, as many of them that the shortest of a mix takes {TASK_MS} ms alone on this machine.")
        report.text.append("All of it three times: the order is fifo, split, fair, fifo, fair, split, fifo, split, fair, fifo. A run's mean is compared with that of the FIFO runs before and behind it, because the machine's pace "
                           "changes from minute to minute; each number is the median of the runs.")
        if bench.stage.has_pace():
            report.text.append("By the device's clock: equal runs of FIFO differ, because the processor that is the device is faster in one minute than in the next. So a program beside the device's thread (`hawser-experiment-pace`) does the same "
                               "two small works 400 times a second, vector and integer arithmetic, which takes 2.3 % of that processor under every policy. How the length of a task follows the two is learnt from FIFO's runs, in which each task has the "
                               "device for itself once the one before is done; with that, runtimes become those of a device that keeps its speed. Nothing of it comes from the runs of `split` and `fair`, so what these cost is all in their means. The goal for the mean is judged by this; the plain ratio stands beside it, "
                               "and in FIFO's lines how much (standard deviation) its own runs differ by each. At an even pace is, then, what is left of these runtimes.")
        report.text.append(f"The slice is the shortest task of a mix, alone, by {TURNS}. In the first round FIFO's tasks wait for half of the others on average, later for all; "
                           "in turns they always have all beside them. Over ten rounds that alone is a mean of 4.3 % above FIFO's. Of two sizes one comes first in one run, the other in the next.")
        if bench.stage.device == "pocl":
            report.text.append("PoCL compiles launches with an offset apart, and kernels that compute with their ids are up to 2 % slower so, also without Hawser (docs/decisions/0010); that is in the means of whoever splits.")
    for mix in mixes:
        label = " and ".join(mix)
        sizes, slice_us = family_sizes, {}
        if not bench.quick:  # Which uses the server's slice.
            sizes, alone = measures.suited(sizes, mix, _alone_ms(bench, [sizes[kind] for kind in mix]), TASK_MS)
            slice_us = _slice_us(alone)
        runs, lengths = {}, {}
        order = ("fifo", "split", "fair") + (("fifo", "fair", "split", "fifo", "split", "fair", "fifo") if not bench.quick else ())
        for policy in order:
            tenants = _six(mix, sizes, repeat, len(runs.get(policy, [])))
            one, tasks = _run_six(bench, label, policy, tenants, repeat, slice_us.get(policy), report)
            runs.setdefault(policy, []).append(one)
            for name, times in tasks.items():
                lengths.setdefault(policy, {}).setdefault(name, []).extend(times)
        plain = {policy: [one.mean for one in of] for policy, of in runs.items()}
        device, clock = plain, all(one.result.paces for of in runs.values() for one in of)
        if clock:
            _by_the_device(runs, repeat)
            device = {policy: [one.device_mean(repeat) for one in of] for policy, of in runs.items()}
        plain_ratios, ratios = _by_neighbours(order, plain), _by_neighbours(order, device)
        middle = {policy: {field: statistics.median(getattr(one, field) for one in of) for field in ("cv", "worst", "even_cv", "even_worst", "stolen")}
                  for policy, of in runs.items()}
        fifo_cv = middle["fifo"]["cv"]
        for policy, of in runs.items():
            mid = middle[policy]
            means = ", ".join(f"{kind}: {statistics.median(one.kinds[kind] for one in of):.1f} ms" for kind in of[0].kinds)
            # Of FIFO: how much the means of equal runs differ, which is what a ratio cannot tell.
            judged = ("", "", f"differ by {_percent(_spread(plain[policy]))}", f"differ by {_percent(_spread(device[policy]))}" if clock else "", "")
            if policy != "fifo":
                ratio, plain_ratio = statistics.median(ratios[policy]), statistics.median(plain_ratios[policy])
                judged = (_percent(mid["even_cv"]), f"{mid['even_worst']:.2f}", f"{plain_ratio:.3f}", f"{ratio:.3f}" if clock else "", ", ".join(f"{one:.3f}" for one in ratios[policy]))
                report.goal(f"{label}, {policy}: CV at most half of FIFO's", mid["even_cv"] <= 0.5 * fifo_cv, f"{_percent(mid['even_cv'])} of {_percent(fifo_cv)}")
                report.goal(f"{label}, {policy}: max/min at most 1.15", mid["even_worst"] <= 1.15, f"{mid['even_worst']:.3f}")
                report.goal(f"{label}, {policy}: mean at most 5 % above FIFO's", ratio <= 1.05, f"{_percent(ratio - 1)}")
            report.rows.append((label, policy, len(of), _percent(mid["cv"]), f"{mid['worst']:.2f}", *judged[:2], means, *judged[2:], _percent(mid["stolen"])))
        report.pictures[f"{figure}-{'-'.join(mix).lower()}"] = pictures.boxes(
            f"{title}: {label}", "ms", [(policy, list(tasks.items())) for policy, tasks in lengths.items()])
    bench.judge_results(report)
    return report


def thread_split_7(bench):
    return _thread_split(bench, "thread-split-7", "Thread-split, figure 7: matrix multiplication of one size", "matmul",
                         (("12K",), ("13K",), ("14K",)) if not bench.quick else (("12K",),))


def thread_split_8(bench):
    return _thread_split(bench, "thread-split-8", "Thread-split, figure 8: matrix multiplication of two sizes", "matmul",
                         (("9K", "14K"), ("10K", "14K"), ("11K", "13K")) if not bench.quick else (("9K", "14K"),))


def thread_split_9(bench):
    return _thread_split(bench, "thread-split-9", "Thread-split, figure 9: Sobel filter", "sobel",
                         (("2560",), ("8192",), ("2560", "8192")) if not bench.quick else (("2560", "8192"),))


def thread_split_10(bench):
    return _thread_split(bench, "thread-split-10", "Thread-split, figure 10: binomial options", "options",
                         (("5M",), ("10M",), ("10M", "20M")) if not bench.quick else (("10M", "20M"),))


# ---------------------------------------------------------------------------------------------- GPUvm
def gpuvm_expected(tenants, policy):
    """The table of the paper's finding: shares of one madd and of one long-madd tenant."""
    if policy == "fifo" or (policy == "credit" and tenants == 2):
        return 1 / 6 / (tenants / 2), 5 / 6 / (tenants / 2)
    return 1 / tenants, 1 / tenants


def gpuvm(bench):
    seconds = bench.seconds(6, 2)
    report = Report("GPUvm, figures 7 and 8: madd and long-madd", [
        "Half of the tenants launch madd (2 ms), half long-madd (five times as long: a window of 500 ms cannot be divided more evenly than by one of them, 2 points), one launch at a time, a twentieth of madd's length, more or less by half, between one's end and the next, as in the table's model. Shares of the device's time, by when each kernel ran (`hawser trace`), of all but the "
        "first half second; the largest distance of one tenant's share in one window of 500 ms from the table; the least Jain index over windows of 500 and 100 ms. Turns: a madd tenant's launches by a long-madd tenant's. Lengths: a long-madd's "
        "time on the device by a madd's. The table under fifo is that of one turn and a length of five: with more turns a long-madd tenant came back too late for its own, with another "
        "length kernels were kept from the processor while they ran; both are the machine's doing, not the policy's. "
        "The table under credit with two tenants is that of a guest who comes back after the decision; one who came back at once would be there to be chosen, have more credit, and get a second turn.", _STOLEN_TEXT],
        ("tenants", "policy", "madd", "long-madd", "table", "worst window", "Jain 500 ms", "Jain 100 ms", "turns", "lengths", "stolen"))
    sizes, groups = dict(zip(("madd", "long-madd"), bench.madd(2, 10))), []
    for count in (2, 4, 8) if not bench.quick else (2, 4):
        bars = []
        for policy in ("fifo", "credit", "band", "fair"):
            tenants = [Tenant(f"{kind}-{i + 1}", {**sizes[kind], "seconds": seconds, "think_us": 100, "seed": i + 1}, kind)
                       for kind in ("madd", "long-madd") for i in range(count // 2)]
            result = bench.run_undisturbed(policy, tenants, trace=True)
            expected = dict(zip(("madd", "long-madd"), gpuvm_expected(count, policy)))
            if not result.measured():
                report.goal(f"{count} tenants, {policy}: the server traces kernels", False, "it does not")
                continue
            begin, end = 500, 1000 * seconds - 100
            total = measures.shares(result.counters, begin, end)
            windows = measures.window_shares(result.counters, begin, end, 500)
            error = measures.worst_error(windows, {tenant.name: expected[tenant.kind] for tenant in tenants})
            of_kind = {kind: statistics.fmean(total[t.name] for t in tenants if t.kind == kind) for kind in expected}
            jains = [min(measures.jain(list(window.values())) for window in measures.window_shares(result.counters, begin, end, length))
                     for length in (500, 100)]
            launched = {kind: measures.begun([result.launches(t.name) for t in tenants if t.kind == kind], begin, end) for kind in expected}
            turns = launched["madd"] / max(1, launched["long-madd"])
            lengths = of_kind["long-madd"] / of_kind["madd"] * turns if of_kind["madd"] > 0 else 0
            report.rows.append((count, policy, f"{of_kind['madd']:.3f}", f"{of_kind['long-madd']:.3f}",
                                f"{expected['madd']:.3f} / {expected['long-madd']:.3f}", f"{error:.1f} points",
                                f"{jains[0]:.3f}", f"{jains[1]:.3f}", f"{turns:.2f}", f"{lengths:.2f}", _percent(result.stolen)))
            report.data.append({"tenants": count, "policy": policy, "shares": total, "windows_500_ms": windows, "launches": launched})
            report.goal(f"{count} tenants, {policy}: every window of 500 ms within 3 points of the table", error <= 3, f"{error:.1f}")
            bars += [(f"{policy} m", 100 * of_kind["madd"], 100 * expected["madd"]),
                     (f"{policy} l", 100 * of_kind["long-madd"], 100 * expected["long-madd"])]
        if bars:
            groups.append((f"{count} tenants", bars))
    if groups:
        report.pictures["gpuvm"] = pictures.bars("Shares of one madd (m) and one long-madd (l) tenant; lines: the table", "%", groups)
    bench.judge_results(report)
    return report


# ---------------------------------------------------------------------------------------------- weights
def weights(bench):
    seconds = bench.seconds(11, 3)
    report = Report("Weights", [
        f"Two tenants that always have work (matrix multiplication, two launches under way), over {seconds - 1:g} seconds. Shares of the device's time as the server counts "
        "it, and of the work that their programs saw done. The two differ where turns are short: the first part after another tenant's finds none of its data in the processor's caches, "
        "and of the lighter tenant's parts more come after another's. That time is its own, so its programs see less done for it; with longer slices less is lost.", _STOLEN_TEXT],
        ("weights", "policy", "shares", "error", "programs saw", "worst window of 500 ms", "stolen"))
    groups = []
    cases = ((30, 70, "fair", False, {}), (10, 90, "fair", False, {}), (20, 80, "fair", True, {}), (30, 70, "drr", False, {}),
             (10, 90, "drr", False, {}), (30, 70, "fair", False, {"slice_us": 20000}), (10, 90, "fair", False, {"slice_us": 20000}))
    for low, high, policy, change, settings in cases if not bench.quick else cases[:3]:
        # Changed while they run: they begin with equal weights, and the second half counts.
        tenants = [Tenant(f"weight-{weight}", {**bench.sizes["matmul"]["12K"], "seconds": seconds, "depth": 2}, str(weight),
                          100 if change else weight) for weight in (low, high)]
        half = seconds / 2
        later = [(half, ["tenants", "set", f"weight-{weight}", "--weight", str(weight)]) for weight in (low, high)] if change else ()
        result = bench.run_undisturbed(policy, tenants, later=later, settings=settings)
        if not result.measured():
            report.goal(f"{low}:{high}, {policy}: the server counts device time", False, "it does not")
            continue
        begin, end = 1000 * half + 500 if change else 500, 1000 * seconds - 500
        expected = {f"weight-{weight}": weight / (low + high) for weight in (low, high)}
        share = measures.shares(result.counters, begin, end)
        error = measures.worst_error([share], expected)
        seen = measures.shares({tenant.name: measures.completed_work(result.launches(tenant.name), 1) for tenant in tenants},
                               begin, min(end, *(max(b + l for b, l in result.launches(t.name)) for t in tenants)))
        worst = measures.worst_error(measures.window_shares(result.counters, begin, end, 500), expected)
        text = " : ".join(f"{100 * share[t.name]:.2f}" for t in tenants)
        label = f"{low}:{high}" + (", set while they run" if change else "") + (f", slices of {settings['slice_us'] / 1000:g} ms" if settings else "")
        report.rows.append((label, policy, text, f"{error:.2f} points",
                            " : ".join(f"{100 * seen[t.name]:.1f}" for t in tenants), f"{worst:.2f} points", _percent(result.stolen)))
        report.data.append({"weights": [low, high], "policy": policy, "settings": settings, "shares": share, "programs": seen})
        groups.append((f"{low}:{high} {policy}{' set' if change else ' long' if settings else ''}", [(t.name[7:], 100 * share[t.name], 100 * expected[t.name]) for t in tenants]))
        if policy == "fair":
            report.goal(f"{label}: within 1 point", error <= 1, f"{error:.2f}")
    if groups:
        report.pictures["weights"] = pictures.bars("Shares by weight; lines: the weights", "%", groups, 100)
    bench.judge_results(report)
    return report


# ---------------------------------------------------------------------------------------------- latency
def latency(bench):
    # So long that the first request, when both begin at once and nobody's kernel has its grant yet, is not one in a hundred.
    seconds = bench.seconds(10, 3)
    repeats = {"prio": 5, "slo": 5} if not bench.quick else {}  # Those that have goals.
    report = Report("A service beside a batch job", [
        "A short kernel every 50 ms, beside long ones without end. Priority 10, half of the device and a wanted latency (slo) of 20 ms are the service's. "
        f"In turn: the service alone, the batch job alone, both, {seconds} seconds each (the batch job alone for 2); under prio and slo five times. The percentiles, the ratio and what the batch job keeps "
        "are medians over these times, because two disturbances of a shared machine are one request in a hundred. The batch job keeps: its launches a second by those that it does alone, "
        "where the service's own part of the device is subtracted from neither.",
        f"A run in which the machine's host took more than {100 * STOLEN:.0f} % of its processors' time is made again, {TRIES - 1} times at most; the one that lost least counts."],
        ("policy", "p50 alone", "p99 alone", "p50", "p99", "p99 by alone", "batch keeps"))
    groups = []
    for policy in ("fifo", "fair", "prio", "slo") if not bench.quick else ("fifo", "prio"):
        service = Tenant("service", {**bench.sizes["service"], "seconds": seconds, "period_ms": 50}, "service", 100, 10, 50, 20)
        batch = Tenant("batch", {**bench.sizes["matmul"]["14K"], "seconds": seconds, "depth": 2}, "batch")
        turns = []
        for _ in range(repeats.get(policy, 1)):
            # Without samples: nobody needs them, and taking them delays one request in twenty.
            alone = bench.run_undisturbed(policy, [service], sample=False).lengths("service")
            batch_alone = bench.run(policy, [dataclasses.replace(batch, work={**batch.work, "seconds": 2})], sample=False)
            both = bench.run_undisturbed(policy, [service, batch], sample=False)
            rates = [len(r.launches("batch")) / r.programs["batch"]["runtime_ms"] for r in (batch_alone, both)]
            turns.append({"alone_ms": alone, "beside_ms": both.lengths("service"), "batch_per_ms": rates})

        def middle(value):
            return statistics.median(value(turn) for turn in turns)

        a50, a99, b50, b99 = (middle(lambda turn: measures.percentile(turn[side], part))
                              for side in ("alone_ms", "beside_ms") for part in (0.5, 0.99))
        ratio = middle(lambda turn: measures.percentile(turn["beside_ms"], 0.99) / measures.percentile(turn["alone_ms"], 0.99))
        kept = middle(lambda turn: turn["batch_per_ms"][1] / turn["batch_per_ms"][0])
        report.rows.append((policy, f"{a50:.2f} ms", f"{a99:.2f} ms", f"{b50:.2f} ms", f"{b99:.2f} ms", f"{ratio:.2f}", _percent(kept)))
        report.data.append({"policy": policy, "turns": turns})
        groups.append((policy, [(name, [each for turn in turns for each in turn[side]])
                                for name, side in (("alone", "alone_ms"), ("beside", "beside_ms"))]))
        if policy in ("prio", "slo"):
            report.goal(f"{policy}: p99 at most 1.10 of alone", ratio <= 1.10, f"{ratio:.2f}")
            report.goal(f"{policy}: the batch job keeps at least 80 %", kept >= 0.8, _percent(kept))
    report.pictures["latency"] = pictures.boxes("The service's latency", "ms", groups)
    bench.judge_results(report)
    return report


# ---------------------------------------------------------------------------------------------- alone
def alone(bench):
    servers = bench.seconds(12, 1)
    # Slots long enough for some hundred short launches, or some long ones.
    cases = (("short", {**bench.sizes["short"], "depth": 16}, 50, bench.seconds(100, 20)),
             ("long", bench.sizes["middle"], 250, bench.seconds(80, 6)))
    report = Report("Alone", [
        f"Two servers on one machine, one under fair, one without a scheduler, each with one tenant; the two tenants launch in turn, in slots of {cases[0][2]} ms (short launches) and {cases[1][2]} ms "
        "(long ones), none, fair, fair, none. Neighbouring slots are a pair, so that a machine that changes its speed changes it for both; the loss of a pair of servers is the median of its pairs of slots. "
        f"Of two equal servers one is up to a percent faster as long as they run (where the system put their memory), so there are {servers} pairs, each started anew: the loss is their mean, the error by how they differ. Short: sixteen launches under way, each of some microseconds, so that what the server does for one shows. Long: one at a time. "
        "Where there are two processors the servers have the first, with their devices, and the programs the others: left to the kernel, threads stay together or apart as they began, and one of "
        "two equal servers did a tenth more than the other."],
        ("launches", "none", "fair", "loss, mean of the servers", "its standard error", "pairs of slots", "of each pair of servers"))
    groups = []
    for label, work, slot_ms, slots in cases:
        rates, losses, each = {"none": [], "fair": []}, [], []
        for number in range(servers):
            bench.say(f"  {label} launches, servers {number + 1} of {servers}")
            # Who is first in the first slot changes, too.
            order = ("none", "fair") if number % 2 == 0 else ("fair", "none")
            turn = bench.stage.run_in_turn(order, {**work, "slots": slots, "slot_ms": slot_ms})
            for policy, values in turn.items():
                rates[policy] += values
            these = measures.losses(turn["none"], turn["fair"])
            losses += these
            each.append(statistics.median(these))
        loss = statistics.fmean(each)
        error = statistics.stdev(each) / len(each)**0.5 if len(each) > 1 else measures.median_error(losses)
        report.rows.append((label, f"{statistics.median(rates['none']):.1f} /s", f"{statistics.median(rates['fair']):.1f} /s", _percent(loss, 2), _percent(error, 2),
                            len(losses), ", ".join(_percent(value, 1) for value in each)))
        report.data.append({"launches": label, "per_second": rates, "losses": losses})
        groups.append((label, [("fair by none", [100 * (1 - each) for each in losses])]))
        # A loss that is less certain than the goal is small cannot be told: not met.
        report.goal(f"{label} launches: at most 0.5 % lost", loss <= 0.005 and error <= 0.005,
                    f"{_percent(loss, 2)}, give or take {_percent(error, 2)}")
    gate = bench.stage.gate_ns()
    cost = gate["lone_launch_ns"] + gate["open_bound_ns"]
    report.text.append(f"The gate by itself (`hawser-bench-gate`, no driver, no wire): {gate['lone_launch_ns']:.1f} ns for a launch to pass, {gate['open_bound_ns']:.1f} ns to know how much is under way; "
                       f"where others want the device too, {gate['slice_pass_ns']:.1f} ns to pass within a slice.")
    report.data.append({"gate_ns": gate})
    report.goal("the gate: at most 10 ns for a launch", cost <= 10, f"{cost:.1f} ns")
    report.pictures["alone"] = pictures.boxes("Launches a second, of the neighbouring slot without a scheduler", "%", groups)
    return report


EXPERIMENTS = {
    "thread-split-7": thread_split_7,
    "thread-split-8": thread_split_8,
    "thread-split-9": thread_split_9,
    "thread-split-10": thread_split_10,
    "gpuvm": gpuvm,
    "weights": weights,
    "latency": latency,
    "alone": alone,
}
# Two servers take turns, and share a processor with their devices.
IN_TURN = {"alone"}
