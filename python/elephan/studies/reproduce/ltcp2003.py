"""Bhandarkar, Jain and Reddy: Layered TCP."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import dropwhile, pairwise, product, takewhile
from typing import Any

import matplotlib as mpl
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.judge import Arm, Kind, Time
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares, mean_window, reached
from elephan.studies.reproduce.lab import ONCE, number, printed
from elephan.studies.theory import Model

ALL = TCP, LTCP, HSTCP = "Standard TCP (SACK)", "LTCP", "HighSpeed TCP"
SYSTEMS = {TCP: "reno", "Standard TCP": "reno", LTCP: "ltcp", HSTCP: "hstcp"}
SINGLE, CLIMB, TWO, FAIRNESS, DYNAMIC, SLOW = (
    Arm(f"ltcp2003/{name}") for name in ("single", "climb", "two", "fairness", "dynamic", "slow")
)
# Of each layer K: d_K, W_K, both speed-ups, and the supporting loss rate.
LAYERS = {k: layer for k in range(1, 31) if (layer := Model("ltcp").core.layer(k)) is not None}
RTT_S = 0.1
# The window that fills 1 Gbit/s for 100 ms with packets of 1040 bytes, in segments.
OPTIMAL = 1e9 * RTT_S / 8320
# A run of 1200 s at 1 Gbit/s takes 12 s of processor time.
COSTLY = (3, 6, 10)
CHOICES = (
    "packets: 1000 bytes and 40 of headers, inferred from the utilisation of 96.15 %.",
    "initial window: 2 segments; unlimited slow start, which the small queue ends.",
    "our budget of processor time: 20 minutes for the first repeats of all experiments of this source.",
    "utilisation is the payload rate of the packets that the link transmits.",
)
# Figure 5 has two sets: its queue in packets as printed, and as it follows from the printed numbers.
PRINTED, INFERRED = 50, 2500
LARGER = f"queue of {INFERRED} packets"
QUEUES = Sets(
    (f"queue of {PRINTED} packets, as printed", f"{LARGER}, inferred"),
    "The queue of 2500 packets that follows from the printed utilisation of Standard TCP, beside the printed one of 50.",
)
# Figure 5 in s, by Mbit/s: Standard TCP climbs to its first loss and has an epoch after it; the others have many.
OF_TCP_S, OF_OTHERS_S = {10: 2400, 100: 900, 1000: 900, 2400: 1800}, {10: 2400, 100: 400, 1000: 400, 2400: 500}
BOTTLENECK, TIME = pl.col("link") == "bottleneck", pl.col("time_s")


def payload_mbit_s(run: Run, utilisation: Any) -> float:
    """The payload rate of the packets that take a share of the link's rate, which the source prints as utilisation."""
    return float(utilisation or 0.0) * (_core.bits_per_second(run.scenario.document["path"]["rate"]) / 1.04e6)


def _epochs(run: Run) -> pl.DataFrame | None:
    """The samples of the link from the first reduction of the window to the last, which are whole epochs; none if there is no epoch."""
    lost = run.flows.filter(pl.col("congestion_events").diff() > 0)["time_s"]
    return run.queues.filter(BOTTLENECK & TIME.is_between(lost[0], lost[-1])) if len(lost) > 1 else None


def steady_mbit_s(run: Run) -> float | None:
    """The utilisation over whole epochs."""
    epochs = _epochs(run)
    # The first sample is of the time before them.
    return None if epochs is None else payload_mbit_s(run, epochs["utilisation"][1:].mean())


def steady_loss_percent(run: Run) -> float | None:
    """The packets dropped of those offered to the link, over whole epochs."""
    if (epochs := _epochs(run)) is None:
        return None
    dropped, offered = (float(epochs[name][-1]) - float(epochs[name][0]) for name in ("dropped", "offered"))
    return 100 * dropped / offered


READINGS = {
    "used": Reading(lambda run: payload_mbit_s(run, run.summary.utilisation), "Mbit/s"),
    "utilisation": Reading(steady_mbit_s, "Mbit/s"),
    "loss": Reading(steady_loss_percent, "%"),
    "jain": Reading(lambda run: run.summary.jain),
}
ORACLE = {"oracle": "Neither ns-2 nor a Linux kernel has Layered TCP."}
layered = partial(declares, partial(Chapter, readings=READINGS, shared=ORACLE), "ltcp2003")


def printed_in(locator: str, metric: str) -> Callable[[Point], float]:
    """Finds the published number of a point, of its system or LTCP; `metric` has keys of the point in braces."""
    return lambda at: number("ltcp2003", locator, metric.format(**at), system=at.get("system", LTCP))


@layered("section-2", "Standard TCP's throughput, window and loss rate; bounds of Layered TCP's parameters")
def section_2(report: Chapter) -> None:
    """Formulas of sections 2 and 3, at 200 ms with packets of 1500 bytes."""
    model, last = Model("reno"), LAYERS[17]
    gigabit, ten = (model.core.loss(rate * 0.2 / 12e3, 0.2) for rate in (1e9, 1e10))
    frequent, rare, jumbo = (
        model.response(p, 0.2, size).rate_bit_s for p, size in ((1e-5, 1500), (1e-7, 1500), (1e-5, 9000))
    )
    smallest = (1 - 2 / 3) / 4
    supporting = last[4] / (8 / 3 / last[1] ** 2) / 16
    for group, unit, metric, ours in (
        ("throughput at p = 1e-5", "Mbit/s", "throughput at p=1e-5", frequent / 1e6),
        ("throughput at p = 1e-7", "Mbit/s", "throughput at p=1e-7", rare / 1e6),
        ("loss rate for 1 Gbit/s", "1", "loss rate for 1 Gbit/s", gigabit),
        ("loss rate for 10 Gbit/s", "1", "loss rate for 10 Gbit/s", ten),
        ("packets per loss at 10 Gbit/s", "packets", "packets per loss", 1 / ten),
        ("time between losses at 10 Gbit/s", "h", "time between losses", 1 / ten / (1e10 / 12e3) / 3600),
        ("throughput with packets of 9000 bytes, over that with 1500", "1", "throughput factor", jumbo / frequent),
        ("window of 64 KB", "packets", "window without window scaling", 65535 / 1500),
        ("window at 10 Gbit/s", "packets", "W_max at 10 Gbit/s", 1e10 * 0.2 / 12e3),
        ("least ratio of two layers", "1", "lower bound on alpha", 3 / 2),
        ("least beta: a quarter of what the ratio of 1.5 leaves", "1", "lower bound on beta", smallest),
        ("utilisation of one flow without a queue, best case", "%", "best-case", 100 * (1 - smallest)),
        ("supporting loss rate over Standard TCP's, over K - 1", "1", "supporting loss rate ratio", supporting),
    ):
        ((system, (value, _)),) = printed("ltcp2003", "Sec", metric).items()
        report.formula(group, unit, 0.05, (system, value, ours))
    report.notes.append(
        "The supporting loss rate is one loss for the packets sent in a recovery, 2(K-1)/(W_K d_(K-1)); with beta = 0.1 that is "
        "5(K-1)/W_K^2, 1.875(K-1) times Standard TCP's 8/(3 W_K^2). The printed factor of 1.5 follows from 4(K-1)/W_K^2."
    )


@layered("figure-3", "Layers and speed-ups", "climb")
def figure_3(report: Chapter) -> None:
    """Step sizes, windows and speed-ups by formula; the speed-ups again by a flow that climbs, and a flow with a loss."""
    table: dict[str, dict[int, float]] = {}
    for group, unit, metric, index, first in (
        ("step size d_K", "packets", "step size d_K", 0, 1),
        ("window W_K", "packets", "W_K", 1, 1),
        ("speed-up in claiming bandwidth", "1", "claiming bandwidth", 2, 2),
        ("speed-up in recovery", "1", "packet loss recovery", 3, 2),
    ):
        table[metric] = {k: number("ltcp2003", "Fig 3", f"{metric}, K={k}") for k in range(first, 18)}
        report.formula(group, unit, 0.01, *((f"K = {k}", x, LAYERS[k][index]) for k, x in table[metric].items()))
    layers, report.looks = report.lab.pick((5, 7, 9, 11, 13), (5, 7, 9)), ONCE
    climb = CLIMB.set({"duration": report.lab.pick("400 s", "200 s")})
    claiming, recovery = table["claiming bandwidth"], table["packet loss recovery"]
    factors = [(k, 0.9 * claiming[k], 1.1 * claiming[k]) for k in layers]
    ends = [(k, _with_loss(k), 0.9 * recovery[k], 1.1 * recovery[k + 1]) for k in layers[1:]]
    report.claim(
        "Y01",
        "A flow that evolves to K layers claims bandwidth faster than Standard TCP, by the factors of figure 3: 10 for 13 layers (section 3.3).",
        f"one flow without slow start and without losses, from W_T to W_K, K = {layers[0]} to {layers[-1]}",
        "segments gained over round trips needed, Standard TCP's being 1",
        "the printed factor, within the 10 % of all comparisons",
        Points("K = {k}", _climbed, "point").at({"k above below": factors}, arm=climb),
        kind=Kind.THEORY,
    )
    report.claim(
        "Y02",
        "For large K a loss is recovered (K-1)/(4 beta) times faster than by Standard TCP (section 3.3, figure 3).",
        f"one loss within a layer from K = {layers[1]} on",
        "half of the window over the round trips until it is regained",
        "between the printed factors for the windows at both ends of the layer, less and more 10 %",
        Points("K = {k}", _recovered).at({"k arm above below": ends}),
        kind=Kind.THEORY,
    )


def _climbed(at: Point, run: Run) -> float | None:
    """How many times faster than a segment for each round trip the window grew from W_T, until W_k or the end of the test."""
    first, last = LAYERS[2][1], LAYERS[at["k"]][1]
    windows = list(dropwhile(lambda window: window < first, run.flows["cwnd_segments"]))
    rounds = _rounds_until(last, windows)
    return (min(windows[rounds], last) - first) / rounds if rounds > 0 else None


def _rounds_until(level: float, windows: Sequence[float]) -> int:
    """The round trips until a window reaches a level, or until the end of the test."""
    return min(sum(1 for _ in takewhile(lambda window: window < level, windows)), len(windows) - 1)


def _with_loss(k: int) -> Arm:
    """A flow that starts with the window of layer k, and loses a packet after one and a half times its recovery."""
    _, window, _, faster, _ = LAYERS[k]
    rounds = 1.5 * window / 2 / faster
    loss = f'{{ name = "periodic", every = {round(rounds * (window + k * rounds / 2))} }}'
    duration = f"{2.5 * rounds * RTT_S:.0f} s"
    return CLIMB.set({"tcp.initial_window": f"{round(window)}", "path.loss": loss, "duration": duration})


def _recovered(run: Run) -> float | None:
    """Half of the window over the round trips until it is regained after a loss; at the pace until the end of the test if it is not."""
    pairs = list(dropwhile(lambda pair: pair[1] >= pair[0], pairwise(run.flows["cwnd_segments"])))
    if not pairs:
        return None
    (before, after), windows = pairs[0], [window for _, window in pairs]
    rounds = _rounds_until(before, windows)
    regained = (min(windows[rounds], before) - after) / (before - after)
    return regained * before / 2 / rounds if rounds > 0 else None


@layered(
    "figure-4",
    "Windows of Layered TCP and of Standard TCP after a short slow start",
    "single",
    choices=(*CHOICES, "time: 1300 s of the 1500 s that the figure shows, for our budget of processor time."),
)
def figure_4(report: Chapter) -> None:
    """One flow at 1 Gbit/s."""
    settings = {"duration": "1300 s", "measure.from": "0 s", "trace.interval": "100 ms"}
    arms = {name: SINGLE.set({"flow.cc": SYSTEMS[name], **settings}) for name in (LTCP, TCP)}
    report.arm = lambda _, at: arms[at["system"]]
    pair = {"a": LTCP, "b": TCP}
    report.claim(
        "Y03",
        "If slow start ends early, LTCP reaches the optimal window much faster than Standard TCP, and reduces it less at a loss (section 4.1, figure 4).",
        "one flow at 1 Gbit/s, 100 ms, queue of 50 packets; slow start ends where it overflows the queue",
        "whether LTCP is the first whose window is the bandwidth-delay product (1) or Standard TCP (-1), which may never reach it; "
        "share of the window kept at the first loss from there on",
        "0: no difference. The source prints a picture only",
        Points("first at the optimal window", _first).at(pair),
        Points("window after the first loss over that before, LTCP minus Standard TCP", _kept, "less").at(pair),
        looks=ONCE,
    )
    runs = {name: run for name, (run,) in zip(arms, report.lab.runs(list(arms.values()), 1), strict=True)}
    times = {name: reached(OPTIMAL, run) for name, run in runs.items()}
    texts = [f"{name} {'at' if at.seen else 'not before'} {at.seconds:.0f} s" for name, at in times.items()]
    report.notes.append(f"The window is the bandwidth-delay product: {', '.join(texts)}.")
    report.draw = partial(_windows, runs)


def _first(*runs: Run) -> float | None:
    """1 if LTCP reaches the product first, -1 if Standard TCP does, 0 if both do at once; undefined if neither does."""
    ltcp, tcp = (at.seconds if at.seen else math.inf for at in (reached(OPTIMAL, run) for run in runs))
    return None if ltcp == tcp == math.inf else float((ltcp < tcp) - (ltcp > tcp))


def _kept(run: Run) -> float | None:
    """The window after its first reduction from the optimal value, as a share of the window before; undefined without one."""
    pairs = pairwise(dropwhile(lambda window: window < OPTIMAL, run.flows["cwnd_segments"]))
    return next((after / before for before, after in pairs if after < before), None)


def _windows(runs: Mapping[str, Run]) -> Figure:
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(6, 3))
        axes = drawn.subplots()
        for name, run in runs.items():
            axes.plot(run.flows["time_s"] / RTT_S, run.flows["cwnd_segments"], label=name)
        axes.set_xlabel("time (round trips of 100 ms)")
        axes.set_ylabel("cwnd (segments)")
        axes.legend()
        return drawn


@layered(
    "figure-5",
    "Utilisation and loss of one flow by bandwidth",
    "single",
    choices=(
        *CHOICES,
        "queue: the source prints 50 packets for all experiments unless it says otherwise, and says nothing else here. But its Standard TCP fills "
        "100 Mbit/s, which takes a queue of the bandwidth-delay product (1200 packets; Li 2006, equation 5.6). By the same equation its 836.71 Mbit/s "
        "at 1 Gbit/s take 2500 packets. That one number is not compared with the queue that follows from it.",
        "access links: 2.4 Gbit/s as printed, but 10 Gbit/s for the bottleneck of 2.4 Gbit/s. With 2.4 Gbit/s for both, the access link would be the "
        "limit, and no queue would ever grow at the bottleneck.",
        "steady state: whole epochs, from the first loss on. The source has 2000 s of it, and does not say from when. For our budget of processor time "
        "Standard TCP has one epoch at least, of up to 1600 s at 2.4 Gbit/s, and the others as many as fit into 400 s (2400 s at 10 Mbit/s, 500 s at 2.4 Gbit/s).",
        "slow start is limited (RFC 3742) with max_ssthresh = 40 segments here, so that the first loss comes soon and at a full queue: "
        "in the unlimited one the queue of 50 packets overflows at 75, and Standard TCP then climbs for 1200 s at 1 Gbit/s and 2900 s at 2.4 Gbit/s.",
    ),
)
def figure_5(report: Chapter) -> None:
    """10 Mbit/s to 2.4 Gbit/s, three algorithms, two queues."""
    rates, report.looks = report.lab.pick((10, 100, 1000, 2400), (10, 100)), ONCE

    def arm(chosen: str, at: Point) -> Arm:
        cc, rate = SYSTEMS[at["system"]], at["rate"]
        return SINGLE.set(
            {
                "flow.cc": cc,
                "flow.slow_start": '{ name = "limited", max_ssthresh = 40 }',
                "path.rate": f"{rate} Mbit/s",
                "path.buffer": f"{INFERRED if chosen.startswith(LARGER) else PRINTED} packets",
                "path.access_rate": "10 Gbit/s" if rate == 2400 else "2.4 Gbit/s",
                "duration": f"{(OF_TCP_S if cc == 'reno' else OF_OTHERS_S)[rate]} s",
                "measure.from": "0 s",
                "trace.interval": "1 s",
            }
        )

    def numbers(rate: int, name: str, metric: str, chosen: str) -> Points:
        # The larger queue was inferred from Standard TCP's utilisation at 1 Gbit/s.
        systems = ALL if not chosen or (rate, name) != (1000, "utilisation") else (LTCP, HSTCP)
        return Points("{system}", name).at(
            system=systems, rate=rate, printed=printed_in("Fig 5", f"{metric} at {rate} Mbit/s")
        )

    report.arm = arm
    kinds = (("utilisation", "Mbit/s", "utilisation"), ("loss", "%", "loss rate"))
    changed = {LARGER: "a queue of 2500 packets instead of 50"}
    for rate, (name, unit, metric) in product(rates, kinds):
        report.rows(f"{name} at {rate} Mbit/s", unit, partial(numbers, rate, name, metric), variants=changed)
    report.notes.append(
        "At 10 Mbit/s a flow sends 2.4 million packets in 2000 s: one loss is 4.16e-5 %, and the printed 4.16e-3 % of Standard TCP are a hundred. "
        "With the queue of 2500 packets it loses one packet in an epoch, as a flow alone does that grows by one packet in a round trip."
    )
    links = [(r, f"{r} Mbit/s" + " with access links of 10 Gbit/s, not as printed" * (r == 2400)) for r in rates]
    slow, fast = ({"rate link": [link for link in links if (link[0] <= 100) is alike]} for alike in (True, False))
    nearer = "{link}, the same less LTCP's distance from HighSpeed TCP"
    report.claim(
        "Y04",
        "At large bandwidths LTCP uses the link better than Standard TCP, with benefits similar to HighSpeed TCP's; at 10 and 100 Mbit/s "
        "the table has the same for all three (section 4.1, figure 5).",
        "one flow at 10, 100, 1000 and 2400 Mbit/s",
        "above 100 Mbit/s LTCP's utilisation minus Standard TCP's, and by how much that exceeds LTCP's distance from HighSpeed TCP; "
        "at 10 and 100 Mbit/s the largest difference of the three",
        "0: better, and nearer to HighSpeed TCP; for the same, 0.01 Mbit/s, the last printed digit",
        Points("{link}, largest difference", "utilisation, range", below=0.01).at(slow).of(system=ALL),
        (
            Points("{link}, LTCP minus Standard TCP", "utilisation, less").at(fast, a=LTCP, b=TCP),
            Points(nearer, "utilisation, excess less distance").at(fast).of(system=ALL),
        ),
        means="The printed queue contradicts the printed utilisation: at 10 and 100 Mbit/s all three fill the link with the larger queue, "
        "and with 50 packets they do not. What the source prints for these two rates is not of the queue that it prints.",
        sets=QUEUES,
    )
    neighbours, ends = ((LTCP, "Standard TCP"), (HSTCP, LTCP)), ((HSTCP, "Standard TCP"),)
    pairs = [(*link, *pair) for link in links for pair in (neighbours if link[0] < 2400 else ends)]
    report.claim(
        "Y05",
        "The congestion losses of LTCP and HighSpeed TCP are higher than Standard TCP's; in the table LTCP's are between the two (section 4.1, figure 5).",
        "one flow at 10, 100, 1000 and 2400 Mbit/s; without LTCP at 2400 Mbit/s, where the table has no loss and contradicts the sentence",
        "difference of the loss rates",
        "0: no difference",
        Points("{link}, {a} minus {b}", "loss, less").at({"rate link a b": pairs}),
        means="The order of the loss rates depends on the queue; section 4 prints one of 50 packets, which contradicts the printed utilisation.",
        sets=QUEUES,
    )


@layered(
    "figure-6",
    "Utilisation and convergence by beta",
    "two",
    choices=(
        *CHOICES,
        "the first flow starts within the first 10 s, so that repeats differ; its utilisation is that from 200 to 600 s, when the second starts.",
        "the shares of the two flows are those over 10 s.",
        "3, 6 and 10 repeats, for our budget of processor time.",
    ),
)
def figure_6(report: Chapter) -> None:
    """Beta = 0.08, 0.10, 0.12, 0.14; a second flow at 600 s."""
    lab, report.looks = report.lab, COSTLY
    betas = lab.pick((0.08, 0.10, 0.12, 0.14), (0.08, 0.14))
    short = lab.pick({}, {"flow.1.start": "90 s", "duration": "240 s"})
    report.arm = lambda _, at: TWO.set({"flow.cc": f'{{ name = "ltcp", beta_l = {at["beta"]} }}', **short})
    for group, unit, metric, read, how in (
        ("utilisation of one flow", "Mbit/s", "utilisation", _alone, "value"),
        ("time to 55/45, median", "RTT", "convergence", _rounds, "median"),
    ):
        values = {"beta": betas, "printed": printed_in("Fig 6", f"{metric}, beta={{beta:.2f}}")}
        report.rows(group, unit, Points("beta = {beta:.2f}", read, how).at(values))
    report.claim(
        "Y06",
        "The utilisation of a flow is roughly 1 - beta, so a smaller beta uses the link better (section 4.2, figure 6).",
        "one flow, beta = 0.08, 0.10, 0.12 and 0.14",
        "utilisation over the link's payload rate, plus beta, minus 1; differences of neighbours",
        "half of the step of 0.02 between the betas, so that none fits better than its own; 0: no difference",
        Points("beta = {beta:.2f}", _over_rule, "point", above=-0.01, below=0.01).at(beta=betas),
        Points("beta = {a:.2f} minus {b:.2f}", _alone, "less", unit="Mbit/s")
        .at({"a b": list(pairwise(betas))})
        .of(beta=("a", "b")),
    )
    pairs = lab.pick(((0.08, 0.12), (0.10, 0.12), (0.12, 0.14)), ((0.08, 0.14),))
    report.claim(
        "Y07",
        "Beta decides how soon a flow gives up and claims bandwidth: in the table convergence takes longer with a larger beta (section 4.2, figure 6).",
        "neighbouring betas, except for 0.08 and 0.10, whose printed times differ by 0.4 %",
        "the share of all pairs of runs in which the smaller beta converges first; log-rank test",
        "one half: no difference",
        Points("beta = {a:.2f} before {b:.2f}", _rounds, "earlier", above=0.5).at({"a b": pairs}).of(beta=("a", "b")),
    )

    def recovery(layer: int) -> float:
        """The round trips that a flow at the largest window of a layer needs to regain it after a loss."""
        _, window, _, faster, _ = LAYERS[layer + 1]
        return window / 2 / faster

    report.claim(
        "Y13",
        "Two flows converge because the larger takes longer to regain what it gave up (sections 3.1 and 3.2).",
        "layers 2 to 16 by the rule, each at its largest window; two flows in simulation, for each beta",
        "recovery in a layer over that in the layer below; difference of the shares over the link, "
        "in the later half of the time after the second flow's start minus the first half",
        "1, and 0: no difference. The source prints the inequality and no measurement",
        Points(
            "recovery, layer {k} over layer {less}",
            lambda at: recovery(at["k"]) / recovery(at["less"]),
            "exact",
            above=1,
        ).at({"less k": list(pairwise(range(2, 17)))}),
        Points("shares, beta = {beta:.2f}", _closer, below=0).at(beta=betas),
        kind=Kind.THEORY,
    )


def _alone(run: Run) -> float:
    """The utilisation before the second flow starts, in Mbit/s, without the first third of that time."""
    end = run.summary.flows[1].start_s or 0.0
    samples = run.queues.filter(BOTTLENECK & TIME.is_between(end / 3, end, closed="right"))
    return payload_mbit_s(run, samples["utilisation"].mean())


def _over_rule(at: Point, run: Run) -> float:
    """The utilisation less 1 - beta, as a share of the link's payload rate."""
    return _alone(run) / (1e3 / 1.04) + float(at["beta"]) - 1


def _shares(run: Run) -> pl.DataFrame:
    """The first flow's share of the goodput over the last 10 s, by the time since the second flow's start, from 10 s on."""
    start = run.summary.flows[1].start_s or 0.0
    late = run.flows.filter(pl.col("time_s") > start)
    first, second = (late.filter(pl.col("flow") == flow).select("time_s", "goodput_bit_s") for flow in (0, 1))
    both = first.join(second, on="time_s").with_columns(pl.col("^goodput.*$").rolling_mean(10)).drop_nulls()
    share = pl.col("goodput_bit_s") / (pl.col("goodput_bit_s") + pl.col("goodput_bit_s_right"))
    return both.select(TIME - start, share=share)


def _rounds(run: Run) -> Time:
    """The number of round trips from the second flow's start until the shares are 55/45."""
    near = _shares(run).filter((pl.col("share") - 0.5).abs() <= 0.05)["time_s"]
    end = float(near[0]) if len(near) else run.summary.to_s - (run.summary.flows[1].start_s or 0.0)
    return Time(end / RTT_S, seen=bool(len(near)))


def _closer(run: Run) -> float:
    """The mean difference of the shares in the second half of the time for both flows, minus that in the first half."""
    gaps: list[float] = (2 * (_shares(run)["share"] - 0.5).abs()).to_list()
    half = len(gaps) // 2
    return sum(gaps[half:]) / (len(gaps) - half) - sum(gaps[:half]) / half


@layered(
    "figure-7",
    "Fairness of flows that start together",
    "fairness",
    choices=(*CHOICES, "averages over 600 s, from 200 s on, for our budget of processor time."),
)
def figure_7(report: Chapter) -> None:
    """2, 4, 6 and 10 flows."""
    counts, end = report.lab.pick(((2, 4, 6, 10), "800 s"), ((2, 4), "400 s"))
    report.looks, report.arm = ONCE, lambda _, at: FAIRNESS.set({"flow.count": f"{at['n']}", "duration": end})

    def rates(of: Callable[[list[float]], float], run: Run) -> float:
        return of([flow.goodput_bit_s / 1e6 for flow in run.summary.flows])

    for group, metric, of in (
        ("mean throughput of a flow", "average", lambda rates: sum(rates) / len(rates)),
        ("minimum throughput of a flow", "minimum", min),
        ("maximum throughput of a flow", "maximum", max),
    ):
        values = printed_in("Fig 7", f"{metric} per-flow throughput, {{n}} flows")
        report.rows(group, "Mbit/s", Points("{n} flows", partial(rates, of)).at(n=counts, printed=values))
    jain = Points("{n} flows", "jain").at(n=counts)
    report.rows("Jain's index", "1", jain.at(printed=printed_in("Fig 7", "index, {n} flows")))
    report.claim(
        "Y08",
        "Flows that start together share equitably, with Jain's index close to 1 (section 4.3, figure 7).",
        "2, 4, 6 and 10 flows of one round-trip time",
        "Jain's index",
        "0.9999: the source has no number for close; the printed indices are 0.99999995 and more",
        jain.at(above=0.9999),
    )


@layered(
    "figure-8",
    "Flows that join and leave",
    "dynamic",
    choices=(
        *CHOICES,
        "the first flow starts within the first 10 s, so that repeats differ.",
        "3, 6 and 10 repeats, for our budget of processor time.",
    ),
)
def figure_8(report: Chapter) -> None:
    """Flows join at 300 and 700 s, and leave at 1300 and 1700 s."""
    phases = (("two flows", 700, 2), ("three flows", 1300, 3), ("two flows again", 1700, 2))

    def evenness(at: Point, run: Run) -> float:
        last = TIME.is_between(at["end"] - 100, at["end"], closed="right") & (pl.col("flow") < at["flows"])
        means = run.flows.filter(last).group_by("flow").agg(pl.col("goodput_bit_s").mean())["goodput_bit_s"]
        return float(min(means) / max(means))

    report.claim(
        "Y09",
        "Flows share the link equitably as others join and leave (section 4.4, figure 8).",
        "the phases with two, three and again two flows",
        "smallest goodput over the largest, in the last 100 s of the phase",
        "45/55, the source's own criterion of convergence (section 4.2)",
        Points("{phase}", evenness, "point", above=45 / 55).at({"phase end flows": phases}, arm=DYNAMIC),
        looks=COSTLY,
    )
    ((run,),) = report.lab.runs([DYNAMIC], 1)
    report.draw = partial(run.plot, "cwnd")


@layered(
    "figure-9",
    "Utilisation under channel errors",
    "single",
    choices=(
        *CHOICES,
        "printed rates 10e-n are read as 1e-n; errors are independent for each packet.",
        "at 1e-11 the runs at 1e-10 stand in, for our budget of processor time: of the 2e8 packets of a run, 0.02 are lost to errors on average.",
    ),
)
def figure_9(report: Chapter) -> None:
    """Random loss from 1e-11 to 1e-5, averages over 2000 s from the start."""
    lab, report.looks = report.lab, (2, 4, 8)
    losses = lab.pick(("1e-11", "1e-10", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5"), ("1e-6", "1e-5"))

    def arm(_: str, at: Point) -> Arm:
        loss = f'{{ name = "random", probability = {"1e-10" if at["p"] == "1e-11" else at["p"]} }}'
        settings = {"duration": lab.pick("2000 s", "300 s"), "measure.from": "0 s", **at.get("set", {})}
        return SINGLE.set({"flow.cc": SYSTEMS[at["system"]], "path.loss": loss, **settings})

    report.arm = arm
    used = Points("{system}", "used").at(system=(LTCP, TCP), printed=printed_in("Fig 9", "error rate {p}"))
    for p in losses:
        group = f"utilisation at {p}"
        report.rows(group, "Mbit/s", used.at(p=p))
        if p in ("1e-6", "1e-5"):
            every = round(1 / float(p))
            regular = used.at(p=p, set={"path.loss": f'{{ name = "periodic", every = {every} }}'})
            changed = f"every {every}th packet is lost"
            report.rows(f"{group}, regular", "Mbit/s", regular, looks=ONCE, cause_of=group, changed=changed)
    if "1e-11" in losses:
        group = "utilisation at 1e-11"
        report.rows(
            f"{group}, from 400 s on",
            "Mbit/s",
            used.at(p="1e-11", system=TCP, set={"duration": "2400 s", "measure.from": "400 s"}),
            looks=ONCE,
            cause_of=group,
            changed="the 2000 s begin at 400 s, without the first part of Standard TCP's climb after slow start",
        )
        bounds = ((LTCP, 0.75, None), (TCP, 0.25, 0.75))
        report.claim(
            "Y10",
            "At 1e-7 LTCP's utilisation remains high, while Standard TCP's falls to half of that at lower error rates (section 4.5, figure 9).",
            "one flow at 1 Gbit/s, error rates 1e-7 and 1e-11",
            "utilisation at 1e-7 over that at 1e-11",
            "nearer to 1 than to one half for LTCP, nearer to one half than to 1 or 0 for Standard TCP",
            Points("{system}", "used, over").at({"system above below": bounds}).of(p=("1e-7", "1e-11")),
        )
    report.claim(
        "Y11",
        "As channel errors increase LTCP's utilisation falls, but stays better than Standard TCP's (section 4.5, figure 9).",
        f"one flow at 1 Gbit/s, error rates {losses[0]} to {losses[-1]}",
        "LTCP's utilisation minus Standard TCP's",
        "0: no difference",
        Points("at {p}", "used, less").at(p=losses, a=LTCP, b=TCP),
    )


@layered(
    "figure-10",
    "One flow of Layered TCP and four of Standard TCP at 10 Mbit/s",
    "slow",
    choices=(
        *CHOICES,
        "the four flows start within a second of 300 s, so that repeats differ; shares are those from 400 to 900 s.",
    ),
)
def figure_10(report: Chapter) -> None:
    """Layers of the flow alone, and shares after the four have joined."""
    group = "layers of the LTCP flow alone"

    def layers(run: Run) -> float:
        """The layers at the largest window from 100 to 300 s."""
        largest: Any = run.flows.filter((pl.col("flow") == 0) & TIME.is_between(100, 300))["cwnd_segments"].max()
        return float(next(k for k in range(1, 30) if (largest or 0.0) <= LAYERS[k + 1][1]))

    def beside_four(run: Run) -> float:
        ltcp, *four = (flow.goodput_bit_s for flow in run.summary.flows)
        return ltcp / (sum(four) / len(four))

    report.rows(group, "1", Points(LTCP, layers).at(arm=SLOW, printed=printed_in("Sec 4.6", group)), band=0.0)
    report.claim(
        "Y12",
        "In a slow network, where windows cannot grow beyond W_T, LTCP gives up bandwidth and shares it equitably with Standard TCP (section 4.6, figure 10).",
        "one flow of LTCP, joined by four of Standard TCP at 300 s; 10 Mbit/s",
        "LTCP's goodput over the mean of the four; its mean window, both from 400 s on",
        "45/55 and 55/45, the source's own criterion of convergence (section 4.2); W_T = 50 segments",
        Points("goodput over the mean of the four", beside_four, above=45 / 55, below=55 / 45).at(arm=SLOW),
        Points("mean window", mean_window, below=50, unit="segments").at(arm=SLOW),
    )
    ((run,),) = report.lab.runs([SLOW], 1)
    report.draw = partial(run.plot, "cwnd")
