"""The pictures of the page of reproductions: every verdict of every source, and print beside ours."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from elephan.base.plots import COLOURS, STYLE, Figure
from elephan.base.text import drawn
from elephan.studies.judge import Verdict

# A letter stands beside each colour, so that the picture can be read without colours.
MARKS = {
    Verdict.AGREES: ("#009E73", "a"),
    Verdict.CONFIRMED: ("#009E73", "c"),
    Verdict.ORDERING: ("#8FD3B6", "o"),
    Verdict.DIFFERS: ("#D55E00", "d"),
    Verdict.REFUTED: ("#D55E00", "r"),
    Verdict.DEPENDENT: ("#CC79A7", "p"),
    Verdict.UNDECIDED: ("#E6B800", "?"),
    Verdict.UNTESTABLE: ("#BBBBBB", "-"),
}
# Squares in a row of the overview.
ACROSS = 40
# More rows than this in one panel cannot be read.
MOST_ROWS = 40
# Values of one panel that span more than this factor are drawn on a logarithmic axis.
LOG_FROM = 50


def overview(squares: Sequence[Sequence[tuple[str, str]]], names: Sequence[str]) -> Figure:
    """All verdicts as squares, a block for each source; each square (verdict, address) leads to its place."""
    with mpl.rc_context(STYLE):
        rows = [max(1, math.ceil(len(one) / ACROSS)) for one in squares]
        height = sum(rows) + 1.6 * len(rows) + 2.2
        figure = Figure(figsize=(9, 9 * height / (ACROSS + 1)))
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, ACROSS)
        axes.set_ylim(height, 0)
        top = 0.0
        for name, one, lines in zip(names, squares, rows, strict=True):
            axes.text(0, top + 0.9, f"{drawn(name, 80)}: {len(one)}", fontsize=8, color="#333333")
            top += 1.2
            for number, (verdict, address) in enumerate(one):
                x, y, (colour, letter) = number % ACROSS, top + number // ACROSS, MARKS[Verdict(verdict)]
                square = Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, color=colour, linewidth=0, url=address)
                axes.add_patch(square)
                axes.text(x + 0.5, y + 0.52, letter, ha="center", va="center", fontsize=6, color="#222222", url=address)
            top += lines + 0.4
        handles = [Patch(color=colour, label=f"{letter}: {verdict}") for verdict, (colour, letter) in MARKS.items()]
        figure.legend(handles=handles, loc="outside lower left", ncols=4, fontsize=7)
        return figure


def beside_print(report: dict[str, Any]) -> Figure | None:
    """Print and ours of all comparisons with printed numbers, in one figure; None if there are none."""
    groups = [
        one
        for one in report["comparisons"]
        if not one["cause_of"] and any(row["published"] is not None and not row["unusable"] for row in one["rows"])
    ]
    if not groups:
        return None
    with mpl.rc_context(STYLE):
        across = min(3, len(groups))
        down = math.ceil(len(groups) / across)
        tall = [max(len(one["rows"]) for one in groups[i * across : (i + 1) * across]) for i in range(down)]
        figure = Figure(figsize=(3.4 * across + 0.8, sum(0.9 + 0.2 * min(rows, MOST_ROWS) for rows in tall)))
        panels = figure.subplots(down, across, squeeze=False, height_ratios=[max(2, rows) for rows in tall])
        for number, axes in enumerate(panels.flat):
            if number < len(groups):
                _panel(axes, groups[number], first=number == 0)
            else:
                axes.set_axis_off()
        return figure


def _panel(axes: Axes, group: dict[str, Any], *, first: bool) -> None:
    rows = group["rows"][:MOST_ROWS]
    for y, row in enumerate(rows):
        ours, agrees = row["ours"], row["agrees"]
        colour = {True: MARKS[Verdict.AGREES], False: MARKS[Verdict.DIFFERS], None: MARKS[Verdict.UNDECIDED]}[agrees][0]
        if row["published"] is not None:
            axes.plot(row["published"], y, "D", color=COLOURS[6], markersize=4, fillstyle="none")
        if ours["value"] is not None and not row["unusable"]:
            low, high = (ours[end] if ours[end] is not None else ours["value"] for end in ("low", "high"))
            axes.plot([low, high], [y, y], color=colour, linewidth=2)
            axes.plot(ours["value"], y, "o", color=colour, markersize=3.5)
    axes.set_yticks(range(len(rows)), [drawn(row["system"], 30) for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title(drawn(group["group"], 44), fontsize=8)
    axes.set_xlabel(drawn(group["unit"]), fontsize=7)
    axes.tick_params(axis="x", labelsize=7)
    values = [v for row in rows for v in (row["published"], row["ours"]["value"]) if v is not None]
    if values and min(values) > 0 and max(values) / min(values) > LOG_FROM:
        axes.set_xscale("log")
    elif values and min(values) >= 0:
        axes.set_xlim(left=0)
    if first:
        axes.plot(
            [],
            [],
            "D",
            color=COLOURS[6],
            markersize=4,
            fillstyle="none",
            label="theory" if group["kind"] == "theory" else "print",
        )
        axes.plot([], [], "o-", color=MARKS[Verdict.AGREES][0], markersize=3.5, label="ours, with its interval")
        axes.legend(fontsize=6, loc="best")
