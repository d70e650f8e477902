"""The figures and pages of a report, with matplotlib."""

import contextlib
import textwrap
from dataclasses import replace

import matplotlib as mpl
from matplotlib.lines import Line2D

from elephan.api.metrics import METRICS
from elephan.api.pictures import draw
from elephan.api.pictures.data import LackingError, Points, Runs
from elephan.base.plots import STYLE, Figure
from elephan.base.table import Table
from elephan.base.text import drawn, visible
from elephan.report.content import Content, Group
from elephan.studies.sweeps.plots import pictures
from elephan.studies.sweeps.tables import Selection

# Width of the pages of a paper's file in inches, and the room for text beside its figures.
WIDTH, MARGIN = draw.WIDTH, 0.15
# Heights of a line of text and of a row of a table in inches, and rows of a table on a page.
LINE, ROW, MOST_ROWS = 0.135, 0.19, 45
# Letters of 6.5 point in an inch, as wide as the widest words are.
LETTERS = 17
# Lines of a metric in a figure of all metrics.
MOST_SERIES = 8
# Lines of a scenario on a page.
MOST_LINES = 70


def of_content(content: Content) -> list[Figure]:
    """The figures of a report: one for each group of charts, the metrics, and figures not over time."""
    with mpl.rc_context(STYLE):
        figures = [
            draw.figure([(figure.title, figure)], f"{content.title}: {figure.title}") for figure in content.figures
        ]
        return [*figures, *_metrics(content.runs), *(_group(group, content.title) for group in content.groups)]


def for_paper(content: Content) -> list[Figure]:
    """The figures of a report at the width of one column, those of many panels at that of a page, each with its caption."""
    seeds = [f"; {fact} {value}" for fact, value in content.facts if fact in ("seed", "seeds")]
    about = f"{content.title}: {content.subtitle}{''.join(seeds)}"
    found = [draw.figure([("", one)], f"{one.title}. {about}", draw.COLUMN) for one in content.figures]
    for group in content.groups:
        # Charts of one quantity, as of a comparison, are panels with one scale.
        if len({chart.meaning for chart in group.charts}) == 1:
            quantity = group.title.partition(",")[0]
            panels = [(chart.title, replace(chart, title=quantity)) for chart in group.charts]
            found.append(draw.figure(panels, f"{group.title}. {about}"))
        else:
            found += [draw.figure([("", one)], f"{one.title}. {about}", draw.COLUMN) for one in group.charts]
    return [*found, *_metrics(content.runs)]


def of_tables(content: Content) -> list[Figure]:
    """The text of a report as pages of the width of a journal's page, each as long as what is on it."""
    lines = [content.subtitle, "", *(f"{fact}: {value}" for fact, value in content.facts), "", *content.notes]
    if content.command:
        lines += ["", content.command]
    text = [line for long in lines for line in _wrapped(long, 110)]
    with mpl.rc_context(STYLE):
        first = _page(0.5 + LINE * len(text))
        height = first.get_figheight()
        first.text(MARGIN / WIDTH, 1 - 0.1 / height, drawn(content.title, 60), fontsize=12, weight="bold", va="top")
        first.text(MARGIN / WIDTH, 1 - 0.38 / height, "\n".join(text), fontsize=7, va="top", linespacing=1.35)
        tables = [content.headlines(), *content.tables]
        return [first, *(page for table in tables if table.rows for page in _tables(table))]


def of_scenario(content: Content) -> list[Figure]:
    """The scenario of a report as pages, to which its notes refer."""
    lines = [part for line in content.scenario.splitlines() for part in _wrapped(line, 120)]
    with mpl.rc_context(STYLE):
        return [_code("Scenario", lines[start : start + MOST_LINES]) for start in range(0, len(lines), MOST_LINES)]


def _code(title: str, lines: list[str]) -> Figure:
    page = _page(0.5 + LINE * len(lines))
    height = page.get_figheight()
    page.text(MARGIN / WIDTH, 1 - 0.08 / height, title, fontsize=9, weight="bold", va="top")
    place = (MARGIN / WIDTH, 1 - 0.35 / height)
    page.text(*place, "\n".join(lines), fontsize=6.5, family="monospace", va="top", linespacing=1.35)
    return page


def _page(height: float) -> Figure:
    page = Figure(figsize=(WIDTH, height))
    page.set_layout_engine("none")
    return page


def _wrapped(text: str, width: int) -> list[str]:
    return [drawn(line, width) for line in textwrap.wrap(visible(text), width)] or [""]


def _tables(table: Table) -> list[Figure]:
    """A table on pages: its columns in parts that fit, each part with the first column; then its rows."""
    heads = [
        [*_wrapped(head.text, 14), *_wrapped(head.unit, 14)] if head.unit else _wrapped(head.text, 14)
        for head in table.head
    ]
    shown = [[drawn(cell, 60) for cell in row] for row in table.texts]
    widths = [max(map(len, [*head, *(row[k] for row in shown)])) / LETTERS + 0.14 for k, head in enumerate(heads)]
    parts: list[list[int]] = []
    for column in range(1, len(widths)) or [0]:
        room = WIDTH - 2 * MARGIN - sum(widths[k] for k in (parts[-1] if parts else ()))
        if not parts or widths[column] > room:
            parts.append([0])
        if column not in parts[-1]:
            parts[-1].append(column)
    return [
        _part(
            table,
            [heads[k] for k in part],
            [[row[k] for k in part] for row in shown[start : start + MOST_ROWS]],
            part,
            widths,
        )
        for start in range(0, len(shown), MOST_ROWS)
        for part in parts
    ]


def _part(table: Table, heads: list[list[str]], rows: list[list[str]], part: list[int], widths: list[float]) -> Figure:
    """A part of a table, with its title above and its note below."""
    note = _wrapped(table.note, 125) if table.note else []
    deep = max(map(len, heads))
    height = 0.4 + LINE * deep + ROW * len(rows) + LINE * len(note) + 0.15
    page = _page(height)
    page.text(MARGIN / WIDTH, 1 - 0.08 / height, drawn(table.title, 80), fontsize=9, weight="bold", va="top")
    right = MARGIN
    top = 1 - 0.32 / height
    below = top - (LINE * deep + 0.04) / height
    for place, column in enumerate(part):
        numeric = table.head[column].numeric
        left, right = right, right + widths[column]
        x, side = ((right - 0.07) / WIDTH, "right") if numeric else (left / WIDTH, "left")
        page.text(x, top, "\n".join(heads[place]), fontsize=6.5, color="#555555", va="top", ha=side, linespacing=1.3)
        for number, row in enumerate(rows):
            page.text(x, below - (number + 0.5) * ROW / height, row[place], fontsize=6.5, va="center", ha=side)
    for number in range(len(rows) + 1):
        y = below - number * ROW / height
        page.add_artist(Line2D([MARGIN / WIDTH, right / WIDTH], [y, y], color="#cccccc", linewidth=0.5))
    page.text(
        MARGIN / WIDTH,
        below - (len(rows) * ROW + 0.06) / height,
        "\n".join(note),
        fontsize=6,
        color="#777777",
        va="top",
    )
    return page


def _group(group: Group, title: str) -> Figure:
    """The charts of a group, one below the other, with one time axis."""
    charts = group.charts
    columns = 2 if len(charts) > 6 else 1
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=(7.5, 1.75 * rows + 0.5))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, chart in zip(grid.flat, charts, strict=False):
        draw.draw(axes, chart)
        axes.set_title(f"{drawn(chart.title)} ({chart.unit})", fontsize=9)
    for axes in list(grid.flat)[len(charts) :]:
        axes.set_visible(False)
    figure.supxlabel("time (s)", fontsize=9)
    figure.set_label(f"{title}: {group.title.lower()}")
    figure.suptitle(f"{drawn(title, 60)}: {group.title.lower()}", fontsize=10, x=0.01, ha="left")
    return figure


def _metrics(runs: Runs | None) -> list[Figure]:
    """The metrics that runs have, each over the first key as `elephan plot` draws it."""
    found: list[Points] = []
    if runs is not None and runs.settings:
        chosen = Selection.of_runs(runs)
        for metric in METRICS:
            with contextlib.suppress(LackingError):
                found += [one for _, one in pictures(chosen, metric.column) if isinstance(one, Points)]
    if not found:
        return []
    rows = -(-len(found) // 3)
    with mpl.rc_context({**STYLE, "font.size": 7}):
        figure = Figure(figsize=(WIDTH, 2.0 * rows + 0.5))
        grid = figure.subplots(rows, 3, squeeze=False)
        shown = list(grid.flat)[: len(found)]
        for axes in list(grid.flat)[len(found) :]:
            axes.set_visible(False)
        for axes, one in zip(shown, found, strict=True):
            draw.draw(axes, replace(one, series=one.series[:MOST_SERIES]))
        lines = max(len(one.series) for one in found)
        if lines > MOST_SERIES:
            figure.supxlabel(f"The first {MOST_SERIES} of {lines} settings.", fontsize=6, x=0.01, ha="left")
        draw.add_head(figure, shown)
        draw.turn(figure, shown)
    return [figure]
