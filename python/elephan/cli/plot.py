"""`elephan plot`."""

from pathlib import Path
from typing import Annotated

import typer

from elephan.api.pictures.kinds import KINDS, kind_named
from elephan.base import plots
from elephan.base.documents import damage
from elephan.base.text import Terminal
from elephan.cli import complete
from elephan.cli.options import command_line
from elephan.report.read import picture_of

app = command_line()


@app.command()
def plot(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"Kind of picture: {', '.join(KINDS)}.",
            autocompletion=complete.one_of(lambda: list(KINDS)),
        ),
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Results folder of a run, a comparison or a sweep.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Picture file: png, svg or pdf.", show_default="RESULTS/KIND.png")
    ] = None,
) -> None:
    """Draw one picture of results: a quantity over time, a distribution, a map."""
    target = out or folder / f"{kind_named(kind).name}.png"
    plots.check_format(target)
    with damage(folder):
        plots.save(picture_of(folder, kind), target)
    Terminal().message(f"{target}")
