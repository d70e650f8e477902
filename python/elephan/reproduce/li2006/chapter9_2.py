"""Li 2006, section 9.2: DiffServ and congestion moderation."""

from typing import Any

import polars as pl

from elephan.reproduce.lab import Lab, Report, estimate, experiment, mean
from elephan.reproduce.li2006.chapter9_1 import FOUR, HOSTS, PAYLOAD, repeated
from elephan.reproduce.li2006.systems import cc_of


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


@experiment(
    "li2006/figure-9.20",
    "A TCP flow in assured forwarding beside UDP in best effort",
    "li2006/diffserv",
    choices=("queue sizes: 40 % of the product, in equal halves.", HOSTS),
)
def figure_9_20(lab: Lab) -> Report:
    """AF from 10 to 90 %; congestion moderation (9.23, 9.24) and WRED (9.26)."""
    report, names = Report(), FOUR[:3]
    shares = lab.pick((10, 30, 50, 70, 90), (10, 90))

    def change(name: str, share: int, queue: Any = "droptail", *, moderate: bool = False) -> dict[str, Any]:
        classes = [
            {"name": "AF", "dscp": ["af11"], "weight": share, "queue": queue},
            {"name": "BE", "weight": 100 - share},
        ]
        return {
            "flow": [{"cc": cc_of(name), "dscp": "af11", "start": "2 s"}],
            "path": {"queue": {"name": "wrr", "class": classes}},
            "tcp": {"moderate_cwnd": moderate},
        }

    cases = [(n, share) for n in names for share in shares]
    found = dict(
        zip(
            cases,
            repeated(lab, "DiffServ", "li2006/diffserv", [change(*case) for case in cases], lab.pick(3, 1)),
            strict=True,
        )
    )
    used = {
        (n, s): mean(estimate(runs, lambda x: x.flows[0].goodput_bit_s)) / (s * 1e7 * PAYLOAD)
        for (n, s), runs in found.items()
    }
    best = max(names, key=lambda n: used[n, 90])
    text = "; ".join(f"AF {s} %: {', '.join(f'{n} {used[n, s]:.2f}' for n in names)}" for s in shares)
    report.check(
        "L61", best == "Standard TCP" and used["Standard TCP", 90] >= 0.95, f"without the cost of ACKs: {text}"
    )
    report.check("L62", max(used[n, 10] for n in names) / min(used[n, 10] for n in names) < 1.1, text)
    taken = {
        case: mean(estimate(runs, lambda x: x.streams[0].goodput_bit_s)) / ((100 - case[1]) * 1e7 * 1472 / 1500)
        for case, runs in found.items()
    }
    under = [case for case, u in used.items() if u < 0.97]
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
    goods = [mean(estimate(runs, lambda x: x.flows[0].goodput_bit_s / 1e6)) for runs in moderated]
    report.check(
        "L64",
        None,
        f"collapses need the cost of SACKs; goodput of Scalable TCP with and without moderation: {goods[0]:.0f} and {goods[1]:.0f} Mbit/s at 70 %, {goods[2]:.0f} and {goods[3]:.0f} at 90 %",
    )
    report.check(
        "L65", None, "the WRED profiles are only drawn, and the collapse that they cure needs the cost of SACKs"
    )
    return report
