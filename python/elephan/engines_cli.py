"""`elephan compare-engines`: a scenario on the simulator and on the running kernel."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elephan.folders import default, file_names, new_folder
from elephan.scenario import load
from elephan.settings import Large, assignments, words
from elephan.text import Terminal, echo

out = Terminal(least_width=160)
err = Terminal(stderr=True)


def compare_engines(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.")],
    cc: Annotated[str | None, typer.Option(help="Algorithms for all flows, separated by commas, one run each.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, such as path.rtt=162ms.")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="How often each runs on the kernel; the median counts.")] = 1,
    out_dir: Annotated[Path | None, typer.Option("--out", help="The folder. [default: results/engines]")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown, and nothing else.")
    ] = False,
    large: Large = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder where there is one.")] = False,
) -> None:
    """Run scenarios on the simulator and on this kernel's TCP, and show how far they are apart. Needs root."""
    from elephan import engines  # noqa: PLC0415 - only where it is asked for

    changes = assignments(settings)
    folder = out_dir or default("engines")
    pairs: list[engines.Pair] = []
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
                made = engines.pair(scenario, name=name, repeat=repeat, large=large)
                made.write_into(place)
            made.draw(folder / places[name])
        except KeyboardInterrupt as stopped:
            if pairs:
                stopped.add_note(f"{number} of {len(todo)} scenarios are in {folder}")
            raise
        pairs.append(made)
    if markdown:
        echo(engines.to_markdown(pairs) + "\n")
        return
    table = Table(title="simulator / kernel (difference; ! beyond the aim)", title_justify="left")
    for head in engines.heads():
        table.add_column(head)
    for row in engines.rows(pairs):
        table.add_row(*row)
    out.print(table)
    out.print(f"results and figures in {folder}")
