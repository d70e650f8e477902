"""Li 2006, section 9.2: DiffServ and congestion moderation."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.lab import Lab, Report, estimate, experiment, mean
from elephan.studies.reproduce.li2006 import hosts
from elephan.studies.reproduce.li2006.chapter9_1 import FOUR, HOSTS, repeated
from elephan.studies.reproduce.li2006.systems import cc_of


@experiment(
    "li2006/figure-9.16",
    "Congestion moderation",
    "li2006/testbed",
    choices=(HOSTS, "path: 600 Mbit/s, 40 ms, queue of 20 %."),
)
def figure_9_16(lab: Lab) -> Report:
    """moderate_cwnd on and off, with ACKs that cover more than three packets."""
    report = Report()
    base = {"path.rate": "600 Mbit/s", "path.rtt": "40 ms", "tcp.delayed_ack.segments": "4"}
    on, off = (r[0] for r in lab.runs("li2006/testbed", [base | {"tcp.moderate_cwnd": "true"}, base]))
    least = [float(run.flows.filter(pl.col("time_s") > 30)["cwnd_segments"].to_numpy().min()) for run in (on, off)]
    report.check(
        "L60",
        least[0] < 0.8 * least[1],
        f"an ACK for every fourth packet: smallest window {least[0]:.0f} segments with moderation, {least[1]:.0f} without; goodput {on.summary.goodput_bit_s / 1e6:.0f} and {off.summary.goodput_bit_s / 1e6:.0f} Mbit/s",
    )
    return report


# Figure 9.25 shows the profiles without numbers. For each: the range of the queue of the class, and the drop probability.
# Such a router has steps of one hundredth, while a single Scalable flow that fills the class needs one drop in 100,000 packets.
PROFILES = ((750, 7500, 0.001), (750, 7500, 0.01), (2500, 7500, 0.01))


@experiment(
    "li2006/figure-9.20",
    "A TCP flow in assured forwarding beside UDP in best effort",
    "li2006/diffserv",
    choices=(
        "queues: 100 ms at the link's rate, the maximum setting of such a router (Juniper M10), divided in the same ratio as the rate.",
        "first slow start: up to the rate of the class, because in the thesis it ended without losses (figure 9.21).",
        *hosts.CHOICES,
        "WRED: drops begin at a tenth or a third of the queue, and rise to 0.1 or 1 %.",
    ),
)
def figure_9_20(lab: Lab) -> Report:
    """AF from 10 to 90 %; congestion moderation (9.23, 9.24) and WRED (9.26)."""
    report, names = Report(), FOUR[:3]
    shares = lab.pick((10, 30, 50, 70, 90), (10, 90))

    def change(name: str, share: int, queue: Any = "droptail", *, moderate: bool = True) -> dict[str, Any]:
        classes = [
            {"name": "AF", "dscp": ["af11"], "weight": share, "buffer_share": share / 100, "queue": queue},
            {"name": "BE", "weight": 100 - share, "buffer_share": 1 - share / 100},
        ]
        return {
            "flow": [{"cc": cc_of(name), "dscp": "af11", "start": "2 s"}],
            "path": {"queue": {"name": "wrr", "class": classes}},
            "host": hosts.HOST,
            "tcp": {**hosts.STACK, "moderate_cwnd": moderate, "initial_ssthresh": 100 * share},
        }

    def use(runs: Sequence[Run], share: int) -> float:
        """QEF of the class, equation 9.3: goodput divided by the allocation; 0.965 if the class is full."""
        return mean(estimate(runs, lambda x: x.flows[0].goodput_bit_s)) / (share * 1e7)

    def least(runs: Sequence[Run], share: int) -> float:
        """The smallest window, as a share of the window that fills the class."""
        frames = [run.flows.filter((pl.col("flow") == 0) & (pl.col("time_s") > run.summary.from_s)) for run in runs]
        return min(float(frame["cwnd_segments"].to_numpy().min()) for frame in frames) / (100 * share)

    cases = [(n, share) for n in names for share in shares]
    found = dict(
        zip(
            cases,
            repeated(lab, "DiffServ", "li2006/diffserv", [change(*case) for case in cases], lab.pick(3, 1)),
            strict=True,
        )
    )
    used = {(n, s): use(runs, s) for (n, s), runs in found.items()}
    standard, high, scalable = (used[n, 90] for n in names)
    text = "; ".join(f"AF {s} %: {', '.join(f'{n} {used[n, s]:.2f}' for n in names)}" for s in shares)
    report.check("L61", standard >= 0.95 and standard > high > scalable, text)
    report.check("L62", max(used[n, 10] for n in names) / min(used[n, 10] for n in names) < 1.1, text)
    taken = {
        case: mean(estimate(runs, lambda x: x.streams[0].goodput_bit_s)) / ((100 - case[1]) * 1e7)
        for case, runs in found.items()
    }
    under = [case for case, u in used.items() if u < 0.93]
    report.check(
        "L63",
        bool(under) and all(taken[case] > 1.0 for case in under),
        ", ".join(f"{n} {s} %: AF {used[n, s]:.2f}, BE {taken[n, s]:.2f}" for n, s in under)
        or "AF is used up everywhere",
    )
    moderated = repeated(
        lab,
        "moderation",
        "li2006/diffserv",
        [change("Scalable TCP", s, moderate=m) for s in (70, 90) for m in (True, False)],
        lab.pick(3, 1),
    )
    on70, off70, on90, off90 = (use(runs, s) for runs, s in zip(moderated, (70, 70, 90, 90), strict=True))
    report.check(
        "L64",
        on70 < 0.87 and off70 > 0.92 and on90 < off90 < 0.92,
        f"Scalable TCP's QEF with and without moderation: {on70:.2f} and {off70:.2f} at 70 %, {on90:.2f} and {off90:.2f} at 90 %",
    )
    queues = [{"name": "wred", "profile": [{"min_th": low, "max_th": high, "max_p": p}]} for low, high, p in PROFILES]
    weighted = repeated(
        lab, "WRED", "li2006/diffserv", [change("Scalable TCP", 90, q, moderate=False) for q in queues], lab.pick(3, 1)
    )
    windows = [least(runs, 90) for runs in weighted]
    report.check(
        "L65",
        least(moderated[3], 90) < 0.1 and max(windows) > 0.3,
        f"Scalable TCP at AF 90 % without WRED: QEF {off90:.2f}, smallest window over the window that fills the class "
        f"{least(moderated[3], 90):.3f}; "
        + "; ".join(
            f"drops from {low} of {high} packets up to {100 * p:g} %: {use(runs, 90):.2f}, {window:.3f}"
            for (low, high, p), runs, window in zip(PROFILES, weighted, windows, strict=True)
        ),
    )
    return report
