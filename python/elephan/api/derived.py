"""Figures that are computed from others: of a flow, of its samples, of transfers, and of a run against another one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from elephan.api.run import Run
from elephan.api.summary import FlowSummary

# A flow starves that gets less than this share of an equal part. Arun et al. 2022 bound no ratio; a tenth is our choice.
STARVED = 0.1
# A sender stops if it sends more than ten times what TCP would by the simplified equation (RFC 8083, section 4.3).
BREAKER = 10.0
# The interval in which it measures, in s. In RFC 8083 it follows from that of reports, which are seconds apart.
BREAKER_S = 1.0


@dataclass(frozen=True)
class Derived:
    """A figure of a flow of a run, by the flow's index: its meaning, source and greatest value, and which values are better."""

    name: str
    read: Callable[[Run, int], float | None]
    meaning: str
    source: str
    better: Literal["higher", "lower", "neither"]
    most: float = math.inf


def _share(run: Run, flow: int) -> float | None:
    whole = sum(one.goodput_bit_s for one in run.summary.flows)
    return run.summary.flows[flow].goodput_bit_s / whole if whole else None


def _retransmitted(run: Run, flow: int) -> float | None:
    one = run.summary.flows[flow]
    return one.retransmitted_bytes / one.sent_bytes if one.sent_bytes else None


def _power(run: Run, flow: int) -> float | None:
    one = run.summary.flows[flow]
    return one.goodput_bit_s / one.srtt_mean_s if one.srtt_mean_s else None


def _responsiveness(run: Run, flow: int) -> float | None:
    one: FlowSummary = run.summary.flows[flow]
    return 60.0 / one.srtt_mean_s if one.srtt_mean_s else None


def _measured(run: Run, *columns: str) -> dict[str, np.ndarray]:
    """Columns of the samples of all flows within the measuring window."""
    table = run.table("flows", ["time_s", "flow", *columns])
    found = {name: np.asarray(table[name].to_numpy(), float) for name in table.column_names if name != "label"}
    within = (found["time_s"] > run.summary.from_s) & (found["time_s"] <= run.summary.to_s)
    return {name: values[within] for name, values in found.items()}


def _starved(run: Run, flow: int) -> float | None:
    samples = _measured(run, "goodput_bit_s")
    times, places = np.unique(samples["time_s"], return_inverse=True)
    if len(times) == 0:
        return None
    whole, count = np.zeros(len(times)), np.zeros(len(times))
    np.add.at(whole, places, samples["goodput_bit_s"])
    np.add.at(count, places, 1)
    own = samples["flow"] == flow
    part = samples["goodput_bit_s"][own] * count[places[own]]
    return float(np.mean(part < STARVED * whole[places[own]])) if own.any() else None


def _circuit_breaker(run: Run, flow: int) -> float | None:
    samples = _measured(run, "srtt_s", "sent_bytes", "retransmits")
    own = samples["flow"] == flow
    time_s, srtt_s, sent, resent = (samples[name][own] for name in ("time_s", "srtt_s", "sent_bytes", "retransmits"))
    if len(time_s) < 2:
        return None
    mss = run.scenario.packet_bytes
    edges = np.searchsorted(time_s, np.arange(time_s[0], time_s[-1] + BREAKER_S / 2, BREAKER_S))
    edges = np.unique(np.minimum(edges, len(time_s) - 1))
    bytes_sent, lost = np.diff(sent[edges]), np.diff(resent[edges])
    if len(bytes_sent) == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = bytes_sent / np.diff(time_s[edges])
        loss = lost * mss / bytes_sent
        most = BREAKER * mss / (srtt_s[edges[1:]] * np.sqrt(2 * loss / 3))
    return float(np.mean(np.where(loss > 0, rate > most, False)))


DERIVED = {
    one.name: one
    for one in (
        Derived("share", _share, "Part of the goodput of all flows.", "", "higher", 1.0),
        Derived("retransmitted", _retransmitted, "Part of the payload sent that was sent before.", "", "lower", 1.0),
        Derived(
            "power", _power, "Goodput over mean round-trip time, in bit/s^2.", "Kleinrock 1979; RFC 5166, 2.1", "higher"
        ),
        Derived(
            "responsiveness",
            _responsiveness,
            "Round trips in a minute while the flow sends.",
            "draft-ietf-ippm-responsiveness",
            "higher",
        ),
        Derived(
            "starved",
            _starved,
            "Share of samples in which its goodput is less than a tenth of an equal part.",
            "Arun et al. 2022",
            "lower",
            1.0,
        ),
        Derived(
            "circuit_breaker",
            _circuit_breaker,
            "Share of seconds in which it sends ten times what TCP would at its loss rate and round-trip time.",
            "RFC 8083, 4.3",
            "lower",
            1.0,
        ),
    )
}


@dataclass(frozen=True)
class OfTransfers:
    """A figure of the transfers of flows and crowds, by their numbers in tables: its unit, and which values are better."""

    name: str
    read: Callable[[Run, Sequence[int]], float | None]
    unit: str
    better: Literal["higher", "lower"]


def _quartile(quartile: int, run: Run, members: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the transfers of a quartile of size, 1 to 4, and how long each took, in s: infinite if it did not end.

    They are those that began in the measuring window. The quartiles are of all of these, so that a run with the same
    transfers has the same ones, whatever it finishes (draft-irtf-iccrg-tcpeval-01, section 6.1.3.1).
    """
    table = run.table("transfers", ["flow", "start_s", "end_s", "bytes"])
    if table.num_rows == 0:
        return np.array([]), np.array([])
    start_s, end_s, size = (np.asarray(table[name].to_numpy(), float) for name in ("start_s", "end_s", "bytes"))
    begun = (start_s >= run.summary.from_s) & (start_s < run.summary.to_s)
    of_it = begun & np.isin(np.asarray(table["flow"].to_numpy()), list(members))
    if not of_it.any():
        return np.array([]), np.array([])
    took_s = np.where(np.isfinite(end_s), end_s - start_s, math.inf)[of_it]
    size = size[of_it]
    edges = np.quantile(size, (0.25, 0.5, 0.75))
    chosen = np.searchsorted(edges, size) == quartile - 1
    return size[chosen], took_s[chosen]


def _completion(quartile: int, run: Run, members: Sequence[int]) -> float | None:
    _, took_s = _quartile(quartile, run, members)
    ended = np.isfinite(took_s)
    return float(took_s[ended].mean()) if ended.any() else None


def _goodput(quartile: int, run: Run, members: Sequence[int]) -> float | None:
    size, took_s = _quartile(quartile, run, members)
    ended = np.isfinite(took_s)
    return float(8 * size[ended].sum() / took_s[ended].sum()) if took_s[ended].sum() > 0 else None


def _finished(quartile: int, run: Run, members: Sequence[int]) -> float | None:
    _, took_s = _quartile(quartile, run, members)
    return float(np.isfinite(took_s).mean()) if len(took_s) else None


# Gain and loss by quartile are ratios of these to a run of only standard TCP (draft-irtf-iccrg-tcpeval-01, section 6.1.3).
OF_TRANSFERS = {
    one.name: one
    for quartile in (1, 2, 3, 4)
    for one in (
        OfTransfers(f"completion_q{quartile}", partial(_completion, quartile), "s", "lower"),
        OfTransfers(f"goodput_q{quartile}", partial(_goodput, quartile), "bit/s", "higher"),
        OfTransfers(f"finished_q{quartile}", partial(_finished, quartile), "1", "higher"),
    )
}


def harm(alone: float, beside: float, better: str) -> float | None:
    """Compute the harm to a figure that is `alone` without, and `beside` with, what may do it (Ware et al. 2019, section 4).

    It is the loss as a share of `alone` if more is better, and the rise as a share of `beside` if less is. 0 is no harm, 1 is
    all, and below 0 it is a gain. `None` if the share is of nothing.
    """
    if better == "lower":
        return (beside - alone) / beside if beside else None
    return (alone - beside) / alone if alone else None
