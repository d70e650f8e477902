"""`elephan plot`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from elephan._core import ScenarioError
from elephan.api.pictures.draw import WIDTH
from elephan.api.pictures.kinds import KINDS
from elephan.base import plots
from elephan.base.documents import damage
from elephan.base.errors import given_as
from elephan.base.text import Terminal, file_name
from elephan.cli import complete
from elephan.cli.entries import table_of_names
from elephan.cli.grids import OPTIONS, Where
from elephan.cli.options import assignments, command_line, words
from elephan.cli.output import show
from elephan.report.read import picture_of

app = command_line()


@app.command()
def plot(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help=f"Kind of picture: {', '.join(KINDS)}; or a metric of many runs. `list` says what each kind shows.",
            autocompletion=complete.one_of(lambda: ["list", *KINDS, *complete.metric_names()]),
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="RESULTS", help="Results folder of a run, a comparison or a sweep; or a file of qlog."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Picture file: png, svg, pdf, or pgf for LaTeX.", show_default="RESULTS/WHAT.png"),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="Of a sweep: the key, or another metric, on the horizontal axis; two keys for a map.",
            show_default="a key",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Of a sweep: the keys that have a line, or a map, for each value.", show_default="all others"
        ),
    ] = None,
    where: Where = None,
    cdf: Annotated[bool, typer.Option("--cdf", help="Of a sweep: the distribution over its runs.")] = False,
    width: Annotated[str, typer.Option(help="Width, such as 3.5in or 88mm.")] = f"{WIDTH}in",
    title: Annotated[bool, typer.Option("--title/--no-title", help="A title, and a note below.")] = True,
) -> None:
    """Draw one picture of results: a quantity over time, a distribution, a map, a metric of a sweep."""
    if kind == "list":
        show([table_of_names("", {name: one.meaning.rstrip(".") for name, one in KINDS.items()})], "table")
        return
    if folder is None:
        raise ScenarioError("RESULTS: expected a results folder, found none")
    beside = (
        folder.with_name(f"{folder.stem}-{file_name(kind)}.png")
        if folder.is_file()
        else folder / f"{file_name(kind)}.png"
    )
    target = out or beside
    plots.check_format(target)
    chosen = {
        "over": words(over),
        "by": words(by) if by else None,
        "where": assignments(where, "--where"),
        "cdf": cdf,
    }
    with damage(folder), given_as({**OPTIONS, "metric": "plot", "cdf": "--cdf"}):
        plots.save(picture_of(folder, kind, chosen, width=_inches(width), title=title), target)
    Terminal().message(f"{target}")


def _inches(text: str) -> float:
    """A width in inches, from 1 to 100."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(in|mm|cm)", text)
    inches = float(found[1]) / {"in": 1.0, "mm": 25.4, "cm": 2.54}[found[2]] if found else 0.0
    if not 1 <= inches <= 100:
        raise ScenarioError(f"--width: expected a width from 1in to 100in, such as 3.5in or 88mm, found {text!r}")
    return inches
