"""Reads a sweep into the content of a report."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from elephan import _core
from elephan.api import tables
from elephan.api.metrics import METRICS, bounds
from elephan.api.pictures.data import Axis, Cells, LackingError, Points, Runs, Series, sentences
from elephan.api.scenario import Scenario
from elephan.base.table import Table, text_heads
from elephan.base.text import file_name
from elephan.report.content import Content, of_metrics
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps import plots
from elephan.studies.sweeps.dataset import Dataset, named
from elephan.studies.sweeps.tables import Selection
from elephan.studies.theory import MODELLED, Model

# Maximum points of a sweep in a table: a longer table is not readable.
MOST_POINTS = 1000


def read_sweep(folder: Path) -> Content:
    """Read a sweep: its metrics by point, the runs that failed, and response functions."""
    data = Dataset(folder)
    description, every = data.description(), data.index()
    if every.is_empty():
        raise _core.ScenarioError(data.without_runs())
    index = every.filter(pl.col("status") == "ok")
    failed = every.height - index.height
    keys = [*description["settings"], "repeat"]
    varied = [key for key in keys if index[key].n_unique() > 1 or key == keys[0]]
    rows = list(index.iter_rows(named=True))
    values = [[metric.scaled(row.get(metric.column)) for metric in METRICS] for row in rows]
    runs = Runs("Metrics over the sweep", varied, [[row[key] for key in varied] for row in rows], values)
    by_point = [key for key in varied if key not in ("seed", "repeat")]
    points: dict[tuple[Any, ...], list[list[float | None]]] = {}
    for row, metrics in zip(rows, values, strict=True):
        points.setdefault(tuple(row[key] for key in by_point), []).append(metrics)
    more = f"The first {MOST_POINTS} of {len(points):,} points; index.parquet has all points."
    note = "Means over repeats; ± or brackets: 95 % confidence interval (Student's t)."
    table = of_metrics(
        "Metrics",
        by_point,
        (([*map(str, point)], rows) for point, rows in list(points.items())[:MOST_POINTS]),
        sentences(more if len(points) > MOST_POINTS else "", note),
    )
    return Content(
        kind="sweep",
        title=description["name"],
        subtitle=f"{index.height:,} runs over {', '.join(varied)}",
        facts=[
            ("runs", f"{index.height:,}" + (f", {failed:,} failed" if failed else "")),
            ("code", description["code"]),
        ],
        notes=named(data.losses(), "repeat the sweep to run them"),
        command=f"elephan sweep {file_name(description['name'])}.toml",
        scenario=Scenario(description["scenario"]).toml,
        tables=[table, *_failures(every, keys)],
        runs=runs,
        figures=[*_responses(description["scenario"], data), *usual(Selection.of_runs(runs))],
    )


def usual(chosen: Selection) -> list[Points | Cells]:
    """Delay against load, and fairness over the first two keys, where the runs have them."""
    numeric, words = plots.varied(chosen)
    found: list[Points | Cells] = []
    for metric, *over in (("queueing", "utilisation"), ("fairness", *[*numeric, *words][:2])):
        with contextlib.suppress(LackingError):
            for name, one in plots.pictures(chosen, metric, over):
                # A single flow is always fair: such a map has one value. Fairness over one key is among all metrics.
                if metric == "queueing" or (isinstance(one, Cells) and len({v for row in one.values for v in row}) > 1):
                    found.append(replace(one, title=f"{one.title}: {name}" if name else one.title))
    return found


def _failures(index: pl.DataFrame, keys: Sequence[str]) -> list[Table]:
    """The failed runs, with their errors."""
    failed = index.filter(pl.col("status") != "ok")
    if failed.is_empty():
        return []
    rows = [
        [str(row[key]) for key in ("point", *keys, "error")]
        for row in failed.head(tables.MOST_ROWS).iter_rows(named=True)
    ]
    note = f"The first {len(rows)} of {failed.height:,}." if failed.height > len(rows) else ""
    return [Table("Failed runs", text_heads("point", *keys, "error"), rows, note)]


# Keys of a loss rate, and the rate for a value.
LOSSES: dict[str, Callable[[float], float]] = {
    "path.loss.probability": lambda value: value,
    "path.loss.every": lambda value: 1 / value,
}


def _responses(scenario: Mapping[str, Any], data: Dataset) -> list[Points]:
    """Response functions of a sweep that varies the loss rate: simulated mean windows over theory."""
    index = data.index()
    key = next((key for key in LOSSES if key in index.columns and index[key].n_unique() > 1), None)
    if key is None:
        return []
    index = data.index(long=True).filter(pl.col("status") == "ok")
    windows: dict[str, dict[float, list[float | None]]] = {}
    for row in index.iter_rows(named=True):
        cc = str(row.get("flow.cc") or scenario["flow"][0]["cc"])
        window = json.loads(row["summary"])["flows"][0]["cwnd_mean_segments"]
        windows.setdefault(cc, {}).setdefault(LOSSES[key](float(row[key])), []).append(window)
    rtts = index["path.rtt_s"].unique().to_list() if "path.rtt_s" in index.columns else []
    found = []
    for colour, (cc, points) in enumerate(windows.items()):
        losses = sorted(points)
        within = bounds("cwnd_mean_segments")
        estimates = [Estimate.of(points[loss], within=within) for loss in losses]
        found.append(
            Series(
                cc,
                colour,
                losses,
                [e.mean for e in estimates],
                [e.low for e in estimates],
                [e.high for e in estimates],
                line=False,
            )
        )
        if cc in MODELLED and len(rtts) == 1:
            fine = [float(loss) for loss in np.geomspace(losses[0], losses[-1], 60)]
            theory = [Model(cc).response(loss, float(rtts[0])).window for loss in fine]
            found.append(Series(f"{cc}, theory", colour, fine, [*theory], points=False, dash="dashed"))
    note = "Points: simulation, with 95 % confidence intervals over repeats. Dashed: the response function, unlimited path."
    axes = Axis("loss rate", log=True), Axis("mean window (segments)", log=True)
    return [Points("response", "Response functions", *axes, found, note)]
