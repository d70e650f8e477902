"""The content of a report. The page that shows it has the same types in web/src/content.ts."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from scipy.special import stdtrit

from elephan import _core
from elephan.api.metrics import METRICS
from elephan.base.table import Table
from elephan.report import series


@dataclass(frozen=True)
class Line:
    """A line over time. Lines of one flow share the number of their colour."""

    name: str
    values: series.Numbers
    colour: int
    minor: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over the same times."""

    id: str
    title: str
    unit: str
    meaning: str
    time_s: series.Numbers
    lines: list[Line]
    note: str = ""
    steps: bool = False


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
class Runs:
    """Runs with their settings and metrics: one row each."""

    title: str
    keys: list[str]
    settings: list[list[Any]]
    values: list[list[float | None]]

    def axis(self) -> list[list[float | None]]:
        """The settings as numbers in SI units; None if they are words."""
        return [
            [(_core.quantity(value) or (None,))[0] if isinstance(value, str) else _float(value) for value in row]
            for row in self.settings
        ]

    def numeric(self) -> list[bool]:
        """For each key, whether all its values are numbers."""
        axis = self.axis()
        return [all(row[k] is not None for row in axis) for k in range(len(self.keys))]


@dataclass(frozen=True)
class Series:
    """Points with their intervals."""

    name: str
    colour: int
    x: list[float]
    y: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    line: bool = True
    points: bool = True
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis of a figure."""

    label: str
    log: bool = False
    zero: bool = True


@dataclass(frozen=True)
class Points:
    """Lines and points over a quantity other than time."""

    id: str
    title: str
    x: Axis
    y: Axis
    series: list[Series]
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """An existing picture as a data URL, and its data as CSV."""

    title: str
    url: str
    csv: str = ""


def sentences(*parts: str) -> str:
    """Join the sentences of a note; empty ones are left out."""
    return " ".join(part for part in parts if part)


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
    figures: list[Points] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The JSON that the page reads."""
        charts = [
            {
                "title": group.title,
                "charts": [
                    {
                        "id": chart.id,
                        "title": chart.title,
                        "unit": chart.unit,
                        "meaning": chart.meaning,
                        "note": chart.note,
                        "steps": chart.steps,
                        "x": series.packed(chart.time_s, exact=True),
                        "lines": [
                            {
                                "name": line.name,
                                "colour": line.colour,
                                "minor": line.minor,
                                "values": series.packed(line.values),
                            }
                            for line in chart.lines
                        ],
                    }
                    for chart in group.charts
                ],
            }
            for group in self.groups
        ]
        plain = {
            "kind": self.kind,
            "title": self.title,
            "subtitle": self.subtitle,
            "facts": self.facts,
            "command": self.command,
            "scenario": self.scenario,
            "tiles": [asdict(tile) for tile in self.tiles],
            "tables": [table.to_page() for table in self.tables],
            "groups": charts,
            "runs": None if self.runs is None else _runs_json(self.runs),
            "figures": [asdict(figure) for figure in self.figures],
            "pictures": [asdict(picture) for picture in self.pictures],
            "notes": self.notes,
        }
        return json.dumps(_finite(plain), allow_nan=False)


def _runs_json(runs: Runs) -> dict[str, Any]:
    most = max(len(runs.settings), 2)
    return {
        "title": runs.title,
        "keys": [{"name": key, "numeric": numeric} for key, numeric in zip(runs.keys, runs.numeric(), strict=True)],
        "metrics": [{"name": m.name, "unit": m.unit, "meaning": m.meaning} for m in METRICS],
        "settings": runs.settings,
        "axis": runs.axis(),
        "values": runs.values,
        "t95": [float(stdtrit(n, 0.975)) for n in range(1, min(most, 200))],
    }


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _finite(value: Any) -> Any:
    """JSON has no infinities."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
