"""Statistics over repeats: confidence intervals, paired comparisons, number of repeats, and end of the warm-up."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.special import stdtrit

from elephan._core import ScenarioError
from elephan.base.numbers import measured, significant

LEVEL = 0.95
# Resamples of a bootstrap interval: Efron and Tibshirani 1993, section 14.3, want 1000 or more; the order of the last
# digit shown is steady with ten times as many.
RESAMPLES = 9_999
BATCH = 5

Interval = Literal["t", "bootstrap"]
Samples = Sequence[float | None]
Named = TypeVar("Named")


def defined(samples: Samples) -> list[float]:
    """The samples that are defined: a flow may not converge, for one."""
    return [float(sample) for sample in samples if sample is not None and math.isfinite(sample)]


@dataclass(frozen=True)
class Estimate:
    """An estimate of a metric from repeats.

    `low` and `high` bound the 95 % confidence interval of the mean (of the median, where `centre` is that); none with fewer
    than two values. `values` counts the repeats in which the metric is defined, out of `repeats`.
    """

    mean: float | None
    median: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    values: int
    repeats: int

    @classmethod
    def of(
        cls,
        samples: Samples,
        interval: Interval = "t",
        centre: Literal["mean", "median"] = "mean",
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> "Estimate":
        """Estimate from one sample for each repeat.

        `within` bounds what a sample can be. The interval is cut there, which excludes no possible mean, so that its coverage
        stays; an interval that never leaves the samples' range, such as a bootstrap of two, would cover too seldom.

        `t` is Student's interval of the mean, for samples that are about normal. `bootstrap` is the bias-corrected and
        accelerated one (Efron 1987) of the mean or the median, from 9999 resamples with a fixed seed.
        """
        values = np.array(defined(samples))
        n, repeats = len(values), len(samples)
        if n == 0:
            return cls(None, None, None, None, None, 0, repeats)
        mean, median = float(values.mean()), float(np.median(values))
        if n == 1:
            return cls(mean, median, None, None, None, 1, repeats)
        error = float(values.std(ddof=1)) / math.sqrt(n)
        if interval == "bootstrap":
            low, high = _bootstrap(values, np.mean if centre == "mean" else np.median)
        elif centre == "median":
            raise ScenarioError("interval: expected bootstrap for a median, found t")
        else:
            half = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * error
            low, high = max(mean - half, within[0]), min(mean + half, within[1])
        return cls(mean, median, error, low, high, n, repeats)

    @property
    def half_width(self) -> float | None:
        """Half of the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def beside(self) -> tuple[float, float]:
        """How far the interval goes below and above the mean, for error bars; zero if there is none."""
        if self.mean is None or self.low is None or self.high is None:
            return 0.0, 0.0
        return self.mean - self.low, self.high - self.mean

    @property
    def identical(self) -> bool:
        """Whether several repeats gave the same value: then their number tells nothing of the uncertainty."""
        return self.values > 1 and self.standard_error == 0

    def scaled(self, factor: float) -> "Estimate":
        """The estimate in another unit."""
        figures = {name: getattr(self, name) for name in ("mean", "median", "standard_error", "low", "high")}
        return replace(self, **{name: value * factor for name, value in figures.items() if value is not None})

    def text(self, digits: int | None = None, centre: Literal["mean", "median"] = "mean") -> str:
        """The estimate as `207.6 ± 1.3`, with the number of repeats in which it is defined where that is not all.

        With `digits` after the point, or as many as fit its size. An interval that is not symmetric, as that of a median or
        at the end of a share's range, is `207.6 [206.0, 209.1]`. Values that are all the same have none.
        """
        value = self.mean if centre == "mean" else self.median
        if value is None:
            return "never"

        def shown(number: float | None) -> str:
            return significant(number or 0.0) if digits is None else f"{number:.{digits}f}"

        half = self.half_width
        if half is None or self.identical:
            text = shown(value)
        elif centre == "median" or not math.isclose(
            (self.low or 0.0) + half, value, rel_tol=1e-9, abs_tol=1e-12 * half
        ):
            text = f"{shown(value)} [{shown(self.low)}, {shown(self.high)}]"
        else:
            text = measured(value, half) if digits is None else f"{shown(value)} ± {half:,.{digits}f}"
        return text if self.values == self.repeats else f"{text} ({self.values}/{self.repeats})"


def _bootstrap(values: np.ndarray[Any, Any], statistic: Any) -> tuple[float, float]:
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    # Imported by those who need it: it would be most of the time in which every command starts.
    from scipy import stats  # noqa: PLC0415

    method = "BCa"
    for _ in range(2):
        with np.errstate(all="ignore"):
            interval = stats.bootstrap(
                (values,),
                statistic,
                confidence_level=LEVEL,
                n_resamples=RESAMPLES,
                method=method,
                rng=np.random.default_rng(1),
            ).confidence_interval
        if math.isfinite(interval.low) and math.isfinite(interval.high):
            return float(interval.low), float(interval.high)
        # The acceleration is undefined where the jackknife values are all the same; the percentiles are not.
        method = "percentile"
    raise AssertionError("percentiles of finite numbers are finite")


@dataclass(frozen=True)
class Paired:
    """A paired comparison of two algorithms or settings with common random numbers.

    `difference` is the mean of first minus second over the pairs, with its 95 % Student-t interval. `effect` is Cohen's d of
    paired samples, the mean difference over the standard deviation of the differences. `p_t` and `p_wilcoxon` are two-sided.
    None where it is undefined: for fewer than two pairs, or where all differences are the same.
    """

    pairs: int
    first: float | None
    second: float | None
    difference: Estimate
    effect: float | None
    p_t: float | None
    p_wilcoxon: float | None

    @classmethod
    def of(cls, first: Mapping[int, float | None], second: Mapping[int, float | None]) -> "Paired":
        """Compare the samples that have the same key: the seed. Pairs in which either is undefined do not count."""
        pairs = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
        both = np.array([pair for pair in pairs if len(defined(pair)) == 2], dtype=float).reshape(-1, 2)
        differences = both[:, 0] - both[:, 1]
        estimate = Estimate.of(differences.tolist())
        mean, other = both.mean(axis=0).tolist() if len(both) else (None, None)
        effect = p_t = p_wilcoxon = None
        # One number says nothing of chance, and neither do several that are all the same.
        if len(both) > 1 and np.ptp(differences) != 0:
            from scipy import stats  # noqa: PLC0415

            effect = float(differences.mean() / differences.std(ddof=1))
            p_t = float(stats.ttest_rel(both[:, 0], both[:, 1]).pvalue)
            p_wilcoxon = float(stats.wilcoxon(differences).pvalue)
        return cls(len(both), mean, other, estimate, effect, p_t, p_wilcoxon)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for their number (Holm 1979), to control false positives in many comparisons."""
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[index] = largest
    return adjusted


# What is said of a best that `notable` finds.
NOTABLE = "better than each other algorithm (paired t-tests over the repeats, adjusted by Holm, p < 0.05)"


def notable(samples: Mapping[Named, Mapping[int, float | None]], better: str) -> Named | None:
    """The name whose mean is best, if it differs from that of each other name; None where that is not certain.

    A sample belongs to a seed: the names are compared by the t-test of pairs with the same seed, adjusted for their number
    (Holm), at 5 %. `better` is `higher` or `lower`; for another word nothing is best. There is none either where a sample is
    undefined, with fewer than two repeats, and where all differences are the same.
    """
    sign = {"higher": 1.0, "lower": -1.0}.get(better)
    values = {name: defined(list(one.values())) for name, one in samples.items()}
    if sign is None or len(samples) < 2 or any(not v or len(v) < len(samples[name]) for name, v in values.items()):
        return None
    best = max(values, key=lambda name: sign * sum(values[name]) / len(values[name]))
    adjusted = holm([Paired.of(samples[best], one).p_t for name, one in samples.items() if name != best])
    return best if all(p is not None and p < 1 - LEVEL for p in adjusted) else None


@dataclass(frozen=True)
class Tight:
    """A condition such as `ci(fairness) < 5%`: the half-width of the 95 % interval is below a share of the mean or a number."""

    metric: str
    bound: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> "list[Tight]":
        """Read one condition, or several joined by `and`."""
        found = []
        for part in re.split(r"\band\b", text):
            match = re.fullmatch(r"\s*ci\(\s*([\w.]+)\s*\)\s*<=?\s*([0-9.eE+-]+)\s*(%?)\s*", part)
            try:
                bound = float(match[2]) if match else math.nan
            except ValueError:
                bound = math.nan
            if match is None or not bound > 0:
                raise ScenarioError(f'until: expected a condition such as "ci(fairness) < 5%", found "{part.strip()}"')
            found.append(cls(match[1], bound / 100 if match[3] else bound, bool(match[3])))
        return found

    def holds(self, estimate: Estimate) -> bool:
        """Whether the interval is tight enough; never with fewer than two values."""
        if estimate.half_width is None or estimate.mean is None:
            return False
        return estimate.half_width <= self._limit(estimate)

    def _limit(self, estimate: Estimate) -> float:
        return self.bound * abs(estimate.mean or 0.0) if self.relative else self.bound

    def repeats(self, estimate: Estimate) -> int:
        """How many repeats will do, as far as one can tell: the interval shrinks with the square root of their number."""
        have = estimate.repeats
        limit = self._limit(estimate)
        if estimate.half_width is None or limit == 0:
            return 2 * have
        # Not more than twice as many at once: the estimate of the spread is itself uncertain.
        return max(have + 1, min(2 * have, math.ceil(have * (estimate.half_width / limit) ** 2)))


def mser5(samples: np.ndarray[Any, Any]) -> int | None:
    """The number of warm-up samples at the start, by the rule MSER-5 (White, Cobb and Spratt 2000).

    The samples are averaged in batches of five; the warm-up is the number of batches whose removal makes the squared standard
    error of the rest least. None where that is beyond the middle: the series is too short to tell.
    """
    n = len(samples) // BATCH
    if n < 4:
        return None
    batches = samples[: n * BATCH].reshape(n, BATCH).mean(axis=1)
    # Sums from each batch to the end, of deviations from one of them: no cancellation where the mean is large.
    deviations = batches - batches[-1]
    left = np.arange(n, 0, -1)
    sums = np.cumsum(deviations[::-1])[::-1]
    squares = np.cumsum((deviations**2)[::-1])[::-1]
    errors = (squares - sums**2 / left) / left.astype(float) ** 2
    # With fewer than five batches left, the error is small by chance (White and Robinson 2010).
    best = int(np.argmin(errors[: max(1, n - BATCH)]))
    return None if best > n // 2 else best * BATCH
