"""Li 2006, sections 8.3.2 and 8.3.3: flows with different round-trip times, and flows beside Standard TCP."""

import math

from elephan.api.run import Run
from elephan.studies.judge import Kind
from elephan.studies.reproduce.declare import Chapter, Points, Sets, reader
from elephan.studies.reproduce.li2006 import cells
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, NEW

# A long path whose flow has less than this beside a short one is locked out: the largest fairness that Table 8.2 prints for the
# algorithms of which the thesis states it, 0.10, rounded.
LOCKED_OUT = 0.105
# What Table 8.1 prints with large buffers of Standard TCP over Scalable TCP: not almost full.
NOT_FULL = 212.1 / 230.2
# What Table 8.2 prints of H-TCP's fairness over Standard TCP's where section 8.3.2 sees a marked difference, in decades.
MARKED = math.log10(0.59 / 0.34)


@cells.on_cells("figure-8.22", "Two flows of different round-trip times, small buffers", cells.SMALL)
def figure_8_22(report: Chapter) -> None:
    """Flow 1 has 162 ms, flow 2 less. The buffer is 20 % of the bandwidth-delay product of the shorter path."""
    fairer = reader(cells.READINGS["fairness"], "decades")
    report.rows(
        "fairness of Standard TCP over that of Scalable TCP, the largest of all cells",
        "decades",
        Points("Scalable TCP", lambda *runs: max(fairer(*runs[i : i + 2]) for i in range(0, len(runs), 2)))
        .at(printed=2)
        .of(rate="every rate", rtt="shorter rtts", system=("Standard TCP", "Scalable TCP")),
        band=0.25,
    )
    report.claim(
        "L33",
        "Section 8.3.2, figure 8.22: with small buffers Scalable TCP and BicTCP have the highest goodput, and the utilisation of H-TCP "
        "falls as the capacity grows.",
        "each capacity, mean over the round-trip times of the second flow (22 and 82 ms)",
        "goodput of each of the two less that of each other algorithm; share of the capacity that H-TCP uses, at a capacity less at the next",
        "no more than 1 % of the capacity below another; 0: no difference",
        cells.highest_goodput("shorter rtts"),
        Points(
            "H-TCP, share of the capacity, {slow} over {fast} Mbit/s",
            lambda at, x, y: (cells.goodput(x) / at["slow"] - cells.goodput(y) / at["fast"]) / cells.PAYLOAD,
            how="point",
        )
        .at({"slow fast": ((10, 100), (100, 250))}, system="H-TCP")
        .of(rate=("slow", "fast"))
        .mean(rtt="shorter rtts"),
        means="Another algorithm has more goodput than one of the two, or H-TCP's utilisation does not fall at one step.",
        sets=("later",),
    )
    mean = {"rtt": "shorter rtts"}

    def further(system: str, how: str) -> Points:
        grid = {"system": system, "rate": "high rates"}
        runs = {"rate": ("rate", 10), "system": ("system", "Standard TCP")}
        return Points("{system}, {rate} over 10 Mbit/s", f"fairness, {how}").at(grid).of(runs).mean(mean)

    report.claim(
        "L34",
        "Section 8.3.2, figure 8.25: all algorithms are about as unfair as Standard TCP at 10 Mbit/s, but they differ strongly at 100 and "
        "250 Mbit/s.",
        "each New-TCP, mean over the round-trip times of the second flow (22 and 82 ms)",
        "logarithm of the fairness over Standard TCP's at 10 Mbit/s; the same at the higher capacity less at 10 Mbit/s, in the direction that Table 8.2 "
        "prints: up for H-TCP, down for the others",
        "0.24 decades either way: less than H-TCP's printed 0.59 over Standard TCP's 0.34, a marked difference; 0: no difference",
        Points("{a}, 10 Mbit/s", "fairness, decades", above=-MARKED, below=MARKED)
        .at(a="every New-TCP", b="Standard TCP", rate=10)
        .mean(mean),
        *(further(name, "decades, less" if name == "H-TCP" else "decades, second less first") for name in NEW),
        means="One algorithm differs from Standard TCP at 10 Mbit/s already, or no more at a higher capacity.",
        sets=("later", "whole"),
    )
    pairs = [(n, "Standard TCP") if n == "H-TCP" else ("Standard TCP", n) for n in NEW]
    report.claim(
        "L35",
        "Section 8.3.2, figure 8.25: H-TCP is the only New-TCP that is fairer than Standard TCP with different round-trip times.",
        "100 and 250 Mbit/s (at 10 Mbit/s the thesis finds all alike), mean over the round-trip times of the second flow",
        "logarithm of the ratio of the fairnesses: H-TCP's over Standard TCP's, Standard TCP's over that of each other New-TCP",
        "0: no difference",
        Points(cells.OF_TWO, "fairness, decades").at({"a b": pairs}, rate="high rates").mean(mean),
        means="Another New-TCP is as fair as Standard TCP at one capacity, or H-TCP is no fairer.",
        sets=("later", "whole"),
    )
    grid = {"rate": "high rates", "rtt": "shorter rtts", "a": "Standard TCP", "b": "Scalable TCP"}
    report.claim(
        "L36",
        "Section 8.3.2: Scalable TCP is up to two orders of magnitude less fair than Standard TCP in the same test.",
        "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms",
        "decimal logarithm of Standard TCP's fairness over Scalable TCP's",
        "1.5, our midpoint: nearer to two orders of magnitude than to one, in some cell",
        Points("{rate} Mbit/s, {rtt} ms", "fairness, decades", above=1.5).at(grid),
        rule="some",
        means="The factor is nearer to one order of magnitude in every cell.",
        sets=("whole",),
    )
    four = ("Scalable TCP", "BicTCP", "HighSpeed TCP", "FAST")
    pair = {"a": "Standard TCP", "b": four, "rate": 100}
    report.claim(
        "L37",
        "Section 8.3.2: flows of Scalable TCP, BicTCP, HighSpeed TCP and FAST on a long path are locked out by those on a short one.",
        "250 Mbit/s; 100 Mbit/s, where section 8.5 says that it is less; mean over the round-trip times of the second flow (22 and 82 ms)",
        "goodput of the long path over that of the short one; at 100 Mbit/s logarithm of Standard TCP's over it",
        "0.105: the largest that Table 8.2 prints for these four at 250 Mbit/s, 0.10, rounded; 0: no difference",
        Points("{system}, 250 Mbit/s", "share", below=LOCKED_OUT).at(system=four, rate=250).mean(mean),
        Points(cells.OF_TWO, "share, decades").at(pair).mean(mean),
        tried="Each of the four sets of choices, FAST's second flow after 100 s, and shares over all of the measured time.",
        means="One of the four leaves the long path more than a tenth of the short one's goodput at 250 Mbit/s, or as much as Standard TCP does at "
        "100 Mbit/s.",
        sets=("later", "whole"),
    )
    cells.draw(report, "fairness", "Li 2006, figure 8.25: fairness, flow 1 has 162 ms, small buffers", log=True)


@cells.on_cells("synchronisation", "Fairness of Standard TCP against round-trip times and synchronisation", cells.SMALL)
def synchronisation(report: Chapter) -> None:
    """Section 7.1.4: fairness of Standard TCP is (T_j/T_i)^2 lambda_j/lambda_i."""

    def nearer(run: Run, ratio: float) -> float:
        """How much nearer equation 7.9 comes with the back-offs of both flows (one each at least) than without them, in decades."""
        first, second = cells.whole(run)
        losses = [max(flow.congestion_events, 1) for flow in run.summary.flows]
        measured = math.log10(first / second)
        without = 2 * math.log10(ratio)
        with_ = without + math.log10(losses[1] / losses[0])
        return abs(measured - without) - abs(measured - with_)

    report.claim(
        "L38",
        "Section 7.1.4, equation 7.9, and figure 8.25: the fairness of Standard TCP with different round-trip times is the square of their "
        "ratio times the ratio of the flows' losses; the lack of synchronisation is captured by it.",
        "Standard TCP with small buffers, 100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms",
        "distance of the measured ratio of goodputs from the squared ratio of round-trip times, less that from equation 7.9 with the "
        "back-offs of both flows, as logarithms",
        "0: the back-offs explain nothing",
        Points(
            "{rate} Mbit/s, {rtt} ms",
            lambda at, run: nearer(run, at["rtt"] / cells.LONG_MS),
            how="point",
            unit="decades",
        ).at(rate="high rates", rtt="shorter rtts", system="Standard TCP"),
        kind=Kind.THEORY,
        means="In one of the cells the ratio of the back-offs leads away from the measured fairness.",
        sets=Sets((AS_PRINTED, cells.ACKS), "Byte and ACK counting."),
    )


@cells.on_cells("figure-8.27", "Two flows of different round-trip times, large buffers", cells.LARGE)
def figure_8_27(report: Chapter) -> None:
    """The buffer is 20 % of the bandwidth-delay product of the longer path."""
    slow, mean = ("Standard TCP", "HighSpeed TCP"), {"rtt": "shorter rtts"}
    report.claim(
        "L39",
        "Section 8.3.2, figure 8.27: with large buffers all algorithms use the capacity almost fully, but Standard TCP, and HighSpeed TCP a "
        "little, lose goodput at long round-trip times.",
        "each capacity, mean over the second flow's round-trip times; 100 and 250 Mbit/s for the losses",
        "goodput over that of Scalable TCP, the best in print, in the same cell; goodput with a second round-trip time of 22 ms less that with 162 ms, "
        "of Standard TCP and HighSpeed TCP, and of the former less the latter",
        "0.92, which Table 8.1 prints for Standard TCP (212.1 of 230.2 Mbit/s) as not almost full; and 0",
        Points("{a}, {rate} Mbit/s, goodput over Scalable TCP's", "goodput, over", above=NOT_FULL)
        .at(a=("H-TCP", "BicTCP", "FAST"), b="Scalable TCP", rate="every rate")
        .mean(rtt="every rtt"),
        Points("{system}, {rate} Mbit/s, 22 over 162 ms", "goodput, less")
        .at(system=slow, rate="high rates")
        .of(rtt=(22, 162)),
        Points("Standard TCP over HighSpeed TCP, loss from 22 to 162 ms, {rate} Mbit/s", "goodput, less, less")
        .at(rate="high rates")
        .of(system=slow, rtt=(22, 162)),
        means="One algorithm does not fill the path, or one of the two loses nothing from 22 to 162 ms.",
        sets=("later",),
    )
    grid = {"rate": "high rates", "rtt": "shorter rtts", "a": "Standard TCP", "b": "Scalable TCP"}
    report.claim(
        "L40",
        "Section 8.3.2, figures 8.28 and 8.29: larger buffers do not cure the unfairness of Scalable TCP to long paths.",
        "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms, large buffers",
        "fairness of Standard TCP less that of Scalable TCP",
        "0: it would be cured if it were as fair as Standard TCP",
        Points("{rate} Mbit/s, {rtt} ms", "fairness, less").at(grid),
        means="With a large buffer Scalable TCP is as fair to the long path as Standard TCP in one cell.",
        sets=("whole",),
    )
    pairs = [
        *(("Standard TCP", n) for n in ("HighSpeed TCP", "Scalable TCP", "BicTCP")),
        *((n, "Standard TCP") for n in ("H-TCP", "FAST")),
    ]
    report.claim(
        "L70",
        "Section 10.1: the New-TCP algorithms are less fair to long paths than Standard TCP, but for H-TCP, and FAST with enough buffer.",
        "large buffers, which hold FAST's alphas, 100 and 250 Mbit/s, mean over the second flow's round-trip times",
        "logarithm of the ratio of the fairnesses, in the direction of the sentence",
        "0: no difference",
        Points(cells.OF_TWO, "fairness, decades").at({"rate": "high rates", "a b": pairs}).mean(mean),
        means="Table 8.2 of the thesis prints 0.11 for FAST and 0.40 for Standard TCP with large buffers, so that its own numbers contradict "
        "the exception of FAST.",
        sets=("later", "whole"),
    )
    cells.draw(report, "fairness", "Li 2006, figure 8.28: fairness, flow 1 has 162 ms, large buffers", log=True)


@cells.on_cells(
    "figure-8.31",
    "Friendliness to Standard TCP by capacity and round-trip time",
    cells.FRIENDLY,
    choices=(
        *cells.CHOICES,
        "which flow starts first is not published: Standard TCP, or, as another set where it may matter, the other (only for L42 and L44 to L46: L41 and L43 would take too long).",
    ),
)
def figure_8_31(report: Chapter) -> None:
    """One flow of another algorithm beside one of Standard TCP."""
    aggressive, mean = {"system": ("Scalable TCP", "FAST"), "rate": 10}, {"rtt": "every rtt"}
    report.rows(
        "goodput of Standard TCP over that of the other, 10 Mbit/s, mean over the round-trip times",
        "1",
        Points("{system}", "share").at(aggressive, printed=0.2).mean(mean),
        band=0.5,
    )
    report.claim(
        "L41",
        "Section 8.3.3, figure 8.32: the loss-based algorithms are less friendly to Standard TCP the larger the capacity.",
        "four algorithms, mean over the round-trip times, 10 against 100 and 100 against 250 Mbit/s",
        "logarithm of the ratio of the fairnesses at the two capacities",
        "0: no difference",
        Points("{system}, {slow} over {fast} Mbit/s", "fairness, decades")
        .at({"system": "loss-based New-TCP", "slow fast": ((10, 100), (100, 250))})
        .of(rate=("slow", "fast"))
        .mean(mean),
        means="One algorithm is no less friendly at a larger capacity.",
        sets=("whole",),
    )
    report.claim(
        "L42",
        "Section 8.3.3: at 10 Mbit/s Scalable TCP and FAST take more than Standard TCP, about 5 to 1.",
        "10 Mbit/s, mean over the round-trip times. The ratio of 5 is a row of the comparisons",
        "logarithm of the goodput of the other algorithm over that of Standard TCP",
        "0: equal shares",
        Points("{system}", "share, decades below 1").at(aggressive).mean(mean),
        tried="Each of the four sets of choices, the other flow first, and shares over all of the measured time.",
        means="One of the two does not take more than Standard TCP at 10 Mbit/s.",
        sets=("other first", "whole"),
    )

    def more(mixed: Run, standard: Run) -> float:
        """The goodput of Standard TCP in the first run, less that of one of the two flows in the other."""
        return (mixed.summary.flows[0].goodput_bit_s - standard.summary.goodput_bit_s / 2) / 1e6

    beside = [(rate, times, -cells.TIE * rate) for rate, times in HOLDS.items()]
    friendlier = {"a": "FAST", "b": "loss-based New-TCP", "rate rtts": [(rate, HOLDS[rate]) for rate in (100, 250)]}
    report.claim(
        "L43",
        "Sections 8.3.3 and 8.4.2, figure 8.34: FAST is friendly where the queue holds its alpha: it yields to the queue of Standard TCP, and "
        "takes only capacity that is left.",
        "three capacities, mean over the round-trip times at which the queue holds the alpha of one flow",
        "goodput of Standard TCP beside FAST less its goodput beside another flow of Standard TCP; logarithm of the fairness beside FAST over that "
        "beside each loss-based algorithm",
        "FAST takes no more than 1 % of the capacity from it; 0: no difference (at 10 Mbit/s section 8.3.3 calls FAST aggressive)",
        Points("Standard TCP beside FAST over beside itself, {rate} Mbit/s", more, unit="Mbit/s")
        .at({"rate rtts above": beside})
        .of({"scenario system": ((cells.FRIENDLY, "FAST"), (cells.SYMMETRIC, "Standard TCP"))})
        .mean(rtt="rtts"),
        Points("friendliness of " + cells.OF_TWO, "fairness, decades").at(friendlier).mean(rtt="rtts"),
        means="FAST takes goodput from Standard TCP although the queue holds its alpha, or another algorithm is friendlier.",
        sets=("whole",),
    )
    small = {"rate": 250, "rtt": 42}
    report.claim(
        "L44",
        "Section 8.3.3, figure 8.35: with too small a queue FAST is less friendly than Scalable TCP, and both flows together use less "
        "than two of Standard TCP.",
        "250 Mbit/s, 42 ms",
        "fairness beside Scalable TCP less that beside FAST; goodput of two flows of Standard TCP less that of Standard TCP and FAST",
        "0: no difference",
        Points("friendliness of {a} over {b}", "fairness, less").at(small, a="Scalable TCP", b="FAST"),
        Points("goodput of two flows of Standard TCP over Standard TCP and FAST", "goodput, less")
        .at(small)
        .of({"scenario system": ((cells.SYMMETRIC, "Standard TCP"), (cells.FRIENDLY, "FAST"))}),
        means="FAST with too small a queue is no less friendly than Scalable TCP, or uses the path as well as two flows of Standard TCP.",
        sets=("other first", "whole"),
    )

    def at_high_speed(*rows: tuple[str, str, int]) -> Points:
        return Points("{a} over {b}, {rtt} ms", "fairness, less").at({"a b rtt": rows}, rate=250)

    report.claim(
        "L45",
        "Section 8.3.3, figure 8.36: at high speed H-TCP is fair to Standard TCP at low round-trip times, unlike the other loss-based "
        "algorithms, and less so the longer they are; at large bandwidth-delay products it is less friendly than HighSpeed TCP and BicTCP.",
        "250 Mbit/s, 22 and 162 ms (the figure's)",
        "fairness less that of each other loss-based New-TCP at 22 ms; that of HighSpeed TCP and BicTCP less its own at 162 ms; its own at 22 ms less "
        "that at 162 ms",
        "0: no difference; the source gives no number for very fair",
        at_high_speed(*(("H-TCP", n, 22) for n in LOSS_BASED if n != "H-TCP")),
        at_high_speed(*((n, "H-TCP", 162) for n in ("HighSpeed TCP", "BicTCP"))),
        Points("H-TCP, 22 over 162 ms", "fairness, less").at(system="H-TCP", rate=250).of(rtt=(22, 162)),
        means="H-TCP's friendliness does not go from the best at 22 ms to the worst of the three at 162 ms.",
        sets=("other first", "whole"),
    )
    report.claim(
        "L46",
        "Section 8.3.3, figures 8.37 and 8.38: BicTCP is friendlier than HighSpeed TCP at long round-trip times, and less friendly at short ones.",
        "250 Mbit/s, 162 and 22 ms (the figures')",
        "fairness of BicTCP less that of HighSpeed TCP at 162 ms, the reverse at 22 ms",
        "0: no difference",
        at_high_speed(("BicTCP", "HighSpeed TCP", 162), ("HighSpeed TCP", "BicTCP", 22)),
        means="Which of the two is friendlier does not change with the round-trip time as the sentence says.",
        sets=("other first", "whole"),
    )
    cells.draw(report, "fairness", "Li 2006, figure 8.32: friendliness to Standard TCP", log=True)


# The round-trip times at which the queue of each capacity holds the alpha of one FAST flow.
HOLDS = {10: (82, 162), 100: (22, 82, 162), 250: (82, 162)}
