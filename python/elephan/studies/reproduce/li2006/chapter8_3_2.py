"""Li 2006, sections 8.3.2 and 8.3.3: flows with different round-trip times, and flows beside Standard TCP."""

import math
from collections.abc import Callable
from itertools import product

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Claim, Kind, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.li2006.cells import (
    CHOICES,
    FRIENDLY,
    LARGE,
    LATER,
    LONG_MS,
    OTHER_FIRST,
    PAYLOAD,
    RATES,
    REPEATS,
    SEGMENT_BIT,
    SMALL,
    SYMMETRIC,
    TIE,
    Goodputs,
    by_set,
    by_time,
    cell,
    drawing,
    fairer,
    fairness,
    goodput,
    mean_of,
    rtts,
    share,
)
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, NEW, SYSTEMS

# A long path whose flow has less than this beside a short one is locked out: the largest fairness that Table 8.2 prints for the
# algorithms of which the thesis states it, 0.10, rounded.
LOCKED_OUT = 0.105
# What Table 8.1 prints with large buffers of Standard TCP over Scalable TCP: not almost full.
NOT_FULL = 212.1 / 230.2
# What Table 8.2 prints of H-TCP's fairness over Standard TCP's where section 8.3.2 sees a marked difference, in decades.
MARKED = math.log10(0.59 / 0.34)


def _short(lab: Lab) -> tuple[int, ...]:
    """The round-trip times of the second flow that differ from that of the first."""
    return tuple(t for t in rtts(lab, SMALL) if t != LONG_MS)


def _mean_place(
    lab: Lab,
    name: str,
    scenario: str,
    systems: tuple[str, ...],
    rates: tuple[int, ...],
    times: tuple[int, ...],
    read: Callable[..., float],
    chosen: str,
    above: float | None = 0.0,
    below: float | None = None,
    unit: str = "",
) -> Place:
    """A place whose value is the mean, over cells, of what is read of the systems."""
    arms = tuple(cell(lab, scenario, n, rate, t, chosen) for rate, t, n in product(rates, times, systems))
    return Place(name, arms, mean_of(read, len(systems)), above, below, unit)


def _less_goodput(a: Run, b: Run) -> float:
    return goodput(a) - goodput(b)


@experiment(
    "li2006/figure-8.22", "Two flows of different round-trip times, small buffers", "li2006/asymmetric", choices=CHOICES
)
def figure_8_22(lab: Lab) -> Report:
    """Flow 1 has 162 ms, flow 2 less. The buffer is 20 % of the bandwidth-delay product of the shorter path."""
    report = Report(lab)
    report.compare(
        "fairness of Standard TCP over that of Scalable TCP, the largest of all cells",
        "decades",
        [
            Quantity(
                "Scalable TCP",
                2,
                None,
                tuple(
                    cell(lab, SMALL, n, c, t)
                    for c in RATES
                    for t in _short(lab)
                    for n in ("Standard TCP", "Scalable TCP")
                ),
                lambda *runs: max(fairer(*runs[i : i + 2]) for i in range(0, len(runs), 2)),
            )
        ],
        band=0.25,
        looks=REPEATS,
    )

    def best(chosen: str) -> list[Place]:
        return [
            *(
                _mean_place(
                    lab,
                    f"{a} over {b}, {c} Mbit/s",
                    SMALL,
                    (a, b),
                    (c,),
                    _short(lab),
                    _less_goodput,
                    chosen,
                    -TIE * c,
                    unit="Mbit/s",
                )
                for c in RATES
                for a, b in product(("Scalable TCP", "BicTCP"), ("Standard TCP", "HighSpeed TCP", "H-TCP", "FAST"))
            ),
            *(
                Place(
                    f"H-TCP, share of the capacity, {slow} over {fast} Mbit/s",
                    tuple(cell(lab, SMALL, "H-TCP", c, t, chosen) for t in _short(lab) for c in (slow, fast)),
                    mean_of(lambda x, y, slow=slow, fast=fast: (goodput(x) / slow - goodput(y) / fast) / PAYLOAD, 2),
                    above=0,
                )
                for slow, fast in ((10, 100), (100, 250))
            ),
        ]

    report.test(
        Claim(
            "L33",
            "Section 8.3.2, figure 8.22: with small buffers Scalable TCP and BicTCP have the highest goodput, and the utilisation of H-TCP "
            "falls as the capacity grows.",
            "each capacity, mean over the round-trip times of the second flow (22 and 82 ms)",
            "goodput of each of the two less that of each other algorithm; share of the capacity that H-TCP uses, at a capacity less at the next",
            "no more than 1 % of the capacity below another; 0: no difference",
            tried="Each of the four sets of choices, and FAST's second flow after 100 s.",
            means="Another algorithm has more goodput than one of the two, or H-TCP's utilisation does not fall at one step.",
        ),
        by_set(lab, best, LATER),
        looks=REPEATS,
    )
    _unfairness(lab, report)
    report.draw = drawing(
        lab,
        SMALL,
        tuple(SYSTEMS),
        fairness,
        "fairness",
        "Li 2006, figure 8.25: fairness, flow 1 has 162 ms, small buffers",
        log=True,
    )
    return report


def _unfairness(lab: Lab, report: Report) -> None:
    def apart(chosen: str, of: Goodputs) -> list[Place]:
        def place(n: str, c: int) -> Place:
            # In print H-TCP becomes fairer than Standard TCP, the others less fair.
            sign = 1 if n == "H-TCP" else -1

            def further(a: Run, standard: Run, slow: Run, slow_standard: Run) -> float:
                return sign * (fairer(a, standard, of) - fairer(slow, slow_standard, of))

            arms = tuple(
                cell(lab, SMALL, s, r, t, chosen) for t in _short(lab) for r in (c, 10) for s in (n, "Standard TCP")
            )
            return Place(f"{n}, {c} over 10 Mbit/s", arms, mean_of(further, 4), above=0, unit="decades")

        return [
            *(
                _mean_place(
                    lab,
                    f"{n}, 10 Mbit/s",
                    SMALL,
                    (n, "Standard TCP"),
                    (10,),
                    _short(lab),
                    lambda a, b: fairer(a, b, of),
                    chosen,
                    -MARKED,
                    MARKED,
                    "decades",
                )
                for n in NEW
            ),
            *(place(n, c) for n, c in product(NEW, (100, 250))),
        ]

    report.test(
        Claim(
            "L34",
            "Section 8.3.2, figure 8.25: all algorithms are about as unfair as Standard TCP at 10 Mbit/s, but they differ strongly at 100 and "
            "250 Mbit/s.",
            "each New-TCP, mean over the round-trip times of the second flow (22 and 82 ms)",
            "logarithm of the fairness over Standard TCP's at 10 Mbit/s; the same at the higher capacity less at 10 Mbit/s, in the direction that Table 8.2 "
            "prints: up for H-TCP, down for the others",
            "0.24 decades either way: less than H-TCP's printed 0.59 over Standard TCP's 0.34, a marked difference; 0: no difference",
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and fairness over all of the measured time.",
            means="One algorithm differs from Standard TCP at 10 Mbit/s already, or no more at a higher capacity.",
        ),
        by_time(lab, apart, LATER),
        looks=REPEATS,
    )

    def alone(chosen: str, of: Goodputs) -> list[Place]:
        return [
            _mean_place(
                lab,
                f"H-TCP over Standard TCP, {c} Mbit/s" if n == "H-TCP" else f"Standard TCP over {n}, {c} Mbit/s",
                SMALL,
                ("H-TCP", "Standard TCP") if n == "H-TCP" else ("Standard TCP", n),
                (c,),
                _short(lab),
                lambda a, b: fairer(a, b, of),
                chosen,
                unit="decades",
            )
            for n, c in product(NEW, (100, 250))
        ]

    report.test(
        Claim(
            "L35",
            "Section 8.3.2, figure 8.25: H-TCP is the only New-TCP that is fairer than Standard TCP with different round-trip times.",
            "100 and 250 Mbit/s (at 10 Mbit/s the thesis finds all alike), mean over the round-trip times of the second flow",
            "logarithm of the ratio of the fairnesses: H-TCP's over Standard TCP's, Standard TCP's over that of each other New-TCP",
            "0: no difference",
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and fairness over all of the measured time.",
            means="Another New-TCP is as fair as Standard TCP at one capacity, or H-TCP is no fairer.",
        ),
        by_time(lab, alone, LATER),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L36",
            "Section 8.3.2: Scalable TCP is up to two orders of magnitude less fair than Standard TCP in the same test.",
            "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms",
            "decimal logarithm of Standard TCP's fairness over Scalable TCP's",
            "1.5, our midpoint: nearer to two orders of magnitude than to one, in some cell",
            rule="some",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="The factor is nearer to one order of magnitude in every cell.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    tuple(cell(lab, SMALL, n, c, t, chosen) for n in ("Standard TCP", "Scalable TCP")),
                    lambda a, b: fairer(a, b, of),
                    above=1.5,
                    unit="decades",
                )
                for c, t in product((100, 250), _short(lab))
            ],
        ),
        looks=REPEATS,
    )

    def locked(chosen: str, of: Goodputs) -> list[Place]:
        systems = ("Scalable TCP", "BicTCP", "HighSpeed TCP", "FAST")
        return [
            *(
                _mean_place(
                    lab,
                    f"{n}, 250 Mbit/s",
                    SMALL,
                    (n,),
                    (250,),
                    _short(lab),
                    lambda run: share(run, of),
                    chosen,
                    None,
                    LOCKED_OUT,
                )
                for n in systems
            ),
            *(
                _mean_place(
                    lab,
                    f"Standard TCP over {n}, 100 Mbit/s",
                    SMALL,
                    ("Standard TCP", n),
                    (100,),
                    _short(lab),
                    lambda standard, one: math.log10(share(standard, of) / share(one, of)),
                    chosen,
                    unit="decades",
                )
                for n in systems
            ),
        ]

    report.test(
        Claim(
            "L37",
            "Section 8.3.2: flows of Scalable TCP, BicTCP, HighSpeed TCP and FAST on a long path are locked out by those on a short one.",
            "250 Mbit/s; 100 Mbit/s, where section 8.5 says that it is less; mean over the round-trip times of the second flow (22 and 82 ms)",
            "goodput of the long path over that of the short one; at 100 Mbit/s logarithm of Standard TCP's over it",
            "0.105: the largest that Table 8.2 prints for these four at 250 Mbit/s, 0.10, rounded; 0: no difference",
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and shares over all of the measured time.",
            means="One of the four leaves the long path more than a tenth of the short one's goodput at 250 Mbit/s, or as much as Standard TCP does at "
            "100 Mbit/s.",
        ),
        by_time(lab, locked, LATER),
        looks=REPEATS,
    )


@experiment(
    "li2006/synchronisation",
    "Fairness of Standard TCP against round-trip times and synchronisation",
    "li2006/asymmetric",
    choices=CHOICES,
)
def synchronisation(lab: Lab) -> Report:
    """Section 7.1.4: fairness of Standard TCP is (T_j/T_i)^2 lambda_j/lambda_i."""
    report = Report(lab)

    def nearer(run: Run, ratio: float) -> float:
        """How much nearer equation 7.9 comes with the back-offs of both flows (one each at least) than without them, in decades."""
        least = SEGMENT_BIT / (run.summary.to_s - run.summary.from_s)
        first, second = (max(flow.goodput_bit_s, least) for flow in run.summary.flows)
        losses = [max(flow.congestion_events, 1) for flow in run.summary.flows]
        measured = math.log10(first / second)
        without = 2 * math.log10(ratio)
        with_ = without + math.log10(losses[1] / losses[0])
        return abs(measured - without) - abs(measured - with_)

    report.test(
        Claim(
            "L38",
            "Section 7.1.4, equation 7.9, and figure 8.25: the fairness of Standard TCP with different round-trip times is the square of their "
            "ratio times the ratio of the flows' losses; the lack of synchronisation is captured by it.",
            "Standard TCP with small buffers, 100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms",
            "distance of the measured ratio of goodputs from the squared ratio of round-trip times, less that from equation 7.9 with the "
            "back-offs of both flows, as logarithms",
            "0: the back-offs explain nothing",
            kind=Kind.THEORY,
            tried="Byte and ACK counting.",
            means="In one of the cells the ratio of the back-offs leads away from the measured fairness.",
        ),
        {
            chosen: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    (cell(lab, SMALL, "Standard TCP", c, t, chosen),),
                    lambda run, t=t: nearer(run, t / LONG_MS),
                    above=0,
                    unit="decades",
                )
                for c, t in product((100, 250), _short(lab))
            ]
            for chosen in (AS_PRINTED, f"{AS_PRINTED}, ACK counting")
        },
        looks=REPEATS,
    )
    return report


@experiment(
    "li2006/figure-8.27", "Two flows of different round-trip times, large buffers", "li2006/asymmetric", choices=CHOICES
)
def figure_8_27(lab: Lab) -> Report:
    """The buffer is 20 % of the bandwidth-delay product of the longer path."""
    report = Report(lab)
    slow = ("Standard TCP", "HighSpeed TCP")

    def full(chosen: str) -> list[Place]:
        def lost(n: str, c: int) -> Place:
            arms = tuple(cell(lab, LARGE, n, c, t, chosen) for t in (22, 162))
            return Place(f"{n}, {c} Mbit/s, 22 over 162 ms", arms, _less_goodput, above=0, unit="Mbit/s")

        return [
            *(
                _mean_place(
                    lab,
                    f"{n}, {c} Mbit/s, goodput over Scalable TCP's",
                    LARGE,
                    (n, "Scalable TCP"),
                    (c,),
                    rtts(lab, LARGE),
                    lambda one, scalable: goodput(one) / goodput(scalable),
                    chosen,
                    above=NOT_FULL,
                )
                for n, c in product(("H-TCP", "BicTCP", "FAST"), RATES)
            ),
            *(lost(n, c) for n, c in product(slow, (100, 250))),
            *(
                Place(
                    f"Standard TCP over HighSpeed TCP, loss from 22 to 162 ms, {c} Mbit/s",
                    tuple(cell(lab, LARGE, n, c, t, chosen) for n in slow for t in (22, 162)),
                    lambda a, b, x, y: _less_goodput(a, b) - _less_goodput(x, y),
                    above=0,
                    unit="Mbit/s",
                )
                for c in (100, 250)
            ),
        ]

    report.test(
        Claim(
            "L39",
            "Section 8.3.2, figure 8.27: with large buffers all algorithms use the capacity almost fully, but Standard TCP, and HighSpeed TCP a "
            "little, lose goodput at long round-trip times.",
            "each capacity, mean over the second flow's round-trip times; 100 and 250 Mbit/s for the losses",
            "goodput over that of Scalable TCP, the best in print, in the same cell; goodput with a second round-trip time of 22 ms less that with 162 ms, "
            "of Standard TCP and HighSpeed TCP, and of the former less the latter",
            "0.92, which Table 8.1 prints for Standard TCP (212.1 of 230.2 Mbit/s) as not almost full; and 0",
            tried="Each of the four sets of choices, and FAST's second flow after 100 s.",
            means="One algorithm does not fill the path, or one of the two loses nothing from 22 to 162 ms.",
        ),
        by_set(lab, full, LATER),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L40",
            "Section 8.3.2, figures 8.28 and 8.29: larger buffers do not cure the unfairness of Scalable TCP to long paths.",
            "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms, large buffers",
            "fairness of Standard TCP less that of Scalable TCP",
            "0: it would be cured if it were as fair as Standard TCP",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="With a large buffer Scalable TCP is as fair to the long path as Standard TCP in one cell.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    tuple(cell(lab, LARGE, n, c, t, chosen) for n in ("Standard TCP", "Scalable TCP")),
                    lambda standard, scalable: fairness(standard, of) - fairness(scalable, of),
                    above=0,
                )
                for c, t in product((100, 250), _short(lab))
            ],
        ),
        looks=REPEATS,
    )

    def exceptions(chosen: str, of: Goodputs) -> list[Place]:
        return [
            _mean_place(
                lab,
                f"{a} over {b}, {c} Mbit/s",
                LARGE,
                (a, b),
                (c,),
                _short(lab),
                lambda x, y: fairer(x, y, of),
                chosen,
                unit="decades",
            )
            for c in (100, 250)
            for a, b in (
                *(("Standard TCP", n) for n in ("HighSpeed TCP", "Scalable TCP", "BicTCP")),
                ("H-TCP", "Standard TCP"),
                ("FAST", "Standard TCP"),
            )
        ]

    report.test(
        Claim(
            "L70",
            "Section 10.1: the New-TCP algorithms are less fair to long paths than Standard TCP, but for H-TCP, and FAST with enough buffer.",
            "large buffers, which hold FAST's alphas, 100 and 250 Mbit/s, mean over the second flow's round-trip times",
            "logarithm of the ratio of the fairnesses, in the direction of the sentence",
            "0: no difference",
            tried="Each of the four sets of choices, FAST's second flow after 100 s, and fairness over all of the measured time.",
            means="Table 8.2 of the thesis prints 0.11 for FAST and 0.40 for Standard TCP with large buffers, so that its own numbers contradict "
            "the exception of FAST.",
        ),
        by_time(lab, exceptions, LATER),
        looks=REPEATS,
    )
    report.draw = drawing(
        lab,
        LARGE,
        tuple(SYSTEMS),
        fairness,
        "fairness",
        "Li 2006, figure 8.28: fairness, flow 1 has 162 ms, large buffers",
        log=True,
    )
    return report


@experiment(
    "li2006/figure-8.31",
    "Friendliness to Standard TCP by capacity and round-trip time",
    "li2006/friendliness",
    choices=(
        *CHOICES,
        "which flow starts first is not published: Standard TCP, or, as another set where it may matter, the other (only for L42 and L44 to L46: L41 and L43 would take too long).",
    ),
)
def figure_8_31(lab: Lab) -> Report:
    """One flow of another algorithm beside one of Standard TCP."""
    report = Report(lab)
    times = rtts(lab, FRIENDLY)
    report.compare(
        "goodput of Standard TCP over that of the other, 10 Mbit/s, mean over the round-trip times",
        "1",
        [
            Quantity(n, 0.2, None, tuple(cell(lab, FRIENDLY, n, 10, t) for t in times), mean_of(share, 1))
            for n in ("Scalable TCP", "FAST")
        ],
        band=0.5,
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L41",
            "Section 8.3.3, figure 8.32: the loss-based algorithms are less friendly to Standard TCP the larger the capacity.",
            "four algorithms, mean over the round-trip times, 10 against 100 and 100 against 250 Mbit/s",
            "logarithm of the ratio of the fairnesses at the two capacities",
            "0: no difference",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="One algorithm is no less friendly at a larger capacity.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                Place(
                    f"{n}, {slow} over {fast} Mbit/s",
                    tuple(cell(lab, FRIENDLY, n, c, t, chosen) for t in rtts(lab, FRIENDLY) for c in (slow, fast)),
                    mean_of(lambda x, y: fairer(x, y, of), 2),
                    above=0,
                    unit="decades",
                )
                for n in LOSS_BASED
                for slow, fast in ((10, 100), (100, 250))
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L42",
            "Section 8.3.3: at 10 Mbit/s Scalable TCP and FAST take more than Standard TCP, about 5 to 1.",
            "10 Mbit/s, mean over the round-trip times. The ratio of 5 is a row of the comparisons",
            "logarithm of the goodput of the other algorithm over that of Standard TCP",
            "0: equal shares",
            tried="Each of the four sets of choices, the other flow first, and shares over all of the measured time.",
            means="One of the two does not take more than Standard TCP at 10 Mbit/s.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                _mean_place(
                    lab,
                    n,
                    FRIENDLY,
                    (n,),
                    (10,),
                    rtts(lab, FRIENDLY),
                    lambda run: -math.log10(share(run, of)),
                    chosen,
                    unit="decades",
                )
                for n in ("Scalable TCP", "FAST")
            ],
            OTHER_FIRST,
        ),
        looks=REPEATS,
    )
    _friendly_claims(lab, report)
    report.draw = drawing(
        lab, FRIENDLY, NEW, fairness, "fairness", "Li 2006, figure 8.32: friendliness to Standard TCP", log=True
    )
    return report


# The round-trip times at which the queue of each capacity holds the alpha of one FAST flow.
HOLDS = {10: (82, 162), 100: (22, 82, 162), 250: (82, 162)}


def _friendly_claims(lab: Lab, report: Report) -> None:
    def beside(chosen: str, rate: int) -> Place:
        arms = tuple(
            arm
            for t in HOLDS[rate]
            for arm in (
                cell(lab, FRIENDLY, "FAST", rate, t, chosen),
                cell(lab, SYMMETRIC, "Standard TCP", rate, t, chosen),
            )
        )

        def more(mixed: Run, standard: Run) -> float:
            return (mixed.summary.flows[0].goodput_bit_s - standard.summary.goodput_bit_s / 2) / 1e6

        name = f"Standard TCP beside FAST over beside itself, {rate} Mbit/s"
        return Place(name, arms, mean_of(more, 2), above=-TIE * rate, unit="Mbit/s")

    report.test(
        Claim(
            "L43",
            "Sections 8.3.3 and 8.4.2, figure 8.34: FAST is friendly where the queue holds its alpha: it yields to the queue of Standard TCP, and "
            "takes only capacity that is left.",
            "three capacities, mean over the round-trip times at which the queue holds the alpha of one flow",
            "goodput of Standard TCP beside FAST less its goodput beside another flow of Standard TCP; logarithm of the fairness beside FAST over that "
            "beside each loss-based algorithm",
            "FAST takes no more than 1 % of the capacity from it; 0: no difference (at 10 Mbit/s section 8.3.3 calls FAST aggressive)",
            tried="Each of the four sets of choices, and fairness over all of the measured time.",
            means="FAST takes goodput from Standard TCP although the queue holds its alpha, or another algorithm is friendlier.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                *(beside(chosen, rate) for rate in RATES),
                *(
                    _mean_place(
                        lab,
                        f"friendliness of FAST over {n}, {rate} Mbit/s",
                        FRIENDLY,
                        ("FAST", n),
                        (rate,),
                        HOLDS[rate],
                        lambda x, y: fairer(x, y, of),
                        chosen,
                        unit="decades",
                    )
                    for n, rate in product(LOSS_BASED, (100, 250))
                ),
            ],
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L44",
            "Section 8.3.3, figure 8.35: with too small a queue FAST is less friendly than Scalable TCP, and both flows together use less "
            "than two of Standard TCP.",
            "250 Mbit/s, 42 ms",
            "fairness beside Scalable TCP less that beside FAST; goodput of two flows of Standard TCP less that of Standard TCP and FAST",
            "0: no difference",
            tried="Each of the four sets of choices, the other flow first, and fairness over all of the measured time.",
            means="FAST with too small a queue is no less friendly than Scalable TCP, or uses the path as well as two flows of Standard TCP.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                Place(
                    "friendliness of Scalable TCP over FAST",
                    tuple(cell(lab, FRIENDLY, n, 250, 42, chosen) for n in ("Scalable TCP", "FAST")),
                    lambda scalable, fast: fairness(scalable, of) - fairness(fast, of),
                    above=0,
                ),
                Place(
                    "goodput of two flows of Standard TCP over Standard TCP and FAST",
                    (
                        cell(lab, SYMMETRIC, "Standard TCP", 250, 42, chosen),
                        cell(lab, FRIENDLY, "FAST", 250, 42, chosen),
                    ),
                    _less_goodput,
                    above=0,
                    unit="Mbit/s",
                ),
            ],
            OTHER_FIRST,
        ),
        looks=REPEATS,
    )

    def friendlier(chosen: str, of: Goodputs, a: str, b: str, rtt: int) -> Place:
        return _mean_place(
            lab,
            f"{a} over {b}, {rtt} ms",
            FRIENDLY,
            (a, b),
            (250,),
            (rtt,),
            lambda x, y: fairness(x, of) - fairness(y, of),
            chosen,
        )

    report.test(
        Claim(
            "L45",
            "Section 8.3.3, figure 8.36: at high speed H-TCP is fair to Standard TCP at low round-trip times, unlike the other loss-based "
            "algorithms, and less so the longer they are; at large bandwidth-delay products it is less friendly than HighSpeed TCP and BicTCP.",
            "250 Mbit/s, 22 and 162 ms (the figure's)",
            "fairness less that of each other loss-based New-TCP at 22 ms; that of HighSpeed TCP and BicTCP less its own at 162 ms; its own at 22 ms less "
            "that at 162 ms",
            "0: no difference; the source gives no number for very fair",
            tried="Each of the four sets of choices, the other flow first, and fairness over all of the measured time.",
            means="H-TCP's friendliness does not go from the best at 22 ms to the worst of the three at 162 ms.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                *(friendlier(chosen, of, "H-TCP", n, 22) for n in LOSS_BASED if n != "H-TCP"),
                *(friendlier(chosen, of, n, "H-TCP", 162) for n in ("HighSpeed TCP", "BicTCP")),
                Place(
                    "H-TCP, 22 over 162 ms",
                    tuple(cell(lab, FRIENDLY, "H-TCP", 250, t, chosen) for t in (22, 162)),
                    lambda x, y: fairness(x, of) - fairness(y, of),
                    above=0,
                ),
            ],
            OTHER_FIRST,
        ),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L46",
            "Section 8.3.3, figures 8.37 and 8.38: BicTCP is friendlier than HighSpeed TCP at long round-trip times, and less friendly at short ones.",
            "250 Mbit/s, 162 and 22 ms (the figures')",
            "fairness of BicTCP less that of HighSpeed TCP at 162 ms, the reverse at 22 ms",
            "0: no difference",
            tried="Each of the four sets of choices, the other flow first, and fairness over all of the measured time.",
            means="Which of the two is friendlier does not change with the round-trip time as the sentence says.",
        ),
        by_time(
            lab,
            lambda chosen, of: [
                friendlier(chosen, of, "BicTCP", "HighSpeed TCP", 162),
                friendlier(chosen, of, "HighSpeed TCP", "BicTCP", 22),
            ],
            OTHER_FIRST,
        ),
        looks=REPEATS,
    )
