"""Options and messages that `elephan sweep table`, `paired` and `query` share."""

from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.output import err
from elephan.studies.sweeps.dataset import Dataset, named

Folder = Annotated[Path, typer.Argument(metavar="RESULTS", help="Folder of a sweep.")]
Where = Annotated[list[str] | None, typer.Option("--where", help="KEY=VALUE: include only runs with this setting.")]


def tell(lines: list[str]) -> None:
    """Print each line on standard error."""
    for line in lines:
        err.message(line)


def missing(folder: Path) -> None:
    """Report the missing files of a folder. The metrics of the index do not need them."""
    tell(named(Dataset(folder).losses(), "repeat the sweep to run them"))
