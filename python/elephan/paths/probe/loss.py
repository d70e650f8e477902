"""Random loss: full-size packets at a load so low that no queue fills."""

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import share_value
from elephan.paths.probe.session import Seen, Session

LOAD = 0.2
LEAST_GAP_S = 20e-6
MOST = 500_000
# A packet that left sooner after the one before it than this part of the schedule was part of a burst.
HURRIED = 0.25


def measure(session: Session, share: Share, mtu: int, rate: float) -> Value:
    """Send at a fifth of the rate, for as long and as much as the budget permits."""
    gap = max(LEAST_GAP_S, mtu * 8 / (rate * LOAD))
    seconds = share.seconds - 2 * session.round_trip - 0.2
    count = int(min(seconds / gap, share.bytes / (mtu + 40), MOST))
    if count < 1:
        return absent("1", "the budget does not suffice")
    return of_series(session.even("loss", mtu, gap, count))


def of_series(seen: Seen) -> Value:
    """The share of lost packets.

    Packets that left in a burst, because this host was kept from sending, may have met a queue: they are left out.
    """
    gaps, due = np.diff(seen.sent, prepend=-np.inf), np.diff(seen.due, prepend=0.0)
    calm = seen.was_sent & ~(gaps < HURRIED * due)
    lost = max(0, int((calm & ~seen.has_arrived).sum()) - seen.overflowed)
    count = int(calm.sum())
    method = f"{lost} of {count} packets at a load of {LOAD:.0%}; interval by Wilson"
    return share_value(lost, count, method, seen.cost)
