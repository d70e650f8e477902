"""Entries that a scenario can select by name: algorithms, slow starts, recoveries, queue disciplines and traffic."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from elephan import _core


@dataclass(frozen=True)
class Parameter:
    """A parameter: its published name, meaning (with its source), unit, default and range.

    The unit is empty for ratios and for parameters that are not numbers.
    """

    name: str
    meaning: str
    unit: str
    default: Any
    range: str

    def __repr__(self) -> str:
        return f"<Parameter {self.name} = {self.default!r}{self.unit and f' {self.unit}'}>"


@dataclass(frozen=True)
class Variable:
    """A variable of the state of an algorithm or slow start, which `trace.variables` records: its name, meaning and unit.

    `values` has the names of its values if it is discrete, such as a state. The unit is empty for these, ratios and counts.
    `on_kernels` says whether Linux tells it of its algorithm of the same name.
    """

    name: str
    meaning: str
    unit: str
    values: tuple[str, ...]
    on_kernels: bool

    def __repr__(self) -> str:
        return f"<Variable {self.name}{self.unit and f' in {self.unit}'}>"


@dataclass(frozen=True)
class Entry:
    """An entry that a scenario can select: name, title and source.

    `implies` has the keys of the scenario's `tcp` that the name sets unless the scenario does. For an algorithm, `model` names
    the algorithm whose response function applies (itself, or a simpler one), and `kernel` its file in kernel/; None if there is
    none. `variables` are what it keeps.
    """

    name: str
    title: str
    source: str
    implies: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    model: str | None = None
    kernel: str | None = None
    variables: tuple[Variable, ...] = ()

    def __repr__(self) -> str:
        return f"<Entry {self.name}: {self.title}, {len(self.parameters)} parameters>"


def _entry(found: dict[str, Any]) -> Entry:
    variables = tuple(Variable(**{**one, "values": tuple(one["values"])}) for one in found.get("variables", ()))
    parameters = tuple(Parameter(**p) for p in found["parameters"])
    return Entry(**{**found, "parameters": parameters, "variables": variables})


@functools.cache
def _vocabulary() -> dict[str, list[Entry]]:
    return {key: [_entry(one) for one in entries] for key, entries in json.loads(_core.vocabulary()).items()}


def algorithms() -> list[Entry]:
    """Every congestion control algorithm of Elephan that a flow's `cc` can name."""
    return [*_vocabulary()["cc"]]


@functools.cache
def _versions() -> dict[str, str]:
    """The versions that the titles of algorithms name, by algorithm: `v3`."""
    entries = [*algorithms(), *linux_algorithms()]
    return {one.name: f"v{found[1]}" for one in entries if (found := re.search(r"version (\d+)", one.title))}


def cc_text(name: str) -> str:
    """An algorithm as tables name it: with its version where its title has one, and without the folder of its file."""
    kind, colon, rest = name.partition(":")
    if colon and f"{kind}:" in _core.FOREIGN_KINDS and "/" in rest:
        return f"{kind}:{rest.rpartition('/')[2]}"
    return f"{name} ({_versions()[name]})" if name in _versions() else name


def linux_algorithms() -> list[Entry]:
    """Every algorithm of Linux, which a flow's `cc` can name on the engines that run a kernel."""
    return [*_vocabulary()["linux"]]


def cc_groups() -> dict[str, list[Entry]]:
    """Every algorithm that a flow's `cc` can name and that comes with Elephan or Linux, under the title of its group."""
    tables = json.loads(_core.schema())["$defs"]["Algorithm"]["anyOf"][1]["oneOf"]
    keys = {table["properties"]["name"]["const"]: table["properties"] for table in tables}
    in_c = [
        replace(
            one,
            name=name,
            source=f"kernel/{one.kernel}",
            variables=(),
            parameters=tuple(p for p in one.parameters if p.name in keys[name]),
        )
        for one in algorithms()
        if (name := f"kernel:{one.name}") in keys
    ]
    return {
        "Elephan's own": algorithms(),
        "the same in C, as kernels run them": in_c,
        "Linux's own, with the engines kernel and linux": linux_algorithms(),
    }


def registered(name: str) -> Entry | None:
    """The algorithm from outside that is registered under this name; None if there is none."""
    found = _core.registered(name)
    return None if found is None else _entry(json.loads(found))


def slow_starts() -> list[Entry]:
    """Every slow start that a flow's `slow_start` can name."""
    return [*_vocabulary()["slow_start"]]


def recoveries() -> list[Entry]:
    """Every loss recovery that `tcp.recovery` can name."""
    return [*_vocabulary()["recovery"]]


def queues() -> list[Entry]:
    """Every queue discipline that a link's `queue` can name."""
    return [*_vocabulary()["queue"]]


def traffic() -> list[Entry]:
    """Every kind of traffic, by the name of its tables in a scenario."""
    return [*_vocabulary()["traffic"]]


def modelled() -> tuple[str, ...]:
    """Names of the algorithms that have a response function of their own."""
    return tuple(one.name for one in algorithms() if one.model == one.name)
