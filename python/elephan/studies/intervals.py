"""Pictures of estimates: each with its 95 % confidence interval."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np

from elephan.api.metrics import Metric
from elephan.base.plots import COLOURS, STYLE, Figure
from elephan.base.text import drawn
from elephan.studies.statistics import Estimate

# Panels side by side, the width of one and the height of a row within one, in inches.
ACROSS, WIDTH, HEIGHT = 4, 2.3, 0.2


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
