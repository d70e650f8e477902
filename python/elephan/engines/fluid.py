"""The `model` engine: the fluid equations of `elephan-model`, integrated over time, with results in the form of any other run.

Packets are a fluid: there are no bursts, no timeouts and no acknowledgment bytes.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.run import UNKNOWN, Run
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary
from elephan.engines.integrate import FlowClass, Trajectory, integrate
from elephan.engines.tables import jain, no_transfers, reasons


def run(scenario: Scenario, *, progress: Callable[[float], object] | None = None) -> Run:
    """Run a scenario on the fluid model: one bottleneck with DropTail or RED, and bulk flows whose algorithm has a model.

    Raises `ScenarioError` for features that the model does not cover.
    """
    started = time.perf_counter()
    plan = scenario.fluid_plan
    classes = [
        FlowClass(
            cc=json.dumps(c["cc"]),
            flows=c["flows"],
            rtt_s=c["rtt_s"],
            start_s=c["start_s"],
            stop_s=c["stop_s"],
            window=c["initial_window"],
            ssthresh=c["initial_ssthresh"] or float("inf"),
        )
        for c in plan["classes"]
    ]
    rate = plan["rate_bit_s"] / (8.0 * plan["packet_bytes"])
    course = integrate(
        rate=rate,
        buffer=plan["buffer_packets"],
        classes=classes,
        duration_s=plan["duration_s"],
        sample_s=plan["trace_s"],
        queue=plan["queue"],
        red=plan["red"] and tuple(plan["red"]),
        random_loss=plan["random_loss"],
        progress=progress,
    )
    # One row for each flow; if there are too many flows, one for each class.
    shown = plan["members"] or list(range(len(classes)))
    labels = [c["label"] if plan["members"] else f"{c['label']} x {c['flows']}" for c in plan["classes"]]
    labels = [labels[c] for c in shown]
    return Run(
        scenario=scenario,
        summary=_summary(course, plan, rate, classes, shown, labels),
        columns=_columns(course, plan, rate, classes, shown),
        links=(plan["link"],),
        labels=tuple(labels),
        provenance={
            "elephan": _core.__version__,
            "engine": "model",
            "wall_time_s": time.perf_counter() - started,
            "segments_delivered": round(float(np.sum(np.minimum(course.offered, rate)) * plan["trace_s"])),
            "events_handled": 0,
        },
    )


def _goodput(course: Trajectory, plan: dict[str, Any], rate: float) -> np.ndarray[Any, Any]:
    """Payload that one flow of each class delivers, bit/s: its share of what the link, of `rate` packets/s, sends."""
    through = np.where(course.queue > 0, rate, np.minimum(course.offered, rate)) * (1 - plan["random_loss"])
    share = course.rates / np.maximum(course.offered, 1e-9)[:, None]
    return np.asarray(share * through[:, None] * (8.0 * plan["mss_bytes"]))


def _columns(
    course: Trajectory, plan: dict[str, Any], rate: float, classes: list[FlowClass], shown: list[int]
) -> dict[str, dict[str, Any]]:
    """The same columns as those of a simulated run; at each time, one row for each flow that has started."""
    times, count, mss = course.time_s, len(shown), plan["mss_bytes"]
    keep = (times[:, None] >= np.array([classes[c].start_s for c in shown])[None, :]).ravel()

    def flat(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(values[:, shown].ravel()[keep])

    def whole(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.round(values).astype(np.uint64)

    goodput, step = _goodput(course, plan, rate), plan["trace_s"]
    lost = np.cumsum(course.rates * course.loss[:, None], axis=0) * step
    flow = np.tile(np.arange(count, dtype=np.uint32), len(times))[keep]
    nothing = np.zeros(len(times), np.uint64)
    dropped = whole(np.cumsum(course.offered * course.loss) * step)
    return {
        "flows": {
            "time_s": np.repeat(times, count)[keep],
            "flow": flow,
            "cwnd_segments": flat(course.windows),
            "ssthresh_segments": np.full(len(flow), np.inf),
            "srtt_s": flat(course.rtts),
            "rto_s": np.full(len(flow), np.nan),
            "pipe_bytes": whole(flat(course.windows) * mss),
            "goodput_bit_s": flat(goodput),
            "receive_rate_bit_s": flat(goodput),
            "delivered_bytes": whole(flat(np.cumsum(goodput, axis=0) * step / 8)),
            "sent_bytes": whole(flat(np.cumsum(course.rates, axis=0) * step * mss)),
            "retransmits": whole(flat(lost)),
            "timeouts": np.full(len(flow), UNKNOWN, np.uint32),
            "congestion_events": flat(course.losses).astype(np.uint32),
        },
        "queues": {
            "time_s": times,
            "link": np.zeros(len(times), np.uint32),
            "packets": whole(course.queue),
            "bytes": whole(course.queue * plan["packet_bytes"]),
            "offered": whole(np.cumsum(course.offered) * step),
            "dropped": dropped,
            "lost": nothing,
            "marked": nothing,
            "utilisation": np.where(course.queue > 0, 1.0, np.minimum(course.offered / rate, 1.0)),
            **reasons(dropped, is_full=plan["queue"] == "droptail"),
        },
        "transfers": no_transfers(),
    }


def _summary(
    course: Trajectory, plan: dict[str, Any], rate: float, classes: list[FlowClass], shown: list[int], labels: list[str]
) -> Summary:
    """The metrics over the measuring window. Metrics that need packets are undefined."""
    within = (course.time_s >= plan["from_s"]) & (course.time_s <= plan["to_s"])
    span, mss = plan["to_s"] - plan["from_s"], plan["mss_bytes"]
    goodput = _goodput(course, plan, rate)[within]
    queue, offered, loss = course.queue[within], course.offered[within], course.loss[within]
    each, counts = goodput.mean(axis=0), np.array([c.flows for c in classes])
    sent = course.rates[within].mean(axis=0) * span * mss
    again = (course.rates[within] * loss[:, None]).mean(axis=0) * span * mss
    aggregate = float((each * counts).sum())
    stability = goodput.std(axis=0, ddof=1) / each
    used = float(np.where(queue > 0, 1.0, np.minimum(offered / rate, 1.0)).mean())
    p50, p95, p99 = (float(np.quantile(queue, q)) / rate for q in (0.5, 0.95, 0.99))
    template = json.loads(_core.empty_summary())
    flow, link = template["flows"][0], template["links"][0]
    reason = "dropped_full" if plan["queue"] == "droptail" else "dropped_early"
    events = (course.losses[within][-1] - course.losses[within][0]).round().astype(int)
    template |= {
        "from_s": plan["from_s"],
        "to_s": plan["to_s"],
        "goodput_bit_s": aggregate,
        "utilisation": used,
        "fairness": float(each.min() / each.max()),
        "jain": jain(each, counts),
        "stability": float((stability * counts).sum() / counts.sum()),
        "overhead_s_bit": float((again / sent * counts).sum()) / aggregate,
        "loss_rate": float((offered * loss).sum() / offered.sum()),
        "queue_delay_mean_s": float(queue.mean()) / rate,
        "flows": [
            flow
            | {
                "label": label,
                "start_s": classes[c].start_s,
                "goodput_bit_s": float(each[c]),
                "stability": float(stability[c]),
                "sent_bytes": round(float(sent[c])),
                "retransmitted_bytes": round(float(again[c])),
                "cwnd_mean_segments": float(course.windows[within][:, c].mean()),
                "srtt_mean_s": float(course.rtts[within][:, c].mean()),
                "congestion_events": int(events[c]),
            }
            for label, c in zip(labels, shown, strict=True)
        ],
        "links": [
            link
            | {
                "name": plan["link"],
                "utilisation": used,
                "offered": round(float(offered.mean()) * span),
                "dropped": round(float((offered * loss).mean()) * span),
                reason: round(float((offered * loss).mean()) * span),
                "queue_delay_mean_s": float(queue.mean()) / rate,
                "queue_delay_p50_s": p50,
                "queue_delay_p95_s": p95,
                "queue_delay_p99_s": p99,
                "queue_mean_packets": float(queue.mean()),
                "queue_max_packets": int(queue.max()),
            }
        ],
    }
    return Summary.from_dict(template)
