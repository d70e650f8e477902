"""Li 2006, sections 8.3.2 and 8.3.3: flows with different round-trip times, and flows beside Standard TCP."""

import math
from collections.abc import Callable
from itertools import product

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Claim, Kind, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.li2006.cells import (
    CHOICES,
    FAST_STARTS,
    FRIENDLY,
    LARGE,
    LONG_MS,
    PAYLOAD,
    RATES,
    REPEATS,
    SMALL,
    SYMMETRIC,
    by_set,
    cell,
    drawing,
    fairness,
    goodput,
    mean_of,
    rtts,
    share,
    starting,
)
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, LOSS_BASED, NEW, SYSTEMS

LATER = tuple(FAST_STARTS)[1]
# A long path whose flow has less than this beside a short one is locked out: the largest fairness that Table 8.2 prints for the
# algorithms of which the thesis says so, 0.10, rounded.
LOCKED_OUT = 0.105


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
    read: Callable[..., float | None],
    chosen: str,
    above: float | None = 0.0,
    below: float | None = None,
    unit: str = "",
) -> Place:
    """A place whose value is the mean, over cells, of what is read of the systems. `chosen` may name a later start of FAST."""
    base = AS_PRINTED if chosen == LATER else chosen
    arms = []
    for rate, t, n in product(rates, times, systems):
        arm = cell(lab, scenario, n, rate, t, base)
        arms.append(starting(arm, *FAST_STARTS[LATER]) if chosen == LATER and n == "FAST" else arm)
    return Place(name, tuple(arms), mean_of(read, len(systems)), above, below, unit)


def _log_ratio(a: Run, b: Run) -> float | None:
    """The logarithm of the ratio of two fairnesses."""
    x, y = fairness(a), fairness(b)
    return math.log(x / y) if x and y else None


def _differs(a: Run, b: Run) -> float | None:
    found = _log_ratio(a, b)
    return None if found is None else abs(found)


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
                lambda *runs: max(_log_ratio(*runs[i : i + 2]) or 0.0 for i in range(0, len(runs), 2)) / math.log(10),
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
            "0: no difference",
        ),
        by_set(lab, best),
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
    report.test(
        Claim(
            "L34",
            "Section 8.3.2, figure 8.25: all algorithms are about as unfair as Standard TCP at 10 Mbit/s, but they differ strongly at 100 and "
            "250 Mbit/s.",
            "each New-TCP, mean over the round-trip times of the second flow (22 and 82 ms)",
            "difference from Standard TCP, the logarithm of the ratio of the fairnesses without its sign: at the higher capacity less at 10 Mbit/s",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    f"{n}, {c} over 10 Mbit/s",
                    tuple(
                        cell(lab, SMALL, s, r, t, chosen)
                        for t in _short(lab)
                        for r in (c, 10)
                        for s in (n, "Standard TCP")
                    ),
                    mean_of(_further, 4),
                    above=0,
                )
                for n, c in product(NEW, (100, 250))
            ],
        ),
        looks=REPEATS,
    )

    def fairer(chosen: str) -> list[Place]:
        return [
            _mean_place(
                lab,
                f"H-TCP over Standard TCP, {c} Mbit/s" if n == "H-TCP" else f"Standard TCP over {n}, {c} Mbit/s",
                SMALL,
                ("H-TCP", "Standard TCP") if n == "H-TCP" else ("Standard TCP", n),
                (c,),
                _short(lab),
                _log_ratio,
                chosen,
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
        ),
        by_set(lab, fairer) | {LATER: fairer(LATER)},
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L36",
            "Section 8.3.2: Scalable TCP is up to two orders of magnitude less fair than Standard TCP in the same test.",
            "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms",
            "decimal logarithm of Standard TCP's fairness over Scalable TCP's",
            "1.5: nearer to two orders of magnitude than to one, in some cell",
            rule="some",
            tried="Byte and ACK counting.",
            means="With ACK counting the factor is nearer to one order of magnitude: 0.6 to 1.1 decades at 100 Mbit/s.",
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    tuple(cell(lab, SMALL, n, c, t, chosen) for n in ("Standard TCP", "Scalable TCP")),
                    lambda a, b: None if (r := _log_ratio(a, b)) is None else r / math.log(10),
                    above=1.5,
                )
                for c, t in product((100, 250), _short(lab))
            ],
        ),
        looks=REPEATS,
    )

    def locked(chosen: str) -> list[Place]:
        return [
            _mean_place(
                lab,
                f"{n}, {c} Mbit/s",
                SMALL,
                (n,),
                (c,),
                _short(lab),
                share,
                chosen,
                above=None,
                below=LOCKED_OUT,
            )
            for n, c in product(("Scalable TCP", "BicTCP", "HighSpeed TCP", "FAST"), (100, 250))
        ]

    report.test(
        Claim(
            "L37",
            "Section 8.3.2: flows of Scalable TCP, BicTCP, HighSpeed TCP and FAST on a long path are locked out by those on a short one.",
            "100 and 250 Mbit/s, mean over the round-trip times of the second flow (22 and 82 ms)",
            "goodput of the long path over that of the short one",
            "0.105: the largest that Table 8.2 prints for these four, 0.10, rounded",
            tried="Each of the four sets of choices, and a start of the second FAST flow after 100 s.",
            means="At 100 Mbit/s, where its alpha is 20 for both flows, FAST leaves the long path half the goodput of the short one. It locks the long path out only at 250 Mbit/s, the capacity of the printed table.",
        ),
        by_set(lab, locked) | {LATER: locked(LATER)},
        looks=REPEATS,
    )


def _further(a: Run, standard: Run, slow: Run, slow_standard: Run) -> float | None:
    """By how much more a run differs from Standard TCP's than two others do."""
    x, y = _differs(a, standard), _differs(slow, slow_standard)
    return None if x is None or y is None else x - y


@experiment(
    "li2006/synchronisation",
    "Fairness of Standard TCP against round-trip times and synchronisation",
    "li2006/asymmetric",
    choices=CHOICES,
)
def synchronisation(lab: Lab) -> Report:
    """Section 7.1.4: fairness of Standard TCP is (T_j/T_i)^2 lambda_j/lambda_i."""
    report = Report(lab)

    def nearer(run: Run, ratio: float) -> float | None:
        """How much nearer equation 7.9 comes with the back-offs of both flows than without them, as logarithms."""
        first, second = run.summary.flows
        if not first.congestion_events or not second.congestion_events:
            return None
        measured = math.log(first.goodput_bit_s / second.goodput_bit_s)
        without = 2 * math.log(ratio)
        with_ = without + math.log(second.congestion_events / first.congestion_events)
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
        ),
        {
            chosen: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    (cell(lab, SMALL, "Standard TCP", c, t, chosen),),
                    lambda run, t=t: nearer(run, t / LONG_MS),
                    above=0,
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
    late = (82, 162)

    def full(chosen: str) -> list[Place]:
        others = ("Scalable TCP", "H-TCP", "BicTCP", "FAST")
        return [
            *(
                _mean_place(
                    lab,
                    f"{n}, {c} Mbit/s, share of the capacity",
                    LARGE,
                    (n,),
                    (c,),
                    _short(lab),
                    lambda run, c=c: goodput(run) / c / PAYLOAD,
                    chosen,
                    above=212.1 / 230.2,
                )
                for n, c in product(others, RATES)
            ),
            *(
                _mean_place(
                    lab,
                    f"{a} over {b}, {c} Mbit/s, 82 and 162 ms",
                    LARGE,
                    (a, b),
                    (c,),
                    late,
                    _less_goodput,
                    chosen,
                    unit="Mbit/s",
                )
                for c in (100, 250)
                for a, b in (*((n, "HighSpeed TCP") for n in others), ("HighSpeed TCP", "Standard TCP"))
            ),
        ]

    report.test(
        Claim(
            "L39",
            "Section 8.3.2, figure 8.27: with large buffers all algorithms use the capacity almost fully, but Standard TCP, and HighSpeed TCP a "
            "little, lose goodput at long round-trip times.",
            "each capacity, mean over the second flow's round-trip times; at 82 and 162 ms for the losses",
            "share of the capacity; goodput less that of HighSpeed TCP, and HighSpeed TCP's less that of Standard TCP",
            "0.92, which Table 8.1 prints for Standard TCP of what Scalable TCP reaches (212.1 of 230.2 Mbit/s) as not almost full; and 0",
        ),
        by_set(lab, full),
        looks=REPEATS,
    )
    report.test(
        Claim(
            "L40",
            "Section 8.3.2, figures 8.28 and 8.29: larger buffers do not cure the unfairness of Scalable TCP to long paths.",
            "100 and 250 Mbit/s, round-trip times of the second flow of 22 and 82 ms, large buffers",
            "fairness of Standard TCP less that of Scalable TCP",
            "0: it would be cured if it were as fair as Standard TCP",
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    f"{c} Mbit/s, {t} ms",
                    tuple(cell(lab, LARGE, n, c, t, chosen) for n in ("Standard TCP", "Scalable TCP")),
                    lambda standard, scalable: fairness(standard) - fairness(scalable),
                    above=0,
                )
                for c, t in product((100, 250), _short(lab))
            ],
        ),
        looks=REPEATS,
    )

    def exceptions(chosen: str) -> list[Place]:
        return [
            _mean_place(
                lab,
                f"{a} over {b}, {c} Mbit/s",
                LARGE,
                (a, b),
                (c,),
                _short(lab),
                _log_ratio,
                chosen,
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
            means="Table 8.2 of the thesis prints 0.11 for FAST and 0.40 for Standard TCP with large buffers, so that its own numbers contradict "
            "the exception of FAST.",
        ),
        by_set(lab, exceptions) | {LATER: exceptions(LATER)},
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
    choices=(*CHOICES, "which flow starts first is not published: Standard TCP."),
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
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    f"{n}, {slow} over {fast} Mbit/s",
                    tuple(cell(lab, FRIENDLY, n, c, t, chosen) for t in rtts(lab, FRIENDLY) for c in (slow, fast)),
                    mean_of(_log_ratio, 2),
                    above=0,
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
        ),
        by_set(
            lab,
            lambda chosen: [
                _mean_place(
                    lab,
                    n,
                    FRIENDLY,
                    (n,),
                    (10,),
                    rtts(lab, FRIENDLY),
                    lambda run: -math.log(share(run)),
                    chosen,
                )
                for n in ("Scalable TCP", "FAST")
            ],
        ),
        looks=REPEATS,
    )
    _friendly_claims(lab, report)
    report.draw = drawing(
        lab, FRIENDLY, NEW, fairness, "fairness", "Li 2006, figure 8.32: friendliness to Standard TCP", log=True
    )
    return report


# The round-trip times at which the queue of each capacity holds the alpha of one FAST flow.
HOLDS = {10: (82, 162, 324), 100: (22, 42, 82, 162, 324), 250: (82, 162, 324)}


def _friendly_claims(lab: Lab, report: Report) -> None:
    def beside(chosen: str, rate: int) -> Place:
        arms = tuple(
            arm
            for t in HOLDS[rate]
            if t in rtts(lab, FRIENDLY)
            for arm in (
                cell(lab, FRIENDLY, "FAST", rate, t, chosen),
                cell(lab, SYMMETRIC, "Standard TCP", rate, t, chosen),
            )
        )

        def more(mixed: Run, standard: Run) -> float:
            return (mixed.summary.flows[0].goodput_bit_s - standard.summary.goodput_bit_s / 2) / 1e6

        return Place(f"{rate} Mbit/s", arms, mean_of(more, 2), above=0, unit="Mbit/s")

    report.test(
        Claim(
            "L43",
            "Sections 8.3.3 and 8.4.2, figure 8.34: FAST is friendly where the queue holds its alpha: it yields to the queue of Standard TCP, and "
            "takes only capacity that is left.",
            "three capacities, mean over the round-trip times at which the queue holds the alpha of one flow",
            "goodput of Standard TCP beside FAST less its goodput beside another flow of Standard TCP",
            "0: FAST takes nothing from it",
        ),
        by_set(lab, lambda chosen: [beside(chosen, rate) for rate in RATES]),
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
        ),
        by_set(
            lab,
            lambda chosen: [
                Place(
                    "friendliness of Scalable TCP over FAST",
                    tuple(cell(lab, FRIENDLY, n, 250, 42, chosen) for n in ("Scalable TCP", "FAST")),
                    lambda scalable, fast: fairness(scalable) - fairness(fast),
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
        ),
        looks=(5, 10, 20),
    )

    def friendlier(chosen: str, a: str, b: str, rtt: int) -> Place:
        return _mean_place(
            lab,
            f"{a} over {b}, {rtt} ms",
            FRIENDLY,
            (a, b),
            (250,),
            (rtt,),
            lambda x, y: fairness(x) - fairness(y),
            chosen,
        )

    report.test(
        Claim(
            "L45",
            "Section 8.3.3, figure 8.36: at high speed H-TCP is fair to Standard TCP at low round-trip times, unlike the other loss-based "
            "algorithms, and less so the longer they are; at large bandwidth-delay products it is less friendly than HighSpeed TCP and BicTCP.",
            "250 Mbit/s, 22 and 162 ms (the figure's)",
            "fairness less that of HighSpeed TCP and of BicTCP at 22 ms, the reverse at 162 ms; H-TCP's at 22 ms less that at 162 ms",
            "0: no difference; the source gives no number for very fair",
        ),
        by_set(
            lab,
            lambda chosen: [
                *(friendlier(chosen, "H-TCP", n, 22) for n in ("HighSpeed TCP", "BicTCP")),
                *(friendlier(chosen, n, "H-TCP", 162) for n in ("HighSpeed TCP", "BicTCP")),
                Place(
                    "H-TCP, 22 over 162 ms",
                    tuple(cell(lab, FRIENDLY, "H-TCP", 250, t, chosen) for t in (22, 162)),
                    lambda x, y: fairness(x) - fairness(y),
                    above=0,
                ),
            ],
        ),
        looks=(5, 10, 20),
    )
    report.test(
        Claim(
            "L46",
            "Section 8.3.3, figures 8.37 and 8.38: BicTCP is friendlier than HighSpeed TCP at long round-trip times, and less friendly at short ones.",
            "250 Mbit/s, 162 and 22 ms (the figures')",
            "fairness of BicTCP less that of HighSpeed TCP at 162 ms, the reverse at 22 ms",
            "0: no difference",
        ),
        by_set(
            lab,
            lambda chosen: [
                friendlier(chosen, "BicTCP", "HighSpeed TCP", 162),
                friendlier(chosen, "HighSpeed TCP", "BicTCP", 22),
            ],
        ),
        looks=(5, 10, 20),
    )
