"""Rate, base delay, buffer and random loss of a path, from what a transfer saw of it.

The bottleneck is taken for one FIFO queue of constant rate, which drops what it has no room for (DropTail). A round trip is the
base delay, the serialisation of the packet and its acknowledgment, and the time in the queue. Then

- the base delay is the shortest round trip without serialisation;
- while each packet waits in the queue, the bottleneck never rests, and what arrives then tells its rate;
- where packets are lost at one length of the queue, again and again, that length is the buffer;
- what is lost while the queue is well below that is lost for other reasons.

What does not fit is said in the notes, and a value that the measurement cannot tell is absent, with the bound that it can tell.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc, betaincinv, stdtrit

from elephan._core import ScenarioError
from elephan.paths.estimates import Estimates, Value, absent
from elephan.paths.observed import Array, Observed

# A packet waits if its round trip is longer than the base by so many packets, and by this share of the base: less is noise.
WAITS_PACKETS, WAITS_SHARE = 3.0, 0.02
# So many packets in a row that waited are a time of saturation.
LEAST_RUN = 20.0
BLOCKS = 30
# Blocks of other rates than the middle one's are another state of the path.
SAME_RATE = 0.1
# Of the length at which the queue is full: near it, and well below it.
NEAR_FULL, VERY_NEAR, WELL_BELOW = 0.85, 0.97, 0.5
# How surely losses gather at a length before that is called the buffer; and how many others show what they depend on.
GATHERED, LEAST_OTHERS = 0.01, 5
# The same by packets, which are lost in bursts; and how many lengths are tried.
GATHERED_PACKETS, TRIED = 1e-6, 20
# Fewer packets below a full queue tell nothing about loss.
LEAST_SENT = 100


@dataclass(frozen=True)
class _Span:
    """A value with its interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "_Span":
        return _Span(self.value * factor, self.low * factor, self.high * factor)


def infer(seen: Observed) -> Estimates:
    """Estimate the path. Raises `ScenarioError` if nothing can be told."""
    rough = _rough_rate(seen)
    if not rough > 0:
        raise ScenarioError(
            f"{seen.source}: expected data that arrive over some time, found {seen.duration_s:g} s of them"
        )
    rate, notes = None, list(seen.notes)
    base = _base(seen, rough)
    # The base delay needs the rate for the serialisation, and the rate needs the base delay for what waited.
    for _ in range(3):
        waits_s = _waits(seen, rate.value if rate is not None else rough, base.value)
        rate, uneven = _rate(seen, waits_s, rate.value if rate is not None else rough)
        base = _base(seen, rate.value if rate is not None else rough)
    if rate is None:
        return _unsaturated(seen, base, rough, notes)
    waits_s = _waits(seen, rate.value, base.value)
    if uneven > 0.2:
        notes.append(f"the rate varied: {100 * uneven:.0f} % of the saturated time differed by more than 10 %")
    buffer, full_s, more = _buffer(seen, waits_s, rate)
    notes += more
    loss = _loss(seen, waits_s, full_s)
    # What is lost behind the bottleneck has taken its time there.
    passed = rate.times(1 / (1 - min(loss.value or 0.0, 0.5)))
    return _estimates(
        seen,
        _value(passed, "bit/s", "arrivals while the queue was never empty"),
        _value(base, "s", "shortest round trip, less its serialisation"),
        buffer,
        loss,
        notes,
    )


def _estimates(seen: Observed, rate: Value, base: Value, buffer: Value, loss: Value, notes: list[str]) -> Estimates:
    late = seen.reordered
    return Estimates(
        made_by="fit",
        source=seen.source,
        rate_bit_s=rate,
        base_rtt_s=base,
        buffer_bytes=buffer,
        loss=loss,
        reordered=None if late is None else Value(unit="1", value=late, method="late, but within half a round trip"),
        mtu_bytes=Value(unit="B", value=float(seen.packet_bytes), method="largest packet on the path"),
        notes=notes,
    )


def _value(span: _Span, unit: str, method: str) -> Value:
    value = float(span.value)
    low, high = max(min(float(span.low), value), 0.0), max(float(span.high), value)
    return Value(unit=unit, value=value, low=low, high=high, method=method)


def _rough_rate(seen: Observed) -> float:
    """What arrived in the best tenth of the intervals, bit/s: at least so long as a round trip each."""
    rtt = float(np.nanmedian(seen.rtt_s))
    step = max(rtt / 2, seen.step_s, seen.duration_s / 2000, 1e-6)
    edges = np.arange(0, seen.duration_s + step, step)
    at = np.maximum(np.searchsorted(seen.time_s, edges, side="right") - 1, 0)
    slopes = np.diff(seen.delivered_bytes[at]) * 8 / step
    slopes = slopes[slopes > 0]
    return float(np.percentile(slopes, 90)) if len(slopes) else 0.0


def _base(seen: Observed, rate: float) -> _Span:
    """The end of the distribution of round trips, without serialisation: Robson and Whitlock 1964, from the two shortest."""
    times = np.sort(seen.rtt_s[np.isfinite(seen.rtt_s)])
    found = [time - seen.serial_bytes * 8 / rate for time in times[:2]]
    if seen.small_rtt_s is not None:
        found.append(seen.small_rtt_s - seen.small_bytes * 8 / rate)
    first, second = (*sorted(found), found[0])[:2]
    # A packet that passed several links, or waited for one other packet, is at most so far off.
    least = max(19 * min(second - first, 0.01 * first), 0.0)
    return _Span(
        max(first, 1e-9), max(first - least - seen.step_s * 1e-3, 0.0), max(first + seen.packet_bytes * 8 / rate, 1e-9)
    )


def _waits(seen: Observed, rate: float, base: float) -> Array:
    """Time of each row's packet in the queue, s; NaN where no round trip was timed."""
    return np.asarray(seen.rtt_s - base - seen.serial_bytes * 8 / rate, float)


def _rate(seen: Observed, waits_s: Array, rate: float) -> tuple[_Span | None, float]:
    """The rate, and the share of the saturated time in which it differed; no rate without saturation."""
    packet_s = seen.packet_bytes * 8 / rate
    least = max(WAITS_PACKETS * packet_s, WAITS_SHARE * float(np.nanmin(seen.rtt_s)))
    # A row without a round trip, as in a recovery, goes on as the one before it.
    has = np.isfinite(waits_s)
    last = np.maximum.accumulate(np.where(has, np.arange(len(waits_s)), -1))
    waited = np.where(last >= 0, waits_s[np.maximum(last, 0)] > least, False)
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], waited, [False]]).astype(int)))
    shortest = max(LEAST_RUN * packet_s, 2 * seen.step_s)
    runs = [
        (a, b - 1)
        for a, b in zip(bounds[::2], bounds[1::2], strict=True)
        if seen.time_s[b - 1] - seen.time_s[a] >= shortest
    ]
    saturated = sum(seen.time_s[b] - seen.time_s[a] for a, b in runs)
    if not runs or saturated < max(2 * shortest, seen.step_s * 4):
        return None, 0.0
    length = max(saturated / BLOCKS, shortest)
    times, bytes_ = [], []
    for a, b in runs:
        parts = max(int((seen.time_s[b] - seen.time_s[a]) / length), 1)
        at = np.searchsorted(seen.time_s, np.linspace(seen.time_s[a], seen.time_s[b], parts + 1))
        at[0], at[-1] = a, b
        times += list(np.diff(seen.time_s[at]))
        bytes_ += list(np.diff(seen.delivered_bytes[at]))
    spans, slopes = np.array(times), np.array(bytes_) * 8 / np.maximum(times, 1e-12)
    order = np.argsort(slopes)
    middle = slopes[order][np.searchsorted(np.cumsum(spans[order]), spans.sum() / 2)]
    same = np.abs(slopes - middle) <= SAME_RATE * middle
    value = float((slopes * spans)[same].sum() / spans[same].sum())
    if not value > 0:
        # What waits while nothing arrives shows no rate: a stall, or times that are wrong.
        return None, 0.0
    n = int(same.sum())
    spread = math.sqrt(float(np.average((slopes[same] - value) ** 2, weights=spans[same])))
    half = spread / math.sqrt(max(n - 1, 1)) * (float(stdtrit(n - 1, 0.975)) if n > 1 else 12.7)
    # The ends of a run are known to two packets.
    half = max(half, value * 2 * packet_s / float(spans[same].sum()))
    return _Span(value, value - half, value + half), float(spans[~same].sum() / spans.sum())


def _unsaturated(seen: Observed, base: _Span, rough: float, notes: list[str]) -> Estimates:
    """What can be told if the path was never full."""
    limit, share = max(seen.limits.items(), key=lambda one: one[1], default=("", 0.0))
    why = (
        f"the {limit} was the limit for {100 * share:.0f} % of the time"
        if share > 0.3
        else "the sender sent less, or lost too much"
    )
    reason = f"the bottleneck was never saturated: {why}"
    lost, sent = float(seen.lost.sum()), float(seen.sent.sum())
    policed = _policed(seen)
    if policed is not None:
        rough = policed
        dropped = f"{100 * lost / sent:.1f} % were lost"
        notes = [
            *notes,
            f"{dropped} without a queue while {rough / 1e6:.4g} Mbit/s arrived steadily: a policer is likely",
        ]
    # The bottleneck is at least so fast, so that a packet took at most so long.
    base = _Span(_base(seen, math.inf).value, base.low, _base(seen, math.inf).high)
    few = absent("1", f"only {sent:.0f} packets were sent")
    return _estimates(
        seen,
        absent("bit/s", reason, low=rough),
        _value(base, "s", "shortest round trip, with its serialisation at an unknown rate"),
        absent("B", "the queue was never filled", low=_most_waiting(_waits(seen, rough, base.value), rough)),
        _binomial(lost, sent, "lost, of all that was sent") if sent >= LEAST_SENT else few,
        [*notes, reason],
    )


def _policed(seen: Observed) -> float | None:
    """The rate at which data arrived steadily while some were lost without a queue: a policer's work (Flach et al. 2016)."""
    lost, sent = float(seen.lost.sum()), float(seen.sent.sum())
    if lost < 20 or lost < 0.01 * sent:
        return None
    series = seen.series(50)["goodput_bit_s"]
    at = np.flatnonzero(seen.lost)
    span = (seen.time_s[at[0]], seen.time_s[at[-1]])
    step = seen.duration_s / 50
    within = series[int(span[0] / step) + 1 : max(int(span[1] / step), 1)]
    if len(within) < 10 or np.std(within) > 0.15 * np.mean(within):
        return None
    return float(np.mean(within)) * seen.packet_bytes / seen.payload_bytes


def _most_waiting(waits_s: Array, rate: float) -> float:
    """Bytes in the queue at its longest: of 99.9 % of the rows, because single round trips can be late for other reasons."""
    finite = waits_s[np.isfinite(waits_s)]
    return max(float(np.percentile(finite, 99.9)) * rate / 8, 0.0) if len(finite) else 0.0


def _buffer(seen: Observed, waits_s: Array, rate: _Span) -> tuple[Value, float, list[str]]:
    """The buffer; the wait from which on a loss is the full queue's, s; and notes."""
    most = _most_waiting(waits_s, rate.value)
    packet_s = seen.packet_bytes * 8 / rate.value
    waits = _episodes(seen, waits_s)
    if not len(waits):
        return absent("B", "no packet was lost: the queue was never full", low=most), math.inf, []
    top = _full_at(seen, waits_s, waits, packet_s)
    if top is None:
        return absent("B", "losses do not gather at a length of the queue: it was never full", low=most), math.inf, []
    full = waits[waits >= NEAR_FULL * top]
    middle = float(np.median(full))
    if _is_managed(seen, waits_s, NEAR_FULL * top):
        managed = "losses depend on the queue, but not on one length: active queue management is likely"
        note = f"{managed}; the scenario has a queue without it"
        return absent("B", managed, low=most), float(np.median(waits)), [note]
    # The last packet that found room waited for all others, and half of the one in service.
    middle += packet_s / 2
    half = max(2.0 * 1.25 * float(np.std(full)) / math.sqrt(len(full)), packet_s, 2 * seen.step_s * 0.01 * middle)
    width = (rate.high - rate.low) / 2 / rate.value
    half += width * middle
    value = _Span(middle, middle - half, middle + half).times(rate.value / 8)
    found = _value(value, "B", f"queue at {len(full)} of {len(waits)} episodes of loss, which gather there")
    return found, middle, []


def _full_at(seen: Observed, waits_s: Array, waits: Array, packet_s: float) -> float | None:
    """The longest wait at which losses gather, of those at which `waits` of the episodes began; none if they do not gather."""
    has = np.isfinite(waits_s)
    sent, lost, at = seen.sent[has], seen.lost[has], waits_s[has]
    # A single round trip can be late for another reason than the queue; then a shorter one is tried.
    for top in np.sort(waits)[::-1][:TRIED]:
        # Waits are negative if a damaged capture shows round trips shorter than the serialisation. An empty queue is not full.
        if top <= 0:
            return None
        beyond = float(sent[at > 1.15 * top + packet_s].sum() / max(sent.sum(), 1))
        if beyond > 0.01:
            return None
        # A sender that stays near the full queue for long shows it only by losses that are closer still.
        for width in (NEAR_FULL, VERY_NEAR):
            near = at >= width * top
            share = float(sent[near].sum() / max(sent.sum(), 1))
            # If losses knew nothing of the queue, so many or more would meet one so long with this probability.
            episodes = _at_least(int((waits >= width * top).sum()), len(waits), share)
            packets = _at_least(int(lost[near].sum()), int(lost.sum()), share)
            if episodes < GATHERED or packets < GATHERED_PACKETS:
                return float(top)
    return None


def _is_managed(seen: Observed, waits_s: Array, near: float) -> bool:
    """Whether losses below a full queue prefer long ones. Random losses do not, and DropTail has no others."""
    has = waits_s < near
    order = np.argsort(waits_s[has])
    sent, lost = seen.sent[has][order], np.minimum(seen.lost[has][order], 1)
    if lost.sum() < LEAST_OTHERS:
        return False
    # The share of the packets that met a shorter queue: uniform for random losses.
    ranks = (np.cumsum(sent) - sent / 2)[lost > 0] / max(float(sent.sum()), 1.0)
    return float(ranks.mean()) > 0.5 + 3.1 * math.sqrt(1 / (12 * len(ranks)))


def _episodes(seen: Observed, waits_s: Array) -> Array:
    """The wait of the packets around the first loss of each episode of loss."""
    at = np.flatnonzero(seen.lost > 0)
    begins: list[int] = []
    rtt = float(np.nanmedian(seen.rtt_s))
    last = -math.inf
    for row in at:
        if seen.time_s[row] - last > 1.5 * rtt:
            begins.append(int(row))
        last = float(seen.time_s[row])
    waits = []
    for begin in begins:
        around = waits_s[max(begin - 2, 0) : begin + 3]
        around = around[np.isfinite(around)]
        # The longest: an acknowledgment of two packets tells of one of them, and the queue has room until it has none.
        waits.append(float(around.max()) if len(around) else math.nan)
    found = np.array(waits, float)
    return np.asarray(found[np.isfinite(found)], float)


def _at_least(k: int, n: int, share: float) -> float:
    """Probability of `k` or more of `n`, each with probability `share`."""
    return float(bdtrc(k - 1, n, min(share, 1.0))) if k > 0 else 1.0


def _loss(seen: Observed, waits_s: Array, full_s: float) -> Value:
    """Losses while the queue was well below full, of the packets that were sent then."""
    low = waits_s < WELL_BELOW * full_s if math.isfinite(full_s) else np.isfinite(waits_s)
    sent, lost = float(seen.sent[low].sum()), float(seen.lost[low].sum())
    if sent < LEAST_SENT:
        return absent("1", f"only {sent:.0f} packets met a queue well below full")
    return _binomial(lost, sent, f"lost while the queue was well below full, of {sent:.0f} packets")


def _binomial(lost: float, sent: float, method: str) -> Value:
    """A share and its interval (Clopper and Pearson 1934)."""
    lost = min(lost, sent)
    low = float(betaincinv(lost, sent - lost + 1, 0.025)) if lost > 0 else 0.0
    high = float(betaincinv(lost + 1, sent - lost, 0.975)) if lost < sent else 1.0
    return _value(_Span(lost / sent, low, high), "1", method)
