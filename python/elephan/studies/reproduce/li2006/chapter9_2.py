"""Li 2006, section 9.2: DiffServ and congestion moderation; with it the end of section 9.1."""

import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.chapter9_1 import (
    HIGH,
    HOSTS,
    LOOKS,
    MB_NG,
    ORACLE,
    PAYLOAD,
    SCALABLE,
    STANDARD,
    cbr,
    flows,
)
from elephan.studies.reproduce.li2006.systems import SYSTEMS

DIFFSERV = Arm("li2006/diffserv")
MODERATION = (
    "the kernel of the thesis reduced the window to the packets in flight at every ACK of more than three packets; the simulator does so "
    "where a recovery ends and at an undo, as later kernels, and has no setting for more"
)


def _least(run: Run) -> float:
    """The smallest window of the first flow over its threshold, in the measuring window."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s))
    return float((frame["cwnd_segments"] / frame["ssthresh_segments"]).to_numpy().min())


@experiment(
    "li2006/figure-9.16",
    "Congestion moderation on MB-NG (figures 9.15 and 9.16)",
    "li2006/testbed",
    choices=(*HOSTS, "stretched ACKs: one for four packets."),
)
def figure_9_16(lab: Lab) -> Report:
    """Beside 200 Mbit/s, with and without moderation as the simulator has it."""
    report = Report(lab)
    report.untestable("L60", MODERATION)
    stretched = MB_NG.set(
        {"flow": flows((HIGH, 1)), "tcp.delayed_ack.segments": "4", "trace.interval": "100 ms", **cbr(200)}
    )
    arms = [stretched.set({"tcp.moderate_cwnd": value}) for value in ("true", "false")]
    on, off = (min(_least(run) for run in runs) for runs in lab.runs(arms, 2))
    report.notes.append(
        f"With what the simulator has, moderation changes little: HighSpeed TCP's smallest window over its threshold is {on:.2f} with it and "
        f"{off:.2f} without, on MB-NG beside 200 Mbit/s and with an ACK for every fourth packet."
    )
    return report


# Figure 9.25 shows the profiles without numbers. For each: the range of the queue of the class, and the drop probability.
# Such a router has steps of one hundredth, while a single Scalable flow that fills the class needs one drop in 100,000 packets.
PROFILES = ((750, 7500, 0.001), (750, 7500, 0.01), (2500, 7500, 0.01))
DROPTAIL = '"droptail"'


def assured(name: str, share: int, queue: str = DROPTAIL, *, moderate: bool = True) -> Arm:
    """A flow in a class that is assured `share` per cent."""
    classes = (
        f'{{ name = "AF", dscp = ["af11"], weight = {share}, buffer_share = {share / 100}, queue = {queue} }}, '
        f'{{ name = "BE", weight = {100 - share}, buffer_share = {(100 - share) / 100} }}'
    )
    return DIFFSERV.set(
        {
            "flow.cc": SYSTEMS[name],
            "path.queue": f'{{ name = "wrr", class = [{classes}] }}',
            "tcp.moderate_cwnd": str(moderate).lower(),
            "tcp.initial_ssthresh": f"{100 * share}",
        }
    )


def _percent(run: Run) -> int:
    return int(run.scenario.document["path"]["queue"]["class"][0]["weight"])


def _used(run: Run) -> float:
    """QEF of the assured class, equation 9.3: goodput over the allocation; 0.965 if the class is full."""
    return run.summary.flows[0].goodput_bit_s / (_percent(run) * 1e7)


def _best_effort(run: Run) -> float:
    """QEF of the best-effort class, equation 9.2."""
    return run.summary.streams[0].goodput_bit_s / ((100 - _percent(run)) * 1e7)


def _link(run: Run) -> float:
    """What both classes carry, headers included, over the rate of the link."""
    datagrams = run.summary.streams[0].goodput_bit_s / 1e9 * 1500 / 1472
    return run.summary.flows[0].goodput_bit_s / 1e9 / PAYLOAD + datagrams


def _smallest(run: Run) -> float:
    """The smallest window over the one that fills the class."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s))
    return float(frame["cwnd_segments"].to_numpy().min()) / (100 * _percent(run))


@experiment(
    "li2006/figure-9.20",
    "A TCP flow in assured forwarding beside UDP in best effort",
    "li2006/diffserv",
    choices=(
        "length of a test: 90 s, of which the first 30 s do not count.",
        "queues: 100 ms at the link's rate, the maximum setting of such a router (Juniper M10), divided in the same ratio as the rate.",
        "first slow start: up to the rate of the class, because in the thesis it ended without losses (figure 9.21).",
        *HOSTS,
    ),
)
def figure_9_20(lab: Lab) -> Report:
    """AF from 10 to 90 %."""
    report = Report(lab)
    shares, large = lab.pick((10, 50, 70, 90), (10, 90)), lab.pick((70, 90), (90,))
    report.test(
        Claim(
            "L61",
            sentence="Standard TCP uses at least 95 % of its allocation; with large ones HighSpeed TCP uses less, and Scalable TCP least "
            "(section 9.2.2, figure 9.20).",
            population="Standard TCP at 10 to 90 %; the three algorithms at 70 and 90 %",
            statistic="goodput over the allocation, which is 0.965 where it is full; differences of it",
            bound="the printed 95 %; no difference (0)",
            oracle=ORACLE,
        ),
        [
            *(Place(f"Standard TCP, {share} %", (assured(STANDARD, share),), _used, above=0.95) for share in shares),
            *(
                Place(
                    f"{a} less {b}, {share} %",
                    (assured(a, share), assured(b, share)),
                    lambda x, y: _used(x) - _used(y),
                    above=0,
                )
                for share in large
                for a, b in ((STANDARD, HIGH), (HIGH, SCALABLE))
            ),
        ],
        looks=LOOKS,
    )
    pipe = printed("li2006", "Sec 9.2.2", "share of the pipe")[STANDARD][0]
    report.compare(
        "share of the link that Standard TCP has at 90 %",
        "%",
        [Quantity(STANDARD, pipe, None, (assured(STANDARD, 90),), lambda run: 90 * _used(run))],
        looks=LOOKS,
    )
    report.test(
        Claim(
            "L62",
            sentence="At the smallest allocations all algorithms perform identically (section 9.2.2).",
            population="HighSpeed TCP and Scalable TCP at 10 %",
            statistic="goodput over that of Standard TCP",
            bound="1 within 5 %: the source has no tolerance",
            oracle=ORACLE,
        ),
        [
            Place(
                f"{n}, 10 %",
                (assured(n, 10), assured(STANDARD, 10)),
                lambda x, y: _used(x) / _used(y),
                above=0.95,
                below=1.05,
            )
            for n in (HIGH, SCALABLE)
        ],
        looks=LOOKS,
    )
    report.test(
        Claim(
            "L63",
            sentence="The oversubscribed best-effort class takes what the assured class leaves (sections 9.2.1 and 9.2.2).",
            population="HighSpeed TCP and Scalable TCP with large allocations",
            statistic="what both classes carry over the link's rate; Scalable TCP at 90 %: the datagrams over their allocation",
            bound="a full link within 2 %; more than the allocation",
            oracle=ORACLE,
        ),
        [
            *(
                Place(f"{n}, {share} %", (assured(n, share),), _link, above=0.98)
                for n in (HIGH, SCALABLE)
                for share in large
            ),
            Place("datagrams beside Scalable TCP at 90 %", (assured(SCALABLE, 90),), _best_effort, above=1),
        ],
        looks=LOOKS,
    )
    return report


@experiment(
    "li2006/figure-9.24",
    "Congestion moderation and WRED in assured forwarding (figures 9.23 to 9.26)",
    "li2006/diffserv",
    choices=(
        *HOSTS,
        "queues and first slow start: as in figure 9.20.",
        "WRED: drops begin at a tenth or a third of the queue, and rise to 0.1 or 1 %.",
    ),
)
def figure_9_24(lab: Lab) -> Report:
    """Scalable TCP with and without moderation, and without it with three drop profiles."""
    report = Report(lab)
    report.untestable("L64", MODERATION)
    arms = [assured(SCALABLE, share, moderate=on) for share in (70, 90) for on in (True, False)]
    used = [sum(_used(run) for run in runs) / len(runs) for runs in lab.runs(arms, 1)]
    report.notes.append(
        "With what the simulator has, Scalable TCP uses {:.2f} of 70 % with moderation and {:.2f} without, and {:.2f} and {:.2f} of 90 %.".format(
            *used
        )
    )
    without = assured(SCALABLE, 90, moderate=False)
    places = []
    for low, high, p in PROFILES:
        queue = f'{{ name = "wred", profile = [{{ min_th = {low}, max_th = {high}, max_p = {p} }}] }}'
        weighted = assured(SCALABLE, 90, queue, moderate=False)
        places.append(
            Place(
                f"from {low} of {high} packets up to {100 * p:g} %",
                (weighted, without),
                lambda a, b: _smallest(a) - _smallest(b),
                above=0.5,
                may_collapse=(1,),
            )
        )
    report.test(
        Claim(
            "L65",
            sentence="With the second of three gentle drop profiles the window of Scalable TCP no longer collapses at 90 % (section 9.2.5, "
            "figure 9.26).",
            population="three profiles, of which the thesis prints no number, without moderation",
            statistic="smallest window over the one that fills the class: with weighted RED less without",
            bound="one half: the algorithm itself goes back by an eighth only",
            oracle=ORACLE,
            rule="some",
        ),
        places,
        looks=LOOKS,
    )
    return report
