"""Pictures drawn by matplotlib."""

import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import blended_transform_factory, offset_copy

from elephan.api.pictures.data import Cells, Chart, Mark, Panels, Picture, Points, Single, label
from elephan.base.plots import COLOURS, STYLE, Figure, thin
from elephan.base.text import drawn, visible

# Widths of a figure in inches: of a journal's page with two columns (IEEE, ACM), and of one of them.
WIDTH, COLUMN = 7.16, 3.5
# More marks than this are drawn without their texts, and as ticks.
MOST_TEXTS = 8
# Rows of these texts, one above the other where they would overlap; further ones are left out.
MARK_ROWS = 3
# Height of a line of small text in inches: a row of the legend, or of a map.
ROW = 0.17
# Height of a panel of several that have scales of their own.
TALL = 0.85
# Height of a line of the title or of the note.
LINE = 0.14
GREY, SHADE = "#777777", "#f0f0f0"
# The colour of a cell without a value, and the sizes in points of the numbers in cells, of which the first that fits is used.
UNDEFINED, NUMBERS = "#ebebeb", (7, 6, 5)
# Each line has a dash, and each estimate a marker, to tell them apart in grey. Estimates stand side by side: so far, in points.
MARKERS = "os^DvPX*"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2, 1, 2)))
BESIDE, MOST_BESIDE = 3.0, 12.0
# Lines over time have dashes up to this number: where more cross, dashes make none of them easier to follow.
MOST_DASHED = 6


def figure(panels: Sequence[tuple[str, Picture]], title: str, width: float = WIDTH) -> Figure:
    """Draw pictures of one kind as panels with one scale, each with its name; below them is the note of the first.

    `width` is in inches. An empty title, as for a figure with a caption, leaves the note out as well.
    """
    stacked = [(name, one) for name, one in panels if isinstance(one, Panels)]
    if stacked:
        return _stack(stacked, title, width)
    singles = [one for _, one in panels if not isinstance(one, Panels)]
    pictures = [one.numbered() if len(panels) > 1 else one for one in singles]
    first = pictures[0]
    narrow = width < WIDTH
    size = 8 if narrow else 9
    with mpl.rc_context({**STYLE, "font.size": size, "axes.titlesize": size}):
        columns = 1 if len(panels) == 1 or narrow else 3 if len(panels) == 3 and isinstance(first, Cells) else 2
        rows = -(-len(panels) // columns)
        square = isinstance(first, Points) and first.equal
        if square:
            width = min(width, 4.6 * columns)
        tall = (
            width
            / columns
            * ((1.05 if narrow else 0.9) if square else 0.6 if narrow else 0.42 if columns == 1 else 0.5)
        )
        if isinstance(first, Cells):
            tall = max(tall, ROW * len(first.rows) + 1)
        head = _wrapped(title, int(width * 15))
        note = _wrapped(first.note, int(width * 21)) if title else ""
        # Further lines of the title and of the note make a figure longer: they take nothing from its axes.
        more = LINE * (head.count("\n") + note.count("\n"))
        made = Figure(figsize=(width, tall * rows + 0.5 + more))
        grid = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        shown = list(grid.flat)[: len(panels)]
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        for axes, (name, _), picture in zip(shown, panels, pictures, strict=True):
            draw(axes, picture)
            axes.label_outer()
            if len(panels) > 1:
                axes.set_title(drawn(name, 60))
                axes.set_ylabel("")
        if len(panels) > 1:
            x, y = labels(first)
            made.supylabel(y, fontsize=size)
            # A panel above an empty place is the lowest of its column.
            for axes in shown[-columns:]:
                axes.xaxis.set_tick_params(labelbottom=True)
                axes.set_xlabel(x)
        texts = _one_scale(made, shown, pictures)
        add_head(made, shown, head, size)
        if note:
            made.supxlabel(note, fontsize=6, color=GREY, x=0.01, ha="left")
        if isinstance(first, Cells) or (isinstance(first, Points) and first.x.ticks):
            turn(made, shown)
        if isinstance(first, Cells):
            _number(made, shown[0], first, texts)
        return made


def _stack(stacked: Sequence[tuple[str, Panels]], title: str, width: float) -> Figure:
    """Draw panels one below the other, over one horizontal axis; those of several runs have the names of these."""
    several = len(stacked) > 1
    every = [(name, panel) for name, picture in stacked for panel in picture.panels]
    heights = [max(TALL, ROW * len(panel.y.ticks)) for _, panel in every]
    note = _wrapped(stacked[0][1].note, int(width * 21)) if title else ""
    with mpl.rc_context({**STYLE, "font.size": 8, "axes.titlesize": 8}):
        made = Figure(figsize=(width, sum(heights) + 0.9))
        grid = made.subplots(len(every), 1, sharex=True, squeeze=False, height_ratios=heights)
        shown = list(grid.flat)
        for axes, (name, panel) in zip(shown, every, strict=True):
            draw(axes, panel)
            axes.label_outer()
            axes.set_ylabel("")
            axes.set_title(drawn(f"{name}: {panel.y.label}" if several else panel.y.label, 60))
        add_head(made, shown, _wrapped(title, int(width * 15)))
        if note:
            made.supxlabel(note, fontsize=6, color=GREY, x=0.01, ha="left")
        return made


def _wrapped(text: str, letters: int) -> str:
    """At most four lines: more would leave no room for the picture."""
    lines = textwrap.wrap(visible(text), letters, max_lines=4, placeholder="…")
    return "\n".join(drawn(line, letters) for line in lines)


def add_head(made: Figure, shown: Sequence[Axes], title: str = "", size: int = 8) -> None:
    """The title, and below it the lines of all panels, each name once."""
    named = {name: line for axes in shown for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if not named:
        if title:
            made.suptitle(title, fontsize=size, x=0.01, ha="left")
        return
    columns = max(1, min(len(named), int(made.get_figwidth() * 16) // (max(map(len, named)) + 5)))
    made.set_figheight(made.get_figheight() + ROW * (-(-len(named) // columns) - 1))
    # The title is the legend's own: matplotlib keeps room for a title and a legend above the axes, but at the same place.
    made.legend(
        named.values(),
        named.keys(),
        title=title,
        alignment="left",
        title_fontsize=size,
        loc="outside upper left",
        ncols=columns,
        fontsize=7,
        borderaxespad=0.2,
    )


def labels(picture: Single) -> tuple[str, str]:
    """The labels of the horizontal and of the vertical axis."""
    match picture:
        case Chart():
            # What is counted has a line of its own: a figure of a column's width is less than two inches high.
            return "time (s)", label(picture.title, picture.unit).replace(", ", ",\n")
        case Points():
            return picture.x.label, picture.y.label
        case Cells():
            return drawn(picture.x), drawn(picture.y)


def draw(axes: Axes, picture: Single) -> None:
    """Draw a picture with its labels."""
    match picture:
        case Chart():
            _chart(axes, picture)
        case Points():
            _points(axes, picture)
        case Cells():
            _cells(axes, picture)
    x, y = labels(picture)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _one_scale(made: Figure, shown: Sequence[Axes], pictures: Sequence[Single]) -> list[Text]:
    """Charts that share their axes reach from zero to the longest and the highest of them; maps share their colours."""
    maps = [picture for picture in pictures if isinstance(picture, Cells)]
    charts = [picture for picture in pictures if isinstance(picture, Chart)]
    if len(charts) == len(pictures):
        tops = [axes.get_ylim()[1] for axes in shown]
        lines = [line for chart in charts for line in chart.lines if not line.minor]
        highest = max((float(np.nanmax(line.values)) for line in lines), default=0.0)
        shown[0].set_ylim(0, max([*tops, highest * 1.05]))
        shown[0].set_xlim(0, max(chart.until_s for chart in charts))
    return _one_colour_scale(made, shown, maps) if maps else []


def _chart(axes: Axes, chart: Chart) -> None:
    highest = 0.0
    dashed = sum(not line.minor for line in chart.lines) <= MOST_DASHED
    for line in chart.lines:
        known = np.isfinite(line.values)
        time, value = thin(chart.time_s[known], line.values[known])
        dash = _nth(DASHES, line.colour) if dashed else "-"
        style = {"linestyle": ":", "linewidth": 0.7} if line.minor else {"linestyle": dash, "label": drawn(line.name)}
        drawstyle = "steps-pre" if chart.steps else "default"
        axes.plot(time, value, color=COLOURS[line.colour % len(COLOURS)], drawstyle=drawstyle, **style)
        # A threshold far above all windows does not determine the scale.
        highest = max([highest, *([] if line.minor else value)])
    end_s = chart.until_s or 1.0
    if chart.window is not None:
        for low, high in ((0.0, chart.window[0]), (chart.window[1], end_s)):
            if high > low:
                axes.axvspan(low, high, color=SHADE, linewidth=0, zorder=0)
    rows = _mark(axes, chart.marks, end_s)
    axes.set_xlim(0, end_s)
    axes.set_ylim(0, (highest or 1.0) * (1.05 + 0.07 * rows))


def _mark(axes: Axes, marks: Sequence[Mark], end_s: float) -> int:
    """A thin line for each mark, and its text at the top; only ticks if there are many. Returns the rows of texts."""
    at_top = blended_transform_factory(axes.transData, axes.transAxes)
    if len(marks) > MOST_TEXTS:
        axes.plot([mark.time_s for mark in marks], [1.0] * len(marks), "|", color=GREY, transform=at_top, clip_on=False)
        return 0
    figure, grid = axes.get_figure(root=True), axes.get_gridspec()
    inches = figure.get_figwidth() / grid.ncols - 0.8 if figure is not None and grid is not None else 5.0
    ends: list[float] = []
    for mark in marks:
        axes.axvline(mark.time_s, color=GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1)
        length_s = (len(mark.text) + 2) * 0.048 / max(inches, 0.5) * end_s
        left = mark.time_s + length_s > end_s
        begins = mark.time_s - length_s if left else mark.time_s
        row = next((k for k, end in enumerate(ends) if end <= begins), len(ends))
        if row >= MARK_ROWS:
            continue
        ends[row : row + 1] = [begins + length_s]
        axes.annotate(
            drawn(mark.text),
            (mark.time_s, 0.995 - row * 0.065),
            (-3 if left else 3, 0),
            xycoords=at_top,
            textcoords="offset points",
            fontsize=6,
            color=GREY,
            va="top",
            ha="right" if left else "left",
            # Lines pass below the text.
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
        )
    return len(ends)


def _nth(styles: Sequence[Any], number: int) -> Any:
    """The style of a line. Lines that have one colour, because there are more than colours, differ in it."""
    return styles[(number + number // len(COLOURS)) % len(styles)]


def _points(axes: Axes, spec: Points) -> None:
    for number, one in enumerate(spec.series):
        y = np.array(one.y, float)
        style = (one.dash or ("solid" if one.points else _nth(DASHES, one.colour))) if one.line else "none"
        colour = COLOURS[one.colour % len(COLOURS)]
        if one.low is not None and one.high is not None:
            apart = min(BESIDE, MOST_BESIDE / len(spec.series)) * (one.left is None)
            beside = (number - (len(spec.series) - 1) / 2) * apart
            axes.errorbar(
                one.x,
                y,
                xerr=_beside(one.x, one.left, one.right),
                yerr=_beside(one.y, one.low, one.high),
                transform=offset_copy(axes.transData, axes.get_figure(root=True), x=beside, units="points"),
                linestyle=_nth(DASHES, number) if one.line else "none",
                marker=_nth(MARKERS, number),
                markersize=3.5,
                linewidth=0.9,
                elinewidth=0.8,
                capsize=2,
                color=colour,
                label=drawn(one.name, 60),
            )
            # Limits follow from data alone, and not from where these are drawn.
            reach = [(one.left or one.x, one.low), (one.x, y), (one.right or one.x, one.high)]
            corners = np.concatenate([np.array(ends, float).T for ends in reach])
            axes.update_datalim(corners[np.isfinite(corners).all(axis=1)])
            continue
        axes.plot(
            one.x,
            y,
            linestyle=style,
            marker="o" if one.points else "",
            markersize=3.5 if len(one.x) < 100 else 1.5,
            # Dots of a thin line are hard to see.
            linewidth=1.3 if one.dash == "dotted" else 0.9,
            color=colour,
            label=drawn(one.name, 60),
        )
    axes.set_xscale("log" if spec.x.log else "linear")
    if spec.x.ticks:
        axes.minorticks_off()
        axes.set_xticks([place for place, _ in spec.x.ticks], [drawn(text, 16) for _, text in spec.x.ticks])
    axes.set_yscale("log" if spec.y.log else "linear")
    if spec.y.ticks:
        axes.set_yticks([place for place, _ in spec.y.ticks], [drawn(text, 16) for _, text in spec.y.ticks], fontsize=6)
    axes.autoscale_view()
    if spec.x.zero and not spec.x.log:
        axes.set_xlim(left=0)
    if spec.y.zero and not spec.y.log:
        axes.set_ylim(0, 1.05 * axes.dataLim.y1 or 1.0)
    if spec.equal:
        most = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.set_xlim(0, most)
        axes.set_ylim(0, most)
        axes.set_aspect("equal")


def _beside(
    middle: Sequence[float | None], low: Sequence[float | None] | None, high: Sequence[float | None] | None
) -> np.ndarray | None:
    """How far intervals reach below and above their estimates; zero where there is none."""
    if low is None or high is None:
        return None
    ends = np.array([[np.nan if value is None else value for value in row] for row in (low, middle, high)], float)
    return np.nan_to_num(np.maximum(0.0, np.diff(ends, axis=0)))


def _cells(axes: Axes, cells: Cells) -> None:
    # Cells of vectors, and not an image: a file of PGF would need another file for it.
    axes.pcolormesh(np.array(cells.values, float), cmap="cividis")
    # Not inverted, which the axes of further panels would undo: they share it.
    axes.set_ylim(len(cells.rows), 0)
    axes.set_facecolor(UNDEFINED)
    axes.grid(visible=False)
    axes.set_xticks(np.arange(len(cells.columns)) + 0.5, [drawn(name, 20) for name in cells.columns], fontsize=7)
    axes.set_yticks(np.arange(len(cells.rows)) + 0.5, [drawn(name, 20) for name in cells.rows], fontsize=7)


def _one_colour_scale(made: Figure, shown: Sequence[Axes], maps: Sequence[Cells]) -> list[Text]:
    """One scale of colours for all maps, beside them. Returns the numbers in the cells, with as many decimals for all."""
    every = np.concatenate([np.array(cells.values, float).ravel() for cells in maps])
    low, high = (float(np.nanmin(every)), float(np.nanmax(every)))
    # Three digits of the largest.
    decimals = max(0, 2 - math.floor(math.log10(max(abs(low), abs(high)) or 1.0)))
    texts = []
    for axes, cells in zip(shown, maps, strict=True):
        axes.collections[0].set_clim(low, high)
        for (row, column), value in np.ndenumerate(np.array(cells.values, float)):
            text = f"{value:.{decimals}f}" if np.isfinite(value) else "-"
            shade = "white" if value < (low + high) / 2 else "black"
            texts.append(axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=shade))
    bar = made.colorbar(shown[0].collections[0], ax=list(shown), label=drawn(maps[0].z, 60), fraction=0.05)
    # Quadrangles, too; without edges of their colour a viewer shows gaps between them.
    if bar.solids is not None:
        bar.solids.set(rasterized=False, edgecolor="face")
    return texts


def turn(made: Figure, shown: Sequence[Axes]) -> None:
    """Turn the names below axes if those of the last would overlap, and leave out those that still have no room."""
    made.draw_without_rendering()
    last = shown[-1]
    boxes = [text.get_window_extent() for text in last.get_xticklabels() if text.get_text()]
    if any(one.padded(2).overlaps(other) for one, other in pairwise(sorted(boxes, key=lambda box: box.x0))):
        every = math.ceil(len(boxes) * (max(box.height for box in boxes) + 1) / last.get_window_extent().width)
        ticks, names = last.get_xticks(), [text.get_text() for text in last.get_xticklabels()]
        for axes in shown:
            axes.set_xticks(ticks[::every], names[::every])
            axes.tick_params(axis="x", rotation=90)
        rows = len({axes.get_position().y0 for axes in shown if axes.xaxis.get_tick_params()["labelbottom"]})
        made.set_figheight(made.get_figheight() + rows * max(box.width for box in boxes) / made.dpi)


def _number(made: Figure, axes: Axes, cells: Cells, texts: Sequence[Text]) -> None:
    """Leave the numbers out of cells that are too small for them."""
    made.draw_without_rendering()
    box = axes.get_window_extent()
    room = np.array([box.width / len(cells.columns), box.height / len(cells.rows)]) - 2
    for size in NUMBERS:
        for text in texts:
            text.set_fontsize(size)
        if all((text.get_window_extent().size < room).all() for text in texts):
            return
    for text in texts:
        text.remove()
