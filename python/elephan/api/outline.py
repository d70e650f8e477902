"""A scenario at a glance: one line of text, and its traffic over time as a picture for notebooks."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from elephan import _core
from elephan.base import notebook
from elephan.base.table import Table, text_heads
from elephan.base.text import literal

# Traffic besides flows, by the key of its tables and what one of them is called.
OTHERS = {
    "arrivals": "short flows",
    "sessions": "sessions",
    "web": "web users",
    "cbr": "constant rate",
    "on_off": "on and off",
}
# The timeline: rows at most, the height of one, the places where bars begin and end, in pixels; and its grey, which is seen on
# white and on black.
MOST, ROW, LEFT, RIGHT, GREY = 12, 18, 170, 620, "#808080"


def network(document: Mapping[str, Any]) -> str:
    """Rate, round-trip time and buffer of a scenario's path, or how many links it has."""
    path = document.get("path")
    return (
        f"{len(document['link'])} links" if path is None else f"{path['rate']}, {path['rtt']}, buffer {path['buffer']}"
    )


def outline(document: Mapping[str, Any]) -> str:
    """Path, traffic, duration and engine of a scenario on one line."""
    told = [network(document)]
    flows = Counter[str]()
    for flow in document.get("flow", []):
        flows[_name(flow["cc"])] += flow.get("count", 1)
    if flows:
        count = sum(flows.values())
        each = [name if count == 1 or len(flows) == 1 else f"{number} {name}" for name, number in flows.items()]
        told.append(f"{count} {'flow' if count == 1 else 'flows'} ({', '.join(each)})")
    for key, one in OTHERS.items():
        if document.get(key):
            told.append(one)
    told.append(document["duration"])
    if document["engine"] != "sim":
        told.append(f"engine {document['engine']}")
    if sweep := document.get("sweep"):
        told.append(f"sweep of {', '.join(swept(sweep))}")
    return ", ".join(told)


def html(name: str, facts: str, document: Mapping[str, Any]) -> str:
    """A scenario in a notebook: its line, its links or its path as a table, and its traffic over time."""
    if path := document.get("path"):
        head = ["rate", "round-trip time", "buffer", "queue", "loss"]
        rows = [[path["rate"], path["rtt"], path.get("buffer"), path["queue"]["name"], _name(path.get("loss"))]]
    else:
        head = ["link", "rate", "delay", "buffer", "queue"]
        rows = [
            [link.get("name"), link.get("rate"), link.get("delay"), link.get("buffer"), _name(link.get("queue"))]
            for link in document["link"]
        ]
    return notebook.shown(name, [facts], Table("", text_heads(*head), rows).to_html(), _timeline(document))


def _name(choice: Any) -> str:
    """What a key names, bare or with parameters; `-` if it is not there."""
    return "-" if choice is None else str(choice["name"] if isinstance(choice, Mapping) else choice)


def swept(sweep: Mapping[str, Any]) -> list[str]:
    """The keys of the table `sweep` of a scenario."""
    listed: Mapping[str, Any] = next(iter(sweep.get("points", [])), {})
    return [*(key for key in sweep if key not in ("repeat", "zip", "points")), *sweep.get("zip", {}), *listed]


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[str, float, float, float]]:
    """Each flow, or other traffic: what it is called, the earliest and the latest time of its start, and its end, in s."""
    end_s = _core.seconds(document["duration"])
    for key in ("flow", *OTHERS):
        for one in document.get(key, []):
            count = one.get("count", one.get("users", 1))
            name = str(one.get("label") or (_name(one["cc"]) if key == "flow" else OTHERS[key]))
            early_s, late_s = _start(one.get("start"), end_s)
            stop_s = _core.seconds(one["stop"]) if isinstance(one.get("stop"), str) else end_s
            yield f"{count} x {name}" if count != 1 else name, early_s, late_s, min(stop_s, end_s)


def _start(start: Any, end_s: float) -> tuple[float, float]:
    """The earliest and the latest time of a start, which may be drawn at random, in s."""
    if isinstance(start, str):
        return _core.seconds(start), _core.seconds(start)
    if isinstance(start, Mapping) and "uniform" in start:
        early, late = map(_core.seconds, start["uniform"])
        return early, late
    # Other distributions have no latest time.
    return (_core.seconds(start["from"]) if isinstance(start, Mapping) and "from" in start else 0.0), (
        end_s if isinstance(start, Mapping) else 0.0
    )


def _times_s(event: Mapping[str, Any], end_s: float) -> Iterator[float]:
    """When an event is."""
    at_s, every_s = (_core.seconds(text) for text in (event["at"], event.get("every", "0 s")))
    yield at_s
    for number in range(1, int((end_s - at_s) / every_s) + 1 if every_s else 0):
        yield at_s + number * every_s


def _timeline(document: Mapping[str, Any]) -> str:
    """The traffic over time: a bar for each flow, pale where its start is random, and a line for each change of a link."""
    rows, end_s = list(_rows(document)), _core.seconds(document["duration"])
    if not rows:
        return ""

    def x(time_s: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * min(time_s, end_s) / end_s, 1)

    shown, bottom = rows[:MOST], ROW * min(len(rows), MOST) + 6
    parts = []
    for number, (name, early_s, late_s, stop_s) in enumerate(shown):
        y = ROW * number + 4
        parts.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{literal(name[:28])}</text>')
        if late_s > early_s:
            wide = x(late_s) - x(early_s)
            parts.append(
                f'<rect x="{x(early_s)}" y="{y}" width="{wide:.1f}" height="12" fill="#0072B2" opacity="0.35"/>'
            )
        wide = max(x(stop_s) - x(late_s), 0.0)
        parts.append(f'<rect x="{x(late_s)}" y="{y}" width="{wide:.1f}" height="12" fill="#0072B2"/>')
    for place in dict.fromkeys(x(at_s) for event in document.get("event", []) for at_s in _times_s(event, end_s)):
        parts.append(f'<path d="M{place} 0V{bottom}" stroke="#D55E00" stroke-dasharray="3 2"/>')
    parts.append(f'<path d="M{LEFT} {bottom}H{RIGHT}" stroke="{GREY}"/>')
    for share, side in ((0, "start"), (0.5, "middle"), (1, "end")):
        place = LEFT + share * (RIGHT - LEFT)
        parts.append(f'<text x="{place}" y="{bottom + 14}" text-anchor="{side}">{share * end_s:g} s</text>')
    if len(rows) > MOST:
        parts.append(f'<text x="{LEFT - 8}" y="{bottom + 14}" text-anchor="end">and {len(rows) - MOST} more</text>')
    return (
        f'<svg role="img" aria-label="Traffic over time" viewBox="0 0 {RIGHT + 10} {bottom + 20}" width="{RIGHT + 10}" '
        f'style="max-width: 100%" font-size="12" font-family="sans-serif" fill="{GREY}">{"".join(parts)}</svg>'
    )
