"""What happened during a run: links that change, flows that come and go."""

from collections.abc import Iterator, Mapping
from typing import Any

from elephan import _core
from elephan.api import changes
from elephan.api.pictures.data import Mark
from elephan.api.pictures.samples import Recorded
from elephan.api.registry import traffic
from elephan.api.scenario import Scenario

# More marks than this would hide the lines. The chart then states how many there are.
MOST_MARKS = 200
# The keys of a link's change, as a mark names them; the bottleneck and a rate need no name.
CHANGES = {"rate": "", "delay": "delay ", "loss": "loss ", "weights": "weights "}


def marks(run: Recorded) -> tuple[list[Mark], str]:
    """The marks of a run in order of time, and what to say of those that are left out."""
    document, end_s = run.scenario.document, run.summary.to_s
    found = [*_events(run.scenario), *_flows(run)]
    traces = [(name, trace) for name, trace in _traces(document) if trace]
    note = ""
    for name, trace in traces:
        steps = [Mark(_core.seconds(str(step["time"])), _change(name, step)) for step in trace.get("steps") or ()]
        if not steps or trace.get("loop", True) or len(steps) > MOST_MARKS:
            of = f" ({trace['source']})" if trace.get("source") else ""
            note = f"The trace of {name}{of} changes it all the time, without marks."
        else:
            found += steps[1:]
    found = sorted((mark for mark in found if 0 < mark.time_s <= end_s), key=lambda mark: mark.time_s)
    if len(found) > MOST_MARKS:
        return [], f"{len(found):,} changes are not marked."
    joined: dict[float, list[str]] = {}
    for mark in found:
        joined.setdefault(mark.time_s, []).append(mark.text)
    return [Mark(time_s, "; ".join(dict.fromkeys(texts))) for time_s, texts in joined.items()], note


def planned(scenario: Scenario) -> list[Mark]:
    """The marks whose times are known before a run: changes of links, and flows that start or stop at a given time."""
    numbered = enumerate(scenario.plan["starts_s"], 1)
    starts = [Mark(time_s, f"flow {one} starts") for one, time_s in numbered if time_s is not None]
    found = [mark for mark in [*_events(scenario), *starts, *_stops(scenario.document)] if mark.time_s > 0]
    return sorted(found, key=lambda mark: mark.time_s)[:MOST_MARKS]


def _events(scenario: Scenario) -> Iterator[Mark]:
    for event in scenario.changes:
        yield Mark(event["at_s"], _change(event["link"], event))


def _change(link: str, change: Mapping[str, Any]) -> str:
    told = [f"{name}{changes.text(key, change[key])}" for key, name in CHANGES.items() if change.get(key)]
    if change.get("up") is not None:
        told.insert(0, "up" if change["up"] else "down")
    return ("" if link == "bottleneck" else f"{link} ") + ", ".join(told)


def _traces(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    path = document.get("path") or {}
    yield "bottleneck", path.get("trace") or {}
    yield "bottleneck.reverse", (path.get("reverse") or {}).get("trace") or {}
    for link in document.get("link", ()):
        yield link["name"], link.get("trace") or {}


def _flows(run: Recorded) -> Iterator[Mark]:
    for number, flow in enumerate(run.summary.flows, 1):
        if flow.start_s is not None:
            yield Mark(flow.start_s, f"flow {number} starts")
    for stream in run.summary.streams:
        if stream.start_s is not None:
            yield Mark(stream.start_s, f"{stream.label} starts")
    yield from _stops(run.scenario.document)
    yield from _ends(run)


def _stops(document: Mapping[str, Any]) -> Iterator[Mark]:
    number = 1
    for table in document["flow"]:
        count = int(table.get("count", 1))
        if table.get("stop") is not None:
            for one in range(number, number + count):
                yield Mark(_core.seconds(str(table["stop"])), f"flow {one} stops")
        number += count
    for kind in (one.name for one in traffic() if one.name != "flow"):
        for table in document.get(kind, ()):
            if table.get("stop") is not None:
                yield Mark(_core.seconds(str(table["stop"])), f"{table.get('label') or kind} stops")


def _ends(run: Recorded) -> Iterator[Mark]:
    """The ends of flows that are a single transfer."""
    sized = [table for table in run.scenario.document["flow"] if table.get("size") and not table.get("transfers")]
    if not sized:
        return
    moved = run.table("transfers", ["flow", "index", "end_s"])
    ended: dict[int, list[float]] = {}
    for flow, end_s in (
        zip(moved["flow"].to_pylist(), moved["end_s"].to_pylist(), strict=True) if moved.num_rows else ()
    ):
        if flow < len(run.summary.flows):
            ended.setdefault(flow, []).append(end_s)
    for flow, ends in ended.items():
        if len(ends) == 1 and ends[0] == ends[0]:
            yield Mark(ends[0], f"flow {flow + 1} ends")
