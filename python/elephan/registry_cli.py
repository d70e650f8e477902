"""`elephan cc` and `elephan queue`: what a scenario can name, and its parameters."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from elephan import _core
from elephan.registry import Algorithm, algorithms, queues, slow_starts
from elephan.text import Terminal

cc_app = typer.Typer(help="The congestion control algorithms and slow starts.", no_args_is_help=True)
queue_app = typer.Typer(help="The queue disciplines.", no_args_is_help=True)

out = Terminal(least_width=132)


def _list(title: str, entries: Sequence[Algorithm]) -> None:
    table = Table(title=title, title_justify="left")
    for head in ("name", "what it is", "source", "parameters"):
        table.add_column(head)
    for entry in entries:
        table.add_row(entry.name, entry.title, entry.source, ", ".join(p.name for p in entry.parameters))
    out.print(table)


def _show(kind: str, entries: Sequence[Algorithm], name: str) -> None:
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise _core.ScenarioError(f"{kind}: expected one of {', '.join(e.name for e in entries)}, found {name!r}")
    out.strong(found.name, f": {found.title}\nsource: {found.source}")
    if not found.parameters:
        return
    table = Table()
    for head in ("parameter", "default", "range", "meaning"):
        table.add_column(head)
    for p in found.parameters:
        default = p.default if isinstance(p.default, str) else json.dumps(p.default)
        table.add_row(p.name, default, p.range, p.meaning)
    out.print(table)


@cc_app.command("list")
def cc_list() -> None:
    """List the congestion control algorithms, and the slow starts."""
    _list("congestion control (cc)", algorithms())
    _list("slow start (slow_start)", slow_starts())


@cc_app.command("show")
def cc_show(name: Annotated[str, typer.Argument(help="Name of an algorithm or a slow start.")]) -> None:
    """Show an algorithm's parameters, their defaults, ranges and sources."""
    _show("cc", [*algorithms(), *slow_starts()], name)


@queue_app.command("list")
def queue_list() -> None:
    """List the queue disciplines."""
    _list("queue disciplines (queue)", queues())


@queue_app.command("show")
def queue_show(name: Annotated[str, typer.Argument(help="Name of a queue discipline.")]) -> None:
    """Show a queue discipline's parameters, their defaults, ranges and sources."""
    _show("queue", queues(), name)
