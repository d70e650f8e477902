"""What `elephan table`, `paired` and `query` share: options, and how they print."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elephan import _core
from elephan.base.text import Terminal, echo
from elephan.studies.sweeps import tables
from elephan.studies.sweeps.dataset import Dataset, named

out = Terminal(least_width=132)
err = Terminal(stderr=True)

Folder = Annotated[Path, typer.Argument(help="The folder of a sweep.")]
Where = Annotated[list[str] | None, typer.Option("--where", help="KEY=VALUE: only runs with this setting.")]
Form = Annotated[str, typer.Option("--format", help="text, csv, markdown or latex.")]


def tell(lines: list[str]) -> None:
    """Say each line on standard error."""
    for line in lines:
        err.message(line)


def missing(folder: Path) -> None:
    """Say what a folder no longer has: figures of the index stand without it."""
    tell(named(Dataset(folder).losses(), "sweep again to run them"))


def print_grids(grids: list[tables.Grid], form: str) -> None:
    """Print tables, in one of `tables.FORMATS`."""
    for grid in grids:
        if form == "csv":
            echo(grid.to_csv())
        elif form == "markdown":
            echo(grid.to_markdown() + "\n")
        elif form == "latex":
            echo(grid.to_latex() + "\n")
        else:
            shown = Table(title=grid.title or None, title_justify="left")
            for number, head in enumerate(grid.heads):
                shown.add_column(head, justify="left" if number < grid.left else "right")
            for line in grid.lines:
                shown.add_row(*line)
            out.print(shown)


def known_form(form: str) -> str:
    """One of `tables.FORMATS`. Raises `ScenarioError` for another."""
    if form not in tables.FORMATS:
        raise _core.ScenarioError(f"--format: expected one of {', '.join(tables.FORMATS)}, found {form!r}")
    return form
