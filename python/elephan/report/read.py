"""Reads a results folder into the content of a report."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from elephan import _core
from elephan.api import tables
from elephan.api.metrics import METRICS
from elephan.api.own import restored
from elephan.api.pictures import draw
from elephan.api.pictures.data import Cells, Chart, LackingError, Line, Points, Runs
from elephan.api.pictures.kinds import KINDS
from elephan.api.pictures.over_time import QUANTITIES, chart, on_one_grid
from elephan.api.pictures.samples import MOST_LINES, experiment
from elephan.api.pictures.thin import MOST_VALUES, thinned
from elephan.api.run import Run
from elephan.api.summary import Summary
from elephan.base.documents import damage, inside
from elephan.base.kinds import COMPARISON, RESULTS, RUN, SWEEP, kind_of
from elephan.base.plots import Figure
from elephan.base.table import Table
from elephan.base.text import file_name, short
from elephan.report import qlog
from elephan.report.content import Content, Group, Tile, of_metrics
from elephan.report.sweep import usual
from elephan.studies.compare import Comparison, run_path
from elephan.studies.sweeps.plots import plot
from elephan.studies.sweeps.tables import Selection


def read(folder: str | Path) -> Content:
    """Read a results folder of any kind. Raises `ScenarioError` if it has no results, or damaged ones."""
    folder = Path(folder)
    kind = kind_of(folder)
    if kind is None or not kind.report:
        *others, last = (known.what for known in RESULTS if known.report)
        found = "none of them" if kind is None else kind.what
        raise _core.ScenarioError(f"{folder}: expected the results of {', '.join(others)} or {last}, found {found}")
    with damage(folder):
        content: Content = resolve_name(kind.report)(folder)
        return content


def read_run(folder: Path) -> Content:
    """The report of a run."""
    run = Run.load(folder)
    summary = run.summary
    document = run.scenario.document
    window = f"{summary.from_s:g} s to {summary.to_s:g} s"
    return Content(
        kind="run",
        title=run.scenario.name,
        subtitle=f"{experiment(document)}; measuring window {window}",
        facts=[*_engine(run), ("measuring window", window), *_versions(folder)],
        command=f"elephan run {file_name(run.scenario.name)}.toml",
        scenario=run.scenario.toml,
        tiles=tiles(summary),
        tables=tables.of_run(run),
        figures=figures(run),
        groups=[Group("Over time", charts(run))],
        notes=[
            *_repeatable(run),
            "Goodput counts application bytes; rates and utilisation count IP packets. 1 Mbit is 10^6 bits.",
        ],
    )


def tiles(summary: Summary) -> list[Tile]:
    """The headline numbers of a run."""
    found = []
    for metric in METRICS:
        undefined = " Undefined in this run." if metric.read(summary) is None else ""
        meaning = f"{metric.unit}. {metric.meaning}{undefined}"
        found.append(Tile(metric.name, metric.cell(summary), metric.short_unit, meaning))
    return found


# Engines by name, as a report says them.
ENGINES = {
    "sim": "sim, packet by packet",
    "model": "model, fluid equations",
    "transfer": "none: a transfer between two hosts",
}


def _engine(run: Run) -> list[tuple[str, str]]:
    """The engine of a run, and its quality: a kernel is less exact than a simulator."""
    engine, told = str(run.provenance["engine"]), run.provenance
    facts = [
        ("engine", ENGINES.get(engine, engine)),
        ("seed", str(run.scenario.document["seed"])),
        ("real time" if engine in ("linux", "transfer") else "simulated time", str(run.scenario.document["duration"])),
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


# What repeating a run gives, by engine; all others are exact.
REPEATED = {
    "linux": "It runs on this kernel's TCP in real time, as root; results vary from run to run.",
    "transfer": "It has the streams of this transfer, on a path of which the rate is the highest that they reached and the "
    "round-trip time the shortest that they measured, unless the sender was given the path.",
    "kernel": "The same image of the kernel and the same version of Elephan give bit-identical results.",
    "model": "The fluid model has no packets: packet counts are rates times time.",
}


def _repeatable(run: Run) -> list[str]:
    """Why a run is invalid, and what repeats it."""
    quality = run.provenance.get("quality") or {"invalid_because": ()}
    again = REPEATED.get(run.provenance["engine"], "The same version of Elephan gives bit-identical results.")
    return [
        *(f"Invalid run: {reason}." for reason in quality["invalid_because"]),
        f"{file_name(run.scenario.name)}.toml is the scenario below. {again}",
    ]


def load_comparison(folder: Path) -> Comparison:
    """The runs of a comparison, and the user's metrics of them. Raises `ScenarioError` if one is damaged."""
    document = COMPARISON.load(folder)
    runs = {
        name: [Run.load(inside(folder, run_path(name, k))) for k in range(len(seeds))]
        for name, seeds in document["runs"].items()
    }
    own = (restored(one, runs) for one in document.get("metrics", ()))
    return Comparison(runs, metrics=(*METRICS, *own))


def read_comparison(folder: Path) -> Content:
    """The report of a comparison."""
    result = load_comparison(folder)
    name, runs = next(iter(result.runs.items()))
    seeds = [int(run.scenario.document["seed"]) for run in runs]
    first, repeats = runs[0], len(runs)
    document = first.scenario.document
    table = result.table(
        "Metrics",
        f"Means over {repeats} runs; ± or brackets: 95 % confidence interval (Student's t). "
        "(2/3) says that a metric is defined in two of three",
    )
    later = [flow["start"]["uniform"][1] for flow in document["flow"] if isinstance(flow.get("start"), Mapping)]
    path = document["path"]
    command = (
        f"elephan compare --cc {','.join(result.runs)} "
        f"--rate '{path['rate']}' --rtt '{path['rtt']}' --buffer '{path['buffer']}' "
        f"--flows {len(document['flow'])} --duration '{document['duration']}' --repeat {repeats} "
        f"--seed {seeds[0]}" + (f" --start-within '{later[0]}'" if later else "")
    )
    return Content(
        kind="comparison",
        title=", ".join(result.runs),
        subtitle=f"{experiment(document)}, {document['duration']}, {repeats} runs of each",
        facts=[
            ("engine", str(first.provenance["engine"])),
            ("seeds", _list(seeds)),
            *_versions(inside(folder, run_path(name, 0))),
        ],
        command=command,
        scenario=first.scenario.toml,
        tables=[table],
        runs=result.table_of_runs(),
        figures=usual(Selection.of_runs(result.table_of_runs())),
        groups=[
            Group(
                title,
                [
                    replace(thinned(chart(ones[0], what).numbered(), MOST_VALUES // 4), id=f"{what}-{name}", title=name)
                    for name, ones in result.runs.items()
                ],
            )
            for what, title in (
                ("cwnd", "Windows, first run of each algorithm"),
                ("goodput", "Goodput, first run of each algorithm"),
            )
        ],
        notes=[f"The scenario below is for {name}, seed {document['seed']}."],
    )


def picture_of(folder: Path, name: str, chosen: Mapping[str, Any], *, width: float, title: bool) -> Figure:
    """Draw a picture of a kind, or a metric of many runs, of which `chosen` selects; `width` is in inches.

    `folder` may also be a file of qlog. Raises `ScenarioError` for one without results that have such a picture.
    """
    is_log = folder.is_file()
    results = None if is_log else kind_of(folder)
    if results == SWEEP:
        return plot(folder, name, **chosen, width=width, title=title)
    if (results == RUN or is_log) and any(chosen.values()):
        found = f"expected a sweep or a comparison for --over, --by, --where and --cdf, found a {'file' if is_log else 'run'}"
        raise _core.ScenarioError(f"{folder}: {found}")
    if is_log:
        picture = qlog.chart(folder, name)
        return draw.figure([(picture.title, picture)], short(folder.name, 60) if title else "", width)
    if results == RUN:
        return Run.load(folder).plot(name, width=width, title=title)
    if results == COMPARISON:
        return load_comparison(folder).plot(name, **chosen, width=width, title=title)
    raise _core.ScenarioError(f"{folder}: expected the results of a run, a comparison or a sweep, found none of them")


def figures(run: Run) -> list[Points | Cells]:
    """The pictures of a run that are not over time, without those for which it lacks something, such as a second flow."""
    found = []
    for kind in KINDS.values():
        if kind.name not in QUANTITIES:
            with contextlib.suppress(LackingError):
                found.append(kind.of_run(run))
    return [one for one in found if isinstance(one, Points | Cells)]


def charts(run: Run) -> list[Chart]:
    """The charts over time of a run that have lines, without those for which it lacks the samples."""
    found = []
    for name in QUANTITIES:
        with contextlib.suppress(LackingError):
            found.append(thinned(chart(run, name)))
    return [made for made in found if made.lines]


def read_beside(folders: Mapping[str, Path]) -> Content:
    """Several results side by side, by name: runs with their charts, or any runs, comparisons and sweeps with their metrics.

    Raises `ScenarioError` if one of the results is of another kind, or is damaged.
    """
    if any(kind_of(folder) != RUN for folder in folders.values()):
        return _together({name: read(folder) for name, folder in folders.items()}, folders)
    runs = {name: Run.load(folder) for name, folder in folders.items()}
    with damage(Path(" and ".join(folders))):
        return beside(runs, folders)


def _together(contents: Mapping[str, Content], folders: Mapping[str, Path]) -> Content:
    """The runs of all results in one figure, by their settings and by the result that has them; the tables one by one."""
    found: dict[str, Runs] = {}
    shown: dict[str, Table] = {}
    for name, content in contents.items():
        if content.kind == "run":
            run = Run.load(folders[name])
            values = _values(run)
            cc = " + ".join(dict.fromkeys(run.labels))
            found[name] = Runs("", ["cc"], [[cc]], [values])
            shown[name] = of_metrics("Metrics", ["cc"], [([cc], [values])])
        elif content.runs is not None:
            found[name] = content.runs
            shown[name] = content.tables[0]
        else:
            raise _core.ScenarioError(f"{name}: expected a run, a comparison or a sweep, found a {content.kind}")
    keys = list(dict.fromkeys(key for runs in found.values() for key in runs.keys))
    settings = [
        [name, *(dict(zip(runs.keys, row, strict=True)).get(key) for key in keys)]
        for name, runs in found.items()
        for row in runs.settings
    ]
    count = len(settings)
    return Content(
        kind="comparison",
        title=" beside ".join(contents),
        subtitle=f"{len(contents)} results with {count} runs; metrics cover each run's measuring window",
        facts=[(name, f"{content.kind}: {content.subtitle}") for name, content in contents.items()],
        command="",
        scenario="",
        tables=[replace(table, title=f"{name}: {table.title}") for name, table in shown.items()],
        runs=Runs(
            "Metrics of all", ["result", *keys], settings, [row for runs in found.values() for row in runs.values]
        ),
    )


def beside(runs: Mapping[str, Run], folders: Mapping[str, Path]) -> Content:
    """Runs side by side: their metrics in one table, and lines of the same chart together. `folders` are theirs."""
    rows = (([name, experiment(run.scenario.document)], [_values(run)]) for name, run in runs.items())
    lines: dict[str, list[tuple[str, Chart, Line]]] = {}
    for name, run in runs.items():
        for one in charts(run):
            for line in one.lines:
                if not line.minor:
                    lines.setdefault(one.id, []).append((name, one, line))
    first = next(iter(runs.values()))
    return Content(
        kind="comparison",
        title=" beside ".join(runs),
        subtitle=f"{len(runs)} runs; metrics cover each run's measuring window",
        facts=_versions(next(iter(folders.values()))),
        command="",
        scenario=first.scenario.toml,
        tables=[of_metrics("Metrics", ["run", "of"], rows)],
        groups=[Group("Over time", [_overlaid(found) for found in lines.values()])],
        notes=[f"The scenario below is that of {next(iter(runs))}."],
    )


def _values(run: Run) -> list[float | None]:
    return [metric.read(run.summary) for metric in METRICS]


def _overlaid(found: Sequence[tuple[str, Chart, Line]]) -> Chart:
    """The lines of several charts on the union of their times. Each run has its own changes and window: neither is marked."""
    shown = found[:MOST_LINES]
    named = [(one.time_s, Line(f"{name}: {line.name}", line.values, k)) for k, (name, one, line) in enumerate(shown)]
    times, lines = on_one_grid(named)
    more = f"The first {MOST_LINES} of {len(found)} lines." if len(found) > MOST_LINES else ""
    until_s = max(one.until_s for _, one, _ in shown)
    first = shown[0][1]
    return thinned(replace(first, time_s=times, lines=lines, note=more, until_s=until_s, window=None, marks=[]))


def _versions(folder: Path) -> list[tuple[str, str]]:
    description = RUN.load(folder)
    return [("versions", f"Elephan {description['elephan']}, Python {description['python']}")]


def _list(values: Sequence[int]) -> str:
    together = list(values) == list(range(values[0], values[0] + len(values))) and len(values) > 2
    return f"{values[0]} to {values[-1]}" if together else ", ".join(map(str, values))
