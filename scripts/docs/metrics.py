"""The generated parts of docs/metrics/: what a metric is called where, an example, and what was measured of each algorithm."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elephan.api.metrics import METRICS
from elephan.studies.sweeps import names

# Pages of metrics that no table of a comparison has: where each is in summary.json, and its unit there.
OTHERS = {
    "jain": ("`jain`", "1"),
    "congestion-epochs": ("`congestion_epochs`", "count"),
    "synchronisation": ("`synchronisation`", "1"),
    "qos-efficiency": ("`links[].classes[].qos_efficiency`", "1"),
    "impact": ("none: `elephan.impact(...)`", "1"),
    "completion": ("`transfers`, `crowds[].transfers`, `crowds[].pages`", "s"),
    "datagrams": ("`streams[]`: `lost`, `reordered`, `delay_*_s`, `jitter_s`", "packets, s"),
    "hosts": ("`flows[].host`: `busy`, `backlog_max_packets`, `dropped`, `stalls`", "1, packets"),
}
# What was measured of each algorithm: experiment and number, as in `MEASURES` of pages.py.
OF_ALGORITHMS = {
    "utilisation": [("alone", "utilisation"), ("small", "utilisation"), ("lossy", "utilisation")],
    "fairness": [("two", "fairness"), ("rtts", "ratio")],
    "fair-share": [("two", "fair share")],
    "loss": [("alone", "loss")],
    "queueing": [("alone", "queueing")],
}

Table = Callable[[list[str], list[list[str]]], str]


def generated(
    folder: Path, measured: dict[str, Any], measures: list[tuple[str, str, str, str, int, bool]], table: Table
) -> Iterator[tuple[Path, str, str]]:
    """Every generated part of the pages of metrics: its file, its name, its text."""
    pages = {metric.name.replace(" ", "-"): metric for metric in METRICS}
    for page in [*pages, *OTHERS]:
        path = folder / f"{page}.md"
        if page in pages:
            metric = pages[page]
            rows = [
                ["tables and reports", f"`{metric.name}`", metric.unit],
                ["`summary.json`, `index.parquet`", f"`{metric.column}`", names.unit(metric.column)],
            ]
        else:
            where, unit = OTHERS[page]
            rows = [["`summary.json`", where, unit]]
        yield path, "facts", table(["in", "it is", "unit"], rows)
        yield path, "example", example(measured["examples"][page], table)
        if page in OF_ALGORITHMS:
            yield path, "measured", of_algorithms(measured["algorithms"], OF_ALGORITHMS[page], measures, table)


def example(found: dict[str, Any], table: Table) -> str:
    """A command and what it gives."""
    shown = [[name, unit, "undefined" if value is None else f"{value:,g}"] for name, unit, value in found["values"]]
    command = f"    {found['command']}\n\n" if found["command"] else ""
    return command + table(["what", "unit", "value"], shown)


def of_algorithms(
    measured: dict[str, Any],
    wanted: list[tuple[str, str]],
    measures: list[tuple[str, str, str, str, int, bool]],
    table: Table,
) -> str:
    """A row for each algorithm."""
    known = {(experiment, number): (title, unit, digits) for experiment, number, title, unit, digits, _ in measures}
    head = ["cc", *(f"{known[one][0]} ({known[one][1]})" for one in wanted)]
    rows = []
    for name, found in measured.items():
        cells = []
        for experiment, number in wanted:
            value, digits = found[experiment][number]["mean"], known[experiment, number][2]
            cells.append("never" if value is None else f"{value:.{digits}f}")
        rows.append([f"[{name}](../algorithms/{name}.md)", *cells])
    return table(head, rows)
