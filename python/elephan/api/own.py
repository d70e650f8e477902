"""Metrics of the user's: functions over the samples and the summary of a run, shown beside those that a summary declares."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from elephan._core import ScenarioError
from elephan.api.metrics import METRICS, Metric
from elephan.api.run import Run
from elephan.base.errors import FailedError, told

Reading = Callable[[Run], float | None]


class MetricError(FailedError):
    """A metric of the user's that failed on a run."""


def metric(
    *,
    unit: str = "",
    digits: int = 2,
    better: Literal["higher", "lower", "neither"] = "neither",
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Callable[[Reading], Metric]:
    """Make a metric of the function below it, which takes a `Run` and returns a number, or None where it is undefined.

    The function's name and the first line of its docstring are those of the metric. Its numbers are in `unit`, shown with
    `digits` after the point; `within` bounds what they can be, and so their intervals; `better` are the higher or the lower.
    """
    return lambda function: replace(_of_function(function), unit=unit, digits=digits, better=better, bounds=within)


def _of_function(function: Reading) -> Metric:
    meaning = (function.__doc__ or "").strip().partition("\n")[0]
    return Metric(function.__name__, "", reading=function, meaning=meaning)


def own_metrics(wanted: Sequence[Metric | Reading]) -> tuple[Metric, ...]:
    """The metrics that a user gives: functions of a run, bare or under `metric`. Raises `ScenarioError` for anything else."""
    found: list[Metric] = []
    for one in wanted:
        made = one if isinstance(one, Metric) else _of_function(one) if hasattr(one, "__name__") else None
        if made is None or made.reading is None:
            raise ScenarioError(f"metrics: expected functions of a run, found {one!r}")
        if made.name in (other.name for other in (*METRICS, *found)):
            raise ScenarioError(f"metrics: expected a name that no other metric has, found {made.name!r}")
        found.append(made)
    return tuple(found)


def of_run(metric: Metric, run: Run) -> float | None:
    """A metric of a run, in the metric's unit: one of a summary, or one of the user's. Raises `MetricError` if that fails."""
    if metric.reading is None:
        return metric.read(run.summary)
    where = f"metric {metric.name}: {run.scenario.name}, seed {run.scenario.document['seed']}"
    try:
        found = metric.value(run)
    except Exception as error:
        raise MetricError(f"{where}: {told(error)}") from error
    if found is None:
        return None
    try:
        value = float(found) * metric.factor
    except (TypeError, ValueError):
        raise MetricError(f"{where}: expected a number or None, found {found!r}") from None
    return value if math.isfinite(value) else None


def stored(metric: Metric, values: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """A metric of the user's for a file, with its value in each repeat of each algorithm: its function is not kept."""
    within = [bound if math.isfinite(bound) else None for bound in metric.within]
    kept = {name: getattr(metric, name) for name in ("name", "unit", "digits", "better", "meaning")}
    return {**kept, "within": within, "values": {name: list(every) for name, every in values.items()}}


def restored(document: Mapping[str, Any], runs: Mapping[str, Sequence[Run]]) -> Metric:
    """The metric of which `stored` made this document, for these runs alone."""
    # By object, because two runs may have the same scenario.
    values = {
        id(run): value
        for name, every in runs.items()
        for run, value in zip(every, document["values"][name], strict=True)
    }
    low, high = document["within"]
    return Metric(
        document["name"],
        document["unit"],
        document["digits"],
        reading=lambda run: values[id(run)],
        meaning=document["meaning"],
        better=document["better"],
        bounds=(-math.inf if low is None else low, math.inf if high is None else high),
    )
