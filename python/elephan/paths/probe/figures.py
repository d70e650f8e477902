"""Figures with intervals, from series of packets."""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from elephan.paths.estimates import Value

Array = np.ndarray[Any, Any]
# Of the standard normal distribution, for an interval of 95 %.
Z = float(ndtri(0.975))
# Of a bootstrap: percentiles of 2.5 and 97.5 % need some hundreds.
RESAMPLES = 400


def share(count: int, of: int) -> tuple[float, float, float]:
    """A share and its interval by Wilson (1927), which holds for a count of zero, too."""
    if of == 0:
        return 0.0, 0.0, 1.0
    p, shrink = count / of, 1 + Z**2 / of
    centre = (p + Z**2 / (2 * of)) / shrink
    half = Z / shrink * math.sqrt(p * (1 - p) / of + Z**2 / (4 * of**2))
    # Rounding may leave the share itself just outside.
    return p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))


def share_value(count: int, of: int, method: str, cost: int) -> Value:
    """A share as a figure."""
    p, low, high = share(count, of)
    return Value(unit="1", value=p, low=low, high=high, method=method, cost_bytes=cost)


def median(samples: Array) -> tuple[float, float, float]:
    """The median and its interval by order statistics, whatever the distribution. With fewer than six values, all of them."""
    ordered = np.sort(samples)
    count = len(ordered)
    rank = int(binom.ppf(0.025, count, 0.5))
    low = max(rank - 1, 0)
    return float(np.median(ordered)), float(ordered[low]), float(ordered[count - 1 - low])


def median_rate(rates: Array, method: str, cost: int) -> Value:
    """The median of rates in bit/s as a figure."""
    value, low, high = median(rates)
    return Value(unit="bit/s", value=value, low=low, high=high, method=method, cost_bytes=cost)


def slope(x: Array, y: Array) -> float:
    """The slope of the line of least squares."""
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())


def lower_line(sizes: Array, times: Array) -> tuple[float, float]:
    """Intercept and slope of the line through the shortest time of each size."""
    each = np.unique(sizes).astype(float)
    least = np.array([times[sizes == size].min() for size in each])
    steep = slope(each, least)
    return float(least.mean() - steep * each.mean()), steep


def lower_line_interval(sizes: Array, times: Array, seed: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of `lower_line`'s intercept and slope, by a bootstrap over the packets of each size."""
    random = np.random.default_rng(seed)
    groups = [times[sizes == size] for size in np.unique(sizes)]
    each = np.unique(sizes).astype(float)
    found = []
    for _ in range(RESAMPLES):
        least = np.array([random.choice(group, len(group)).min() for group in groups])
        steep = slope(each, least)
        found.append((least.mean() - steep * each.mean(), steep))
    low, high = np.percentile(np.array(found), [2.5, 97.5], axis=0)
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def around(unit: str, value: float, low: float, high: float, method: str, cost: int) -> Value:
    """A figure with an interval that holds it: that of a resampled minimum may lie on one side. Nothing is below zero."""
    value = max(0.0, value)
    low, high = max(0.0, min(low, value)), max(high, value)
    return Value(unit=unit, value=value, low=low, high=high, method=method, cost_bytes=cost)


def drift(at: Array, delay: Array) -> float:
    """How fast one clock gains on the other, s/s: the slope of the shortest delays of eighths of the time.

    A path whose delay itself changes that steadily cannot be told from clocks that drift.
    """
    if len(at) < 64:
        return 0.0
    edges = np.linspace(at.min(), at.max(), 9)
    places = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, 7)
    points = [
        (at[places == k][i], delay[places == k][i])
        for k in range(8)
        if (places == k).any()
        for i in [int(delay[places == k].argmin())]
    ]
    x, y = np.array(points).T
    # Theil and Sen: the median of the slopes between all pairs, which a quarter of bad points does not move.
    pairs = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)) if x[j] > x[i]]
    return float(np.median(pairs)) if pairs else 0.0
