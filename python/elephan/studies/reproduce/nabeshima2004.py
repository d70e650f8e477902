"""Nabeshima and Yata 2004: convergence of HighSpeed TCP."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.judge import ALPHA, Arm, Time, interval
from elephan.studies.reproduce.declare import Chapter, Grid, Point, Points, Reading, Sets, declares, points
from elephan.studies.reproduce.lab import ONCE, figures, number
from elephan.studies.theory import Model

ALONE, BACKGROUND = "convergence", "background"
OLD, NEW = "HighSpeed TCP", "with the new mechanism"
SYSTEMS = {OLD: "hstcp", NEW: "hstcp-fc"}
# The last flow starts at this time; its throughput is measured every 5 s.
JOIN_S, EVERY_S = 100, 5
# How long the runs go on after that, without and with background.
ALONE_S, BACKGROUND_S = 700, 300
# The source repeats each simulation 15 times.
LOOKS = (15, 30)
COUNTS, RATES_MBIT_S = (2, 4, 10), (100, 250, 500, 1000)
# What varies in a figure: the label of its axis, and the unit of its values in words.
AXES = {"flows": ("flows", "flows"), "rate": ("bandwidth (Mbit/s)", "Mbit/s")}
# Sets of background: none of their numbers is published.
LOADS: Mapping[str, dict[str, str]] = {
    "20 flows and 50 web users": {},
    "5 flows and 12 web users": {"flow.2.count": "5", "flow.3.count": "5", "web.0.users": "12", "web.1.users": "12"},
}
CHOICES = (
    "access links: infinitely fast.",
    "our budget of processor time: 25 minutes for the first repeats of all experiments of this source.",
    "the fair share of a flow: the link's payload rate over the number of HighSpeed TCP flows, with background too.",
    f"length, for our budget of processor time: {ALONE_S} s after the last flow's start, with background {BACKGROUND_S} s. "
    "A time that was cut off counts as longer than that, not as a value.",
    "15 repeats, as in the source, and 30 where these decide nothing. The source averages times; medians and the log-rank test also "
    "take times that were cut off.",
)
POINTS = (
    *CHOICES,
    "which points of the range, for our budget of processor time: 2, 4 and 10 flows; 100, 250, 500 and 1000 Mbit/s.",
)
LOAD = (
    *POINTS,
    "background: 20 flows of Standard TCP with windows of 8 packets and 50 web users (Kelly's model) in each direction, and a quarter of it "
    "in Figure 9; the source gives neither numbers nor its web model.",
)
THIS_LOAD = "The verdict is for this load of background: 20 flows and 50 web users in each direction"


def arm(chosen: str, at: Point) -> Arm:
    """`flows` of `system`, 2 if it is not said, at `rate` Mbit/s or 1 Gbit/s, with `scenario` BACKGROUND or without."""
    cc, scenario = SYSTEMS[at["system"]], at.get("scenario", ALONE)
    settings = {
        "flow.0.cc": cc,
        "flow.1.cc": cc,
        "flow.0.count": f"{at.get('flows', 2) - 1}",
        "path.rate": f"{at.get('rate', 1000)} Mbit/s",
        "duration": f"{JOIN_S + (BACKGROUND_S if scenario == BACKGROUND else ALONE_S)} s",
    }
    return Arm(f"nabeshima2004/{scenario}").set({**settings, **LOADS.get(chosen, {}), **at.get("set", {})})


def flows_of(run: Run) -> int:
    """The number of flows of HighSpeed TCP."""
    return 1 + int(run.scenario.document["flow"][0].get("count", 1))


def convergence(run: Run, part: float = 1.0, within_s: float = math.inf) -> Time:
    """The time from the last flow's start until its throughput over 5 s exceeds its share of the link, or a part of it.

    It is cut off at the end, or after `within_s`.
    """
    flows = flows_of(run)
    share_bit_s = _core.bits_per_second(run.scenario.document["path"]["rate"]) * 1448 / 1500 / flows
    end_s = min(run.summary.to_s - JOIN_S, within_s)
    steps = (
        run.flows.filter((pl.col("flow") == flows - 1) & pl.col("time_s").is_between(JOIN_S, JOIN_S + end_s, "right"))
        .group_by(((pl.col("time_s") - JOIN_S) / EVERY_S).ceil().alias("step"))
        .agg(pl.col("goodput_bit_s").mean())
        .filter(pl.col("goodput_bit_s") > part * share_bit_s)["step"]
    )
    return Time(EVERY_S * float(min(steps)), seen=True) if len(steps) else Time(end_s, seen=False)


def _halvings(run: Run) -> list[float]:
    """The times from the last flow's start at which the first flow's window was halved.

    HighSpeed TCP itself leaves more than 0.62 of a window of more than 382 packets, and so more than that for each of several reductions
    between two samples.
    """
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > JOIN_S)).with_columns(
        fell=pl.col("congestion_events").diff(), before=pl.col("cwnd_segments").shift(1)
    )
    fewer = frame.filter((pl.col("fell") > 0) & (pl.col("cwnd_segments") < 0.62 ** pl.col("fell") * pl.col("before")))
    return [at - JOIN_S for at in fewer["time_s"]]


def synchronisation(run: Run) -> float | None:
    """The mean share of the flows of HighSpeed TCP whose window falls in a congestion epoch, in the first 300 s after the last flow's start.

    An epoch is the sample in which a window falls and the next, a second later; a later fall begins another. Undefined without one.
    """
    flows = flows_of(run)
    time = pl.col("time_s").is_between(JOIN_S, JOIN_S + BACKGROUND_S, "right")
    frame = run.flows.filter((pl.col("flow") < flows) & time).sort("flow", "time_s")
    falls = frame.filter(pl.col("cwnd_segments") < 0.95 * pl.col("cwnd_segments").shift(1).over("flow")).sort("time_s")
    begin_s, epochs = -math.inf, list[set[int]]()
    for flow, at_s in falls.select("flow", "time_s").iter_rows():
        if at_s > begin_s + 1.5:
            begin_s = at_s
            epochs.append(set())
        epochs[-1].add(flow)
    return sum(map(len, epochs)) / len(epochs) / flows if epochs else None


def _at_once(run: Run) -> bool:
    """Whether the last flow exceeds its share before its window is reduced a second time, so by its slow start."""
    at = convergence(run)
    until = (pl.col("flow") == flows_of(run) - 1) & (pl.col("time_s") <= JOIN_S + at.seconds)
    return at.seen and run.flows.filter(until & (pl.col("congestion_events") > 1)).is_empty()


READINGS = {
    "time": Reading(convergence),
    "early time": Reading(partial(convergence, within_s=BACKGROUND_S)),
    "synchronisation": Reading(synchronisation),
}
ORACLE = {"oracle": "Neither ns-2's distribution nor a Linux kernel has the mechanism."}
converges = partial(declares, partial(Chapter, arm=arm, readings=READINGS, looks=LOOKS, shared=ORACLE), "nabeshima2004")
alone = partial(converges, scenario=ALONE, choices=POINTS)
loaded = partial(converges, scenario=BACKGROUND, choices=LOAD, quick=False)
# That the new mechanism converges earlier, and that so many flows do.
FASTER = Points("{flows} flows, {rate} Mbit/s", "time, earlier", above=0.5).at(a=NEW, b=OLD)
BEFORE = Points("{first} before {second} flows", "time, earlier", above=0.5).of(flows=("first", "second"))
EARLIER = "the share of all pairs of runs in which the one converges before the other; log-rank test"
HALF = "one half: no difference. The source prints the times as a curve only"
IN_SLOW_START = (
    "The printed measure of convergence may be met by the last flow's slow start alone, before its window is reduced a second time, "
    "whatever the established flows do. The note counts these runs."
)


@converges("section-2", "Loss rate and recovery of Standard TCP at 7.2 Gbit/s; HighSpeed TCP's design point")
def section_2(report: Chapter) -> None:
    """Formulas."""
    standard, window = Model("reno").core, 7.2e9 * 0.1 / 12e3
    throughput = (Model("hstcp").response(1e-7, 0.1).published or 0) * 12e3 / 1e8
    recovery = standard.recovery(standard.peak(standard.loss(window, 0.1), 0.1), 0.1)
    for group, unit, metric, ours, band in (
        ("required loss rate", "1", "required loss rate", standard.loss(window, 0.1), 0.02),
        ("recovery from one loss, 7.2 Gbit/s on average", "RTT", "recovery from one loss", recovery, 0.02),
        ("throughput at 1e-7", "Gbit/s", "design throughput", throughput, 0.02),
        ("recovery from one loss, almost", "min", "recovery from one loss", recovery * 0.1 / 60, 0.1),
    ):
        row = next(r for r in figures("nabeshima2004") if metric in r["metric"] and r["unit"] == unit)
        report.formula(group, unit, band, (row["system"], float(row["value"]), ours))


@converges(
    "figure-5",
    "Windows of two flows with and without the new mechanism (figures 1 and 5)",
    ALONE,
    choices=(*CHOICES, "the first flow starts within the first 10 s, not at 0 s, so that repeats differ."),
)
def figure_5(report: Chapter) -> None:
    """A flow that starts at 100 s beside an established flow."""
    times = [number("nabeshima2004", "Sec 4.2", f"time of {n} aggressive") - JOIN_S for n in ("1st", "2nd", "3rd")]

    def halved(at: Point, run: Run) -> Time:
        halving = _halvings(run)[at["n"] - 1 : at["n"]]
        return Time(halving[0], seen=True) if halving else Time(run.summary.to_s - JOIN_S, seen=False)

    def halvings(run: Run) -> int:
        return sum(at <= times[-1] for at in _halvings(run))

    group, numbers = "halvings of flow 1, from flow 2's start", {"n printed": list(enumerate(times, 1))}
    each = Points("number {n}", halved, "point", statistic="median").at(numbers, system=NEW)
    report.rows(group, "s", each)
    report.rows(
        f"{group}, flow 1 at 0 s",
        "s",
        each.at(set={"flow.0.start": "0 s", "duration": "500 s"}),
        looks=ONCE,
        cause_of=group,
        changed="flow 1 starts at 0 s exactly, as in the figure",
    )
    report.untestable(
        "N01",
        "the source gives no measure of a long time. The comparison that it makes, with the mechanism, is N02; the times are in a note.",
    )
    runs = _runs(report, {})
    _note(report, f"Median time in s until flow 2 has its share, of {ALONE_S} s at most", runs, [""], _median)
    report.claim(
        "N02",
        "With the mechanism flow 1 reduces its window more than usual, and the second flow converges much faster (section 4.2, figures 1 and 5).",
        "two flows, 1 Gbit/s, 100 ms, buffer of half the product",
        f"halvings of flow 1 in {times[-1]:g} s, with the mechanism minus without; {EARLIER}",
        "0, and one half: no difference",
        Points("halvings of flow 1", halvings, "less").at(a=NEW, b=OLD),
        replace(FASTER, name="convergence of flow 2"),
    )
    report.draw = lambda: _windows([repeats[0] for (repeats,) in runs.values()])


def _windows(runs: Sequence[Run]) -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3))
        titles = ("figure 1: HighSpeed TCP", "figure 5: with the mechanism")
        for axes, run, title in zip(figure.subplots(1, 2, sharey=True), runs, titles, strict=True):
            for flow in (0, 1):
                shown = run.flows.filter((pl.col("flow") == flow) & (pl.col("time_s") <= 400))
                axes.plot(shown["time_s"], shown["cwnd_segments"], label=f"flow {flow + 1}")
            axes.set_title(title)
            axes.set_xlabel("time (s)")
        figure.axes[0].set_ylabel("cwnd (packets)")
        figure.axes[0].legend()
        return figure


# The runs of each algorithm: the repeats at each point.
Runs = Mapping[str, Sequence[Sequence[Run]]]


def _runs(report: Chapter, grid: Grid) -> Runs:
    lab, each = report.lab, list(points(grid))
    return {n: lab.runs([arm("", {**at, "system": n}) for at in each], lab.pick(LOOKS[0], 2)) for n in SYSTEMS}


def _note(report: Chapter, what: str, runs: Runs, at: Sequence[str], read: Callable[[Sequence[Run]], object]) -> None:
    """Note what is read of the repeats of each algorithm, and where."""
    texts = {n: [f"{read(repeats)}{x}" for repeats, x in zip(of, at, strict=True)] for n, of in runs.items()}
    listed = "; ".join(f"{name}: {', '.join(text)}" for name, text in texts.items())
    report.notes.append(f"{what}. {listed}.")


def _median(repeats: Sequence[Run], part: float = 1.0) -> str:
    return interval([convergence(run, part) for run in repeats], "median", ALPHA).text


def _over(report: Chapter, key: str, values: Sequence[int], scenario: str = ALONE) -> None:
    """Draw the times over the values of a key of points, and note how many runs converged by slow start alone."""
    label, unit = AXES[key]
    runs = _runs(report, {key: values, "scenario": scenario})
    what = f"Runs of {len(runs[OLD][0])} in which the last flow exceeds its share before its window is reduced a second time"
    _note(report, what, runs, [f" with {x} {unit}" for x in values], lambda repeats: sum(map(_at_once, repeats)))
    report.draw = partial(_curves, runs, values, label)


def _curves(runs: Runs, values: Sequence[int], label: str) -> Figure:
    """Median times by what varies, for both algorithms; an arrow where half of the runs or more did not converge."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.5, 3))
        axes, x = figure.subplots(), np.array(values)
        for name, each in runs.items():
            times = [[convergence(run) for run in repeats] for repeats in each]
            medians = [interval(several, "median", ALPHA) for several in times]
            value, low, high = np.array([(median.value, median.low, median.high) for median in medians]).T
            end = np.array([max(time.seconds for time in several) for several in times])
            middle, cut = np.minimum(value, end), value > end
            # Where hardly any converged, even the lower end is beyond the end.
            errors = np.maximum(middle - np.maximum(low, 0), 0), np.minimum(high, end) - middle
            drawn = axes.errorbar(x, middle, errors, fmt="o-", markersize=4, capsize=2, label=name)
            axes.plot(x[cut], end[cut], "^", markersize=8, color=drawn.lines[0].get_color())
        axes.set_xlabel(label)
        axes.set_ylabel("median convergence time (s)")
        axes.set_ylim(bottom=0)
        axes.legend()
        return figure


@alone("figure-6", "Convergence time by number of flows")
def figure_6(report: Chapter) -> None:
    """2 to 10 flows at 1 Gbit/s."""
    counts = report.lab.pick(COUNTS, (2, 10))
    report.claim(
        "N03",
        "Without background, the mechanism converges faster than HighSpeed TCP whatever the number of flows (section 4.2, figure 6).",
        "2, 4 and 10 flows at 1 Gbit/s",
        EARLIER,
        HALF,
        FASTER.at(flows=counts, rate=1000),
        means=IN_SLOW_START,
    )
    report.claim(
        "N04",
        "With HighSpeed TCP, convergence takes longer with fewer flows (section 4.2, figure 6).",
        "2 flows against 4, and 4 against 10, at 1 Gbit/s",
        EARLIER,
        HALF,
        BEFORE.at({"second first": list(pairwise(counts))}, system=OLD),
        oracle="",
    )
    report.claim(
        "N05",
        "With the mechanism, convergence is fastest with two flows in total (section 4.2, figure 6).",
        "2 flows against 4 and against 10, at 1 Gbit/s",
        EARLIER,
        HALF,
        BEFORE.at(first=2, second=counts[1:], system=NEW),
        means=IN_SLOW_START,
    )
    _over(report, "flows", counts)


@alone("figure-7", "Convergence time of two flows by bandwidth")
def figure_7(report: Chapter) -> None:
    """100 Mbit/s to 1 Gbit/s."""
    rates = report.lab.pick(RATES_MBIT_S, (100, 250))
    report.claim(
        "N06",
        "Without background, the mechanism converges faster than HighSpeed TCP whatever the bandwidth (section 4.2, figure 7).",
        "two flows at 100 Mbit/s to 1 Gbit/s",
        EARLIER,
        HALF,
        FASTER.at(flows=2, rate=rates),
        tried="Nine tenths of the share instead of all of it (see the note).",
        means="A flow that stays just below its share has not converged by the printed measure; the note has the times until nine tenths of the share.",
    )
    runs, at = _runs(report, {"rate": rates}), [f" at {rate} Mbit/s" for rate in rates]
    # The mechanism may leave a flow just below its share for long.
    nearly = "Median time in s until the last flow has nine tenths of its share"
    _note(report, nearly, runs, at, partial(_median, part=0.9))
    report.draw = partial(_curves, runs, rates, AXES["rate"][0])


@loaded("figure-8", "Convergence time by number of flows, with background traffic")
def figure_8(report: Chapter) -> None:
    """Web traffic and window-limited flows in both directions."""
    counts = report.lab.pick(COUNTS, (2,))
    report.claim(
        "N07",
        "With background, the mechanism converges faster than HighSpeed TCP whatever the number of flows (section 4.3, figure 8).",
        "2, 4 and 10 flows at 1 Gbit/s",
        EARLIER,
        f"{HALF}. {THIS_LOAD}",
        FASTER.at(flows=counts, rate=1000, scenario=BACKGROUND),
        tried="A quarter of this background, with two flows: a set of N09.",
        means=IN_SLOW_START,
    )
    both, compared = {"system": tuple(SYSTEMS), "flows": counts}, {"scenario": (BACKGROUND, ALONE)}
    report.claim(
        "N08",
        "Convergence is faster with background than without, because background reduces global synchronisation of losses "
        "(section 4.3, figures 6 and 8).",
        "both algorithms, 2, 4 and 10 flows at 1 Gbit/s; the same starts of the flows with and without",
        f"{EARLIER}; the mean share of these flows whose windows fall in a congestion epoch (within 1 s of its first fall), with minus without; "
        f"both in the first {BACKGROUND_S} s from the last flow's start",
        f"{HALF}; 0: no difference. {THIS_LOAD}",
        Points("{system}, {flows} flows", "early time, earlier", above=0.5).at(both).of(compared),
        Points("synchronisation, {system}, {flows} flows", "synchronisation, less", below=0).at(both).of(compared),
        means=IN_SLOW_START,
    )
    _over(report, "flows", counts, BACKGROUND)


@loaded("figure-9", "Convergence time of two flows by bandwidth, with background traffic")
def figure_9(report: Chapter) -> None:
    """100 Mbit/s to 1 Gbit/s with background."""
    rates = report.lab.pick(RATES_MBIT_S, (100, 250))
    report.claim(
        "N09",
        "With background, the mechanism converges faster than HighSpeed TCP whatever the bandwidth (section 4.3, figure 9).",
        "two flows at 100 Mbit/s to 1 Gbit/s",
        EARLIER,
        HALF,
        FASTER.at(flows=2, rate=rates, scenario=BACKGROUND),
        sets=Sets(tuple(LOADS), "A quarter of the background."),
        means=IN_SLOW_START,
    )
    _over(report, "rate", rates, BACKGROUND)
