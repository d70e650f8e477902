"""What ns-2 printed, as the results of any other run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.summary import Summary
from elephan.engines.tables import jain, no_transfers, reasons
from elephan.studies.reproduce.ns2.script import UNLIMITED, Flow

Array = np.ndarray[Any, Any]

# The metrics, as in crates/metrics/src/collector.rs.
EPSILON, SHORT_TERM_RTTS = 0.8, 25.0


@dataclass(frozen=True)
class Samples:
    """What ns-2 printed, and the times at which each flow reduced its window.

    Rows of flows and of the queue are of three kinds: `m` at each `measure.interval`, `t` at each `trace.interval`, and `w` at the
    two ends of the measuring window.
    """

    flows: dict[str, list[list[float]]] = field(default_factory=lambda: {"m": [], "t": [], "w": []})
    queues: dict[str, list[list[float]]] = field(default_factory=lambda: {"m": [], "t": [], "w": []})
    cuts: list[list[float]] = field(default_factory=list)

    def flow(self, kind: str, number: int) -> Array:
        """The rows of a flow: time, number, cwnd, ssthresh, segments acknowledged, sent and retransmitted, timeouts, smoothed RTT."""
        return np.array([row for row in self.flows[kind] if row[1] == number]).reshape(-1, 9)

    def queue(self, kind: str) -> Array:
        """Rows of the queue: time, packets, bytes, arrivals, drops, losses, departures, integral of packets."""
        return np.array(self.queues[kind]).reshape(-1, 8)


def read(folder: Path, flows: int) -> Samples:
    """Read the files that a script of so many flows wrote into `folder`."""
    samples = Samples()
    for line in (folder / "samples").read_text(encoding="ascii").splitlines():
        what, kind, *numbers = line.split()
        (samples.flows if what == "f" else samples.queues)[kind].append([float(number) for number in numbers])
    for number in range(flows):
        rows = [line.split() for line in (folder / f"cuts.{number}").read_text(encoding="ascii").splitlines()]
        samples.cuts.append([float(row[0]) for row in rows if int(row[-1]) > 0])
    return samples


def columns(plan: Mapping[str, Any], flows: list[Flow], samples: Samples) -> dict[str, dict[str, Any]]:
    """The columns of a simulated run. A flow has rows from its start on."""
    every = [samples.flow("t", number) for number in range(len(flows))]
    every = [rows[rows[:, 0] > flow.start_s] for rows, flow in zip(every, flows, strict=True)]
    mss = np.concatenate([np.full(len(rows), flow.mss) for rows, flow in zip(every, flows, strict=True)])
    delivered = [np.maximum(rows[:, 4], 0) * flow.mss for rows, flow in zip(every, flows, strict=True)]
    goodput = [np.diff(bytes_, prepend=0.0) * 8 / plan["trace_s"] for bytes_ in delivered]
    cuts = [np.searchsorted(samples.cuts[i], rows[:, 0], side="right") for i, rows in enumerate(every)]
    all_rows = np.concatenate(every)
    order = np.lexsort((all_rows[:, 1], all_rows[:, 0]))
    rows, mss = all_rows[order], mss[order]
    queue = samples.queue("t")
    served = np.diff(queue[:, 6], prepend=0.0) * plan["packet_bytes"] * 8 / plan["trace_s"] / plan["rate_bit_s"]
    dropped = queue[:, 4].astype(np.uint64)
    return {
        "flows": {
            "time_s": rows[:, 0],
            "flow": rows[:, 1].astype(np.uint32),
            "cwnd_segments": rows[:, 2],
            "ssthresh_segments": np.where(rows[:, 3] >= UNLIMITED, np.inf, rows[:, 3]),
            "srtt_s": np.where(rows[:, 8] > 0, rows[:, 8] / 8 / 1000, np.nan),
            "rto_s": np.full(len(rows), np.nan),
            "pipe_bytes": np.full(len(rows), np.iinfo(np.uint64).max),
            "goodput_bit_s": np.concatenate(goodput)[order],
            "receive_rate_bit_s": np.full(len(rows), np.nan),
            "delivered_bytes": np.concatenate(delivered)[order].astype(np.uint64),
            "sent_bytes": (rows[:, 5] * mss).astype(np.uint64),
            "retransmits": rows[:, 6].astype(np.uint64),
            "timeouts": rows[:, 7].astype(np.uint32),
            "congestion_events": np.concatenate(cuts)[order].astype(np.uint32),
        },
        "queues": {
            "time_s": queue[:, 0],
            "link": np.zeros(len(queue), np.uint32),
            "packets": queue[:, 1].astype(np.uint64),
            "bytes": queue[:, 2].astype(np.uint64),
            "offered": queue[:, 3].astype(np.uint64),
            "dropped": dropped,
            "lost": queue[:, 5].astype(np.uint64),
            "marked": np.zeros(len(queue), np.uint64),
            "utilisation": np.minimum(served, 1.0),
            **reasons(dropped, is_full=plan["queue"] == "droptail"),
        },
        "transfers": no_transfers(),
    }


def summary(plan: Mapping[str, Any], flows: list[Flow], samples: Samples) -> Summary:
    """The metrics, by the definitions of crates/metrics. Quantiles of the queueing delay are those of samples."""
    made = [_flow_summary(plan, flow, number, samples) for number, flow in enumerate(flows)]
    each = np.array([one["goodput_bit_s"] for one, _ in made])
    total, span = float(each.sum()), plan["to_s"] - plan["from_s"]
    newest = max(range(len(flows)), key=lambda number: (flows[number].start_s, number))
    stabilities = [one["stability"] for one, _ in made if one["stability"] is not None]
    ends = [np.maximum(samples.flow("w", number), 0) for number in range(len(flows))]
    in_window = [(last[6] - first[6], last[5] - first[5]) for first, last in ends]
    whole_s = plan["to_s"] - min(flow.start_s for flow in flows)
    delivered = sum(float(last[4]) * flow.mss * 8 for (_, last), flow in zip(ends, flows, strict=True))
    epochs, synchronisation = _epochs(plan, flows, samples)
    first, last = samples.queue("w")
    _, _, _, offered, dropped, lost, departed, packet_seconds = (last - first).tolist()
    waiting = samples.queue("m")
    waiting = waiting[(waiting[:, 0] >= plan["from_s"]) & (waiting[:, 0] <= plan["to_s"])]
    delays = waiting[:, 2] * 8 / plan["rate_bit_s"]
    p50, p95, p99 = (float(np.quantile(delays, share)) for share in (0.5, 0.95, 0.99))
    # Little's law.
    delay_mean_s = packet_seconds / departed if departed else None
    # A packet whose service began before the end counts as a whole.
    used = min(departed * plan["packet_bytes"] * 8 / plan["rate_bit_s"] / span, 1.0)
    is_full = plan["queue"] == "droptail"
    template = json.loads(_core.empty_summary())
    template |= {
        "from_s": plan["from_s"],
        "to_s": plan["to_s"],
        "goodput_bit_s": total,
        "utilisation": used,
        "fairness": _ratio(float(each.min()), float(each.max())),
        "jain": jain(each),
        "stability": float(np.mean(stabilities)) if stabilities else None,
        "convergence_s": made[newest][0]["convergence_s"],
        "fair_share_s": _convergence(made[newest][1], total / len(flows), plan["interval_s"], flows[newest].rtt_s),
        "overhead_s_bit": _overhead(in_window, total),
        "overhead_whole_s_bit": _overhead([(one[1][6], one[1][5]) for one in ends], delivered / whole_s),
        "loss_rate": _ratio(float(dropped + lost), float(offered)),
        "queue_delay_mean_s": delay_mean_s,
        "congestion_epochs": epochs,
        "synchronisation": synchronisation,
        "flows": [template["flows"][0] | one for one, _ in made],
        "links": [
            template["links"][0]
            | {
                "name": plan["link"],
                "utilisation": used,
                "offered": int(offered),
                "dropped": int(dropped),
                "lost": int(lost),
                "dropped_full" if is_full else "dropped_early": int(dropped),
                "queue_delay_mean_s": delay_mean_s,
                "queue_delay_p50_s": p50,
                "queue_delay_p95_s": p95,
                "queue_delay_p99_s": p99,
                "queue_mean_packets": float(packet_seconds) / span,
                "queue_max_packets": int(waiting[:, 1].max()),
            }
        ],
    }
    return Summary.from_dict(template)


def _flow_summary(plan: Mapping[str, Any], flow: Flow, number: int, samples: Samples) -> tuple[dict[str, Any], Array]:
    """The metrics of a flow in the measuring window, and its goodput in each interval since its start, in bit/s."""
    (first, last), rows = np.maximum(samples.flow("w", number), 0), samples.flow("m", number)
    rows = rows[(rows[:, 0] > flow.start_s) & (rows[:, 0] <= plan["to_s"])]
    rates = np.diff(np.maximum(rows[:, 4], 0), prepend=0.0) * flow.mss * 8 / plan["interval_s"]
    within = rows[rows[:, 0] >= plan["from_s"]]
    measured = rates[rows[:, 0] > plan["from_s"]]
    goodput = (last[4] - first[4]) * flow.mss * 8 / (plan["to_s"] - plan["from_s"])
    spread = float(measured.std(ddof=1)) if len(measured) > 1 else 0.0
    cuts, timed = np.array(samples.cuts[number]), within[within[:, 8] > 0, 8]
    summary = {
        "label": flow.label,
        "start_s": flow.start_s,
        "goodput_bit_s": float(goodput),
        "stability": _ratio(spread, float(measured.mean())) if len(measured) > 1 else None,
        "convergence_s": _convergence(rates, goodput, plan["interval_s"], flow.rtt_s),
        "sent_bytes": int(last[5] - first[5]) * flow.mss,
        "retransmitted_bytes": int(last[6] - first[6]) * flow.mss,
        "cwnd_mean_segments": float(within[:, 2].mean()) if len(within) else None,
        "srtt_mean_s": float(timed.mean()) / 8000 if len(timed) else None,
        "congestion_events": int(((cuts > plan["from_s"]) & (cuts <= plan["to_s"])).sum()),
        "timeouts": int(last[7] - first[7]),
    }
    return summary, rates


def _epochs(plan: Mapping[str, Any], flows: list[Flow], samples: Samples) -> tuple[int, float | None]:
    """Number of congestion epochs, and the mean share of the active flows that reduce their window in one."""
    within = [
        (at, number)
        for number, times in enumerate(samples.cuts)
        for at in times
        if plan["from_s"] < at <= plan["to_s"] or at == plan["from_s"] == 0
    ]
    span, began, shares = max(flow.rtt_s for flow in flows), -np.inf, []
    for at, number in sorted(within):
        if at - began > span:
            began = at
            shares.append((set[int](), sum(flow.start_s <= at for flow in flows)))
        shares[-1][0].add(number)
    return len(shares), float(np.mean([len(found) / active for found, active in shares])) if shares else None


def _convergence(rates: Array, target: float, step_s: float, rtt_s: float) -> float | None:
    """`convergence` of crates/metrics/src/formula.rs."""
    keep = float(np.exp(-step_s / max(SHORT_TERM_RTTS * rtt_s, step_s)))
    average = 0.0
    for index, rate in enumerate(rates):
        average = keep * average + (1 - keep) * rate
        if EPSILON * target <= average <= target / EPSILON:
            return (index + 1) * step_s
    return None


def _overhead(counts: list[tuple[float, float]], goodput_bit_s: float) -> float | None:
    """Overhead by segments retransmitted and sent, of each flow."""
    return _ratio(sum(again / sent for again, sent in counts if sent), goodput_bit_s)


def _ratio(over: float, under: float) -> float | None:
    return float(over / under) if under else None
