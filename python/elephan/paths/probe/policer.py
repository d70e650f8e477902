"""A policer: a token bucket that drops what exceeds its rate, however much the links behind it carry (RFC 2475, section 2.3.3).

Packet trains pass it while the bucket has tokens, so their dispersion tells the rate of the links. What is sent for longer than
that arrives at the rate of the bucket, whatever is offered, and what is dropped has not waited.
"""

from collections.abc import Sequence

import numpy as np

from elephan.paths.estimates import Value
from elephan.paths.probe.budget import Share
from elephan.paths.probe.buffer import ENOUGH, OVERLOAD, plateau
from elephan.paths.probe.curve import OVER, Point
from elephan.paths.probe.delays import HOSTS_S
from elephan.paths.probe.figures import Array, median
from elephan.paths.probe.session import Seen, Session

# Overloads that have to be like one another, and the part of the capacity that they have to miss.
LEAST, MISSED = 3, 0.05
# A queue of no more packets than this is none.
FEW_PACKETS = 2
LONGEST_S = 2.0
# Parts of an overload whose rates give the interval.
PARTS = 10


def by_curve(points: Sequence[Point], capacity: Value) -> bool:
    """Whether the curve is that of a policer, given the capacity by packet trains.

    Others who share a queue take a part of the capacity, too. But what they leave grows with what is offered, as
    `elephan.paths.probe.curve.cross` has it, and an overload waits.
    """
    over = [one for one in points if one.loss > 0 and one.offered >= OVER * one.received > 0]
    if capacity.best is None or len(over) < LEAST:
        return False
    offered, got = (np.array(one) for one in zip(*((one.offered, one.received) for one in over), strict=True))
    packet_s = float(np.median([one.spacing * one.offered for one in over])) / capacity.best
    waited = float(np.median([one.delay_median for one in over]))
    if np.median(got) > (1 - MISSED) * capacity.best or waited > max(FEW_PACKETS * packet_s, HOSTS_S):
        return False
    return _varies(got) < _varies(offered * (capacity.best / got - 1))


def by_overload(seen: Seen, rate: Value) -> bool:
    """Whether an overload shows a policer: far less passes than `rate`, and in the end none of it waits.

    So is one found whose bucket lasts for longer than a point of the curve.
    """
    passed = _emptied(seen)
    if rate.value is None or len(passed) < ENOUGH:
        return False
    size = float(np.median(seen.sizes))
    waited = float(np.median(seen.forward[passed])) - float(np.nanmin(seen.forward))
    got = (len(passed) - 1) * size * 8 / float(np.ptp(seen.arrived[passed]))
    return got < (1 - MISSED) * rate.value and waited < max(FEW_PACKETS * size * 8 / rate.value, HOSTS_S)


def _emptied(seen: Seen) -> Array:
    """The packets that arrived, as they did, after the bucket was empty and the queue that it had let grow was, too."""
    there = np.flatnonzero(plateau(seen))
    there = there[np.argsort(seen.arrived[there], kind="stable")]
    return there[len(there) // 2 :]


def _varies(values: Array) -> float:
    """The standard deviation over the mean."""
    return float(np.std(values) / np.mean(values))


def measure(session: Session, share: Share, mtu: int, rate: Value) -> Value:
    """The rate of the policer, by one overload for as long as the share permits; `rate` is what is known of it so far."""
    assert rate.value is not None
    gap = mtu * 8 / (rate.value * OVERLOAD)
    seconds = min(LONGEST_S, min(share.seconds, session.left()[1]) - 2 * session.round_trip - 0.1)
    count = int(min(seconds / gap, share.bytes / (mtu + 40)))
    if count < 1:
        return rate
    return of_series(session.even("buffer", mtu, gap, count), rate)


def of_series(seen: Seen, rate: Value) -> Value:
    """The rate of what arrives after the bucket is empty; `rate` if it never is."""
    passed = seen.arrived[_emptied(seen)]
    if len(passed) < max(ENOUGH, 2 * PARTS):
        return rate
    size = float(np.median(seen.sizes))
    edges = np.linspace(0, len(passed) - 1, PARTS + 1).astype(int)
    rates = np.diff(edges) * size * 8 / np.diff(passed[edges])
    value, low, high = median(rates)
    method = f"{len(passed)} packets that passed the policer while it dropped others"
    return Value(unit="bit/s", value=value, low=low, high=high, method=method, cost_bytes=seen.cost)
