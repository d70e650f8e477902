"""Li 2006, chapters 3 and 5: end hosts, and formulas for utilisation, loss and throughput."""

import numpy as np
import polars as pl

from elephan import _core
from elephan.studies.reproduce.lab import Lab, Report, Row, estimate, exactly, experiment, figures, mean
from elephan.studies.reproduce.li2006.systems import listed
from elephan.studies.theory import Model

PAYLOAD = 1448 / 1500
# The number of packets released by an ACK of two segments that increases the window by one.
BURST = 3


@experiment(
    "li2006/figure-3.1",
    "UDP and TCP on a path with losses",
    "li2006/end-host",
    choices=("round-trip time and loss rate of the path: 20 ms, and three loss rates.",),
)
def figure_3_1(lab: Lab) -> Report:
    """Standard TCP for 30 s. UDP passes at every loss rate this small."""
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
    """Goodput as buffer over round-trip time, up to the limit of the path; the window in segments by segment size."""
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
    """Growth for each round trip in three runs, and the window limit of dynamic right-sizing."""
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
        f"maximum in flight {flight[0]:.0f} segments; with right-sizing, which here allows twice the data received in a round trip (Fisk and Feng 2001), {flight[1]:.0f} (product: 517); drops {drops[0]} and {drops[1]}; utilisation with losses {used:.3f}",
    )
    return report


@experiment("li2006/section-5.4", "Utilisation by buffer, loss and throughput of Standard TCP")
def section_5_4(lab: Lab) -> Report:
    """Formulas of chapter 5 and section 6.2.1."""
    del lab
    report = Report()
    standard, scalable = Model("reno"), Model("scalable")

    def row(group: str, system: str, unit: str, metric: str, value: float, band: float = 0.02) -> None:
        for line in figures("li2006"):
            if line["scenario_id"] == "li-5.4-analytic" and metric in line["metric"] and line["system"] == system:
                report.rows.append(Row(group, system, unit, float(line["value"]), None, exactly(value), band))

    row("utilisation, no buffer", "Standard TCP", "%", "zero buffer", 100 * _core.utilisation_of(0.5, 0))
    row("utilisation, buffer of the product", "Standard TCP", "%", "buffer = BDP", 100 * _core.utilisation_of(0.5, 1))
    row("utilisation, no buffer", "Scalable TCP", "%", "zero buffer", 100 * _core.utilisation_of(0.875, 0))
    row(
        "throughput at p = 1e-7, 100 ms",
        "Standard TCP",
        "Mbit/s",
        "throughput at p=1e-7",
        _core.pftk_bit_s(1e-7, 0.1, 0.2, 1448, 1) / 1e6,
    )
    row("window for 10 Gbit/s, 100 ms", "Standard TCP", "packets", "window for 10 Gbit/s", 1e10 * 0.1 / 12e3)
    packets = 1 / standard.core.loss(1e10 * 0.1 / 12e3, 0.1)
    row("packets from loss to loss at 10 Gbit/s", "Standard TCP", "packets", "packets per congestion", packets, 0.1)
    row(
        "time from loss to loss at 10 Gbit/s",
        "Standard TCP",
        "min",
        "time between congestion",
        packets / (1e10 / 12e3) / 60,
        0.1,
    )
    del scalable
    return report


@experiment(
    "li2006/utilisation",
    "Utilisation of one flow by back-off and buffer (equation 5.6), and Standard TCP under 1e-7",
    "li2006/utilisation",
)
def utilisation(lab: Lab) -> Report:
    """Equation 5.6 against the simulator. Capacity and round-trip time must have no effect."""
    report = Report()
    cases = [
        (beta, gamma, rate, rtt)
        for beta in (0.5, 0.8)
        for gamma in lab.pick((0.02, 0.1, 0.2, 0.5, 1.0), (0.1, 0.5))
        for rate, rtt in lab.pick(((20, 50), (60, 100), (120, 25)), ((20, 50), (60, 25)))
    ]
    points = [
        {"flow.cc.beta": f"{beta}", "path.buffer": f"{100 * gamma:g}% bdp", "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms", "tcp.initial_ssthresh": f"{max(int(rate * rtt / 24), 2)}"}
        for beta, gamma, rate, rtt in cases
    ]  # fmt: skip
    off, short = [], []
    for (beta, gamma, rate, rtt), runs in zip(cases, lab.runs("li2006/utilisation", points), strict=True):
        found, theory = estimate(runs, lambda s: s.utilisation), _core.utilisation_of(beta, gamma)
        group = f"utilisation, beta {beta:g}, buffer {100 * gamma:g} %, theory"
        if gamma * rate * rtt / 12 < BURST:
            short.append(f"{mean(found):.2f} at {rate} Mbit/s and {rtt} ms")
            report.reasons[group] = (
                f"a buffer of fewer than {BURST} packets does not hold the packets released by a delayed ACK that opens the window: each "
                "increase of the window loses a packet, and the window stays at a few segments"
            )
        else:
            off.append(abs(mean(found) / theory - 1))
        report.rows.append(
            Row(
                group,
                f"{rate} Mbit/s, {rtt} ms",
                "share",
                theory,
                None,
                found,
                0.06,
            )
        )
    without = f"; not with buffers of fewer than {BURST} packets: {', '.join(short)}" if short else ""
    report.check(
        "L06",
        max(off) < 0.06,
        f"{len(off)} points, largest deviation from equation 5.6: {100 * max(off):.1f} %{without}",
    )
    lossy = lab.runs(
        "li2006/response",
        [
            {
                "flow.cc": "reno",
                "path.rate": "1 Gbit/s",
                "path.rtt": "100 ms",
                "path.loss.probability": "1e-6",
                "duration": lab.pick("6000 s", "600 s"),
            }
        ],
        lab.pick(5, 2),
    )[0]
    found_rate = mean(estimate(lossy, lambda s: s.goodput_bit_s / 1e6))
    limit = _core.pftk_bit_s(1e-6, 0.1, 0.2, 1448, 1) / 1e6
    report.check(
        "L07",
        found_rate < 1.2 * limit,
        f"at 1e-6, where the limit is {limit:.0f} Mbit/s and losses are frequent enough to be measured: {found_rate:.0f} Mbit/s",
    )
    return report
