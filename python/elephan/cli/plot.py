"""`elephan plot`."""

from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.charts import CHARTS
from elephan.api.run import Run
from elephan.base import plots
from elephan.base.text import Terminal
from elephan.cli.options import command_line

app = command_line()
out = Terminal()


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(help="Results folder of a run.")],
    what: Annotated[str, typer.Option(help=f"Quantity: {', '.join(CHARTS)}.")] = "cwnd",
    to: Annotated[Path | None, typer.Option("--to", help="Output file. [default: FOLDER/WHAT.png]")] = None,
) -> None:
    """Plot a quantity over time from a results folder."""
    if not (folder / "run.json").is_file():
        raise _core.ScenarioError(f"{folder}: expected a results folder with run.json, found none")
    picture = to or folder / f"{what}.png"
    plots.save(Run.load(folder).plot(what), picture)
    out.print(f"{picture}")
