"""What a policy of congestion control observes and does: the same in training and in any other run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from elephan._core import Decision, Loss, Report
from elephan.foreign.controller import Controller

BITS = 8
# The largest window that a decision can set, in segments.
LARGEST_WINDOW = 2.0**31
# The window in multiples of rate and round-trip time, and the least window in segments, where a policy sets a rate: those of
# BBR (draft-ietf-ccwg-bbr, BBR.DefaultCwndGain and BBR.MinPipeCwnd).
CWND_GAIN, LEAST_WINDOW = 2.0, 4.0

Observation = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Feature:
    """A number of an observation. `read` takes it from a report; what is below `low` or above `high` becomes that bound."""

    name: str
    meaning: str
    low: float
    high: float
    read: Callable[[Report], float]


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _above_least(rtt_s: float | None, report: Report) -> float:
    """How far a round-trip time is above the least of the connection, as a share of that."""
    return 0.0 if rtt_s is None else _share(rtt_s - report.min_rtt_s, report.min_rtt_s)


def _magnitude(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf


# The numbers of an observation, in order. None has a unit, so that paths of any rate and length give similar numbers.
FEATURES = (
    Feature("window", "log2 of the window in segments, / 16", 0, 2, lambda r: math.log2(r.cwnd_segments) / 16),
    Feature("in_flight", "segments in flight / window", 0, 4, lambda r: r.in_flight_segments / r.cwnd_segments),
    Feature("delivered", "segments delivered / window", 0, 4, lambda r: r.delivered_segments / r.cwnd_segments),
    Feature(
        "lost",
        "segments found lost / segments delivered or lost",
        0,
        1,
        lambda r: _share(r.lost_segments, r.lost_segments + r.delivered_segments),
    ),
    Feature(
        "marked",
        "segments with a congestion mark / segments delivered",
        0,
        1,
        lambda r: _share(r.marked_segments, r.delivered_segments),
    ),
    Feature(
        "rate", "log10 of the delivery rate in bit/s, / 10", 0, 2, lambda r: _magnitude(r.delivery_rate_bit_s) / 10
    ),
    Feature("rtt", "mean round-trip time / least of the connection - 1", 0, 10, lambda r: _above_least(r.rtt_s, r)),
    Feature("rtt_min", "smallest / least of the connection - 1", 0, 10, lambda r: _above_least(r.rtt_min_s, r)),
    Feature("rtt_max", "largest / least of the connection - 1", 0, 10, lambda r: _above_least(r.rtt_max_s, r)),
    Feature("srtt", "smoothed / least of the connection - 1", 0, 10, lambda r: _above_least(r.srtt_s, r)),
    Feature(
        "min_rtt",
        "log10 of the least round-trip time in ms, / 4",
        -1,
        1,
        lambda r: _magnitude(r.min_rtt_s * 1000) / 4,
    ),
    Feature(
        "interval",
        "time since the last report / least round-trip time",
        0,
        10,
        lambda r: _share(r.interval_s, r.min_rtt_s),
    ),
    Feature(
        "recovery", "1 in loss recovery or after a timeout", 0, 1, lambda r: float(r.state in ("recovery", "loss"))
    ),
    Feature("limited", "1 if the window, not the data, was the limit", 0, 1, lambda r: float(r.is_window_limited)),
)


def observe(report: Report) -> Observation:
    """The observation of a report: the numbers of `FEATURES`."""
    return np.array([min(max(one.read(report), one.low), one.high) for one in FEATURES], np.float32)


@dataclass(frozen=True)
class Action:
    """What a policy sets: a number from `low` to `high`, from which `decide` makes a decision after a report."""

    low: float
    high: float
    decide: Callable[[Report, float], Decision]


def _window(segments: float) -> Decision:
    segments = min(max(segments, 1.0), LARGEST_WINDOW)
    # A threshold at the window: no slow start changes it before the next decision.
    return Decision(cwnd_segments=segments, ssthresh_segments=segments)


def _rate(report: Report, change: float) -> Decision:
    segment, srtt_s = report.mss_bytes * BITS, report.srtt_s
    # Before the first decision, and after a timeout, the rate is a window in a round trip.
    rate = 2**change * (report.pacing_rate_bit_s or report.cwnd_segments * segment / srtt_s)
    window = min(max(CWND_GAIN * rate * srtt_s / segment, LEAST_WINDOW), LARGEST_WINDOW)
    return Decision(cwnd_segments=window, ssthresh_segments=window, pacing_rate_bit_s=rate)


# The window is multiplied by 2^a.
WINDOW_CHANGE = Action(-1, 1, lambda report, a: _window(report.cwnd_segments * 2**a))
# The window is 2^(20 a) segments: up to a million.
WINDOW = Action(0, 1, lambda _, a: _window(2 ** (20 * a)))
# The rate at which segments are paced is multiplied by 2^a; the window is twice what it needs.
RATE_CHANGE = Action(-1, 1, _rate)


class Policy(Controller):
    """Congestion control by a policy, once a round trip: a subclass overrides `act`.

    The policy alone sets the window, from the first report on: there is no slow start, and a loss changes nothing but the next
    report. Only a timeout reduces the window, to one segment.
    """

    governs_recovery = True
    # What `act` returns.
    action: ClassVar[Action] = WINDOW_CHANGE

    def act(self, observation: Observation) -> float:
        """The action after a report."""
        raise NotImplementedError(f"{type(self).__name__}.act")

    def on_start(self, report: Report) -> Decision | None:
        """Ends slow start before it begins."""
        return Decision(ssthresh_segments=report.cwnd_segments)

    def on_report(self, report: Report) -> Decision | None:
        """Asks the policy."""
        return self.action.decide(report, self.act(observe(report)))

    def on_loss(self, event: Loss) -> Decision | None:
        """Changes nothing, except after a timeout."""
        if event.cause != "timeout":
            return None
        return Decision(cwnd_segments=1, ssthresh_segments=1, pacing_rate_bit_s=0)


def utility(report: Report, _: Decision) -> float:
    """The default reward: log(throughput) - log(delay) of a round trip, in Mbit/s and ms (Winstein and Balakrishnan 2013).

    It is the objective of Remy with alpha = beta = delta = 1. A round trip without a delivery counts as one segment.
    """
    least = report.mss_bytes * BITS / max(report.interval_s, report.min_rtt_s)
    rtt_s = report.srtt_s if report.rtt_s is None else report.rtt_s
    return math.log(max(report.delivery_rate_bit_s, least) / 1e6) - math.log(rtt_s * 1000)
