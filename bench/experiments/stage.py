# SPDX-License-Identifier: Apache-2.0
"""Runs tenants' programs at the same time against a hawserd of their own, and collects what they and it say."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import measures

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import with_server  # noqa: E402

DEVICES = {
    # Name: the program, whether it is CUDA, what the server's configuration says of the device, environment of workers.
    # One thread computes, so that the other core is left to the guests and the server, as it is beside a GPU.
    "pocl": ("hawser-experiment-opencl", False, {"POCL_MAX_PTHREAD_COUNT": "1"}),
    "soft": ("hawser-experiment-cuda", True, {"HAWSER_SOFT_THREADS": "1"}),
}
# What makes each device compute on DEVICE_PROCESSOR; PoCL takes the first for its first thread.
DEVICE_PROCESSOR = 0
APART = {"pocl": {"POCL_AFFINITY": "1"}, "soft": {"HAWSER_SOFT_PROCESSORS": str(DEVICE_PROCESSOR)}}


def other_processors():
    """Those that guests and server are left with when the device has one of its own; none where it cannot have one."""
    mine = os.sched_getaffinity(0)
    return mine - {DEVICE_PROCESSOR} if DEVICE_PROCESSOR in mine else set()


@contextlib.contextmanager
def on_processors(processors):
    """What is started within, by this thread, runs on these; on those of this thread if there are none."""
    before = os.sched_getaffinity(0)
    if processors:
        os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclasses.dataclass
class Tenant:
    name: str
    work: dict  # Options of the program without their dashes: {"work": "matmul", "size": 448, "seconds": 5}
    kind: str = ""  # Tenants of a kind do the same.
    weight: int = 100
    priority: int = 0
    min_share: int = 0
    slo_ms: int = 0

    def arguments(self):
        return [text for name, value in self.work.items() for text in (f"--{name.replace('_', '-')}", str(value))]


@dataclasses.dataclass
class Result:
    """Of one run. Times in ms since the common start."""

    tenants: list
    programs: dict  # Name of the tenant: what its program printed.
    counters: dict  # Name of the tenant: [(time, device time in ms)] as the server counts it; None where it does not.
    stolen: float = 0.0  # The part of the processors' time that the machine's host gave to others meanwhile.
    paces: list = dataclasses.field(default_factory=list)  # [(end, (pace, pace))] of the device's processor, see Pacemaker; none where nobody looked.

    def launches(self, name):
        return self.programs[name]["launches_ms"]

    def lengths(self, name):
        return [length for _, length in self.launches(name)]

    def measured(self):
        return all(series is not None for series in self.counters.values())


class Failure(Exception):
    """A run that did not come to its end, in words."""


class Processors:
    """What a virtual machine's processors lose to its host since this was made."""

    def __init__(self):
        self.before = self._read()

    @staticmethod
    def _read():
        return pathlib.Path("/proc/stat").read_text()

    def stolen(self):
        return measures.stolen(self.before, self._read())


class Guest:
    """A tenant's program."""

    def __init__(self, command, env, tenant):
        self.tenant = tenant
        self.said = {"ready": threading.Event(), "done": threading.Event()}
        self.errors = []
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.output = ""
        self.readers = [threading.Thread(target=self._read_errors, daemon=True),
                        threading.Thread(target=self._read_output, daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read_errors(self):
        for line in self.process.stderr:
            if line.strip() in self.said:
                self.said[line.strip()].set()
            else:
                self.errors.append(line)
        for event in self.said.values():
            event.set()  # It ended, so nobody need wait.

    def _read_output(self):
        self.output = self.process.stdout.read()

    def wait_until(self, word, deadline):
        if not self.said[word].wait(max(0, deadline - time.monotonic())):
            raise Failure(f"{self.tenant.name}'s program was not {word} in time")

    def finish(self, deadline):
        try:
            status = self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.tenant.name}'s program did not end in time") from None
        for reader in self.readers:
            reader.join(5)
        self._close()
        if status != 0:
            raise Failure(f"{self.tenant.name}'s program ended with {status}: {''.join(self.errors)[-2000:]}")
        return json.loads(self.output)

    def _close(self):
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            for reader in self.readers:
                reader.join(5)
            self._close()


class Sampler:
    """What `hawser top` says every 100 ms."""

    def __init__(self, hawser, uri):
        env = dict(os.environ)
        env["HAWSER_SERVER"] = uri
        env.pop("HAWSER_ADMIN", None)
        self.process = subprocess.Popen([hawser, "top", "--json", "--interval", "0.1"], env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines, self.first = [], threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            self.first.set()
        self.first.set()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()

    def counters(self, tenants, start_ns):
        """Name: [(ms since the start, device time in ms)], or None where the server does not measure it."""
        counters = {tenant.name: [] for tenant in tenants}
        for line in self.lines:
            try:
                snapshot = json.loads(line)
            except ValueError:
                continue  # Cut off when it was ended.
            when = (snapshot["monotonic_ns"] - start_ns) / 1e6
            for tenant in snapshot["tenants"]:
                if tenant["name"] in counters and tenant.get("gpu_ns") is not None:
                    counters[tenant["name"]].append((when, tenant["gpu_ns"] / 1e6))
        return {name: series if len(series) > 1 else None for name, series in counters.items()}


class Tracer:
    """`hawser trace`: when each tenant's kernels ran."""

    def __init__(self, hawser, uri, file):
        env = dict(os.environ)
        env["HAWSER_SERVER"] = uri
        env.pop("HAWSER_ADMIN", None)
        self.file = file
        self.process = subprocess.Popen([hawser, "trace", "--out", str(file)], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def spans(self, tenants, start_ns):
        """Name: [(begin, end)] of kernels on the device, in ms since the start."""
        trace = json.loads(self.file.read_text())
        lost = trace["otherData"]["lost_events"]
        if lost > len(trace["traceEvents"]) / 200:
            raise Failure(f"{lost} events of the trace were lost, of {lost + len(trace['traceEvents'])}")
        after = (trace["otherData"]["begin_monotonic_ns"] - start_ns) / 1e6
        owners, spans = {}, {tenant.name: [] for tenant in tenants}
        for event in trace["traceEvents"]:
            if event["ph"] == "M" and event["name"] == "process_name":
                owners[event["pid"]] = event["args"]["name"].split(" / ")[0]
            elif event["ph"] == "X" and event["cat"] == "kernel" and owners.get(event["pid"]) in spans:
                begin = after + event["ts"] / 1e3
                spans[owners[event["pid"]]].append((begin, begin + event["dur"] / 1e3))
        return spans


class Pacemaker:
    """hawser-experiment-pace on the device's processor: how long the same small works take there."""

    def __init__(self, program):
        with on_processors({DEVICE_PROCESSOR}):
            self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self):
        """What it printed."""
        return self.process.communicate()[0]

    @staticmethod
    def paces(output, start_ns):
        return [(end - start_ns / 1e6, (vector, integer)) for end, _, vector, integer in json.loads(output)["bins"] if end > start_ns / 1e6]


class Stage:
    def __init__(self, build, device, transport="shm", log=lambda text: None):
        self.build, self.device, self.transport, self.log = pathlib.Path(build).resolve(), device, transport, log
        program, self.cuda, self.worker_env = DEVICES[device]
        self.program = self.build / "bench" / "experiments" / program
        self.hawser = self.build / "tools" / "hawser"
        guest = [self.build / "guest" / "libcuda.so.1", self.build / "soft" / "libcuda.so.1"]
        needed = [self.program, self.hawser, self.build / "server" / "hawserd"] + (guest if self.cuda else [self.build / "icd"])
        self.missing = [str(path) for path in needed if not path.exists()]
        # Compiled kernels stay from run to run.
        self.cache = tempfile.mkdtemp(prefix="hawser-experiment-")

    def gate_ns(self):
        """What the gate costs a launch of a lone tenant, by part, in ns: hawser-bench-gate, three times, the medians."""
        program = self.build / "bench" / "hawser-bench-gate"
        if not program.exists():
            raise Failure(f"{program} is not built")
        runs = [json.loads(subprocess.run([program, "--json"], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
        return {key: statistics.median(run[key] for run in runs) for key in runs[0]}

    def close(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def has_pace(self):
        """Whether runs can say how fast the device is meanwhile: it has a processor of its own."""
        return bool(other_processors()) and self._pace().exists()

    def _pace(self):
        return self.build / "bench" / "experiments" / "hawser-experiment-pace"

    def _configuration(self, policy, tenants, settings, apart=False):
        env = {**self.worker_env, **(APART[self.device] if apart else {}), "POCL_CACHE_DIR": f"{self.cache}/pocl", "HAWSER_OPENCL_SPLIT_HISTORY": f"{self.cache}/{{tenant}}.speeds",
               "HAWSER_CUDA_SPLIT_HISTORY": f"{self.cache}/{{tenant}}.cuda-speeds"}
        lines = ["[opencl]", "env = { " + ", ".join(f'{k} = "{v}"' for k, v in env.items()) + " }",
                 # The policies that are compared are not all fair, and are to stay; and a machine that is busy is no runaway.
                 "[scheduler]", f'policy = "{policy}"', "starvation_ms = 0", "max_unit_ms = 60000",
                 "[scheduler.settings]"] + [f"{key} = {value}" for key, value in settings.items()]
        for number, tenant in enumerate(tenants):
            lines += [f"[tenants.{tenant.name}]", f'token = "{self._token(number)}"', f"weight = {tenant.weight}",
                      f"priority = {tenant.priority}", f"min_share = {tenant.min_share}", f"slo_ms = {tenant.slo_ms}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _token(number):
        return f"experiment-tenant-{number:04d}"

    def _operate(self, uri, words):
        env = {**os.environ, "HAWSER_SERVER": uri}
        env.pop("HAWSER_ADMIN", None)
        done = subprocess.run([str(self.hawser), *words], env=env, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise Failure(f"hawser {' '.join(words)}: {done.stderr}")

    def run(self, policy, tenants, limit_s=600, settings=None, later=(), sample=True, trace=False, rest_s=0, pace=False):
        """All tenants begin together, so long after the last has prepared; returns when the last has ended. `later`: [(seconds, [word])], what an operator
        types while they run: hawser word... `sample`: ask the server ten times a second what each has used. `trace`:
        take that from a trace of their kernels, which says when each ran and not only how much. `pace`: see Pacemaker; needs has_pace(). The device has a processor
        of its own, as a GPU is one beside them, where there are two."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="hawser-experiment-run-"))
        try:
            others = other_processors()
            with on_processors(others):
                return self._run(policy, tenants, limit_s, settings or {}, later, sample, trace, rest_s, pace, folder, bool(others))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run_in_turn(self, policies, work, limit_s=600):
        """Two servers with a policy each and one tenant of each, which take turns in slots of time: the launches a
        second of each slot, {policy: [rate]}. `work` holds slots and slot_ms.

        Where there are processors for it, both servers are on one and both programs on the others. Left to the kernel,
        threads that wake each other stay for seconds together or apart as they happened to begin, and one of two equal
        servers did a tenth more than the other."""
        with contextlib.ExitStack() as stack:
            others = other_processors()
            server_place = {DEVICE_PROCESSOR} if others else None
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hawser-experiment-run-")))
            deadline, start = time.monotonic() + limit_s, folder / "start"
            quiet = {**os.environ, "MALLOC_PERTURB_": "0"}
            guests = {}
            for side, policy in enumerate(policies):
                tenant = Tenant(f"alone-{policy}", {**work, "side": side})
                config = folder / f"{policy}.toml"
                config.write_text(self._configuration(policy, [tenant], {}))
                with on_processors(server_place):
                    server = stack.enter_context(
                        with_server.Server(self.build, self.transport, ["--config", str(config)], quiet, self.cuda))
                env = {**server.guest_env(), "HAWSER_TOKEN": self._token(0)}
                with on_processors(others):
                    guests[policy] = Guest([str(self.program), *tenant.arguments(), "--start", str(start)], env, tenant)
                stack.callback(guests[policy].stop)
                guests[policy].wait_until("ready", deadline)
            start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 500_000_000
            start.with_suffix(".part").write_text(f"{start_ns}\n")
            start.with_suffix(".part").rename(start)
            programs = {policy: guest.finish(deadline) for policy, guest in guests.items()}
        wrong = [policy for policy, program in programs.items() if not program["right"]]
        if wrong:
            raise Failure(f"wrong results under {wrong}")
        return {policy: program["slots_per_s"] for policy, program in programs.items()}

    def _run(self, policy, tenants, limit_s, settings, later, sample, trace, rest_s, pace, folder, apart):
        config = folder / "hawserd.toml"
        config.write_text(self._configuration(policy, tenants, settings, apart))
        deadline = time.monotonic() + limit_s
        start, until = folder / "start", folder / "until"
        guests, sampler, tracer, pacemaker = [], None, None, None
        try:
            # What tests do to freed memory costs time.
            quiet = {**os.environ, "MALLOC_PERTURB_": "0"}
            with with_server.Server(self.build, self.transport, ["--config", str(config)], quiet, self.cuda) as server:
                try:
                    for number, tenant in enumerate(tenants):
                        env = server.guest_env()
                        env["HAWSER_TOKEN"] = self._token(number)
                        command = [str(self.program), *tenant.arguments(), "--start", str(start)]
                        if "repeat" in tenant.work:
                            command += ["--until", str(until)]
                        guests.append(Guest(command, env, tenant))
                        # One after the other, so that each prepares alone and nobody owes anything at the start.
                        guests[-1].wait_until("ready", deadline)
                        time.sleep(0.12)
                    time.sleep(rest_s)
                    if trace:
                        tracer = Tracer(str(self.hawser), server.uri, folder / "trace.json")
                    elif sample:
                        sampler = Sampler(str(self.hawser), server.uri)
                        sampler.first.wait(10)
                    if pace:
                        pacemaker = Pacemaker(self._pace())
                    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 300_000_000
                    start.with_suffix(".part").write_text(f"{start_ns}\n")
                    start.with_suffix(".part").rename(start)
                    processors = Processors()
                    for seconds, words in later:
                        time.sleep(max(0, start_ns / 1e9 + seconds - time.monotonic()))
                        self._operate(server.uri, words)
                    # Who has done its repeats goes on until all have, so that each has the same company.
                    for guest in guests:
                        if "repeat" in guest.tenant.work:
                            guest.wait_until("done", deadline)
                    until.write_text("")
                    programs = {guest.tenant.name: guest.finish(deadline) for guest in guests}
                    stolen = processors.stolen()
                    paces = Pacemaker.paces(pacemaker.stop(), start_ns) if pacemaker is not None else []
                    time.sleep(0.15)  # One more sample.
                    if tracer is not None:
                        tracer.stop()
                        until_ms = max(b + l for program in programs.values() for b, l in program["launches_ms"])
                        counters = {name: measures.used_of_spans(spans, until_ms) if spans else None
                                    for name, spans in tracer.spans(tenants, start_ns).items()}
                        return Result(tenants, programs, counters, stolen, paces)
                    if sampler is None:
                        return Result(tenants, programs, {tenant.name: None for tenant in tenants}, stolen, paces)
                    sampler.stop()
                    return Result(tenants, programs, sampler.counters(tenants, start_ns), stolen, paces)
                except Failure as failure:
                    raise Failure(f"{failure}\n--- hawserd's log\n{''.join(server.log[-40:])}") from None
                finally:
                    for guest in guests:
                        guest.stop()
                    if sampler is not None:
                        sampler.stop()
                    if tracer is not None:
                        tracer.stop()
                    if pacemaker is not None and pacemaker.process.returncode is None:
                        pacemaker.stop()
        except RuntimeError as error:
            raise Failure(str(error)) from None
