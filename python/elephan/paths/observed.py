"""What a measurement shows of a path, in one form, wherever it comes from: captures, logs of `ss`, or a run's samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
# IPv4 and TCP without options, and what a pure acknowledgment has at most.
HEADERS, ACK_BYTES = 40, 60.0


@dataclass(frozen=True)
class Observed:
    """Rows in the order of time: an acknowledgment each, or a sample of the sender's state (`step_s` apart).

    - `time_s`: since the first row;
    - `delivered_bytes`: bytes of IP packets that have arrived, once each, since the first row;
    - `rtt_s`: a round-trip time that ended with the row; NaN for none;
    - `sent`, `lost`: packets sent, and of these lost, that met the queue that the row's round-trip time shows;
    - `window_bytes`: the congestion window, or the payload in flight (`window_is`: `cwnd` or `flight`).

    `small_rtt_s` is the shortest round trip of small packets (the handshake), of `small_bytes` both ways together. `limits` has
    the share of the time in which something other than the path was the limit.
    """

    source: str
    time_s: Array
    delivered_bytes: Array
    rtt_s: Array
    sent: Array
    lost: Array
    window_bytes: Array
    packet_bytes: float
    payload_bytes: float
    step_s: float = 0.0
    small_rtt_s: float | None = None
    small_bytes: float = 0.0
    streams: int = 1
    cc: str | None = None
    window_is: str = "cwnd"
    reordered: float | None = None
    limits: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """From the first row to the last."""
        return float(self.time_s[-1]) if len(self.time_s) else 0.0

    @property
    def serial_bytes(self) -> float:
        """Bytes of a full packet and of its acknowledgment: what a round trip serialises."""
        return self.packet_bytes + ACK_BYTES

    def series(self, points: int = 200) -> dict[str, Array]:
        """Time, goodput (bit/s), round-trip time (s) and window (bytes), as means of at most so many intervals."""
        step = max(self.duration_s / points, self.step_s, 1e-9)
        edges = np.arange(0, max(self.duration_s, step) + step / 2, step)
        # A count at an edge is that of the last row before it.
        at = np.searchsorted(self.time_s, edges, side="right") - 1
        delivered = np.where(at >= 0, self.delivered_bytes[np.maximum(at, 0)], 0.0)
        share = self.payload_bytes / self.packet_bytes
        place = np.clip(np.digitize(self.time_s, edges) - 1, 0, len(edges) - 2)

        def mean(values: Array) -> Array:
            is_there = np.isfinite(values)
            total = np.bincount(place[is_there], values[is_there], minlength=len(edges) - 1)
            count = np.bincount(place[is_there], minlength=len(edges) - 1)
            with np.errstate(invalid="ignore"):
                return np.asarray(total / np.where(count, count, np.nan), float)

        return {
            "time_s": edges[1:],
            "goodput_bit_s": np.diff(delivered) * 8 * share / step,
            "rtt_s": mean(self.rtt_s),
            "window_bytes": mean(self.window_bytes),
        }


def by_row(sent: Any, times: Any, weights: Any = None, *, known: Any = None) -> Any:
    """Packets by row: each of those sent at `times` belongs to the row of the last packet that was sent before it, or with it.

    `sent` has the time at which the packet of each row was sent, in the unit of `times`; `known` says which rows have one.
    """
    rows = np.arange(len(sent)) if known is None else np.flatnonzero(known)
    order = rows[np.argsort(sent[rows], kind="stable")]
    place = np.clip(np.searchsorted(sent[order], times, side="right") - 1, 0, len(order) - 1)
    return np.bincount(order[place], weights, minlength=len(sent))


def together(parts: Sequence[Observed], starts_s: Sequence[float]) -> Observed:
    """Streams of the same path as one: their rows by time, and what they delivered together."""
    if len(parts) == 1:
        return parts[0]
    begin = min(starts_s)
    times = np.concatenate([part.time_s + start - begin for part, start in zip(parts, starts_s, strict=True)])
    order = np.argsort(times, kind="stable")

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    steps = np.concatenate([np.diff(part.delivered_bytes, prepend=0.0) for part in parts])[order]
    owner = np.concatenate([np.full(len(part.time_s), number) for number, part in enumerate(parts)])[order]
    # The window of all is the sum of the latest of each.
    total = np.zeros(len(order))
    for number in range(len(parts)):
        own = np.where(owner == number, joined("window_bytes"), np.nan)
        last = np.maximum.accumulate(np.where(np.isfinite(own), np.arange(len(own)), -1))
        total += np.where(last >= 0, own[np.maximum(last, 0)], 0.0)
    largest = max(parts, key=lambda part: part.delivered_bytes[-1])
    small = [part for part in parts if part.small_rtt_s is not None]
    least = min(small, key=lambda part: part.small_rtt_s or 0.0, default=largest)
    weights = [float(part.delivered_bytes[-1]) for part in parts]
    return replace(
        largest,
        time_s=times[order],
        delivered_bytes=np.cumsum(steps),
        rtt_s=joined("rtt_s"),
        sent=joined("sent"),
        lost=joined("lost"),
        window_bytes=total,
        small_rtt_s=least.small_rtt_s,
        small_bytes=least.small_bytes,
        streams=len(parts),
        limits={
            key: float(np.average([part.limits.get(key, 0.0) for part in parts], weights=weights))
            for key in {key for part in parts for key in part.limits}
        },
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
