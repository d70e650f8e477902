"""Metrics: how tables, plots and reports show figures. Those of a summary are declared in crates/metrics/src/summary.rs."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Protocol, Self, TypeVar

from elephan import _core
from elephan.api.summary import Summary
from elephan.base.numbers import number
from elephan.base.table import Head

Centre = Literal["mean", "median"]


class Repeated(Protocol):
    """An estimate of a metric from repeats: `Estimate`."""

    def scaled(self, factor: float) -> Self:
        """The estimate in another unit."""

    def text(self, digits: int | None = None, centre: Centre = "mean") -> str:
        """The estimate as text with this number of decimals."""


Estimated = TypeVar("Estimated", bound=Repeated)


@dataclass(frozen=True)
class Metric:
    """A figure in its displayed form: title, unit, and number of decimals.

    A value times `factor` is in the unit. The value is that of `column`, or the result of `reading` for a summary, a part of it
    or a run. `meaning`, `source` and which values are `better` are set if a summary declares it; `bounds` are the least and the
    greatest possible value, of one that no summary declares.
    """

    name: str
    unit: str
    digits: int = 2
    factor: float = 1.0
    column: str = ""
    reading: Callable[[Any], float | None] | None = None
    meaning: str = ""
    source: str = ""
    better: Literal["higher", "lower", "neither"] = "neither"
    bounds: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"<Metric {self.head.line}>"

    def __call__(self, part: Any) -> float | None:
        """As `read`: a function that `metric` has made a metric of can still be called."""
        return self.read(part)

    @property
    def within(self) -> tuple[float, float]:
        """The least and the greatest possible value, in the metric's unit; infinite where there is none."""
        low, high = bounds(self.column) if self.bounds is None else self.bounds
        return low * self.factor, high * self.factor

    @property
    def head(self) -> Head:
        """The head of its column in a table."""
        return Head(self.name, self.unit)

    @property
    def short_unit(self) -> str:
        """The unit without the counted object: `Mbit/s` of `Mbit/s, application bytes`."""
        return self.unit.split(",", maxsplit=1)[0]

    @property
    def title(self) -> str:
        """The title for the head of a figure: `Goodput`."""
        return self.name[:1].upper() + self.name[1:]

    @property
    def label(self) -> str:
        """Title and unit, for an axis."""
        return f"{self.name} ({self.short_unit})" if self.unit else self.name

    def value(self, part: Any) -> float | None:
        """The metric of a summary, a part of it or a run, in SI units; none if it is undefined."""
        found: float | None = self.reading(part) if self.reading else getattr(part, self.column)
        return found

    def read(self, part: Any) -> float | None:
        """The value in the metric's unit."""
        return self.scaled(self.value(part))

    def scaled(self, value: float | None) -> float | None:
        """A value of a summary, converted to the metric's unit."""
        return None if value is None else value * self.factor

    def estimated(self, estimate: Estimated) -> Estimated:
        """An estimate of a summary's values, converted to the metric's unit."""
        return estimate.scaled(self.factor)

    def text(self, value: float | Repeated | None, centre: Centre = "mean") -> str:
        """A value or an estimate in the metric's unit, as text; `-` if it is undefined."""
        if value is None or isinstance(value, int | float):
            # Counts have separators of thousands.
            return f"{value:,.0f}" if value is not None and self.digits == 0 else number(value, 1, self.digits)
        return value.text(self.digits, centre)

    def cell(self, part: Any) -> str:
        """The metric of a summary, a part of it or a run, as text."""
        return self.text(self.read(part))


@cache
def declared_fields() -> dict[tuple[str, str], dict[str, Any]]:
    """What is declared of each figure of a summary, by the part that has it, such as `FlowSummary`, and its name."""
    return {(field["part"], field["name"]): field for field in json.loads(_core.declared_fields())}


@cache
def _bounds() -> dict[str, tuple[float, float]]:
    fields = declared_fields().values()
    return {field["name"]: (0.0, math.inf if field["most"] is None else field["most"]) for field in fields}


def bounds(column: str) -> tuple[float, float]:
    """The least and the greatest possible value of a figure of a summary, in SI units; infinite for anything else."""
    return _bounds().get(column, (-math.inf, math.inf))


@cache
def _declared() -> dict[tuple[str, str], Metric]:
    """The figures that tables show, by part of the summary and column."""
    return {
        key: Metric(
            name=field["title"],
            column=field["name"],
            meaning=field["meaning"],
            source=field["source"],
            **field["shown"],
        )
        for key, field in declared_fields().items()
        if field["shown"] is not None
    }


@cache
def declared_columns() -> dict[tuple[str, str], dict[str, Any]]:
    """What is declared of each column of the samples, by its table and name."""
    return {(one["table"], one["name"]): one for one in json.loads(_core.declared_columns())}


def metrics_of(part: str) -> tuple[Metric, ...]:
    """The metrics that tables show for a part of a summary, such as `FlowSummary`."""
    return tuple(metric for (of, _), metric in _declared().items() if of == part)


def declared(part: str, column: str, **changes: Any) -> Metric:
    """A metric of a part of a summary, such as `FlowSummary`, with `changes` for tables that need other settings."""
    return replace(_declared()[part, column], **changes)


METRICS = metrics_of("Summary")


def impact(reference: Summary, changed: Summary, replaced: Sequence[int]) -> float | None:
    """Compute the impact on Standard TCP of replacing some of its flows (Li 2006, equation 9.1).

    Both runs have the same flows, except for those numbered `replaced`, which use Standard TCP in `reference` and another
    algorithm in `changed`. The result is the goodput of the remaining flows in `reference` over that in `changed`; above 1 they
    were harmed. `None` if they got nothing in `changed`.
    """

    def remaining(summary: Summary) -> float:
        return sum(flow.goodput_bit_s for number, flow in enumerate(summary.flows) if number not in replaced)

    if len(reference.flows) != len(changed.flows):
        raise ValueError(
            f"impact: expected runs of as many flows, found {len(reference.flows)} and {len(changed.flows)}"
        )
    with_others = remaining(changed)
    return remaining(reference) / with_others if with_others > 0 else None
