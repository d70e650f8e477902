"""What a picture consists of: lines over time, lines and points over another quantity, or cells."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from elephan import _core


class LackingError(_core.ScenarioError):
    """Results that are sound lack what a picture needs."""


Numbers = np.ndarray[Any, np.dtype[np.float64]]
# The name of a flow in a legend begins with its number.
FLOW = re.compile(r"^(flow \d+): .*?(?=( ssthresh)?$)")


@dataclass(frozen=True)
class Line:
    """A line over time. Lines of one flow share the number of their colour."""

    name: str
    values: Numbers
    colour: int
    minor: bool = False


@dataclass(frozen=True)
class Mark:
    """Something that happened at a time, such as a new rate of a link."""

    time_s: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Lines over the same times, up to `until_s`. Gaps are NaN.

    `window` is the measuring window in s. With `steps`, a value holds from the time before until its own.
    """

    id: str
    title: str
    unit: str
    meaning: str
    time_s: Numbers
    lines: list[Line]
    note: str = ""
    steps: bool = False
    until_s: float = 0.0
    window: tuple[float, float] | None = None
    marks: list[Mark] = field(default_factory=list)

    def numbered(self) -> Self:
        """With flows named by their numbers alone, for panels that are named by the algorithm."""
        return replace(self, lines=[replace(line, name=FLOW.sub(r"\1", line.name)) for line in self.lines])


# How a line is broken: "" is solid.
Dash = Literal["", "dashed", "dotted"]


@dataclass(frozen=True)
class Series:
    """Points, which may have intervals: of estimates of `y`, `low` and `high`; of those of `x`, `left` and `right`."""

    name: str
    colour: int
    x: list[float]
    y: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    left: list[float | None] | None = None
    right: list[float | None] | None = None
    line: bool = True
    points: bool = True
    dash: Dash = ""


@dataclass(frozen=True)
class Axis:
    """An axis of a figure; `ticks` are places with their texts, where not all numbers have one."""

    label: str
    log: bool = False
    zero: bool = True
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Points:
    """Lines and points over a quantity other than time; `equal` gives both axes one scale."""

    id: str
    title: str
    x: Axis
    y: Axis
    series: list[Series]
    note: str = ""
    equal: bool = False

    def numbered(self) -> Self:
        """As of a chart."""
        return replace(self, series=[replace(one, name=FLOW.sub(r"\1", one.name)) for one in self.series])


@dataclass(frozen=True)
class Cells:
    """A heat map of `z`: a value for each pair of settings, in rows from the top. None where there is none."""

    id: str
    title: str
    x: str
    columns: list[str]
    y: str
    rows: list[str]
    values: list[list[float | None]]
    z: str
    unit: str = ""
    note: str = ""

    def numbered(self) -> Self:
        """As of a chart: it has no lines."""
        return self


# A picture with one scale.
Single = Chart | Points | Cells


@dataclass(frozen=True)
class Panels:
    """Lines over the same quantity in panels one below the other, each with a scale of its own."""

    id: str
    title: str
    panels: list[Points]
    note: str = ""


Picture = Single | Panels


@dataclass(frozen=True)
class Runs:
    """Runs with their settings and metrics: one row each, with the values of `METRICS` in their units."""

    title: str
    keys: list[str]
    settings: list[list[Any]]
    values: list[list[float | None]]


def number_of(value: Any) -> float | None:
    """The number that a setting is, in SI units; None for a word."""
    if isinstance(value, str):
        found = _core.quantity(value)
        return None if found is None else found[0]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def label(title: str, unit: str) -> str:
    """A quantity with its unit, for an axis."""
    return f"{title} ({unit})" if unit else title


def sentences(*parts: str) -> str:
    """Join the sentences of a note; empty ones are left out."""
    return " ".join(part for part in parts if part)
