"""Cells of chapter 8: two flows of one algorithm on a path with a given capacity and round-trip time; runs, means and plots."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from elephan.api.run import Run
from elephan.base.plots import STYLE
from elephan.studies.reproduce.lab import Lab, estimate
from elephan.studies.reproduce.li2006.systems import METRICS, SYSTEMS, cc_of
from elephan.studies.statistics import Estimate
from elephan.studies.theory import SETTLED_S, epoch_s

RATES, RTTS = (10, 100, 250), (16, 22, 42, 82, 162, 324)
CHOICES = (
    "initial window: 2 segments; quick ACKs: the first 16 segments; minimum RTO: 200 ms, all as in Linux 2.6.6.",
    "start of the second flow: uniform over one congestion epoch of the first (by theory, alone on the path), after the first has had "
    "100 s to settle (in --quick: 30 s, and at most 30 s of the epoch).",
    "BIC's S_max = 32 and smooth_part = 20 (Xu 2004).",
    "The kernel's limit of cwnd to the packets in flight, and the hosts' cost of ACKs, are not modelled.",
)
# The part of a test in which fairness is measured.
LATE = "second half of the tests"
Cells = dict[tuple[str, int, int], list[Run]]


def repeats_of(lab: Lab) -> int:
    """The number of repeats of a cell."""
    return lab.pick(5, 2)


def timing(lab: Lab, first: str, rate: float, rtt: float) -> dict[str, str]:
    """The length of a test, and the start time of the second flow beside a `first` one; arguments in Mbit/s and ms.

    A test takes at least ten minutes. With Standard TCP, whose epochs are long, it takes ten epochs, up to an hour. The
    second flow starts at a time that is drawn so that its slow start can meet any phase of a congestion epoch of the first
    flow (section 8.1.3).
    """
    packets_s, rtt_s = rate * 1e6 / 12e3, rtt * 1e-3
    epoch = epoch_s(cc_of(first), packets_s, rtt_s, 0.2 * packets_s * rtt_s)
    begin, longest = lab.pick((SETTLED_S, math.inf), (30.0, 30.0))
    hour = min(max(600.0, begin + 10 * epoch), 3600.0)
    return {
        "duration": f"{lab.pick(hour if first == 'Standard TCP' else 600.0, 150.0):.0f} s",
        "flow.1.start": f'{{ uniform = ["{begin:g} s", "{begin + min(epoch, longest):.3f} s"] }}',
    }


def grid(lab: Lab, scenario: str, cells: Sequence[tuple[str, int, int]], make: Any, repeats: int) -> Cells:
    """Run a scenario for each cell: algorithm, rate (Mbit/s), round-trip time (ms)."""
    points = []
    for name, rate, rtt in cells:
        settings = make(SYSTEMS[name], rate, rtt)
        # If the flows differ, the first is Standard TCP, or the one with 162 ms.
        first = name if "flow.cc" in settings else "Standard TCP"
        points.append(settings | timing(lab, first, rate, 162 if "flow.1.rtt" in settings else rtt))
    return dict(zip(cells, lab.runs(scenario, points, repeats), strict=True))


def symmetric(cc: str, rate: int, rtt: int) -> dict[str, str]:
    """Two flows of one algorithm and one round-trip time."""
    return {"flow.cc": cc, "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms"}


def asymmetric(large: bool) -> Callable[[str, int, int], dict[str, str]]:
    """The first flow has 162 ms, the second has `rtt`. The buffer is that of the longer path if `large`."""

    def point(cc: str, rate: int, rtt: int) -> dict[str, str]:
        return {
            "flow.cc": cc,
            "path.rate": f"{rate} Mbit/s",
            "path.rtt": f"{162 if large else rtt} ms",
            "flow.1.rtt": f"{rtt} ms",
        }

    return point


def friendly(cc: str, rate: int, rtt: int) -> dict[str, str]:
    """One flow of an algorithm beside one of Standard TCP."""
    return {"flow.1.cc": cc, "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms"}


SCENARIOS: dict[str, tuple[str, Any]] = {
    "li-8.3.1-symmetric": ("li2006/symmetric", symmetric),
    "li-8.3.2-asym-small": ("li2006/asymmetric", asymmetric(large=False)),
    "li-8.3.2-asym-large": ("li2006/asymmetric", asymmetric(large=True)),
    "li-8.3.3-friendliness": ("li2006/friendliness", friendly),
}


def all_cells(lab: Lab, key: str, systems: Sequence[str] = tuple(SYSTEMS)) -> Cells:
    """The grid of rates and round-trip times of a scenario of chapter 8."""
    scenario, make = SCENARIOS[key]
    full = [r for r in RTTS if r <= 162 or "asym" not in key]
    rtts = lab.pick(tuple(full), (22, 82, 162))
    cells = [(name, rate, rtt) for name in systems for rate in RATES for rtt in rtts]
    return grid(lab, scenario, cells, make, lab.pick(5, 1))


def _over(cells: Cells, name: str, where: Callable[[int, int], bool], read: Callable[[Run], float | None]) -> float:
    """A metric of an algorithm: the mean over its cells of the mean over their repeats."""
    found = [
        e.mean
        for (system, rate, rtt), runs in cells.items()
        if system == name and where(rate, rtt) and (e := Estimate.of([read(run) for run in runs])).mean is not None
    ]
    return sum(found) / len(found) if found else math.nan


def of(cells: Cells, metric: str, name: str, where: Callable[[int, int], bool] = lambda *_: True) -> float:
    """The mean of a metric over the cells of an algorithm (over all their repeats)."""
    return _over(cells, name, where, lambda run: METRICS[metric].read(run.summary))


def late_fairness(run: Run) -> float:
    """The ratio of the smallest to the largest goodput of the flows in the second half of the measured time."""
    middle = (run.summary.from_s + run.summary.to_s) / 2
    each = (
        run.flows.filter(pl.col("time_s") > middle)
        .group_by("flow")
        .agg(pl.col("goodput_bit_s").mean())["goodput_bit_s"]
    )
    return float(each.min()) / float(each.max())  # type: ignore[arg-type]


def settled(cells: Cells, name: str, where: Callable[[int, int], bool] = lambda *_: True) -> float:
    """The mean fairness of an algorithm in the second half of the tests, over the cells and their repeats.

    Table 8.2 prints the fairness of one cell, and the second half of the test is close to the printed value: BicTCP's flows
    with unequal round-trip times have a fairness of 0.02 in the second half, 0.01 in print, and 0.13 from the start of the
    second flow on.
    """
    return _over(cells, name, where, late_fairness)


def at(rate: int | None, rtt: int | None) -> Callable[[int, int], bool]:
    """The cells with this rate and this round-trip time; None matches any."""
    return lambda c, r: rate in (None, c) and rtt in (None, r)


def by_system(cells: Cells, metric: str, where: Callable[[int, int], bool] = lambda *_: True) -> dict[str, float]:
    """The mean of a metric for each algorithm."""
    return {name: of(cells, metric, name, where) for name in dict.fromkeys(name for name, *_ in cells)}


def lines(cells: Cells, metric: str, title: str, *, log: bool = False) -> "Callable[[], Figure]":
    """Plot a metric over round-trip times, with one panel for each rate."""

    def draw() -> Figure:

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 3))
            for axes, rate in zip(figure.subplots(1, len(RATES)), RATES, strict=True):
                for name in dict.fromkeys(name for name, *_ in cells):
                    rtts = sorted(r for system, c, r in cells if system == name and c == rate)
                    values = [estimate(cells[name, rate, r], METRICS[metric].read).mean for r in rtts]
                    axes.plot(rtts, [math.nan if v is None else v for v in values], "o-", markersize=3, label=name)
                axes.set_xscale("log")
                if log:
                    axes.set_yscale("log")
                axes.set_title(f"{rate} Mbit/s")
                axes.set_xlabel("round-trip time (ms)")
            figure.axes[0].set_ylabel(METRICS[metric].label)
            figure.axes[-1].legend(fontsize=7)
            figure.suptitle(title, fontsize=10)
            return figure

    return draw


SYM, SMALL, LARGE, FRIENDLY = SCENARIOS
