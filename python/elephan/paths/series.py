"""Samples of the sender's state: a log of `ss -ti`, or the samples of a results folder (a run's, or a transfer's).

A sample has the smoothed round-trip time, so it is coarser than a capture: a queue that grows and drains between two samples
is missed. A loss is counted about a round trip after it happened; it is put where the queue was longest since.
"""

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elephan._core import ScenarioError
from elephan.api.run import Run
from elephan.paths import watch
from elephan.paths.observed import HEADERS, Array, Observed, together
from elephan.paths.scenario import packet_of

# IPv4, TCP and timestamps; and what IPv6 has more.
SMALL_BYTES, MORE_OF_IPV6 = 120.0, 20
LEAST_SHARE, LEAST_ROWS = 0.01, 5
COMMAND = "while sleep 0.1; do date +%s.%N; ss -tin dst ADDRESS; done > ss.txt"
NOT_ALGORITHMS = ("ts", "sack", "ecn", "ecnseen", "fastopen", "ESTAB")
NUMBER = re.compile(r"([a-z_]+):([0-9.]+)(ms)?(?:/([0-9.]+))?")
CONNECTION = re.compile(r"^(?:[a-z]+ +)?(?P<state>[A-Z][A-Z0-9-]+) +\d+ +\d+ +(?P<from>\S+:\d+) +(?P<to>\S+:\d+)")


def observe_ss(path: Path) -> Observed:
    """A log of `ss -tin` with a line of its own for the time before each. Raises `ScenarioError` if it has no transfer."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: expected a capture or the text of `ss -ti`, found other bytes") from error
    parts = {
        ends: rows
        for ends, rows in _connections(path, lines).items()
        if len(rows) >= LEAST_ROWS and rows[-1].get("bytes_acked", 0) > rows[0].get("bytes_acked", 0)
    }
    if not parts:
        raise ScenarioError(
            f"{path}: expected a connection with {LEAST_ROWS} samples or more that sends data, found none"
        )

    def sent(rows: list[dict[str, Any]]) -> float:
        return float(rows[-1]["bytes_acked"])

    largest = max(parts, key=lambda ends: sent(parts[ends]))
    hosts = [end.rpartition(":")[0] for end in largest]
    chosen = [
        rows
        for ends, rows in parts.items()
        if [end.rpartition(":")[0] for end in ends] == hosts and sent(rows) > LEAST_SHARE * sent(parts[largest])
    ]
    more = MORE_OF_IPV6 if "[" in largest[0] else 0
    return together([_of_rows(rows, path.name, more) for rows in chosen], [rows[0]["time_s"] for rows in chosen])


def _connections(path: Path, lines: list[str]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The samples of each connection, with their time."""
    now, ends = None, None
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        time_s = _time(line)
        if time_s is not None:
            now, ends = time_s, None
            continue
        connection = CONNECTION.match(line.strip())
        if connection:
            ends = (connection["from"], connection["to"])
        if ends is None or " rtt:" not in line:
            continue
        if now is None:
            raise ScenarioError(
                f"{path}: line {number}: expected a line with the time before each sample; log with `{COMMAND}`"
            )
        row = _row(line)
        row["time_s"] = now
        rows = found.setdefault(ends, [])
        # A port may be used again.
        if rows and row.get("bytes_acked", 0) < rows[-1].get("bytes_acked", 0):
            rows.clear()
        rows.append(row)
    return found


def _time(line: str) -> float | None:
    """The time of a line that has nothing else: seconds since 1970, or ISO 8601."""
    text = line.strip().lstrip("# ")
    if not text or not text[0].isdigit():
        return None
    try:
        return float(text)
    except ValueError:
        try:
            return datetime.datetime.fromisoformat(text).timestamp()
        except ValueError:
            return None


def _row(line: str) -> dict[str, Any]:
    """The numbers of a line of `ss -i` by name, `a/b` also as `name_2`; times in ms. Its algorithm is `cc`."""
    row: dict[str, Any] = {}
    before = line.partition(" rtt:")[0].split()
    words = [word for word in before if word.isidentifier() and word not in NOT_ALGORITHMS]
    if words:
        row["cc"] = words[-1]
    for name, value, _, second in NUMBER.findall(line):
        try:
            row[name] = float(value)
            if second:
                row[f"{name}_2"] = float(second)
        except ValueError:
            continue
    row["app_limited"] = "app_limited" in line.split()
    return row


def _of_rows(rows: list[dict[str, Any]], source: str, more: int) -> Observed:
    def column(name: str, default: float = 0.0) -> Array:
        return np.array([float(row.get(name, default)) for row in rows])

    mss = float(rows[-1].get("mss", 1448.0))
    least = [row["minrtt"] * 1e-3 for row in rows if row.get("minrtt")]
    spurious = column("dsack_dups")
    busy_ms = max(float(rows[-1].get("busy", 0.0)), 1e-9)
    limits = {
        "receive window": float(rows[-1].get("rwnd_limited", 0.0)) / busy_ms,
        "send buffer": float(rows[-1].get("sndbuf_limited", 0.0)) / busy_ms,
        "application": float(np.mean([row["app_limited"] for row in rows])),
    }
    return _observed(
        source=source,
        time_s=column("time_s"),
        acked=column("bytes_acked"),
        rtt_s=column("rtt") * 1e-3,
        sent=np.maximum.accumulate(column("data_segs_out")),
        again=np.maximum(np.maximum.accumulate(column("retrans_2")) - spurious, 0),
        window=column("cwnd") * mss,
        mss=mss,
        headers=_headers(rows[-1], mss, more),
        min_rtt_s=min(least, default=None),
        cc=rows[-1].get("cc"),
        limits=limits,
    )


def _headers(row: dict[str, Any], mss: float, more: int) -> float:
    """Headers of a packet: what the path's MTU has beside a segment; without one, those of TCP with timestamps."""
    told = row.get("pmtu", 0.0) - mss
    return told if HEADERS <= told <= HEADERS + more + 40 else HEADERS + more + 12.0


def _observed(
    *, source: str, time_s: Array, acked: Array, rtt_s: Array, sent: Array, again: Array, window: Array, mss: float,
    headers: float, min_rtt_s: float | None, cc: str | None, limits: dict[str, float],
) -> Observed:  # fmt: skip
    step_s = float(np.median(np.diff(time_s)))
    rtt_s = np.where(rtt_s > 0, rtt_s, np.nan)
    lost = np.maximum(np.diff(again, prepend=again[0]), 0)
    return Observed(
        source=source,
        time_s=time_s - time_s[0],
        delivered_bytes=(acked - acked[0]) * (mss + headers) / mss,
        rtt_s=rtt_s,
        sent=np.maximum(np.diff(sent, prepend=sent[0]), 0),
        lost=_where_it_was_longest(lost, rtt_s, step_s),
        window_bytes=window,
        packet_bytes=mss + headers,
        payload_bytes=mss,
        step_s=step_s,
        small_rtt_s=min_rtt_s,
        small_bytes=SMALL_BYTES,
        cc=cc,
        limits={key: share for key, share in limits.items() if share > 0},
    )


def _where_it_was_longest(lost: Array, rtt_s: Array, step_s: float) -> Array:
    """Losses, in the row of the longest round trip of those in which they may have happened."""
    moved = np.zeros(len(lost))
    for row in map(int, np.flatnonzero(lost > 0)):
        rtt = rtt_s[row] if np.isfinite(rtt_s[row]) else 0.0
        first = max(row - 1 - int(np.ceil(2 * rtt / step_s)), 0)
        before = np.nan_to_num(rtt_s[first : row + 1])
        moved[first + int(np.argmax(before))] += lost[row]
    return moved


def observe_results(folder: Path) -> Observed:
    """The flows of a results folder that sent most to one host, by what TCP_INFO told, or the simulator's sender."""
    run = Run.load(folder)
    frame = run.flows
    document: Mapping[str, Any] = run.scenario.document
    size, headers = packet_of(document)
    mss = size - headers
    parts, starts, hosts = [], [], []
    for number, label in enumerate(run.labels):
        rows = frame.filter((frame["flow"] == number) & frame["srtt_s"].is_not_null())
        at: dict[str, Array] = {name: rows[name].to_numpy().astype(float) for name in rows.columns if name != "label"}
        if len(rows) < LEAST_ROWS or not at["delivered_bytes"][-1]:
            continue
        busy_s = max(float(at["busy_s"][-1]), 1e-9) if "busy_s" in at else 1.0
        least = at["min_rtt_s"][at["min_rtt_s"] > 0] if "min_rtt_s" in at else np.array([])
        parts.append(
            _observed(
                source=folder.name or str(folder),
                time_s=at["time_s"],
                acked=at["delivered_bytes"],
                rtt_s=at["srtt_s"],
                sent=at["sent_bytes"] / mss,
                again=at["retransmits"],
                window=at["cwnd_segments"] * mss,
                mss=mss,
                headers=headers,
                min_rtt_s=float(least.min()) if len(least) else None,
                cc=_algorithm(document, number, label),
                limits={
                    name: float(at[key][-1]) / busy_s
                    for name, key in (("receive window", "rwnd_limited_s"), ("send buffer", "sndbuf_limited_s"))
                    if key in at
                },
            )
        )
        starts.append(float(at["time_s"][0]))
        hosts.append(watch.peer(label))
    if not parts:
        raise ScenarioError(f"{folder}: expected a flow with {LEAST_ROWS} samples or more, found none")
    largest = max(range(len(parts)), key=lambda number: parts[number].delivered_bytes[-1])
    most = float(parts[largest].delivered_bytes[-1])
    # What a program sent to another host took another path.
    chosen = [
        number
        for number, part in enumerate(parts)
        if part.delivered_bytes[-1] > LEAST_SHARE * most and hosts[number] == hosts[largest]
    ]
    return together([parts[number] for number in chosen], [starts[number] for number in chosen])


def _algorithm(document: Mapping[str, Any], number: int, label: str) -> str:
    """The algorithm of a flow of a scenario; its label, if flows are not written one by one."""
    flows = [one for one in document.get("flow", []) for _ in range(int(one.get("count", 1)))]
    cc = flows[number]["cc"] if number < len(flows) else label
    return str(cc["name"]) if isinstance(cc, Mapping) else str(cc)
