"""The metrics of a run as tables, plots and reports show them. They are declared in crates/metrics/src/summary.rs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from elephan import _core
from elephan.api.summary import Summary


@dataclass(frozen=True)
class Metric:
    """A column of tables: its title and unit there, where a summary has it, what it means, and which values are better."""

    name: str
    unit: str
    column: str
    factor: float
    digits: int
    meaning: str
    source: str
    better: Literal["higher", "lower", "neither"]

    def read(self, summary: Summary) -> float | None:
        """The metric of a run, in its unit; none where it is undefined."""
        return self.scaled(getattr(summary, self.column))

    def scaled(self, value: float | None) -> float | None:
        """A value of its column, in its unit."""
        return None if value is None else value * self.factor


def metrics_of(part: str) -> tuple[Metric, ...]:
    """The metrics that tables show of a part of a summary, such as `FlowSummary`."""
    return tuple(
        Metric(
            name=field["title"],
            column=field["name"],
            meaning=field["meaning"],
            source=field["source"],
            **field["shown"],
        )
        for field in json.loads(_core.declared_fields())
        if field["part"] == part and field["shown"] is not None
    )


METRICS = metrics_of("Summary")


def impact(reference: Summary, changed: Summary, replaced: Sequence[int]) -> float | None:
    """Compute the impact on Standard TCP (Li 2006, equation 9.1) of other flows in place of some of its own.

    Both runs have the same flows but for those numbered `replaced`, which use Standard TCP in `reference` and another algorithm
    in `changed`. The result is what the remaining flows got without the others over what they got with them: above 1 they were
    harmed. `None` where they got nothing beside the others.
    """

    def remaining(summary: Summary) -> float:
        return sum(flow.goodput_bit_s for number, flow in enumerate(summary.flows) if number not in replaced)

    if len(reference.flows) != len(changed.flows):
        raise ValueError(
            f"impact: expected runs of as many flows, found {len(reference.flows)} and {len(changed.flows)}"
        )
    with_others = remaining(changed)
    return _core.impact(remaining(reference), with_others) if with_others > 0 else None
