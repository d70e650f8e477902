"""Figures: one style for all of them, in one place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from elephan.compare import Comparison
    from elephan.results import Run

# Okabe and Ito's colours, which colour-blind readers tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]

STYLE: Any = {
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.labelcolor": "#333333",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "xtick.color": "#666666",
    "ytick.color": "#666666",
}

# What can be drawn: column, factor, label of the axis.
QUANTITIES = {
    "cwnd": ("cwnd_segments", 1.0, "cwnd (segments)"),
    "goodput": ("goodput_bit_s", 1e-6, "goodput (Mbit/s)"),
    "srtt": ("srtt_s", 1e3, "smoothed RTT (ms)"),
    "queue": ("packets", 1.0, "queue (packets)"),
}
# Beyond so many, flows are not told apart by colour.
MOST_LINES = len(COLOURS)
# Points of a line: more than a screen has columns; the extremes of each bin are kept.
MOST_POINTS = 2000


def _thin(time: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Keep the smallest and largest value of each of `MOST_POINTS / 2` bins, so that no peak is hidden."""
    if len(value) <= MOST_POINTS:
        return time, value
    edges = np.linspace(0, len(value), MOST_POINTS // 2 + 1).astype(int)[:-1]
    bins = np.split(np.arange(len(value)), edges[1:])
    keep = np.unique(np.concatenate([[b[value[b].argmin()], b[value[b].argmax()]] for b in bins]))
    return time[keep], value[keep]


def _lines(axes: Axes, run: "Run", what: str) -> None:
    column, factor, label = QUANTITIES[what]
    if what == "queue":
        frame = run.queues
        lines = [(link.name, pl.col("link") == link.name) for link in run.summary.links[:1]]
    else:
        frame = run.flows
        lines = [(f"{label} ({flow})", pl.col("flow") == flow) for flow, label in enumerate(run.labels)]
    for name, chosen in lines[:MOST_LINES]:
        line = frame.filter(chosen)
        time, value = _thin(line["time_s"].to_numpy(), line[column].to_numpy() * factor)
        axes.plot(time, value, label=name)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, run.summary.to_s)


def over_time(run: "Run", what: str = "cwnd") -> Figure:
    """Draw one quantity of a run over time: `cwnd`, `goodput`, `srtt` or `queue`."""
    if what not in QUANTITIES:
        raise ValueError(f"plot: expected one of {', '.join(QUANTITIES)}, found {what!r}")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.2))
        axes = figure.subplots()
        _lines(axes, run, what)
        axes.set_xlabel("time (s)")
        axes.set_title(run.scenario.name)
        axes.legend(loc="upper right", ncols=4)
        return figure


def comparison(result: "Comparison", what: str = "cwnd") -> Figure:
    """Draw one quantity over time for each algorithm of a comparison, from its first repeat."""
    names: Sequence[str] = list(result.runs)
    columns = 2 if len(names) > 1 else 1
    rows = -(-len(names) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.6 * columns, 1.7 * rows + 0.4))
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, name in zip(grid.flat, names, strict=False):
            _lines(axes, result.runs[name][0], what)
            axes.set_title(name)
            axes.set_ylabel("")
        for axes in list(grid.flat)[len(names) :]:
            axes.set_visible(False)
        figure.supxlabel("time (s)", fontsize=9)
        figure.supylabel(QUANTITIES[what][2], fontsize=9)
        return figure
