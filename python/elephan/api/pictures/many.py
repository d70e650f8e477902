"""Pictures of many runs, of a sweep or a comparison: delay against load, a map of fairness."""

from elephan.api.metrics import METRICS, Metric
from elephan.api.pictures.data import Axis, Cells, LackingError, Picture, Points, Runs, Series, label

# Panels of a map: one for each setting of the other keys.
MOST_PANELS = 12
# Keys whose values differ only by chance.
REPEATS = ("repeat", "seed")

Panels = list[tuple[str, Picture]]


def _metric(column: str) -> tuple[int, Metric]:
    return next((number, metric) for number, metric in enumerate(METRICS) if metric.column == column)


def delay_load(runs: Runs) -> Panels:
    """The mean queueing delay of each run against the utilisation of its bottleneck."""
    (x, load), (y, delay) = _metric("utilisation"), _metric("queue_delay_mean_s")
    by = next((k for k in _varied(runs) if not runs.numeric()[k]), None)
    groups: dict[str, list[tuple[float, float]]] = {}
    for row, values in zip(runs.settings, runs.values, strict=True):
        share, waited = values[x], values[y]
        if share is not None and waited is not None:
            groups.setdefault(str(row[by]) if by is not None else "runs", []).append((share, waited))
    if not groups:
        raise LackingError("delay-load: expected runs with a utilisation and a queueing delay, found none")
    found = [
        Series(name, number, [one for one, _ in points], [other for _, other in points], line=False)
        for number, (name, points) in enumerate(groups.items())
    ]
    note = "A point for each run: means over its measuring window, at the bottleneck."
    axes = Axis(load.label, zero=False), Axis(label("queueing delay", delay.short_unit))
    return [("", Points("delay-load", "Delay against load", *axes, found, note))]


def fairness_map(runs: Runs) -> Panels:
    """Fairness over two swept keys, numbers before words; a panel for each setting of further keys."""
    varied = sorted(_varied(runs), key=lambda key: not runs.numeric()[key])
    if len(varied) < 2:
        found = f"a sweep over {runs.keys[varied[0]]}" if varied else "no swept key"
        raise LackingError(f"fairness-map: expected a sweep over two keys, found {found}")
    number, metric = _metric("fairness")
    across, down, *others = varied
    panels: dict[str, dict[tuple[str, str], list[float]]] = {}
    for row, values in zip(runs.settings, runs.values, strict=True):
        value = values[number]
        if value is not None:
            name = ", ".join(f"{runs.keys[key]} {row[key]}" for key in others)
            panels.setdefault(name, {}).setdefault((str(row[across]), str(row[down])), []).append(value)
    if not panels:
        raise LackingError("fairness-map: expected runs with two flows or more, found fairness undefined in all")
    if len(panels) > MOST_PANELS:
        told = ", ".join(runs.keys[key] for key in others)
        raise LackingError(
            f"fairness-map: expected at most {MOST_PANELS} settings of the other keys ({told}), found {len(panels)}"
        )
    columns, rows = _values(runs, across), _values(runs, down)[::-1]
    note = f"{metric.meaning} Means over repeats."
    return [
        (
            name,
            Cells(
                id="fairness-map",
                title=metric.title,
                x=runs.keys[across],
                columns=columns,
                y=runs.keys[down],
                rows=rows,
                values=[[_mean(cells.get((column, row))) for column in columns] for row in rows],
                unit=metric.short_unit,
                note=note,
            ),
        )
        for name, cells in panels.items()
    ]


def _varied(runs: Runs) -> list[int]:
    return [
        k for k, key in enumerate(runs.keys) if key not in REPEATS and len({str(row[k]) for row in runs.settings}) > 1
    ]


def _values(runs: Runs, key: int) -> list[str]:
    """The values of a key, in order if they are numbers."""
    places = {str(row[key]): place[key] for row, place in zip(runs.settings, runs.axis(), strict=True)}
    return sorted(places, key=lambda value: places[value] or 0.0) if runs.numeric()[key] else list(places)


def _mean(values: list[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
