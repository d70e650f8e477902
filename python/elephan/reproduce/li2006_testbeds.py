"""Li 2006: end hosts (chapters 3 and 5), windows over time (6), MB-NG and DataTAG (9.1), DiffServ (9.2), Internet paths (9.3)."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from elephan import _core
from elephan.reproduce.lab import Lab, Report, estimate, experiment, mean
from elephan.reproduce.li2006 import SYSTEMS, listed
from elephan.results import Run
from elephan.scenario import Scenario
from elephan.sweeps.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOUR = ("Standard TCP", "HighSpeed TCP", "Scalable TCP", "H-TCP")
ROUTER = "the routers' queues: 20 % of the product on DataTAG, 1000 packets on MB-NG (called relatively large)."
HOSTS = "the cost of ACKs to the hosts, to which the source attributes part of what it saw, is left out."
TEST = (ROUTER, HOSTS, "length of a test: 120 s, of which the first 30 do not count.")
PAYLOAD = 1448 / 1500


def _made(lab: Lab, name: str, change: Mapping[str, Any], seed: int = 1) -> Scenario:
    document: dict[str, Any] = json.loads(lab.scenario(name).to_json())
    merged = {key: document.get(key, {}) | value if isinstance(value, dict) else value for key, value in change.items()}
    return Scenario(
        json.loads(_core.load_scenario(json.dumps(document | merged | {"seed": seed}), "scenario", [], True))
    )


def _cc(system: str) -> Any:
    text = SYSTEMS[system]
    return {"name": "hstcp", "form": "table"} if text.startswith("{") else text


def _network(near: bool) -> dict[str, Any]:
    return {"rtt": "6.2 ms", "buffer": "1000 packets"} if near else {}


def _repeated(lab: Lab, what: str, name: str, changes: Sequence[Mapping[str, Any]], repeats: int) -> list[list[Run]]:
    runs = lab.run(what, [_made(lab, name, change, seed) for change in changes for seed in range(1, repeats + 1)])
    return [runs[i : i + repeats] for i in range(0, len(runs), repeats)]


def _flows_goodput(run: Run) -> list[float]:
    return [f.goodput_bit_s / 1e6 for f in run.summary.flows]


@experiment(
    "li2006/figure-3.1",
    "UDP and TCP on a path with losses",
    "li2006/end-host",
    choices=("round-trip time and loss rate of the path: 20 ms, and three loss rates.",),
)
def figure_3_1(lab: Lab) -> Report:
    """Standard TCP for 30 s, where UDP gets through at any rate of loss this small."""
    report, losses = Report(), ("1e-6", "1e-5", "1e-4")
    runs = lab.runs(
        "li2006/end-host",
        [{"path.loss": f'{{ name = "random", probability = {p} }}', "tcp.send_buffer": "8 MB"} for p in losses],
    )
    rates = {p: r[0].summary.goodput_bit_s / 1e6 for p, r in zip(losses, runs, strict=True)}
    ratios = ", ".join(f"{493 / rate:.1f} at {p}" for p, rate in rates.items())
    report.check(
        "L01",
        None,
        f"neither round-trip time nor loss rate is published; the printed 493 Mbit/s of UDP over our TCP: {ratios}",
    )
    return report


@experiment(
    "li2006/figure-5.1",
    "Goodput of Standard TCP by socket buffer and by MTU (figures 5.1 and 5.2)",
    "li2006/end-host",
    choices=("round-trip time: 20 ms.", "the grids of buffers and MTUs."),
)
def figure_5_1(lab: Lab) -> Report:
    """Buffer over round-trip time until the path limits; window over segment size."""
    report, sizes = Report(), (64, 128, 256, 512, 1024, 4096)
    runs = lab.runs("li2006/end-host", [{"tcp.send_buffer": f"{kb} kB"} for kb in sizes])
    rates = [r[0].summary.goodput_bit_s for r in runs]
    limit = 622.08e6 * PAYLOAD
    fits = [rate / min(kb * 8e3 / 0.02, limit) for kb, rate in zip(sizes, rates, strict=True)]
    report.check(
        "L02",
        all(0.85 < f < 1.05 for f in fits),
        ", ".join(f"{kb} kB: {rate / 1e6:.0f} Mbit/s" for kb, rate in zip(sizes, rates, strict=True)),
    )
    mtus = (1500, 3000, 9000)
    runs = lab.runs(
        "li2006/end-host",
        [
            {"tcp.packet": f"{mtu} B", "path.rate": "1 Gbit/s", "path.rtt": "120 ms", "tcp.send_buffer": "6 MB"}
            for mtu in mtus
        ],
    )
    windows = [r[0].summary.flows[0].goodput_bit_s * 0.12 / 8 / (mtu - 52) for mtu, r in zip(mtus, runs, strict=True)]
    goodputs = [r[0].summary.goodput_bit_s / 1e6 for r in runs]
    product = [w * mtu for w, mtu in zip(windows, mtus, strict=True)]
    report.check(
        "L03",
        max(product) / min(product) < 1.1,
        "; ".join(
            f"{mtu} B: {w:.0f} segments in flight for {g:.0f} Mbit/s"
            for mtu, w, g in zip(mtus, windows, goodputs, strict=True)
        ),
    )
    return report


@experiment(
    "li2006/figure-5.6",
    "Window growth with delayed ACKs and byte counting; right-sizing (figures 5.6 and 5.7)",
    "li2006/end-host",
    choices=("path: 100 Mbit/s, 100 ms, and one loss in 60000 packets for the right-sizing on MB-NG.",),
)
def figure_5_6(lab: Lab) -> Report:
    """Growth for each round trip in three runs; the cap of dynamic right-sizing."""
    report = Report()
    stacks = {
        "no delayed ACK": {"tcp.delayed_ack.segments": "1", "tcp.byte_counting": '"per_ack"'},
        "delayed ACK": {"tcp.byte_counting": '"per_ack"'},
        "delayed ACK and ABC": {},
    }
    path = {
        "path.rate": "1 Gbit/s",
        "path.rtt": "100 ms",
        "tcp.initial_ssthresh": "20",
        "duration": "40 s",
        "measure.from": "0 s",
    }
    growth = {}
    for name, runs in zip(
        stacks, lab.runs("li2006/end-host", [stack | path for stack in stacks.values()]), strict=True
    ):
        frame = runs[0].flows.filter(pl.col("time_s") > 5)
        time, window = frame["time_s"].to_numpy(), frame["cwnd_segments"].to_numpy()
        growth[name] = float(np.polyfit(time / 0.1, window, 1)[0])
    first, half, abc = growth.values()
    report.check(
        "L04",
        abs(half / first - 0.5) < 0.1 and abs(abc / first - 1) < 0.1,
        f"segments for each round trip: {listed(growth)}",
    )
    drs = {"path.rate": "1 Gbit/s", "path.rtt": "6.2 ms", "path.buffer": "1000 packets", "duration": "60 s"}
    lossy = {"path.loss": '{ name = "periodic", every = 60000 }'}
    capped_runs = lab.runs(
        "li2006/end-host",
        [drs, drs | {"tcp.auto_tuning": "true"}, drs | lossy, drs | lossy | {"tcp.auto_tuning": "true"}],
    )
    free, capped, _, capped_lossy = (r[0] for r in capped_runs)
    flight = [
        float(r.flows.filter(pl.col("time_s") > 20)["pipe_bytes"].to_numpy().max()) / 1448 for r in (free, capped)
    ]
    drops = [r.summary.links[0].dropped for r in (free, capped)]
    used = capped_lossy.summary.utilisation or 0
    report.check(
        "L05",
        flight[1] < flight[0] and drops[1] == 0 and used < 0.99,
        f"most in flight {flight[0]:.0f} segments, with right-sizing, which here allows twice what came in a round trip (Fisk and Feng 2001), {flight[1]:.0f} (product: 517); drops {drops[0]} and {drops[1]}; utilisation with losses {used:.3f}",
    )
    return report


@experiment("li2006/figure-6.1", "Windows over time at 200 Mbit/s, 150 ms (figures 6.1 to 6.4)", "li2006/traces")
def figure_6_1(lab: Lab) -> Report:
    """HSTCP, Scalable, H-TCP, BIC: drawn; the source prints no numbers."""
    report, names = Report(), ("HighSpeed TCP", "Scalable TCP", "H-TCP", "BicTCP")
    runs = [r[0] for r in lab.runs("li2006/traces", [{"flow.cc": SYSTEMS[n]} for n in names])]

    def draw() -> "Figure":
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from elephan.plots import STYLE

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 4))
            for axes, name, run in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, names, runs, strict=True):
                axes.plot(run.flows["time_s"], run.flows["cwnd_segments"])
                axes.set_title(name)
            figure.supxlabel("time (s)", fontsize=9)
            figure.supylabel("cwnd (segments)", fontsize=9)
            return figure

    report.draw = draw
    used = {n: run.summary.utilisation or 0 for n, run in zip(names, runs, strict=True)}
    report.notes.append(f"Utilisation of the link: {listed(used, 3)}.")
    return report


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
    runs = _repeated(
        lab,
        "figure 9.1",
        "li2006/testbed",
        [
            {"flow": [{"cc": _cc(n)}], "path": _network(near) | {"loss": {"name": "periodic", "every": every}}}
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
    lab: Lab, near: bool, count: int, rates: Sequence[int], names: Sequence[str] = FOUR
) -> dict[tuple[str, int], list[Run]]:
    cases = [(n, rate) for n in names for rate in rates]
    changes = [
        {
            "flow": [{"cc": _cc(n), "count": count, "start": {"uniform": ["0 s", "2 s"]}}],
            "path": _network(near),
            **({"cbr": [{"rate": f"{rate} Mbit/s"}]} if rate else {}),
        }
        for n, rate in cases
    ]
    return dict(
        zip(cases, _repeated(lab, f"{count} flows beside CBR", "li2006/testbed", changes, lab.pick(3, 1)), strict=True)
    )


def _goodput(runs: Sequence[Run]) -> float:
    return mean(Estimate.of([sum(_flows_goodput(run)) for run in runs]))


@experiment("li2006/figure-9.3", "One flow beside UDP on MB-NG and DataTAG", "li2006/testbed", choices=TEST)
def figure_9_3(lab: Lab) -> Report:
    """CBR from 0 to 900 Mbit/s."""
    report, rates = Report(), lab.pick((0, 100, 200, 400, 600, 700, 900), (0, 200, 600))
    near, far = _beside_cbr(lab, True, 1, rates), _beside_cbr(lab, False, 1, rates)
    spread = {r: max(_goodput(near[n, r]) for n in FOUR) / min(_goodput(near[n, r]) for n in FOUR) for r in rates}
    report.check(
        "L50",
        max(spread.values()) < 1.15,
        "6.2 ms, most over least goodput: " + ", ".join(f"{s:.2f} at {r} Mbit/s" for r, s in spread.items()),
    )
    new = {n: [_goodput(far[n, r]) for r in rates] for n in FOUR}
    report.check(
        "L51",
        None,
        "the dip is an effect of hosts, which are left out; goodputs at 120 ms: "
        + "; ".join(f"{n} {', '.join(f'{g:.0f}' for g in v)}" for n, v in new.items()),
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
    """Aggregate goodput and its spread over flows."""
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
        "most over least aggregate: " + ", ".join(f"{net} {r} Mbit/s {w:.2f}" for (net, r), w in worst.items()),
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
    changes = [{"flow": [{"cc": _cc(n), "count": k, "start": {"uniform": ["0 s", "5 s"]}}]} for n, k in cases]
    found = dict(zip(cases, _repeated(lab, "figure 9.7", "li2006/testbed", changes, lab.pick(3, 1)), strict=True))
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
    """N flows of Standard TCP, of which i become another algorithm."""
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
                    {"cc": _cc(n), "count": i, "start": {"uniform": ["0 s", "5 s"]}},
                ],
                "path": _network(near),
            }
            for n, i, total in cases
        ]
        found = dict(zip(cases, _repeated(lab, "impact", "li2006/testbed", changes, lab.pick(3, 1)), strict=True))
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
            "flow": [{"cc": _cc(name), "dscp": "af11", "start": "2 s"}],
            "path": {"queue": {"name": "wrr", "class": classes}},
            "tcp": {"moderate_cwnd": moderate},
        }

    cases = [(n, share) for n in names for share in shares]
    found = dict(
        zip(
            cases,
            _repeated(lab, "DiffServ", "li2006/diffserv", [change(*case) for case in cases], lab.pick(3, 1)),
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
    moderated = _repeated(
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


PATHS = {
    "a trans-Atlantic path": ("120 ms", "1e-6"),
    "that and the width of America": ("180 ms", "1e-6"),
    "Europe": ("25 ms", "1e-5"),
}


@experiment(
    "li2006/figure-9.27",
    "Models of Internet paths",
    "li2006/internet",
    choices=(
        "everything about the paths: round-trip times, bottleneck, losses and traffic; these are models, with web traffic of 400 users and three combinations of round-trip time and loss.",
    ),
)
def figure_9_27(lab: Lab) -> Report:
    """Five minutes without slow start."""
    report, names = Report(), tuple(SYSTEMS)
    paths = dict(list(PATHS.items())[: lab.pick(3, 1)])
    cases = [(n, p) for n in names for p in paths]
    points = [{"flow.cc": SYSTEMS[n], "path.rtt": paths[p][0], "path.loss.probability": paths[p][1]} for n, p in cases]
    found = dict(zip(cases, lab.runs("li2006/internet", points, lab.pick(5, 1)), strict=True))
    good = {case: mean(estimate(runs, lambda s: s.flows[0].goodput_bit_s / 1e6)) for case, runs in found.items()}
    text = "; ".join(f"{p}: {listed({n: good[n, p] for n in names}, 0)}" for p in paths)
    report.check("L66", all(good[n, p] > good["Standard TCP", p] for n in names for p in paths), f"Mbit/s, {text}")
    report.check("L67", None, f"which path is which is not known; in these models, Mbit/s, {text}")
    p = next(iter(paths))
    times = {}
    for n in ("HighSpeed TCP", "Scalable TCP"):
        run = found[n, p][0]
        frame = run.flows.filter(pl.col("flow") == 0)
        high = frame.filter(pl.col("cwnd_segments") > 0.8 * float(frame["cwnd_segments"].to_numpy().max()))["time_s"]
        times[n] = float(high[0])
    report.check(
        "L68", all(100 < t < 220 for t in times.values()), f"80 % of the largest window after, s: {listed(times, 0)}"
    )
    stable = {n: mean(estimate(found[n, p], lambda s: s.flows[0].stability)) for n in names}
    report.check("L69", None, f"real paths; in the first model the deviation over mean is {listed(stable)}")
    return report


@experiment("li2006/appendix-a", "Disks and network cards")
def appendix_a(lab: Lab) -> Report:
    """Hardware."""
    del lab
    report = Report()
    report.check("L72", None, "a bench of disks")
    report.check("L73", None, "a bench of network cards")
    return report
