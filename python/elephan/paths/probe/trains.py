"""Capacity by packet trains: packets that leave back to back arrive as far apart as the slowest hop takes for each.

The rate of a train is the slope of the bytes that had arrived over time. A train that this host did not send faster than it
arrived shows only a bound: such trains, which the sender's own times of departure reveal, are left out.
"""

import numpy as np

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import Array, median_rate
from elephan.paths.probe.session import Seen, Session

TRAINS = 20
FIRST = 30
# Trains are shorter rather than fewer than this.
LEAST_TRAINS = 6
# A train should last so long at the slowest hop that times of arrival, known to some 10 us on busy hosts, do not matter.
SPAN_S = 20e-3
MOST = 2000
# A train is of use if it left so much faster than it arrived.
FASTER = 1.1
# The fewest trains that give a rate.
ENOUGH = 3


def measure(session: Session, share: Share, mtu: int) -> Value:
    """The capacity in bit/s. Sends trains, the first short ones to learn how long the others should be."""
    began = session.left()[1]
    budget = share.bytes

    def train(count: int) -> Seen:
        return session.even("trains", mtu, 0.0, count, linger=session.round_trip + 0.05 + count * mtu * 8 / guess)

    guess = 1e6
    found = [train(FIRST)]
    first = found[0].received()
    if not np.isfinite(first):
        return absent("bit/s", "too few packets of a train arrived")
    guess = first
    wanted = min(first * SPAN_S / (8 * mtu), budget / (LEAST_TRAINS + 1) / (mtu + 40))
    count = int(np.clip(wanted, FIRST, MOST))
    trains = int(np.clip(budget / (count * (mtu + 40)), 3, TRAINS))
    for _ in range(trains):
        bytes_left, seconds_left = session.left()
        spent = session.cost.get("trains", 0)
        if spent + count * mtu > budget or began - seconds_left > share.seconds or bytes_left < 2 * count * mtu:
            break
        found.append(train(count))
    # The first may be too short.
    return of_series(found[1:] or found, session.cost.get("trains", 0))


def of_series(found: list[Seen], cost: int) -> Value:
    """The capacity in bit/s that trains show."""
    rates: Array = np.array([(seen.offered(), seen.received()) for seen in found])
    rates = rates[np.isfinite(rates).all(axis=1)]
    if len(rates) == 0:
        return absent("bit/s", "too few packets of the trains arrived")
    useful = rates[rates[:, 0] > FASTER * rates[:, 1]]
    if len(useful) < max(ENOUGH, len(rates) // 4):
        reason = "trains arrived as fast as this host sent them: the path is faster"
        if len(rates) < ENOUGH:
            reason = "the budget sufficed for too few trains"
        return absent("bit/s", reason, low=float(np.median(rates[:, 1])))
    method = f"median dispersion of {len(useful)} packet trains, of {len(found)} sent"
    return median_rate(useful[:, 1], method, cost)
