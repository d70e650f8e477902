"""Reads a results folder into the content of a report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elephan import _core
from elephan.api import tables
from elephan.api.metrics import METRICS, Metric
from elephan.api.run import Run
from elephan.base.documents import damage, inside
from elephan.base.folders import read_document
from elephan.base.table import Table, text_heads
from elephan.base.text import file_name
from elephan.report import reproduction, series
from elephan.report.charts import MOST_LINES, charts
from elephan.report.content import Chart, Content, Group, Line, Runs, Tile, sentences
from elephan.report.sweep import read_sweep
from elephan.studies.compare import Comparison, run_path
from elephan.studies.statistics import Estimate


def kind_of(folder: Path) -> str | None:
    """The kind of results in a folder: a run, a comparison, a sweep or a reproduction; None if it has no results."""
    for file, kind in (("run.json", "run"), ("comparison.json", "comparison"), ("sweep.json", "sweep")):
        if (folder / file).is_file():
            return kind
    return "reproduction" if reproduction.experiments(folder) else None


def read(folder: str | Path) -> Content:
    """Read a results folder of any kind. Raises `ScenarioError` if it has no results, or damaged ones."""
    folder = Path(folder)
    readers = {"run": _run, "comparison": _comparison, "sweep": read_sweep, "reproduction": reproduction.read}
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
    facts = [
        ("engine", {"sim": "sim, packet by packet", "model": "model, fluid equations"}.get(engine, engine)),
        ("seed", str(run.scenario.document["seed"])),
        ("real time" if engine == "linux" else "simulated time", str(run.scenario.document["duration"])),
        ("segments delivered", f"{told['segments_delivered']:,}"),
        ("wall time", f"{told['wall_time_s']:.2f} s"),
    ]
    if "quality" in told:
        quality = told["quality"]
        facts.insert(1, ("kernel", f"Linux {told['kernel']}"))
        late = f"{1e3 * quality['lateness_p99_s']:.2f} ms (99th percentile), {1e3 * quality['lateness_max_s']:.2f} ms (maximum)"
        facts.append(("packets late by", late))
        facts.append(("valid", "yes" if quality["valid"] else f"no: {'; '.join(quality['invalid_because'])}"))
    return facts


def _repeatable(run: Run) -> list[str]:
    """The command that repeats the run."""
    file = f"{file_name(run.scenario.name)}.toml is the scenario below."
    match run.provenance["engine"]:
        case "linux":
            quality = run.provenance["quality"]
            reasons = [f"Invalid run: {reason}." for reason in quality["invalid_because"]]
            return [
                *reasons,
                f"{file} It runs on this kernel's TCP in real time, as root; results vary from run to run.",
            ]
        case "kernel":
            return [f"{file} The same image of the kernel and the same version of Elephan give bit-identical results."]
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
    """Several runs side by side, by name. Raises `ScenarioError` if one of the results is not a single run, or is damaged."""
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
    """The lines of several charts on the union of their times."""
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
        first.id, first.title, first.unit, first.meaning, kept.time_s, drawn, sentences(more, kept.note), first.steps
    )


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
