"""How to send so much data over a measured path: algorithm, streams, pacing and socket buffers, by simulations of the path.

Each way runs on the path's middle values. The fastest run again on draws from the intervals, and beside a flow of others, which
tells what that loses. A transfer that a simulation would take too long for is extrapolated: from the goodput of the second half
of the run, which is taken for its steady state.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.special import stdtrit

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario, flow, load
from elephan.base.kinds import PATH
from elephan.engines.run import run_many
from elephan.paths import estimates, predict
from elephan.paths.estimates import SENDER, Estimates, Host, Value
from elephan.paths.predict import Plan, Prediction
from elephan.paths.scenario import packet_of

# The algorithms of a stock kernel that a transfer can use, as Linux computes them, and ours, which --load loads.
LINUX: dict[str, tuple[str | Mapping[str, Any], Mapping[str, Any]]] = {
    "reno": ("reno", {}),
    "cubic": ({"name": "cubic", "form": "linux"}, {"slow_start": "hystart"}),
    "bbr": ("bbr", {}),
}
USUAL_CC = ("reno", "cubic", "bbr", "htcp", "scalable")
USUAL_STREAMS = (1, 2, 4, 8)
# What a run has at least and at most: a time, round trips, packets.
LEAST_S, LEAST_RTTS, MOST_S, MOST_PACKETS = 5.0, 100.0, 60.0, 1.5e6
# Ways that are simulated with the uncertainty; ways of which the times differ by less than this are equally fast.
FINAL, EQUAL = 6, 0.05
# Linux counts its own structures against a socket's buffer: about half is data (tcp_adv_win_scale = 1).
BUFFER_FACTOR = 2.0


@dataclass(frozen=True)
class Way:
    """A way to send."""

    cc: str
    streams: int
    paced: bool = False

    @property
    def plan(self) -> Plan:
        """What is simulated: the stack of a current Linux."""
        cc, keys = LINUX.get(self.cc, (self.cc, {}))
        tcp = {"profile": "linux-6", **({"pacing": True} if self.paced else {})}
        return Plan(cc, self.streams, tcp, keys)

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.cc}, {self.streams} stream{'s' * (self.streams > 1)}{', paced' * self.paced}"


@dataclass(frozen=True)
class Judged:
    """A way with its time to finish, its steady goodput, the socket buffer of a stream, and what a flow of others loses."""

    way: Way
    finish_s: Value
    goodput_bit_s: float
    buffer_bytes: float
    retransmitted: float
    others_lose: float | None = None


@dataclass(frozen=True)
class Advice:
    """The ways, the best first, and the prediction of the best."""

    ways: Sequence[Judged]
    prediction: Prediction
    path: Estimates
    duration_s: float
    is_extrapolated: bool
    notes: list[str] = field(default_factory=list)

    def command(self, host: str = "HOST") -> str:
        """The command that sends in the best way."""
        way = self.ways[0].way
        load_ = "" if way.cc in LINUX else " --load"
        pace = f' --pace "{(self.path.rate_bit_s.best or 0) / 1e6:.4g} Mbit/s"' if way.paced else ""
        return f"elephan path transfer send FILE {host} --cc {way.cc}{load_} --streams {way.streams}{pace}"


def read_path(file: Path) -> tuple[Estimates, Scenario]:
    """The path of a scenario file, with the intervals of `path.json` beside it where that has the same values.

    The costs of the sender's host are those of the file's `[host]`, which `elephan path host` writes. Raises `ScenarioError` if
    the file has no `[path]`.
    """
    made = load(file)
    path = made.document.get("path")
    if path is None:
        raise _core.ScenarioError(f"{file}: expected a scenario with [path], found none")
    if (file.parent / PATH.document).is_file():
        found = estimates.read(file.parent)
    else:
        unknown = Value(unit="", absent="no path.json")
        notes = ["there is no path.json beside it: its values are taken for exact"]
        found = Estimates(made_by="hand", source=file.name, rate_bit_s=unknown, base_rtt_s=unknown, notes=notes)
    rate, rtt = _core.bits_per_second(path["rate"]), _core.seconds(path["rtt"])
    packet, _ = packet_of(made.document)
    loss = path.get("loss") or {}
    chance = loss.get("probability", 0.0) if loss.get("name") == "random" else None
    product = rate * rtt / 8
    told = {
        **_rates(path, rate),
        "base_rtt_s": (rtt, "s"),
        "buffer_bytes": (_buffer(str(path["buffer"]), product, packet), "B"),
        **({"loss": (chance, "1")} if chance is not None else {}),
        "mtu_bytes": (packet, "B"),
    }
    if "links_bit_s" not in told:
        found = msgspec.structs.replace(found, burst_bytes=None, links_bit_s=None)
    buffer = found.buffer_bytes
    if (
        buffer is not None
        and buffer.value is None
        and abs(told["buffer_bytes"][0] - max(buffer.low or 0, product)) < packet
    ):
        # What is written for a buffer that was never filled.
        del told["buffer_bytes"]
    changed = [key for key, (value, _) in told.items() if not _is_same(getattr(found, key), value)]
    edited = [key for key in changed if getattr(found, key) is not None and found.made_by != "hand"]
    if edited:
        found = msgspec.structs.replace(
            found,
            notes=[
                *found.notes,
                f"{file.name} has other values than path.json, which count as exact: {', '.join(edited)}",
            ],
        )
    exact = {key: Value(unit=told[key][1], value=told[key][0], method=f"from {file.name}") for key in changed}
    return with_costs(msgspec.structs.replace(found, **exact), made.document.get("host", {})), made


def _rates(path: Mapping[str, Any], links_bit_s: float) -> dict[str, tuple[float, str]]:
    """The rate of the path, and its policer and links if it has one policer that drops packets of all classes."""
    police = path.get("police", [])
    if len(police) != 1 or "dscp" in police[0] or police[0].get("exceed", "drop") != "drop":
        return {"rate_bit_s": (links_bit_s, "bit/s")}
    rate, burst = _core.bits_per_second(police[0]["rate"]), _buffer(police[0]["burst"], 0.0, 0.0)
    return {"rate_bit_s": (rate, "bit/s"), "burst_bytes": (burst, "B"), "links_bit_s": (links_bit_s, "bit/s")}


def with_costs(found: Estimates, costs: Mapping[str, Any]) -> Estimates:
    """The estimates with these costs of the sender's host (keys of `[host]`), and no others."""
    sender = next((host for host in found.hosts if host.role == SENDER), Host(role=SENDER))
    hosts = [host for host in found.hosts if host is not sender]
    known = msgspec.structs.replace(sender, costs=dict(costs))
    return msgspec.structs.replace(found, hosts=hosts if known == Host(role=SENDER) else [known, *hosts])


def _is_same(value: Value | None, told: float) -> bool:
    """Whether the file has this value: it rounds to whole bytes, and to four digits of a loss."""
    best = value.best if value is not None and not (value.unit == "1" and value.value is None) else None
    return best is not None and abs(best - told) <= max(1e-4 * told, 1e-12 if told < 1 else 0.6)


def _buffer(text: str, product: float, packet: float) -> float:
    amount = _core.quantity(text)
    assert amount is not None
    value, unit = amount
    return {"bdp": value * product, "packets": value * packet}.get(unit, value)


def _duration_s(found: Estimates, size_bytes: float) -> float:
    """How long the simulations last."""
    rate, rtt = found.rate_bit_s.best or 1.0, found.base_rtt_s.best or 0.0
    bounded = min(max(MOST_PACKETS * found.packet_bytes * 8 / rate, min(LEAST_S, LEAST_RTTS * rtt)), MOST_S)
    # Half of the rate, and slow start: so long a transfer may take and still be simulated whole.
    whole = 2 * size_bytes * 8 / rate + 40 * rtt
    return min(whole, bounded)


def cost(found: Estimates, size_bytes: float, ways: int, draws: int) -> tuple[int, float, float]:
    """Simulations, the duration of each, and about how many seconds of a core all take."""
    duration_s = _duration_s(found, size_bytes)
    # Each way once; the best on the other draws and beside a flow of others, which also runs alone.
    runs = ways + min(FINAL, ways) * draws + 1
    return runs, duration_s, predict.core_s(found, runs, duration_s)


def ways(cc: Sequence[str] = USUAL_CC, streams: Sequence[int] = USUAL_STREAMS) -> list[Way]:
    """Every algorithm with every number of streams, and paced, unless the algorithm always paces."""
    both = itertools.product(cc, streams, (False, True))
    return [Way(name, count, paced) for name, count, paced in both if not (paced and name == "bbr")]


def recommend(
    found: Estimates,
    size_bytes: float,
    candidates: Sequence[Way],
    *,
    draws: int = 5,
    progress: Callable[[float], object] | None = None,
) -> Advice:
    """Rank ways to send `size_bytes`. Raises `ScenarioError` for an unknown algorithm."""
    duration_s = _duration_s(found, size_bytes)
    runs, _, _ = cost(found, size_bytes, len(candidates), draws)
    done = 0

    def go(scenarios: list[Scenario]) -> list[Run]:
        nonlocal done
        before, done = done, done + len(scenarios)
        tell = None if progress is None else (lambda share: progress((before + share * len(scenarios)) / runs))
        return run_many(scenarios, progress=tell)

    first = go([way.plan.scenario(found, duration_s) for way in candidates])
    times = [_finish_s(run, way, size_bytes, duration_s) for run, way in zip(first, candidates, strict=True)]
    order = _finalists(candidates, times)
    final = [candidates[number] for number in order]
    paths = predict.draws(found, draws)
    drawn = go([way.plan.scenario(path, duration_s, seed) for way in final for seed, path in enumerate(paths[1:], 2)])
    # A flow of others, with what most hosts have, and a host that is not ours; and alone, to know what it loses.
    theirs = {"host": dict.fromkeys(("data", "ack"), "0 s")} if any(host.costs for host in found.hosts) else {}
    other = flow(LINUX["cubic"][0], **LINUX["cubic"][1], **theirs, label="others")
    tcp = {"profile": "linux-6"}
    beside = go(
        [way.plan.scenario(found, duration_s, others=[other]) for way in final]
        + [Plan(LINUX["cubic"][0], 1, tcp, LINUX["cubic"][1]).scenario(with_costs(found, {}), duration_s)]
    )
    alone = _steady(beside[-1], range(1))
    judged, runs_of = [], {}
    for place, (number, way) in enumerate(zip(order, final, strict=True)):
        own = runs_of[way] = [first[number], *drawn[place * (draws - 1) : (place + 1) * (draws - 1)]]
        lose = 1 - _steady(beside[place], range(way.streams, way.streams + 1)) / alone if alone > 0 else None
        judged.append(_judged(way, own, size_bytes, duration_s, lose))
    fastest = min(one.finish_s.best or math.inf for one in judged)

    def rank(one: Judged) -> tuple[Any, ...]:
        best = one.finish_s.best or math.inf
        is_fast = best <= fastest * (1 + EQUAL)
        # Among equally fast ways, the kernel's own before ours, then what takes less from others, in tenths.
        return (
            (0, one.way.cc not in LINUX, round(10 * (one.others_lose or 0.0)), one.way.streams, best)
            if is_fast
            else (1, best)
        )

    ranked = sorted(judged, key=rank)
    best = ranked[0]
    prediction = predict.of_runs(runs_of[best.way], best.way.plan, size_bytes=size_bytes, finish_s=best.finish_s)
    notes = list(found.notes)
    is_extrapolated = any((one.finish_s.high or one.finish_s.best or math.inf) > duration_s for one in judged)
    if is_extrapolated:
        notes.append(f"simulated for {duration_s:.4g} s, and extrapolated from the goodput of the second half")
    if any(one.way.cc == "bbr" for one in ranked):
        notes.append("bbr is simulated as version 3; a stock kernel has version 1")
    prediction = msgspec.structs.replace(prediction, notes=notes)
    return Advice(ranked, prediction, found, duration_s, is_extrapolated, notes)


def _finalists(candidates: Sequence[Way], times: Sequence[float]) -> list[int]:
    """The numbers of the ways to look at closely: the best of each algorithm, and then the fastest.

    Of ways that are equally fast the one with the fewest streams is the best, and rather without pacing.
    """

    def plainness(number: int) -> tuple[Any, ...]:
        return (candidates[number].streams, candidates[number].paced, times[number])

    best = []
    for cc in dict.fromkeys(way.cc for way in candidates):
        own = [number for number, way in enumerate(candidates) if way.cc == cc]
        limit = min(times[number] for number in own) * (1 + EQUAL)
        best.append(min((number for number in own if times[number] <= limit), key=plainness))
    best = sorted(best, key=lambda number: times[number])[:FINAL]
    limit = min(times) * (1 + EQUAL)
    others = [number for number in range(len(candidates)) if number not in best]
    others.sort(
        key=lambda number: (
            (times[number] > limit, *plainness(number)) if times[number] <= limit else (True, times[number])
        )
    )
    return [*best, *others[: FINAL - len(best)]]


def _columns(run: Run, flows: range) -> tuple[Any, Any, Any]:
    """Sample times, and what these flows together had delivered at each; and their largest windows, in segments."""
    table = run.table("flows")
    own = np.isin(table["flow"].to_numpy(), list(flows))
    times, delivered = table["time_s"].to_numpy()[own], table["delivered_bytes"].to_numpy()[own]
    grid, place = np.unique(times, return_inverse=True)
    return grid, np.bincount(place, delivered), table["cwnd_segments"].to_numpy()[own]


def _steady(run: Run, flows: range) -> float:
    """Goodput of these flows in the second half of a run, bit/s."""
    times, delivered, _ = _columns(run, flows)
    middle = len(times) // 2
    return (
        float((delivered[-1] - delivered[middle]) * 8 / max(times[-1] - times[middle], 1e-9)) if len(times) > 1 else 0.0
    )


def _finish_s(run: Run, way: Way, size_bytes: float, duration_s: float) -> float:
    """Time until so much is delivered: read from the run, or extrapolated."""
    times, delivered, _ = _columns(run, range(way.streams))
    if delivered[-1] >= size_bytes:
        return float(np.interp(size_bytes, delivered, times))
    steady = _steady(run, range(way.streams))
    return duration_s + (size_bytes - float(delivered[-1])) * 8 / steady if steady > 0 else math.inf


def _judged(way: Way, runs: Sequence[Run], size_bytes: float, duration_s: float, lose: float | None) -> Judged:
    times = np.array([_finish_s(run, way, size_bytes, duration_s) for run in runs])
    reached = bool(np.isfinite(times).all())
    finish = Value(unit="s", absent="in a simulation nothing arrived in the second half")
    if reached:
        # A future transfer is one more draw. Times are positive and skewed, so their logarithms are taken for normal.
        logs = np.log(times)
        n = len(logs)
        half = float(stdtrit(n - 1, 0.975) * logs.std(ddof=1) * math.sqrt(1 + 1 / n)) if n > 1 else None
        middle = float(logs.mean())
        low, high = (None, None) if half is None else (math.exp(middle - half), math.exp(middle + half))
        method = f"{n} simulations of {duration_s:.4g} s"
        finish = Value(unit="s", value=math.exp(middle), low=low, high=high, method=method)
    payload = predict.payload_of(runs[0])
    # Memory for the largest window that a stream had after its slow start.
    window = float(np.percentile(np.concatenate([_columns(run, range(way.streams))[2] for run in runs]), 99)) * payload
    flows = runs[0].summary.flows[: way.streams]
    sent = sum(one.sent_bytes for one in flows)
    return Judged(
        way=way,
        finish_s=finish,
        goodput_bit_s=_steady(runs[0], range(way.streams)),
        buffer_bytes=window * BUFFER_FACTOR,
        retransmitted=sum(one.retransmitted_bytes for one in flows) / max(sent, 1),
        others_lose=None if lose is None else max(lose, 0.0),
    )


def to_dict(advice: Advice) -> dict[str, Any]:
    """The ranking for programs, as `recommendation.json` has it."""
    rows = [msgspec.to_builtins(one) for one in advice.ways]
    return {
        "ways": [row.pop("way") | row for row in rows],
        "command": advice.command(),
        "duration_s": advice.duration_s,
        "is_extrapolated": advice.is_extrapolated,
        "notes": advice.notes,
    }
