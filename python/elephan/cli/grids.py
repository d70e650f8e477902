"""Options and output that `elephan table`, `paired` and `query` share."""

from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.base.table import Table
from elephan.base.text import Terminal, echo, markdown
from elephan.studies.sweeps import tables
from elephan.studies.sweeps.dataset import Dataset, named

out = Terminal()
err = Terminal(stderr=True)

Folder = Annotated[Path, typer.Argument(help="Folder of a sweep.")]
Where = Annotated[list[str] | None, typer.Option("--where", help="KEY=VALUE: include only runs with this setting.")]
Form = Annotated[str, typer.Option("--format", help="Output format: text, csv, markdown or latex.")]


def tell(lines: list[str]) -> None:
    """Print each line on standard error."""
    for line in lines:
        err.message(line)


def missing(folder: Path) -> None:
    """Report the missing files of a folder. The metrics of the index do not need them."""
    tell(named(Dataset(folder).losses(), "repeat the sweep to run them"))


def print_tables(made: list[Table], form: str) -> None:
    """Print tables, in one of `tables.FORMATS`."""
    for table in made:
        match form:
            case "csv":
                echo(table.to_csv())
            case "markdown":
                title = f"{markdown(table.title)}\n\n" if table.title else ""
                echo(title + table.to_markdown() + "\n")
            case "latex":
                echo(table.to_latex() + "\n")
            case _:
                out.print(table.to_terminal(out.width))


def known_form(form: str) -> str:
    """One of `tables.FORMATS`. Raises `ScenarioError` for another."""
    if form not in tables.FORMATS:
        raise _core.ScenarioError(f"--format: expected one of {', '.join(tables.FORMATS)}, found {form!r}")
    return form
