"""`elephan compare-engines`: a scenario on the simulator and on the running kernel."""

from pathlib import Path
from typing import Annotated

import typer

from elephan.api.scenario import load
from elephan.base.folders import default, file_names, new_folder
from elephan.base.text import Terminal, echo
from elephan.cli.options import Force, Large, Settings, assignments, command_line, words
from elephan.studies import side_by_side

app = command_line()
out = Terminal()
err = Terminal(stderr=True)


@app.command()
def compare_engines(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.")],
    cc: Annotated[str | None, typer.Option(help="Algorithms for all flows, separated by commas, one run each.")] = None,
    settings: Settings = None,
    repeat: Annotated[int, typer.Option(min=1, help="Number of runs on the kernel; the median is reported.")] = 1,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Results folder. [default: results/engines]")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print only the table, as Markdown.")] = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Run scenarios on the simulator and on this kernel's TCP, and show the differences. Needs root."""
    changes = assignments(settings)
    folder = out_dir or default("engines")
    pairs: list[side_by_side.Pair] = []
    names: list[str | None] = [*words(cc)] or [None]
    todo = [
        (f"{scenario.name} {name or ''}".strip(), scenario)
        for path in files
        for name in names
        for scenario in [load(path, {**changes, **({"flow.cc": name} if name else {})}, large=large)]
    ]
    places = file_names(name for name, _ in todo)
    for number, (name, scenario) in enumerate(todo):
        err.print(f"{number + 1}/{len(todo)}: {name}, {scenario.document['duration']} x {repeat}", highlight=False)
        try:
            with new_folder(folder / places[name], force=force) as place:
                made = side_by_side.pair(scenario, name=name, repeat=repeat, large=large)
                made.write_into(place)
            made.draw(folder / places[name])
        except KeyboardInterrupt as stopped:
            if pairs:
                stopped.add_note(f"{number} of {len(todo)} scenarios are in {folder}")
            raise
        pairs.append(made)
    table = side_by_side.table(pairs)
    if markdown:
        echo(table.to_markdown() + "\n")
        return
    out.print(table.to_terminal(out.width))
    out.print(f"results and figures in {folder}")
