"""Cells of chapter 8: two flows on a path with a given capacity and round-trip time, as arms; and what is read from them."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean

import matplotlib as mpl
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.judge import Arm, Time
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares, mean_window
from elephan.studies.reproduce.lab import Lab, Report
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, NEW, OVERHEAD, SETS, SYSTEMS, cc_of
from elephan.studies.theory import SETTLED_S, epoch_s

RATES, RTTS, LONG_MS = (10, 100, 250), (16, 22, 42, 82, 162, 324), 162
# What remains of the capacity for application bytes, and a segment of them in bits.
PAYLOAD, SEGMENT_BIT = 1448 / 1500, 1448 * 8
# The unit of Table 8.1 is 2^20 bit/s: its largest goodput is the payload capacity in this unit.
MEBIBIT = 2**20
# The numbers of repeats of a cell: the thesis had five.
REPEATS = (5, 10)
# Those of a median, or of a share of the runs, which has no interval of use below ten.
TIMES = (10, 20)
# A goodput that is less than another by no more than this share of the capacity ties with it. The standard errors of Table 8.1 are below it,
# but for FAST's with equal round-trip times.
TIE = 0.01
# The same of fairness: a unit of the last digit that Table 8.2 prints.
TIE_FAIRNESS = 0.01
# How long after its start the window of the second flow is compared with that of the first.
AFTER_START_S = 20.0
# The name of a place where two algorithms are compared at a capacity, and in a cell.
OF_TWO = "{a} over {b}, {rate} Mbit/s"
IN_CELL = f"{OF_TWO}, {{rtt}} ms"
CHOICES = (
    "initial window: 2 segments; quick ACKs: the first 16 segments; retransmission timeout: the smoothed round-trip time and 200 ms at least; all "
    "as in Linux 2.6.6.",
    "sets of choices: " + "; ".join(f"*{name}*: {one.source}" for name, one in SETS.items()) + ".",
    "round-trip times: 22, 82, 162 and 324 ms of the thesis' six, without 324 ms beside Standard TCP, under each set alike; 16 and 42 ms only where it "
    "names them. All of chapter 8 takes an hour of processor time for its first repeats, at 100 ns for a segment.",
    "a sentence about all conditions is tested in every cell, one about a figure in general on each of its curves: an algorithm at a "
    "capacity, mean over the round-trip times.",
    "start of the second flow: uniform over one congestion epoch of the first (section 8.1.3; the epoch by theory, alone on the path), after the "
    "first has had 100 s to settle. A FAST flow that is alone has no epochs after its start: its second flow starts within 20 s, or, as another set, "
    "after 100 s.",
    "length of a test: 600 s; with Standard TCP ten of its epochs after the last possible start of the second flow (five where one flow is of another "
    "algorithm, to keep to the hour of processor time), up to an hour of the test's time; with unequal "
    "round-trip times twenty epochs of the shorter path, whose flow fills the queue.",
    "fairness, and the share of a flow, is that of the second half of the measured time, as HighSpeed TCP's printed 1.00 ± 0.00 (Table 8.2) with a "
    "convergence time of 60 s (Table 8.3) suggests; or, as another set, of all of it, which section 8.2.2 suggests.",
    "resolution: an algorithm is behind in goodput if by more than 1 % of the capacity, in fairness if by more than 0.01; one that delivered nothing "
    "counts as having delivered one segment.",
    "a claim in words (near, mostly, an order of magnitude) has a bound halfway between what it says and what it denies; the halves are ours.",
    "The short-term goodput of a convergence time is that of 25 round-trip times.",
    "The kernel's limit of cwnd to the packets in flight, and the hosts' cost of ACKs, are not modelled.",
)
# The scenarios, as the published numbers name them, and their files.
FILES = {
    "li-8.3.1-symmetric": "symmetric",
    "li-8.3.2-asym-small": "asymmetric",
    "li-8.3.2-asym-large": "asymmetric",
    "li-8.3.3-friendliness": "friendliness",
}
SYMMETRIC, SMALL, LARGE, FRIENDLY = FILES
# Sets that differ from the choices as printed in one thing: when the second FAST flow starts, which flow starts first beside Standard TCP, over
# which time goodputs are compared, and which overhead is read. The last two read the same runs.
LATER = f"{AS_PRINTED}, second FAST flow after 100 s"
OTHER_FIRST = f"{AS_PRINTED}, Standard TCP starts second"
WHOLE = f"{AS_PRINTED}, fairness over the whole measured time"
WHOLE_TESTS = f"{AS_PRINTED}, overhead of whole tests"
ACKS = f"{AS_PRINTED}, ACK counting"
# What claims call them, and what is said of them as tried.
TRIED = {
    "later": (LATER, "FAST's second flow after 100 s"),
    "other first": (OTHER_FIRST, "the other flow first"),
    "whole": (WHOLE, "fairness over all of the measured time"),
    "whole tests": (WHOLE_TESTS, "both readings of the overhead"),
}


def _timing(
    lab: Lab, first: str, rate: int, rtt: int, *, epochs: int = 10, shorter: int | None = None, later: bool = False
) -> dict[str, str]:
    """The length of a test, and the start of its second flow, which meets any phase of an epoch of the first (section 8.1.3).

    A test takes at least ten minutes, and with Standard TCP, whose epochs are long, `epochs` of them, up to an hour. `shorter` is
    the second flow's round-trip time where that is another, whose flow fills the queue: the other one loses in fewer of its epochs, so
    there are twice as many; `later`: whether FAST is to settle first.
    """
    if first == "FAST":
        # A FAST flow that is alone loses nothing after its start, so it has congestion epochs only there.
        start = ("100 s", "120 s") if later else ("0 s", "20 s")
        return {"duration": lab.pick("600 s", "150 s"), "flow.1.start": _uniform(*lab.pick(start, ("0 s", "10 s")))}
    epoch = _epoch_s(first, rate, rtt)
    begin, last = SETTLED_S, SETTLED_S + epoch
    if lab.quick:
        begin, last = 30.0, 30.0 + min(epoch, 30.0)
    duration = 600.0
    if first == "Standard TCP":
        shown = epochs * (epoch if shorter is None else 2 * _epoch_s(first, rate, shorter))
        duration = min(max(600.0, last + max(shown, 500.0)), 3600.0)
    return {"duration": f"{lab.pick(duration, 150.0):.0f} s", "flow.1.start": _uniform(f"{begin:g} s", f"{last:.3f} s")}


def _epoch_s(system: str, rate: int, rtt: int) -> float:
    packets_s, rtt_s = rate * 1e6 / 12e3, rtt * 1e-3
    return epoch_s(cc_of(system), packets_s, rtt_s, 0.2 * packets_s * rtt_s)


def _uniform(earliest: str, latest: str) -> str:
    return f'{{ uniform = ["{earliest}", "{latest}"] }}'


def cell(lab: Lab, scenario: str, system: str, rate: int, rtt: int, chosen: str = AS_PRINTED) -> Arm:
    """Two flows of an algorithm, or one beside Standard TCP if `scenario` is `FRIENDLY`, at `rate` Mbit/s and `rtt` ms.

    With unequal round-trip times the first flow has 162 ms; the second has `rtt`, and the buffer is that of the
    shorter path (`SMALL`) or the longer (`LARGE`). With 162 ms both are the symmetric cell.
    """
    choices, later = SETS.get(chosen, SETS[AS_PRINTED]), chosen == LATER
    path = {"path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms"}
    if scenario == FRIENDLY and system != "Standard TCP":
        arm = Arm("li2006/friendliness").set({**choices.settings(system, "flow.1"), **path})
        arm = arm.set(_timing(lab, "Standard TCP", rate, rtt, epochs=5))
        if chosen == OTHER_FIRST:
            arm = arm.set({"flow.0.start": dict(arm.settings)["flow.1.start"], "flow.1.start": '"0 s"'})
        return arm
    if scenario in (SMALL, LARGE) and rtt != LONG_MS:
        arm = Arm("li2006/asymmetric").set({**choices.settings(system), **path, "flow.1.rtt": f"{rtt} ms"})
        if scenario == LARGE:
            arm = arm.set({"path.rtt": f"{LONG_MS} ms"})
        return arm.set(_timing(lab, system, rate, LONG_MS, shorter=rtt, later=later))
    arm = Arm("li2006/symmetric").set({**choices.settings(system), **path})
    return arm.set(_timing(lab, system, rate, rtt, later=later))


def sets(lab: Lab) -> tuple[str, ...]:
    """The sets of unpublished choices under which a claim is tested: in a quick laboratory only the two that differ most."""
    return lab.pick(tuple(SETS), (AS_PRINTED, tuple(SETS)[-1]))


def under(lab: Lab, *more: str) -> Sets:
    """The sets of unpublished choices for a claim, and `more` of them by their names in `TRIED`."""
    *others, last = ("Each of the four sets of choices", *(TRIED[name][1] for name in more))
    names = (*sets(lab), *(TRIED[name][0] for name in more))
    return Sets(names, f"{', '.join(others)}, and {last}." if others else f"{last}.")


def whole_sets(lab: Lab) -> dict[str, str]:
    """The sets beside the choices as printed, and what each of them changes."""
    return {chosen: f"the whole set of choices, {chosen}" for chosen in sets(lab)[1:]}


def cells(lab: Lab, scenario: str = SYMMETRIC) -> Chapter:
    """A report on cells: a point has `system`, `rate` and `rtt`, and maybe another `scenario`; or a loss rate, or `percent` of a queue.

    A queue is of 100 Mbit/s and 82 ms. `set` has further settings; with `start_up` the test lasts until soon after the last start of its second flow, with samples of every 200 ms.
    """

    def arm(chosen: str, at: Point) -> Arm:
        settings = SETS.get(chosen, SETS[AS_PRINTED]).settings(at["system"])
        if "loss" in at:
            response = {"path.loss.probability": f"{at['loss']:g}", "duration": lab.pick("600 s", "200 s")}
            return Arm("li2006/response").set({**settings, **response, **at.get("set", {})})
        if "percent" in at:
            timing = _timing(lab, at["system"], 100, 82, later=chosen == LATER)
            return Arm("li2006/queue").set({**settings, "path.buffer": f"{at['percent']}% bdp", **timing})
        made = cell(lab, at.get("scenario", scenario), at["system"], at["rate"], at["rtt"], chosen)
        if "start_up" in at:
            latest = float(dict(made.settings)["flow.1.start"].split('"')[3].removesuffix(" s"))
            return made.set({"duration": f"{latest + AFTER_START_S:.0f} s", "trace.interval": "200 ms"})
        return made.set(at.get("set", {}))

    # Those of the second flow where they differ.
    times = (22, 82, 162, 324) if scenario == SYMMETRIC and not lab.quick else (22, 82, 162)
    named = {
        "scenario": scenario,
        "every rate": RATES,
        "high rates": (100, 250),
        # With the bound of a goodput that is ahead of another or ties with it.
        "every rate, with ties": [(rate, -TIE * rate) for rate in RATES],
        "every rtt": times,
        "shorter rtts": [t for t in times if t != LONG_MS],
        "longest rtt": times[-1],
        "every algorithm": tuple(SYSTEMS),
        "all but Scalable TCP": [name for name in SYSTEMS if name != "Scalable TCP"],
        "every New-TCP": NEW,
        "loss-based New-TCP": LOSS_BASED,
    }
    return Chapter(lab, arm=arm, readings=READINGS, looks=REPEATS, named=named, under=partial(under, lab))


def on_cells(
    name: str, title: str, scenario: str = SYMMETRIC, *, choices: Sequence[str] = CHOICES
) -> Callable[[Callable[[Chapter], None]], Callable[[Lab], Report]]:
    """Register an experiment that declares what it has on the cells of a scenario."""
    file = FILES.get(scenario, scenario)
    return declares(partial(cells, scenario=scenario), "li2006", name, title, file, choices=choices)


def highest_goodput(rtts: str) -> Points:
    """The goodput of Scalable TCP and BicTCP less that of each other algorithm at each rate, mean over `rtts`; ties count as highest."""
    others = ("Standard TCP", "HighSpeed TCP", "H-TCP", "FAST")
    grid = {"rate above": "every rate, with ties", "a": ("Scalable TCP", "BicTCP"), "b": others}
    return Points(OF_TWO, "goodput, less").at(grid).mean(rtt=rtts)


def goodput(run: Run) -> float:
    """The aggregate goodput in Mbit/s."""
    return run.summary.goodput_bit_s / 1e6


def used(run: Run) -> float:
    """The goodput as a share of the payload capacity."""
    return goodput(run) * 1e6 / _core.bits_per_second(run.scenario.document["path"]["rate"]) / PAYLOAD


def second_half(run: Run) -> pl.DataFrame:
    """The samples in the second half of the measured time."""
    return run.flows.filter(pl.col("time_s") > (run.summary.from_s + run.summary.to_s) / 2)


def late(run: Run) -> tuple[float, float]:
    """The goodputs of both flows in the second half of the measured time, in bit/s; one segment of each at least."""
    least = SEGMENT_BIT / (run.summary.to_s - (run.summary.from_s + run.summary.to_s) / 2)
    table = second_half(run).group_by("flow").agg(pl.col("goodput_bit_s").mean()).sort("flow")
    first, second = (max(one, least) for one in table["goodput_bit_s"])
    return first, second


def whole(run: Run) -> tuple[float, float]:
    """The goodputs of both flows over the measured time, in bit/s; one segment of each at least."""
    least = SEGMENT_BIT / (run.summary.to_s - run.summary.from_s)
    first, second = (max(flow.goodput_bit_s, least) for flow in run.summary.flows)
    return first, second


def fairness(run: Run, of: Callable[[Run], tuple[float, float]] = late) -> float:
    """The smaller over the larger of the goodputs (equation 7.9)."""
    return min(of(run)) / max(of(run))


def share(run: Run, of: Callable[[Run], tuple[float, float]] = late) -> float:
    """The goodput of the first flow over that of the second."""
    first, second = of(run)
    return first / second


def late_retransmits(run: Run) -> int:
    """The segments that both flows retransmit in the second half of the measured time."""
    count = pl.col("retransmits")
    return int(second_half(run).group_by("flow").agg(count.max() - count.min())["retransmits"].sum())


def overhead(run: Run, *, whole_test: bool = False) -> float:
    """The overhead from the start of the second flow on, or that of the whole test with its slow starts, in 1e-7/(Mbit/s)."""
    found = run.summary.overhead_whole_s_bit if whole_test else run.summary.overhead_s_bit
    return OVERHEAD.factor * (math.nan if found is None else found)


def some_overhead(run: Run, *, whole_test: bool = False) -> float:
    """The same with one retransmitted segment at least, for ratios."""
    one_s_bit = SEGMENT_BIT / run.summary.goodput_bit_s**2 / (run.summary.to_s - run.summary.from_s)
    return max(overhead(run, whole_test=whole_test), OVERHEAD.factor * one_s_bit)


def converged(run: Run) -> Time:
    """The time in which the second flow came within 0.8 of its own average goodput (section 7.1.3)."""
    return _until(run, run.summary.convergence_s)


def shared(run: Run) -> Time:
    """The time in which the second flow came within 0.8 of a fair share."""
    return _until(run, run.summary.fair_share_s)


def _until(run: Run, found: float | None) -> Time:
    start = run.summary.flows[1].start_s
    assert start is not None
    return Time(run.summary.to_s - start, seen=False) if found is None else Time(found, seen=True)


def until_converged(run: Run) -> float:
    """The same in seconds; where it did not happen, until the end of the test (restricted mean)."""
    return converged(run).seconds


READINGS = {
    "window": Reading(mean_window, "segments"),
    "goodput": Reading(goodput, "Mbit/s"),
    "used": Reading(used),
    "fairness": Reading(fairness, under={WHOLE: partial(fairness, of=whole)}),
    "share": Reading(share, under={WHOLE: partial(share, of=whole)}),
    "overhead": Reading(overhead, OVERHEAD.short_unit, {WHOLE_TESTS: partial(overhead, whole_test=True)}),
    "some overhead": Reading(some_overhead, under={WHOLE_TESTS: partial(some_overhead, whole_test=True)}),
    # In orders and medians a time beyond the end of a test is not before it.
    "time": Reading(converged, "s"),
    "convergence": Reading(lambda run: run.summary.convergence_s, "s"),
    # One second at least, for ratios.
    "some convergence": Reading(lambda run: max(until_converged(run), 1)),
}


def label_of(name: str) -> str:
    """The name of a reading with its unit, for a picture."""
    unit = READINGS[name].unit
    return f"{name} ({unit})" if unit else name


def draw(report: Chapter, name: str, title: str, *, log: bool = False) -> None:
    """Let a report plot a reading of each algorithm over round-trip times, with one panel for each rate, under the choices as printed."""
    read = READINGS[name].read
    lab, scenario, times = report.lab, report.named["scenario"], report.named["every rtt"]

    def drawing() -> Figure:
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 3))
            for axes, rate in zip(figure.subplots(1, len(RATES)), RATES, strict=True):
                for system in NEW if scenario == FRIENDLY else SYSTEMS:
                    found = lab.runs([cell(lab, scenario, system, rate, rtt) for rtt in times], lab.pick(REPEATS[0], 2))
                    values = [[value for run in runs if (value := read(run)) is not None] for runs in found]
                    axes.plot(times, [fmean(v) if v else math.nan for v in values], "o-", markersize=3, label=system)
                axes.set_xscale("log")
                if log:
                    axes.set_yscale("log")
                axes.set_title(f"{rate} Mbit/s")
                axes.set_xlabel("round-trip time (ms)")
            figure.axes[0].set_ylabel(label_of(name))
            figure.axes[-1].legend(fontsize=7)
            figure.suptitle(title, fontsize=10)
            return figure

    report.draw = drawing
