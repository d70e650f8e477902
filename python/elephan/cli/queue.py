"""`elephan queue`: the queue disciplines."""

from typing import Annotated

import typer

from elephan.api.registry import queues
from elephan.cli.entries import print_list, print_one
from elephan.cli.options import command_line

app = command_line(group=True)


@app.command("list")
def list_() -> None:
    """List the queue disciplines."""
    print_list("queue disciplines (queue)", queues())


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of a queue discipline.")]) -> None:
    """Show the parameters of a queue discipline: defaults, ranges and sources."""
    print_one("queue", queues(), name)
