"""A run in the Trace Event Format (JSON) of Chrome's tracing, which ui.perfetto.dev opens.

Each flow and each link is a process, with a track for each of its counters. What happened is an instant event: where the run
has events (`trace.events`) at its time, otherwise at the sample that counts it first, with the number of times.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from elephan.api.pictures.samples import names
from elephan.api.run import Run
from elephan.base.folders import new_file

# Counters: the name of the track, the column, its unit there and the factor to it.
OF_FLOWS = (
    ("cwnd", "cwnd_segments", "segments", 1.0),
    ("ssthresh", "ssthresh_segments", "segments", 1.0),
    ("smoothed RTT", "srtt_s", "ms", 1e3),
    ("bytes in flight", "pipe_bytes", "B", 1.0),
    ("goodput", "goodput_bit_s", "Mbit/s", 1e-6),
)
OF_LINKS = (("queue", "packets", "packets", 1.0), ("utilisation", "utilisation", "%", 1e2))
# Instant events: the name, the column that counts them, and the kind of event; none of what events do not have.
IN_FLOWS = (
    ("retransmission", "retransmits", "retransmit"),
    ("timeout", "timeouts", "timeout"),
    ("window reduction", "congestion_events", "congestion"),
)
IN_LINKS = (("drop", "dropped", "drop"), ("loss on the wire", "lost", None), ("mark", "marked", None))

Record = dict[str, Any]
Counters = Sequence[tuple[str, str, str, float]]
Instants = Sequence[tuple[str, str, str | None]]


def write(run: Run, out: Path) -> list[Path]:
    """Write one file of a run, and return its path. Times are in us, as the format has them."""
    with new_file(out) as place, place.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [')
        for number, record in enumerate(_records(run)):
            file.write(f"{',' if number else ''}\n{json.dumps(record, allow_nan=False)}")
        file.write("\n]}\n")
    return [out]


def _records(run: Run) -> Iterator[Record]:
    called = names(run)
    tracks: list[tuple[pl.DataFrame, str, list[tuple[Any, str]], Counters, Instants]] = [
        (run.flows, "flow", [*enumerate(called[: len(run.summary.flows)])], OF_FLOWS, IN_FLOWS),
        (run.queues, "link", [(link, f"link {link}") for link in run.links], OF_LINKS, IN_LINKS),
    ]
    process = 0
    for samples, by, ones, counters, instants in tracks:
        rows, happened = _parts(samples, by), _parts(run.events, by)
        for key, name in ones:
            if key not in rows:
                continue
            process += 1
            yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
            yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}}
            for track, column, unit, factor in counters:
                for time_s, value in rows[key].select("time_s", column).iter_rows():
                    if value is not None and math.isfinite(value):
                        yield {
                            "ph": "C",
                            "pid": process,
                            "name": track,
                            "ts": round(1e6 * time_s, 6),
                            "args": {unit: value * factor},
                        }
            for what, column, kind in instants:
                found = _at(happened[key], kind) if kind and key in happened else _counted(rows[key], column)
                for time_s, args in found:
                    at = {"ts": round(1e6 * time_s, 6), "s": "p", "args": args}
                    yield {"ph": "i", "pid": process, "tid": 0, "name": what, **at}


def _parts(frame: pl.DataFrame, by: str) -> dict[Any, pl.DataFrame]:
    if frame.is_empty():
        return {}
    return {key: rows for (key,), rows in frame.partition_by(by, as_dict=True, maintain_order=True).items()}


def _at(events: pl.DataFrame, kind: str) -> Iterator[tuple[float, Record]]:
    """The events of a kind, with what they tell of a segment."""
    for time_s, flow, size in events.filter(pl.col("kind") == kind).select("time_s", "flow", "bytes").iter_rows():
        yield time_s, {"flow": flow + 1, "bytes": size} if size else {}


def _counted(rows: pl.DataFrame, column: str) -> Iterator[tuple[float, Record]]:
    """The samples at which a count has grown, and by how much. A count that the engine does not tell does not grow."""
    counts = rows[column].cast(pl.Float64).fill_null(strategy="forward").fill_null(0.0).to_numpy()
    grown = np.diff(counts, prepend=0.0)
    for row in np.flatnonzero(grown > 0).tolist():
        yield float(rows["time_s"][row]), {"count": int(grown[row])}
