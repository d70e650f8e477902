"""What a page may ask for: how large a scenario, how many runs, and no files but those of the results folder."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from elephan import _core
from elephan.scenario import Scenario

# Tables that stand for flows.
FLOWS = ("flow", "web", "arrivals", "cbr", "on_off")


@dataclass(frozen=True)
class Limits:
    """What one server takes. More can be had from the command line."""

    # Runs that go on at a time, paused ones counted: one for each core of a small machine.
    runs: int = 2
    # Bytes of a request.
    request_bytes: int = 256_000
    # Seconds in which all of a request must have come.
    request_s: float = 10.0
    flows: int = 500
    links: int = 200
    # Tables of any other kind, such as events.
    tables: int = 1000
    # Rows of samples, of flows and of links together: about 100 bytes each, here and on the page.
    samples: int = 1_000_000
    # Full packets that all links with a rate could carry in the simulated time: about half a minute of computing.
    packets: int = 150_000_000
    # Flows that arrive by themselves in the simulated time.
    arrivals: int = 100_000
    # Seconds of computing, whatever the scenario was taken for.
    computing_s: float = 300.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for the page."""
        return asdict(self)


def amount(text: str) -> float:
    """The number of a quantity that was checked, in SI units."""
    quantity = _core.quantity(text)
    assert quantity is not None, text
    return quantity[0]


def checked(document: Mapping[str, Any], limits: Limits) -> Scenario:
    """A scenario that a page may have run. Raises `ScenarioError` with a line for each reason why it may not."""
    scenario = loaded(document, limits)
    problems = [f"scenario: {line}" for line in _problems(scenario.document, limits)]
    if problems:
        raise _core.ScenarioError("\n".join(problems))
    return scenario


def loaded(document: Any, limits: Limits) -> Scenario:
    """A scenario that a page may look at: no file is read for it. Raises `ScenarioError`.

    Loading makes all flows and links, so that their number is looked at before.
    """
    problems = list(_too_many(document, limits)) if isinstance(document, Mapping) else []
    if problems:
        raise _core.ScenarioError("\n".join(f"scenario: {problem}" for problem in problems))
    return Scenario(json.loads(_core.load_scenario(json.dumps(document), "scenario", [], json=True)))


def _too_many(document: Mapping[str, Any], limits: Limits) -> Iterator[str]:
    """What would be much to load. What has a wrong type is refused by the loader, before it makes anything of it."""
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
    """How many flows some tables of a scenario stand for; what is no number is for the loader to refuse."""

    def number(table: Any, key: str) -> int:
        value = table.get(key, 1) if isinstance(table, Mapping) else 1
        return max(value, 1) if isinstance(value, int) else 1

    return sum(number(one, "count") * number(one, "users") for one in tables) if isinstance(tables, list) else 0


def _problems(document: Mapping[str, Any], limits: Limits) -> Iterator[str]:
    if document.get("engine", "sim") != "sim":
        yield f'engine: expected sim on this page, found "{document["engine"]}"; use the command line'
    for key in ("events", "pcap"):
        if document.get("trace", {}).get(key):
            yield f"trace.{key}: expected none on this page, found some; use the command line"
    flows = sum(_count(document.get(kind)) for kind in FLOWS)
    path = document.get("path")
    links = document.get("link", [])
    rates = [path["rate"]] if path else [link["rate"] for link in links if link.get("rate")]
    if not rates:
        yield "link: expected a link with a rate, found none"
    duration = amount(document["duration"])
    interval = amount(document["trace"]["interval"])
    arrivals = sum(float(one.get("per_second") or 0) for one in document.get("arrivals", [])) * duration
    if arrivals > limits.arrivals:
        yield f"arrivals: expected at most {limits.arrivals} of them on this page, found {arrivals:.0f}"
    samples = int((flows + 2 * len(rates)) * duration / interval)
    if samples > limits.samples:
        yield (
            f"trace.interval: expected at most {limits.samples} samples on this page, found {samples}; "
            "sample less often, or simulate a shorter time"
        )
    packet = amount(document.get("tcp", {}).get("packet", "1500 B"))
    packets = int(sum(amount(rate) for rate in rates) * duration / (8 * packet))
    if packets > limits.packets:
        yield f"duration: expected at most {limits.packets} packets on this page, found {packets}; use the command line"


def mistakes(error: Exception) -> list[dict[str, str]]:
    """The lines of a `ScenarioError`, apart by key, so that each is shown at its field in the words of the command line."""
    found = []
    for line in str(error).splitlines():
        text = line.removeprefix("scenario: ")
        key, colon, problem = text.partition(": ")
        at_key = bool(colon) and " " not in key
        found.append({"key": key if at_key else "", "problem": problem if at_key else text})
    return found
