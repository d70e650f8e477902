"""`elephan report`."""

from pathlib import Path
from typing import Annotated

import typer

from elephan.base.documents import damage
from elephan.base.text import Terminal
from elephan.cli.options import command_line
from elephan.report.write import write_results

app = command_line()


@app.command()
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="Results folder of a run, a comparison, a sweep, a reproduction or a path."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Output file.", show_default="RESULTS/report.FORMAT")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html, pdf, png, svg or md; of a run also its trace: sqlog (qlog, a file for each flow), or perfetto "
            "(for ui.perfetto.dev).",
            show_default="the suffix of --out, or html",
        ),
    ] = None,
) -> None:
    """Write the results of a run, a comparison, a sweep, a reproduction or a path as one file."""
    kind = kind or (out.suffix.lstrip(".") if out is not None and out.suffix else "html")
    target = out or folder / f"report.{kind}"
    with damage(folder):
        written = write_results(folder, target, kind)
    for path in written:
        Terminal().message(f"{path}")
