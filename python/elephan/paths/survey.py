"""Finds out what this host can send, and what of it limits that (Li 2006, sections 5.1.3 and 5.2).

The measurements themselves are in `crates/host`. Here they are repeated in turn, so that a disturbance meets all of them.
Without root, those between namespaces take place in a user namespace, where the system permits that.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from elephan import _core
from elephan.base.cores import core_count
from elephan.base.errors import FailedError
from elephan.paths.host import Figure, Host, Limit
from elephan.paths.settings import (
    OF_BUFFER,
    Demand,
    clock_ghz,
    device_settings,
    interfaces,
    kernel_settings,
    read_sysctl,
)
from elephan.studies.statistics import Estimate

Request = Mapping[str, Any]
# What an answer has for one repeat: an object, or a list of them, one for each size.
Answers = list[Any]

# Sizes of requests, bytes of application data; the largest is a jumbo frame's.
SIZES = (64, 512, 1472, 3000, 4500, 6000, 7500, 8972)
# TCP between namespaces, with the offloads of ethtool(8) that are off.
OFFLOADS: Mapping[str, list[str]] = {
    "all offloads": [],
    "no GRO": ["gro"],
    "no TSO, no GRO": ["tso", "gro"],
    "no TSO, GSO, GRO": ["tso", "gso", "gro"],
    "no checksums, nothing": ["rx", "tx", "tso", "gso", "gro"],
}
# Other programs that run all the time, as a share of the processors, from which on a reader is told.
BUSY = 0.25
# A program that measures in a user namespace: the request comes in, the answer goes out.
_CONFINED = "import sys; from elephan import _core; print(_core.measure_host(sys.stdin.read()))"


def measure(request: Request) -> Any:
    """One measurement in this process. Raises `OSError` if the system refuses it, `FailedError` elsewhere than on Linux."""
    if not hasattr(_core, "measure_host"):
        raise FailedError(f"host: expected Linux, found {sys.platform}")
    return json.loads(_core.measure_host(json.dumps(request)))


def _confined(request: Request) -> Any:
    unshare = shutil.which("unshare")
    if unshare is None:
        raise FailedError("unshare: expected it to be installed (util-linux), found none")
    command = [unshare, "--user", "--map-root-user", "--", sys.executable, "-c", _CONFINED]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise FailedError(f"a user namespace: {lines[-1]}")
    return json.loads(done.stdout)


@cache
def namespaces() -> tuple[Callable[[Request], Any] | None, str]:
    """How to measure between namespaces; or none, and the reason."""
    probe = {"what": "ping", "sizes": [8], "count": 1}
    try:
        measure(probe)
    except PermissionError as error:
        direct = error.strerror or str(error)
    except (OSError, FailedError) as error:
        return None, str(getattr(error, "strerror", None) or error)
    else:
        return measure, ""
    try:
        _confined(probe)
    except FailedError as error:
        return None, f"{direct}; {error}"
    return _confined, ""


# Repeats, seconds of each stream, and requests of each size.
FULL, QUICK = (5, 1.0, 1000), (3, 0.3, 200)


@dataclass(frozen=True)
class Plan:
    """What will be measured: how often and for how long, what the host is to fill, and the processors of this machine."""

    repeats: int
    tcp_s: float
    pings: int
    demand: Demand | None
    cores: int

    @classmethod
    def of(cls, *, quick: bool, demand: Demand | None) -> "Plan":
        """For this machine."""
        return cls(*(QUICK if quick else FULL), demand, core_count())

    @property
    def loopback(self) -> dict[str, Request]:
        """TCP over the loopback device, by keys."""
        tcp = {"what": "tcp", "namespaces": False, "seconds": self.tcp_s}
        return {f"tcp.loopback.{streams}": tcp | {"streams": streams} for streams in dict.fromkeys((1, self.cores))}

    @property
    def between(self) -> dict[str, Request]:
        """TCP and latency between namespaces, by keys."""
        tcp = {"what": "tcp", "namespaces": True, "streams": 1, "seconds": self.tcp_s}
        return {
            **{f"tcp.veth.{name}": tcp | {"off": off} for name, off in OFFLOADS.items()},
            "tcp.threads": tcp | {"threaded": True},
            "ping": {"what": "ping", "sizes": list(SIZES), "count": self.pings},
        }

    @property
    def budget(self) -> str:
        """What it will cost at most."""
        tests = [*self.loopback.values(), *self.between.values()]
        seconds = self.repeats * sum(one.get("seconds", 0.2) for one in tests)
        return f"budget: about {seconds:.0f} s of {self.cores} processors; no setting is changed"


def survey(plan: Plan, progress: Callable[[float], object] = lambda _: None) -> Host:
    """Measure everything of the plan. What needs a namespace is left out where there can be none.

    Raises `OSError` if the system refuses something that it permits to any user.
    """
    host = Host()
    if (busy := os.getloadavg()[0]) > BUSY * plan.cores:
        host.notes.append(f"{busy:.1f} programs ran here on average when it began, and had a part of what was measured")
    by, reason = namespaces()
    tests = dict(plan.loopback)
    if by is None:
        host.left_out.append(f"everything between namespaces: {reason}")
    else:
        tests |= plan.between
    answers: dict[str, Answers] = {key: [] for key in tests}
    # All of them once, then all again.
    for repeat in range(plan.repeats):
        for number, (key, request) in enumerate(tests.items(), 1):
            carry_out = measure if by is None or key in plan.loopback else by
            answers[key].append(carry_out(request))
            progress((repeat + number / len(tests)) / plan.repeats)
    host.figures += _tcp(answers)
    if by is not None:
        host.figures += [*_costs(answers["tcp.threads"]), *_latency(answers["ping"])]
    host.devices = interfaces(measure)
    host.settings = kernel_settings(plan.demand)
    for device in host.devices:
        host.settings += device_settings(device, plan.demand)
    host.limits = _limits(host, plan.demand)
    return host


def _tcp(answers: Mapping[str, Answers]) -> list[Figure]:
    found, clock = [], clock_ghz()
    for key, each in answers.items():
        kind, _, name = key.partition(".")
        if kind != "tcp":
            continue
        where = "loopback" if name.startswith("loopback") else "between namespaces"
        count = name.rpartition(".")[2]
        how = f"{count} stream{'s' * (count != '1')}" if where == "loopback" else name.removeprefix("veth.")
        if name == "threads":
            how = "received by threads of the kernel"
        title = f"TCP {where}, {how}"
        rates = [8 * one["bytes"] / one["seconds"] for one in each]
        found.append(Figure(f"{key}.rate", title, "bit/s", rates, "application bytes"))
        both = [sum(_seconds(one)) / one["bytes"] for one in each]
        method = "processor time of both ends' threads, and of the kernel's where they process what arrives"
        found.append(Figure(f"{key}.cpu", f"{title}: processor time of both ends", "s/byte", both, method))
        if clock is not None and name != "threads":
            each_ghz = [cost / 8 * 1e9 * clock for cost in both]
            rule = "cores x clock for both ends; 1 for one end of 2003 (Li 2006, 5.1.3)"
            found.append(Figure(f"{key}.ghz", f"{title}: clock for 1 Gbit/s", "GHz s/Gbit", each_ghz, rule))
    return found


def _seconds(one: Mapping[str, Any]) -> list[float]:
    names = ("sender_seconds", "receiver_seconds", "sender_kernel_seconds", "receiver_kernel_seconds")
    return [one[name] or 0.0 for name in names]


def _costs(answers: Answers) -> list[Figure]:
    """What sending and receiving cost each end, where threads of the kernel process what arrives."""
    sending = [one["sender_seconds"] + one["sender_kernel_seconds"] for one in answers]
    # An ACK lets TCP send, within the same thread: only a rule divides the time (Li 2006, 5.1.3, as docs/hosts.md has it).
    packets = [time / (one["segments"] + one["acks"]) for time, one in zip(sending, answers, strict=True)]
    sent_bytes = [time / one["bytes"] for time, one in zip(sending, answers, strict=True)]
    received = [(one["receiver_seconds"] + one["receiver_kernel_seconds"]) / one["bytes"] for one in answers]
    sent = "the sending thread, and the kernel's for ACKs; the device cuts no segments (no TSO)"
    how = f"{sent}; equal costs of both"
    return [
        Figure("host.packet", "sending a segment, or receiving an ACK", "s", packets, how),
        Figure("host.sending", "sending, data and ACKs", "s/byte", sent_bytes, sent),
        Figure("host.receiving", "receiving", "s/byte", received, "the receiving thread, and the kernel's, with GRO"),
    ]


def _latency(answers: Answers) -> list[Figure]:
    """The line of least squares through the times of requests by their size, in each repeat."""
    times = np.array([[one["shortest"] for one in answer] for answer in answers])
    slopes, intercepts = np.polyfit(SIZES, times.T, 1).tolist()
    method = f"requests of {SIZES[0]} to {SIZES[-1]} bytes, responses of 8; the shortest of each size (Li 2006, A.2.2)"
    return [
        Figure("latency.slope", "veth, request and response: slope by size", "s/byte", slopes, method),
        Figure("latency.intercept", "veth, request and response: at size 0", "s", intercepts, method),
    ]


def _limits(host: Host, demand: Demand | None) -> list[Limit]:
    """All that limits one stream that sends, each as the rate that it permits."""
    found = []
    costs = [[8 / sample for sample in one.samples] for one in host.figures if one.key == "host.sending"]
    # What this host was seen to carry, with both ends on it, it can send; a core's time for sending alone may permit more.
    costs += [
        list(one.samples) for one in host.figures if one.key in ("tcp.veth.all offloads.rate", "tcp.loopback.1.rate")
    ]
    best = max((Estimate.of(samples) for samples in costs), key=lambda one: one.mean or 0.0)
    found.append(Limit("the processor (one stream, one core for sending)", best))
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
