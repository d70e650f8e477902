"""A policer: a token bucket that drops what exceeds its rate, however much the links behind it carry (RFC 2475, section 2.3.3).

Packet trains pass it while the bucket has tokens, so their dispersion tells the rate of the links. What is sent for longer than
that arrives at the rate of the bucket, whatever is offered, and what is dropped has not waited.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.buffer import ENOUGH, OVERLOAD, plateau
from elephan.paths.probe.curve import OVER, Point
from elephan.paths.probe.delays import HOSTS_S
from elephan.paths.probe.figures import Array, around, median_rate
from elephan.paths.probe.session import Seen, Session

# Overloads that have to be like one another, trains, and packets of a train.
LEAST = 3
# The part of the capacity that overloads have to miss.
MISSED = 0.05
# A queue of no more packets than this does not count.
FEW_PACKETS = 2
LONGEST_S = 2.0
# Parts of an overload whose rates give the interval.
PARTS = 10


@dataclass(frozen=True)
class Bucket:
    """The token bucket of a policer: the rate at which it fills, and what it holds."""

    rate: Value
    burst: Value


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


def links(trains: Sequence[Seen], rate: Value) -> Value:
    """The rate of the links, by what passed of each train before the bucket was empty.

    `rate`, by whole trains, if that is too little.
    """
    rates = []
    for seen in trains:
        passed = len(seen.sizes) if seen.has_arrived.all() else int(np.argmin(seen.has_arrived))
        span_s = float(seen.arrived[passed - 1] - seen.arrived[0]) if passed >= LEAST else 0.0
        if span_s > 0:
            rates.append(float(seen.sizes[1:passed].sum()) * 8 / span_s)
    if len(rates) < LEAST:
        return rate
    method = f"median dispersion of what passed the policer at once of {len(rates)} packet trains"
    return median_rate(np.array(rates), method, rate.cost_bytes)


def measure(session: Session, share: Share, mtu: int, rate: Value) -> Bucket:
    """The bucket, by one overload for as long as the share permits; `rate` is what is known of it so far."""
    assert rate.value is not None
    gap = mtu * 8 / (rate.value * OVERLOAD)
    seconds = min(LONGEST_S, min(share.seconds, session.left()[1]) - 2 * session.round_trip - 0.1)
    count = int(min(seconds / gap, share.bytes / (mtu + 40)))
    if count < 1:
        return Bucket(rate, absent("B", "the budget does not suffice to empty the bucket"))
    return of_series(session.even("buffer", mtu, gap, count), rate)


def of_series(seen: Seen, rate: Value) -> Bucket:
    """The rate of what arrives after the bucket is empty, and what it held; `rate` if it never is empty.

    It was full at first if nothing was sent before for as long as it takes to fill.
    """
    passed = seen.arrived[_emptied(seen)]
    if len(passed) < max(ENOUGH, 2 * PARTS):
        return Bucket(rate, absent("B", "the overload did not empty the bucket within the budget"))
    size = float(np.median(seen.sizes))
    edges = np.linspace(0, len(passed) - 1, PARTS + 1).astype(int)
    rates = np.diff(edges) * size * 8 / np.diff(passed[edges])
    method = f"{len(passed)} packets that passed the policer while it dropped others"
    found = median_rate(rates, method, seen.cost)
    return Bucket(found, _burst(seen, found))


def _burst(seen: Seen, rate: Value) -> Value:
    """What the bucket held at first: what passed until it was empty, less what came into it meanwhile.

    While it drops packets, it has tokens for less than one of them: the first packets that pass then give the figure.
    """
    assert rate.value is not None
    assert rate.low is not None
    assert rate.high is not None
    empty = np.flatnonzero(plateau(seen))[:ENOUGH]
    passed = np.cumsum(np.where(seen.has_arrived, seen.sizes, 0))[empty]
    filled_s = seen.sent[empty] - np.nanmin(seen.sent)
    size = float(np.median(seen.sizes))
    value = float(np.median(passed - filled_s * rate.value / 8)) + size / 2
    low = float(np.min(passed - filled_s * rate.high / 8))
    high = float(np.max(passed - filled_s * rate.low / 8)) + size
    # Of a bucket for a packet or less, the spread may be below nothing.
    return around("B", value, low, high, f"what passed until the bucket was empty, by {len(empty)} packets", 0)
