"""Pictures of a sweep: a metric over a key, or over another metric, with the intervals over repeats."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from elephan import _core
from elephan.api.metrics import METRICS, Metric
from elephan.api.pictures.data import Axis, Points, Runs, Series, label, number_of
from elephan.api.pictures.draw import WIDTH, figure
from elephan.api.pictures.kinds import KINDS
from elephan.base.plots import Figure
from elephan.base.text import listed
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps import names
from elephan.studies.sweeps.tables import Selection, estimates, metric_of

# Titles of keys that many sweeps have.
TITLES = {
    "path.rate": "rate of the bottleneck",
    "path.rtt": "round-trip time",
    "path.buffer": "buffer",
    "path.queue": "queue discipline",
    "path.loss.probability": "random loss",
    "flow.cc": "algorithm",
    "flow.count": "flows",
}
# An axis is logarithmic if its values differ by more than this factor; it has a tick for each of them if they are few.
FAR, MOST_TICKS = 6, 12
# A number and its unit: `25% bdp`, `100 Mbit/s`.
QUANTITY = re.compile(r"([-+.\deE]+) ?(.*)")


def runs_of(frame: pl.DataFrame, settings: Sequence[str]) -> Runs:
    """The runs of an index with their metrics, by the keys that vary: the first key, and any other with several values."""
    keys = [*settings, "repeat"]
    varied = [key for key in keys if frame[key].n_unique() > 1 or key == keys[0]]
    rows = list(frame.iter_rows(named=True))
    values = [[metric.scaled(row.get(metric.column)) for metric in METRICS] for row in rows]
    return Runs("Metrics over the sweep", varied, [[row[key] for key in varied] for row in rows], values)


def plot(
    folder: str | Path,
    metric: str = "goodput",
    over: str | None = None,
    by: Sequence[str] | str | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    width: float = WIDTH,
    title: bool = True,
) -> Figure:
    """A picture of a metric over a key or another metric, `width` inches wide, with a line for each setting of the keys `by`.

    Without `over` it is the first key whose values are numbers, or the first of all; without `by`, all other keys. `where`
    keeps the runs with these settings. The name of a kind of picture that many runs have, such as `fairness-map`, gives that.
    Raises `ScenarioError` for a wrong name, and where a key that varies is in none of these.
    """
    chosen = Selection.of(folder, where, [metric, *([over] if over else [])])
    if metric in KINDS and KINDS[metric].runs is not None:
        runs = runs_of(chosen.frame, chosen.settings)
        text = f"{len(runs.settings):,} runs over {', '.join(runs.keys)}"
        return figure(KINDS[metric].of_runs(runs), text if title else "", width)
    made = _points(chosen, metric, over, by)
    return figure([("", made)], made.title if title else "", width)


def _points(chosen: Selection, metric: str, over: str | None, by: Sequence[str] | str | None) -> Points:
    (measured,) = chosen.metrics(metric, "metric")
    varied = [key for key in chosen.settings if key != "seed" and chosen.frame[key].n_unique() > 1]
    numeric = [key for key in varied if all(number_of(value) is not None for value in chosen.frame[key].unique())]
    across = next(iter([*numeric, *varied]), None) if over is None else chosen.column(over, "over")
    if across is None:
        raise _core.ScenarioError("plot: expected a sweep of other keys than the seed, found none")
    of_key = across in chosen.settings
    # The lines of a picture of two metrics are words: algorithms, queues.
    others = [key for key in varied if key != across and (of_key or key not in numeric)]
    lines = others if by is None else [chosen.column(key, "by") for key in listed(by)]
    along = [across] if of_key else [key for key in varied if key not in lines]
    chosen.alone([*along, *lines], "over, by or where")
    cells = estimates(chosen, along, lines, [measured] if of_key else [across, measured])

    def scale(column: str) -> Metric:
        return metric_of(column, [one.mean for (_, _, of), one in cells.items() if of == column])

    shown = scale(measured)
    beside = shown if of_key else scale(across)
    if of_key:
        x, places = _axis(across, list(dict.fromkeys(row[0] for row, _, _ in cells)))
    else:
        x, places = Axis(beside.label, zero=False), {}
    found: dict[str, list[tuple[float, Estimate | None, Estimate]]] = {}
    for (row, col, of), estimate in cells.items():
        other = None if of_key else beside.estimated(cells[row, col, across])
        place = places[row[0]] if other is None else other.mean
        if of == measured and estimate.mean is not None and place is not None:
            points = found.setdefault(", ".join(map(names.shown, col)), [])
            points.append((place, other, shown.estimated(estimate)))
    # A line between words would show values that there are not.
    line = not of_key or across in numeric
    series = [_series(number, name, points, line=line) for number, (name, points) in enumerate(found.items())]
    title = f"{shown.title} over {x.label}: means and 95 % intervals over repeats"
    return Points(measured, title, x, Axis(shown.label, zero=of_key), series)


def _series(number: int, name: str, points: list[tuple[float, Estimate | None, Estimate]], *, line: bool) -> Series:
    points = sorted(points, key=lambda point: point[0])
    across = [one for _, one, _ in points if one is not None]
    return Series(
        name,
        number,
        [place for place, _, _ in points],
        [one.mean for _, _, one in points],
        [one.low for _, _, one in points],
        [one.high for _, _, one in points],
        [one.low for one in across] or None,
        [one.high for one in across] or None,
        line=line,
    )


def _axis(key: str, values: Sequence[Any]) -> tuple[Axis, dict[Any, float]]:
    """The axis of a key, and the place of each of its values: that of a number, or a row of words."""
    numeric = all(number_of(value) is not None for value in values)
    texts = {value: names.shown(value) for value in values}
    units = {QUANTITY.sub(r"\2", text) for text in texts.values()}
    # A unit that all values have is that of the axis.
    if numeric and len(units) == 1 and (unit := units.pop()):
        texts = {value: QUANTITY.sub(r"\1", text) for value, text in texts.items()}
        places = {value: float(text) for value, text in texts.items()}
    else:
        places = {value: number_of(value) or 0.0 if numeric else float(place) for place, value in enumerate(values)}
        unit = ""
    far = all(place > 0 for place in places.values()) and max(places.values()) > FAR * min(places.values())
    ticks = tuple(zip(places.values(), texts.values(), strict=True)) if len(values) <= MOST_TICKS else ()
    return Axis(label(TITLES.get(key, key), unit), far, zero=False, ticks=ticks), places
