"""Li 2006, section 8.3.1: two flows of one algorithm and one round-trip time."""

import math
from collections.abc import Callable
from itertools import pairwise, product

import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Kind, Place, Quantity, Time
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.li2006.cells import (
    CHOICES,
    FAST_STARTS,
    FRIENDLY,
    LARGE,
    PAYLOAD,
    RATES,
    REPEATS,
    RTTS,
    SYMMETRIC,
    TIMES,
    by_set,
    cell,
    converged,
    drawing,
    fairness,
    goodput,
    late_retransmits,
    mean_of,
    overhead,
    overhead_whole,
    rtts,
    share,
    starting,
)
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, METRICS, NEW, SYSTEMS

# The fairness from which on the thesis calls flows converged (section 7.1.3).
CONVERGED = 0.8
# The capacities and round-trip times from which on FAST is said to stabilise (Mbit/s, ms), with its alphas of two flows.
STABLE = {10: 162, 100: 42, 250: 82}


def _less(
    lab: Lab, read: Callable[[Run], float], chosen: str, a: str, b: str, rate: int, rtt: int, unit: str = ""
) -> Place:
    """What is read of `a` less what is read of `b` in one cell, which should be positive."""
    arms = (cell(lab, SYMMETRIC, a, rate, rtt, chosen), cell(lab, SYMMETRIC, b, rate, rtt, chosen))
    return Place(f"{a} over {b}, {rate} Mbit/s, {rtt} ms", arms, lambda x, y: read(x) - read(y), above=0, unit=unit)


def _mean_less(
    lab: Lab,
    read: Callable[[Run], float],
    chosen: str,
    a: str,
    b: str,
    rate: int,
    unit: str = "",
    where: Callable[[int], bool] = lambda _: True,
) -> Place:
    """The same for the mean over the round-trip times at one capacity, those `where` it is asked for."""
    times = [t for t in rtts(lab, SYMMETRIC) if where(t)]
    arms = tuple(cell(lab, SYMMETRIC, n, rate, t, chosen) for t in times for n in (a, b))
    return Place(f"{a} over {b}, {rate} Mbit/s", arms, mean_of(lambda x, y: read(x) - read(y), 2), above=0, unit=unit)


def _used(run: Run) -> float:
    """The goodput as a share of the payload capacity."""
    return goodput(run) * 1e6 / _core.bits_per_second(run.scenario.document["path"]["rate"]) / PAYLOAD


@experiment(
    "li2006/figure-8.10", "Goodput of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_10(lab: Lab) -> Report:
    """Symmetric grid: goodput."""
    report = Report(lab)
    report.compare(
        "bottleneck queue at 10 Mbit/s, 16 ms",
        "packets",
        [Quantity.exact("all", 2, math.floor(0.2 * 10e6 * 0.016 / 12e3))],
        kind=Kind.FORMULA,
        band=0.0,
    )
    report.test(
        Claim(
            "L17",
            "Section 8.3.1, figure 8.10: all New-TCP algorithms reach a higher goodput than Standard TCP; FAST does not at low round-trip "
            "times and high capacities.",
            "each New-TCP at each capacity, mean over the round-trip times; without FAST at 10 Mbit/s, which section 8.3.1 calls comparable, and "
            "below 82 ms; without HighSpeed TCP at 10 Mbit/s, which section 8.4.1 calls little different",
            "goodput less that of Standard TCP",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                _mean_less(
                    lab,
                    goodput,
                    chosen,
                    n,
                    "Standard TCP",
                    rate,
                    "Mbit/s",
                    (lambda t: t > 42) if n == "FAST" else lambda _: True,
                )
                for n, rate in product(NEW, RATES)
                if not (rate == 10 and n in ("FAST", "HighSpeed TCP"))
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L18",
            "Section 8.3.1, figure 8.10: Scalable TCP and BicTCP have the highest goodput.",
            "the three capacities, mean over the round-trip times",
            "goodput of each of the two less that of each other algorithm",
            "0: no difference",
            tried="Each of the four sets of choices.",
            means="Where H-TCP has the increase of its authors' code it is ahead of Scalable TCP at 100 Mbit/s, by 1.3 Mbit/s.",
        ),
        by_set(
            lab,
            lambda chosen: [
                _mean_less(lab, goodput, chosen, best, n, rate, "Mbit/s")
                for rate in RATES
                for best, n in product(("Scalable TCP", "BicTCP"), ("Standard TCP", "HighSpeed TCP", "H-TCP", "FAST"))
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L19",
            "Section 8.3.1, figures 8.10 and 8.11: HighSpeed TCP's goodput, and its increase and decrease parameters, grow with the "
            "bandwidth-delay product; at the largest its goodput is like that of the other New-TCP algorithms.",
            "250 Mbit/s, the longest round-trip time against 22 ms; figure 8.11: windows at 100 Mbit/s, by round-trip time",
            "share of the capacity; shortfall of that share to the mean of the other loss-based New-TCP algorithms; the mean window, with which "
            "RFC 3649's parameters grow above 38 segments",
            "0: no difference",
        ),
        by_set(lab, lambda chosen: _highspeed(lab, chosen)),
        looks=REPEATS,
    )
    report.draw = drawing(
        lab,
        SYMMETRIC,
        tuple(SYSTEMS),
        goodput,
        "goodput (Mbit/s)",
        "Li 2006, figure 8.10: aggregate goodput of two flows",
    )
    return report


def _highspeed(lab: Lab, chosen: str) -> list[Place]:
    times = rtts(lab, SYMMETRIC)
    others = ("Scalable TCP", "H-TCP", "BicTCP")

    def arms(rate: int, rtt: int) -> tuple[Arm, ...]:
        return tuple(cell(lab, SYMMETRIC, n, rate, rtt, chosen) for n in ("HighSpeed TCP", *others))

    def shortfall(runs: tuple[Run, ...]) -> float:
        return sum(_used(run) for run in runs[1:]) / len(others) - _used(runs[0])

    def window(run: Run) -> float:
        return sum(flow.cwnd_mean_segments or 0 for flow in run.summary.flows) / 2

    both = (*arms(250, 22), *arms(250, times[-1]))
    return [
        Place(
            f"goodput, 250 Mbit/s, {times[-1]} over 22 ms",
            (both[4], both[0]),
            lambda a, b: _used(a) - _used(b),
            above=0,
        ),
        Place(
            f"shortfall to the others, 250 Mbit/s, 22 over {times[-1]} ms",
            both,
            lambda *runs: shortfall(runs[:4]) - shortfall(runs[4:]),
            above=0,
        ),
        *(
            Place(
                f"window, 100 Mbit/s, {long} over {short} ms",
                tuple(cell(lab, SYMMETRIC, "HighSpeed TCP", 100, t, chosen) for t in (long, short)),
                lambda a, b: window(a) - window(b),
                above=0,
                unit="segments",
            )
            for short, long in pairwise(rtts(lab, SYMMETRIC))
        ),
    ]


@experiment(
    "li2006/figure-8.12", "Fairness of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_12(lab: Lab) -> Report:
    """Symmetric grid: fairness."""
    report = Report(lab)
    times = rtts(lab, SYMMETRIC)
    long = tuple(t for t in times if t >= 162)
    report.test(
        Claim(
            "L20",
            "Section 8.3.1, figure 8.12: Scalable TCP is the least fair at long round-trip times at every capacity.",
            "three capacities, mean over round-trip times of 162 and 324 ms, five other algorithms",
            "fairness of each other algorithm less that of Scalable TCP",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                _mean_less(lab, fairness, chosen, n, "Scalable TCP", rate, where=lambda t: t >= 162)
                for n, rate in product(SYSTEMS, RATES)
                if n != "Scalable TCP"
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L21",
            "Section 8.3.1, figure 8.14: Scalable TCP is unfair at 10 Mbit/s with 22 and 42 ms, because of the switch of its mode at 16 segments.",
            "the two cells, each by itself",
            "fairness of Standard TCP less that of Scalable TCP; fairness without the low-speed mode (lwnd = 1) less that with it",
            "0: no difference",
            tried="Byte and ACK counting; the low-speed mode turned off (lwnd = 1), which lowers the fairness by 0.1 to 0.8 instead of raising it. "
            "With byte counting the cell of 42 ms is fair (1.00).",
            means="Scalable TCP is less fair than Standard TCP at 22 ms, and with ACK counting at 42 ms, but the switch of modes is not what makes it "
            "so: Standard TCP's part of the rule is what brings the flows together there.",
        ),
        by_set(
            lab,
            lambda chosen: [
                place
                for t in (22, 42)
                for arm in [cell(lab, SYMMETRIC, "Scalable TCP", 10, t, chosen)]
                for place in (
                    _less(lab, fairness, chosen, "Standard TCP", "Scalable TCP", 10, t),
                    Place(
                        f"without over with the low-speed mode, 10 Mbit/s, {t} ms",
                        (arm.set({"flow.cc": '{ name = "scalable", lwnd = 1 }'}), arm),
                        lambda without, with_: fairness(without) - fairness(with_),
                        above=0,
                    ),
                )
            ],
        ),
        looks=(5, 20, 60),
    )
    report.test(
        Claim(
            "L22",
            "Section 8.3.1, figures 8.15 and 8.16: HighSpeed TCP is unfair in certain cells because its flows are in different rows of the "
            "discrete table.",
            "the cells that the thesis names: 10 Mbit/s with 82 ms, 100 and 250 Mbit/s with 42 ms, and 250 Mbit/s with 82 ms (figure 8.16)",
            "fairness with the RFC's continuous functions less that with its table",
            "0: no difference",
        ),
        {
            chosen: [
                Place(
                    f"{rate} Mbit/s, {t} ms",
                    (arm.set({"flow.cc": "hstcp"}), arm),
                    lambda smooth, table: fairness(smooth) - fairness(table),
                    above=0,
                )
                for rate, t in ((10, 82), (100, 42), (250, 42), (250, 82))
                for arm in [cell(lab, SYMMETRIC, "HighSpeed TCP", rate, t, chosen)]
            ]
            for chosen in (AS_PRINTED, f"{AS_PRINTED}, ACK counting")
        },
        looks=(5, 10, 20),
    )
    report.test(
        Claim(
            "L23",
            "Section 8.3.1, figures 8.12(a) and 8.17: BicTCP has problems to be fair at low capacity and long round-trip times, but less "
            "at higher capacities.",
            "round-trip times of 162 and 324 ms, 10 Mbit/s against 100 and 250 Mbit/s",
            "fairness at the higher capacity less that at 10 Mbit/s",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    f"{rate} over 10 Mbit/s, {t} ms",
                    tuple(cell(lab, SYMMETRIC, "BicTCP", c, t, chosen) for c in (rate, 10)),
                    lambda fast, slow: fairness(fast) - fairness(slow),
                    above=0,
                )
                for rate, t in product((100, 250), long)
            ],
        ),
        looks=(5, 10, 20),
    )
    report.test(
        Claim(
            "L24",
            "Section 8.3.1, figure 8.12: H-TCP has no problems to be fair in any condition, and is fairer than Standard TCP.",
            "every cell; the three capacities, mean over the round-trip times",
            "fairness in a cell; fairness less that of Standard TCP",
            "0.8: the thesis' factor for flows that have converged (section 7.1.3); and 0",
            tried="Each of the four sets of choices.",
            means="With ACK counting H-TCP has a fairness of 0.76 at 10 Mbit/s and 22 ms, where the queue holds three packets: it is fair almost, but not quite, everywhere.",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    Place(
                        f"{rate} Mbit/s, {t} ms",
                        (cell(lab, SYMMETRIC, "H-TCP", rate, t, chosen),),
                        fairness,
                        above=CONVERGED,
                    )
                    for rate, t in product(RATES, rtts(lab, SYMMETRIC))
                ),
                *(_mean_less(lab, fairness, chosen, "H-TCP", "Standard TCP", rate) for rate in RATES),
            ],
        ),
        looks=(5, 10, 20),
    )
    report.draw = drawing(
        lab, SYMMETRIC, tuple(SYSTEMS), fairness, "fairness", "Li 2006, figure 8.12: fairness of two flows"
    )
    return report


def _ratio(read: Callable[[Run], float | None], log: bool = False) -> Callable[[Run, Run], float | None]:
    """One reading over another, or its decimal logarithm; none where one of them is zero or missing."""

    def ratio(a: Run, b: Run) -> float | None:
        x, y = read(a), read(b)
        if not x or not y:
            return None
        return math.log10(x / y) if log else x / y

    return ratio


@experiment(
    "li2006/figure-8.18", "Overhead of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_18(lab: Lab) -> Report:
    """Symmetric grid: overhead."""
    report = Report(lab)
    times, every = rtts(lab, SYMMETRIC), lab.pick(RTTS, rtts(lab, SYMMETRIC))
    _overhead_in_numbers(lab, report)
    whole = f"{AS_PRINTED}, overhead of whole tests"

    def lowest(chosen: str, read: Callable[[Run], float]) -> list[Place]:
        def more(new: Run, standard: Run) -> float | None:
            return _ratio(read, log=True)(new, standard)

        return [
            Place(
                f"{n} over Standard TCP, {rate} Mbit/s",
                tuple(
                    cell(lab, SYMMETRIC, s, rate, t, chosen)
                    for t in rtts(lab, SYMMETRIC)
                    if n != "H-TCP" or t > 42
                    for s in (n, "Standard TCP")
                ),
                mean_of(more, 2),
                above=0,
                unit="decades",
            )
            for n, rate in product(LOSS_BASED, RATES)
        ]

    report.test(
        Claim(
            "L25",
            "Section 8.3.1, figure 8.18: Standard TCP has the lowest overhead, but for FAST where it is stable.",
            "each loss-based New-TCP at each capacity, mean over the round-trip times; without H-TCP below 82 ms, which the thesis calls "
            "comparable",
            "decimal logarithm of the overhead over that of Standard TCP",
            "0: no difference",
        ),
        by_set(lab, lambda chosen: lowest(chosen, overhead)) | {whole: lowest(AS_PRINTED, overhead_whole)},
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L26",
            "Section 8.3.1, figure 8.19: FAST stabilises, and then loses nothing, from a round-trip time of 162 ms at 10 Mbit/s, 42 ms "
            "at 100 Mbit/s and 82 ms at 250 Mbit/s on, and not below.",
            "the grid",
            "share of the runs that retransmit nothing in the second half of the measured time",
            "1/2: most runs from those round-trip times on, not most runs below them",
        ),
        {
            name: [
                Place(
                    f"{rate} Mbit/s, {t} ms",
                    (starting(cell(lab, SYMMETRIC, "FAST", rate, t), *start),),
                    lambda run: late_retransmits(run) == 0,
                    above=0.5 if t >= STABLE[rate] else None,
                    below=None if t >= STABLE[rate] else 0.5,
                    statistic="share",
                )
                for rate, t in product(RATES, every)
            ]
            for name, start in FAST_STARTS.items()
        },
        looks=TIMES,
    )

    def htcp(chosen: str, read: Callable[[Run], float]) -> list[Place]:
        longest = times[-1]

        def growth(long: Run, long_standard: Run, low: Run, low_standard: Run) -> float | None:
            x, y = _ratio(read, log=True)(long, long_standard), _ratio(read, log=True)(low, low_standard)
            return None if x is None or y is None else x - y

        return [
            *(_less(lab, read, chosen, "H-TCP", "Scalable TCP", rate, longest, "1e-7/(Mbit/s)") for rate in (10, 100)),
            *(
                Place(
                    f"against Standard TCP, {longest} over 22 ms, {rate} Mbit/s",
                    tuple(
                        cell(lab, SYMMETRIC, n, rate, t, chosen)
                        for t in (longest, 22)
                        for n in ("H-TCP", "Standard TCP")
                    ),
                    growth,
                    above=0.5,
                    unit="decades",
                )
                for rate in RATES
            ),
        ]

    report.test(
        Claim(
            "L27",
            "Section 8.3.1, figure 8.18: the overhead of H-TCP is like that of Standard TCP at low round-trip times and almost an order of "
            "magnitude above it at long ones; at 10 and 100 Mbit/s it exceeds Scalable TCP's at the longest.",
            "10 and 100 Mbit/s at 324 ms against Scalable TCP; each capacity at 324 ms against 22 ms",
            "overhead less that of Scalable TCP in the same cell; decimal logarithm of the overhead over Standard TCP's, at 324 ms less at 22 ms",
            "0; and 1/2: nearer to an order of magnitude than to none",
            tried="Each of the four sets of choices, and both readings of the overhead.",
            means="H-TCP loses fewer packets than Scalable TCP at 100 Mbit/s and 324 ms, with the increase of equation 6.9 as with that of its authors' code.",
        ),
        by_set(lab, lambda chosen: htcp(chosen, overhead)) | {whole: htcp(AS_PRINTED, overhead_whole)},
        looks=REPEATS,
    )
    report.draw = drawing(
        lab,
        SYMMETRIC,
        tuple(SYSTEMS),
        overhead,
        METRICS["overhead"].label,
        "Li 2006, figure 8.18: overhead of two flows",
        log=True,
    )
    return report


def _overhead_in_numbers(lab: Lab, report: Report) -> None:
    times, every = rtts(lab, SYMMETRIC), lab.pick(RTTS, rtts(lab, SYMMETRIC))

    def first_stable(*runs: Run) -> float | None:
        """The round-trip time from which on nothing is retransmitted in the second half, in ms."""
        lost = [t for t, run in zip(every, runs, strict=True) if late_retransmits(run) > 0]
        longer = [t for t in every if not lost or t > lost[-1]]
        return float(longer[0]) if longer else None

    report.compare(
        "round-trip time from which on FAST stabilises",
        "ms",
        [
            Quantity(
                f"FAST, {rate} Mbit/s",
                t,
                None,
                tuple(cell(lab, SYMMETRIC, "FAST", rate, x) for x in every),
                first_stable,
            )
            for rate, t in STABLE.items()
        ],
        band=0.0,
        looks=REPEATS,
    )
    report.compare(
        "queue at which FAST stabilises",
        "packets",
        [
            Quantity.exact(f"FAST, {rate} Mbit/s", printed, math.floor(0.2 * rate * 1e6 * STABLE[rate] * 1e-3 / 12e3))
            for rate, printed in ((10, 27), (100, 70), (250, 342))
        ],
        kind=Kind.FORMULA,
        band=0.01,
    )
    report.compare(
        "overhead of FAST over that of Standard TCP, low capacity and round-trip time",
        "decades",
        [
            Quantity(
                f"FAST, 10 Mbit/s, {t} ms",
                2,
                None,
                tuple(cell(lab, SYMMETRIC, n, 10, t) for n in ("FAST", "Standard TCP")),
                _ratio(overhead, log=True),
            )
            for t in lab.pick((16, 22, 42), (22,))
        ],
        band=0.25,
        looks=REPEATS,
    )
    report.compare(
        "overhead of H-TCP over that of Standard TCP, 324 ms",
        "decades",
        [
            Quantity(
                f"H-TCP, {rate} Mbit/s",
                1,
                None,
                tuple(cell(lab, SYMMETRIC, n, rate, times[-1]) for n in ("H-TCP", "Standard TCP")),
                _ratio(overhead, log=True),
            )
            for rate in RATES
        ],
        band=0.25,
        looks=REPEATS,
    )
    report.compare(
        "overhead of two flows of Standard TCP over that of FAST beside Standard TCP",
        "decades",
        [
            Quantity(
                "FAST, 250 Mbit/s, 82 ms (the cell of Table 8.4 that has it)",
                2,
                None,
                (cell(lab, SYMMETRIC, "Standard TCP", 250, 82), cell(lab, FRIENDLY, "FAST", 250, 82)),
                _ratio(overhead, log=True),
            )
        ],
        band=0.25,
        looks=REPEATS,
    )


def _start_up(lab: Lab, system: str, rate: int, rtt: int, window: tuple[str, str] | None = None) -> Arm:
    """A cell until some seconds after the last start of its second flow, with samples of every 200 ms."""
    arm = cell(lab, SYMMETRIC, system, rate, rtt)
    arm = arm if window is None else starting(arm, *window)
    latest = float(dict(arm.settings)["flow.1.start"].split('"')[3].removesuffix(" s"))
    return arm.set({"duration": f"{latest + AFTER_START_S:.0f} s", "trace.interval": "200 ms"})


# How long after its start the window of the second flow is compared with that of the first.
AFTER_START_S = 20.0


def _exceeds(run: Run) -> bool:
    """Whether the window of the second flow exceeds that of the first at some time soon after its start."""
    start = run.summary.flows[1].start_s or 0
    table = run.flows.filter((pl.col("time_s") > start) & (pl.col("time_s") <= start + AFTER_START_S))
    first, second = (table.filter(pl.col("flow") == i)["cwnd_segments"] for i in (0, 1))
    return bool((second > first).any())


@experiment(
    "li2006/figure-8.21",
    "Convergence time of the second flow by capacity and round-trip time",
    "li2006/symmetric",
    choices=CHOICES,
)
def figure_8_21(lab: Lab) -> Report:
    """Symmetric grid: convergence."""
    report = Report(lab)
    times = rtts(lab, SYMMETRIC)
    longest = times[-1]
    report.compare(
        f"convergence time, {longest} ms",
        "s",
        [
            Quantity(
                f"H-TCP, {rate} Mbit/s", 30, None, (cell(lab, SYMMETRIC, "H-TCP", rate, longest),), converged, "median"
            )
            for rate in RATES
        ],
        band=0.5,
        looks=TIMES,
    )
    report.compare(
        "convergence time, 250 Mbit/s, 162 ms",
        "s",
        [
            Quantity(f"{n}", value, None, (cell(lab, SYMMETRIC, n, 250, 162),), converged, "median")
            for n, value in (("HighSpeed TCP", 200), ("BicTCP", 200))
        ],
        band=0.5,
        looks=TIMES,
    )
    _convergence_claims(lab, report, longest)
    _start_claims(lab, report)
    _recommended(lab, report)

    def drawn(run: Run) -> float | None:
        return run.summary.convergence_s

    report.draw = drawing(
        lab, SYMMETRIC, tuple(SYSTEMS), drawn, "convergence (s)", "Li 2006, figure 8.21: 80 % convergence time"
    )
    return report


def _convergence_claims(lab: Lab, report: Report, longest: int) -> None:
    def ratio(a: Run, b: Run) -> float | None:
        x, y = converged(a), converged(b)
        return x.seconds / y.seconds if x.seen and y.seen and x.seconds and y.seconds else None

    def times_of(a: Run, b: Run) -> tuple[Time, Time]:
        return converged(a), converged(b)

    report.test(
        Claim(
            "L29",
            "Sections 8.3.1 and 8.4.3, figure 8.21: HighSpeed TCP and BicTCP converge in very similar times; for long round-trip times these are "
            "of the order of hundreds of seconds, almost a third of a test of ten minutes.",
            "250 Mbit/s, 162 ms (section 8.4.3 names 162 ms)",
            "median of the 80 % convergence time; mean ratio of the two",
            "above 100 s (hundreds) and below 200 s (almost a third of 600 s); the ratio within 0.75 and 1.33, as that of the printed times at "
            "82 ms, 45.2 and 60.2 s",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    Place(
                        n,
                        (cell(lab, SYMMETRIC, n, 250, 162, chosen),),
                        converged,
                        above=100,
                        below=200,
                        unit="s",
                        statistic="median",
                    )
                    for n in ("HighSpeed TCP", "BicTCP")
                ),
                Place(
                    "BicTCP over HighSpeed TCP",
                    tuple(cell(lab, SYMMETRIC, n, 250, 162, chosen) for n in ("BicTCP", "HighSpeed TCP")),
                    ratio,
                    above=0.75,
                    below=1.33,
                ),
            ],
        ),
        looks=TIMES,
    )
    report.test(
        Claim(
            "L30",
            "Sections 8.3.1 and 8.4.3: H-TCP converges in about half a minute even at 324 ms, in a time that is almost constant for long "
            "round-trip times, and faster than BicTCP and HighSpeed TCP, about four times.",
            "324 ms, three capacities; 162 and 324 ms for the constancy. The half minute and the factor of four are rows of the comparisons",
            "which of two algorithms is earlier; mean ratio of H-TCP's times at 324 and 162 ms",
            "1/2: as often earlier as later; 2: a time in proportion to the round-trip time",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    Place(
                        f"H-TCP before {n}, {rate} Mbit/s",
                        tuple(cell(lab, SYMMETRIC, s, rate, longest, chosen) for s in ("H-TCP", n)),
                        times_of,
                        above=0.5,
                        statistic="earlier",
                    )
                    for rate, n in product(RATES, ("BicTCP", "HighSpeed TCP"))
                ),
                *(
                    Place(
                        f"H-TCP, {rate} Mbit/s, 324 over 162 ms",
                        tuple(cell(lab, SYMMETRIC, "H-TCP", rate, t, chosen) for t in (324, 162)),
                        ratio,
                        below=2,
                    )
                    for rate in RATES
                ),
            ],
        ),
        looks=(5, 10, 20),
    )
    report.compare(
        f"convergence time over that of H-TCP, 250 Mbit/s, {longest} ms",
        "1",
        [
            Quantity(n, 4, None, tuple(cell(lab, SYMMETRIC, s, 250, longest) for s in (n, "H-TCP")), ratio)
            for n in ("BicTCP", "HighSpeed TCP")
        ],
        band=0.5,
        looks=REPEATS,
    )


def _start_claims(lab: Lab, report: Report) -> None:
    report.test(
        Claim(
            "L31",
            "Section 8.3.1: two flows of Standard TCP converge quickly at 162 ms, because the second one's slow start lifts its window "
            "above that of the first.",
            "162 ms, three capacities",
            "share of the runs in which the second window exceeds the first within 20 s; median of the 80 % convergence time",
            "1/2: most runs; below 32.8 s, the printed time at 82 ms (Table 8.3), which the times at 162 ms are low against",
            tried="Samples every 200 ms around the start, with the second flow at random phases of an epoch of the first.",
            means="The time is low only at 10 Mbit/s (a median of 16 s; 99 and 60 s at 100 and 250 Mbit/s), and the second window exceeds the first in few runs, so that an overshoot of slow start does not explain it.",
        ),
        by_set(
            lab,
            lambda chosen: [
                place
                for rate in RATES
                for place in (
                    Place(
                        f"second above first, {rate} Mbit/s",
                        (_start_up(lab, "Standard TCP", rate, 162),),
                        _exceeds,
                        above=0.5,
                        statistic="share",
                    ),
                    Place(
                        f"convergence time, {rate} Mbit/s",
                        (cell(lab, SYMMETRIC, "Standard TCP", rate, 162, chosen),),
                        converged,
                        below=32.8,
                        unit="s",
                        statistic="median",
                    ),
                )
            ],
        ),
        looks=TIMES[:1],
    )
    report.test(
        Claim(
            "L32",
            "Section 8.4.3: the second FAST flow always reaches a larger window at its start than the first, so that its convergence "
            "time is small.",
            "the three capacities, every round-trip time",
            "share of the runs in which the second window exceeds the first within 20 s",
            "1/2: most runs",
            tried="Both ranges of starts of the second flow.",
            means="The second flow exceeds the first in nearly all cells, but not always at 162 ms.",
        ),
        {
            name: [
                Place(
                    f"{rate} Mbit/s, {t} ms",
                    (_start_up(lab, "FAST", rate, t, start),),
                    _exceeds,
                    above=0.5,
                    statistic="share",
                )
                for rate, t in product(RATES, rtts(lab, SYMMETRIC))
            ]
            for name, start in FAST_STARTS.items()
        },
        looks=TIMES,
    )


def _recommended(lab: Lab, report: Report) -> None:
    def fairer(chosen: str, a: str, b: str) -> Place:
        times = [t for t in rtts(lab, LARGE) if t < 162]
        arms = tuple(cell(lab, LARGE, n, rate, t, chosen) for rate in (100, 250) for t in times for n in (a, b))
        return Place(
            f"{a} over {b}, round-trip times of 162 ms and less",
            arms,
            mean_of(lambda x, y: share(x) - share(y), 2),
            above=0,
        )

    report.test(
        Claim(
            "L71",
            "Section 10.2, Table 10.1: FAST and H-TCP are recommended where others share the path, because they are fair to long paths, and "
            "Scalable TCP, HighSpeed TCP and BicTCP are not; BicTCP too on a path of its own, because of its goodput.",
            "unequal round-trip times with large buffers at 100 and 250 Mbit/s, which hold FAST's alphas; equal ones, mean over the grid",
            "goodput of the long path over that of the short one, less the same of each that is not recommended; goodput less that of Standard TCP",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    fairer(chosen, a, b)
                    for a, b in product(("FAST", "H-TCP"), ("Scalable TCP", "HighSpeed TCP", "BicTCP"))
                ),
                *(
                    _mean_less(lab, goodput, chosen, n, "Standard TCP", rate, "Mbit/s")
                    for rate in (100, 250)
                    for n in ("FAST", "H-TCP", "BicTCP")
                ),
            ],
        ),
        looks=REPEATS,
    )
