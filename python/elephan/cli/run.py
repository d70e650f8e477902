"""`elephan run`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.cells import cell_len

from elephan import _core
from elephan.api.pictures.over_time import chart
from elephan.api.run import Run
from elephan.api.scenario import load
from elephan.api.tables import figures, heads, of_run, together
from elephan.base.folders import default, new_folder
from elephan.base.numbers import sparkline
from elephan.base.text import file_names
from elephan.cli.options import Force, Isolate, Large, ScenarioFile, Settings, assignments, command_line
from elephan.cli.output import ALL, Columns, Form, chosen, err, named, out, show
from elephan.cli.progress import announce, progress_bar
from elephan.engines.run import run as simulate

app = command_line()
# Maximum rows of a table on the terminal; reports have more.
MOST_ROWS = 50
# Windows of so many flows are drawn, in lines of so many characters.
MOST_DRAWN, MOST_ROOM = 8, 100
# The default of `trace.interval` up to 1000 flows.
USUAL_INTERVAL = "100 ms"


@app.command()
def run(
    file: ScenarioFile,
    settings: Settings = None,
    seed: Annotated[int | None, typer.Option(help="Seed; overrides the file's.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine; overrides the file's: sim, model, kernel (a kernel's TCP in virtual time; needs an image), "
            "or linux (this kernel's TCP; needs root)."
        ),
    ] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Results folder.", show_default="results/NAME")] = None,
    columns: Columns = None,
    form: Form = "table",
    threads: Annotated[
        int, typer.Option(min=0, help="Threads of the simulator; 0: one for each core. Results are the same.")
    ] = 1,
    trace: Annotated[
        str | None,
        typer.Option(help="`events` records every event, `variables` the state of congestion control."),
    ] = None,
    pcap: Annotated[list[str] | None, typer.Option(help="Capture the packets of this link; repeatable.")] = None,
    isolate: Isolate = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Run a scenario file, print the results, and write a results folder."""
    changes = assignments(settings)
    if seed is not None:
        changes["seed"] = str(seed)
    if engine is not None:
        changes["engine"] = engine
    if trace is not None:
        if trace not in ("events", "variables"):
            raise _core.ScenarioError(f'--trace: expected "events" or "variables", found "{trace}"')
        changes[f"trace.{trace}"] = "true"
    if pcap:
        changes["trace.pcap"] = json.dumps(pcap)
    names = named(columns, heads())
    scenario = load(file, changes, large=large)
    folder = out_dir or default(scenario.name)
    if scenario.document.get("sweep"):
        raise _core.ScenarioError(f"{file}: expected a single run, found a sweep; use `elephan sweep {file}`")
    with new_folder(folder, force=force) as place:
        files = file_names(scenario.document["trace"]["pcap"])
        captures = {link: str(place / f"{name}.pcap") for link, name in files.items()}
        announce([scenario])
        with progress_bar(scenario.name) as progress:
            result = simulate(scenario, progress=progress, captures=captures, threads=threads, isolate=isolate)
        result.write_into(place)
    # The results are stored; an error while showing them does not lose them.
    _show(result, folder, form, names)


def _draw(result: Run) -> None:
    """Draw the windows over time, a line for each flow."""
    picture = chart(result, "cwnd")
    lines = [line for line in picture.lines if not line.minor]
    most, end_s = max((float(np.nanmax(line.values)) for line in lines), default=0.0), result.summary.to_s
    if not 1 <= len(lines) <= MOST_DRAWN or not most > 0:
        return
    named = max(cell_len(line.name) for line in lines)
    room = max(min(out.width, MOST_ROOM) - named - 1, 1)
    out.print()
    out.message(f"cwnd from 0 s to {end_s:g} s, the highest {most:,.0f} segments")
    for line in lines:
        known = np.isfinite(line.values)
        places = np.minimum(picture.time_s[known] / end_s * room, room - 1).astype(int)
        shown = sparkline(places.tolist(), line.values[known].tolist(), room, most)
        out.message(f"{line.name}{' ' * (named - cell_len(line.name))} {shown}")


def _show(result: Run, folder: Path, form: str, names: Sequence[str] | None) -> None:
    summary = result.summary
    if form == "table":
        out.message(f"{result.scenario.name}, from {summary.from_s:g} s to {summary.to_s:g} s")
    tables = [together(result), *of_run(result)]
    document = summary.to_dict()
    if names is not None and ALL not in names:
        document = figures(summary, [name.replace("_", " ") for name in names])
    show(tables if names is None else chosen(tables, names), form, document, MOST_ROWS)
    lacks = [name for name in names or () if name != ALL and not chosen(tables, [name])]
    if lacks:
        err.message(f"--columns: this run has no {', '.join(lacks)}")
    for reason in result.provenance.get("quality", {}).get("invalid_because", ()):
        err.message(f"invalid run: {reason}")
    if form != "table":
        return
    _draw(result)
    interval = result.scenario.trace_interval
    if interval != USUAL_INTERVAL and "interval" not in result.scenario.document["trace"]:
        out.message(f"sampled every {interval}, because there are many flows; --set trace.interval=100ms shows more")
    out.message(f"results in {folder}; `elephan plot cwnd {folder}` plots them")
