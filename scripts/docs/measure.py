"""Measure every algorithm and queue on the same paths, for the documentation: writes docs/measured.json and docs/images/.

The experiments are described where their numbers are shown, in docs/algorithms/index.md and docs/queues/index.md.
Run by `make measured`. `make measured ONLY=NAME` measures one algorithm, queue or metric, and keeps the measurements of
the others; NAME may also be a part: algorithms, pictures, queues or examples.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import metrics
from matplotlib.figure import Figure
from measures import MEASURES, QUEUE_MEASURES
from png import shrink

import elephan
from elephan.api.metrics import METRICS, Metric
from elephan.api.pictures.draw import draw
from elephan.api.registry import queues as known_queues
from elephan.base.plots import STYLE
from elephan.studies.statistics import Estimate

DOCS = Path(__file__).parents[2] / "docs"
REPEATS = 3
PATH = {"rate": "250 Mbit/s", "rtt": "82 ms"}
LATER = {"uniform": ["0 s", "20 s"]}

SETTLED = {"measure": {"from": "100 s"}}
LATE = {"measure": {"from": "50 s"}}


def dumbbell(flows: list[Any], buffer: str = "20% bdp", **keys: Any) -> dict[str, Any]:
    """The keys of a scenario of 300 s."""
    return {**PATH, "buffer": buffer, "flows": flows, "duration": "300 s", **keys}


# The scenario of each experiment with an algorithm. measures.py defines what is read from it.
EXPERIMENTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "alone": lambda cc: dumbbell([elephan.flow(cc)], **SETTLED),
    "small": lambda cc: dumbbell([elephan.flow(cc)], "2% bdp", **SETTLED),
    "lossy": lambda cc: dumbbell(
        [elephan.flow(cc)], "100% bdp", path={"loss": {"name": "random", "probability": 1e-5}}, **SETTLED
    ),
    "two": lambda cc: dumbbell([elephan.flow(cc), elephan.flow(cc, start=LATER)]),
    "rtts": lambda cc: dumbbell(
        [elephan.flow(cc), elephan.flow(cc, rtt="160 ms", start=LATER)], "100% bdp", rtt="40 ms", **LATE
    ),
    "beside": lambda cc: dumbbell([elephan.flow(cc, start=LATER), elephan.flow("reno")], **LATE),
}

QUEUE_PATH = {"rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "100% bdp"}


def scenarios(make: dict[str, Any], name: str) -> list[elephan.Scenario]:
    """Run an experiment once for each seed."""
    return [elephan.dumbbell(name=name, seed=seed, **make) for seed in range(1, REPEATS + 1)]


def estimates(runs: list[elephan.Run], read: dict[str, Metric]) -> dict[str, Any]:
    """The mean of each number over the runs, and half of its interval."""
    found = {}
    for name, metric in read.items():
        estimate = Estimate.of([metric.read(run.summary) for run in runs])
        found[name] = {
            "mean": None if estimate.mean is None else float(f"{estimate.mean:.4g}"),
            "half": None if estimate.half_width is None else float(f"{estimate.half_width:.2g}"),
            "defined": estimate.values,
        }
    return found


def algorithms(names: list[str]) -> dict[str, Any]:
    """Run every experiment with these algorithms."""
    found: dict[str, Any] = {}
    for cc in names:
        found[cc] = {}
        for name, make in EXPERIMENTS.items():
            read = {number: metric for (experiment, number), metric in MEASURES.items() if experiment == name}
            found[cc][name] = estimates(elephan.run_many(scenarios(make(cc), name)), read)
        print(cc, json.dumps(found[cc]), file=sys.stderr)
    return found


def pictures(names: list[str]) -> None:
    """The window of one flow on a path of its own, and the queue below it."""
    for algorithm in elephan.algorithms():
        if algorithm.name not in names:
            continue
        scenario = elephan.dumbbell(
            name=algorithm.title,
            rate="100 Mbit/s",
            rtt="82 ms",
            buffer="50% bdp",
            flows=[elephan.flow(algorithm.name)],
            duration="120 s",
        )
        figure = sawtooth(elephan.run(scenario))
        file = DOCS / "images" / f"cc-{algorithm.name}.png"
        # One and a half times the pixels of a page's column: sharp on most screens, and some 50 kB at most.
        figure.savefig(file, dpi=150)
        shrink(file)


def sawtooth(run: elephan.Run) -> Figure:
    """Draw the window of a run's first flow, and the bottleneck's queue below it."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.4))
        window, queue = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
        # The titles of whole pictures are longer than these axes.
        for axes, what, unit in ((window, "cwnd", "segments"), (queue, "queue", "packets")):
            draw(axes, run.picture(what))
            axes.set(xlabel="", ylabel=f"{what} ({unit})")
        for line in queue.lines:
            line.set_color("#888888")
        queue.set_xlabel("time (s)")
        return figure


def queues(names: list[str]) -> dict[str, Any]:
    """These queue disciplines with the same four flows; None for one that needs classes, which has its own examples."""
    found: dict[str, Any] = {}
    flows = [elephan.flow(cc, start={"uniform": ["0 s", "5 s"]}) for cc in ("reno", "reno", "cubic", "htcp")]
    for name in names:
        queue: Any = {"name": name, "packets": 50} if name == "threshold" else name
        make = {
            **QUEUE_PATH,
            "flows": flows,
            "duration": "120 s",
            "measure": {"from": "20 s"},
            "path": {"queue": queue},
        }
        if name == "threshold":
            make["tcp"] = {"ecn": True}
        try:
            found[name] = estimates(elephan.run_many(scenarios(make, name)), QUEUE_MEASURES)
        except elephan.ScenarioError as error:
            print(f"{name}: {error}", file=sys.stderr)
            found[name] = None
    return found


Values = list[tuple[str, str, float | None]]


def flat(value: float | None, factor: float = 1.0) -> float | None:
    """A number of a page: four digits."""
    return None if value is None else float(f"{value * factor:.4g}")


def examples() -> dict[str, Any]:
    """An example for the page of each metric: the command that computes it, and name, unit and value."""
    found: dict[str, Any] = {}

    def keep(page: str, file: str, values: Values) -> None:
        command = f"elephan run {file}"
        found[page] = {"command": command, "values": [list(value) for value in values]}

    def run(file: str) -> elephan.Summary:
        return elephan.run(elephan.load(file)).summary

    two = run("two-flows")
    for metric in METRICS:
        keep(metric.name.replace(" ", "-"), "two-flows", [(metric.name, metric.unit, flat(metric.read(two)))])
    keep("jain", "two-flows", [("jain", "1", flat(two.jain))])
    keep("congestion-epochs", "two-flows", [("congestion_epochs", "count", two.congestion_epochs)])
    keep("synchronisation", "two-flows", [("synchronisation", "1", flat(two.synchronisation))])
    (crowd,) = run("web-users").crowds
    ended: Values = []
    for what, times in (("transfers", crowd.transfers), ("pages", crowd.pages)):
        assert times is not None
        ended.append((f"{what} that ended", "count", times.count))
        ended += [(f"{what}, median", "s", flat(times.p50_s)), (f"{what}, 95 %", "s", flat(times.p95_s))]
    keep("completion", "web-users", ended)
    stream = run("cbr-background").streams[0]
    keep(
        "datagrams",
        "cbr-background",
        [
            ("sent", "packets", stream.sent),
            ("lost", "packets", stream.lost),
            ("reordered", "packets", stream.reordered),
            ("delay, mean", "ms", flat(stream.delay_mean_s, 1e3)),
            ("delay, 99 %", "ms", flat(stream.delay_p99_s, 1e3)),
            ("jitter", "ms", flat(stream.jitter_s, 1e3)),
        ],
    )
    slow = run("slow-host")
    (host,) = [flow.host for flow in slow.flows if flow.host is not None]
    keep(
        "hosts",
        "slow-host",
        [
            ("busy", "%", flat(host.busy, 100)),
            ("backlog, most", "packets", host.backlog_max_packets),
            ("dropped by the backlog", "packets", host.dropped),
            ("stalls", "count", host.stalls),
        ],
    )
    found["impact"], found["qos-efficiency"] = impact(), qos_efficiency()
    return found


def impact() -> dict[str, Any]:
    """The effect of each algorithm on one flow of Standard TCP."""
    path: Any = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "20% bdp"}

    def two(cc: str) -> elephan.Summary:
        flows = [elephan.flow("reno"), elephan.flow(cc)]
        return elephan.run(elephan.dumbbell(name="impact", **path, flows=flows, duration="120 s")).summary

    reference = two("reno")
    values = [
        [
            f"{algorithm.name} in place of one of two flows",
            "1",
            flat(elephan.impact(reference, two(algorithm.name), [1])),
        ]
        for algorithm in elephan.algorithms()
    ]
    return {"command": "", "values": values}


def qos_efficiency() -> dict[str, Any]:
    """The share that one flow uses, and what it leaves to the others."""
    classes = [{"name": "af", "dscp": ["af11"], "weight": 70}, {"name": "be", "weight": 30}]
    path: Any = {"rate": "100 Mbit/s", "rtt": "40 ms", "path": {"queue": {"name": "wrr", "class": classes}}}
    values = []
    for cc in ("reno", "htcp", "scalable"):
        flows = [elephan.flow(cc, dscp="af11")]
        stream = [{"rate": "100 Mbit/s"}]
        scenario = elephan.dumbbell(name="qos", **path, buffer="20% bdp", flows=flows, cbr=stream, duration="60 s")
        (link,) = [link for link in elephan.run(scenario).summary.links if link.classes]
        values += [[f"{cc}: class {one.name}", "used/guaranteed", flat(one.qos_efficiency)] for one in link.classes]
    return {"command": "", "values": values}


def main(wanted: list[str]) -> None:
    """Measure the selected parts, algorithms, queues or metrics by name, and merge the results into measured.json."""
    file = DOCS / "measured.json"
    measured = json.loads(file.read_text(encoding="utf-8"))
    names = [algorithm.name for algorithm in elephan.algorithms()]
    parts = {
        "pictures": names,
        "algorithms": names,
        "queues": [queue.name for queue in known_queues()],
        "examples": [metrics.page(metric) for metric in METRICS] + list(metrics.OTHERS),
    }
    known = {*parts, *(name for part in parts.values() for name in part)}
    if unknown := set(wanted) - known:
        sys.exit(f"measure.py: expected one of {', '.join(sorted(known))}; found {', '.join(sorted(unknown))}")
    chosen = {
        part: [name for name in names if not wanted or part in wanted or name in wanted]
        for part, names in parts.items()
    }
    (DOCS / "images").mkdir(exist_ok=True)
    pictures(chosen["pictures"])
    measured |= {"elephan": elephan.__version__, "repeats": REPEATS}
    measured["queues"] |= queues(chosen["queues"])
    measured["algorithms"] |= algorithms(chosen["algorithms"])
    if chosen["examples"]:
        measured["examples"] |= examples()
    elif chosen["algorithms"]:
        measured["examples"]["impact"] = impact()
    file.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
