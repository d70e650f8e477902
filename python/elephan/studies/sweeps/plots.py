"""Pictures of a sweep: a metric over a key or another metric, with intervals over repeats; a map over two keys; a CDF."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.metrics import Metric
from elephan.api.pictures.data import Axis, Cells, LackingError, Points, Series, label, number_of
from elephan.api.pictures.draw import WIDTH, figure
from elephan.base.plots import Figure
from elephan.base.text import listed
from elephan.studies.statistics import Estimate, defined
from elephan.studies.sweeps import names
from elephan.studies.sweeps.tables import Place, Selection, estimates, metric_of

# Titles of keys that many sweeps have.
TITLES = {
    "path.rate": "rate of the bottleneck",
    "path.rtt": "round-trip time",
    "path.buffer": "buffer",
    "path.queue": "queue discipline",
    "path.loss.probability": "random loss",
    "flow.cc": "algorithm",
    "cc": "algorithm",
    "flow.count": "flows",
}
# An axis is logarithmic if its values differ by more than this factor; it has a tick for each of them if they are few.
FAR, MOST_TICKS = 6, 12
# Panels of a map: one for each setting of the other keys.
MOST_PANELS = 12
# A number and its unit: `25% bdp`, `100 Mbit/s`.
QUANTITY = re.compile(r"([-+.\deE]+) ?(.*)")


Panels = list[tuple[str, Points | Cells]]


def plot(
    folder: str | Path,
    metric: str = "goodput",
    over: Sequence[str] | str | None = None,
    by: Sequence[str] | str | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    cdf: bool = False,
    width: float = WIDTH,
    title: bool = True,
) -> Figure:
    """A picture of a metric over a key or another metric, `width` inches wide, with a line for each setting of the keys `by`.

    Over two keys it is a map, with a panel for each setting of `by`. With `cdf` it is the distribution over the runs of each
    setting. Without `over` it is the first key whose values are numbers, or the first of all; without `by`, all other keys.
    `where` keeps the runs with these settings. Raises `ScenarioError` for a wrong name, where a key that varies is in none of
    these, and if the metric is undefined in all runs.
    """
    metrics = [metric, *listed(over or ())]
    panels = pictures(Selection.of(folder, where, metrics), metric, over, by, cdf=cdf)
    return figure(panels, panels[0][1].title if title else "", width)


def varied(chosen: Selection) -> tuple[list[str], list[str]]:
    """The keys other than the seed with several values: those whose values are numbers, and those of words."""
    several = [key for key in chosen.settings if key != "seed" and chosen.frame[key].n_unique() > 1]
    numeric = [key for key in several if all(number_of(value) is not None for value in chosen.frame[key].unique())]
    return numeric, [key for key in several if key not in numeric]


def pictures(
    chosen: Selection,
    metric: str,
    over: Sequence[str] | str | None = None,
    by: Sequence[str] | str | None = None,
    *,
    cdf: bool = False,
) -> Panels:
    """The data of `plot`, in panels with names; several only of a map. Runs that differ only by the seed have a CDF."""
    over, by = listed(over or ()), None if by is None else listed(by)
    (measured,) = chosen.metrics([metric], "metric")
    if not chosen.frame[measured].count():
        raise LackingError(f"{metric}: expected runs in which it is defined, found none")
    if cdf and over:
        raise _core.ScenarioError(f"cdf: expected the metric alone, found {', '.join(over)} as well")
    numeric, words = varied(chosen)
    across = [chosen.column(key, "over") for key in over] or [*numeric, *words][:1]
    if len(across) > 2 or (len(across) == 2 and (across[0] == across[1] or {*across} - {*chosen.settings})):
        raise _core.ScenarioError(f"over: expected a key, a metric, or two keys of a map, found {', '.join(over)}")
    of_key = across[:1] != [] and across[0] in chosen.settings
    if cdf or not across:
        across, others = [], [key for key in chosen.settings if key in (*numeric, *words)]
    else:
        # The lines of a picture of two metrics are words: algorithms, queues.
        others = [key for key in chosen.settings if key in (*(numeric if of_key else ()), *words) and key not in across]
    lines = others if by is None else list(dict.fromkeys(chosen.column(key, "by") for key in by))
    if twice := [key for key in lines if key in across]:
        raise _core.ScenarioError(f"by: expected keys that are not in over, found {', '.join(twice)}")
    if not across:
        return [("", _distribution(chosen, measured, lines))]
    along = across if of_key else [key for key in (*numeric, *words) if key not in lines]
    chosen.alone([*along, *lines], "over, by or where")
    if len(across) == 2:
        return _maps(chosen, measured, along, lines)
    return [("", _points(chosen, measured, across[0], along, lines))]


def _points(chosen: Selection, measured: str, across: str, along: Sequence[str], lines: Sequence[str]) -> Points:
    of_key = across in chosen.settings
    cells = estimates(chosen, along, lines, [measured] if of_key else [across, measured])
    shown = _scale(cells, measured)
    beside = shown if of_key else _scale(cells, across)
    x = Axis(beside.label, zero=False)
    places: dict[Any, float] = {}
    if of_key:
        x, places, _ = axis(across, list(dict.fromkeys(row[0] for row, _, _ in cells)))
    found: dict[str, list[tuple[float, Estimate | None, Estimate]]] = {}
    for (row, col, of), estimate in cells.items():
        other = None if of_key else beside.estimated(cells[row, col, across])
        place = places[row[0]] if other is None else other.mean
        if of == measured and estimate.mean is not None and place is not None:
            points = found.setdefault(_named(col), [])
            points.append((place, other, shown.estimated(estimate)))
    # A line between words would show values that there are not.
    line = not of_key or across in varied(chosen)[0]
    series = [_series(number, name, points, line=line) for number, (name, points) in enumerate(found.items())]
    title = f"{shown.title} over {x.label}: means and 95 % intervals over repeats"
    return Points(f"{measured}-{across}", title, x, Axis(shown.label, zero=of_key), series)


def _maps(chosen: Selection, measured: str, keys: Sequence[str], by: Sequence[str]) -> Panels:
    cells = estimates(chosen, keys, by, [measured])
    shown = _scale(cells, measured)
    settings = list(dict.fromkeys(col for _, col, _ in cells))
    if len(settings) > MOST_PANELS:
        found = f"{len(settings)} settings of {', '.join(by)}"
        raise LackingError(f"{measured}: expected at most {MOST_PANELS} maps side by side, found {found}")
    (x, across, columns), (y, down, rows) = (
        axis(key, list(dict.fromkeys(row[number] for row, _, _ in cells))) for number, key in enumerate(keys)
    )
    left_to_right = sorted(across, key=across.__getitem__)
    # Numbers ascend upwards, words stand in the order of the file.
    top_down = sorted(down, key=down.__getitem__, reverse=keys[1] in varied(chosen)[0])

    def mean(place: tuple[Any, ...], col: tuple[Any, ...]) -> float | None:
        estimate = cells.get((place, col, measured))
        return None if estimate is None else shown.scaled(estimate.mean)

    return [
        (
            ", ".join(f"{TITLES.get(key, key)} {names.titled(value)}" for key, value in zip(by, col, strict=True)),
            Cells(
                f"{measured}-{'-'.join(keys)}",
                f"{shown.title} over {x.label} and {y.label}: means over repeats",
                x.label,
                [columns[one] for one in left_to_right],
                y.label,
                [rows[one] for one in top_down],
                [[mean((one, other), col) for one in left_to_right] for other in top_down],
                shown.label,
                shown.short_unit,
                shown.meaning,
            ),
        )
        for col in settings
    ]


def _distribution(chosen: Selection, measured: str, lines: Sequence[str]) -> Points:
    """The empirical distribution of a metric over the runs of each setting, in steps."""
    shown = metric_of(measured, chosen.frame[measured].to_list())
    groups = chosen.frame.group_by(lines, maintain_order=True) if lines else [((), chosen.frame)]
    found: list[Series] = []
    for setting, group in groups:
        values = np.sort(defined(group[measured].to_list())) * shown.factor
        if len(values):
            shares = np.arange(1, 2 * len(values) + 1) // 2 / len(values)
            line = np.repeat(values, 2).tolist(), shares.tolist()
            found.append(Series(_named(setting), len(found), *line, points=False))
    runs = chosen.frame[measured].count()
    lacking = len(chosen.frame) - runs
    note = f"Without {lacking} runs in which it is undefined." if lacking else ""
    title = f"Distribution of {shown.name} over {runs} runs"
    return Points(f"{measured}-cdf", title, Axis(shown.label, zero=False), Axis("share of runs"), found, note)


def _scale(cells: Mapping[Place, Estimate], column: str) -> Metric:
    return metric_of(column, [one.mean for (_, _, of), one in cells.items() if of == column])


def _named(setting: Sequence[Any]) -> str:
    return ", ".join(map(names.titled, setting))


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


def axis(key: str, values: Sequence[Any]) -> tuple[Axis, dict[Any, float], dict[Any, str]]:
    """The axis of a key, and the place and the text of each of its values: that of a number, or a row of words."""
    numeric = all(number_of(value) is not None for value in values)
    texts = {value: names.titled(value) for value in values}
    units = {QUANTITY.sub(r"\2", text) for text in texts.values()}
    # A unit that all values have is that of the axis.
    if numeric and len(units) == 1 and (unit := units.pop()):
        texts = {value: QUANTITY.sub(r"\1", text) for value, text in texts.items()}
        places = {value: float(text) for value, text in texts.items()}
    else:
        places = {value: number_of(value) or 0.0 if numeric else float(place) for place, value in enumerate(values)}
        unit = ""
    least, most = (of(places.values(), default=0.0) for of in (min, max))
    ticks = tuple(zip(places.values(), texts.values(), strict=True)) if len(values) <= MOST_TICKS else ()
    return Axis(label(TITLES.get(key, key), unit), 0 < FAR * least < most, zero=False, ticks=ticks), places, texts
