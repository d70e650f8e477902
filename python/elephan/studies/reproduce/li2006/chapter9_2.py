"""Li 2006, section 9.2: DiffServ and congestion moderation; with it the end of section 9.1."""

import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.chapter9_1 import (
    BAND,
    HIGH,
    HOSTS,
    LOOKS,
    MB_NG,
    ORACLE,
    SCALABLE,
    STANDARD,
    cbr,
    flows,
)
from elephan.studies.reproduce.li2006.systems import SYSTEMS

DIFFSERV = Arm("li2006/diffserv")
# How many packets a stretched ACK may cover.
STRETCHED = (4, 8)


def _least(run: Run) -> float | None:
    """The smallest window of the first flow over its threshold, in the measuring window; none before a first loss."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s))
    found = (frame["cwnd_segments"] / frame["ssthresh_segments"]).drop_nulls().drop_nans().to_numpy()
    return float(found.min()) if len(found) else None


def _deeper(one: Run, other: Run) -> float | None:
    """The smallest window over its threshold in a run less that in another one."""
    first, second = _least(one), _least(other)
    return None if first is None or second is None else first - second


@experiment(
    "li2006/figure-9.16",
    "Congestion moderation on MB-NG (figures 9.12, 9.15 and 9.16)",
    "li2006/testbed",
    choices=(
        *HOSTS,
        "stretched ACKs: one for four or for eight packets.",
        "budget: about 12 CPU seconds at the first look.",
    ),
)
def figure_9_16(lab: Lab) -> Report:
    """Beside 200 and 600 Mbit/s, with and without moderation, with stretched ACKs."""
    report = Report(lab)

    def places(segments: int) -> list[Place]:
        stretched = MB_NG.set(
            {"flow": flows((HIGH, 1)), "tcp.delayed_ack.segments": f"{segments}", "trace.interval": "100 ms"}
        )
        on, off, few = (
            stretched.set({"tcp.moderate_cwnd": moderate, **cbr(rate)})
            for moderate, rate in (("true", 200), ("false", 200), ("true", 600))
        )
        return [
            Place("200 Mbit/s: with moderation less without", (on, off), _deeper, below=0, may_collapse=(0,)),
            Place("with moderation: 200 less 600 Mbit/s", (on, few), _deeper, below=0, may_collapse=(0,)),
        ]

    report.test(
        Claim(
            "L60",
            sentence="Moderation of the window at stretched ACKs causes the windows of HighSpeed TCP on MB-NG that fall below the threshold "
            "beside 200 Mbit/s of datagrams; beside 600 Mbit/s there are hardly any (section 9.1.7, figures 9.12 and 9.15).",
            population="HighSpeed TCP on MB-NG beside 200 and 600 Mbit/s, with receivers that stretch ACKs",
            statistic="smallest window over its threshold: with moderation less without; beside 200 less beside 600 Mbit/s",
            bound="no difference (0)",
            tried="an ACK for four and for eight packets.",
            means="On these hosts moderation alone does not make the windows that fall below the threshold.",
            oracle=ORACLE,
        ),
        {f"an ACK for {segments} packets": places(segments) for segments in STRETCHED},
        looks=LOOKS,
    )
    return report


# Figure 9.25 shows the profiles without numbers. For each: the range of the queue of the class, and the drop probability.
# Such a router has steps of one hundredth, while a single Scalable flow that fills the class needs one drop in 100,000 packets.
PROFILES = ((750, 7500, 0.001), (750, 7500, 0.01), (2500, 7500, 0.01))
DROPTAIL = '"droptail"'


# Where the first slow start ends: at the rate of the class, or by losses.
CAPTURED, UNLIMITED = "slow start up to the rate of the class", "slow start until the first loss"


def assured(name: str, share: int, queue: str = DROPTAIL, *, moderate: bool = True, start: str = CAPTURED) -> Arm:
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
            **({"tcp.initial_ssthresh": f"{100 * share}"} if start == CAPTURED else {}),
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
    """Utilisation of the link by both classes."""
    return run.summary.utilisation or 0.0


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
        "first slow start: up to the rate of the class, because in the thesis it ended without losses (figure 9.21: the router captures a burst), "
        "or unlimited, in a second set.",
        "budget: about half a CPU minute at the first look.",
        *HOSTS,
        BAND,
    ),
)
def figure_9_20(lab: Lab) -> Report:
    """AF from 10 to 90 %."""
    report = Report(lab)
    shares, large = lab.pick((10, 30, 50, 70, 90), (10, 90)), lab.pick((70, 90), (90,))
    report.test(
        Claim(
            "L61",
            sentence="Standard TCP uses at least 95 % of its allocation; with large ones HighSpeed TCP uses less, and Scalable TCP least "
            "(section 9.2.2, figure 9.20).",
            population="Standard TCP at 10 to 90 %; the three algorithms at 70 and 90 %",
            statistic="goodput over the allocation, which is 0.965 where it is full; differences of it",
            bound="the printed 95 %; no difference (0)",
            tried="a first slow start up to the rate of the class, and one until the first loss.",
            means="The order of figure 9.20 needs a first slow start that does no harm, as figure 9.21 shows it.",
            oracle=ORACLE,
        ),
        {
            start: [
                *(
                    Place(f"Standard TCP, {share} %", (assured(STANDARD, share, start=start),), _used, above=0.95)
                    for share in shares
                ),
                *(
                    Place(
                        f"{a} less {b}, {share} %",
                        (assured(a, share, start=start), assured(b, share, start=start)),
                        lambda x, y: _used(x) - _used(y),
                        above=0,
                    )
                    for share in large
                    for a, b in ((STANDARD, HIGH), (HIGH, SCALABLE))
                ),
            ]
            for start in (CAPTURED, UNLIMITED)
        },
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
            tried="a first slow start up to the rate of the class, and one until the first loss.",
            means="Small allocations do not make the algorithms equal on these hosts.",
            oracle=ORACLE,
        ),
        {
            start: [
                Place(
                    f"{n}, 10 %",
                    (assured(n, 10, start=start), assured(STANDARD, 10, start=start)),
                    lambda x, y: _used(x) / _used(y),
                    above=0.95,
                    below=1.05,
                )
                for n in (HIGH, SCALABLE)
            ]
            for start in (CAPTURED, UNLIMITED)
        },
        looks=LOOKS,
    )
    report.test(
        Claim(
            "L63",
            sentence="The oversubscribed best-effort class takes what the assured class leaves (sections 9.2.1 and 9.2.2).",
            population="HighSpeed TCP and Scalable TCP with large allocations",
            statistic="what both classes carry over the link's rate; Scalable TCP at 90 %: the datagrams over their allocation",
            bound="a full link within 2 %; more than the allocation",
            tried="a first slow start up to the rate of the class, and one until the first loss.",
            means="The link is not full at the places that fail, so best effort does not take all that is left.",
            oracle=ORACLE,
        ),
        {
            start: [
                *(
                    Place(f"{n}, {share} %", (assured(n, share, start=start),), _link, above=0.98)
                    for n in (HIGH, SCALABLE)
                    for share in large
                ),
                Place(
                    "datagrams beside Scalable TCP at 90 %",
                    (assured(SCALABLE, 90, start=start),),
                    _best_effort,
                    above=1,
                ),
            ]
            for start in (CAPTURED, UNLIMITED)
        },
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
        "budget: about half a CPU minute at the first look.",
    ),
)
def figure_9_24(lab: Lab) -> Report:
    """Scalable TCP with and without moderation, and without it with three drop profiles."""
    report = Report(lab)

    def places(segments: int) -> list[Place]:
        def arm(name: str, share: int, *, moderate: bool) -> Arm:
            return assured(name, share, moderate=moderate).set({"tcp.delayed_ack.segments": f"{segments}"})

        made = []
        for name in (HIGH, SCALABLE):
            made += [
                Place(f"{name}, 70 %, with moderation", (arm(name, 70, moderate=True),), _smallest, below=0.5),
                Place(f"{name}, 70 %, without", (arm(name, 70, moderate=False),), _smallest, above=0.5),
                Place(f"{name}, 90 %, without", (arm(name, 90, moderate=False),), _smallest, below=0.5),
            ]
        return made

    report.test(
        Claim(
            "L64",
            sentence="Without congestion moderation the windows of HighSpeed TCP and Scalable TCP no longer collapse at 70 %; at 90 % that helps "
            "in part only, because of the processing of SACK blocks (section 9.2.4, figures 9.23 and 9.24).",
            population="both algorithms at 70 and 90 %, with and without moderation",
            statistic="smallest window over the one that fills the class",
            bound="one half: no algorithm here goes back by more, so less is the collapse of which the source speaks",
            tried="an ACK for two and for four packets.",
            means="On these hosts the windows collapse at 70 % without moderation too: the recovery of Linux 2.4 by itself takes the window down to "
            "what is in flight.",
            oracle=ORACLE,
        ),
        {f"an ACK for {segments} packets": places(segments) for segments in (2, STRETCHED[0])},
        looks=LOOKS,
    )
    profiles = []
    for low, high, p in PROFILES:
        queue = f'{{ name = "wred", profile = [{{ min_th = {low}, max_th = {high}, max_p = {p} }}] }}'
        arm = assured(SCALABLE, 90, queue, moderate=False)
        profiles.append(Place(f"from {low} of {high} packets up to {100 * p:g} %", (arm,), _smallest, above=0.5))
    report.test(
        Claim(
            "L65",
            sentence="With the second of three gentle drop profiles the window of Scalable TCP no longer collapses at 90 % (section 9.2.5, "
            "figure 9.26).",
            population="three profiles, of which the thesis prints no number, without moderation",
            statistic="smallest window over the one that fills the class; without weighted RED it is in L64",
            bound="one half, as in L64",
            tried="three profiles.",
            means="Weighted RED as gentle as these profiles does not keep the window from collapsing.",
            oracle=ORACLE,
            rule="some",
        ),
        profiles,
        looks=LOOKS,
    )
    return report
