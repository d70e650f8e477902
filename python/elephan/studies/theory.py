"""Closed forms: response functions, recovery times, fairness. Formulas and sources stand in the Rust crate `elephan-model`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np

from elephan import _core
from elephan.api.metrics import Metric, declared
from elephan.api.registry import modelled
from elephan.api.run import Run
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.base.plots import COLOURS, STYLE, Figure
from elephan.engines.run import run_many
from elephan.foreign.names import KINDS

# Algorithms with a model, in the order of tables.
MODELLED = modelled()


@dataclass(frozen=True)
class Response:
    """An algorithm at a loss rate: windows in segments, rate in bit/s of IP packets.

    `published` is the mean window that a source prints, where one does; `window` and `peak` are of the periodic sawtooth.
    """

    loss: float
    published: float | None
    window: float
    peak: float
    rate_bit_s: float


class Model:
    """What theory says of an algorithm: a name, or a table with `name` and parameters, as a scenario gives it.

    Raises `ScenarioError` for an algorithm without a model, and for a wrong parameter.
    """

    def __init__(self, cc: str | Mapping[str, Any]) -> None:
        name = cc if isinstance(cc, str) else str(cc.get("name"))
        # Of these the extension module says that they are not registered.
        if name.startswith(KINDS):
            raise _core.ScenarioError(f'cc: expected one of {", ".join(modelled())}, found "{name}"')
        self.cc = json.dumps(cc if isinstance(cc, str) else dict(cc))
        self.core = _core.Model(self.cc)

    def response(self, loss: float, rtt_s: float, packet_bytes: float = 1500) -> Response:
        """The response function at `loss`, the share of packets lost."""
        if not 0 < loss < 1:
            raise _core.ScenarioError(f"loss: expected a share between 0 and 1, found {loss:g}")
        window = self.core.window(loss, rtt_s)
        rate = window * packet_bytes * 8 / rtt_s
        return Response(loss, self.core.published(loss, rtt_s), window, self.core.peak(loss, rtt_s), rate)

    def independent(self, loss: float, rtt_s: float) -> float | None:
        """The mean window in segments where each packet is lost with probability `loss` (`elephan-model`'s `independent`).

        None for FAST, and below one loss in a million packets, where the rule would have to run for too long.
        """
        return _core.independent_window(self.cc, loss, rtt_s) if loss >= 1e-6 else None


# Alone on a path a flow has slow start, its overshoot and the losses that follow behind it after so long. Ours.
SETTLED_S = 100.0


def epoch_s(cc: str | Mapping[str, Any], rate_packets_s: float, rtt_s: float, buffer_packets: float) -> float:
    """How long a flow that is alone on a path takes from a loss at a full buffer to the next, in s.

    A second flow that starts at random within an epoch of the first, once that has settled, meets every phase of it equally
    often (Li 2006, section 8.1.3). Every round trip is taken to be that with a full buffer, so it is rather too long.
    """
    full = rtt_s + buffer_packets / rate_packets_s
    return Model(cc).core.recovery(rate_packets_s * full, full) * full


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure of response functions: its path, its losses, who is in it."""

    title: str
    rate: str
    rtt: str
    buffer: str
    loss: str
    cc: tuple[str, ...]
    low: float
    high: float


FIGURES = {
    "kelly-3": PublishedFigure(
        "Kelly 2003, figure 3: mean windows (simulated at 1 Gbit/s, 100 ms)",
        "1 Gbit/s",
        "100 ms",
        "100% bdp",
        "random",
        ("reno", "scalable"),
        1e-4,
        1e-1,
    ),
    "li-8.1": PublishedFigure(
        "Li 2006, figure 8.1: 250 Mbit/s, 162 ms, queue of 20 %, random loss",
        "250 Mbit/s",
        "162 ms",
        "20% bdp",
        "random",
        ("reno", "hstcp", "scalable", "htcp", "bic"),
        1e-6,
        1e-2,
    ),
    "li-9.1-mbng": PublishedFigure(
        "Li 2006, figure 9.1: 1 Gbit/s, 6.2 ms, every n-th packet lost",
        "1 Gbit/s",
        "6.2 ms",
        "100% bdp",
        "periodic",
        ("reno", "hstcp", "scalable", "htcp"),
        1e-6,
        3e-2,
    ),
    "li-9.1-datatag": PublishedFigure(
        "Li 2006, figure 9.1: 1 Gbit/s, 120 ms, every n-th packet lost",
        "1 Gbit/s",
        "120 ms",
        "100% bdp",
        "periodic",
        ("reno", "hstcp", "scalable", "htcp"),
        1e-7,
        3e-2,
    ),
}


def simulated_windows(
    cc: Sequence[str | Mapping[str, Any]],
    losses: Sequence[float],
    figure: PublishedFigure,
    *,
    most_s: float = 600.0,
    run: Callable[[Sequence[Scenario]], list[Run]] = run_many,
) -> list[list[float]]:
    """Mean windows that the simulator gives, one row for each algorithm: over about 300 losses, or `most_s` of time."""
    scenarios, rtt = [], _core.seconds(figure.rtt)
    for name in cc:
        model = Model(name)
        for p in losses:
            window = min(model.response(p, rtt).window, _core.bits_per_second(figure.rate) * rtt / 12e3)
            measured = min(max(300 / p / window * rtt, 100 * rtt, 5.0), most_s)
            settle = min(max(20 / p / window * rtt, 50 * rtt), most_s / 2)
            loss = (
                {"name": "periodic", "every": round(1 / p)}
                if figure.loss == "periodic"
                else {"name": "random", "probability": p}
            )
            scenarios.append(
                dumbbell(
                    rate=figure.rate,
                    rtt=figure.rtt,
                    buffer=figure.buffer,
                    flows=[flow(name)],
                    duration=f"{settle + measured:.3f} s",
                    path={"loss": loss},
                    tcp={"initial_ssthresh": max(round(window), 2)},
                    measure={"from": f"{settle:.3f} s"},
                    trace={"interval": "100 s"},
                )
            )
    windows = [one.summary.flows[0].cwnd_mean_segments or 0.0 for one in run(scenarios)]
    return [windows[i : i + len(losses)] for i in range(0, len(windows), len(losses))]


def plot_response(
    figure: PublishedFigure,
    cc: Sequence[str],
    points: int,
    *,
    most_s: float = 600.0,
    run: Callable[[Sequence[Scenario]], list[Run]] = run_many,
) -> Figure:
    """Draw response functions as lines, with `points` simulated windows of each algorithm over them (0: none)."""
    rtt = _core.seconds(figure.rtt)
    pipe = _core.bits_per_second(figure.rate) * rtt / 12e3
    fine = np.geomspace(figure.low, figure.high, 200)
    coarse = [float(p) for p in np.geomspace(figure.low, figure.high, points)] if points else []
    found = simulated_windows(cc, coarse, figure, most_s=most_s, run=run) if points else [[] for _ in cc]
    with mpl.rc_context(STYLE):
        picture = Figure(figsize=(6.4, 4.2))
        axes = picture.subplots()
        for name, colour, windows in zip(cc, COLOURS, found, strict=False):
            model = Model(name)
            theory = [model.response(float(p), rtt) for p in fine]
            axes.loglog(fine, [r.window for r in theory], color=colour, label=name)
            if theory[0].published is not None:
                axes.loglog(fine, [r.published for r in theory], color=colour, linestyle=":", linewidth=0.9)
            axes.loglog(coarse, windows, "o", color=colour, markersize=3.5)
        axes.axhline(pipe, color="#999999", linewidth=0.8, linestyle="--")
        axes.text(figure.high, pipe, "the pipe ", ha="right", va="bottom", color="#666666", fontsize=8)
        axes.set_ylim(1, pipe * 4)
        axes.set_xlabel("loss rate")
        axes.set_ylabel("mean window (segments)")
        axes.set_title(f"{figure.title}\nlines: theory (dotted: as published), points: simulated")
        axes.legend()
        return picture


def agreement(
    cc: Sequence[str],
    *,
    flows: int,
    rate: str,
    rtts: Sequence[str],
    buffer: str,
    queue: str | Mapping[str, Any],
    duration: str,
    run: Callable[[Sequence[Scenario]], list[Run]] = run_many,
) -> list[tuple[str, str, float, float]]:
    """Goodput (Mbit/s), queue (packets), loss (%) and Jain's index of each algorithm, simulated and by the fluid model."""
    half = f"{_core.seconds(duration) / 2:.3f} s"
    scenarios = [
        dumbbell(
            rate=rate,
            rtt=rtts[0],
            buffer=buffer,
            flows=[flow(name, count=flows // len(rtts), rtt=rtt, start={"uniform": ["0 s", "4 s"]}) for rtt in rtts],
            duration=duration,
            engine=engine,
            path={"queue": queue},
            tcp={"delayed_ack": {"segments": 1}},
            measure={"from": half},
        )
        for name in cc
        for engine in ("sim", "model")
    ]
    compared = (
        declared("Summary", "goodput_bit_s"),
        declared("LinkSummary", "queue_mean_packets", reading=lambda summary: summary.links[0].queue_mean_packets),
        declared("Summary", "loss_rate", unit="%"),
        Metric("Jain's index", "", column="jain"),
    )
    summaries = [one.summary for one in run(scenarios)]
    return [
        (
            name,
            f"{metric.name}, {metric.short_unit}".removesuffix(", "),
            metric.read(simulated) or 0,
            metric.read(model) or 0,
        )
        for name, simulated, model in zip(cc, summaries[::2], summaries[1::2], strict=True)
        for metric in compared
    ]
