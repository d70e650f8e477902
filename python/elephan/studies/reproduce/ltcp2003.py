"""Bhandarkar, Jain and Reddy: Layered TCP."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

import matplotlib as mpl
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.base.plots import STYLE, Figure
from elephan.studies.reproduce.judge import Arm, Claim, Kind, Place, Quantity, Time
from elephan.studies.reproduce.lab import Lab, Report, experiment, figures, printed
from elephan.studies.theory import Model

SINGLE, CLIMB = "ltcp2003/single", "ltcp2003/climb"
TCP, LTCP, HSTCP = "Standard TCP (SACK)", "LTCP", "HighSpeed TCP"
SYSTEMS = {TCP: "reno", LTCP: "ltcp", HSTCP: "hstcp"}
RTT_S = 0.1
# The window that fills 1 Gbit/s for 100 ms with packets of 1040 bytes, in segments.
OPTIMAL = 1e9 * RTT_S / 8320
# Nothing random happens to one flow alone: a second run shows that repeats are the same.
SAME = (2,)
# A run of 1200 s at 1 Gbit/s takes 12 s of processor time.
COSTLY = (3, 6, 10)
CHOICES = (
    "packets: 1000 bytes and 40 of headers, inferred from the utilisation of 96.15 %.",
    "initial window: 2 segments; unlimited slow start, which the small queue ends.",
    "our budget of processor time: 20 minutes for the first repeats of all experiments of this source.",
    "utilisation is the payload rate of the packets that the link transmits.",
)
OF_LTCP = partial(Claim, oracle="Neither ns-2 nor a Linux kernel has Layered TCP.")
# Figure 5 has two sets: its queue in packets as printed, and as it follows from the printed numbers.
PRINTED, INFERRED = 50, 2500
QUEUES = {PRINTED: "queue of 50 packets, as printed", INFERRED: "queue of 2500 packets, inferred"}
# Figure 5 in s, by Mbit/s: Standard TCP climbs to its first loss and has an epoch after it; the others have many.
OF_TCP_S, OF_OTHERS_S = {10: 2400, 100: 900, 1000: 900, 2400: 1800}, {10: 2400, 100: 400, 1000: 400, 2400: 500}


def payload_mbit_s(run: Run) -> float:
    """All of the link's rate that its packets leave to payload."""
    return _core.bits_per_second(run.scenario.document["path"]["rate"]) / 1.04e6


def used_mbit_s(run: Run) -> float:
    """The payload rate of the packets that the link transmitted while it was measured, as the source prints utilisation."""
    return (run.summary.utilisation or 0.0) * payload_mbit_s(run)


def _mean_used(samples: pl.DataFrame, run: Run) -> float:
    mean = samples.filter(pl.col("link") == "bottleneck")["utilisation"].mean()
    return float(mean or 0.0) * payload_mbit_s(run)  # type: ignore[arg-type]


def _epochs(run: Run) -> pl.DataFrame | None:
    """The samples of the link from the first reduction of the window to the last, which are whole epochs; none if there is no epoch."""
    lost = run.flows.filter(pl.col("congestion_events").diff() > 0)["time_s"]
    if len(lost) < 2:
        return None
    return run.queues.filter(
        (pl.col("link") == "bottleneck") & pl.col("time_s").is_between(float(lost[0]), float(lost[-1]))
    )


def steady_mbit_s(run: Run) -> float | None:
    """As `used_mbit_s`, over whole epochs."""
    epochs = _epochs(run)
    # The first sample is of the time before them.
    return None if epochs is None else _mean_used(epochs[1:], run)


def steady_loss_percent(run: Run) -> float | None:
    """The packets dropped of those offered to the link, over whole epochs."""
    epochs = _epochs(run)
    if epochs is None:
        return None
    dropped, offered = (float(epochs[name][-1]) - float(epochs[name][0]) for name in ("dropped", "offered"))
    return 100 * dropped / offered


def _more(read: Callable[[Run], float | None], first: Run, second: Run) -> float | None:
    one, other = read(first), read(second)
    return None if one is None or other is None else one - other


@experiment("ltcp2003/section-2", "Standard TCP's throughput, window and loss rate; bounds of Layered TCP's parameters")
def section_2(lab: Lab) -> Report:
    """Formulas of sections 2 and 3, at 200 ms with packets of 1500 bytes."""
    report, model, layered = Report(lab), Model("reno"), Model("ltcp").core
    gigabit, ten = (model.core.loss(rate * 0.2 / 12e3, 0.2) for rate in (1e9, 1e10))
    smallest = (1 - 2 / 3) / 4
    last = layered.layer(17)
    assert last is not None
    for group, unit, metric, ours in (
        ("throughput at p = 1e-5", "Mbit/s", "throughput at p=1e-5", model.response(1e-5, 0.2).rate_bit_s / 1e6),
        ("throughput at p = 1e-7", "Mbit/s", "throughput at p=1e-7", model.response(1e-7, 0.2).rate_bit_s / 1e6),
        ("loss rate for 1 Gbit/s", "1", "loss rate for 1 Gbit/s", gigabit),
        ("loss rate for 10 Gbit/s", "1", "loss rate for 10 Gbit/s", ten),
        ("packets per loss at 10 Gbit/s", "packets", "packets per loss", 1 / ten),
        ("time between losses at 10 Gbit/s", "h", "time between losses", 1 / ten / (1e10 / 12e3) / 3600),
        (
            "throughput with packets of 9000 bytes, over that with 1500",
            "1",
            "throughput factor",
            model.response(1e-5, 0.2, 9000).rate_bit_s / model.response(1e-5, 0.2).rate_bit_s,
        ),
        ("window of 64 KB", "packets", "window without window scaling", 65535 / 1500),
        ("window at 10 Gbit/s", "packets", "W_max at 10 Gbit/s", 1e10 * 0.2 / 12e3),
        ("least ratio of two layers", "1", "lower bound on alpha", 3 / 2),
        ("least beta: a quarter of what the ratio of 1.5 leaves", "1", "lower bound on beta", smallest),
        ("utilisation of one flow without a queue, best case", "%", "best-case", 100 * (1 - smallest)),
        (
            "supporting loss rate over Standard TCP's, over K - 1",
            "1",
            "supporting loss rate ratio",
            last[4] / (8 / 3 / last[1] ** 2) / 16,
        ),
    ):
        row = next(r for r in figures("ltcp2003") if metric in r["metric"])
        one = Quantity.exact(row["system"], float(row["value"]), ours)
        report.compare(group, unit, [one], kind=Kind.FORMULA, band=0.05)
    report.notes.append(
        "The supporting loss rate is one loss for the packets sent in a recovery, 2(K-1)/(W_K d_(K-1)); with beta = 0.1 that is "
        "5(K-1)/W_K^2, 1.875(K-1) times Standard TCP's 8/(3 W_K^2). The printed factor of 1.5 follows from 4(K-1)/W_K^2."
    )
    return report


@experiment("ltcp2003/figure-3", "Layers and speed-ups", CLIMB)
def figure_3(lab: Lab) -> Report:
    """Step sizes, windows and speed-ups by formula; the speed-ups again by a flow that climbs, and a flow with a loss."""
    report = Report(lab)
    for group, unit, metric, index, first in (
        ("step size d_K", "packets", "step size d_K", 0, 1),
        ("window W_K", "packets", "W_K", 1, 1),
        ("speed-up in claiming bandwidth", "1", "claiming bandwidth", 2, 2),
        ("speed-up in recovery", "1", "packet loss recovery", 3, 2),
    ):
        quantities = [
            Quantity.exact(f"K = {k}", _figure_3(metric, k), _layer(k)[index])
            for k in range(first, 18)
        ]  # fmt: skip
        report.compare(group, unit, quantities, kind=Kind.FORMULA, band=0.01)
    climb = Arm.of(CLIMB, duration=lab.pick("400 s", "200 s"))
    layers = lab.pick((5, 7, 9, 11, 13), (5, 7, 9))
    report.test(
        OF_LTCP(
            "Y01",
            sentence="A flow that evolves to K layers claims bandwidth faster than Standard TCP, by the factors of figure 3: 10 for 13 layers (section 3.3).",
            population=f"one flow without slow start and without losses, from W_T to W_K, K = {layers[0]} to {layers[-1]}",
            statistic="segments gained over round trips needed, Standard TCP's being 1",
            bound="the printed factor, within the 10 % of all comparisons",
            kind=Kind.THEORY,
        ),
        [
            Place(
                f"K = {k}",
                (climb,),
                partial(_climbed, k),
                above=0.9 * _figure_3("claiming bandwidth", k),
                below=1.1 * _figure_3("claiming bandwidth", k),
            )
            for k in layers
        ],
        SAME,
    )
    report.test(
        OF_LTCP(
            "Y02",
            sentence="For large K a loss is recovered (K-1)/(4 beta) times faster than by Standard TCP (section 3.3, figure 3).",
            population=f"one loss within a layer from K = {layers[1]} on",
            statistic="half of the window over the round trips until it is regained",
            bound="between the printed factors for the windows at both ends of the layer, less and more 10 %",
            kind=Kind.THEORY,
        ),
        [
            Place(
                f"K = {k}",
                (_with_loss(k),),
                _recovered,
                above=0.9 * _figure_3("packet loss recovery", k),
                below=1.1 * _figure_3("packet loss recovery", k + 1),
            )
            for k in layers[1:]
        ],
        SAME,
    )
    return report


def _layer(k: int) -> tuple[float, float, float, float, float]:
    layer = Model("ltcp").core.layer(k)
    assert layer is not None
    return layer


def _figure_3(metric: str, k: int) -> float:
    return next(float(r["value"]) for r in figures("ltcp2003") if r["metric"].endswith(f"{metric}, K={k}"))


def _climbed(k: int, run: Run) -> float | None:
    """How many times faster than a segment for each round trip the window grew from W_T, until W_k or the end of the test."""
    first, last = _layer(2)[1], _layer(k)[1]
    windows = run.flows["cwnd_segments"].to_list()
    begin = next((i for i, window in enumerate(windows) if window >= first), len(windows))
    end = next((i for i, window in enumerate(windows) if window >= last), len(windows) - 1)
    return (min(windows[end], last) - first) / (end - begin) if begin < end else None


def _with_loss(k: int) -> Arm:
    """A flow that starts with the window of layer k, and loses a packet after one and a half times its recovery."""
    _, window, _, faster, _ = _layer(k)
    rounds = 1.5 * window / 2 / faster
    loss = f'{{ name = "periodic", every = {round(rounds * (window + k * rounds / 2))} }}'
    return Arm(CLIMB).set(
        {
            "tcp.initial_window": f"{round(window)}",
            "path.loss": loss,
            "duration": f"{2.5 * rounds * RTT_S:.0f} s",
        }
    )


def _recovered(run: Run) -> float | None:
    """Half of the window over the round trips until it is regained after a loss; at the pace until the end of the test if it is not."""
    windows = run.flows["cwnd_segments"].to_list()
    lost = next((i for i in range(1, len(windows)) if windows[i] < windows[i - 1]), None)
    if lost is None:
        return None
    before = windows[lost - 1]
    back = next((i for i in range(lost, len(windows)) if windows[i] >= before), len(windows) - 1)
    regained = (min(windows[back], before) - windows[lost]) / (before - windows[lost])
    return regained * before / 2 / (back - lost) if back > lost else None


@experiment(
    "ltcp2003/figure-4",
    "Windows of Layered TCP and of Standard TCP after a short slow start",
    SINGLE,
    choices=(*CHOICES, "time: 1300 s of the 1500 s that the figure shows, for our budget of processor time."),
)
def figure_4(lab: Lab) -> Report:
    """One flow at 1 Gbit/s."""
    report = Report(lab)
    settings = {"duration": "1300 s", "measure.from": "0 s", "trace.interval": "100 ms"}
    ltcp, tcp = (Arm.of(SINGLE).set({"flow.cc": SYSTEMS[name], **settings}) for name in (LTCP, TCP))
    report.test(
        OF_LTCP(
            "Y03",
            sentence="If slow start ends early, LTCP reaches the optimal window much faster than Standard TCP, and reduces it less at a loss (section 4.1, figure 4).",
            population="one flow at 1 Gbit/s, 100 ms, queue of 50 packets; slow start ends where it overflows the queue",
            statistic="whether LTCP is the first whose window is the bandwidth-delay product (1) or Standard TCP (-1), which may never reach it; "
            "share of the window kept at the first loss from there on",
            bound="0: no difference. The source prints a picture only",
        ),
        [
            Place("first at the optimal window", (ltcp, tcp), _first, above=0.0),
            Place(
                "window after the first loss over that before, LTCP minus Standard TCP",
                (ltcp, tcp),
                lambda a, b: None if _kept(a) is None or _kept(b) is None else (_kept(a) or 0) - (_kept(b) or 0),
                above=0.0,
            ),
        ],
        SAME,
    )
    runs = {name: one[0] for name, one in zip((LTCP, TCP), lab.runs([ltcp, tcp], 1), strict=True)}
    told = [
        f"{name} {'at' if at.seen else 'not before'} {at.seconds:.0f} s"
        for name, at in zip(runs, map(_reached, runs.values()), strict=True)
    ]
    report.notes.append(f"The window is the bandwidth-delay product: {', '.join(told)}.")
    report.draw = lambda: _windows(runs)
    return report


def _reached(run: Run) -> Time:
    """When the window is the bandwidth-delay product."""
    at = run.flows.filter(pl.col("cwnd_segments") >= OPTIMAL)["time_s"]
    return Time(float(at[0]), seen=True) if len(at) else Time(run.summary.to_s, seen=False)


def _first(ltcp: Run, tcp: Run) -> float | None:
    """1 if LTCP reaches the product first, -1 if Standard TCP does, 0 if both do at once; undefined if neither does."""
    one, other = _reached(ltcp), _reached(tcp)
    if one.seen and other.seen:
        return float((one.seconds < other.seconds) - (one.seconds > other.seconds))
    return None if one.seen == other.seen else float(one.seen) - float(other.seen)


def _kept(run: Run) -> float | None:
    """The window after its first reduction from the optimal value, as a share of the window before; undefined without one."""
    windows = run.flows["cwnd_segments"].to_list()
    top = next((i for i, window in enumerate(windows) if window >= OPTIMAL), len(windows))
    return next(
        (windows[i] / windows[i - 1] for i in range(top + 1, len(windows)) if windows[i] < windows[i - 1]), None
    )


def _windows(runs: Mapping[str, Run]) -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 3))
        axes = figure.subplots()
        for name, run in runs.items():
            axes.plot(run.flows["time_s"] / RTT_S, run.flows["cwnd_segments"], label=name)
        axes.set_xlabel("time (round trips of 100 ms)")
        axes.set_ylabel("cwnd (segments)")
        axes.legend()
        return figure


@experiment(
    "ltcp2003/figure-5",
    "Utilisation and loss of one flow by bandwidth",
    SINGLE,
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
def figure_5(lab: Lab) -> Report:
    """10 Mbit/s to 2.4 Gbit/s, three algorithms, two queues."""
    report, rates = Report(lab), lab.pick((10, 100, 1000, 2400), (10, 100))

    def arm(name: str, rate: int, queue: int) -> Arm:
        seconds = (OF_TCP_S if name == TCP else OF_OTHERS_S)[rate]
        return Arm.of(SINGLE).set(
            {
                "flow.cc": SYSTEMS[name],
                "flow.slow_start": '{ name = "limited", max_ssthresh = 40 }',
                "path.rate": f"{rate} Mbit/s",
                "path.buffer": f"{queue} packets",
                "path.access_rate": "10 Gbit/s" if rate == 2400 else "2.4 Gbit/s",
                "duration": f"{seconds} s",
                "measure.from": "0 s",
                "trace.interval": "1 s",
            }
        )

    for rate in rates:
        for what, unit, metric, read in (
            ("utilisation", "Mbit/s", "utilisation", steady_mbit_s),
            ("loss", "%", "loss rate", steady_loss_percent),
        ):
            numbers = printed("ltcp2003", "Fig 5", f"{metric} at {rate} Mbit/s")
            group = f"{what} at {rate} Mbit/s"
            as_printed, inferred = (
                [Quantity(name, *numbers[name], (arm(name, rate, queue),), read) for name in SYSTEMS]
                for queue in QUEUES
            )
            # The queue was inferred from this number.
            if (rate, what) == (1000, "utilisation"):
                inferred = [one for one in inferred if one.system != TCP]
            report.compare(group, unit, as_printed, looks=SAME)
            changed = "a queue of 2500 packets instead of 50"
            shown = f"{group}, queue of 2500 packets"
            report.compare(shown, unit, inferred, looks=SAME, cause_of=group, changed=changed)
    report.notes.append(
        "At 10 Mbit/s a flow sends 2.4 million packets in 2000 s: one loss is 4.16e-5 %, and the printed 4.16e-3 % of Standard TCP are a hundred. "
        "With the queue of 2500 packets it loses one packet in an epoch, as a flow alone does that grows by one packet in a round trip."
    )
    three = {
        queue: {rate: (arm(TCP, rate, queue), arm(LTCP, rate, queue), arm(HSTCP, rate, queue)) for rate in rates}
        for queue in QUEUES
    }
    report.test(
        OF_LTCP(
            "Y04",
            sentence="At large bandwidths LTCP uses the link better than Standard TCP, with benefits similar to HighSpeed TCP's; at 10 and 100 Mbit/s "
            "the table has the same for all three (section 4.1, figure 5).",
            population="one flow at 10, 100, 1000 and 2400 Mbit/s",
            statistic="above 100 Mbit/s LTCP's utilisation minus Standard TCP's, and by how much that exceeds LTCP's distance from HighSpeed TCP; "
            "at 10 and 100 Mbit/s the largest difference of the three",
            bound="0: better, and nearer to HighSpeed TCP; for the same, 0.01 Mbit/s, the last printed digit",
            tried="The queue of 2500 packets that follows from the printed utilisation of Standard TCP, beside the printed one of 50.",
            means="The printed queue contradicts the printed utilisation: at 10 and 100 Mbit/s all three fill the link with the larger queue, "
            "and with 50 packets they do not. What the source prints for these two rates is not of the queue that it prints.",
        ),
        {
            QUEUES[queue]: [one for rate in rates for one in _benefits(rate, arms[rate])]
            for queue, arms in three.items()
        },
        SAME,
    )
    report.test(
        OF_LTCP(
            "Y05",
            sentence="The congestion losses of LTCP and HighSpeed TCP are higher than Standard TCP's; in the table LTCP's are between the two (section 4.1, figure 5).",
            population="one flow at 10, 100, 1000 and 2400 Mbit/s; without LTCP at 2400 Mbit/s, where the table has no loss and contradicts the sentence",
            statistic="difference of the loss rates",
            bound="0: no difference",
            tried="The queue of 2500 packets that follows from the printed utilisation of Standard TCP, beside the printed one of 50.",
            means="The order of the loss rates depends on the queue; section 4 prints one of 50 packets, which contradicts the printed utilisation.",
        ),
        {
            QUEUES[queue]: [
                Place(
                    f"{_at(rate)}, {higher} minus {lower}",
                    pair,
                    partial(_more, steady_loss_percent),
                    above=0.0,
                    unit="%",
                )
                for rate, (tcp, ltcp, hstcp) in arms.items()
                for higher, lower, pair in (
                    (("LTCP", "Standard TCP", (ltcp, tcp)), ("HighSpeed TCP", "LTCP", (hstcp, ltcp)))
                    if rate < 2400
                    else (("HighSpeed TCP", "Standard TCP", (hstcp, tcp)),)
                )
            ]
            for queue, arms in three.items()
        },
        SAME,
    )
    return report


def _benefits(rate: int, arms: tuple[Arm, Arm, Arm]) -> list[Place]:
    """What Y04 says of a rate; `arms` are Standard TCP, LTCP and HighSpeed TCP."""
    if rate <= 100:
        return [Place(f"{_at(rate)}, largest difference", arms, _spread, below=0.01, unit="Mbit/s")]
    better, near = (
        f"{_at(rate)}, LTCP minus Standard TCP",
        f"{_at(rate)}, the same less LTCP's distance from HighSpeed TCP",
    )
    return [
        Place(better, (arms[1], arms[0]), partial(_more, steady_mbit_s), above=0.0, unit="Mbit/s"),
        Place(near, arms, _nearer, above=0.0, unit="Mbit/s"),
    ]


def _at(rate: int) -> str:
    return f"{rate} Mbit/s" if rate < 2400 else f"{rate} Mbit/s with access links of 10 Gbit/s, not as printed"


def _spread(*runs: Run) -> float | None:
    used = [used for used in map(steady_mbit_s, runs) if used is not None]
    return max(used) - min(used) if len(used) == len(runs) else None


def _nearer(tcp: Run, ltcp: Run, hstcp: Run) -> float | None:
    better, apart = _more(steady_mbit_s, ltcp, tcp), _more(steady_mbit_s, ltcp, hstcp)
    return None if better is None or apart is None else better - abs(apart)


@experiment(
    "ltcp2003/figure-6",
    "Utilisation and convergence by beta",
    "ltcp2003/two",
    choices=(
        *CHOICES,
        "the first flow starts within the first 10 s, so that repeats differ; its utilisation is that from 200 to 600 s, when the second starts.",
        "the shares of the two flows are those over 10 s.",
        "3, 6 and 10 repeats, for our budget of processor time.",
    ),
)
def figure_6(lab: Lab) -> Report:
    """Beta = 0.08, 0.10, 0.12, 0.14; a second flow at 600 s."""
    report, betas, looks = Report(lab), lab.pick((0.08, 0.10, 0.12, 0.14), (0.08, 0.14)), COSTLY
    short = lab.pick({}, {"flow.1.start": "90 s", "duration": "240 s"})
    arms = {b: Arm.of("ltcp2003/two").set({"flow.cc": f'{{ name = "ltcp", beta_l = {b} }}', **short}) for b in betas}

    def number(metric: str, beta: float) -> tuple[float, float | None]:
        return printed("ltcp2003", "Fig 6", f"{metric}, beta={beta:.2f}")["LTCP"]

    used = [Quantity(f"beta = {b:.2f}", *number("utilisation", b), (arms[b],), _alone) for b in betas]
    report.compare("utilisation of one flow", "Mbit/s", used, looks=looks)
    times = [Quantity(f"beta = {b:.2f}", *number("convergence", b), (arms[b],), _rounds, "median") for b in betas]
    report.compare("time to 55/45, median", "RTT", times, looks=looks)
    top = 1e3 / 1.04
    report.test(
        OF_LTCP(
            "Y06",
            sentence="The utilisation of a flow is roughly 1 - beta, so a smaller beta uses the link better (section 4.2, figure 6).",
            population="one flow, beta = 0.08, 0.10, 0.12 and 0.14",
            statistic="utilisation over the link's payload rate, plus beta, minus 1; differences of neighbours",
            bound="half of the step of 0.02 between the betas, so that none fits better than its own; 0: no difference",
        ),
        [
            *(
                Place(f"beta = {b:.2f}", (arms[b],), lambda run, b=b: _alone(run) / top + b - 1, -0.01, 0.01)
                for b in betas
            ),
            *(
                Place(
                    f"beta = {a:.2f} minus {b:.2f}",
                    (arms[a], arms[b]),
                    partial(_more, _alone),
                    above=0.0,
                    unit="Mbit/s",
                )
                for a, b in pairwise(betas)
            ),
        ],
        looks,
    )
    pairs = lab.pick(((0.08, 0.12), (0.10, 0.12), (0.12, 0.14)), ((0.08, 0.14),))
    report.test(
        OF_LTCP(
            "Y07",
            sentence="Beta decides how soon a flow gives up and claims bandwidth: in the table convergence takes longer with a larger beta (section 4.2, figure 6).",
            population="neighbouring betas, except for 0.08 and 0.10, whose printed times differ by 0.4 %",
            statistic="the share of all pairs of runs in which the smaller beta converges first; log-rank test",
            bound="one half: no difference",
        ),
        [
            Place(
                f"beta = {a:.2f} before {b:.2f}",
                (arms[a], arms[b]),
                lambda x, y: (_rounds(x), _rounds(y)),
                above=0.5,
                statistic="earlier",
            )
            for a, b in pairs
        ],
        looks,
    )
    report.test(
        OF_LTCP(
            "Y13",
            sentence="Two flows converge because the larger takes longer to regain what it gave up (sections 3.1 and 3.2).",
            population="layers 2 to 16 by the rule, each at its largest window; two flows in simulation, for each beta",
            statistic="recovery in a layer over that in the layer below; difference of the shares over the link, "
            "in the later half of the time after the second flow's start minus the first half",
            bound="1, and 0: no difference. The source prints the inequality and no measurement",
            kind=Kind.THEORY,
        ),
        [
            *(
                Place.exact(f"recovery, layer {k + 1} over layer {k}", _recovery(k + 1) / _recovery(k), above=1.0)
                for k in range(2, 16)
            ),
            *(Place(f"shares, beta = {b:.2f}", (arms[b],), _closer, below=0.0) for b in betas),
        ],
        looks,
    )
    return report


def _recovery(k: int) -> float:
    """The round trips that a flow at the largest window of layer `k` needs to regain it after a loss."""
    _, window, _, faster, _ = _layer(k + 1)
    return window / 2 / faster


def _joined_s(run: Run) -> float:
    return run.summary.flows[1].start_s or 0.0


def _alone(run: Run) -> float:
    """The utilisation before the second flow starts, in Mbit/s, without the first third of that time."""
    end = _joined_s(run)
    return _mean_used(run.queues.filter(pl.col("time_s").is_between(end / 3, end, closed="right")), run)


def _shares(run: Run) -> pl.DataFrame:
    """The first flow's share of the goodput over the last 10 s, from 10 s after the second flow's start on."""
    first, second = (
        run.flows.filter((pl.col("flow") == flow) & (pl.col("time_s") > _joined_s(run))).select(
            "time_s", "goodput_bit_s"
        )
        for flow in (0, 1)
    )
    both = first.join(second, on="time_s").with_columns(pl.col("^goodput.*$").rolling_mean(10)).drop_nulls()
    share = pl.col("goodput_bit_s") / (pl.col("goodput_bit_s") + pl.col("goodput_bit_s_right"))
    return both.select("time_s", share=share)


def _rounds(run: Run) -> Time:
    """The number of round trips from the second flow's start until the shares are 55/45."""
    near = _shares(run).filter((pl.col("share") - 0.5).abs() <= 0.05)["time_s"]
    end = float(near[0]) if len(near) else run.summary.to_s
    return Time((end - _joined_s(run)) / RTT_S, seen=bool(len(near)))


def _closer(run: Run) -> float:
    """The mean difference of the shares in the second half of the time for both flows, minus that in the first half."""
    gaps: list[float] = (2 * (_shares(run)["share"] - 0.5).abs()).to_list()
    half = len(gaps) // 2
    return sum(gaps[half:]) / (len(gaps) - half) - sum(gaps[:half]) / half


@experiment(
    "ltcp2003/figure-7",
    "Fairness of flows that start together",
    "ltcp2003/fairness",
    choices=(*CHOICES, "averages over 600 s, from 200 s on, for our budget of processor time."),
)
def figure_7(lab: Lab) -> Report:
    """2, 4, 6 and 10 flows."""
    report, counts = Report(lab), lab.pick((2, 4, 6, 10), (2, 4))
    end = lab.pick("800 s", "400 s")
    arms = {n: Arm("ltcp2003/fairness").set({"flow.count": f"{n}", "duration": end}) for n in counts}

    def rates(run: Run) -> list[float]:
        return [flow.goodput_bit_s / 1e6 for flow in run.summary.flows]

    for group, metric, read in (
        ("mean throughput of a flow", "average", lambda run: sum(rates(run)) / len(rates(run))),
        ("minimum throughput of a flow", "minimum", lambda run: min(rates(run))),
        ("maximum throughput of a flow", "maximum", lambda run: max(rates(run))),
    ):
        quantities = [
            Quantity(f"{n} flows", *printed("ltcp2003", "Fig 7", f"{metric} per-flow throughput, {n} flows")["LTCP"], (arms[n],), read)
            for n in counts
        ]  # fmt: skip
        report.compare(group, "Mbit/s", quantities, looks=SAME)
    jain = {n: printed("ltcp2003", "Fig 7", f"index, {n} flows")["LTCP"] for n in counts}
    report.compare(
        "Jain's index",
        "1",
        [Quantity(f"{n} flows", *jain[n], (arms[n],), lambda run: run.summary.jain) for n in counts],
        looks=SAME,
    )
    report.test(
        OF_LTCP(
            "Y08",
            sentence="Flows that start together share equitably, with Jain's index close to 1 (section 4.3, figure 7).",
            population="2, 4, 6 and 10 flows of one round-trip time",
            statistic="Jain's index",
            bound="0.9999: the source has no number for close; the printed indices are 0.99999995 and more",
        ),
        [Place(f"{n} flows", (arms[n],), lambda run: run.summary.jain, above=0.9999) for n in counts],
        SAME,
    )
    return report


@experiment(
    "ltcp2003/figure-8",
    "Flows that join and leave",
    "ltcp2003/dynamic",
    choices=(
        *CHOICES,
        "the first flow starts within the first 10 s, so that repeats differ.",
        "3, 6 and 10 repeats, for our budget of processor time.",
    ),
)
def figure_8(lab: Lab) -> Report:
    """Flows join at 300 and 700 s, and leave at 1300 and 1700 s."""
    report, arm = Report(lab), Arm("ltcp2003/dynamic")
    report.test(
        OF_LTCP(
            "Y09",
            sentence="Flows share the link equitably as others join and leave (section 4.4, figure 8).",
            population="the phases with two, three and again two flows",
            statistic="smallest goodput over the largest, in the last 100 s of the phase",
            bound="45/55, the source's own criterion of convergence (section 4.2)",
        ),
        [
            Place(name, (arm,), partial(_evenness, end, flows), above=45 / 55)
            for name, end, flows in (("two flows", 700, 2), ("three flows", 1300, 3), ("two flows again", 1700, 2))
        ],
        COSTLY,
    )
    run = lab.runs([arm], 1)[0][0]
    report.draw = lambda: run.plot("cwnd")
    return report


def _evenness(end_s: float, flows: int, run: Run) -> float:
    frame = run.flows.filter(pl.col("time_s").is_between(end_s - 100, end_s, closed="right") & (pl.col("flow") < flows))
    means: list[float] = frame.group_by("flow").agg(pl.col("goodput_bit_s").mean())["goodput_bit_s"].to_list()
    return min(means) / max(means)


@experiment(
    "ltcp2003/figure-9",
    "Utilisation under channel errors",
    SINGLE,
    choices=(
        *CHOICES,
        "printed rates 10e-n are read as 1e-n; errors are independent for each packet.",
        "at 1e-11 the runs at 1e-10 stand in, for our budget of processor time: of the 2e8 packets of a run, 0.02 are lost to errors on average.",
    ),
)
def figure_9(lab: Lab) -> Report:
    """Random loss from 1e-11 to 1e-5, averages over 2000 s from the start."""
    report, looks = Report(lab), (2, 4, 8)
    losses = lab.pick(("1e-11", "1e-10", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5"), ("1e-6", "1e-5"))
    names = (LTCP, TCP)

    def arm(name: str, loss: str) -> Arm:
        duration = lab.pick("2000 s", "300 s")
        settings = {"flow.cc": SYSTEMS[name], "path.loss": loss, "duration": duration, "measure.from": "0 s"}
        return Arm.of(SINGLE).set(settings)

    arms = {
        p: tuple(arm(name, f'{{ name = "random", probability = {p if p != "1e-11" else "1e-10"} }}') for name in names)
        for p in losses
    }
    for p in losses:
        numbers = printed("ltcp2003", "Fig 9", f"error rate {p}")
        quantities = [
            Quantity(name, *numbers[name], (one,), used_mbit_s) for name, one in zip(names, arms[p], strict=True)
        ]
        report.compare(f"utilisation at {p}", "Mbit/s", quantities, looks=looks)
        if p in ("1e-6", "1e-5"):
            every = f'{{ name = "periodic", every = {round(1 / float(p))} }}'
            report.compare(
                f"utilisation at {p}, regular",
                "Mbit/s",
                [Quantity(name, *numbers[name], (arm(name, every),), used_mbit_s) for name in names],
                looks=SAME,
                cause_of=f"utilisation at {p}",
                changed=f"every {round(1 / float(p))}th packet is lost",
            )
    if "1e-11" in losses:
        settled = arms["1e-11"][names.index(TCP)].set({"duration": "2400 s", "measure.from": "400 s"})
        report.compare(
            "utilisation at 1e-11, from 400 s on",
            "Mbit/s",
            [Quantity(TCP, *printed("ltcp2003", "Fig 9", "error rate 1e-11")[TCP], (settled,), used_mbit_s)],
            looks=SAME,
            cause_of="utilisation at 1e-11",
            changed="the 2000 s begin at 400 s, without the first part of Standard TCP's climb after slow start",
        )
    if "1e-7" in losses:
        kept = {name: (arms["1e-7"][i], arms["1e-11"][i]) for i, name in enumerate(names)}
        report.test(
            OF_LTCP(
                "Y10",
                sentence="At 1e-7 LTCP's utilisation remains high, while Standard TCP's falls to half of that at lower error rates (section 4.5, figure 9).",
                population="one flow at 1 Gbit/s, error rates 1e-7 and 1e-11",
                statistic="utilisation at 1e-7 over that at 1e-11",
                bound="nearer to 1 than to one half for LTCP, nearer to one half than to 1 or 0 for Standard TCP",
            ),
            [
                Place(LTCP, kept[LTCP], lambda a, b: used_mbit_s(a) / used_mbit_s(b), above=0.75),
                Place(TCP, kept[TCP], lambda a, b: used_mbit_s(a) / used_mbit_s(b), above=0.25, below=0.75),
            ],
            looks,
        )
    report.test(
        OF_LTCP(
            "Y11",
            sentence="As channel errors increase LTCP's utilisation falls, but stays better than Standard TCP's (section 4.5, figure 9).",
            population=f"one flow at 1 Gbit/s, error rates {losses[0]} to {losses[-1]}",
            statistic="LTCP's utilisation minus Standard TCP's",
            bound="0: no difference",
        ),
        [Place(f"at {p}", arms[p], partial(_more, used_mbit_s), above=0.0, unit="Mbit/s") for p in losses],
        looks,
    )
    return report


@experiment(
    "ltcp2003/figure-10",
    "One flow of Layered TCP and four of Standard TCP at 10 Mbit/s",
    "ltcp2003/slow",
    choices=(
        *CHOICES,
        "the four flows start within a second of 300 s, so that repeats differ; shares are those from 400 to 900 s.",
    ),
)
def figure_10(lab: Lab) -> Report:
    """Layers of the flow alone, and shares after the four have joined."""
    report, arm = Report(lab), Arm("ltcp2003/slow")
    number = next(r for r in figures("ltcp2003") if r["metric"] == "layers of the LTCP flow alone")
    report.compare(
        "layers of the LTCP flow alone",
        "1",
        [Quantity(LTCP, float(number["value"]), None, (arm,), _layers)],
        band=0.0,
    )
    report.test(
        OF_LTCP(
            "Y12",
            sentence="In a slow network, where windows cannot grow beyond W_T, LTCP gives up bandwidth and shares it equitably with Standard TCP (section 4.6, figure 10).",
            population="one flow of LTCP, joined by four of Standard TCP at 300 s; 10 Mbit/s",
            statistic="LTCP's goodput over the mean of the four; its mean window, both from 400 s on",
            bound="45/55 and 55/45, the source's own criterion of convergence (section 4.2); W_T = 50 segments",
        ),
        [
            Place("goodput over the mean of the four", (arm,), _beside_four, above=45 / 55, below=55 / 45),
            Place(
                "mean window", (arm,), lambda run: run.summary.flows[0].cwnd_mean_segments, below=50.0, unit="segments"
            ),
        ],
    )
    run = lab.runs([arm], 1)[0][0]
    report.draw = lambda: run.plot("cwnd")
    return report


def _beside_four(run: Run) -> float:
    one, *four = (flow.goodput_bit_s for flow in run.summary.flows)
    return one / (sum(four) / len(four))


def _layers(run: Run) -> float:
    """The layers at the largest window from 100 to 300 s."""
    frame = run.flows.filter((pl.col("flow") == 0) & pl.col("time_s").is_between(100, 300))
    largest = float(frame["cwnd_segments"].max() or 0.0)  # type: ignore[arg-type]
    return float(next(k for k in range(1, 30) if largest <= _layer(k + 1)[1]))
