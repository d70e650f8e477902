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
    FRIENDLY,
    LARGE,
    LATER,
    MEBIBIT,
    PAYLOAD,
    RATES,
    REPEATS,
    RTTS,
    SYMMETRIC,
    TIE,
    TIE_FAIRNESS,
    TIMES,
    Goodputs,
    by_set,
    by_time,
    cell,
    converged,
    drawing,
    fairer,
    fairness,
    goodput,
    late_retransmits,
    mean_of,
    more_overhead,
    overhead,
    overhead_whole,
    rtts,
    until_converged,
)
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, METRICS, NEW, SYSTEMS, cc_of
from elephan.studies.theory import Model

# The ratio of two goodputs from which on section 8.3.1 calls flows converged.
CONVERGED = 0.8
# By how much HighSpeed TCP's goodput at 250 Mbit/s and 82 ms falls short of the mean of the other loss-based New-TCP algorithms in Table 8.1, as a
# share of the payload capacity.
SHORTFALL = ((229.7 + 225.9 + 229.7) / 3 - 218.4) * MEBIBIT / (250e6 * PAYLOAD)
# The window from which on Scalable TCP is in its high-speed mode, in segments.
HIGH_SPEED = 16
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
    above: float = 0,
) -> Place:
    """The same for the mean over the round-trip times at one capacity, those `where` it is asked for; it should be above `above`."""
    times = [t for t in rtts(lab, SYMMETRIC) if where(t)]
    arms = tuple(cell(lab, SYMMETRIC, n, rate, t, chosen) for t in times for n in (a, b))
    name = f"{a} over {b}, {rate} Mbit/s"
    return Place(name, arms, mean_of(lambda x, y: read(x) - read(y), 2), above=above, unit=unit)


def _over_standard(lab: Lab, chosen: str, name: str, rate: int) -> Place:
    """The goodput of `name` less that of Standard TCP at one capacity; FAST's above 42 ms, where the thesis has no exception for it."""
    where = (lambda t: t > 42) if name == "FAST" else lambda _: True
    return _mean_less(lab, goodput, chosen, name, "Standard TCP", rate, "Mbit/s", where)


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
            "below 82 ms; without HighSpeed TCP at 10 Mbit/s, which section 8.4.1 calls little different. FAST at 100 and 250 Mbit/s with 22 ms",
            "goodput less that of Standard TCP; for FAST at 22 ms the reverse",
            "0: no difference",
            tried="Each of the four sets of choices, and FAST's second flow after 100 s.",
            means="One New-TCP is not ahead of Standard TCP where the sentence states it, or FAST is not behind it at the lowest round-trip time.",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    _over_standard(lab, chosen, n, rate)
                    for n, rate in product(NEW, RATES)
                    if not (rate == 10 and n in ("FAST", "HighSpeed TCP"))
                ),
                *(_less(lab, goodput, chosen, "Standard TCP", "FAST", rate, 22, "Mbit/s") for rate in (100, 250)),
            ],
            LATER,
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L18",
            "Section 8.3.1, figure 8.10: Scalable TCP and BicTCP have the highest goodput.",
            "the three capacities, mean over the round-trip times",
            "goodput of each of the two less that of each other algorithm",
            "no more than 1 % of the capacity below another: many tie at line rate",
            tried="Each of the four sets of choices, and FAST's second flow after 100 s.",
            means="Another algorithm is ahead of one of the two by more than the errors of Table 8.1.",
        ),
        by_set(
            lab,
            lambda chosen: [
                _mean_less(lab, goodput, chosen, best, n, rate, "Mbit/s", above=-TIE * rate)
                for rate in RATES
                for best, n in product(("Scalable TCP", "BicTCP"), ("Standard TCP", "HighSpeed TCP", "H-TCP", "FAST"))
            ],
            LATER,
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L19",
            "Section 8.3.1, figures 8.10 and 8.11: HighSpeed TCP's goodput, and its increase and decrease parameters, grow with the "
            "bandwidth-delay product; at the largest its goodput is like that of the other New-TCP algorithms.",
            "250 Mbit/s, the longest round-trip time against 22 ms; figure 8.11: windows at 100 Mbit/s, by round-trip time",
            "share of the capacity; shortfall of that share to the mean of the other loss-based New-TCP algorithms; increase and decrease "
            "parameters at the mean window, by RFC 3649's functions, which are constant up to 38 segments",
            "0: no difference; for the shortfall at the longest round-trip time also that of Table 8.1 at 82 ms, 0.041 of the capacity",
            tried="Each of the four sets of choices.",
            means="HighSpeed TCP does not come as near to the other algorithms as the sentence says.",
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

    def increase(run: Run) -> float:
        return model.increase(_mean_window(run), _core.seconds(run.scenario.document["path"]["rtt"]))

    def factor(run: Run) -> float:
        return model.beta(_mean_window(run))

    model = Model(cc_of("HighSpeed TCP")).core
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
        Place(
            f"shortfall to the others, 250 Mbit/s, {times[-1]} ms",
            both[4:],
            lambda *runs: shortfall(runs),
            below=SHORTFALL,
        ),
        *(
            Place(
                f"{name}, 100 Mbit/s, {long} over {short} ms",
                tuple(cell(lab, SYMMETRIC, "HighSpeed TCP", 100, t, chosen) for t in (long, short)),
                lambda a, b, read=read: read(a) - read(b),
                above=0,
                unit=unit,
            )
            for short, long in pairwise(rtts(lab, SYMMETRIC))
            for name, read, unit in (("increase", increase, "segments"), ("factor left by a loss", factor, ""))
        ),
    ]


def _mean_window(run: Run) -> float:
    return sum(flow.cwnd_mean_segments or 0 for flow in run.summary.flows) / 2


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
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and fairness over all of the measured time.",
            means="Another algorithm is less fair than Scalable TCP at one of the capacities.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                _mean_less(
                    lab, lambda run: fairness(run, of), chosen, n, "Scalable TCP", rate, where=lambda t: t >= 162
                )
                for n, rate in product(SYSTEMS, RATES)
                if n != "Scalable TCP"
            ],
            LATER,
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L21",
            "Section 8.3.1, figure 8.14: Scalable TCP is unfair at 10 Mbit/s with 22 and 42 ms, because of the switch of its mode at 16 segments.",
            "the two cells, each by itself",
            "fairness of Standard TCP less that of Scalable TCP; share of the second half of the time in which the two flows are on different sides of "
            "16 segments",
            "0: no difference; 1/2: mostly",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="Scalable TCP is not unfair in both cells, or its flows are in the same mode most of the time.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                place
                for t in (22, 42)
                for place in (
                    _less(lab, lambda run: fairness(run, of), chosen, "Standard TCP", "Scalable TCP", 10, t),
                    Place(
                        f"in different modes, 10 Mbit/s, {t} ms",
                        (cell(lab, SYMMETRIC, "Scalable TCP", 10, t, chosen),),
                        _apart,
                        above=0.5,
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
            "the cells that the thesis names: 10 Mbit/s with 82 ms, 100 and 250 Mbit/s with 42 ms (it prints the former twice; figure 8.15 has the latter). "
            "Not 250 Mbit/s with 82 ms, figure 8.16, of which Table 8.2 prints a fairness of 1.00 ± 0.00",
            "fairness of Standard TCP less that of HighSpeed TCP; fairness with the RFC's continuous functions less that with its table",
            "0: no difference",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="HighSpeed TCP is not unfair there, or is no fairer without the rows of the table.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                place
                for rate, t in ((10, 82), (100, 42), (250, 42))
                for arm in [cell(lab, SYMMETRIC, "HighSpeed TCP", rate, t, chosen)]
                for place in (
                    _less(lab, lambda run: fairness(run, of), chosen, "Standard TCP", "HighSpeed TCP", rate, t),
                    Place(
                        f"functions over table, {rate} Mbit/s, {t} ms",
                        (arm.set({"flow.cc": "hstcp"}), arm),
                        lambda smooth, table: fairness(smooth, of) - fairness(table, of),
                        above=0,
                    ),
                )
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L23",
            "Section 8.3.1, figures 8.12(a) and 8.17: BicTCP has problems to be fair at low capacity and long round-trip times, but less "
            "at higher capacities.",
            "round-trip times of 162 and 324 ms, 10 Mbit/s by itself and against 100 and 250 Mbit/s",
            "fairness of Standard TCP less that of BicTCP at 10 Mbit/s; fairness at the higher capacity less that at 10 Mbit/s",
            "0: no difference",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="BicTCP is no less fair than Standard TCP at 10 Mbit/s, or no fairer at a higher capacity.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                *(_less(lab, lambda run: fairness(run, of), chosen, "Standard TCP", "BicTCP", 10, t) for t in long),
                *(
                    Place(
                        f"{rate} over 10 Mbit/s, {t} ms",
                        tuple(cell(lab, SYMMETRIC, "BicTCP", c, t, chosen) for c in (rate, 10)),
                        lambda fast, slow: fairness(fast, of) - fairness(slow, of),
                        above=0,
                    )
                    for rate, t in product((100, 250), long)
                ),
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L24",
            "Section 8.3.1, figure 8.12: H-TCP has no problems to be fair in any condition, and is fairer than Standard TCP.",
            "every cell; the three capacities, mean over the round-trip times",
            "fairness in a cell; fairness less that of Standard TCP",
            "0.8: the ratio of goodputs at which section 8.3.1 calls two flows converged; no more than 0.01 below Standard TCP's",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="H-TCP is fair almost, but not quite, everywhere, or less fair than Standard TCP at one capacity.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                *(
                    Place(
                        f"{rate} Mbit/s, {t} ms",
                        (cell(lab, SYMMETRIC, "H-TCP", rate, t, chosen),),
                        lambda run: fairness(run, of),
                        above=CONVERGED,
                    )
                    for rate, t in product(RATES, rtts(lab, SYMMETRIC))
                ),
                *(
                    _mean_less(
                        lab,
                        lambda run: fairness(run, of),
                        chosen,
                        "H-TCP",
                        "Standard TCP",
                        rate,
                        above=-TIE_FAIRNESS,
                    )
                    for rate in RATES
                ),
            ],
        ),
        looks=REPEATS,
    )
    report.draw = drawing(
        lab, SYMMETRIC, tuple(SYSTEMS), fairness, "fairness", "Li 2006, figure 8.12: fairness of two flows"
    )
    return report


def _apart(run: Run) -> float:
    """The share of the samples in the second half of the measured time that have the flows on different sides of the switch of modes."""
    middle = (run.summary.from_s + run.summary.to_s) / 2
    table = run.flows.filter(pl.col("time_s") > middle)
    first, second = (table.filter(pl.col("flow") == i)["cwnd_segments"] >= HIGH_SPEED for i in (0, 1))
    return float((first != second).sum() / len(first))


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
        return [
            Place(
                f"{n} over Standard TCP, {rate} Mbit/s",
                tuple(
                    cell(lab, SYMMETRIC, s, rate, t, chosen)
                    for t in rtts(lab, SYMMETRIC)
                    if n != "H-TCP" or t > 42
                    for s in (n, "Standard TCP")
                ),
                mean_of(more_overhead(read), 2),
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
            tried="Each of the four sets of choices, and both readings of the overhead.",
            means="A loss-based New-TCP has no more overhead than Standard TCP at one capacity.",
        ),
        by_set(lab, lambda chosen: lowest(chosen, overhead)) | {whole: lowest(AS_PRINTED, overhead_whole)},
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L26",
            "Section 8.3.1, figure 8.19: FAST stabilises, and then loses nothing, from a round-trip time of 162 ms at 10 Mbit/s, 42 ms "
            "at 100 Mbit/s and 82 ms at 250 Mbit/s on, and not below.",
            "the grid; Tables 8.2 and 8.4 contradict the sentence at 250 Mbit/s and 82 ms (fairness 0.31, overhead 20.2)",
            "share of the runs that retransmit nothing in the second half of the measured time",
            "1/2: most runs from those round-trip times on, not most runs below them (the thesis says almost no losses)",
            tried="Both ranges of starts of the second flow.",
            means="The queue at 250 Mbit/s and 82 ms, 342 packets, holds less than the two alphas of 400, so that the sentence contradicts its own rule there.",
        ),
        {
            chosen: [
                Place(
                    f"{rate} Mbit/s, {t} ms",
                    (cell(lab, SYMMETRIC, "FAST", rate, t, chosen),),
                    lambda run: late_retransmits(run) == 0,
                    above=0.5 if t >= STABLE[rate] else None,
                    below=None if t >= STABLE[rate] else 0.5,
                    statistic="share",
                )
                for rate, t in product(RATES, every)
            ]
            for chosen in (AS_PRINTED, LATER)
        },
        looks=TIMES,
    )

    def htcp(chosen: str, read: Callable[[Run], float]) -> list[Place]:
        longest = times[-1]

        more = more_overhead(read)

        def growth(long: Run, long_standard: Run, low: Run, low_standard: Run) -> float:
            return more(long, long_standard) - more(low, low_standard)

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
            *(
                Place(
                    f"against Standard TCP, 22 ms, {rate} Mbit/s",
                    tuple(cell(lab, SYMMETRIC, n, rate, 22, chosen) for n in ("H-TCP", "Standard TCP")),
                    more,
                    above=-0.5,
                    below=0.5,
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
            "10 and 100 Mbit/s at 324 ms against Scalable TCP; each capacity at 324 ms against 22 ms, and at 22 ms",
            "overhead less that of Scalable TCP in the same cell; decimal logarithm of the overhead over Standard TCP's, at 324 ms less at 22 ms, and "
            "at 22 ms",
            "0; and 1/2, our midpoint: nearer to an order of magnitude than to none at 324 ms, the reverse at 22 ms",
            tried="Each of the four sets of choices, and both readings of the overhead.",
            means="H-TCP's overhead does not rise above Scalable TCP's, or that of Standard TCP, as the sentence says.",
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

    def first_stable(*runs: Run) -> Time:
        """The round-trip time from which on nothing is retransmitted in the second half, in place of seconds in ms."""
        lost = [t for t, run in zip(every, runs, strict=True) if late_retransmits(run) > 0]
        longer = [t for t in every if not lost or t > lost[-1]]
        return Time(longer[0], seen=True) if longer else Time(every[-1], seen=False)

    stabilises = "round-trip time from which on FAST stabilises"
    for chosen in (AS_PRINTED, LATER):
        report.compare(
            stabilises if chosen == AS_PRINTED else f"{stabilises}, {chosen}",
            "ms",
            [
                Quantity(
                    f"FAST, {rate} Mbit/s",
                    t,
                    None,
                    tuple(cell(lab, SYMMETRIC, "FAST", rate, x, chosen) for x in every),
                    first_stable,
                    "median",
                )
                for rate, t in STABLE.items()
            ],
            band=0.0,
            looks=TIMES,
            cause_of="" if chosen == AS_PRINTED else stabilises,
            changed="" if chosen == AS_PRINTED else "the second flow starts after 100 s",
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
                more_overhead(overhead),
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
                more_overhead(overhead),
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
                more_overhead(overhead),
            )
        ],
        band=0.25,
        looks=REPEATS,
    )


def _start_up(lab: Lab, system: str, rate: int, rtt: int, chosen: str) -> Arm:
    """A cell until some seconds after the last start of its second flow, with samples of every 200 ms."""
    arm = cell(lab, SYMMETRIC, system, rate, rtt, chosen)
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
    choices=(
        *CHOICES,
        f"soon after its start: within {AFTER_START_S:g} s. Windows are compared every 200 ms.",
        "A convergence time beyond the end of a test counts as that until its end in means, as not before the end in medians and orders.",
    ),
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
            Quantity(n, value, None, (cell(lab, SYMMETRIC, system, rate, longest),), until_converged)
            for n, system, rate, value in (
                *((f"H-TCP, {rate} Mbit/s", "H-TCP", rate, 30) for rate in RATES),
                *((f"{n}, 250 Mbit/s", n, 250, 200) for n in ("HighSpeed TCP", "BicTCP")),
            )
        ],
        band=0.5,
        looks=REPEATS,
    )
    report.compare(
        "convergence time, 250 Mbit/s, 162 ms, order of magnitude",
        "decades of s",
        [
            Quantity(
                "HighSpeed TCP",
                2,
                None,
                (cell(lab, SYMMETRIC, "HighSpeed TCP", 250, 162),),
                lambda run: math.log10(max(until_converged(run), 1)),
            )
        ],
        band=0.25,
        looks=REPEATS,
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


def _doublings(a: Run, b: Run) -> float:
    """How much later the second flow of the first run converged than that of the other, as a logarithm to base 2; after 1 s at least."""
    return math.log2(max(until_converged(a), 1) / max(until_converged(b), 1))


def _order(a: Run, b: Run) -> tuple[Time, Time]:
    return converged(a), converged(b)


def _before(lab: Lab, chosen: str, a: str, b: str, rate: int, rtt: int) -> Place:
    """The second flow of `a` should converge earlier than that of `b`."""
    arms = tuple(cell(lab, SYMMETRIC, n, rate, rtt, chosen) for n in (a, b))
    return Place(f"{a} before {b}, {rate} Mbit/s, {rtt} ms", arms, _order, above=0.5, statistic="earlier")


def _convergence_claims(lab: Lab, report: Report, longest: int) -> None:
    report.test(
        Claim(
            "L29",
            "Sections 8.3.1 and 8.4.3, figure 8.21: HighSpeed TCP and BicTCP converge in very similar times; for long round-trip times these are "
            "of the order of hundreds of seconds, almost a third of a test of ten minutes.",
            "250 Mbit/s; 162 ms, of which section 8.4.3 says it of HighSpeed TCP; the longest round-trip time, for both",
            "median of the 80 % convergence time; mean logarithm of the ratio of the two, to base 2",
            "100 s (hundreds), and at the longest 300 s (half as much again as 200 s, a third of the test; this end is ours); 1, a factor of two: nearer to "
            "equal than to the factor of four that the thesis sees between them and H-TCP",
            tried="Each of the four sets of choices.",
            means="The two do not converge in similar times of hundreds of seconds.",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    Place(
                        f"{n}, {t} ms",
                        (cell(lab, SYMMETRIC, n, 250, t, chosen),),
                        converged,
                        above=100,
                        below=below,
                        unit="s",
                        statistic="median",
                    )
                    for n, t, below in (
                        ("HighSpeed TCP", 162, None),
                        ("HighSpeed TCP", longest, 300),
                        ("BicTCP", longest, 300),
                    )
                ),
                *(
                    Place(
                        f"BicTCP over HighSpeed TCP, {t} ms",
                        tuple(cell(lab, SYMMETRIC, n, 250, t, chosen) for n in ("BicTCP", "HighSpeed TCP")),
                        _doublings,
                        above=-1,
                        below=1,
                        unit="doublings",
                    )
                    for t in dict.fromkeys((162, longest))
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
            "which of two algorithms is earlier; mean logarithm of the ratio of H-TCP's times at 324 and 162 ms, to base 2",
            "1/2: as often earlier as later; 1/2, our midpoint: nearer to a constant time than to one in proportion to the round-trip time",
            tried="Each of the four sets of choices.",
            means="H-TCP's time is not constant from 162 to 324 ms, or it is not before both others at one capacity.",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(
                    _before(lab, chosen, "H-TCP", n, rate, longest)
                    for rate, n in product(RATES, ("BicTCP", "HighSpeed TCP"))
                ),
                *(
                    Place(
                        f"H-TCP, {rate} Mbit/s, 324 over 162 ms",
                        tuple(cell(lab, SYMMETRIC, "H-TCP", rate, t, chosen) for t in (324, 162)),
                        _doublings,
                        below=0.5,
                        unit="doublings",
                    )
                    for rate in RATES
                ),
            ],
        ),
        looks=(5, 10, 20),
    )
    report.compare(
        f"convergence time over that of H-TCP, 250 Mbit/s, {longest} ms",
        "doublings",
        [
            Quantity(n, 2, None, tuple(cell(lab, SYMMETRIC, s, 250, longest) for s in (n, "H-TCP")), _doublings)
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
            "162 ms, three capacities; low is what is earlier than at 82 ms",
            "share of the runs in which the second window exceeds the first soon after its start; at which of the two round-trip times the second "
            "flow converges earlier",
            "1/2: most runs; as often earlier as later",
            tried="Samples every 200 ms around the start, with the second flow at random phases of an epoch of the first; byte and ACK counting.",
            means="Convergence at 162 ms is later than at 82 ms, but for 250 Mbit/s with ACK counting. Slow start lifts the second window above the "
            "first in some of the runs only.",
        ),
        {
            chosen: [
                place
                for rate in RATES
                for place in (
                    Place(
                        f"second above first, {rate} Mbit/s",
                        (_start_up(lab, "Standard TCP", rate, 162, chosen),),
                        _exceeds,
                        above=0.5,
                        statistic="share",
                    ),
                    Place(
                        f"162 before 82 ms, {rate} Mbit/s",
                        tuple(cell(lab, SYMMETRIC, "Standard TCP", rate, t, chosen) for t in (162, 82)),
                        _order,
                        above=0.5,
                        statistic="earlier",
                    ),
                )
            ]
            # The other sets are the same for Standard TCP.
            for chosen in (AS_PRINTED, f"{AS_PRINTED}, ACK counting")
        },
        looks=TIMES,
    )
    report.test(
        Claim(
            "L32",
            "Section 8.4.3: the second FAST flow always reaches a larger window at its start than the first, so that its convergence "
            "time is small.",
            "the three capacities, every round-trip time; 250 Mbit/s and 82 ms (Table 8.3) for the time",
            "share of the runs in which the second window exceeds the first soon after its start; which of two algorithms converges earlier, "
            "FAST or each loss-based one",
            "1/2: most runs, as no number of runs shows always; as often earlier as later",
            tried="Both ranges of starts of the second flow.",
            means="The second FAST flow does not exceed the first in most runs of one cell, or another algorithm converges before it.",
        ),
        {
            chosen: [
                *(
                    Place(
                        f"{rate} Mbit/s, {t} ms",
                        (_start_up(lab, "FAST", rate, t, chosen),),
                        _exceeds,
                        above=0.5,
                        statistic="share",
                    )
                    for rate, t in product(RATES, rtts(lab, SYMMETRIC))
                ),
                *(_before(lab, chosen, "FAST", n, 250, 82) for n in LOSS_BASED),
            ]
            for chosen in (AS_PRINTED, LATER)
        },
        looks=TIMES,
    )


def _recommended(lab: Lab, report: Report) -> None:
    def long_path(chosen: str, a: str, b: str, of: Goodputs) -> Place:
        times = [t for t in rtts(lab, LARGE) if t < 162]
        arms = tuple(cell(lab, LARGE, n, rate, t, chosen) for rate in (100, 250) for t in times for n in (a, b))
        return Place(
            f"fairness of {a} over {b}, unequal round-trip times",
            arms,
            mean_of(lambda x, y: fairer(x, y, of), 2),
            above=0,
            unit="decades",
        )

    report.test(
        Claim(
            "L71",
            "Section 10.2, Table 10.1: FAST and H-TCP are recommended where others share the path, because they are fair to long paths, and "
            "Scalable TCP, HighSpeed TCP and BicTCP are not; BicTCP too on a path of its own, because of its goodput.",
            "unequal round-trip times with large buffers at 100 and 250 Mbit/s, which hold FAST's alphas; equal ones, mean over the grid, for FAST from 82 ms "
            "on, as section 8.3.1 excepts its goodput at low ones",
            "logarithm of the fairness over that of each that is not recommended; goodput less that of Standard TCP",
            "0: no difference",
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and fairness over all of the measured time.",
            means="One of the two is no fairer than an algorithm that is not recommended, or one of the three has no more goodput than Standard TCP.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                *(
                    long_path(chosen, a, b, of)
                    for a, b in product(("FAST", "H-TCP"), ("Scalable TCP", "HighSpeed TCP", "BicTCP"))
                ),
                *(_over_standard(lab, chosen, n, rate) for rate in (100, 250) for n in ("FAST", "H-TCP", "BicTCP")),
            ],
            LATER,
        ),
        looks=REPEATS,
    )
