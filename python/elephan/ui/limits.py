"""Limits on what a page may request: the size of a scenario, the number of runs, and only files of the results folder."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elephan import _core
from elephan.api.registry import traffic
from elephan.api.scenario import Scenario
from elephan.foreign import names

# Tables that stand for flows.
FLOWS = tuple(kind.name for kind in traffic())


@dataclass(frozen=True)
class Limits:
    """The limits of a server. The command line has none of them."""

    # Concurrent runs, paused ones included: one for each core of a small machine.
    runs: int = 2
    # Bytes of a request.
    request_bytes: int = 256_000
    # Seconds within which a complete request must arrive.
    request_s: float = 10.0
    flows: int = 500
    links: int = 200
    # Tables of any other kind, such as events.
    tables: int = 1000
    # Upper bounds of `Scenario.estimate`; most runs take a fraction of them. This many events take a few minutes.
    events: int = 2_000_000_000
    # Rows of all tables: about 100 bytes each, in this process and on the page.
    samples: int = 1_000_000
    memory_bytes: int = 4_000_000_000
    # Seconds of computing time, whatever the estimate was.
    computing_s: float = 300.0


def checked(document: Mapping[str, Any], limits: Limits) -> Scenario:
    """A scenario that a page may run. Raises `ScenarioError` with a line for each reason why it may not."""
    scenario = loaded(document, limits)
    _refuse(_problems(scenario, limits))
    return scenario


def loaded(document: Any, limits: Limits) -> Scenario:
    """A scenario that a page may view; no file is read and no code is loaded for it. Raises `ScenarioError`.

    Loading creates all flows and links, so their number is checked first.
    """
    if isinstance(document, Mapping):
        _refuse([*_too_many(document, limits), *names.refused(document, engine=str(document.get("engine", "sim")))])
    return Scenario(_core.load_scenario(json.dumps(document), "scenario", [], json=True))


def _refuse(problems: Iterable[str]) -> None:
    if lines := [f"scenario: {problem}" for problem in problems]:
        raise _core.ScenarioError("\n".join(lines))


def _too_many(document: Mapping[str, Any], limits: Limits) -> Iterator[str]:
    """What would be too large to load. The loader refuses values of a wrong type before it creates anything."""
    if document.get("sweep"):
        yield "sweep: expected none on this page, found one; `elephan sweep FILE` carries it out"
    for key, tables in document.items():
        number = _count(tables)
        what, most = ("links", limits.links) if key == "link" else (f"{key} tables", limits.tables)
        if key in FLOWS:
            what, most = "flows", limits.flows
        if number > most:
            yield f"{key}: expected at most {most} {what} on this page, found {number}"


def _count(tables: Any) -> int:
    """The number of flows that some tables of a scenario stand for. The loader refuses values that are not numbers."""

    def number(table: Any, key: str) -> int:
        value = table.get(key, 1) if isinstance(table, Mapping) else 1
        return max(value, 1) if isinstance(value, int) else 1

    return sum(number(one, "count") * number(one, "users") for one in tables) if isinstance(tables, list) else 0


def _problems(scenario: Scenario, limits: Limits) -> Iterator[str]:
    document = scenario.document
    if document.get("engine", "sim") not in ("sim", "kernel"):
        yield f'engine: expected sim or kernel on this page, found "{document["engine"]}"; use the command line'
    for key in ("events", "variables", "pcap"):
        if document.get("trace", {}).get(key):
            yield f"trace.{key}: expected none on this page, found some; use the command line"
    most = {"events": limits.events, "rows": limits.samples, "bytes": limits.memory_bytes}
    for what, (found, key) in scenario.estimate.items():
        if found > most[what]:
            limit = f"expected at most {most[what]:.1g} {what} on this page"
            yield f"{key}: {limit}, found up to {found:.2g}; use the command line"


def mistakes(error: Exception) -> list[dict[str, str]]:
    """The lines of a `ScenarioError` by key, so that each is shown at its field in the words of the command line."""
    found = []
    for line in str(error).splitlines():
        text = line.removeprefix("scenario: ")
        key, colon, problem = text.partition(": ")
        at_key = bool(colon) and " " not in key
        found.append({"key": key if at_key else "", "problem": problem if at_key else text})
    return found
