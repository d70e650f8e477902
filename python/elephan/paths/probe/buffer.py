"""The buffer of the bottleneck: an overload of bounded bytes fills it, and its delay times its rate is what it holds.

The overload offers half as much again as the path carries, for longer and longer, until packets are lost in numbers that no
random loss explains. The delay of those that arrive then is that of a full queue.

A managed queue (AQM) drops before it is full, so a buffer alone does not describe it: TCP meets a queue that is shorter. It is
found by losses while the queue had room.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtrc

from elephan.paths.estimates import Value, absent
from elephan.paths.probe.budget import Share
from elephan.paths.probe.figures import Array, around
from elephan.paths.probe.session import Seen, Session

OVERLOAD = 1.5
FIRST_S, LONGER = 0.1, 3.0
# What is left of the budget is spent on an overload that lasts this many times as long as the one before it, or longer.
WORTH = 1.3
# The queue is full where so many of so many packets in a row are lost: in a full queue a third is, by the overload.
WINDOW, DROPS = 30, 5
# Packets that arrive while the queue is full.
ENOUGH = 40
# A queue whose delay at the limit varies by more than this part of it may be managed.
VARIES = 0.5
# No queue grows at less than this part of the rate.
CALM = 0.97
# A queue of fewer packets is not looked at more closely.
LEAST_PACKETS = 4
# A queue that is filled to between these parts of the most has room. Losses there that chance makes with less than this
# probability are its own.
ROOM, CHANCE = (0.2, 0.8), 1e-3


def measure(session: Session, share: Share, mtu: int, rate: Value) -> tuple[Value, list[str]]:
    """Overload the path for longer and longer, until its queue is full or the budget is spent."""
    assert rate.value is not None
    gap = mtu * 8 / (rate.value * OVERLOAD)
    if session.rate < 1.1 * rate.value:
        return absent("B", "the agreed rate does not overload the path"), []
    # The times of whatever has met an empty queue so far.
    base = min(
        (
            float(np.nanmin(seen.forward[seen.sizes == mtu]))
            for _, seen in session.streams
            if (seen.has_arrived & (seen.sizes == mtu)).any()
        ),
        default=np.inf,
    )
    idle = _without_queue(session, rate.value)
    lasting, least, began, best = FIRST_S, FIRST_S, session.left()[1], 0.0
    while True:
        bytes_left = share.bytes - session.cost.get("buffer", 0)
        time_left = session.left()[1]
        seconds_left = min(time_left, share.seconds - (began - time_left)) - 2 * session.round_trip - 0.1
        # The queue that an overload leaves has to drain twice: at the far host, and before the next test.
        lasting = min(lasting, (bytes_left / (mtu + 40) - 1) * gap, seconds_left / (1 + 2 * (OVERLOAD - 1)))
        if lasting < least:
            break
        count = int(lasting / gap) + 1
        queue = lasting * (OVERLOAD - 1)
        seen = session.even("buffer", mtu, gap, count, linger=session.round_trip + 0.1 + queue)
        session.rest(queue)
        if not seen.has_arrived.any():
            break
        base = min(base, float(np.nanmin(seen.forward)))
        delay = seen.forward - base
        best = max(best, float(np.nanpercentile(delay, 99)))
        full = plateau(seen)
        if full.sum() >= ENOUGH:
            return of_plateau(delay[full], rate, mtu, session.cost["buffer"], idle)
        least = lasting * WORTH
        lasting *= LONGER
    low = best * (rate.low or rate.value) if best > 0 else None
    reason = (
        "the overload did not fill it within the budget" if low else "the budget does not suffice to overload the path"
    )
    return absent("B", reason, low=low and low / 8), []


def _without_queue(session: Session, rate: float) -> tuple[float, float]:
    """The median and percentile 90 of the delays, above the shortest, of what passed undiminished; zero if nothing did."""
    passed = [
        seen.forward[seen.has_arrived] - float(np.nanmin(seen.forward))
        for test, seen in session.streams
        if test == "curve" and seen.has_arrived.any() and seen.lost == 0 and seen.offered() < CALM * rate
    ]
    if not passed:
        return 0.0, 0.0
    usual, longest = np.percentile(np.concatenate(passed), [50, 90])
    return float(usual), float(longest)


def managed(streams: Sequence[Seen], held: Value, rate: Value, random: Value) -> Value:
    """What is known of the buffer after all overloads: nothing but the reason, if the queue dropped packets while it had room.

    `held` is what an overload filled, and `random` the share of packets that are lost without a queue.
    """
    most, likely = held.best, random.high
    if most is None or rate.value is None or likely is None:
        return held
    # In a queue of a few packets, one more or less is chance.
    if most < LEAST_PACKETS * max((float(seen.sizes.max()) for seen in streams), default=0.0):
        return held
    met, lost = 0, 0
    base = min((float(np.nanmin(seen.forward)) for seen in streams if seen.has_arrived.any()), default=np.inf)
    for seen in streams:
        there = np.flatnonzero(seen.has_arrived)
        gone = np.flatnonzero(seen.was_sent & ~seen.has_arrived)
        if len(there) == 0:
            continue
        filled = (seen.forward[there] - base) * rate.value / 8 / most
        # A packet that was lost met what its neighbours met: the fuller queue counts, as a burst fills it within a few packets.
        after = np.searchsorted(there, gone)
        around = np.maximum(filled[np.maximum(after - 1, 0)], filled[np.minimum(after, len(there) - 1)])
        least, full = ROOM
        early = int(((around > least) & (around < full)).sum())
        met, lost = met + early + int(((filled > least) & (filled < full)).sum()), lost + early
    # The probability of so many or more.
    if lost == 0 or bdtrc(lost - 1, met, likely) >= CHANCE:
        return held
    _, full = ROOM
    reason = (
        f"the queue is managed (AQM): {lost} of {met} packets were lost while it was filled to less than {full:.0%}, more than "
        f"random loss explains; an overload fills {held.text}, and TCP meets a shorter queue"
    )
    return absent("B", reason)


def plateau(seen: Seen) -> Array:
    """The packets that arrived from the first to the last that met a full queue."""
    lost = seen.was_sent & ~seen.has_arrived
    drops = np.convolve(lost, np.ones(WINDOW), "valid") >= DROPS
    full = np.zeros(len(lost), bool)
    if drops.any():
        where = np.flatnonzero(drops)
        # In the first window the queue may only just have become full.
        full[where[0] + WINDOW : where[-1] + WINDOW] = True
    return full & seen.has_arrived


def of_plateau(
    delay: Array, rate: Value, mtu: int, cost: int, idle: Sequence[float] = (0.0, 0.0)
) -> tuple[Value, list[str]]:
    """The buffer: delay in a full queue times rate.

    A packet that is accepted waits for the rest of the packet in service and for those before it, half a packet less than the
    buffer on average; and a buffer that is no multiple of the packets holds up to one more. `idle` is by how much
    the path's own delay varies: median and percentile 90 of the delay without a queue, above the shortest.
    """
    assert rate.value is not None
    low, middle, high = np.percentile(delay, [10, 50, 90])
    usual, longest = idle
    value = max(0.0, float(np.mean(delay)) - usual) * rate.value / 8 + mtu / 2
    least = max(0.0, float(low) - longest) * (rate.low or rate.value) / 8
    most = float(high) * (rate.high or rate.value) / 8 + 1.5 * mtu
    notes = []
    if high - low > VARIES * middle and middle * rate.value / 8 > LEAST_PACKETS * mtu:
        notes.append(
            "the delay of the full queue varies by more than half: it may be managed (AQM), or be more than one queue"
        )
    if middle * rate.value / 8 < 2 * mtu:
        notes.append("an overload is dropped without delay: the path polices its rate, or has next to no buffer")
    method = f"delay of {len(delay)} packets while an overload was dropped, times the rate"
    return around("B", value, least, most, method, cost), notes
