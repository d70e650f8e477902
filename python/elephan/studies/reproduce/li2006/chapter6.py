"""Li 2006, chapter 6: window traces."""

import math
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from elephan.api.charts import CHARTS
from elephan.api.run import Run
from elephan.base.plots import STYLE
from elephan.studies.reproduce.judge import Arm, Kind, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.systems import SYSTEMS, listed

NAMES = ("HighSpeed TCP", "Scalable TCP", "H-TCP", "BicTCP")
# Nothing in these scenarios is random: two repeats show it.
ONCE = (2,)


def _epochs(run: Run) -> list[pl.DataFrame]:
    """The samples from each congestion event to the next one; the first frame is the start until the first event."""
    return run.flows.partition_by("congestion_events", maintain_order=True)


def _highest(epoch: pl.DataFrame) -> float:
    return float(epoch["cwnd_segments"].to_numpy().max())


def back_off(run: Run, epoch: int) -> float:
    """The threshold in an epoch over the largest window in the one before it."""
    epochs = _epochs(run)
    return float(epochs[epoch]["ssthresh_segments"][-1]) / _highest(epochs[epoch - 1])


def _round_trips(run: Run) -> float:
    """Round trips from a recovery until the window has its value before the loss: mean over the epochs from the third on."""
    found = []
    epochs = _epochs(run)[2:]
    for before, after in pairwise(epochs):
        recovery = after.filter(pl.col("cwnd_segments") <= pl.col("ssthresh_segments"))
        back = after.filter(pl.col("cwnd_segments") >= _highest(before))
        if len(recovery) and len(back):
            found.append((back["time_s"][0] - recovery["time_s"][-1]) / float(after["srtt_s"].to_numpy().mean()))
    return float(np.mean(found))


def _shape(run: Run) -> str:
    """Growth for each round trip in the three thirds of the last whole epoch, and the epoch's length."""
    # The first three samples are the recovery.
    epoch = _epochs(run)[-2][3:]
    window, time = epoch["cwnd_segments"].to_numpy(), epoch["time_s"].to_numpy()
    rtt = float(epoch["srtt_s"].to_numpy().mean())
    thirds = [
        (part[-1] - part[0]) / (when[-1] - when[0]) * rtt
        for part, when in zip(np.array_split(window, 3), np.array_split(time, 3), strict=True)
    ]
    return f"{', '.join(f'{growth:.1f}' for growth in thirds)} ({time[-1] - time[0]:.1f} s)"


@experiment("li2006/figure-6.1", "Windows over time at 200 Mbit/s, 150 ms (figures 6.1 to 6.4)", "li2006/traces")
def figure_6_1(lab: Lab) -> Report:
    """HSTCP, Scalable, H-TCP, BIC: back-off and growth of each epoch. The figures themselves have no numbers."""
    report = Report(lab)
    arms = {name: Arm.of("li2006/traces").set({"flow.cc": SYSTEMS[name]}) for name in NAMES}
    runs = {name: found[0] for name, found in zip(NAMES, lab.runs(list(arms.values()), 1), strict=True)}
    beta = {name: printed("li2006", "Sec 6.1", metric, "li-6.1-cwnd")[name][0] for name, metric in
            (("Scalable TCP", "beta"), ("H-TCP", "beta_max"), ("BicTCP", "beta"))}  # fmt: skip
    report.compare(
        "window after a loss over that before it",
        "1",
        [
            Quantity(f"{name}, last epoch", value, None, (arms[name],), lambda run: back_off(run, -2))
            for name, value in beta.items()
        ]
        + [Quantity("H-TCP, second loss", 0.5, None, (arms["H-TCP"],), lambda run: back_off(run, 2))],
        band=0.03,
        looks=ONCE,
    )
    # Equation 6.4 with the printed parameters.
    high = _highest(_epochs(runs["HighSpeed TCP"])[-3])
    share = math.log(high / 38) / math.log(83000 / 38)
    report.compare(
        "window after a loss over that before it, equation 6.4",
        "1",
        [
            Quantity(
                "HighSpeed TCP", 1 - (0.5 - 0.4 * share), None, (arms["HighSpeed TCP"],), lambda run: back_off(run, -2)
            )
        ],
        kind=Kind.THEORY,
        band=0.03,
        looks=ONCE,
    )
    # The window grows by 1 % and falls by one eighth (section 6.1.2).
    report.compare(
        "round trips from a loss to the window before it",
        "round trips",
        [Quantity("Scalable TCP", math.log(8 / 7) / math.log(1.01), None, (arms["Scalable TCP"],), _round_trips)],
        kind=Kind.THEORY,
        band=0.1,
        looks=ONCE,
    )
    shapes = "; ".join(f"{name} {_shape(run)}" for name, run in runs.items())
    report.notes.append(
        "The text describes the shapes: Scalable TCP regains its window in a constant number of round trips, H-TCP grows slowly after a "
        "loss and ever faster after the first second, and BicTCP rises quickly, hardly grows near its target and then probes faster. "
        f"Growth for each round trip in the three thirds of an epoch, in segments, and its length: {shapes}."
    )
    utilisation = {name: run.summary.utilisation or 0.0 for name, run in runs.items()}
    report.notes.append(f"Utilisation of the link: {listed(utilisation, 3)}.")

    def draw() -> Figure:
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 4))
            for axes, (name, run) in zip(
                figure.subplots(2, 2, sharex=True, sharey=True).flat, runs.items(), strict=True
            ):
                axes.plot(run.flows["time_s"], run.flows["cwnd_segments"])
                axes.set_title(name)
            figure.supxlabel("time (s)", fontsize=9)
            figure.supylabel(CHARTS["cwnd"].label, fontsize=9)
            return figure

    report.draw = draw
    return report
