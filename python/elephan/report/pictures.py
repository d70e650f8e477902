"""The figures and pages of a report, with matplotlib."""

import textwrap
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elephan.api.metrics import METRICS
from elephan.base.plots import COLOURS, STYLE, legend, thin
from elephan.base.table import Table
from elephan.base.text import drawn, visible
from elephan.report.content import Chart, Content, Group, Points, Runs
from elephan.studies.statistics import Estimate

# A page of a report in inches: A4, upright.
PAGE = (8.27, 11.69)


def of_content(content: Content) -> list[Figure]:
    """The figures of a report: one for each group of charts, the metrics, and figures not over time."""
    with mpl.rc_context(STYLE):
        figures = [_xy(figure) for figure in content.figures]
        if content.runs is not None:
            figures.append(_metrics(content.runs))
        return [*figures, *(_group(group, content.title) for group in content.groups)]


def of_tables(content: Content) -> list[Figure]:
    """The text of a report as pages: the scenario, and the tables."""
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


def _cells(
    figure: Figure, where: tuple[float, float, float, float], head: list[str], rows: Sequence[Sequence[str]]
) -> None:
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


def _table_page(table: Table, start: int) -> Figure:
    # Wide tables use landscape pages.
    figure = Figure(figsize=PAGE[::-1] if len(table.head) > 6 else PAGE)
    figure.set_layout_engine("none")
    figure.text(0.06, 0.94, drawn(table.title, 80), fontsize=12, weight="bold", va="top")
    heads = [
        f"{drawn(head.text)}\n{head.unit.replace(', ', chr(10))}" if head.unit else drawn(head.text)
        for head in table.head
    ]
    _cells(figure, (0.06, 0.1, 0.88, 0.78), heads, table.texts[start : start + 45])
    figure.text(0.06, 0.9, "\n".join(_wrapped(table.note, 120)), fontsize=7.5, va="top")
    return figure


def _group(group: Group, title: str) -> Figure:
    """The charts of a group, one below the other, with one time axis."""
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


def _over_time(axes: Axes, chart: Chart) -> None:
    for line in chart.lines:
        time, value = thin(chart.time_s, line.values)
        style = {"linestyle": ":", "linewidth": 0.7} if line.minor else {"label": drawn(line.name)}
        drawstyle = "steps-pre" if chart.steps else "default"
        axes.plot(time, value, color=COLOURS[line.colour % len(COLOURS)], drawstyle=drawstyle, **style)
    axes.set_title(f"{drawn(chart.title)} ({chart.unit})", fontsize=9)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.03)
    if len(chart.lines) > 1:
        legend(axes, 8, 140, loc="lower right", bbox_to_anchor=(1, 0.98), fontsize=7, borderpad=0)


def _metrics(runs: Runs) -> Figure:
    """Each metric along the first key whose values are numbers, or side by side: means and 95 % intervals."""
    numeric, axis = runs.numeric(), runs.axis()
    varied = [k for k in range(len(runs.keys)) if runs.keys[k] not in ("seed", "repeat")]
    along = next((k for k in varied if numeric[k]), None)
    by = next((k for k in varied if k != along), None)
    names = list(dict.fromkeys(str(row[by]) if by is not None else "" for row in runs.settings))
    rows = -(-len(METRICS) // 3)
    figure = Figure(figsize=(7.5, 7.0 * rows / 3))
    grid = figure.subplots(rows, 3, squeeze=False)
    for axes in list(grid.flat)[len(METRICS) :]:
        axes.set_visible(False)
    for m, (axes, metric) in enumerate(zip(grid.flat, METRICS, strict=False)):
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
        axes.set_title(metric.label, fontsize=8)
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


def _xy(spec: Points) -> Figure:
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
