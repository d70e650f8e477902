"""`elephan cc`: the congestion control algorithms."""

from typing import Annotated

import typer

from elephan.api.registry import algorithms, slow_starts
from elephan.cli.entries import print_list, print_one

app = typer.Typer(help="The congestion control algorithms and slow starts.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the congestion control algorithms, and the slow starts."""
    print_list("congestion control (cc)", algorithms())
    print_list("slow start (slow_start)", slow_starts())


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of an algorithm or a slow start.")]) -> None:
    """Show an algorithm's parameters, their defaults, ranges and sources."""
    print_one("cc", [*algorithms(), *slow_starts()], name)
