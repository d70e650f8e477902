"""Li 2006, section 9.1: MB-NG and DataTAG."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.studies.reproduce.lab import Lab, Report, experiment, mean
from elephan.studies.reproduce.li2006 import hosts
from elephan.studies.reproduce.li2006.systems import cc_of, listed
from elephan.studies.statistics import Estimate

FOUR = ("Standard TCP", "HighSpeed TCP", "Scalable TCP", "H-TCP")
ROUTER = "the routers' queues: 20 % of the product on DataTAG, 1000 packets on MB-NG (called relatively large)."
HOSTS = "the hosts' cost of ACKs, to which the source attributes part of its observations, is not modelled."
TEST = (ROUTER, HOSTS, "length of a test: 120 s, of which the first 30 s do not count.")
PAYLOAD = 1448 / 1500


def _made(lab: Lab, name: str, change: Mapping[str, Any], seed: int = 1) -> Scenario:
    document: dict[str, Any] = json.loads(lab.scenario(name).to_json())
    merged = {key: document.get(key, {}) | value if isinstance(value, dict) else value for key, value in change.items()}
    return Scenario(
        json.loads(_core.load_scenario(json.dumps(document | merged | {"seed": seed}), "scenario", [], True))
    )


def _network(near: bool) -> dict[str, Any]:
    return {"rtt": "6.2 ms", "buffer": "1000 packets"} if near else {}


def repeated(lab: Lab, what: str, name: str, changes: Sequence[Mapping[str, Any]], repeats: int) -> list[list[Run]]:
    """Run the scenario `name` with each of the changes, `repeats` times; results in this order."""
    runs = lab.run(what, [_made(lab, name, change, seed) for change in changes for seed in range(1, repeats + 1)])
    return [runs[i : i + repeats] for i in range(0, len(runs), repeats)]


def _flows_goodput(run: Run) -> list[float]:
    return [f.goodput_bit_s / 1e6 for f in run.summary.flows]


@experiment(
    "li2006/figure-9.1",
    "Goodput under periodic loss on MB-NG and DataTAG",
    "li2006/testbed",
    choices=(ROUTER, "the grid of losses."),
)
def figure_9_1(lab: Lab) -> Report:
    """One packet in n is lost."""
    report = Report()
    cases = [
        (n, near, every)
        for n in FOUR
        for near in (True, False)
        for every in lab.pick((100, 1000, 10_000, 100_000), (1000, 30_000))
    ]
    runs = repeated(
        lab,
        "figure 9.1",
        "li2006/testbed",
        [
            {"flow": [{"cc": cc_of(n)}], "path": _network(near) | {"loss": {"name": "periodic", "every": every}}}
            for n, near, every in cases
        ],
        1,
    )
    good = {case: r[0].summary.goodput_bit_s / 1e6 for case, r in zip(cases, runs, strict=True)}
    worse = [
        f"{'MB-NG' if near else 'DataTAG'} 1/{every}: {n} {g:.0f}, Scalable {good['Scalable TCP', near, every]:.0f}"
        for (n, near, every), g in good.items()
        if n in ("HighSpeed TCP", "H-TCP") and g > 1.05 * good["Scalable TCP", near, every]
    ]
    report.check("L49", not worse, "; ".join(worse) or "Scalable TCP at least equal everywhere, Mbit/s")
    return report


def _beside_cbr(
    lab: Lab, near: bool, count: int, rates: Sequence[int], more: Mapping[str, Any] | None = None
) -> dict[tuple[str, int], list[Run]]:
    cases = [(n, rate) for n in FOUR for rate in rates]
    changes = [
        {
            "flow": [{"cc": cc_of(n), "count": count, "start": {"uniform": ["0 s", "2 s"]}}],
            "path": _network(near),
            **({"cbr": [{"rate": f"{rate} Mbit/s"}]} if rate else {}),
            **(more or {}),
        }
        for n, rate in cases
    ]
    return dict(
        zip(cases, repeated(lab, f"{count} flows beside CBR", "li2006/testbed", changes, lab.pick(3, 1)), strict=True)
    )


def _goodput(runs: Sequence[Run]) -> float:
    return mean(Estimate.of([sum(_flows_goodput(run)) for run in runs]))


@experiment(
    "li2006/figure-9.3",
    "One flow beside UDP on MB-NG and DataTAG",
    "li2006/testbed",
    choices=(ROUTER, TEST[-1], *hosts.CHOICES, "hosts on MB-NG have no processing cost."),
)
def figure_9_3(lab: Lab) -> Report:
    """CBR from 0 to 900 Mbit/s; on DataTAG with the ACK processing cost of its hosts."""
    report, rates = Report(), lab.pick((0, 100, 200, 400, 600, 700, 900), (0, 200, 600))
    near, far = (
        _beside_cbr(lab, True, 1, rates),
        _beside_cbr(lab, False, 1, rates, {"host": hosts.HOST, "tcp": hosts.STACK}),
    )
    spread = {r: max(_goodput(near[n, r]) for n in FOUR) / min(_goodput(near[n, r]) for n in FOUR) for r in rates}
    report.check(
        "L50",
        max(spread.values()) < 1.15,
        "6.2 ms, largest over smallest goodput: " + ", ".join(f"{s:.2f} at {r} Mbit/s" for r, s in spread.items()),
    )
    share = {(n, r): _goodput(far[n, r]) / ((1000 - r) * PAYLOAD) for n in FOUR for r in rates}
    low = {n: min(share[n, r] for r in rates if 100 <= r <= 400) for n in FOUR[1:]}
    report.check(
        "L51",
        all(low[n] < share[n, 600] - 0.05 for n in low) and max(low.values()) / min(low.values()) > 1.1,
        f"share of what {', '.join(map(str, rates))} Mbit/s leave at 120 ms: "
        + "; ".join(f"{n} {', '.join(f'{share[n, r]:.2f}' for r in rates)}" for n in FOUR[1:]),
    )
    below = [_goodput(far["Standard TCP", r]) for r in rates if r < 700]
    report.check(
        "L52",
        max(below) / min(below) < 1.3,
        f"Standard TCP at 120 ms beside less than 700 Mbit/s: {', '.join(f'{g:.0f}' for g in below)} Mbit/s",
    )
    return report


@experiment("li2006/figure-9.4", "Ten flows beside UDP", "li2006/testbed", choices=TEST)
def figure_9_4(lab: Lab) -> Report:
    """Aggregate goodput, and its variation among flows."""
    report, rates = Report(), lab.pick((0, 200, 500, 800), (500,))
    worst, spread = {}, {}
    for near in (True, False):
        found = _beside_cbr(lab, near, 10, rates)
        for r in rates:
            goods = [_goodput(found[n, r]) for n in FOUR]
            worst["MB-NG" if near else "DataTAG", r] = max(goods) / min(goods)
        if not near:
            spread = {
                n: float(np.mean([np.max(_flows_goodput(run)) / np.mean(_flows_goodput(run)) for run in found[n, 500]]))
                for n in FOUR
            }
    report.check(
        "L53",
        max(worst.values()) < 1.1,
        "largest over smallest aggregate: " + ", ".join(f"{net} {r} Mbit/s {w:.2f}" for (net, r), w in worst.items()),
    )
    report.check(
        "L54",
        max(spread, key=lambda n: spread[n]) == "Scalable TCP",
        f"largest goodput over the mean at 500 Mbit/s of UDP, 120 ms: {listed(spread)}",
    )
    return report


@experiment(
    "li2006/figure-9.7",
    "Aggregate goodput and spread by number of flows",
    "li2006/testbed",
    choices=(*TEST, "the numbers of flows."),
)
def figure_9_7(lab: Lab) -> Report:
    """N flows of one algorithm at 120 ms."""
    report, counts = Report(), lab.pick((1, 2, 5, 10, 20, 33), (1, 5, 20))
    cases = [(n, k) for n in FOUR for k in counts]
    changes = [{"flow": [{"cc": cc_of(n), "count": k, "start": {"uniform": ["0 s", "5 s"]}}]} for n, k in cases]
    found = dict(zip(cases, repeated(lab, "figure 9.7", "li2006/testbed", changes, lab.pick(3, 1)), strict=True))
    standard = {k: _goodput(found["Standard TCP", k]) for k in counts}
    linear = [standard[k] / (k * standard[1]) for k in counts if k <= 10]
    end = {n: _goodput(found[n, counts[-1]]) / 1000 / PAYLOAD for n in FOUR}
    report.check(
        "L55",
        min(linear) > 0.7 and max(end.values()) - min(end.values()) < 0.1,
        "Standard TCP: "
        + ", ".join(f"{k} flows {g:.0f} Mbit/s" for k, g in standard.items())
        + f"; with {counts[-1]} flows, share of the link: {listed(end)}",
    )
    spread = {
        n: float(
            np.mean(
                [np.std(_flows_goodput(run)) / np.mean(_flows_goodput(run)) for k in counts[1:] for run in found[n, k]]
            )
        )
        for n in FOUR
    }
    report.check(
        "L56",
        min(spread, key=lambda n: spread[n]) == "H-TCP" and max(spread, key=lambda n: spread[n]) == "Scalable TCP",
        f"deviation over mean among flows: {listed(spread)}",
    )
    return report


@experiment(
    "li2006/figure-9.10",
    "Impact on Standard TCP of one and of ten flows (equation 9.1)",
    "li2006/testbed",
    choices=(*TEST, "the numbers of flows."),
    quick=False,
)
def figure_9_10(lab: Lab) -> Report:
    """N flows of Standard TCP, i of which are replaced by another algorithm."""
    report = Report()
    totals: dict[int, tuple[int, ...]] = lab.pick({1: (2, 5, 10, 30), 10: (12, 20, 40)}, {1: (2, 20), 10: (12, 30)})
    names = FOUR[1:]
    impact: dict[tuple[bool, str, int, int], float] = {}
    for near in (True, False):
        cases = [(n, i, total) for i, many in totals.items() for total in many for n in ("Standard TCP", *names)]
        changes = [
            {
                "flow": [
                    {"cc": "reno", "count": total - i, "start": {"uniform": ["0 s", "5 s"]}},
                    {"cc": cc_of(n), "count": i, "start": {"uniform": ["0 s", "5 s"]}},
                ],
                "path": _network(near),
            }
            for n, i, total in cases
        ]
        found = dict(zip(cases, repeated(lab, "impact", "li2006/testbed", changes, lab.pick(3, 1)), strict=True))
        rest = {
            case: mean(Estimate.of([sum(_flows_goodput(run)[: case[2] - case[1]]) for run in runs]))
            for case, runs in found.items()
        }
        impact |= {
            (near, n, i, total): rest["Standard TCP", i, total] / rest[n, i, total]
            for n, i, total in cases
            if n != "Standard TCP"
        }
    far = {key[1:]: v for key, v in impact.items() if not key[0]}
    falls = [far[n, i, totals[i][-1]] < far[n, i, totals[i][0]] for n in names for i in totals]
    text = "; ".join(f"{n}, {i} of {total}: {v:.2f}" for (n, i, total), v in far.items())
    report.check("L57", all(falls), text)
    mean_of = {near: float(np.mean([v for key, v in impact.items() if key[0] == near])) for near in (True, False)}
    report.check(
        "L58",
        mean_of[False] > mean_of[True],
        f"mean impact {mean_of[False]:.2f} at 120 ms, {mean_of[True]:.2f} at 6.2 ms",
    )
    most = {i: max(names, key=lambda n: sum(far[n, i, t] for t in totals[i])) for i in totals}
    report.check(
        "L59",
        most[10] == "Scalable TCP" and most[1] == "H-TCP",
        f"largest impact: {most[1]} with one flow, {most[10]} with ten; {text}",
    )
    return report
