"""Li 2006, chapters 3 and 5: end hosts, and formulas for utilisation, loss and throughput."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.studies.judge import Arm, Kind
from elephan.studies.reproduce.declare import NONE, Chapter, Point, Points, Reading, Sets, declares, used
from elephan.studies.reproduce.lab import ONCE
from elephan.studies.reproduce.li2006.systems import published
from elephan.studies.theory import Model

# Formulas agree to their last printed digit, which is one in fifty at most.
FORMULA_BAND = 0.02
# The queue, the headers and the start of a run move a simulation by so much from a formula that neglects them.
THEORY_BAND = 0.05
BANDS = (
    "bands: 2 % for formulas, as the least precise number has two digits; 5 % for our theory, which neglects queue, headers and starts.",
)
END_HOST, UTILISATION = Arm("li2006/end-host"), Arm("li2006/utilisation")
# Payload of a packet of 1500 bytes with timestamps.
MSS = 1448
# The number of packets released by an ACK of two segments that increases the window by one.
BURST = 3
# The results of most of these scenarios depend on nothing random.
measured = partial(declares, partial(Chapter, looks=ONCE), "li2006")
theory = partial(declares, partial(Chapter, looks=ONCE, shared={"kind": Kind.THEORY}), "li2006")


def goodput(run: Run) -> float:
    """Goodput of all flows, in Mbit/s."""
    return sum(flow.goodput_bit_s for flow in run.summary.flows) / 1e6


@measured("figure-3.1", "UDP and TCP on a path with losses")
def figure_3_1(report: Chapter) -> None:
    """Why the comparison of TCP with UDP cannot be made here, and what loss rate would explain the printed goodput."""
    report.untestable(
        "L01",
        "neither the loss rate nor the round-trip time of the path from CERN to RAL is published, and the goodput of TCP follows from "
        "them: with 20 ms it is below or above half of that of UDP for a loss rate above or below about 1e-5",
    )
    udp, tcp = (published("Sec 3.2", "mean throughput", system=system) for system in ("UDP", "Standard TCP"))
    loss = 1.5 * (MSS * 8 / (0.02 * tcp * 1e6)) ** 2
    report.notes.append(
        f"The printed throughputs, {udp:g} and {tcp:g} Mbit/s, are in the ratio of {udp / tcp:.1f}, where the text says about 2. By equation "
        f"5.8 a loss rate of {loss:.1e} gives {tcp:g} Mbit/s if the round-trip time is 20 ms. The 30 Mbit/s more to Manchester is on another "
        "unpublished path."
    )


@theory(
    "figure-5.1",
    "Goodput of Standard TCP by socket buffer and by MTU (figures 5.1 and 5.2)",
    "end-host",
    choices=("round-trip time for the socket buffers: 20 ms.", "the grids of buffers and MTUs.", *BANDS),
)
def figure_5_1(report: Chapter) -> None:
    """Goodput as buffer over round-trip time, up to the limit of the path; the window in segments by segment size."""

    def arm(_: str, at: Point) -> Arm:
        if "kb" in at:
            return END_HOST.set({"tcp.send_buffer": f"{at['kb']} kB"})
        # One window of 6 MB, whatever the packets' size.
        path = {"path.rate": "1 Gbit/s", "path.rtt": "120 ms", "tcp.send_buffer": "6 MB"}
        return END_HOST.set({**path, "tcp.packet": f"{at['mtu']} B"})

    report.arm, report.readings = arm, {"goodput": Reading(goodput)}
    sizes = (64, 128, 256, 512, 1024)
    report.rows(
        "goodput by socket buffer",
        "Mbit/s",
        Points("{kb} kB: buffer / 20 ms", "goodput").at({"kb printed": [(kb, kb * 8 / 20) for kb in sizes]}),
        band=THEORY_BAND,
    )
    limit = 622.08 * MSS / 1500
    steps = {"small large": list(pairwise(sizes))}
    report.claim(
        "L02",
        "Small socket buffers restrict the throughput in proportion to their size (section 5.1.1, figure 5.1).",
        "buffers from 64 to 1024 kB, which are smaller than the bandwidth-delay product, and one of 4096 kB",
        "the goodput of a buffer over that of half of it; for 4096 kB, over the path's limit",
        "2, or 1, within 5 %: what proportional means is not printed",
        Points("{large} kB over {small} kB", "goodput, second over first", above=1.9, below=2.1)
        .at(steps)
        .of(kb=("small", "large")),
        Points("{kb} kB over the path's limit", lambda run: goodput(run) / limit, above=0.95, below=1.05).at(kb=4096),
    )

    def in_flight(run: Run) -> float:
        return float(run.flows.filter(pl.col("time_s") > 20)["cwnd_segments"].to_numpy().mean())

    def windows(at: Mapping[str, float], small: Run, large: Run) -> float:
        return in_flight(small) / in_flight(large) / ((at["other"] - 52) / MSS)

    larger, both = {"other": (3000, 9000)}, {"mtu": (1500, "other")}
    window = "{other} B: window at 1500 B over the one here, over the payloads' ratio"
    report.claim(
        "L03",
        "For the same throughput, larger segments need a proportionally smaller window (section 5.1.2, figure 5.2).",
        "1500, 3000 and 9000 B on DataTAG (1 Gbit/s, 120 ms), with a buffer of 6 MB",
        "windows in segments, and goodputs, relative to 1500 B",
        "the ratio of the payloads, and 1, within 5 %: no number is printed",
        (
            Points(window, windows, how="point", above=0.95, below=1.05).at(larger).of(both),
            Points("{other} B: goodput over the one at 1500 B", "goodput, second over first", above=0.95, below=1.05)
            .at(larger)
            .of(both),
        ),
    )


def _growth(run: Run) -> float:
    """Segments by which the window grows in each round trip of 100 ms."""
    frame = run.flows.filter(pl.col("time_s") > 5)
    return float(np.polyfit(frame["time_s"].to_numpy() / 0.1, frame["cwnd_segments"].to_numpy(), 1)[0])


@theory(
    "figure-5.6",
    "Window growth with delayed ACKs and byte counting",
    "end-host",
    choices=("path: 100 Mbit/s, 100 ms; congestion avoidance from 20 segments on.",),
)
def figure_5_6(report: Chapter) -> None:
    """Growth for each round trip in three runs."""
    path = {"path.rate": "100 Mbit/s", "path.rtt": "100 ms", "tcp.initial_ssthresh": "20"}
    path |= {"duration": "40 s", "measure.from": "0 s"}
    report.arm = lambda _, at: END_HOST.set({**path, **at["set"]})
    report.readings = {"growth": Reading(_growth)}
    each = {"tcp.delayed_ack.segments": "1", "tcp.byte_counting": '"per_ack"'}
    second = {"tcp.byte_counting": '"per_ack"'}
    report.claim(
        "L04",
        "Delayed ACKs halve the window's growth, and byte counting restores it (section 5.2.4, figure 5.6).",
        "congestion avoidance of one flow without losses",
        "growth for each round trip, over that of a receiver that does not delay",
        "one half, and 1, within 5 %: the figure has no numbers",
        Points("delayed ACKs", "growth, over", above=0.475, below=0.525).of(set=(second, each)),
        Points("delayed ACKs and byte counting", "growth, over", above=0.95, below=1.05).of(set=({}, each)),
    )


def _in_flight(run: Run) -> npt.NDArray[np.float64]:
    """Segments in flight after 20 s, without timestamps."""
    pipe = run.flows.filter(pl.col("time_s") > 20)["pipe_bytes"].to_numpy()
    return np.asarray(pipe, float) / (MSS + 12)


def _dropped(run: Run) -> float:
    """Packets dropped by the bottleneck's queue."""
    return float(run.summary.links[0].dropped)


@measured(
    "figure-5.7",
    "The window with dynamic right-sizing on MB-NG",
    "end-host",
    choices=(
        "losses: one packet in 500,000, so that the window reaches its cap between them.",
        "queue: 1000 packets, and 20 for the small provision.",
        "right-sizing: the source has a window of what arrives in a round trip. Here it is a tenth more, so that it can grow, or twice as much, as "
        "the authors of right-sizing have it (Fisk and Feng 2001). Round trips are timed by the window's use, and the receiver's buffer is 2 MB.",
        *BANDS,
    ),
)
def figure_5_7(report: Chapter) -> None:
    """The window of a flow whose receiver limits it, with and without losses."""
    names = {"a tenth more than what arrives": "1.1", "twice what arrives": "2"}

    def arm(chosen: str, at: Point) -> Arm:
        free = {"path.rate": "1 Gbit/s", "path.rtt": "6.2 ms", "path.buffer": "1000 packets", "tcp.timestamps": "false"}
        factor = {**names, "twice": "2"}.get(chosen, "1.1")
        sized = {"tcp.auto_tuning": "true", "tcp.auto_tuning_factor": factor, "tcp.receive_buffer": "2 MB"}
        return END_HOST.set({**free, **(sized if at["sized"] else {}), **at.get("set", {})})

    report.arm = arm
    report.readings = {
        "used": Reading(used),
        "most": Reading(lambda run: float(_in_flight(run).max())),
        # The cap of a window that is at it for most of the time.
        "median": Reading(lambda run: float(np.median(_in_flight(run)))),
    }
    row = ("MB-NG", published("Sec 5.2.5", "BDP"), 1e9 * 6.2e-3 / 8 / MSS)
    report.formula("bandwidth-delay product of MB-NG", "segments", FORMULA_BAND, row)
    cap = published("Sec 5.2.5", "cwnd cap")
    losses, small = {"path.loss": '{ name = "periodic", every = 500000 }'}, {"path.buffer": "20 packets"}
    clean, lossy, free = {"sized": True}, {"sized": True, "set": losses}, {"sized": False}
    report.rows(
        "in flight with right-sizing (just under 600)",
        "segments",
        Points("most, without losses", "most").at(clean, printed=cap),
        Points("median, with losses", "median").at(lossy, printed=cap),
        variants={"twice": "the window is twice what arrives in a round trip, not a tenth more"},
    )
    report.claim(
        "L05",
        "Right-sizing holds the window at the bandwidth-delay product, just under 600 packets, so the flow loses nothing by its "
        "own doing, and uses small queues better; after a loss it does not use the path in full (section 5.2.5, figure 5.7).",
        "one flow of Standard TCP on MB-NG, with and without periodic losses; with a receiver that advertises a tenth more or "
        "twice as much as arrives in a round trip",
        "segments in flight (the most without losses, the median with them), drops by the queue, and differences of the utilisation",
        "the printed 600 packets; no drop, where the free flow has some; no difference (0)",
        Points("most in flight, without losses", "most", unit="segments", below=cap).at(clean),
        Points("median in flight, with losses", "median", unit="segments", below=cap).at(lossy),
        Points("most in flight without right-sizing", "most", unit="segments", above=cap).at(lossy, sized=False),
        Points("drops", _dropped, unit="packets", below=1).at(clean),
        Points("drops without right-sizing", _dropped, unit="packets").at(free),
        Points("utilisation without losses, minus that with losses", "used, less").at(clean).of(set=({}, losses)),
        Points("utilisation with a queue of 20 packets, minus that without right-sizing", "used, less")
        .at(set=small)
        .of(sized=(True, False)),
        tried="a window of a tenth more than what arrives, and one of twice as much.",
        oracle="ns-2 has no right-sizing, and a kernel of today advertises twice what arrives.",
        means="The cap of figure 5.7 is not there with losses: data behind a hole is read at once when the hole is filled, which a receiver that counts "
        "what it reads takes for a round trip with more.",
        sets=Sets(tuple(names)),
    )


@theory(
    "section-5.4",
    "Utilisation by buffer, loss and throughput of Standard TCP",
    choices=("bands: 2 %, and 10 % where the source prints one digit (5e9 packets and the 100 minutes made of it).",),
)
def section_5_4(report: Chapter) -> None:
    """Formulas of chapter 5 and section 6.2.1."""
    window = 1e10 * 0.1 / 12e3
    packets = 1 / Model("reno").core.loss(window, 0.1)
    minutes = packets * 12e3 / 1e10 / 60
    standard, scalable = "Standard TCP", "Scalable TCP"
    limit = _core.pftk_bit_s(1e-7, 0.1, 0.2, MSS, 1) / 1e6

    def row(group: str, system: str, unit: str, metric: str, value: float, band: float = FORMULA_BAND) -> None:
        report.formula(group, unit, band, (system, published("Sec", metric, system=system), value))

    row("packets at 1 Gbit/s", standard, "packets/s", "packet rate at 1 Gbit/s", 1e9 / 12e3)
    row("time for each packet at 1 Gbit/s", standard, "us", "time per packet", 12e3 / 1e9 * 1e6)
    row("throughput of a window of 64 kB, 100 ms", standard, "Mbit/s", "with 64 KB window", 64e3 * 8 / 0.1 / 1e6)
    row("utilisation, no buffer", standard, "%", "zero buffer", 100 * _core.utilisation_of(0.5, 0))
    row("utilisation, buffer of the product", standard, "%", "buffer = BDP", 100 * _core.utilisation_of(0.5, 1))
    row("utilisation, no buffer, Scalable TCP", scalable, "%", "zero buffer", 100 * _core.utilisation_of(0.875, 0))
    row("throughput at a loss rate of 1e-7, 100 ms", standard, "Mbit/s", "throughput at p=1e-7", limit)
    row("window for 10 Gbit/s, 100 ms", standard, "packets", "window for 10 Gbit/s", window)
    row("packets from loss to loss at 10 Gbit/s", standard, "packets", "packets per congestion", packets, 0.1)
    row("time from loss to loss at 10 Gbit/s", standard, "min", "time between congestion", minutes, 0.1)


@theory(
    "utilisation",
    "Utilisation of one flow by back-off and buffer (equation 5.6)",
    "utilisation",
    choices=("the grid of back-off factors, buffers, capacities and round-trip times.", *BANDS),
)
def utilisation(report: Chapter) -> None:
    """Equation 5.6 against the simulator. Capacity and round-trip time must have no effect."""

    def arm(_: str, at: Point) -> Arm:
        path = {"path.rate": f"{at['rate']} Mbit/s", "path.rtt": f"{at['rtt']} ms"}
        start = {"tcp.initial_ssthresh": f"{max(int(at['rate'] * at['rtt'] / 24), 2)}"}
        flow = {"flow.cc.beta": f"{at['beta']}", "path.buffer": f"{at['percent']:g}% bdp"}
        return UTILISATION.set({**flow, **path, **start, **at.get("set", {})})

    report.arm, report.readings, lab = arm, {"used": Reading(used)}, report.lab
    paths = lab.pick(((20, 50), (60, 100), (120, 25)), ((20, 50), (60, 100)))
    every = [
        (beta, 100 * gamma, *path, _core.utilisation_of(beta, gamma), gamma * path[0] * path[1] / 12)
        for beta, gamma, path in product((0.5, 0.8), lab.pick((0.02, 0.1, 0.2, 0.5, 1.0), (0.02, 0.2, 1.0)), paths)
    ]
    keys = "beta percent rate rtt printed packets"
    usual, short = ([row for row in every if (row[-1] < BURST) is few] for few in (False, True))

    def shown(group: str, rows: Sequence[Any], settings: Mapping[str, str] = NONE, **more: Any) -> None:
        name = "beta {beta:g}, buffer {percent:g} %, {rate} Mbit/s, {rtt} ms"
        at_all = Points(name, "used").at({keys: rows}, set=dict(settings))
        report.rows(group, "share", at_all, band=THEORY_BAND, **more)

    tiny = f"utilisation, buffers of fewer than {BURST} packets"
    bursts = "the equation has no bursts: the packets that one ACK releases do not fit into such a buffer"
    shown(f"utilisation, buffers of {BURST} packets or more", usual)
    shown(tiny, short, reason=bursts)
    shown(f"{tiny}, paced", short, {"tcp.pacing": "true"}, cause_of=tiny, changed="packets are paced")
    against = [
        (*other, *first[2:4])
        for _, same in groupby(usual, key=lambda row: row[:2])
        for first, *others in [list(same)]
        for other in others
    ]
    report.claim(
        "L06",
        "The utilisation by a single flow depends on the queue's provision and the back-off factor only (section 5.4.1, "
        "equation 5.6).",
        f"two factors and five provisions of {BURST} packets or more, at three pairs of capacity and round-trip time",
        "utilisation over that at the first pair",
        "1 within 5 %: the source has no tolerance",
        Points(
            "beta {beta:g}, buffer {percent:g} %: {rate} Mbit/s, {rtt} ms against {rate_1} Mbit/s, {rtt_1} ms",
            "used, over",
            above=0.95,
            below=1.05,
        )
        .at({f"{keys} rate_1 rtt_1": against})
        .of({"rate rtt": (("rate", "rtt"), ("rate_1", "rtt_1"))}),
    )


@theory(
    "equation-5.8",
    "Standard TCP under a loss rate of 1e-7",
    "utilisation",
    choices=(
        "capacity 1 Gbit/s; the flow starts at the window of equation 5.8, and 6000 s are measured.",
        "losses: independent; beside them one packet in 10,000,000, which equation 5.8 assumes.",
        "band: 10 %, as the source says approximately.",
        "budget: about 3 CPU minutes at the first look.",
    ),
    quick=False,
)
def equation_5_8(report: Chapter) -> None:
    """Long runs with about 24 losses each, whose number varies the goodput by a tenth from run to run."""
    path = {"flow.cc": "reno", "path.rate": "1 Gbit/s", "path.rtt": "100 ms", "tcp.initial_ssthresh": "3873"}
    settings = {**path, "duration": "6300 s", "measure.from": "300 s"}
    report.arm = lambda _, at: UTILISATION.set({**settings, "path.loss": at["loss"]})
    report.readings = {"goodput": Reading(goodput, "Mbit/s")}
    limit = published("Sec 5.4.2", "throughput at p=1e-7")
    independent = {"loss": '{ name = "random", probability = 1e-7 }'}
    periodic = {"loss": '{ name = "periodic", every = 10000000 }'}
    group = "throughput at a loss rate of 1e-7, 100 ms, simulated"
    each = Points("independent losses", "goodput").at(independent, printed=limit)
    report.rows(group, "Mbit/s", each, looks=(5, 10))
    each = Points("one packet in 10,000,000", "goodput").at(periodic, printed=limit)
    report.rows(f"{group} with periodic losses", "Mbit/s", each)
    report.claim(
        "L07",
        "With a typical loss rate of 1e-7 and 100 ms, TCP can achieve no more than about 450 Mbit/s (section 5.4.2).",
        "one flow on 1 Gbit/s with independent losses",
        "mean goodput",
        "the printed 450 Mbit/s, which is the value of equation 5.8, and a tenth for its word approximately, which is ours",
        Points("1e-7, 100 ms", "goodput", below=1.1 * limit).at(independent),
        tried="losses at equal distances, which the equation assumes: the row of periodic losses.",
        means="The printed limit is that of evenly spaced losses; independent ones allow a little more.",
        looks=(5, 10),
    )
