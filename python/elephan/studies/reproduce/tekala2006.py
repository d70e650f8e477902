"""Tekala and Szabo 2006: throughput and fairness of Scalable TCP."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.api.summary import FlowSummary
from elephan.base.plots import STYLE, Figure
from elephan.studies.judge import Arm, Kind
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares
from elephan.studies.reproduce.lab import ONCE, Lab, number

# Rates under random loss vary by a fifth from run to run, and a run takes half a second.
RANDOM = (10, 40, 80)
WINDOW, LOSS, FAIRNESS = (Arm(f"tekala2006/{name}") for name in ("window", "loss", "fairness"))
PIPE = 1e9 * 0.1 / 12e3
ALPHA = 0.01
# The source discusses limited slow start and prints formulas of the other; it does not say which its simulations used. Nor does it say of
# which round-trip time its buffers are the product.
SETS = {
    "limited slow start": ("limited", "shortest"),
    "unlimited slow start": ("standard", "shortest"),
    "limited slow start, buffer of the longest round-trip time": ("limited", "longest"),
}
CHOICES = (
    "slow start: limited (RFC 3742, at most 100 segments) and unlimited, as two sets; no initial ssthresh.",
    "the buffer is the product of the rate and T_base, the shortest round-trip time of the flows; in a third set that of the longest.",
    "repeats: 5, 10 and 20, in all sets about 4 minutes of processor time for the first look at both tables.",
    "the flows start within 10 ms of each other, because exactly simultaneous starts have no randomness.",
    "adaptive RED has the parameters of Floyd, Gummadi and Shenker 2001, as ns-2 sets them.",
)


published = partial(number, "tekala2006")
# Of the equations, and simulations of their premises.
theory = partial(declares, partial(Chapter, shared={"kind": Kind.THEORY}, unit="1"), "tekala2006")
# Places where a theory is met.
within_10 = partial(Points, above=0.9, below=1.1)


@theory(
    "figure-4",
    "Window of one flow over time: exponential, then linear",
    "window",
    choices=(
        "initial ssthresh: 1000 packets.",
        "the flow has no legacy window and its window is not rounded, as in the equations.",
    ),
)
def figure_4(report: Chapter) -> None:
    """One flow at 1 Gbit/s and 100 ms compared with equations 6 to 12, and with smaller buffers."""
    report.looks = ONCE
    report.claim(
        "T01",
        "In congestion avoidance the window grows exponentially until it fills the pipe, and then linearly while the queue fills "
        "(sections 3.2.2 and 4.1, figure 4).",
        "the flow of figure 4",
        "median growth of the logarithm of the window below the pipe, and of the window above it, over equations 9 and 11",
        "1: the equations, within 10 %",
        within_10(
            "below the pipe, over alpha/T", lambda run: _growth(run, 1100, 0.95 * PIPE, np.log) / (ALPHA / 0.1)
        ).at(arm=WINDOW),
        within_10(
            "above the pipe, over alpha mu", lambda run: _growth(run, 1.02 * PIPE, math.inf) / (ALPHA * PIPE / 0.1)
        ).at(arm=WINDOW),
    )
    report.claim(
        "T02",
        "If the buffer is at least 1 - beta of the largest window, the queue never empties and the link stays full (section 3.2.3).",
        "the flow of figure 4 after its first loss, over buffers above and near this limit, which is 14.3 % of the product",
        "least utilisation of 100 ms after 40 s",
        "1, less the two packets of 8333 that the ends of a sample may cut",
        Points("buffer {size}", _least_used, above=1 - 2 / 8333).at(
            size=("100% bdp", "50% bdp", "20% bdp"), arm=lambda at: WINDOW.set({"path.buffer": at["size"]})
        ),
    )

    def draw() -> Figure:
        ((run,),) = report.lab.runs([WINDOW], 1)
        time, window = _window(run)
        theory = np.array(_core.tekala_window(time.tolist(), ALPHA, 0.875, PIPE / 0.1, 0.1, PIPE, 1000.0))
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(7, 3))
            axes = figure.subplots()
            axes.plot(time, window, label="simulated")
            axes.plot(time, theory, "--", label="equations 6 to 12, corrected")
            axes.set(
                xlabel="time (s)", ylabel="cwnd (packets)", title="Tekala and Szabó 2006, figure 4: 1 Gbit/s, 100 ms"
            )
            axes.legend()
            return figure

    report.draw = draw


def _window(run: Run) -> Sequence[npt.NDArray[np.float64]]:
    """Times, and the window at each."""
    return [run.flows[column].to_numpy() for column in ("time_s", "cwnd_segments")]


def _growth(run: Run, low: float, high: float, of: Callable[..., npt.NDArray[np.float64]] = np.asarray) -> float:
    """Median growth in a second of what is `of` the window, where it is between these sizes and grows."""
    time, window = _window(run)
    slopes = np.diff(of(window)) / np.diff(time)
    return float(np.median(slopes[(window[1:] > low) & (window[1:] < high) & (slopes > 0)]))


def _least_used(run: Run) -> float:
    late = run.queues.filter((pl.col("link") == "bottleneck") & (pl.col("time_s") > 40))
    return float(late["utilisation"].to_numpy().min())


@theory(
    "figure-6",
    "Throughput of two flows under random loss",
    "loss",
    choices=(
        "repeats: up to 80.",
        "initial ssthresh: 500 packets, and the first 10 s are left out, because equation 24 is of the steady state; the source averages all of its 100 s.",
        "the buffer is the product of the rate and 30 ms; the source has one that is large enough.",
    ),
)
def figure_6(report: Chapter) -> None:
    """Two flows with 30 and 56 ms at q = 1.5e-4 compared with equation 24."""
    report.arm, report.looks = lambda *_: LOSS, RANDOM

    def equation(at: Point) -> float:
        return _core.tekala_random_rate(ALPHA, 0.875, 1.5e-4, at["rtt"] / 1e3, 0.0)[0] * 12e3 / 1e6

    def rate(at: Point, run: Run) -> float:
        # Packets of 1500 bytes carry 1460.
        return run.summary.flows[at["flow"]].goodput_bit_s * 1500 / 1460 / 1e6

    flows = {"flow rtt": ((0, 30), (1, 56)), "printed": equation}
    report.rows("throughput, equation 24", "Mbit/s", Points("{rtt} ms", rate, "point").at(flows))
    report.claim(
        "T03",
        "Under random loss a flow's rate is alpha (1 + beta)/(2 q T (1 - beta)), inversely proportional to its round-trip time; simulation and "
        "analysis are almost identical (equation 24, figures 5 and 6).",
        "two flows with 30 and 56 ms at a loss rate of 1.5e-4, which do not fill the link",
        "rate over equation 24, and ratio of the rates over that of the round-trip times",
        "1: the equation, within 10 %; the source draws the rates and prints none",
        within_10("{rtt} ms", lambda at, run: rate(at, run) / at["printed"], "point").at(flows),
        within_10(
            "ratio of the rates over 56/30", lambda run: rate({"flow": 0}, run) / rate({"flow": 1}, run) / (56 / 30)
        ),
    )


def rtts_ms(base: int, n: int) -> list[int]:
    """The round-trip times of a set of flows: T_i = (i + 1) T_base - 4 i."""
    return [(i + 1) * base - 4 * i for i in range(n)]


def arm_of(base: int, n: int, queue: str, slow_start: str, buffer: str = "shortest") -> Arm:
    """A set of `n` flows. `buffer`: it is the product of the rate and the shortest or the longest round-trip time of them."""
    start = 'start = { uniform = ["0 s", "10 ms"] }'
    flows = [
        f'{{ cc = "scalable", rtt = "{rtt} ms", slow_start = "{slow_start}", {start} }}' for rtt in rtts_ms(base, n)
    ]
    arm = FAIRNESS.set({"path.rtt": f"{base} ms", "path.queue": queue, "flow": f"[{', '.join(flows)}]"})
    if buffer == "shortest":
        return arm
    return arm.set({"path.buffer": f"{rtts_ms(base, n)[-1] * 1_000_000 // 12_000} packets"})


def _slope(of: Callable[[FlowSummary, int], tuple[float | None, float | None]], at: Point, run: Run) -> float | None:
    """The slope of the logarithm of the second thing `of` a flow and its round-trip time in ms over that of the first.

    Flows for which one of them is zero or none are left out; None if fewer than two remain.
    """
    things = [of(flow, rtt) for flow, rtt in zip(run.summary.flows, rtts_ms(at["base"], at["n"]), strict=True)]
    pairs = [(x, y) for x, y in things if x and y]
    if len(pairs) < 2:
        return None
    logarithms = np.log(np.array(pairs, float))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def _first(run: Run) -> float:
    rates = [flow.goodput_bit_s for flow in run.summary.flows]
    return rates[0] / sum(rates)


def fairness(lab: Lab) -> Chapter:
    """A report on sets of `n` flows with a shortest round-trip time of `base` ms through a `queue`."""
    return Chapter(
        lab,
        arm=lambda chosen, at: arm_of(at["base"], at["n"], at["queue"], *SETS[chosen]),
        readings={"first": Reading(_first), "jain": Reading(lambda run: run.summary.jain or math.nan)},
        named={"every base": lab.pick((30, 60, 100), (30, 100)), "every n": lab.pick((3, 5, 8), (3, 8))},
        under=partial(Sets, tuple(SETS)),
        unit="1",
    )


of_flows = partial(declares, fairness, "tekala2006")
IN_SET, EVERY_SET = "{n} flows, T_base {base} ms", {"base": "every base", "n": "every n"}


def _rows(report: Chapter, table: str, queue: str) -> None:
    """The numbers of a table beside those of each set."""

    def printed(at: Point) -> float:
        return published(table, f"T_base={at['base']} ms, {at['n']} flows")

    each = Points(IN_SET, "jain").at(EVERY_SET, queue=queue, printed=printed)
    for chosen in SETS:
        rows = report.compare(f"Jain's index, {chosen}", "1", report.quantities(each, chosen)).rows
        within = sum(row.agrees is True for row in rows)
        report.notes.append(f"With {chosen} {within} of the {len(rows)} indices of {table} lie within the band.")
    report.rows(
        "Jain's index of rates in proportion to 1/T",
        "1",
        Points(IN_SET, _jain_of_inverse, "exact").at(EVERY_SET, printed=printed),
        kind=Kind.FORMULA,
        reason="the source's own rule, equation 18 without queueing delay, does not give its own indices.",
    )


def _jain_of_inverse(at: Point) -> float:
    rates = 1 / np.array(rtts_ms(at["base"], at["n"]))
    return float(rates.sum() ** 2 / (at["n"] * (rates**2).sum()))


# Rates that do not depend on the round-trip time, and those of additive increase with synchronised losses.
NEAREST = "nearer to -1 than to 0 (no dependence) or -2 (additive increase with synchronised losses): from -1.5 to -0.5"


@of_flows("table-1", "Fairness of flows of different round-trip times, DropTail", "fairness", choices=CHOICES)
def table_1(report: Chapter) -> None:
    """Nine sets of flows."""
    tail = {**EVERY_SET, "queue": "droptail"}
    _rows(report, "Table 1", "droptail")
    report.claim(
        "T04",
        "With DropTail the flow with the shortest round-trip time suppresses all others (sections 4.3 and 5, figure 8, Table 1).",
        "the nine sets of Table 1",
        "share of the first flow in the goodput of all",
        "one half: more than all others together. The indices are rows above.",
        Points(IN_SET, "first", above=0.5).at(tail),
        tried="limited and unlimited slow start, and the buffer of the longest round-trip time instead of the shortest.",
        means="How far the first flow suppresses the others depends on the buffer: queueing delay makes round-trip times alike. The source does not "
        "say of which round-trip time its buffer is the product; its indices are nearer to ours with the shortest.",
    )
    over_srtt = partial(_slope, lambda flow, _: (flow.srtt_mean_s, flow.goodput_bit_s))
    report.claim(
        "T08",
        "The throughput of several flows with synchronised losses is inversely proportional to their mean round-trip time (sections 1, 3.2.4 "
        "and 5, equation 18).",
        "the nine sets with DropTail, of which the equation is derived. Of random loss see T03, of adaptive RED T06.",
        "slope of the logarithm of the rates over that of the mean round-trip times, of flows that carried anything",
        NEAREST,
        Points(IN_SET, over_srtt, "point", above=-1.5, below=-0.5).at(tail),
        kind=Kind.THEORY,
        tried="limited and unlimited slow start, and buffers of the shortest and of the longest round-trip time.",
        means="The rule holds where each flow loses at random (T03). With DropTail all lose together, and windows that grow in proportion to "
        "themselves then never become alike, which equation 18 takes for granted. Table 1 itself contradicts it: see the indices of 1/T above.",
    )


@of_flows("table-2", "Fairness of flows of different round-trip times, adaptive RED", "fairness", choices=CHOICES)
def table_2(report: Chapter) -> None:
    """The same nine sets."""
    red = "adaptive-red"
    _rows(report, "Table 2", red)
    report.claim(
        "T05",
        "In every case adaptive RED shares the link better than DropTail (section 4.3, Tables 1 and 2).",
        "the nine sets",
        "Jain's index with adaptive RED, minus that with DropTail",
        "0: no better",
        Points(IN_SET, "jain, less").at(EVERY_SET).of(queue=(red, "droptail")),
        tried="limited and unlimited slow start, and buffers of the shortest and of the longest round-trip time.",
        means="It depends on the buffer, whose size the source leaves open: with that of the longest round-trip time the indices of DropTail are "
        "much nearer to those of adaptive RED, which the buffer does not change (rows of Tables 1 and 2).",
    )
    windows = partial(_slope, lambda flow, rtt: (rtt, flow.cwnd_mean_segments))
    rates = partial(_slope, lambda flow, rtt: (rtt, flow.goodput_bit_s))
    shortest = {"base": 30, "n": "every n", "queue": red}
    report.claim(
        "T06",
        "With adaptive RED flows of different round-trip times have similar windows, so rates proportional to 1/T (section 4.3, figures 9 and 10).",
        "the sets with T_base 30 ms, which the figures show; at 60 and 100 ms the printed indices themselves are far from those of 1/T (0.44 for 0.72)",
        "slopes of the logarithms of the mean windows and of the rates over that of the round-trip times",
        f"windows: nearer to 0 (alike) than to -1 or 1, from -0.5 to 0.5; rates: {NEAREST}",
        (
            Points(f"{IN_SET}, windows", windows, "point", above=-0.5, below=0.5).at(shortest),
            Points(f"{IN_SET}, rates", rates, "point", above=-1.5, below=-0.5).at(shortest),
        ),
        tried="limited and unlimited slow start.",
        means="Windows become alike only if they begin alike: what slow start leaves is still there after 100 s.",
    )
    (low, *_, high), (few, *_, many) = report.named.values()
    report.claim(
        "T07",
        "With adaptive RED the fairness of flows of different round-trip times falls with those (section 4.3); that it falls with the number of "
        "flows is read from Table 2.",
        "each row and each column of Table 2, its first and its last number alone: in between the table itself rises once (0.77 to 0.78 "
        "with 3 flows, 60 to 100 ms). That fairness stays poor (section 5) has no number to test.",
        "Jain's index of the first, minus that of the last",
        "0: it does not fall",
        Points(f"T_base {{base}} ms, {few} and {many} flows", "jain, less")
        .at(base="every base", queue=red)
        .of(n=(few, many)),
        Points(f"{{n}} flows, T_base {low} and {high} ms", "jain, less")
        .at(n="every n", queue=red)
        .of(base=(low, high)),
    )
