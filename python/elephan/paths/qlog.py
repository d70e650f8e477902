"""qlog: what a QUIC stack, or a run of our own (`elephan.report.qlog`), logged of one connection's sender.

JSON and JSON text sequences (RFC 7464), of the present drafts and of earlier ones: events as objects or as the lists of
`event_fields`, names with `transport:` and `recovery:` or `quic:`, times from the beginning or from the event before, in ms or
in the trace's `time_units`. Counted are packets of application data; those of the handshake have keys and numbers of their own.
"""

import json
import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elephan._core import ScenarioError
from elephan.paths.observed import Array, Observed, by_row

# The revision that is written: draft-ietf-quic-qlog-main-schema-14, section 5, and draft-ietf-quic-qlog-quic-events-13, section
# 2.1, by which implementations of a draft append its number.
FILE_SCHEMA = "urn:ietf:params:qlog:file:sequential"
EVENT_SCHEMA = "urn:ietf:params:qlog:events:quic-13"
# The first byte of a record of a sequence (RFC 7464, section 2.2).
SEPARATOR = "\x1e"
# White space of JSON. That of Python has the separator, too.
SPACE = " \t\r\n"
# Headers of IPv4 and UDP, and what IPv6 has more: a log counts the packet that they carry.
UDP_HEADERS, MORE_OF_IPV6 = 28, 20
# `protocol_type` of a trace whose packets are segments of TCP, with their headers in their length.
TCP = "TCP"
LEAST_ROWS = 5

# Of each column of the samples the keys that stand for it, in any draft or stack, and the factor to its unit; none for a time.
COLUMNS: Mapping[str, tuple[tuple[str, ...], float | None]] = {
    "cwnd_bytes": (("congestion_window", "cwnd", "current_cwnd"), 1.0),
    "ssthresh_bytes": (("ssthresh",), 1.0),
    "in_flight_bytes": (("bytes_in_flight",), 1.0),
    "pacing_rate_bit_s": (("pacing_rate",), 1.0),
    "srtt_s": (("smoothed_rtt",), None),
    "latest_rtt_s": (("latest_rtt",), None),
    "min_rtt_s": (("min_rtt",), None),
}
# Names of events, without what stands before a colon and without `recovery_`. The second ones of each are mvfst's.
METRICS = {"metrics_updated", "metric_update", "congestion_metric_update"}
LOST = {"packet_lost", "packets_lost"}
ACKED = {"packets_acked", "packet_ack"}
# Types of packets, and spaces of their numbers, that are not of application data.
OTHER_SPACES = ("initial", "handshake", "retry", "version", "stateless", "crypto")


@dataclass
class Qlog:
    """The events of a connection, in the order of the file.

    `samples` has a row for each update of the metrics: `time_s`, and `COLUMNS` as last told; NaN before. A packet has a number;
    `sent` has its time (s), its bytes and its payload, NaN where the log does not tell; `acked` the time at which it was
    acknowledged for the first time, in their order; `lost` the packets that were declared lost and not acknowledged later.
    """

    source: str
    samples: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ("time_s", *COLUMNS)})
    sent: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    acked: dict[int, float] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    reordered: int = 0
    headers: int = UDP_HEADERS
    # What is sent and neither acknowledged nor lost, in the order of numbers.
    open: dict[int, None] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)

    def column(self, name: str) -> Array:
        """A column of the samples."""
        return np.array(self.samples[name], float)

    def acknowledge(self, numbers: Iterator[tuple[int, int]], time_s: float) -> None:
        """Note that the packets of these ranges, ends included, are acknowledged; those that were before do not count again."""
        for first, last in numbers:
            new = []
            for number in self.open:
                if number > last:
                    break
                if number >= first:
                    new.append(number)
            for number in new:
                del self.open[number]
                self.acked[number] = time_s
            # What was declared lost and is acknowledged was late.
            at = bisect_left(self.lost, first)
            while at < len(self.lost) and self.lost[at] <= last:
                self.acked[self.lost.pop(at)] = time_s
                self.reordered += 1


def is_qlog(path: Path) -> bool:
    """Whether a file begins as qlog does: with a record of a sequence, or with an object."""
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] in (SEPARATOR.encode(), b"{")


def read(path: Path) -> Qlog:
    """Read the connection that sent most of a file. Raises `ScenarioError` for a damaged one.

    What comes after the last whole record of a file that was cut is left out, with a note.
    """
    notes: list[str] = []
    found: dict[tuple[int, str], Qlog] = {}
    for trace, head, events in _traces(path, notes):
        clock = _Clock(head)
        for where, event in events:
            name, time_s, data, group = clock.event(where, event)
            log = found.get((trace, group))
            if log is None:
                log = found[trace, group] = Qlog(path.name, headers=clock.headers)
            _take(log, where, name, time_s, data, clock.unit_s)
    if not found:
        raise ScenarioError(f"{path}: expected events of qlog, found none")
    most = max(found.values(), key=lambda log: (len(log.sent), len(log.samples["time_s"])))
    if len(found) > 1:
        notes.append(f"of {len(found)} connections, the one that sent most")
    most.notes = notes
    order = np.argsort(most.samples["time_s"], kind="stable")
    most.samples = {name: [values[row] for row in order] for name, values in most.samples.items()}
    return most


# The forms of a file.

Event = tuple[str, Any]


def _traces(path: Path, notes: list[str]) -> Iterator[tuple[int, Mapping[str, Any], Iterator[Event]]]:
    """Each trace of a file: its number, its head, and its events with their places, for messages."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    records = _records(text)
    if records is not None:
        events = _sequence(path, records, notes)
        head = next(events, None)
        if head is None or not isinstance(head[1], dict) or not isinstance(head[1].get("trace"), dict):
            raise ScenarioError(
                f"{path}: line 1: expected the head of a sequence with trace, found {_short(head and head[1])}"
            )
        yield 0, head[1]["trace"], events
        return
    document = _document(path, text, notes)
    traces = document.get("traces")
    if not isinstance(traces, list) or not traces:
        raise ScenarioError(f"{path}: expected traces, a list, as qlog has it, found {_short(traces)}")
    for number, trace in enumerate(traces):
        if isinstance(trace, dict) and isinstance(trace.get("events"), list):
            named = ((f"{path}: event {count}", event) for count, event in enumerate(trace["events"], 1))
            yield number, trace, named
        elif not isinstance(trace, dict) or "error_description" not in trace:
            raise ScenarioError(f"{path}: trace {number + 1}: expected an object with events, found {_short(trace)}")


def _records(text: str) -> list[tuple[int, str]] | None:
    """The records of a sequence with the line at which each begins: after separators, or, in early drafts, one a line."""
    if text.lstrip(SPACE).startswith(SEPARATOR):
        line, found = 1, []
        for part in text.split(SEPARATOR):
            if part.strip():
                found.append((line, part))
            line += part.count("\n")
        return found
    first, _, rest = text.lstrip(SPACE).partition("\n")
    try:
        head = json.loads(first)
    except (ValueError, RecursionError):
        return None
    if not rest.strip() or not isinstance(head, dict) or "trace" not in head:
        return None
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _sequence(path: Path, records: list[tuple[int, str]], notes: list[str]) -> Iterator[Event]:
    for count, (line, record) in enumerate(records, 1):
        try:
            event = json.loads(record)
        except (ValueError, RecursionError):
            if count == len(records) > 1:
                notes.append(f"the file ends within a record, at line {line}, which is left out")
                return
            raise ScenarioError(
                f"{path}: line {line}: expected a record of JSON, found {_short(record.strip())}"
            ) from None
        yield f"{path}: line {line}", event


def _document(path: Path, text: str, notes: list[str]) -> dict[str, Any]:
    """The object of a file that is no sequence. If the file was cut within the events, those before the cut."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        wrong = f"{path}: line {error.lineno}: expected JSON, found {_short(text[error.pos : error.pos + 40])}"
        # Behind the place where a file was cut no object ends.
        document = None if "}" in text[error.pos :] else _before_the_cut(text)
        if document is None:
            raise ScenarioError(wrong) from None
        notes.append(f"the file ends early, at line {error.lineno}: what comes after its last whole event is left out")
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: line 1: expected JSON, found: {error}") from None
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: line 1: expected an object with traces, found {_short(document)}")
    return document


def _before_the_cut(text: str) -> Any:
    """The document with the whole events of a text that ends within its last list of events; none if it ends elsewhere."""
    begin = [found.end() for found in re.finditer(r'"events"\s*:\s*\[', text)]
    if not begin:
        return None
    try:
        document = json.loads(text[: begin[-1]] + "]}]}")
        events = document["traces"][-1]["events"]
    except (ValueError, LookupError, TypeError):
        return None
    decoder, at = json.JSONDecoder(), begin[-1]
    while True:
        while text[at : at + 1] and text[at] in f"{SPACE},":
            at += 1
        try:
            event, at = decoder.raw_decode(text, at)
        except ValueError:
            return document
        events.append(event)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text[:40])


# The forms of an event.


class _Clock:
    """How the times and the fields of a trace's events are to be read."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        common, settings = (
            one if isinstance(one := head.get(key), dict) else {} for key in ("common_fields", "configuration")
        )
        fields = head.get("event_fields")
        self.fields = [str(one).lower() for one in fields] if isinstance(fields, list) else []
        self.unit_s = 1e-6 if settings.get("time_units") == "us" else 1e-3
        self.format = "relative_to_previous_event" if "delta_time" in self.fields else common.get("time_format")
        self.headers = 0 if common.get("protocol_type") == TCP else UDP_HEADERS
        self._now = 0.0

    def event(self, where: str, event: Any) -> tuple[str, float, Mapping[str, Any], str]:
        """Name (without what is before a colon), time (s), data and group of an event."""
        if isinstance(event, list):
            event = dict(zip(self.fields, event, strict=False))
        if not isinstance(event, dict):
            raise ScenarioError(f"{where}: expected an event, an object, found {_short(event)}")
        key = next((one for one in ("time", "relative_time", "delta_time") if one in event), "time")
        time = number(where, event, key)
        if not math.isfinite(time):
            raise ScenarioError(f"{where}: expected a number in {key}, found {_short(event.get(key))}")
        is_delta = event.get("time_format", self.format) in ("relative_to_previous_event", "delta")
        self._now = time * self.unit_s + (self._now if is_delta else 0.0)
        name = next((event[one] for one in ("name", "event", "event_type", "type") if one in event), None)
        data = event.get("data")
        if not isinstance(name, str):
            raise ScenarioError(f"{where}: expected a text in name, found {_short(name)}")
        if not isinstance(data, dict):
            raise ScenarioError(f"{where}: expected an object in data, found {_short(data)}")
        return (
            name.lower().rpartition(":")[2].removeprefix("recovery_"),
            self._now,
            data,
            str(event.get("group_id", "")),
        )


def number(where: str, values: Mapping[str, Any], key: str) -> float:
    """A number, which some stacks write as text; NaN for none. Raises `ScenarioError` for something else."""
    value = values.get(key)
    if value is None:
        return float("nan")
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise ScenarioError(f"{where}: expected a number in {key}, found {_short(value)}")


def _part(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _number_of(where: str, packet: Mapping[str, Any]) -> int | None:
    key = next(
        (one for one in ("packet_number", "packet_num", "largest_lost_packet_num") if one in packet), "packet_number"
    )
    found = number(where, packet, key)
    return int(found) if math.isfinite(found) else None


def _is_of_application(packet: Mapping[str, Any]) -> bool:
    keys = ("packet_type", "packet_number_space", "packet_num_space")
    space = next((str(packet[key]) for key in keys if key in packet), "")
    return not space.lower().startswith(OTHER_SPACES)


def _frames(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    frames = data.get("frames")
    return (frame for frame in frames if isinstance(frame, dict)) if isinstance(frames, list) else iter(())


def _ranges(where: str, ranges: Any) -> Iterator[tuple[int, int]]:
    """The ranges of an ACK frame: one number or two each, ascending or descending."""
    for one in ranges if isinstance(ranges, list) else [ranges]:
        ends = one if isinstance(one, list) else [one]
        found = [number(where, {"acked_ranges": end}, "acked_ranges") for end in ends]
        if not found or not all(map(math.isfinite, found)):
            raise ScenarioError(f"{where}: expected ranges of numbers in acked_ranges, found {_short(ranges)}")
        yield int(min(found)), int(max(found))


def _length(where: str, one: Mapping[str, Any], *others: str) -> float:
    """The bytes of a packet or of a frame: `raw`, as RawInfo of the main schema has it, or what earlier drafts had."""
    raw = _part(one, "raw")
    found = [number(where, raw, "length"), *(number(where, one, key) for key in others)]
    return next((value for value in found if math.isfinite(value)), float("nan"))


def _payload(where: str, data: Mapping[str, Any]) -> float:
    """The bytes of streams in a packet; NaN if its frames are not told."""
    total, is_told = 0.0, False
    for frame in _frames(data):
        if str(frame.get("frame_type")).lower() == "stream":
            size = number(where, _part(frame, "raw"), "payload_length")
            size = size if math.isfinite(size) else _length(where, frame, "length")
            total, is_told = total + size, True
    return total if is_told else float("nan")


def _take(log: Qlog, where: str, name: str, time_s: float, data: Mapping[str, Any], unit_s: float) -> None:
    """Add an event to the log of its connection. Events of other names tell nothing that is read."""
    # Earlier drafts have the header's fields beside it.
    packet = {**data, **_part(data, "header")}
    if name in METRICS:
        _sample(log, where, time_s, data, unit_s)
    elif name == "connection_started":
        local = _part(data, "local")
        if str(data.get("ip_version")).lower() in ("ipv6", "v6") or ("ip_v6" in local and "ip_v4" not in local):
            log.headers = UDP_HEADERS + MORE_OF_IPV6
    elif not _is_of_application(packet):
        return
    elif name == "packet_received":
        for frame in _frames(data):
            if str(frame.get("frame_type")).lower() in ("ack", "ack_ecn"):
                log.acknowledge(_ranges(where, frame.get("acked_ranges")), time_s)
    elif name in ACKED:
        log.acknowledge(_ranges(where, data.get("packet_numbers", data.get("packet_num"))), time_s)
    elif name in (*LOST, "packet_sent") and (which := _number_of(where, packet)) is not None:
        if name == "packet_sent":
            log.sent[which] = (time_s, _length(where, packet, "packet_size"), _payload(where, data))
            log.open[which] = None
        elif which in log.open:
            told = number(where, packet, "lost_packets")
            count = int(told) if 1 <= told < math.inf else 1
            # mvfst tells the last of those that were lost together.
            for one in [one for one in log.open if one <= which][-count:]:
                del log.open[one]
                insort(log.lost, one)


def _sample(log: Qlog, where: str, time_s: float, data: Mapping[str, Any], unit_s: float) -> None:
    rows = log.samples
    told = False
    for column, (keys, factor) in COLUMNS.items():
        values = [number(where, data, key) for key in keys if key in data]
        told |= bool(values)
        before = rows[column][-1] if rows[column] else float("nan")
        rows[column].append(values[0] * (unit_s if factor is None else factor) if values else before)
    rows["time_s"].append(time_s)
    if not told:
        # Counts alone, such as `pto_count`.
        for values in rows.values():
            values.pop()


# What a log shows of its path.


def observe(path: Path) -> Observed:
    """What a log shows of the path of its connection. Raises `ScenarioError` if it has too little of one."""
    log = read(path)
    rows = sorted(log.acked, key=log.acked.__getitem__)
    sizes = np.array([size for _, size, _ in log.sent.values()])
    if len(rows) < LEAST_ROWS or not np.isfinite(sizes).any():
        raise ScenarioError(
            f"{path}: expected packet_sent with the bytes of packets, and their acknowledgments (ACK frames in "
            f"packet_received, or packets_acked), found {len(log.sent)} packets and {len(log.acked)} acknowledged ones"
        )
    usual = usual_bytes(sizes)
    payloads = np.array([payload for _, _, payload in log.sent.values()])
    wire = np.where(np.isfinite(sizes), sizes, usual) + log.headers
    of = {which: float(size) for which, size in zip(log.sent, wire, strict=True)}
    time_s, last, delivered = _rows(log, rows, of)
    sent_s = np.array([log.sent[which][0] for which in last])
    lost_s = np.array([log.sent[which][0] for which in log.lost])
    all_s = np.array([time for time, _, _ in log.sent.values()])
    told = log.column("time_s")
    at = np.searchsorted(told, time_s, side="right") - 1
    window = (
        np.where(at >= 0, log.column("cwnd_bytes")[np.maximum(at, 0)], np.nan)
        if len(told)
        else np.full(len(at), np.nan)
    )
    return Observed(
        source=log.source,
        time_s=time_s - time_s[0],
        delivered_bytes=delivered - delivered[0],
        rtt_s=np.where(time_s > sent_s, time_s - sent_s, np.nan),
        sent=by_row(sent_s, all_s).astype(float),
        # The row before: the lost packet met the queue as the one before it left it.
        lost=by_row(sent_s, np.nextafter(lost_s, -np.inf)).astype(float),
        window_bytes=window,
        packet_bytes=usual + log.headers,
        payload_bytes=usual_bytes(payloads) if np.isfinite(payloads).any() else usual,
        reordered=log.reordered / len(log.sent),
        notes=tuple(log.notes),
    )


def _rows(log: Qlog, numbers: list[int], bytes_of: Mapping[int, float]) -> tuple[Array, list[int], Array]:
    """Of each acknowledgment its time, the last packet that it acknowledges, and the bytes delivered until then."""
    times: list[float] = []
    last: list[int] = []
    delivered: list[float] = []
    total = 0.0
    for which in numbers:
        total += bytes_of[which]
        if times and log.acked[which] == times[-1]:
            last[-1], delivered[-1] = max(last[-1], which), total
        else:
            times.append(log.acked[which])
            last.append(which)
            delivered.append(total)
    return np.array(times), last, np.array(delivered)


def usual_bytes(sizes: Array) -> float:
    """The size of the packets that carried half of all bytes: acknowledgments are smaller, and a probe of the MTU larger."""
    known = np.sort(sizes[np.isfinite(sizes)])
    return float(known[np.searchsorted(np.cumsum(known), known.sum() / 2)])
