"""Asks for tests, and keeps what was seen of each packet."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elephan import _core
from elephan.paths.probe.figures import Array, slope

# Rates without a limit.
UNLIMITED = float("inf")


@dataclass(frozen=True)
class Seen:
    """What was seen of a stream: a row for each packet, in the order in which they were due. Times are in s.

    `sent` and `back` are on this host's clock, `arrived` and `echoed` on the other's, both since a time of their own. What did
    not happen is NaN. `order` has the packets as they arrived, duplicates included.
    """

    sizes: Array
    due: Array
    sent: Array
    arrived: Array
    echoed: Array
    back: Array
    order: Array
    stamped: bool
    overflowed: int
    cost: int

    @property
    def was_sent(self) -> Array:
        """Which packets left this host."""
        return ~np.isnan(self.sent)

    @property
    def has_arrived(self) -> Array:
        """Which packets arrived."""
        return ~np.isnan(self.arrived)

    @property
    def lost(self) -> int:
        """Packets that were sent and did not arrive, without those that the receiving socket dropped."""
        return max(0, int((self.was_sent & ~self.has_arrived).sum()) - self.overflowed)

    @property
    def forward(self) -> Array:
        """Delay of each packet there, plus the unknown difference of the clocks."""
        return self.arrived - self.sent

    @property
    def backward(self) -> Array:
        """Delay of each echo, minus the unknown difference of the clocks."""
        return self.back - self.echoed

    @property
    def round_trip(self) -> Array:
        """Round-trip time of each packet, without its time at the far host."""
        return self.forward + self.backward

    @property
    def reordered(self) -> int:
        """Packets that arrived after one that was sent later (RFC 4737, section 3)."""
        _, first = np.unique(self.order, return_index=True)
        order = self.order[np.sort(first)]
        return int((order < np.maximum.accumulate(order)).sum()) if len(order) else 0

    @property
    def duplicated(self) -> int:
        """Arrivals of packets that had arrived already."""
        return len(self.order) - len(np.unique(self.order))

    def offered(self) -> float:
        """The rate at which the packets left, bit/s: from the first to the last, by the times of departure."""
        return _rate(self.sent[self.was_sent], self.sizes[self.was_sent])

    def received(self) -> float:
        """The rate at which packets arrived, bit/s: the slope of what had arrived over time, by least squares."""
        there = self.has_arrived
        return _rate(self.arrived[there], self.sizes[there])


def _rate(times: Array, sizes: Array) -> float:
    """Bit/s of packets that follow the first; NaN if there are too few."""
    order = np.argsort(times, kind="stable")
    times, sizes = times[order], sizes[order]
    if len(times) < 3 or times[-1] <= times[0]:
        return float("nan")
    return slope(times, np.cumsum(sizes) * 8.0)


@dataclass
class Session:
    """A session with the server, what it may still cost, and the packets of all tests so far."""

    client: _core.ProbeClient
    max_bytes: int
    max_seconds: float
    rate: float = UNLIMITED
    round_trip: float = 1.0
    base_ns: int = 0
    far_base_ns: int = 0
    streams: list[tuple[str, Seen]] = field(default_factory=list)
    cost: dict[str, int] = field(default_factory=dict)
    ended: tuple[int, float] | None = None

    @classmethod
    def open(cls, host: str, port: int, token: str, max_bytes: int, max_seconds: float) -> "Session":
        """Connect, and agree on limits. Raises as `ProbeClient`."""
        client = _core.ProbeClient(host, port, token, max_bytes, max_seconds)
        agreed_bytes, agreed_seconds, rate = client.limits()
        return cls(client, agreed_bytes, agreed_seconds, UNLIMITED if rate is None else float(rate))

    @property
    def least_size(self) -> int:
        """The smallest packet."""
        return int(_core.PROBE_HEADER) + (48 if self.client.is_v6() else 28)

    @property
    def spent(self) -> tuple[int, float]:
        """Bytes and seconds so far; after the end of the session, those at its end."""
        return self.ended or (self.client.spent(), self.client.elapsed())

    def finish(self) -> None:
        """End the session."""
        self.ended = self.spent
        # All has been measured; whether the server learns of the end does not matter.
        with suppress(OSError):
            self.client.finish()

    def left(self) -> tuple[int, float]:
        """Bytes and seconds that are left."""
        return self.max_bytes - self.client.spent(), self.max_seconds - self.client.elapsed()

    def stream(self, test: str, sizes: Array, gaps: Array, *, echo: bool = False, linger: float | None = None) -> Seen:
        """Send packets of these sizes, each so long (s) after the one before it, and never faster than was agreed on."""
        if np.isfinite(self.rate):
            passing = np.ceil(np.concatenate([[0.0], sizes[:-1] * 8e9 / self.rate]))
            due = np.cumsum(np.maximum(gaps * 1e9, passing))
        else:
            due = np.cumsum(gaps * 1e9)
        due_ns = np.floor(due).astype(np.int64)
        wait = self.round_trip * 1.5 + 0.1 if linger is None else linger
        raw = self.client.stream(sizes.tolist(), due_ns.tolist(), echo, wait)
        seen = self._seen(sizes, due_ns, raw)
        self.streams.append((test, seen))
        self.cost[test] = self.cost.get(test, 0) + seen.cost
        return seen

    def even(self, test: str, size: int, gap: float, count: int, *, linger: float | None = None) -> Seen:
        """Send `count` packets of a size, evenly spaced."""
        return self.stream(test, np.full(count, size), np.full(count, gap), linger=linger)

    def rest(self, seconds: float) -> None:
        """Let queues drain."""
        time.sleep(min(seconds, max(0.0, self.left()[1])))

    def _seen(self, sizes: Array, due_ns: Array, raw: dict[str, Any]) -> Seen:
        count = len(sizes)
        if not self.base_ns and (raw["sent_ns"] > 0).any():
            self.base_ns = int(raw["sent_ns"].max())
        if not self.far_base_ns and len(raw["arrived_ns"]):
            self.far_base_ns = int(raw["arrived_ns"][0])
        order = raw["arrived"]
        kept = order < count
        first, index = np.unique(order[kept], return_index=True)

        def placed(at: Array, times: Array, base: int) -> Array:
            column = np.full(count, np.nan)
            happened = times > 0
            column[at[happened]] = (times[happened].astype(np.int64) - base) * 1e-9
            return column

        back, back_index = np.unique(raw["back"][raw["back"] < count], return_index=True)
        return Seen(
            sizes=np.asarray(sizes),
            due=due_ns * 1e-9,
            sent=placed(np.arange(count), raw["sent_ns"], self.base_ns),
            arrived=placed(first, raw["arrived_ns"][kept][index], self.far_base_ns),
            echoed=placed(first, raw["echoed_ns"][kept][index], self.far_base_ns),
            back=placed(back, raw["back_ns"][raw["back"] < count][back_index], self.base_ns),
            order=order[kept].astype(np.int64),
            stamped=bool(raw["stamped"]),
            overflowed=int(raw["overflowed"]),
            cost=int(raw["bytes"]),
        )
