"""The content of a report. The page that shows it has the same types in web/src/content.ts."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from elephan.api.metrics import METRICS
from elephan.api.pictures.data import Cells, Chart, Numbers, Points, Runs, number_of
from elephan.base.table import Table, text_heads
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps.names import short_metric, shown
from elephan.studies.sweeps.plots import axis


@dataclass(frozen=True)
class Group:
    """Charts that are zoomed together."""

    title: str
    charts: list[Chart]


@dataclass(frozen=True)
class Tile:
    """A headline number."""

    name: str
    value: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Picture:
    """An existing picture as a data URL, and its data as CSV."""

    title: str
    url: str
    csv: str = ""


@dataclass(frozen=True)
class Content:
    """The entire content of a report."""

    kind: str
    title: str
    subtitle: str
    facts: list[tuple[str, str]]
    command: str
    scenario: str
    tiles: list[Tile] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    runs: Runs | None = None
    figures: list[Points | Cells] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def headlines(self) -> Table:
        """The headline numbers as a table, for formats that have no tiles."""
        heads = text_heads("metric", "value", "unit")
        return Table("Metrics", heads, [[tile.name, tile.value, tile.unit] for tile in self.tiles])

    def to_json(self) -> str:
        """The JSON that the page reads."""
        charts = [
            {"title": group.title, "charts": [_chart_json(chart) for chart in group.charts]} for group in self.groups
        ]
        plain = {
            **vars(self),
            "tiles": [asdict(tile) for tile in self.tiles],
            "tables": [table.to_page() for table in self.tables],
            "groups": charts,
            "runs": None if self.runs is None else _runs_json(self.runs),
            "figures": [{"kind": type(figure).__name__.lower(), **asdict(figure)} for figure in self.figures],
            "pictures": [asdict(picture) for picture in self.pictures],
        }
        return json.dumps(_finite(plain), allow_nan=False)


Values = Sequence[float | None]


def of_metrics(
    title: str, keys: Sequence[str], rows: Iterable[tuple[list[str], Sequence[Values]]], note: str = ""
) -> Table:
    """A table of the metrics of runs: each row has the texts of `keys`, and the values of `METRICS` in each of its runs."""

    def text(k: int, runs: Sequence[Values]) -> str:
        return METRICS[k].text(Estimate.of([run[k] for run in runs], within=METRICS[k].within))

    texts = [[*cells, *(text(k, runs) for k in range(len(METRICS)))] for cells, runs in rows]
    return Table(title, [*text_heads(*keys), *(metric.head for metric in METRICS)], texts, note)


def _chart_json(chart: Chart) -> dict[str, Any]:
    lines = [
        {"name": line.name, "colour": line.colour, "minor": line.minor, "values": _packed(line.values)}
        for line in chart.lines
    ]
    marks = [asdict(mark) for mark in chart.marks]
    return {**vars(chart), "time_s": _packed(chart.time_s, exact=True), "lines": lines, "marks": marks}


def _packed(values: Numbers, *, exact: bool = False) -> dict[str, str]:
    """Numbers as little-endian floats in base64: 32 bits, which is more than a picture shows, or 64 for times."""
    kind, name = ("<f8", "f64") if exact else ("<f4", "f32")
    return {name: base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()}


def _runs_json(runs: Runs) -> dict[str, Any]:
    most = max(len(runs.settings), 2)
    columns = [[row[k] for row in runs.settings] for k in range(len(runs.keys))]
    axes = [axis(key, list(dict.fromkeys(values))) for key, values in zip(runs.keys, columns, strict=True)]
    numeric = [all(number_of(value) is not None for value in values) for values in columns]
    return {
        "title": runs.title,
        "keys": [
            {
                "name": key,
                "numeric": is_number,
                "label": drawn.label,
                "log": drawn.log,
                "texts": {shown(value): text for value, text in texts.items()},
            }
            for key, is_number, (drawn, _, texts) in zip(runs.keys, numeric, axes, strict=True)
        ],
        "metrics": [
            {
                "name": m.name,
                "key": short_metric(m.column),
                "title": m.title,
                "label": m.label,
                "unit": m.unit,
                "meaning": m.meaning,
            }
            for m in METRICS
        ],
        "settings": [list(map(shown, row)) for row in runs.settings],
        "axis": [
            [
                places[value] if is_number else None
                for value, is_number, (_, places, _) in zip(row, numeric, axes, strict=True)
            ]
            for row in runs.settings
        ],
        "values": runs.values,
        "t95": [float(stdtrit(n, 0.975)) for n in range(1, min(most, 200))],
    }


def _finite(value: Any) -> Any:
    """JSON has no infinities."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
