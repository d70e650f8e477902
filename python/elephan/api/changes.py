"""What holds on links that change, in which interval of a run."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from elephan.api.scenario import Scenario
from elephan.base.table import Head, Table, text_heads

# What an event changes, as a table heads it.
HEADS = {"rate": "rate", "delay": "delay", "loss": "loss", "weights": "weights", "up": "state"}


def table(scenario: Scenario, end_s: float) -> Table:
    """The intervals between the events of a scenario until `end_s`, and what holds in each.

    A column for each quantity of a link that an event changes; no rows if there are no events.
    """
    events = [event for event in scenario.changes if event["at_s"] < end_s]
    changed = [
        (link, key)
        for link in dict.fromkeys(event["link"] for event in events)
        for key in HEADS
        if any(event["link"] == link and event[key] not in (None, {}) for event in events)
    ]
    links = {link["name"]: link["initial"] for link in scenario.plan["links"]} if events else {}
    held = {(link, key): text(key, links[link].get(key)) for link, key in changed}
    times = sorted({0.0, *(event["at_s"] for event in events), end_s})
    rows = []
    for low, high in pairwise(times) if events else ():
        for event in events:
            if event["at_s"] == low:
                held |= {(event["link"], key): text(key, event[key]) for key in HEADS if event[key] not in (None, {})}
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
