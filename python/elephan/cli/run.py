"""`elephan run`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario, load
from elephan.api.tables import of_run
from elephan.base.folders import default, file_names, new_folder
from elephan.base.text import Terminal
from elephan.cli.options import Force, Isolate, Large, Settings, assignments, command_line
from elephan.cli.progress import progress_bar
from elephan.engines.run import run as simulate

app = command_line()
out = Terminal()
err = Terminal(stderr=True)
# Maximum rows of a table on the terminal; reports have more.
MOST_ROWS = 50
# The default of `trace.interval` up to 1000 flows.
USUAL_INTERVAL = "100 ms"


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="Scenario file.")],
    settings: Settings = None,
    seed: Annotated[int | None, typer.Option(help="Seed; overrides the file's.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine; overrides the file's: sim, model, kernel (a kernel's TCP in virtual time; needs an image), "
            "or linux (this kernel's TCP; needs root)."
        ),
    ] = None,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Results folder. [default: results/NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the summary, as JSON.")] = False,
    threads: Annotated[
        int, typer.Option(min=0, help="Threads of the simulator; 0: one for each core. Results are the same.")
    ] = 1,
    trace: Annotated[str | None, typer.Option(help="`events` records every event.")] = None,
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
        if trace != "events":
            raise _core.ScenarioError(f'--trace: expected "events", found "{trace}"')
        changes["trace.events"] = "true"
    if pcap:
        changes["trace.pcap"] = json.dumps(pcap)
    scenario = load(file, changes, large=large)
    folder = out_dir or default(scenario.name)
    if scenario.document.get("sweep"):
        raise _core.ScenarioError(f"{file}: expected a single run, found a sweep; use `elephan sweep {file}`")
    with new_folder(folder, force=force) as place:
        result = _run_one(scenario, place, threads, isolate=isolate)
    # The results are stored; an error while showing them does not lose them.
    _show(result, folder, as_json=as_json)


def _run_one(scenario: Scenario, place: Path, threads: int, *, isolate: bool) -> Run:
    files = file_names(scenario.document["trace"]["pcap"])
    captures = {link: str(place / f"{file}.pcap") for link, file in files.items()}
    with progress_bar(scenario.name) as progress:
        result = simulate(scenario, progress=progress, captures=captures, threads=threads, isolate=isolate)
    result.write_into(place)
    return result


def _show(result: Run, folder: Path, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.summary.to_dict(), indent=2))
        return
    summary = result.summary
    out.message(f"{result.scenario.name}, from {summary.from_s:g} s to {summary.to_s:g} s")
    for table in of_run(result):
        out.print(table.to_terminal(out.width, MOST_ROWS))
    interval = result.scenario.trace_interval
    if interval != USUAL_INTERVAL and "interval" not in result.scenario.document["trace"]:
        out.message(f"sampled every {interval}, because there are many flows; --set trace.interval=100ms shows more")
    for reason in result.provenance.get("quality", {}).get("invalid_because", ()):
        err.message(f"invalid run: {reason}")
    out.message(f"results in {folder}; `elephan plot {folder}` plots them")
