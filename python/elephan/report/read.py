"""Reads a results folder into the content of a report."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from elephan import _core
from elephan.api import tables
from elephan.api.charts import MARKS, OF_FLOWS, OF_LINKS
from elephan.api.metrics import METRICS, Metric
from elephan.api.run import Run
from elephan.base.documents import damage, inside
from elephan.base.folders import read_document
from elephan.base.table import Table, text_heads
from elephan.base.text import file_name
from elephan.report import reproduction, series
from elephan.report.content import Axis, Chart, Content, Group, Line, Points, Runs, Series, Tile
from elephan.studies.compare import Comparison, run_path
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps.dataset import Dataset, named
from elephan.studies.theory import MODELLED, Model

# Lines of a chart: as many as there are colours that all readers can distinguish.
MOST_LINES = 8
# Points of a sweep that a table shows: more is no table to read.
MOST_POINTS = 1000


def kind_of(folder: Path) -> str | None:
    """The kind of results in a folder: a run, a comparison, a sweep or a reproduction; none if it has no results."""
    for file, kind in (("run.json", "run"), ("comparison.json", "comparison"), ("sweep.json", "sweep")):
        if (folder / file).is_file():
            return kind
    return "reproduction" if reproduction.experiments(folder) else None


def read(folder: str | Path) -> Content:
    """Read a results folder of any kind. Raises `ScenarioError` if it has no results, or damaged ones."""
    folder = Path(folder)
    readers = {"run": _run, "comparison": _comparison, "sweep": _sweep, "reproduction": reproduction.read}
    kind = kind_of(folder)
    if kind is None:
        raise _core.ScenarioError(
            f"{folder}: expected the results of a run, a comparison, a sweep or a reproduction, found none of them"
        )
    with damage(folder):
        return readers[kind](folder)


def _run(folder: Path) -> Content:
    run = Run.load(folder)
    summary = run.summary
    document = run.scenario.document
    window = f"{summary.from_s:g} s to {summary.to_s:g} s"
    return Content(
        kind="run",
        title=run.scenario.name,
        subtitle=f"{_network(document)}; measuring window {window}",
        facts=[*_engine(run), ("measuring window", window), *_versions(folder)],
        command=f"elephan run {file_name(run.scenario.name)}.toml",
        scenario=_core.to_toml(run.scenario.to_json()),
        tiles=[_tile(metric, metric.read(summary)) for metric in METRICS],
        tables=tables.of_run(run),
        groups=[Group("Over time", charts(folder, run))],
        notes=[
            *_repeatable(run),
            "Goodput counts application bytes; rates and utilisation count IP packets. 1 Mbit is 10^6 bits.",
        ],
    )


def _tile(metric: Metric, value: float | None) -> Tile:
    undefined = " Undefined in this run." if value is None else ""
    return Tile(metric.name, metric.text(value), metric.short_unit, f"{metric.unit}. {metric.meaning}{undefined}")


def _engine(run: Run) -> list[tuple[str, str]]:
    """The engine of a run, and its quality: a kernel is less exact than a simulator."""
    engine, told = str(run.provenance["engine"]), run.provenance
    is_real = engine == "linux"
    facts = [
        ("engine", {"sim": "sim, packet by packet", "model": "model, fluid equations"}.get(engine, engine)),
        ("seed", str(run.scenario.document["seed"])),
        ("real time" if is_real else "simulated time", str(run.scenario.document["duration"])),
        ("segments delivered", f"{told['segments_delivered']:,}"),
        ("wall time", f"{told['wall_time_s']:.2f} s"),
    ]
    if is_real:
        quality = told["quality"]
        facts.insert(1, ("kernel", f"Linux {told['kernel']}"))
        late = f"{1e3 * quality['lateness_p99_s']:.2f} ms (99th percentile), {1e3 * quality['lateness_max_s']:.2f} ms (maximum)"
        facts.append(("packets late by", late))
        facts.append(("valid", "yes" if quality["valid"] else f"no: {'; '.join(quality['invalid_because'])}"))
    return facts


def _repeatable(run: Run) -> list[str]:
    """How the command repeats the run."""
    file = f"{file_name(run.scenario.name)}.toml is the scenario below."
    match run.provenance["engine"]:
        case "linux":
            quality = run.provenance["quality"]
            reasons = [f"Invalid run: {reason}." for reason in quality["invalid_because"]]
            return [
                *reasons,
                f"{file} It runs on this kernel's TCP in real time, as root; results vary from run to run.",
            ]
        case "model":
            return [f"{file} The fluid model has no packets: packet counts are rates times time."]
        case _:
            return [f"{file} The same version of Elephan gives bit-identical results."]


def _comparison(folder: Path) -> Content:
    names: dict[str, list[int]] = read_document(folder / "comparison.json")["runs"]
    folders = {name: [inside(folder, run_path(name, k)) for k in range(len(seeds))] for name, seeds in names.items()}
    result = Comparison({name: [Run.load(one) for one in ones] for name, ones in folders.items()})
    first = next(iter(result.runs.values()))[0]
    document = first.scenario.document
    repeats = len(next(iter(names.values())))
    table = result.table(
        "Metrics",
        f"Means over {repeats} runs; ± is the half-width of the 95 % confidence interval (Student's t). "
        "(2/3) says that a metric is defined in two of three.",
    )
    later = [flow["start"]["uniform"][1] for flow in document["flow"] if isinstance(flow.get("start"), Mapping)]
    path = document["path"]
    seeds = next(iter(names.values()))
    command = (
        f"elephan compare --cc {','.join(names)} --rate '{path['rate']}' --rtt '{path['rtt']}' --buffer '{path['buffer']}' "
        f"--flows {len(document['flow'])} --duration '{document['duration']}' --repeat {repeats} "
        f"--seed {seeds[0]}" + (f" --start-within '{later[0]}'" if later else "")
    )
    return Content(
        kind="comparison",
        title=f"{', '.join(names)}",
        subtitle=f"{_network(document)}, {document['duration']}, {repeats} runs of each",
        facts=[
            ("engine", str(first.provenance["engine"])),
            ("seeds", _list(seeds)),
            *_versions(folders[next(iter(names))][0]),
        ],
        command=command,
        scenario=_core.to_toml(first.scenario.to_json()),
        tables=[table],
        runs=Runs(
            "Metrics over repeats",
            ["cc", "seed"],
            [[name, seed] for name, seeds in names.items() for seed in seeds],
            [[metric.read(run.summary) for metric in METRICS] for runs in result.runs.values() for run in runs],
        ),
        groups=[
            Group(title, _side_by_side({name: ones[0] for name, ones in folders.items()}, result, what))
            for what, title in (
                ("cwnd", "Windows, first run of each algorithm"),
                ("goodput", "Goodput, first run of each algorithm"),
            )
        ],
        notes=[f"The scenario below is for {next(iter(names))}, seed {first.scenario.document['seed']}."],
    )


def _side_by_side(folders: Mapping[str, Path], result: Comparison, what: str) -> list[Chart]:
    found = []
    for name, folder in folders.items():
        chart = next(
            chart for chart in charts(folder, result.runs[name][0], most=series.MOST_VALUES // 4) if chart.id == what
        )
        lines = [
            Line(f"flow {k + 1}" if not line.minor else line.name, line.values, line.colour, line.minor)
            for k, line in enumerate(chart.lines)
            if not line.minor
        ]
        found.append(Chart(f"{what}-{name}", name, chart.unit, chart.meaning, chart.time_s, lines, chart.note))
    return found


def read_beside(folders: Mapping[str, Path]) -> Content:
    """Several runs side by side, by name. Raises `ScenarioError` where one of the results is no single run, or damaged."""
    for name, folder in folders.items():
        if not (folder / "run.json").is_file():
            raise _core.ScenarioError(f"{name}: expected the results of a single run, found another kind")
    runs = {name: Run.load(folder) for name, folder in folders.items()}
    with damage(Path(" and ".join(folders))):
        return _beside(runs, folders)


def _beside(runs: Mapping[str, Run], folders: Mapping[str, Path]) -> Content:
    rows = [
        [
            name,
            _network(run.scenario.document),
            *(metric.text(Estimate.of([metric.read(run.summary)])) for metric in METRICS),
        ]
        for name, run in runs.items()
    ]
    head = [*text_heads("run", "of"), *(metric.head for metric in METRICS)]
    lines: dict[str, list[tuple[str, Chart, Line]]] = {}
    for name, run in runs.items():
        for chart in charts(folders[name], run):
            for line in chart.lines:
                if not line.minor:
                    lines.setdefault(chart.id, []).append((name, chart, line))
    first = next(iter(runs.values()))
    return Content(
        kind="comparison",
        title=" beside ".join(runs),
        subtitle=f"{len(runs)} runs; metrics cover each run's measuring window",
        facts=_versions(next(iter(folders.values()))),
        command="",
        scenario=_core.to_toml(first.scenario.to_json()),
        tables=[Table("Metrics", head, rows)],
        groups=[Group("Over time", [_overlaid(found) for found in lines.values()])],
        notes=[f"The scenario below is that of {next(iter(runs))}."],
    )


def _overlaid(found: Sequence[tuple[str, Chart, Line]]) -> Chart:
    """Lines of several charts over the times of them all."""
    shown = found[:MOST_LINES]
    times = np.unique(np.concatenate([chart.time_s for _, chart, _ in shown]))
    lines = []
    for colour, (name, chart, line) in enumerate(shown):
        values = np.full(len(times), np.nan)
        values[np.searchsorted(times, chart.time_s)] = line.values
        lines.append((f"{name}: {line.name}", values, colour))
    first = shown[0][1]
    more = f"The first {MOST_LINES} of {len(found)} lines." if len(found) > MOST_LINES else ""
    kept = series.thin(series.Aligned(times, {name: values for name, values, _ in lines}), "flows.parquet")
    drawn = [Line(name, values, colour) for colour, (name, values) in enumerate(kept.lines.items())]
    return Chart(
        first.id, first.title, first.unit, first.meaning, kept.time_s, drawn, _join(more, kept.note), first.steps
    )


def _sweep(folder: Path) -> Content:
    data = Dataset(folder)
    description, every = data.description(), data.index()
    if every.is_empty():
        raise _core.ScenarioError(f"{folder}: expected runs, found none yet")
    index = every.filter(pl.col("status") == "ok")
    failed = every.height - index.height
    keys = [*description["settings"], "repeat"]
    values = [_values(row) for row in index.iter_rows(named=True)]
    varied = [key for key in keys if index[key].n_unique() > 1 or key == keys[0]]
    by_point = [key for key in varied if key not in ("seed", "repeat")]
    points: dict[tuple[Any, ...], list[list[float | None]]] = {}
    for row, metrics in zip(index.iter_rows(named=True), values, strict=True):
        points.setdefault(tuple(row[key] for key in by_point), []).append(metrics)
    table = Table(
        title="Metrics",
        head=[*text_heads(*by_point), *(metric.head for metric in METRICS)],
        rows=[
            [
                *(str(value) for value in point),
                *(metric.text(Estimate.of([row[k] for row in rows])) for k, metric in enumerate(METRICS)),
            ]
            for point, rows in list(points.items())[:MOST_POINTS]
        ],
        note=_join(
            f"The first {MOST_POINTS} of {len(points):,} points; index.parquet has all points."
            if len(points) > MOST_POINTS
            else "",
            "Means over repeats; ± is the half-width of the 95 % confidence interval (Student's t).",
        ),
    )
    return Content(
        kind="sweep",
        title=description["name"],
        subtitle=f"{index.height:,} runs over {', '.join(varied)}",
        facts=[
            ("runs", f"{index.height:,}" + (f", {failed:,} failed" if failed else "")),
            ("code", description["code"]),
        ],
        notes=named(data.losses(), "repeat the sweep to run them"),
        command=f"elephan sweep {file_name(description['name'])}.toml",
        scenario=_core.to_toml(json.dumps(description["scenario"])),
        tables=[table, *_failures(every, keys)],
        runs=Runs(
            "Metrics over the sweep",
            varied,
            [[row[key] for key in varied] for row in index.iter_rows(named=True)],
            values,
        ),
        figures=_responses(description["scenario"], data),
    )


def _failures(index: pl.DataFrame, keys: Sequence[str]) -> list[Table]:
    """The failed runs, with their errors."""
    failed = index.filter(pl.col("status") != "ok")
    if failed.is_empty():
        return []
    rows = [
        [str(row[key]) for key in ("point", *keys, "error")]
        for row in failed.head(tables.MOST_ROWS).iter_rows(named=True)
    ]
    note = f"The first {len(rows)} of {failed.height:,}." if failed.height > len(rows) else ""
    return [Table("Failed runs", text_heads("point", *keys, "error"), rows, note)]


# Keys of a loss rate, and the rate that a value stands for.
LOSSES: dict[str, Callable[[float], float]] = {
    "path.loss.probability": lambda value: value,
    "path.loss.every": lambda value: 1 / value,
}


def _responses(scenario: Mapping[str, Any], data: Dataset) -> list[Points]:
    """Response functions, where a sweep varies the loss rate: mean windows that were simulated, over those of theory."""
    index = data.index()
    key = next((key for key in LOSSES if key in index.columns and index[key].n_unique() > 1), None)
    if key is None:
        return []
    index = data.index(long=True).filter(pl.col("status") == "ok")
    windows: dict[str, dict[float, list[float | None]]] = {}
    for row in index.iter_rows(named=True):
        cc = str(row.get("flow.cc") or scenario["flow"][0]["cc"])
        window = json.loads(row["summary"])["flows"][0]["cwnd_mean_segments"]
        windows.setdefault(cc, {}).setdefault(LOSSES[key](float(row[key])), []).append(window)
    rtts = index["path.rtt_s"].unique().to_list() if "path.rtt_s" in index.columns else []
    found = []
    for colour, (cc, points) in enumerate(windows.items()):
        losses = sorted(points)
        estimates = [Estimate.of(points[loss]) for loss in losses]
        bounds = [
            (e.mean, e.half_width) if e.mean is not None and e.half_width is not None else None for e in estimates
        ]
        found.append(
            Series(
                cc,
                colour,
                losses,
                [e.mean for e in estimates],
                [None if b is None else b[0] - b[1] for b in bounds],
                [None if b is None else b[0] + b[1] for b in bounds],
                line=False,
            )
        )
        if cc in MODELLED and len(rtts) == 1:
            fine = [float(loss) for loss in np.geomspace(losses[0], losses[-1], 60)]
            theory = [Model(cc).response(loss, float(rtts[0])).window for loss in fine]
            found.append(Series(f"{cc}, theory", colour, fine, [*theory], points=False, dashed=True))
    note = "Points: simulation, with 95 % confidence intervals over repeats. Dashed: the response function, unlimited path."
    axes = Axis("loss rate", log=True), Axis("mean window (segments)", log=True)
    return [Points("response", "Response functions", *axes, found, note)]


def _values(row: Mapping[str, Any]) -> list[float | None]:
    """The metrics of a row of a sweep's index."""
    return [metric.scaled(row.get(metric.column)) for metric in METRICS]


# The end of a line's name that is the threshold of a window.
SSTHRESH = " ssthresh"


def charts(folder: Path, run: Run, most: int = series.MOST_VALUES) -> list[Chart]:
    """Everything over time of a run: windows, goodput, round-trip times, queues, drops, load."""
    wanted = ["time_s", "flow", "cwnd_segments", "ssthresh_segments", "srtt_s", "goodput_bit_s"]
    flows = series.columns(folder, "flows", wanted)
    # Crowds of short flows and streams of datagrams have no window, but a goodput beside the flows'.
    others = [series.columns(folder, name, ["time_s", "flow", "goodput_bit_s"]) for name in ("crowds", "streams")]
    frame = pl.concat([one for one in (flows, *others) if one.height] or [flows], how="diagonal")
    found = []
    shown = list(range(min(len(run.labels), MOST_LINES)))
    alike = len(set(run.labels)) < len(run.labels)
    names = {flow: f"{run.labels[flow]} {flow + 1}" if alike else run.labels[flow] for flow in shown}
    more = f"The first {len(shown)} of {len(run.labels)} flows." if len(run.labels) > len(shown) else ""
    for what, metric in OF_FLOWS.items() if frame.height else ():
        lines: dict[str, tuple[int, series.Numbers]] = {}
        columns, meaning = [(metric.column, "")], metric.meaning
        if what == "cwnd":
            columns.append(("ssthresh_segments", SSTHRESH))
            meaning += " Dotted: slow-start threshold."
        for column, suffix in columns:
            aligned = series.align(frame, "flow", column, shown)
            for flow in shown:
                values = aligned.lines[str(flow)] * metric.factor
                if what == "srtt":
                    values[values == 0] = float("nan")
                if np.isfinite(values).any():
                    lines[names[flow] + suffix] = flow, values
        if not lines:
            continue
        every = series.Aligned(aligned.time_s, {name: values for name, (_, values) in lines.items()})
        thinned = series.thin(every, "flows.parquet", most)
        drawn = [
            Line(name, values, lines[name][0], minor=name.endswith(SSTHRESH)) for name, values in thinned.lines.items()
        ]
        note = _join(more, thinned.note)
        found.append(Chart(what, metric.title, metric.unit, meaning, thinned.time_s, drawn, note))
    return [*found, *_link_charts(folder, run, most)]


def _link_charts(folder: Path, run: Run, most: int) -> list[Chart]:
    wanted = ["time_s", "link", "packets", "dropped", "lost", "marked", "utilisation"]
    queues = series.columns(folder, "queues", wanted)
    if not queues.height:
        return []
    # What never had a queue, as most links of acknowledgments, would only be a line at zero.
    busy = queues.group_by("link").agg(pl.col("packets").max()).filter(pl.col("packets") > 0)["link"].to_list()
    links = [link.name for link in run.summary.links if link.name in busy][:MOST_LINES] or [run.summary.links[0].name]
    others = [link.name for link in run.summary.links if link.name not in links]
    more = f"Not shown: {_some(others)}." if others else ""
    found = []
    for what, metric in OF_LINKS.items():
        aligned = series.align(queues, "link", metric.column, links)
        scaled = {name: line * metric.factor for name, line in aligned.lines.items()}
        thinned = series.thin(series.Aligned(aligned.time_s, scaled), "queues.parquet", most)
        lines = [Line(name, values, k) for k, (name, values) in enumerate(thinned.lines.items())]
        note = _join(more, thinned.note)
        found.append(Chart(what, metric.title, metric.unit, metric.meaning, thinned.time_s, lines, note))
    counted: dict[str, series.Numbers] = {}
    for column in ("dropped", "lost", "marked"):
        aligned = series.align(queues, "link", column, links)
        for name, totals in aligned.lines.items():
            if totals[-1] > 0:
                counted[f"{name} {column}"] = series.per_interval(totals)
    if counted:
        kept = dict(list(counted.items())[:MOST_LINES])
        thinned = series.thin(series.Aligned(aligned.time_s, kept), "queues.parquet", most)
        lines = [Line(name, values, k) for k, (name, values) in enumerate(thinned.lines.items())]
        drops = Chart("drops", MARKS.title, MARKS.unit, MARKS.meaning, thinned.time_s, lines, thinned.note, steps=True)
        found.insert(1, drops)
    return found


def _network(document: Mapping[str, Any]) -> str:
    flows = sum(int(flow.get("count", 1)) for flow in document["flow"])
    plural = "flow" if flows == 1 else "flows"
    path = document.get("path")
    if path is None:
        return f"{flows} {plural} over {len(document['link'])} links"
    return f"{flows} {plural}, {path['rate']}, {path['rtt']}, buffer {path['buffer']}"


def _versions(folder: Path) -> list[tuple[str, str]]:
    description = read_document(folder / "run.json")
    return [("versions", f"Elephan {description['elephan']}, Python {description['python']}")]


def _list(values: Sequence[int]) -> str:
    together = list(values) == list(range(values[0], values[0] + len(values))) and len(values) > 2
    return f"{values[0]} to {values[-1]}" if together else ", ".join(map(str, values))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
