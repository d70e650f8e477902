"""qlog of a run: a JSON text sequence (RFC 7464) for each flow, for tools that read what QUIC stacks log; and charts of a log.

The drafts, whose names and fields these are, know QUIC alone. A run is TCP, which the head of each file says
(`protocol_type`), and its words stand for:

- the vantage point: the sender, which opens the connection (`client`);
- a packet: a segment with data. TCP has no numbers of packets: a number counts what was sent, from 0 on, so that a
  retransmission has a new number, as in QUIC. `raw.length` is the IP packet, and the offset of the one stream that of the data
  in its connection;
- `packets_acked`: what an acknowledgment acknowledges cumulatively. Events do not have the blocks of SACK. Of data that was
  retransmitted it is the last copy, unless that was sent less than the shortest round trip ago: then the copy before;
- `packet_lost`: a segment whose data is retransmitted, at that time. A tail loss probe counts, too;
- `congestion_state_updated`: `recovery` from a reduction of the window, or a timeout, until what was sent before it is
  acknowledged (RFC 6675, sections 5 and 5.1), and otherwise `slow_start` or `congestion_avoidance`, as the window is below the
  threshold or not (RFC 5681, section 3.1); `unknown` of an algorithm without a threshold, such as BBR.

The metrics are the samples of the run; everything else needs its events (`trace.events`). What the run does not have is absent.
"""

import heapq
import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from elephan._core import ScenarioError, __version__, one_of
from elephan.api.pictures.data import Chart, Line
from elephan.api.pictures.over_time import QUANTITIES
from elephan.api.run import Run
from elephan.base.folders import new_file
from elephan.paths.qlog import COLUMNS, EVENT_SCHEMA, FILE_SCHEMA, SEPARATOR, TCP, read
from elephan.paths.scenario import packet_of

# A record before it is written: time (s), name, data.
Record = tuple[float, str, dict[str, Any]]
# The events that a sender has part in.
KINDS = ("start", "send", "retransmit", "receive", "congestion", "timeout")
TRIGGERS = {"congestion": "window_reduction", "timeout": "retransmission_timeout"}
HEADER = {"packet_type": "1RTT"}
WRAP = 2**32


def write(run: Run, out: Path) -> list[Path]:
    """Write a file for each flow, the first as `out`, further ones beside it, and return their paths.

    Raises `ScenarioError` for a run without flows.
    """
    if not run.summary.flows:
        raise ScenarioError(f"{out}: expected a run with flows, found none")
    samples = _by_flow(run.flows)
    # A run without events has no columns of them.
    events = _by_flow(run.events.filter(run.events["kind"].is_in(KINDS))) if len(run.events) else {}
    paths = []
    for number, (label, tcp) in enumerate(zip(run.labels[: len(run.summary.flows)], _tcp(run), strict=True)):
        path = out if number == 0 else out.with_name(f"{out.stem}-{number + 1}{out.suffix}")
        size, headers = packet_of({"tcp": tcp})
        metrics = _metrics(samples.get(number, run.flows.clear()), size - headers)
        sender = _Sender(headers).records(events[number]) if number in events else iter(())
        with new_file(path) as place, place.open("w", encoding="utf-8") as file:
            file.write(_line(_head(run, f"flow {number + 1}: {label}")))
            for time_s, name, data in heapq.merge(metrics, sender, key=lambda record: record[0]):
                file.write(_line({"time": round(1e3 * time_s, 9), "name": f"quic:{name}", "data": data}))
        paths.append(path)
    return paths


def _by_flow(frame: pl.DataFrame) -> dict[int, pl.DataFrame]:
    parts = frame.partition_by("flow", as_dict=True, maintain_order=True)
    return {int(flow): rows for (flow,), rows in parts.items()}


def _tcp(run: Run) -> list[Mapping[str, Any]]:
    """The table `tcp` of each flow: that of the scenario, and its own keys."""
    document: Mapping[str, Any] = run.scenario.document
    flows = [one for one in document.get("flow", []) for _ in range(int(one.get("count", 1)))]
    return [{**document.get("tcp", {}), **one.get("tcp", {})} for one in flows]


def _line(record: Mapping[str, Any]) -> str:
    return f"{SEPARATOR}{json.dumps(record, allow_nan=False)}\n"


def _head(run: Run, name: str) -> dict[str, Any]:
    engine = run.provenance["engine"]
    return {
        "file_schema": FILE_SCHEMA,
        "serialization_format": "application/qlog+json-seq",
        "title": f"{run.scenario.name}, {name}",
        "description": f"A flow of TCP, from Elephan {__version__}, engine {engine}: segments stand for packets of QUIC.",
        "trace": {
            "common_fields": {
                "protocol_type": TCP,
                "time_format": "relative_to_epoch",
                # Time 0 is the beginning of the run.
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            "vantage_point": {"name": name, "type": "client"},
            "event_schemas": [EVENT_SCHEMA],
        },
    }


def _metrics(rows: pl.DataFrame, mss: float) -> Iterator[Record]:
    """The samples of a flow. What is infinite (no threshold, no pacing) or unknown is left out."""
    columns = (
        ("srtt_s", "smoothed_rtt", 1e3),
        ("min_rtt_s", "min_rtt", 1e3),
        ("cwnd_segments", "congestion_window", mss),
        ("ssthresh_segments", "ssthresh", mss),
        ("pipe_bytes", "bytes_in_flight", 1),
        ("pacing_rate_bit_s", "pacing_rate", 1),
    )
    for row in rows.iter_rows(named=True):
        data: dict[str, float] = {}
        for column, key, factor in columns:
            value = row.get(column)
            if value is not None and math.isfinite(value):
                data[key] = value * factor if key.endswith("_rtt") else round(value * factor)
        yield row["time_s"], "recovery_metrics_updated", data


class _Sender:
    """What a sender did, from the events of its flow."""

    def __init__(self, headers: float) -> None:
        self._headers = headers
        # When each packet was sent, by its number, and the shortest round trip of one that was sent once.
        self._times_s: list[float] = []
        self._least_s = math.inf
        self._timeout_s = math.nan
        self._open()

    def _open(self) -> None:
        """A connection begins: it has sequence numbers of its own, from that of its first segment on."""
        # The state of congestion control, once it is known.
        self._state: str | None = None
        self._first: int | None = None
        # The data that was sent, in pieces without gaps: offsets at which they begin, and the number that carried each last.
        self._starts: list[int] = []
        self._numbers: list[int] = []
        # The numbers before, of pieces that were retransmitted.
        self._before: dict[int, list[int]] = {}
        self._end = self._acked = 0
        # The piece that is not acknowledged yet, and where the recovery ends.
        self._place = 0
        self._until: int | None = None

    def records(self, rows: pl.DataFrame) -> Iterator[Record]:
        """The records of these events, in the order of time."""
        names = ("time_s", "kind", "seq", "bytes", "cwnd_segments", "ssthresh_segments")
        for time_s, kind, seq, size, cwnd, ssthresh in rows.select(names).iter_rows():
            found: Iterator[tuple[str, dict[str, Any]]] = iter(())
            if kind == "start":
                self._open()
            elif kind in ("send", "retransmit"):
                found = self._sent(time_s, seq, size)
            elif kind == "receive" and size == 0:
                found = self._received(time_s, seq, _state(cwnd, ssthresh))
            # The reduction that a timeout brings with it is no other.
            elif kind in TRIGGERS and time_s != self._timeout_s:
                self._until = self._end
                self._timeout_s = time_s if kind == "timeout" else self._timeout_s
                found = self._turned("recovery", TRIGGERS[kind])
            for name, data in found:
                yield time_s, name, data

    def _received(self, time_s: float, seq: int, state: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """A segment without data arrives: at the sender if it acknowledges what was sent, otherwise at the other end."""
        if self._first is None:
            return
        offset = self._acked + (seq - self._first - self._acked) % WRAP
        # A FIN that is sent alone takes a number, too.
        if offset > self._end + 1:
            return
        yield "packet_received", {"header": HEADER}
        if acked := self._acknowledged(time_s, min(offset, self._end)):
            yield "packets_acked", {"packet_numbers": acked}
        if self._until is not None and offset < self._until:
            return
        self._until = None
        yield from self._turned(state, None)

    def _sent(self, time_s: float, seq: int, size: int) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._first is None:
            self._first = seq
        # The nearest offset with this number on the wire.
        ahead = (seq - self._first - self._acked + WRAP // 2) % WRAP - WRAP // 2
        begin = self._acked + ahead
        end = begin + size
        known = range(max(bisect_right(self._starts, begin) - 1, self._place), bisect_left(self._starts, end))
        if known and self._end_of(known[0]) <= begin:
            known = known[1:]
        for number in dict.fromkeys(self._numbers[piece] for piece in known):
            yield "packet_lost", {"header": {**HEADER, "packet_number": number}}
        which = len(self._times_s)
        for piece in known:
            self._before.setdefault(piece, []).append(self._numbers[piece])
            self._numbers[piece] = which
        if end > self._end:
            self._starts.append(max(begin, self._end))
            self._numbers.append(which)
            self._end = end
        stream = {"frame_type": "stream", "stream_id": 0, "offset": max(begin, 0), "raw": {"payload_length": size}}
        length = {"length": round(size + self._headers), "payload_length": size}
        header = {**HEADER, "packet_number": which}
        yield "packet_sent", {"header": header, "frames": [stream], "raw": length}
        self._times_s.append(time_s)

    def _end_of(self, piece: int) -> int:
        return self._starts[piece + 1] if piece + 1 < len(self._starts) else self._end

    def _acknowledged(self, time_s: float, offset: int) -> list[int]:
        """The numbers of the packets of which an acknowledgment up to this offset acknowledges the last byte."""
        found: list[int] = []
        while self._place < len(self._starts) and self._end_of(self._place) <= offset:
            which, before = self._numbers[self._place], self._before.pop(self._place, [])
            if not before:
                self._least_s = min(self._least_s, time_s - self._times_s[which])
            while before and self._least_s < math.inf and time_s - self._times_s[which] < self._least_s:
                which = before.pop()
            found.append(which)
            self._place += 1
        self._acked = max(self._acked, offset)
        return sorted(dict.fromkeys(found))

    def _turned(self, state: str | None, trigger: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """The change to a state: of an algorithm without a threshold, only recovery is known. Each reduction begins one."""
        if state is None:
            state = "unknown" if self._state is not None else None
        if state is not None and (state != self._state or trigger is not None):
            told = {"old": self._state, "new": state, "trigger": trigger}
            yield "congestion_state_updated", {key: value for key, value in told.items() if value is not None}
            self._state = state


def _state(cwnd: float | None, ssthresh: float | None) -> str | None:
    if cwnd is None or ssthresh is None or not math.isfinite(ssthresh):
        return None
    return "slow_start" if cwnd < ssthresh else "congestion_avoidance"


# Charts of a log.

# Of each kind of picture the columns of a log, with their factors and the names of their lines; and its unit.
PICTURES: Mapping[str, tuple[Sequence[tuple[str, str]], float, str]] = {
    "cwnd": ((("cwnd_bytes", ""), ("ssthresh_bytes", " ssthresh")), 1e-3, "kB"),
    "srtt": ((("srtt_s", ""),), 1e3, "ms"),
    "in-flight": ((("in_flight_bytes", ""),), 1e-3, "kB"),
}


def chart(path: Path, name: str) -> Chart:
    """The chart of a kind, `cwnd`, `srtt` or `in-flight`, from a file of qlog: its windows are in bytes.

    Raises `ScenarioError` for another kind, and for a log that is damaged or does not tell the quantity.
    """
    if name not in PICTURES:
        raise ScenarioError(f"plot: expected {one_of(list(PICTURES), name)} of a qlog, found {name!r}")
    log = read(path)
    columns, factor, unit = PICTURES[name]
    told = [(suffix, values) for column, suffix in columns if np.isfinite(values := log.column(column) * factor).any()]
    if not told or told[0][0]:
        raise ScenarioError(
            f"{path}: expected {', '.join(COLUMNS[columns[0][0]][0])} in updates of the metrics, found none"
        )
    lines = [Line(f"{path.name}{suffix}", values, 0, minor=bool(suffix)) for suffix, values in told]
    metric, time_s = QUANTITIES[name].metric, log.column("time_s")
    # A log may count from the start of its machine.
    notes = [f"time from the first update of the metrics, at {time_s[0]:.6g} s of the log", *log.notes]
    note = " ".join(f"{one[0].upper()}{one[1:]}." for one in notes)
    time_s = time_s - time_s[0]
    return Chart(name, metric.title, unit, metric.meaning, time_s, lines, note, until_s=float(time_s[-1]))
