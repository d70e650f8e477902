"""How to send so much data over a path: algorithm, streams, pacing, socket buffers, and the bottleneck's queue.

Each way is tried once (`ways`): by a simulation, or round trip by round trip where its congestion epochs are longer than a
simulation can be. The best are tried again on draws from the intervals of the path's values, and beside a flow of others, which
tells what that loses. A transfer that a simulation would take too long for is extrapolated: from the goodput of the second half
of the run, which is taken for its steady state.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from scipy.special import stdtrit

from elephan.api.run import Run
from elephan.api.scenario import Scenario, flow
from elephan.base.cores import core_count
from elephan.engines.run import run_many
from elephan.paths import predict
from elephan.paths.estimates import Estimates, Value
from elephan.paths.given import with_costs
from elephan.paths.predict import Prediction
from elephan.paths.ways import (
    EPOCHS,
    LINUX,
    MOST_ROUND_TRIPS,
    OTHERS,
    Trial,
    Way,
    by_rounds,
    is_in_rounds,
    most_goodput_bit_s,
    of_run,
)

USUAL_CC = ("reno", "cubic", "bbr", "htcp", "scalable")
USUAL_STREAMS = (1, 2, 4, 8)
# What a simulation has at least and at most: a time, round trips, packets. All may have ALL_PACKETS: a minute of a core.
LEAST_S, LEAST_RTTS, MOST_S, MOST_PACKETS, ALL_PACKETS = 5.0, 100.0, 60.0, 1.5e6, 2e8
# Ways that are tried with the uncertainty; ways of which the times differ by less than this are equally fast.
FINAL, EQUAL = 6, 0.05
# Linux counts its own structures against a socket's buffer: about half is data (tcp_adv_win_scale = 1).
BUFFER_FACTOR = 2.0
ORDER = (
    f"order: ways within {100 * EQUAL:g} % of the fastest count as equally fast; of these a stock kernel's first, then what "
    "takes less from others (in tenths), then fewer streams; the others by time"
)
# Queues and buffers, as shares of the bandwidth-delay product, that are tried for a bottleneck that is still to be built.
QUEUES, SHARES = ("droptail", "drr"), (0.05, 0.2, 1.0)


@dataclass(frozen=True)
class Judged:
    """A way with its time to finish, its steady goodput, the socket buffer of a stream, and what a flow of others loses."""

    way: Way
    finish_s: Value
    goodput_bit_s: float
    buffer_bytes: float
    retransmitted: float
    others_lose: float | None = None
    is_in_rounds: bool = False


@dataclass(frozen=True)
class Bottleneck:
    """A queue in front of the link, and what the best way and a flow of others make of it together.

    `used` is the share of the link that they use, and `buffer` the share of the bandwidth-delay product that it holds.
    """

    queue: str
    buffer: float
    buffer_bytes: float
    used: float
    queue_delay_s: float
    others_lose: float | None


@dataclass(frozen=True)
class Advice:
    """The ways, the best first, and the prediction of the best; for a path that is planned also its queues, the best first."""

    ways: Sequence[Judged]
    prediction: Prediction
    path: Estimates
    duration_s: float
    is_extrapolated: bool
    notes: list[str] = field(default_factory=list)
    bottlenecks: Sequence[Bottleneck] = ()

    def command(self, host: str = "HOST") -> str:
        """The command that sends in the best way."""
        way = self.ways[0].way
        load_ = "" if way.cc in LINUX else " --load"
        pace = f' --pace "{(self.path.rate_bit_s.best or 0) / 1e6:.4g} Mbit/s"' if way.paced else ""
        return f"elephan path transfer send FILE {host} --cc {way.cc}{load_} --streams {way.streams}{pace}"


@dataclass(frozen=True)
class Effort:
    """What a recommendation computes: its ways, those of them that go by round trips, how many simulations of how long."""

    ways: Sequence[Way]
    in_rounds: frozenset[Way]
    simulations: int
    duration_s: float
    core_s: float


def effort(found: Estimates, size_bytes: float, candidates: Sequence[Way], draws: int) -> Effort:
    """What `recommend` computes for these ways. The rounds know no pacing: a way that they take is tried once."""
    rate, rtt = found.rate_bit_s.best or 1.0, found.base_rtt_s.best or 0.0
    packets_s = rate / 8 / found.packet_bytes
    # Half of the rate, and slow start: so long a transfer may take and still be simulated whole.
    whole = 2 * size_bytes * 8 / rate + 40 * rtt
    duration_s = min(max(MOST_PACKETS / packets_s, min(LEAST_S, LEAST_RTTS * rtt)), MOST_S)
    slow = {way for way in candidates if whole > duration_s and is_in_rounds(found, way, duration_s)}
    tried = [way for way in candidates if not (way in slow and way.paced)]
    simulated = [way for way in tried if way not in slow]
    runs = 0
    if simulated:
        # Each way once; the best on the other draws and beside a flow of others, which also runs alone.
        final = min(len(simulated), max(FINAL - len({way.cc for way in slow}), 1))
        runs = len(simulated) + final * draws + 1
        duration_s = max(duration_s, min(ALL_PACKETS / packets_s / runs, MOST_S))
    duration_s = min(whole, duration_s)
    return Effort(tried, frozenset(slow), runs, duration_s, predict.core_s(found, runs, duration_s))


@dataclass(frozen=True)
class Case:
    """A trial to make: a way on a path, with a seed, alone or beside a flow of others, and the queue of the bottleneck."""

    way: Way
    path: Estimates
    seed: int = 1
    beside: bool = False
    queue: str = "droptail"


class Trials:
    """Makes the trials of a recommendation, and says how many of its simulations are done."""

    def __init__(self, plan: Effort, size_bytes: float, progress: Callable[[float], object] | None) -> None:
        self.plan, self.size_bytes, self.progress, self.done = plan, size_bytes, progress, 0

    def make(self, cases: Sequence[Case]) -> list[Trial]:
        """The trials of these cases, in their order."""
        slow = self.plan.in_rounds
        with ThreadPoolExecutor(core_count()) as pool:
            rounds = [pool.submit(self._rounds, case) if case.way in slow else None for case in cases]
            runs = iter(self._simulated([case for case in cases if case.way not in slow]))
            return [
                of_run(next(runs), case.way, self.size_bytes) if future is None else future.result()
                for case, future in zip(cases, rounds, strict=True)
            ]

    def _rounds(self, case: Case) -> Trial:
        fair = case.queue == "drr"
        return by_rounds(case.path, case.way, self.size_bytes, case.seed, others=case.beside, fair=fair)

    def _simulated(self, cases: Sequence[Case]) -> list[Run]:
        if not cases:
            return []
        before, self.done = self.done, self.done + len(cases)

        def tell(share: float) -> None:
            if self.progress is not None:
                self.progress(min((before + share * len(cases)) / self.plan.simulations, 1.0))

        scenarios = [self._scenario(case) for case in cases]
        return run_many(scenarios, progress=None if self.progress is None else tell)

    def _scenario(self, case: Case) -> Scenario:
        others = []
        if case.beside:
            # A host that is not ours, with what most hosts have.
            costly = any(host.costs for host in case.path.hosts)
            theirs = {"host": dict.fromkeys(("data", "ack"), "0 s")} if costly else {}
            plan = OTHERS.plan
            others = [flow(plan.cc, **plan.flow, **theirs, label="others")]
        made = case.way.plan.scenario(case.path, self.plan.duration_s, case.seed, others=others)
        return made if case.queue == "droptail" else made.with_settings({"path.queue": case.queue}, large=True)

    def alone(self, found: Estimates, way: Way) -> Trial:
        """A flow of others alone, in the way in which `way` is tried."""
        if way in self.plan.in_rounds:
            return by_rounds(found, OTHERS, self.size_bytes)
        (run,) = self._simulated([Case(OTHERS, with_costs(found, {}))])
        return of_run(run, OTHERS, self.size_bytes)


def recommend(
    found: Estimates,
    size_bytes: float,
    candidates: Sequence[Way],
    *,
    draws: int = 5,
    planned: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Advice:
    """Rank ways to send `size_bytes`; with `planned` also queues for the bottleneck.

    Raises `ScenarioError` for an unknown algorithm.
    """
    plan = effort(found, size_bytes, candidates, draws)
    trials = Trials(plan, size_bytes, progress)
    first = trials.make([Case(way, found) for way in plan.ways])
    order = _finalists(plan.ways, [one.finish_s for one in first])
    final = [plan.ways[number] for number in order]
    paths = predict.draws(found, draws)
    drawn = trials.make([Case(way, path, seed) for way in final for seed, path in enumerate(paths[1:], 2)])
    beside = trials.make([Case(way, found, beside=True) for way in final])
    kinds = {way in plan.in_rounds: way for way in final}
    alone = {kind: trials.alone(found, way).goodput_bit_s for kind, way in kinds.items()}

    def lose(way: Way, trial: Trial) -> float | None:
        without = alone[way in plan.in_rounds]
        return max(1 - trial.others_bit_s / without, 0.0) if without > 0 else None

    judged, tried = [], {}
    for place, (number, way) in enumerate(zip(order, final, strict=True)):
        tried[way] = [first[number], *drawn[place * (draws - 1) : (place + 1) * (draws - 1)]]
        judged.append(_judged(way, tried[way], lose(way, beside[place]), plan))
    ranked = _ranked(judged)
    best = ranked[0]
    bottlenecks: list[Bottleneck] = []
    if planned:
        product = (found.rate_bit_s.best or 0.0) * (found.base_rtt_s.best or 0.0) / 8
        queues = [(queue, share, max(share * product, found.packet_bytes)) for queue in QUEUES for share in SHARES]
        results = trials.make(
            [Case(best.way, _with_buffer(found, held), beside=True, queue=queue) for queue, _, held in queues]
        )
        for (queue, share, held), trial in zip(queues, results, strict=True):
            used = (trial.goodput_bit_s + trial.others_bit_s) / most_goodput_bit_s(found)
            lost = lose(best.way, trial)
            bottlenecks.append(Bottleneck(queue, share, held, min(used, 1.0), trial.queue_delay_s, lost))
        most = max(one.used for one in bottlenecks)
        bottlenecks.sort(
            key=lambda one: (one.used < most * (1 - EQUAL), round(10 * (one.others_lose or 0)), one.buffer)
        )
    notes = [*found.notes, *_notes(plan, tried)]
    series = [trial.series for trial in tried[best.way]]
    prediction = predict.of_series(series, best.way.plan, size_bytes=size_bytes, finish_s=best.finish_s, notes=notes)
    is_extrapolated = any(trial.is_extrapolated for own in tried.values() for trial in own)
    if progress is not None:
        progress(1.0)
    return Advice(ranked, prediction, found, plan.duration_s, is_extrapolated, notes, bottlenecks)


def _notes(plan: Effort, tried: Mapping[Way, Sequence[Trial]]) -> list[str]:
    notes = []
    extrapolated = {way for way, own in tried.items() if any(trial.is_extrapolated for trial in own)}
    if extrapolated - plan.in_rounds:
        notes.append(f"simulated for {plan.duration_s:.4g} s, and extrapolated from the goodput of the second half")
    if plan.in_rounds & tried.keys():
        names = ", ".join(dict.fromkeys(way.cc for way in tried if way in plan.in_rounds))
        notes.append(
            f"{names}: round trip by round trip, because a simulation of {plan.duration_s:.4g} s is shorter than "
            f"{EPOCHS:g} of their congestion epochs; there are no bursts in it, so nothing is said of pacing"
        )
    if extrapolated & plan.in_rounds:
        notes.append(f"the round trips after the first {MOST_ROUND_TRIPS:g} are extrapolated")
    if any(way.cc == "bbr" for way in tried):
        notes.append("bbr is simulated as version 3; a stock kernel has version 1")
    return notes


def _with_buffer(found: Estimates, held_bytes: float) -> Estimates:
    """The path with a buffer that holds so much."""
    return msgspec.structs.replace(found, buffer_bytes=Value(unit="B", value=held_bytes))


def _ranked(judged: Sequence[Judged]) -> list[Judged]:
    """By `ORDER`."""
    fastest = min(one.finish_s.best or math.inf for one in judged)

    def rank(one: Judged) -> tuple[Any, ...]:
        best = one.finish_s.best or math.inf
        if best > fastest * (1 + EQUAL):
            return (1, best)
        return (0, one.way.cc not in LINUX, round(10 * (one.others_lose or 0.0)), one.way.streams, best)

    return sorted(judged, key=rank)


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


def _judged(way: Way, trials: Sequence[Trial], lose: float | None, plan: Effort) -> Judged:
    times = np.array([trial.finish_s for trial in trials])
    finish = Value(unit="s", absent="nothing arrived in the second half of what was computed")
    if np.isfinite(times).all():
        # A future transfer is one more draw. Times are positive and skewed, so their logarithms are taken for normal.
        logs = np.log(times)
        n = len(logs)
        half = float(stdtrit(n - 1, 0.975) * logs.std(ddof=1) * math.sqrt(1 + 1 / n)) if n > 1 else None
        middle = float(logs.mean())
        how = "runs round trip by round trip" if way in plan.in_rounds else f"simulations of {plan.duration_s:.4g} s"
        low, high = (None, None) if half is None else (math.exp(middle - half), math.exp(middle + half))
        finish = Value(unit="s", value=math.exp(middle), low=low, high=high, method=f"{n} {how}")
    return Judged(
        way=way,
        finish_s=finish,
        goodput_bit_s=trials[0].goodput_bit_s,
        buffer_bytes=max(trial.window_bytes for trial in trials) * BUFFER_FACTOR,
        retransmitted=trials[0].retransmitted,
        others_lose=lose,
        is_in_rounds=way in plan.in_rounds,
    )


def to_dict(advice: Advice) -> dict[str, Any]:
    """The ranking for programs, as `recommendation.json` has it."""
    rows = [msgspec.to_builtins(one) for one in advice.ways]
    return {
        "ways": [row.pop("way") | row for row in rows],
        "order": ORDER,
        "bottlenecks": msgspec.to_builtins(advice.bottlenecks),
        "command": advice.command(),
        "duration_s": advice.duration_s,
        "is_extrapolated": advice.is_extrapolated,
        "notes": advice.notes,
    }
