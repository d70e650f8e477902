"""Pictures of estimates: each with its 95 % confidence interval."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np

from elephan import _core
from elephan.api.metrics import Metric
from elephan.base.plots import COLOURS, STYLE, Figure
from elephan.base.text import drawn
from elephan.studies.statistics import Estimate

# Panels side by side, the width of one and the height of a row within one, in inches.
ACROSS, WIDTH, HEIGHT = 4, 2.3, 0.2
# An axis is logarithmic if its values differ by more than this factor; it has a tick for each of them if they are few.
FAR, MOST_TICKS = 6, 12


def figure(found: Mapping[str, Mapping[str, Estimate]], metrics: Sequence[Metric]) -> Figure:
    """A panel for each metric, with the estimates of each name. Metrics that are undefined for all names are left out."""
    shown = [metric for metric in metrics if any(one[metric.name].mean is not None for one in found.values())]
    names = list(found)
    across = min(ACROSS, max(len(shown), 1))
    down = max(1, -(-len(shown) // across))
    with mpl.rc_context({**STYLE, "axes.titlesize": 9, "font.size": 8}):
        made = Figure(figsize=(WIDTH * across + 0.6, (HEIGHT * len(names) + 0.65) * down))
        grid = made.subplots(down, across, sharey=True, squeeze=False)
        for axes, metric in zip(grid.flat, shown, strict=False):
            estimates = [one[metric.name] for one in found.values()]
            place = [number for number, one in enumerate(estimates) if one.mean is not None]
            mean = np.array([one.mean for one in estimates if one.mean is not None])
            beside = np.array([one.beside for one in estimates if one.mean is not None]).T
            axes.errorbar(mean, place, xerr=beside, fmt="o", color=COLOURS[0], markersize=3.5, capsize=2, elinewidth=1)
            axes.set_title(drawn(metric.label, 40))
            # Differences are seen in proportion, except where all values are far from zero.
            low, high = np.min(mean - beside[0]), np.max(mean + beside[1])
            if 0 <= low < 0.5 * high:
                axes.set_xlim(left=0)
        for axes in list(grid.flat)[len(shown) :]:
            axes.set_visible(False)
        grid[0][0].set_yticks(range(len(names)), [drawn(name, 24) for name in names])
        grid[0][0].set_ylim(len(names) - 0.5, -0.5)
        return made


def over(
    found: Mapping[str, Mapping[Any, Estimate]], key: str, metric: Metric, by: str, shown: Callable[[Any], str]
) -> Figure:
    """A line for each value of `by`: estimates of a metric over the values of a key, which `shown` writes as text."""
    values = list(dict.fromkeys(value for one in found.values() for value in one))
    numeric = are_numbers(values)
    # Words are in a row.
    places = {value: _number(value) or 0.0 if numeric else float(place) for place, value in enumerate(values)}
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(7.5, 3.2))
        axes = made.subplots()
        lowest = []
        for number, (name, one) in enumerate(found.items()):
            points = sorted((places[value], estimate) for value, estimate in one.items() if estimate.mean is not None)
            x, y = [place for place, _ in points], np.array([estimate.mean for _, estimate in points], dtype=float)
            beside = np.array([estimate.beside for _, estimate in points]).reshape(-1, 2).T
            colour = COLOURS[number % len(COLOURS)]
            # A line between words would show values that there are not.
            style = "o-" if numeric else "o"
            axes.errorbar(x, y, yerr=beside, label=drawn(name), color=colour, fmt=style, markersize=3.5, capsize=2.5)
            lowest += list(y - beside[0])
        if all(place > 0 for place in places.values()) and max(places.values()) > FAR * min(places.values()):
            axes.set_xscale("log")
            axes.minorticks_off()
        if len(values) <= MOST_TICKS:
            axes.set_xticks([places[value] for value in values], [drawn(shown(value), 16) for value in values])
        axes.margins(x=0.05 if numeric else 0.25)
        axes.set_xlabel(drawn(key))
        axes.set_ylabel(drawn(metric.label))
        if min(lowest, default=0.0) >= 0:
            axes.set_ylim(bottom=0)
        if by:
            axes.legend(title=drawn(by), loc="upper left", bbox_to_anchor=(1, 1))
        return made


def _number(value: Any) -> float | None:
    """The number that a value of a key is, in SI units; None for a word."""
    if isinstance(value, str):
        found = _core.quantity(value)
        return None if found is None else found[0]
    return float(value) if isinstance(value, int | float) else None


def are_numbers(values: Sequence[Any]) -> bool:
    """Whether all values of a key are numbers or quantities."""
    return all(_number(value) is not None for value in values)
