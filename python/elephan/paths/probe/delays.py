"""Delays by packet size: well spaced packets of several sizes, echoed.

The shortest delay of each size lies on a line. Its intercept is the delay of propagation; its slope is the time that a byte
takes on all hops that store and forward packets, so the slowest of them has at least the inverse rate (thesis, appendix A.2).

The clocks of two hosts differ by an unknown offset, so of one-way delays only the variation is known, and the slope. That
clocks drift apart is seen in the shortest delays, and removed.
"""

from dataclasses import dataclass

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import Array, around, drift, lower_line, lower_line_interval, share_value
from elephan.paths.probe.session import Seen, Session

SIZES = 8
# Packets of each size; fewer if the time does not suffice.
EACH = 60
# So many packets of each size at least: half as many have to come back.
LEAST = 4
LEAST_GAP_S = 5e-3
# Where nine of ten delays vary less than this, the others cannot be distinguished from the pauses of busy hosts.
HOSTS_S, MOST_OF_THEM = 200e-6, 90


@dataclass(frozen=True)
class Delays:
    """What the delays show; `figures` by name."""

    round_trip: Value
    jitter: Value
    reordered: Value
    duplicated: Value
    figures: dict[str, Value]
    notes: list[str]


def measure(session: Session, share: Share, mtu: int) -> Delays | None:
    """Measure; none if no echo came."""
    # Shorter packets rather than too few of them, where packets may be very long, as on loopback.
    longest = max(session.least_size, min(mtu, int(share.bytes / (LEAST * SIZES))))
    sizes = np.unique(np.linspace(session.least_size, longest, SIZES).astype(int))
    count = EACH * len(sizes)
    # Each byte comes back, and each packet is reported.
    count = min(count, int(share.bytes / (2 * sizes.mean() + 40)))
    gap = max(LEAST_GAP_S, (share.seconds - session.round_trip) / max(count, 1) * 0.8)
    count = min(count, int(share.seconds / gap))
    # In an order of chance, so that a change over time does not look like one of size.
    order = np.random.default_rng(1).permutation(np.resize(sizes, count))
    return of_series(session.stream("delays", order, np.full(count, gap), echo=True))


def of_series(seen: Seen) -> Delays | None:
    """What a series shows."""
    whole = ~np.isnan(seen.round_trip)
    if whole.sum() < 2 * SIZES or len(np.unique(seen.sizes[whole])) < 2:
        return None
    sizes, times, cost = seen.sizes[whole], seen.round_trip[whole], seen.cost
    base, _ = lower_line(sizes, times)
    (low, high), _ = lower_line_interval(sizes, times, 1)
    method = "shortest round-trip time of each packet size, extrapolated to size 0"
    figures = {"rtt_s_per_byte": _slope(sizes, times, "of a byte there and back", cost)}
    notes = []
    ways = {"forward": (seen.sent[whole], seen.forward[whole]), "backward": (seen.echoed[whole], seen.backward[whole])}
    above = {}
    for way, (at, seen_delay) in ways.items():
        gains = drift(at, seen_delay)
        delay = seen_delay - gains * (at - at.mean())
        above[way] = _above(sizes, delay)
        figures[f"{way}_s_per_byte"] = _slope(sizes, delay, f"of a byte {way}", cost)
        figures[f"{way}_jitter_s"] = _percentile(above[way], 99, cost)
        figures[f"{way}_jitter_median_s"] = _percentile(above[way], 50, cost)
        if way == "forward" and abs(gains) > 1e-6:
            notes.append(f"the clocks drift apart by {abs(gains) * 1e6:.1f} us in a second; this was removed")
    sent, jitter = int(seen.was_sent.sum()), figures["forward_jitter_s"]
    if np.percentile(above["forward"], MOST_OF_THEM) <= HOSTS_S:
        reason = f"{MOST_OF_THEM} % of packets vary by less than {HOSTS_S * 1e6:g} us, as on busy hosts"
        jitter = absent("s", reason, high=jitter.high)
    return Delays(
        around("s", base, low, high, method, cost),
        jitter,
        share_value(seen.reordered, len(np.unique(seen.order)), "arrived after a later one (RFC 4737)", cost),
        share_value(seen.duplicated, sent, "arrived again", cost),
        figures,
        notes,
    )


def _above(sizes: Array, delay: Array) -> Array:
    """What each delay is above the shortest of its size."""
    least = {size: delay[sizes == size].min() for size in np.unique(sizes)}
    shortest: Array = np.array([least[size] for size in sizes])
    return delay - shortest


def _slope(sizes: Array, delay: Array, what: str, cost: int) -> Value:
    """The time of a byte; the least rate of the slowest hop is its inverse."""
    _, steep = lower_line(sizes, delay)
    _, (low, high) = lower_line_interval(sizes, delay, 2)
    return around("s/B", steep, low, high, f"shortest delays by size: {what}", cost)


def _percentile(above: Array, percent: float, cost: int) -> Value:
    """A percentile with an interval by a bootstrap."""
    random = np.random.default_rng(3)
    found = [np.percentile(random.choice(above, len(above)), percent) for _ in range(200)]
    value, low, high = (float(np.percentile(*one)) for one in ((above, percent), (found, 2.5), (found, 97.5)))
    method = f"percentile {percent:g} of the delay above the shortest of a packet's size"
    return around("s", value, low, high, method, cost)
