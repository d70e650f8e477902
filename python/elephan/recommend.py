"""Which algorithm suits a path: experiments on it, ranked by the ordered criteria of Li 2006, Table 2.2.

The thesis orders what matters by the kind of path: on the Internet fairness, then throughput, then overhead; on a dedicated
circuit with a single user throughput, then overhead; on one that a few users share throughput, fairness and convergence. It
gives no weights; here the first criterion counts 3, the second 2, the third 1, and `weights` sets others.

A score is between 0 and 1. Fairness is the mean of fairness between two equal flows, of friendliness to Standard TCP, and of
fairness between two flows whose round-trip times differ by a factor of two. Throughput is utilisation, alone and as two flows.
Overhead is `1/(1 + r/1e-4)`, r the retransmitted share. Convergence is `1/(1 + t/10 s)`, t the time until the second flow is
within 80 % of its share. The halves, 1e-4 and 10 s, are choices: they move scores, and orders only between near equals.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from elephan import _core
from elephan.results import Run
from elephan.scenario import Scenario, dumbbell, flow
from elephan.simulate import run_many
from elephan.sweeps.statistics import Estimate

# Li 2006, Table 2.2, in order of importance.
CRITERIA = {
    "internet": ("fairness", "throughput", "overhead"),
    "dedicated": ("throughput", "overhead"),
    "dedicated-shared": ("throughput", "fairness", "convergence"),
}
ORDER_WEIGHTS = (3.0, 2.0, 1.0)
# Li 2006, Table 10.1, for comparison.
PUBLISHED = {
    "internet": "FAST, H-TCP",
    "dedicated": "BicTCP, FAST, H-TCP",
    "dedicated-shared": "FAST, H-TCP",
}
ALGORITHMS = ("reno", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp", "cubic")
# Half the score: a retransmitted share, and a time.
OVERHEAD_HALF, CONVERGENCE_HALF_S = 1e-4, 10.0


@dataclass(frozen=True)
class Recommendation:
    """An algorithm's scores on a path, between 0 and 1, and what they rest on."""

    cc: str
    score: float
    scores: Mapping[str, float]
    evidence: Mapping[str, Estimate]


def _share(run: Run) -> float:
    """Retransmitted share of what all flows sent."""
    sent = sum(f.sent_bytes for f in run.summary.flows)
    return sum(f.retransmitted_bytes for f in run.summary.flows) / max(sent, 1)


def _scenarios(cc: str, rate: str, rtt: str, buffer: str, duration: str, seed: int) -> dict[str, Scenario]:
    double = f"{2000 * _core.seconds(rtt):g} ms"
    later = {"uniform": ["10 s", "20 s"]}
    sets = {
        "alone": [flow(cc)],
        "two": [flow(cc), flow(cc, start=later)],
        "friendly": [flow("reno"), flow(cc, start=later)],
        "rtts": [flow(cc, rtt=double), flow(cc, rtt=rtt, start=later)],
    }
    return {
        name: dumbbell(
            name=f"{cc}, {name}",
            rate=rate,
            rtt=rtt,
            buffer=buffer,
            flows=flows,
            duration=duration,
            seed=seed,
            measure={"from": "20 s"},
            trace={"interval": "10 s"},
        )
        for name, flows in sets.items()
    }


def weights_of(shared: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of the criteria of a kind of path, with those in `weights` set; zero leaves one out."""
    if shared not in CRITERIA:
        raise _core.ScenarioError(f"--shared: expected one of {', '.join(CRITERIA)}, found {shared!r}")
    known = {"fairness", "throughput", "overhead", "convergence"}
    wrong = set(weights) - known
    if wrong:
        raise _core.ScenarioError(f"--weight: expected one of {', '.join(sorted(known))}, found {sorted(wrong)[0]!r}")
    return {**dict(zip(CRITERIA[shared], ORDER_WEIGHTS, strict=False)), **weights}


def recommend(
    *,
    rate: str,
    rtt: str,
    buffer: str,
    shared: str,
    weights: Mapping[str, float] | None = None,
    cc: tuple[str, ...] = ALGORITHMS,
    duration: str = "120 s",
    repeats: int = 2,
    progress: Callable[[float], object] | None = None,
) -> list[Recommendation]:
    """Run every algorithm alone, beside itself, beside Standard TCP and beside twice its round-trip time; best first."""
    counted = weights_of(shared, weights or {})
    if _core.seconds(duration) < 40:
        raise _core.ScenarioError(f'--duration: expected "40 s" or more, found "{duration}"')
    made = [(name, key, s) for name in cc for seed in range(1, repeats + 1)
            for key, s in _scenarios(name, rate, rtt, buffer, duration, seed).items()]  # fmt: skip
    runs = run_many([s for *_, s in made], progress=progress)
    found: dict[str, dict[str, list[Run]]] = {}
    for (name, key, _), run in zip(made, runs, strict=True):
        found.setdefault(name, {}).setdefault(key, []).append(run)
    ranked = [_judge(name, parts, counted) for name, parts in found.items()]
    return sorted(ranked, key=lambda r: -r.score)


def _judge(name: str, runs: Mapping[str, list[Run]], weights: Mapping[str, float]) -> Recommendation:
    evidence = {
        "utilisation, alone": Estimate.of([r.summary.utilisation for r in runs["alone"]]),
        "utilisation, two": Estimate.of([r.summary.utilisation for r in runs["two"]]),
        "fairness, two": Estimate.of([r.summary.fairness for r in runs["two"]]),
        "friendliness": Estimate.of([r.summary.fairness for r in runs["friendly"]]),
        "RTT fairness": Estimate.of([r.summary.fairness for r in runs["rtts"]]),
        "retransmitted, two": Estimate.of([_share(r) for r in runs["two"]]),
        "fair share, s": Estimate.of([r.summary.fair_share_s for r in runs["two"]]),
    }
    value = {key: e.mean for key, e in evidence.items()}
    time = value["fair share, s"]
    # Only runs in which a fair share was reached have a time: the share of such runs counts too.
    reached = evidence["fair share, s"].values / evidence["fair share, s"].repeats
    scores = {
        "fairness": sum(value[key] or 0 for key in ("fairness, two", "friendliness", "RTT fairness")) / 3,
        "throughput": ((value["utilisation, alone"] or 0) + (value["utilisation, two"] or 0)) / 2,
        "overhead": 1 / (1 + (value["retransmitted, two"] or 0) / OVERHEAD_HALF),
        "convergence": 0.0 if time is None else reached / (1 + time / CONVERGENCE_HALF_S),
    }
    total = sum(weights.values())
    score = sum(weights[key] * scores[key] for key in weights) / total if total else 0.0
    return Recommendation(name, score, scores, evidence)
