"""TCP for some seconds, by algorithm and direction: goodput, and the kernel's `TCP_INFO` ten times a second."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import Array, around
from elephan.paths.probe.session import Session
from elephan.studies.statistics import Estimate

# Parts of a transfer whose goodput is compared for its interval.
PARTS = 10
# So many reductions of the window tell something; and a queue is far from full below this part of what it holds.
REDUCTIONS, FAR = 3, 0.5
# These do not fill a queue until it drops.
PACED = ("bbr",)
# Payload of a packet, about: for how many packets there were.
PACKET_BYTES = 1448


@dataclass(frozen=True)
class Transfer:
    """A test: algorithm, whether the server sent, goodput, and the tables of its run."""

    cc: str
    down: bool
    goodput: Value
    tables: dict[str, Any] | None

    @property
    def name(self) -> str:
        """What the test is called: `tcp cubic`, `tcp cubic back`."""
        return f"tcp {self.cc}{' back' if self.down else ''}"


def measure(session: Session, share: Share, cc: str, *, down: bool) -> Transfer:
    """Carry out a test. Raises `PermissionError` where the kernel or the server refuses it."""
    left = session.left()
    seconds = min(share.seconds - 2 * session.round_trip - 0.1, left[1] - 1.0)
    allowed = min(share.bytes, left[0] - 100_000)
    if seconds <= 0.2 or allowed < 200_000:
        raise PermissionError("the budget does not suffice")
    found: dict[str, Any] = session.client.tcp(cc, down, seconds, allowed)
    session.cost[share.test] = int(found["bytes"])
    goodput = of_series(found["received_ns"], found["received"], int(found["bytes"]))
    session.rest(2 * session.round_trip)
    return Transfer(cc, down, goodput, found["tables"])


def queue_note(transfers: Sequence[Transfer], held: Value, rate: Value, base_rtt: Value, random: Value) -> str:
    """What TCP shows of a queue that drops before it is full; empty if nothing.

    TCP that probes by losses fills a plain queue until it drops. `held` is what an overload filled, and `random` the share of
    packets that are lost without a queue.
    """
    if not held.value or not rate.value or not base_rtt.value:
        return ""
    for one in transfers:
        if one.tables is None or one.down or one.cc.startswith(PACED):
            continue
        flows = one.tables["flows"]
        queue = (np.asarray(flows["srtt_s"]) - base_rtt.value) * rate.value / 8
        # A sample is up to 100 ms from the reduction: the longer queue of the one before and the one after counts.
        reduced = np.flatnonzero(np.diff(np.asarray(flows["congestion_events"], float)) > 0)
        met = np.maximum(np.maximum(queue[reduced], queue[reduced + 1]), 0.0)
        packets = float(np.asarray(flows["sent_bytes"])[-1]) / PACKET_BYTES if len(queue) else 0.0
        explained = packets * (random.value or 0.0)
        if len(met) >= max(REDUCTIONS, 2 * explained) and np.median(met) < FAR * held.value:
            return (
                f"{one.name} reduced its window {len(met)} times, half of them at a queue of no more than "
                f"{np.median(met) * 1e-3:.3g} kB of the {held.value * 1e-3:.4g} kB that an overload fills, and random loss "
                "does not explain it: the queue may be managed (AQM), which the scenario's is not"
            )
    return ""


def of_series(at_ns: Array, received: Array, cost: int) -> Value:
    """Goodput of the whole transfer, its start included, with the interval over parts of it."""
    at = (at_ns.astype(np.int64) - int(at_ns[0])) * 1e-9 if len(at_ns) else np.zeros(0)
    if len(at) < 4 or at[-1] <= 0:
        return absent("bit/s", "the transfer was too short")
    edges = np.linspace(0.0, at[-1], PARTS + 1)
    parts = np.diff(np.interp(edges, at, received.astype(float))) * 8 / (at[-1] / PARTS)
    estimate = Estimate.of([float(part) for part in parts])
    value = float(received[-1]) * 8 / float(at[-1])
    low, high = estimate.low or 0.0, estimate.high or value
    method = f"received in {at[-1]:.1f} s, start included; interval over {PARTS} parts"
    return around("bit/s", value, low, high, method, cost)
