"""Metrics of single flows of the runs of a sweep: `goodput.1` and `share.2` by number, from 1 on, or `cwnd.bulk` by label."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from elephan._core import ScenarioError, one_of
from elephan.api.metrics import Metric, bounds, metrics_of
from elephan.studies.sweeps import names

OF_A_FLOW = re.compile(r"([a-z_]+)\.(.+)")
SHARE = Metric("share", "% of goodput", 1, 100.0, "share", bounds=(0.0, 1.0))


@cache
def _known() -> dict[str, Metric]:
    """The metrics of a flow by their short names, of which a mean needs no more than the name."""
    declared = {names.short_metric(metric.column).removesuffix("_mean"): metric for metric in metrics_of("FlowSummary")}
    return {**declared, "share": SHARE}


def _parts(name: str) -> tuple[Metric, str] | None:
    """The metric and the flow that a name means; None for the name of anything else."""
    found = OF_A_FLOW.fullmatch(name)
    metric = found and _known().get(found[1].removesuffix("_mean"))
    return (metric, found[2]) if found and metric else None


def metric(name: str) -> Metric | None:
    """How tables show the metric of a flow; None if the name means no such metric."""
    if (parts := _parts(name)) is None:
        return None
    shown, flow = parts
    return replace(shown, name=f"{shown.name}, flow {flow}", bounds=shown.bounds or bounds(shown.column))


def with_metrics(frame: pl.DataFrame, wanted: Sequence[str]) -> pl.DataFrame:
    """An index that has summaries, with a column for each of `wanted` that is the metric of a flow.

    Raises `ScenarioError` for a flow that no run has.
    """
    runs = [None if text is None else json.loads(text)["flows"] for text in frame["summary"]]
    for name in dict.fromkeys(wanted):
        if (parts := _parts(name)) is None:
            continue
        shown, flow = parts
        if not any(_flow(flows, flow) for flows in runs if flows):
            labels = dict.fromkeys(str(one["label"]) for flows in runs if flows for one in flows)
            most = max((len(flows) for flows in runs if flows), default=0)
            expected = f"a number from 1 to {most}, or {one_of([*labels], flow)}"
            raise ScenarioError(f"{name}: expected a flow: {expected}; found {flow!r}")
        values = [None if flows is None else _value(flows, flow, shown) for flows in runs]
        frame = frame.with_columns(pl.Series(name, values, dtype=pl.Float64))
    return frame


def _flow(flows: Sequence[dict[str, Any]], flow: str) -> dict[str, Any] | None:
    if flow.isdecimal():
        return flows[int(flow) - 1] if 1 <= int(flow) <= len(flows) else None
    return next((one for one in flows if one["label"] == flow), None)


def _value(flows: Sequence[dict[str, Any]], flow: str, shown: Metric) -> float | None:
    found = _flow(flows, flow)
    if found is None:
        return None
    if shown is not SHARE:
        value = found.get(shown.column)
        return None if value is None else float(value)
    total = sum(one["goodput_bit_s"] for one in flows)
    return found["goodput_bit_s"] / total if total > 0 else None
