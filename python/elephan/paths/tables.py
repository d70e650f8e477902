"""Tables of a measured path: its estimates, ways to send over it, and where a transfer parts from its prediction."""

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.api.registry import cc_text
from elephan.base.numbers import number, significant
from elephan.base.table import Head, Table, text_heads
from elephan.paths.estimates import Value
from elephan.paths.predict import QUANTITIES, Parting


def name_of(key: str) -> str:
    """The name of a value of `path.json`, without its unit."""
    return key.removesuffix("_bit_s").removesuffix("_s").removesuffix("_bytes").replace("_", " ")


def of_estimates(values: Mapping[str, Value], source: str) -> Table:
    """The estimates with intervals and methods."""
    rows: list[list[str | float | None]] = []
    for key, value in values.items():
        unit, factor = value.shown_in
        numbers = [None if one is None else one * factor for one in (value.value, value.low, value.high)]
        rows.append([name_of(key), unit, *numbers, value.method if value.value is not None else value.absent])
    heads = [*text_heads("value", "unit"), Head("estimate"), Head("low"), Head("high"), *text_heads("how")]
    return Table(f"Path of {source}, with 95 % intervals", heads, rows)


def span(value: Value, like: Value | None = None) -> str:
    """A time to finish with its interval, in s, min, h or days: the unit that suits it, or that suits `like`."""
    if value.value is None:
        return f"never: {value.absent}"
    least = (like.value if like is not None else None) or value.value
    units = (("days", 86400), ("h", 3600), ("min", 60))
    unit, seconds = next(((unit, seconds) for unit, seconds in units if least >= 2 * seconds), ("s", 1))
    shown = f"{significant(value.value / seconds)} {unit}"
    if value.low is None or value.high is None:
        return shown
    low, high = significant(value.low / seconds), significant(value.high / seconds)
    return shown if low == high else f"{shown} ({low} to {high})"


def of_ways(ways: Sequence[Mapping[str, Any]], title: str, order: str = "") -> Table:
    """Ways to send, as `recommendation.json` has them, the best first."""
    heads = [
        *text_heads("cc", "paced"), Head("streams"), Head("time to finish"), Head("goodput", "Mbit/s"),
        Head("retransmitted", "%"), Head("socket buffer", "MB"), Head("others lose", "%"), *text_heads("by"),
    ]  # fmt: skip
    times = [Value(**one["finish_s"]) for one in ways]
    rows = [
        [
            cc_text(str(one["cc"])),
            "-" if one.get("is_in_rounds") else "yes" if one["paced"] or one["cc"] == "bbr" else "no",
            str(one["streams"]),
            span(time, times[0]),
            number(one["goodput_bit_s"], 1e-6, 1),
            number(one["retransmitted"], 100, 3),
            number(one["buffer_bytes"], 1e-6, 1),
            number(one["others_lose"], 100, 0),
            "rounds" if one.get("is_in_rounds") else "simulation",
        ]
        for one, time in zip(ways, times, strict=True)
    ]
    note = "others: a CUBIC flow on the path, against what it has alone; socket buffer: for each stream"
    return Table(title, heads, rows, f"{note}; {order}" if order else note)


def of_bottlenecks(queues: Sequence[Mapping[str, Any]], way: str) -> Table:
    """Queues of the bottleneck, as `recommendation.json` has them, the best first."""
    heads = [
        *text_heads("queue"), Head("buffer", "% bdp"), Head("buffer", "MB"), Head("used", "%"),
        Head("queueing delay", "ms"), Head("others lose", "%"),
    ]  # fmt: skip
    rows = [
        [
            str(one["queue"]),
            number(one["buffer"], 100, 0),
            number(one["buffer_bytes"], 1e-6, 1),
            number(one["used"], 100, 1),
            number(one["queue_delay_s"], 1e3, 1),
            number(one["others_lose"], 100, 0),
        ]
        for one in queues
    ]
    note = (
        "drr: a queue for each flow; used: by both together; order: of those within 5 % of the highest use, what takes less "
        "from others (in tenths), then the smaller buffer"
    )
    return Table(f"Bottleneck: {way} beside a CUBIC flow of others", heads, rows, note)


def of_partings(parts: Sequence[Parting]) -> Table:
    """Measured and predicted means, and where the measured series first left the band."""
    rows: list[list[str | float | None]] = []
    for part in parts:
        name, unit, factor = QUANTITIES[part.quantity]
        left = part.from_s is not None
        rows.append(
            [
                name,
                unit,
                part.measured * factor,
                part.predicted * factor,
                100 * (part.measured / part.predicted - 1) if part.predicted else None,
                part.from_s,
                part.for_s if left else None,
                100 * part.share if left else None,
            ]
        )
    heads = [
        *text_heads("quantity", "unit"), Head("measured"), Head("predicted"), Head("difference", "%"),
        Head("leaves the band at", "s"), Head("for", "s"), Head("beyond it", "%"),
    ]  # fmt: skip
    return Table("Measured and predicted", heads, rows)
