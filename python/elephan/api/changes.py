"""What holds on links that change, in which interval of a run."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from elephan import _core
from elephan.base.table import Head, Table, text_heads

# What an event changes, as a table heads it.
HEADS = {"rate": "rate", "delay": "delay", "loss": "loss", "weights": "weights", "up": "state"}


def table(document: Mapping[str, Any], end_s: float) -> Table:
    """The intervals between the events of a scenario (its whole document) until `end_s`, and what holds in each.

    A column for each quantity of a link that an event changes; no rows if there are no events.
    """
    events = sorted(document.get("event", ()), key=lambda event: _core.seconds(str(event["at"])))
    events = [event for event in events if _core.seconds(str(event["at"])) < end_s]
    changed = [
        (link, key)
        for link in dict.fromkeys(event["link"] for event in events)
        for key in HEADS
        if any(event["link"] == link and event.get(key) not in (None, {}) for event in events)
    ]
    held = {column: text(column[1], _first(document, *column)) for column in changed}
    times = sorted({0.0, *(_core.seconds(str(event["at"])) for event in events), end_s})
    rows = []
    for low, high in pairwise(times) if events else ():
        for event in events:
            if _core.seconds(str(event["at"])) == low:
                held |= {
                    (event["link"], key): text(key, event[key]) for key in HEADS if event.get(key) not in (None, {})
                }
        rows.append([f"{low:g}", f"{high:g}", *held.values()])
    heads = [Head("from", "s"), Head("to", "s"), *text_heads(*(f"{link} {HEADS[key]}" for link, key in changed))]
    return Table("What holds when", heads, rows)


def text(key: str, value: Any) -> str:
    """A value of an event in a few letters: `0.1 %` for a loss of this probability."""
    if key == "up":
        return "down" if value is False else "up"
    if value is None:
        return "none" if key == "loss" else "as configured"
    if not isinstance(value, Mapping):
        return f"{100 * value:.3g} %" if isinstance(value, int | float) else str(value)
    if "probability" in value:
        return f"{100 * value['probability']:.3g} %"
    if "every" in value:
        return f"1 in {value['every']}"
    return ", ".join(f"{name} {one}" for name, one in value.items() if name != "name") or str(value.get("name", ""))


def _first(document: Mapping[str, Any], link: str, key: str) -> Any:
    """What the scenario says of a link before its events; None where it says nothing."""
    path = document.get("path")
    if not path:
        return next((one.get(key) for one in document.get("link", ()) if one["name"] == link), None)
    if link == "bottleneck.reverse":
        reverse = path.get("reverse") or {}
        path = {**path, "loss": None, **{name: one for name, one in reverse.items() if one is not None}}
    if key == "delay":
        # What a flow's round-trip time is longer than the shortest is the delay of its access links.
        times = [flow.get("rtt") or path.get("rtt") for flow in document["flow"]] or [path.get("rtt")]
        shortest = min((_core.seconds(str(time)) for time in times if time), default=None)
        return None if shortest is None else f"{500 * shortest:g} ms"
    return path.get(key)
