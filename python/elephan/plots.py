"""Figures: one style for all of them, in one place."""

import contextlib
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elephan.folders import new_file
from elephan.metrics import METRICS
from elephan.text import Terminal, drawn, visible

if TYPE_CHECKING:
    from elephan.compare import Comparison
    from elephan.engines import Pair
    from elephan.report.content import Chart, Content, Group, Points, Runs, Table
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


@contextlib.contextmanager
def any_letters() -> Iterator[None]:
    """Draw letters that the font lacks as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a picture of the kind that its name ends with, PNG without an ending; as a whole or not at all."""
    with new_file(path) as place:
        write(figure, place, path.suffix.lstrip(".") or "png")


def write(figure: Figure, place: Path, kind: str) -> None:
    """Write a picture of this kind to a place that nobody reads yet."""
    with any_letters():
        figure.savefig(place, format=kind)


def save_beside(folder: Path, figures: Mapping[str, Callable[[], Figure]]) -> list[str]:
    """Draw figures into a results folder that is complete, as `NAME.png`; returns the names of those that are there.

    One that fails is a line on standard error.
    """
    there = []
    for name, draw in figures.items():
        picture = folder / f"{name}.png"
        try:
            save(draw(), picture)
            there.append(name)
        except Exception as error:
            reason = visible(str(error)) or type(error).__name__
            Terminal(stderr=True).message(f"{picture}: expected a picture, found: {reason}")
    return there


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
        axes.plot(time, value, label=drawn(name))
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, run.summary.to_s)


def _legend(axes: Axes, most: int, letters: int, **style: Any) -> None:
    """A legend with at most `most` columns, and fewer where the axes are not as wide: they take so many letters."""
    labels = axes.get_legend_handles_labels()[1]
    longest = max(map(len, labels), default=0) + 5
    axes.legend(ncols=max(1, min(most, letters // longest)), **style)


def engines(pair: "Pair") -> Figure:
    """Draw the windows of a scenario over time: the simulator's above, the kernel's below."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.6))
        axes = figure.subplots(2, 1, sharex=True, sharey=True)
        for place, run, title in zip(axes, (pair.sim, pair.counted[0]), ("simulator", "kernel"), strict=True):
            _lines(place, run, "cwnd")
            place.set_title(f"{drawn(pair.name, 80)}: {title}")
        axes[1].set_xlabel("time (s)")
        if len(pair.sim.labels) > 1:
            axes[0].legend()
        return figure


def over_time(run: "Run", what: str = "cwnd") -> Figure:
    """Draw one quantity of a run over time: `cwnd`, `goodput`, `srtt` or `queue`."""
    if what not in QUANTITIES:
        raise ValueError(f"plot: expected one of {', '.join(QUANTITIES)}, found {what!r}")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.2))
        axes = figure.subplots()
        _lines(axes, run, what)
        axes.set_xlabel("time (s)")
        axes.set_title(drawn(run.scenario.name, 80))
        _legend(axes, 4, 110, loc="upper right")
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
            axes.set_title(drawn(name))
            axes.set_ylabel("")
        for axes in list(grid.flat)[len(names) :]:
            axes.set_visible(False)
        figure.supxlabel("time (s)", fontsize=9)
        figure.supylabel(QUANTITIES[what][2], fontsize=9)
        return figure


def data_of(figure: Figure) -> pl.DataFrame:
    """The points of all lines of a figure: panel, line, x and y as they are drawn."""
    parts = [
        pl.DataFrame(
            {
                "panel": axes.get_title() or axes.get_title(loc="left") or str(number),
                "line": str(line.get_label()).removeprefix("_"),
                "x": np.asarray(line.get_xdata(), dtype=float),
                "y": np.asarray(line.get_ydata(), dtype=float),
            }
        )
        for number, axes in enumerate(figure.axes, start=1)
        for line in axes.lines
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


# A page of a report, in inches: A4 upright.
PAGE = (8.27, 11.69)


def of_content(content: "Content") -> list[Figure]:
    """The figures of a report: one for each group of charts, the metrics, and what is not over time."""
    with mpl.rc_context(STYLE):
        figures = [_xy(figure) for figure in content.figures]
        if content.runs is not None:
            figures.append(_metrics(content.runs))
        return [*figures, *(_group(group, content.title) for group in content.groups)]


def of_tables(content: "Content") -> list[Figure]:
    """The text of a report as pages: what was run, and the tables."""
    with mpl.rc_context(STYLE):
        first = Figure(figsize=PAGE)
        first.set_layout_engine("none")
        lines = [content.subtitle, "", *(f"{fact}: {value}" for fact, value in content.facts), "", *content.notes]
        if content.command:
            lines += ["", *_wrapped(content.command, 95)]
        first.text(0.08, 0.94, drawn(content.title, 60), fontsize=15, weight="bold", va="top")
        text = "\n".join(line for long in lines for line in _wrapped(long, 105))
        first.text(0.08, 0.91, text, fontsize=8.5, va="top", linespacing=1.5)
        tiles = [[tile.name, tile.value, tile.unit] for tile in content.tiles]
        if tiles:
            _cells(first, (0.08, 0.3, 0.5, 0.3), ["metric", "value", "unit"], tiles)
        tables = []
        for table in content.tables:
            for start in range(0, max(len(table.rows), 1), 45):
                tables.append(_table_page(table, start))
        return [first, *tables]


def _wrapped(text: str, width: int) -> list[str]:
    return [drawn(line, width) for line in textwrap.wrap(visible(text), width)] or [""]


def _cells(figure: Figure, where: tuple[float, float, float, float], head: list[str], rows: list[list[str]]) -> None:
    axes = figure.add_axes(where)
    axes.axis("off")
    shown = [[drawn(cell) for cell in row] for row in rows]
    cells = axes.table(shown, colLabels=head, loc="upper left", cellLoc="right", edges="horizontal")
    cells.auto_set_font_size(False)
    cells.set_fontsize(6.5 if len(head) > 8 else 8)
    cells.auto_set_column_width(list(range(len(head))))
    deepest = max(text.count("\n") for text in head) + 1
    for (row, _), cell in cells.get_celld().items():
        cell.set_edgecolor("#dddddd")
        if row == 0:
            cell.set_height(cell.get_height() * deepest)
            cell.set_text_props(color="#555555")


def _table_page(table: "Table", start: int) -> Figure:
    # Wide tables lie across.
    figure = Figure(figsize=PAGE[::-1] if len(table.head) > 6 else PAGE)
    figure.set_layout_engine("none")
    figure.text(0.06, 0.94, drawn(table.title, 80), fontsize=12, weight="bold", va="top")
    heads = [
        f"{drawn(head.text)}\n{head.unit.replace(', ', chr(10))}" if head.unit else drawn(head.text)
        for head in table.head
    ]
    _cells(figure, (0.06, 0.1, 0.88, 0.78), heads, table.rows[start : start + 45])
    figure.text(0.06, 0.9, "\n".join(_wrapped(table.note, 120)), fontsize=7.5, va="top")
    return figure


def _group(group: "Group", title: str) -> Figure:
    """Charts of a group below each other, over one axis of time."""
    charts = group.charts
    columns = 2 if len(charts) > 6 else 1
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=(7.5, 1.75 * rows + 0.5))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, chart in zip(grid.flat, charts, strict=False):
        _over_time(axes, chart)
    for axes in list(grid.flat)[len(charts) :]:
        axes.set_visible(False)
    figure.supxlabel("time (s)", fontsize=9)
    figure.set_label(f"{title}: {group.title.lower()}")
    figure.suptitle(f"{drawn(title, 60)}: {group.title.lower()}", fontsize=10, x=0.01, ha="left")
    return figure


def _over_time(axes: Axes, chart: "Chart") -> None:
    for line in chart.lines:
        time, value = _thin(chart.time_s, line.values)
        style = {"linestyle": ":", "linewidth": 0.7} if line.minor else {"label": drawn(line.name)}
        drawstyle = "steps-pre" if chart.steps else "default"
        axes.plot(time, value, color=COLOURS[line.colour % len(COLOURS)], drawstyle=drawstyle, **style)
    axes.set_title(f"{drawn(chart.title)} ({chart.unit})", fontsize=9)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    if len(chart.lines) > 1:
        _legend(axes, 8, 140, loc="lower right", bbox_to_anchor=(1, 0.98), fontsize=7, borderpad=0)


def _metrics(runs: "Runs") -> Figure:
    """Each metric along the first key whose values are numbers, or beside each other: means and 95 % intervals."""
    from elephan.sweeps.statistics import Estimate  # noqa: PLC0415 - which imports this module, too

    numeric, axis = runs.numeric(), runs.axis()
    varied = [k for k in range(len(runs.keys)) if runs.keys[k] not in ("seed", "repeat")]
    along = next((k for k in varied if numeric[k]), None)
    by = next((k for k in varied if k != along), None)
    names = list(dict.fromkeys(str(row[by]) if by is not None else "" for row in runs.settings))
    figure = Figure(figsize=(7.5, 7.0))
    grid = figure.subplots(3, 3, squeeze=False)
    for m, (axes, metric) in enumerate(zip(grid.flat, METRICS, strict=True)):
        for number, name in enumerate(names):
            chosen = [r for r, row in enumerate(runs.settings) if by is None or str(row[by]) == name]
            places = sorted({axis[r][along] or 0.0 for r in chosen}) if along is not None else [float(number)]
            values = [
                Estimate.of([runs.values[r][m] for r in chosen if along is None or (axis[r][along] or 0.0) == place])
                for place in places
            ]
            kept = [(place, value) for place, value in zip(places, values, strict=True) if value.mean is not None]
            axes.errorbar(
                [place for place, _ in kept],
                [value.mean for _, value in kept],
                yerr=[value.half_width or 0.0 for _, value in kept],
                marker="o",
                markersize=3.5,
                capsize=2.5,
                color=COLOURS[number % len(COLOURS)],
                label=drawn(name),
            )
        axes.set_title(f"{metric.name} ({metric.unit.split(',')[0]})", fontsize=8)
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
        if along is None:
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.set_xticks(range(len(names)), [drawn(name, 20) for name in names], rotation=45, ha="right", fontsize=7)
        else:
            named = {axis[r][along] or 0.0: str(row[along]) for r, row in enumerate(runs.settings)}
            if len(named) <= 6:
                axes.set_xticks(list(named), [drawn(name, 20) for name in named.values()], fontsize=7)
            axes.set_xlabel(drawn(runs.keys[along]), fontsize=7)
    if along is not None and len(names) > 1:
        handles, labels = grid.flat[0].get_legend_handles_labels()
        columns = max(1, min(6, 110 // (max(map(len, labels)) + 5)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure


def _xy(spec: "Points") -> Figure:
    figure = Figure(figsize=(7.5, 4))
    axes = figure.subplots()
    for one in spec.series:
        y = np.array([np.nan if value is None else value for value in one.y])
        line = ("--" if one.dashed else "-") if one.line else ""
        axes.plot(
            one.x,
            y,
            line,
            marker="o" if one.points else "",
            markersize=3.5,
            color=COLOURS[one.colour % 8],
            label=drawn(one.name),
        )
    axes.set_xscale("log" if spec.x.log else "linear")
    axes.set_yscale("log" if spec.y.log else "linear")
    axes.set_xlabel(spec.x.label)
    axes.set_ylabel(spec.y.label)
    axes.set_title(drawn(spec.title, 80))
    axes.legend()
    return figure


def sawtooth(run: "Run") -> Figure:
    """Draw the window of a run's first flow, and the bottleneck's queue beneath it."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "elephan"}):
        figure = Figure(figsize=(7.5, 3.4))
        window, queue = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
        _lines(window, run, "cwnd")
        _lines(queue, run, "queue")
        for line in queue.lines:
            line.set_color("#888888")
        queue.set_xlabel("time (s)")
        return figure
