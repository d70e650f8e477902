"""How a published number or claim is judged: by intervals over repeats, and never by a run that was not alive.

A *place* is one point of the population of which a claim speaks: a statistic of some runs, and the bound that it must keep. A
*quantity* is a published number beside the same number from our runs. Both are judged after a few repeats, and again after
more of them if that did not decide. The error rate is controlled: each of the L looks at the samples uses intervals of level
1 - 0.05/L (Bonferroni), and a claim about all of m places is refuted by one of them only at level 1 - 0.05/(L m). It is
confirmed where every place holds, which needs no such correction (intersection-union test, Berger 1982). A claim about some
place is the mirror image of that.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.numbers import significant

ALPHA = 0.05
# A run in which flows spent more than this share of their time waiting for retransmission timeouts is not alive.
MOST_IN_TIMEOUTS = 0.2
# Nor is one whose flows together had less than this share of what Standard TCP would carry alone.
LEAST_OF_STANDARD = 0.05
# From so many repeats on, equal numbers from runs that differ are certain: an event of 30 % would show in 97 % of such tests.
EQUAL_FROM = 10


class Verdict(StrEnum):
    """What a claim or a comparison comes to."""

    AGREES = "agrees"
    ORDERING = "same ordering"
    DIFFERS = "differs"
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    DEPENDENT = "dependent on an unpublished choice"
    UNDECIDED = "undecided"
    UNTESTABLE = "untestable here"


class Kind(StrEnum):
    """What is compared with what. The kinds are counted apart."""

    FORMULA = "formula"
    THEORY = "theory"
    SIMULATION = "simulation"
    KERNEL = "kernel"


KINDS = {
    Kind.FORMULA: "formula against printed formula",
    Kind.THEORY: "theory against our simulation",
    Kind.SIMULATION: "simulation against printed measurement",
    Kind.KERNEL: "kernel against printed measurement",
}


@dataclass(frozen=True)
class Arm:
    """A scenario, by a name that the laboratory knows, with some keys changed, without a seed: a run that a place needs."""

    scenario: str
    settings: tuple[tuple[str, str], ...] = ()

    def set(self, settings: "dict[str, str]") -> "Arm":
        """The same with other values for some keys."""
        return Arm(self.scenario, tuple({**dict(self.settings), **settings}.items()))


@dataclass(frozen=True)
class Time:
    """A time until something happened, or until the end of a test in which it did not happen (censored)."""

    seconds: float
    seen: bool


# What is read from the runs of one repeat: a number, a time, a pair of times (for `earlier`), or none if it is undefined.
Sample = float | Time | tuple[Time, Time] | None
# mean: Student's interval. share: Clopper and Pearson's interval of a proportion. median: of times, by Kaplan and Meier.
# earlier: log-rank test of two sets of times; its value is the share of pairs in which the first is earlier. every: the samples
# themselves, of which nothing is inferred: the mean, and the least and the greatest.
Statistic = Literal["mean", "share", "median", "earlier", "every"]


@dataclass(frozen=True)
class Place:
    """One point of the population of a claim.

    Repeat k runs each of the `arms` with seed k; `read` takes these runs in their order. It holds where the statistic is above
    `above` and below `below`. Without arms, `read` takes nothing and its value is exact. `may_collapse` names arms, by index,
    that need not be alive, because their collapse is what the claim is about. Of every sample, so many `repeats` have to hold.
    """

    name: str
    arms: tuple[Arm, ...]
    read: Callable[..., Sample]
    above: float | None = None
    below: float | None = None
    unit: str = ""
    statistic: Statistic = "mean"
    may_collapse: tuple[int, ...] = ()
    repeats: int = 0


@dataclass(frozen=True)
class Interval:
    """An estimate, and the bounds of its interval; infinite where nothing bounds it."""

    value: float
    low: float
    high: float
    repeats: int
    # Whether every repeat gave the same: nothing random had an effect, and more repeats would tell nothing.
    same: bool = False

    @property
    def text(self) -> str:
        """`0.31 [0.20, 0.42]`."""
        if math.isnan(self.value):
            return "undefined"
        if self.low == self.high:
            return significant(self.value)
        if math.isinf(self.low):
            return f"{_shown(self.value)} (no interval)"
        return f"{_shown(self.value)} [{_shown(self.low)}, {_shown(self.high)}]"


def _shown(value: float) -> str:
    return significant(value, 3) if math.isfinite(value) else "never"


def interval(samples: Sequence[Sample], statistic: Statistic, alpha: float, *, same: bool = False) -> Interval:
    """The statistic of samples, one of each repeat, with its interval of level 1 - `alpha`.

    `same`: the runs themselves are equal, because nothing in them is random, so that one would have told as much.
    """
    n = len(samples)
    unknown = Interval(math.nan, -math.inf, math.inf, n)
    if n == 0 or any(sample is None for sample in samples):
        return unknown
    if statistic == "mean":
        return _mean(np.array(samples, float), alpha, same=same)
    if statistic == "every":
        return _every([_number(sample) for sample in samples])
    if statistic == "share":
        return _share(sum(bool(sample) for sample in samples), n, alpha)
    if statistic == "median":
        return _median([sample for sample in samples if isinstance(sample, Time)], alpha, same=same)
    return _earlier([sample for sample in samples if isinstance(sample, tuple)], alpha)


def _mean(values: np.ndarray[Any, Any], alpha: float, *, same: bool) -> Interval:
    n, mean = len(values), float(values.mean())
    if not math.isfinite(mean):
        return Interval(math.nan, -math.inf, math.inf, n)
    if same:
        return Interval(mean, mean, mean, n, same=True)
    # Runs that differ but give equal numbers may hide a rare event: a few of them are not enough.
    if n == 1 or (n < EQUAL_FROM and np.ptp(values) == 0):
        return Interval(mean, -math.inf, math.inf, n)
    half = float(stdtrit(n - 1, 1 - alpha / 2)) * float(values.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def _number(sample: Sample) -> float:
    if isinstance(sample, Time):
        return sample.seconds if sample.seen else math.inf
    assert isinstance(sample, int | float)
    return float(sample)


def _every(values: Sequence[float]) -> Interval:
    if any(map(math.isnan, values)):
        return Interval(math.nan, -math.inf, math.inf, len(values))
    return Interval(sum(values) / len(values), min(values), max(values), len(values))


def _share(found: int, n: int, alpha: float) -> Interval:
    from scipy import stats

    bounds = stats.binomtest(found, n).proportion_ci(1 - alpha, "exact")
    return Interval(found / n, float(bounds.low), float(bounds.high), n)


def _censored(times: Sequence[Time]) -> Any:
    from scipy import stats

    seen = [time.seconds for time in times if time.seen]
    return stats.CensoredData(uncensored=seen, right=[time.seconds for time in times if not time.seen])


def _median(times: Sequence[Time], alpha: float, *, same: bool) -> Interval:
    """The median by Kaplan and Meier; its interval is where the log-log interval of the survival function crosses one half."""
    from scipy import stats

    n = len(times)
    if same:
        value = _number(times[0])
        return Interval(value, value, value, n, same=True)
    if not any(time.seen for time in times):
        # Nothing was seen: the median is beyond the end unless chance hid it (n repeats all in the upper half).
        return Interval(math.inf, min(time.seconds for time in times) if 0.5**n < alpha / 2 else 0.0, math.inf, n)
    survival = stats.ecdf(_censored(times)).sf
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # The variance is undefined where no test survives; `crosses` takes that as no bound.
        warnings.filterwarnings("ignore", "The confidence interval is undefined")
        bounds = survival.confidence_interval(1 - alpha, method="log-log")

    def crosses(function: Any) -> float:
        below = np.flatnonzero(np.nan_to_num(function.probabilities, nan=0.0 if function is bounds.low else 1.0) <= 0.5)
        return float(function.quantiles[below[0]]) if len(below) else math.inf

    value = crosses(survival)
    # The order statistics bound a median whatever the estimate of its variance.
    bounded = 0.5**n < alpha / 2
    low, high = crosses(bounds.low) if bounded else 0.0, crosses(bounds.high)
    if bounded and all(time.seen for time in times):
        high = min(high, max(time.seconds for time in times))
    return Interval(value, min(low, value), max(value, high), n)


def _earlier(pairs: Sequence[tuple[Time, Time]], alpha: float) -> Interval:
    """The share of all pairs in which the first is earlier; on one side of one half only if the log-rank test decides."""
    from scipy import stats

    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    wins = [_wins(a, b) for a in first for b in second]
    value = float(np.mean(wins))
    n = len(pairs)
    if not any(time.seen for time in (*first, *second)) or n < 2:
        return Interval(value, 0.0, 1.0, n)
    with np.errstate(all="ignore"):
        p = float(stats.logrank(_censored(first), _censored(second)).pvalue)
    # The test is asymptotic: with few repeats no order of them is as unlikely as it may say.
    p = max(p, 2 / math.comb(2 * n, n))
    if not p < alpha or value == 0.5:
        return Interval(value, 0.0, 1.0, n)
    # On one side of one half, however close.
    if value > 0.5:
        return Interval(value, math.nextafter(0.5, 1.0), 1.0, n)
    return Interval(value, 0.0, math.nextafter(0.5, 0.0), n)


def _wins(a: Time, b: Time) -> float:
    """1 if the first is known to be earlier, 0 if later, one half if that is not known or they are equal."""
    if a.seconds == b.seconds:
        return 0.5 if a.seen == b.seen else float(a.seen)
    early = min(a, b, key=lambda time: time.seconds)
    return 0.5 if not early.seen else float(early is a)


@dataclass(frozen=True)
class Finding:
    """What was found at a place: whether it holds (None: undecided), and why it could not be asked if so."""

    name: str
    unit: str
    found: Interval
    holds: bool | None
    # So clearly decided that this place among several is enough: to refute a claim about all, or to confirm one about some.
    alone: bool = False
    # A run was not alive, or an engine cannot express the arms: the reason.
    unusable: str = ""
    above: float | None = None
    below: float | None = None


def judged(
    place: Place, samples: Sequence[Sample], looks: int, places: int, *, same: bool = False, unusable: str = ""
) -> Finding:
    """Judge one place of `places` by its samples, which may be `unusable`; `same` as for `interval`.

    Without arms and samples its value is exact.
    """
    if not place.arms and not samples:
        samples, same = [place.read()], True

    def side(alpha: float) -> bool | None:
        if place.statistic == "every" and not all(keeps(place, sample) for sample in samples):
            return False
        found = interval(samples, place.statistic, alpha, same=same)
        if (place.above is None or found.low > place.above) and (place.below is None or found.high < place.below):
            return True if place.statistic != "every" or same or len(samples) >= place.repeats else None
        # A tie with the bound decides nothing.
        fails = (place.above is not None and found.high < place.above) or (
            place.below is not None and found.low > place.below
        )
        return False if fails else None

    holds = None if unusable else side(ALPHA / looks)
    return Finding(
        place.name,
        place.unit,
        interval(samples, place.statistic, ALPHA / looks, same=same),
        holds,
        alone=holds is not None and side(ALPHA / looks / places) is holds,
        unusable=unusable,
        above=place.above,
        below=place.below,
    )


def keeps(place: Place, sample: Sample) -> bool:
    """Whether a sample keeps the bounds of its place, or is unknown."""
    value = math.nan if sample is None else _number(sample)
    return not (
        (place.above is not None and value <= place.above) or (place.below is not None and value >= place.below)
    )


@dataclass(frozen=True)
class Claim:
    """A published claim, and the rule by which it is decided.

    `sentence` is what the source says, in our words, of the `population` of points; `statistic` is what is read at each of
    them, `bound` what it must keep and where that comes from. The claim holds if `every` place holds, or if `some` does.
    The three lines of a refuted claim: what was `tried` to make it hold; an `oracle`, why neither ns-2 nor a kernel can answer,
    if so; and what it `means` for a reader of the source.
    """

    id: str
    sentence: str
    population: str
    statistic: str
    bound: str
    rule: Literal["every", "some"] = "every"
    kind: Kind = Kind.SIMULATION
    tried: str = ""
    oracle: str = ""
    means: str = ""


def decided(findings: Sequence[Finding], rule: Literal["every", "some"]) -> Verdict:
    """The verdict on a claim from what was found at its places."""
    usable = [one for one in findings if not one.unusable]
    if not usable:
        return Verdict.UNTESTABLE
    holds, fails = [one.holds is True for one in usable], [one.holds is False for one in usable]
    whole = len(usable) == len(findings)
    if rule == "every":
        if any(one.holds is False and one.alone for one in usable):
            return Verdict.REFUTED
        return Verdict.CONFIRMED if whole and all(holds) else Verdict.UNDECIDED
    if any(one.holds and one.alone for one in usable):
        return Verdict.CONFIRMED
    return Verdict.REFUTED if whole and all(fails) else Verdict.UNDECIDED


def over_sets(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a claim from those under several sets of unpublished choices, of those that could be tested."""
    tested = [one for one in verdicts if one != Verdict.UNTESTABLE]
    if not tested:
        return Verdict.UNTESTABLE
    if Verdict.CONFIRMED in tested and Verdict.REFUTED in tested:
        return Verdict.DEPENDENT
    # A set in which it is undecided does not contradict the others, but does not support them either.
    return tested[0] if len(set(tested)) == 1 else Verdict.UNDECIDED


@dataclass(frozen=True)
class Quantity:
    """A published number (None: "never"), and what is read from our runs in its place.

    Agreement is an interval of ours within `band` times the number, plus its printed uncertainty. Where that is the standard
    error of `of_repeats` runs, the half-width of its 95 % interval is taken. `arms`, `read` and `statistic` are a `Place`'s.
    """

    system: str
    published: float | None
    uncertainty: float | None
    arms: tuple[Arm, ...]
    read: Callable[..., Sample]
    statistic: Statistic = "mean"
    of_repeats: int = 0

    @property
    def tolerance(self) -> float:
        """The half-width of the printed interval; 0 if none was printed."""
        if not self.uncertainty or self.of_repeats < 2:
            return self.uncertainty or 0.0
        return self.uncertainty * float(stdtrit(self.of_repeats - 1, 1 - ALPHA / 2))

    @classmethod
    def exact(cls, system: str, published: float, value: float) -> "Quantity":
        """A quantity that is computed, not sampled."""
        return cls(system, published, None, (), lambda: value)


@dataclass(frozen=True)
class Row:
    """A published number beside ours, and whether they agree (None: undecided)."""

    system: str
    published: float | None
    uncertainty: float | None
    found: Interval
    agrees: bool | None
    unusable: str = ""
    # The half-width of the printed interval.
    tolerance: float = 0.0

    @property
    def deviation(self) -> float | None:
        """The relative deviation of our value."""
        if self.unusable or not self.published or not math.isfinite(self.found.value):
            return None
        return self.found.value / self.published - 1


def compared(
    quantity: Quantity, samples: Sequence[Sample], band: float, looks: int, *, same: bool = False, unusable: str = ""
) -> Row:
    """Compare a published number with samples of it; `same` and `unusable` as for `judged`."""
    if not quantity.arms:
        samples, same = [quantity.read()], True
    found = interval(samples, quantity.statistic, ALPHA / looks, same=same)
    agrees: bool | None = None
    if quantity.published is None:
        seen = [sample.seen if isinstance(sample, Time) else sample is not None for sample in samples]
        agrees = None if any(seen) and not all(seen) else not any(seen)
    elif not math.isnan(found.value):
        tolerance = band * abs(quantity.published) + quantity.tolerance
        low, high = quantity.published - tolerance, quantity.published + tolerance
        # A formula that gives the bound itself is not outside it because of its last binary digit.
        slack = 1e-9 * abs(quantity.published)
        if found.low >= low - slack and found.high <= high + slack:
            agrees = True
        elif found.high < low or found.low > high:
            agrees = False
    told = quantity.system, quantity.published, quantity.uncertainty
    return Row(*told, found, None if unusable else agrees, unusable, quantity.tolerance)


def agreement(rows: Sequence[Row]) -> Verdict:
    """The verdict on rows: they agree; pairs that differ in print are ordered alike by our intervals; or they differ."""
    usable = [row for row in rows if not row.unusable]
    if not usable:
        return Verdict.UNTESTABLE
    if all(row.agrees for row in usable) and len(usable) == len(rows):
        return Verdict.AGREES
    if all(row.agrees is not False for row in usable):
        return Verdict.UNDECIDED
    pairs = [
        (a, b) if a.published > b.published else (b, a)
        for a, b in combinations([row for row in usable if row.published is not None], 2)
        if a.published is not None
        and b.published is not None
        and abs(a.published - b.published) > a.tolerance + b.tolerance + 0.02 * abs(a.published)
    ]
    kept = bool(pairs) and all(larger.found.low > smaller.found.high for larger, smaller in pairs)
    return Verdict.ORDERING if kept else Verdict.DIFFERS


def dead(run: Run) -> str:
    """Why a run says nothing about congestion control; empty if it was alive.

    Each of its flows spent its time waiting for timeouts, or all together carried a small part of what one flow of Standard TCP
    would carry: by equation 5.6 of Li 2006 where the path loses nothing, and by the formula of Padhye et al. (1998) at its loss
    rate. Or a kernel ran it in real time, and the machine did not keep up.
    """
    document, summary = run.scenario.document, run.summary
    if because := run.provenance.get("quality", {}).get("invalid_because"):
        return f"the machine disturbed it: {because[0]}"
    measured_s = summary.to_s - summary.from_s
    if not summary.flows:
        return ""
    # A timeout waits for the minimum at least, a doubled one longer. A flow that starves beside others is a finding.
    tcp = run.scenario.shown.document["tcp"]
    rto_s = max(_core.seconds(tcp["rto_min"]), _core.seconds(tcp["rto_variance_min"]))
    least = min(flow.timeouts or 0 for flow in summary.flows)
    waiting = least * rto_s / measured_s
    if waiting > MOST_IN_TIMEOUTS:
        return f"{least} timeouts or more of each flow, which waited for them during at least {100 * waiting:.0f} % of the time"
    if "path" not in document:
        # What Standard TCP would carry is not computed for other topologies.
        return ""
    floor_bit_s = LEAST_OF_STANDARD * _standard_bit_s(run.scenario, rto_s, len(summary.flows))
    carried_bit_s = sum(flow.goodput_bit_s for flow in summary.flows)
    if carried_bit_s < floor_bit_s:
        return (
            f"its flows carried {significant(carried_bit_s / 1e6)} Mbit/s, "
            f"less than {LEAST_OF_STANDARD:.0%} of what Standard TCP would carry alone"
        )
    return ""


def _standard_bit_s(scenario: Scenario, rto_s: float, flows: int) -> float:
    """What a flow of Standard TCP would carry on the path, beside the scenario's datagrams and through `flows` access links."""
    path, plan = scenario.document["path"], scenario.plan
    link = plan["links"][plan["bottleneck"]]
    left = max(0.0, link["rate_bit_s"] - plan["constant_bit_s"])
    if weights := link["weights"]:
        # Datagrams of another class do not take what the flow's class is assured: the least of all classes here.
        left = max(left, link["rate_bit_s"] * min(weights) / sum(weights))
    if "access_rate" in path:
        left = min(left, flows * _core.bits_per_second(path["access_rate"]))
    left *= _core.utilisation_of(0.5, 0.0)
    loss = path.get("loss", {})
    rate = loss.get("probability") or (1 / loss["every"] if "every" in loss else 0.0)
    if not rate:
        return float(left)
    return float(min(left, _core.pftk_bit_s(rate, _core.seconds(path["rtt"]), rto_s, scenario.packet_bytes, 1.0)))
