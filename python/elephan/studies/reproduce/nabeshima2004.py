"""Nabeshima and Yata 2004: convergence of HighSpeed TCP."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.reproduce.judge import ALPHA, Arm, Claim, Kind, Place, Quantity, Time, interval
from elephan.studies.reproduce.lab import Lab, Report, experiment, figures
from elephan.studies.theory import Model

ALONE, BACKGROUND = "nabeshima2004/convergence", "nabeshima2004/background"
OLD, NEW = "hstcp", "hstcp-fc"
NAMES = {OLD: "HighSpeed TCP", NEW: "with the new mechanism"}
# The last flow starts at this time; its throughput is measured every 5 s.
JOIN_S, EVERY_S = 100, 5
# How long the runs go on after that, without and with background.
ALONE_S, BACKGROUND_S = 700, 300
# The source repeats each simulation 15 times.
LOOKS = (15, 30)
COUNTS, RATES_MBIT_S = (2, 4, 10), (100, 250, 500, 1000)
# Sets of background: none of their numbers is published.
LOADS: Mapping[str, Mapping[str, str]] = {
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
    "which points of the range, for our budget of processor time: 2, 4 and 10 flows; 100, 250, 500 and 1000 Mbit/s."
)
LOAD = (
    "background: 20 flows of Standard TCP with windows of 8 packets and 50 web users (Kelly's model) in each direction, and a quarter of it "
    "in Figure 9; the source gives neither numbers nor its web model."
)
THIS_LOAD = "The verdict is for this load of background: 20 flows and 50 web users in each direction"


def _arm(cc: str, flows: int, rate_mbit_s: int, scenario: str = ALONE) -> Arm:
    after_s = BACKGROUND_S if scenario == BACKGROUND else ALONE_S
    return Arm(scenario).set(
        {
            "flow.0.cc": cc,
            "flow.1.cc": cc,
            "flow.0.count": f"{flows - 1}",
            "path.rate": f"{rate_mbit_s} Mbit/s",
            "duration": f"{JOIN_S + after_s} s",
        }
    )


def convergence(run: Run, flows: int, part: float = 1.0, within_s: float = math.inf) -> Time:
    """The time from the last flow's start until its throughput over 5 s exceeds its share of the link, or a part of it.

    It is cut off at the end, or after `within_s`.
    """
    document = run.scenario.document
    share_bit_s = _core.bits_per_second(document["path"]["rate"]) * 1448 / 1500 / flows
    end_s = min(run.summary.to_s - JOIN_S, within_s)
    steps = (
        run.flows.filter((pl.col("flow") == flows - 1) & pl.col("time_s").is_between(JOIN_S, JOIN_S + end_s, "right"))
        .group_by(((pl.col("time_s") - JOIN_S) / EVERY_S).ceil().alias("step"))
        .agg(pl.col("goodput_bit_s").mean())
        .filter(pl.col("goodput_bit_s") > part * share_bit_s)["step"]
    )
    if len(steps):
        return Time(EVERY_S * float(steps.min()), seen=True)  # type: ignore[arg-type]
    return Time(end_s, seen=False)


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


def synchronisation(run: Run, flows: int) -> float | None:
    """The mean share of the first `flows` flows whose window falls in a congestion epoch, in the first 300 s after the last flow's start.

    An epoch is the sample in which a window falls and the next, a second later; a later fall begins another. Undefined without one.
    """
    frame = run.flows.filter(
        (pl.col("flow") < flows) & pl.col("time_s").is_between(JOIN_S, JOIN_S + BACKGROUND_S, "right")
    ).sort("flow", "time_s")
    falls = frame.filter(pl.col("cwnd_segments") < 0.95 * pl.col("cwnd_segments").shift(1).over("flow")).sort("time_s")
    begin_s, epochs = -math.inf, list[set[int]]()
    for flow, at_s in falls.select("flow", "time_s").iter_rows():
        if at_s > begin_s + 1.5:
            begin_s = at_s
            epochs.append(set())
        epochs[-1].add(flow)
    return sum(map(len, epochs)) / len(epochs) / flows if epochs else None


def _sooner(name: str, flows: tuple[int, int], first: Arm, second: Arm, within_s: float = math.inf) -> Place:
    """That the last flow converges earlier in the first arm than in the second."""
    return Place(
        name,
        (first, second),
        lambda a, b: (convergence(a, flows[0], within_s=within_s), convergence(b, flows[1], within_s=within_s)),
        above=0.5,
        statistic="earlier",
    )


def _more_synchronised(flows: int, first: Run, second: Run) -> float | None:
    one, other = synchronisation(first, flows), synchronisation(second, flows)
    return None if one is None or other is None else one - other


def _faster(scenario: str, points: Sequence[tuple[int, int]], load: Mapping[str, str] | None = None) -> list[Place]:
    """That the new mechanism converges earlier at points of flows and rate, with other numbers of background."""

    def arm(cc: str, n: int, rate: int) -> Arm:
        return _arm(cc, n, rate, scenario).set(dict(load or {}))

    return [_sooner(f"{n} flows, {rate} Mbit/s", (n, n), arm(NEW, n, rate), arm(OLD, n, rate)) for n, rate in points]


def _by_slow_start(lab: Lab, scenario: str, points: Mapping[str, tuple[int, int]]) -> str:
    """In how many runs the last flow exceeds its share before its window is reduced a second time, so by its slow start."""
    told = []
    repeats = lab.pick(LOOKS[0], 2)
    for cc, name in NAMES.items():
        runs = lab.runs([_arm(cc, n, rate, scenario) for n, rate in points.values()], repeats)
        counts = [sum(_at_once(run, n) for run in one) for (n, _), one in zip(points.values(), runs, strict=True)]
        told.append(
            f"{name}: {', '.join(f'{count} with {point}' for point, count in zip(points, counts, strict=True))}"
        )
    return f"Runs of {repeats} in which the last flow exceeds its share before its window is reduced a second time. {'; '.join(told)}."


def _at_once(run: Run, flows: int) -> bool:
    at = convergence(run, flows)
    until = (pl.col("flow") == flows - 1) & (pl.col("time_s") <= JOIN_S + at.seconds)
    return at.seen and run.flows.filter(until & (pl.col("congestion_events") > 1)).is_empty()


OF_MECHANISM = partial(Claim, oracle="Neither ns-2's distribution nor a Linux kernel has the mechanism.")
EARLIER = "the share of all pairs of runs in which the one converges before the other; log-rank test"
HALF = "one half: no difference. The source prints the times as a curve only"
IN_SLOW_START = (
    "The printed measure of convergence may be met by the last flow's slow start alone, before its window is reduced a second time, "
    "whatever the established flows do. The note counts these runs."
)


@experiment(
    "nabeshima2004/section-2", "Loss rate and recovery of Standard TCP at 7.2 Gbit/s; HighSpeed TCP's design point"
)
def section_2(lab: Lab) -> Report:
    """Formulas."""
    report, window = Report(lab), 7.2e9 * 0.1 / 12e3
    standard, high = Model("reno").core, Model("hstcp")
    recovery = standard.recovery(standard.peak(standard.loss(window, 0.1), 0.1), 0.1)
    for group, unit, metric, ours in (
        ("required loss rate", "1", "required loss rate", standard.loss(window, 0.1)),
        ("recovery from one loss, 7.2 Gbit/s on average", "RTT", "recovery from one loss", recovery),
        ("throughput at 1e-7", "Gbit/s", "design throughput", (high.response(1e-7, 0.1).published or 0) * 12e3 / 1e8),
    ):
        row = next(r for r in figures("nabeshima2004") if metric in r["metric"] and r["unit"] == unit)
        quantity = Quantity.exact(row["system"], float(row["value"]), ours)
        report.compare(group, unit, [quantity], kind=Kind.FORMULA, band=0.02)
    minutes = next(r for r in figures("nabeshima2004") if r["metric"] == "recovery from one loss, almost")
    quantity = Quantity.exact(minutes["system"], float(minutes["value"]), recovery * 0.1 / 60)
    report.compare(minutes["metric"], "min", [quantity], kind=Kind.FORMULA)
    return report


@experiment(
    "nabeshima2004/figure-5",
    "Windows of two flows with and without the new mechanism (figures 1 and 5)",
    ALONE,
    choices=(*CHOICES, "the first flow starts within the first 10 s, not at 0 s, so that repeats differ."),
)
def figure_5(lab: Lab) -> Report:
    """A flow that starts at 100 s beside an established flow."""
    report, old, new = Report(lab), _arm(OLD, 2, 1000), _arm(NEW, 2, 1000)

    def halved(number: int) -> Callable[[Run], Time]:
        def read(run: Run) -> Time:
            times = _halvings(run)
            return Time(times[number], True) if len(times) > number else Time(run.summary.to_s - JOIN_S, False)

        return read

    rows = [
        next(r for r in figures("nabeshima2004") if f"time of {number}" in r["metric"])
        for number in ("1st", "2nd", "3rd")
    ]
    group = "halvings of flow 1, from flow 2's start"
    exact = new.set({"flow.0.start": "0 s", "duration": "500 s"})
    for arm, looks, cause, changed in (
        (new, LOOKS, "", ""),
        (exact, (2,), group, "flow 1 starts at 0 s exactly, as in the figure"),
    ):
        quantities = [
            Quantity(f"number {i + 1}", float(row["value"]) - JOIN_S, None, (arm,), halved(i), "median")
            for i, row in enumerate(rows)
        ]
        shown = f"{group}, flow 1 at 0 s" if cause else group
        report.compare(shown, "s", quantities, looks=looks, cause_of=cause, changed=changed)
    last_s = float(rows[-1]["value"]) - JOIN_S
    report.untestable(
        "N01",
        "the source gives no measure of a long time. The comparison that it makes, with the mechanism, is N02; the times are in a note.",
    )
    runs = lab.runs([old, new], lab.pick(LOOKS[0], 2))
    times = [interval([convergence(run, 2) for run in one], "median", ALPHA).text for one in runs]
    told = "; ".join(f"{name}: {time}" for name, time in zip(NAMES.values(), times, strict=True))
    report.notes.append(f"Median time in s until flow 2 has its share, of {ALONE_S} s at most. {told}.")
    report.test(
        OF_MECHANISM(
            "N02",
            sentence="With the mechanism flow 1 reduces its window more than usual, and the second flow converges much faster (section 4.2, figures 1 and 5).",
            population="two flows, 1 Gbit/s, 100 ms, buffer of half the product",
            statistic=f"halvings of flow 1 in {last_s:g} s, with the mechanism minus without; {EARLIER}",
            bound="0, and one half: no difference",
        ),
        [
            Place(
                "halvings of flow 1",
                (new, old),
                lambda a, b: sum(t <= last_s for t in _halvings(a)) - sum(t <= last_s for t in _halvings(b)),
                above=0.0,
            ),
            _sooner("convergence of flow 2", (2, 2), new, old),
        ],
        LOOKS,
    )
    report.draw = lambda: _windows([one[0] for one in runs])
    return report


def _windows(runs: Sequence[Run]) -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3))
        titles = ("figure 1: HighSpeed TCP", "figure 5: with the mechanism")
        for axes, run, title in zip(figure.subplots(1, 2, sharey=True), runs, titles, strict=True):
            for flow in (0, 1):
                one = run.flows.filter((pl.col("flow") == flow) & (pl.col("time_s") <= 400))
                axes.plot(one["time_s"], one["cwnd_segments"], label=f"flow {flow + 1}")
            axes.set_title(title)
            axes.set_xlabel("time (s)")
        figure.axes[0].set_ylabel("cwnd (packets)")
        figure.axes[0].legend()
        return figure


def _curves(lab: Lab, scenario: str, points: Mapping[int, tuple[int, int]], label: str) -> Callable[[], Figure]:
    """Median times by what varies, for both algorithms; an arrow where half of the runs or more did not converge."""
    arms = [_arm(cc, n, rate, scenario) for cc in NAMES for n, rate in points.values()]
    runs = iter(lab.runs(arms, lab.pick(LOOKS[0], 2)))
    times = {
        (cc, x): [convergence(run, n) for run in next(runs)] for cc in NAMES for x, (n, _) in points.items()
    }  # fmt: skip

    def draw() -> Figure:
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(5.5, 3))
            axes = figure.subplots()
            for cc, name in NAMES.items():
                found = {x: interval(times[cc, x], "median", ALPHA) for x in points}
                end = {x: max(time.seconds for time in times[cc, x]) for x in points}
                middle = [min(one.value, end[x]) for x, one in found.items()]
                # Where hardly any converged, even the lower end is beyond the end.
                below = [max(m - max(one.low, 0.0), 0.0) for m, one in zip(middle, found.values(), strict=True)]
                above = [min(one.high, end[x]) - m for m, (x, one) in zip(middle, found.items(), strict=True)]
                drawn = axes.errorbar(
                    list(points), middle, [below, above], fmt="o-", markersize=4, capsize=2, label=name
                )
                cut = [(x, end[x]) for x, one in found.items() if one.value > end[x]]
                colour = drawn.lines[0].get_color()
                axes.plot([x for x, _ in cut], [y for _, y in cut], "^", markersize=8, color=colour)
            axes.set_xlabel(label)
            axes.set_ylabel("median convergence time (s)")
            axes.set_ylim(bottom=0)
            axes.legend()
            return figure

    return draw


@experiment(
    "nabeshima2004/figure-6", "Convergence time by number of flows", ALONE, choices=(*CHOICES, POINTS)
)  # fmt: skip
def figure_6(lab: Lab) -> Report:
    """2 to 10 flows at 1 Gbit/s."""
    report, counts = Report(lab), lab.pick(COUNTS, (2, 10))
    report.test(
        OF_MECHANISM(
            "N03",
            sentence="Without background, the mechanism converges faster than HighSpeed TCP whatever the number of flows (section 4.2, figure 6).",
            population="2, 4 and 10 flows at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
            means=IN_SLOW_START,
        ),
        _faster(ALONE, [(n, 1000) for n in counts]),
        LOOKS,
    )
    report.test(
        Claim(
            "N04",
            sentence="With HighSpeed TCP, convergence takes longer with fewer flows (section 4.2, figure 6).",
            population="2 flows against 4, and 4 against 10, at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
        ),
        [
            _sooner(f"{more} before {few} flows", (more, few), _arm(OLD, more, 1000), _arm(OLD, few, 1000))
            for few, more in pairwise(counts)
        ],
        LOOKS,
    )
    report.test(
        OF_MECHANISM(
            "N05",
            sentence="With the mechanism, convergence is fastest with two flows in total (section 4.2, figure 6).",
            population="2 flows against 4 and against 10, at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
            means=IN_SLOW_START,
        ),
        [_sooner(f"2 before {n} flows", (2, n), _arm(NEW, 2, 1000), _arm(NEW, n, 1000)) for n in counts[1:]],
        LOOKS,
    )
    report.notes.append(_by_slow_start(lab, ALONE, {f"{n} flows": (n, 1000) for n in counts}))
    report.draw = _curves(lab, ALONE, {n: (n, 1000) for n in counts}, "flows")
    return report


@experiment(
    "nabeshima2004/figure-7", "Convergence time of two flows by bandwidth", ALONE, choices=(*CHOICES, POINTS)
)  # fmt: skip
def figure_7(lab: Lab) -> Report:
    """100 Mbit/s to 1 Gbit/s."""
    report, rates = Report(lab), lab.pick(RATES_MBIT_S, (100, 250))
    report.test(
        OF_MECHANISM(
            "N06",
            sentence="Without background, the mechanism converges faster than HighSpeed TCP whatever the bandwidth (section 4.2, figure 7).",
            population="two flows at 100 Mbit/s to 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
            tried="Nine tenths of the share instead of all of it (see the note).",
            means="A flow that stays just below its share has not converged by the printed measure; the note has the times until nine tenths of the share.",
        ),
        _faster(ALONE, [(2, rate) for rate in rates]),
        LOOKS,
    )
    report.notes.append(_nearly(lab, rates))
    report.draw = _curves(lab, ALONE, {rate: (2, rate) for rate in rates}, "bandwidth (Mbit/s)")
    return report


def _nearly(lab: Lab, rates: Sequence[int]) -> str:
    """The median times until nine tenths of the share: the mechanism may leave a flow just below its share for long."""
    told = []
    for cc, name in NAMES.items():
        runs = lab.runs([_arm(cc, 2, rate) for rate in rates], lab.pick(LOOKS[0], 2))
        times = [interval([convergence(run, 2, 0.9) for run in one], "median", ALPHA) for one in runs]
        shown = ", ".join(f"{one.text} at {rate} Mbit/s" for rate, one in zip(rates, times, strict=True))
        told.append(f"{name}: {shown}")
    return f"Median time in s until the last flow has nine tenths of its share. {'; '.join(told)}."


@experiment(
    "nabeshima2004/figure-8",
    "Convergence time by number of flows, with background traffic",
    BACKGROUND,
    choices=(*CHOICES, POINTS, LOAD),
    quick=False,
)
def figure_8(lab: Lab) -> Report:
    """Web traffic and window-limited flows in both directions."""
    report, counts = Report(lab), lab.pick(COUNTS, (2,))
    report.test(
        OF_MECHANISM(
            "N07",
            sentence="With background, the mechanism converges faster than HighSpeed TCP whatever the number of flows (section 4.3, figure 8).",
            population="2, 4 and 10 flows at 1 Gbit/s",
            statistic=EARLIER,
            bound=f"{HALF}. {THIS_LOAD}",
            tried="A quarter of this background, with two flows: a set of N09.",
            means=IN_SLOW_START,
        ),
        _faster(BACKGROUND, [(n, 1000) for n in counts]),
        LOOKS,
    )
    both = [(cc, n, _arm(cc, n, 1000, BACKGROUND), _arm(cc, n, 1000)) for cc in NAMES for n in counts]
    report.test(
        OF_MECHANISM(
            "N08",
            sentence="Convergence is faster with background than without, because background reduces global synchronisation of losses "
            "(section 4.3, figures 6 and 8).",
            population="both algorithms, 2, 4 and 10 flows at 1 Gbit/s; the same starts of the flows with and without",
            statistic=f"{EARLIER}; the mean share of these flows whose windows fall in a congestion epoch (within 1 s of its first fall), with minus without; "
            f"both in the first {BACKGROUND_S} s from the last flow's start",
            bound=f"{HALF}; 0: no difference. {THIS_LOAD}",
            means=IN_SLOW_START,
        ),
        [
            *(_sooner(f"{NAMES[cc]}, {n} flows", (n, n), first, second, BACKGROUND_S) for cc, n, first, second in both),
            *(
                Place(
                    f"synchronisation, {NAMES[cc]}, {n} flows",
                    (first, second),
                    partial(_more_synchronised, n),
                    below=0.0,
                )
                for cc, n, first, second in both
            ),
        ],
        LOOKS,
    )
    report.notes.append(_by_slow_start(lab, BACKGROUND, {f"{n} flows": (n, 1000) for n in counts}))
    report.draw = _curves(lab, BACKGROUND, {n: (n, 1000) for n in counts}, "flows")
    return report


@experiment(
    "nabeshima2004/figure-9",
    "Convergence time of two flows by bandwidth, with background traffic",
    BACKGROUND,
    choices=(*CHOICES, POINTS, LOAD),
    quick=False,
)
def figure_9(lab: Lab) -> Report:
    """100 Mbit/s to 1 Gbit/s with background."""
    report, rates = Report(lab), lab.pick(RATES_MBIT_S, (100, 250))
    report.test(
        OF_MECHANISM(
            "N09",
            sentence="With background, the mechanism converges faster than HighSpeed TCP whatever the bandwidth (section 4.3, figure 9).",
            population="two flows at 100 Mbit/s to 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
            tried="A quarter of the background.",
            means=IN_SLOW_START,
        ),
        {name: _faster(BACKGROUND, [(2, rate) for rate in rates], load) for name, load in LOADS.items()},
        LOOKS,
    )
    report.notes.append(_by_slow_start(lab, BACKGROUND, {f"{rate} Mbit/s": (2, rate) for rate in rates}))
    report.draw = _curves(lab, BACKGROUND, {rate: (2, rate) for rate in rates}, "bandwidth (Mbit/s)")
    return report
