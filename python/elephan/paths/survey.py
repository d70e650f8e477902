"""Finds out what this host can do, and what of it limits a transfer (Li 2006, appendix A and sections 5.1.3 and 5.2)."""

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.base.cores import core_count
from elephan.base.errors import FailedError
from elephan.base.numbers import significant
from elephan.paths.host import Figure, Host, Limit
from elephan.paths.settings import (
    OF_BUFFER,
    Demand,
    device_settings,
    disk_settings,
    interfaces,
    kernel_settings,
    read_sysctl,
)
from elephan.studies import bench
from elephan.studies.bench import MIB, Answers
from elephan.studies.statistics import Estimate

# Calls of a disk test, bytes: a page of a program, and what copies of files use.
BLOCKS = (64 * 1024, MIB)
# The ways of a disk test, by the words in the keys of its figures.
WAYS = {
    "cached": "through the page cache",
    "direct": "around the page cache",
    "warm": "from the page cache",
    "unread": "without read-ahead",
}
# Sizes of requests, bytes of application data; the largest is a jumbo frame's.
SIZES = (64, 512, 1472, 3000, 4500, 6000, 7500, 8972)
# Times that a device of our own waits before it looks for packets again, s.
WAITS_S = (0.0, 50e-6, 100e-6, 200e-6)
# A stream of datagrams that measures what that saves: application bytes, and spacing, s.
STREAM_BYTES, SPACING_S = 1000, 50e-6
# TCP between namespaces, with the offloads of ethtool(8) that are on.
OFFLOADS: Mapping[str, Mapping[str, bool]] = {
    "all offloads": {},
    "no GRO": {"gro": False},
    "no TSO, no GRO": {"gro": False, "tso": False},
    "no TSO, GSO, GRO": {"gro": False, "tso": False, "gso": False},
    "no checksums, nothing": {"gro": False, "tso": False, "gso": False, "checksums": False},
}


# Other programs that run all the time, as a share of the processors, from which on a reader is told.
BUSY = 0.25


@dataclass(frozen=True)
class Scale:
    """How long and how often everything is measured."""

    repeats: int
    memory_s: float
    tcp_s: float
    disk_s: float
    pings: int


FULL, QUICK = Scale(5, 0.3, 1.0, 10.0, 1000), Scale(3, 0.1, 0.3, 5.0, 200)


@dataclass(frozen=True)
class Plan:
    """What will be measured: the sizes that follow from this machine and its user's wishes."""

    scale: Scale
    disk: Path | None
    disk_bytes: int
    demand: Demand | None
    cores: int

    @classmethod
    def of(cls, *, quick: bool, disk: Path | None, disk_bytes: int, demand: Demand | None) -> "Plan":
        """Raises `OSError` if there is no such file or folder."""
        if disk is not None and disk.is_file():
            disk_bytes = min(disk_bytes, disk.stat().st_size)
        elif disk is not None:
            disk_bytes = min(disk_bytes, bench.measurable_bytes(disk))
        cores = core_count()
        return cls(QUICK if quick else FULL, disk, disk_bytes // MIB * MIB, demand, cores)

    @property
    def passes(self) -> dict[str, dict[str, Any]]:
        """The passes over the disk, by their keys."""
        assert self.disk is not None
        found: dict[str, dict[str, Any]] = {}
        for write in (False, True) if self.disk.is_dir() else (False,):
            for direct in (False, True):
                for threads in dict.fromkeys((1, self.cores)):
                    for block in BLOCKS:
                        way = f"{'write' if write else 'read'}.{'direct' if direct else 'cached'}"
                        key = f"disk.{way}.{block // 1024}k.{threads}"
                        found[key] = {"write": write, "direct": direct, "block": block, "threads": threads}
                if not write and not direct:
                    # Now it is in the page cache; writes around that drop it.
                    found[f"disk.read.warm.1024k.{threads}"] = {"warm": True, "block": MIB, "threads": threads}
        found["disk.read.unread.64k.1"] = {"block": BLOCKS[0], "threads": 1, "advice": "random"}
        return found

    @property
    def network_tests(self) -> dict[str, dict[str, Any]]:
        """TCP and latency, by their keys; all but the first two are between namespaces."""
        seconds, scale = {"seconds": self.scale.tcp_s}, self.scale
        found: dict[str, dict[str, Any]] = {
            f"tcp.loopback.{streams}": {"what": "tcp", "namespaces": False, "streams": streams, **seconds}
            for streams in dict.fromkeys((1, self.cores))
        }
        between = {"what": "tcp", "namespaces": True, "streams": 1, **seconds}
        found |= {f"tcp.veth.{name}": between | {"offloads": dict(off)} for name, off in OFFLOADS.items()}
        found["tcp.threads"] = between | {"threaded": True}
        found["ping"] = {"what": "ping", "sizes": list(SIZES), "count": scale.pings}
        for wait in WAITS_S:
            waiting = {"waiting_ns": round(wait * 1e9)}
            found[f"wait.ping.{wait}"] = {"what": "ping", "sizes": [64], "count": scale.pings // 5, **waiting}
            stream = {"size": STREAM_BYTES, "spacing": SPACING_S, **seconds}
            found[f"wait.stream.{wait}"] = {"what": "paced", **stream, **waiting}
        return found

    @property
    def memory_tests(self) -> dict[str, dict[str, Any]]:
        """Memory, by keys."""
        size, seconds = bench.bytes_beyond_cache(), self.scale.memory_s
        return {
            f"memory.{operation}.{threads}": {
                "what": "memory",
                "operation": operation,
                "threads": threads,
                "bytes": size,
                "seconds": seconds,
            }
            for operation in ("read", "write", "copy")
            for threads in dict.fromkeys((1, self.cores))
        }

    @property
    def budget(self) -> str:
        """What it will cost at most: seconds, memory, bytes of the disk."""
        scale = self.scale
        tests = [*self.memory_tests.values(), *self.network_tests.values()]
        seconds = scale.repeats * sum(one.get("seconds", 0.2) for one in tests)
        texts = [f"memory {max(one['bytes'] * one['threads'] for one in self.memory_tests.values()) // MIB} MiB"]
        if self.disk is not None:
            writes = sum(one.get("write", False) for one in self.passes.values()) + self.disk.is_dir()
            reads = len(self.passes) - writes + self.disk.is_dir()
            size = self.disk_bytes // MIB
            texts.append(f"{self.disk}: at most {scale.repeats * reads * size} MiB read")
            if self.disk.is_dir():
                texts[-1] += f" and {scale.repeats * writes * size} MiB written, in a file of {size} MiB without a name"
            texts[-1] += f", {scale.repeats * scale.disk_s * len(self.passes):.0f} s"
        return f"budget: about {seconds:.0f} s of {self.cores} processors; {'; '.join(texts)}; no setting is changed"


def survey(plan: Plan, progress: Callable[[float], object] = lambda _: None) -> Host:
    """Measure everything of the plan. What needs a namespace is left out where there can be none.

    Raises `OSError` if the system refuses something that it permits to any user.
    """
    host = Host()
    if (busy := os.getloadavg()[0]) > BUSY * plan.cores:
        host.notes.append(f"{busy:.1f} programs ran here on average when it began, and had a part of what was measured")
    between, reason = bench.namespaces()
    network = plan.network_tests
    if between is None:
        host.left_out.append(f"everything between namespaces: {reason}")
        network = {key: one for key, one in network.items() if key.startswith("tcp.loopback")}
    elif why := _cannot_wait(between):
        host.left_out.append(f"a receiver that waits: {why}")
        network = {key: one for key, one in network.items() if not key.startswith("wait.")}
    steps = (len(plan.memory_tests) + len(network)) * plan.scale.repeats + (plan.disk is not None) * plan.scale.repeats
    count = iter(range(1, steps + 1))

    def done() -> None:
        progress(next(count, steps) / steps)

    answers = bench.in_turn(plan.memory_tests, plan.scale.repeats, done=done)
    host.figures += _memory(answers)
    if plan.disk is not None:
        host.figures += _disk(plan, host.left_out)
        for _ in range(plan.scale.repeats):
            done()
    loopback = {key: one for key, one in network.items() if key.startswith("tcp.loopback")}
    answers = bench.in_turn(loopback, plan.scale.repeats, done=done)
    if between is not None:
        inner = {key: one for key, one in network.items() if key not in loopback}
        answers |= bench.in_turn(inner, plan.scale.repeats, by=between, done=done)
    host.figures += _tcp(answers)
    if between is not None:
        host.figures += [*_costs(answers["tcp.threads"]), *_latency(answers), *_waits(answers)]
    host.devices = interfaces(bench.measure)
    host.settings = kernel_settings(plan.demand)
    if plan.disk is not None:
        host.settings += disk_settings(plan.disk)
    for device in host.devices:
        host.settings += device_settings(device, plan.demand)
    host.limits = _limits(host, plan.demand)
    return host


def _memory(answers: Mapping[str, Answers]) -> list[Figure]:
    found = []
    for key, each in answers.items():
        _, operation, threads = key.split(".")
        moved = bench.rates([moved for answer in each for moved in answer])
        title = f"memory, {operation}, {_threads(threads)}"
        found.append(Figure.of(key, title, "byte/s", moved, "arrays beyond the caches; a copied byte counts once"))
    return found


def _threads(count: str) -> str:
    return "1 thread" if count == "1" else f"{count} threads"


def _disk(plan: Plan, left_out: list[str]) -> list[Figure]:
    passes = plan.passes
    request = {"what": "disk", "place": str(plan.disk), "bytes": plan.disk_bytes, "seconds": plan.scale.disk_s}
    try:
        bench.measure(request | {"bytes": MIB, "passes": [{"direct": True, "block": MIB, "threads": 1}]})
    except OSError as error:
        # What open(2) says of O_DIRECT where the file system does not have it.
        if error.errno != errno.EINVAL:
            raise
        left_out.append(f"the disk around the page cache: the file system of {plan.disk} has no way around it")
        passes = {key: one for key, one in passes.items() if not one.get("direct")}
    requests = {"disk": request | {"passes": list(passes.values())}}
    answers = bench.in_turn(requests, plan.scale.repeats)["disk"]
    found = []
    for number, key in enumerate(passes):
        _, operation, way, block, threads = key.split(".")
        title = f"disk, {operation} {WAYS[way]}, calls of {block[:-1]} KiB, {_threads(threads)}"
        method = "the file's pages were dropped before" if way in ("cached", "unread") and operation == "read" else ""
        if operation == "write":
            method = "until the disk has it (fdatasync)"
        found.append(Figure.of(key, title, "byte/s", bench.rates([answer[number] for answer in answers]), method))
    return found


def _tcp(answers: Mapping[str, Answers]) -> list[Figure]:
    found, clock = [], bench.clock_ghz()
    for key, each in answers.items():
        kind, _, name = key.partition(".")
        if kind != "tcp":
            continue
        where = "loopback" if name.startswith("loopback") else "between namespaces"
        how = _streams(name.rpartition(".")[2]) if where == "loopback" else name.removeprefix("veth.")
        if name == "threads":
            how = "received by threads of the kernel"
        title = f"TCP {where}, {how}"
        found.append(
            Figure.of(f"{key}.rate", title, "bit/s", [8 * one for one in bench.rates(each)], "application bytes")
        )
        both = [sum(_seconds(one)) / one["bytes"] for one in each]
        method = "processor time of both ends' threads, and of the kernel's where they process what arrives"
        found.append(Figure.of(f"{key}.cpu", f"{title}: processor time of both ends", "s/byte", both, method))
        if clock is not None and name != "threads":
            each_ghz = [cost / 8 * 1e9 * clock for cost in both]
            rule = "cores x clock for both ends; 1 for one end of 2003 (Li 2006, 5.1.3)"
            found.append(Figure.of(f"{key}.ghz", f"{title}: clock for 1 Gbit/s", "GHz s/Gbit", each_ghz, rule))
    return found


def _streams(count: str) -> str:
    return "1 stream" if count == "1" else f"{count} streams"


def _seconds(one: Mapping[str, Any]) -> list[float]:
    names = ("sender_seconds", "receiver_seconds", "sender_kernel_seconds", "receiver_kernel_seconds")
    return [one[name] or 0.0 for name in names]


def _costs(answers: Answers) -> list[Figure]:
    """What sending and receiving cost each end, where threads of the kernel process what arrives."""
    sending = [one["sender_seconds"] + one["sender_kernel_seconds"] for one in answers]
    # An ACK lets TCP send, within the same thread: only a rule divides the time (Li 2006, 5.1.3, as docs/hosts.md has it).
    packets = [time / (one["segments"] + one["acks"]) for time, one in zip(sending, answers, strict=True)]
    receiving = [(one["receiver_seconds"] + one["receiver_kernel_seconds"]) / one["bytes"] for one in answers]
    sent = "the sending thread, and the kernel's for ACKs; the device cuts no segments (no TSO)"
    return [
        Figure.of(
            "host.packet", "sending a segment, or receiving an ACK", "s", packets, f"{sent}; equal costs of both"
        ),
        Figure.of(
            "host.sending",
            "sending, data and ACKs",
            "s/byte",
            [time / one["bytes"] for time, one in zip(sending, answers, strict=True)],
            sent,
        ),
        Figure.of(
            "host.receiving", "receiving", "s/byte", receiving, "the receiving thread, and the kernel's, with GRO"
        ),
    ]


def _latency(answers: Mapping[str, Answers]) -> list[Figure]:
    line = bench.latency_line(answers["ping"])
    method = f"requests of {SIZES[0]} to {SIZES[-1]} bytes, responses of 8; the shortest of each size (Li 2006, A.2.2)"
    return [
        Figure("latency.slope", "veth, request and response: slope by size", "s/byte", line.slope, method),
        Figure("latency.intercept", "veth, request and response: at size 0", "s", line.intercept, method),
    ]


def _cannot_wait(between: Callable[[bench.Request], Any]) -> str:
    """Why no device of ours can be told to wait, such as in a user namespace; empty if it can."""
    try:
        between({"what": "ping", "sizes": [64], "count": 1, "waiting_ns": 0})
    except (OSError, FailedError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


def _waits(answers: Mapping[str, Answers]) -> list[Figure]:
    found: list[Figure] = []
    if f"wait.ping.{WAITS_S[0]}" not in answers:
        return found
    for wait in WAITS_S:
        name = f"{significant(wait * 1e6)} us" if wait else "not at all"
        times = [answer[0]["median"] for answer in answers[f"wait.ping.{wait}"]]
        method = "gro_flush_timeout of a veth device of our own: what a network card's coalescing does (Li 2006, A.2.4)"
        found.append(Figure.of(f"wait.latency.{wait}", f"latency, receiver waits {name}", "s", times, method))
        costs = [
            (one["receiver_seconds"] + one["kernel_seconds"]) / one["arrived"]
            for one in answers[f"wait.stream.{wait}"]
            if one["arrived"]
        ]
        title = f"receiving a datagram, receiver waits {name}"
        found.append(Figure.of(f"wait.cpu.{wait}", title, "s", costs, f"{method}; one each {SPACING_S * 1e6:g} us"))
    return found


def _limits(host: Host, demand: Demand | None) -> list[Limit]:
    """All that limits one stream that sends, each as the rate that it permits."""
    found = []
    costs = [[8 / sample for sample in one.samples] for one in host.figures if one.key == "host.sending"]
    # What this host was seen to carry, with both ends on it, it can send; a core's time for sending alone may permit more.
    costs += [
        list(one.samples) for one in host.figures if one.key in ("tcp.veth.all offloads.rate", "tcp.loopback.1.rate")
    ]
    if costs:
        best = max((Estimate.of(samples) for samples in costs), key=lambda one: one.mean or 0.0)
        found.append(Limit("the processor (one stream, one core for sending)", best))
    copy = host.figure("memory.copy.1")
    if copy is not None:
        found.append(Limit("the memory (one copy of every byte)", copy.estimate.scaled(8)))
    reads = [one for one in host.figures if one.key.startswith(("disk.read.direct", "disk.read.cached"))]
    if reads:
        best_read = max(reads, key=lambda one: one.estimate.mean or 0.0)
        found.append(Limit("the disk (reading what is not in memory)", best_read.estimate.scaled(8)))
    found += [
        Limit(f"the device {one.name}", Estimate.of([one.speed_bit_s]))
        for one in host.devices
        if one.speed_bit_s is not None
    ]
    largest = (read_sysctl("net.ipv4.tcp_wmem") or "").split()
    if demand is not None and len(largest) == 3:
        window = int(largest[2]) / OF_BUFFER
        found.append(Limit("the send buffer (net.ipv4.tcp_wmem)", Estimate.of([8 * window / demand.rtt_s])))
    if demand is not None:
        found.append(Limit("the path", Estimate.of([demand.rate_bit_s])))
    return found
