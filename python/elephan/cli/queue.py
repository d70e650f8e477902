"""`elephan queue`: the queue disciplines."""

from typing import Annotated

import typer

from elephan.api.registry import queues
from elephan.cli import complete
from elephan.cli.entries import print_one, table_of
from elephan.cli.options import command_line
from elephan.cli.output import Form, show

app = command_line(group=True)


@app.command("list")
def list_(form: Form = "table") -> None:
    """List the queue disciplines."""
    show([table_of("queue disciplines (queue)", queues())], form)


@app.command("show")
def show_(
    name: Annotated[
        str, typer.Argument(help="Name of a queue discipline.", autocompletion=complete.one_of(complete.queue_names))
    ],
    form: Form = "table",
) -> None:
    """Show the parameters of a queue discipline: defaults, ranges and sources."""
    print_one("queue", queues(), name, form)
