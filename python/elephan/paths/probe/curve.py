"""Throughput, loss and delay against the spacing of packets: UDPMon's 1/t curve (thesis, figures 3.1 and A.10).

Packets that leave more slowly than the path's rate arrive as they left. Beyond it, what arrives is flat, delay grows, and then
packets are lost. Where the path is shared, it bends earlier: what is offered then competes with what others send.
"""

from dataclasses import dataclass

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import Array, median, median_rate
from elephan.paths.probe.session import Seen, Session

# Parts of the estimated rate that are offered.
LOADS = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.05, 1.15, 1.3, 1.5)
LEAST, MOST = 20, 20_000
LONGEST_S = 0.5
# What arrives is as much as what left.
SAME = 0.98
# From here on the path is the limit.
OVER = 1.1
# A first-in first-out queue shares by what is offered, so an overload shows others only if they are more than this part.
LEAST_CROSS = 0.02


@dataclass(frozen=True)
class Point:
    """A point of the curve: spacing (s), rates (bit/s), share of loss, and delays above the shortest (s)."""

    spacing: float
    offered: float
    received: float
    loss: float
    delay_median: float
    delay_95: float


@dataclass(frozen=True)
class Curve:
    """The curve, the rate that is still available, and the rate at saturation."""

    points: list[Point]
    available: Value
    saturated: Value
    cost: int


def measure(session: Session, share: Share, mtu: int, rate: float) -> Curve:
    """Offer each load in turn; between two, queues drain."""
    points, base = [], np.inf
    each = share.bytes / sum(LOADS)
    seconds = share.seconds / len(LOADS) - 2.5 * session.round_trip - 0.1
    lasting = float(np.clip(seconds, 0.02, LONGEST_S))
    for load in LOADS:
        gap = mtu * 8 / (rate * load)
        count = int(np.clip(min(lasting / gap, load * each / (mtu + 40)), LEAST, MOST))
        queue = max(0.0, load - 1) * count * gap
        try:
            seen = session.even("curve", mtu, gap, count, linger=session.round_trip + 0.05 + queue)
        except PermissionError:
            # A busy host took longer for what came before: the budget does not suffice for more.
            break
        session.rest(session.round_trip / 2)
        if seen.has_arrived.sum() < LEAST / 2:
            continue
        base = min(base, float(np.nanmin(seen.forward)))
        points.append(point(seen, base))
    return of_points(points, session.cost.get("curve", 0))


def point(seen: Seen, base: float) -> Point:
    """What a stream shows."""
    there = seen.forward[seen.has_arrived] - base
    spacing = float(np.median(np.diff(seen.sent[seen.was_sent])))
    median_s, high = np.percentile(there, [50, 95])
    lost = seen.lost / max(1, int(seen.was_sent.sum()))
    return Point(spacing, seen.offered(), seen.received(), lost, float(median_s), float(high))


def of_points(points: list[Point], cost: int) -> Curve:
    """What the curve shows."""
    known = sorted(
        (one for one in points if np.isfinite([one.offered, one.received]).all()), key=lambda one: one.offered
    )
    through = [one for one in known if one.received >= SAME * one.offered]
    beyond = [one for one in known if one.received < SAME * one.offered]
    method = f"highest offered load of which at least {SAME:.0%} arrived in time"
    if not through:
        available = absent("bit/s", "no load passed undiminished", high=known[0].offered if known else None)
    else:
        best = max(one.offered for one in through)
        above = [one.offered for one in beyond if one.offered > best]
        available = Value(
            unit="bit/s", value=best, low=best, high=min(above, default=best), method=method, cost_bytes=cost
        )
    over: Array = np.array([one.received for one in beyond if one.offered >= OVER * one.received])
    if len(over) < 2:
        reason = "no offered load exceeded the path"
        saturated = absent("bit/s", reason, low=max((one.received for one in known), default=None))
    else:
        saturated = median_rate(over, f"median of {len(over)} overloads", cost)
    return Curve(points, available, saturated, cost)


def cross(points: list[Point], capacity: Value, cost: int) -> Value | None:
    """What others send through the bottleneck.

    A first-in first-out queue that is overloaded serves each by what it offers: of a capacity C, an offer r beside X gets
    C r / (r + X). So X = r (C / got - 1).
    """
    if capacity.value is None or capacity.low is None:
        return None
    over = [one for one in points if one.offered >= OVER * one.received and one.received > 0]
    if len(over) < 2:
        return absent("bit/s", "no offered load exceeded the path")
    others: Array = np.array([one.offered * (capacity.value / one.received - 1) for one in over])
    others = np.maximum(others, 0.0)
    value, _, high = median(others)
    method = "share of an overloaded first-in first-out queue"
    if value < LEAST_CROSS * capacity.value:
        return Value(unit="bit/s", value=0.0, low=0.0, high=max(high, value), method=method, cost_bytes=cost)
    return median_rate(others, method, cost)
