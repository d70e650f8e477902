"""The generated parts of docs/metrics/: the names of a metric, an example, and the measurements of each algorithm."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measures import MEASURES

from elephan.api.metrics import METRICS, Metric
from elephan.studies.sweeps import names

# Pages of metrics that are not in a table of a comparison: the location in summary.json, and the unit there.
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
# The measurements of each algorithm: experiment and number, as in measures.py.
OF_ALGORITHMS = {
    "utilisation": [("alone", "utilisation"), ("small", "utilisation"), ("lossy", "utilisation")],
    "fairness": [("two", "fairness"), ("rtts", "ratio")],
    "fair-share": [("two", "fair share")],
    "loss": [("alone", "loss")],
    "queueing": [("alone", "queueing")],
}
WINDOW = (
    "The measuring window is from `measure.from` (by default the latest start of a flow of `[[flow]]`) "
    "to the end of the run."
)
BESIDE = "All algorithms, in the experiments of [Algorithms side by side](../algorithms/index.md):"

Table = Callable[[list[str], list[list[str]]], str]


def page(metric: Metric) -> str:
    """The name of a metric's page."""
    return metric.name.replace(" ", "-")


def not_measured(name: str) -> str:
    """The text in place of numbers that have not been measured yet."""
    return f"Not measured yet: `make measured ONLY={name}`."


def generated(folder: Path, measured: dict[str, Any], table: Table) -> Iterator[tuple[Path, str, str]]:
    """Every generated part of the pages of metrics: its file, its name, its text."""
    pages = {page(metric): metric for metric in METRICS}
    rows = [
        [f"[`{one.name}`]({name}.md)", one.meaning, one.source, names.unit(one.column)] for name, one in pages.items()
    ]
    yield folder / "index.md", "declared", table(["name", "definition", "source", "unit"], rows)
    for name in [*pages, *OTHERS]:
        path = folder / f"{name}.md"
        if name in pages:
            metric = pages[name]
            rows = [
                ["tables and reports", f"`{metric.name}`", metric.unit],
                ["`summary.json`, `index.parquet`", f"`{metric.column}`", names.unit(metric.column)],
            ]
        else:
            where, unit = OTHERS[name]
            rows = [["`summary.json`", where, unit]]
        yield path, "facts", f"{table(['in', 'it is', 'unit'], rows)}\n\n{WINDOW}"
        found = measured["examples"].get(name)
        parts = ["## An example", example(found, table) if found else not_measured(name)]
        if name in OF_ALGORITHMS:
            parts += [BESIDE, of_algorithms(measured["algorithms"], OF_ALGORITHMS[name], table)]
        yield path, "example", "\n\n".join(parts)


def example(found: dict[str, Any], table: Table) -> str:
    """A command and its output."""
    shown = [[name, unit, "undefined" if value is None else f"{value:,g}"] for name, unit, value in found["values"]]
    command = f"    {found['command']}\n\n" if found["command"] else ""
    return command + table(["what", "unit", "value"], shown)


def of_algorithms(measured: dict[str, Any], wanted: list[tuple[str, str]], table: Table) -> str:
    """A row for each algorithm."""
    head = ["cc", *(MEASURES[one].head.line for one in wanted)]
    rows = []
    for name, found in measured.items():
        cells: list[str] = [] if found else ["not measured yet", *[""] * (len(wanted) - 1)]
        for experiment, number in wanted if found else []:
            value = found[experiment][number]["mean"]
            cells.append("never" if value is None else MEASURES[experiment, number].text(value))
        rows.append([f"[{name}](../algorithms/{name}.md)", *cells])
    return table(head, rows)
