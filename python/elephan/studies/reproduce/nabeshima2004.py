"""Nabeshima and Yata 2004: convergence of HighSpeed TCP."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE
from elephan.studies.reproduce.judge import ALPHA, Arm, Claim, Kind, Place, Quantity, Time, interval
from elephan.studies.reproduce.lab import Lab, Report, experiment, figures
from elephan.studies.theory import Model

ALONE, BACKGROUND = "nabeshima2004/convergence", "nabeshima2004/background"
OLD, NEW = "hstcp", "hstcp-fc"
NAMES = {OLD: "HighSpeed TCP", NEW: "with the new mechanism"}
# The last flow starts at this time; its throughput is measured every 5 s.
JOIN_S, EVERY_S = 100, 5
# The source repeats each simulation 15 times.
LOOKS = (15, 30)
COUNTS, RATES_MBIT_S = (2, 4, 7, 10), (100, 250, 500, 1000)
CHOICES = (
    "access links: infinitely fast.",
    "the fair share of a flow: the link's payload rate over the number of HighSpeed TCP flows, with background too.",
    "length, chosen so that few times are cut off: 1200 s after the last flow's start with 2 flows and 800 s with more; with background 600 s. "
    "A time that was cut off counts as longer than that, not as a value.",
    "15 repeats, as in the source, and 30 where these decide nothing. The source averages times; medians and the log-rank test also "
    "take times that were cut off.",
)
POINTS = (
    "which points of the range, for our budget of processor time: 2, 4, 7 and 10 flows; 100, 250, 500 and 1000 Mbit/s."
)
LOAD = (
    "background: 20 flows of Standard TCP with windows of 8 packets and 50 web users (Kelly's model) in each direction; "
    "the source gives neither numbers nor its web model."
)


def _arm(cc: str, flows: int, rate_mbit_s: int, scenario: str = ALONE) -> Arm:
    after_s = 600 if scenario == BACKGROUND else 1200 if flows == 2 else 800
    return Arm(scenario).set(
        {
            "flow.0.cc": cc,
            "flow.1.cc": cc,
            "flow.0.count": f"{flows - 1}",
            "path.rate": f"{rate_mbit_s} Mbit/s",
            "duration": f"{JOIN_S + after_s} s",
        }
    )


def convergence(run: Run, flows: int, part: float = 1.0) -> Time:
    """The time from the last flow's start until its throughput over 5 s exceeds its share of the link, or a part of it."""
    document = run.scenario.document
    share_bit_s = _core.bits_per_second(document["path"]["rate"]) * 1448 / 1500 / flows
    steps = (
        run.flows.filter((pl.col("flow") == flows - 1) & (pl.col("time_s") > JOIN_S))
        .group_by(((pl.col("time_s") - JOIN_S) / EVERY_S).ceil().alias("step"))
        .agg(pl.col("goodput_bit_s").mean())
        .filter(pl.col("goodput_bit_s") > part * share_bit_s)["step"]
    )
    if len(steps):
        return Time(EVERY_S * float(steps.min()), seen=True)  # type: ignore[arg-type]
    return Time(run.summary.to_s - JOIN_S, seen=False)


def _halvings(run: Run) -> list[float]:
    """The times from the last flow's start at which the first flow's window was halved. HighSpeed TCP itself takes a quarter at most."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > JOIN_S))
    windows, at = frame["cwnd_segments"].to_list(), frame["time_s"].to_list()
    return [at[i] - JOIN_S for i in range(1, len(windows)) if windows[i] < 0.62 * windows[i - 1]]


def synchronisation(run: Run, flows: int) -> float | None:
    """The mean share of the first `flows` flows whose window falls in a congestion epoch: within a second of another one's fall."""
    frame = run.flows.filter((pl.col("flow") < flows) & (pl.col("time_s") > JOIN_S)).sort("flow", "time_s")
    falls = frame.filter(pl.col("cwnd_segments") < 0.95 * pl.col("cwnd_segments").shift(1).over("flow")).sort("time_s")
    epochs = falls.with_columns((pl.col("time_s").diff().fill_null(0) > 1.5).cum_sum().alias("epoch")).group_by("epoch")
    shares = epochs.agg(pl.col("flow").n_unique() / flows)["flow"]
    return float(shares.mean()) if len(shares) else None  # type: ignore[arg-type]


def _sooner(name: str, flows: tuple[int, int], first: Arm, second: Arm) -> Place:
    """That the last flow converges earlier in the first arm than in the second."""
    return Place(
        name,
        (first, second),
        lambda a, b: (convergence(a, flows[0]), convergence(b, flows[1])),
        above=0.5,
        statistic="earlier",
    )


def _more_synchronised(flows: int, first: Run, second: Run) -> float | None:
    one, other = synchronisation(first, flows), synchronisation(second, flows)
    return None if one is None or other is None else one - other


def _faster(scenario: str, points: Sequence[tuple[int, int]]) -> list[Place]:
    """That the new mechanism converges earlier at points of flows and rate."""
    return [
        _sooner(f"{n} flows, {rate} Mbit/s", (n, n), _arm(NEW, n, rate, scenario), _arm(OLD, n, rate, scenario))
        for n, rate in points
    ]


OF_MECHANISM = partial(Claim, oracle="Neither ns-2's distribution nor a Linux kernel has the mechanism.")
EARLIER = "the share of all pairs of runs in which the one converges before the other; log-rank test"
HALF = "one half: no difference. The source prints the times as a curve only"


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
    report.test(
        Claim(
            "N01",
            sentence="A second flow of the original HighSpeed TCP takes a long time to reach its fair allocation (section 2, figure 1).",
            population="two flows, 1 Gbit/s, 100 ms, buffer of half the product",
            statistic="median time from the second flow's start until its throughput over 5 s exceeds its share",
            bound=f"{last_s:g} s, within which figure 5 shows three halvings with the mechanism; for the original no number is printed",
        ),
        [Place(NAMES[OLD], (old,), lambda run: convergence(run, 2), above=last_s, unit="s", statistic="median")],
        LOOKS,
    )
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
    runs = [one[0] for one in lab.runs([old, new], 1)]
    report.draw = lambda: _windows(runs)
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
                below = [m - max(one.low, 0.0) for m, one in zip(middle, found.values(), strict=True)]
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
            population="2 to 10 flows at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
        ),
        _faster(ALONE, [(n, 1000) for n in counts]),
        LOOKS,
    )
    report.test(
        Claim(
            "N04",
            sentence="With HighSpeed TCP, convergence takes longer with fewer flows (section 4.2, figure 6).",
            population="neighbouring numbers of flows from 2 to 10 at 1 Gbit/s",
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
            population="2 flows against each other number up to 10, at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
        ),
        [_sooner(f"2 before {n} flows", (2, n), _arm(NEW, 2, 1000), _arm(NEW, n, 1000)) for n in counts[1:]],
        LOOKS,
    )
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
            population="2 to 10 flows at 1 Gbit/s",
            statistic=EARLIER,
            bound=HALF,
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
            population="both algorithms, 2 to 10 flows at 1 Gbit/s; the same starts of the flows with and without",
            statistic=f"{EARLIER}; the mean share of these flows whose windows fall in a congestion epoch (falls within 1 s of each other), with minus without",
            bound=f"{HALF}; 0: no difference",
        ),
        [
            *(_sooner(f"{NAMES[cc]}, {n} flows", (n, n), first, second) for cc, n, first, second in both),
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
        ),
        _faster(BACKGROUND, [(2, rate) for rate in rates]),
        LOOKS,
    )
    report.draw = _curves(lab, BACKGROUND, {rate: (2, rate) for rate in rates}, "bandwidth (Mbit/s)")
    return report
