"""Ranking of algorithms for a path, by experiments and the ordered criteria of Li 2006, Table 2.2.

The thesis orders the criteria by the kind of path: on the Internet fairness, then throughput, then overhead; on a dedicated
circuit with a single user throughput, then overhead; on one that a few users share throughput, fairness and convergence. It
gives no weights. Here the first criterion has weight 3, the second 2, the third 1; `weights` sets others.

The experiments are those of its chapter 8: a flow alone; with a second flow of the same algorithm; with a flow of Standard TCP
that started before; with a flow of the same algorithm and half the round-trip time. The first flow starts at its window after a
loss and has time to settle; the second starts at random within a congestion epoch of the first. The measuring window is at
least one epoch: that of the flow alone, or, from the latest start of the second flow on, that of two flows, which lose at half
the window.

A score is between 0 and 1, a criterion's the mean over its evidence. Utilisation and fairness are scores. A retransmitted share
`r` scores `1/(1 + r/1e-4)`, a time `t` until the second flow is within 80 % of its share `1/(1 + t/10 s)`, and never 0. The
halves, 1e-4 and 10 s, are choices: they move scores, and orders only between near equals.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan import _core
from elephan.api.metrics import Metric, declared
from elephan.api.run import Run
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.api.summary import Summary
from elephan.engines.run import run_many
from elephan.studies.statistics import Estimate
from elephan.studies.theory import MODELLED, SETTLED_S, Model, epoch_s

# Li 2006, Table 2.2, in order of importance.
CRITERIA = {
    "internet": ("fairness", "throughput", "overhead"),
    "dedicated": ("throughput", "overhead"),
    "dedicated-shared": ("throughput", "fairness", "convergence"),
}
ORDER_WEIGHTS = (3.0, 2.0, 1.0)
# What Li 2006, Table 10.1 recommends, for comparison.
PUBLISHED = {
    "internet": ("fast", "htcp"),
    "dedicated": ("bic", "fast", "htcp"),
    "dedicated-shared": ("fast", "htcp"),
}
# Half the score: a retransmitted share, and a time.
OVERHEAD_HALF, CONVERGENCE_HALF_S = 1e-4, 10.0
# Measured at least so long: ten epochs of most algorithms on a path of 10,000 packets.
MEASURED_S = 120.0


def _retransmitted(summary: Summary) -> float:
    """Retransmitted share of what all flows sent."""
    sent = sum(f.sent_bytes for f in summary.flows)
    return sum(f.retransmitted_bytes for f in summary.flows) / max(sent, 1)


@dataclass(frozen=True)
class Evidence:
    """A metric of an experiment, and the criterion to which it belongs."""

    name: str
    criterion: str
    experiment: str
    metric: Metric


UTILISATION, FAIRNESS = declared("Summary", "utilisation"), declared("Summary", "fairness")
RETRANSMITTED = Metric("retransmitted", "1e-6", digits=0, factor=1e6, reading=_retransmitted)
EVIDENCE = (
    Evidence("utilisation, alone", "throughput", "alone", UTILISATION),
    Evidence("utilisation, two", "throughput", "two", UTILISATION),
    Evidence("fairness, two", "fairness", "two", FAIRNESS),
    Evidence("friendliness", "fairness", "friendly", FAIRNESS),
    Evidence("RTT fairness", "fairness", "rtts", FAIRNESS),
    Evidence("retransmitted, alone", "overhead", "alone", RETRANSMITTED),
    Evidence("retransmitted, two", "overhead", "two", RETRANSMITTED),
    Evidence("fair share", "convergence", "two", declared("Summary", "fair_share_s", unit="s", digits=0)),
)
# On a dedicated circuit is no Standard TCP, and on one with a single user no other flow.
EXPERIMENTS = {
    "internet": ("alone", "two", "friendly", "rtts"),
    "dedicated": ("alone",),
    "dedicated-shared": ("alone", "two", "rtts"),
}


@dataclass(frozen=True)
class Recommendation:
    """An algorithm's scores on a path, between 0 and 1, and their evidence; `repeats` has the score of each repeat."""

    cc: str
    score: Estimate
    scores: Mapping[str, Estimate]
    evidence: Mapping[str, Estimate]
    repeats: tuple[float, ...]

    def apart(self, other: "Recommendation") -> bool | None:
        """Whether the scores differ significantly over the repeats, which use common random numbers; none for one repeat."""
        between = Estimate.of([a - b for a, b in zip(self.repeats, other.repeats, strict=True)])
        return None if between.low is None or between.high is None else not between.low <= 0 <= between.high


def weights_of(shared: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of the criteria of a kind of path, with those in `weights` set; zero leaves one out."""
    if shared not in CRITERIA:
        raise _core.ScenarioError(f"--shared: expected one of {', '.join(CRITERIA)}, found {shared!r}")
    known = sorted({evidence.criterion for evidence in EVIDENCE})
    for key, value in weights.items():
        if key not in known:
            raise _core.ScenarioError(f"--weight: expected one of {', '.join(known)}, found {key!r}")
        if not (math.isfinite(value) and value >= 0):
            raise _core.ScenarioError(f"--weight: expected 0 or more for {key}, found {value:g}")
    counted = {**dict(zip(CRITERIA[shared], ORDER_WEIGHTS, strict=False)), **weights}
    counted = {key: value for key, value in counted.items() if value > 0}
    if not counted:
        raise _core.ScenarioError("--weight: expected a criterion that counts, found none")
    return counted


def evidence_of(shared: str, counted: Mapping[str, float]) -> list[Evidence]:
    """What is measured for the criteria that count on a kind of path."""
    # Who weighs fairness or convergence on a circuit of his own asks what happens when it is shared.
    kind = "dedicated-shared" if shared == "dedicated" and {"fairness", "convergence"} & counted.keys() else shared
    return [e for e in EVIDENCE if e.criterion in counted and e.experiment in EXPERIMENTS[kind]]


def _first(cc: str, rate: str, rtt: str, buffer: str) -> tuple[dict[str, Any], float]:
    """The first flow, and how long its epochs are when it is alone, s.

    It comes to what a loss leaves by limited slow start (RFC 3742), at most half a buffer more in a round trip. Standard slow
    start loses a thousand packets in a pipe of ten thousand, and Standard TCP is longer than an epoch in coming back.
    """
    alone = dumbbell(rate=rate, rtt=rtt, buffer=buffer, flows=[flow(cc)], duration="1 s")
    path = alone.fluid_plan
    packets_s, rtt_s = path["rate_bit_s"] / (8 * path["packet_bytes"]), path["classes"][0]["rtt_s"]
    full = packets_s * rtt_s + path["buffer_packets"]
    left = max(round(Model(cc).core.beta(full) * full), 2)
    limited = {"name": "limited", "max_ssthresh": max(path["buffer_packets"], 2)}
    first = flow(cc, slow_start=limited, tcp={"initial_ssthresh": left})
    return first, epoch_s(cc, packets_s, rtt_s, path["buffer_packets"])


def recommend(
    *,
    rate: str,
    rtt: str,
    buffer: str,
    shared: str,
    weights: Mapping[str, float] | None = None,
    cc: Sequence[str] = MODELLED,
    duration: str | None = None,
    repeats: int = 5,
    progress: Callable[[float], object] | None = None,
    starting: Callable[[Sequence[Scenario]], object] | None = None,
    large: bool = False,
) -> list[Recommendation]:
    """Run the experiments for the criteria of the path with every algorithm; the best is first.

    `duration` is that of every run; by default each is as long as its first flow needs on this path. `starting` is called
    with the scenarios before they are run. Raises `ScenarioError` if
    it is too short, for an invalid path, and for an algorithm without a model.
    """
    counted = weights_of(shared, weights or {})
    asked = evidence_of(shared, counted)
    experiments = list(dict.fromkeys(evidence.experiment for evidence in asked))
    pairs = {(name, key): "reno" if key == "friendly" else name for name in dict.fromkeys(cc) for key in experiments}
    firsts = {name: _first(name, rate, rtt, buffer) for name in dict.fromkeys(pairs.values())}
    half = f"{500 * _core.seconds(rtt):.9g} ms"
    slowest = max(firsts, key=lambda name: firsts[name][1])
    epochs = 1.0 if experiments == ["alone"] else 1.5
    least = SETTLED_S + epochs * firsts[slowest][1]
    try:
        long_enough = duration is None or _core.seconds(duration) >= least
    except _core.ScenarioError as error:
        raise _core.ScenarioError(f"--duration: {error}") from error
    if not long_enough:
        raise _core.ScenarioError(
            f'--duration: expected "{math.ceil(least)} s" or more ({SETTLED_S:g} s to settle; epochs of {slowest} last '
            f'{firsts[slowest][1]:.1f} s on this path), found "{duration}"'
        )

    def scenario(name: str, key: str, seed: int) -> Scenario:
        first, epoch = firsts[pairs[name, key]]
        latest = SETTLED_S + epoch
        second = {
            "start": {"uniform": [f"{SETTLED_S:g} s", f"{latest:.3f} s"]},
            **({"rtt": half} if key == "rtts" else {}),
        }
        begin, span = (SETTLED_S, epoch) if key == "alone" else (latest, epoch / 2)
        return dumbbell(
            rate=rate,
            rtt=rtt,
            buffer=buffer,
            flows=[first] if key == "alone" else [first, flow(name, **second)],
            duration=duration or f"{begin + max(MEASURED_S, span):.3f} s",
            seed=seed,
            measure={"from": f"{begin:.3f} s"},
            trace={"interval": "10 s"},
            large=large,
        )

    # Nothing is random about a flow alone: it runs once.
    seeds = {key: range(1, 2 if key == "alone" else repeats + 1) for key in experiments}
    made = {(*pair, seed): scenario(*pair, seed) for pair in pairs for seed in seeds[pair[1]]}
    # Standard TCP beside Standard TCP is the same run twice.
    different = {one.to_json(): one for one in made.values()}
    if starting is not None:
        starting(list(different.values()))
    done = dict(zip(different, run_many(list(different.values()), progress=progress), strict=True))
    runs = {key: done[one.to_json()] for key, one in made.items()}
    ranked = [
        _judge(name, {e: [runs[name, e.experiment, seed] for seed in seeds[e.experiment]] for e in asked}, counted)
        for name in dict.fromkeys(cc)
    ]
    return sorted(ranked, key=lambda r: -(r.score.mean or 0.0))


def _score(evidence: Evidence, value: float | None) -> float:
    match evidence.criterion:
        case "overhead":
            return 1 / (1 + (value or 0.0) / OVERHEAD_HALF)
        case "convergence":
            return 0.0 if value is None else 1 / (1 + value / CONVERGENCE_HALF_S)
    return value or 0.0


def _judge(name: str, runs: Mapping[Evidence, Sequence[Run]], weights: Mapping[str, float]) -> Recommendation:
    values = {evidence: [evidence.metric.value(run.summary) for run in those] for evidence, those in runs.items()}
    repeats = max(len(found) for found in values.values())
    scores = {}
    for criterion in weights:
        parts = [[_score(e, v) for v in found] for e, found in values.items() if e.criterion == criterion]
        whole = [found * (repeats // len(found)) for found in parts]
        scores[criterion] = [sum(repeat) / len(whole) for repeat in zip(*whole, strict=True)]
    total = sum(weights.values())
    each = [
        sum(w * s for w, s in zip(weights.values(), r, strict=True)) / total for r in zip(*scores.values(), strict=True)
    ]
    return Recommendation(
        cc=name,
        score=Estimate.of(each),
        scores={criterion: Estimate.of(found) for criterion, found in scores.items()},
        evidence={evidence.name: Estimate.of(found) for evidence, found in values.items()},
        repeats=tuple(each),
    )
