"""What pictures read of a run: its samples, the names of its lines, and the time over which means are taken."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from elephan._core import ScenarioError
from elephan.api.outline import network
from elephan.api.pictures.data import Numbers
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary
from elephan.base.text import short

if TYPE_CHECKING:
    import pyarrow as pa

# Lines of a chart: as many as there are colours that all readers can distinguish.
MOST_LINES = 8
# Means are over this time and this many round-trip times, the longer of both, but over no more than this share of the run.
MEAN_S, MEAN_RTTS, MEAN_SHARE = 1.0, 10, 0.1


class Recorded(Protocol):
    """A run with its samples: `Run`."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def summary(self) -> Summary:
        """The metrics."""

    @property
    def labels(self) -> Sequence[str]:
        """The labels of flows, crowds and streams, in this order."""

    def table(self, name: str, only: Sequence[str] | None = None) -> "pa.Table":
        """Samples, all columns or only those of these names that are there."""


class Samples:
    """Some columns of a table of samples, by what they are of: the number of a flow, or the name of a link."""

    def __init__(self, run: Recorded, table: str, columns: Sequence[str]) -> None:
        by = "link" if table == "queues" else "flow"
        found = run.table(table, list(dict.fromkeys(["time_s", by, *columns])))
        others = [name for name in found.column_names if name != by] if found.num_rows else []
        self.columns: dict[str, Numbers] = {name: found[name].to_numpy() for name in others}
        of = found[by].to_numpy() if found.num_rows else np.empty(0)
        self.keys = list(dict.fromkeys(of.tolist()))
        self._rows = {key: np.flatnonzero(of == key) for key in self.keys}

    def of(self, key: Any, column: str) -> Numbers:
        """A column of one flow or link."""
        return np.asarray(self.columns[column][self._rows[key]], float)

    @property
    def time_s(self) -> Numbers:
        """All times of samples, ascending."""
        return np.unique(self.columns["time_s"]) if self.columns else np.empty(0)


def names(run: Recorded) -> list[str]:
    """The name of each flow, crowd and stream in a legend: `flow 1: htcp`, `web`."""
    flows = len(run.summary.flows)
    others = list(run.labels[flows:])
    alike = len(set(others)) < len(others)
    return [
        *(f"flow {k + 1}: {label}" for k, label in enumerate(run.labels[:flows])),
        *(f"{label} {k + 1}" if alike else label for k, label in enumerate(others)),
    ]


def describe(run: Recorded) -> str:
    """The title of a picture: the scenario, its path and its seed."""
    return f"{short(run.scenario.name, 60)}: {run.scenario.outline}, seed {run.scenario.document['seed']}"


def experiment(document: Mapping[str, Any]) -> str:
    """A scenario in a few words: its number of flows, and its path or number of links."""
    flows = sum(int(flow.get("count", 1)) for flow in document["flow"])
    between = ", " if document.get("path") else " over "
    return f"{flows} {'flow' if flows == 1 else 'flows'}{between}{network(document)}"


def base_rtt_s(scenario: Scenario) -> float | None:
    """The longest round-trip time of a flow without queueing in s; none for a stored scenario that is no longer accepted."""
    try:
        longest: float = scenario.plan["base_rtt_s"]
    except ScenarioError:
        return None
    return longest


def mean_s(scenario: Scenario, duration_s: float) -> float:
    """The time over which means are drawn: 1 s or ten round-trip times, at most a tenth of the run."""
    return min(max(MEAN_S, MEAN_RTTS * (base_rtt_s(scenario) or 0)), MEAN_SHARE * duration_s)


def means(time_s: Numbers, rates: Numbers, edges: Numbers) -> Numbers:
    """The mean of rates between successive edges. Each rate holds from the time before until its own; NaN without any."""
    steps = np.diff(time_s, prepend=np.nan)
    if len(steps) > 1:
        steps[0] = np.median(steps[1:]) if time_s[0] > 0 else 0.0
    known = np.isfinite(rates) & np.isfinite(steps)
    # A time at an edge belongs to what lies before it.
    slots = np.clip(np.searchsorted(edges, time_s[known] * (1 - 1e-12), side="left") - 1, 0, len(edges) - 2)
    length = np.bincount(slots, steps[known], len(edges) - 1)
    area = np.bincount(slots, rates[known] * steps[known], len(edges) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0, area / length, np.nan)


def edges(time_s: Numbers, least_s: float) -> Numbers:
    """The edges of equal intervals over these times of samples, each at least this long and a whole number of samples."""
    if len(time_s) < 2:
        return np.asarray(time_s, float)
    sampled = float(np.median(np.diff(time_s)))
    count = max(1, round(least_s / sampled))
    if count * sampled < least_s * (1 - 1e-9):
        count += 1
    length = count * sampled
    inner = np.arange(0.0, time_s[-1] - length / 2, length)
    return np.append(inner, time_s[-1]) if len(inner) else np.array([0.0, time_s[-1]])
