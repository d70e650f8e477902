"""Pictures of a run over a quantity other than time: delay, load, another flow's window."""

from typing import Any

import numpy as np

from elephan import _core
from elephan.api.pictures.data import Axis, Dash, LackingError, Numbers, Points, Series, label, sentences
from elephan.api.pictures.over_time import QUANTITIES
from elephan.api.pictures.samples import MOST_LINES, Recorded, Samples, base_rtt_s, edges, mean_s, means, names

# Points of a line; of more samples every n-th is drawn.
MOST_POINTS = 2000
# The colour of theory: black.
THEORY = 6
# Size of an IP packet in bytes if the scenario does not say it.
PACKET_BYTES = 1500.0


def delay_cdf(run: Recorded) -> Points:
    """The distribution of each flow's smoothed round-trip time over the measuring window."""
    srtt, called = QUANTITIES["srtt"].metric, names(run)
    samples = Samples(run, "flows", [srtt.column])
    found = []
    for flow in samples.keys[:MOST_LINES]:
        seen = samples.of(flow, srtt.column)[_measured(run, samples.of(flow, "time_s"))]
        seen = np.sort(seen[np.isfinite(seen)]) * srtt.factor
        if len(seen):
            kept = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), 400)).round().astype(int))
            found.append(_line(called[flow], flow, seen[kept], (kept + 1) / len(seen)))
    if not found:
        raise LackingError("delay-cdf: expected a flow that measured round-trip times, found none")
    if run.scenario.document.get("path") is not None and (base := base_rtt_s(run.scenario)) is not None:
        found.append(_theory("without queueing", [base * srtt.factor] * 2, [0.0, 1.0]))
    flows = len(samples.keys)
    more = f"The first {MOST_LINES} of {flows} flows." if flows > MOST_LINES else ""
    note = sentences(more, f"Samples of the measuring window, {_window(run)}; the sender smooths them (RFC 6298).")
    x = Axis(label(srtt.title, srtt.short_unit), zero=False)
    return Points("delay-cdf", "Distribution of delay", x, Axis("share of samples"), found, note)


def delay_load(run: Recorded) -> Points:
    """The flows' mean round-trip time against the utilisation of the bottleneck, for intervals of the measuring window."""
    srtt, load = QUANTITIES["srtt"].metric, QUANTITIES["utilisation"].metric
    link, flows, queues = _with_bottleneck("delay-load", run, srtt.column, load.column)
    times = queues.of(link, "time_s")
    bounds = edges(times, mean_s(run.scenario, float(times[-1])))
    within = (bounds[:-1] >= run.summary.from_s - 1e-9) & (bounds[1:] <= run.summary.to_s + 1e-9)
    shares = means(times, queues.of(link, load.column), bounds)
    delays = []
    for flow in flows.keys:
        delays.append(means(flows.of(flow, "time_s"), flows.of(flow, srtt.column), bounds))
    counts = np.isfinite(delays).sum(axis=0)
    delay = np.nansum(delays, axis=0) / np.maximum(counts, 1)
    known = within & (counts > 0) & np.isfinite(shares)
    points = Series(link, 0, (shares[known] * load.factor).tolist(), (delay[known] * srtt.factor).tolist(), line=False)
    note = f"A point for each {bounds[1]:.3g} s of the measuring window, {_window(run)}; the mean of all flows."
    x, y = Axis(label(load.title, load.short_unit), zero=False), Axis(label(srtt.title, srtt.short_unit), zero=False)
    return Points("delay-load", "Delay against load", x, y, [points], note)


def phase(run: Recorded) -> Points:
    """The window of the second flow against that of the first, with the lines of fairness and of full use of the path."""
    cwnd = QUANTITIES["cwnd"].metric
    samples = Samples(run, "flows", [cwnd.column])
    if len(samples.keys) < 2:
        count = "one" if samples.keys else "none"
        raise LackingError(f"phase: expected a run with two flows or more, found {count} with a window")
    one, two = sorted(samples.keys)[:2]
    times, first, second = np.intersect1d(samples.of(one, "time_s"), samples.of(two, "time_s"), return_indices=True)
    if not len(times):
        raise LackingError("phase: expected two flows at the same time, found one after the other")
    x, y = samples.of(one, cwnd.column)[first], samples.of(two, cwnd.column)[second]
    kept = slice(None, None, _every(len(x)))
    most = float(max(x.max(), y.max()))
    found = [
        _line("windows over time", 0, x[kept], y[kept]),
        Series("begin", 2, [float(x[0])], [float(y[0])], line=False),
        Series("end", 1, [float(x[-1])], [float(y[-1])], line=False),
        _theory("fairness", [0.0, most], [0.0, most]),
    ]
    bdp = _bdp_segments(run)
    if bdp is not None:
        found.append(_theory("efficiency: both fill the path", [0.0, bdp], [bdp, 0.0], "dotted"))
    idle = "" if bdp is None else "Below the line of efficiency the link is not always busy."
    note = sentences(f"From {times[0]:g} s, when both flows run, to {times[-1]:g} s.", idle)
    unit = cwnd.short_unit
    axes = Axis(f"window of flow {one + 1} ({unit})"), Axis(f"window of flow {two + 1} ({unit})")
    return Points("phase", "Windows of two flows", *axes, found, sentences(_thinned(len(x)), note), equal=True)


def queue_window(run: Recorded) -> Points:
    """The queue of the bottleneck against the sum of all windows, over the measuring window."""
    cwnd, queue = QUANTITIES["cwnd"].metric, QUANTITIES["queue"].metric
    link, flows, queues = _with_bottleneck("queue-window", run, cwnd.column, queue.column)
    times = queues.of(link, "time_s")
    windows = np.zeros(len(times))
    for flow in flows.keys:
        own, values = flows.of(flow, "time_s"), flows.of(flow, cwnd.column)
        _, ours, theirs = np.intersect1d(times, own, return_indices=True)
        windows[ours] += values[theirs]
    inside = _measured(run, times) & (windows > 0)
    if not inside.any():
        raise LackingError("queue-window: expected samples of both at the same times, found none")
    x, y = windows[inside], queues.of(link, queue.column)[inside]
    kept = slice(None, None, _every(len(x)))
    found = [Series("samples", 0, x[kept].tolist(), y[kept].tolist(), line=False)]
    bdp, theory = _bdp_segments(run), ""
    if bdp is not None and x.max() > bdp:
        top = float(y.max())
        found.append(_theory("window less what the path holds", [bdp, bdp + top], [0.0, top]))
        theory = "Dashed: a queue that holds what the path does not."
    note = sentences(_thinned(len(x)), f"Samples of the measuring window, {_window(run)}.", theory)
    axes = (
        Axis(f"sum of congestion windows ({cwnd.short_unit})", zero=False),
        Axis(label(f"queue of {link}", queue.short_unit)),
    )
    return Points("queue-window", "Queue against window", *axes, found, note)


def _with_bottleneck(kind: str, run: Recorded, of_flows: str, of_links: str) -> tuple[str, Samples, Samples]:
    """The name of the bottleneck, and the samples of a column of the flows and of one of the links."""
    link, flows, queues = _bottleneck(run), Samples(run, "flows", [of_flows]), Samples(run, "queues", [of_links])
    if link not in queues.keys or not flows.keys:
        raise LackingError(f"{kind}: expected samples of a flow and of a link with a rate, found none")
    return link, flows, queues


def _bottleneck(run: Recorded) -> str:
    """The link with the highest utilisation."""
    links = sorted(run.summary.links, key=lambda link: -(link.utilisation or 0.0))
    return links[0].name if links else ""


def _bdp_segments(run: Recorded) -> float | None:
    """What a path holds in packets; none if its flows or its rate differ."""
    document = run.scenario.document
    path = document.get("path")
    differ = any(flow.get("rtt") for flow in document["flow"])
    change = any(event.get("rate") or event.get("delay") for event in document.get("event", ()))
    if path is None or differ or change or path.get("trace"):
        return None
    packet = _core.quantity(str((document.get("tcp") or {}).get("packet", "")))
    return (
        _core.bits_per_second(str(path["rate"])) * _core.seconds(str(path["rtt"])) / 8 / (packet or (PACKET_BYTES,))[0]
    )


def _measured(run: Recorded, times: Numbers) -> Any:
    return (times >= run.summary.from_s) & (times <= run.summary.to_s)


def _window(run: Recorded) -> str:
    return f"{run.summary.from_s:g} s to {run.summary.to_s:g} s"


def _line(name: str, colour: int, x: Numbers, y: Numbers) -> Series:
    return Series(name, colour, x.tolist(), y.tolist(), points=False)


def _theory(name: str, x: list[float], y: list[float], dash: Dash = "dashed") -> Series:
    return Series(name, THEORY, x, [*y], points=False, dash=dash)


def _every(count: int) -> int:
    return -(-count // MOST_POINTS)


def _thinned(count: int) -> str:
    every = _every(count)
    return f"Of {count:,} samples every {every}th is drawn." if every > 1 else ""
