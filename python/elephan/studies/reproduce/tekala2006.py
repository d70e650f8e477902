"""Tekala and Szabo 2006: throughput and fairness of Scalable TCP."""

import math
from collections.abc import Callable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.api.summary import FlowSummary
from elephan.base.plots import STYLE, Figure
from elephan.studies.reproduce.judge import Arm, Claim, Kind, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed

# Rates under random loss vary by a fifth from run to run, and a run takes half a second.
RANDOM = (10, 40, 80)
WINDOW, LOSS, FAIRNESS = (f"tekala2006/{name}" for name in ("window", "loss", "fairness"))
# Nothing in these runs is random, so the second says what all others would.
FIXED = (2,)
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


@experiment(
    "tekala2006/figure-4",
    "Window of one flow over time: exponential, then linear",
    WINDOW,
    choices=(
        "initial ssthresh: 1000 packets.",
        "the flow has no legacy window and its window is not rounded, as in the equations.",
    ),
)
def figure_4(lab: Lab) -> Report:
    """One flow at 1 Gbit/s and 100 ms compared with equations 6 to 12, and with smaller buffers."""
    report, arm = Report(lab), Arm(WINDOW)
    report.test(
        Claim(
            "T01",
            sentence="In congestion avoidance the window grows exponentially until it fills the pipe, and then linearly while the queue fills "
            "(sections 3.2.2 and 4.1, figure 4).",
            population="the flow of figure 4",
            statistic="median growth of the logarithm of the window below the pipe, and of the window above it, over equations 9 and 11",
            bound="1: the equations, within 10 %",
            kind=Kind.THEORY,
        ),
        [
            Place("below the pipe, over alpha/T", (arm,), _exponential, above=0.9, below=1.1, unit="1"),
            Place("above the pipe, over alpha mu", (arm,), _linear, above=0.9, below=1.1, unit="1"),
        ],
        looks=FIXED,
    )
    report.test(
        Claim(
            "T02",
            sentence="If the buffer is at least 1 - beta of the largest window, the queue never empties and the link stays full "
            "(section 3.2.3).",
            population="the flow of figure 4 after its first loss, over buffers above and near this limit, which is 14.3 % of the product",
            statistic="least utilisation of 100 ms after 40 s",
            bound="1, less the two packets of 8333 that the ends of a sample may cut",
            kind=Kind.THEORY,
        ),
        [
            Place(f"buffer {buffer}", (arm.set({"path.buffer": buffer}),), _least_used, above=1 - 2 / 8333, unit="1")
            for buffer in ("100% bdp", "50% bdp", "20% bdp")
        ],
        looks=FIXED,
    )

    def draw() -> Figure:
        ((run,),) = lab.runs([arm], 1)
        time, window = (run.flows[c].to_numpy() for c in ("time_s", "cwnd_segments"))
        theory = np.array(_core.tekala_window(time.tolist(), ALPHA, 0.875, PIPE / 0.1, 0.1, PIPE, 1000.0))
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(7, 3))
            axes = figure.subplots()
            axes.plot(time, window, label="simulated")
            axes.plot(time, theory, "--", label="equations 6 to 12, corrected")
            axes.set_xlabel("time (s)")
            axes.set_ylabel("cwnd (packets)")
            axes.set_title("Tekala and Szabó 2006, figure 4: 1 Gbit/s, 100 ms")
            axes.legend()
            return figure

    report.draw = draw
    return report


def _exponential(run: Run) -> float:
    """Median growth of ln(cwnd) well below the pipe, over alpha/T."""
    time, window = (run.flows[c].to_numpy() for c in ("time_s", "cwnd_segments"))
    slopes = np.diff(np.log(window)) / np.diff(time)
    below = (window[1:] > 1100) & (window[1:] < 0.95 * PIPE) & (slopes > 0)
    return float(np.median(slopes[below])) / (ALPHA / 0.1)


def _linear(run: Run) -> float:
    """Median growth of cwnd above the pipe, over alpha mu."""
    time, window = (run.flows[c].to_numpy() for c in ("time_s", "cwnd_segments"))
    steps = np.diff(window) / np.diff(time)
    return float(np.median(steps[(window[1:] > 1.02 * PIPE) & (steps > 0)])) / (ALPHA * PIPE / 0.1)


def _least_used(run: Run) -> float:
    late = run.queues.filter((pl.col("link") == "bottleneck") & (pl.col("time_s") > 40))
    return float(late["utilisation"].to_numpy().min())


@experiment(
    "tekala2006/figure-6",
    "Throughput of two flows under random loss",
    LOSS,
    choices=(
        "repeats: up to 80.",
        "initial ssthresh: 500 packets, and the first 10 s are left out, because equation 24 is of the steady state; the source averages all "
        "of its 100 s.",
        "the buffer is the product of the rate and 30 ms; the source has one that is large enough.",
    ),
)
def figure_6(lab: Lab) -> Report:
    """Two flows with 30 and 56 ms at q = 1.5e-4 compared with equation 24."""
    report, arm = Report(lab), Arm(LOSS)
    rtts = (30, 56)
    theory = [_core.tekala_random_rate(ALPHA, 0.875, 1.5e-4, rtt / 1e3, 0.0)[0] * 12e3 / 1e6 for rtt in rtts]

    def rate(number: int) -> Callable[[Run], float]:
        # Packets of 1500 bytes carry 1460.
        return lambda run: run.summary.flows[number].goodput_bit_s * 1500 / 1460 / 1e6

    report.compare(
        "throughput, equation 24",
        "Mbit/s",
        [Quantity(f"{rtt} ms", theory[i], None, (arm,), rate(i)) for i, rtt in enumerate(rtts)],
        kind=Kind.THEORY,
        looks=RANDOM,
    )
    report.test(
        Claim(
            "T03",
            sentence="Under random loss a flow's rate is alpha (1 + beta)/(2 q T (1 - beta)), inversely proportional to its round-trip time; simulation and "
            "analysis are almost identical (equation 24, figures 5 and 6).",
            population="two flows with 30 and 56 ms at a loss rate of 1.5e-4, which do not fill the link",
            statistic="rate over equation 24, and ratio of the rates over that of the round-trip times",
            bound="1: the equation, within 10 %; the source draws the rates and prints none",
            kind=Kind.THEORY,
        ),
        [
            *(
                Place(
                    f"{rtt} ms",
                    (arm,),
                    lambda run, i=i: rate(i)(run) / theory[i],
                    above=0.9,
                    below=1.1,
                    unit="1",
                )
                for i, rtt in enumerate(rtts)
            ),
            Place(
                "ratio of the rates over 56/30",
                (arm,),
                lambda run: rate(0)(run) / rate(1)(run) / (56 / 30),
                above=0.9,
                below=1.1,
                unit="1",
            ),
        ],
        looks=RANDOM,
    )
    return report


def rtts_ms(base: int, n: int) -> list[int]:
    """The round-trip times of a set of flows: T_i = (i + 1) T_base - 4 i."""
    return [(i + 1) * base - 4 * i for i in range(n)]


def arm_of(base: int, n: int, queue: str, slow_start: str, buffer: str = "shortest") -> Arm:
    """A set of `n` flows. `buffer`: it is the product of the rate and the shortest or the longest round-trip time of them."""
    start = 'start = { uniform = ["0 s", "10 ms"] }'
    flows = [
        f'{{ cc = "scalable", rtt = "{rtt} ms", slow_start = "{slow_start}", {start} }}' for rtt in rtts_ms(base, n)
    ]
    arm = Arm(FAIRNESS).set({"path.rtt": f"{base} ms", "path.queue": queue, "flow": f"[{', '.join(flows)}]"})
    if buffer == "shortest":
        return arm
    return arm.set({"path.buffer": f"{rtts_ms(base, n)[-1] * 1_000_000 // 12_000} packets"})


def _cells(lab: Lab) -> list[tuple[int, int]]:
    return [(base, n) for base in lab.pick((30, 60, 100), (30, 100)) for n in lab.pick((3, 5, 8), (3, 8))]


def _jain(run: Run) -> float:
    return run.summary.jain or math.nan


def _rows(lab: Lab, report: Report, table: str, queue: str) -> None:
    """The numbers of a table beside those of each set."""
    values = {
        (base, n): value
        for base, n in _cells(lab)
        for value, _ in printed("tekala2006", table, f"T_base={base} ms, {n} flows").values()
    }
    for name, choices in SETS.items():
        rows = [
            Quantity(_name(base, n), value, None, (arm_of(base, n, queue, *choices),), _jain)
            for (base, n), value in values.items()
        ]
        made = report.compare(f"Jain's index, {name}", "1", rows)
        within = sum(row.agrees is True for row in made.rows)
        report.notes.append(f"With {name} {within} of the {len(rows)} indices of {table} lie within the band.")
    report.compare(
        "Jain's index of rates in proportion to 1/T",
        "1",
        [Quantity.exact(_name(base, n), value, _jain_of_inverse(base, n)) for (base, n), value in values.items()],
        kind=Kind.FORMULA,
        reason="the source's own rule, equation 18 without queueing delay, does not give its own indices.",
    )


def _jain_of_inverse(base: int, n: int) -> float:
    rates = 1 / np.array(rtts_ms(base, n))
    return float(rates.sum() ** 2 / (n * (rates**2).sum()))


def _name(base: int, n: int) -> str:
    return f"{n} flows, T_base {base} ms"


def _in_all(places: Callable[[str, str], Sequence[Place]]) -> Mapping[str, Sequence[Place]]:
    return {name: places(*choices) for name, choices in SETS.items()}


def _slope(
    of: Callable[[FlowSummary, int], tuple[float | None, float | None]], base: int, n: int
) -> Callable[[Run], float | None]:
    """Reads the slope of the logarithm of the second thing `of` a flow and its round-trip time in ms over that of the first.

    Flows for which one of them is zero or none are left out; None if fewer than two remain.
    """

    def read(run: Run) -> float | None:
        things = [of(flow, rtt) for flow, rtt in zip(run.summary.flows, rtts_ms(base, n), strict=True)]
        pairs = [(x, y) for x, y in things if x and y]
        if len(pairs) < 2:
            return None
        logarithms = np.log(np.array(pairs, float))
        return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])

    return read


# Rates that do not depend on the round-trip time, and those of additive increase with synchronised losses.
NEAREST = "nearer to -1 than to 0 (no dependence) or -2 (additive increase with synchronised losses): from -1.5 to -0.5"


@experiment(
    "tekala2006/table-1", "Fairness of flows of different round-trip times, DropTail", FAIRNESS, choices=CHOICES
)
def table_1(lab: Lab) -> Report:
    """Nine sets of flows."""
    report = Report(lab)
    _rows(lab, report, "Table 1", "droptail")
    report.test(
        Claim(
            "T04",
            sentence="With DropTail the flow with the shortest round-trip time suppresses all others (sections 4.3 and 5, figure 8, Table 1).",
            population="the nine sets of Table 1",
            statistic="share of the first flow in the goodput of all",
            bound="one half: more than all others together. The indices are rows above.",
            tried="limited and unlimited slow start, and the buffer of the longest round-trip time instead of the shortest.",
            means="How far the first flow suppresses the others depends on the buffer: queueing delay makes round-trip times alike. The source does not "
            "say of which round-trip time its buffer is the product; its indices are nearer to ours with the shortest.",
        ),
        _in_all(
            lambda *choices: [
                Place(_name(base, n), (arm_of(base, n, "droptail", *choices),), _first, above=0.5, unit="1")
                for base, n in _cells(lab)
            ]
        ),
    )
    report.test(
        Claim(
            "T08",
            sentence="The throughput of several flows with synchronised losses is inversely proportional to their mean round-trip time (sections 1, 3.2.4 "
            "and 5, equation 18).",
            population="the nine sets with DropTail, of which the equation is derived. Of random loss see T03, of adaptive RED T06.",
            statistic="slope of the logarithm of the rates over that of the mean round-trip times, of flows that carried anything",
            bound=NEAREST,
            kind=Kind.THEORY,
            tried="limited and unlimited slow start, and buffers of the shortest and of the longest round-trip time.",
            means="The rule holds where each flow loses at random (T03). With DropTail all lose together, and windows that grow in proportion to "
            "themselves then never become alike, which equation 18 takes for granted. Table 1 itself contradicts it: see the indices of 1/T above.",
        ),
        _in_all(
            lambda *choices: [
                Place(
                    _name(base, n),
                    (arm_of(base, n, "droptail", *choices),),
                    _slope(lambda flow, _: (flow.srtt_mean_s, flow.goodput_bit_s), base, n),
                    above=-1.5,
                    below=-0.5,
                    unit="1",
                )
                for base, n in _cells(lab)
            ]
        ),
    )
    return report


def _first(run: Run) -> float:
    rates = [flow.goodput_bit_s for flow in run.summary.flows]
    return rates[0] / sum(rates)


@experiment(
    "tekala2006/table-2", "Fairness of flows of different round-trip times, adaptive RED", FAIRNESS, choices=CHOICES
)
def table_2(lab: Lab) -> Report:
    """The same nine sets."""
    report, cells = Report(lab), _cells(lab)
    _rows(lab, report, "Table 2", "adaptive-red")

    def red(base: int, n: int, *choices: str) -> Arm:
        return arm_of(base, n, "adaptive-red", *choices)

    report.test(
        Claim(
            "T05",
            sentence="In every case adaptive RED shares the link better than DropTail (section 4.3, Tables 1 and 2).",
            population="the nine sets",
            statistic="Jain's index with adaptive RED, minus that with DropTail",
            bound="0: no better",
            tried="limited and unlimited slow start, and buffers of the shortest and of the longest round-trip time.",
            means="It depends on the buffer, whose size the source leaves open: with that of the longest round-trip time the indices of DropTail are "
            "much nearer to those of adaptive RED, which the buffer does not change (rows of Tables 1 and 2).",
        ),
        _in_all(
            lambda *choices: [
                Place(
                    _name(base, n),
                    (red(base, n, *choices), arm_of(base, n, "droptail", *choices)),
                    lambda red, tail: _jain(red) - _jain(tail),
                    above=0.0,
                    unit="1",
                )
                for base, n in cells
            ]
        ),
    )
    report.test(
        Claim(
            "T06",
            sentence="With adaptive RED flows of different round-trip times have similar windows, so rates proportional to 1/T (section 4.3, "
            "figures 9 and 10).",
            population="the sets with T_base 30 ms, which the figures show; at 60 and 100 ms the printed indices themselves are far from those "
            "of 1/T (0.44 for 0.72)",
            statistic="slopes of the logarithms of the mean windows and of the rates over that of the round-trip times",
            bound=f"windows: nearer to 0 (alike) than to -1 or 1, from -0.5 to 0.5; rates: {NEAREST}",
            tried="limited and unlimited slow start.",
            means="Windows become alike only if they begin alike: what slow start leaves is still there after 100 s.",
        ),
        _in_all(
            lambda *choices: [
                Place(f"{_name(base, n)}, {what}", (red(base, n, *choices),), read, above=above, below=below, unit="1")
                for base, n in cells
                if base == 30
                for what, read, above, below in (
                    ("windows", _slope(lambda flow, rtt: (rtt, flow.cwnd_mean_segments), base, n), -0.5, 0.5),
                    ("rates", _slope(lambda flow, rtt: (rtt, flow.goodput_bit_s), base, n), -1.5, -0.5),
                )
            ]
        ),
    )
    report.test(
        Claim(
            "T07",
            sentence="With adaptive RED the fairness of flows of different round-trip times falls with those (section 4.3); that it falls with the number of "
            "flows is read from Table 2.",
            population="each row and each column of Table 2, its first and its last number alone: in between the table itself rises once (0.77 to 0.78 "
            "with 3 flows, 60 to 100 ms). That fairness stays poor (section 5) has no number to test.",
            statistic="Jain's index of the first, minus that of the last",
            bound="0: it does not fall",
        ),
        _in_all(lambda *choices: _falls(cells, lambda base, n: red(base, n, *choices))),
    )
    return report


def _falls(cells: Sequence[tuple[int, int]], arm: Callable[[int, int], Arm]) -> list[Place]:
    bases, counts = sorted({base for base, _ in cells}), sorted({n for _, n in cells})
    ends = [
        *(
            (f"T_base {base} ms, {counts[0]} and {counts[-1]} flows", (base, counts[0]), (base, counts[-1]))
            for base in bases
        ),
        *((f"{n} flows, T_base {bases[0]} and {bases[-1]} ms", (bases[0], n), (bases[-1], n)) for n in counts),
    ]
    return [
        Place(name, (arm(*first), arm(*last)), lambda a, b: _jain(a) - _jain(b), above=0.0, unit="1")
        for name, first, last in ends
    ]
