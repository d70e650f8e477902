"""Ways to send over a path, and what one try of a way gives: by a simulation, or round trip by round trip.

A simulation has every packet. Where it would hold only a part of a congestion epoch, it says nothing of the hours after it:
there the algorithm's rule runs over a queue whose packets are not distinguished (`elephan-model`, `rounds`), for as long as the
transfer takes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.registry import modelled
from elephan.api.run import Run
from elephan.paths import predict
from elephan.paths.estimates import Estimates
from elephan.paths.observed import Array
from elephan.paths.predict import Plan
from elephan.paths.scenario import packet_of
from elephan.studies.theory import epoch_s

# The algorithms of a stock kernel that a transfer can use, as Linux computes them, and ours, which --load loads.
LINUX: dict[str, tuple[str | Mapping[str, Any], Mapping[str, Any]]] = {
    "reno": ("reno", {}),
    "cubic": ({"name": "cubic", "form": "linux"}, {"slow_start": "hystart"}),
    "bbr": ("bbr", {}),
}
# A simulation is measured in its second half, which has two epochs or more.
EPOCHS = 4.0
# Round trips that are computed of a transfer at most; what is left is extrapolated. They take 0.2 s for each stream.
MOST_ROUND_TRIPS = 1.25e6


@dataclass(frozen=True)
class Way:
    """A way to send."""

    cc: str
    streams: int
    paced: bool = False

    @property
    def plan(self) -> Plan:
        """What is simulated: the stack of a current Linux."""
        cc, keys = LINUX.get(self.cc, (self.cc, {}))
        tcp = {"profile": "linux-6", **({"pacing": True} if self.paced else {})}
        return Plan(cc, self.streams, tcp, keys)

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.cc}, {self.streams} stream{'s' * (self.streams > 1)}{', paced' * self.paced}"


OTHERS = Way("cubic", 1)


def ways(cc: Sequence[str], streams: Sequence[int]) -> list[Way]:
    """Every algorithm with every number of streams, and paced, unless the algorithm always paces."""
    return [
        Way(name, count, paced)
        for name in cc
        for count in streams
        for paced in (False, True)
        if not (paced and name == "bbr")
    ]


@dataclass(frozen=True)
class Trial:
    """What a way gave.

    When all was delivered, its goodput and that of others in the second half, the window that a stream keeps below in 99 % of
    the time, the share retransmitted, and the mean queueing delay. `series` are those of a prediction, and `duration_s` is how
    much of the transfer was computed.
    """

    finish_s: float
    goodput_bit_s: float
    others_bit_s: float
    window_bytes: float
    retransmitted: float
    queue_delay_s: float
    duration_s: float
    series: Mapping[str, Array]

    @property
    def is_extrapolated(self) -> bool:
        """Whether the transfer takes longer than was computed."""
        return self.finish_s > self.duration_s * 1.001


def most_goodput_bit_s(found: Estimates) -> float:
    """The payload of full packets at the rate of the path, bit/s."""
    return (found.rate_bit_s.best or 1.0) * (1 - packet_of({})[1] / found.packet_bytes)


def _is_simple(found: Estimates) -> bool:
    """Whether the path is one bottleneck with losses, which the rounds know: no policer, no jitter, no host that costs time."""
    jitter = found.jitter_s is not None and bool(found.jitter_s.value)
    cross = found.cross_bit_s is not None and bool(found.cross_bit_s.value)
    return found.policer is None and not jitter and not cross and not any(host.costs for host in found.hosts)


def is_in_rounds(found: Estimates, way: Way, duration_s: float) -> bool:
    """Whether a simulation of so long would hold fewer than two epochs of this way in its second half."""
    if way.cc not in modelled() or not _is_simple(found):
        return False
    rate, rtt, buffer = _packets(found)
    return epoch_s(way.cc, rate / way.streams, rtt, buffer / way.streams) * EPOCHS > duration_s


def _packets(found: Estimates) -> tuple[float, float, float]:
    """Packets per second, round-trip time in s, packets that the buffer holds (unknown: one bandwidth-delay product)."""
    rate, rtt = (found.rate_bit_s.best or 1.0) / 8 / found.packet_bytes, found.base_rtt_s.best or 0.0
    held = found.buffer_bytes.best if found.buffer_bytes is not None else None
    return rate, rtt, rate * rtt if held is None else held / found.packet_bytes


def of_run(run: Run, way: Way, size_bytes: float) -> Trial:
    """What a simulation of a way gave. Flows after those of the way are others."""
    own = _delivered(run, range(way.streams))
    others = _delivered(run, range(way.streams, len(run.labels)))
    flows = run.summary.flows[: way.streams]
    table = run.table("flows")
    windows = table["cwnd_segments"].to_numpy()[table["flow"].to_numpy() < way.streams]
    return Trial(
        finish_s=_finish_s(*own, size_bytes),
        goodput_bit_s=_steady(*own),
        others_bit_s=_steady(*others),
        window_bytes=float(np.percentile(windows, 99)) * predict.payload_of(run),
        retransmitted=sum(one.retransmitted_bytes for one in flows) / max(sum(one.sent_bytes for one in flows), 1),
        queue_delay_s=run.summary.queue_delay_mean_s or 0.0,
        duration_s=_core.seconds(run.scenario.document["duration"]),
        series=predict.series_of(run, way.streams, "cwnd"),
    )


def by_rounds(
    found: Estimates, way: Way, size_bytes: float, seed: int = 1, *, others: bool = False, fair: bool = False
) -> Trial:
    """What a way gives round trip by round trip; with `others` beside a flow of theirs, with `fair` in queues of their own."""
    rate, rtt, buffer = _packets(found)
    payload = found.packet_bytes - packet_of({})[1]
    flows = [_flows(way), *([_flows(OTHERS)] if others else [])]
    loss = (found.loss.value if found.loss is not None else None) or 0.0
    most = MOST_ROUND_TRIPS * rtt
    finish_s, lost, samples = _core.rounds(
        rate, rtt, buffer, flows, size_bytes / payload, most, loss=loss, fair=fair, seed=seed
    )
    time, delivered, theirs, window, largest, rtts = np.array(samples).T
    own = (time, delivered * payload)
    spacing = np.maximum(np.diff(time, prepend=0.0), 1e-9)
    return Trial(
        finish_s=_finish_s(*own, size_bytes) if finish_s is None else finish_s,
        goodput_bit_s=_steady(*own),
        others_bit_s=_steady(time, theirs * payload),
        window_bytes=float(np.percentile(largest, 99)) * payload,
        retransmitted=lost,
        queue_delay_s=float(np.average(rtts - rtt, weights=spacing)),
        duration_s=float(time[-1]),
        series={
            "time_s": time,
            "goodput_bit_s": np.diff(own[1], prepend=0.0) * 8 / spacing,
            "rtt_s": rtts,
            "window_bytes": window * payload,
        },
    )


def _flows(way: Way) -> tuple[str, str, int]:
    cc, keys = way.plan.cc, way.plan.flow
    return json.dumps(cc), str(keys.get("slow_start", "standard")), way.streams


def _delivered(run: Run, flows: range) -> tuple[Array, Array]:
    """Sample times, and the bytes that these flows together had delivered at each."""
    table = run.table("flows")
    own = np.isin(table["flow"].to_numpy(), list(flows))
    grid, place = np.unique(table["time_s"].to_numpy()[own], return_inverse=True)
    return grid, np.asarray(np.bincount(place, table["delivered_bytes"].to_numpy()[own], minlength=len(grid)), float)


def _steady(times: Array, delivered: Array) -> float:
    """Goodput in the second half, bit/s."""
    if len(times) < 2:
        return 0.0
    middle = len(times) // 2
    return float((delivered[-1] - delivered[middle]) * 8 / max(times[-1] - times[middle], 1e-9))


def _finish_s(times: Array, delivered: Array, size_bytes: float) -> float:
    """Time until so much is delivered: as it was, or extrapolated."""
    if delivered[-1] >= size_bytes:
        return float(np.interp(size_bytes, delivered, times))
    steady = _steady(times, delivered)
    return float(times[-1]) + (size_bytes - float(delivered[-1])) * 8 / steady if steady > 0 else math.inf
