"""Li 2006, chapter 6: window traces."""

import math
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import polars as pl

from elephan.api.pictures.over_time import QUANTITIES
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.judge import Arm, Kind
from elephan.studies.reproduce.declare import Chapter, Point, Points, declares, used
from elephan.studies.reproduce.lab import ONCE
from elephan.studies.reproduce.li2006.systems import SYSTEMS, published

NAMES = ("HighSpeed TCP", "Scalable TCP", "H-TCP", "BicTCP")


def _epochs(run: Run) -> list[pl.DataFrame]:
    """The samples from each congestion event to the next one; the first frame is the start until the first event."""
    return run.flows.partition_by("congestion_events", maintain_order=True)


def _highest(epoch: pl.DataFrame) -> float:
    return float(epoch["cwnd_segments"].to_numpy().max())


def back_off(run: Run, epoch: int) -> float | None:
    """The threshold in an epoch over the largest window in the one before it; none if there are not so many epochs."""
    epochs = _epochs(run)
    if not -len(epochs) < epoch < len(epochs):
        return None
    return float(epochs[epoch]["ssthresh_segments"][-1]) / _highest(epochs[epoch - 1])


def _over_equation(run: Run) -> float | None:
    """The back-off of HighSpeed TCP over that of equation 6.4 with the printed parameters."""
    found = back_off(run, -2)
    if found is None:
        return None
    share = math.log(_highest(_epochs(run)[-3]) / 38) / math.log(83000 / 38)
    return found / (1 - (0.5 - 0.4 * share))


def _round_trips(run: Run) -> float | None:
    """Round trips from a recovery until the window has its value before the loss: mean over the epochs from the third on."""
    found = []
    epochs = _epochs(run)[2:]
    for before, after in pairwise(epochs):
        recovery = after.filter(pl.col("cwnd_segments") <= pl.col("ssthresh_segments"))
        back = after.filter(pl.col("cwnd_segments") >= _highest(before))
        if len(recovery) and len(back):
            found.append((back["time_s"][0] - recovery["time_s"][-1]) / float(after["srtt_s"].to_numpy().mean()))
    return float(np.mean(found)) if found else None


def grown(run: Run, parts: int = 3, whole: int = -1) -> list[float] | None:
    """Growth of the window for each round trip in equal parts of a whole epoch, the last one, in segments; none if it is too short."""
    epochs = _epochs(run)[1:-1]
    # The first three samples are the recovery.
    epoch = epochs[whole][3:] if epochs else None
    if epoch is None or len(epoch) < 2 * parts:
        return None
    window, time = epoch["cwnd_segments"].to_numpy(), epoch["time_s"].to_numpy()
    rtt = float(epoch["srtt_s"].to_numpy().mean())
    return [
        float((part[-1] - part[0]) / (when[-1] - when[0]) * rtt)
        for part, when in zip(np.array_split(window, parts), np.array_split(time, parts), strict=True)
    ]


def _plateau(at: Point, run: Run) -> float | None:
    """Growth in a tenth of an epoch less the least of all its tenths: the largest of all whole epochs."""
    epochs = [grown(run, 10, whole) for whole in range(len(_epochs(run)) - 2)]
    return max((tenths[at["tenth"]] - min(tenths) for tenths in epochs if tenths is not None), default=None)


def _faster(at: Point, run: Run) -> float | None:
    """Growth in a third less that in the one before it."""
    found = grown(run)
    return None if found is None else found[at["third"]] - found[at["third"] - 1]


def _constant(run: Run) -> float | None:
    """Growth over the mean window in the last third, over that in the first."""
    found = grown(run)
    if found is None or not found[0]:
        return None
    first, _, last = np.array_split(_epochs(run)[-2][3:]["cwnd_segments"].to_numpy(), 3)
    return (found[2] / float(last.mean())) / (found[0] / float(first.mean()))


@declares(
    partial(Chapter, looks=ONCE),
    "li2006",
    "figure-6.1",
    "Windows over time at 200 Mbit/s, 150 ms (figures 6.1 to 6.4)",
    "traces",
    choices=(
        "bands: 3 % for back-offs, as windows are whole and sampled once a round trip; 10 % for a count of about 13 round trips.",
    ),
)
def figure_6_1(report: Chapter) -> None:
    """HSTCP, Scalable, H-TCP, BIC: back-off and growth of each epoch. The figures themselves have no numbers."""
    arms = {name: Arm("li2006/traces").set({"flow.cc": SYSTEMS[name]}) for name in NAMES}
    report.arm = lambda _, at: arms[at["system"]]
    beta = [
        (name, published("Sec 6.1", metric, system=name))
        for name, metric in (("Scalable TCP", "beta"), ("H-TCP", "beta_max"), ("BicTCP", "beta"))
    ]
    second = {"system": "H-TCP", "printed": 0.5}
    report.rows(
        "window after a loss over that before it, by the algorithms' parameters",
        "1",
        Points("{system}, last epoch", lambda run: back_off(run, -2)).at({"system printed": beta}),
        Points("{system}, second loss", lambda run: back_off(run, 2)).at(second),
        kind=Kind.THEORY,
        band=0.03,
    )
    report.rows(
        "window after a loss over that before it, over equation 6.4",
        "1",
        Points("{system}", _over_equation).at(system="HighSpeed TCP", printed=1.0),
        kind=Kind.THEORY,
        band=0.03,
    )
    # The window grows by 1 % and falls by one eighth (section 6.1.2).
    back = {"system": "Scalable TCP", "printed": math.log(8 / 7) / math.log(1.01)}
    report.rows(
        "round trips from a loss to the window before it",
        "round trips",
        Points("{system}", _round_trips).at(back),
        kind=Kind.THEORY,
        band=0.1,
    )
    h_tcp = {"name third": (("second third less first", 1), ("last third less second", 2)), "system": "H-TCP"}
    bic = {"name tenth": (("first", 0), ("last", -1)), "system": "BicTCP"}
    report.claim(
        "L74",
        "After a loss H-TCP grows slowly at first and then ever faster; BicTCP rises quickly, hardly grows near its target and "
        "then probes faster; Scalable TCP grows in proportion to its window (sections 6.1.2 to 6.1.4, figures 6.2 to 6.4).",
        "the last whole epoch (BicTCP: some epoch, as it probes only in some) of a flow at 200 Mbit/s and 150 ms with a queue of 500 packets",
        "growth for each round trip in thirds of the epoch, and in tenths for BicTCP: differences; Scalable TCP: relative growth, last third over first",
        "no difference (0); 1 within 10 %, which is ours",
        Points("{system}: {name}", _faster, "point", unit="segments").at(h_tcp),
        Points("{system}: {name} tenth less the least, in some epoch", _plateau, "point", unit="segments").at(bic),
        Points("{system}: relative growth, last third over first", _constant, above=0.9, below=1.1).at(
            system="Scalable TCP"
        ),
    )
    runs = {name: found[0] for name, found in zip(NAMES, report.lab.runs(list(arms.values()), 1), strict=True)}
    shapes = "; ".join(
        f"{name} {', '.join(f'{growth:.1f}' for growth in grown(run) or ()) or 'no whole epoch'}"
        for name, run in runs.items()
    )
    report.notes.append(f"Growth for each round trip in the three thirds of an epoch, in segments: {shapes}.")
    shares = ", ".join(f"{name} {used(run):.3f}" for name, run in runs.items())
    report.notes.append(f"Utilisation of the link: {shares}.")

    def draw() -> Figure:
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 4))
            for axes, (name, run) in zip(
                figure.subplots(2, 2, sharex=True, sharey=True).flat, runs.items(), strict=True
            ):
                axes.plot(run.flows["time_s"], run.flows["cwnd_segments"])
                axes.set_title(name)
            figure.supxlabel("time (s)", fontsize=9)
            figure.supylabel(QUANTITIES["cwnd"].metric.label, fontsize=9)
            return figure

    report.draw = draw
