"""Li 2006, section 9.2: DiffServ and congestion moderation; with it the end of section 9.1."""

from functools import partial

import polars as pl

from elephan.api.run import Run
from elephan.studies.judge import Arm
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares, used
from elephan.studies.reproduce.li2006.chapter9_1 import (
    BAND,
    HIGH,
    HOSTS,
    MB_NG,
    SCALABLE,
    STANDARD,
    cbr,
    chapter,
    flows,
)
from elephan.studies.reproduce.li2006.systems import SYSTEMS, published

DIFFSERV = Arm("li2006/diffserv")
# What receivers may do, as settings: how many packets an ACK covers.
ACKS = {f"an ACK for {n} packets": {"tcp.delayed_ack.segments": f"{n}"} for n in (2, 4, 8)}
TWO, FOUR, EIGHT = ACKS


def _least(run: Run) -> float | None:
    """The smallest window of the first flow over its threshold, in the measuring window; none before a first loss."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s))
    found = (frame["cwnd_segments"] / frame["ssthresh_segments"]).drop_nulls().drop_nans().to_numpy()
    return float(found.min()) if len(found) else None


def _stretched(chosen: str, at: Point) -> Arm:
    stretched = {"flow": flows((HIGH, 1)), **ACKS[chosen], "trace.interval": "100 ms"}
    return MB_NG.set({**stretched, "tcp.moderate_cwnd": at["moderate"], **cbr(at["rate"])})


@declares(
    partial(chapter, arm=_stretched),
    "li2006",
    "figure-9.16",
    "Congestion moderation on MB-NG (figures 9.12, 9.15 and 9.16)",
    "testbed",
    choices=(
        *HOSTS,
        "stretched ACKs: one for four or for eight packets.",
        "budget: about 12 CPU seconds at the first look.",
    ),
)
def figure_9_16(report: Chapter) -> None:
    """Beside 200 and 600 Mbit/s, with and without moderation, with stretched ACKs."""
    report.claim(
        "L60",
        "Moderation of the window at stretched ACKs causes the windows of HighSpeed TCP on MB-NG that fall below the threshold "
        "beside 200 Mbit/s of datagrams; beside 600 Mbit/s there are hardly any (section 9.1.7, figures 9.12 and 9.15).",
        "HighSpeed TCP on MB-NG beside 200 and 600 Mbit/s, with receivers that stretch ACKs",
        "smallest window over its threshold: with moderation less without; beside 200 less beside 600 Mbit/s",
        "no difference (0)",
        Points("{rate} Mbit/s: with moderation less without", _least, how="less", may_collapse=(0,), below=0)
        .at(rate=200)
        .of(moderate=("true", "false")),
        Points("with moderation: 200 less 600 Mbit/s", _least, how="less", may_collapse=(0,), below=0)
        .at(moderate="true")
        .of(rate=(200, 600)),
        tried="an ACK for four and for eight packets.",
        means="On these hosts moderation alone does not make the windows that fall below the threshold.",
        sets=Sets((FOUR, EIGHT)),
    )


# Figure 9.25 shows the profiles without numbers. For each: the range of the queue of the class, and the drop probability.
# Such a router has steps of one hundredth, while a single Scalable flow that fills the class needs one drop in 100,000 packets.
PROFILES = ((750, 7500, 0.001), (750, 7500, 0.01), (2500, 7500, 0.01))
DROPTAIL = '"droptail"'
# Where the first slow start ends: at the rate of the class, or by losses.
CAPTURED, UNLIMITED = "slow start up to the rate of the class", "slow start until the first loss"
STARTS = Sets((CAPTURED, UNLIMITED), "a first slow start up to the rate of the class, and one until the first loss.")


def assured(chosen: str, at: Point) -> Arm:
    """A flow in a class that is assured `share` per cent, with a `queue` that is not DropTail if one is given; or `how` is `without` moderation."""
    share, queue = at["share"], at.get("queue", DROPTAIL)
    classes = (
        f'{{ name = "AF", dscp = ["af11"], weight = {share}, buffer_share = {share / 100}, queue = {queue} }}, '
        f'{{ name = "BE", weight = {100 - share}, buffer_share = {(100 - share) / 100} }}'
    )
    return DIFFSERV.set(
        {
            "flow.cc": SYSTEMS[at["system"]],
            "path.queue": f'{{ name = "wrr", class = [{classes}] }}',
            "tcp.moderate_cwnd": "false" if at.get("how") == "without" else "true",
            **({"tcp.initial_ssthresh": f"{100 * share}"} if chosen != UNLIMITED else {}),
            **ACKS.get(chosen, {}),
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


def _smallest(run: Run) -> float:
    """The smallest window over the one that fills the class."""
    frame = run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s))
    return float(frame["cwnd_segments"].to_numpy().min()) / (100 * _percent(run))


diffserv = partial(declares, partial(chapter, arm=assured, readings={"used": Reading(_used)}), "li2006")


@diffserv(
    "figure-9.20",
    "A TCP flow in assured forwarding beside UDP in best effort",
    "diffserv",
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
def figure_9_20(report: Chapter) -> None:
    """AF from 10 to 90 %."""
    lab = report.lab
    shares, large = lab.pick((10, 30, 50, 70, 90), (10, 90)), lab.pick((70, 90), (90,))
    report.claim(
        "L61",
        "Standard TCP uses at least 95 % of its allocation; with large ones HighSpeed TCP uses less, and Scalable TCP least "
        "(section 9.2.2, figure 9.20).",
        "Standard TCP at 10 to 90 %; the three algorithms at 70 and 90 %",
        "goodput over the allocation, which is 0.965 where it is full; differences of it",
        "the printed 95 %; no difference (0)",
        Points("{system}, {share} %", "used", above=0.95).at(system=STANDARD, share=shares),
        Points("{a} less {b}, {share} %", "used, less").at(
            {"share": large, "a b": ((STANDARD, HIGH), (HIGH, SCALABLE))}
        ),
        means="The order of figure 9.20 needs a first slow start that does no harm, as figure 9.21 shows it.",
        sets=STARTS,
    )
    pipe = published("Sec 9.2.2", "share of the pipe", system=STANDARD)
    full = {"system": STANDARD, "share": 90}
    report.rows(
        "share of the link that Standard TCP has at 90 %",
        "%",
        Points("{system}", lambda run: 90 * _used(run)).at(full, printed=pipe),
    )
    small = {"a": (HIGH, SCALABLE), "b": STANDARD, "share": 10}
    report.claim(
        "L62",
        "At the smallest allocations all algorithms perform identically (section 9.2.2).",
        "HighSpeed TCP and Scalable TCP at 10 %",
        "goodput over that of Standard TCP",
        "1 within 5 %: the source has no tolerance",
        Points("{a}, {share} %", "used, over", above=0.95, below=1.05).at(small),
        means="Small allocations do not make the algorithms equal on these hosts.",
        sets=STARTS,
    )
    beside = {"system": SCALABLE, "share": 90}
    report.claim(
        "L63",
        "The oversubscribed best-effort class takes what the assured class leaves (sections 9.2.1 and 9.2.2).",
        "HighSpeed TCP and Scalable TCP with large allocations",
        "what both classes carry over the link's rate; Scalable TCP at 90 %: the datagrams over their allocation",
        "a full link within 2 %; more than the allocation",
        Points("{system}, {share} %", used, above=0.98).at(system=(HIGH, SCALABLE), share=large),
        Points("datagrams beside {system} at {share} %", _best_effort, above=1).at(beside),
        means="The link is not full at the places that fail, so best effort does not take all that is left.",
        sets=STARTS,
    )


@diffserv(
    "figure-9.24",
    "Congestion moderation and WRED in assured forwarding (figures 9.23 to 9.26)",
    "diffserv",
    choices=(
        *HOSTS,
        "queues and first slow start: as in figure 9.20.",
        "WRED: drops begin at a tenth or a third of the queue, and rise to 0.1 or 1 %.",
        "budget: about half a CPU minute at the first look.",
    ),
)
def figure_9_24(report: Chapter) -> None:
    """Scalable TCP with and without moderation, and without it with three drop profiles."""
    rows = ((70, "with moderation", None, 0.5), (70, "without", 0.5, None), (90, "without", None, 0.5))
    report.claim(
        "L64",
        "Without congestion moderation the windows of HighSpeed TCP and Scalable TCP no longer collapse at 70 %; at 90 % that helps "
        "in part only, because of the processing of SACK blocks (section 9.2.4, figures 9.23 and 9.24).",
        "both algorithms at 70 and 90 %, with and without moderation",
        "smallest window over the one that fills the class",
        "one half: no algorithm here goes back by more, so less is the collapse of which the source speaks",
        Points("{system}, {share} %, {how}", _smallest).at({"system": (HIGH, SCALABLE), "share how above below": rows}),
        tried="an ACK for two and for four packets.",
        means="On these hosts the windows collapse at 70 % without moderation too: the recovery of Linux 2.4 by itself takes the window down to "
        "what is in flight.",
        sets=Sets((TWO, FOUR)),
    )
    profiles = [
        (low, high, 100 * p, f'{{ name = "wred", profile = [{{ min_th = {low}, max_th = {high}, max_p = {p} }}] }}')
        for low, high, p in PROFILES
    ]
    report.claim(
        "L65",
        "With the second of three gentle drop profiles the window of Scalable TCP no longer collapses at 90 % (section 9.2.5, "
        "figure 9.26).",
        "three profiles, of which the thesis prints no number, without moderation",
        "smallest window over the one that fills the class; without weighted RED it is in L64",
        "one half, as in L64",
        Points("from {low} of {high} packets up to {percent:g} %", _smallest, above=0.5).at(
            {"low high percent queue": profiles}, system=SCALABLE, share=90, how="without"
        ),
        tried="three profiles.",
        means="Weighted RED as gentle as these profiles does not keep the window from collapsing.",
        rule="some",
    )
