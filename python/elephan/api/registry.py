"""The algorithms and slow starts that a scenario can name."""

import json
from dataclasses import dataclass

from elephan import _core


@dataclass(frozen=True)
class Parameter:
    """A parameter: its published name, meaning (with unit and source), default and range."""

    name: str
    meaning: str
    default: float | bool | str
    range: str


@dataclass(frozen=True)
class Algorithm:
    """A congestion control algorithm, a slow start or a queue discipline: its name in a scenario, its title and its source."""

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]


def _read(text: str) -> list[Algorithm]:
    return [
        Algorithm(**{**entry, "parameters": tuple(Parameter(**p) for p in entry["parameters"])})
        for entry in json.loads(text)
    ]


def algorithms() -> list[Algorithm]:
    """Every congestion control algorithm that a flow's `cc` can name."""
    return _read(_core.algorithms())


def slow_starts() -> list[Algorithm]:
    """Every slow start that a flow's `slow_start` can name."""
    return _read(_core.slow_starts())


def queues() -> list[Algorithm]:
    """Every queue discipline that a link's `queue` can name."""
    return _read(_core.queues())
