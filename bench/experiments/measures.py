# SPDX-License-Identifier: Apache-2.0
"""What the experiments compute from times: plain functions of lists, tested in measures_test.py."""

import bisect
import math
import statistics


def percentile(values, part):
    """The least value that is not below `part` (0 to 1) of all: nearest rank."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(part * len(ordered) - 1e-9)) - 1]


def variation(classes):
    """CV: standard deviation by mean. `classes` maps a kind of task to its runtimes, each by the mean of its kind."""
    normalised = [time / statistics.fmean(times) for times in classes.values() for time in times]
    return statistics.pstdev(normalised)


def at_even_pace(launches, kinds, count):
    """The first `count` runtimes of each task as they would be on a machine that keeps its speed: {name: [ms]}.

    A shared machine is slower for some seconds, then faster, for all tenants alike. The pace at a time is the mean, over
    the tasks that run then, of their kind's mean runtime by their own; a runtime is the sum of the paces over its time.
    What one tenant gets more than another at the same time stays as it is. What all lose alike is not seen here, only in
    the mean of the plain runtimes. For policies that serve all tenants all the time: under others a task's speed says
    where in the queue it was. `launches`: name -> [(begin, length)] in ms; `kinds`: name -> kind."""
    means = {kind: statistics.fmean(length for name, of in launches.items() if kinds[name] == kind for _, length in of[:count])
             for kind in set(kinds.values())}
    # Between two of these nobody begins or ends.
    edges = sorted({edge for of in launches.values() for begin, length in of for edge in (begin, begin + length)})
    sums, running = [0.0] * len(edges), [0] * len(edges)
    for name, of in launches.items():
        for begin, length in of:
            for i in range(bisect.bisect_left(edges, begin), bisect.bisect_left(edges, begin + length)):
                sums[i] += means[kinds[name]] / length
                running[i] += 1
    total = [0.0]
    for i in range(len(edges) - 1):
        total.append(total[-1] + (edges[i + 1] - edges[i]) * (sums[i] / running[i] if running[i] else 1.0))
    steps = list(zip(edges, total))
    return {name: [at(steps, begin + length) - at(steps, begin) for begin, length in of[:count]] for name, of in launches.items()}


def worst_ratio(classes):
    """The largest runtime by the smallest, of the same kind of task."""
    return max(max(times) / min(times) for times in classes.values())


def overall_mean(classes):
    return statistics.fmean(time for times in classes.values() for time in times)


def jain(values):
    """Jain's index: 1 when all are equal, 1/n when one has all."""
    squares = sum(value * value for value in values)
    return 1.0 if squares == 0 else sum(values) ** 2 / (len(values) * squares)


def at(series, when):
    """A counter at a time, between its samples by proportion. `series`: [(time, count)] in order of time."""
    times = [time for time, _ in series]
    after = bisect.bisect_left(times, when)
    if after < len(series) and times[after] == when:
        return series[after][1]
    if after == 0 or after == len(series):
        raise ValueError(f"no samples around {when}")
    (t0, v0), (t1, v1) = series[after - 1], series[after]
    return v0 + (v1 - v0) * (when - t0) / (t1 - t0)


def used_of_spans(spans, until):
    """A cumulative counter from the times when something ran: [(begin, end)], which do not overlap. At any time within a
    span the part up to then is counted."""
    series, used = [(0.0, 0.0)], 0.0
    for begin, end in sorted(spans):
        begin = max(begin, series[-1][0])
        if end <= begin:
            continue
        if begin > series[-1][0]:
            series.append((begin, used))
        used += end - begin
        series.append((end, used))
    if until > series[-1][0]:
        series.append((until, used))
    return series


def suited(sizes, mix, alone, task_ms):
    """The sizes of a mix with as many rounds that its shortest task takes task_ms, and how long each takes then. `alone`: how long each takes with the rounds that
    `sizes` has. Of tasks without rounds nothing changes."""
    if any("rounds" not in sizes[kind] for kind in mix):
        return sizes, alone
    more = task_ms / min(alone)
    rounds = {kind: max(1, round(sizes[kind]["rounds"] * more)) for kind in mix}
    return ({**sizes, **{kind: {**sizes[kind], "rounds": count} for kind, count in rounds.items()}},
            [length * rounds[kind] / sizes[kind]["rounds"] for kind, length in zip(mix, alone)])


def had_to_itself(launches):
    """When each task had the device for itself under FIFO, where somebody always waits: from when the task before it was done. `launches`: name -> [(begin, length)].
    [(name, begin, end)] in order, without the first, before which others may have run."""
    ends = sorted((begin + length, begin, name) for name, of in launches.items() for begin, length in of)
    return [(name, max(begin, before), end) for (before, _, _), (end, begin, name) in zip(ends, ends[1:])]


def paces_of(bins, begin, end):
    """The mean paces between two times. `bins`: [(end, (pace, ...))] in order, each from the end of the one before; before the first and behind the last it stays."""
    sums, width, place = [0.0] * len(bins[0][1]), end - begin, bisect.bisect_right([bin_end for bin_end, _ in bins], begin)
    while begin < end:
        bin_end, paces = bins[min(place, len(bins) - 1)]
        until = min(end, bin_end) if place < len(bins) - 1 else end
        sums = [total + pace * (until - begin) for total, pace in zip(sums, paces)]
        begin, place = until, place + 1
    return [total / width for total in sums]


def follow(samples):
    """How the logarithm of a task's length follows the paces: one number for each pace (least squares, each kind of task about its own mean). `samples`:
    [(kind, length, [pace, ...])]. Where the paces hardly vary (by less than a hundredth) there is nothing to learn, and it says nearly 0."""
    kinds = {}
    for kind, length, paces in samples:
        kinds.setdefault(kind, []).append([math.log(length), *paces])
    rows = [[value - middle for value, middle in zip(row, map(statistics.fmean, zip(*of)))] for of in kinds.values() for row in of]
    size = len(rows[0]) - 1
    matrix = [[sum(row[1 + i] * row[1 + j] for row in rows) + (len(rows) * 1e-4 if i == j else 0) for j in range(size)] + [sum(row[1 + i] * row[0] for row in rows)]
              for i in range(size)]
    for i in range(size):  # Positive definite: the diagonal serves.
        for j in range(size):
            if j != i:
                part = matrix[j][i] / matrix[i][i]
                matrix[j] = [a - part * b for a, b in zip(matrix[j], matrix[i])]
    return [matrix[i][size] / matrix[i][i] for i in range(size)]


def device_clock(bins, weights, usual):
    """A clock that runs as fast as the device: [(time, time of the clock)], for at(). Where the paces are `usual` it runs as fast as time."""
    series, begin = [(0.0, 0.0)], 0.0
    for end, paces in bins:
        if end > begin:
            slower = math.exp(sum(weight * (pace - normal) for weight, pace, normal in zip(weights, paces, usual)))
            series.append((end, series[-1][1] + (end - begin) / slower))
            begin = end
    return series


def stolen(before, after):
    """The part of the processors' time between two readings of /proc/stat that the machine's host gave to others."""
    def read(text):
        # user nice system idle iowait irq softirq steal; guests' time, behind these, is part of the user's.
        numbers = [int(number) for number in text.splitlines()[0].split()[1:9]]
        return numbers[7], sum(numbers)

    (lost, total), (lost_before, total_before) = read(after), read(before)
    return (lost - lost_before) / max(1, total - total_before)


def losses(without, with_it):
    """What is lost in each pair of neighbouring rates, as a part."""
    return [1 - b / a for a, b in zip(without, with_it) if a > 0]


def median_error(values):
    """The standard error of the median, as for a normal distribution of the quartiles' width."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(values))


def shares(counters, begin, end):
    """Each one's part of all that was used between two times. `counters`: name -> [(time, cumulative use)]."""
    used = {name: at(series, end) - at(series, begin) for name, series in counters.items()}
    total = sum(used.values())
    return {name: (use / total if total > 0 else 0.0) for name, use in used.items()}


def begun(programs, begin, end):
    """How many launches of some programs, each [(begin, length)], began between two times."""
    return sum(1 for launches in programs for when, _ in launches if begin <= when < end)


def window_shares(counters, begin, end, length):
    """shares() of each whole window from `begin`."""
    count = int((end - begin) / length + 1e-9)
    return [shares(counters, begin + i * length, begin + (i + 1) * length) for i in range(count)]


def worst_error(windows, expected):
    """The largest distance of any share in any window from what is expected, in points (hundredths)."""
    return max(100 * abs(window[name] - expected[name]) for window in windows for name in expected)


def completed_work(launches, length_ms):
    """What a program saw done, as a counter in ms: each launch counts its own length when it ends, and is spread over
    the time since the one before. `launches`: [(begin, length)] in ms."""
    series, done = [(0.0, 0.0)], 0.0
    for end in sorted(begin + length for begin, length in launches):
        done += length_ms
        if end > series[-1][0]:
            series.append((end, done))
        else:
            series[-1] = (series[-1][0], done)
    return series
