"""Completion of what is typed: algorithms, disciplines, experiments, metrics, and the keys of a scenario after `--set`."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.api.metrics import METRICS
from elephan.api.registry import cc_groups, queues, recoveries, slow_starts
from elephan.api.scenario import examples, schema

Complete = Callable[[str], list[str]]
# Tables in tables end there: a value deeper than that is written as one.
MOST_DEPTH = 3


def _starting(names: Sequence[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def one_of(names: Callable[[], Sequence[str]]) -> Complete:
    """Complete a name."""
    return lambda incomplete: _starting(names(), incomplete)


def list_of(names: Callable[[], Sequence[str]]) -> Complete:
    """Complete the last name of a list separated by commas, which has each name once."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in _starting(names(), last) if name not in taken]

    return complete


def cc_names() -> list[str]:
    """The algorithms."""
    return [entry.name for entries in cc_groups().values() for entry in entries]


def queue_names() -> list[str]:
    """The queue disciplines."""
    return [entry.name for entry in queues()]


def metric_names() -> list[str]:
    """The metrics of a table, as options write them."""
    return [metric.name.replace(" ", "_") for metric in METRICS]


def experiments() -> list[str]:
    """The published experiments and their sources. Their modules would take a second to import."""
    costs = Path(__file__).parents[1] / "studies/reproduce/scenarios/costs.csv"
    with costs.open(encoding="utf-8", newline="") as file:
        names = [row["experiment"] for row in csv.DictReader(file)]
    return ["list", "all", "page", *dict.fromkeys(name.partition("/")[0] for name in names), *names]


def files(suffix: str, names: Callable[[], Sequence[str]]) -> Complete:
    """Complete a file with a suffix or a folder that leads to one, or the name of one that comes with Elephan."""

    def complete(incomplete: str) -> list[str]:
        folder, _, name = incomplete.rpartition("/")
        place = Path(folder or ("/" if incomplete.startswith("/") else "."))
        found = sorted(place.glob(f"{name}*")) if place.is_dir() and not any(letter in name for letter in "*?[") else []
        paths = [f"{path}/" if path.is_dir() else str(path) for path in found if path.is_dir() or path.suffix == suffix]
        return [*paths, *(_starting(names(), incomplete) if not folder else [])]

    return complete


def scenario_names() -> list[str]:
    """The scenarios that come with Elephan."""
    return list(examples())


# What the value of a key may be, by the last part of the key.
VALUES: Mapping[str, Callable[[], Sequence[str]]] = {
    "cc": cc_names,
    "queue": queue_names,
    "slow_start": lambda: [entry.name for entry in slow_starts()],
    "recovery": lambda: [entry.name for entry in recoveries()],
    "engine": lambda: ["sim", "model", "kernel", "linux"],
}


def setting(incomplete: str) -> list[str]:
    """A key of a scenario, or `KEY=` and a value that a registry names."""
    key, equals, value = incomplete.partition("=")
    if equals:
        known = VALUES.get(key.rpartition(".")[2])
        return [f"{key}={name}" for name in _starting(known(), value)] if known else []
    return [f"{name}=" for name in dict.fromkeys(_keys(schema())) if name.startswith(key)]


def _keys(document: Mapping[str, Any]) -> Iterator[str]:
    def below(node: Mapping[str, Any], name: str, depth: int) -> Iterator[str]:
        for one in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
            inner = document["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
            if inner is not node and inner is not one:
                yield from below(inner, name, depth)
            if "items" in inner:
                yield from below(inner["items"], name, depth)
            for key, value in inner.get("properties", {}).items():
                longer = f"{name}.{key}" if name else key
                yield longer
                if depth < MOST_DEPTH:
                    yield from below(value, longer, depth + 1)

    yield from below(document, "", 1)
